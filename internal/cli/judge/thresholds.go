package judge

import (
	"cmp"
	"errors"
	"strings"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/report"
)

// Thresholds is the error of a run in which a result that must be zero (report metric AnyFail) is not, or an assert
// does not hold.
func Thresholds(doc *report.Document) error {
	var failed []string
	for _, p := range doc.Panels {
		for _, m := range p.Metrics {
			if strings.HasPrefix(m.Name, "AnyFail") && m.Value != 0 {
				failed = append(failed, cmp.Or(p.Title, p.Name))
				break
			}
		}
	}
	var errs []error
	if len(failed) > 0 {
		errs = append(errs, exit.Errorf(exit.Threshold, "the scenario's author demands that they stay at zero",
			"threshold: not zero: %s", strings.Join(failed, ", ")))
	}
	for _, f := range doc.Findings {
		if assert.Failed(f) {
			errs = append(errs, exit.Errorf(exit.Threshold, "", "threshold: %s", strings.TrimSuffix(f.Sentence, ".")))
		}
	}
	return errors.Join(errs...)
}
