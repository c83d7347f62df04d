package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/result"
)

// Fault is a fault from when it began until it was over.
type Fault struct {
	Text  string // as it began
	Nodes []string
	Start time.Time
	End   time.Time // zero: it stayed, or nobody said that it was over
	On    time.Time // when the last of nodes that were switched off was switched on again; zero: not known
	on    string    // the mark of it
	off   []string  // nodes that are still off
}

// At reports whether it was in force at a moment.
func (f Fault) At(t time.Time) bool { return !t.Before(f.Start) && (f.End.IsZero() || t.Before(f.End)) }

// Say names it in a sentence.
func (f Fault) Say() string {
	if n := len(f.Nodes); n > 1 {
		return fmt.Sprintf("%q and %d more", f.Text, n-1)
	}
	return fmt.Sprintf("%q", f.Text)
}

// OnAgain reports whether it was that nodes were switched off, and all are on again by a moment: what their loss began,
// such as a rebuild, may go on.
func (f Fault) OnAgain(t time.Time) bool { return !f.On.IsZero() && !t.Before(f.On) }

// Alike reports whether a mark is of the same as it, on whichever node.
func (f Fault) Alike(e result.Mark) bool {
	return strings.ReplaceAll(f.Text, f.Nodes[0], "") == strings.ReplaceAll(e.Text, e.Node, "")
}

// SameMoment is the time within which faults, or the beginnings of other things, are one moment.
const SameMoment = 5 * time.Second

// Faults are those of which it is known that they began: what is the same on several nodes at one moment is one. That a
// node was given power again ends none: what its loss began, such as a rebuild, may go on. Where the place does not say
// which of two on a node is over, it is taken for the older one.
func (v *Run) Faults() []Fault {
	var out []Fault
	for _, e := range v.Data.Events {
		if e.Kind != result.KindFault {
			continue
		}
		switch e.State {
		case result.FaultBegins, result.PowerOff:
			i := slices.IndexFunc(out, func(f Fault) bool {
				return e.Time.Sub(f.Start) <= SameMoment && e.Node != "" && !slices.Contains(f.Nodes, e.Node) &&
					f.Alike(e)
			})
			if i < 0 {
				i, out = len(out), append(out, Fault{Text: e.Text, Start: e.Time})
			}
			out[i].Nodes = append(out[i].Nodes, e.Node)
			if e.State == result.PowerOff {
				out[i].off = append(out[i].off, e.Node)
			}
		case result.PowerOn:
			for i := range out {
				still := slices.DeleteFunc(slices.Clone(out[i].off), func(n string) bool { return n == e.Node })
				if len(still) == 0 && len(out[i].off) > 0 {
					out[i].On, out[i].on = e.Time, e.Text
				}
				out[i].off = still
			}
		case result.FaultOver:
			if i := slices.IndexFunc(out, func(f Fault) bool {
				return f.End.IsZero() && slices.Contains(f.Nodes, e.Node) && (e.Ends == "" || e.Ends == f.Text)
			}); i >= 0 {
				out[i].End = e.Time
			}
		}
	}
	return out
}

// EndedBy is the fault that ended a workload on a VM: the one nearest to one of its ends, and not later than its last
// report and the one that did not come any more explain, before all one of its own node that is near; nil when there is
// none.
func (v *Run) EndedBy(l *Load, p *result.Workload) (best *result.Mark) {
	nearest, slack, own := time.Duration(math.MaxInt64), max(10*time.Second, v.Silence(l)), false
	node := v.Nodes[p.Node].Name
	for i := range v.Data.Events {
		e := &v.Data.Events[i]
		if e.Kind != result.KindFault || e.State == result.FaultOver {
			continue
		}
		for _, t := range p.Times() {
			away := t.End.Sub(e.Time)
			mine := node != "" && e.Node == node && away <= slack
			if away >= -slack && (mine && !own || mine == own && away.Abs() < nearest) {
				best, nearest, own = e, away.Abs(), mine
			}
		}
	}
	return best
}

