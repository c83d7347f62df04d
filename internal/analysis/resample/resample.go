// Package resample is the seeded engine under every simulated interval and permutation test of the analysis.
//
// It gives the type Interval that all statistics of the analysis return, quantiles of sorted numbers, percentile
// and BCa bootstrap intervals with a correction for small samples, draws with replacement, and a permutation test
// that stops early. Everything random takes an explicit *rand.Rand; the same seed gives
// the same answer on every machine. It refuses to invent: an interval that cannot be had carries its reason.
//
// Pure: no I/O, no clock, no shared random state.
package resample

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// DefaultSeed is used by packages of the analysis when their caller names no seed. It is fixed, so that
// analysing a folder twice gives the same bytes.
const DefaultSeed = 20260101

// Interval is a confidence interval, or the reason why there is none. An end may be infinite, when the data do
// not bound the quantity on that side.
type Interval struct {
	Low, High  float64
	Confidence float64 // 0.95 for 95 %; 0 when there is no interval
	Method     string  // how it was made, in words fit for a report
	Reason     string  // why there is none; empty when there is one
}

// None is the absence of an interval, with the reason.
func None(reason string) Interval { return Interval{Reason: reason} }

// Valid reports whether there is an interval.
func (i Interval) Valid() bool { return i.Confidence > 0 }

// Contains reports whether v lies in the interval, ends included. An absent interval contains nothing.
func (i Interval) Contains(v float64) bool { return i.Valid() && i.Low <= v && v <= i.High }

// Map applies a monotonically increasing function to both ends.
func (i Interval) Map(f func(float64) float64) Interval {
	if i.Valid() {
		i.Low, i.High = f(i.Low), f(i.High)
	}
	return i
}

// Clamp limits the interval to the range a quantity can have.
func (i Interval) Clamp(low, high float64) Interval {
	return i.Map(func(v float64) float64 { return min(max(v, low), high) })
}

// MarshalJSON writes an infinite end as null, and an absent interval as its reason alone.
func (i Interval) MarshalJSON() ([]byte, error) {
	type finite struct {
		Low        *float64 `json:"low"`
		High       *float64 `json:"high"`
		Confidence float64  `json:"confidence"`
		Method     string   `json:"method"`
	}
	if !i.Valid() {
		return json.Marshal(map[string]string{"no_interval": i.Reason})
	}
	f := finite{Confidence: i.Confidence, Method: i.Method}
	if !math.IsInf(i.Low, 0) && !math.IsNaN(i.Low) {
		f.Low = &i.Low
	}
	if !math.IsInf(i.High, 0) && !math.IsNaN(i.High) {
		f.High = &i.High
	}
	return json.Marshal(f)
}

// String prints the interval with four significant digits.
func (i Interval) String() string {
	if !i.Valid() {
		return "no interval: " + i.Reason
	}
	return fmt.Sprintf("%.4g to %.4g (%g %%, %s)", i.Low, i.High, i.Confidence*100, i.Method)
}

// Source returns a generator for a seed. Different streams of one seed are independent, so that parts of an
// analysis do not disturb each other's draws.
func Source(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// Draw fills dst with indices below n, drawn with replacement.
func Draw(r *rand.Rand, n int, dst []int) {
	for i := range dst {
		dst[i] = r.IntN(n)
	}
}

// Quantile reads quantile p of ascending numbers, interpolating linearly between order statistics (type 7 of
// Hyndman and Fan 1996, the default of R). NaN when there are none or p is outside [0, 1].
func Quantile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	at := p * float64(n-1)
	i := int(at)
	if i+1 >= n {
		return sorted[n-1]
	}
	low, high, f := sorted[i], sorted[i+1], at-float64(i)
	if f == 0 || low == high { // also keeps infinities that are equal or not reached
		return low
	}
	return low + f*(high-low)
}

// Median of numbers in any order; NaN when there are none. The argument is not changed.
func Median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return Quantile(s, 0.5)
}

// StudentT is the two-sided quantile of Student's t: P(|t| <= StudentT(c, dof)) = c.
func StudentT(confidence, dof float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: dof}.Quantile(0.5 + confidence/2)
}

