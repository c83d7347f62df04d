package corunning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// part is a stretch of a workload's time, or several in the same company.
type part struct {
	result.Window
	conditions view.Conditions
	opening    bool // the workload begins with it
	pieces     []result.Window
	seconds    float64
}

// under names faults that were in force, all or those which the window's own name does not have; "" when there is none.
func (p part) under(all bool) string {
	if all {
		return p.conditions.Under("")
	}
	return p.conditions.Under(p.After)
}

// title returns what the part is called where it stands by itself.
func (p part) title() string { return p.Name + p.under(false) }

// when is the part in a sentence. With which faults a part lay between it does not say, but which were in force.
func (p part) when() string {
	if !p.conditions.OfFault {
		return view.When(p.Window) + p.under(false)
	}
	c := p.Circumstances
	c.After, c.Again = "", 0
	said := view.When(result.Window{Name: c.Name(), Circumstances: c})
	if len(p.conditions.Faults) == 0 {
		return said + ", without a fault,"
	}
	return said + p.under(true)
}

// named is the part in a sentence, by what was marked when it began.
func (p part) named() string { return strings.TrimSuffix(view.When(p.Window)+p.under(false), ",") }

// versus is two parts to be compared, and what is different in the later one. More than one change means that nobody
// can tell which of them did what.
type versus struct {
	first, later int
	changes      []string
}

// counterparts finds for each part but one that with which it is compared. The one without is the yardstick: the first
// of those with the fewest faults. A part is compared with another from which it differs in one thing at most, before
// all with the yardstick and those nearest to it; where there is none, with the one from which it differs least. What
// is shorter than so many seconds is too short to be seen apart, and comes after what is not.
func counterparts(parts []part, least float64) []versus {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		short := func(i int) int {
			if parts[i].seconds < least {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(len(parts[a].conditions.Faults), len(parts[b].conditions.Faults)),
			cmp.Compare(short(a), short(b)))
	})
	var out []versus
	for at, i := range order {
		if at == 0 {
			continue
		}
		best, least := -1, math.MaxInt
		try := func(candidates []int, enough int) {
			for _, k := range candidates {
				if n := max(1, len(parts[k].conditions.Changes(parts[i].conditions))); n < least && n <= enough {
					best, least = k, n
				}
			}
		}
		try(order[:at], 1)
		try(order[at+1:], 1)
		try(order[:at], math.MaxInt)
		first, later := best, i
		a, b := parts[best].conditions, parts[i].conditions
		more := len(a.Faults) - len(b.Faults)
		if more > 0 || more == 0 && best > i && slices.Equal(a.Beside, b.Beside) {
			first, later = i, best // an effect is told from without to under, and in like company in the order of time
		}
		if !slices.ContainsFunc(out, func(k versus) bool {
			return k.first == first && k.later == later || k.first == later && k.later == first
		}) {
			out = append(out, versus{first, later, parts[first].conditions.Changes(parts[later].conditions)})
		}
	}
	slices.SortStableFunc(out, func(a, b versus) int { return cmp.Compare(a.later, b.later) })
	return out
}

// goneAfter is the next part in which a workload is in the company of the first of two again; nil where the later has
// the same, or there is none.
func goneAfter(parts []part, k versus) *part {
	first, later := parts[k.first], parts[k.later]
	alike := func(p part) bool {
		return slices.Equal(p.conditions.Beside, first.conditions.Beside) &&
			slices.Equal(p.conditions.Faults, first.conditions.Faults) &&
			slices.Equal(p.conditions.Lost, first.conditions.Lost)
	}
	if alike(later) || len(first.pieces)+len(later.pieces) > 2 || !first.Start.Before(later.Start) {
		return nil
	}
	for i := range parts {
		if p := &parts[i]; len(p.pieces) == 1 && !p.Start.Before(later.End) && alike(*p) {
			return p
		}
	}
	return nil
}

// alike are the pieces of a part and of all windows under the same faults whose company asks for the same, such as the
// bursts of one group that come again and again under names of their own. Windows of less than half of a piece are left
// out.
func alike(v *view.Run, windows []result.Window, conditions []view.Conditions, of part) []result.Window {
	company := func(c view.Conditions) (asks []string) {
		for _, name := range c.Beside {
			if i := slices.IndexFunc(v.Loads, func(l *view.Load) bool { return l.Name == name }); i >= 0 {
				name = fmt.Sprintf("%s %v", v.Loads[i].Group, v.Loads[i].Parts[0].Streams)
			}
			asks = append(asks, name)
		}
		slices.Sort(asks)
		return asks
	}
	pieces, own := slices.Clone(of.pieces), company(of.conditions)
	for i, w := range windows {
		if c := conditions[i]; w.Seconds() >= of.seconds/float64(2*len(of.pieces)) &&
			!slices.ContainsFunc(pieces, func(p result.Window) bool { return p.Start.Equal(w.Start) }) &&
			slices.Equal(c.Faults, of.conditions.Faults) && slices.Equal(c.Partly, of.conditions.Partly) &&
			slices.Equal(company(c), own) {
			pieces = append(pieces, w)
		}
	}
	return pieces
}

