// Package view arranges a finished run for those who judge it: workloads with their parts, the time by which they are
// judged, their rates over time, what is known of machines; and it has what all of them say in the same words
// (durations, shares) and count in the same way (intervals of counts, stalls, even stretches, stages of a growing
// load). Check is what a question is.
//
// It stands between package result, which it only reads, and the rooms of package analysis, one question or family of
// questions each, which read it and not each other. It refuses to judge: no finding is made here. What is missing or
// damaged is a gap (NaN), nil or 0, never a panic.
package view

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/result"
)

// Confidence is the level of every interval of the package.
const Confidence = 0.95

// NormalQuantile is the two-sided normal quantile of Confidence.
const NormalQuantile = 1.959963984540054

// IsFinite reports whether v is a number that can be shown: neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Ptr is v where a finding may have none.
func Ptr(v float64) *float64 { return &v }

// Run is a run arranged for checking. Checks read it and change nothing of it.
type Run struct {
	Manifest result.Manifest
	Data     *result.Data         // never nil
	Loads    []*Load              // by name; workloads that prefill are with those they prefilled for
	VMs      map[string]result.VM // by name
	Nodes    map[int]result.Node  // by index
	OneHost  bool                 // all nodes are parts of one host and share its CPUs and memory
	blocks   map[opKey]result.Block

	// What was worked out already, for runs of thousands of VMs; see TrackOf, Stretches and Stages.
	tracks  map[loadKey]*Track
	settled map[loadKey][]Stretch
	among   int // how many stretches are judged; 0: not counted yet
	staged  *[]Step
	ofVM    map[string][]*result.Series // see VMTrack
}

// loadKey is a quantity of a workload.
type loadKey struct {
	load    *Load
	measure string
}

// Load is all there is of one workload by name: its parts (one per VM and start; the merged entry when there are no
// others) and what prefilled its VMs.
type Load struct {
	Name   string
	Group  string
	Parts  []*result.Workload // never empty
	Merged *result.Workload   // nil when not collected
	cut    []result.Span      // see Times
	// and other workloads of the group that wrote all of their extents, in order of their start
	Prefills []*result.Workload
}

// New arranges a run; d must not be nil, and neither of the two may be changed while the view is used.
func New(m result.Manifest, d *result.Data) *Run {
	v := &Run{
		Manifest: m,
		Data:     d,
		VMs:      map[string]result.VM{},
		Nodes:    map[int]result.Node{},
		tracks:   map[loadKey]*Track{},
		settled:  map[loadKey][]Stretch{},
	}
	for _, vm := range d.VMs {
		v.VMs[vm.Name] = vm
	}
	for _, n := range m.Nodes {
		v.Nodes[n.Index] = n
	}
	v.OneHost = m.OneMachine
	byName := map[[2]string]*Load{}
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if w.Prefill || m.Target == result.ImportTarget && !ofLoad(w) {
			continue
		}
		key := [2]string{w.Name, w.Group}
		l := byName[key]
		if l == nil {
			l = &Load{Name: w.Name, Group: w.Group}
			byName[key] = l
			v.Loads = append(v.Loads, l)
		}
		if w.Merged() {
			l.Merged = w
		} else {
			l.Parts = append(l.Parts, w)
		}
	}
	for _, l := range v.Loads {
		if len(l.Parts) == 0 {
			l.Parts = append(l.Parts, l.Merged)
		}
		for i := range d.Workloads {
			if w := &d.Workloads[i]; w.Group == l.Group &&
				(w.Prefill && !w.Rounds || !w.Prefill && w.Name != l.Name && !w.Merged() && WroteAll(w)) {
				l.Prefills = append(l.Prefills, w)
			}
		}
		slices.SortStableFunc(l.Prefills, func(a, b *result.Workload) int { return a.Start.Compare(b.Start) })
	}
	slices.SortStableFunc(v.Loads, func(a, b *Load) int { return cmp.Compare(a.Name, b.Name) })
	v.blocks = blockTable(v.Loads)
	return v
}

// ofLoad tells what a load did from the counters of a machine: it has operations, or a measure that says which way is
// better and goes on over time.
func ofLoad(w *result.Workload) bool {
	return len(w.Operations) > 0 || slices.ContainsFunc(w.Measures, func(m result.Measure) bool {
		return m.Better != "" && m.Kind != result.Single
	})
}

// Seconds is the length of a workload's measured window without its pauses, 0 when it has none.
func Seconds(w *result.Workload) float64 { return w.Seconds() }

// Totals over all kinds of operation. Service time comes from the sum the tool reports, from its histogram otherwise.
func Totals(ops []result.OpTotals) (count uint64, service float64) {
	for _, o := range ops {
		count += o.Count
		s := o.Seconds
		if !(s > 0) && o.Hist != nil {
			s = o.Hist.Sum() / 1e9
		}
		if IsFinite(s) && s > 0 {
			service += s
		}
	}
	return count, service
}

// Verifies reports whether all that a workload does is to say whether what it reads is what was written.
func (l *Load) Verifies() bool {
	for _, p := range l.Parts {
		if len(p.Streams) == 0 || slices.ContainsFunc(p.Streams, func(l result.Stream) bool { return !l.Verifies }) {
			return false
		}
	}
	return len(l.Parts) > 0
}

// Count is how many operations all parts completed.
func (l *Load) Count() (n uint64) {
	for _, p := range l.Parts {
		c, _ := Totals(p.Ops)
		n += c
	}
	return n
}

