package fault

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Recovery tells how each group came back after a fault.
var Recovery = view.Check{Name: "recovery", Rank: 120, Run: recovered}

func recovered(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, o := range Outages(v) {
		out = append(out, o.Finding(v))
	}
	if out == nil {
		return untold(v)
	}
	return out
}

// fewestBefore is how many points a level needs that something is to come back to.
const fewestBefore = 3

// untold says of the first fault that struck workloads, of a run in which no return could be measured, that too little
// was reported before it.
func untold(v *view.Run) []result.Finding {
	for _, e := range v.Data.Events {
		if !e.Strikes() {
			continue
		}
		var struckBy []string
		most, step := 0, 0.0
		for _, group := range groups(v) {
			hit, all := struck(v, group, e.Time)
			c := jointTrack(v, group, "", all)
			if c == nil || !slices.ContainsFunc(hit, func(l *view.Load) bool { return !over(l, e.Time) }) {
				continue
			}
			from, _ := even(hit[0], e.Time)
			values, _ := view.FiniteOf(c.Between(from, e.Time).Ops)
			struckBy, most, step = append(struckBy, group), max(most, len(values)), max(step, c.Step)
		}
		if len(struckBy) == 0 || most >= fewestBefore {
			continue
		}
		i := slices.IndexFunc(v.Faults(), func(f view.Fault) bool { return f.At(e.Time) })
		said := fmt.Sprintf("%q", e.Text)
		if i >= 0 {
			said = v.Faults()[i].Say()
		}
		why := fmt.Sprintf("%s of %s came before it, and %d are needed", view.Plural(most, "point"),
			view.SayDuration(step), fewestBefore)
		return []result.Finding{{
			Check: "recovery", Subject: struckBy[0], Severity: result.Info, Unit: "s", N: most,
			NoInterval: "too few reports before the fault",
			Metric:     "time to 90 % of the former level", Basis: "what was reported before the fault",
			Sentence: fmt.Sprintf("How long %s took to come back after %s at %s cannot be told: %s.",
				view.Listed(struckBy), said, view.ClockOf(e.Time.Sub(v.Data.Start).Seconds()), why),
		}}
	}
	return nil
}

// over reports whether a load had come to its planned end on all its VMs by a moment.
func over(l *view.Load, at time.Time) bool {
	return !slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		return !p.Ended.Planned() || p.End.After(at)
	})
}
