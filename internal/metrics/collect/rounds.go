package collect

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// round is one start of a workload on its VMs, one after the other where they are staggered.
type round struct {
	tracks     []*track
	start, end time.Time
	// together and apart bound the time during which all VMs worked: from the last start of a VM to the first end of
	// one that came to its end. A VM that was lost or failed does not shorten it: that is something to see. Where there
	// is no such time they are start and end, and never is set.
	together, apart time.Time
	never           bool
}

// roundsOf are the starts of a workload in order. A new one begins where the journal has a start of the workload as a
// whole, or, where the journal does not say, where a VM begins for a second time.
func (c *found) roundsOf(l *loadPlan) []round {
	tracks := slices.Clone(l.tracks)
	slices.SortStableFunc(tracks, func(a, b *track) int {
		return cmp.Or(a.job.Start.Compare(b.job.Start), cmp.Compare(a.job.Attempt, b.job.Attempt))
	})
	wanted := func(from, to time.Time) bool { // a start was asked for after one moment and no later than another
		return slices.ContainsFunc(c.tl.starts[l.name], func(t time.Time) bool { return t.After(from) && !t.After(to) })
	}
	var out []round
	in := map[string]bool{} // the VMs of the last round
	for i, k := range tracks {
		r := &round{}
		if len(out) > 0 {
			r = &out[len(out)-1]
		}
		if i == 0 || in[k.job.VM] || wanted(tracks[i-1].job.Start, k.job.Start) {
			clear(in)
			out = append(out, round{start: k.job.Start, end: k.job.Start})
			r = &out[len(out)-1]
		}
		in[k.job.VM] = true
		r.tracks, r.end = append(r.tracks, k), tally.Later(r.end, c.endOf(k))
	}
	for i := range out {
		out[i].bound(c)
	}
	return out
}

// bound finds the time in which all VMs of the round worked.
func (r *round) bound(c *found) {
	r.start = slices.MinFunc(r.tracks, func(a, b *track) int { return a.begun().Compare(b.begun()) }).begun()
	r.together, r.apart = r.start, r.end
	for _, k := range r.tracks {
		r.together = tally.Later(r.together, k.begun())
		if k.ended.Planned() {
			r.apart = tally.Earlier(r.apart, c.endOf(k))
		}
	}
	if !r.apart.After(r.together) {
		r.together, r.apart, r.never = r.start, r.end, true
	}
}

// late is when the jobs of those rounds began to work of which some did so long after the first, though they were
// started by then: their generators waited for a CPU, or for the machine. nil: of none.
func (c *found) late() (began map[jobKey]time.Time) {
	for _, l := range c.loads {
		for _, r := range l.rounds {
			var at []*track // those that reported
			for _, k := range r.tracks {
				if len(k.marks) > 1 {
					at = append(at, k)
				}
			}
			if !slices.ContainsFunc(at, func(k *track) bool {
				return k.from().Sub(k.begun()) >= closeCuts && slices.ContainsFunc(at, func(o *track) bool {
					return k.from().Sub(o.from()) >= closeCuts
				})
			}) {
				continue
			}
			if began == nil {
				began = map[jobKey]time.Time{}
			}
			for _, k := range at {
				began[keyOf(k.job)] = k.from()
			}
		}
	}
	return began
}

// roundAt is the round that a moment belongs to: one that has not ended, or the last.
func (l *loadPlan) roundAt(t time.Time) (r round, at int) {
	at = slices.IndexFunc(l.rounds, func(r round) bool { return !t.After(r.end) })
	if at < 0 {
		at = len(l.rounds) - 1
	}
	return l.rounds[at], at
}

// at reports whether a start of the workload was under way at a moment.
func (l *loadPlan) at(t time.Time) bool {
	if l.prefill {
		return l.start.Before(t) && l.end.After(t)
	}
	return slices.ContainsFunc(l.rounds, func(r round) bool { return r.start.Before(t) && r.end.After(t) })
}

// judge plans the time by which the workload is judged, where that is not all of its time: what all VMs did together in
// each round. What differs by less than closeCuts is no ramp.
func (l *loadPlan) judge() {
	ramp := func(r round) bool { return r.together.Sub(r.start) >= closeCuts || r.end.Sub(r.apart) >= closeCuts }
	l.staggered = slices.ContainsFunc(l.rounds, ramp)
	if !l.staggered && len(l.rounds) < 2 {
		return
	}
	for _, r := range l.rounds {
		if n := len(l.spans); n > 0 && !r.together.After(l.spans[n-1].End) { // rounds that overlap
			l.spans[n-1].End = tally.Later(l.spans[n-1].End, r.apart)
			continue
		}
		l.spans = append(l.spans, result.Span{Start: r.together, End: r.apart})
	}
}

