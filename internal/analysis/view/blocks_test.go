package view

import (
	"math"
	"math/rand/v2"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
)

// TestBlockRatioCoverage: the interval holds the true ratio about as often as it says, under dependence.
func TestBlockRatioCoverage(t *testing.T) {
	needs.Time(t)
	const rounds = 400
	r := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		n   int
		phi float64
	}{{120, 0}, {120, 0.5}, {600, 0.8}} {
		in, none := 0, 0
		for range rounds {
			a, b := reporttest.Dependent(r, c.n, 4000, 0.1, c.phi), reporttest.Dependent(r, c.n, 3600, 0.1, c.phi)
			_, i := BlockRatio(FlowOf(a, nil), FlowOf(b, nil))
			switch {
			case !i.Valid():
				none++
			case i.Contains(0.9):
				in++
			}
		}
		share := float64(in) / float64(rounds-none)
		t.Logf("n %d, phi %.1f: covered %.3f, none %d", c.n, c.phi, share, none)
		if share < 0.93 || share > 0.975 || none > rounds/20 {
			t.Errorf("n %d, phi %.1f: covered %.3f of the time, no interval %d times of %d", c.n, c.phi, share, none,
				rounds)
		}
	}
}

// TestBlockRatioWeighted: a mean latency is weighted by its operations, never averaged over intervals.
func TestBlockRatioWeighted(t *testing.T) {
	a := Flow{
		Amount: []float64{1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9},
		per:    []float64{10, 30, 10, 30, 10, 30, 10, 30, 10, 30, 10, 30},
	}
	if got := a.Level(); got != 0.25 {
		t.Errorf("level %g, want 60/240", got)
	}
	if _, in := BlockRatio(Flow{}, a); in.Valid() {
		t.Error("an interval out of nothing")
	}
	if _, in := BlockRatio(Flow{[]float64{1, 2}, []float64{1, 1}}, a); in.Valid() {
		t.Error("an interval out of two points")
	}
}

// TestCounts: counts that come by chance pass 99 of 100 times, those that wander by three times that never.
func TestCounts(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	r := rand.New(rand.NewPCG(13, 14))
	for _, c := range []struct {
		n             int
		mean, seconds float64
		spread        float64 // against that of chance
		most, fewest  float64 // share that passes
	}{{30, 400, 1, 1, 0.995, 0.98}, {120, 4000, 1, 1, 0.995, 0.98}, {30, 40, 10, 1, 0.995, 0.98},
		{30, 400, 1, 0.3, 1, 1}, {30, 400, 1, 3, 0, 0}} {
		passed := 0
		for range rounds {
			x := make([]float64, c.n)
			for i := range x { // of so many events as good as normal
				x[i] = c.mean + r.NormFloat64()*c.spread*math.Sqrt(c.mean/c.seconds)
			}
			if Counts(x, c.seconds) {
				passed++
			}
		}
		if share := float64(passed) / rounds; share > c.most || share < c.fewest {
			t.Errorf("%d points of %v s at %v/s, %v times the spread of chance: %v pass, want %v to %v", c.n, c.seconds,
				c.mean, c.spread, share, c.fewest, c.most)
		}
	}
	if !Counts([]float64{5}, 1) || !Counts(nil, 1) || !Counts([]float64{0, 0}, 1) {
		t.Error("what says nothing wanders")
	}
}
