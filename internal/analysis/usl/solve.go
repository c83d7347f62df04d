package usl

import (
	"math"
)

// bounds of γ, α and β, in that order everywhere in this package.
type bounds struct{ low, high [3]float64 }

var (
	bounded   = bounds{high: [3]float64{math.Inf(1), 1, 1}}
	unbounded = bounds{
		low:  [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)},
		high: [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)},
	}
	amdahl = bounds{high: [3]float64{math.Inf(1), 1, 0}}
	linear = bounds{high: [3]float64{math.Inf(1), 0, 0}}
)

// solution is the result of one minimisation.
type solution struct {
	Coefficients
	loss float64 // Σ w·r²
	ok   bool    // converged
}

func (c Coefficients) vector() [3]float64 { return [3]float64{c.Gamma, c.Alpha, c.Beta} }

func coefficients(v [3]float64) Coefficients { return Coefficients{v[0], v[1], v[2]} }

// gradient of the law at n by γ, α and β.
func gradient(c Coefficients, n float64) [3]float64 {
	d := 1 + c.Alpha*(n-1) + c.Beta*n*(n-1)
	byDenominator := -c.Gamma * n / (d * d)
	return [3]float64{n / d, byDenominator * (n - 1), byDenominator * n * (n - 1)}
}

// loss is Σ w·r², +Inf where the law is not positive.
func loss(points []Point, c Coefficients) float64 {
	var sum float64
	for _, p := range points {
		n := p.Concurrency
		d := 1 + c.Alpha*(n-1) + c.Beta*n*(n-1)
		if !(d > 0) {
			return math.Inf(1)
		}
		r := p.Throughput - c.Gamma*n/d
		sum += p.Weight * r * r
	}
	return sum
}

// solveFromMany minimises from several starting points, chosen by the data alone, and keeps the best, near which
// nothing is lower.
func solveFromMany(points []Point, b bounds) solution {
	var low, high float64 = math.Inf(1), 0
	for _, p := range points {
		low, high = min(low, p.Concurrency), max(high, p.Concurrency)
	}
	best := solution{loss: math.Inf(1)}
	starts := []Coefficients{
		linearised(points), {}, {Alpha: 0.02},
		{Alpha: 0.02, Beta: 1 / (high * high)}, {Alpha: 0.5, Beta: 4 / (high * high)}, {Beta: 1 / (low*high + 1)},
	}
	for _, s := range starts {
		if got := solve(points, s, b); got.loss < best.loss {
			best = got
		}
	}
	return lowest(points, best, b)
}

// lowest goes downhill from s until nothing near is lower.
func lowest(points []Point, s solution, b bounds) solution {
	for range 100 {
		lower := downhill(points, s, b)
		if !(lower.loss < s.loss*(1-1e-9)) {
			break
		}
		s = lower
	}
	return s
}

// downhill is the lowest of what is found near s: α and β are each moved by shares of themselves, and the minimiser
// starts from where the loss is less. Its own steps follow the slope of all parameters at once; where these hardly
// differ in what they do to the points, as in a corner of the bounds, no such step goes down although one exists.
func downhill(points []Point, s solution, b bounds) solution {
	best := s
	for _, share := range []float64{-0.1, -0.01, -0.001, 0.001, 0.01, 0.1} {
		for i := 1; i < 3; i++ {
			v := s.vector()
			v[i] *= 1 + share
			near := coefficients(clamp(v, b))
			near.Gamma = bestGamma(points, near)
			if l := loss(points, near); l < best.loss {
				best = solution{Coefficients: near, loss: l, ok: s.ok}
			}
		}
	}
	if best.loss < s.loss {
		if got := solve(points, best.Coefficients, b); got.loss < best.loss {
			best = got
		}
	}
	return best
}

// linearised solves N/X = a + b(N−1) + cN(N−1), which is linear, with the weights the change of variable asks for
// ((X²/N)² by the delta method). It is the classic fit of the law; here it only provides a start.
func linearised(points []Point) Coefficients {
	var h [3][3]float64
	var g [3]float64
	for _, p := range points {
		if p.Throughput <= 0 {
			continue
		}
		n, x := p.Concurrency, p.Throughput
		w := p.Weight * (x * x / n) * (x * x / n)
		row := [3]float64{1, n - 1, n * (n - 1)}
		for i := range 3 {
			g[i] += w * row[i] * n / x
			for j := range 3 {
				h[i][j] += w * row[i] * row[j]
			}
		}
	}
	v, ok := solve3(h, g, [3]bool{true, true, true})
	if !ok || !(v[0] > 0) {
		return Coefficients{}
	}
	return Coefficients{1 / v[0], v[1] / v[0], v[2] / v[0]}
}

