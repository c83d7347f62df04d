package record

import (
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// load is one workload of one VM over all its starts.
type load struct {
	name    string
	prefill bool
	layout  tally.Layout
	ended   tally.Totals      // of finished starts
	state   tally.Totals      // at the tick last asked for
	hists   []*hist.Histogram // of finished starts, by operation
	sent    []*hist.Histogram // as last reported and written
	job     *Job              // the running one, nil between starts
	seen    []bool            // whether the operation ever occurred
	running *series.Row       // active and errors; nil of a section
	byOp    []opSeries
	values  []*series.Row // of measures
	// sections are the streams of a workload that tells them apart, each as a load of its own.
	sections []*load
}

// opSeries are the series of one kind of operation.
type opSeries struct {
	done    *series.Row // operations and bytes
	service *series.Handle
}

// newLoad prepares a load whose operations' series have these names and labels.
func newLoad(name string, l tally.Layout, ls []series.Label, ops, bytes, service string) *load {
	n := len(l.Operations)
	out := &load{name: name, layout: l, ended: l.Zero(), state: l.Zero(), hists: make([]*hist.Histogram, n),
		sent: make([]*hist.Histogram, n), seen: make([]bool, n)}
	for i, o := range l.Operations {
		with := append(slices.Clone(ls), series.Label{Name: "op", Value: o.Name})
		out.byOp = append(out.byOp, opSeries{series.NewRow(handles(with, ops, bytes)...),
			series.NewHandle(service, with)})
		out.seen[i] = o.Block != result.BlockDiscard // those are rare
	}
	for _, m := range l.Measures {
		with := append(slices.Clone(ls), series.Label{Name: "measure", Value: m.Name},
			series.Label{Name: "unit", Value: m.Unit})
		out.values = append(out.values, series.NewRow(series.NewHandle(WorkloadMeasure, with)))
	}
	return out
}

// Job records one start of one workload on one VM. It is the workload.Sink to give to the engine.
type Job struct {
	r     *Recorder
	vm    *vmState
	load  *load
	start time.Time
	begun time.Time // its command, where the host can tell; else start
	heard time.Time // when the newest report came
	meter *tally.Meter
	ticks []tally.Mark // reports not yet wholly passed by the ticks written; ticks[0] is at or before the next tick
	marks []tally.Mark // the array in which ticks lie, from its beginning
	// for Live: the newest report, and two earlier ones at least half an interval apart, so that two reports of nearly
	// the same moment (a tool's last two) do not make a rate out of nothing
	now, middle, before placed
	low, high           time.Duration // bounds of the run's clock minus the tool's
	bounded             bool          // low and high are known
	guessed             bool          // ahead is of the first report, not of a clock that was read
	ahead               time.Duration // of the tool's clock, as its first report shows it
	gap                 time.Duration // longest time between two reports so far, or as announced
	over                bool
	points              []workload.Point // that lead to the next report
	stretches           []stretch
	index               [3]int // where their counters belong among the operations
}

type placed struct {
	t time.Time
	r workload.Report
}

var (
	_ workload.Sink   = (*Job)(nil)
	_ workload.Tracer = (*Job)(nil)
)

// Job begins a start of a workload. Prefill is kept apart from the workload proper by the label prefill="true". A start
// that was never ended is ended first.
func (r *Recorder) Job(d result.RawJob) *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.vm(d.VM, d.Group, d.Node)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.Store(0)
	l := v.load(r.o.Scope, d)
	if l.job != nil {
		l.job.over = true
		l.finish()
	}
	now := r.now()
	l.job = &Job{r: r, vm: v, load: l, start: now, now: placed{t: now}, middle: placed{t: now}, before: placed{t: now},
		meter: tally.NewMeter(l.layout, d.Operations, d.Measures), index: workload.BlockIndexes(l.layout.Operations)}
	l.job.ticks = []tally.Mark{{At: now, Totals: l.job.meter.Vector()}}
	if d.Apart && l.sections == nil {
		l.sections = v.sections(r.o.Scope, d)
	}
	for _, s := range l.sections {
		s.job = &Job{r: r, vm: v, load: s, start: now, ticks: []tally.Mark{{At: now, Totals: s.layout.Zero()}},
			meter: tally.NewMeter(s.layout, d.Operations, nil)}
	}
	return l.job
}

func (v *vmState) load(scope Scope, d result.RawJob) *load {
	for _, l := range v.loads {
		if l.name == d.Workload && l.prefill == d.Prefill {
			return l
		}
	}
	ls := scope.labels(series.Label{Name: "instance", Value: v.name}, series.Label{Name: "vm_group", Value: v.group},
		series.Label{Name: "workload", Value: d.Workload})
	if d.Prefill {
		ls = append(ls, series.Label{Name: "prefill", Value: "true"})
	}
	l := newLoad(d.Workload, tally.Layout{Operations: d.Operations, Measures: d.Measures}, ls, WorkloadOps,
		WorkloadBytes, WorkloadService)
	l.prefill, l.running = d.Prefill, series.NewRow(handles(ls, WorkloadActive, WorkloadErrors)...)
	v.loads = append(v.loads, l)
	return l
}

