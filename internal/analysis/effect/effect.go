// Package effect says how much a candidate differs from a baseline, and whether that is enough to matter.
//
// It compares two samples of repeats (Compare), pairs of an interleaved design (Paired) and percentiles of merged latency
// histograms (Histograms); it tests for drift along the order of the runs (Drift) and corrects for many comparisons
// (Holm, BenjaminiHochberg). Every effect comes with an interval chosen by what the data can carry, or with the reason
// why they carry none; the verdict follows from the interval and a threshold of practical significance, never from a
// p-value. It refuses numbers that are not finite, and it never averages percentiles.
//
// The unit of evidence is the repeat. Thousands of I/Os in one run are one run: feed run results to Compare, and histograms
// of several runs to Histograms, or take the warning seriously.
//
// Pure: no I/O, no clock, random numbers only from the seed given.
package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// Estimate is a number with its interval, or the reason for none.
type Estimate struct {
	Value    float64
	Interval resample.Interval
}

// MarshalJSON writes a value that does not exist as null.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := struct {
		Value    *float64          `json:"value"`
		Interval resample.Interval `json:"interval"`
	}{Interval: e.Interval}
	if !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
		out.Value = &e.Value
	}
	return json.Marshal(out)
}

// Statistic is what is compared between samples.
type Statistic string

// The statistics.
const (
	Mean   Statistic = "mean"   // the choice for few repeats
	Median Statistic = "median" // robust, needs six repeats a side for an interval
)

// Direction says which way is good.
type Direction string

// The directions.
const (
	HigherIsBetter Direction = "higher"
	LowerIsBetter  Direction = "lower"
)

// Verdict is the decision.
type Verdict string

// The verdicts. Same is a finding, Undecided the lack of one: the interval contains both a difference that matters and
// one that does not.
const (
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Same      Verdict = "same"
	Undecided Verdict = "undecided"
)

// Options of a comparison. The zero value compares means at 95 % with a threshold of 0, higher being better.
type Options struct {
	Confidence float64   // above 0 and below 1; 0 means 0.95
	Statistic  Statistic // empty means Mean; Histograms compares quantiles instead
	Direction  Direction // empty means HigherIsBetter
	Threshold  float64   // relative difference that matters, 0.05 for 5 %; not negative, below 1
	Resamples  int       // of the bootstrap; 0 means 2,000, otherwise at least 100
	Seed       uint64    // 0 means resample.DefaultSeed
}

func (o Options) filled() (Options, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if o.Statistic == "" {
		o.Statistic = Mean
	}
	if o.Direction == "" {
		o.Direction = HigherIsBetter
	}
	if o.Resamples == 0 {
		o.Resamples = 2000
	}
	if o.Seed == 0 {
		o.Seed = resample.DefaultSeed
	}
	var bad []error
	if !(o.Confidence > 0 && o.Confidence < 1) {
		bad = append(bad, fmt.Errorf("effect: confidence %v: must lie between 0 and 1, as 0.95", o.Confidence))
	}
	if o.Statistic != Mean && o.Statistic != Median {
		bad = append(bad, fmt.Errorf("effect: statistic %q: must be %q or %q", o.Statistic, Mean, Median))
	}
	if o.Direction != HigherIsBetter && o.Direction != LowerIsBetter {
		bad = append(bad, fmt.Errorf("effect: direction %q: must be %q or %q", o.Direction, HigherIsBetter, LowerIsBetter))
	}
	if !(o.Threshold >= 0 && o.Threshold < 1) {
		bad = append(bad, fmt.Errorf("effect: threshold %v: must be at least 0 and below 1, as 0.05 for 5 %%", o.Threshold))
	}
	if o.Resamples < 100 {
		bad = append(bad, fmt.Errorf("effect: %d resamples: at least 100 are needed", o.Resamples))
	}
	return o, errors.Join(bad...)
}

// Comparison is the outcome for two samples.
type Comparison struct {
	Statistic             Statistic
	BaselineN, CandidateN int
	Baseline, Candidate   float64  // the statistic of each side
	Difference            Estimate // candidate − baseline
	Ratio                 Estimate // candidate ÷ baseline; NaN with a reason unless both are positive
	Shift                 Estimate // Hodges–Lehmann: median of all differences between the sides
	MannWhitney           Test
	Verdict               Verdict
	Warnings              []string
}