// Completed is how many operations were completed in the time by which the workload is judged.
func (l *Load) Completed() uint64 {
	if w := l.Whole(); w != nil && len(w.Spans) > 0 {
		n, _ := Totals(w.Judged().Ops)
		return n
	}
	return l.Count()
}

// Longest is the length in seconds of the time by which a workload is judged, which the tables of a report have, too.
func (l *Load) Longest() (s float64) {
	if w := l.Whole(); w != nil {
		return w.Seconds()
	}
	for _, p := range l.Parts {
		s = max(s, Seconds(p))
	}
	return s
}

// Basis says which window the figures are from.
func (l *Load) Basis() string {
	return "measured time of " + SayDuration(l.Longest()) + " on " + Plural(len(l.Parts),
		"VM") + l.LeftOut() + ", one run"
}

// LeftOut says what the measured window leaves out, "" when nothing.
func (l *Load) LeftOut() string {
	if w := l.Whole(); w != nil && w.Part() != "" {
		return " " + w.Part()
	}
	return ""
}

// Times are the parts of a workload's time by which it is judged; see result.Workload. Its spans are those of whole
// reports, which may reach beyond the moment at which a VM began or ended: what series say of that is cut off.
func (l *Load) Times() []result.Span {
	w := l.Whole()
	if w == nil || len(w.Spans) == 0 {
		from, to := l.Span()
		return []result.Span{{Start: from, End: to}}
	}
	if l.cut != nil {
		return l.cut
	}
	l.cut = slices.Clone(w.Spans)
	for i := range l.cut {
		s := &l.cut[i]
		for _, p := range l.Parts {
			planned := p.Ended.Planned()
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

// Judged is from the first to the last moment by which a workload is judged.
func (l *Load) Judged() (from, to time.Time) {
	t := l.Times()
	return t[0].Start, t[len(t)-1].End
}

// Overlap is for how many seconds two lists of spans cover the same moments.
func Overlap(a, b []result.Span) (s float64) {
	for _, x := range a {
		for _, y := range b {
			s += max(0, earlier(x.End, y.End).Sub(Later(x.Start, y.Start)).Seconds())
		}
	}
	return s
}

// Length is how long spans are together, in seconds.
func Length(spans []result.Span) (s float64) { return Overlap(spans, spans) }

// PrefillTolerance is how much of an extent may be missing from its prefill (rounding to blocks).
const PrefillTolerance = 0.01

// WroteAll reports whether a workload that is no prefill has written as much as the extents of its streams hold.
func WroteAll(w *result.Workload) bool {
	var extents, written float64
	for _, stream := range w.Streams {
		if stream.Writes {
			extents += float64(stream.Bytes)
		}
	}
	for _, op := range BlockTotals(w, result.BlockWrite) {
		written += float64(op.Bytes)
	}
	return extents > 0 && w.Ended == result.Finished && written >= extents*(1-PrefillTolerance)
}

// FewOperations are too few for a window's figures to mean much: at 1,000 operations ten lie beyond the 99th
// percentile.
const FewOperations = 1000

// Besides is the share of the longest workload's time below which another is taken for a preparation or a check.
const Besides = 0.1

// Silence is the time between two reports of a workload and once more, 0 where it is not known.
func (v *Run) Silence(l *Load) time.Duration {
	step := 0.0
	if c := v.Track(l); c != nil {
		step = c.Step
	} else { // workloads at work on the same VMs
		for i := range v.Data.Series {
			if s := &v.Data.Series[i]; s.Group == l.Group {
				step = max(step, s.Step)
			}
		}
	}
	return time.Duration(2 * step * float64(time.Second))
}

// Comparable are the windows in which all of a workload's VMs worked and that are two of its reports long or longer:
// which report a moment of a shorter one is in is left to chance, and so is its rate.
func (v *Run) Comparable(l *Load) []result.Window {
	return slices.DeleteFunc(l.Whole().Comparable(), func(w result.Window) bool {
		return w.End.Sub(w.Start) < v.Silence(l)
	})
}

// Missed reports whether a workload did less than an offered rate asks for in a window of some pieces, beyond what
// chance explains and what the reports nearest to their ends may hold of what came before or after.
func (v *Run) Missed(l *Load, count uint64, seconds, want float64, pieces int) bool {
	_, high := Poisson(count)
	edges := v.Silence(l).Seconds() / 2 * float64(pieces)
	return high < want*(1-RateTolerance)*max(0, seconds-edges)
}

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Subject returns what a part of a workload is called in a sentence: its VM, or itself where it is the whole.
func Subject(w *result.Workload) string {
	if !w.Merged() {
		return w.VM
	}
	return w.Name
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// MergeOps adds ops to into, operation by operation. Histograms of ops are cloned, never changed.
func MergeOps(into, ops []result.OpTotals) []result.OpTotals {
	for _, o := range ops {
		i := slices.IndexFunc(into, func(t result.OpTotals) bool { return t.Op == o.Op })
		if i < 0 {
			if o.Hist != nil {
				o.Hist = o.Hist.Clone()
			}
			into = append(into, o)
			continue
		}
		t := &into[i]
		t.Count, t.Bytes, t.Seconds = t.Count+o.Count, t.Bytes+o.Bytes, t.Seconds+o.Seconds
		if t.Hist != nil && o.Hist != nil {
			t.Hist.Merge(o.Hist)
		} else {
			t.Hist = nil // a percentile of a part of it would pass for one of all
		}
	}
	return into
}

// Whole is the workload over all its VMs; nil when only single ones of several were collected.
func (l *Load) Whole() *result.Workload {
	if l.Merged == nil && len(l.Parts) == 1 {
		return l.Parts[0]
	}
	return l.Merged
}
