package analysis

import (
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/recovery"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/steady"
	"plimsoll/result"
)

// comeback is how the workloads of one group of VMs came through a fault.
type comeback struct {
	group string
	fault string    // what was done, as the journal has it
	at    time.Time // of the first fault of the episode
	recovery.Recovery
	failed uint64       // operations of these workloads that failed after it, up to the end of what was measured
	next   *result.Mark // the fault that struck before the level was regained and ended the measurement; nil when none did
	of     quantity
	track  *track
}

// outages measures how every group came back after every episode of faults, by what stands for its workloads and by
// the measures of which less is not better: those rise in a fault, or fall to nothing with all else. Faults that
// follow before the level was regained and cost nothing by themselves belong to the same episode, as do the orders to
// switch power on again. One that takes away more of what was left begins an episode of its own. What has cost nothing
// by the time of the next one is no beginning of an episode.
func (v *view) outages() []comeback {
	var out []comeback
	for _, group := range v.groups() {
		for i, q := range v.followed(group) {
			if i == 0 || q.better != result.Lower {
				out = append(out, v.outagesOf(group, q)...)
			}
		}
	}
	return out
}

// followed is what the workloads of a group do together: the main thing first, then all measures.
func (v *view) followed(group string) []quantity {
	var loads []*load
	var out []quantity
	for _, l := range v.loads {
		if l.group != group {
			continue
		}
		loads = append(loads, l)
		for _, q := range l.quantities() {
			if q.measure != "" && !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	if len(out) == 0 || slices.ContainsFunc(loads, func(l *load) bool { return l.count() > 0 }) {
		return append([]quantity{operationsRate(occurred(loads))}, out...)
	}
	return out
}

func (v *view) outagesOf(group string, q quantity) (out []comeback) {
	var until, since time.Time // since: an earlier fault is not over, and the level before is what it left
	for _, e := range v.d.Events {
		if e.Kind != result.KindFault || e.Time.Before(until) {
			continue
		}
		if o, ok := v.measure(group, q, e, since, v.nextFault(e.Time)); ok && !o.hit() {
			out, until = append(out, o), e.Time.Add(oneFault)
			continue
		}
		o, ok := v.measure(group, q, e, since, time.Time{})
		if !ok {
			continue
		}
		until, since = v.d.End, time.Time{}
		if o.Regained.Reached {
			until = e.Time.Add(time.Duration(o.Regained.Seconds * float64(time.Second)))
		}
		if next := v.struckAgain(group, q, e, until); next != nil {
			if cut, ok := v.measure(group, q, e, since, next.Time); ok {
				o, until, since = cut, next.Time, e.Time
				o.next = next
			}
		}
		out = append(out, o)
	}
	return out
}

// struckAgain is the first fault after another, and before a moment, that took away more of what the other had left; nil
// when none did.
func (v *view) struckAgain(group string, q quantity, first result.Mark, until time.Time) *result.Mark {
	for i := range v.d.Events {
		e := &v.d.Events[i]
		if e.Kind != result.KindFault || e.Time.Sub(first.Time) <= oneFault || !e.Time.Before(until) {
			continue
		}
		if o, ok := v.measure(group, q, *e, first.Time, v.nextFault(e.Time)); ok && o.hit() {
			return e
		}
	}
	return nil
}

// nextFault is when the next fault follows that is not one with the one at a time, zero when there is none.
func (v *view) nextFault(at time.Time) time.Time {
	for _, e := range v.d.Events {
		if e.Kind == result.KindFault && e.Time.Sub(at) > oneFault {
			return e.Time
		}
	}
	return time.Time{}
}

// oneFault is the time within which faults are one.
const oneFault = 5 * time.Second

// groups are those of the workloads, in order.
func (v *view) groups() []string {
	var out []string
	for _, l := range v.loads {
		out = appendNew(out, l.group)
	}
	slices.Sort(out)
	return out
}

// struck are the workloads of a group that were running when a fault came, and those that do the same again: authors start a new
// workload when the machines are back. Others, such as a check of what was written, are no measure of the recovery.
func (v *view) struck(group string, at time.Time) (hit, all []*load) {
	for _, l := range v.loads {
		if l.group == group && slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return v.atWork(l, p, at) }) {
			hit = append(hit, l)
		}
	}
	for _, l := range v.loads {
		if l.group == group && slices.ContainsFunc(hit, func(o *load) bool {
			return o == l || o.job() != "" && o.job() == l.job()
		}) {
			all = append(all, l)
		}
	}
	return hit, all
}

