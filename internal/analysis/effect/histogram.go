package effect

import (
	"errors"
	"fmt"
	"math"

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
const fewestRuns = 2

// Histograms compares percentiles of two sides, each given as one histogram per repeat. A percentile is always
// read from the merged counts of all repeats.
//
// With two or more repeats on both sides its interval comes from leaving out one repeat at a time (the jackknife over
// runs, on logarithms), so that it holds the spread between runs. With one it can only hold the spread within, as
// Within gives it for independent values; I/Os of one run are not independent, and a warning says so.
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
		if min(len(baseline), len(candidate)) < fewestRuns {
			out[i] = within(q, Side{Merged: b}, Side{Merged: c}, o)
			out[i].Warnings = append(out[i].Warnings,
				"the interval holds the spread within runs only, as if I/Os were independent: make 3 or more repeats of each side")
			continue
		}
		out[i] = quantile(q, b, c, o)
		if out[i].Ratio.Interval.Reason == "" {
			out[i].betweenRuns(side{b, baseline}, side{c, candidate}, o.Confidence)
		}
		out[i].Verdict = Decide(relativeInterval(out[i].Ratio, out[i].Difference, out[i].Baseline.Value), o.Threshold,
			o.Direction)
	}
	return out, nil
}

// Percentile is a percentile of the merged counts of repeats, with the interval that leaving out one at a time gives;
// ok is false where too few values lie beyond it. Values are in the unit of the histograms.
func Percentile(runs []*hist.Histogram, q, confidence float64) (e Estimate, ok bool) {
	m, err := merge("repeats", runs)
	if err != nil {
		return e, false
	}
	v, ok := m.Percentile(q)
	e.Value = float64(v)
	switch x := (Side{Merged: m}).at(q); {
	case len(runs) < fewestRuns:
		e.Interval = resample.None("one run says nothing of what another would give")
	case !(x > 0):
		e.Interval = resample.None("a percentile of zero has no ratio")
	default:
		half := resample.StudentT(confidence, float64(len(runs)-1)) * math.Sqrt(jackknife(side{m, runs}, q))
		e.Interval = resample.Interval{Low: min(x*math.Exp(-half), e.Value), High: max(x*math.Exp(half), e.Value),
			Confidence: confidence, Method: "jackknife over runs"}
	}
	return e, ok
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

// quantile is the comparison without intervals, or with the reason why there are none.
func quantile(q float64, b, c *hist.Histogram, o Options) QuantileComparison {
	out := QuantileComparison{Quantile: q, BaselineN: b.Count(), CandidateN: c.Count()}
	vb, _ := b.Quantile(q)
	vc, _ := c.Quantile(q)
	out.Baseline.Value, out.Candidate.Value = float64(vb), float64(vc)
	out.Difference.Value, out.Ratio.Value = out.Candidate.Value-out.Baseline.Value,
		out.Candidate.Value/out.Baseline.Value
	if vb == 0 || vc == 0 {
		reason := resample.None("a percentile of zero has no ratio")
		out.Ratio, out.Difference.Interval = Estimate{math.NaN(), reason}, reason
	}
	if b.Saturated() > 0 || c.Saturated() > 0 {
		out.Warnings = append(out.Warnings,
			"some values lie in the last bucket of the tool's histogram, beyond 17 s: their true size is unknown")
	}
	return out
}

// betweenRuns estimates the variance of each side's log percentile by leaving out runs, and joins them as
// Welch does. The interval of the difference follows from that of each side by the delta method.
func (c *QuantileComparison) betweenRuns(b, k side, confidence float64) {
	vb, vk := jackknife(b, c.Quantile), jackknife(k, c.Quantile)
	xb, xk := Side{Merged: b.merged}.at(c.Quantile), Side{Merged: k.merged}.at(c.Quantile)
	around := func(middle, half float64) resample.Interval {
		return resample.Interval{
			Low:        middle - half,
			High:       middle + half,
			Confidence: confidence,
			Method:     "jackknife over runs",
		}
	}
	own := func(x, v float64, runs int) resample.Interval {
		return around(math.Log(x), resample.StudentT(confidence, float64(runs-1))*math.Sqrt(v)).Map(math.Exp)
	}
	c.Baseline.Interval, c.Candidate.Interval = own(xb, vb, len(b.runs)), own(xk, vk, len(k.runs))
	se, dof := satterthwaite(vb, vk, len(b.runs), len(k.runs))
	c.Ratio.Interval = around(math.Log(xk/xb), resample.StudentT(confidence, dof)*se).Map(math.Exp)
	se, dof = satterthwaite(vb*xb*xb, vk*xk*xk, len(b.runs), len(k.runs))
	c.Difference.Interval = around(xk-xb, resample.StudentT(confidence, dof)*se)
	c.resolve(xb, xk, confidence)
}

// jackknife is the variance of the logarithm of a merged quantile, (k−1)/k·Σ(θ₋ᵢ−θ̄)², θ₋ᵢ being its value without
// run i. Leaving out whole runs, it is consistent for quantiles, as leaving out single values is not (Shao and Wu
// 1989).
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
		logs[out] = math.Log(max(1, Side{Merged: rest}.at(q)))
		mean += logs[out] / float64(len(logs))
	}
	for _, l := range logs {
		sum += (l - mean) * (l - mean)
	}
	k := float64(len(logs))
	return sum * (k - 1) / k
}
