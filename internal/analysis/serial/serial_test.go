package serial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"plimsoll/internal/testkit/lawtest"
	"plimsoll/internal/testkit/needs"
)

func Example() {
	series := make([]float64, 600) // ten minutes of seconds with a flush every 45 s
	for i := range series {
		series[i] = 1000 + float64(i*7919%13)
		if i%45 < 10 {
			series[i] += 9000
		}
	}
	p, err := PeriodOf(series, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("every %.0f points (%.0f to %.0f)\n", p.Points, p.Interval.Low, p.Interval.High)
	// Output: every 45 points (44 to 46)
}

func ar1(r *rand.Rand, n int, phi, mean, sd float64) []float64 {
	x := make([]float64, n)
	state := r.NormFloat64()
	for i := range x {
		x[i] = mean + sd*state
		state = phi*state + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return x
}

func TestAutocorrelationBySum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-100, 100), 2, 40).Draw(t, "x")
		got := Autocorrelation(x, 10)
		var mean, total float64
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			total += (v - mean) * (v - mean)
		}
		if total < 1e-6 {
			return
		}
		for lag := range got {
			var sum float64
			for i := range len(x) - lag {
				sum += (x[i] - mean) * (x[i+lag] - mean)
			}
			if math.Abs(got[lag]-sum/total) > 1e-6 {
				t.Fatalf("lag %d: %v, by sum %v", lag, got[lag], sum/total)
			}
		}
	})
}

// Truth of a first-order process: τ = (1+φ)/(1−φ).
func TestTimeAndAR1(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, phi := range []float64{0, 0.5, 0.8, 0.9} {
		x := ar1(r, 50000, phi, 10, 2)
		if got, want := Time(x), (1+phi)/(1-phi); math.Abs(got-want) > 0.1*want {
			t.Errorf("phi %v: time %.2f, truth %.2f", phi, got, want)
		}
		for i := range x { // shifts and outliers must not change it
			x[i] += float64(i/10000) * 8
			if i%500 == 0 {
				x[i] += 1000
			}
		}
		if got := AR1(x); math.Abs(got-phi) > 0.05 {
			t.Errorf("phi %v: estimated %.3f", phi, got)
		}
	}
}

func TestMeanCoverage(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const sets = 1000
	for _, test := range []struct {
		phi float64
		n   int
	}{{0, 40}, {0, 1000}, {0.5, 1000}, {0.8, 3000}, {0.9, 6000}, {0.7, 120}, {0.7, 300}} {
		r := rand.New(rand.NewPCG(2, uint64(test.n)))
		covered, given, naive := 0, 0, 0
		for range sets {
			x := ar1(r, test.n, test.phi, 100, 10)
			m, err := MeanOf(x, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if m.Interval.Valid() {
				given++
			}
			if m.Interval.Contains(100) {
				covered++
			}
			if math.Abs(m.Value-100) < 1.96*10/math.Sqrt(float64(test.n)) {
				naive++
			}
		}
		share := float64(covered) / float64(given)
		t.Logf("phi %.1f, n %d: %.3f of %d (as if independent: %.3f)", test.phi, test.n, share, given,
			float64(naive)/sets)
		if share < 0.93 || share > 0.97 || given < sets*8/10 {
			t.Errorf("phi %v, n %d: covers %.3f, given %d of %d", test.phi, test.n, share, given, sets)
		}
	}
}

func TestMeanSaysWhyNot(t *testing.T) {
	x := ar1(rand.New(rand.NewPCG(3, 3)), 60, 0.95, 0, 1)
	m, err := MeanOf(x, 0.95)
	if err != nil || m.Interval.Valid() || !strings.Contains(m.Interval.Reason, "60 points that repeat each other") {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = MeanOf([]float64{1, math.NaN(), math.Inf(1)}, 95)
	want := "mean: value 2 is NaN: remove it or fill the gap first\nmean: value 3 is +Inf: remove it or fill the gap first\nmean: confidence 95: must lie between 0 and 1, as 0.95"
	if fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
}

func TestPeriodFindsTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	shapes := map[string]func(i, period int) float64{
		"sine":       func(i, period int) float64 { return math.Sin(2 * math.Pi * float64(i) / float64(period)) },
		"checkpoint": func(i, period int) float64 { return 3 * b2f(i%period < period/8) },
		"sawtooth":   func(i, period int) float64 { return 2 * float64(i%period) / float64(period) },
	}
	for name, shape := range shapes {
		for _, period := range []int{20, 60, 150} {
			x := ar1(r, 1200, 0.5, 100, 0.5)
			for i := range x {
				x[i] += shape(i, period) + 0.002*float64(i)
			}
			p, err := PeriodOf(x, 0.01)
			if err != nil || !p.Found || math.Abs(p.Points-float64(period)) > 0.07*float64(period) ||
				!p.Interval.Contains(float64(period)) {
				t.Errorf("%s of %d: %+v, %v", name, period, p, err)
			}
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Noise, dependent or not, has a period in no more than the share of series that the level allows.
func TestPeriodFalsePositives(t *testing.T) {
	t.Parallel()
	const sets = 2000
	for _, phi := range []float64{0, 0.5, 0.9} {
		r := rand.New(rand.NewPCG(5, uint64(phi*10)))
		hits := 0
		for range sets {
			if p, err := PeriodOf(ar1(r, 400, phi, 0, 1), 0.01); err != nil {
				t.Fatal(err)
			} else if p.Found {
				hits++
			}
		}
		t.Logf("phi %.1f: %.4f", phi, float64(hits)/sets)
		if float64(hits)/sets > 0.015 {
			t.Errorf("phi %v: a period in %.4f of noise at level 0.01", phi, float64(hits)/sets)
		}
	}
}

func TestPeriodOfNothing(t *testing.T) {
	line := make([]float64, 100)
	for i := range line {
		line[i] = float64(3 * i)
	}
	for name, x := range map[string][]float64{"none": nil, "short": make([]float64, 23), "constant": make([]float64,
		100), "line": line} {
		if p, err := PeriodOf(x, 0.01); err != nil || p.Found || p.Reason == "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := PeriodOf([]float64{math.NaN()}, 0.01); err == nil {
		t.Error("NaN accepted")
	}
}

func BenchmarkPeriodOf(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_003} {
		x := ar1(rand.New(rand.NewPCG(1, 1)), n, 0.5, 0, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := PeriodOf(x, 0.01); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPeriodOfRandomLevels: levels that come and go at random are no repetition, while one of few periods is found
// among noise.
func TestPeriodOfRandomLevels(t *testing.T) {
	t.Parallel()
	const sets = 100
	for _, n := range []int{120, 600, 1500} {
		hits, waves := 0, 0
		for set := range uint64(sets) {
			r := rand.New(rand.NewPCG(set, uint64(n)))
			x := lawtest.Series(r, n, lawtest.Levels(r, n, n/12, 0.1), 0.03, lawtest.White)
			p, err := PeriodOf(x, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			if p.Found {
				hits++
			}
			if p, err = PeriodOf(lawtest.Series(r, n, lawtest.Wave(12, 0.05, 0.05), 0.03, lawtest.AR(0.5)),
				0.01); err != nil {
				t.Fatal(err)
			} else if p.Found && math.Abs(p.Points-float64(n)/12) < float64(n)/60 {
				waves++
			}
		}
		t.Logf("%d points: a period in %d of %d with random levels, found in %d with one", n, hits, sets, waves)
		if hits > sets*6/100 || waves < sets*9/10 {
			t.Errorf("%d points: a period in %d of %d with random levels, found in %d with one", n, hits, sets, waves)
		}
	}
}
