package compare

import (
	"testing"

	"plimsoll/internal/analysis/resample"
)

// TestMostOf: what is named is the largest difference that is sure, a loss before a gain of its size, and the largest
// loss in any case.
func TestMostOf(t *testing.T) {
	t.Parallel()
	measure := func(name string, verdict Verdict, change, low, high float64) Measure {
		return Measure{Workload: "W", Name: name, Verdict: verdict, Change: &change,
			Adjusted: resample.Interval{Low: low, High: high, Confidence: 0.95}}
	}
	for name, c := range map[string]struct {
		all  []Measure
		want string
	}{
		"nothing":         {nil, ""},
		"one says it all": {[]Measure{measure("p99", Worse, 4, 3.5, 4.5)}, ""},
		"a small gain and a large loss": {[]Measure{measure("mean", Better, -0.244, -0.26, -0.22),
			measure("p99", Worse, 4, 3.5, 4.5)}, " Largest change: W: p99 ×5 (worse)."},
		"a large gain and a small loss": {[]Measure{measure("rate", Worse, -0.1, -0.12, -0.08),
			measure("p99", Better, -0.8, -0.81, -0.79)},
			" Largest change: W: p99 −80 % (better); largest loss: W: rate −10 % (worse)."},
		"alike": {[]Measure{measure("rate", Better, 1, 0.9, 1.1), measure("p99", Worse, 0.9, 0.8, 1)},
			" Largest change: W: p99 +90 % (worse)."},
		"the surer one": {[]Measure{measure("rate", Worse, -0.9, -0.99, -0.06), measure("p99", Worse, 1, 0.9, 1.1)},
			" Largest change: W: p99 ×2 (worse)."},
		"nothing decided": {[]Measure{measure("rate", Inconclusive, 9, -1, 20), measure("p99", Same, 0, 0, 0)}, ""},
	} {
		got := mostOf(c.all, func(i int) string { return c.all[i].called() })
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
