package trust

import (
	"fmt"
	"math"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/testkit/lawtest"
)

// serialClaims are intervals of means under dependence, and periods seen where there are none and found where there is
// one.
func serialClaims() []Claim {
	const spread = 0.03
	var out []Claim
	add := func(family, name string, low, high float64, sets int, draw drawn, points int,
		holds func([]float64) (counted, hit bool, err error)) {
		out = append(
			out,
			Claim{
				Family: family,
				Name:   name,
				Low:    low,
				High:   high,
				Sets:   sets,
				Measure: func(seed uint64, n int) (c Count, err error) {
					for set := range uint64(n) {
						counted, hit, err := holds(draw(seed+set*7919, points))
						if err != nil {
							return c, err
						}
						if counted {
							c.Of++
						}
						if hit {
							c.Hits++
						}
					}
					return c, nil
				},
			},
		)
	}
	covers := func(x []float64) (bool, bool, error) {
		m, err := serial.MeanOf(x, 0.95)
		return m.Interval.Valid(), m.Interval.Contains(lawtest.Level), err
	}
	for _, law := range []struct {
		phi float64
		n   int
	}{{0, 60}, {0, 1000}, {0.5, 120}, {0.7, 120}, {0.7, 300}, {0.8, 300}, {0.9, 600}, {0.9, 3000}} {
		add("mean", fmt.Sprintf("φ %v, %d points: the interval of 95 %% holds it", law.phi, law.n), 0.93, 0.97, 1500,
			shaped(lawtest.Flat, spread, lawtest.AR(law.phi)), law.n, covers)
	}
	for _, law := range []struct {
		name  string
		level float64
		draw  drawn
	}{{"counts of 3", 3, counts(3, 3)}, {"counts of 0.3", 0.3, counts(0.3, 0.3)}, {"two levels at random",
		lawtest.Level, twoLevels}} {
		add("mean", law.name+", 120 points: the interval of 95 % holds it", 0.93, 0.97, 600, law.draw, 120,
			func(x []float64) (bool, bool, error) {
				m, err := serial.MeanOf(x, 0.95)
				return m.Interval.Valid(), m.Interval.Contains(law.level), err
			})
	}
	period := func(x []float64) (bool, bool, error) {
		p, err := serial.PeriodOf(x, 0.01)
		return true, p.Found, err
	}
	for _, law := range []struct {
		phi float64
		n   int
	}{{0, 400}, {0.5, 400}, {0.9, 400}, {0.7, 60}, {0.5, 3000}} {
		add("period", fmt.Sprintf("none in φ %v, %d points: one found", law.phi, law.n), 0, 0.01, 1000,
			shaped(lawtest.Flat, spread, lawtest.AR(law.phi)), law.n, period)
	}
	for _, n := range []int{60, 300, 1500} {
		add(
			"period",
			fmt.Sprintf("random levels, %d points: one found", n),
			0,
			0.05,
			1000,
			func(seed uint64, n int) []float64 {
				r := resample.Source(seed, 41)
				return lawtest.Series(r, n, lawtest.Levels(r, n, n/12, 0.1), spread, lawtest.White)
			},
			n,
			period,
		)
		add(
			"period",
			fmt.Sprintf("12 swings of 5 %%, φ 0.5, %d points: found", n),
			0.85,
			1,
			400,
			shaped(lawtest.Wave(12, 0.05, 0.05), spread, lawtest.AR(0.5)),
			n,
			func(x []float64) (bool, bool, error) {
				p, err := serial.PeriodOf(x, 0.01)
				return true, p.Found && math.Abs(p.Points*12/float64(n)-1) < 0.15, err
			},
		)
	}
	return out
}
