package change

import (
	"math"
	"math/rand/v2"

	"plimsoll/internal/analysis/resample"
)

// divisive is E-divisive means: cut, test, go on within both sides. The level is that of each test, so a series
// without changes yields one with just that chance.
func divisive(x []float64, o Options) []cut {
	r := resample.Source(o.Seed, 1)
	d := newDistances(x, o.MinSegment)
	var cuts []cut
	open := [][2]int{{0, len(x)}}
	for len(open) > 0 {
		segment := open[len(open)-1]
		open = open[:len(open)-1]
		at, p := d.test(segment[0], segment[1], o, r)
		if p > o.Significance {
			continue
		}
		cuts = append(cuts, cut{at, p})
		open = append(open, [2]int{segment[0], at}, [2]int{at, segment[1]})
	}
	return cuts
}

// distances holds |x[i]−x[j]| and the sums needed to compare any two neighbouring runs of points.
type distances struct {
	least  int
	n      int
	of     []float64 // n×n
	prefix []float64 // (n+1)×(n+1): sums over the square of the points in their present order
}

func newDistances(x []float64, least int) *distances {
	n := len(x)
	d := &distances{least: least, n: n, of: make([]float64, n*n), prefix: make([]float64, (n+1)*(n+1))}
	for i := range n {
		for j := range n {
			d.of[i*n+j] = math.Abs(x[i] - x[j])
		}
	}
	return d
}

// test finds the best cut of points from ≤ i < to and its significance.
func (d *distances) test(from, to int, o Options, r *rand.Rand) (at int, p float64) {
	if to-from < 2*d.least {
		return 0, 1
	}
	order := make([]int, to-from)
	for i := range order {
		order[i] = from + i
	}
	at, observed := d.best(order)
	if !(observed > 0) {
		return 0, 1
	}
	// Enough shuffles beyond the observed value to exceed the level end the test early.
	enough := int(o.Significance*float64(o.Permutations+1)) + 10
	p = resample.Permutation(observed*(1-1e-12), o.Permutations, enough, func() float64 {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		_, q := d.best(order)
		return q
	})
	return from + at, p
}

// best maximises mn/(m+n)·(2·mean|A−B| − mean|A−A'| − mean|B−B'|) over all A = [0, cut) and B = [cut, end) of the
// points in the order given (Matteson and James, equations 5 to 7, with exponent 1). The end of B moves too, so that a change
// which is later undone is not drowned by what follows.
func (d *distances) best(order []int) (at int, q float64) {
	n, stride := len(order), len(order)+1
	sums := d.prefix[:stride*stride]
	for j := range stride {
		sums[j] = 0
	}
	for i, a := range order {
		row, above := sums[(i+1)*stride:(i+2)*stride], sums[i*stride:(i+1)*stride]
		distance := d.of[a*d.n : (a+1)*d.n]
		row[0] = 0
		var sum float64
		for j, b := range order {
			sum += distance[b]
			row[j+1] = above[j+1] + sum
		}
	}
	q = math.Inf(-1)
	for cut := d.least; cut <= n-d.least; cut++ {
		m := float64(cut)
		left := sums[cut*stride+cut] // every pair twice
		within := left / (m * (m - 1))
		for end := cut + d.least; end <= n; end++ {
			k := float64(end - cut)
			cross := sums[cut*stride+end] - left
			right := sums[end*stride+end] - left - 2*cross
			if v := m * k / (m + k) * (2*cross/(m*k) - within - right/(k*(k-1))); v > q {
				at, q = cut, v
			}
		}
	}
	return at, q
}
