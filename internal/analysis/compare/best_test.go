package compare_test

import (
	"fmt"
	"math"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
)

// sweepOf is an experiment over depths with a rate that grows up to a ceiling, and times that follow from it.
func sweepOf(repeats int, ceiling float64, noise float64, depths ...string) compare.Design {
	r := random(5)
	d := compare.Design{ID: "made", Title: "Made", Order: "as written", Repeats: repeats,
		Factors: []compare.Factor{{Name: "depth", Levels: depths}}}
	for repeat := 1; repeat <= repeats; repeat++ {
		for _, level := range depths {
			var n float64
			_, _ = fmt.Sscan(level, &n)
			rate := min(20*n, ceiling)
			law := comparetest.Law{Rate: rate, Mean: n / rate, Spread: noise, Noise: noise, Seconds: 30}
			d.Planned++
			d.Made = append(
				d.Made,
				compare.Made{
					Run:      compare.Run{Manifest: comparetest.Manifest(d.Planned), Data: comparetest.Data(r, law)},
					Levels:   []string{level},
					Repeat:   repeat,
					Sequence: d.Planned,
				},
			)
		}
	}
	return d
}

// TestSweepFindsTheCeiling: the rate stops to rise where the law says, the knee lies beside it, and a rate without a
// ceiling is said to rise still.
func TestSweepFindsTheCeiling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		design   compare.Design
		flatFrom string // "" when it rises to the last
	}{
		{"a ceiling at 8", sweepOf(6, 160, 0.01, "1", "2", "4", "8", "16", "32"), "8"},
		{"levels out of order", sweepOf(6, 80, 0.01, "16", "1", "4", "2", "8"), "4"},
		{"no ceiling", sweepOf(4, math.Inf(1), 0.01, "1", "2", "4", "8"), ""},
	} {
		x, err := compare.OfExperiment(c.design, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Sweeps) != 1 || len(x.Best) != 1 || len(x.Overlays) != 1 {
			t.Fatalf("%s: %d sweeps, %d best, %d overlays", c.name, len(x.Sweeps), len(x.Best), len(x.Overlays))
		}
		s := x.Sweeps[0]
		from := ""
		if s.FlatFrom >= 0 {
			from = s.Steps[s.FlatFrom].Level
		}
		if from != c.flatFrom {
			t.Errorf("%s: flat from %q, want %q", c.name, from, c.flatFrom)
		}
		if c.flatFrom == "" {
			continue
		}
		if s.Steps[s.Knee].Level != c.flatFrom || s.Slower == nil || s.Slower.Change < 0.5 ||
			!s.Rise.Interval.Contains(0) {
			t.Errorf("%s: knee at %s, slower %+v, rise %+v", c.name, s.Steps[s.Knee].Level, s.Slower, s.Rise)
		}
		if n := len(c.design.Made); len(x.Overlays[0].Lines) != n {
			t.Errorf("%s: %d courses of %d runs", c.name, len(x.Overlays[0].Lines), n)
		}
	}
}

// The highest of several means is not sure to be above those of whose repeats one knows too little.
func TestBestIsUnsure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		design compare.Design
		want   string
	}{
		{sweepOf(6, math.Inf(1), 0.01, "1", "2", "4"), "[]"},
		{sweepOf(1, math.Inf(1), 0.01, "1", "2", "4"), "[depth 1 depth 2]"},
		{sweepOf(2, math.Inf(1), 0.3, "1", "2", "4"), "[depth 1]"},
	} {
		x, err := compare.OfExperiment(c.design, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.Best[0].Unsure); got != c.want || x.Best[0].Cell != "depth 4" {
			t.Errorf("of %d repeats best at %s, unsure of %s, want %s", c.design.Repeats, x.Best[0].Cell, got, c.want)
		}
	}
}

// TestSweepsNeedNumbers: names and too few values have no curve; sizes have; one repeat gives one without intervals.
func TestSweepsNeedNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		design compare.Design
		sweeps int
	}{
		{sweepOf(2, 80, 0.01, "1", "2", "4"), 0},
		{sweepOf(2, 80, 0.01, "1", "2", "4", "8 warehouses"), 0},
		{sweepOf(2, 80, 0.01, "4k", "8k", "16k", "1m"), 1},
		{sweepOf(1, 80, 0.01, "1", "2", "4", "8", "16"), 1},
	} {
		x, err := compare.OfExperiment(c.design, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Sweeps) != c.sweeps {
			t.Errorf("%v: %d sweeps, want %d", c.design.Factors, len(x.Sweeps), c.sweeps)
		}
		if len(c.design.Made) == 5 &&
			(x.Sweeps[0].FlatSure || x.Sweeps[0].Rise == nil || x.Sweeps[0].Rise.Interval.Valid()) {
			t.Errorf("one repeat is no certainty: %+v", x.Sweeps[0])
		}
	}
}
