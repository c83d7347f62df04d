// Package analysis looks at a finished run and says what stands between its numbers and a conclusion: whether
// throughput, service time and outstanding operations agree with each other, whether the offered load was reached, what
// was really limiting, what was really read, whether it was steady, whether it is possible at all; and what the run was made
// to find out: the cost of a neighbour, the time to recover, to move up a tier or to ingest, how it scales, where caches end.
// Across says what only several runs show.
//
// Run is pure: it reads result.Manifest and result.Data, does no I/O and prints nothing; package report shows what it
// returns. Every finding is a value with its evidence, an interval or the reason for none, and a sentence that stands
// on its own. A check that passed is a finding too (result.Fine). No finding stops a run, and damaged data (gaps, NaN,
// nothing at all) gives a finding that says so, never a panic.
//
// Judged by: the constants beside each check. Percentiles are read from merged histograms and never averaged.
package analysis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/result"
)

// Confidence is the level of every interval of the package.
const Confidence = 0.95

// z is the two-sided normal quantile of Confidence.
const z = 1.959963984540054

// checks in the order in which findings of equal severity are listed: what the run was made to find out, then what can make its
// figures meaningless, then what they must be read with, last what is good to know.
var checks = []func(*view) []result.Finding{
	recovered, scaling, windows, ingest, residency, cacheSteps,
	tooShort, neverTogether, littlesLaw, generatorCPU, clientLimit, neverWritten, machinesLost, clocksDiffer, operationErrors, plausible, cache,
	offeredRate, baseline, stalled, imbalance, steadyState, latencyKind,
	saturated, deviceFree,
}

