package trust

import (
	"fmt"
	"math"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
)

// finds counts the series in which a search finds what is asked.
func finds(draw drawn, points int, o change.Options, asked func(change.Result) bool) func(uint64, int) (Count, error) {
	return func(seed uint64, n int) (c Count, err error) {
		for set := range uint64(n) {
			o.Seed = seed + set + 1
			r, err := change.Detect(draw(seed+set*7919, points), o)
			if err != nil {
				return c, err
			}
			c.Of++
			if asked(r) {
				c.Hits++
			}
		}
		return c, nil
	}
}

// at asks for changes at these places, to within some points, and for no others when only.
func at(within int, only bool, places ...int) func(change.Result) bool {
	return func(r change.Result) bool {
		for _, want := range places {
			found := false
			for _, p := range r.Points {
				found = found || max(p.Index-want, want-p.Index) <= within
			}
			if !found {
				return false
			}
		}
		return !only || len(r.Points) == len(places)
	}
}

// times is lognormal noise that is so many times as large from the middle on.
func times(sigma, by float64) drawn {
	return func(seed uint64, n int) []float64 {
		r, out := resample.Source(seed, 71), make([]float64, n)
		for i := range out {
			out[i] = lawtest.Level * math.Exp(sigma*r.NormFloat64())
			if i >= n/2 {
				out[i] *= by
			}
		}
		return out
	}
}

