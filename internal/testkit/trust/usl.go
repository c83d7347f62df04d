package trust

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/usl"
)

// curve is a law of throughput.
type curve interface{ At(n float64) float64 }

// sweep of a load whose law is known.
type loadSweep struct {
	law    curve
	at     []float64
	noise  float64    // 0.03 unless it is given
	errors usl.Errors // how they grow; 3 % of the largest throughput, or of each
}

// measured are the points of one sweep.
func (s loadSweep) measured(r *rand.Rand) []usl.Point {
	top := 0.0
	for _, n := range s.at {
		top = max(top, s.law.At(n))
	}
	var out []usl.Point
	noise := cmp.Or(s.noise, 0.03)
	for _, n := range s.at {
		x := s.law.At(n)
		spread := map[usl.Errors]float64{usl.Alike: top, usl.Root: math.Sqrt(x * top), usl.Proportional: x}[s.errors]
		out = append(out, usl.Point{Concurrency: n, Throughput: max(0, x+noise*spread*r.NormFloat64())})
	}
	return out
}

// each fits n sweeps and counts what see says of each: how many things there were to see, and of how many it is true.
func (s loadSweep) each(seed uint64, n int, resamples int, see func(*usl.Model) Count) (c Count, err error) {
	r := rand.New(rand.NewPCG(seed, 71))
	for range n {
		m, err := usl.Fit(s.measured(r), usl.Options{Resamples: resamples, Seed: r.Uint64()})
		if err != nil {
			return c, err
		}
		one := see(m)
		c.Hits, c.Of = c.Hits+one.Hits, c.Of+one.Of
	}
	return c, nil
}

func holds(i resample.Interval, truth float64) Count {
	switch {
	case !i.Valid():
		return Count{}
	case i.Contains(truth):
		return Count{1, 1}
	}
	return Count{0, 1}
}

func yes(b bool) Count {
	if b {
		return Count{1, 1}
	}
	return Count{0, 1}
}

// limit is a throughput that comes to 16000 and never falls, straight at first, with its bend at a concurrency.
type limit struct {
	shape func(x float64) float64
	knee  float64
}

func (l limit) At(n float64) float64 { return 16000 * l.shape(n/l.knee) }

var limits = []struct {
	name  string
	shape func(x float64) float64
}{
	{"min(N, K)", func(x float64) float64 { return min(x, 1) }},
	{"tanh(N/K)", math.Tanh},
	{"1−e^(−N/K)", func(x float64) float64 { return -math.Expm1(-x) }},
	{"erf(N/K)", math.Erf},
	{"Hill's curve, (N/K)²", func(x float64) float64 { return x * x / (1 + x*x) }},
	{"N/√(K²+N²)", func(x float64) float64 { return x / math.Sqrt(1+x*x) }},
	{"√N up to K", func(x float64) float64 { return min(math.Sqrt(x), 1) }},
}

// drawnSweep draws n concurrencies, doubled or in even steps from one, and the noise.
func drawnSweep(r *rand.Rand, n int) loadSweep {
	s := loadSweep{noise: []float64{0.01, 0.03, 0.05}[r.IntN(3)], errors: usl.Proportional}
	step := float64(2 + r.IntN(4))
	even := r.IntN(2) == 0
	for i := range n {
		at := math.Pow(2, float64(i))
		if even {
			at = max(1, step*float64(i))
		}
		s.at = append(s.at, at)
	}
	return s
}