// solve minimises Σ w·r² within bounds: Levenberg's method with Marquardt's scaling (Marquardt 1963), steps cut at the
// bounds, and parameters held at a bound for as long as the gradient pushes them against it. γ, which enters linearly,
// starts at its best value for the α and β given.
func solve(points []Point, start Coefficients, b bounds) solution {
	v := clamp(start.vector(), b)
	if c := coefficients(v); math.IsInf(loss(points, Coefficients{1, c.Alpha, c.Beta}), 1) {
		v[1], v[2] = 0, 0
	}
	v[0] = bestGamma(points, coefficients(v))
	s := solution{Coefficients: coefficients(v), loss: loss(points, coefficients(v))}
	var scale float64 // a loss too small to tell from rounding
	for _, p := range points {
		scale += p.Weight * p.Throughput * p.Throughput
	}
	damping := 1e-3
	for range 200 {
		h, g := normal(points, s.Coefficients)
		var free [3]bool
		for i := range 3 {
			held := v[i] <= b.low[i] && g[i] <= 0 || v[i] >= b.high[i] && g[i] >= 0
			free[i] = !held && h[i][i] > 0
		}
		moved := false
		for damping < 1e12 {
			damped := h
			for i := range 3 {
				damped[i][i] *= 1 + damping
			}
			step, ok := solve3(damped, g, free)
			if ok {
				next := clamp([3]float64{v[0] + step[0], v[1] + step[1], v[2] + step[2]}, b)
				next[0] = bestGamma(points, coefficients(next))
				if l := loss(points, coefficients(next)); l < s.loss {
					gain := s.loss - l
					v, s.Coefficients, s.loss = next, coefficients(next), l
					damping = max(damping/10, 1e-12)
					moved = gain > 1e-14*s.loss && l > 1e-28*scale
					s.ok = !moved
					break
				}
			}
			damping *= 10
		}
		if !moved {
			s.ok = true
			break
		}
	}
	return s
}

// normal gives JᵀWJ and JᵀWr at c.
func normal(points []Point, c Coefficients) (h [3][3]float64, g [3]float64) {
	for _, p := range points {
		j := gradient(c, p.Concurrency)
		r := p.Throughput - c.At(p.Concurrency)
		for i := range 3 {
			g[i] += p.Weight * j[i] * r
			for k := range i + 1 {
				h[i][k] += p.Weight * j[i] * j[k]
			}
		}
	}
	h[0][1], h[0][2], h[1][2] = h[1][0], h[2][0], h[2][1]
	return h, g
}

// bestGamma is the least-squares γ for given α and β; never negative.
func bestGamma(points []Point, c Coefficients) float64 {
	var fx, ff float64
	for _, p := range points {
		f := Coefficients{1, c.Alpha, c.Beta}.At(p.Concurrency)
		fx += p.Weight * f * p.Throughput
		ff += p.Weight * f * f
	}
	if ff == 0 || math.IsNaN(ff) || math.IsInf(ff, 0) {
		return 0
	}
	return max(0, fx/ff)
}

func clamp(v [3]float64, b bounds) [3]float64 {
	for i := range v {
		v[i] = min(max(v[i], b.low[i]), b.high[i])
	}
	return v
}

// solve3 solves the symmetric system h·x = g over the free unknowns, the others being zero, by Cholesky's
// decomposition after scaling the diagonal to one. ok is false when the system is not positive definite.
func solve3(h [3][3]float64, g [3]float64, free [3]bool) (x [3]float64, ok bool) {
	inv, ok := invert3(h, free)
	if !ok {
		return x, false
	}
	for i := range 3 {
		for j := range 3 {
			x[i] += inv[i][j] * g[j]
		}
	}
	return x, true
}

// invert3 inverts the free rows and columns of a symmetric positive definite matrix; the rest of the result is zero.
func invert3(h [3][3]float64, free [3]bool) (inv [3][3]float64, ok bool) {
	var at [3]int
	k := 0
	for i := range 3 {
		if free[i] {
			if !(h[i][i] > 0) || math.IsInf(h[i][i], 1) {
				return inv, false
			}
			at[k], k = i, k+1
		}
	}
	var l [3][3]float64 // of the scaled matrix
	for i := range k {
		for j := range i + 1 {
			sum := h[at[i]][at[j]] / math.Sqrt(h[at[i]][at[i]]) / math.Sqrt(h[at[j]][at[j]])
			for m := range j {
				sum -= l[i][m] * l[j][m]
			}
			if i != j {
				l[i][j] = sum / l[j][j]
				continue
			}
			if !(sum > 1e-13) {
				return inv, false
			}
			l[i][i] = math.Sqrt(sum)
		}
	}
	var li [3][3]float64 // inverse of l
	for i := range k {
		li[i][i] = 1 / l[i][i]
		for j := range i {
			var sum float64
			for m := j; m < i; m++ {
				sum -= l[i][m] * li[m][j]
			}
			li[i][j] = sum / l[i][i]
		}
	}
	for i := range k {
		for j := range k {
			var sum float64
			for m := max(i, j); m < k; m++ {
				sum += li[m][i] * li[m][j]
			}
			inv[at[i]][at[j]] = sum / math.Sqrt(h[at[i]][at[i]]) / math.Sqrt(h[at[j]][at[j]])
		}
	}
	return inv, true
}
