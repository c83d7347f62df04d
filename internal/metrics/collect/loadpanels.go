package collect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
	"plimsoll/scenario"
)

// workloadPanel makes a result from the generators' own reports. Rates are counters re-binned on a grid: with reports
// on the grid they are the difference of two reports over the time between them, the first report giving no point
// unless there is hardly another, and each point carrying the later time.
func (c *found) workloadPanel(r scenario.Result, p *result.Panel) error {
	value, cumulative, err := c.workloadValue(r, p)
	if err != nil {
		return err
	}
	byVM, silent := c.tracksByVM(r.Workload)
	var once []string // VMs of which nothing is known over time
	for vm, tracks := range byVM {
		if !cumulative && slices.ContainsFunc(tracks, func(k *track) bool { return k.reportedOnce(3 * time.Second) }) {
			once = append(once, vm)
			delete(byVM, vm)
		}
	}
	slices.Sort(once)
	switch {
	case len(once) > 0 && (len(byVM) == 0 || r.Aggregate != ""):
		return fmt.Errorf("workload %q reported once, at its end: nothing is known over time; its mean is among "+
			"the figures", r.Workload)
	case len(once) > 0:
		p.Notes = append(p.Notes, "one report only, at the end, so nothing over time: "+strings.Join(once, ", "))
	}
	switch {
	case len(byVM) == 0 && len(silent) == 0:
		return fmt.Errorf("workload %q never started", r.Workload)
	case len(byVM) == 0:
		return fmt.Errorf("workload %q left no reports", r.Workload)
	case len(silent) > 0 && r.Aggregate != "":
		return fmt.Errorf("the aggregate is not made because %s left no reports", strings.Join(silent, ", "))
	case len(silent) > 0:
		p.Notes = append(p.Notes, "no reports from "+strings.Join(silent, ", "))
	}
	vms := make([]string, 0, len(byVM))
	for vm := range byVM {
		vms = append(vms, vm)
	}
	slices.Sort(vms)
	g, end := c.reportGrid(r, byVM)
	if cumulative && r.Aggregate == "" {
		g.step = time.Second // filled forward
	}
	g = bounded(p, g, end, len(vms))
	var lines [][]*float64
	for _, vm := range vms {
		lines = append(lines, sampled(byVM[vm], g, value, cumulative))
	}
	head := result.Series{Group: r.Group, Workload: r.Workload, Unit: p.Unit, Start: g.start, Step: g.step.Seconds()}
	if r.Aggregate != "" {
		values, err := aggregate(r.Aggregate, lines)
		if err != nil {
			return err
		}
		head.Name, head.Values = r.Title, values
		p.Series = []result.Series{head}
		return nil
	}
	for k, values := range lines {
		s := head
		s.Name, s.VM, s.Values = r.Title, vms[k], values
		if len(lines) > 1 {
			s.Name = fmt.Sprintf("%s (VM %d)", r.Title, k)
		}
		p.Series = append(p.Series, s)
	}
	return nil
}

// workloadValue picks what a result of a workload shows of its counters, and puts its unit into the panel. Operations
// are all that the workload does, of a generator of block I/O reads and writes.
func (c *found) workloadValue(r scenario.Result, p *result.Panel) (value func(tally.Totals, time.Duration) float64,
	cumulative bool, err error) {
	var ops []int
	moving := false
	rate := result.OperationsUnit
	for at, o := range c.layout.Operations {
		if !c.declares(r.Workload, o) || o.Block == result.BlockDiscard {
			continue
		}
		ops, moving = append(ops, at), moving || o.Bytes
		if unit := o.RateUnit(); len(ops) == 1 {
			rate = unit
		} else if unit != rate {
			rate = "operations/s"
		}
	}
	sum := func(t tally.Totals, of func(tally.Totals, int) float64) (s float64) {
		for _, at := range ops {
			s += of(t, at)
		}
		return s
	}
	switch strings.ToLower(r.Type) {
	case "iops":
		p.Unit = rate
		value = func(t tally.Totals, d time.Duration) float64 { return sum(t, tally.Totals.Ops) / d.Seconds() }
	case "bandwidth":
		if len(ops) > 0 && !moving {
			return nil, false, fmt.Errorf("workload %q moves no bytes that are counted", r.Workload)
		}
		p.Unit = "bytes/s"
		value = func(t tally.Totals, d time.Duration) float64 { return sum(t, tally.Totals.Bytes) / d.Seconds() }
	case "active":
		p.Unit = "bool"
		value = func(t tally.Totals, d time.Duration) float64 {
			return math.Floor(min(sum(t, tally.Totals.Ops)/d.Seconds(), 1))
		}
	case "errors":
		p.Unit, cumulative = "count", true
		value = func(t tally.Totals, _ time.Duration) float64 { return math.Floor(t.Errors()) }
	default:
		return nil, false, fmt.Errorf("result type %q is not one of workloads", r.Type)
	}
	return value, cumulative, nil
}