// changeClaims are changes found where there are none, and found where there are some.
func changeClaims() []Claim {
	const spread = 0.01
	anything := func(r change.Result) bool { return len(r.Points) > 0 }
	independent, found := change.Options{Independent: true}, change.Options{}
	var out []Claim
	add := func(name string, low, high float64, sets int, measure func(uint64, int) (Count, error)) {
		out = append(out, Claim{Family: "changes", Name: name, Low: low, High: high, Sets: sets, Measure: measure})
	}
	for _, law := range []struct {
		name  string
		noise lawtest.Noise
	}{{"white", lawtest.White}, {"heavy tails", lawtest.Heavy}, {"skewed", lawtest.Skewed}, {"in coarse steps",
		lawtest.Coarse}, {"with outliers", lawtest.Outliers}} {
		for _, n := range []int{10, 30, 100, 500, 501, 2000, 5000} {
			sets, high := 400, 0.01
			if n > 1000 {
				sets = 60
			}
			if n < 50 && law.name != "white" {
				high = 0.02
			}
			if n%500 > 1 && n != 2000 || law.name == "white" {
				add(fmt.Sprintf("none in %s noise, %d points: some found", law.name, n), 0, high, sets,
					finds(shaped(lawtest.Flat, spread, law.noise), n, independent, anything))
			}
		}
	}
	for _, law := range []struct {
		phi float64
		n   int
	}{{0, 100}, {0.3, 50}, {0.5, 30}, {0.7, 50}, {0.7, 100}, {0.9, 50}, {0.9, 100}, {0.9, 300}, {0.95, 100}, {0.95,
		600}} {
		add(fmt.Sprintf("none in dependence of φ %v, found by itself, %d points: some found", law.phi, law.n), 0, 0.02,
			300, finds(shaped(lawtest.Flat, spread, lawtest.AR(law.phi)), law.n, found, anything))
	}
	for _, law := range odd {
		add("none in "+law.name+", dependence found by itself, 600 points: some found", 0, 0.02, 100,
			finds(law.draw, 600, found, anything))
	}
	add("none in a random walk, 600 points: some found", 0, 0.1, 50,
		finds(shaped(lawtest.Flat, spread, lawtest.Walk), 600, found, anything))
	steps := func(levels ...float64) lawtest.Shape {
		return func(i, n int) float64 { return spread * levels[i*len(levels)/n] }
	}
	for _, n := range []int{200, 500, 501, 519, 1100} {
		fifths := []int{n / 5, 2 * n / 5, 3 * n / 5, 4 * n / 5}
		add(fmt.Sprintf("four steps of 2.5 deviations up and down, %d points: all found, no other", n), 0.9, 1, 40,
			finds(shaped(steps(0, 2.5, 0, 2.5, 0), spread, lawtest.White), n, independent, at(5, true, fifths...)))
		add(fmt.Sprintf("staircase of 2.5 deviations a step, %d points: all found, no other", n), 0.9, 1, 40,
			finds(shaped(steps(0, 2.5, 5, 7.5, 10), spread, lawtest.White), n, independent, at(5, true, fifths...)))
		from := int(0.437 * float64(n))
		add(
			fmt.Sprintf("bump of 10 points, 5 deviations, %d points: found", n),
			0.9,
			1,
			40,
			finds(shaped(lawtest.Hole(0.437, 10, 5*spread), spread, lawtest.White), n, independent,
				at(3, false, from, from+10)),
		)
	}
	for _, sides := range [][2]int{{6, 4}, {4, 4}, {7, 3}, {20, 10}} {
		n := sides[0] + sides[1]
		add(
			fmt.Sprintf("complete separation of 12.9 %% after %d of %d values, noise of 2 %%: found", sides[0], n),
			0.95,
			1,
			300,
			finds(shaped(lawtest.StepAt(float64(sides[0])/float64(n), -0.129), 0.02, lawtest.White), n, independent,
				at(0, true, sides[0])),
		)
	}
	for _, law := range []struct {
		n, last int
		by, low float64
		o       change.Options
	}{{30, 3, 3, 0.6, independent}, {30, 3, 5, 0.95, independent}, {60, 3, 3, 0.6, independent}, {100, 3, 3, 0.6,
		independent}, {100, 3, 5, 0.95, found}, {30, 15, 5, 0.8, found}, {30, 3, 5, 0.8, found}, {30, 15, 5, 0.95,
		independent}} {
		add(fmt.Sprintf("step of %v deviations in the last %d of %d points%s: found", law.by, law.last, law.n,
			map[bool]string{false: ", dependence found by itself"}[law.o.Independent]), law.low, 1, 100,
			finds(shaped(lawtest.StepAt(1-float64(law.last)/float64(law.n), law.by*spread), spread, lawtest.White),
				law.n, law.o, at(2, false, law.n-law.last)))
	}
	late := shaped(lawtest.StepAt(20./22, 0.3), 0.03, lawtest.White)
	add("step of 30 % in the last two of 22 points, noise of 3 %: what is told is at its place", 0.9, 1, 200,
		func(seed uint64, n int) (c Count, err error) {
			for set := range uint64(n) {
				r, err := change.Detect(late(seed+set*7919, 22), change.Options{Independent: true,
					Seed: seed + set + 1})
				if err != nil {
					return c, err
				}
				for _, p := range r.Points {
					c.Of++
					if p.Index == 20 {
						c.Hits++
					}
				}
			}
			return c, nil
		})
	add("none in lognormal noise of 0.5, 100 points: some found", 0, 0.02, 300,
		finds(times(0.5, 1), 100, independent, anything))
	for _, law := range []struct {
		sigma, low float64
		n          int
	}{{0.25, 0.9, 30}, {0.25, 0.9, 100}, {0.5, 0.25, 100}} {
		add(fmt.Sprintf("×1.8 in the middle of lognormal noise of %v, %d points: found", law.sigma, law.n), law.low, 1,
			100, finds(times(law.sigma, 1.8), law.n, independent, at(3, false, law.n/2)))
	}
	for _, law := range []struct {
		phi, shift, low float64
		n               int
	}{{0, 3, 0.85, 100}, {0.5, 3, 0.8, 300}, {0.7, 5, 0.8, 600}} {
		add(
			fmt.Sprintf("shift of %v deviations in dependence of φ %v, found by itself, %d points: found", law.shift,
				law.phi, law.n),
			law.low,
			1,
			60,
			finds(shaped(lawtest.StepAt(0.6, law.shift*spread), spread, lawtest.AR(law.phi)), law.n, found,
				at(10, false, law.n*6/10)),
		)
	}
	shift := shaped(lawtest.StepAt(0.5, 0.02), spread, lawtest.AR(0.4))
	covers := func(holds func(change.Point) bool) func(uint64, int) (Count, error) {
		return func(seed uint64, n int) (c Count, err error) {
			for set := range uint64(n) {
				r, err := change.Detect(shift(seed+set*7919, 600), change.Options{Seed: seed + set + 1})
				if err != nil {
					return c, err
				}
				if len(r.Points) != 1 {
					continue
				}
				c.Of++
				if holds(r.Points[0]) {
					c.Hits++
				}
			}
			return c, nil
		}
	}
	add("shift of two deviations, φ 0.4, 600 points: its interval holds it", 0.93, 0.98, 120,
		covers(func(p change.Point) bool { return p.Shift.Contains(0.02 * lawtest.Level) }))
	add("shift of two deviations, φ 0.4, 600 points: the interval of its place holds it", 0.93, 0.99, 120,
		covers(func(p change.Point) bool { return p.Low <= 300 && 300 <= p.High }))
	return out
}
