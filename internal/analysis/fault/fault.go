// Package fault asks how a run came through its faults: what each one took away, when the former level was back, what
// failed in between. It gives a view.Check to package analysis and its Outages to those who look at several runs; the
// method is package recovery. Workloads that a fault did not strike are no measure of it.
package fault

import (
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/recovery"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/steady"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Comeback is how the workloads of one group of VMs came through a fault.
type Comeback struct {
	Group string
	fault string    // what was done, as the journal has it
	node  string    // to whom
	at    time.Time // of the first fault of the episode
	ended time.Time // when it was over; zero when nobody said so
	recovery.Recovery
	failed uint64 // operations of these workloads that failed after it, up to the end of what was measured
	// what is said of that: of no failure only where no workload of the run reports any
	failures string
	// the fault that struck before the level was regained and ended the measurement; nil when none did
	next     *result.Mark
	Quantity view.Quantity
	track    *view.Track
	vms      view.StoodStill // those of its VMs that did, though the whole may not have
	beside   []string        // faults of other kinds that came within the same few seconds
	under    []string        // other faults that were in force when it came
	along    []string        // what else began or ended with it
	later    []string        // what did after it, while the level was not regained
	joined   string          // the load that began beside it before the level was regained
	over     time.Duration   // after which the fault was over, where what is missing since is not told from that load
	before   bool            // it had dropped as far, and for half as long, before the fault
	instead  string          // what its VMs did afterwards, where the load that the fault ended was not started again
}

// Outages measures how every group came back after every episode of faults, by what stands for its workloads and by
// the measures of which more is better: the others rise in a fault, or fall to nothing with all else. Faults that
// follow before the level was regained and cost nothing by themselves belong to the same episode. One that takes away
// more of what was left begins an episode of its own. What has cost nothing by the time of the next one is no beginning
// of an episode.
func Outages(v *view.Run) []Comeback {
	var out []Comeback
	for _, group := range groups(v) {
		for i, q := range followed(v, group) {
			if i == 0 || q.Better == result.Higher {
				out = append(out, stillOnce(outagesOf(v, group, q))...)
			}
		}
	}
	return out
}

// followed returns what the workloads of a group do together: the main thing first, then all measures.
func followed(v *view.Run, group string) []view.Quantity {
	var loads []*view.Load
	var out []view.Quantity
	for _, l := range v.Loads {
		if l.Group != group {
			continue
		}
		loads = append(loads, l)
		for _, q := range l.Quantities() {
			if q.Measure != "" && !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	if len(out) == 0 || slices.ContainsFunc(loads, func(l *view.Load) bool { return l.Count() > 0 }) {
		return append([]view.Quantity{view.OperationsRate(view.Occurred(loads))}, out...)
	}
	return out
}

func outagesOf(v *view.Run, group string, q view.Quantity) (out []Comeback) {
	var until, since time.Time // since: an earlier fault is not over, and the level before is what it left
	for _, e := range v.Data.Events {
		if !e.Strikes() || e.Time.Before(until) {
			continue
		}
		if o, ok := free(v, group, q, e, since); ok {
			// What came with it is looked at with it; another kind that came a moment later may still have struck.
			out, until = append(out, o), e.Time.Add(oneFault)
			for _, f := range v.Faults() {
				if f.Start.After(e.Time) && f.Start.Before(until) && !f.Alike(e) {
					until = f.Start
				}
			}
			continue
		}
		o, ok := measure(v, group, q, e, since, time.Time{})
		if !ok || o.yields(v) {
			continue
		}
		until, since = v.Data.End, time.Time{}
		if o.Regained.Reached {
			until = e.Time.Add(time.Duration(o.Regained.Seconds * float64(time.Second)))
		}
		if next := struckAgain(v, group, q, e, until); next != nil {
			if cut, ok := measure(v, group, q, e, since, next.Time); ok {
				if o, until = cut, next.Time; !o.Regained.Reached {
					since = e.Time
				}
				o.next = next
			}
		}
		if o.next == nil {
			o, until = besides(v, group, q, e, since, o, until)
		}
		out = append(out, o)
	}
	return out
}

// besides looks at a return that came after another load had begun beside what the fault struck: where the level was
// regained before, the rest is not the fault's; where the fault had been over for longer than the return must hold, the
// two are not told apart.
func besides(v *view.Run, group string, q view.Quantity, e result.Mark, since time.Time, o Comeback,
	until time.Time) (Comeback, time.Time) {
	_, all := struck(v, group, e.Time)
	l := joins(v, all, e.Time)
	dead := o.Stopped.Reached && !o.First.Reached // by then, and no other load's doing
	if l == nil || !begins(l).Before(until) || len(o.along) > 0 || dead {
		return o, until
	}
	if cut, ok := measure(v, group, q, e, since, begins(l)); ok && cut.Regained.Reached {
		return cut, e.Time.Add(time.Duration(cut.Regained.Seconds * float64(time.Second)))
	}
	o.joined = fmt.Sprintf("%s began at %s", l.Name, view.ClockOf(begins(l).Sub(v.Data.Start).Seconds()))
	if over := o.ended; !over.IsZero() && until.Sub(over) > hold(o.track) {
		o.over = over.Sub(e.Time)
	}
	return o, until
}

// overAt is when a fault was over, zero when nobody said so.
func overAt(v *view.Run, e result.Mark) time.Time {
	for _, f := range v.Faults() {
		if f.At(e.Time) && e.Time.Sub(f.Start) <= oneFault {
			return f.End
		}
	}
	return time.Time{}
}

// lastOf is when the last load of a group ended.
func lastOf(v *view.Run, group string) (last time.Time) {
	for _, l := range v.Loads {
		if _, end := l.Span(); l.Group == group && end.After(last) {
			last = end
		}
	}
	return last
}

// hold is for how long a return must last.
func hold(c *view.Track) time.Duration {
	return time.Duration(max(10, 3*c.Step) * float64(time.Second))
}

// struckAgain is the first fault after another, and before a moment, that took away more of what the other had left;
// nil when none did.
func struckAgain(v *view.Run, group string, q view.Quantity, first result.Mark, until time.Time) *result.Mark {
	for i := range v.Data.Events {
		e := &v.Data.Events[i]
		if !e.Strikes() || e.Time.Sub(first.Time) <= oneFault || !e.Time.Before(until) {
			continue
		}
		if o, ok := measure(v, group, q, *e, first.Time, nextFault(v, e.Time)); ok && o.hit() {
			return e
		}
	}
	return nil
}

// undisturbed is until when nothing but a fault is to be seen in the load of a group: the next fault, the moment at
// which another load begins beside it, or that at which the load is stopped on purpose, which is no part of the fault
// unless the load was down by then. Zero when neither comes.
func undisturbed(v *view.Run, group string, at time.Time) time.Time {
	until := nextFault(v, at)
	hit, all := struck(v, group, at)
	if l := joins(v, all, at); l != nil {
		if from, _ := l.Span(); until.IsZero() || from.Before(until) {
			until = from
		}
	}
	for _, l := range hit {
		for _, p := range l.Parts {
			times := p.Times()
			if n := begun(p, at); p.Ended == result.Stopped && n > 0 {
				if end := times[n-1].End; end.Sub(at) > oneFault && (until.IsZero() || end.Before(until)) {
					until = end
				}
			}
		}
	}
	return until
}

// joins is the first load that begins beside those that a fault struck, and later than it; nil when none does. What
// does again what the fault ended is part of the way back.
func joins(v *view.Run, all []*view.Load, at time.Time) (first *view.Load) {
	for _, l := range v.Loads {
		from, _ := l.Span()
		if slices.Contains(all, l) || from.Sub(at) < oneFault || again(v, l, at) {
			continue
		}
		if first == nil || from.Before(begins(first)) {
			first = l
		}
	}
	return first
}

func begins(l *view.Load) time.Time {
	from, _ := l.Span()
	return from
}

// again reports whether a load follows one of its group that a fault ended.
func again(v *view.Run, l *view.Load, at time.Time) bool {
	return slices.ContainsFunc(v.Loads, func(o *view.Load) bool {
		begun, over := o.Span()
		return o != l && o.Group == l.Group && begun.Before(at) && over.Before(begins(l)) &&
			!over.Before(at.Add(-oneFault))
	})
}

// nextFault is when the next fault follows that is not one with the one at a time, zero when there is none.
func nextFault(v *view.Run, at time.Time) time.Time {
	for _, e := range v.Data.Events {
		if e.Strikes() && e.Time.Sub(at) > oneFault {
			return e.Time
		}
	}
	return time.Time{}
}

// oneFault is the time within which faults are one.
const oneFault = view.SameMoment

// groups are those of the workloads, in order.
func groups(v *view.Run) []string {
	var out []string
	for _, l := range v.Loads {
		out = view.AppendNew(out, l.Group)
	}
	slices.Sort(out)
	return out
}

// jointTrack is the track of several workloads of a group, when the series tell them from the others.
func jointTrack(v *view.Run, group, measure string, loads []*view.Load) *view.Track {
	if len(loads) == 1 {
		return v.WholeTrack(loads[0], measure)
	}
	named := v.Sum(measure, func(s *result.Series) bool {
		mine := func(l *view.Load) bool { return l.Name == s.Workload }
		return s.VM == "" && s.Group == group && s.Workload != "" && s.Section == "" && slices.ContainsFunc(loads, mine)
	})
	if named == nil {
		return v.GroupTrack(group, measure)
	}
	return named
}

// measure measures one fault, from an earlier one on and until a moment where these are given. The level before is that
// of the VMs which were at work when it came, without their warm-up; points at which none ran are points at which
// nothing was done.
func measure(v *view.Run, group string, q view.Quantity, e result.Mark, since, until time.Time) (Comeback, bool) {
	o := Comeback{Group: group, fault: e.Text, node: e.Node, at: e.Time, ended: overAt(v, e), Quantity: q}
	hit, all := struck(v, group, e.Time)
	c := jointTrack(v, group, q.Measure, all)
	if len(hit) == 0 || c == nil {
		return o, false
	}
	var to time.Time
	for _, l := range all {
		_, end := l.Span()
		to = view.Later(to, end)
	}
	from, changes := since, []time.Time{}
	enough := time.Duration(20 * c.Step * float64(time.Second))
	known := e.Time // up to which points are of the level: what a fault took that was over only just now is not it
	for _, f := range v.Faults() {
		if since.IsZero() && !f.End.IsZero() && !f.End.After(e.Time) && !f.End.Add(enough/2).Before(e.Time) &&
			f.Start.Before(known) {
			known = f.Start
		}
	}
	for _, l := range hit {
		start, end := even(l, e.Time)
		from, changes = view.Later(from, start), append(changes, end)
		w := l.Whole()
		if w == nil {
			continue
		}
		for _, win := range w.Comparable() { // what began or ended beside it may have moved the level
			if win.Start.Add(enough).Before(known) {
				from = view.Later(from, win.Start)
			}
		}
	}
	for _, f := range v.Faults() { // what an earlier fault took is not the level
		if !f.End.IsZero() && f.End.Add(enough/2).Before(known) {
			from = view.Later(from, f.End)
		}
	}
	if known.Before(from.Add(enough / 2)) {
		known = e.Time
	}
	gone := lostWith(all, e.Time)
	if gone || !to.After(e.Time) {
		to = v.Data.End // it never came back
	}
	for _, t := range changes { // the level moves when a VM begins, or ends as planned, too
		if !t.IsZero() && t.Before(to) {
			to = t
		}
	}
	if !until.IsZero() {
		if until.Sub(e.Time) < time.Duration(5*c.Step*float64(time.Second)) {
			return o, false // too short to tell that nothing happened
		}
		if until.Before(to) {
			to = until
		}
	}
	for _, l := range all {
		o.failed += failedBetween(l, e.Time, to)
	}
	o.failures = o.saysFailures(v, all)
	o.track = c.Between(from, to)
	if gone && c.Step > 0 { // what is not there does nothing
		o.track.Writes, o.track.Bytes, o.track.Busy = nil, nil, nil
		for n := len(o.track.Ops); !o.track.At(n-1).After(e.Time) || !o.track.At(n).After(to); n++ {
			o.track.Ops = append(slices.Clip(o.track.Ops), 0)
		}
	}
	before := o.track.Between(from, known)
	values, _ := view.FiniteOf(before.Ops)
	if fewest := 5; !since.IsZero() && len(values) < fewest {
		return o, false // the fault before has not shown all that it does
	}
	warm, _ := steady.WarmUp(values)
	var points []recovery.Point
	for i, x := range o.track.Ops {
		if t := o.track.At(i); i < warm || t.After(known) && !t.After(e.Time) {
			continue
		}
		if !view.IsFinite(x) {
			x = 0
		}
		points = append(points, recovery.Point{Seconds: o.track.Elapsed(i), Value: max(0, x)})
	}
	if !slices.ContainsFunc(all, paced) {
		points = joinLate(points, e.Time.Sub(v.Data.Start).Seconds())
	}
	var err error
	o.Recovery, err = recovery.Measure(points, e.Time.Sub(v.Data.Start).Seconds(),
		recovery.Options{HoldSeconds: hold(c).Seconds()})
	if err != nil {
		return o, false
	}
	o.before = o.usual(values[min(warm, len(values)):])
	end := to
	if o.Regained.Reached {
		end = e.Time.Add(time.Duration(o.Regained.Seconds * float64(time.Second)))
	}
	if q.Measure == "" {
		until := to // a single VM may take longer than the whole
		for _, n := range v.Data.Events {
			if n.Strikes() && n.Time.Sub(e.Time) > oneFault && n.Time.After(end) && n.Time.Before(until) {
				until = n.Time
			}
		}
		o.vms = v.StoodStill(hit, from, e.Time, until)
	}
	for _, f := range v.Faults() {
		switch {
		case f.Start.Sub(e.Time).Abs() <= oneFault && !f.Alike(e):
			o.beside = append(o.beside, f.Say())
		case f.At(e.Time) && !f.OnAgain(e.Time) && e.Time.Sub(f.Start) > oneFault:
			o.under = append(o.under, f.Say())
		}
	}
	o.along, o.later = alongside(v, all, e.Time, end, enough, o.Regained.Reached)
	for _, f := range v.Faults() { // the level that it came to was already without what that one took
		if o.Regained.Reached && f.At(e.Time) && e.Time.Sub(f.Start) > oneFault && !f.End.IsZero() &&
			!f.End.After(end) {
			over := view.ClockOf(f.End.Sub(v.Data.Start).Seconds())
			o.along = append(o.along, fmt.Sprintf("%s was over at %s", f.Say(), over))
		}
	}
	for _, f := range v.Faults() {
		over := !f.End.IsZero() && end.Sub(f.End) > hold(c) // what it did was made up for by then
		if f.Start.Sub(e.Time) > oneFault && f.Start.Before(end) && !over {
			text := fmt.Sprintf("%s began at %s", f.Say(), view.ClockOf(f.Start.Sub(v.Data.Start).Seconds()))
			if o.Regained.Reached {
				o.along = append(o.along, text)
			} else {
				o.later = append(o.later, text)
			}
		}
	}
	if len(all) == len(hit) && o.Stopped.Reached && !o.First.Reached {
		o.instead = instead(v, group, hit, e.Time)
		if gone && o.instead == "" && v.Data.End.Sub(e.Time) <= hold(c) {
			o.instead = "the run ended at " + view.ClockOf(view.Later(v.Data.End, e.Time).Sub(v.Data.Start).Seconds())
		}
	}
	return o, true
}

// instead says which other workload of the same VMs began after a fault that had ended what they did; "" when none did,
// or the fault had not ended it.
func instead(v *view.Run, group string, hit []*view.Load, at time.Time) string {
	for _, l := range hit {
		if slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return p.Ended != result.Lost }) {
			return ""
		}
	}
	for _, l := range v.Loads {
		if from, _ := l.Span(); l.Group == group && !slices.Contains(hit, l) && from.After(at) {
			return fmt.Sprintf("%s began at %s", l.Name, view.ClockOf(from.Sub(v.Data.Start).Seconds()))
		}
	}
	return ""
}

// alongside says what else began or ended with a fault, or so shortly before that the level before it is not of that
// company, and what did later, while the level was not regained: workloads that it did not strike. Those that do again
// what it ended are part of the way back.
func alongside(v *view.Run, all []*view.Load, at, end time.Time, shortly time.Duration, regained bool) (along,
	later []string) {
	if regained {
		end = at.Add(oneFault)
	}
	say := func(l *view.Load, did string, t time.Time) {
		text := fmt.Sprintf("%s %s at %s", l.Name, did, view.ClockOf(t.Sub(v.Data.Start).Seconds()))
		switch {
		case t.Before(at.Add(-max(oneFault, shortly))) || !t.Before(end):
		case t.Before(at.Add(oneFault)):
			along = append(along, text)
		default:
			later = append(later, text)
		}
	}
	first := at // start of what was struck: what ended by then it never had beside it, what began by then always
	for _, l := range all {
		if from := begins(l); from.Before(first) {
			first = from
		}
	}
	for _, l := range v.Loads {
		from, to := l.Span()
		if slices.Contains(all, l) || !to.After(first) {
			continue
		}
		if from.After(first) && !again(v, l, at) {
			say(l, "began", from)
		}
		if from.Before(at) && !slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return !p.Ended.Planned()
		}) {
			say(l, "ended", to)
		}
	}
	return along, later
}

