// Package turn asks what a declared difference does: workloads of one VM group that ran one after the other in one run
// are set against each other where they differ in one thing only, such as how unevenly they read, the size of their
// blocks or how many operations they hold outstanding. It gives a view.Check to package analysis. Working-set sweeps
// and growing loads are package scale's.
package turn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// changed is the smallest relative change of a rate or a percentile that is called a change.
const changed = 0.05

// InTurn sets workloads of one VM group that took turns against the first from which they differ in one thing.
var InTurn = view.Check{Name: "in-turn", Rank: 135, Run: inTurn}

func inTurn(v *view.Run) []result.Finding {
	if v.Stages() != nil {
		return nil // a growing load
	}
	var out []result.Finding
	for _, all := range turns(v) {
		var apart []*turn // from all others in more than one thing
		var between []string
		for i, later := range all {
			var nearest []difference
			compared := false
			for _, first := range all[:i] {
				d := first.differences(later)
				if len(d) == 1 && d[0].declared() && !compared {
					out, compared = append(out, compare(v, first, later, d[0])), true
				}
				if nearest == nil || len(d) < len(nearest) {
					nearest = d
				}
			}
			if i > 0 && !compared && len(nearest) > 1 {
				apart = append(apart, later)
				for _, d := range nearest {
					between = view.AppendNew(between, d.what)
				}
			}
		}
		if len(apart) > 0 && len(all) > 1 {
			out = append(out, untold(all, apart, between))
		}
	}
	return out
}

// turn is a workload that had its turn.
type turn struct {
	*view.Load
	at         result.Span
	conditions view.Conditions
	sets       int // how many sizes of working set its group had
}

// turns are the workloads of each group that did block I/O one after the other, each by itself in its group and at work
// for a good part of the run, and of which it is known what they ask for.
func turns(v *view.Run) [][]*turn {
	longest := 0.0
	for _, l := range v.Loads {
		longest = max(longest, l.Longest())
	}
	by := map[string][]*turn{}
	var groups []string
	for _, l := range v.Loads {
		if !l.BlocksOnly() || l.Count() == 0 || l.Longest() < view.Besides*longest || !v.Lone(l) || !saysSizes(l) {
			continue
		}
		t := &turn{Load: l}
		t.at.Start, t.at.End = l.Judged()
		var beside []string
		for _, o := range v.Loads {
			from, to := o.Span()
			if span := (result.Span{Start: from, End: to}); o != l &&
				view.Overlap([]result.Span{t.at}, []result.Span{span}) > 0.01*view.Length([]result.Span{t.at}) {
				beside = append(beside, o.Name)
			}
		}
		t.conditions = v.ConditionsOf(nil, []result.Window{{Circumstances: result.Circumstances{Beside: beside},
			Start: t.at.Start, End: t.at.End}})[0]
		groups = view.AppendNew(groups, l.Group)
		by[l.Group] = append(by[l.Group], t)
	}
	var out [][]*turn
	for _, g := range groups {
		all := by[g]
		slices.SortStableFunc(all, func(a, b *turn) int { return a.at.Start.Compare(b.at.Start) })
		sets := map[string]bool{}
		for _, t := range all {
			sets[t.data()] = true
		}
		for _, t := range all {
			t.sets = len(sets)
		}
		out = append(out, all)
	}
	return out
}

// saysSizes reports whether the engine said what all sections of a workload ask for.
func saysSizes(l *view.Load) bool {
	for _, p := range l.Parts {
		if len(p.Streams) == 0 || slices.ContainsFunc(p.Streams, func(n result.Stream) bool {
			return n.ReadBytes == 0 && n.WriteBytes == 0
		}) {
			return false
		}
	}
	return true
}

// streams are the sections of the first VM; those of the others are alike but for the machine.
func (t *turn) streams() []result.Stream { return t.Parts[0].Streams }

// data returns what it works on.
func (t *turn) data() (s string) {
	for _, n := range t.streams() {
		s += fmt.Sprintf("%s %d|", n.Device, n.Bytes)
	}
	return s
}

