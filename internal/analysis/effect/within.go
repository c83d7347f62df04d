package effect

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/hist"
	"plimsoll/internal/analysis/resample"
)

// Side holds what one side counted, and how far its values are from independent at the quantile that is compared.
type Side struct {
	Merged *hist.Histogram
	// Dependence is the variance of the share of values beyond the quantile over that of as many independent values
	// (the design effect of Kish 1965). 0 means 1.
	Dependence float64
	DOF        float64 // degrees of freedom with which Dependence is known; 0 means that it is certain
}

// Within compares a quantile of two sides by the spread within their runs.
//
// Each side's interval is that of Woodruff (1952): the quantile lies where the count below it lies, so the interval of
// the count is read on the histogram, and no density need be guessed. The count is binomial, of as many independent
// values as the dependent ones are worth (Korn and Graubard 1998, Survey Methodology 24), with Student's t for how well
// that is known; tails are taken at mid-p, half the chance of a count itself, since strict ones cover too much. Within
// a bucket values are taken to lie evenly. The two are joined
// by the method of Zou and Donner (2008). The interval is never narrower than the error of the two buckets. Its
// end is infinite, or zero, where too few values lie beyond the quantile to bound it.
func Within(baseline, candidate Side, q float64, o Options) (QuantileComparison, error) {
	if o.Direction == "" {
		o.Direction = LowerIsBetter
	}
	o, err := o.filled()
	for _, s := range []struct {
		name string
		Side
	}{{"baseline", baseline}, {"candidate", candidate}} {
		if s.Merged == nil || s.Merged.Count() == 0 {
			err = errors.Join(err, fmt.Errorf("effect: %s: histogram is empty", s.name))
		}
		if !(s.Dependence >= 0 && s.DOF >= 0) || math.IsInf(s.Dependence, 0) {
			err = errors.Join(
				err,
				fmt.Errorf("effect: %s: dependence %v with %v degrees of freedom: both must be finite and not negative",
					s.name, s.Dependence, s.DOF),
			)
		}
	}
	if !(q > 0 && q < 1) {
		err = errors.Join(err, fmt.Errorf("effect: quantile %v: must lie between 0 and 1, as 0.99", q))
	}
	if err != nil {
		return QuantileComparison{}, err
	}
	return within(q, baseline, candidate, o), nil
}

func within(q float64, b, c Side, o Options) QuantileComparison {
	out := quantile(q, b.Merged, c.Merged, o)
	if out.Ratio.Interval.Reason == "" {
		dof := joinedDOF(b, c, q)
		eb, ec := b.interval(q, o.Confidence, dof), c.interval(q, o.Confidence, dof)
		out.Baseline.Interval, out.Candidate.Interval = eb.Interval, ec.Interval
		out.Difference.Interval = join(eb, ec)
		out.Ratio.Interval = join(logOf(eb), logOf(ec)).Map(math.Exp)
		out.resolve(eb.Value, ec.Value, o.Confidence)
	}
	if math.IsInf(out.Ratio.Interval.High, 1) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("too few values beyond p%g to bound it from above", q*100))
	}
	out.Verdict = Decide(relativeInterval(out.Ratio, out.Difference, out.Baseline.Value), o.Threshold, o.Direction)
	return out
}

// resolve widens intervals to what the buckets around two values can hide, an error that may lie anywhere within them.
// That of a difference of two such errors is triangular. What is shown is the middle of a bucket, which is never left
// out.
func (c *QuantileComparison) resolve(b, k, confidence float64) {
	one, both := hist.RelativeError*confidence, 2*hist.RelativeError*(1-math.Sqrt(1-confidence))
	hidden := func(e *Estimate, value, by float64) {
		i := &e.Interval
		if value-by < i.Low && value+by > i.High {
			i.Method += ", widened to the error of the buckets"
		}
		i.Low, i.High = min(i.Low, value-by, e.Value), max(i.High, value+by, e.Value)
	}
	hidden(&c.Baseline, b, one*b)
	hidden(&c.Candidate, k, one*k)
	hidden(&c.Difference, k-b, both*(b+k)/2)
	hidden(&c.Ratio, k/b, both*k/b)
}

