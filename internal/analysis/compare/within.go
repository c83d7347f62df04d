package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// ratioSeries is a quantity over time. With weights it is the ratio Σ value·weight ÷ Σ weight, such as a mean latency,
// whose seconds of few operations count for less.
type ratioSeries struct {
	value, weight []float64
	cuts          []int // where parts of the run begin that differ on purpose, such as before and with a neighbour
	// pulses of the run that show better elsewhere, when this shows none
	marks  []serial.Pulse
	reason string // why there is none
}

// within holds what one run says of its own steadiness: the standard error of its mean relative to it.
type within struct {
	relative float64
	dof      float64
	reason   string // why there is none
	warning  string // why it may be too small
}

const (
	fewestPoints = 20 // in time, and as many with operations, for an interval within a run
	fewestWorth  = 4  // independent points, below which there is none
	enoughWorth  = 10 // below which it is warned of: 95 % intervals covered 87 to 93 %
)

// within measures the standard error of a mean from the slow waves of its course (serial.SumOf), within the parts of a
// run that differ on purpose. The mean is a ratio, so what varies are its terms of first order.
func (s ratioSeries) within() within {
	terms, whole, reason := s.terms()
	if reason != "" {
		return within{reason: reason}
	}
	return withinOf(serial.SumOf(terms, s.cuts), whole, len(terms))
}

// withinOf is the standard error that the variance of a sum gives, relative to that sum.
func withinOf(all serial.Sum, whole float64, points int) within {
	if all.Worth < fewestWorth {
		return within{reason: fmt.Sprintf("the run is too short for its own dependence: its %d points in time are "+
			"worth %.2g independent ones", points, all.Worth)}
	}
	out := within{relative: math.Sqrt(all.Variance) / whole, dof: all.DOF}
	if all.Worth < enoughWorth {
		out.warning = shortFor(points, all.Worth)
	}
	return out
}

// terms are what each point adds to the error of the mean, of first order, and the sum that they are terms of.
func (s ratioSeries) terms() (terms []float64, whole float64, reason string) {
	n := len(s.value)
	switch {
	case s.reason != "":
		return nil, 0, s.reason
	case n < fewestPoints:
		return nil, 0, tooFew(n)
	}
	weight := s.weight
	if weight == nil {
		weight = slices.Repeat([]float64{1}, n)
	}
	var values, weights float64
	busy := 0
	for i, v := range s.value {
		values, weights = values+v*weight[i], weights+weight[i]
		if weight[i] > 0 {
			busy++
		}
	}
	if busy < fewestPoints {
		return nil, 0, fmt.Sprintf("%d points in time with operations are too few for an interval within the "+
			"run, %d are needed", busy, fewestPoints)
	}
	mean := values / weights
	if !(math.Abs(mean) > 0) || math.IsInf(mean, 0) {
		return nil, 0, "its mean is zero"
	}
	terms = make([]float64, n)
	for i, v := range s.value {
		terms[i] = weight[i] * (v - mean)
	}
	return terms, math.Abs(values), ""
}

// pulses are the short stretches in which the run did something else, such as checkpoints.
func (s ratioSeries) pulses() []serial.Pulse {
	if len(s.cuts) > 0 {
		return nil
	}
	if own := serial.PulsesOf(s.value); len(own) > 1 {
		return own
	}
	return s.marks
}

// alikeLevel is the chance below which two runs' slow waves are taken as shared, not as alike by chance.
const alikeLevel = 0.01

