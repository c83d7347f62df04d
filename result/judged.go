package result

import (
	"slices"
	"time"
)

// Totals are what a workload did in its Spans.
type Totals struct {
	Ops      []OpTotals `json:"ops"`
	Values   []Value    `json:"values,omitempty"`
	Sections []Section  `json:"sections,omitempty"`
}

// Times are the parts of the workload's time by which it is judged, in order: its Spans, or all of its time.
func (w Workload) Times() []Span {
	if len(w.Spans) > 0 {
		return w.Spans
	}
	return []Span{{Start: w.Start, End: w.End}}
}

// Seconds is the length of the time by which the workload is judged, without its pauses; 0 when there is none. What it
// did in that time is Judged's.
func (w Workload) Seconds() (s float64) {
	for _, t := range w.Times() {
		s += max(0, t.End.Sub(t.Start).Seconds())
	}
	return s
}

// Judged is the workload over the time by which it is judged: its totals are those of its Spans, from the first of which
// it begins and with the last of which it ends. Every rate, percentile and comparison that is told of a workload as a
// whole is of this one.
func (w Workload) Judged() Workload {
	if len(w.Spans) == 0 {
		return w
	}
	w.Start, w.End = w.Spans[0].Start, w.Spans[len(w.Spans)-1].End
	if w.InSpans != nil {
		w.Ops, w.Values, w.Sections = w.InSpans.Ops, w.InSpans.Values, w.InSpans.Sections
	}
	return w
}

// Part says what the time by which the workload is judged leaves out, "" when nothing.
func (w Workload) Part() string {
	ran := "while all its VMs ran"
	if w.Ended == "lost" || w.Ended == "failed" {
		ran = "while all its VMs were to run"
	}
	switch {
	case len(w.Spans) == 0:
		return ""
	case w.VM != "" || w.Starts > 1 && !w.Staggered:
		return "without the pauses between its starts"
	case w.Starts > 1:
		return ran + ", without the pauses between its starts"
	}
	return ran
}

// Seconds is the length of the window without what the workload paused in it.
func (w Window) Seconds() float64 { return max(0, w.End.Sub(w.Start).Seconds()-w.Pause) }

// Inside reports whether a moment lies in one of some spans, their ends included.
func Inside(spans []Span, t time.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return !t.Before(s.Start) && !t.After(s.End) })
}
