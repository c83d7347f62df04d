package collect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

const (
	closeCuts   = 2 * time.Second // a cut nearer than this to another one, or to an end, is not made
	mostWindows = 64
	heatColumns = 300
)

// loadPlan is one workload over all its VMs and starts: how it is cut into windows, and its heat map.
type loadPlan struct {
	name, group string
	prefill     bool
	tracks      []*track
	start, end  time.Time
	rounds      []round
	spans       []result.Span // by which it is judged, where they are not all of its time
	staggered   bool
	windows     []result.Window // without what was done in them; empty when nothing happened during the workload
	heat        *heat
}

// planLoads groups the starts by workload and cuts each workload where something else began or ended while it ran.
func (c *found) planLoads() {
	for _, k := range c.tracks {
		l := c.loadOf(k)
		if l == nil {
			l = &loadPlan{name: k.job.Workload, group: k.job.Group, prefill: k.job.Prefill, start: k.job.Start}
			c.loads = append(c.loads, l)
		}
		l.tracks = append(l.tracks, k)
		if k.job.Start.Before(l.start) {
			l.start = k.job.Start
		}
		l.end = tally.Later(l.end, c.endOf(k))
	}
	for _, l := range c.loads {
		if l.prefill {
			continue
		}
		l.rounds = c.roundsOf(l)
		l.judge()
	}
	for _, l := range c.loads {
		if !l.prefill {
			l.cut(c.loads, c.tl.marks)
		}
	}
}

// endOf is when a start ended; for one that nobody saw end, the newest moment known.
func (c *source) endOf(k *track) time.Time {
	if k.end.IsZero() {
		return tally.Later(c.tl.last, k.job.Start)
	}
	return k.end
}

func (c *found) loadOf(k *track) *loadPlan {
	for _, l := range c.loads {
		if l.name == k.job.Workload && l.group == k.job.Group {
			return l
		}
	}
	return nil
}

// cut makes the windows: where all VMs of a start begin and cease to work together, and the pauses between starts; then
// the ends of other workloads, then annotations and faults. Windows in which some VMs had not begun or had ended are
// partial.
func (l *loadPlan) cut(all []*loadPlan, marks []result.Mark) {
	type cut struct {
		t    time.Time
		text string // of the annotation, "" for a workload's start or end
	}
	var cuts []cut
	add := func(t time.Time, text string) {
		if t.Sub(l.start) < closeCuts || l.end.Sub(t) < closeCuts || len(cuts) >= mostWindows-1 {
			return
		}
		for _, o := range cuts {
			if t.Sub(o.t).Abs() < closeCuts {
				return
			}
		}
		cuts = append(cuts, cut{t, text})
	}
	// of a workload started more often windows hold pauses
	for _, r := range l.rounds[:min(len(l.rounds), mostWindows/8)] {
		add(r.together, "")
		add(r.apart, "")
		add(r.start, "")
		add(r.end, "")
	}
	for _, o := range all {
		if o != l {
			for _, r := range o.rounds {
				add(r.start, "")
				add(r.end, "")
			}
			if o.prefill {
				add(o.start, "")
				add(o.end, "")
			}
		}
	}
	for _, m := range marks {
		add(m.Time, m.Text)
	}
	if len(cuts) == 0 {
		return
	}
	slices.SortFunc(cuts, func(a, b cut) int { return a.t.Compare(b.t) })
	cuts = append(cuts, cut{t: l.end})
	from, text, seen := l.start, "", map[string]int{}
	for _, k := range cuts {
		c := result.Circumstances{}
		middle := from.Add(k.t.Sub(from) / 2)
		r, at := l.roundAt(middle)
		partial := middle.Before(r.together) || middle.After(r.apart)
		switch {
		case middle.Before(r.start): // a pause, in which there is nothing to count
			c.State = result.BetweenStarts
		case middle.Before(r.together):
			c.State = result.VMsStart
		case middle.After(r.apart):
			c.State = result.VMsEnd
		default:
			c.Beside = l.beside(all, middle)
		}
		if within := !from.Before(r.start.Add(-closeCuts)) && !k.t.After(r.end.Add(closeCuts)); len(l.rounds) > 1 &&
			within {
			c.Round = at + 1
		}
		if !partial {
			c.After = text
		}
		name := c.Name()
		if seen[name]++; seen[name] > 1 {
			c.Again = seen[name]
		}
		l.windows = append(l.windows, result.Window{Name: c.Name(), Circumstances: c, Start: from, End: k.t,
			Partial: partial})
		from, text = k.t, k.text
	}
}

