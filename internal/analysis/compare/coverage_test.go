package compare_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/internal/testkit/needs"
)

// pairs is how many pairs are made of each law. The figures of testdata/coverage.md are from 2,500.
var pairs = flag.Int("pairs", 300, "pairs of sides made of each law, for coverage")

// simulated is how many of so many sets are made: a tenth where not all is asked for, and the bounds are wider for it.
func simulated(t *testing.T, all int) int {
	t.Helper()
	needs.Time(t)
	return needs.Draws(all/10, all)
}

// law of a pair of sides: what the seconds of real runs share. The sides have one law, but for their length, reports
// and scale.
type law struct {
	name         string
	base         comparetest.Law
	seconds      int     // of the candidate; 0 is the baseline's
	step         int     // of the candidate's reports; 0 is the baseline's
	rate, slower float64 // of the candidate over the baseline; 0 is 1
}

var singles = []law{
	{name: "steady", base: comparetest.Law{Noise: 0.02, Seconds: 150}},
	{name: "dependent", base: comparetest.Law{Noise: 0.1, Dependence: 0.5, Seconds: 150}},
	{name: "very dependent", base: comparetest.Law{Noise: 0.15, Dependence: 0.8, Seconds: 150}},
	{name: "bursts", base: comparetest.Law{Noise: 0.05, Dependence: 0.5, Bursts: 0.05, Seconds: 360}},
	{name: "checkpoints", base: comparetest.Law{Noise: 0.1, Dependence: 0.5, Checkpoint: 15, Seconds: 240}},
	{name: "two speeds", base: comparetest.Law{Noise: 0.2, Dependence: 0.5, Misses: 0.05, Seconds: 150}},
	{name: "unlike lengths", base: comparetest.Law{Noise: 0.1, Dependence: 0.5, Seconds: 60}, seconds: 240, rate: 0.8,
		slower: 1.5},
	{name: "unlike reports", base: comparetest.Law{Noise: 0.1, Dependence: 0.7, Seconds: 240}, step: 5, rate: 1.25,
		slower: 0.5},
}

func (l law) sides() (base, candidate comparetest.Law) {
	base = l.base
	base.Rate, base.Mean = 100, 0.002
	candidate = base
	candidate.Seconds, candidate.Step = max(l.seconds, base.Seconds), max(l.step, base.Step)
	if l.rate > 0 {
		candidate.Rate, candidate.Mean = base.Rate*l.rate, base.Mean*l.slower
	}
	return base, candidate
}

// tally of the intervals of one measure. One with an open end says that there are too few values, and holds the truth
// more often.
type tally struct{ held, closed, open, none int }

func (c *tally) count(m compare.Measure, truth float64) {
	switch i := m.Interval; {
	case !i.Valid():
		c.none++
	case math.IsInf(i.High, 1) || i.Low <= -1:
		c.open++
	default:
		c.closed++
		if i.Contains(truth) {
			c.held++
		}
	}
}

func (c *tally) add(o tally) {
	c.held, c.closed, c.open, c.none = c.held+o.held, c.closed+o.closed, c.open+o.open, c.none+o.none
}

// tallies by measure; "" is how often something was found at all.
type tallies map[string]*tally

func (a tallies) of(name string) *tally {
	if a[name] == nil {
		a[name] = &tally{}
	}
	return a[name]
}

