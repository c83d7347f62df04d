package analysis

import (
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/recovery"
	"plimsoll/internal/analysis/steady"
	"plimsoll/result"
)

// comeback is how the workloads of one group of VMs came through a fault.
type comeback struct {
	group string
	fault string    // what was done, as the journal has it
	at    time.Time // of the first fault of the episode
	recovery.Recovery
	failed uint64 // operations that failed in the group during the run
	of     quantity
	track  *track
}

// outages measures how every group came back after every episode of faults, by what stands for its workloads and by
// the measures of which less is not better: those rise in a fault, or fall to nothing with all else. Faults that
// follow before the level was regained belong to the same episode, as do the orders to switch power on again. What
// has cost nothing by the time of the next one is no beginning of an episode.
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
	until := time.Time{}
	for _, e := range v.d.Events {
		if e.Kind != result.KindFault || e.Time.Before(until) {
			continue
		}
		if o, ok := v.measure(group, q, e, v.nextFault(e.Time)); ok && !o.hit() {
			out, until = append(out, o), e.Time.Add(oneFault)
			continue
		}
		o, ok := v.measure(group, q, e, time.Time{})
		if !ok {
			continue
		}
		out = append(out, o)
		until = v.d.End
		if o.Regained.Reached {
			until = e.Time.Add(time.Duration(o.Regained.Seconds * float64(time.Second)))
		}
	}
	return out
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
		// A generator that the fault ended has its last report shortly before.
		if start, end := l.span(); l.group == group && start.Before(at) && end.After(at.Add(-5*time.Second)) {
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

// finished reports whether a workload ended as planned on every VM.
func (l *load) finished() bool {
	return !slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return p.Ended != "finished" })
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

// measure measures one fault, until a moment when one is given. The level before is that of the workloads which were running when it came, without their warm-up;
// points at which none ran are points at which nothing was done.
func (v *view) measure(group string, q quantity, e result.Mark, until time.Time) (comeback, bool) {
	o := comeback{group: group, fault: e.Text, at: e.Time, of: q}
	hit, all := v.struck(group, e.Time)
	c := v.jointTrack(group, q.measure, all)
	if len(hit) == 0 || c == nil {
		return o, false
	}
	var from, to time.Time
	for _, l := range all {
		_, end := l.span()
		to = later(to, end)
		for _, p := range l.parts {
			o.failed += p.Errors
		}
	}
	for _, l := range hit {
		start, _ := l.span()
		from = later(from, start)
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
	for _, l := range hit { // the level goes when a workload ends as planned, too
		if _, end := l.span(); l.finished() && end.After(e.Time) && end.Before(to) {
			to = end
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
	o.track = c.between(from, to)
	before := o.track.between(from, e.Time)
	values, _ := finiteOf(before.ops)
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

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hit reports whether the fault cost more than noise: work worth more than two points, or a second, was not done.
func (o *comeback) hit() bool {
	return o.Stopped.Reached || o.LostWork > o.Before.Value*max(1, 2*o.track.step)
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
