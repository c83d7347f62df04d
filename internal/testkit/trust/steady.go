package trust

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/steady"
	"plimsoll/internal/testkit/lawtest"
)

// verdict tells what a rule says of a series.
type verdict int

const (
	isSteady verdict = iota
	isNot
	cannotTell
)

// rule judges a series.
type rule func(x []float64, seed uint64) (verdict, error)

// ours is steady.Window with a tolerance of 5 %.
func ours(x []float64, seed uint64) (verdict, error) {
	s, err := steady.Window(x, steady.Options{Seed: seed})
	switch {
	case s.Reached:
		return isSteady, err
	case s.CannotTell:
		return cannotTell, err
	}
	return isNot, err
}

// ofRounds is the rule of solid-state testing on the series in 25 rounds: five of them in a row, the first that pass.
func ofRounds(x []float64, _ uint64) (verdict, error) {
	const rounds = 25
	means := make([]float64, rounds)
	for i := range means {
		means[i] = stat.Mean(x[i*len(x)/rounds:(i+1)*len(x)/rounds], nil)
	}
	const window = 5
	for i := range rounds - window + 1 { // the first that pass, whatever comes after
		s, err := steady.Rounds(means[i:i+window], steady.Rule{})
		if err != nil || s.Reached {
			return isSteady, err
		}
	}
	return isNot, nil
}

// drawn is a law of series.
type drawn func(seed uint64, n int) []float64

func shaped(shape lawtest.Shape, spread float64, noise lawtest.Noise) drawn {
	return func(seed uint64, n int) []float64 {
		return lawtest.Series(resample.Source(seed, 31), n, shape, spread, noise)
	}
}

// pointwise draws each point of a series by itself.
func pointwise(point func(r *rand.Rand, i, n int) float64) drawn {
	return func(seed uint64, n int) []float64 {
		r, out := resample.Source(seed, 35), make([]float64, n)
		for i := range out {
			out[i] = point(r, i, n)
		}
		return out
	}
}

// counts are numbers of rare events: mean at the first point and at the last.
func counts(first, last float64) drawn {
	return pointwise(func(r *rand.Rand, i, n int) float64 {
		return distuv.Poisson{Lambda: first + (last-first)*float64(i)/float64(n-1), Src: r}.Rand()
	})
}

// stray is white noise with one value of so many times its size, anywhere.
func stray(times float64) drawn {
	return func(seed uint64, n int) []float64 {
		r := resample.Source(seed, 36)
		x := lawtest.Series(r, n, lawtest.Flat, 0.03, lawtest.White)
		x[r.IntN(n)] *= times
		return x
	}
}

// sawtooth rises evenly so many times.
func sawtooth(teeth, share float64) lawtest.Shape {
	return func(i, n int) float64 {
		_, at := math.Modf(teeth * float64(i) / float64(n))
		return share * at
	}
}

// twoLevels is at one of two levels, 5 % above and below, each point by itself.
var twoLevels = pointwise(func(r *rand.Rand, _, _ int) float64 {
	return lawtest.Level * (1 + 0.05*float64(2*r.IntN(2)-1) + 0.005*r.NormFloat64())
})

// odd are series that hold still, and that the methods were not made with.
var odd = []struct {
	name string
	draw drawn
}{
	{"counts of 3 in the mean", counts(3, 3)},
	{"counts of 0.3 in the mean", counts(0.3, 0.3)},
	{"around zero", pointwise(func(r *rand.Rand, _, _ int) float64 { return r.NormFloat64() })},
	{"one stray of five times the level", stray(5)},
	{"one stray of zero", stray(0)},
	{"two levels at random", twoLevels},
	{"sawtooth of 30 teeth", shaped(sawtooth(30, 0.06), 0.01, lawtest.White)},
	{"whole numbers of two values", pointwise(func(r *rand.Rand, _, _ int) float64 {
		return math.Round(100.3 + 0.4*r.NormFloat64())
	})},
	{"a fifth of the rows missing, φ 0.7", func(seed uint64, n int) (out []float64) {
		r := resample.Source(seed, 37)
		for _, v := range lawtest.Series(r, 2*n, lawtest.Flat, 0.03, lawtest.AR(0.7)) {
			if r.IntN(5) > 0 && len(out) < n {
				out = append(out, v)
			}
		}
		return out
	}},
}

