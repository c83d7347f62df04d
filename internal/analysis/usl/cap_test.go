package usl

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestCapIsNoCrosstalk: min(aN, C) with noise has neither crosstalk nor a peak, and is predicted to stay at its cap; a
// law that bends over keeps its peak.
func TestCapIsNoCrosstalk(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 3))
	at := []float64{1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 64}
	sweep := func(of func(n float64) float64) (out []Point) {
		for _, n := range at {
			out = append(out, Point{Concurrency: n, Throughput: of(n) * (1 + 0.02*r.NormFloat64())})
		}
		return out
	}
	for range 20 {
		m, err := Fit(sweep(func(n float64) float64 { return min(900*n, 10000) }), Options{Resamples: -1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Predict(128)
		if err != nil || m.Peak.Exists || m.CrosstalkP() < 0.05 || !m.Cap.Closer || m.Simpler != Capped ||
			math.Abs(m.Cap.Limit()/10000-1) > 0.05 || !p.Mean.Contains(p.Throughput) || p.Throughput < 9500 ||
			m.BetaParameter.Interval().Valid() || !strings.Contains(strings.Join(m.Warnings, " "), "up to a cap of") {
			t.Errorf("%+v, peak %v, %v, %v, %q", m.Cap, m.Peak, p, err, m.Warnings)
		}
	}
	for range 20 {
		bends := Coefficients{Gamma: 1000, Alpha: 0.03, Beta: 0.002}
		m, err := Fit(sweep(bends.At), Options{Resamples: -1})
		if err != nil || !m.Peak.InRange || m.CrosstalkP() > 0.05 || m.Cap.Allowed {
			t.Errorf("%+v, peak %v, %v", m.Cap, m.Peak, err)
		}
	}
}

// TestNoCapBeyondThePoints: a straight line is told as one, without a cap that no point has reached.
func TestNoCapBeyondThePoints(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		var points []Point
		for _, n := range []float64{1, 2, 3, 4, 6, 8, 10, 12} {
			points = append(points, Point{Concurrency: n, Throughput: 1000 * n * (1 + 0.02*r.NormFloat64())})
		}
		m, err := Fit(points, Options{Resamples: -1})
		if err != nil {
			t.Fatal(err)
		}
		if words := m.Cap.Words(); words != "" && m.Cap.Concurrency > 10 {
			t.Errorf("seed %d: %s", seed, words)
		}
	}
}

// TestFewPointsNameNoLaw: through four points goes a law, a cap and a knee of any other shape; that throughput fell is
// told all the same.
func TestFewPointsNameNoLaw(t *testing.T) {
	t.Parallel()
	for name, points := range map[string][]Point{
		"γK(1−e^(−N/K))": {{1, 970, 0}, {8, 6296, 0}, {32, 13835, 0}, {128, 15995, 0}},
		"a cap":          {{1, 1000, 0}, {4, 4000, 0}, {16, 12000, 0}, {64, 12000, 0}},
	} {
		m := fit(t, points, Options{})
		if m.Simpler != "" || m.Cap.Closer || m.Peak.Exists || m.CrosstalkP() < level {
			t.Errorf("%s: %q, cap %+v, peak %s, crosstalk p %.2g", name, m.Simpler, m.Cap, m.Peak, m.CrosstalkP())
		}
		if !slices.ContainsFunc(m.Warnings, func(s string) bool { return strings.Contains(s, "are too few to tell") }) {
			t.Errorf("%s: %q", name, m.Warnings)
		}
	}
	if m := fit(t, []Point{{1, 1000, 0}, {8, 6430, 0}, {32, 13210, 0}, {128, 9880, 0}}, Options{}); !m.Peak.InRange {
		t.Errorf("a fall by a quarter: %s, %q", m.Peak, m.Warnings)
	}
}

// TestSoftLimitIsNoPeak: a limit of another shape than the caps that are fitted, with noise of 1 %, is no crosstalk and
// has no peak; a law that falls by a quarter has both at the same points.
func TestSoftLimitIsNoPeak(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(n float64) float64{
		"tanh": func(n float64) float64 { return 12000 * math.Tanh(n/12) },
		"exp":  func(n float64) float64 { return -16000 * math.Expm1(-n/16) },
		"erf":  func(n float64) float64 { return 16000 * math.Erf(n/58) },
		"law":  Coefficients{Gamma: 1000, Alpha: 0.03, Beta: 0.0005}.At,
	} {
		r, peaks := rand.New(rand.NewPCG(81, 30)), 0
		for range 40 {
			var points []Point
			for n := 1.0; n <= 128; n *= 2 {
				points = append(points, Point{Concurrency: n, Throughput: of(n) * (1 + 0.01*r.NormFloat64())})
			}
			m := fit(t, points, Options{Resamples: -1})
			if m.Peak.InRange || m.CrosstalkP() < level || m.Simpler == Universal {
				peaks++
			}
		}
		if name == "law" && peaks < 40 || name != "law" && peaks > 2 {
			t.Errorf("%s: crosstalk or a peak in %d of 40", name, peaks)
		}
	}
}

// TestNeverFalling: points that fall are pooled, of one concurrency as one.
func TestNeverFalling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		points []Point
		want   float64
	}{
		{[]Point{{1, 10, 1}, {2, 20, 1}, {4, 30, 1}}, 0},
		{[]Point{{4, 26, 1}, {1, 10, 1}, {2, 30, 1}}, 8},
		{[]Point{{1, 10, 1}, {2, 30, 1}, {2, 26, 1}, {4, 40, 1}}, 8},
		{[]Point{{1, 30, 1}, {2, 20, 3}, {4, 10, 1}}, 200},
	} {
		if got := neverFalling(c.points); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.points, got, c.want)
		}
	}
}

// TestFalling: last points that fall in a line are told from ones that scatter.
func TestFalling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		points []Point
		falls  bool
	}{
		{[]Point{{1, 10, 1}, {2, 20, 1}, {4, 30, 1}, {8, 29, 1}}, false},
		{[]Point{{1, 10, 1}, {16, 90, 1}, {2, 20, 1}, {8, 95.1, 1}, {4, 97.5, 1}, {24, 85.1, 1}}, true},
		{[]Point{{1, 10, 1}, {16, 98, 1}, {2, 20, 1}, {8, 95, 1}, {4, 98, 1}, {24, 96, 1}}, false},
	} {
		if got := falling(c.points); (got < climbs) != c.falls {
			t.Errorf("%v: %v", c.points, got)
		}
	}
}
