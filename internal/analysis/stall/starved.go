// Package stall asks whether a workload, or one of its sections, stood still while others went on. It gives a
// view.Check to package analysis. What follows a fault is a recovery; what comes and goes by itself is how the workload
// works.
package stall

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Stalls looks for moments in which a workload's writes (or all it does, when it does not write) stood still though it
// went on, and for those in which one of its sections did while the others went on: log writes starved by a checkpoint
// are the classic. A stall that follows a fault is recovery's business.
var Stalls = view.Check{Name: "stalls", Rank: 430, Run: stalled}

func stalled(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		c := v.Track(l)
		if c == nil || l.Count() == 0 { // a level is no count of what was done
			continue
		}
		cut := func(c *view.Track) *view.Track { return c }
		before := ""
		from, end := l.Judged()
		if fault, ok := v.FirstFault(from, end); ok {
			cut, before = func(c *view.Track) *view.Track { return c.Between(from, fault) }, " before the fault"
		}
		whole := work{name: l.Name, c: cut(c), before: before, unit: l.Rate().Unit}
		whole.values, whole.what = main(whole.c, l)
		parts := parts(v, l, before, cut)
		own, only := starved(v, l, parts)
		if k := whole.c.Dense(whole.values, 1); k > 0 && !only {
			f := stallFinding(v, whole.joined(k), others(v, l))
			if why := l.Silent(whole.c); why != "" && f.Severity == result.Passed {
				f.Severity, f.Value, f.NoInterval = result.Warning, nil, why
				f.Sentence = fmt.Sprintf("Whether the %s of %s stalled is inconclusive: %s.", whole.what, l.Name, why)
			}
			out = append(out, f)
		}
		out = append(out, own...)
		if f, ok := someVMs(v, l, whole, cut); ok {
			out = append(out, f)
		}
	}
	return out
}

// someVMs looks for VMs of a workload that stood still while it as a whole went on. Where several workloads of a group
// run at one time, nothing is known of what each of them did on a VM.
func someVMs(v *view.Run, l *view.Load, whole work, cut func(*view.Track) *view.Track) (f result.Finding, ok bool) {
	if len(l.Parts) < 2 || !v.Lone(l) {
		return f, false
	}
	var vms []work
	times := l.Times()
	for _, p := range l.Parts {
		c := v.VMTrack(p.VM, l.Group)
		if p.Merged() || c == nil {
			return f, false
		}
		c = cut(c.Within(times))
		vms = append(vms, work{name: p.VM, c: c, values: c.Ops})
	}
	var names []string
	var lines []result.ChartLine
	stalls, longest := 0, 0.0
	for i, vm := range vms {
		k := vm.c.Dense(vm.values, len(vms))
		if k == 0 {
			continue
		}
		vm = vm.joined(k)
		s := vm.c.Stalls(vm.values)
		if s.Share > view.OnAndOff || len(s.Runs) == 0 {
			continue
		}
		at, _ := vm.whileOthers(s.At, k, vms, i)
		if s = vm.c.Measured(vm.values, at); len(s.Runs) == 0 {
			continue
		}
		names, stalls, longest = append(names, vm.name), stalls+len(s.Runs), max(longest, s.Longest())
		if len(lines) < 3 {
			lines = append(lines, vm.c.Line(vm.name, vm.values))
		}
	}
	if len(names) == 0 {
		return f, false
	}
	f = result.Finding{
		Check: "stalls", Severity: result.Warning, Subject: l.Name, Metric: "VMs that stalled", Unit: "count",
		Value: view.Ptr(float64(len(names))), Limit: view.Ptr(0), N: len(l.Parts),
		NoInterval: "counted over the whole window, not estimated",
		Basis: fmt.Sprintf("operations of each VM, below %s of their median while those of another were at half of theirs "+
			"or more", view.Percent(view.StalledBelow)),
		Evidence: []result.Evidence{{Name: "stalls", Value: float64(stalls), Unit: "count"},
			{Name: "longest", Value: view.Round(longest), Unit: "s"}},
	}
	f.Sentence = fmt.Sprintf("%s stalled in part%s: %d of its %d VMs (%s) all but stopped %s, for %s at the longest, "+
		"though the others went on.", l.Name, whole.before, len(names), len(l.Parts), view.Three(names),
		view.Times(stalls), view.SayDuration(longest))
	f.Chart = v.Chart(l.Name+": "+l.Rate().Unit+" of VMs that stalled", l.Rate().Unit, lines...)
	return f, true
}

