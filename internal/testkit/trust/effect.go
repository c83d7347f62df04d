package trust

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/effect"
)

// design is how repeats of two sides were made.
type design struct {
	name   string
	repeat int                                  // a side
	order  func(r *rand.Rand, repeat int) []int // side of each repeat in time
	known  bool                                 // when the repeats of all were made, not only within the sides
	phi    float64                              // correlation of neighbours in time
	drift  float64                              // of each repeat in time, a share
	sigma  float64                              // of lognormal values, instead of 1 % of normal ones
	effect float64                              // true difference, a share
	of     func(*rand.Rand) float64             // draws each value by itself, instead
}

func oneAfterOther(_ *rand.Rand, n int) []int {
	return append(slices.Repeat([]int{0}, n), slices.Repeat([]int{1}, n)...)
}
func inTurns(_ *rand.Rand, n int) []int { return slices.Repeat([]int{0, 1}, n) }
func shuffled(r *rand.Rand, n int) []int {
	sides := inTurns(r, n)
	r.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	return sides
}

// compared makes both sides of a design and compares them.
func (d design) compared(r *rand.Rand) (effect.Comparison, error) {
	var values [2][]float64
	var order [2][]int
	state := r.NormFloat64()
	for i, side := range d.order(r, d.repeat) {
		v := 100 * (1 + 0.01*state)
		if d.sigma > 0 {
			v = 100 * math.Exp(d.sigma*state)
		}
		if d.of != nil {
			v = d.of(r)
		}
		v *= (1 + d.drift*float64(i)) * (1 + d.effect*float64(side))
		values[side], order[side] = append(values[side], v), append(order[side], i)
		state = d.phi*state + math.Sqrt(1-d.phi*d.phi)*r.NormFloat64()
	}
	o := effect.Options{Resamples: 400}
	if d.known {
		o.Order = append(order[0], order[1]...)
	}
	return effect.Compare(values[0], values[1], o)
}

// count compares sets of a design and counts those that are hits, out of those that count.
func (d design) count(seed, salt uint64, n int, hit func(effect.Comparison) (counts, is bool)) (c Count, err error) {
	r := rand.New(rand.NewPCG(seed, salt))
	for range n {
		k, err := d.compared(r)
		if err != nil {
			return c, err
		}
		if counts, is := hit(k); counts {
			c.Of++
			if is {
				c.Hits++
			}
		}
	}
	return c, nil
}

// covers counts how often the interval of the ratio, when there is one, holds the truth.
func (d design) covers(seed uint64, n int) (Count, error) {
	return d.count(seed, 61, n, func(k effect.Comparison) (bool, bool) {
		return k.Ratio.Interval.Valid(), k.Ratio.Interval.Contains(1 + d.effect)
	})
}

// silent counts how often an interval misses the truth and no warning of order or dependence says why it may.
func (d design) silent(seed uint64, n int) (Count, error) {
	return d.count(seed, 62, n, func(k effect.Comparison) (bool, bool) {
		return true, k.Ratio.Interval.Valid() && !k.Ratio.Interval.Contains(1+d.effect) && len(k.Sequence.Warnings) == 0
	})
}

// warned counts warnings of order or dependence.
func (d design) warned(seed uint64, n int) (Count, error) {
	return d.count(seed, 63, n, func(k effect.Comparison) (bool, bool) { return true, len(k.Sequence.Warnings) > 0 })
}

