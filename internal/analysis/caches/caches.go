// Package caches reads a working-set curve: the mean time of operations over how much is worked on, and with it the
// sizes of the caches in front of the medium and the time of each level.
//
// The curve is that of even random access through levels that hold what fits: of a working set W a cache of size C
// holds the share min(1, C/W), whatever it evicts, so that
//
//	t(W) = t₀ + Σ dₖ · max(0, 1 − Cₖ/W),  dₖ ≥ 0
//
// is the mean time, t₀ that of the innermost level, t₀ + d₁ that behind the first cache, and so on. Up to three caches
// are fitted by least squares on relative errors; each further one must explain more than the repeats scatter by
// (F test at 1 %) and must make operations Rise times as slow. Intervals are from a parametric bootstrap of the fit
// with the larger of the scatter of repeats and what the fit leaves over, so that a curve of another shape has wide
// ones.
//
// It refuses what the model does not hold for, as far as it can see it: fewer than four sizes. That access was even
// and random, and that the caches were warm, its caller must know.
//
// Pure: no I/O, no clock, random numbers only from a fixed seed.
package caches

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
)

// Rise is how much slower the level behind a cache must be, at the lower end of its interval, for the cache to be told
// of.
const Rise = 1.15

// Point is one working set.
type Point struct {
	Bytes   float64
	Seconds []float64 // mean time of operations, one value per repeat
}

// Cache is one found on the curve.
type Cache struct {
	// Bytes is its size; where Beyond, that it lies among the last two working sets, so that the time behind it is a
	// lower bound only.
	Bytes effect.Estimate `json:"bytes"`
	// Within and Behind are the times of operations that it answers, and of those that it does not, in seconds.
	Within effect.Estimate `json:"within_seconds"`
	Behind effect.Estimate `json:"behind_seconds"`
	Ratio  effect.Estimate `json:"ratio"` // Behind over Within
	Beyond bool            `json:"beyond,omitempty"`
}

// Reading holds what the curve says.
type Reading struct {
	Caches []Cache `json:"caches"` // from the innermost
	// Scatter is the relative standard deviation of repeats of one size, 0 without repeats; Misfit that of the means
	// from the fitted curve.
	Scatter  float64  `json:"scatter"`
	Misfit   float64  `json:"misfit"`
	Warnings []string `json:"warnings,omitempty"`
}

const (
	mostCaches = 3
	fewest     = 4
	candidates = 160
	draws      = 400
	f99        = 0.99
)