// Expand returns the nominal level at which a bootstrap interval must be read so that it covers confidence in a small
// sample: the normal tail beyond √(n/(n−1))·t (Hesterberg 2015, "expanded percentile interval"). Student's t with dof
// degrees of freedom stands in for the z that bootstrap percentiles behave like; the factor makes up for n values drawn
// from themselves spreading too little. n is 0 when what is drawn was already scaled for that, as residuals are.
func Expand(confidence, dof float64, n int) float64 {
	t := StudentT(confidence, dof)
	if n > 1 {
		t *= math.Sqrt(float64(n) / float64(n-1))
	}
	return 1 - 2*distuv.UnitNormal.CDF(-t)
}

// Percentile is the plain percentile interval of bootstrap replicates at the nominal level given, labelled with
// confidence. Infinite replicates are allowed; NaN ones make the interval impossible. The replicates are sorted
// in place.
func Percentile(replicates []float64, nominal, confidence float64, method string) Interval {
	if bad := unusable(replicates); bad != "" {
		return None(bad)
	}
	slices.Sort(replicates)
	tail := (1 - nominal) / 2
	return Interval{
		Low: Quantile(replicates, tail), High: Quantile(replicates, 1-tail),
		Confidence: confidence, Method: method,
	}
}

// BCa is the bias-corrected and accelerated interval (Efron 1987; Efron and Tibshirani 1993, chapter 14).
// The acceleration comes from the jackknife values of the statistic, see Acceleration. The replicates are sorted in
// place.
func BCa(estimate, acceleration float64, replicates []float64, nominal, confidence float64, method string) Interval {
	if bad := unusable(replicates); bad != "" {
		return None(bad)
	}
	slices.Sort(replicates)
	below, _ := slices.BinarySearch(replicates, estimate)
	upto := below
	for upto < len(replicates) && replicates[upto] == estimate {
		upto++
	}
	share := (float64(below) + float64(upto)) / 2 / float64(len(replicates)) // ties count half
	if share <= 0 || share >= 1 {
		return None("all bootstrap replicates lie on one side of the estimate")
	}
	z0 := distuv.UnitNormal.Quantile(share)
	end := func(p float64) float64 {
		z := z0 + distuv.UnitNormal.Quantile(p)
		return distuv.UnitNormal.CDF(z0 + z/(1-acceleration*z))
	}
	tail := (1 - nominal) / 2
	return Interval{
		Low: Quantile(replicates, end(tail)), High: Quantile(replicates, end(1-tail)),
		Confidence: confidence, Method: method,
	}
}

func unusable(replicates []float64) string {
	if len(replicates) < 100 {
		return fmt.Sprintf("%d bootstrap replicates, at least 100 are needed", len(replicates))
	}
	if slices.ContainsFunc(replicates, math.IsNaN) {
		return "the statistic is undefined on some resamples"
	}
	return ""
}

// Acceleration is the BCa constant of independent strata from their jackknife values: each slice holds the
// statistic with one observation of that stratum left out. One stratum gives Efron and Tibshirani's (14.15); for
// several, the empirical influences are pooled (Davison and Hinkley 1997, chapter 5).
func Acceleration(strata ...[]float64) float64 {
	var cubes, squares float64
	for _, jack := range strata {
		n := float64(len(jack))
		if n < 2 {
			continue
		}
		var mean float64
		for _, v := range jack {
			mean += v / n
		}
		for _, v := range jack {
			influence := (n - 1) * (mean - v)
			cubes += influence * influence * influence / (n * n * n)
			squares += influence * influence / (n * n)
		}
	}
	if squares == 0 || math.IsNaN(squares) || math.IsInf(squares, 0) {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// Permutation estimates the chance of a statistic at least as large as observed under rearrangement. draw must
// return the statistic of one fresh random rearrangement. The estimate (1+exceeding)/(1+rounds) is exact for any
// number of rounds. It stops once exceed rearrangements reached the observed value, when no more rounds could make
// the result small, and then returns exceed/drawn (Besag and Clifford 1991).
func Permutation(observed float64, rounds, exceed int, draw func() float64) (p float64) {
	reached := 0
	for i := 1; i <= rounds; i++ {
		if draw() >= observed {
			if reached++; reached >= exceed {
				return float64(reached) / float64(i)
			}
		}
	}
	return float64(reached+1) / float64(rounds+1)
}
