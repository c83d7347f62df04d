package compare_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/compare"
)

func TestOfSamples(t *testing.T) {
	t.Parallel()
	columns := func(rate, latency []float64) []compare.Column {
		return []compare.Column{{Name: "rate", Better: effect.HigherIsBetter, Values: rate}, {Name: "latency",
			Better: effect.LowerIsBetter, Values: latency}}
	}
	base := compare.Samples{Name: "a", Columns: columns([]float64{100, 101, 99, 100}, []float64{5, 5.1, 4.9, 5})}
	for name, c := range map[string]struct {
		rate, latency []float64
		want          []compare.Verdict // of the columns, then of all
	}{
		"up": {[]float64{120, 121, 119, 120}, []float64{6, 6.1, 5.9, 6, 6},
			[]compare.Verdict{compare.Better, compare.Worse, compare.Worse}},
		"alike": {[]float64{100, 101, 99, 100}, []float64{5, 5.01, 4.99, 5},
			[]compare.Verdict{compare.Same, compare.Same, compare.Same}},
		"noisy": {[]float64{60, 140, 100, 110}, []float64{2, 9, 5, 4},
			[]compare.Verdict{compare.Undecided, compare.Undecided, compare.Undecided}},
		"one repeat": {[]float64{200}, []float64{5, 5.01, 4.99, 5}, []compare.Verdict{compare.Undecided, compare.Same,
			compare.Undecided}},
	} {
		d, err := compare.OfSamples([]compare.Samples{base, {Name: "b", Columns: columns(c.rate, c.latency)}},
			compare.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, []compare.Verdict{d.Measures[0].Verdict, d.Measures[1].Verdict,
			d.Verdict}); diff != "" {
			t.Errorf("%s: %s\n%s", name, d.Sentence, diff)
		}
	}
}

// TestSamplesAgreeWithEffect: columns are judged by package effect at the widened confidence.
func TestSamplesAgreeWithEffect(t *testing.T) {
	t.Parallel()
	b, c := []float64{10, 11, 9, 10.5, 10}, []float64{12, 12.5, 11, 12, 13}
	d, err := compare.OfSamples([]compare.Samples{{Name: "a",
		Columns: []compare.Column{{Name: "x", Values: b}, {Name: "y", Values: b}}},
		{Name: "b", Columns: []compare.Column{{Name: "y", Values: b}, {Name: "x", Values: c}}}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := effect.Compare(b, c, effect.Options{Confidence: d.Families[0].Confidence})
	if err != nil {
		t.Fatal(err)
	}
	// One of two differs, so each is read at 1 − 0.05/2.
	if got := d.Measures[0].Adjusted; math.Abs(d.Families[0].Confidence-0.975) > 1e-12 ||
		got.Low != want.Ratio.Interval.Low-1 || got.High != want.Ratio.Interval.High-1 {
		t.Errorf("%v at %g, want %v less 1", got, d.Families[0].Confidence, want.Ratio.Interval)
	}
}

func TestSamplesThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	x := compare.Column{Name: "x", Values: []float64{1, 2}}
	for want, sides := range map[string][]compare.Samples{
		"compare: two sides are needed": {{Name: "a", Columns: []compare.Column{x}}},
		"compare: two sides are called \"a\"": {{Name: "a", Columns: []compare.Column{x}},
			{Name: "a", Columns: []compare.Column{x}}},
		"compare: a: two columns are called \"x\"": {{Name: "a", Columns: []compare.Column{x, x}},
			{Name: "b", Columns: []compare.Column{x}}},
		"compare: b: column \"x\" has no values": {{Name: "a", Columns: []compare.Column{x}},
			{Name: "b", Columns: []compare.Column{{Name: "x"}}}},
		"compare: b: no column of numbers called \"x\", which another side has\n" +
			"compare: a: no column of numbers called \"y\", which another side has": {
			{Name: "a", Columns: []compare.Column{x}},
			{Name: "b", Columns: []compare.Column{{Name: "y", Values: x.Values}}}},
	} {
		if _, err := compare.OfSamples(sides, compare.Options{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
