package effect

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/hist"
	"plimsoll/internal/analysis/resample"
)

// QuantileComparison is the outcome for one percentile. Values are in the unit of the histograms, by convention
// nanoseconds.
type QuantileComparison struct {
	Quantile              float64 // 0.99 for p99
	Baseline, Candidate   Estimate
	Difference, Ratio     Estimate // ratio NaN with a reason when a side is zero
	BaselineN, CandidateN uint64   // values counted
	Verdict               Verdict
	Warnings              []string
}

// fewestRuns is the number of repeats a side from which the spread between runs is estimated.
const fewestRuns = 3

// Histograms compares percentiles of two sides, each given as one histogram per repeat. A percentile is always
// read from the merged counts of all repeats.
//
// With three or more repeats on both sides its interval comes from leaving out one repeat at a time (the jackknife over runs,
// on logarithms), so that it holds the spread between runs. With fewer it can only hold the spread within:
// order statistics by the binomial distribution for each side, joined by the method of Zou and Donner (2008); I/Os of
// one run are not independent, and a warning says so. Either way the interval is widened by the error of a bucket. The
// end of an interval is infinite, or zero, where too few values lie beyond the percentile to bound it.
func Histograms(baseline, candidate []*hist.Histogram, quantiles []float64, o Options) ([]QuantileComparison, error) {
	if o.Direction == "" {
		o.Direction = LowerIsBetter // these are latencies
	}
	o, err := o.filled()
	b, berr := merge("baseline", baseline)
	c, cerr := merge("candidate", candidate)
	err = errors.Join(err, berr, cerr)
	for _, q := range quantiles {
		if !(q > 0 && q < 1) {
			err = errors.Join(err, fmt.Errorf("effect: quantile %v: must lie between 0 and 1, as 0.99", q))
		}
	}
	if err != nil {
		return nil, err
	}
	out := make([]QuantileComparison, len(quantiles))
	for i, q := range quantiles {
		out[i] = quantile(q, side{b, baseline}, side{c, candidate}, o)
	}
	return out, nil
}

type side struct {
	merged *hist.Histogram
	runs   []*hist.Histogram
}

func merge(name string, runs []*hist.Histogram) (*hist.Histogram, error) {
	m := &hist.Histogram{}
	for i, h := range runs {
		if h == nil || h.Count() == 0 {
			return nil, fmt.Errorf("effect: %s: histogram %d is empty: leave it out", name, i+1)
		}
		m.Merge(h)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("effect: %s: no histograms", name)
	}
	return m, nil
}

func quantile(q float64, b, c side, o Options) QuantileComparison {
	out := QuantileComparison{Quantile: q, BaselineN: b.merged.Count(), CandidateN: c.merged.Count()}
	out.Baseline, out.Candidate = orderStatistic(b.merged, q, o.Confidence), orderStatistic(c.merged, q, o.Confidence)
	out.Difference.Value = out.Candidate.Value - out.Baseline.Value
	switch {
	case out.Baseline.Value == 0 || out.Candidate.Value == 0:
		reason := resample.None("a percentile of zero has no ratio")
		out.Ratio, out.Difference.Interval = Estimate{math.NaN(), reason}, reason
	case min(len(b.runs), len(c.runs)) >= fewestRuns:
		out.betweenRuns(b, c, o.Confidence)
	default:
		out.withinRuns(o.Confidence)
		out.Warnings = append(out.Warnings, "the interval holds the spread within runs only, as if I/Os were independent: make 3 or more repeats of each side")
	}
	for _, s := range []side{b, c} {
		if s.merged.Saturated() > 0 {
			out.Warnings = append(out.Warnings, "some values lie in the last bucket of the tool's histogram, beyond 17 s: their true size is unknown")
			break
		}
	}
	if math.IsInf(out.Ratio.Interval.High, 1) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("too few values beyond p%g to bound it from above", q*100))
	}
	out.Verdict = decide(out.Ratio, out.Difference, out.Baseline.Value, o)
	return out
}

// orderStatistic is a quantile with its distribution-free interval: the ranks that enclose a binomial count with
// the confidence asked for (Hahn and Meeker 1991, chapter 5), widened to the edges of their buckets. Tails are taken at
// mid-p, half the chance of the rank itself: strict tails cover too much, the more so once two sides are joined.
func orderStatistic(h *hist.Histogram, q, confidence float64) Estimate {
	v, _ := h.Quantile(q)
	n, tail := float64(h.Count()), (1-confidence)/2
	var low, high float64 // ranks
	if variance := n * q * (1 - q); variance > 25 {
		half := distuv.UnitNormal.Quantile(1-tail) * math.Sqrt(variance)
		low, high = math.Floor(n*q-half+0.5), math.Ceil(n*q+half+0.5)
	} else {
		count := distuv.Binomial{N: n, P: q}
		low = rankBelow(count, tail)
		high = rankAbove(count, tail)
	}
	i := resample.Interval{High: math.Inf(1), Confidence: confidence, Method: "order statistics"}
	if low >= 1 {
		i.Low, _ = edges(h, uint64(low))
	}
	if high <= n {
		_, i.High = edges(h, uint64(high))
	}
	return Estimate{float64(v), i}
}