// atWork reports whether a VM's workload was under way at a moment. A generator that a fault ended has its last report
// shortly before it.
func (v *view) atWork(l *load, p *result.Workload, at time.Time) bool {
	before := at.Add(-max(5*time.Second, v.silence(l)))
	return slices.ContainsFunc(p.Times(), func(t result.Span) bool { return t.Start.Before(at) && t.End.After(before) })
}

// silence is the time between two reports of a workload and once more, 0 where it is not known.
func (v *view) silence(l *load) time.Duration {
	if c := v.track(l); c != nil {
		return time.Duration(2 * c.step * float64(time.Second))
	}
	return 0
}

// begun is how often a VM's workload had been started by a moment.
func begun(p *result.Workload, at time.Time) (n int) {
	for _, t := range p.Times() {
		if t.Start.Before(at) {
			n++
		}
	}
	return n
}

// even is the time around a moment in which the same VMs of a workload were to work: from the last start of one before it
// to the next start of one that is late, or the next planned end. A VM that is started once more does again what a fault
// ended; end is zero where nothing was to change.
func (l *load) even(at time.Time) (start, end time.Time) {
	rounds := 0
	for _, p := range l.parts {
		rounds = max(rounds, begun(p, at))
	}
	again := time.Time{} // the first of the starts after this one
	for _, p := range l.parts {
		if t := p.Times(); begun(p, at) == rounds && len(t) > rounds && (again.IsZero() || t[rounds].Start.Before(again)) {
			again = t[rounds].Start
		}
	}
	sooner := func(t time.Time) {
		if t.After(at) && (end.IsZero() || t.Before(end)) {
			end = t
		}
	}
	for _, p := range l.parts {
		times := p.Times()
		n := begun(p, at)
		if n > 0 {
			start = later(start, times[n-1].Start)
			if p.Ended == "finished" {
				if e := times[n-1].End; e.After(at) {
					sooner(e)
				} else if n == rounds {
					start = later(start, e)
				}
			}
		}
		if n < rounds && n < len(times) && (again.IsZero() || times[n].Start.Before(again)) {
			sooner(times[n].Start)
		}
	}
	return start, end
}

// job is what a workload asks of its first VM, in a form that can be compared; "" where its generator does not say.
func (l *load) job() string {
	s := ""
	for _, lane := range l.parts[0].Lanes {
		s += fmt.Sprintf("%s %s %d %g %t %t|", lane.Name, lane.Device, lane.Depth, lane.Rate, lane.Reads, lane.Writes)
	}
	return s
}

// jointTrack is the track of several workloads of a group, when the series tell them from the others.
func (v *view) jointTrack(group, measure string, loads []*load) *track {
	if len(loads) == 1 {
		return v.wholeTrack(loads[0], measure)
	}
	named := v.sum(measure, func(s *result.Series) bool {
		mine := func(l *load) bool { return l.name == s.Workload }
		return s.VM == "" && s.Group == group && s.Workload != "" && s.Section == "" && slices.ContainsFunc(loads, mine)
	})
	if named == nil {
		return v.groupTrack(group, measure)
	}
	return named
}