// both measures the standard errors of the means of two single runs. What each says of itself holds for any two. Two
// runs can say more together: where both have a step, a fill or a repetition at the same time, which alone looks like
// dependence, it cancels in what they differ by, point by point; and where both have a few checkpoints, those of both
// together tell how even they are (serial.SumsOf). What both say together is halved between them.
func both(b, c ratioSeries) (within, within) {
	wb, wc := b.within(), c.within()
	tb, wholeB, reasonB := b.terms()
	tc, wholeC, reasonC := c.terms()
	if reasonB != "" || reasonC != "" {
		return wb, wc
	}
	if refused := wb.reason != "" || wc.reason != ""; len(tb) == len(tc) &&
		(refused || serial.Alike(tb, tc) < alikeLevel) {
		apart := make([]float64, len(tb))
		for i := range apart {
			apart[i] = tc[i]/wholeC - tb[i]/wholeB
		}
		half := withinOf(serial.SumOf(apart, nil), 1, len(apart))
		half.relative, half.dof = half.relative/math.Sqrt2, half.dof/2
		if half.reason == "" {
			return half, half
		}
	}
	pb, pc := b.pulses(), c.pulses()
	if sb, sc, even, ok := serial.SumsOf(tb, tc, pb, pc); ok {
		wb, wc = withinOf(sb, wholeB, len(tb)), withinOf(sc, wholeC, len(tc))
		if wb.warning == "" && !even {
			wb.warning = fmt.Sprintf("%d and %d short stretches stand out of the runs, such as checkpoints, and cannot "+
				"be told from ones that come at random: so few of those say little of what a longer run would hold, and "+
				"the interval may be too narrow. Make the runs longer", len(pb), len(pc))
		}
	}
	return wb, wc
}

func tooFew(points int) string {
	return fmt.Sprintf("%d points in time are too few for an interval within the run, %d are needed", points,
		fewestPoints)
}

// joined is the mean over the runs of a side of which the other side is single.
func joined(runs []ratioSeries) within {
	if len(runs) == 0 {
		return within{reason: "no points over time"}
	}
	var all within
	var sum, squares float64
	for _, s := range runs {
		w := s.within()
		if w.reason != "" {
			return w
		}
		v := w.relative * w.relative
		sum, squares, all.dof = sum+v, squares+v*v/w.dof, all.dof+w.dof
		all.warning = cmp.Or(all.warning, w.warning)
	}
	if squares > 0 {
		all.dof = sum * sum / squares
	}
	all.relative = math.Sqrt(sum) / float64(len(runs))
	return all
}

// seriesOf are the courses of a workload's runs.
func seriesOf(l load, part func(result.Workload, Run) ratioSeries) (runs []ratioSeries) {
	for i, w := range l.of {
		runs = append(runs, part(w, l.runs[i]))
	}
	return runs
}

func shortFor(points int, worth float64) string {
	return fmt.Sprintf(
		"the run is short for its own dependence: its %d points in time are worth %.2g independent ones, so the interval may be too narrow",
		points, worth)
}

// difference is the change of one run against another with an interval on the logarithm: Student's t on the two
// relative standard errors, with Satterthwaite's degrees of freedom.
func difference(b, c within, bv, cv, confidence float64, o effect.Options) outcome {
	switch {
	case b.reason != "":
		return nothing(b.reason)
	case c.reason != "":
		return nothing(c.reason)
	case !(bv > 0 && cv > 0):
		return nothing("a ratio needs both sides above zero")
	}
	vb, vc := b.relative*b.relative, c.relative*c.relative
	dof := math.Inf(1)
	if vb+vc > 0 {
		dof = (vb + vc) * (vb + vc) / (vb*vb/b.dof + vc*vc/c.dof)
	}
	middle := math.Log(cv / bv)
	half := 0.0
	if vb+vc > 0 {
		half = resample.StudentT(confidence, dof) * math.Sqrt(vb+vc)
	}
	i := resample.Interval{Low: math.Exp(middle-half) - 1, High: math.Exp(middle+half) - 1, Confidence: confidence,
		Method: "slow waves within each run, Student's t"}
	d := o.Direction
	if d == "" {
		d = effect.HigherIsBetter
	}
	return outcome{change: effect.Estimate{Value: cv/bv - 1, Interval: i}, verdict: effect.Decide(i, o.Threshold, d)}
}

