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
	cuts          []int  // where parts of the run begin that differ on purpose, such as before and with a neighbour
	reason        string // why there is none
}

// within is what one run says of its own steadiness: the standard error of its mean relative to it.
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
	n := len(s.value)
	switch {
	case s.reason != "":
		return within{reason: s.reason}
	case n < fewestPoints:
		return within{reason: tooFew(n)}
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
		return within{reason: fmt.Sprintf("%d points in time with operations are too few for an interval within the "+
			"run, %d are needed", busy, fewestPoints)}
	}
	whole := values / weights
	if !(math.Abs(whole) > 0) || math.IsInf(whole, 0) {
		return within{reason: "its mean is zero"}
	}
	terms := make([]float64, n)
	for i, v := range s.value {
		terms[i] = weight[i] * (v - whole)
	}
	all := serial.SumOf(terms, s.cuts)
	if all.Worth < fewestWorth {
		return within{reason: fmt.Sprintf("the run is too short for its own dependence: its %d points in time are "+
			"worth %.2g independent ones", n, all.Worth)}
	}
	out := within{relative: math.Sqrt(all.Variance) / weights / math.Abs(whole), dof: all.DOF}
	if all.Worth < enoughWorth {
		out.warning = shortFor(n, all.Worth)
	}
	return out
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

// aligned is what two single runs of one length say together of their difference, point by point: a step, a fill or a
// repetition that both have at the same time cancels, where in each alone it looks like dependence. It is the standard
// error of the logarithm of their ratio, to first order; false where they do not correspond.
func aligned(b, c []ratioSeries) (within, bool) {
	if len(b) != 1 || len(c) != 1 || b[0].reason != "" || c[0].reason != "" || len(b[0].value) != len(c[0].value) ||
		len(b[0].value) < fewestPoints {
		return within{}, false
	}
	tb, wb, okb := b[0].terms()
	tc, wc, okc := c[0].terms()
	if !okb || !okc {
		return within{}, false
	}
	for i := range tb {
		tb[i] = tc[i]/wc - tb[i]/wb
	}
	all := serial.SumOf(tb, nil)
	if all.Worth < fewestWorth {
		return within{}, false
	}
	out := within{relative: math.Sqrt(all.Variance), dof: all.DOF}
	if all.Worth < enoughWorth {
		out.warning = shortFor(len(tb), all.Worth)
	}
	return out, true
}

// terms are what each point adds to the error of the mean, of first order, and what their sum is relative to.
func (s ratioSeries) terms() (terms []float64, whole float64, ok bool) {
	var values, weights float64
	weight := s.weight
	if weight == nil {
		weight = slices.Repeat([]float64{1}, len(s.value))
	}
	for i, v := range s.value {
		values, weights = values+v*weight[i], weights+weight[i]
	}
	if !(values != 0 && weights > 0) {
		return nil, 0, false
	}
	for i, v := range s.value {
		terms = append(terms, weight[i]*(v-values/weights))
	}
	return terms, math.Abs(values), true
}

func shortFor(points int, worth float64) string {
	return fmt.Sprintf(
		"the run is short for its own dependence: its %d points in time are worth %.2g independent ones, so the interval may be too narrow",
		points,
		worth,
	)
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
// the time by
// which the workload is judged.
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

// sideOf is a side of merged counts with the dependence of its operations at a quantile: the variance of the share of
// slower ones over time, by slow waves, over that of independent operations.
func sideOf(l load, ops []result.OpTotals, q float64) (s effect.Side, reason, warning string) {
	s.Merged = &hist.Histogram{}
	var sum, squares, all float64
	for i, o := range ops {
		s.Merged.Merge(o.Hist)
		if o.OverTime == nil {
			return s, "how its slow operations lie in time is not known: of a phase whose percentiles are far from " +
					"its run's, or of a run collected before that was kept (plimsoll report RUN --again collects " +
					"it anew)",
				""
		}
		n := float64(o.Hist.Count())
		factor, own := dependence(o.OverTime, q, l.of[i])
		if own.reason != "" {
			return s, own.reason, ""
		}
		warning = cmp.Or(warning, own.warning)
		all += n
		sum += n * factor
		if own.dof > 0 {
			squares += n * factor * n * factor / own.dof
		}
	}
	s.Dependence = sum / all
	if squares > 0 {
		s.DOF = sum * sum / squares
	}
	return s, "", warning
}

// dependence is the design effect at a quantile of one run, and how well the share it is of is known; 1, and certain,
// when all operations were of one latency.
func dependence(c *result.OverTime, q float64, w result.Workload) (factor float64, own within) {
	if len(c.Counts) < fewestPoints {
		return 0, within{reason: tooFew(len(c.Counts))}
	}
	at := slices.IndexFunc(c.Slower, func(s result.Slower) bool { return s.Quantile == q })
	if at < 0 {
		return 1, within{}
	}
	var s ratioSeries
	var times []int64
	var slower, all float64
	for i, n := range c.Counts {
		k := 0.0
		if i < len(c.Slower[at].Counts) {
			k = float64(c.Slower[at].Counts[i])
		}
		share := 0.0
		if n > 0 {
			share = k / float64(n)
		}
		s.value, s.weight = append(s.value, share), append(s.weight, float64(n))
		slower, all = slower+k, all+float64(n)
		times = append(times, c.Start.Add(time.Duration(float64(i)*c.Step*float64(time.Second))).UnixMilli())
	}
	if share := slower / all; share > 0 && share < 1 {
		s.cuts = cutsOf(times, windowStarts([]result.Workload{w}))
		own = s.within()
		return own.relative * own.relative * share / (1 - share) * all, own
	}
	return 1, within{}
}