// rankBelow is the largest rank that tail of the distribution lies below, or 0; rankAbove the smallest that tail lies above.
func rankBelow(count distuv.Binomial, tail float64) float64 {
	return search(count.N, func(r float64) bool { return r > 0 && midP(count, r-1) > tail }) - 1
}

func rankAbove(count distuv.Binomial, tail float64) float64 {
	return search(count.N, func(r float64) bool { return r > 0 && midP(count, r-1) >= 1-tail })
}

func midP(count distuv.Binomial, r float64) float64 { return count.CDF(r) - count.Prob(r)/2 }

// search is the smallest rank up to n+1 for which yes, which turns true once, holds.
func search(n float64, yes func(float64) bool) float64 {
	low, high := 0.0, n+1
	for low < high {
		middle := math.Floor((low + high) / 2)
		if middle > n || yes(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high
}

// edges of the bucket that holds a rank, counted from 1, within the smallest and largest value seen.
func edges(h *hist.Histogram, rank uint64) (low, high float64) {
	var seen uint64
	for _, b := range h.Buckets() {
		if seen += b.Count; seen >= rank {
			return float64(max(b.Low, h.Min())), float64(min(b.High, h.Max()))
		}
	}
	return float64(h.Max()), float64(h.Max())
}

// withinRuns joins the two intervals by "recovering" a variance for each end from each side (Zou and Donner 2008,
// equations for a difference; here on logarithms for the ratio).
func (c *QuantileComparison) withinRuns(confidence float64) {
	join := func(b, k Estimate) resample.Interval {
		d := k.Value - b.Value
		return resample.Interval{
			Low:        d - math.Hypot(k.Value-k.Interval.Low, b.Interval.High-b.Value),
			High:       d + math.Hypot(k.Interval.High-k.Value, b.Value-b.Interval.Low),
			Confidence: confidence, Method: "order statistics, joined by Zou and Donner",
		}
	}
	log := func(e Estimate) Estimate { return Estimate{math.Log(e.Value), e.Interval.Map(math.Log)} }
	c.Difference.Interval = join(c.Baseline, c.Candidate)
	c.Ratio = Estimate{c.Candidate.Value / c.Baseline.Value, join(log(c.Baseline), log(c.Candidate)).Map(math.Exp)}
}

// betweenRuns estimates the variance of each side's log percentile by leaving out runs, and joins them as
// Welch does. The interval of the difference follows from that of each side by the delta method.
func (c *QuantileComparison) betweenRuns(b, k side, confidence float64) {
	vb, vk := jackknife(b, c.Quantile), jackknife(k, c.Quantile)
	set := func(e *Estimate, v float64, runs int) {
		half := resample.StudentT(confidence, float64(runs-1)) * math.Sqrt(v)
		e.Interval = between(e.Value*math.Exp(-half), e.Value*math.Exp(half), confidence)
	}
	set(&c.Baseline, vb, len(b.runs))
	set(&c.Candidate, vk, len(k.runs))
	se, dof := satterthwaite(vb, vk, len(b.runs), len(k.runs))
	half := resample.StudentT(confidence, dof)*se + 2*hist.RelativeError
	c.Ratio.Value = c.Candidate.Value / c.Baseline.Value
	c.Ratio.Interval = between(c.Ratio.Value*math.Exp(-half), c.Ratio.Value*math.Exp(half), confidence)
	db, dk := vb*c.Baseline.Value*c.Baseline.Value, vk*c.Candidate.Value*c.Candidate.Value
	se, dof = satterthwaite(db, dk, len(b.runs), len(k.runs))
	half = resample.StudentT(confidence, dof)*se + hist.RelativeError*(c.Baseline.Value+c.Candidate.Value)
	c.Difference.Interval = between(c.Difference.Value-half, c.Difference.Value+half, confidence)
}

func between(low, high, confidence float64) resample.Interval {
	return resample.Interval{Low: low, High: high, Confidence: confidence, Method: "jackknife over runs"}
}

// jackknife is the variance of the logarithm of a merged quantile, (k−1)/k·Σ(θ₋ᵢ−θ̄)², θ₋ᵢ being its value without
// run i. Leaving out whole runs, it is consistent for quantiles, as leaving out single values is not (Shao and Wu 1989).
func jackknife(s side, q float64) float64 {
	logs := make([]float64, len(s.runs))
	var mean, sum float64
	for out := range s.runs {
		rest := &hist.Histogram{}
		for i, h := range s.runs {
			if i != out {
				rest.Merge(h)
			}
		}
		v, _ := rest.Quantile(q)
		logs[out] = math.Log(max(1, float64(v)))
		mean += logs[out] / float64(len(logs))
	}
	for _, l := range logs {
		sum += (l - mean) * (l - mean)
	}
	k := float64(len(logs))
	return sum * (k - 1) / k
}
