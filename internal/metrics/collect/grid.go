package collect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// Limits of what data.json holds beside the scenario's own results. They keep the report of one hour of 50 VMs below 3
// MB.
const (
	mostPoints  = 720     // per series
	fewestCells = 60      // never coarser than this many points
	mostValues  = 120_000 // in all of Data.Series
	metricsPer  = 12      // series per VM and per group, at most
	mostGroups  = 8       // with more groups only the total over all is made
	mostSharing = 16      // with more workloads that share a group's VMs, none gets views of its own
)

// grid is the time axis of Data.Series: n cells of step from start. A cell's value carries the time of its end.
type grid struct {
	start    time.Time
	step     time.Duration
	n        int
	interval time.Duration // longest usual time between reports
	detail   time.Duration // the same between those with histograms
}

// detailed is the grid whose cells are long enough for every one to hold a report with histograms.
func (g grid) detailed() grid {
	step := (g.detail + g.step - 1) / g.step * g.step
	if step <= g.step {
		return g
	}
	n := g.n * int(g.step/time.Second)
	g.n, g.step = (n+int(step/time.Second)-1)/int(step/time.Second), step
	return g
}

func (g grid) edge(i int) time.Time { return g.start.Add(time.Duration(i) * g.step) }

// cell is the index of the cell that holds t, which may be outside 0..n-1.
func (g grid) cell(t time.Time) int {
	return int(math.Floor(float64(t.Sub(g.start)) / float64(g.step)))
}

// longestSpan keeps the times of a damaged folder from becoming a grid without end.
const longestSpan = 10 * 365 * 24 * time.Hour

// planGrid chooses the step: whole seconds, not shorter than the interval between reports, within the limits.
func (c *planned) planGrid(ctx context.Context) {
	for _, vm := range c.vms {
		if !vm.NeverSeenOn && !slices.Contains(c.groups, vm.Group) {
			c.groups = append(c.groups, vm.Group)
		}
	}
	slices.Sort(c.groups)
	if len(c.groups) > mostGroups {
		c.groups = nil
	}
	points := mostValues / (metricsPer * (len(c.vms) + len(c.groups) + len(c.sharing()) + 1))
	points = min(max(points, fewestCells), mostPoints)
	span := min(max(c.end.Sub(c.start), time.Second), longestSpan)
	spacing, detail := c.intervals(ctx)
	c.spacing = spacing
	interval := time.Duration(0)
	for _, d := range c.spacing {
		interval = max(interval, d)
	}
	step := max(time.Second, interval, span/time.Duration(points))
	step = (step + time.Second - 1).Truncate(time.Second)
	c.grid = grid{c.start, step, int((span + step - 1) / step), interval, detail}
}

// intervals are the usual times between the reports of workloads, and the longest between those with histograms, judged
// by the beginning of one output of each.
func (c *planned) intervals(ctx context.Context) (between map[string]time.Duration, detail time.Duration) {
	const enough, few = 1 << 20, 8
	between = map[string]time.Duration{}
	for _, k := range c.tracks {
		engine := c.engines[k.job.Engine]
		if _, seen := between[k.job.Workload]; seen || len(between) >= few || k.job.Prefill || engine == nil ||
			ctx.Err() != nil {
			continue
		}
		between[k.job.Workload] = 0
		raw, err := c.folder.OpenRaw(k.job)
		if err != nil {
			continue // said when it is replayed
		}
		var times sampler
		// what it objects to is said when all is replayed
		_, _ = engine.Parse(declared(k.job), io.LimitReader(raw, enough), &times)
		_ = raw.Close()
		between[k.job.Workload], detail = usual(times.times), max(detail, usual(times.details))
	}
	return between, detail
}

// sampler notes when reports were made, and those of them that have histograms.
type sampler struct{ times, details []time.Time }

func (s *sampler) Report(r workload.Report) {
	if r.Time.IsZero() {
		r.Time = r.Time.Add(r.Elapsed)
	}
	s.times = append(s.times, r.Time)
	if tally.HistsOf(r.Ops) != nil {
		s.details = append(s.details, r.Time)
	}
}

func (s *sampler) Warn(string) {}

