package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// stalled looks for moments in which a workload's writes (or all it does, when it does not write) stood still though it went on, and
// for those in which one of its sections did while the others went on: log writes starved by a checkpoint are the classic. A
// stall that follows a fault is recovery's business.
func stalled(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		c := v.track(l)
		if c == nil || l.count() == 0 { // a level is no count of what was done
			continue
		}
		cut := func(c *track) *track { return c }
		before := ""
		from, end := l.judged()
		if fault, ok := v.firstFault(); ok && from.Before(fault) && fault.Before(end) {
			cut, before = func(c *track) *track { return c.between(from, fault) }, " before the fault"
		}
		whole := work{name: l.name, c: cut(c), before: before, unit: l.rate().unit}
		whole.values, whole.what = whole.c.main(l)
		parts := v.parts(l, before, cut)
		own, only := v.starved(l, parts)
		if k := whole.c.dense(whole.values); k > 0 && !only {
			out = append(out, v.stallFinding(whole.joined(k), v.others(l)))
		}
		out = append(out, own...)
	}
	return out
}

// work is something done over time that may stand still: by a workload or by one of its sections.
type work struct {
	name   string // in sentences
	c      *track
	values []float64 // of c
	what   string    // they count
	unit   string    // of them
	on     []string  // sections that went on while this one stood still; nil of whole workloads
	before string    // " before the fault" where c ends with it
}

func (w work) joined(k int) work {
	w.c, w.values = w.c.join(k, w.values)
	return w
}

// main are the writes of a track of a workload, or all it does when it does not write.
func (c *track) main(l *load) (values []float64, what string) {
	if c.writes != nil {
		return c.writes, "writes"
	}
	return c.ops, l.counted()
}

// parts are the sections of a workload that tells them apart, in the order of its file.
func (v *view) parts(l *load, before string, cut func(*track) *track) []work {
	var names []string
	for i := range v.d.Series {
		if s := &v.d.Series[i]; s.Section != "" && s.Workload == l.name && s.Group == l.group && !slices.Contains(names, s.Section) {
			names = append(names, s.Section)
		}
	}
	var out []work
	for _, name := range names {
		c := v.sum("", func(s *result.Series) bool {
			return s.VM == "" && s.Workload == l.name && s.Group == l.group && s.Section == name
		})
		if c == nil {
			continue
		}
		c = cut(c.within(l.times()))
		first, last := worked(c.ops, math.SmallestNonzeroFloat64) // it may wait for others to end, and end before them
		if last < first {
			continue
		}
		w := work{name: name, c: c.between(c.at(first-1), c.at(last)), before: before, unit: l.rate().unit}
		if w.values, w.what = w.c.main(l); w.c.writes == nil && l.blocksOnly() {
			w.what = "reads"
		}
		out = append(out, w)
	}
	return out
}