// Compare compares independent samples of repeats. Means of thirty or more repeats a side get a BCa bootstrap interval read at
// the level that small samples need; fewer get Welch's t. Medians get percentiles of the bootstrap from six a side on. One
// repeat a side gets no interval at all.
func Compare(baseline, candidate []float64, o Options) (Comparison, error) {
	o, err := o.filled()
	if err = errors.Join(err, finite("baseline", baseline), finite("candidate", candidate)); err != nil {
		return Comparison{}, err
	}
	c := Comparison{Statistic: o.Statistic, BaselineN: len(baseline), CandidateN: len(candidate)}
	of := statistic(o.Statistic)
	c.Baseline, c.Candidate = of(baseline), of(candidate)
	c.Difference.Value, c.Ratio.Value = c.Candidate-c.Baseline, math.NaN()
	positive := c.Baseline > 0 && c.Candidate > 0
	if positive {
		c.Ratio.Value = c.Candidate / c.Baseline
	}
	c.intervals(baseline, candidate, o, positive)
	c.Shift = shift(baseline, candidate, o.Confidence)
	c.MannWhitney = MannWhitney(baseline, candidate)
	c.warn(baseline, candidate)
	c.Verdict = decide(c.Ratio, c.Difference, c.Baseline, o)
	return c, nil
}

func finite(side string, x []float64) error {
	var bad []error
	if len(x) == 0 {
		bad = append(bad, fmt.Errorf("effect: %s: no values", side))
	}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			bad = append(bad, fmt.Errorf("effect: %s: value %d is %v: leave missing values out", side, i+1, v))
		}
	}
	return errors.Join(bad...)
}

func statistic(s Statistic) func([]float64) float64 {
	if s == Median {
		return resample.Median
	}
	return func(x []float64) float64 { return stat.Mean(x, nil) }
}

const (
	fewestForMedian    = 6  // below, no pair of order statistics covers a median at 95 %
	fewestForBootstrap = 30 // below, the bootstrap of a mean covers too little even when corrected, the more so at high confidence
)

func (c *Comparison) intervals(baseline, candidate []float64, o Options, positive bool) {
	fewest := min(len(baseline), len(candidate))
	switch {
	case fewest < 2:
		c.Difference.Interval = resample.None("one repeat a side shows no spread: repeat each at least 4 times")
		c.Ratio.Interval = c.Difference.Interval
	case o.Statistic == Median && fewest < fewestForMedian:
		c.Difference.Interval = resample.None(fmt.Sprintf("%d repeats a side: a median needs at least %d for an interval", fewest, fewestForMedian))
		c.Ratio.Interval = c.Difference.Interval
	case o.Statistic == Mean && fewest < fewestForBootstrap:
		c.welch(baseline, candidate, o.Confidence, positive)
	default:
		c.bootstrap(baseline, candidate, o, positive)
	}
	if !positive {
		c.Ratio.Interval = resample.None("a ratio needs both sides above zero")
	}
}

// welch gives t intervals with unequal variances (Welch 1947); that of the ratio is on the logarithm, whose variance
// is s²/(n·x̄²) by the delta method.
func (c *Comparison) welch(baseline, candidate []float64, confidence float64, positive bool) {
	vb := stat.Variance(baseline, nil) / float64(len(baseline))
	vc := stat.Variance(candidate, nil) / float64(len(candidate))
	se, dof := satterthwaite(vb, vc, len(baseline), len(candidate))
	half := resample.StudentT(confidence, dof) * se
	c.Difference.Interval = resample.Interval{
		Low: c.Difference.Value - half, High: c.Difference.Value + half, Confidence: confidence, Method: "Welch's t",
	}
	if positive {
		se, dof = satterthwaite(vb/(c.Baseline*c.Baseline), vc/(c.Candidate*c.Candidate), len(baseline), len(candidate))
		factor := math.Exp(resample.StudentT(confidence, dof) * se)
		c.Ratio.Interval = resample.Interval{
			Low: c.Ratio.Value / factor, High: c.Ratio.Value * factor, Confidence: confidence, Method: "Welch's t on logarithms",
		}
	}
}

// satterthwaite joins the variances of two means: standard error of their difference and its degrees of freedom.
func satterthwaite(vb, vc float64, nb, nc int) (se, dof float64) {
	sum := vb + vc
	if sum == 0 {
		return 0, float64(nb + nc - 2)
	}
	return math.Sqrt(sum), sum * sum / (vb*vb/float64(nb-1) + vc*vc/float64(nc-1))
}

