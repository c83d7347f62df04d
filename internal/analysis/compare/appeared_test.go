package compare_test

import (
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
)

// Failures that appear, repeats without a value, and rates of nothing are never "same".
func TestNeverSame(t *testing.T) {
	t.Parallel()
	none := []float64{0, 0, 0, 0}
	alike := []float64{20, 20.1, 19.9, 20.05}
	for name, c := range map[string]struct {
		better          effect.Direction
		base, candidate []float64
		missing, lost   int // repeats without a value, of the baseline and of the candidate
		want            compare.Verdict
	}{
		"many failures in one":       {effect.LowerIsBetter, none, []float64{0, 700, 0, 0}, 0, 0, compare.Worse},
		"few failures in one":        {effect.LowerIsBetter, none, []float64{0, 0, 0, 2}, 0, 0, compare.Inconclusive},
		"no failures":                {effect.LowerIsBetter, none, none, 0, 0, compare.Same},
		"repeats lost":               {effect.LowerIsBetter, alike, alike, 0, 3, compare.Inconclusive},
		"repeats lost on both sides": {effect.LowerIsBetter, alike, alike, 1, 1, compare.Same},
		"fewer lost than before":     {effect.LowerIsBetter, alike, alike, 2, 0, compare.Same},
		"lost, and worse": {effect.LowerIsBetter, alike, []float64{30, 30.1, 29.9}, 0, 1,
			compare.Worse},
		"lost, and better": {effect.LowerIsBetter, alike, []float64{10, 10.1, 9.9}, 0, 1,
			compare.Inconclusive},
		"nothing done":      {effect.HigherIsBetter, none, none, 0, 0, compare.Inconclusive},
		"beyond all bounds": {effect.HigherIsBetter, alike, []float64{20, 20.1, 1e308, 20}, 0, 0, compare.Inconclusive},
	} {
		side := func(name string, values []float64, missing int) compare.Samples {
			return compare.Samples{Name: name, Columns: []compare.Column{{Name: "x", Better: c.better, Values: values,
				Missing: missing}}}
		}
		d, err := compare.OfSamples([]compare.Samples{side("a", c.base, c.missing), side("b", c.candidate, c.lost)},
			compare.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := d.Measures[0].Verdict; got != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, d.Measures[0].Warnings)
		}
	}
}

// Times of 0 are no improvement; no stalls are one.
func TestTimesOfNothing(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]compare.Verdict{"p99_ms": compare.Inconclusive,
		"mean latency": compare.Inconclusive, "stalled_ms": compare.Better, "retries": compare.Better} {
		side := func(side string, values ...float64) compare.Samples {
			return compare.Samples{Name: side, Columns: []compare.Column{{Name: name, Better: effect.LowerIsBetter,
				Values: values}}}
		}
		d, err := compare.OfSamples([]compare.Samples{side("a", 20, 20.1, 19.9, 20.05), side("b", 0, 0, 0, 0)},
			compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Measures[0].Verdict; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