// tallied compares pairs of sides of a law, with so many runs on each.
func tallied(t *testing.T, l law, first uint64, rounds, runs int, scope string) (all tallies, found int) {
	base, candidate := l.sides()
	all = tallies{}
	for seed := range uint64(rounds) {
		r := random(first<<32 + seed)
		d, err := compare.Of([]compare.Side{side("A", r, 1, runs, base), side("B", r, runs+1, runs, candidate)},
			compare.Options{Threshold: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range slices.Concat(d.Measures, d.Series) {
			if m.Scope != scope {
				t.Fatalf("%s claims something %s from %d runs a side", m.Name, m.Scope, runs)
			}
			truth := candidate.Mean/base.Mean - 1
			if m.Unit == "ops/s" {
				truth = candidate.Rate/base.Rate - 1
			}
			all.of(m.Name).count(m, truth)
		}
		if d.Families[0].Different > 0 {
			found++
		}
	}
	return all, found
}

// check holds the coverage of a 95 % interval to 93 % and at most, give or take what so many sets cannot tell: three
// standard errors, of many sets two.
func (c tally) check(t *testing.T, name string, most float64) {
	t.Helper()
	// Three standard errors of a share that is just at the lower limit.
	share, slack := float64(c.held)/float64(c.closed), 3*math.Sqrt(0.07*0.93/float64(c.closed))
	if c.closed > 1500 {
		slack *= 2.0 / 3
	}
	t.Logf("%-32s %5.1f %% of %d intervals; %d have an open end, %d could not be had", name, 100*share, c.closed,
		c.open, c.none)
	if !(share >= 0.93-slack && share <= most+slack) {
		t.Errorf("%s: the interval holds the truth in %.1f %% of %d, want 93 to %.3g %%", name, 100*share, c.closed,
			100*most)
	}
}

// TestCoverageOfSingleRuns: intervals from within one run a side hold the truth as often as they say, whatever its
// seconds share; and where both sides have one law, at most 5 % of the comparisons claim a difference.
func TestCoverageOfSingleRuns(t *testing.T) {
	t.Parallel()
	rounds := simulated(t, *pairs)
	overall := tallies{}
	found, alike := 0, 0
	for i, l := range singles {
		all, differing := tallied(t, l, uint64(i), rounds, 1, compare.WithinRuns)
		var every tally
		for _, name := range slices.Sorted(maps.Keys(all)) {
			all[name].check(t, l.name+": "+name, 0.97)
			overall.of(name).add(*all[name])
			every.add(*all[name])
		}
		every.check(t, l.name+": all", 0.97)
		if l.rate == 0 {
			found, alike = found+differing, alike+rounds
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overall)) {
		overall[name].check(t, "all laws: "+name, 0.97)
	}
	t.Logf("%.1f %% of %d comparisons of like runs claim a difference", 100*float64(found)/float64(alike), alike)
	if float64(found) > (0.05+3*math.Sqrt(0.05*0.95/float64(alike)))*float64(alike) {
		t.Errorf("%d of %d comparisons of like runs claim a difference; at most 5 %% should", found, alike)
	}
}

// TestFewCheckpoints: runs with two to five checkpoints have intervals that hold the truth and are of use: not much
// wider than what such runs differ by.
func TestFewCheckpoints(t *testing.T) {
	t.Parallel()
	rounds := simulated(t, *pairs/2)
	for k, n := range []float64{2, 2.5, 3, 4, 5} {
		for _, seconds := range []int{150, 600} {
			l := law{base: comparetest.Law{Noise: 0.05, Dependence: 0.5, Checkpoint: float64(seconds) / n,
				Seconds: seconds}}
			base, _ := l.sides()
			half, squares, counts := map[string][]float64{}, map[string]float64{}, tallies{}
			for seed := range uint64(rounds) {
				r := random(uint64(900+10*k)<<32 + uint64(seconds)<<20 + seed)
				d, err := compare.Of([]compare.Side{side("A", r, 1, 1, base), side("B", r, 2, 1, base)},
					compare.Options{Threshold: -1})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range d.Measures {
					if m.Result || m.Change == nil {
						continue
					}
					counts.of(m.Name).count(m, 0)
					squares[m.Name] += math.Log1p(*m.Change) * math.Log1p(*m.Change)
					half[m.Name] = append(half[m.Name], (math.Log1p(m.Interval.High)-math.Log1p(m.Interval.Low))/2)
				}
			}
			for _, name := range []string{"read IOPS", "read mean service time", "read p50 service time",
				"read p99 service time"} {
				what := fmt.Sprintf("%g checkpoints in %d s: %s", n, seconds, name)
				counts.of(name).check(t, what, 1)
				slices.Sort(half[name])
				wider := half[name][rounds/2] / (1.96 * math.Sqrt(squares[name]/float64(rounds)))
				t.Logf("%s: half of the intervals are at most %.2f times as wide as the differences are spread",
					what, wider)
				// give or take three standard errors of a spread
				if wider > 1.5*(1+3/math.Sqrt(2*float64(rounds))) {
					t.Errorf("%s: intervals are %.1f times as wide as the differences are spread", what, wider)
				}
			}
		}
	}
}

// TestShortDependentRunsSaySo: where the ups and downs of a run last so long that it holds few of them, intervals cover
// less than they say, and each says that.
func TestShortDependentRunsSaySo(t *testing.T) {
	t.Parallel()
	l := comparetest.Law{Rate: 100, Mean: 0.002, Noise: 0.15, Dependence: 0.8, Seconds: 45}
	const rounds = 100
	said, none := 0, 0
	for seed := range uint64(rounds) {
		r := random(300<<32 + seed)
		d, err := compare.Of([]compare.Side{side("A", r, 1, 1, l), side("B", r, 2, 1, l)}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := measure(t, d, "read mean service time")
		short := func(s string) bool { return strings.Contains(s, "short for its own dependence") }
		switch {
		case !m.Interval.Valid() && short(m.Interval.Reason):
			none++
		case slices.ContainsFunc(m.Warnings, short):
			said++
		}
	}
	t.Logf("of %d comparisons %d warn and %d give no interval", rounds, said, none)
	if said+none < rounds*3/4 {
		t.Errorf("of %d comparisons of short runs %d warn and %d give no interval", rounds, said, none)
	}
}

// TestCoverageOfRepeats: with several runs a side, intervals hold what runs differ by. Two repeats cover somewhat more:
// their degrees of freedom are hardly known, and Welch's choice errs towards few.
func TestCoverageOfRepeats(t *testing.T) {
	t.Parallel()
	l := law{base: comparetest.Law{Noise: 0.1, Dependence: 0.5, Spread: 0.05, Seconds: 25}}
	for _, runs := range []int{2, 3, 5, 10} {
		rounds := simulated(t, *pairs)
		all, found := tallied(t, l, uint64(100+runs), rounds, runs, compare.BetweenRuns)
		most := 0.97
		if runs == 2 {
			most = 0.985
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			all[name].check(t, fmt.Sprintf("%d a side: %s", runs, name), most)
		}
		if share := float64(found) / float64(rounds); share > 0.05+3*math.Sqrt(0.05*0.95/float64(rounds)) {
			t.Errorf("%d runs a side: %.1f %% of comparisons of like runs claim a difference", runs, 100*share)
		} else {
			t.Logf("%d runs a side: %.1f %% of comparisons of like runs claim a difference", runs, 100*share)
		}
	}
}

// TestCoverageOfExperiments: the intervals of the effects of factors, of the means of cells and of the drift along the
// runs hold the truth as often as they say.
func TestCoverageOfExperiments(t *testing.T) {
	t.Parallel()
	const drift = -0.004
	factors := []compare.Factor{{Name: "size", Levels: []string{"4k", "64k"}},
		{Name: "depth", Levels: []string{"1", "4", "16"}}}
	truth := map[string]float64{"4k": 1, "64k": 0.7, "1": 1, "4": 1.5, "16": 1.8}
	rounds := simulated(t, *pairs/2)
	for _, repeats := range []int{1, 3, 6} {
		effects, latencies, cells, drifts := tally{}, tally{}, tally{}, tally{}
		for seed := range uint64(rounds) {
			r := random(uint64(200+repeats)<<32 + seed)
			d := compare.Design{ID: "made", Title: "Made", Order: "random", Repeats: repeats, Factors: factors}
			order := r.Perm(6 * repeats)
			for n, at := range order {
				repeat, cell := at/6+1, at%6
				levels := []string{factors[0].Levels[cell/3], factors[1].Levels[cell%3]}
				l := comparetest.Law{Rate: 30 * truth[levels[0]] * truth[levels[1]] * (1 +
					drift*(float64(n)-float64(6*repeats-1)/2)), Mean: 0.002 * truth[levels[0]],
					Spread: 0.05, Noise: 0.1, Seconds: 6}
				d.Made = append(d.Made, compare.Made{Run: compare.Run{Manifest: comparetest.Manifest(n + 1),
					Data: comparetest.Data(r, l)}, Levels: levels, Repeat: repeat, Sequence: n + 1})
			}
			x, err := compare.OfExperiment(d, compare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range x.Effects {
				switch {
				case e.Unit == "ops/s":
					effects.count(e.Measure, truth[e.Level]/truth[e.Against]-1)
				case e.Factor == "size":
					latencies.count(e.Measure, truth[e.Level]/truth[e.Against]-1)
				default:
					latencies.count(e.Measure, 0)
				}
			}
			for _, c := range x.Cells {
				for _, v := range c.Values {
					if v.Unit == "ops/s" {
						cells.count(compare.Measure{Interval: v.Interval},
							30*truth[c.Levels[0]]*truth[c.Levels[1]]*math.Exp(0.05*0.05/2+0.1*0.1/2))
					}
				}
			}
			for _, e := range x.Drift {
				drifts.count(compare.Measure{Interval: e.Interval}, drift)
			}
		}
		for name, c := range map[string]tally{"effects on rates": effects, "effects on latencies": latencies,
			"means of cells": cells, "drift": drifts} {
			if repeats > 1 || strings.HasPrefix(name, "effects") {
				c.check(t, fmt.Sprintf("%d repeats: %s", repeats, name), 0.97)
			}
		}
	}
}