// Read reads a curve of at least four sizes, in any order.
func Read(points []Point, confidence float64) (*Reading, error) {
	var bad []error
	points = slices.SortedFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for i, p := range points {
		if !(p.Bytes > 0) || math.IsInf(p.Bytes, 0) || i > 0 && p.Bytes == points[i-1].Bytes {
			bad = append(bad, fmt.Errorf("caches: working set %v bytes: must be finite, above 0, and there once", p.Bytes))
		}
		odd := func(s float64) bool { return !(s > 0) || math.IsInf(s, 0) }
		if len(p.Seconds) == 0 || slices.ContainsFunc(p.Seconds, odd) {
			bad = append(bad, fmt.Errorf("caches: working set %v bytes: times %v: must be finite and above 0", p.Bytes,
				p.Seconds))
		}
	}
	if len(points) < fewest {
		bad = append(bad, fmt.Errorf("caches: %d working sets: at least %d are needed", len(points), fewest))
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	c := newCurve(points)
	best := c.fit(nil)
	for len(best.sizes) < mostCaches && len(points) >= 2*(len(best.sizes)+2) {
		next := c.fit(append(slices.Clone(best.sizes), c.grid[0]))
		if !c.better(best, next) {
			break
		}
		best = next
	}
	return c.reading(best, confidence), nil
}

// curve holds what is fitted: logarithms of means by working set.
type curve struct {
	sets, means []float64
	weight      []float64 // repeats of each
	scatter     float64   // relative, of single repeats
	free        float64   // degrees of freedom of scatter
	grid        []float64 // sizes tried
}

func newCurve(points []Point) *curve {
	c := &curve{}
	for _, p := range points {
		var sum float64
		for _, s := range p.Seconds {
			sum += math.Log(s) / float64(len(p.Seconds))
		}
		for _, s := range p.Seconds {
			c.scatter += (math.Log(s) - sum) * (math.Log(s) - sum)
		}
		c.free += float64(len(p.Seconds) - 1)
		c.sets, c.means = append(c.sets, p.Bytes), append(c.means, math.Exp(sum))
		c.weight = append(c.weight, float64(len(p.Seconds)))
	}
	if c.free > 0 {
		c.scatter = math.Sqrt(c.scatter / c.free)
	}
	low, high := math.Log(c.sets[0]), math.Log(c.sets[len(c.sets)-1])
	for i := range candidates {
		c.grid = append(c.grid, math.Exp(low+(high-low)*float64(i)/candidates))
	}
	return c
}

// fitted is a model: sizes of caches in order, the innermost time, and what each cache saves.
type fitted struct {
	sizes []float64
	times []float64 // t₀, d₁, d₂, ...
	error float64   // weighted sum of squared relative errors
}

func (f fitted) at(set float64) float64 {
	t := f.times[0]
	for k, size := range f.sizes {
		t += f.times[k+1] * max(0, 1-size/set)
	}
	return t
}

// fit fits so many caches, beginning from these sizes: each in turn is moved to where the error is least.
func (c *curve) fit(sizes []float64) fitted {
	best := c.times(sizes)
	if len(sizes) == 0 {
		return best
	}
	for range 8 {
		before := best.error
		for k := range best.sizes {
			place := func(size float64) {
				tried := slices.Clone(best.sizes)
				tried[k] = size
				if f := c.times(tried); f.error < best.error {
					best = f
				}
			}
			for _, size := range c.grid {
				place(size)
			}
			step := math.Log(c.grid[1] / c.grid[0]) // then finer about the best
			for range 6 {
				step /= 3
				middle := best.sizes[k]
				for _, by := range []float64{-2, -1, 1, 2} {
					place(min(max(middle*math.Exp(by*step), c.sets[0]), c.sets[len(c.sets)-1]))
				}
			}
		}
		if best.error >= before*(1-1e-6) {
			break
		}
	}
	order := slices.Clone(best.sizes)
	slices.Sort(order)
	return c.times(order)
}

// times are the best times of given sizes: linear least squares on relative errors, where what would be negative is
// nothing. The least of all subsets that are not negative is taken, of which there are few.
func (c *curve) times(sizes []float64) fitted {
	best := fitted{sizes: sizes, error: math.Inf(1)}
	for mask := range 1 << len(sizes) {
		used := []int{0}
		for k := range sizes {
			if mask>>k&1 == 1 {
				used = append(used, k+1)
			}
		}
		x, ok := c.solve(sizes, used)
		if !ok || slices.ContainsFunc(x, func(v float64) bool { return v < 0 }) || !(x[0] > 0) {
			continue
		}
		f := fitted{sizes: sizes, times: make([]float64, len(sizes)+1)}
		for i, k := range used {
			f.times[k] = x[i]
		}
		for i, set := range c.sets {
			d := f.at(set)/c.means[i] - 1
			f.error += c.weight[i] * d * d
		}
		if f.error < best.error {
			best = f
		}
	}
	return best
}

// solve solves the normal equations of some of the columns by elimination.
func (c *curve) solve(sizes []float64, used []int) ([]float64, bool) {
	n := len(used)
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
	}
	column := func(k int, set float64) float64 {
		if k == 0 {
			return 1
		}
		return max(0, 1-sizes[k-1]/set)
	}
	for i, set := range c.sets {
		w := c.weight[i] / (c.means[i] * c.means[i])
		for p, k := range used {
			for q, l := range used {
				a[p][q] += w * column(k, set) * column(l, set)
			}
			a[p][n] += w * column(k, set) * c.means[i]
		}
	}
	scale := a[0][0]
	for p := range n {
		pivot := p
		for q := p + 1; q < n; q++ {
			if math.Abs(a[q][p]) > math.Abs(a[pivot][p]) {
				pivot = q
			}
		}
		a[p], a[pivot] = a[pivot], a[p]
		if math.Abs(a[p][p]) < 1e-12*scale {
			return nil, false
		}
		for q := range n {
			if q == p {
				continue
			}
			m := a[q][p] / a[p][p]
			for r := p; r <= n; r++ {
				a[q][r] -= m * a[p][r]
			}
		}
	}
	x := make([]float64, n)
	for p := range x {
		x[p] = a[p][n] / a[p][p]
	}
	return x, true
}

