package effect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"plimsoll/hist"
)

func ExampleWithin() {
	side := func(first uint64) Side {
		h := &hist.Histogram{}
		for i := range uint64(10_000) {
			h.Add(first+i*100, 1) // nanoseconds
		}
		return Side{Merged: h, Dependence: 25, DOF: 6} // as many as 400 independent ones tell
	}
	p, err := Within(side(400_000), side(600_000), 0.5, Options{})
	fmt.Printf("%v %.2f times, %.2f to %.2f: %s\n", err, p.Ratio.Value, p.Ratio.Interval.Low, p.Ratio.Interval.High,
		p.Verdict)
	// Output:
	// <nil> 1.23 times, 1.13 to 1.32: worse
}

// TestWithinCoverage: whether many values lie beyond the quantile or few, and whether each is there once or four times.
func TestWithinCoverage(t *testing.T) {
	t.Parallel()
	sets, slack := simulated(2000)
	r := rand.New(rand.NewPCG(31, 31))
	for _, c := range []struct {
		n     int
		q     float64
		times uint64
	}{{2000, 0.5, 1}, {2000, 0.95, 1}, {2000, 0.99, 1}, {260, 0.9, 1}, {10000, 0.999, 1}, {2000, 0.9, 4}, {4000, 0.99,
		4}} {
		held, closed := 0, 0
		draw := func(scale float64) Side {
			h := &hist.Histogram{}
			for range c.n / int(c.times) {
				h.Add(uint64(scale*math.Exp(0.5*r.NormFloat64())), c.times)
			}
			return Side{Merged: h, Dependence: float64(c.times)}
		}
		for range sets {
			p, err := Within(draw(4e5), draw(5e5), c.q, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if i := p.Ratio.Interval; i.Low > 0 && !math.IsInf(i.High, 1) {
				closed++
				if i.Contains(1.25) {
					held++
				}
			}
		}
		share := float64(held) / float64(closed)
		t.Logf("p%g of %d values, each %d times: covered %.3f of %d", 100*c.q, c.n, c.times, share, closed)
		if share < 0.93-slack || share > 0.97+slack {
			t.Errorf("p%g of %d values, each %d times: covered %.3f of %d", 100*c.q, c.n, c.times, share, closed)
		}
	}
}

// The share at a tail is that of the exact distribution, at mid-p, where that is whole.
func TestShareAtIsTheBinomialQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, q float64 }{{20, 0.3}, {100, 0.5}, {1000, 0.99}, {5000, 0.02}, {4000, 0.5}} {
		count := distuv.Binomial{N: c.n, P: c.q}
		for k := math.Floor(c.n * c.q * 0.6); k < c.n*c.q; k++ {
			tail := count.CDF(k) - count.Prob(k)/2
			if tail < 0.001 || tail > 0.2 {
				continue
			}
			share, ok := shareAt(c.n, c.q, tail)
			if sd := math.Sqrt(c.n * c.q * (1 - c.q)); !ok || math.Abs(share*c.n-k) > 0.02*sd {
				t.Errorf("%g of %g at %.4f: %g, want %g", c.q, c.n, tail, share*c.n, k)
			}
		}
	}
	if _, ok := shareAt(100, 0.01, 0.025); ok {
		t.Error("none of 100 is likelier than 2.5 % when one is expected")
	}
}

func TestWithinIsNeverNarrowerThanItsBuckets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		side := func(label string) Side {
			h := &hist.Histogram{}
			for _, v := range rapid.SliceOfN(rapid.Uint64Range(1, 1<<40), 1, 50).Draw(t, label) {
				h.Add(v, rapid.Uint64Range(1, 1e6).Draw(t, "times"))
			}
			return Side{
				Merged:     h,
				Dependence: rapid.Float64Range(0, 50).Draw(t, "dependence"),
				DOF:        float64(rapid.IntRange(0, 30).Draw(t, "dof")),
			}
		}
		p, err := Within(side("baseline"), side("candidate"), rapid.Float64Range(0.001, 0.999).Draw(t, "q"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range map[string]Estimate{"ratio": p.Ratio, "difference": p.Difference, "baseline": p.Baseline,
			"candidate": p.Candidate} {
			if !e.Interval.Contains(e.Value) {
				t.Fatalf("the %s %v is outside of its interval %v", name, e.Value, e.Interval)
			}
		}
		if i := p.Ratio.Interval; i.High/i.Low < 1+2*hist.RelativeError {
			t.Fatalf("%v is narrower than a bucket", i)
		}
	})
}

func TestWithinRefuses(t *testing.T) {
	t.Parallel()
	one := &hist.Histogram{}
	one.Add(1000, 1)
	for want, c := range map[string]struct {
		b, c Side
		q    float64
	}{
		"baseline: histogram is empty": {Side{}, Side{Merged: one}, 0.5},
		"candidate: histogram is empty": {Side{Merged: one}, Side{Merged: &hist.Histogram{}},
			0.5},
		"candidate: dependence NaN with 0 degrees of freedom": {Side{Merged: one}, Side{Merged: one,
			Dependence: math.NaN()}, 0.5},
		"baseline: dependence 1 with -1 degrees of freedom": {Side{Merged: one, Dependence: 1, DOF: -1},
			Side{Merged: one}, 0.5},
		"quantile 1: must lie between 0 and 1": {Side{Merged: one}, Side{Merged: one}, 1},
	} {
		if _, err := Within(c.b, c.c, c.q, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