// caused is a finding of two parts and what was different in the later one.
type caused struct {
	result.Finding
	by string
}

// value is a measure over the part: of one that adds up its mean, per second where it is a Count; of a figure of the
// tool's own that of the part's only piece. False where a piece has none.
func (p part) value(q view.Quantity) (v float64, ok bool) {
	for _, w := range p.pieces {
		i := slices.IndexFunc(w.Values, func(o result.Value) bool { return o.Measure == q.Measure })
		if i < 0 || !view.IsFinite(w.Values[i].Value) {
			return 0, false
		}
		one, s := w.Values[i].Value, w.Seconds()
		switch q.Kind {
		case result.Single:
			return one, len(p.pieces) == 1
		case result.Level:
			one *= s
		}
		v += one
	}
	return v / p.seconds, p.seconds > 0
}

// partsOf takes few windows as they are. When there are many, others come and go, and what matters is with whom a
// workload ran: windows in the same company are joined, their counts and histograms merged.
func partsOf(windows []result.Window, conditions []view.Conditions) []part {
	var out []part
	join := len(windows) > mostChanges+1
	for at, w := range windows {
		if w.End.Before(w.Start) {
			continue
		}
		of := result.Window{Name: w.Name, Circumstances: w.Circumstances, Start: w.Start, End: w.End}
		if join && w.Circumstances.Name() == w.Name {
			of.Circumstances = w.Once()
			of.Name = of.Circumstances.Name()
		}
		i := slices.IndexFunc(out, func(p part) bool {
			return join && p.Name == of.Name && len(p.conditions.Changes(conditions[at])) == 0
		})
		if i < 0 {
			i = len(out)
			out = append(out, part{Window: of, conditions: conditions[at], opening: i == 0})
		}
		p := &out[i]
		p.pieces = append(p.pieces, w)
		p.seconds += w.Seconds()
		p.Ops = view.MergeOps(p.Ops, w.Ops)
	}
	return out
}

// over is a track over all pieces of a part, one after the other.
func over(c *view.Track, p part) *view.Track {
	out := c.Between(p.pieces[0].Start, p.pieces[0].End)
	for _, w := range p.pieces[1:] {
		more := c.Between(w.Start, w.End)
		out.Ops = slices.Concat(out.Ops, more.Ops)
		if out.Busy != nil {
			out.Busy = slices.Concat(out.Busy, more.Busy)
		}
	}
	return out
}

// clearly is how far from no change the nearer end of a ratio's interval is, as a factor; 1 when it holds no change or
// has no ends.
func clearly(f result.Finding) float64 {
	switch {
	case f.Low == nil || f.High == nil:
		return 1
	case *f.Low > 1:
		return *f.Low
	case *f.High < 1:
		return view.Away(*f.High)
	}
	return 1
}

// width is that of a ratio's interval, as a factor.
func width(f result.Finding) float64 {
	if f.Low == nil || f.High == nil || !(*f.Low > 0) {
		return math.Inf(1)
	}
	return *f.High / *f.Low
}

// most keeps all findings when they are few, else of every cause that moved something the one in which it did so most
// clearly, as many as are few, or when none did the one that is known best: the largest of many changes is most of all
// the least certain.
func most(all []caused, windows int) []result.Finding {
	var out []result.Finding
	if len(all) <= mostChanges {
		for _, c := range all {
			out = append(out, c.Finding)
		}
		return out
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b caused) int {
		return cmp.Or(cmp.Compare(b.Weight(), a.Weight()), cmp.Compare(clearly(b.Finding), clearly(a.Finding)),
			cmp.Compare(width(a.Finding), width(b.Finding)))
	})
	told := map[string]bool{}
	for i, c := range all {
		if i > 0 && (c.Severity == result.Passed || told[c.by] || len(out) == mostChanges) {
			continue
		}
		told[c.by] = true
		out = append(out, c.Finding)
	}
	for i := range out {
		out[i].Basis += fmt.Sprintf("; of %d phases, ", windows)
		if len(out) > 1 {
			out[i].Basis += "those that changed most clearly, one of each cause"
		} else {
			out[i].Basis += "the one that changed most clearly"
		}
	}
	return out
}

// whenever names two windows in one sentence. In the same company what lies between them tells them apart.
func whenever(first, later part) (was, is string) {
	plain := first.opening && first.After == "" && len(first.conditions.Faults) == 0
	if since := later.Since(); since != "" && plain && later.under(false) == "" &&
		first.InCompany(later.Circumstances) {
		return "at the start", since
	}
	was, is = strings.TrimSuffix(first.when(), ","), strings.TrimSuffix(later.when(), ",")
	if later.conditions.OfFault && len(later.conditions.Faults) == 0 && len(first.conditions.Faults) > 0 {
		is = strings.TrimSuffix(view.When(later.Window), ",") // "without a fault" is of what it is measured by
	}
	if was == is { // what is the same in both does not tell them apart, what lies between them does
		was, is = first.named(), later.named()
	}
	return was, is
}
