package result

import "slices"

// Totals are what a workload did in its Spans.
type Totals struct {
	Ops      []OpTotals `json:"ops"`
	Values   []Value    `json:"values,omitempty"`
	Sections []Section  `json:"sections,omitempty"`
}

// Merged reports whether the entry is of all VMs of its group, and not of one.
func (w *Workload) Merged() bool { return w.VM == "" }

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

// Judged is the workload over the time by which it is judged: its totals are those of its Spans, from the first of
// which it begins and with the last of which it ends. Every rate, percentile and comparison that is told of a workload
// as a whole is of this one.
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
	if w.Ended == Lost || w.Ended == Failed {
		ran = "while all its VMs were to run"
	}
	switch {
	case len(w.Spans) == 0:
		return ""
	case !w.Merged() || w.Starts > 1 && !w.Staggered:
		return "without the pauses between its starts"
	case w.Starts > 1:
		return ran + ", without the pauses between its starts"
	}
	return ran
}

// Seconds is the length of the window without what the workload paused in it.
func (w Window) Seconds() float64 { return max(0, w.End.Sub(w.Start).Seconds()-w.Pause) }

// judgeByWindows finds the time by which merged entries are judged in data that were collected before it was kept: that
// of the windows in which all VMs worked, whose totals add up to theirs.
func (d *Data) judgeByWindows() {
	for i := range d.Workloads {
		w := &d.Workloads[i]
		all := w.Comparable()
		if !w.Merged() || len(w.Spans) > 0 || len(all) == 0 || len(all) == len(w.Windows) {
			continue
		}
		w.Spans = []Span{{Start: all[0].Start, End: all[len(all)-1].End}}
		w.Staggered, w.InSpans = true, &Totals{}
		held := map[string]float64{} // seconds of the windows that have the measure
		for _, win := range all {
			for _, v := range win.Values {
				held[v.Measure] += win.Seconds()
			}
		}
		for _, win := range all {
			w.InSpans.add(win, w.Measures, held)
		}
		w.InSpans.Values = slices.DeleteFunc(w.InSpans.Values, func(v Value) bool { // a count of a part
			at := slices.IndexFunc(w.Measures, func(m Measure) bool { return m.Name == v.Measure })
			return w.Measures[at].Kind == Count && held[v.Measure] < w.Seconds()-1e-6
		})
	}
}

// add counts a window; held are the seconds for which each measure is known. What cannot be added up is left out.
func (t *Totals) add(win Window, measures []Measure, held map[string]float64) {
	for _, o := range win.Ops {
		i := slices.IndexFunc(t.Ops, func(k OpTotals) bool { return k.Op == o.Op })
		if i < 0 {
			if o.Hist != nil {
				o.Hist = o.Hist.Clone()
			}
			t.Ops = append(t.Ops, o)
			continue
		}
		k := &t.Ops[i]
		k.Count, k.Bytes, k.Seconds = k.Count+o.Count, k.Bytes+o.Bytes, k.Seconds+o.Seconds
		if k.Hist != nil && o.Hist != nil {
			k.Hist.Merge(o.Hist)
		} else {
			k.Hist = nil // of a part of it would pass for one of all
		}
	}
	for _, m := range measures {
		at := slices.IndexFunc(win.Values, func(v Value) bool { return v.Measure == m.Name })
		if at < 0 || m.Kind == Single {
			continue
		}
		v := win.Values[at]
		if m.Kind == Level {
			v.Value *= win.Seconds() / held[m.Name]
		}
		if i := slices.IndexFunc(t.Values, func(o Value) bool { return o.Measure == m.Name }); i >= 0 {
			t.Values[i].Value += v.Value
		} else {
			t.Values = append(t.Values, v)
		}
	}
}