// work is something done over time that may stand still: by a workload or by one of its sections.
type work struct {
	name   string // in sentences
	c      *view.Track
	values []float64 // of c
	what   string    // they count
	unit   string    // of them
	on     []string  // sections that went on while this one stood still; nil of whole workloads
	before string    // " before the fault" where c ends with it
}

func (w work) joined(k int) work {
	w.c, w.values = w.c.Join(k, w.values)
	return w
}

// main are the writes of a track of a workload, or all it does when it does not write.
func main(c *view.Track, l *view.Load) (values []float64, what string) {
	if c.Writes != nil {
		return c.Writes, "writes"
	}
	return c.Ops, l.Counted()
}

// parts are the sections of a workload that tells them apart, in the order of its file.
func parts(v *view.Run, l *view.Load, before string, cut func(*view.Track) *view.Track) []work {
	var names []string
	for i := range v.Data.Series {
		if s := &v.Data.Series[i]; s.Section != "" && s.Workload == l.Name && s.Group == l.Group &&
			!slices.Contains(names, s.Section) {
			names = append(names, s.Section)
		}
	}
	var out []work
	for _, name := range names {
		c := v.Sum("", func(s *result.Series) bool {
			return s.VM == "" && s.Workload == l.Name && s.Group == l.Group && s.Section == name
		})
		if c == nil {
			continue
		}
		c = cut(c.Within(l.Times()))
		first, last := view.Worked(c.Ops,
			math.SmallestNonzeroFloat64) // it may wait for others to end, and end before them
		if last < first {
			continue
		}
		w := work{name: name, c: c.Between(c.At(first-1), c.At(last)), before: before, unit: l.Rate().Unit}
		if w.values, w.what = main(w.c, l); w.c.Writes == nil && l.BlocksOnly() {
			w.what = "reads"
		}
		out = append(out, w)
	}
	return out
}

// starved looks for sections that stood still while the others went on; only says that the one section which writes is
// among those found, so that nothing is left to say of the workload's writes as a whole.
func starved(v *view.Run, l *view.Load, parts []work) (out []result.Finding, only bool) {
	if len(parts) < 2 {
		return nil, false
	}
	var reads []result.Finding
	var even, unknown []string
	points, step, writing := 0, 0.0, 0
	for i, p := range parts {
		if p.what == "writes" {
			writing++
		}
		k := p.c.Dense(p.values, 1)
		if k == 0 {
			unknown = append(unknown, p.name+" does too little, or too seldom, to tell")
			continue
		}
		p = p.joined(k)
		s := p.c.Stalls(p.values)
		if s.Share > view.OnAndOff {
			unknown = append(unknown, p.name+" comes and goes by itself")
			continue
		}
		at, on := p.whileOthers(s.At, k, parts, i)
		if s = p.c.Measured(p.values, at); len(s.Runs) == 0 {
			even = append(even, p.name)
			points, step = points+len(p.values), max(step, p.c.Step)
			continue
		}
		if p.what == "writes" {
			only = true
		}
		p.name, p.on = fmt.Sprintf("%s in %s", p.name, l.Name), on
		f := found(v, p, s, slices.Concat(others(v, l), siblings(parts, i, l.Section())))
		if p.what == "writes" {
			out = append(out, f)
		} else {
			reads = append(reads, f)
		}
	}
	// A commit waits for writes, so they come first; then what lasted longest.
	longest := func(a, b result.Finding) int { return cmp.Compare(*b.Value, *a.Value) }
	slices.SortStableFunc(out, longest)
	slices.SortStableFunc(reads, longest)
	out = append(out, reads...)
	if len(even) > 0 {
		out = append(out, result.Finding{
			Check: "stalls", Severity: result.Passed, Subject: l.Name, Metric: l.Section() + "s stalled", Unit: "count",
			Value: view.Ptr(0),
			Limit: view.Ptr(0), N: points,
			NoInterval: "counted over all its time, not estimated", Warnings: unknown,
			Basis: fmt.Sprintf("operations of each one in points of up to %s, below %s of their median",
				view.SayDuration(step), view.Percent(view.StalledBelow)),
			Sentence: fmt.Sprintf("No stall of %s in %s while its other %ss went on.", strings.Join(even, ", "), l.Name,
				l.Section()),
		})
	}
	return out, only && writing == 1
}