// Finding tells of one outage.
func (o *Comeback) Finding(v *view.Run) result.Finding {
	at := o.at.Sub(v.Data.Start).Seconds()
	f := result.Finding{
		Check: "recovery", Subject: o.Group, Metric: "time to 90 % of the former level", Unit: "s", N: len(o.track.Ops),
		Basis: fmt.Sprintf(
			"%s of the workloads of %s that the fault struck, in points of %s; former level %s; a return must hold for %s",
			o.Quantity.Name, o.Group, view.SayDuration(o.track.Step), o.Quantity.Brief(o.Before.Value),
			view.SayDuration(hold(o.track).Seconds())),
		Evidence: []result.Evidence{
			{Name: "level before", Value: o.Before.Value, Unit: o.Quantity.Unit},
			{Name: "lowest after",
				Value: o.Lowest, Unit: o.Quantity.Unit},
		},
		Warnings: append(slices.Clone(o.Warnings),
			"one fault: repeats show how much the time varies (analyze takes several runs)"),
	}
	if o.Quantity.Measure != "" {
		f.Metric = "time to 90 % of the former " + o.Quantity.Name
	}
	if o.Quantity.Kind == result.Count {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "work lost", Value: max(0, o.LostWork), Unit: "count"})
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: "overshoot", Value: 100 * o.Overshoot, Unit: "%"},
		result.Evidence{Name: "failed operations", Value: float64(o.failed), Unit: "count"})
	failed := o.failures
	head := fmt.Sprintf("After %q%s at %s", o.fault, o.alike(v), view.ClockOf(at))
	former := "its former " + o.Quantity.Say(o.Before.Value)
	if with := slices.Concat(o.under, o.beside); len(with) > 0 {
		head += ", with " + view.Listed(with)
	}
	head += ": " + o.Group
	if len(o.under) > 0 {
		former = fmt.Sprintf("the %s it had then", o.Quantity.Say(o.Before.Value))
	}
	if o.First.Reached {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "first " + o.work() + " after", Value: o.First.Seconds,
			Unit: "s"})
	}
	after := o.after()
	switch {
	case !o.hit() && !o.Regained.Reached && len(after) < fewestAfter:
		f.Severity, f.NoInterval = result.Info, "few or no reports after it"
		more := "has no report after it"
		if len(after) > 0 {
			more = fmt.Sprintf("was measured for %s more, %s in the middle, %s before",
				view.SayDuration(float64(len(after))*o.track.Step), o.Quantity.Brief(resample.Median(after)),
				o.Quantity.Brief(o.Before.Value))
		}
		f.Sentence = fmt.Sprintf("%s %s: too short to tell what the fault took; %s.", head, more, failed)
		return f
	case !o.hit():
		f.Severity, f.Value, f.NoInterval = result.Passed, view.Ptr(0), "the rate did not drop"
		kept := fmt.Sprintf("its %s of %s", o.Quantity.Name, o.Quantity.Brief(o.Before.Value))
		if o.Quantity.Measure != "" {
			kept = former
		}
		f.Sentence = fmt.Sprintf("%s kept %s, within normal variation; %s.", head, kept, failed)
		if now := resample.Median(after); now > rose*o.Before.Value {
			f.Sentence = fmt.Sprintf("%s did not fall below %s, with %s in the middle of what followed; %s.", head, kept,
				o.Quantity.Brief(now), failed)
		}
		if o.vms.VMs == 0 {
			return f
		}
		f.Severity, f.NoInterval = result.Info, "no drop of the whole beyond chance"
		f.Sentence = fmt.Sprintf("%s stood still in part: %s, though its %s of %s as a whole was not left for longer "+
			"than chance does; %s.", head, o.vms.Say(), o.Quantity.Name, o.Quantity.Brief(o.Before.Value), failed)
		return f
	case o.over > 0:
		f.Severity, f.NoInterval = result.Info, "what the fault took is not told apart from what another load takes"
		f.Sentence = fmt.Sprintf("%s was not back at 90 %% of %s before %s; the fault was over after %s, and what is missing "+
			"since then is not told apart from what that load takes; %s.", head, former, o.joined,
			view.SayDuration(o.over.Seconds()), failed)
	case o.Regained.Reached:
		f.Severity, f.Value = result.Info, view.Ptr(o.Regained.Seconds)
		view.SetInterval(&f, o.Regained.Interval)
		f.Confidence = 1 // it lies between two points
		f.Sentence = fmt.Sprintf("%s was back at 90 %% of %s after %s%s; %s.", head, former,
			view.SayDuration(o.Regained.Seconds), o.stop(), failed)
		if before, after := o.machines(v); o.lingers() {
			f.Sentence = f.Sentence[:len(f.Sentence)-1] + o.lingering()
		} else if after > before {
			f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf("; that was of %s, and %d worked afterwards.",
				view.Plural(before, "VM"), after)
		} else if o.Overshoot > 0.25 && len(o.under) == 0 { // with another fault over, it is no overshoot
			f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf("; overshoot %s.", view.Percent(o.Overshoot))
		}
	case o.instead != "":
		f.Severity, f.NoInterval = result.Info, "the load was not started again"
		f.Sentence = fmt.Sprintf("%s lost its load, which was not started again (%s): no return was measured; %s.", head,
			o.instead, failed)
	case o.next != nil && o.next.Time.Sub(o.track.At(len(o.track.Ops)-1)) <= hold(o.track):
		f.Severity, f.NoInterval = result.Warning, o.Regained.Reason
		f.Sentence = fmt.Sprintf("%s was not back at 90 %% of %s before %q at %s%s; %s.", head, former, o.next.Text,
			view.ClockOf(o.next.Time.Sub(v.Data.Start).Seconds()), o.stop(), failed)
	default:
		f.Severity, f.NoInterval = result.Warning, o.Regained.Reason
		end, at := "the end of the run", o.track.At(len(o.track.Ops)-1)
		if v.Data.End.Sub(at) > hold(o.track) && !o.Stopped.Reached {
			// What is compared ends with the load, or before it where more of its VMs begin.
			end = view.ClockOf(at.Sub(v.Data.Start).Seconds())
			if lastOf(v, o.Group).Sub(at) <= hold(o.track) {
				end = "its end at " + end
			}
		}
		f.Sentence = fmt.Sprintf("%s was not back at 90 %% of %s by %s%s; %s.", head, former, end, o.stop(), failed)
		// What slowed the load and is over leaves nothing behind by which a load that never stopped would stay slow.
		if over := o.ended; !over.IsZero() && at.Sub(over) > hold(o.track) && !o.Stopped.Reached && o.vms.VMs == 0 &&
			len(o.along)+len(o.later) == 0 {
			f.Severity = result.Info
			f.Sentence = f.Sentence[:len(f.Sentence)-1] + o.lingering()
		}
	}
	switch {
	case o.before:
		f.Sentence = f.Sentence[:len(f.Sentence)-1] + "; it had dropped so before the fault, too, so what the fault did " +
			"cannot be told."
	case len(o.along) > 0:
		f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf(
			"; how much of it is due to the fault cannot be told, since %s.", view.Listed(o.along))
	case len(o.later) > 0 && o.over == 0:
		f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf(
			"; whether it would have come back later cannot be told, since %s.", view.Listed(o.later))
	case o.joined != "" && o.over == 0:
		f.Sentence = f.Sentence[:len(f.Sentence)-1] + fmt.Sprintf(
			"; how much of it is due to the fault cannot be told, since %s.", o.joined)
	}
	if o.failed > 0 {
		f.Severity = result.Warning
	}
	f.Chart = v.Chart(o.Group+": "+o.Quantity.Per, o.Quantity.Unit, o.track.Line(o.Group, o.filled()))
	f.Chart.Levels = []result.ChartPlace{{At: view.Round(0.9 * o.Before.Value), Text: "90 % of before"}}
	return f
}