// bootstrap resamples each side on its own.
func (c *Comparison) bootstrap(baseline, candidate []float64, o Options, positive bool) {
	of := statistic(o.Statistic)
	r := resample.Source(o.Seed, 2)
	differences, ratios := make([]float64, o.Resamples), make([]float64, o.Resamples)
	b, k := make([]float64, len(baseline)), make([]float64, len(candidate))
	for i := range o.Resamples {
		for j := range b {
			b[j] = baseline[r.IntN(len(baseline))]
		}
		for j := range k {
			k[j] = candidate[r.IntN(len(candidate))]
		}
		sb, sk := of(b), of(k)
		differences[i], ratios[i] = sk-sb, sk/sb
		positive = positive && sb > 0 && sk > 0
	}
	vb := stat.Variance(baseline, nil) / float64(len(baseline))
	vc := stat.Variance(candidate, nil) / float64(len(candidate))
	_, dof := satterthwaite(vb, vc, len(baseline), len(candidate))
	level := resample.Expand(o.Confidence, dof, min(len(baseline), len(candidate)))
	if o.Statistic == Median { // its jackknife is not consistent, so no acceleration is to be had
		method := fmt.Sprintf("bootstrap percentiles, %d resamples", o.Resamples)
		c.Difference.Interval = resample.Percentile(differences, level, o.Confidence, method)
		if positive {
			c.Ratio.Interval = resample.Percentile(ratios, level, o.Confidence, method)
		}
	} else {
		method := fmt.Sprintf("BCa bootstrap, %d resamples", o.Resamples)
		mb, mc := leaveOneOut(baseline), leaveOneOut(candidate)
		influence := func(f func(b, c float64) float64) float64 {
			jb, jc := make([]float64, len(mb)), make([]float64, len(mc))
			for i, m := range mb {
				jb[i] = f(m, c.Candidate)
			}
			for i, m := range mc {
				jc[i] = f(c.Baseline, m)
			}
			return resample.Acceleration(jb, jc)
		}
		a := influence(func(b, c float64) float64 { return c - b })
		c.Difference.Interval = resample.BCa(c.Difference.Value, a, differences, level, o.Confidence, method)
		if positive {
			a = influence(func(b, c float64) float64 { return c / b })
			c.Ratio.Interval = resample.BCa(c.Ratio.Value, a, ratios, level, o.Confidence, method)
		}
	}
	if !positive {
		c.Ratio.Interval = resample.None("a ratio needs both sides above zero, on every resample")
	}
}

func leaveOneOut(x []float64) []float64 {
	sum, out := 0.0, make([]float64, len(x))
	for _, v := range x {
		sum += v
	}
	for i, v := range x {
		out[i] = (sum - v) / float64(len(x)-1)
	}
	return out
}

func (c *Comparison) warn(baseline, candidate []float64) {
	say := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	if n := min(len(baseline), len(candidate)); n < 4 {
		say("%d repeats on one side: with fewer than 4 a side even a complete separation can be chance", n)
	}
	for _, side := range []struct {
		name string
		x    []float64
	}{{"baseline", baseline}, {"candidate", candidate}} {
		if len(side.x) > 1 && slices.Min(side.x) == slices.Max(side.x) {
			say("all %d values of the %s are equal: copied or rounded, so the interval is too narrow", len(side.x), side.name)
		}
	}
}

// decide compares the interval of the relative difference with the threshold: better or worse when all of it lies beyond,
// same when all of it lies within (the two one-sided tests of equivalence, Schuirmann 1987, read from an interval), else
// undecided. Without a ratio, the difference is taken relative to the baseline's size.
func decide(ratio, difference Estimate, baseline float64, o Options) Verdict {
	i := ratio.Interval.Map(func(v float64) float64 { return v - 1 })
	if !i.Valid() && difference.Interval.Valid() && baseline != 0 {
		i = difference.Interval.Map(func(v float64) float64 { return v / math.Abs(baseline) })
	}
	up, down := Better, Worse
	if o.Direction == LowerIsBetter {
		up, down = Worse, Better
	}
	switch {
	case !i.Valid():
		return Undecided
	case i.Low >= -o.Threshold && i.High <= o.Threshold:
		return Same
	case i.Low > o.Threshold:
		return up
	case i.High < -o.Threshold:
		return down
	}
	return Undecided
}
