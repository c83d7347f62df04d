package analysis

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/analysis/stall"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// oltpSections is a database of three sections, of which the log's writes are multiplied by stall while a checkpoint of
// 3 s comes every 40 s; by whom the checkpoint is made is the last argument's business.
func oltpSections(
	seed uint64,
	stall float64,
	checkpoint func(s *reporttest.Synthetic, flush func(int) bool) []reporttest.Load,
) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 1)
	flush := func(t int) bool { return t%40 >= 30 && t%40 < 33 }
	sections := []reporttest.Load{
		{Name: "data-read", Rate: flatRate(4000), Noise: 0.05},
		{Name: "log-write", Writes: 1, Noise: 0.05, Rate: func(t int) float64 {
			if flush(t) {
				return 300 * stall
			}
			return 300
		}},
	}
	sections = append(sections, checkpoint(s, flush)...)
	s.Sectioned(reporttest.Load{Name: "OLTP", Group: "DB", To: 600, Depth: 32}, sections...)
	return s
}

// flusher is a checkpoint that another workload makes.
func flusher(s *reporttest.Synthetic, flush func(int) bool) []reporttest.Load {
	s.Load(reporttest.Load{Name: "Flush", Group: "DB", To: 600, Writes: 1, Block: 64 << 10, Rate: func(t int) float64 {
		if flush(t) {
			return 2000
		}
		return 20
	}, Seconds: flatRate(2e-3)})
	return nil
}

// bursting is a checkpoint that a section of the same file makes.
func bursting(_ *reporttest.Synthetic, flush func(int) bool) []reporttest.Load {
	return []reporttest.Load{{Name: "data-write", Writes: 1, Noise: 0.05, Rate: func(t int) float64 {
		if flush(t) {
			return 3000
		}
		return 300
	}}}
}

// quiet is no checkpoint at all.
func quiet(*reporttest.Synthetic, func(int) bool) []reporttest.Load { return nil }

// wholeStops is a workload all of whose sections stop together: not one is starved by another.
func wholeStops(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 1)
	stop := func(rate float64) func(int) float64 {
		return func(t int) float64 {
			if t%100 >= 50 && t%100 < 54 {
				return 0
			}
			return rate
		}
	}
	s.Sectioned(
		reporttest.Load{Name: "OLTP", Group: "DB", To: 600, Depth: 32},
		reporttest.Load{Name: "data-write", Writes: 1, Rate: stop(900), Noise: 0.05},
		reporttest.Load{
			Name:   "log-write",
			Writes: 1,
			Rate:   stop(300),
			Noise:  0.05,
		},
		reporttest.Load{Name: "rare", Rate: flatRate(1)},
	)
	return s
}

// TestStarvedFalseAlarms counts what is said of sections in which nothing happened but noise: of counts, and of
// something that depends on its neighbours.
func TestStarvedFalseAlarms(t *testing.T) {
	const seconds = 3600
	rounds := needs.Draws(20, 60)
	alarms := 0
	for i := range rounds {
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		s := reporttest.NewSynthetic(uint64(500+i), seconds, 1)
		section := func(name string, writes, rate float64) reporttest.Load {
			noise := reporttest.Dependent(rng, seconds, 1, 0.1, 0.7)
			return reporttest.Load{
				Name:   name,
				Writes: writes,
				Rate:   func(t int) float64 { return float64(arrivals(rng, rate*noise[t])) },
			}
		}
		s.Sectioned(reporttest.Load{Name: "OLTP", To: seconds}, section("read", 0, 200), section("write", 1, 30),
			section("log", 1, 12), section("rare", 1, 5))
		for _, f := range stall.Stalls.Run(view.New(s.Manifest, s.Data)) {
			if f.Severity != result.Passed {
				alarms++
				t.Logf("round %d: %s", i, f.Sentence)
			}
		}
	}
	if alarms > rounds*5/100 {
		t.Errorf("%d alarms in %d runs in which nothing happened", alarms, rounds)
	}
}

// arrivals draws a Poisson count as the arrivals in so long at rate one.
func arrivals(r *rand.Rand, mean float64) (n int) {
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}

// Sections that run one after another, or end early, are not starved by those that run then.
func TestSectionsInTurn(t *testing.T) {
	s := reporttest.NewSynthetic(31, 600, 1)
	s.Sectioned(
		reporttest.Load{Name: "Turns", To: 600, Depth: 8},
		reporttest.Load{Name: "first", Noise: 0.05, Rate: stepped([]int{200}, 900, 0)},
		reporttest.Load{
			Name:   "second",
			Writes: 1,
			Noise:  0.05,
			Rate:   stepped([]int{200, 350}, 0, 700, 0),
		},
		reporttest.Load{Name: "all along", Noise: 0.05, Rate: flatRate(500)},
	)
	var got []string
	for _, f := range stall.Stalls.Run(view.New(s.Manifest, s.Data)) {
		got = append(got, f.Sentence)
	}
	want := []string{"No stall of the writes of Turns: never below a quarter of the usual rate for 1 s.",
		"No stall of first, second, all along in Turns while its other sections went on."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stall is found at any place and as long as it was, to a tenth of a point at either end and the noise beside it.
func TestStarvedLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Float64Range(100, 400).Draw(t, "from")
		long := rapid.Float64Range(2, 20).Draw(t, "long")
		values := make([]float64, 600)
		for i := range values {
			lost := max(0, min(float64(i+1), from+long)-max(float64(i), from))
			values[i] = 500 * (1 - lost)
		}
		c := &view.Track{Origin: t0, Start: t0.Add(time.Second), Step: 1, Ops: values}
		s := c.Stalls(values)
		if len(s.Runs) != 1 || s.Seconds < long-0.2-1e-9 || s.Seconds > long+0.06 {
			t.Fatalf("%v s from %v: found %v s, runs %+v", long, from, s.Seconds, s.Runs)
		}
	})
}