// rateSeries is the throughput of a workload's operations, or a measure that adds up, at each point of its time, from
// the VMs of its group.
func rateSeries(w result.Workload, r Run, op, measure string) ratioSeries {
	sums, cuts, reason := groupSums(w, r, op, measure)
	return ratioSeries{value: sums, cuts: cuts, reason: reason}
}

// latencySeries is the mean latency at each point, weighted by the operations there.
func latencySeries(w result.Workload, r Run, op string) ratioSeries {
	rates, cuts, reason := groupSums(w, r, op, result.Rate)
	if reason != "" {
		return ratioSeries{reason: reason}
	}
	times, reason := groupProducts(w, r, op)
	if reason == "" && len(times) != len(rates) {
		reason = "its latencies were not recorded over time"
	}
	s := ratioSeries{weight: rates, cuts: cuts, reason: reason}
	for i := range times {
		v := 0.0
		if rates[i] > 0 {
			v = times[i] / rates[i]
		}
		s.value = append(s.value, v)
	}
	return s
}

// others reports whether another workload of the group ran at the same time, so that the VMs' series are not this one's
// alone.
func others(w result.Workload, d *result.Data) bool {
	return slices.ContainsFunc(d.Workloads, func(o result.Workload) bool {
		return o.Group == w.Group && o.Name != w.Name && o.Start.Before(w.End) && w.Start.Before(o.End)
	})
}

// each calls f with every point of a series of a VM of the group whose step, which ends at the point, lies wholly in
// the time by which the workload is judged.
func each(w result.Workload, r Run, op, measure string, f func(vm string, at int64, v float64)) {
	for _, s := range r.Data.Series {
		inGroup := s.VM != "" && slices.ContainsFunc(r.Data.VMs, func(vm result.VM) bool {
			return vm.Name == s.VM && vm.Group == w.Group
		})
		if !inGroup || s.Op != op || s.Measure != measure || s.Step <= 0 {
			continue
		}
		for i, v := range s.Values {
			step := time.Duration(s.Step * float64(time.Second))
			at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
			whole := func(t result.Span) bool { return !at.Add(-step).Before(t.Start) && !at.After(t.End) }
			if v != nil && slices.ContainsFunc(w.Times(), whole) {
				f(s.VM, at.UnixMilli(), *v)
			}
		}
	}
}

func groupSums(w result.Workload, r Run, op, measure string) (values []float64, cuts []int, reason string) {
	if others(w, r.Data) {
		return nil, nil, "another workload ran on the same VMs at the same time, and points over time are per VM"
	}
	at := map[int64]float64{}
	each(w, r, op, measure, func(_ string, t int64, v float64) { at[t] += v })
	if len(at) == 0 {
		return nil, nil, "its rates were not recorded over time"
	}
	times := slices.Sorted(maps.Keys(at))
	return inOrder(at), cutsOf(times, windowStarts([]result.Workload{w})), ""
}

// groupProducts are the sums of rate times mean latency over the VMs of a group.
func groupProducts(w result.Workload, r Run, op string) ([]float64, string) {
	type place struct {
		vm string
		at int64
	}
	rates, sums := map[place]float64{}, map[int64]float64{}
	each(w, r, op, result.Rate, func(vm string, t int64, v float64) { rates[place{vm, t}] = v; sums[t] += 0 })
	found := false
	each(w, r, op, result.LatencyMean, func(vm string, t int64, v float64) {
		found = true
		sums[t] += v * rates[place{vm, t}]
	})
	if !found {
		return nil, "its latencies were not recorded over time"
	}
	return inOrder(sums), ""
}

