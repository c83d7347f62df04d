package resample

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func Example() {
	heights := []float64{4.1, 5.2, 3.9, 4.8, 5.5, 4.4, 4.9, 5.1}
	r := Source(DefaultSeed, 0)
	index, means := make([]int, len(heights)), make([]float64, 2000)
	for i := range means {
		Draw(r, len(heights), index)
		for _, at := range index {
			means[i] += heights[at] / float64(len(index))
		}
	}
	level := Expand(0.95, float64(len(heights)-1), len(heights)) // eight numbers: percentiles alone would be too narrow
	i := Percentile(means, level, 0.95, "bootstrap")
	fmt.Printf("%.1f to %.1f\n", i.Low, i.High)
	// Output: 4.3 to 5.2
}

// Efron and Tibshirani (1993), chapter 14: variance (divisor n) of the 26 values of spatial test A is 171.5, its
// acceleration 0.061, its bias correction 0.146, and their 90 % BCa interval from 2,000 resamples is 115.8 to 259.6
// (plain percentile: 100.8 to 233.9).
func TestSpatialDataOfEfronAndTibshirani(t *testing.T) {
	a := []float64{48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41}
	variance := func(at func(int) float64, n int) float64 {
		var sum, squares float64
		for i := range n {
			sum += at(i)
			squares += at(i) * at(i)
		}
		return squares/float64(n) - sum*sum/float64(n*n)
	}
	estimate := variance(func(i int) float64 { return a[i] }, len(a))
	if math.Abs(estimate-171.5) > 0.05 {
		t.Errorf("variance %.2f, published 171.5", estimate)
	}
	var jack []float64
	for out := range a {
		rest := slices.Delete(slices.Clone(a), out, out+1)
		jack = append(jack, variance(func(i int) float64 { return rest[i] }, len(rest)))
	}
	acceleration := Acceleration(jack)
	if math.Abs(acceleration-0.061) > 0.0005 {
		t.Errorf("acceleration %.4f, published 0.061", acceleration)
	}
	r := Source(1, 0)
	index, replicates := make([]int, len(a)), make([]float64, 20000)
	for i := range replicates {
		Draw(r, len(a), index)
		replicates[i] = variance(func(i int) float64 { return a[index[i]] }, len(a))
	}
	// The published ends come from 2,000 resamples, whose own error is some 3 units.
	for _, test := range []struct {
		got       Interval
		low, high float64
	}{
		{BCa(estimate, acceleration, replicates, 0.90, 0.90, "BCa"), 115.8, 259.6},
		{Percentile(replicates, 0.90, 0.90, "percentile"), 100.8, 233.9},
	} {
		if math.Abs(test.got.Low-test.low) > 4 || math.Abs(test.got.High-test.high) > 6 {
			t.Errorf("%v, published %.1f to %.1f", test.got, test.low, test.high)
		}
	}
}

// Type 7 quantiles as R's quantile(c(1, 2, 4, 8), ...) gives them: 1.75, 3, 5.
func TestQuantile(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	got := []float64{Quantile(x, 0), Quantile(x, 0.25), Quantile(x, 0.5), Quantile(x, 0.75), Quantile(x, 1)}
	if d := cmp.Diff([]float64{1, 1.75, 3, 5, 8}, got); d != "" {
		t.Error(d)
	}
	for _, v := range []float64{Quantile(nil, 0.5), Quantile(x, 1.1), Quantile(x, math.NaN())} {
		if !math.IsNaN(v) {
			t.Errorf("got %v, want NaN", v)
		}
	}
	inf := []float64{1, math.Inf(1), math.Inf(1)}
	if v := Quantile(inf, 0.75); !math.IsInf(v, 1) {
		t.Errorf("between infinities: %v", v)
	}
}

// Student's t at 0.975: 2.776 with 4 degrees of freedom, 2.042 with 30 (any table).
func TestStudentTAndExpand(t *testing.T) {
	for dof, want := range map[float64]float64{4: 2.776, 30: 2.042} {
		if got := StudentT(0.95, dof); math.Abs(got-want) > 0.0005 {
			t.Errorf("t(%v) = %.4f, want %v", dof, got, want)
		}
	}
	if e4, e1000 := Expand(0.95, 4, 0), Expand(0.95, 1e6, 1e6); !(e4 > 0.99 && e4 < 1) || math.Abs(e1000-0.95) > 1e-4 {
		t.Errorf("expanded levels %v and %v", e4, e1000)
	}
}

func TestIntervalJSON(t *testing.T) {
	got, err := json.Marshal([]Interval{
		{
			Low:        1,
			High:       2,
			Confidence: 0.95,
			Method:     "m",
		}, {Low: 1, High: math.Inf(1), Confidence: 0.95, Method: "m"}, None("too few"),
	})
	want := `[{"low":1,"high":2,"confidence":0.95,"method":"m"},{"low":1,"high":null,"confidence":0.95,"method":"m"},{"no_interval":"too few"}]`
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Error(err, d)
	}
}

func TestNoIntervalHasReason(t *testing.T) {
	same := slices.Repeat([]float64{3}, 200)
	for name, i := range map[string]Interval{
		"few":       Percentile([]float64{1, 2}, 0.95, 0.95, "m"),
		"undefined": Percentile(append(slices.Clone(same), math.NaN()), 0.95, 0.95, "m"),
		"one side":  BCa(9, 0, same, 0.95, 0.95, "m"),
	} {
		if i.Valid() || i.Reason == "" || i.Contains(3) {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if i := BCa(3, 0, same, 0.95, 0.95, "m"); !i.Contains(3) || i.Low != i.High {
		t.Errorf("constant replicates: %v", i)
	}
}

// Under no effect, a permutation p-value is below any level no more often than the level, stopped early or not.
func TestPermutationIsValid(t *testing.T) {
	r := Source(4, 0)
	const sets = 4000
	hits := 0
	for range sets {
		if Permutation(r.Float64(), 199, 10, r.Float64) <= 0.05 {
			hits++
		}
	}
	if share := float64(hits) / sets; share < 0.038 || share > 0.062 {
		t.Errorf("p <= 0.05 in %.4f of sets without an effect", share)
	}
}

// An interval is ordered, lies within the replicates, and grows with the level; shifting and scaling pass through it.
func TestIntervalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicates := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 100, 300).Draw(t, "replicates")
		level := rapid.Float64Range(0.5, 0.99).Draw(t, "level")
		a := rapid.Float64Range(-0.2, 0.2).Draw(t, "acceleration")
		narrow := Percentile(slices.Clone(replicates), level/2, level, "m")
		wide := Percentile(slices.Clone(replicates), level, level, "m")
		if wide.Low > narrow.Low || wide.High < narrow.High {
			t.Fatalf("%v does not hold %v", wide, narrow)
		}
		bca := BCa(Median(replicates), a, slices.Clone(replicates), level, level, "m")
		if !bca.Valid() || bca.Low > bca.High || bca.Low < slices.Min(replicates) || bca.High > slices.Max(replicates) {
			t.Fatalf("%v", bca)
		}
		moved := slices.Clone(replicates)
		for i := range moved {
			moved[i] = 2*moved[i] + 8
		}
		again := Percentile(moved, level, level, "m")
		if want := wide.Map(func(v float64) float64 { return 2*v + 8 }); math.Abs(again.Low-want.Low) > 1e-6 ||
			math.Abs(again.High-want.High) > 1e-6 {
			t.Fatalf("%v, want %v", again, want)
		}
	})
}