// effectClaims are intervals of comparisons of repeats: independent ones, ones that drift, ones that depend on those
// before.
func effectClaims() (out []Claim) {
	const family, sets = "repeats", 1500
	for _, n := range []int{3, 5, 10, 20} {
		d := design{repeat: n, order: oneAfterOther}
		name := fmt.Sprintf("independent, %d a side: interval holds the truth", n)
		out = append(out, Claim{family, name, 0.93, 0.995, sets, d.covers})
		d.known = true
		out = append(out, Claim{family, "one side after the other, " + name, 0.93, 0.98, sets, d.covers})
		d.order = inTurns
		out = append(out, Claim{family, "made in turns, " + name, 0.93, 0.985, sets, d.covers})
	}
	out = append(out, Claim{family, "independent, 10 a side: dependence or drift is warned of", 0, 0.13, sets,
		design{repeat: 10, order: oneAfterOther}.warned})
	for _, n := range []int{5, 10, 20} {
		d := design{repeat: n, order: inTurns, known: true, drift: 0.004}
		out = append(
			out,
			Claim{
				family,
				fmt.Sprintf("drift of 0.4 %% each, in turns, %d a side: interval holds the truth", n),
				0.92,
				0.99,
				sets,
				d.covers,
			},
		)
		d.order = shuffled
		out = append(
			out,
			Claim{
				family,
				fmt.Sprintf("drift of 0.4 %% each, in random order, %d a side: interval holds the truth", n),
				0.92,
				0.995,
				sets,
				d.covers,
			},
		)
	}
	for _, n := range []int{3, 4, 5, 8, 10, 20} {
		for _, known := range []bool{false, true} {
			d := design{repeat: n, order: oneAfterOther, drift: 0.004, known: known}
			of := map[bool]string{false: "order of the sides not known", true: "order known"}[known]
			out = append(
				out,
				Claim{
					family,
					fmt.Sprintf("drift of 0.4 %% each, one side after the other, %s, %d a side: silently wrong", of, n),
					0,
					0.05,
					sets,
					d.silent,
				},
			)
		}
	}
	for _, n := range []int{3, 5, 10} {
		d := design{repeat: n, order: oneAfterOther, known: true, drift: 0.004, effect: 0.05}
		name := fmt.Sprintf("drift of 0.4 %% each beside an effect of 5 %%, one side after the other, %d a side: "+
			"interval holds the truth", n)
		out = append(out, Claim{family, name, 0.85, 0.99, sets, d.covers})
	}
	for _, phi := range []float64{0.6, 0.9} {
		for _, n := range []int{5, 8, 10, 20, 40} {
			d := design{repeat: n, order: oneAfterOther, phi: phi}
			out = append(
				out,
				Claim{
					family,
					fmt.Sprintf("dependent, %g, one side after the other, %d a side: silently wrong", phi, n),
					0,
					0.05,
					sets,
					d.silent,
				},
			)
		}
		for _, n := range []int{5, 10, 20} {
			d := design{repeat: n, order: inTurns, known: true, phi: phi}
			out = append(
				out,
				Claim{
					family,
					fmt.Sprintf("dependent, %g, in turns, %d a side: interval holds the truth", phi, n),
					0.94,
					1,
					sets,
					d.covers,
				},
			)
			d.order = shuffled
			out = append(
				out,
				Claim{
					family,
					fmt.Sprintf("dependent, %g, in random order, %d a side: interval holds the truth", phi, n),
					0.92,
					0.99,
					sets,
					d.covers,
				},
			)
		}
	}
	for _, n := range []int{5, 10, 30} {
		out = append(
			out,
			Claim{family, fmt.Sprintf("lognormal, σ = 1, %d a side: interval holds the truth", n), 0.91, 0.995, sets,
				design{repeat: n, order: oneAfterOther, sigma: 1}.covers},
		)
	}
	for _, d := range []design{{name: "two levels at random", of: func(r *rand.Rand) float64 {
		return 100 + 10*float64(2*r.IntN(2)-1) + r.NormFloat64()
	}}, {name: "counts of 5", of: counted(5)}, {name: "counts of 50", of: counted(50)},
		{name: "whole numbers of two values", of: func(r *rand.Rand) float64 {
			return math.Round(100.3 + 0.4*r.NormFloat64())
		}}} {
		for _, n := range []int{5, 10, 30} {
			d.repeat, d.order = n, oneAfterOther
			name := fmt.Sprintf("%s, %d a side: interval holds the truth", d.name, n)
			out = append(out, Claim{family, name, 0.93, 1, sets / 3, d.covers})
		}
	}
	for _, n := range []int{5, 10, 30} {
		out = append(out, Claim{family, fmt.Sprintf("lognormal, σ = 1.5, %d a side: silently wrong", n), 0, 0.02,
			sets / 3, design{repeat: n, order: oneAfterOther, sigma: 1.5}.silentAtAll})
	}
	return out
}

func counted(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return distuv.Poisson{Lambda: mean, Src: r}.Rand() }
}

// silentAtAll counts how often an interval misses the truth and no warning at all says why it may.
func (d design) silentAtAll(seed uint64, n int) (c Count, err error) {
	r := rand.New(rand.NewPCG(seed, 64))
	for range n {
		k, err := d.compared(r)
		if err != nil {
			return c, err
		}
		if c.Of++; k.Ratio.Interval.Valid() && !k.Ratio.Interval.Contains(1+d.effect) && len(k.Warnings) == 0 {
			c.Hits++
		}
	}
	return c, nil
}