// declares reports whether a workload counts an operation.
func (c *found) declares(load string, o result.Operation) bool {
	return slices.ContainsFunc(c.tracks, func(k *track) bool {
		return k.job.Workload == load && !k.job.Prefill &&
			slices.ContainsFunc(k.job.Operations, func(x result.Operation) bool {
				return x.Name == o.Name
			})
	})
}

// tracksByVM are the starts of a workload that left reports, and the VMs on which none did.
func (c *found) tracksByVM(load string) (byVM map[string][]*track, silent []string) {
	byVM = map[string][]*track{}
	for _, k := range c.tracks {
		if k.job.Workload == load && !k.job.Prefill && len(k.marks) > 1 {
			byVM[k.job.VM] = append(byVM[k.job.VM], k)
		}
	}
	for _, k := range c.tracks {
		if k.job.Workload == load && !k.job.Prefill && byVM[k.job.VM] == nil && !slices.Contains(silent, k.job.VM) {
			silent = append(silent, k.job.VM)
		}
	}
	return byVM, silent
}

// reportGrid is the grid of a workload's result: the usual time between its reports, for aggregates the author's
// reporting interval if that is longer, from the first report's whole second to the last report.
func (c *found) reportGrid(r scenario.Result, byVM map[string][]*track) (g grid, end time.Time) {
	var start time.Time
	step := time.Second
	for _, tracks := range byVM {
		for _, k := range tracks {
			step = max(step, k.spacing().Round(time.Second))
			if first := k.since(); start.IsZero() || first.Before(start) {
				start = first
			}
			end = tally.Later(end, k.to())
		}
	}
	if r.Aggregate != "" {
		for _, w := range c.sc.Workloads {
			if w.Name == r.Workload {
				step = max(step, c.scaledStep(max(w.ReportingInterval, time.Second)))
			}
		}
	}
	return grid{start: start.Truncate(time.Second), step: step}, end
}

// since is the moment from which a start's rates are shown: its first report, or the beginning of its count where the
// reports after that one cover less than three seconds, which would leave a short job without figures.
func (k *track) since() time.Time {
	if k.to().Sub(k.marks[1].At) < 3*time.Second {
		return k.marks[0].At
	}
	return k.marks[1].At
}

// bounded lengthens the step where the panel would become too large, and says so; the grid's points reach from start to
// end.
func bounded(p *result.Panel, g grid, end time.Time, lines int) grid {
	span := end.Sub(g.start)
	if most := max(mostPanelValues/lines, fewestCells); int(span/g.step) > most {
		asked := g.step
		g.step = (span/time.Duration(most) + time.Second - 1).Truncate(time.Second)
		p.Notes = append(p.Notes, fmt.Sprintf("re-binned to %v instead of %v: %v is too long for that", g.step, asked,
			span.Round(time.Second)))
	}
	g.n = int((span+g.step-1)/g.step) + 1
	return g
}

// sampled reads a value at every point of the grid. A rate at t is of the step before t, or of that part of it for
// which there are reports; the first report gives none. Cumulative values are those at t.
func sampled(tracks []*track, g grid, value func(tally.Totals, time.Duration) float64, cumulative bool) []*float64 {
	const least = 500 * time.Millisecond // a shorter part says nothing about a rate
	out := make([]*float64, g.n)
	for i := range out {
		t := g.edge(i)
		sum, any := tracks[0].meter.Layout.Zero(), false
		for _, k := range tracks {
			if cumulative {
				if !t.Before(k.marks[1].At.Truncate(time.Second)) {
					sum.Add(k.at(t))
					any = true
				}
				continue
			}
			from, to := tally.Later(t.Add(-g.step), k.since()), tally.Earlier(t, k.to())
			if part := to.Sub(from); part >= least {
				sum.AddPart(k.at(from), k.at(to), float64(g.step)/float64(part))
				any = true
			}
		}
		if any {
			v := significant(value(sum, g.step), 9)
			out[i] = &v
		}
	}
	return out
}

// aggregate combines the VMs per cell; VMs without a value there are left out.
func aggregate(how string, lines [][]*float64) ([]*float64, error) {
	combine := map[string]func([]float64) float64{
		"sum": sum, "min": slices.Min[[]float64], "max": slices.Max[[]float64], "median": median,
		"mean": func(v []float64) float64 { return sum(v) / float64(len(v)) },
	}[how]
	if combine == nil {
		return nil, fmt.Errorf("aggregate %q is not defined; use sum, min, mean, median or max", how)
	}
	out := make([]*float64, len(lines[0]))
	var column []float64
	for i := range out {
		column = column[:0]
		for _, l := range lines {
			if l[i] != nil {
				column = append(column, *l[i])
			}
		}
		if len(column) > 0 {
			v := significant(combine(column), 9)
			out[i] = &v
		}
	}
	return out, nil
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

// median is the middle value, or the mean of the two middle ones.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