// usual is the median of the times between.
func usual(times []time.Time) time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i].Sub(times[i-1]))
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return max(0, gaps[len(gaps)/2].Round(100*time.Millisecond))
}

// cells are latency histograms on a grid, by operation of the layout, and the quantiles read from them.
type cells struct {
	grid  grid
	hists [][]*hist.Histogram
	q     [][len(quantiles)][]*float64 // microseconds; filled by quantiles
}

// quantiles that are drawn, with their names in Data.Series.
var quantiles = [...]struct {
	q       float64
	measure string
}{{0.5, result.LatencyP50}, {0.99, result.LatencyP99}, {0.999, result.LatencyP999}}

func newCells(g grid, operations int) *cells {
	return &cells{grid: g, hists: make([][]*hist.Histogram, operations),
		q: make([][len(quantiles)][]*float64, operations)}
}

// add puts what happened between two states into a cell; outside the grid it is left out.
func (c *cells) add(cell int, from, to tally.Mark) error {
	if cell < 0 || cell >= c.grid.n {
		return nil
	}
	d, err := histsBetween(from, to)
	for i, h := range d {
		c.put(i, cell, h)
	}
	return err
}

// put adds a histogram to a cell, which keeps it where it is the first.
func (c *cells) put(op, cell int, h *hist.Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	if c.hists[op] == nil {
		c.hists[op] = make([]*hist.Histogram, c.grid.n)
	}
	if c.hists[op][cell] == nil {
		c.hists[op][cell] = h
		return
	}
	c.hists[op][cell].Merge(h)
}

func (c *cells) merge(o *cells) {
	for op := range o.hists {
		for i, h := range o.hists[op] {
			if h != nil && (c.hists[op] == nil || c.hists[op][i] == nil) {
				h = h.Clone()
			}
			c.put(op, i, h)
		}
	}
}

// quantiles reads the quantiles and lets the histograms go.
func (c *cells) quantiles() *cells {
	for op := range c.hists {
		for k, want := range quantiles {
			out := make([]*float64, c.grid.n)
			for i, h := range c.hists[op] {
				if h == nil {
					continue
				}
				if v, ok := h.Quantile(want.q); ok {
					us := significant(float64(v)/1e3, 5)
					out[i] = &us
				}
			}
			c.q[op][k] = out
		}
	}
	c.hists = nil
	return c
}

// without are the cells without the quantiles of some of them.
func (c *cells) without(not []bool) *cells {
	if !slices.Contains(not, true) {
		return c
	}
	out := &cells{grid: c.grid, q: slices.Clone(c.q)}
	for op := range out.q {
		for k := range out.q[op] {
			values := slices.Clone(out.q[op][k])
			for i := range values {
				if i < len(not) && not[i] {
					values[i] = nil
				}
			}
			out.q[op][k] = values
		}
	}
	return out
}

// significant rounds to so many decimal digits, which keeps documents small and free of floating point noise.
func significant(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	e := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if e >= 0 {
		p := math.Pow10(e)
		if math.IsInf(p, 0) {
			return v
		}
		return math.Round(v*p) / p
	}
	p := math.Pow10(-e)
	return math.Round(v/p) * p
}

// series makes the per-VM, per-group and total views.
func (c *replayed) series(ctx context.Context) []result.Series {
	var out []result.Series
	all, onVM := c.having(func(*track) bool { return true }), map[string][]*track{}
	for _, k := range all {
		onVM[k.job.VM] = append(onVM[k.job.VM], k)
	}
	for _, vm := range c.vms {
		own := c.perVM[vm.Name]
		if own == nil {
			continue
		}
		out = append(out, c.views(result.Series{Name: vm.Name, VM: vm.Name, Group: vm.Group}, onVM[vm.Name], own)...)
	}
	for i, g := range c.groups {
		tracks := c.having(func(k *track) bool { return k.job.Group == g })
		out = append(out, c.views(result.Series{Name: g, Group: g}, tracks, c.total[i].quantiles())...)
	}
	if len(c.groups) != 1 && c.m.Target != result.ImportTarget { // files of different tools are no sum
		out = append(out, c.views(result.Series{Name: "all VMs"}, all, c.total[len(c.groups)].quantiles())...)
	}
	for _, l := range c.sharing() {
		tracks := c.having(func(k *track) bool { return c.loadOf(k) == l })
		out = append(out, c.views(result.Series{Name: l.name, Group: l.group, Workload: l.name}, tracks, nil)...)
	}
	for _, l := range c.loads {
		out = append(out, c.sectionViews(l)...)
	}
	return slices.Concat(out, c.nodeCPU(ctx), c.machines(ctx), c.databases(ctx))
}

