package mark

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"plimsoll/result"
	"plimsoll/unit"
)

// JudgeVMs makes a probe of a run with so many VMs, or so many per node: how far the one of them that is nearest to
// breaking its limits is from them. Offered is the number, Achieved how many of all VMs kept within every limit, as a
// share of it. A VM whose jobs have a rate must meet it, and its service times are corrected as Judge's are; one whose
// jobs have none is judged by the times that it sees, as a closed loop does.
func JudgeVMs(d *result.Data, findings []result.Finding, workload string, limits []result.Assert,
	n float64) (Probe, error) {
	p := Probe{Offered: n, Margin: math.Inf(1), Held: true}
	vms, within := 0.0, 0.0
	for _, w := range d.Workloads {
		if w.Name != workload || w.Prefill {
			continue
		}
		if w.Merged() {
			p.Used, p.Seconds = used(d, w, 0, findings), math.Round(10*w.Judged().Seconds())/10
			if rate, _, err := Offered(d, workload); err == nil {
				all := w.Judged()
				all.Ops = slices.Clone(all.Ops)
				for i := range all.Ops { // by times alone: VMs may begin apart
					all.Ops[i].OverTime = nil
				}
				p.Grew, _ = grew(all, rate)
			}
			continue
		}
		margin, limit, err := marginOf(d, w, limits)
		if err != nil {
			return p, err
		}
		if vms++; margin >= 1 {
			within++
		}
		if margin < p.Margin {
			p.Margin, p.Limit = margin, limit
		}
	}
	if vms == 0 {
		return p, fmt.Errorf("workload %q ran in no VM", workload)
	}
	p.Achieved = n * within / vms
	if p.Grew > 0 && p.Margin >= 1 {
		p.Margin, p.Limit, p.Behind = 0, RateMet, true
	}
	p.Held = p.Margin >= 1
	p.Margin = min(p.Margin, most)
	if !p.Held {
		p.Generator = gaveWay(findings, workload)
	}
	return p, nil
}

// marginOf is the least margin of one VM's workload, and the limit that it is of.
func marginOf(d *result.Data, w result.Workload, limits []result.Assert) (least float64, of string, err error) {
	rate, depth := 0.0, 0
	for _, l := range w.Streams {
		rate, depth = rate+l.Rate, depth+l.Depth
		if l.Rate <= 0 {
			rate = math.NaN() // one that has none makes the sum none
		}
	}
	judged, late := w.Judged(), lateness{}
	least = math.Inf(1)
	if rate > 0 {
		if missed(judged, rate, depth) {
			least, of = 0, RateMet
		}
		if w.Latency == serviceTime {
			judged, late = correct(judged, rate, depth), behind(judged, rate)
		}
	}
	judged.VM = "" // a limit is of a workload
	var unknown error
	for _, limit := range limits {
		m, err := margin(limit, judged, d, late)
		if err != nil {
			unknown = errors.Join(unknown, fmt.Errorf("limit %q: %w", limit.Name, err))
		} else if m < least {
			least, of = m, limit.Name
		}
	}
	if least >= 1 && unknown != nil {
		return 0, "", unknown
	}
	return least, of, nil
}

// tally is how often a number was offered, and held.
type tally struct{ held, broke int }

// counted are the tallies, and the last number that held before the first that broke; 0 where there is none.
func counted(probes []Probe) (of map[int]tally, low, high int) {
	of = map[int]tally{}
	for _, p := range probes {
		t := of[int(p.Offered)]
		if p.Held {
			t.held++
		} else {
			t.broke++
		}
		of[int(p.Offered)] = t
	}
	for n, t := range of {
		if t.broke > t.held && (high == 0 || n < high) {
			high = n
		}
	}
	for n, t := range of {
		if t.held > t.broke && (high == 0 || n < high) {
			low = max(low, n)
		}
	}
	return of, low, high
}

// apart is how far the two sides may be from each other in the end.
func (s Settings) apart(high int) int { return max(1, int(s.Within*float64(high))) }

