package view

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/hist"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestPoissonKnown compares with the exact (Garwood) limits, from tables.
func TestPoissonKnown(t *testing.T) {
	for _, c := range []struct {
		n         uint64
		low, high float64
	}{{0, 0, 3.689}, {5, 1.623, 11.668}, {10, 4.795, 18.390}, {100, 81.364, 121.627}} {
		low, high := Poisson(c.n)
		if math.Abs(low-c.low) > 0.01*max(c.low, 1) || math.Abs(high-c.high) > 0.01*c.high {
			t.Errorf("poisson(%d) = [%.3f, %.3f], want [%.3f, %.3f]", c.n, low, high, c.low, c.high)
		}
	}
}

// TestProportionKnown: Wilson's limits for 1 in 10 (Newcombe 1998 gives methods; value by hand).
func TestProportionKnown(t *testing.T) {
	low, high := Proportion(1, 10)
	if math.Abs(low-0.0179) > 1e-4 || math.Abs(high-0.4042) > 1e-4 {
		t.Errorf("proportion(1, 10) = [%.4f, %.4f]", low, high)
	}
	if low, high := Proportion(0, 1000); low != 0 || math.Abs(high-0.00383) > 1e-4 {
		t.Errorf("proportion(0, 1000) = [%g, %g]", low, high)
	}
}

// TestCoverage checks by simulation that 95 % intervals hold the truth about that often.
func TestCoverage(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 4))
	const rounds = 1000
	var inCount, inQuantile, inFlight int
	law := distuv.LogNormal{Mu: math.Log(1e6), Sigma: 0.5, Src: src}
	truth := law.Quantile(0.99) / 1e9
	meanService := law.Mean() / 1e9
	for range rounds {
		n := uint64(distuv.Poisson{Lambda: 900, Src: src}.Rand())
		if low, high := Poisson(n); low <= 900 && 900 <= high {
			inCount++
		}
		h := &hist.Histogram{}
		for range n {
			h.Add(uint64(law.Rand()), 1)
		}
		if _, low, high, _ := Quantile(h, 0.99); low <= truth && truth <= high {
			inQuantile++
		}
		ops := []result.OpTotals{{Op: "read", Count: n, Seconds: h.Sum() / 1e9, Hist: h}}
		if low, high, _ := Outstanding(ops, 1); low <= 900*meanService && 900*meanService <= high {
			inFlight++
		}
	}
	for name, in := range map[string]int{"count": inCount, "p99": inQuantile, "outstanding": inFlight} {
		if share := float64(in) / rounds; share < 0.92 || share > 0.995 {
			t.Errorf("%s: the interval held the truth in %.1f %% of the rounds", name, share*100)
		}
	}
}

func TestRatioKnown(t *testing.T) {
	r, low, high := Ratio(200, 100, 10, 10)
	if r != 2 || math.Abs(low-1.573) > 2e-3 || math.Abs(high-2.543) > 2e-3 {
		t.Errorf("ratio = %g [%g, %g]", r, low, high)
	}
}

// TestQuantileKnown: the lognormal law's own percentile comes back to within the histogram's error.
func TestQuantileKnown(t *testing.T) {
	want := distuv.LogNormal{Mu: math.Log(2e6), Sigma: 0.3}.Quantile(0.99) / 1e9
	got, _, _, ok := Quantile(reporttest.Lognormal(10_000_000, 2e6, 0.3), 0.99)
	if !ok || math.Abs(got-want)/want > 2*hist.RelativeError {
		t.Errorf("p99 = %g, want %g", got, want)
	}
}