// measure measures one fault, from an earlier one on and until a moment where these are given. The level before is that of the VMs which
// were at work when it came, without their warm-up; points at which none ran are points at which nothing was done.
func (v *view) measure(group string, q quantity, e result.Mark, since, until time.Time) (comeback, bool) {
	o := comeback{group: group, fault: e.Text, at: e.Time, of: q}
	hit, all := v.struck(group, e.Time)
	c := v.jointTrack(group, q.measure, all)
	if len(hit) == 0 || c == nil {
		return o, false
	}
	var to time.Time
	for _, l := range all {
		_, end := l.span()
		to = later(to, end)
	}
	from, changes := since, []time.Time{}
	for _, l := range hit {
		start, end := l.even(e.Time)
		from, changes = later(from, start), append(changes, end)
		w := l.whole()
		if w == nil {
			continue
		}
		for _, win := range w.Comparable() { // what began or ended beside it may have moved the level
			if enough := time.Duration(20 * c.step * float64(time.Second)); win.Start.Add(enough).Before(e.Time) {
				from = later(from, win.Start)
			}
		}
	}
	if !to.After(e.Time) {
		to = v.d.End // it never came back
	}
	for _, t := range changes { // the level moves when a VM begins, or ends as planned, too
		if !t.IsZero() && t.Before(to) {
			to = t
		}
	}
	if !until.IsZero() {
		if until.Sub(e.Time) < time.Duration(5*c.step*float64(time.Second)) {
			return o, false // too short to tell that nothing happened
		}
		if until.Before(to) {
			to = until
		}
	}
	for _, l := range all {
		o.failed += l.failedBetween(e.Time, to)
	}
	o.track = c.between(from, to)
	before := o.track.between(from, e.Time)
	values, _ := finiteOf(before.ops)
	if fewest := 5; !since.IsZero() && len(values) < fewest {
		return o, false // the fault before has not shown all that it does
	}
	warm, _ := steady.WarmUp(values)
	var points []recovery.Point
	for i, x := range o.track.ops {
		if i < warm {
			continue
		}
		if !isFinite(x) {
			x = 0
		}
		points = append(points, recovery.Point{Seconds: o.track.elapsed(i), Value: max(0, x)})
	}
	var err error
	o.Recovery, err = recovery.Measure(points, e.Time.Sub(v.d.Start).Seconds(), recovery.Options{HoldSeconds: max(10, 3*c.step)})
	return o, err == nil
}