// uslClaims are intervals and bands of the scalability law, its choice between laws, and its outliers.
func uslClaims() (out []Claim) {
	const family, sets = "scalability", 400
	add := func(name string, low, high float64, measure func(uint64, int) (Count, error)) {
		out = append(out, Claim{family, name, low, high, sets, measure})
	}
	bends, amdahl := usl.Coefficients{
		Gamma: 1000,
		Alpha: 0.03,
		Beta:  0.0005,
	}, usl.Coefficients{
		Gamma: 1000,
		Alpha: 0.05,
	}
	points := map[string][]float64{
		"4 points": {1, 8, 32, 128}, "6 points": {1, 4, 16, 32, 64, 128}, "8 points": {1, 2, 4, 8, 16, 32, 64, 128},
		"16 points":           {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192},
		"8 points, 3 repeats": slices.Repeat([]float64{1, 2, 4, 8, 16, 32, 64, 128}, 3),
	}
	for _, of := range []string{"4 points", "6 points", "8 points", "16 points", "8 points, 3 repeats"} {
		for _, e := range []usl.Errors{usl.Alike, usl.Root, usl.Proportional} {
			s := loadSweep{law: bends, at: points[of], errors: e}
			name := fmt.Sprintf("%s, errors %s: ", of, e)
			add(name+"bands of the curve", 0.92, 1, func(seed uint64, n int) (Count, error) {
				return s.each(seed, n, -1, func(m *usl.Model) (c Count) {
					for _, at := range []float64{3, 12, 50, 110, 250} {
						if p, err := m.Predict(at); err == nil {
							one := holds(p.Mean, bends.At(at))
							c.Hits, c.Of = c.Hits+one.Hits, c.Of+one.Of
						}
					}
					return c
				})
			})
			add(name+"intervals of γ, α and β", 0.92, 1, func(seed uint64, n int) (Count, error) {
				return s.each(seed, n, -1, func(m *usl.Model) (c Count) {
					for _, one := range []Count{holds(m.GammaParameter.T, bends.Gamma), holds(m.AlphaParameter.T,
						bends.Alpha),
						holds(m.BetaParameter.T, bends.Beta)} {
						c.Hits, c.Of = c.Hits+one.Hits, c.Of+one.Of
					}
					return c
				})
			})
			if len(points[of]) >= 6 {
				add(name+"place of the peak", 0.93, 0.97, func(seed uint64, n int) (Count, error) {
					return s.each(seed, n, 200, func(m *usl.Model) Count {
						return holds(m.Peak.ConcurrencyInterval, bends.PeakConcurrency())
					})
				})
				add(name+"height of the peak", 0.93, 1, func(seed uint64, n int) (Count, error) {
					return s.each(seed, n, 200, func(m *usl.Model) Count {
						return holds(m.Peak.ThroughputInterval, bends.PeakThroughput())
					})
				})
			}
		}
		s, none := loadSweep{
			law:    bends,
			at:     points[of],
			errors: usl.Proportional,
		}, loadSweep{
			law:    amdahl,
			at:     points[of],
			errors: usl.Alike,
		}
		add(
			of+": a simpler law is called as good as one that bends over",
			0,
			0.01,
			func(seed uint64, n int) (Count, error) {
				return s.each(seed, n, -1,
					func(m *usl.Model) Count { return yes(m.Simpler != usl.Universal && m.Simpler != "") })
			},
		)
		if len(points[of]) >= 6 {
			add(of+", no crosstalk: intervals of γ and α, and what the bootstrap says", 0.92, 1,
				func(seed uint64, n int) (Count, error) {
					return none.each(seed, n, 200, func(m *usl.Model) (c Count) {
						for _, one := range []Count{holds(m.GammaParameter.T, amdahl.Gamma),
							holds(m.GammaParameter.Boot, amdahl.Gamma), holds(m.AlphaParameter.T, amdahl.Alpha),
							holds(m.AlphaParameter.Boot, amdahl.Alpha)} {
							c.Hits, c.Of = c.Hits+one.Hits, c.Of+one.Of
						}
						return c
					})
				})
		}
		corner := loadSweep{law: usl.Cap{Gamma: 1000, Concurrency: 12, Sharpness: math.Inf(1)}, at: points[of],
			errors: usl.Proportional}
		round := corner
		round.law = usl.Cap{Gamma: 1000, Concurrency: 20, Sharpness: 3}
		for _, c := range []struct {
			name string
			s    loadSweep
		}{{"a line up to a cap", corner}, {"a line that bends to a cap", round}} {
			add(of+", "+c.name+": a peak or crosstalk is claimed", 0, 0.05, func(seed uint64, n int) (Count, error) {
				return c.s.each(seed, n, -1, func(m *usl.Model) Count {
					return yes(m.Peak.Exists && m.Peak.InRange || m.CrosstalkP() < 0.05)
				})
			})
		}
		if of == "4 points" {
			for _, soft := range []struct {
				name string
				law  curve
			}{{"γK(1−e^(−N/K))", limit{func(x float64) float64 { return -math.Expm1(-x) }, 16}},
				{"sharpness 2", usl.Cap{Gamma: 1000, Concurrency: 12, Sharpness: 2}},
				{"sharpness 3", round.law}, {"Amdahl's law", amdahl}} {
				s := corner
				s.law = soft.law
				add(of+", a soft knee, "+soft.name+": a law, a cap or a peak is named", 0, 0.02,
					func(seed uint64, n int) (Count, error) {
						return s.each(seed, n, -1, func(m *usl.Model) Count {
							return yes(m.Simpler != "" || m.Cap.Closer || m.Peak.InRange || m.CrosstalkP() < 0.05)
						})
					})
			}
		}
		line := loadSweep{law: usl.Coefficients{Gamma: 1000}, at: points[of], errors: usl.Proportional}
		for _, c := range []struct {
			name string
			s    loadSweep
			most float64
		}{{"a line up to a cap", corner, 0.03}, {"a line", line, 0.1}} {
			add(of+", "+c.name+": a stray point, or growth beyond the law, is told", 0, c.most,
				func(seed uint64, n int) (Count, error) {
					return c.s.each(seed, n, -1, func(m *usl.Model) Count {
						return yes(m.Outlier != nil || strings.Contains(strings.Join(m.Warnings, " "),
							"contention would be negative"))
					})
				})
		}
		if len(points[of]) >= 8 {
			add(of+": a peak that is there is told", 0.9, 1, func(seed uint64, n int) (Count, error) {
				return s.each(seed, n, -1, func(m *usl.Model) Count { return yes(m.Peak.Exists && m.Peak.InRange) })
			})
		}
		add(of+": crosstalk is claimed where there is none", 0, 0.09, func(seed uint64, n int) (Count, error) {
			return none.each(seed, n, -1, func(m *usl.Model) Count { return yes(m.CrosstalkP() < 0.05) })
		})
		if len(points[of]) >= 6 {
			add(of+": a point of a clean sweep is called stray", 0, 0.03, func(seed uint64, n int) (Count, error) {
				return s.each(seed, n, -1, func(m *usl.Model) Count { return yes(m.Outlier != nil) })
			})
		}
	}
	for _, n := range []int{6, 7, 8, 10} {
		for _, c := range limits {
			add(fmt.Sprintf("%d points drawn, noise of 1, 3 or 5 %%, %s: a law, crosstalk or a peak is named", n, c.name), 0,
				0.02, func(seed uint64, sets int) (count Count, err error) {
					r := rand.New(rand.NewPCG(seed, 72))
					for range sets {
						s := drawnSweep(r, n)
						s.law = limit{c.shape, s.at[n-1] * math.Exp(math.Log(0.04)+r.Float64()*math.Log(20))}
						m, err := usl.Fit(s.measured(r), usl.Options{Resamples: -1})
						if err != nil {
							return count, err
						}
						one := yes(m.Simpler == usl.Universal || m.Peak.InRange || m.CrosstalkP() < 0.05)
						count.Hits, count.Of = count.Hits+one.Hits, count.Of+one.Of
					}
					return count, nil
				})
		}
	}
	return out
}