// whileOthers are the points of a stall at which another of the parts went on, and the names of those that did at
// half of them or more. The points are joined k by k.
func (w work) whileOthers(at []bool, k int, parts []work, but int) (kept []bool, names []string) {
	kept = make([]bool, len(at))
	during, most := make([]int, len(parts)), 0
	for i, p := range parts {
		c, values := p.c.Join(k, p.c.Ops)
		some, _ := view.FiniteOf(values)
		median := resample.Median(some)
		if i == but || !(median*c.Step >= view.FewestPerStep) {
			continue
		}
		for point, x := range aligned(w.c, len(at), c, values) {
			if at[point] && x >= view.WentOn*median {
				kept[point] = true
				during[i]++
			}
		}
	}
	for _, is := range kept {
		if is {
			most++
		}
	}
	for i, n := range during {
		if n > 0 && 2*n >= most {
			names = append(names, parts[i].name)
		}
	}
	return kept, names
}

// stallFinding says whether a workload stood still.
func stallFinding(v *view.Run, w work, suspects []work) result.Finding {
	s := w.c.Stalls(w.values)
	f := w.finding(s)
	switch {
	case s.Share > view.OnAndOff:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf(
			"Stalls of the %s of %s cannot be judged: they come and go (%s of the time there are almost none).", w.what,
			w.name, view.Percent(s.Share))
		return f
	case len(s.Runs) == 0:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("No stall of the %s of %s: never below a quarter of the usual rate for %s%s.", w.what,
			w.name, view.SayDuration(w.c.Step), w.before)
		return f
	}
	return found(v, w, s, suspects)
}

func (w work) finding(s view.StallSet) result.Finding {
	return result.Finding{
		Check: "stalls", Subject: w.name, Metric: "time stalled", Unit: "%", Value: view.Ptr(100 * s.Share),
		N:          len(w.values),
		Limit:      view.Ptr(0),
		NoInterval: "counted over all its time, not estimated",
		Basis: fmt.Sprintf("%s in points of %s, below %s of their median", w.what, view.SayDuration(w.c.Step),
			view.Percent(view.StalledBelow)),
	}
}

// found is the finding of stalls that there are.
func found(v *view.Run, w work, s view.StallSet, suspects []work) result.Finding {
	f := w.finding(s)
	f.Severity = result.Warning
	length := fmt.Sprintf("%s in all, longest %s", view.SayDuration(s.Seconds), view.SayDuration(s.Longest()))
	if len(s.Runs) == 1 {
		length = view.SayDuration(s.Seconds)
	}
	f.Sentence = fmt.Sprintf("%s of %s %s %s, %s", view.Capital(w.what), w.name, s.Verb(), view.Times(len(s.Runs)),
		length)
	if every, regular := s.Every(w.c.Step); regular {
		f.Sentence += ", about every " + view.SayDuration(every)
	}
	if n := len(w.on); n > 3 {
		f.Sentence += fmt.Sprintf(", while %d others went on", n)
	} else if n > 0 {
		f.Sentence += ", while " + strings.Join(w.on, " and ") + " went on"
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: "stalls", Value: float64(len(s.Runs)), Unit: "count"},
		result.Evidence{Name: "longest", Value: view.Round(s.Longest()), Unit: "s"})
	who, other := w.culprit(s, suspects, &f)
	f.Sentence += who + w.before + "."
	lines := []result.ChartLine{w.c.Line(w.name, w.values)}
	if other != nil {
		lines = append(lines, w.beside(other))
	}
	f.Chart = v.Chart(w.name+": "+w.what+" per second", w.unit, lines...)
	return f
}