// join recovers a variance for each end of the difference from each side's own interval (Zou and Donner 2008).
func join(b, c Estimate) resample.Interval {
	d := c.Value - b.Value
	i := c.Interval
	i.Low = d - math.Hypot(c.Value-c.Interval.Low, b.Interval.High-b.Value)
	i.High = d + math.Hypot(c.Interval.High-c.Value, b.Value-b.Interval.Low)
	i.Method += ", joined by Zou and Donner"
	return i
}

func logOf(e Estimate) Estimate { return Estimate{math.Log(e.Value), e.Interval.Map(math.Log)} }

// worth is the number of independent values that tell as much as the side's.
func (s Side) worth() float64 {
	n := float64(s.Merged.Count())
	if s.Dependence > 0 {
		n /= s.Dependence
	}
	return n
}

// joinedDOF are Satterthwaite's degrees of freedom, each side's variance being read from the width of one standard
// error.
func joinedDOF(b, c Side, q float64) float64 {
	variance := func(s Side) float64 {
		se := math.Sqrt(q * (1 - q) / s.worth())
		half := math.Log(s.at(min(q+se, 1))/s.at(max(q-se, 0))) / 2
		return half * half
	}
	vb, vc := variance(b), variance(c)
	share := 0.0
	for _, v := range []struct{ variance, dof float64 }{{vb, b.DOF}, {vc, c.DOF}} {
		if v.dof > 0 {
			share += v.variance * v.variance / v.dof
		}
	}
	if !(share > 0) || math.IsInf(vb+vc, 0) {
		if b.DOF > 0 && c.DOF > 0 {
			return b.DOF + c.DOF
		}
		return max(b.DOF, c.DOF)
	}
	return (vb + vc) * (vb + vc) / share
}

// interval of a quantile at a confidence, its value read like the ends; dof is 0 when the dependence is certain.
func (s Side) interval(q, confidence, dof float64) Estimate {
	tail := (1 - confidence) / 2
	worth := s.worth()
	method := "order statistics"
	if dof > 0 {
		t := resample.StudentT(confidence, dof) / distuv.UnitNormal.Quantile(1-tail)
		worth /= t * t
		method = fmt.Sprintf("order statistics of dependent values, Student's t with %.2g degrees of freedom", dof)
	}
	i := resample.Interval{High: math.Inf(1), Confidence: confidence, Method: method}
	if share, ok := shareAt(worth, q, tail); ok {
		i.Low = s.at(share)
	}
	if share, ok := shareAt(worth, 1-q, tail); ok {
		i.High = s.at(1 - share)
	}
	return Estimate{s.at(q), i}
}

// shareAt is the share of n values of which a share q is expected that a tail of the binomial distribution lies below,
// at mid-p; n need not be whole. False when even none at all is likelier than that. Where many are expected it is the
// normal quantile with the term for skewness (Cornish and Fisher 1937).
func shareAt(n, q, tail float64) (float64, bool) {
	if variance := n * q * (1 - q); variance > 100 {
		z := distuv.UnitNormal.Quantile(1 - tail)
		return q + ((1-2*q)*(z*z-1)/6-z*math.Sqrt(variance))/n, true
	}
	upTo := func(k float64) float64 { // chance of at most k
		switch {
		case k < 0:
			return 0
		case k >= n:
			return 1
		}
		return mathext.RegIncBeta(n-k, k+1, 1-q)
	}
	likelier := func(k float64) bool { return upTo(k-1)+upTo(k) > 2*tail }
	if likelier(0) {
		return 0, false
	}
	low, high := 0.0, n*q
	for range 40 {
		if middle := (low + high) / 2; likelier(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return low / n, true
}

// at is the value below which a share of the counts lies, taking those of a bucket to lie evenly.
func (s Side) at(share float64) float64 {
	h := s.Merged
	rank, seen := share*float64(h.Count()), 0.0
	for i, n := range h.All() {
		if seen+float64(n) >= rank {
			l, u := hist.Bounds(i)
			low, high := float64(max(l, h.Min())), float64(min(u, h.Max()))
			return low + (high-low)*max(rank-seen, 0)/float64(n)
		}
		seen += float64(n)
	}
	return float64(h.Max())
}