// tookVMs reports whether VMs of a workload were lost to a fault, by which they are gone when it is over, too.
func (v *Run) tookVMs(f Fault, l *Load) bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		if p.Ended != result.Lost {
			return false
		}
		e := v.EndedBy(l, p)
		return e != nil && slices.Contains(f.Nodes, e.Node) && e.Time.Sub(f.Start).Abs() <= SameMoment && f.Alike(*e)
	})
}

// Conditions are what may have moved the figures of a stretch of a workload's time: who ran beside it, which faults
// were in force, and of what else was marked the last.
type Conditions struct {
	Beside []string
	Fewer  []string // of those beside, the ones of which only some VMs worked, as before all have begun
	Faults []string // as Fault.Say has them
	Partly []string // of those the ones that were for less than half of the time
	Mostly []string // and those that were for more, and clearly not for all of it
	Past   []string // and those whose nodes were on again for most of it
	On     []string // marks by which these were
	Edge   []string // those of which an end of the stretch holds a little, since it ends with a report
	Lost   []string // those that were over, and to which VMs of the workload had been lost
	Since  string
	// OfFault: the stretch begins with the beginning or the end of one of the faults.
	OfFault bool
}

// counts is the share of a stretch from which on a fault may have moved its 99th percentile.
const counts = 0.01

// edge is the share up to which what an end of a stretch holds of a fault is left out of its series, and the fault is
// none of its conditions.
const edge = 0.05

// ConditionsOf are the conditions of each of some windows of a workload, which end with the reports nearest to what
// ended them. Without the workload nothing is said of how many VMs of others worked.
func (v *Run) ConditionsOf(of *Load, windows []result.Window) []Conditions {
	faults := v.Faults()
	known := func(text string, states ...string) bool {
		return slices.ContainsFunc(v.Data.Events, func(e result.Mark) bool {
			return e.Kind == result.KindFault && e.Text == text && slices.Contains(states, e.State)
		})
	}
	out := make([]Conditions, len(windows))
	since, at := "", time.Time{}
	for i, w := range windows {
		c := Conditions{Beside: w.Beside, OfFault: known(w.After, result.FaultBegins, result.FaultOver)}
		length := w.End.Sub(w.Start)
		for _, l := range v.Loads {
			if of != nil && l != of && slices.Contains(w.Beside, l.Name) && l.inPart(w.Start, w.End) {
				c.Fewer = append(c.Fewer, l.Name)
			}
		}
		for _, f := range faults {
			end, said := w.End, f.Say()
			if !f.End.IsZero() {
				end = earlier(end, f.End)
			}
			in := end.Sub(Later(w.Start, f.Start)).Seconds() / length.Seconds()
			within := f.Start.After(w.Start) && end.Before(w.End)
			if of != nil && in < edge && f.Start.Before(w.Start) && v.tookVMs(f, of) {
				c.Lost = append(c.Lost, said)
			}
			if of != nil && in >= counts && in < edge && !within {
				c.Edge = append(c.Edge, said)
				continue
			}
			if in >= counts && !slices.Contains(c.Lost, said) {
				if c.Faults = append(c.Faults, said); f.OnAgain(w.Start.Add(length / 2)) {
					c.Past, c.On = append(c.Past, said), append(c.On, f.on)
				}
			}
			if in >= counts && in < 0.5 && !slices.Contains(c.Lost, said) {
				c.Partly = append(c.Partly, said)
			}
			if of == nil && in >= 0.5 && in < 1-edge {
				c.Mostly = append(c.Mostly, said)
			}
		}
		if w.After != "" && !c.OfFault && !known(w.After, result.PowerOff, result.PowerOn) {
			since, at = w.After, w.Start
		}
		for _, e := range v.Data.Events { // cut by something else at that moment
			if e.Kind == result.KindFault && e.State == "" && e.Time.After(at) &&
				e.Time.Before(w.Start.Add(SameMoment)) {
				since, at = e.Text, e.Time
			}
		}
		c.Since = since
		out[i] = c
	}
	return out
}

