package effect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/hist"
	"plimsoll/internal/testkit/needs"
)

func ExampleHistograms() {
	baseline, candidate := &hist.Histogram{}, &hist.Histogram{}
	for i := range uint64(100_000) {
		baseline.Add(400_000+i*10, 1) // nanoseconds
		candidate.Add(600_000+i*10, 1)
	}
	out, err := Histograms([]*hist.Histogram{baseline}, []*hist.Histogram{candidate}, []float64{0.5, 0.99},
		Options{Threshold: 0.05})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range out {
		fmt.Printf("p%g %.2f times, %s\n", 100*q.Quantile, q.Ratio.Value, q.Verdict)
	}
	fmt.Println(out[0].Warnings[0])
	// Output:
	// p50 1.23 times, worse
	// p99 1.15 times, worse
	// the interval holds the spread within runs only, as if I/Os were independent: make 3 or more repeats of each side
}

func latencies(r *rand.Rand, n int, scale float64) *hist.Histogram {
	h := &hist.Histogram{}
	for range n {
		h.Add(uint64(scale*math.Exp(0.5*r.NormFloat64())), 1)
	}
	return h
}

// wide latencies spread so far that the width of a bucket does not add to their intervals.
func wide(r *rand.Rand, n int, scale float64) *hist.Histogram {
	h := &hist.Histogram{}
	for range n {
		h.Add(uint64(scale*math.Exp(2*r.NormFloat64())), 1)
	}
	return h
}

// Two hundred values lie beyond the p90 here. With only some 25 beyond it the joined interval covers 98 %.
func TestHistogramCoverageWithinRuns(t *testing.T) {
	t.Parallel()
	const sets = 1500
	r := rand.New(rand.NewPCG(21, 21))
	hits := map[string]int{}
	for range sets {
		b, c := wide(r, 2000, 4e5), wide(r, 2000, 5e5)
		out, err := Histograms([]*hist.Histogram{b}, []*hist.Histogram{c}, []float64{0.5, 0.9}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range []float64{0, 1.2815515655} {
			for name, ok := range map[string]bool{
				"baseline":   out[i].Baseline.Interval.Contains(4e5 * math.Exp(2*z)),
				"difference": out[i].Difference.Interval.Contains(1e5 * math.Exp(2*z)),
				"ratio":      out[i].Ratio.Interval.Contains(1.25),
			} {
				if ok {
					hits[fmt.Sprintf("%s of p%g", name, 100*out[i].Quantile)]++
				}
			}
		}
	}
	for name, n := range hits {
		share := float64(n) / sets
		t.Logf("%s: %.3f", name, share)
		if share < 0.93 || share > 0.97 {
			t.Errorf("%s covers %.3f", name, share)
		}
	}
}

// Runs differ by 15 %, more than their I/Os can explain; only the jackknife over runs knows.
func TestHistogramCoverageBetweenRuns(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const sets = 1000
	r := rand.New(rand.NewPCG(22, 22))
	side := func(scale float64) []*hist.Histogram {
		var out []*hist.Histogram
		for range 6 {
			out = append(out, latencies(r, 1000, scale*math.Exp(0.15*r.NormFloat64())))
		}
		return out
	}
	var ratio, difference, within int
	for range sets {
		b, c := side(4e5), side(5e5)
		out, err := Histograms(b, c, []float64{0.5}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Ratio.Interval.Contains(1.25) {
			ratio++
		}
		if out[0].Difference.Interval.Contains(1e5) {
			difference++
		}
		mb, _ := merge("", b)
		mc, _ := merge("", c)
		naive, err := Histograms([]*hist.Histogram{mb}, []*hist.Histogram{mc}, []float64{0.5}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if naive[0].Ratio.Interval.Contains(1.25) {
			within++
		}
	}
	t.Logf("ratio %.3f, difference %.3f; as if independent %.3f", float64(ratio)/sets, float64(difference)/sets,
		float64(within)/sets)
	for _, n := range []int{ratio, difference} {
		if share := float64(n) / sets; share < 0.93 || share > 0.975 {
			t.Errorf("covers %.3f", share)
		}
	}
	if float64(within)/sets > 0.6 {
		t.Errorf("the naive interval covers %.3f: this test no longer shows why runs matter", float64(within)/sets)
	}
}

func TestHistogramThinTailIsUnbounded(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	out, err := Histograms([]*hist.Histogram{latencies(r, 500, 4e5)}, []*hist.Histogram{latencies(r, 500, 8e5)},
		[]float64{0.999}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(out[0].Ratio.Interval.High, 1) ||
		!strings.Contains(strings.Join(out[0].Warnings, "\n"), "too few values beyond p99.9") {
		t.Errorf("%+v", out[0])
	}
}

func TestHistogramRefusals(t *testing.T) {
	_, err := Histograms(nil, []*hist.Histogram{{}}, []float64{1}, Options{})
	want := "effect: baseline: no histograms\neffect: candidate: histogram 1 is empty: leave it out\neffect: quantile 1: must lie between 0 and 1, as 0.99"
	if fmt.Sprint(err) != want {
		t.Errorf("got:\n%v", err)
	}
	zero := &hist.Histogram{}
	zero.Add(0, 10)
	out, err := Histograms([]*hist.Histogram{zero}, []*hist.Histogram{zero}, []float64{0.5}, Options{})
	if err != nil || out[0].Ratio.Interval.Valid() || out[0].Verdict != Inconclusive {
		t.Errorf("%+v, %v", out, err)
	}
}

func BenchmarkHistograms(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, runs := range []int{1, 10, 100} {
		var x, y []*hist.Histogram
		for range runs {
			x, y = append(x, latencies(r, 10000, 4e5)), append(y, latencies(r, 10000, 5e5))
		}
		b.Run(fmt.Sprint(runs), func(b *testing.B) {
			for b.Loop() {
				if _, err := Histograms(x, y, []float64{0.5, 0.99, 0.999}, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
