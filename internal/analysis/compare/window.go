package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/result"
)

// Window is the run as if it had lasted for one window only, such as "alone" or "with DSS": the workloads that have a
// whole window of that name, the results and the series cut to its time. The data given are not changed. The error
// names the windows there are.
//
// Windows of one run follow each other: what a comparison of them shows may also be the passing of time.
func (r Run) Window(name string) (Run, error) {
	if r.Data == nil {
		return r, fmt.Errorf("compare: run %s: nothing was collected of it", r.Manifest.RunID)
	}
	d := *r.Data
	d.Workloads = nil
	var from, to time.Time
	var names []string
	for _, w := range r.Data.Workloads {
		if w.Prefill {
			d.Workloads = append(d.Workloads, w)
			continue
		}
		for _, win := range w.Comparable() {
			if !slices.Contains(names, win.Name) {
				names = append(names, win.Name)
			}
			if win.Name != name {
				continue
			}
			if from.IsZero() || win.Start.Before(from) {
				from = win.Start
			}
			if win.End.After(to) {
				to = win.End
			}
			w.Ops, w.Values = opsWithin(win.Ops, []result.Span{{Start: win.Start, End: win.End}}, w.Ops), win.Values
			w.Start, w.End, w.Windows, w.Sections = win.Start, win.End, nil, nil
			w.Spans, w.InSpans = spansWithin(w.Spans, win), nil
			w.Heat = heatWithin(w.Heat, win.Start, win.End)
			d.Workloads = append(d.Workloads, w)
			break
		}
	}
	if from.IsZero() {
		for i, n := range names {
			names[i] = fmt.Sprintf("%q", n)
		}
		if names == nil {
			return r, fmt.Errorf("compare: run %s: no phase %q: nothing began, ended or was annotated while its "+
				"workloads ran", r.Manifest.RunID, name)
		}
		return r, fmt.Errorf("compare: run %s: no phase %q among %s", r.Manifest.RunID, name,
			strings.Join(names, ", "))
	}
	d.Start, d.End = from, to
	d.Series = seriesWithin(r.Data.Series, from, to)
	d.Panels = slices.Clone(r.Data.Panels)
	for i := range d.Panels {
		d.Panels[i].Series, d.Panels[i].Metrics = seriesWithin(d.Panels[i].Series, from, to), nil
	}
	return Run{Manifest: r.Manifest, Data: &d, Cell: r.Cell, Factors: r.Factors}, nil
}

// near is how many times more or fewer operations of a window than of the whole run may be slower than a percentile of
// the whole, so that how these lie in time speaks for the window's own percentile.
const near = 4

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// spansWithin are the parts of spans that lie in a window; nil when it is one without a pause.
func spansWithin(spans []result.Span, win result.Window) (out []result.Span) {
	for _, s := range spans {
		if s.Start.Before(win.Start) {
			s.Start = win.Start
		}
		if s.End.After(win.End) {
			s.End = win.End
		}
		if s.End.After(s.Start) && win.Pause > 0 {
			out = append(out, s)
		}
	}
	return out
}

// judged is a workload over the time by which it is judged, which is what is compared.
func judged(w result.Workload) result.Workload {
	j := w.Judged()
	if len(w.Spans) > 0 && w.InSpans != nil {
		j.Ops = opsWithin(j.Ops, w.Spans, w.Ops)
	}
	return j
}

// opsWithin are the totals of some parts of a workload's time with how its operations lie in it, which the whole knows.
// Where the parts' percentiles are far from those of the whole, that is not known, and percentiles get no interval
// within one run.
func opsWithin(ops []result.OpTotals, spans []result.Span, whole []result.OpTotals) []result.OpTotals {
	out := slices.Clone(ops)
	for i := range out {
		at := slices.IndexFunc(whole, func(o result.OpTotals) bool { return o.Op == out[i].Op })
		if at < 0 || out[i].OverTime != nil || whole[at].OverTime == nil || whole[at].OverTime.Step <= 0 {
			continue
		}
		c := *whole[at].OverTime
		var all []uint64
		slower := slices.Clone(c.Slower)
		for j := range slower {
			slower[j].Counts = nil
		}
		from := -1
		for _, s := range spans {
			first, end := columns(c.Start, c.Step, len(c.Counts), s.Start, s.End)
			if first == end {
				continue
			}
			if from < 0 {
				from = first
			}
			all = append(all, c.Counts[first:end]...)
			for j := range slower {
				counts := c.Slower[j].Counts
				slower[j].Counts = append(slower[j].Counts, counts[min(first, len(counts)):min(end, len(counts))]...)
			}
		}
		known := from >= 0
		for _, s := range slower {
			share := float64(sum(s.Counts)) / float64(sum(all)) / (1 - s.Quantile)
			known = known && share > 1.0/near && share < near
		}
		if known {
			begin := c.Start.Add(time.Duration(float64(from) * c.Step * float64(time.Second)))
			out[i].OverTime = &result.OverTime{Start: begin, Step: c.Step, Counts: all, Slower: slower}
		}
	}
	return out
}

// columns are those of n, each a step long, that lie between two moments as a whole: from first to before end.
func columns(start time.Time, seconds float64, n int, from, to time.Time) (first, end int) {
	step := time.Duration(seconds * float64(time.Second))
	first = n
	for i := range n {
		if at := start.Add(time.Duration(i) * step); !at.Before(from) && !at.Add(step).After(to) {
			first, end = min(first, i), i+1
		}
	}
	return min(first, end), end
}

// seriesWithin keeps the points whose whole interval, which ends at the point, lies between two moments.
func seriesWithin(all []result.Series, from, to time.Time) []result.Series {
	const slack = 10 * time.Millisecond
	out := slices.Clone(all)
	for i := range out {
		s := &out[i]
		step := time.Duration(s.Step * float64(time.Second))
		if step <= 0 {
			continue
		}
		first, end := len(s.Values), 0
		for j := range s.Values {
			if at := s.Start.Add(time.Duration(j) * step); !at.Add(slack-step).Before(from) &&
				!at.Add(-slack).After(to) {
				first, end = min(first, j), j+1
			}
		}
		if end == 0 {
			s.Values = nil
			continue
		}
		s.Start, s.Values = s.Start.Add(time.Duration(first)*step), s.Values[first:end]
	}
	return out
}

// heatWithin keeps the columns of a heat map that lie between two moments.
func heatWithin(h *result.HeatMap, from, to time.Time) *result.HeatMap {
	if h == nil || h.Step <= 0 {
		return h
	}
	first, end := columns(h.Start, h.Step, len(h.Counts), from, to)
	if first == end {
		return nil
	}
	cut := *h
	cut.Start, cut.Counts = h.Start.Add(time.Duration(float64(first)*h.Step*float64(time.Second))), h.Counts[first:end]
	return &cut
}
