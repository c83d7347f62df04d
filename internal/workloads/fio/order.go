package fio

import (
	"slices"
	"time"

	"plimsoll/internal/contract/workload"
)

// order passes reports on in time order, at least half a second apart, with counters that only grow.
//
// A report that comes too soon after another, or says that nothing is left to do, is held until the next one or the
// end tells whether it was the last. So the last one is never lost and is marked Final.
type order struct {
	sink    workload.Sink
	warn    func(format string, args ...any)
	reports int
	last    state  // the last one passed on
	held    *state // waits for its successor
	tooSoon bool   // held came too soon after last
	base    workload.Report
	// baseSections are by section what base is in all.
	baseSections  []workload.Counts
	stepped       bool
	ramp          bool
	back          bool      // what was written is being read back
	delayed       *document // the one before, of jobs that read and write and then read back
	delayedValues []float64
	clean         map[int][operations]direction // of such jobs, as of the last report from before they read back
	waits         bool                          // its jobs have not begun
	estimate      bool
	mixed         bool      // reads and writes together are what was asked for
	apart         bool      // it is a part of somebody's output: fio's own clock says how long it worked
	still         bool      // the last report told nothing new of the part
	values        []float64 // of the report that is taken
}

// add takes the next report. Where jobs read and write, and then read back what they wrote, it takes the one before:
// only the next tells whether they still wrote.
func (o *order) add(d *document) {
	if !o.apart && slices.ContainsFunc(d.jobs, func(e entry) bool { r, v := d.readsBack(&e); return r && v }) {
		d, o.delayed = o.delayed, d
		o.values, o.delayedValues = o.delayedValues, o.values
	}
	if d == nil {
		return
	}
	if !o.apart {
		o.leaveReadBack(d, o.delayed)
	}
	o.enter(d, o.values)
}

// enter passes on a report and the values that came with it, once its place among the others is known.
func (o *order) enter(d *document, values []float64) {
	if o.waits = o.reports == 0 && d.waits(); o.waits {
		return
	}
	s := d.state()
	s.report.Values = values
	o.remark(d)
	if s.ramping {
		if !o.ramp {
			o.ramp = true
			o.warn("reports from the ramp time are not counted")
		}
		return
	}
	previous := &o.last
	if o.held != nil {
		if !o.tooSoon {
			o.pass(*o.held)
		}
		o.held = nil
	}
	if o.reports > 0 && s.runtime < previous.runtime && s.stampMS < previous.stampMS {
		o.warn("a report older than the one before it was skipped (fio's runtime %v, then %v)", previous.runtime,
			s.runtime)
		return
	}
	o.still = o.apart && o.reports > 0 && o.passed(&s) == 0
	// While fio reads back, its clock of the writing goes on: only its last report says how long that took.
	soon := o.back || o.reports > 0 && o.gap(&s) < closest
	if soon || s.done {
		o.held, o.tooSoon = &s, soon
		return
	}
	o.pass(s)
}

// remark tells once what is odd about a file.
func (o *order) remark(d *document) {
	for i := range d.jobs {
		e := &d.jobs[i]
		if e.onlyMixed() && !o.estimate && !o.mixed {
			o.estimate = true
			o.warn("reads and writes are reported together (unified_rw_reporting); they are counted as reads")
		}
		if r := &e.dirs[0]; !r.hasIOs && r.runtimeMS+e.dirs[1].runtimeMS > 0 && !o.estimate {
			o.estimate = true
			o.warn("%s prints no number of operations; it is worked out from its IOPS and runtime", d.version)
		}
	}
}

// gap is the time between the last report and another by fio's own clock, or by the wall clock where that one stands
// still.
func (o *order) gap(s *state) time.Duration {
	if g := o.passed(s); g > 0 || o.apart || o.back {
		return g
	}
	return milliseconds(s.stampMS) - milliseconds(o.last.stampMS)
}

func (o *order) finish() {
	if o.delayed != nil {
		o.leaveReadBack(o.delayed, nil)
		o.enter(o.delayed, o.delayedValues)
		o.delayed = nil
	}
	if o.back {
		o.warn("what is read back to verify it (verify) comes after the writing, and is in no figure")
	}
	if o.held != nil {
		o.held.report.Final = o.held.done
		o.pass(*o.held)
		o.held = nil
	}
}

// pass hands a report on, its time and counters put right.
func (o *order) pass(s state) {
	if o.reports > 0 {
		o.mendTime(&s)
		o.mendCounters(&s)
	}
	o.last = s
	o.reports++
	o.sink.Report(s.report)
}

