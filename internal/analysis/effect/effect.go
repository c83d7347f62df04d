// Package effect says how much a candidate differs from a baseline, and whether that is enough to matter.
//
// It compares two samples of repeats (Compare), pairs of an interleaved design (Paired) and percentiles of merged
// latency histograms (Histograms); it tests for drift along the order of the runs (Drift). Every
// effect comes with an interval chosen by what the data can carry, or with the reason why they carry none; the verdict
// follows from the interval and a threshold of practical significance, never from a p-value. It refuses numbers that
// are not finite, and it never averages percentiles.
//
// Where repeats drift, or depend on the ones before, their order shows it (Sequence): intervals are widened for it, or
// refused, with the number. A baseline that cannot be told from zero is judged absolutely.
//
// The unit of evidence is the repeat. Thousands of I/Os in one run are one run: feed run results to Compare, and
// histograms of several runs to Histograms, or take the warning seriously.
//
// Pure: no I/O, no clock, random numbers only from the seed given.
package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/unit"
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

// Statistic tells what is compared between samples.
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

// The verdicts. Same is a finding, Inconclusive the lack of one: the interval contains both a difference that matters
// and one that does not, or there is none.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Same         Verdict = "same"
	Inconclusive Verdict = "inconclusive"
)

// Options of a comparison. The zero value compares means at 95 % with a threshold of 0, higher being better.
type Options struct {
	Confidence float64   // above 0 and below 1; 0 means 0.95
	Statistic  Statistic // empty means Mean; Histograms compares quantiles instead
	Direction  Direction // empty means HigherIsBetter
	Threshold  float64   // relative difference that matters, 0.05 for 5 %; not negative, below 1
	Resamples  int       // of the bootstrap; 0 means 2,000, otherwise at least 100
	Seed       uint64    // 0 means resample.DefaultSeed
	// Order is the place in time of each repeat among all, the baseline's first. nil: only the order within each side
	// is known, as given.
	Order []int
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
		bad = append(bad,
			fmt.Errorf("effect: direction %q: must be %q or %q", o.Direction, HigherIsBetter, LowerIsBetter))
	}
	if !(o.Threshold >= 0 && o.Threshold < 1) {
		bad = append(bad,
			fmt.Errorf("effect: threshold %v: must be at least 0 and below 1, as 0.05 for 5 %%", o.Threshold))
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
	// Change is the difference relative to the size of the baseline: Ratio − 1 where there is a ratio. NaN when
	// Absolute.
	Change Estimate
	// the baseline cannot be told from zero, so that nothing is relative to it: Difference is judged
	Absolute    bool
	Shift       Estimate // Hodges–Lehmann: median of all differences between the sides
	MannWhitney Test
	Sequence    Sequence
	// Unsure says that a drift which the repeats cannot exclude leaves nothing sure of the difference claimed; "" where
	// it leaves something. When it is known that one side came after the other, the verdict is then inconclusive.
	Unsure   string
	Verdict  Verdict
	Warnings []string
}

// Compare compares independent samples of repeats. Means of thirty or more repeats a side get a BCa bootstrap interval
// read at the level that small samples need; fewer get Welch's t, and one against several the prediction of one more.
// Medians get percentiles of the bootstrap from six a side on. One repeat on each side gets no interval at all.
func Compare(baseline, candidate []float64, o Options) (Comparison, error) {
	o, err := o.filled()
	if err = errors.Join(err, finite("baseline", baseline), finite("candidate", candidate)); err != nil {
		return Comparison{}, err
	}
	if o.Order != nil && len(o.Order) != len(baseline)+len(candidate) {
		return Comparison{}, fmt.Errorf("effect: an order of %d for %d repeats", len(o.Order),
			len(baseline)+len(candidate))
	}
	c := Comparison{Statistic: o.Statistic, BaselineN: len(baseline), CandidateN: len(candidate)}
	of := statistic(o.Statistic)
	c.Baseline, c.Candidate = of(baseline), of(candidate)
	c.Difference.Value, c.Ratio.Value = c.Candidate-c.Baseline, math.NaN()
	positive := c.Baseline > 0 && c.Candidate > 0 && !nearZero(baseline, c.Baseline)
	if positive {
		c.Ratio.Value = c.Candidate / c.Baseline
	}
	c.intervals(baseline, candidate, o, positive)
	c.change(baseline, candidate)
	unordered := c.Change.Interval
	order := sequenceOf(baseline, candidate, o)
	c.ordered(&order, baseline, candidate, o)
	c.change(baseline, candidate)
	c.explained(&order, o)
	c.Shift = shift(baseline, candidate, o.Confidence)
	c.MannWhitney = MannWhitney(baseline, candidate)
	c.warn(baseline, candidate)
	c.Verdict = c.decide(o)
	c.beyond(&order, unordered, baseline, candidate, o)
	return c, nil
}