// Report implements workload.Sink. The recorder keeps the report's histograms: they must not change afterwards.
func (j *Job) Report(rep workload.Report) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	if j.over || !j.meter.Fits(rep) {
		return
	}
	j.makeRoom()
	j.heard = j.r.now()
	at := j.place(rep)
	newest := j.ticks[len(j.ticks)-1]
	if len(j.ticks) == 1 && j.now.t.Equal(j.start) && rep.Elapsed > 0 {
		// The counters began when the tool did, not when it was sent for.
		if began := at.Add(-rep.Elapsed); began.After(j.start) {
			j.ticks = append(j.ticks, tally.Mark{At: began, Totals: j.meter.Vector()})
			newest.At = began
			for _, s := range j.load.sections {
				s.job.ticks = append(s.job.ticks, tally.Mark{At: began, Totals: s.layout.Zero()})
			}
		}
	}
	j.gap = max(j.gap, at.Sub(newest.At))
	j.pass(at.Sub(rep.Time), newest.At, at)
	j.ticks = append(j.ticks, j.meter.Report(newest.At, at, rep))
	j.marks = j.ticks
	if all := j.load.sections; len(all) == len(rep.Sections) {
		for i, s := range all {
			s.job.ticks = append(s.job.ticks, s.job.meter.Counts(at, rep.Sections[i]))
		}
	}
	j.vm.idle.Store(0)
	j.now = placed{at, rep}
	if at.Sub(j.middle.t) >= j.r.o.Interval/2 {
		j.before, j.middle = j.middle, j.now
	}
}

// Cadence implements workload.Tracer: until then a job is not silent.
func (j *Job) Cadence(every time.Duration) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	j.gap = max(j.gap, every)
}

// makeRoom moves what is left of the reports to the beginning of their array.
func (j *Job) makeRoom() {
	j.ticks = append(j.marks[:0], j.ticks...)
	clear(j.marks[min(len(j.ticks), len(j.marks)):])
	j.meter.Reuse(j.ticks)
}

// Points implements workload.Tracer.
func (j *Job) Points(list []workload.Point) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	j.points = list
}

// pass takes the points between two reports over, moved as the later one was.
func (j *Job) pass(shift time.Duration, from, to time.Time) {
	j.ticks = slices.Grow(j.ticks, len(j.points)+1)
	for i := range j.points {
		p := &j.points[i]
		m := tally.Mark{At: p.Time.Add(shift), Totals: j.meter.Vector()}
		if !m.At.After(from) || !m.At.Before(to) {
			continue
		}
		for d, op := range j.index {
			if op >= 0 {
				m.Totals.Set(op, &workload.Counters{Ops: p.Ops[d], Bytes: p.Bytes[d], Seconds: p.Seconds[d]})
			}
		}
		m.Totals[0] = j.ticks[len(j.ticks)-1].Totals[0]
		j.ticks = append(j.ticks, m)
	}
	j.points = nil
}

// place puts a report on the run's clock, never before an earlier one. A report cannot have been made after it arrived,
// nor its tool have begun before it was sent for; between these bounds the two clocks are taken to differ as little as
// they can. So neither the first report, which is long under way, nor a later one that is quick makes the reports look
// closer together than they are. Where the machine's clock is measured, that is believed instead. A report without a
// clock is as old as the job was when it was made; see untimed.
func (j *Job) place(rep workload.Report) time.Time {
	now := j.r.now()
	floor := j.ticks[len(j.ticks)-1].At
	back := j.watchClock(rep, now)
	if rep.Time.IsZero() {
		return tally.Later(tally.Untimed(rep, tally.Later(j.start, j.begun), now), floor).Round(0).UTC()
	}
	if c := j.vm.clock; c.known {
		if !j.bounded {
			j.bounded, j.ahead = true, c.ahead
			j.low, j.high = -c.ahead, -c.ahead
		}
		const drifted = 100 * time.Millisecond // at most, since it was measured; else it was set, and is measured again
		if at := rep.Time.Add(-c.ahead); !at.Before(floor.Add(-drifted)) && at.Before(now.Add(c.bound+drifted)) {
			if at.After(now) {
				at = now
			}
			return tally.Later(at, floor).Round(0).UTC()
		}
	}
	arrived := now.Sub(rep.Time)
	if !j.bounded {
		j.low, j.high, j.bounded, j.guessed = arrived, arrived, true, true
		if rep.Elapsed > 0 {
			j.low = min(arrived, j.start.Sub(rep.Time.Add(-rep.Elapsed)))
		}
		j.ahead = -min(max(0, j.low), j.high)
	}
	j.low, j.high = j.low+back, min(j.high+back, arrived)
	at := rep.Time.Add(min(max(0, j.low), j.high))
	if at.Before(floor) {
		// The tool's clock stepped backwards: start afresh.
		j.low, j.high = arrived, arrived
		at = now
	}
	return tally.Later(at, floor).Round(0).UTC()
}

