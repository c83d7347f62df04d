package reporttest

import (
	"math"
	"math/rand/v2"
)

// Dependent makes n values of a first-order autoregressive series of the given mean, relative spread and coefficient.
func Dependent(r *rand.Rand, n int, mean, spread, phi float64) []float64 {
	out, x := make([]float64, n), r.NormFloat64()
	for i := range out {
		x = phi*x + math.Sqrt(1-phi*phi)*r.NormFloat64()
		out[i] = mean * (1 + spread*x)
	}
	return out
}
