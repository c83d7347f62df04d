package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// ratioSeries is a quantity over time. With weights it is the ratio Σ value·weight ÷ Σ weight, such as a mean latency, whose
// seconds of few operations count for less.
type ratioSeries struct {
	value, weight []float64
	cuts          []int  // where parts of the run begin that differ on purpose, such as before and with a neighbour
	reason        string // why there is none
}

// within is what one run says of its own steadiness: the standard error of its mean relative to it.
type within struct {
	relative float64
	dof      float64
	reason   string
}

const fewestBlocks = 5

// blocks measures the standard error of a mean from blocks of neighbouring points, within the parts of a run that differ on
// purpose. A block is four autocorrelation times long, and at least the cube root of the length.
//
// The variance is that of a circular block bootstrap (Politis and Romano 1992) of the ratio's first-order terms, which needs
// no resampling. Blocks of length l miss what reaches across their ends, a share of order 1/l (Künsch 1989): twice the
// variance at l less that at l/2 is free of it (Politis and Romano 1995, Journal of Time Series Analysis 16). It is the
// trapezoid lag window, whose degrees of freedom are 3/4 of the number of blocks (Priestley 1981, 6.2).
func blocks(s ratioSeries) within {
	n := len(s.value)
	switch {
	case s.reason != "":
		return within{reason: s.reason}
	case n < 2*fewestBlocks:
		return within{reason: fmt.Sprintf("%d points in time are too few for an interval within the run", n)}
	}
	parts := s.parts()
	long := max(int(math.Ceil(4*serial.Time(s.flat(parts)))), int(math.Ceil(math.Cbrt(float64(n)))))
	if n/long < fewestBlocks {
		return within{reason: fmt.Sprintf("the run is too short: it holds %d independent stretches of its own time, and %d are needed", n/long, fewestBlocks)}
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
	if busy < 2*fewestBlocks {
		return within{reason: fmt.Sprintf("%d points in time with operations are too few for an interval within the run", busy)}
	}
	whole := values / weights
	if !(math.Abs(whole) > 0) || math.IsInf(whole, 0) {
		return within{reason: "its mean is zero"}
	}
	variance := 0.0
	for _, p := range parts {
		terms := make([]float64, p[1]-p[0])
		for i := range terms {
			terms[i] = weight[p[0]+i] * (s.value[p[0]+i] - whole)
		}
		variance += sumVariance(terms, long)
	}
	pieces := float64(n) / float64(long)
	return within{relative: math.Sqrt(variance) / weights / math.Abs(whole), dof: max(0.75*pieces-float64(len(parts)-1), 1)}
}

// sumVariance is the variance of the sum of a part's terms, never below that of plain blocks.
func sumVariance(terms []float64, long int) float64 {
	long = min(long, len(terms)/2)
	if long < 1 {
		return 0
	}
	c := newCircle(terms)
	plain := c.blockVariance(long)
	if long < 2 {
		return plain
	}
	return max(2*plain-c.blockVariance(long/2), plain)
}

// parts are the stretches between cuts that hold a point.
func (s ratioSeries) parts() [][2]int {
	var out [][2]int
	from := 0
	for _, c := range append(slices.Clone(s.cuts), len(s.value)) {
		if c > from && c <= len(s.value) {
			out = append(out, [2]int{from, c})
			from = c
		}
	}
	return out
}

// flat are the values without the means of the parts, which are no dependence.
func (s ratioSeries) flat(parts [][2]int) []float64 {
	out := slices.Clone(s.value)
	for _, p := range parts {
		m := mean(out[p[0]:p[1]])
		for i := p[0]; i < p[1]; i++ {
			out[i] -= m
		}
	}
	return out
}

// circle holds the sums up to each point of a part, twice around, so that a block costs one subtraction.
type circle struct {
	n    int
	sums []float64
}

func newCircle(terms []float64) circle {
	n := len(terms)
	c := circle{n, make([]float64, 2*n+1)}
	for i := range 2 * n {
		c.sums[i+1] = c.sums[i] + terms[i%n]
	}
	return c
}

// blockVariance is the variance of the sum of all terms as blocks of a length tell it. Blocks around their own mean spread
// too little by (n−long)/n.
func (c circle) blockVariance(long int) float64 {
	n, l := float64(c.n), float64(long)
	middle, squares := c.sums[c.n]/n*l, 0.0
	for i := range c.n {
		d := c.sums[i+long] - c.sums[i] - middle
		squares += d * d
	}
	return squares / l * n / (n - l)
}

// blocksOf joins the runs of a side of which the other side is single.
func blocksOf(runs []ratioSeries) within {
	if len(runs) == 0 {
		return within{reason: "no points over time"}
	}
	var sum, dof float64
	for _, s := range runs {
		w := blocks(s)
		if w.reason != "" {
			return w
		}
		sum += w.relative * w.relative
		dof += w.dof
	}
	k := float64(len(runs))
	return within{relative: math.Sqrt(sum) / k, dof: dof}
}

func withinOf(l load, part func(result.Workload, Run) ratioSeries) within {
	var runs []ratioSeries
	for i, w := range l.of {
		runs = append(runs, part(w, l.runs[i]))
	}
	return blocksOf(runs)
}

// difference is the change of one run against another with an interval on the logarithm: Student's t on the two relative
// standard errors, with Satterthwaite's degrees of freedom.
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
		Method: "blocks of each run's own time, Student's t"}
	d := o.Direction
	if d == "" {
		d = effect.HigherIsBetter
	}
	return outcome{effect.Estimate{Value: cv/bv - 1, Interval: i}, decide(i, o.Threshold, d)}
}