// windowStarts are the moments at which workloads' windows begin, in milliseconds.
func windowStarts(loads []result.Workload) []int64 {
	var out []int64
	for _, w := range loads {
		for _, window := range w.Windows {
			out = append(out, window.Start.UnixMilli())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cutsOf are the points at which those moments have come.
func cutsOf(times, starts []int64) []int {
	var out []int
	for _, s := range starts {
		if i, _ := slices.BinarySearch(times, s); i > 0 && i < len(times) {
			out = append(out, i)
		}
	}
	return slices.Compact(out)
}

func inOrder(at map[int64]float64) []float64 {
	keys := slices.Sorted(maps.Keys(at))
	out := make([]float64, len(keys))
	for i, k := range keys {
		out[i] = at[k]
	}
	return out
}

// sidesOf are two sides of merged counts with the dependence of their operations at a quantile: the variance of the
// share of slower ones over time, over that of independent operations.
func sidesOf(b, c load, bo, co []result.OpTotals, q float64) (sides [2]effect.Side, reason string, warnings []string) {
	var shares [2][]ratioSeries
	for i, ops := range [][]result.OpTotals{bo, co} {
		sides[i].Merged = &hist.Histogram{}
		of := [2]load{b, c}[i]
		for j, o := range ops {
			sides[i].Merged.Merge(o.Hist)
			if o.OverTime == nil {
				return sides, "how its slow operations lie in time is not known: of a phase whose percentiles are " +
					"far from its run's, or of a run collected before that was kept (plimsoll report RUN --again " +
					"collects it anew)", nil
			}
			shares[i] = append(shares[i], shareSlower(o.OverTime, q, of.of[j]))
		}
	}
	own := [2][]within{}
	if len(bo) == 1 && len(co) == 1 && shares[0][0].reason == "" && shares[1][0].reason == "" {
		wb, wc := both(shares[0][0], shares[1][0])
		own = [2][]within{{wb}, {wc}}
	} else {
		for i := range own {
			for _, s := range shares[i] {
				own[i] = append(own[i], s.within())
			}
		}
	}
	for i, ops := range [][]result.OpTotals{bo, co} {
		var sum, squares, all float64
		for j, o := range ops {
			n, factor := float64(o.Hist.Count()), 1.0
			if shares[i][j].reason != ofOneKind {
				w := own[i][j]
				if w.reason != "" {
					return sides, w.reason, nil
				}
				warnings = append(warnings, w.warning)
				share := shares[i][j].mean()
				factor = w.relative * w.relative * share / (1 - share) * shares[i][j].weights()
				squares += n * factor * n * factor / w.dof
			}
			all, sum = all+n, sum+n*factor
		}
		sides[i].Dependence = sum / all
		if squares > 0 {
			sides[i].DOF = sum * sum / squares
		}
	}
	return sides, "", warnings
}

// ofOneKind is why the share of slower operations does not vary: all were of one latency.
const ofOneKind = "all operations took equally long"

func (s ratioSeries) weights() (sum float64) {
	for _, w := range s.weight {
		sum += w
	}
	return sum
}

func (s ratioSeries) mean() float64 {
	sum := 0.0
	for i, v := range s.value {
		sum += v * s.weight[i]
	}
	return sum / s.weights()
}

// shareSlower is the share of operations beyond a quantile over the time of a run. Checkpoints show best in the share
// beyond the lower ones.
func shareSlower(c *result.OverTime, q float64, w result.Workload) (out ratioSeries) {
	if len(c.Counts) < fewestPoints {
		return ratioSeries{reason: tooFew(len(c.Counts))}
	}
	out.reason = ofOneKind
	var times []int64
	for i := range c.Counts {
		times = append(times, c.Start.Add(time.Duration(float64(i)*c.Step*float64(time.Second))).UnixMilli())
	}
	for _, slower := range c.Slower {
		s := ratioSeries{cuts: cutsOf(times, windowStarts([]result.Workload{w}))}
		for i, n := range c.Counts {
			share := 0.0
			if i < len(slower.Counts) && n > 0 {
				share = float64(slower.Counts[i]) / float64(n)
			}
			s.value, s.weight = append(s.value, share), append(s.weight, float64(n))
		}
		if pulses := s.pulses(); len(pulses) > 1 && slower.Quantile < q {
			out.marks = pulses
		}
		if mean := s.mean(); slower.Quantile == q && mean > 0 && mean < 1 {
			out.value, out.weight, out.cuts, out.reason = s.value, s.weight, s.cuts, ""
		}
	}
	return out
}
