package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll/result"
)

// changed is the smallest relative change of a rate or a percentile between windows that is called a change.
const changed = 0.05

// mostChanges is how many comparisons of windows are told; of more, only the one that moved most.
const mostChanges = 3

// windows compares the parts of a workload's time, with and without its neighbours and before and after each
// annotated moment, with the first of them: what a noisy-neighbour test asks for.
func windows(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		w := l.merged
		if w == nil && len(l.parts) == 1 {
			w = l.parts[0]
		}
		if w == nil || len(w.Windows) < 2 {
			continue
		}
		var here []result.Finding
		for _, later := range w.Windows[1:] {
			if f, ok := windowChange(l, cmp.Or(w.Latency, "service time"), w.Windows[0], later); ok {
				here = append(here, f)
			}
		}
		if len(here) > mostChanges {
			most := slices.MaxFunc(here, func(a, b result.Finding) int { return cmp.Compare(away(*a.Value), away(*b.Value)) })
			most.Basis += fmt.Sprintf("; of %d windows, the one whose rate moved most", len(w.Windows))
			here = []result.Finding{most}
		}
		out = append(out, here...)
	}
	return out
}

func windowChange(l *load, latency string, first, later result.Window) (result.Finding, bool) {
	a, b := first.End.Sub(first.Start).Seconds(), later.End.Sub(later.Start).Seconds()
	na, _ := totals(first.Ops)
	nb, _ := totals(later.Ops)
	if a <= 0 || b <= 0 || na == 0 || nb == 0 {
		return result.Finding{}, false
	}
	r, low, high := ratio(nb, na, b, a)
	f := result.Finding{
		Check: "windows", Subject: l.name, Metric: "rate " + later.Name + " / " + first.Name, Unit: "ratio", Value: &r, Low: &low, High: &high, N: int(na + nb), Limit: ptr(1 - changed),
		Basis:    fmt.Sprintf("%s (%s) against %s (%s), one run", later.Name, sayDuration(b), first.Name, sayDuration(a)),
		Warnings: []string{"one run: the interval covers counting noise within it, not differences between runs"},
		Evidence: []result.Evidence{{Name: "rate " + first.Name, Value: float64(na) / a, Unit: "ops/s"}, {Name: "rate " + later.Name, Value: float64(nb) / b, Unit: "ops/s"}},
	}
	tail, worst, sure := "", 1.0, false
	for _, o := range later.Ops {
		before, ok := find(first.Ops, o.Op)
		if !ok {
			continue
		}
		pb, lo, hi, fine := quantile(before.Hist, 0.99)
		pa, lo2, hi2, also := quantile(o.Hist, 0.99)
		if !fine || !also || pb <= 0 {
			continue
		}
		f.Evidence = append(f.Evidence, result.Evidence{Name: o.Op + " p99 " + first.Name, Value: pb, Unit: "s"}, result.Evidence{Name: o.Op + " p99 " + later.Name, Value: pa, Unit: "s"})
		mb, _, _, _ := quantile(before.Hist, 0.5)
		ma, _, _, _ := quantile(o.Hist, 0.5)
		if x := pa / pb; tail == "" || away(x) > away(worst) {
			worst, sure = x, lo2 > hi || hi2 < lo
			tail = fmt.Sprintf("the %s of its %ss went from %s to %s in the median and from %s to %s at the 99th percentile", latency, o.Op, sayDuration(mb), sayDuration(ma), sayDuration(pb), sayDuration(pa))
		}
	}
	rate := fmt.Sprintf("%s did %s operations per second %s and %s %s (%s)", l.name, sayCount(float64(na)/a), first.Name, sayCount(float64(nb)/b), later.Name, signed(r-1))
	moved := high < 1-changed || low > 1+changed
	tailMoved := sure && away(worst) > 1+changed
	f.Severity = result.Notice
	switch {
	case tail == "":
		f.Sentence = rate + "."
	case moved || tailMoved:
		f.Sentence = rate + "; " + tail + "."
	default:
		f.Sentence = fmt.Sprintf("%s; %s. Neither moved by more than %s.", rate, tail, percent(changed))
	}
	if !moved && !tailMoved {
		f.Severity = result.Fine
	}
	return f, true
}

// away is how far a ratio is from 1, in whichever direction, as a factor of at least 1.
func away(x float64) float64 {
	if x < 1 && x > 0 {
		return 1 / x
	}
	return x
}

func find(ops []result.OpTotals, op string) (result.OpTotals, bool) {
	for _, o := range ops {
		if o.Op == op {
			return o, true
		}
	}
	return result.OpTotals{}, false
}