// failedBetween are the operations of a workload that failed between two moments, as near as its windows tell; all of them
// where they do not.
func (l *load) failedBetween(from, to time.Time) (n uint64) {
	if w := l.whole(); w != nil && len(w.Windows) > 0 {
		for _, win := range w.Windows {
			if middle := win.Start.Add(win.End.Sub(win.Start) / 2); middle.After(from) && middle.Before(to) {
				n += win.Errors
			}
		}
		return n
	}
	for _, p := range l.parts {
		n += p.Errors
	}
	return n
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hit reports whether the fault cost more than noise: work worth more than two points, or a second, was not done, or, where
// the next fault came soon, most points between lay below the level that counts as regained.
func (o *comeback) hit() bool {
	const fewest = 5
	after, _ := finiteOf(o.track.between(o.at, o.track.at(len(o.track.ops))).ops)
	below := !o.Regained.Reached && len(after) >= fewest && resample.Median(after) < 0.9*o.Before.Value
	return o.Stopped.Reached || below || o.LostWork > o.Before.Value*max(1, 2*o.track.step)
}

// recovered tells how each group came back after a fault.
func recovered(v *view) []result.Finding {
	var out []result.Finding
	for _, o := range v.outages() {
		out = append(out, o.finding(v))
	}
	return out
}

func (o *comeback) finding(v *view) result.Finding {
	at := o.at.Sub(v.d.Start).Seconds()
	f := result.Finding{
		Check: "recovery", Subject: o.group, Metric: "time to 90 % of the former level", Unit: "s", N: len(o.track.ops),
		Basis: fmt.Sprintf("%s of the workloads of %s that the fault struck, in points of %s; former level %s; a return must hold for %s",
			o.of.name, o.group, sayDuration(o.track.step), o.of.brief(o.Before.Value), sayDuration(max(10, 3*o.track.step))),
		Evidence: []result.Evidence{{Name: "level before", Value: o.Before.Value, Unit: o.of.unit}, {Name: "lowest after",
			Value: o.Lowest, Unit: o.of.unit}},
		Warnings: append(slices.Clone(o.Warnings), "one fault: repeats show how much the time varies (analyze takes several runs)"),
	}
	if o.of.measure != "" {
		f.Metric = "time to 90 % of the former " + o.of.name
	}
	if o.of.kind == result.Count {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "work lost", Value: max(0, o.LostWork), Unit: "count"})
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: "overshoot", Value: 100 * o.Overshoot, Unit: "%"},
		result.Evidence{Name: "failed operations", Value: float64(o.failed), Unit: "count"})
	failed := "no failed operation was reported"
	if o.failed > 0 {
		failed = sayCount(float64(o.failed)) + " operations failed"
	}
	head := fmt.Sprintf("After %q%s at %s, %s", o.fault, v.beside(o.at), clockOf(at), o.group)
	if o.First.Reached {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "first " + o.work() + " after", Value: o.First.Seconds,
			Unit: "s"})
	}
	switch {
	case !o.hit():
		f.Severity, f.Value, f.NoInterval = result.Fine, ptr(0), "the level was not left"
		f.Sentence = fmt.Sprintf("%s went on: its %s of %s was not left for longer than chance does, and %s.", head,
			o.of.name, o.of.brief(o.Before.Value), failed)
		return f
	case o.Regained.Reached:
		f.Severity, f.Value = result.Notice, ptr(o.Regained.Seconds)
		setInterval(&f, o.Regained.Interval)
		f.Confidence = 1 // it lies between two points
		f.Sentence = fmt.Sprintf("%s was back at 90 %% of its former %s after %s%s; %s.", head, o.of.say(o.Before.Value),
			sayDuration(o.Regained.Seconds), o.stop(), failed)
		if o.Overshoot > 0.25 {
			f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf(", and it overshot by %s.", percent(o.Overshoot))
		}
	case o.next != nil:
		f.Severity, f.NoInterval = result.Caution, o.Regained.Reason
		f.Sentence = fmt.Sprintf("%s was not back at 90 %% of its former %s when %q struck at %s%s; %s.", head, o.of.say(o.Before.Value),
			o.next.Text, clockOf(o.next.Time.Sub(v.d.Start).Seconds()), o.stop(), failed)
	default:
		f.Severity, f.NoInterval = result.Caution, o.Regained.Reason
		f.Sentence = fmt.Sprintf("%s never came back to 90 %% of its former %s while it was measured%s; %s.", head,
			o.of.say(o.Before.Value), o.stop(), failed)
	}
	if o.failed > 0 {
		f.Severity = result.Caution
	}
	f.Chart = v.chart(o.group+": "+o.of.per, o.of.unit, o.track.line(o.group, o.filled()))
	f.Chart.Levels = []result.ChartPlace{{At: round(0.9 * o.Before.Value), Text: "90 % of before"}}
	return f
}

// beside says how many more faults came with one, within a few seconds.
func (v *view) beside(at time.Time) string {
	n := 0
	for _, e := range v.d.Events {
		if e.Kind == result.KindFault && e.Time.Sub(at) <= oneFault && !e.Time.Before(at) {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-1)
}

// filled is the rate with nothing done counted as 0.
func (o *comeback) filled() []float64 {
	out := slices.Clone(o.track.ops)
	for i, x := range out {
		if math.IsNaN(x) {
			out[i] = 0
		}
	}
	return out
}

// stop says when work stopped and began again.
func (o *comeback) stop() string {
	switch {
	case o.First.Reached:
		return fmt.Sprintf(" (first %s after %s)", o.work(), sayDuration(o.First.Seconds))
	case o.Stopped.Reached:
		return fmt.Sprintf(" (no %s was done again)", o.work())
	}
	return fmt.Sprintf(" (it never stopped; lowest %s)", o.of.brief(o.Lowest))
}

// work is what is done again after a stop.
func (o *comeback) work() string {
	if o.of.unit == result.OperationsUnit {
		return "I/O"
	}
	return "work"
}