// inPart reports whether only some VMs of a workload worked from one moment to another: others had not begun, or had
// ended as planned. One that was lost is a fault's doing.
func (l *Load) inPart(from, to time.Time) bool {
	const most = 0.9
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		end := p.End
		if p.Ended == result.Lost || end.After(to) {
			end = to
		}
		return end.Sub(Later(p.Start, from)).Seconds() < most*to.Sub(from).Seconds()
	})
}

// faults are the faults in force in words, those of a part of the time as such.
func (c Conditions) faults() (said []string) {
	for _, f := range c.Faults {
		if slices.Contains(c.Partly, f) {
			said = append(said, f+" was in force for a part of it")
		} else if slices.Contains(c.Past, f) {
			said = append(said, "nodes were on again after "+f)
		} else if slices.Contains(c.Mostly, f) {
			said = append(said, f+" was in force for most of it")
		} else {
			said = append(said, f+" was in force")
		}
	}
	return said
}

// Under names the faults that were in force, but for one that is named already; "" when there is none.
func (c Conditions) Under(named string) string {
	var whole, partly, past []string
	for _, f := range c.Faults {
		switch i := slices.Index(c.Past, f); {
		case i >= 0 && c.On[i] == named:
		case i >= 0:
			past = append(past, f)
		case named != "" && f == strconv.Quote(named): // one on several nodes is not all named by it
		case slices.Contains(c.Partly, f):
			partly = append(partly, f)
		default:
			whole = append(whole, f)
		}
	}
	said := ""
	if len(whole) > 0 {
		said = ", under " + Listed(whole)
	}
	if len(partly) > 0 {
		said += ", in part under " + Listed(partly)
	}
	switch n := len(past); {
	case n == 1 && past[0] == strconv.Quote(named):
		said += ", since then on again"
	case n == 1:
		said += ", after " + past[0] + ", since then on again"
	case n > 1:
		said += fmt.Sprintf(", after %d faults whose nodes are on again", n)
	}
	return said
}

// Changes are in words what is different in a later one of two stretches of time, each of which may have moved figures.
func (c Conditions) Changes(later Conditions) []string {
	var out []string
	only := func(some, others []string, format string) {
		for _, s := range some {
			if !slices.Contains(others, s) {
				out = append(out, fmt.Sprintf(format, s))
			}
		}
	}
	only(later.Beside, c.Beside, "%s ran")
	only(c.Beside, later.Beside, "%s did not run")
	both := func(some []string) []string { // of those that ran both times
		return slices.DeleteFunc(slices.Clone(some), func(n string) bool {
			return !slices.Contains(c.Beside, n) || !slices.Contains(later.Beside, n)
		})
	}
	only(both(later.Fewer), c.Fewer, "fewer VMs of %s ran")
	only(both(c.Fewer), later.Fewer, "more VMs of %s ran")
	only(later.faults(), c.faults(), "%s")
	only(c.Faults, later.Faults, "%s was not in force")
	only(later.Lost, slices.Concat(c.Lost, c.Faults), "VMs lost at %s were missing")
	only(c.Lost, slices.Concat(later.Lost, later.Faults), "VMs lost at %s were at work")
	if later.Since != c.Since {
		if later.Since == "" {
			out = append(out, fmt.Sprintf("%q was yet to come", c.Since))
		} else {
			out = append(out, fmt.Sprintf("%q was past", later.Since))
		}
	}
	return out
}

// Listed joins words as one does in a sentence; of more than three the rest is counted.
func Listed(words []string) string {
	switch n := len(words); {
	case n == 0:
		return ""
	case n == 1:
		return words[0]
	case n <= 3:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	default:
		return strings.Join(words[:3], ", ") + fmt.Sprintf(" and %d more", n-3)
	}
}