const (
	shownOrder = 0.02 // level below which a drift or a dependence is there, and nothing is judged without it
	apartBy    = 1.5  // times what either side spans: a difference that no drift within the sides leads to
)

// beyond decides what is inconclusive only because its interval allows for a drift or a dependence that the repeats do
// not show: that there is a difference is then sure with it, and how large it is, without it. By chance alone more
// repeats would else show more such drifts, and find less. So does it what lies further apart than any drift leads to.
func (c *Comparison) beyond(s *sequence, unordered resample.Interval, baseline, candidate []float64, o Options) {
	if c.Verdict != Inconclusive || c.Absolute || o.Statistic != Mean || !unordered.Valid() {
		return
	}
	v := Decide(unordered, o.Threshold, o.Direction)
	if v != Better && v != Worse {
		return
	}
	span := max(slices.Max(baseline)-slices.Min(baseline), slices.Max(candidate)-slices.Min(candidate))
	switch i := c.Change.Interval; {
	case min(len(baseline), len(candidate)) >= fewestForBefore &&
		math.Abs(c.Difference.Value) > apartBy*span+o.Threshold*math.Abs(c.Baseline):
	case min(s.P, s.DriftP) < shownOrder || !i.Valid():
		return
	case o.Order != nil && c.explains(s, unordered) != "":
		return
	case o.Order == nil && i.Low <= 0 && i.High >= 0:
		return
	}
	c.Verdict = v
	c.Warnings = append(c.Warnings, fmt.Sprintf("the interval allows for a drift or a dependence that these repeats do "+
		"not show for sure; without it the change is %s, by which it is judged",
		unit.Changes(unordered.Low, unordered.High)))
}

// nearZero reports whether a baseline cannot be told from zero, so that nothing is relative to it: all zero, or of
// values on both sides of it whose mean is within three standard errors.
func nearZero(x []float64, middle float64) bool {
	if middle == 0 {
		return true
	}
	return slices.Min(x) < 0 && slices.Max(x) > 0 &&
		math.Abs(middle) < 3*stat.StdDev(x, nil)/math.Sqrt(float64(len(x)))
}

// change sets Change and Absolute.
func (c *Comparison) change(baseline, candidate []float64) {
	switch {
	case !math.IsNaN(c.Ratio.Value) && c.Ratio.Interval.Valid():
		c.Change = Estimate{c.Ratio.Value - 1, c.Ratio.Interval.Map(func(v float64) float64 { return v - 1 })}
	case nearZero(baseline, c.Baseline):
		c.Absolute = true
		c.Change = Estimate{
			math.NaN(),
			resample.None("the baseline is zero, or not distinguishable from it: no relative change"),
		}
	default:
		size := math.Abs(c.Baseline)
		c.Change = Estimate{
			c.Difference.Value / size,
			c.Difference.Interval.Map(func(v float64) float64 { return v / size }),
		}
		if slices.Min(baseline) >= 0 && slices.Min(candidate) >= 0 {
			c.Change.Interval = c.Change.Interval.Clamp(-1, math.Inf(1))
		}
	}
}

// ordered makes the intervals hold what the order of the repeats may have done.
func (c *Comparison) ordered(s *sequence, baseline, candidate []float64, o Options) {
	c.Sequence, c.Warnings = s.Sequence, append(c.Warnings, s.Warnings...)
	if !s.shows() || !c.Difference.Interval.Valid() || o.Statistic != Mean {
		return
	}
	if len(s.blocked) >= fewestForPairs && s.DriftP >= driftSuspicion { // what the runs of a pair share cancels
		c.paired(s.blocked, baseline, candidate, o)
		return
	}
	if why := s.refuses(); why != "" {
		c.Difference.Interval = resample.None(why)
		if c.Ratio.Interval.Valid() {
			c.Ratio.Interval = c.Difference.Interval
		}
		return
	}
	raw := s.scaled(1, c.Baseline, c.Candidate)
	c.Difference.Interval = s.widen(c.Difference.Interval, c.Difference.Value, raw, o.Confidence)
	if c.Ratio.Interval.Valid() {
		logs := c.Ratio.Interval.Map(math.Log)
		c.Ratio.Interval = s.widen(logs, math.Log(c.Ratio.Value), s.relative, o.Confidence).Map(math.Exp)
	}
}