// passed is the time between the last report and this one by fio's clock. Jobs that run together go on together; of
// those that wait for each other one goes on after another, and between them none. A wall clock that was set adds at
// most what all of them say.
func (o *order) passed(s *state) time.Duration {
	last := &o.last
	if len(s.runtimes) != len(last.runtimes) {
		return s.runtime - last.runtime
	}
	var longest, sum time.Duration
	together := true // directions that began at once and all go on
	for i, now := range s.runtimes {
		gone := now - last.runtimes[i]
		if gone < 0 { // it began again
			gone = now
		}
		longest, sum = max(longest, gone), sum+gone
		together = together && (gone == 0 || last.runtimes[i] > 0 && s.runtime-now <= time.Millisecond)
	}
	wall := milliseconds(s.stampMS) - milliseconds(last.stampMS)
	if o.apart || o.back { // what did not run at the same time is in other parts
		return longest
	}
	if sum == 0 {
		return max(wall, 0)
	}
	if last.runtime == 0 && wall > 0 { // fio's clock counts from where it began, and is silent until something is done
		return min(wall, longest)
	}
	if together || wall-longest < longest/4 { // they went on together, and fio's clock is the better one
		return longest
	}
	return min(wall, sum)
}

// mendTime keeps report times increasing when the host's clock is set back. Those of a part, and the last one, go by
// fio's own clock: the last report comes when all of fio has ended, which is after what it did.
func (o *order) mendTime(s *state) {
	previous := o.last.report
	gone := o.passed(s)
	late := s.done && gone > 0 && previous.Time.Add(gone).Before(s.report.Time)
	if (o.apart || o.back || late) && !previous.Time.IsZero() {
		s.report.Time = previous.Time.Add(gone)
	}
	if s.report.Time.After(previous.Time) || s.report.Time.IsZero() && previous.Time.IsZero() {
		return
	}
	if !o.stepped && s.stampMS > 0 && !s.report.Time.Equal(previous.Time) {
		o.stepped = true
		o.warn("the clock stepped back by %v; times from here on follow fio's runtime",
			previous.Time.Sub(s.report.Time))
	}
	s.report.Time = previous.Time.Add(max(s.runtime-o.last.runtime, time.Millisecond))
}

// mendCounters adds what was counted before fio began again from zero, as it does at the end of a ramp time.
func (o *order) mendCounters(s *state) {
	previous, raw := o.last.report, s.report
	raw.Ops = slices.Clone(raw.Ops)
	mend(&s.report, &o.base)
	o.mendSections(s.report.Sections, previous.Sections)
	if back(s.report.Ops, previous.Ops) {
		o.warn("counters began again from zero after %d operations; what was counted before is added",
			previous.Ops.Total())
		s.report = raw
		mend(&s.report, &previous)
		o.base = previous
	}
	r := &s.report
	r.Elapsed = previous.Elapsed + o.passed(s)
	r.Errors = max(r.Errors, previous.Errors)
	r.CPUSeconds = max(r.CPUSeconds, previous.CPUSeconds)
	keepSeconds(r.Ops, previous.Ops)
}

// keepSeconds does not let the sums of times fall, which fio prints as rounded means.
func keepSeconds(now, before workload.Counts) {
	for i := range now {
		now[i].Seconds = max(now[i].Seconds, before[i].Seconds)
	}
}

// mendSections does the same for every section by itself: each has a ramp time of its own.
func (o *order) mendSections(now, before []workload.Counts) {
	if len(o.baseSections) != len(now) {
		o.baseSections = make([]workload.Counts, len(now))
		for i := range now {
			o.baseSections[i] = make(workload.Counts, len(now[i]))
		}
	}
	if len(before) != len(now) {
		return
	}
	for i, was := range before {
		raw := slices.Clone(now[i])
		now[i].Add(o.baseSections[i])
		if back(now[i], was) {
			now[i], o.baseSections[i] = raw, was
			now[i].Add(was)
		}
		keepSeconds(now[i], was)
	}
}

// back reports whether any counter went backwards.
func back(now, before workload.Counts) bool {
	for i := range now {
		if now[i].Ops < before[i].Ops {
			return true
		}
	}
	return false
}

func mend(r, base *workload.Report) {
	if base.Ops != nil {
		r.Ops.Add(base.Ops)
	}
	r.Elapsed += base.Elapsed
	r.Errors += base.Errors
	r.CPUSeconds += base.CPUSeconds
}