// Run returns the findings of one run, the most important first. The same input gives the same findings.
func Run(m result.Manifest, d *result.Data) []result.Finding {
	var v *view
	if d != nil {
		v = newView(m, d)
	}
	began := d != nil && slices.ContainsFunc(d.Workloads, func(w result.Workload) bool { return !w.Prefill })
	if d != nil && !began && m.Measured.State == "yes" {
		return []result.Finding{{
			Check: "no-data", Severity: result.Notice, Subject: "run",
			Sentence: "No workload of the scenario's own ran, so nothing is judged: what its steps did is in the journal, and what the results show is in the charts.",
			Metric:   "workloads", Value: ptr(0), Unit: "count", NoInterval: "nothing was to be measured", Basis: "the collected data of the run",
		}}
	}
	if v != nil && len(v.loads) == 0 && began && m.Target == result.ImportTarget {
		return []result.Finding{{
			Check: "no-data", Severity: result.Notice, Subject: "run",
			Sentence: "The imported files hold no operations of a load, so nothing is judged: what they counted is in the charts.",
			Metric:   "workloads", Value: ptr(0), Unit: "count", NoInterval: "no load was measured", Basis: "the imported files",
		}}
	}
	if v == nil || len(v.loads) == 0 {
		return []result.Finding{{
			Check: "no-data", Severity: result.Blocker, Subject: "run",
			Sentence: "There is nothing to judge: no workload of this run left any data.",
			Metric:   "workloads", Value: ptr(0), Unit: "count", NoInterval: "nothing was measured", Basis: "the collected data of the run",
		}}
	}
	var out []result.Finding
	for _, check := range checks {
		for _, f := range check(v) {
			out = append(out, sound(f))
		}
	}
	slices.SortStableFunc(out, func(a, b result.Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return out
}

func rank(s result.Severity) int {
	return slices.Index([]result.Severity{result.Blocker, result.Caution, result.Notice, result.Fine}, s)
}

// sound drops numbers that JSON cannot carry and sees to it that no finding lacks both interval and reason.
func sound(f result.Finding) result.Finding {
	f.Value, f.Low, f.High, f.Limit = finite(f.Value), finite(f.Low), finite(f.High), finite(f.Limit)
	f.Evidence = slices.DeleteFunc(f.Evidence, func(e result.Evidence) bool { return !isFinite(e.Value) })
	if f.Chart != nil {
		f.Chart = drawable(f.Chart)
	}
	switch {
	case f.Low != nil && f.High != nil:
		f.Confidence, f.NoInterval = cmp.Or(f.Confidence, Confidence), ""
	case f.NoInterval == "":
		f.Low, f.High = nil, nil
		f.NoInterval = "the data do not give one"
	default:
		f.Low, f.High = nil, nil
	}
	return f
}

// drawable drops lines without a point; nil when nothing is left.
func drawable(c *result.Chart) *result.Chart {
	c.Lines = slices.DeleteFunc(c.Lines, func(l result.ChartLine) bool {
		return !slices.ContainsFunc(l.Y, func(y *float64) bool { return y != nil })
	})
	if len(c.Lines) == 0 {
		return nil
	}
	return c
}

func finite(p *float64) *float64 {
	if p == nil || !isFinite(*p) {
		return nil
	}
	return p
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func ptr(v float64) *float64 { return &v }

// view is a run arranged for checking.
type view struct {
	m      result.Manifest
	d      *result.Data
	loads  []*load
	vms    map[string]result.VM
	nodes  map[int]result.Node
	host   bool // all nodes are parts of one host and share its CPUs and memory
	blocks map[opKey]result.Block

	// What was worked out already; see track and stretches.
	tracks  map[loadKey]*track
	settled map[loadKey][]stretch
	staged  *[]step
}

// loadKey is a quantity of a workload.
type loadKey struct {
	load    *load
	measure string
}

// load is all there is of one workload by name: its parts (one per VM and start; the merged entry when there are no
// others) and what prefilled its VMs.
type load struct {
	name     string
	group    string
	parts    []*result.Workload
	merged   *result.Workload   // nil when not collected
	cut      []result.Span      // see times
	prefills []*result.Workload // and other workloads of the group that wrote all of their extents, in order of their start
}

func newView(m result.Manifest, d *result.Data) *view {
	v := &view{m: m, d: d, vms: map[string]result.VM{}, nodes: map[int]result.Node{}, tracks: map[loadKey]*track{},
		settled: map[loadKey][]stretch{}}
	for _, vm := range d.VMs {
		v.vms[vm.Name] = vm
	}
	for _, n := range m.Nodes {
		v.nodes[n.Index] = n
	}
	v.host = m.OneMachine
	byName := map[[2]string]*load{}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if w.Prefill || m.Target == result.ImportTarget && len(w.Operations) == 0 { // the latter: counters of a machine
			continue
		}
		key := [2]string{w.Name, w.Group}
		l := byName[key]
		if l == nil {
			l = &load{name: w.Name, group: w.Group}
			byName[key] = l
			v.loads = append(v.loads, l)
		}
		if w.VM == "" {
			l.merged = w
		} else {
			l.parts = append(l.parts, w)
		}
	}
	for _, l := range v.loads {
		if len(l.parts) == 0 {
			l.parts = append(l.parts, l.merged)
		}
		for i := range d.Workloads {
			if w := &d.Workloads[i]; w.Group == l.group && (w.Prefill || w.Name != l.name && w.VM != "" && wroteAll(w)) {
				l.prefills = append(l.prefills, w)
			}
		}
		slices.SortStableFunc(l.prefills, func(a, b *result.Workload) int { return a.Start.Compare(b.Start) })
	}
	slices.SortStableFunc(v.loads, func(a, b *load) int { return cmp.Compare(a.name, b.name) })
	v.blocks = blockTable(v.loads)
	return v
}

// seconds is the length of a workload's measured window without its pauses, 0 when it has none.
func seconds(w *result.Workload) float64 { return w.Seconds() }

// totals over all kinds of operation. Service time comes from the sum the tool reports, from its histogram otherwise.
func totals(ops []result.OpTotals) (count uint64, service float64) {
	for _, o := range ops {
		count += o.Count
		s := o.Seconds
		if !(s > 0) && o.Hist != nil {
			s = o.Hist.Sum() / 1e9
		}
		if isFinite(s) && s > 0 {
			service += s
		}
	}
	return count, service
}

// count is how many operations all parts completed.
func (l *load) count() (n uint64) {
	for _, p := range l.parts {
		c, _ := totals(p.Ops)
		n += c
	}
	return n
}

// completed is how many operations were completed in the time by which the workload is judged.
func (l *load) completed() uint64 {
	if w := l.whole(); w != nil && len(w.Spans) > 0 {
		n, _ := totals(w.Judged().Ops)
		return n
	}
	return l.count()
}

// longest is the length of the time by which a workload is judged in seconds: of its longest VM where all ran together.
func (l *load) longest() (s float64) {
	if w := l.whole(); w != nil && len(w.Spans) > 0 {
		return w.Seconds()
	}
	for _, p := range l.parts {
		s = max(s, seconds(p))
	}
	return s
}

// basis says which window the figures are from.
func (l *load) basis() string {
	return "measured window of " + sayDuration(l.longest()) + " on " + plural(len(l.parts), "VM") + l.part() + ", one run"
}

// part says what the measured window leaves out, "" when nothing.
func (l *load) part() string {
	if w := l.whole(); w != nil && w.Part() != "" {
		return " " + w.Part()
	}
	return ""
}

// times are the parts of a workload's time by which it is judged; see result.Workload. Its spans are those of whole reports,
// which may reach beyond the moment at which a VM began or ended: what series say of that is cut off.
func (l *load) times() []result.Span {
	w := l.whole()
	if w == nil || len(w.Spans) == 0 {
		from, to := l.span()
		return []result.Span{{Start: from, End: to}}
	}
	if l.cut != nil {
		return l.cut
	}
	l.cut = slices.Clone(w.Spans)
	for i := range l.cut {
		s := &l.cut[i]
		for _, p := range l.parts {
			planned := p.Ended == "finished" || p.Ended == "stopped"
			for _, t := range p.Times() {
				if t.Start.After(s.Start) && t.Start.Before(w.Spans[i].End) {
					s.Start = t.Start
				}
				if planned && t.End.Before(s.End) && t.End.After(w.Spans[i].Start) {
					s.End = t.End
				}
			}
		}
		if !s.End.After(s.Start) {
			*s = w.Spans[i] // VMs that never all ran at one time
		}
	}
	return l.cut
}

// judged is from the first to the last moment by which a workload is judged.
func (l *load) judged() (from, to time.Time) {
	t := l.times()
	return t[0].Start, t[len(t)-1].End
}

// overlap is for how many seconds two lists of spans cover the same moments.
func overlap(a, b []result.Span) (s float64) {
	for _, x := range a {
		for _, y := range b {
			s += max(0, earlier(x.End, y.End).Sub(later(x.Start, y.Start)).Seconds())
		}
	}
	return s
}

func length(spans []result.Span) (s float64) { return overlap(spans, spans) }