// difference is one thing in which two workloads differ, as each of them has it.
type difference struct{ what, was, is string }

// declared reports whether it is one of what the two ask for, and not of what happened beside them.
func (d difference) declared() bool { return d.was != "" }

// differences are all things that may make one workload faster than the other.
func (t *turn) differences(o *turn) []difference {
	var out []difference
	a, b := t.streams(), o.streams()
	if len(a) != len(b) {
		return []difference{{"number of sections", fmt.Sprint(len(a)), fmt.Sprint(len(b))},
			{"what they ask for", "", ""}}
	}
	each := func(what string, say func(result.Stream) string) {
		var was, is []string
		differ := false
		for i := range a {
			x, y := say(a[i]), say(b[i])
			was, is = view.AppendNew(was, x), view.AppendNew(is, y)
			differ = differ || x != y
		}
		if differ {
			out = append(out, difference{what, strings.Join(was, " and "), strings.Join(is, " and ")})
		}
	}
	each("access distribution", func(n result.Stream) string {
		if n.Random == 0 {
			return "uniform" // offsets are not drawn, which is said as the share of random ones
		}
		return cmp.Or(n.Skew.String(), "uniform")
	})
	each("share of random offsets", func(n result.Stream) string { return view.Percent(n.Random) })
	each("share of reads", func(n result.Stream) string { return view.Percent(n.ReadShare) })
	each("block size", blocks)
	each("queue depth", func(n result.Stream) string { return fmt.Sprint(n.Depth) })
	each("offered rate", func(n result.Stream) string {
		if n.Rate == 0 {
			return "none"
		}
		return view.SayCount(n.Rate) + " per second and VM"
	})
	each("way through the page cache", func(n result.Stream) string {
		if n.Direct {
			return "direct"
		}
		return "buffered"
	})
	each("content", func(n result.Stream) string {
		if n.ZeroData {
			return "zeros"
		}
		return fmt.Sprintf("%s reducible", view.Percent(n.Reducible))
	})
	for i := range a {
		if x, y := strings.Split(a[i].Also, ", "), strings.Split(b[i].Also, ", "); a[i].Also != b[i].Also {
			out = append(out, difference{"options", without(x, y), without(y, x)})
			break
		}
	}
	each("checksums", func(n result.Stream) string {
		if n.Checksums {
			return "in every block"
		}
		return "in none"
	})
	each("order of sections", func(n result.Stream) string { return fmt.Sprintf("stage %d", n.Stage) })
	if t.data() != o.data() && (len(out) > 0 || t.sets < 3) { // a sweep of working sets is told elsewhere
		out = append(out, difference{"working set", t.data(), o.data()})
		var was, is int64
		for i := range a {
			was, is = was+a[i].Bytes, is+b[i].Bytes
		}
		out[len(out)-1] = difference{"working set", view.SayBytes(float64(was)), view.SayBytes(float64(is))}
	}
	if x, y := len(t.Parts), len(o.Parts); x != y {
		out = append(out, difference{"number of VMs", fmt.Sprint(x), fmt.Sprint(y)})
	}
	for _, c := range t.conditions.Changes(o.conditions) {
		out = append(out, difference{"circumstances (" + c + ")", "", ""})
	}
	return out
}

// without are the options that the other does not have.
func without(options, other []string) string {
	own := slices.DeleteFunc(slices.Clone(options), func(o string) bool { return slices.Contains(other, o) })
	return cmp.Or(strings.Join(own, " "), "none")
}

// blocks are the sizes that a section moves.
func blocks(n result.Stream) string {
	size := func(b float64) string { return unit.Bytes(b).String() }
	switch {
	case n.ReadBytes == 0 || n.ReadShare == 0 && n.WriteBytes > 0:
		return size(n.WriteBytes)
	case n.WriteBytes == 0 || n.ReadShare == 1 || n.ReadBytes == n.WriteBytes:
		return size(n.ReadBytes)
	}
	return size(n.ReadBytes) + " reads and " + size(n.WriteBytes) + " writes"
}