// says counts how often a rule gives a verdict.
func says(r rule, want verdict, draw drawn, points int) func(uint64, int) (Count, error) {
	return func(seed uint64, n int) (c Count, err error) {
		for set := range uint64(n) {
			v, err := r(draw(seed+set*7919, points), seed+set+1)
			if err != nil {
				return c, err
			}
			c.Of++
			if v == want {
				c.Hits++
			}
		}
		return c, nil
	}
}

// steadyClaims are the wrong verdicts on long series, those of the rule for rounds beside them; how many points are
// lost to a warm-up that is none; and how often the interval of the mean of what was called steady covers.
func steadyClaims() []Claim {
	const spread = 0.03
	white := lawtest.White
	moving := []struct {
		name   string
		points int
		draw   drawn
	}{
		{"line of −20 %", 600, shaped(lawtest.Line(-0.2), spread, white)},
		{"line of −8 %", 600, shaped(lawtest.Line(-0.08), spread, white)},
		{"line of +8 %", 120, shaped(lawtest.Line(0.08), spread, white)},
		{"line of +5.5 %, φ 0.7", 600, shaped(lawtest.Line(0.055), spread, lawtest.AR(0.7))},
		{"line of −6 %, heavy tails", 2000, shaped(lawtest.Line(-0.06), spread, lawtest.Heavy)},
		{"cliff of −60 % in the last tenth", 600, shaped(lawtest.StepAt(0.9, -0.6), spread, white)},
		{"cliff of −8 % in the last tenth, φ 0.7", 600, shaped(lawtest.StepAt(0.9, -0.08), spread, lawtest.AR(0.7))},
		{"dead end, the last 10 points", 600, shaped(lawtest.Hole(0.984, 10, -1), spread, white)},
		{"hole of 10 points", 600, shaped(lawtest.Hole(0.1, 10, -1), spread, white)},
		{"twenty swings that grow to 50 %", 600, shaped(lawtest.Wave(20, 0, 0.5), spread, white)},
		{"spread that grows from 2 to 6 %", 600, func(seed uint64, n int) []float64 {
			return lawtest.Widening(resample.Source(seed, 32), n, 0.02, 0.06, white)
		}},
		{"2.2 swings of 5 %", 120, shaped(lawtest.Wave(2.2, 0.05, 0.05), spread, white)},
		{"2.2 swings of 10 %, φ 0.7", 600, shaped(lawtest.Wave(2.2, 0.1, 0.1), spread, lawtest.AR(0.7))},
		{"line of −20 % to a plateau at 60 %", 600, shaped(func(i, n int) float64 {
			return -0.2 * min(1, float64(i)/(0.6*float64(n)))
		}, spread, white)},
		{"V of −10 %", 600, shaped(func(i, n int) float64 {
			return -0.1 * (1 - math.Abs(2*float64(i)/float64(n)-1))
		}, spread, white)},
		{"one and a half teeth of 15 %", 600, shaped(sawtooth(1.5, 0.15), spread, white)},
		{"counts of 3 that fall to 2", 600, counts(3, 2)},
		{"random walk, steps of 1 %", 600, shaped(lawtest.Flat, 0.01, lawtest.Walk)},
		{"random walk, steps of 1 %", 120, shaped(lawtest.Flat, 0.01, lawtest.Walk)},
		{"random levels, spread of 10 %", 600, func(seed uint64, n int) []float64 {
			r := resample.Source(seed, 33)
			return lawtest.Series(r, n, lawtest.Levels(r, n, n/8, 0.1), spread, white)
		}},
	}
	still := []struct {
		name   string
		points int
		draw   drawn
	}{
		{"white", 60, shaped(lawtest.Flat, spread, white)},
		{"white", 600, shaped(lawtest.Flat, spread, white)},
		{"white", 3000, shaped(lawtest.Flat, spread, white)},
		{"φ 0.7", 60, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		{"φ 0.7", 120, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		{"φ 0.7", 600, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		{"φ 0.7", 3000, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		{"φ 0.95", 1500, shaped(lawtest.Flat, spread, lawtest.AR(0.95))},
		{"heavy tails", 600, shaped(lawtest.Flat, spread, lawtest.Heavy)},
		{"skewed", 600, shaped(lawtest.Flat, spread, lawtest.Skewed)},
		{"in coarse steps", 600, shaped(lawtest.Flat, spread, lawtest.Coarse)},
		{"multiplied on, φ 0.5", 600, func(seed uint64, n int) []float64 {
			return lawtest.Multiplied(resample.Source(seed, 34), n, spread, lawtest.AR(0.5))
		}},
	}
	var out []Claim
	add := func(name string, low, high float64, sets int, measure func(uint64, int) (Count, error)) {
		out = append(out, Claim{Family: "steady", Name: name, Low: low, High: high, Sets: sets, Measure: measure})
	}
	for _, m := range moving {
		name := fmt.Sprintf("%s, %d points", m.name, m.points)
		add(name+": called steady", 0, 0.05, 100, says(ours, isSteady, m.draw, m.points))
	}
	for _, m := range still {
		name := fmt.Sprintf("%s, %d points", m.name, m.points)
		add(name+": called not steady", 0, 0.05, 100, says(ours, isNot, m.draw, m.points))
		if m.points >= 600 && m.name != "φ 0.95" {
			add(name+": called steady", 0.95, 1, 100, says(ours, isSteady, m.draw, m.points))
		}
	}
	for _, m := range odd {
		add(m.name+", 600 points: called not steady", 0, 0.05, 100, says(ours, isNot, m.draw, 600))
	}
	for _, m := range moving {
		add(fmt.Sprintf("%s, %d points: called steady by the rule for rounds, for comparison", m.name, m.points), 0, 1,
			300, says(ofRounds, isSteady, m.draw, m.points))
	}
	for _, phi := range []float64{0, 0.7} {
		for _, n := range []int{120, 600} {
			draw := shaped(lawtest.Flat, spread, lawtest.AR(phi))
			add(
				fmt.Sprintf("φ %v, %d points: some are called a warm-up", phi, n),
				0,
				0.05,
				400,
				func(seed uint64, sets int) (c Count, err error) {
					for set := range uint64(sets) {
						c.Of++
						if points, _ := steady.WarmUp(draw(seed+set*7919, n)); points > 0 {
							c.Hits++
						}
					}
					return c, nil
				},
			)
		}
	}
	for _, law := range []struct {
		name   string
		points int
		low    float64
		draw   drawn
	}{
		{"φ 0", 600, 0.93, shaped(lawtest.Flat, spread, white)},
		{"φ 0.7", 120, 0.93, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		{"φ 0.7", 600, 0.93, shaped(lawtest.Flat, spread, lawtest.AR(0.7))},
		// What the cut leaves of a warm-up still pulls the mean a little.
		{"φ 0.7 after a warm-up", 600, 0.91, shaped(lawtest.Settling(-0.6, 24), spread, lawtest.AR(0.7))},
	} {
		add(
			fmt.Sprintf("%s, %d points: the mean's interval of 95 %% holds the level", law.name, law.points),
			law.low,
			0.97,
			500,
			func(seed uint64, sets int) (c Count, err error) {
				for set := range uint64(sets) {
					s, err := steady.Window(law.draw(seed+set*7919, law.points), steady.Options{Seed: seed + set + 1})
					if err != nil {
						return c, err
					}
					if !s.Mean.Interval.Valid() {
						continue
					}
					c.Of++
					if math.Abs(s.Mean.Value-lawtest.Level) <= (s.Mean.Interval.High-s.Mean.Interval.Low)/2 {
						c.Hits++
					}
				}
				return c, nil
			},
		)
	}
	return out
}