// sharing are the workloads that share VMs with another, so that the views of groups do not tell them apart: within a
// group, or, where a file holds several tests, as groups of their own of which its machine has the last one's.
func (c *found) sharing() []*loadPlan {
	in, groups := map[string]int{}, map[string]bool{}
	for _, vm := range c.vms {
		groups[vm.Group] = true
	}
	for _, l := range c.loads {
		if !l.prefill {
			in[l.group]++
		}
	}
	var out []*loadPlan
	for _, l := range c.loads {
		if !l.prefill && (in[l.group] > 1 || !groups[l.group]) {
			out = append(out, l)
		}
	}
	if len(out) > mostSharing {
		return nil
	}
	return out
}

// nodeCPU are the nodes' CPU use on the grid, where the target serves it, whether or not the scenario shows it.
func (c *replayed) nodeCPU(ctx context.Context) []result.Series {
	if c.store == nil || c.grid.n == 0 {
		return nil
	}
	query := fmt.Sprintf("sum by (node, instance) (%s{scenario_id=\"%d\"})",
		record.ClusterSeries("CpuUsage.Avg.Percent"), c.m.Scenario.ID)
	start, end := c.grid.edge(1), c.grid.edge(c.grid.n)
	found, err := c.store.Range(ctx, query, start, end, c.grid.step)
	if err != nil {
		c.problem("CPU of the nodes: %v", err)
		return nil
	}
	slices.SortStableFunc(found, func(a, b series.Series) int {
		return cmp.Or(cmp.Compare(len(a.Label("node")), len(b.Label("node"))),
			cmp.Compare(a.Label("node"), b.Label("node")))
	})
	var out []result.Series
	for _, s := range found {
		out = append(out, onGrid(result.Series{Name: s.Label("instance"), Measure: result.NodeCPU, Unit: "%"}, s.Points,
			start, end, c.grid.step))
	}
	return out
}

// having lists the tracks with reports for which keep says yes.
func (c *found) having(keep func(*track) bool) []*track {
	var out []*track
	for _, k := range c.tracks {
		if len(k.marks) > 1 && keep(k) {
			out = append(out, k)
		}
	}
	return out
}

// reportedOnce reports whether a start left one report only, of more time than a step: what it did when nobody knows,
// and a line through it would look steady.
func (k *track) reportedOnce(step time.Duration) bool {
	return len(k.marks) == 2 && k.to().Sub(k.from()) > step
}

// unknown are the cells of a grid during which what some of the tracks did is not known.
func unknown(tracks []*track, g grid) []bool {
	out := make([]bool, g.n)
	for _, k := range tracks {
		if k.reportedOnce(g.step) {
			last := min(g.n-1, g.cell(k.to().Add(-1)))
			for i := max(0, g.cell(k.from())); i <= last; i++ {
				out[i] = true
			}
		}
	}
	return out
}

// views makes the series of some tracks together; those without any operation are left out. q nil leaves out
// percentiles.
func (c *replayed) views(head result.Series, tracks []*track, q *cells) []result.Series {
	if q != nil {
		q = q.without(unknown(tracks, q.grid))
	}
	return append(views(c.layout, head, c.grid, c.binned(tracks, c.grid), machines(tracks), q),
		c.figures(head, tracks)...)
}

// machines is how many the tracks are of.
func machines(tracks []*track) float64 {
	of := map[string]bool{}
	for _, k := range tracks {
		of[k.job.VM] = true
	}
	return float64(max(len(of), 1))
}