// compare tells what the one difference did.
func compare(v *view.Run, first, later *turn, d difference) result.Finding {
	rate := func(t *turn) float64 { return float64(t.Completed()) / t.Longest() }
	a, b := rate(first), rate(later)
	r, low, high := view.Ratio(later.Completed(), first.Completed(), later.Longest(), first.Longest())
	f := result.Finding{
		Check: "in-turn", Subject: later.Name, Severity: result.Info, Unit: "ratio", Value: view.Ptr(r),
		Metric: "rate " + later.Name + " / " + first.Name, Limit: view.Ptr(1 - changed), Low: &low, High: &high,
		N: int(min(first.Completed()+later.Completed(), math.MaxInt)),
		Basis: fmt.Sprintf("%s (%s) against %s (%s) of %s, one run", later.Name, view.SayDuration(later.Longest()),
			first.Name, view.SayDuration(first.Longest()), later.Group),
		Warnings: []string{"they ran one after the other: what the earlier one left in caches and on tiers, and whatever " +
			"else changed with time, is in the difference, too"},
		Evidence: []result.Evidence{{Name: "rate " + first.Name, Value: a, Unit: first.Rate().Unit},
			{Name: "rate " + later.Name, Value: b, Unit: later.Rate().Unit}},
	}
	separate := true
	if x, y := v.Track(first.Load), v.Track(later.Load); x != nil && y != nil {
		estimate, in := view.BlockRatio(view.FlowOf(x.Ops, nil), view.FlowOf(y.Ops, nil))
		if in.Valid() && estimate > 0 {
			f.Low, f.High = view.Ptr(in.Low*r/estimate), view.Ptr(in.High*r/estimate)
			f.Basis += "; " + in.Method + " over points of " + view.SayDuration(x.Step)
		} else {
			separate = view.Separate(x.Ops, y.Ops)
			f.NoInterval = in.Reason
			if view.Counts(x.Ops, x.Step) && view.Counts(y.Ops, y.Step) {
				f.NoInterval, separate = "", true
				f.Warnings = append(f.Warnings, "the interval takes completions as a Poisson count; from the series there is "+
					"none: "+in.Reason)
			}
		}
	} else {
		f.Warnings = append(f.Warnings, view.Independent)
	}
	low, high = *f.Low, *f.High
	within := view.RatioWithin(r, low, high)
	if f.NoInterval != "" {
		f.Low, f.High = nil, nil
		within = fmt.Sprintf("×%s (no interval: %s)", unit.Apart(r)[0], f.NoInterval)
	}
	f.Harm = view.Worse(low, high, changed, result.Higher)
	tail, tailHarm, kept := tails(first, later, &f)
	if (result.Finding{Harm: tailHarm}).Weight() > f.Weight() {
		f.Harm = tailHarm
	}
	f.Sentence = fmt.Sprintf("With %s %s instead of %s, %s did %s against %s of %s: %s%s",
		d.what, d.is, d.was, later.Name, later.Rate().Say(b), view.SayCount(a), first.Name,
		within, tail)
	if x, y := bandwidth(first), bandwidth(later); d.what == "block size" && x > 0 && y > 0 {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "bandwidth " + first.Name, Value: x, Unit: "bytes/s"},
			result.Evidence{Name: "bandwidth " + later.Name, Value: y, Unit: "bytes/s"})
		f.Sentence += fmt.Sprintf("; it moved %s per second against %s", view.SayBytes(y), view.SayBytes(x))
		*f.Harm = -math.Abs(*f.Harm) // fewer and larger are not worse
	}
	moved := (high < 1-changed || low > 1+changed) && separate || tailHarm != nil && *tailHarm != 0
	drift := ""
	for _, t := range []*turn{first, later} {
		if drift == "" {
			drift = drifts(v, t, r)
		}
	}
	neither, either := "neither", "either"
	if tail == "" { // the rate is all that was compared
		neither, either = "it has not", "it"
	}
	switch {
	case moved && drift != "":
		f.Harm = nil
		f.Sentence += drift
	case moved:
	case low >= 1-changed && high <= 1+changed && kept && f.NoInterval == "":
		f.Severity = result.Passed
		f.Sentence += "; " + neither + " moved by more than " + view.Percent(changed)
	case low >= 1-changed && high <= 1+changed && f.NoInterval == "" && tail != "":
		f.Severity = result.Passed
		f.Sentence += "; the rate moved by no more than " + view.Percent(changed) +
			", whether the p99 did cannot be told"
	default:
		f.Severity = result.Passed
		f.Sentence += "; whether " + either + " moved by more than " + view.Percent(changed) + " cannot be told"
	}
	f.Sentence += ". They ran one after the other on the same VMs, and nothing else that was declared differs."
	return f
}