// explained says when a drift leaves nothing sure of the difference. Pairs of neighbours in time, like an order that is
// mixed, do not know that.
func (c *Comparison) explained(s *sequence, o Options) {
	if o.Statistic != Mean || len(s.blocked) >= fewestForPairs {
		return
	}
	c.Unsure = c.explains(s, c.Change.Interval)
	if c.Unsure != "" {
		c.Sequence.Warnings = append(c.Sequence.Warnings, c.Unsure)
		c.Warnings = append(c.Warnings, c.Unsure)
	}
}

// explains is how a drift would explain a change of that interval.
func (c *Comparison) explains(s *sequence, change resample.Interval) string {
	switch size := math.Abs(c.Baseline); {
	case c.Ratio.Interval.Valid():
		logs := change.Map(math.Log1p)
		return s.explains(logs, math.Log(c.Ratio.Value), s.relative, unsureWithin)
	case size > 0:
		return s.explains(change, c.Difference.Value/size, s.scaled(size, c.Baseline, c.Candidate), unsureWithin)
	}
	return ""
}

// unsureWithin is the confidence with which a drift that leaves nothing sure of a difference cannot be excluded.
const unsureWithin = 0.9

// fewestForPairs is the fewest pairs of neighbours in time that are compared as such.
const fewestForPairs = 4

// paired takes the intervals from pairs of neighbours in time.
func (c *Comparison) paired(pairs [][2]int, baseline, candidate []float64, o Options) {
	b, k := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		b[i], k[i] = baseline[p[0]], candidate[p[1]]
	}
	o.Order = nil
	p, err := Paired(b, k, o)
	if err != nil {
		return
	}
	c.Difference.Interval = p.Difference.Interval
	c.Difference.Interval.Method += " of adjacent repeats"
	if c.Ratio.Interval.Valid() && p.Ratio.Interval.Valid() {
		shift := c.Ratio.Value / p.Ratio.Value // the ratio of means, not the mean of ratios
		c.Ratio.Interval = p.Ratio.Interval.Map(func(v float64) float64 { return v * shift })
		c.Ratio.Interval.Method += " of adjacent repeats"
	}
}

// skewed is the standard deviation of logarithms from which 95 % intervals of means are said to cover too little: 90 to
// 95 % of lognormal values at 1, 85 to 92 % at 1.5.
const skewed = 0.8

// logSpread is the standard deviation of the logarithms of four positive values or more; 0 of others.
func logSpread(x []float64) float64 {
	if len(x) < 4 || slices.Min(x) <= 0 {
		return 0
	}
	logs := make([]float64, len(x))
	for i, v := range x {
		logs[i] = math.Log(v)
	}
	return stat.StdDev(logs, nil)
}

// resolution is a step of the finest decimal that any value is written with; 1 for whole numbers.
func resolution(sides ...[]float64) float64 {
	finest := 0
	for _, x := range sides {
		for _, v := range x {
			text := strconv.FormatFloat(v, 'f', -1, 64)
			if _, decimals, ok := strings.Cut(text, "."); ok {
				finest = max(finest, len(decimals))
			}
		}
	}
	return math.Pow10(-finest)
}

// largest is beyond what is ever measured, and small enough for sums of its squares.
const largest = 1e100

func finite(side string, x []float64) error {
	var bad []error
	if len(x) == 0 {
		bad = append(bad, fmt.Errorf("effect: %s: no values", side))
	}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			bad = append(bad, fmt.Errorf("effect: %s: value %d is %v: leave missing values out", side, i+1, v))
		} else if math.Abs(v) > largest {
			bad = append(bad, fmt.Errorf("effect: %s: value %d is %g: too large to be a measurement", side, i+1, v))
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
	fewestForMedian = 6 // below, no pair of order statistics covers a median at 95 %
	// below, the bootstrap of a mean covers too little even when corrected, the more so at high confidence
	fewestForBootstrap = 30
)