// starved looks for sections that stood still while the others went on; only says that the one section which writes is among those found,
// so that nothing is left to say of the workload's writes as a whole.
func (v *view) starved(l *load, parts []work) (out []result.Finding, only bool) {
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
		k := p.c.dense(p.values)
		if k == 0 {
			unknown = append(unknown, p.name+" does too little, or too seldom, to tell")
			continue
		}
		p = p.joined(k)
		s := p.c.stalls(p.values)
		if s.share > onAndOff {
			unknown = append(unknown, p.name+" comes and goes by itself")
			continue
		}
		at, on := p.whileOthers(s.at, k, parts, i)
		if s = p.c.measured(p.values, at); len(s.runs) == 0 {
			even = append(even, p.name)
			points, step = points+len(p.values), max(step, p.c.step)
			continue
		}
		if p.what == "writes" {
			only = true
		}
		p.name, p.on = fmt.Sprintf("%s in %s", p.name, l.name), on
		f := v.found(p, s, slices.Concat(v.others(l), siblings(parts, i)))
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
			Check: "stalls", Severity: result.Fine, Subject: l.name, Metric: "sections stalled", Unit: "count", Value: ptr(0),
			Limit: ptr(0), N: points,
			NoInterval: "counted over the whole window, not estimated", Warnings: unknown,
			Basis:    fmt.Sprintf("operations of each section in points of up to %s, below %s of their median", sayDuration(step), percent(stalledBelow)),
			Sentence: fmt.Sprintf("No stall of %s in %s while the other sections went on.", strings.Join(even, ", "), l.name),
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
		c, values := p.c.join(k, p.c.ops)
		some, _ := finiteOf(values)
		median := resample.Median(some)
		if i == but || !(median*c.step >= fewestPerStep) {
			continue
		}
		for point, x := range w.c.aligned(len(at), c, values) {
			if at[point] && x >= wentOn*median {
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
func (v *view) stallFinding(w work, suspects []work) result.Finding {
	s := w.c.stalls(w.values)
	f := w.finding(s)
	switch {
	case s.share > onAndOff:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("The %s of %s come and go (%s of the time there are next to none), so a stall cannot be told from its own rhythm.", w.what, w.name, percent(s.share))
		return f
	case len(s.runs) == 0:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("The %s of %s never fell below a quarter of the usual rate for as long as %s%s.", w.what, w.name, sayDuration(w.c.step), w.before)
		return f
	}
	return v.found(w, s, suspects)
}

func (w work) finding(s stallSet) result.Finding {
	return result.Finding{
		Check: "stalls", Subject: w.name, Metric: "time stalled", Unit: "%", Value: ptr(100 * s.share), N: len(w.values),
		Limit:      ptr(0),
		NoInterval: "counted over the whole window, not estimated",
		Basis:      fmt.Sprintf("%s in points of %s, below %s of their median", w.what, sayDuration(w.c.step), percent(stalledBelow)),
	}
}

// found is the finding of stalls that there are.
func (v *view) found(w work, s stallSet, suspects []work) result.Finding {
	f := w.finding(s)
	f.Severity = result.Caution
	length := fmt.Sprintf("for %s in all and %s at the longest", sayDuration(s.seconds), sayDuration(s.longest()))
	if len(s.runs) == 1 {
		length = "for " + sayDuration(s.seconds)
	}
	f.Sentence = fmt.Sprintf("The %s of %s %s %s, %s", w.what, w.name, s.verb(), times(len(s.runs)), length)
	if every, regular := s.every(w.c.step); regular {
		f.Sentence += ", about every " + sayDuration(every)
	}
	if n := len(w.on); n > 3 {
		f.Sentence += fmt.Sprintf(", though %d other sections went on", n)
	} else if n > 0 {
		f.Sentence += ", though " + strings.Join(w.on, " and ") + " went on"
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: "stalls", Value: float64(len(s.runs)), Unit: "count"},
		result.Evidence{Name: "longest", Value: round(s.longest()), Unit: "s"})
	who, other := w.culprit(s, suspects, &f)
	f.Sentence += who + w.before + "."
	lines := []result.ChartLine{w.c.line(w.name, w.values)}
	if other != nil {
		lines = append(lines, w.beside(other))
	}
	f.Chart = v.chart(w.name+": "+w.what+" per second", w.unit, lines...)
	return f
}

// beside is what another did, divided so that it can be seen in one drawing with w.
func (w work) beside(o *work) result.ChartLine {
	top := func(values []float64) (top float64) {
		for _, x := range values {
			if isFinite(x) {
				top = max(top, x)
			}
		}
		return top
	}
	by := top(o.c.ops) / top(w.values)
	if !isFinite(by) || by > 0.5 && by < 2 || by <= 0 {
		return o.c.line(o.name, o.c.ops)
	}
	scale := math.Pow(10, math.Floor(math.Log10(by))-1)
	by = math.Round(by/scale) * scale // two digits
	values := slices.Clone(o.c.ops)
	for i := range values {
		values[i] /= by
	}
	return o.c.line(fmt.Sprintf("%s ÷ %s", o.name, sayCount(by)), values)
}

// others are the workloads but one, as suspects.
func (v *view) others(l *load) []work {
	var out []work
	for _, o := range v.loads {
		if c := v.track(o); o != l && c != nil {
			out = append(out, work{name: o.name, c: c})
		}
	}
	return out
}

// siblings are the sections but one, as suspects.
func siblings(parts []work, but int) []work {
	var out []work
	for i, p := range parts {
		if i != but {
			out = append(out, work{name: "section " + p.name, c: p.c})
		}
	}
	return out
}

// aligned are values of another track at the first n points of c; NaN where there are none.
func (c *track) aligned(n int, o *track, values []float64) []float64 {
	out := gaps(n)
	for i := range out {
		// The middle of c's interval lies in o's interval that ends next.
		at := int(math.Ceil((c.at(i).Sub(o.start).Seconds() - c.step/2) / o.step))
		if at >= 0 && at < len(values) {
			out[i] = values[at]
		}
	}
	return out
}

// culprit names a suspect whose bytes rise while w stands still: at least double, and more than in 95 % of all other
// alignments of the two series (a permutation by circular shifts, which keeps the dependence of both).
func (w work) culprit(s stallSet, suspects []work, f *result.Finding) (words string, who *work) {
	best, p := 2.0, 1.0
	for k := range suspects {
		o := &suspects[k]
		values := o.c.bytes
		if values == nil {
			values = o.c.ops
		}
		aligned := w.c.aligned(len(s.at), o.c, values)
		for i, x := range aligned {
			if !isFinite(x) {
				aligned[i] = 0
			}
		}
		r, more := contrast(aligned, s.at, 0), 0
		for by := 1; by < len(aligned) && r > best; by++ {
			if contrast(aligned, s.at, by) >= r {
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
	f.Evidence = append(f.Evidence, result.Evidence{Name: who.name + " during them ÷ otherwise", Value: round(best), Unit: "ratio"}, result.Evidence{Name: "chance of such a coincidence", Value: round(100 * p), Unit: "%"})
	if best > 1000 {
		return ", always while " + who.name + " was at work", who
	}
	return fmt.Sprintf(", while %s moved %s times as much as otherwise", who.name, sayCount(best)), who
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