// Warn implements workload.Sink.
func (j *Job) Warn(text string) {
	j.r.mu.Lock()
	defer j.r.mu.Unlock()
	j.r.warn[text]++
}

// End tells that the job has ended, however it ended. Ending twice is fine.
func (j *Job) End() {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	j.vm.idle.Store(0)
	j.over = true
}

// ClockSeconds is how far the tool's clock was ahead when it first reported and, where that is measured, now, as
// result.RawJob has them.
func (j *Job) ClockSeconds() (first float64, now *float64) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	c := j.vm.clock
	if c.known && j.bounded {
		ahead := j.ahead
		if j.guessed && (c.ahead-ahead).Abs() < time.Second { // a slow start looks like that
			ahead = c.ahead
		}
		if ahead.Abs() > c.bound {
			first = ahead.Round(time.Millisecond).Seconds()
		}
		if (c.ahead - ahead).Abs() > max(c.bound, time.Millisecond) {
			end := c.ahead.Round(time.Millisecond).Seconds()
			now = &end
		}
		return first, now
	}
	if j.ahead.Abs() < time.Second {
		return 0, nil
	}
	return j.ahead.Round(time.Millisecond).Seconds(), nil
}

// Begun implements workload.Beginner.
func (j *Job) Begun(at time.Time) {
	j.vm.mu.Lock()
	defer j.vm.mu.Unlock()
	j.begun = at
}

// Heard is of when the newest report is, on the run's clock; of a tool without a clock that may be long before it came.
func (j *Job) Heard() time.Time { return j.ticks[len(j.ticks)-1].At }

// horizon is the moment up to which the job's counters are known: its newest report, or now when it has ended or been
// silent for long. The former stays so until the time given, unless the job is heard of.
func (j *Job) horizon(now time.Time) (known, until time.Time) {
	until = j.silentFrom()
	if j.over || now.After(until) {
		return now, until
	}
	return j.Heard(), until
}

// silentFrom is when the job will have been silent for long.
func (j *Job) silentFrom() time.Time {
	return tally.Later(j.Heard(), j.heard).Add(3 * max(j.gap, j.r.o.Interval))
}

// at is the state of the load at a tick, until the next one is asked for. Ticks are asked for in order; reports that
// are passed are forgotten.
func (l *load) at(t time.Time) tally.Totals {
	sum := l.state
	copy(sum, l.ended)
	if l.job == nil {
		return sum
	}
	m := l.job.ticks
	for len(m) > 1 && !m[1].At.After(t) {
		if m[1].Hists == nil {
			m[1].Hists = m[0].Hists // until there are newer ones
		}
		m = m[1:]
	}
	l.job.ticks = m
	switch {
	case t.Before(m[0].At):
		return sum
	case len(m) == 1 || t.Equal(m[0].At):
		sum.Add(m[0].Totals)
	default:
		f := float64(t.Sub(m[0].At)) / float64(m[1].At.Sub(m[0].At))
		sum.Add(m[0].Totals)
		sum.AddPart(m[0].Totals, m[1].Totals, f)
		sum.Round(l.layout)
	}
	return sum
}

// write appends the load's own series at a tick.
func (l *load) write(b *series.Batch, t time.Time, v tally.Totals) {
	active := 0.0
	if j := l.job; j != nil && !t.Before(j.start) && !(j.over && t.After(j.Heard())) {
		active = 1
	}
	if l.running != nil {
		b.AppendRow(l.running, t, active, v.Errors())
	}
	for i := range l.byOp {
		if l.seen[i] = l.seen[i] || v.Ops(i) > 0; !l.seen[i] {
			continue
		}
		b.AppendRow(l.byOp[i].done, t, v.Ops(i), v.Bytes(i))
		if h := l.newHist(i); h != nil {
			b.AppendHistogram(l.byOp[i].service, t, h)
		}
	}
	l.writeValues(b, t)
	for _, s := range l.sections {
		s.write(b, t, s.at(t))
	}
}

// writeValues appends the measures as the newest report before the tick has them.
func (l *load) writeValues(b *series.Batch, t time.Time) {
	if len(l.values) == 0 || l.job == nil {
		return
	}
	for i, v := range l.job.ticks[0].Values {
		if !math.IsNaN(v) {
			b.AppendRow(l.values[i], t, v)
		}
	}
}

// newHist is the cumulative histogram over all starts at the tick last asked for; nil when it is the one written
// before.
func (l *load) newHist(op int) *hist.Histogram {
	if l.job == nil {
		return nil
	}
	h := (*hist.Histogram)(nil)
	if all := l.job.ticks[0].Hists; all != nil {
		h = all[op]
	}
	if h == nil || h == l.sent[op] || h.Count() == 0 {
		return nil
	}
	l.sent[op] = h
	return tally.Merged(l.hists[op], h)
}

// finish folds the ended start into the load.
func (l *load) finish() {
	last := l.job.ticks[len(l.job.ticks)-1]
	for i, h := range last.Hists {
		l.hists[i] = tally.Merged(l.hists[i], h)
	}
	l.ended.Add(last.Totals)
	l.job = nil
	for _, s := range l.sections {
		s.finish()
	}
}
