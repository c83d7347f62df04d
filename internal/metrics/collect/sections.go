package collect

import (
	"slices"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// Limits of what data.json holds of sections.
const (
	mostSections      = 32     // in all; the workloads beyond have no series of their sections
	mostSectionValues = 60_000 // in their series
	mostSectionPoints = 3600   // per series
)

// streamTrack tells what one stream of a start did.
type streamTrack struct {
	prev   tally.Mark
	final  tally.Mark     // the newest report at which counts and histograms belong together
	cells  []tally.Totals // on the grid of the sections; nil where it did not run. Absent when its series are not made
	cutter *cutter        // at the workload's spans, nil where it has none
	judged tally.Mark     // what it did in them
	// When it had work: the time before the report that first counted some, and the newest interval in which it did.
	began, from, to time.Time
	before, after   tally.Totals // the states at from and to
}

// moved notes that the stream worked between two reports, when it did.
func (n *streamTrack) moved(l tally.Layout, now tally.Mark) {
	if l.Done(now.Totals) <= l.Done(n.prev.Totals) {
		return
	}
	if n.began.IsZero() {
		n.began = n.prev.At
	}
	n.from, n.to, n.before, n.after = n.prev.At, now.At, n.prev.Totals, now.Totals
}

// worked is for how long the stream had work, at the least: in the last interval in which it did some, as long as that
// would have taken at its rate until then, or, where there is no other, as long as its depth takes for the times of its
// operations.
func (n *streamTrack) worked(l tally.Layout, depth int) time.Duration {
	last := n.to.Sub(n.from)
	if until := n.from.Sub(n.began); until > 0 && l.Done(n.before) > 0 {
		rate := l.Done(n.before) / until.Seconds()
		needed := (l.Done(n.after) - l.Done(n.before)) / rate
		return until + min(last, time.Duration(needed*float64(time.Second)))
	}
	if n.after == nil || depth <= 0 {
		return 0
	}
	return min(last, time.Duration(l.Busy(n.after)/float64(depth)*float64(time.Second)))
}

// workedStreams are the streams of a VM's starts with for how long each had work, where that is told apart.
func workedStreams(tracks []*track) []result.Stream {
	streams := slices.Clone(tracks[0].job.Streams)
	for i := range streams {
		for _, k := range tracks {
			if len(k.streams) != len(streams) {
				streams[i].Worked = 0
				break
			}
			streams[i].Worked += k.streams[i].worked(k.meter.Layout, streams[i].Depth).Seconds()
		}
		streams[i].Worked = significant(streams[i].Worked, 6)
	}
	return streams
}

// planSections chooses the grid of the sections' series. It is finer than that of the other series where these are many
// or long, or a workload reports rarely: a stream is starved for seconds, and only points as short as that show it.
func (c *planned) planSections() {
	streams, lines, interval := 0, 0, time.Second
	c.apart = map[*loadPlan]bool{}
	for _, l := range c.loads {
		d := l.tracks[0].job
		if l.prefill || !d.Apart || streams+len(d.Streams) > mostSections {
			continue
		}
		c.apart[l] = true
		streams += len(d.Streams)
		interval = max(interval, c.spacing[l.name])
		for _, stream := range d.Streams {
			for _, o := range d.Operations {
				if stream.Does(o) {
					lines += 3
				}
			}
		}
	}
	points := min(mostSectionPoints, mostSectionValues/max(lines, 1))
	span := c.grid.edge(c.grid.n).Sub(c.grid.start)
	step := max(interval, span/time.Duration(points))
	step = (step + time.Second - 1).Truncate(time.Second)
	c.fine = grid{c.grid.start, step, int((span + step - 1) / step), interval, c.grid.detail}
}

// streamsOf are empty tracks for the streams of a start that tells them apart.
func (c *planned) streamsOf(k *track) []streamTrack {
	l := c.loadOf(k)
	if !k.job.Apart || l.prefill {
		return nil
	}
	out := make([]streamTrack, len(k.job.Streams))
	for i := range out {
		if c.apart[l] {
			out[i].cells = make([]tally.Totals, c.fine.n)
		}
	}
	return out
}

// sections takes what a report placed at m says of each stream; whole says that it is one at which cells may be cut.
func (p *replay) sections(m tally.Mark, all []workload.Counts, whole bool) {
	if len(all) != len(p.track.streams) {
		p.warned["a report that does not tell the sections apart"]++
		return
	}
	for i := range p.track.streams {
		l := &p.track.streams[i]
		now := p.track.meter.Counts(m.At, all[i])
		if l.cells != nil {
			p.fine.spread(l.cells, l.prev.At, m.At, l.prev.Totals, now.Totals)
		}
		l.moved(p.track.meter.Layout, now)
		l.prev = now
		if whole {
			if l.cutter != nil {
				l.cutter.report(l.final, now)
			}
			l.final = now
		}
	}
}

// spread adds what happened evenly between two moments, at which there are two states, to the cells between them.
func (g grid) spread(cells []tally.Totals, from, to time.Time, before, after tally.Totals) {
	last := g.cell(to)
	if last > g.cell(from) && !to.After(g.edge(last)) {
		last--
	}
	for i := max(0, g.cell(from)); i <= min(last, g.n-1); i++ {
		share := 1.0
		if span := to.Sub(from); span > 0 {
			share = float64(tally.Earlier(to, g.edge(i+1)).Sub(tally.Later(from, g.edge(i)))) / float64(span)
		}
		if cells[i] == nil {
			cells[i] = make(tally.Totals, len(after))
		}
		cells[i].AddPart(before, after, share)
	}
}

// sections are the totals of a workload's streams over some starts, of each what of gives.
func sections(tracks []*track, of func(*streamTrack) tally.Mark) []result.Section {
	var out []result.Section
	for _, k := range tracks {
		if len(k.streams) == 0 || out != nil && len(k.streams) != len(out) {
			continue
		}
		for i, name := range record.SectionNames(k.job.Streams) {
			if len(out) <= i {
				out = append(out, result.Section{Name: name})
			}
			if did := of(&k.streams[i]); did.Totals != nil {
				out[i].Ops = addOps(k.meter.Layout, out[i].Ops, did.Totals, did.Hists)
			}
		}
	}
	return out
}

// sectionViews makes the series of all streams of a workload, each over all VMs.
func (c *replayed) sectionViews(l *loadPlan) []result.Series {
	if !c.apart[l] {
		return nil
	}
	var out []result.Series
	for i, name := range record.SectionNames(l.tracks[0].job.Streams) {
		rates := make([]tally.Totals, c.fine.n)
		for _, k := range l.tracks {
			if i >= len(k.streams) {
				continue
			}
			for at, cell := range k.streams[i].cells {
				if cell == nil {
					continue
				}
				if rates[at] == nil {
					rates[at] = c.layout.Zero()
				}
				rates[at].Add(cell)
			}
		}
		head := result.Series{Name: l.name + ": " + name, Group: l.group, Workload: l.name, Section: name}
		out = append(out, views(c.layout, head, c.fine, rates, 1, nil)...)
	}
	return out
}
