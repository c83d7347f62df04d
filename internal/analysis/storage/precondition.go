package storage

import (
	"fmt"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Preconditioned asks whether disks that were preconditioned came to a state that lasts.
var Preconditioned = view.Check{Name: "preconditioned", Rank: 262, Run: preconditioned}

func preconditioned(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, p := range v.Data.Preconditioned {
		out = append(out, stateOf(p))
	}
	return out
}

func stateOf(p result.Preconditioning) result.Finding {
	f := result.Finding{
		Check: "preconditioned", Subject: p.Workload, Metric: "rounds of its preconditioning", Unit: "count",
		Value: view.Ptr(float64(len(p.Rounds))), N: len(p.Rounds), Limit: view.Ptr(float64(p.MaxRounds)),
		NoInterval: "counted, not sampled",
		Basis: fmt.Sprintf("rates of the last %d rounds: within %s of their mean, a fitted line within %s",
			result.SteadyWindow, view.Percent(result.SteadySpread), view.Percent(result.SteadySlope)),
		Evidence: []result.Evidence{{Name: "passes over the disks", Value: float64(len(p.Passes)), Unit: "count"},
			{Name: "rounds", Value: float64(len(p.Rounds)), Unit: "count"}},
	}
	if p.Spread != nil && p.Slope != nil {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "spread of the last rounds", Value: 100 * *p.Spread,
			Unit: "%"}, result.Evidence{Name: "slope of the last rounds", Value: 100 * *p.Slope, Unit: "%"})
	}
	passes := view.Plural(len(p.Passes), "time")
	rounds := view.Plural(len(p.Rounds), "round")
	switch p.State {
	case result.Preconditioned:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("The disks of %s were written %s in full, and its rates steady after %s.", p.Workload,
			passes, rounds)
	case result.PreconditionWritten:
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("The disks of %s were written %s in full; whether its rates are steady after that was "+
			"not looked at.", p.Workload, passes)
	case result.PreconditionNotReached:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("The disks of %s were preconditioned, but its rates not steady after %s (%s): its "+
			"figures may be of a device on its way to another state.", p.Workload, rounds, p.Reason)
	default:
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf("The preconditioning of the disks of %s did not come to its end (%s after %s).",
			p.Workload, p.State, rounds)
	}
	return f
}