// rateSeries is the throughput of a workload's operations at each point of its time, from the VMs of its group.
func rateSeries(w result.Workload, r Run, op string) ratioSeries {
	sums, cuts, reason := groupSums(w, r, op+"_iops")
	return ratioSeries{value: sums, cuts: cuts, reason: reason}
}

// latencySeries is the mean latency at each point, weighted by the operations there.
func latencySeries(w result.Workload, r Run, op string) ratioSeries {
	rates, cuts, reason := groupSums(w, r, op+"_iops")
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

// others reports whether another workload of the group ran at the same time, so that the VMs' series are not this one's alone.
func others(w result.Workload, d *result.Data) bool {
	return slices.ContainsFunc(d.Workloads, func(o result.Workload) bool {
		return o.Group == w.Group && o.Name != w.Name && o.Start.Before(w.End) && w.Start.Before(o.End)
	})
}

// each calls f with every point in the workload's time of a series of a VM of its group.
func each(w result.Workload, r Run, metric string, f func(vm string, at int64, v float64)) {
	for _, s := range r.Data.Series {
		inGroup := s.VM != "" && slices.ContainsFunc(r.Data.VMs, func(vm result.VM) bool { return vm.Name == s.VM && vm.Group == w.Group })
		if !inGroup || s.Metric != metric || s.Step <= 0 {
			continue
		}
		for i, v := range s.Values {
			at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
			if v != nil && !at.Before(w.Start) && !at.After(w.End) {
				f(s.VM, at.UnixMilli(), *v)
			}
		}
	}
}

func groupSums(w result.Workload, r Run, metric string) (values []float64, cuts []int, reason string) {
	if others(w, r.Data) {
		return nil, nil, "another workload ran on the same VMs at the same time, and points over time are per VM"
	}
	at := map[int64]float64{}
	each(w, r, metric, func(_ string, t int64, v float64) { at[t] += v })
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
	each(w, r, op+"_iops", func(vm string, t int64, v float64) { rates[place{vm, t}] = v; sums[t] += 0 })
	found := false
	each(w, r, op+"_latency_mean", func(vm string, t int64, v float64) { found = true; sums[t] += v * rates[place{vm, t}] })
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

// dependence is how many times wider a percentile's interval must be than if operations were independent: the standard
// error of the share of operations beyond the percentile, by blocks of the heat map's time, over the binomial one. At
// least 1. Where there is too little of a heat map to tell, the reason is why there is no interval.
func dependence(l load, q float64) (widest float64, reason string) {
	widest = 1.0
	for _, w := range l.of {
		if w.Heat == nil {
			return 0, "there is no heat map to tell how operations depend on each other"
		}
		if n := len(w.Heat.Counts); n < 2*fewestBlocks {
			return 0, fmt.Sprintf("%d points in time are too few for an interval within the run", n)
		}
		s, share, n := beyond(w.Heat, q)
		times := make([]int64, len(s.value))
		for i := range times {
			times[i] = w.Heat.Start.Add(time.Duration(float64(i) * w.Heat.Step * float64(time.Second))).UnixMilli()
		}
		s.cuts = cutsOf(times, windowStarts([]result.Workload{w}))
		if n == 0 || share <= 0 || share >= 1 {
			continue
		}
		if b := blocks(s); b.reason == "" {
			widest = max(widest, b.relative*share/math.Sqrt(share*(1-share)/n))
		}
	}
	return widest, ""
}

// beyond is the share of operations above the row of a heat map that is nearest to a percentile, over time.
func beyond(h *result.HeatMap, q float64) (s ratioSeries, share, n float64) {
	rows := make([]float64, max(len(h.EdgesNs)-1, 0))
	for _, column := range h.Counts {
		for r, c := range column {
			if r < len(rows) {
				rows[r] += float64(c)
				n += float64(c)
			}
		}
	}
	cut, below := 0, 0.0
	for cut < len(rows) && below+rows[cut]/2 < q*n {
		below += rows[cut]
		cut++
	}
	share = 1 - below/n
	for _, column := range h.Counts {
		var all, above float64
		for r, c := range column {
			all += float64(c)
			if r >= cut {
				above += float64(c)
			}
		}
		v := 0.0
		if all > 0 {
			v = above / all
		}
		s.value, s.weight = append(s.value, v), append(s.weight, all)
	}
	return s, share, n
}
