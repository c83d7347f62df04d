package fault

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// struck are the workloads of a group that were running when a fault came, and those that do the same again: authors
// start a new workload when the machines are back. Others, such as a check of what was written, are no measure of the
// recovery.
func struck(v *view.Run, group string, at time.Time) (hit, all []*view.Load) {
	for _, l := range v.Loads {
		if l.Group == group &&
			slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return atWork(v, l, p, at) }) {
			hit = append(hit, l)
		}
	}
	for _, l := range v.Loads {
		if l.Group == group && slices.ContainsFunc(hit, func(o *view.Load) bool {
			return o == l || job(o) != "" && job(o) == job(l)
		}) {
			all = append(all, l)
		}
	}
	return hit, all
}

// lostWith reports whether all VMs of workloads were lost with a fault.
func lostWith(loads []*view.Load, at time.Time) bool {
	return !slices.ContainsFunc(loads, func(l *view.Load) bool {
		_, end := l.Span()
		return end.Sub(at) > oneFault || slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return p.Ended != result.Lost
		})
	})
}

// atWork reports whether a VM's workload was under way at a moment. A generator that a fault ended has its last report
// shortly before it.
func atWork(v *view.Run, l *view.Load, p *result.Workload, at time.Time) bool {
	before := at.Add(-max(5*time.Second, v.Silence(l)))
	return slices.ContainsFunc(p.Times(), func(t result.Span) bool { return t.Start.Before(at) && t.End.After(before) })
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

// even is the time around a moment in which the same VMs of a workload were to work: from the last start of one before
// it to the next start of one that is late, or the next planned end. A VM that is started once more does again what a
// fault ended; end is zero where nothing was to change.
func even(l *view.Load, at time.Time) (start, end time.Time) {
	rounds := 0
	for _, p := range l.Parts {
		rounds = max(rounds, begun(p, at))
	}
	again := time.Time{} // the first of the starts after this one
	for _, p := range l.Parts {
		if t := p.Times(); begun(p, at) == rounds && len(t) > rounds &&
			(again.IsZero() || t[rounds].Start.Before(again)) {
			again = t[rounds].Start
		}
	}
	sooner := func(t time.Time) {
		if t.After(at) && (end.IsZero() || t.Before(end)) {
			end = t
		}
	}
	for _, p := range l.Parts {
		times := p.Times()
		n := begun(p, at)
		if n > 0 {
			start = view.Later(start, times[n-1].Start)
			if p.Ended == result.Finished {
				if e := times[n-1].End; e.After(at) {
					sooner(e)
				} else if n == rounds {
					start = view.Later(start, e)
				}
			}
		}
		if n < rounds && n < len(times) && (again.IsZero() || times[n].Start.Before(again)) {
			sooner(times[n].Start)
		}
	}
	return start, end
}

// job returns what a workload asks of its first VM, in a form that can be compared; "" where its generator does not
// say.
func job(l *view.Load) string {
	s := ""
	for _, stream := range l.Parts[0].Streams {
		s += fmt.Sprintf("%s %s %d %g %t %t|", stream.Name, stream.Device, stream.Depth, stream.Rate, stream.Reads,
			stream.Writes)
	}
	return s
}

// machines are how many VMs of what the fault struck worked when it came, and when the level was regained.
func (o *Comeback) machines(v *view.Run) (before, after int) {
	hit, all := struck(v, o.Group, o.at)
	regained := o.at.Add(time.Duration(o.Regained.Seconds*float64(time.Second)) + hold(o.track))
	count := func(loads []*view.Load, at time.Time) int {
		var vms []string
		for _, l := range loads {
			for _, p := range l.Parts {
				if atWork(v, l, p, at) {
					vms = view.AppendNew(vms, p.VM)
				}
			}
		}
		return len(vms)
	}
	return count(hit, o.at), count(all, regained)
}

// yields reports whether a fault of another kind, which came within the same few seconds, is the one that took what is
// missing: to which VMs were lost, and none to this one, or until which all went on.
func (o *Comeback) yields(v *view.Run) bool {
	hit, _ := struck(v, o.Group, o.at)
	kind := view.Fault{Text: o.fault, Nodes: []string{o.node}}
	lostTo := func(at time.Time, alike bool) bool {
		return slices.ContainsFunc(hit, func(l *view.Load) bool {
			return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
				if p.Ended != result.Lost {
					return false
				}
				e := v.EndedBy(l, p)
				return e != nil && e.Time.Sub(at).Abs() <= oneFault && kind.Alike(*e) == alike
			})
		})
	}
	for _, e := range v.Data.Events {
		after := e.Time.Sub(o.at)
		if !e.Strikes() || after <= 0 || after > oneFault || kind.Alike(e) {
			continue
		}
		if lostTo(o.at, true) {
			return false
		}
		if lostTo(e.Time, false) {
			return true
		}
		kept := 0
		for i, x := range o.track.Ops {
			if at := o.track.At(i); at.After(o.at) && !at.After(e.Time) {
				if kept++; !(x >= 0.9*o.Before.Value) {
					return false
				}
			}
		}
		const enough = 3 // one report may hold what came before it
		return kept >= enough
	}
	return false
}
