package change

import (
	"math"

	"plimsoll/internal/analysis/resample"
)

// wanders asks whether a series of first-order dependence without any change could look like one with so many changes,
// and returns how often it does: the chance that its likelihood ratio, of dependence with the best cuts against
// dependence alone, reaches that of the series. The null series are drawn with the coefficient that the whole series
// shows when nothing is cut out of it, corrected for its length (Marriott and Pope 1954), and with its own residuals.
//
// A shift makes neighbours alike, and dependence makes shifts: only by what both explain can they be told apart.
func wanders(x []float64, changes int, o Options) (p, phi float64) {
	const (
		rounds = 399
		enough = 8    // series as good as this one: then it is no rare one
		most   = 12   // cuts that are compared; with fewer than there are, dependence explains the rest
		top    = 0.99 // coefficient of the null: beyond, a series has no level
	)
	changes = min(changes, most)
	a := newAutoregression(len(x))
	a.read(x)
	observed := a.gain(changes, o.MinSegment)
	if !(observed > 0) {
		return 1, 0
	}
	shock := a.shocks(x)
	a.read(x)
	raw := a.phi()
	n := float64(len(x))
	phi = raw + (1+3*raw)/n
	phi += math.Sqrt(max(0, 1-phi*phi)/n) / 2 // half a standard error: a coefficient taken too low makes changes
	phi = min(max(phi, 0), top)
	scale(shock, math.Sqrt(a.of(0, a.n).variance()))
	r := resample.Source(o.Seed, 9)
	settle := int(math.Min(200, 3/(1-phi))) // points until the start no longer matters
	null := make([]float64, len(x))
	p = resample.Permutation(observed, rounds, enough, func() float64 {
		state := 0.0
		for i := -settle; i < len(null); i++ {
			state = phi*state + shock[r.IntN(len(shock))]
			if i >= 0 {
				null[i] = state
			}
		}
		a.read(null)
		return a.gain(changes, o.MinSegment)
	})
	return p, phi
}

// autoregression fits x[t] on x[t−1] with a level of its own between cuts. The pair across a cut belongs to neither
// side.
type autoregression struct {
	n                     int
	mean                  float64
	sx, sy, sxx, syy, sxy []float64 // sums over the pairs that end before each index
	cuts                  []int     // with 0 and n around them
}

// pairs are the sums of squares of some pairs about their means.
type pairs struct{ n, xx, yy, xy float64 }

func newAutoregression(n int) *autoregression {
	a := &autoregression{n: n}
	for _, s := range []*[]float64{&a.sx, &a.sy, &a.sxx, &a.syy, &a.sxy} {
		*s = make([]float64, n+1)
	}
	return a
}

// read takes a series of n values, about its mean so that squares stay exact.
func (a *autoregression) read(x []float64) {
	a.mean = 0
	for _, v := range x {
		a.mean += v / float64(a.n)
	}
	for t := 1; t < a.n; t++ {
		u, v := x[t-1]-a.mean, x[t]-a.mean
		a.sx[t+1], a.sy[t+1] = a.sx[t]+u, a.sy[t]+v
		a.sxx[t+1], a.syy[t+1], a.sxy[t+1] = a.sxx[t]+u*u, a.syy[t]+v*v, a.sxy[t]+u*v
	}
	a.cuts = append(a.cuts[:0], 0, a.n)
}

// of are the pairs within [from, to).
func (a *autoregression) of(from, to int) pairs {
	n := float64(to - from - 1)
	if n < 1 {
		return pairs{}
	}
	d := func(s []float64) float64 { return s[to] - s[from+1] }
	x, y := d(a.sx), d(a.sy)
	return pairs{n, d(a.sxx) - x*x/n, d(a.syy) - y*y/n, d(a.sxy) - x*y/n}
}

func (p pairs) plus(q pairs) pairs  { return pairs{p.n + q.n, p.xx + q.xx, p.yy + q.yy, p.xy + q.xy} }
func (p pairs) minus(q pairs) pairs { return pairs{p.n - q.n, p.xx - q.xx, p.yy - q.yy, p.xy - q.xy} }

// variance of what the fit leaves.
func (p pairs) variance() float64 {
	if p.n < 1 || !(p.xx > 0) {
		return max(p.yy, 0) / max(p.n, 1)
	}
	return max(p.yy-p.xy*p.xy/p.xx, 0) / p.n
}

func (a *autoregression) phi() float64 {
	p := a.of(0, a.n)
	if !(p.xx > 0) {
		return 0
	}
	return p.xy / p.xx
}

// shocks are what the fit with the present cuts leaves between them.
func (a *autoregression) shocks(x []float64) []float64 {
	var all pairs
	for i := range len(a.cuts) - 1 {
		all = all.plus(a.of(a.cuts[i], a.cuts[i+1]))
	}
	phi := 0.0
	if all.xx > 0 {
		phi = all.xy / all.xx
	}
	var out []float64
	for i := range len(a.cuts) - 1 {
		from, to := a.cuts[i], a.cuts[i+1]
		n := float64(to - from - 1)
		level := (a.sy[to] - a.sy[from+1] - phi*(a.sx[to]-a.sx[from+1])) / n
		for t := from + 1; t < to; t++ {
			out = append(out, x[t]-a.mean-phi*(x[t-1]-a.mean)-level)
		}
	}
	return out
}

// scale gives values about 0 a standard deviation.
func scale(x []float64, deviation float64) {
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	if squares == 0 {
		return
	}
	by := deviation / math.Sqrt(squares/float64(len(x)))
	for i := range x {
		x[i] *= by
	}
}

// gain is the logarithm of the likelihood ratio after so many cuts, each the best there is after those before.
func (a *autoregression) gain(cuts, least int) float64 {
	now := a.of(0, a.n)
	start := now.variance()
	if !(start > 0) {
		return 0
	}
	for range cuts {
		best, place, split := now.variance(), -1, pairs{}
		for i := range len(a.cuts) - 1 {
			from, to := a.cuts[i], a.cuts[i+1]
			rest := now.minus(a.of(from, to))
			for at := from + least; at <= to-least; at++ {
				p := rest.plus(a.of(from, at)).plus(a.of(at, to))
				if v := p.variance(); v < best {
					best, place, split = v, at, p
				}
			}
		}
		if place < 0 {
			break
		}
		now = split
		k := 0
		for a.cuts[k] < place {
			k++
		}
		a.cuts = append(a.cuts[:k], append([]int{place}, a.cuts[k:]...)...)
	}
	return now.n * math.Log(start/max(now.variance(), start*1e-12))
}
