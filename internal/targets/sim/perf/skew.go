package perf

import (
	"math"

	"plimsoll/result"
)

// Hottest is the share of operations that go to the hottest part x, in [0, 1], of an extent of so many blocks.
//
//	uniform  x
//	Zipf     H(x·blocks, theta) / H(blocks, theta), H the generalised harmonic number
//	Pareto   x^a, a = ln(1-h)/ln h, so that the part h gets 1-h of them; with h above a half fio's hottest
//	         data are the last: 1-(1-x)^a
func Hottest(s result.Skew, x, blocks float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case s.Kind == result.Zipf && s.Value > 0:
		return min(harmonic(max(1, blocks)*x, s.Value)/harmonic(max(1, blocks), s.Value), 1)
	case s.Kind == result.Pareto && s.Value > 0 && s.Value < 1:
		a := math.Log1p(-s.Value) / math.Log(s.Value)
		if a > 1 {
			return -math.Expm1(a * math.Log1p(-x))
		}
		return math.Pow(x, a)
	}
	return x
}

// harmonic is the sum of i^-s for i from 1 to n, for any real n at least 0, by the Euler-Maclaurin formula from the
// 16th term on (error below 1e-7 of the sum for s up to 3). Between whole numbers below 16 it is interpolated.
func harmonic(n, s float64) float64 {
	const direct = 16
	var sum float64
	for i := 1.0; i <= min(n, direct); i++ {
		sum += math.Pow(i, -s)
	}
	if n < direct {
		whole := math.Floor(n)
		return sum + (n-whole)*math.Pow(whole+1, -s)
	}
	tail := math.Log(n / direct)
	if s != 1 {
		tail = (math.Pow(n, 1-s) - math.Pow(direct, 1-s)) / (1 - s)
	}
	ends := (math.Pow(n, -s) - math.Pow(direct, -s)) / 2
	slopes := s / 12 * (math.Pow(direct, -s-1) - math.Pow(n, -s-1))
	return sum + tail + ends + slopes
}