// drifts says of a workload that its rate moved within its own time by half of the way that lies between the two, or
// more: then what of that the difference did is not known. "" where it did not.
func drifts(v *view.Run, t *turn, between float64) string {
	c := v.Track(t.Load)
	if c == nil {
		return ""
	}
	begins, ends, ok := view.FlowOf(c.Ops, nil).Ends()
	if !ok || view.Away(ends/begins) <= 1+changed || view.Away(ends/begins) < math.Sqrt(view.Away(between)) {
		return ""
	}
	return fmt.Sprintf("; %s itself went from %s to %s, so what of it the difference did cannot be told", t.Name,
		view.SayCount(begins), t.Rate().Say(ends))
}

// tails are the 99th percentiles of the kind of operation that both did most.
func tails(first, later *turn, f *result.Finding) (said string, harm *float64, kept bool) {
	var before, after *result.OpTotals
	x, y := first.Whole(), later.Whole()
	if x == nil || y == nil {
		return "", nil, true
	}
	was, is := x.Judged().Ops, y.Judged().Ops
	for i := range was {
		k := slices.IndexFunc(is, func(o result.OpTotals) bool { return o.Op == was[i].Op })
		if k >= 0 && (before == nil || was[i].Count > before.Count) {
			before, after = &was[i], &is[k]
		}
	}
	if before == nil {
		return "", nil, true
	}
	a, low, high, ok := view.Quantile(before.Hist, 0.99)
	b, low2, high2, fine := view.Quantile(after.Hist, 0.99)
	if !ok || !fine || !(a > 0) {
		return "", nil, true
	}
	noun := view.Noun(later.Operation(after.Op))
	f.Evidence = append(f.Evidence, result.Evidence{Name: noun + " p99 " + first.Name, Value: a, Unit: "s"},
		result.Evidence{Name: noun + " p99 " + later.Name, Value: b, Unit: "s"})
	harm = view.Worse(low2/high, high2/low, changed, result.Lower)
	said = fmt.Sprintf(", and the p99 latency (%s) of its %s was %s against %s", cmp.Or(y.Latency, "service time"),
		noun, view.SayDuration(b), view.SayDuration(a))
	return said, harm, max(high2/low, high/low2) <= 1+changed
}

// bandwidth is in bytes per second.
func bandwidth(t *turn) (sum float64) {
	w := t.Whole()
	if w == nil {
		return 0
	}
	for _, o := range w.Judged().Ops {
		sum += float64(o.Bytes) / t.Longest()
	}
	return sum
}

// untold says of workloads that took turns and differ in several things that the figures do not say which matters.
func untold(all, apart []*turn, between []string) result.Finding {
	var names []string
	for _, t := range apart {
		names = append(names, t.Name)
	}
	return result.Finding{
		Check: "in-turn", Subject: all[0].Group, Severity: result.Passed, Metric: "workloads without a counterpart",
		Unit: "count", Value: view.Ptr(float64(len(apart))), N: len(all), NoInterval: "counted",
		Basis: "what the workloads of " + all[0].Group + " declare",
		Sentence: fmt.Sprintf("What makes the figures of %s differ from those of the workloads before on %s cannot be "+
			"told: they differ in several things, %s.", view.Three(names), all[0].Group, view.Listed(between)),
	}
}