// spanCutter hands on what a start did within the spans: bounds are the beginnings and ends of spans in turn, so
// that every cell of an odd number is within one.
func (l *loadPlan) spanCutter(begin tally.Mark, within func(span int, from, to tally.Mark)) *cutter {
	bounds := make([]time.Time, 0, 2*len(l.spans))
	for _, s := range l.spans {
		bounds = append(bounds, s.Start, s.End)
	}
	first := slices.IndexFunc(bounds, func(t time.Time) bool { return t.After(begin.At) })
	if first < 0 {
		first = len(bounds)
	}
	return &cutter{
		cell: first, from: begin,
		bound: func(i int) (time.Time, bool) {
			if i >= len(bounds) {
				return time.Time{}, false
			}
			return bounds[i], true
		},
		emit: func(i int, from, to tally.Mark) {
			if i%2 == 1 && to.At.After(from.At) {
				within(i/2, from, to)
			}
		},
	}
}

// judged fills in the time by which a merged entry is judged and what was done in it.
func (l *loadPlan) judged(w *result.Workload) {
	if len(l.rounds) > 1 {
		w.Starts = len(l.rounds)
	}
	w.Staggered = l.staggered
	w.Apart = slices.ContainsFunc(l.rounds, func(r round) bool { return r.never && len(r.tracks) > 1 })
	if w.Apart {
		w.Notes = append(w.Notes, "its VMs never all ran at one time; the numbers are of a changing number of VMs")
	}
	if l.spans == nil {
		return
	}
	t := &result.Totals{}
	for i := range l.spans {
		var parts []held
		for _, k := range l.tracks {
			for _, p := range k.judged {
				if p.window == i {
					parts = append(parts, held{k, p})
					did, hists := p.to.Totals.Minus(p.from.Totals), p.hists
					if !p.from.At.After(k.from()) &&
						!p.to.At.Before(k.final.At) { // all of it, of which more may be known
						did, hists = k.final.Totals, k.final.Hists
					}
					t.Ops = addOps(k.meter.Layout, t.Ops, did, hists)
				}
			}
		}
		if len(parts) > 0 {
			s, e := extent(parts)
			w.Spans = append(w.Spans, result.Span{Start: s, End: e})
		}
	}
	if len(w.Spans) == 0 {
		return // nothing was reported in them
	}
	t.Values = values(l.tracks, w.Seconds(), func(k *track) (from, to tally.Mark, span time.Duration) {
		return ofWindow(k.judged, func(part) bool { return true })
	})
	t.Sections = sections(l.tracks, func(n *streamTrack) tally.Mark { return n.judged })
	w.InSpans = t
}

// startsOf are the starts of a single VM, without the pauses between them.
func startsOf(tracks []*track) (spans []result.Span) {
	for _, k := range tracks {
		if start, end := k.measured(); end.After(start) {
			spans = append(spans, result.Span{Start: start, End: end})
		}
	}
	slices.SortFunc(spans, func(a, b result.Span) int { return a.Start.Compare(b.Start) })
	return spans
}

// held is a part with the track that did it.
type held struct {
	track *track
	part
}

// extent is from when to when some parts went that lie between the same cuts: as the reports nearest to a cut have it,
// on average over the parts that begin or end about there, so that a count divided by the length is the rate. A VM that
// begins later, or is lost earlier, makes it no shorter.
func extent(parts []held) (start, end time.Time) {
	var from, to ends
	for _, p := range parts {
		from.add(p.from.At, p.from.At.After(p.track.from()), p.track)
		to.add(p.to.At, p.to.At.Before(p.track.final.At), p.track)
	}
	return from.about(slices.MinFunc(from.at, time.Time.Compare)), to.about(slices.MaxFunc(to.at, time.Time.Compare))
}

// ends are where parts begin, or where they end.
type ends struct {
	at   []time.Time
	cut  []bool        // not where the track itself does
	near time.Duration // as far as reports lie apart
}

func (e *ends) add(t time.Time, cut bool, k *track) {
	e.at, e.cut, e.near = append(e.at, t), append(e.cut, cut), max(e.near, k.every, closeCuts)
}

// about is the mean of those that lie near the first that was cut, or near an outermost one where none was.
func (e *ends) about(outermost time.Time) time.Time {
	if i := slices.Index(e.cut, true); i >= 0 {
		outermost = e.at[i]
	}
	var sum time.Duration
	n := 0
	for _, t := range e.at {
		if d := t.Sub(outermost); d.Abs() <= e.near {
			sum, n = sum+d, n+1
		}
	}
	return outermost.Add(sum / time.Duration(n))
}

// pause is how much of the time of some parts lies between them.
func pause(parts []held) (idle time.Duration) {
	all := slices.SortedFunc(slices.Values(parts), func(a, b held) int { return a.from.At.Compare(b.from.At) })
	end := all[0].to.At
	for _, p := range all[1:] {
		if p.from.At.After(end) {
			idle += p.from.At.Sub(end)
		}
		end = tally.Later(end, p.to.At)
	}
	return idle
}
