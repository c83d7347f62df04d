package compare_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
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
			[]compare.Verdict{compare.Inconclusive, compare.Inconclusive, compare.Inconclusive}},
		"twice as much, once": {[]float64{200}, []float64{5, 5.01, 4.99, 5}, []compare.Verdict{compare.Better,
			compare.Same, compare.Better}},
		"one repeat": {[]float64{150}, []float64{5, 5.01, 4.99, 5}, []compare.Verdict{compare.Better,
			compare.Same, compare.Better}},
		"one repeat, not far": {[]float64{106}, []float64{5, 5.01, 4.99, 5}, []compare.Verdict{compare.Inconclusive,
			compare.Same, compare.Inconclusive}},
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

// From zero a change is judged absolutely, to zero it is all of it, and below zero it is relative to the size.
func TestZeroAndBelow(t *testing.T) {
	t.Parallel()
	minusOne := -1.0
	for name, c := range map[string]struct {
		base, candidate []float64
		verdict         compare.Verdict
		absolute        bool
		change          *float64
	}{
		"errors from none": {[]float64{0, 0, 0, 0}, []float64{5050, 5000, 5100, 5049}, compare.Worse, true,
			nil},
		"errors from none, once":    {[]float64{0}, []float64{5050}, compare.Worse, true, nil},
		"one error instead of none": {[]float64{0}, []float64{1}, compare.Inconclusive, true, nil},
		"to none": {[]float64{40, 44, 39, 41}, []float64{0, 0, 0, 0}, compare.Better, false,
			&minusOne},
		"none on both sides": {[]float64{0, 0, 0}, []float64{0, 0, 0}, compare.Same, false, nil},
		"a loss that grows": {[]float64{-10, -10.1, -9.9, -10}, []float64{-20, -20.1, -19.9, -20},
			compare.Better, false, &minusOne},
		"around zero": {[]float64{-1, 1, -2, 2.1}, []float64{-1, 1.1, -2.2, 2}, compare.Inconclusive,
			true, nil},
		"around zero, and far from it": {[]float64{-1, 1, -2, 2.1}, []float64{90, 91, 89, 92}, compare.Worse, true,
			nil},
	} {
		column := func(values []float64) []compare.Column {
			return []compare.Column{{Name: "errors", Better: effect.LowerIsBetter, Values: values}}
		}
		d, err := compare.OfSamples(
			[]compare.Samples{{Name: "a", Columns: column(c.base)}, {Name: "b", Columns: column(c.candidate)}},
			compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := d.Measures[0]
		sameChange := (m.Change == nil) == (c.change == nil) &&
			(c.change == nil || math.Abs(*m.Change-*c.change) < 0.02)
		if m.Verdict != c.verdict || m.Absolute != c.absolute && m.Interval.Valid() || !sameChange {
			t.Errorf("%s: %s, absolute %v, change %v, %v %v", name, m.Verdict, m.Absolute, m.Change, m.Interval,
				m.Warnings)
		}
	}
}

// Rows that are moments of one run are no repeats, and pairs are compared as such.
func TestMomentsAndPairs(t *testing.T) {
	t.Parallel()
	r := random(21)
	wander := func(n int, level float64) []float64 {
		out, state := make([]float64, n), r.NormFloat64()
		for i := range out {
			out[i] = level * (1 + 0.05*state)
			state = 0.9*state + math.Sqrt(1-0.81)*r.NormFloat64()
		}
		return out
	}
	column := func(values []float64) []compare.Column {
		return []compare.Column{{Name: "iops", Better: effect.HigherIsBetter, Values: values}}
	}
	d, err := compare.OfSamples([]compare.Samples{{Name: "a", Columns: column(wander(600, 100)), StepSeconds: 1},
		{Name: "b", Columns: column(wander(600, 100)), StepSeconds: 1}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := d.Measures[0]; m.Scope != compare.WithinRuns || m.Baseline.Runs != nil ||
		m.Interval.High-m.Interval.Low < 0.02 {
		t.Errorf("%+v", m)
	}
	drift, better := make([]float64, 8), make([]float64, 8)
	for i := range drift {
		drift[i] = 100 + 10*float64(i) + 0.2*r.NormFloat64()
		better[i] = drift[i] * 1.1
	}
	sides := []compare.Samples{{Name: "a", Columns: column(drift)}, {Name: "b", Columns: column(better)}}
	if d, err = compare.OfSamples(sides, compare.Options{Paired: true}); err != nil ||
		d.Measures[0].Verdict != compare.Better {
		t.Errorf("%v %+v", err, d)
	}
	if d, err = compare.OfSamples(sides, compare.Options{}); err != nil ||
		d.Measures[0].Verdict != compare.Inconclusive ||
		len(d.Measures[0].Warnings) == 0 {
		t.Errorf("%v %+v", err, d.Measures[0])
	}
	sides[1].Columns[0].Values = better[1:]
	if _, err = compare.OfSamples(sides, compare.Options{Paired: true}); err == nil {
		t.Error("pairs of eight and seven are compared")
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