// beside returns what another did, divided so that it can be seen in one drawing with w.
func (w work) beside(o *work) result.ChartLine {
	top := func(values []float64) (top float64) {
		for _, x := range values {
			if view.IsFinite(x) {
				top = max(top, x)
			}
		}
		return top
	}
	by := top(o.c.Ops) / top(w.values)
	if !view.IsFinite(by) || by > 0.5 && by < 2 || by <= 0 {
		return o.c.Line(o.name, o.c.Ops)
	}
	scale := math.Pow(10, math.Floor(math.Log10(by))-1)
	by = math.Round(by/scale) * scale // two digits
	values := slices.Clone(o.c.Ops)
	for i := range values {
		values[i] /= by
	}
	return o.c.Line(fmt.Sprintf("%s ÷ %s", o.name, view.SayCount(by)), values)
}

// others are the workloads but one, as suspects.
func others(v *view.Run, l *view.Load) []work {
	var out []work
	for _, o := range v.Loads {
		if c := v.Track(o); o != l && c != nil {
			out = append(out, work{name: o.Name, c: c})
		}
	}
	return out
}

// siblings are the sections but one, as suspects, with what their tool calls them.
func siblings(parts []work, but int, noun string) []work {
	var out []work
	for i, p := range parts {
		if i != but {
			out = append(out, work{name: noun + " " + p.name, c: p.c})
		}
	}
	return out
}

// aligned are values of another track at the first n points of c; NaN where there are none.
func aligned(c *view.Track, n int, o *view.Track, values []float64) []float64 {
	out := view.Gaps(n)
	for i := range out {
		// The middle of c's interval lies in o's interval that ends next.
		at := int(math.Ceil((c.At(i).Sub(o.Start).Seconds() - c.Step/2) / o.Step))
		if at >= 0 && at < len(values) {
			out[i] = values[at]
		}
	}
	return out
}

// culprit names a suspect whose bytes rise while w stands still: at least double, and more than in 95 % of all other
// alignments of the two series (a permutation by circular shifts, which keeps the dependence of both).
func (w work) culprit(s view.StallSet, suspects []work, f *result.Finding) (words string, who *work) {
	best, p := 2.0, 1.0
	for k := range suspects {
		o := &suspects[k]
		values := o.c.Bytes
		if values == nil {
			values = o.c.Ops
		}
		aligned := aligned(w.c, len(s.At), o.c, values)
		for i, x := range aligned {
			if !view.IsFinite(x) {
				aligned[i] = 0
			}
		}
		r, more := contrast(aligned, s.At, 0), 0
		for by := 1; by < len(aligned) && r > best; by++ {
			if contrast(aligned, s.At, by) >= r {
				more++
			}
		}
		if chance := float64(more+1) / float64(len(aligned)); r > best && chance < 0.05 {
			best, who, p = r, o, chance
		}
	}
	if who == nil {
		return "", nil
	}
	f.Evidence = append(f.Evidence,
		result.Evidence{Name: who.name + " during stalls ÷ otherwise", Value: view.Round(best), Unit: "ratio"},
		result.Evidence{Name: "chance of a coincidence", Value: view.Round(100 * p), Unit: "%"})
	if best > 1000 {
		return "; always while " + who.name + " was active", who
	}
	return fmt.Sprintf("; %s did ×%s its usual load meanwhile", who.name, view.SayCount(best)), who
}

// contrast is the mean of values at the points marked over that at the others, with the values shifted.
func contrast(values []float64, at []bool, by int) float64 {
	var in, out float64
	var n, m int
	for i, marked := range at {
		x := values[(i+by)%len(values)]
		if marked {
			in, n = in+x, n+1
		} else {
			out, m = out+x, m+1
		}
	}
	if n == 0 || m == 0 || in == 0 {
		return 0
	}
	return in / float64(n) / max(out/float64(m), 1e-9)
}