// beside are the other workloads that ran at a moment, sorted.
func (l *loadPlan) beside(all []*loadPlan, at time.Time) []string {
	var names []string
	for _, o := range all {
		if o != l && o.at(at) && !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	slices.Sort(names)
	return names
}

// cuttersFor are the cutters of one start: the grid of its VM, the workload's windows, the workload's heat map.
func (c *replayed) cuttersFor(k *track, mine *cells, begin tally.Mark) []*cutter {
	said := false
	complain := func(err error) {
		if err != nil && !said {
			said = true
			k.notes = append(k.notes, "latency of an interval left out: "+err.Error())
		}
	}
	list := []*cutter{{
		cell: max(0, mine.grid.cell(begin.At)), from: begin,
		bound: func(i int) (time.Time, bool) { return mine.grid.edge(i + 1), i < mine.grid.n },
		emit: func(i int, from, to tally.Mark) {
			if !k.job.Prefill && !to.At.Before(mine.grid.start) {
				complain(mine.add(i, from, to))
			}
		},
	}}
	l := c.loadOf(k)
	if l.prefill {
		return list
	}
	if n := len(l.windows); n > 0 {
		w, _ := slices.BinarySearchFunc(l.windows, begin.At, func(w result.Window, t time.Time) int {
			return cmp.Or(w.End.Compare(t), -1)
		})
		list = append(list, &cutter{
			cell: min(w, n-1), from: begin,
			bound: func(i int) (time.Time, bool) {
				if i >= n-1 {
					return time.Time{}, false
				}
				return l.windows[i].End, true
			},
			emit: func(i int, from, to tally.Mark) {
				h, err := histsBetween(from, to)
				complain(err)
				if to.At.After(from.At) {
					k.parts = append(k.parts, part{i, from, to, h})
				}
			},
		})
	}
	if l.spans != nil {
		list = append(list, l.spanCutter(begin, func(i int, from, to tally.Mark) {
			h, err := histsBetween(from, to)
			complain(err)
			k.judged = append(k.judged, part{i, from, to, h})
		}))
		for i := range k.streams {
			n := &k.streams[i]
			n.cutter = l.spanCutter(begin, func(_ int, from, to tally.Mark) {
				h, _ := histsBetween(from, to) // said of the whole
				n.judged = n.judged.Plus(to.Totals.Minus(from.Totals), h)
			})
		}
	}
	return append(list, c.heatOf(l).cutter(begin))
}

// heatOf makes the workload's heat map when it is first needed.
func (c *replayed) heatOf(l *loadPlan) *heat {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.heat == nil {
		span := max(l.end.Sub(l.start), time.Second)
		step := max(time.Second, c.grid.interval, c.grid.detail, span/heatColumns)
		step = (step + time.Second - 1).Truncate(time.Second)
		l.heat = newHeat(grid{start: l.start, step: step, n: int((span + step - 1) / step)}, len(c.layout.Operations))
	}
	return l.heat
}

// workloads makes the entries: per VM, and merged over the group.
func (c *replayed) workloads() []result.Workload {
	var out []result.Workload
	for _, l := range c.loads {
		byVM := map[string][]*track{}
		var vms []string
		for _, k := range l.tracks {
			if byVM[k.job.VM] == nil {
				vms = append(vms, k.job.VM)
			}
			byVM[k.job.VM] = append(byVM[k.job.VM], k)
		}
		slices.Sort(vms)
		for _, vm := range vms {
			w := l.entry(byVM[vm])
			w.VM = vm
			if len(byVM[vm]) > 1 {
				w.Spans, w.Starts = startsOf(byVM[vm]), len(byVM[vm])
			}
			w.Streams = workedStreams(byVM[vm])
			w.ClockSeconds = slices.MaxFunc(byVM[vm],
				func(a, b *track) int { return cmp.Compare(a.clock.Abs(), b.clock.Abs()) }).clock.Seconds()
			out = append(out, w)
		}
		w := l.entry(l.tracks)
		w.Node = -1
		w.Sections = sections(l.tracks, func(n *streamTrack) tally.Mark { return n.final })
		l.judged(&w)
		w.StartSkew = startSkew(l.tracks)
		if l.heat != nil {
			w.Heat = l.heat.result()
			for i := range w.Ops {
				w.Ops[i].OverTime = l.heat.overTime(c.layout.Operation(w.Ops[i].Op))
			}
		}
		out = append(out, w)
	}
	return out
}

// startSkew is how far apart the machines of a start began, in the worst of the starts in which they were to begin
// together; nil where that is not known.
func startSkew(tracks []*track) (worst *result.StartSkew) {
	type start struct {
		first, last time.Time
		bound       float64
		vms         int
	}
	starts := map[int]*start{}
	for _, k := range tracks {
		began := k.job.Began
		if began.IsZero() {
			continue
		}
		s := starts[k.job.Attempt]
		if s == nil {
			s = &start{first: began, last: began}
			starts[k.job.Attempt] = s
		}
		if began.Before(s.first) {
			s.first = began
		}
		s.last = tally.Later(s.last, began)
		s.bound = max(s.bound, k.job.BeganBoundSeconds)
		s.vms++
	}
	for _, attempt := range slices.Sorted(maps.Keys(starts)) {
		s := starts[attempt]
		skew := s.last.Sub(s.first).Seconds()
		if s.vms > 1 && (worst == nil || skew > worst.Seconds) {
			worst = &result.StartSkew{Seconds: skew, BoundSeconds: 2 * s.bound, VMs: s.vms} // of two clocks
		}
	}
	return worst
}

// entry merges some tracks of the workload.
func (l *loadPlan) entry(tracks []*track) result.Workload {
	first := tracks[0].job
	w := result.Workload{
		Name: l.name, Group: l.group, Node: first.Node, Engine: first.Engine, Tool: first.Tool, Server: first.Server,
		Phase:   first.Phase,
		Prefill: l.prefill, Rounds: first.Rounds,
		Latency: first.Latency, Streams: first.Streams, Operations: first.Operations, Measures: first.Measures,
		FailuresUnknown: first.FailuresUnknown, Again: first.Again,
	}
	for _, k := range tracks {
		start, end := k.measured()
		if w.Start.IsZero() || start.Before(w.Start) {
			w.Start = start
		}
		w.End = tally.Later(w.End, end)
		if w.Ended == "" || rank(k.ended) > rank(w.Ended) {
			w.Ended, w.Message = k.ended, k.job.Message
		}
		if k.final.Totals != nil {
			w.Ops = addOps(k.meter.Layout, w.Ops, k.final.Totals, k.final.Hists)
			w.Errors += uint64(k.final.Totals.Errors())
		}
		w.GeneratorCPUSeconds += k.cpu
		for _, n := range k.notes {
			if !slices.Contains(w.Notes, n) {
				w.Notes = append(w.Notes, n)
			}
		}
		if len(k.marks) < 2 {
			w.Notes = append(w.Notes, fmt.Sprintf("start %d on %s left no report", k.job.Attempt, k.job.VM))
		}
	}
	if n := starts(tracks); n > 1 {
		w.Notes = append(w.Notes,
			fmt.Sprintf("started %d times; the numbers are of all starts together, without the pauses between them", n))
	}
	w.Values = values(tracks, 0, func(k *track) (from, to tally.Mark, span time.Duration) {
		if len(k.marks) < 2 {
			return tally.Mark{}, tally.Mark{}, 0
		}
		return k.marks[0].mark(), k.marks[len(k.marks)-1].mark(), k.to().Sub(k.from())
	})
	w.Windows = l.windowsOf(tracks)
	return w
}

// leastTold is the time in seconds for which a Level must be told to be known.
const leastTold = 1e-6

// values are the measures of some tracks of a workload over the part of each that of gives, span 0 for none. What
// cannot be added is given of a single track only, as it reported it last in that part. All parts lie in a time of some
// seconds, 0 for each in its own: a Level of a machine that worked for less of it was nothing in the rest, and for as
// long as no report told it not known; a sum that lacks a machine is not made.
func values(
	tracks []*track,
	seconds float64,
	of func(*track) (from, to tally.Mark, span time.Duration),
) []result.Value {
	l := tracks[0].meter.Layout
	var out []result.Value
	for _, m := range tracks[0].job.Measures {
		at, last := l.Of(m.Name), math.NaN()
		type part struct{ done, seconds, untold float64 }
		byVM := map[string]part{} // a Level of two starts of a machine is one after the other
		for _, k := range tracks {
			from, to, span := of(k)
			if span <= 0 || k.reported == nil || !k.reported[at] {
				continue
			}
			p := byVM[k.job.VM]
			byVM[k.job.VM] = part{
				p.done + l.Measure(to.Totals, at) - l.Measure(from.Totals, at),
				p.seconds + span.Seconds(),
				p.untold + l.Untold(to.Totals, at) - l.Untold(from.Totals, at),
			}
			for _, f := range k.single[at] {
				if f.t.After(from.At) && !f.t.After(to.At) {
					last = f.v
				}
			}
		}
		sum, told := 0.0, 0
		for _, vm := range slices.Sorted(maps.Keys(byVM)) {
			p := byVM[vm]
			if m.Kind == result.Level {
				if p.seconds < seconds-closeCuts.Seconds() {
					p.seconds = seconds
				}
				if p.seconds -= p.untold; p.seconds < leastTold {
					continue
				}
				p.done /= p.seconds
			}
			sum, told = sum+p.done, told+1
		}
		if m.Averages() {
			sum /= float64(max(told, 1))
		}
		switch {
		case told == 0 || told < len(byVM) && !m.Averages() ||
			m.Kind == result.Single && (len(byVM) > 1 || math.IsNaN(last)):
			continue
		case m.Kind == result.Single:
			sum = last
		}
		out = append(out, result.Value{Measure: m.Name, Value: significant(sum, 9)})
	}
	return out
}

// measured is from the moment the generator began to count to its last report, so that a count divided by the length is
// the rate; the time that a tool needs to start and to end is left out. Without two states it is the life of the
// process.
func (k *track) measured() (start, end time.Time) {
	if n := len(k.marks); n > 1 {
		return k.marks[0].At, k.marks[n-1].At
	}
	return k.job.Start, k.end
}

func starts(tracks []*track) int {
	seen := map[int]bool{}
	for _, k := range tracks {
		seen[k.job.Attempt] = true
	}
	return len(seen)
}

// rank orders ends by how much a reader must know of them.
func rank(ended result.Ending) int {
	return slices.Index([]result.Ending{result.Finished, result.Stopped, result.Unrecorded, result.Lost,
		result.Failed}, ended)
}

// windowsOf are the windows with what the tracks did in them. Their times are those of the reports nearest to the cuts.
func (l *loadPlan) windowsOf(tracks []*track) []result.Window {
	var out []result.Window
	for i, w := range l.windows {
		var parts []held
		errors := 0.0
		w.Ops = nil
		for _, k := range tracks {
			for _, p := range k.parts {
				if p.window != i {
					continue
				}
				did := p.to.Totals.Minus(p.from.Totals)
				parts = append(parts, held{k, p})
				w.Ops, errors = addOps(k.meter.Layout, w.Ops, did, p.hists), errors+did.Errors()
			}
		}
		if len(parts) == 0 {
			continue
		}
		w.Start, w.End = extent(parts)
		w.Pause, w.Errors = pause(parts).Seconds(), uint64(max(0, math.Round(errors)))
		w.Values = values(tracks, w.Seconds(), func(k *track) (from, to tally.Mark, span time.Duration) {
			return ofWindow(k.parts, func(p part) bool { return p.window == i })
		})
		out = append(out, w)
	}
	return out
}

// ofWindow is from where to where the parts of a track go that are asked for, and how long they are; 0 when there is
// none.
func ofWindow(parts []part, wanted func(part) bool) (from, to tally.Mark, span time.Duration) {
	for _, p := range parts {
		if wanted(p) {
			if from.Totals == nil {
				from = p.from
			}
			to, span = p.to, span+p.to.At.Sub(p.from.At)
		}
	}
	return from, to, span
}