func (c *Comparison) intervals(baseline, candidate []float64, o Options, positive bool) {
	fewest := min(len(baseline), len(candidate))
	switch {
	case fewest < 2 && o.Statistic == Mean && max(len(baseline), len(candidate)) > 1:
		c.predict(baseline, candidate, o.Confidence, positive)
	case fewest < 2:
		c.Difference.Interval = resample.None("one repeat a side shows no spread: repeat each at least 4 times")
		c.Ratio.Interval = c.Difference.Interval
	case o.Statistic == Median && fewest < fewestForMedian:
		c.Difference.Interval = resample.None(
			fmt.Sprintf("%d repeats a side: a median needs at least %d for an interval", fewest, fewestForMedian))
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
			Low: c.Ratio.Value / factor, High: c.Ratio.Value * factor, Confidence: confidence,
			Method: "Welch's t on logarithms",
		}
	}
}

// predict sets one value against several: the interval is that in which a further one of the several is expected
// (Student's t with s·√(1 + 1/n)), which takes the two sides as spreading alike. That of the ratio is on logarithms.
func (c *Comparison) predict(baseline, candidate []float64, confidence float64, positive bool) {
	several := baseline
	if len(candidate) > len(baseline) {
		several = candidate
	}
	n := float64(len(several))
	reach := resample.StudentT(confidence, n-1) * math.Sqrt(1+1/n)
	spread, method := stat.StdDev(several, nil), "Student's t for one more of the repeats"
	if spread == 0 {
		c.Difference.Interval = resample.None("one repeat on a side, and those of the other are all alike: they show no " +
			"spread")
		c.Ratio.Interval = c.Difference.Interval
		return
	}
	half := reach * spread
	c.Difference.Interval = resample.Interval{Low: c.Difference.Value - half, High: c.Difference.Value + half,
		Confidence: confidence, Method: method}
	if positive {
		factor := math.Exp(reach * spread / stat.Mean(several, nil))
		c.Ratio.Interval = resample.Interval{Low: c.Ratio.Value / factor, High: c.Ratio.Value * factor,
			Confidence: confidence, Method: method + ", on logarithms"}
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
	switch n := min(len(baseline), len(candidate)); {
	case n == 1:
		say("1 repeat on one side: its spread is not known")
	case n < 4:
		say("%d repeats on one side: with fewer than 4 a side even a complete separation can be chance", n)
	}
	for _, side := range []struct {
		name string
		x    []float64
	}{{"baseline", baseline}, {"candidate", candidate}} {
		if spread := logSpread(side.x); c.Statistic == Mean && spread >= skewed {
			say(
				"the values of the %s are skewed (their logarithms spread by %.2g): the mean hangs on a few of them, and its interval covers less than it says",
				side.name, spread)
		}
		if len(side.x) > 1 && slices.Min(side.x) == slices.Max(side.x) {
			if side.x[0] == 0 {
				continue // none of what is counted
			}
			step := resolution(baseline, candidate)
			say(
				"all %d values of the %s are %g: copied, or rounded; if to steps of %g, half of one is %.2g %%, by which the interval is too narrow",
				len(side.x), side.name, side.x[0], step, 50*step/math.Abs(side.x[0]))
		}
	}
}

// decide compares the interval of the change with the threshold: better or worse when all of it lies beyond, same when
// all of it lies within (the two one-sided tests of equivalence, Schuirmann 1987, read from an interval), else
// inconclusive. From a baseline of zero any change is larger than any share of it, so its sign decides.
func (c *Comparison) decide(o Options) Verdict {
	if c.Unsure != "" && o.Order != nil {
		return Inconclusive
	}
	if c.Absolute {
		return Decide(c.Difference.Interval, 0, o.Direction)
	}
	return Decide(c.Change.Interval, o.Threshold, o.Direction)
}

// Decide reads a verdict from the interval of a change; an empty direction counts as higher being better.
func Decide(i resample.Interval, threshold float64, d Direction) Verdict {
	up, down := Better, Worse
	if d == LowerIsBetter {
		up, down = Worse, Better
	}
	switch {
	case !i.Valid():
		return Inconclusive
	case i.Low >= -threshold && i.High <= threshold:
		return Same
	case i.Low > threshold:
		return up
	case i.High < -threshold:
		return down
	}
	return Inconclusive
}

// relativeInterval is the interval of a change: of a ratio, or without one of the difference over the baseline's size.
func relativeInterval(ratio, difference Estimate, baseline float64) resample.Interval {
	if !ratio.Interval.Valid() && difference.Interval.Valid() && baseline != 0 {
		return difference.Interval.Map(func(v float64) float64 { return v / math.Abs(baseline) })
	}
	return ratio.Interval.Map(func(v float64) float64 { return v - 1 })
}