// lingers reports whether a load that never stopped came back only long after the fault was over.
func (o *Comeback) lingers() bool {
	if o.ended.IsZero() || o.Stopped.Reached || o.vms.VMs > 0 || len(o.along)+len(o.later) > 0 || o.joined != "" {
		return false
	}
	took := o.ended.Sub(o.at)
	back := time.Duration(o.Regained.Seconds * float64(time.Second))
	return back-took > max(took, 2*aWhile, hold(o.track))
}

// lingering says that what is missing after the fault was over may not be its doing.
func (o *Comeback) lingering() string {
	return fmt.Sprintf("; the fault was over after %s, and what is missing since then is not told apart from what the "+
		"load does by itself.", view.SayDuration(o.ended.Sub(o.at).Seconds()))
}

// alike says how many more faults came with one, within a few seconds, but for those of other kinds.
func (o *Comeback) alike(v *view.Run) string {
	n, kind := 0, view.Fault{Text: o.fault, Nodes: []string{o.node}}
	for _, e := range v.Data.Events {
		if e.Strikes() && (e.State == "" || kind.Alike(e)) && !e.Time.Before(o.at) && e.Time.Sub(o.at) <= oneFault {
			n++
		}
	}
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-1)
}

// filled is the rate with nothing done counted as 0.
func (o *Comeback) filled() []float64 {
	out := slices.Clone(o.track.Ops)
	for i, x := range out {
		if math.IsNaN(x) {
			out[i] = 0
		}
	}
	return out
}

// stop says when work stopped and began again.
func (o *Comeback) stop() string {
	switch {
	case o.First.Reached && o.Lowest > 0:
		return fmt.Sprintf(" (below 1 %% of it until %s; lowest %s)", view.SayDuration(o.First.Seconds),
			o.Quantity.Brief(o.Lowest))
	case o.First.Reached:
		return fmt.Sprintf(" (first %s after %s)", o.work(), view.SayDuration(o.First.Seconds))
	case o.Stopped.Reached:
		return fmt.Sprintf(" (no %s reported again)", o.work())
	}
	switch {
	case o.vms.VMs > 0:
		return fmt.Sprintf(" (%s; lowest %s)", o.vms.Say(), o.Quantity.Brief(o.Lowest))
	case o.vms.Unknown:
		return fmt.Sprintf(" (as a whole it never stopped; lowest %s)", o.Quantity.Brief(o.Lowest))
	}
	return fmt.Sprintf(" (never stopped; lowest %s)", o.Quantity.Brief(o.Lowest))
}

// work returns what is done again after a stop.
func (o *Comeback) work() string {
	if o.Quantity.Unit == result.OperationsUnit {
		return "I/O"
	}
	return "work"
}
