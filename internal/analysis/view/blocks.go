package view

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Bootstrap of dependent series: how often a stretch is drawn anew, and how many blocks it must hold.
const (
	blockRounds  = 1000
	FewestBlocks = 6
)

// Flow is a stretch of a series whose level is Σ amount ÷ Σ per: operations per interval, or seconds of latency per
// operation. The two have equal length and no gaps.
type Flow struct{ Amount, per []float64 }

// FlowOf pairs values and weights where both are known. Without weights every interval counts once.
func FlowOf(values, weights []float64) Flow {
	var f Flow
	for i, v := range values {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if IsFinite(v) && IsFinite(w) {
			f.Amount, f.per = append(f.Amount, v), append(f.per, w)
		}
	}
	return f
}

// Level is the mean of the values, by their weights.
func (f Flow) Level() float64 { return Total(f.Amount) / Total(f.per) }

// Each are the values of its points, by their weights.
func (f Flow) Each() []float64 {
	out := make([]float64, len(f.Amount))
	for i := range out {
		out[i] = f.Amount[i] / f.per[i]
	}
	return out
}

// Part is the flow from one point on, up to another.
func (f Flow) Part(from, to int) Flow { return Flow{f.Amount[from:to], f.per[from:to]} }

// Ends are the levels of its first and its last quarter; not ok where there are fewer than eight points.
func (f Flow) Ends() (begins, ends float64, ok bool) {
	const fewest = 8
	n := len(f.Amount)
	if n < fewest {
		return 0, 0, false
	}
	return f.Part(0, n/4).Level(), f.Part(n-n/4, n).Level(), true
}

// Total is the sum of values without gaps.
func Total(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// blockLength is how many neighbouring points are drawn together: at least three times the integrated autocorrelation
// time, and at least the cube root of the length (Hall, Horowitz and Jing 1995 give that order). Twice the time covered
// 92 % in the test.
func (f Flow) blockLength() int {
	n := len(f.Amount)
	level := f.Level()
	influence := make([]float64, n)
	for i := range influence {
		influence[i] = f.Amount[i] - level*f.per[i]
	}
	return int(math.Ceil(max(3*serial.Time(influence), math.Cbrt(float64(n)))))
}

// BlockRatio is b's level over a's with an interval by the circular block bootstrap (Politis and Romano 1992), which
// allows for the dependence of neighbouring points. Its percentiles are read at the level that few blocks need.
func BlockRatio(a, b Flow) (r float64, in resample.Interval) {
	la, lb := a.Level(), b.Level()
	r = lb / la
	if !(la > 0) || !(lb > 0) || !IsFinite(r) {
		return r, resample.None("one of the two is 0 or not known")
	}
	na, nb := a.blockLength(), b.blockLength()
	blocks := min(len(a.Amount)/na, len(b.Amount)/nb)
	if blocks < FewestBlocks {
		return r, resample.None(
			fmt.Sprintf("the series is too short for its own dependence: %s of points, %d are needed",
				Plural(blocks, "block"), FewestBlocks),
		)
	}
	random := resample.Source(resample.DefaultSeed, uint64(len(a.Amount))<<32|uint64(len(b.Amount)))
	draw := func(f Flow, block int) float64 {
		n := len(f.Amount)
		var amount, per float64
		for range n / block {
			from := random.IntN(n)
			for i := range block {
				at := (from + i) % n
				amount, per = amount+f.Amount[at], per+f.per[at]
			}
		}
		return amount / per
	}
	replicates := make([]float64, 0, blockRounds)
	for range blockRounds {
		if x := math.Log(draw(b, nb) / draw(a, na)); IsFinite(x) {
			replicates = append(replicates, x)
		}
	}
	if len(replicates) < blockRounds*9/10 {
		return r, resample.None("the series has too many empty intervals")
	}
	nominal := resample.Expand(Confidence, float64(blocks-1), blocks)
	return r, resample.Percentile(replicates, nominal, Confidence, "circular block bootstrap").Map(math.Exp)
}

// Counts reports whether values of equal intervals, in units a second, vary no more than counts of events that come by
// chance would, so that an interval from their number alone is not too narrow: their index of dispersion lies below
// what chance exceeds in 1 of 100 (Cochran, Biometrics 10, 1954; its quantile by Wilson and Hilferty, 1931).
func Counts(rates []float64, seconds float64) bool {
	known, _ := FiniteOf(rates)
	n := float64(len(known) - 1)
	mean := Total(known) / (n + 1)
	if n < 1 || !(mean > 0) {
		return true // nothing says otherwise
	}
	var squares float64
	for _, x := range known {
		squares += (x - mean) * (x - mean)
	}
	const rare = 2.3263 // standard deviations that a normal exceeds in 1 of 100
	return squares*seconds/mean <= n*math.Pow(1-2/(9*n)+rare*math.Sqrt(2/(9*n)), 3)
}

// Separate reports whether nine tenths of some points lie beyond nine tenths of others, three points or more on each
// side: then they moved, though they are too few for an interval.
func Separate(a, b []float64) bool {
	a, _ = FiniteOf(a)
	b, _ = FiniteOf(b)
	const fewest = 3
	if min(len(a), len(b)) < fewest {
		return false
	}
	slices.Sort(a)
	slices.Sort(b)
	high := func(x []float64) float64 { return x[len(x)-1-len(x)/10] }
	low := func(x []float64) float64 { return x[len(x)/10] }
	return high(a) < low(b) || high(b) < low(a)
}
