package view

import (
	"fmt"
	"math"

	"plimsoll/hist"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// Independent stands with every interval from counts of operations alone.
const Independent = "the interval takes operations as independent, which is too narrow when they come in bursts"

// Poisson is the 95 % interval of the expectation of a count, by Byar's approximation to the exact one
// (Breslow and Day, Statistical Methods in Cancer Research II, 1987, p. 69); it is within 1 % of exact from 2 on.
func Poisson(count uint64) (low, high float64) {
	k := float64(count)
	if count > 0 {
		low = k * math.Pow(1-1/(9*k)-NormalQuantile/(3*math.Sqrt(k)), 3)
	}
	k++
	high = k * math.Pow(1-1/(9*k)+NormalQuantile/(3*math.Sqrt(k)), 3)
	return max(0, low), high
}

// Proportion is the 95 % interval of k out of n (Wilson, JASA 22, 1927).
func Proportion(k, n uint64) (low, high float64) {
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	nf := float64(n)
	p := min(float64(k)/nf, 1)
	mid := (p + NormalQuantile*NormalQuantile/(2*nf)) / (1 + NormalQuantile*NormalQuantile/nf)
	half := NormalQuantile / (1 + NormalQuantile*NormalQuantile/nf) * math.Sqrt(
		p*(1-p)/nf+NormalQuantile*NormalQuantile/(4*nf*nf))
	return max(0, mid-half), min(1, mid+half)
}

// Outstanding is the mean number of operations in flight over a window of the given length and its 95 % interval. The
// total service time is treated as a compound Poisson sum, whose variance is the sum of the squared service times; a
// closed loop varies less than that, so the interval is on the wide side. ok is false without histograms.
func Outstanding(ops []result.OpTotals, window float64) (low, high float64, ok bool) {
	var squares float64
	_, service := Totals(ops)
	for _, o := range ops {
		if o.Hist == nil || o.Hist.Count() == 0 {
			return 0, 0, false
		}
		for _, b := range o.Hist.Buckets() {
			s := float64(hist.Middle(b.Index)) / 1e9
			squares += float64(b.Count) * s * s
		}
	}
	if !(window > 0) || squares == 0 {
		return 0, 0, false
	}
	half := NormalQuantile * math.Sqrt(squares)
	return max(0, service-half) / window, (service + half) / window, true
}

// Quantile reads a percentile in seconds with its 95 % interval from order statistics (ranks nq ± z√(nq(1-q))), widened
// by the histogram's own error. ok is false where there are too few operations to speak of it.
func Quantile(h *hist.Histogram, q float64) (v, low, high float64, ok bool) {
	return QuantileOf(h, q, 1)
}

// QuantileOf is Quantile with an interval that is one of several: all of them hold theirs at 95 % (Bonferroni).
func QuantileOf(h *hist.Histogram, q float64, several int) (v, low, high float64, ok bool) {
	mid, ok := h.Percentile(q)
	if !ok {
		return 0, 0, 0, false
	}
	n := float64(h.Count())
	half := math.Sqrt2 * math.Erfinv(1-(1-Confidence)/float64(max(1, several))) * math.Sqrt(q*(1-q)/n)
	lo, _ := h.Quantile(max(0, q-half))
	hi, _ := h.Quantile(min(1, q+half))
	return float64(mid) / 1e9, float64(
		lo) / 1e9 * (1 - hist.RelativeError), float64(hi) / 1e9 * (1 + hist.RelativeError), true
}

// Ratio is the 95 % interval of the ratio of two Poisson rates, normal on the logarithm.
func Ratio(count, base uint64, seconds, baseSeconds float64) (r, low, high float64) {
	r = float64(count) / seconds / (float64(base) / baseSeconds)
	if count == 0 || base == 0 {
		return r, math.NaN(), math.NaN()
	}
	half := NormalQuantile * math.Sqrt(1/float64(count)+1/float64(base))
	return r, r * math.Exp(-half), r * math.Exp(half)
}

// Worse is result.Finding.Harm of the ends of a ratio's interval; 0 where they do not lie beyond what is called a
// change.
func Worse(low, high, changed float64, better result.Direction) *float64 {
	log := 0.0
	switch {
	case low > 1+changed:
		log = math.Log(low)
	case high < 1-changed && high > 0:
		log = math.Log(high)
	}
	switch better {
	case result.Higher:
		log = -log
	case "":
		log = -math.Abs(log)
	}
	return &log
}

// SetInterval takes over an interval of the statistics, or its reason for none.
func SetInterval(f *result.Finding, in resample.Interval) {
	f.Low, f.High, f.NoInterval = nil, nil, in.Reason
	if in.Valid() && !math.IsInf(in.Low, 0) && !math.IsInf(in.High, 0) {
		f.Low, f.High = Ptr(in.Low), Ptr(in.High)
	} else if in.Valid() {
		f.NoInterval = fmt.Sprintf("bounded on one side only: %v", in)
	}
}
