// Package lawtest draws series whose law is known, for the tests of the methods under internal/analysis: a level of
// 1000, a noise and a shape over time. Tests only: no shipped package imports this one.
//
// Every noise has mean 0 and, where it has one, standard deviation 1; every shape is a share of the level, so that a
// series is 1000·(1 + shape + spread·noise).
package lawtest

import (
	"math"
	"math/rand/v2"
)

// Level of every series before its shape.
const Level = 1000.0

// Noise draws n values.
type Noise func(r *rand.Rand, n int) []float64

// White is independent and normal.
func White(r *rand.Rand, n int) []float64 { return AR(0)(r, n) }

// AR is normal with first-order dependence phi, in its stationary state from the first value on.
func AR(phi float64) Noise {
	return func(r *rand.Rand, n int) []float64 {
		out, state := make([]float64, n), r.NormFloat64()
		for i := range out {
			out[i] = state
			state = phi*state + math.Sqrt(1-phi*phi)*r.NormFloat64()
		}
		return out
	}
}

// Heavy is independent: Student's t with three degrees of freedom.
func Heavy(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		out[i] = r.NormFloat64() / math.Sqrt(a*a+b*b+c*c)
	}
	return out
}

// Skewed is independent: lognormal with sigma 1, centred.
func Skewed(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	mean := math.Exp(0.5)
	for i := range out {
		out[i] = (math.Exp(r.NormFloat64()) - mean) / (mean * math.Sqrt(math.E-1))
	}
	return out
}

// Coarse is independent, in steps of one standard deviation: a counter that shows few different values.
func Coarse(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Round(r.NormFloat64())
	}
	return out
}

// Outliers is independent and normal but for one value in fifty, ten times as far away.
func Outliers(r *rand.Rand, n int) []float64 {
	out := White(r, n)
	for i := range out {
		if r.IntN(50) == 0 {
			out[i] *= 10
		}
	}
	return out
}

// Walk adds up independent normal steps; it has no level.
func Walk(r *rand.Rand, n int) []float64 {
	out := White(r, n)
	for i := 1; i < n; i++ {
		out[i] += out[i-1]
	}
	return out
}

// Shape moves a series beside its noise: by a share of the level at point i of n.
type Shape func(i, n int) float64

// Flat does nothing.
func Flat(int, int) float64 { return 0 }

// Line moves by a share of the level from the first point to the last.
func Line(share float64) Shape {
	return func(i, n int) float64 { return share * float64(i) / float64(n-1) }
}

// StepAt moves by a share of the level at a share of the time.
func StepAt(at, share float64) Shape {
	return func(i, n int) float64 {
		if float64(i) < at*float64(n) {
			return 0
		}
		return share
	}
}

// Hole moves by a share of the level for so many points from a share of the time on.
func Hole(at float64, points int, share float64) Shape {
	return func(i, n int) float64 {
		if from := int(at * float64(n)); i < from || i >= from+points {
			return 0
		}
		return share
	}
}

// Wave swings with so many periods in the series and an amplitude that grows from one share of the level to another.
func Wave(periods, first, last float64) Shape {
	return func(i, n int) float64 {
		at := float64(i) / float64(n)
		return (first + (last-first)*at) * math.Sin(2*math.Pi*periods*at)
	}
}

// Settling approaches the level from a share of it away, by e every so many points.
func Settling(share, points float64) Shape {
	return func(i, _ int) float64 { return share * math.Exp(-float64(i)/points) }
}

// Every moves by a share of the level for the first long points of each period.
func Every(period, long int, share float64) Shape {
	return func(i, _ int) float64 {
		if i%period < long {
			return share
		}
		return 0
	}
}

// Series is Level·(1 + shape + spread·noise).
func Series(r *rand.Rand, n int, shape Shape, spread float64, noise Noise) []float64 {
	x := noise(r, n)
	for i := range x {
		x[i] = Level * (1 + shape(i, n) + spread*x[i])
	}
	return x
}

// Widening is Series with a spread that moves evenly from one value to another.
func Widening(r *rand.Rand, n int, first, last float64, noise Noise) []float64 {
	x := noise(r, n)
	for i := range x {
		x[i] = Level * (1 + (first+(last-first)*float64(i)/float64(n))*x[i])
	}
	return x
}

// Multiplied is a level whose noise is multiplied on: e to the spread times the noise, divided by the mean of that for
// normal noise.
func Multiplied(r *rand.Rand, n int, spread float64, noise Noise) []float64 {
	x := noise(r, n)
	for i := range x {
		x[i] = Level * math.Exp(spread*x[i]-spread*spread/2)
	}
	return x
}

// Levels stays at a normal level of so much spread for a random time, of so many points in the mean, and goes on to
// another.
func Levels(r *rand.Rand, n, points int, spread float64) Shape {
	levels := make([]float64, n)
	for at := 0; at < n; {
		to := min(n, at+1+int(r.ExpFloat64()*float64(points)))
		for level := spread * r.NormFloat64(); at < to; at++ {
			levels[at] = level
		}
	}
	return func(i, _ int) float64 { return levels[i] }
}
