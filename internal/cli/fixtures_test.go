package cli

import (
	"time"

	"plimsoll/internal/kit/clock"
	"plimsoll/internal/report"
	"plimsoll/result"
)

// scenarioClock tells the time of the house's first run.
type scenarioClock struct{ clock.Real }

func (scenarioClock) Now() time.Time { return time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC) }

// document is a report in which a result that must be zero has this value.
func document(lost float64) *report.Document {
	return &report.Document{Panels: []result.Panel{
		{Name: "rate", Title: "Rate", Metrics: []result.Metric{{Name: "Median", Value: 4000}}},
		{Name: "lost", Title: "Lost writes", Metrics: []result.Metric{{Name: "AnyFail (worst)", Value: lost}}},
	}}
}