// views makes the series of what was done in each cell of a grid by so many machines.
func views(l tally.Layout, head result.Series, g grid, rates []tally.Totals, machines float64,
	q *cells) []result.Series {
	var out []result.Series
	add := func(g grid, op, measure, unit string, values []*float64) {
		s := head
		s.Op, s.Measure, s.Unit, s.Start, s.Step, s.Values = op, measure, unit, g.edge(1), g.step.Seconds(), values
		out = append(out, s)
	}
	occurs := func(value func(tally.Totals) float64) bool {
		return slices.ContainsFunc(rates, func(t tally.Totals) bool { return t != nil && value(t) > 0 })
	}
	per := g.step.Seconds()
	for i, op := range l.Operations {
		if !occurs(func(t tally.Totals) float64 { return t.Ops(i) }) {
			continue
		}
		rate := func(of func(tally.Totals) float64) []*float64 {
			return pick(rates, func(t tally.Totals) (float64, bool) { return of(t) / per, true })
		}
		add(g, op.Name, result.Rate, op.RateUnit(), rate(func(t tally.Totals) float64 { return t.Ops(i) }))
		if op.Bytes {
			add(g, op.Name, result.Bandwidth, "bytes/s", rate(func(t tally.Totals) float64 { return t.Bytes(i) }))
		}
		if !occurs(func(t tally.Totals) float64 { return t.Seconds(i) }) {
			continue
		}
		add(g, op.Name, result.LatencyMean, "us",
			pick(rates, func(t tally.Totals) (float64, bool) { return t.Seconds(i) / t.Ops(i) * 1e6, t.Ops(i) >= 1 }))
		for k, want := range quantiles {
			if q != nil {
				add(q.grid, op.Name, want.measure, "us", q.q[i][k])
			}
		}
	}
	for k, m := range l.Measures {
		unit := m.Unit
		switch m.Kind {
		case result.Single:
			continue
		case result.Count:
			unit += "/s"
		}
		over := per
		if m.Averages() {
			over *= machines
		}
		if occurs(func(t tally.Totals) float64 { return l.Measure(t, k) }) {
			add(g, "", m.Name, unit, pick(rates, func(t tally.Totals) (float64, bool) {
				untold := l.Untold(t, k) // of a sum of machines it cannot be told whose
				return l.Measure(t, k) / (over - untold),
					untold < leastTold || over-untold > leastTold && (m.Averages() || machines == 1)
			}))
		}
	}
	return out
}

// figures are the series of measures that cannot be added, of a single machine: the last one reported in each cell.
func (c *replayed) figures(head result.Series, tracks []*track) []result.Series {
	if head.VM == "" {
		return nil
	}
	var out []result.Series
	for at, m := range c.layout.Measures {
		values, any := make([]*float64, c.grid.n), false
		for _, k := range tracks {
			if k.single == nil {
				continue
			}
			for _, f := range k.single[at] {
				if cell := c.grid.cell(f.t.Add(-1)); cell >= 0 && cell < c.grid.n {
					v := significant(f.v, 9)
					values[cell], any = &v, true
				}
			}
		}
		if any {
			s := head
			s.Measure, s.Unit, s.Start, s.Step, s.Values = m.Name, m.Unit, c.grid.edge(1), c.grid.step.Seconds(), values
			out = append(out, s)
		}
	}
	return out
}

// binned re-bins the counters of tracks together; a cell during which none of them ran is nil.
func (c *replayed) binned(tracks []*track, g grid) []tally.Totals {
	out := make([]tally.Totals, g.n)
	for _, k := range tracks {
		first, last := max(0, g.cell(k.from())), min(g.n-1, g.cell(k.to()))
		before := k.at(g.edge(first))
		for i := first; i <= last; i++ {
			if i == last && i > first && !k.to().After(g.edge(i)) {
				break
			}
			now := k.at(g.edge(i + 1))
			if out[i] == nil {
				out[i] = c.layout.Zero()
			}
			out[i].AddPart(before, now, 1)
			before = now
		}
	}
	for i, not := range unknown(tracks, g) {
		if not {
			out[i] = nil
		}
	}
	return out
}

func pick(rates []tally.Totals, f func(tally.Totals) (float64, bool)) []*float64 {
	out := make([]*float64, len(rates))
	for i, r := range rates {
		if r == nil {
			continue
		}
		if v, ok := f(r); ok {
			v = significant(v, 5)
			out[i] = &v
		}
	}
	return out
}