// nextCount is Next for numbers: doubled until a limit breaks, then halved between; the last that holds and the first
// that breaks are both offered twice, and a third time where they came out both ways.
func (s Settings) nextCount(probes []Probe) Step {
	of, low, high := counted(probes)
	last := int(probes[len(probes)-1].Offered)
	if t := of[last]; t.held == t.broke {
		return Step{float64(last), "it came out both ways: again"}
	}
	switch {
	case high == 0 && float64(low) >= s.Most:
		return Step{}
	case high == 0 && s.Room > 0 && int(s.Room)-low <= s.apart(int(s.Room)):
		return Step{}
	case high == 0 && s.Room > 0:
		return Step{float64((low + int(s.Room)) / 2), fmt.Sprintf("between %d, which held, and %.0f, for which "+
			"there is no room", low, s.Room)}
	case high == 0:
		return Step{min(float64(2*low), s.Most), "every limit holds: more"}
	case low == 0 && high == 1 && of[1].broke > 1:
		return Step{}
	case low == 0 && high == 1:
		return Step{1, "the lowest number is offered again"}
	case low == 0:
		return Step{float64(max(high/2, 1)), "a limit is broken: fewer"}
	case high-low > s.apart(high):
		return Step{float64((low + high) / 2), fmt.Sprintf("between %d, which held, and %d", low, high)}
	}
	for _, n := range []int{high, low} {
		if t := of[n]; t.held+t.broke < 2 {
			return Step{float64(n), "both sides are offered again"}
		}
	}
	return Step{}
}

// count answers from the probes of a search over numbers.
func (a *Answer) count(s Settings, probes []Probe) {
	of, low, high := counted(probes)
	find := func(n int) (p Probe) {
		for _, q := range probes {
			if int(q.Offered) == n && q.Held == (n == low) {
				p = q
			}
		}
		return p
	}
	switch lower, upper := find(low), find(high); {
	case high == 0 && low == 0:
		a.Sentence = "Inconclusive: each number held and broke."
	case high == 0:
		a.at(AtLeast, lower)
		a.watch(probes, lower.Offered)
		a.Sentence = fmt.Sprintf("No limit broke up to %s, the highest number that was tried.", a.Say(lower.Offered))
		if s.Room > 0 {
			a.Sentence = fmt.Sprintf("No limit broke up to %s; for %s there is no room: %s.", a.Say(lower.Offered),
				a.Say(s.Room), s.Lacks)
		}
	case upper.Generator != "":
		a.Verdict, a.Limit = Generator, upper.Limit
		if low > 0 {
			a.Rate = &lower.Offered
		} else {
			a.Rate = &upper.Offered
		}
		a.Sentence = fmt.Sprintf("At least %s: with %s the load generator gave way, not the system: %s.", a.Say(float64(low)),
			a.Say(upper.Offered), upper.Generator)
	case low == 0 && of[high].broke < 2:
		a.Sentence = fmt.Sprintf("Inconclusive after %s: with %s, the lowest number that was tried, %s broke once.",
			unit.Plural(len(probes), "probe"), a.Say(upper.Offered), upper.Limit)
	case low == 0:
		a.at(Below, upper)
		a.Sentence = fmt.Sprintf("%s breaks with %s, the lowest number that was tried.", upper.Limit,
			a.Say(upper.Offered))
	case high-low > s.apart(high) || of[low].held < 2 || of[high].broke < 2:
		a.Sentence = fmt.Sprintf("Inconclusive after %d probes: %s held and %s did not.", len(probes),
			a.Say(lower.Offered), a.Say(upper.Offered))
		a.Low, a.High = &lower.Offered, &upper.Offered
	default:
		a.Verdict, a.Rate, a.Low, a.High = Found, &lower.Offered, &lower.Offered, &upper.Offered
		a.Step, a.Within = true, true
		a.Limit = upper.Limit
		a.Sentence = fmt.Sprintf("Mark: %s: so many held %s%s; with %s %s broke %s.", a.Say(lower.Offered),
			times(of[low].held, of[low].broke), a.watch(probes, lower.Offered), a.Say(upper.Offered), upper.Limit,
			times(of[high].broke, of[high].held))
		if text := a.near(probes, lower.Offered); text != "" {
			a.Sentence += " " + text
		}
	}
}

// times says how often, and of how many.
func times(n, others int) string {
	if others == 0 && n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times of %d", n, n+others)
}
