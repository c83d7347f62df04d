package usl

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFallIsNoPeak: a throughput that falls at once, and stays there, is told as that; it has no peak of the law's, no
// contention and no crosstalk, and no cap. A law that bends and a line up to a cap do not fall.
func TestFallIsNoPeak(t *testing.T) {
	t.Parallel()
	falls := func(n float64) float64 {
		if n <= 40 {
			return 1000 * n
		}
		return 25000
	}
	tried := map[string]struct {
		at    []float64
		law   func(n float64) float64
		noise float64
		least int // of 20 that are told to fall
		most  int
	}{
		"falls":             {[]float64{1, 2, 4, 8, 16, 24, 32, 40, 48, 64}, falls, 0.02, 19, 20},
		"falls, in doubles": {[]float64{1, 2, 4, 8, 16, 32, 64, 128}, falls, 0.01, 19, 20},
		"one point behind":  {[]float64{1, 2, 4, 8, 16, 24, 32, 40, 48}, falls, 0.02, 0, 0},
		"bends":             {[]float64{1, 2, 4, 8, 16, 32, 64, 128}, Coefficients{1000, 0.02, 0.0004}.At, 0.05, 0, 0},
		"bends sharply":     {[]float64{1, 2, 4, 8, 16, 32, 64}, Coefficients{1000, 0.2, 0.1}.At, 0.05, 0, 0},
		"a cap": {[]float64{1, 2, 4, 8, 16, 24, 32}, func(n float64) float64 { return min(1000*n, 9000) }, 0.05, 0,
			0},
	}
	for name, c := range tried {
		told := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			var points []Point
			for _, n := range c.at {
				points = append(points, Point{Concurrency: n, Throughput: c.law(n) * (1 + c.noise*r.NormFloat64())})
			}
			m, err := Fit(points, Options{Resamples: -1})
			if err != nil {
				t.Fatal(err)
			}
			if !m.Fall.Closer {
				continue
			}
			told++
			low, errLow := m.Predict(16)
			high, errHigh := m.Predict(100)
			f := m.Fall
			if m.Peak.Exists || m.Peak.String() != "no peak is told: throughput falls at once, which the law does not know" ||
				m.Cap.Words() != "" || m.Simpler != "" || m.CrosstalkP() < 1 || m.BetaParameter.Interval().Valid() ||
				m.AlphaParameter.Interval().Valid() || !strings.Contains(strings.Join(m.Warnings, "\n"), f.Words()) ||
				f.First <= f.Last || f.Last > 40 || f.First < 40 || math.Abs(f.Level/25000-1) > 0.05 ||
				errLow != nil || math.Abs(low.Throughput/16000-1) > 0.1 || !low.Mean.Contains(16000) ||
				errHigh != nil || high.Throughput != f.Level {
				t.Errorf("%s, %d: %+v, %v, %v, %v, %q", name, seed, f, m.Peak, low, high, m.Warnings)
			}
		}
		if told < c.least || told > c.most {
			t.Errorf("%s: told to fall in %d of 20, want %d to %d", name, told, c.least, c.most)
		}
	}
}