// noise is the variance of one repeat about the curve with its degrees of freedom: the scatter of repeats, or what the
// fit leaves over where that is more.
func (c *curve) noise(f fitted) (variance, free float64) {
	left := float64(len(c.sets) - 1 - 2*len(f.sizes))
	variance, free = c.scatter*c.scatter, c.free
	if left > 0 && (free == 0 || f.error/left > variance) {
		variance, free = f.error/left, left
	}
	return variance, free
}

// better reports whether one cache more explains more than chance does: size and time of it are two parameters.
func (c *curve) better(less, more fitted) bool {
	variance, free := c.noise(more)
	if free <= 0 {
		return false
	}
	f := distuv.F{D1: 2, D2: free}
	return (less.error-more.error)/2 > f.Quantile(f99)*max(variance, 1e-10)
}

// reading gives the intervals: the curve is drawn anew with the noise about the fit, and fitted anew.
func (c *curve) reading(f fitted, confidence float64) *Reading {
	r := &Reading{Scatter: c.scatter}
	var sum float64
	for i, set := range c.sets {
		d := f.at(set)/c.means[i] - 1
		sum += d * d
	}
	r.Misfit = math.Sqrt(sum / float64(len(c.sets)))
	if len(f.sizes) == 0 {
		return r
	}
	variance, free := c.noise(f)
	// Student's t in place of the normal law, since the variance is itself an estimate.
	wide := math.Sqrt(variance) * resample.StudentT(confidence, free) / resample.StudentT(confidence, 1e6)
	random := rand.New(rand.NewPCG(resample.DefaultSeed, uint64(len(c.sets))))
	n := len(f.sizes)
	sizes, within := make([][]float64, n), make([][]float64, n)
	behind, ratio := make([][]float64, n), make([][]float64, n)
	for range draws {
		again := *c
		again.means = make([]float64, len(c.sets))
		for i, set := range c.sets {
			again.means[i] = f.at(set) * math.Exp(random.NormFloat64()*wide/math.Sqrt(c.weight[i]))
		}
		g := again.near(f)
		level := g.times[0]
		for k := range n {
			next := level + g.times[k+1]
			sizes[k], ratio[k] = append(sizes[k], g.sizes[k]), append(ratio[k], next/level)
			within[k], behind[k] = append(within[k], level), append(behind[k], next)
			level = next
		}
	}
	level := f.times[0]
	for k, size := range f.sizes {
		next := level + f.times[k+1]
		cache := Cache{Bytes: between(size, sizes[k], confidence), Within: between(level, within[k], confidence),
			Behind: between(next, behind[k], confidence), Ratio: between(next/level, ratio[k], confidence)}
		level = next
		if cache.Ratio.Interval.Low < Rise {
			r.Warnings = append(r.Warnings, fmt.Sprintf("a rise of ×%.3g at %.3g bytes is too small or too uncertain to be "+
				"called a cache (at least ×%.3g, and ×%.3g at the lower end of its interval)",
				next/(level-f.times[k+1]), size, Rise,
				cache.Ratio.Interval.Low))
			continue
		}
		cache.Beyond = cache.Bytes.Interval.High >= c.sets[len(c.sets)-2]
		r.Caches = append(r.Caches, cache)
	}
	return r
}

// near fits a curve anew in the neighbourhood of a fit, as many caches as that has.
func (c *curve) near(f fitted) fitted {
	best := c.times(slices.Clone(f.sizes))
	step := math.Log(c.sets[len(c.sets)-1]/c.sets[0]) / 8
	for range 14 {
		for k := range best.sizes {
			middle := best.sizes[k]
			for _, by := range []float64{-2, -1, 1, 2} {
				tried := slices.Clone(best.sizes)
				tried[k] = min(max(middle*math.Exp(by*step), c.sets[0]), c.sets[len(c.sets)-1])
				if g := c.times(tried); g.error < best.error && slices.IsSorted(tried) {
					best = g
				}
			}
		}
		step /= 1.8
	}
	return best
}

func between(value float64, drawn []float64, confidence float64) effect.Estimate {
	slices.Sort(drawn)
	return effect.Estimate{Value: value, Interval: resample.Interval{
		Low:  min(value, stat.Quantile((1-confidence)/2, stat.Empirical, drawn, nil)),
		High: max(value, stat.Quantile((1+confidence)/2, stat.Empirical, drawn, nil)), Confidence: confidence,
		Method: fmt.Sprintf("parametric bootstrap of the fitted curve, %d draws", draws)}}
}
