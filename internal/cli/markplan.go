package cli

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/cli/judge"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/plan"
	"plimsoll/unit"
)

// markPlan holds what a search would do, of which nothing has been done.
type markPlan struct {
	Workload   string                 `json:"workload"`
	Variable   string                 `json:"variable"`
	Limits     []string               `json:"limits"`
	From       float64                `json:"from,omitempty"` // 0: 0.6 of what a run without a rate does
	To         float64                `json:"to,omitempty"`
	Within     float64                `json:"within"`
	Probes     int                    `json:"probes"` // the most, under each condition
	Conditions []experiment.Condition `json:"conditions,omitempty"`
	// Runs is the most that are made, Seconds how long all of them take, and LongestSeconds so at rates so low that
	// fewer operations than wanted would be beyond the percentile: below LongerBelow.
	Runs           int     `json:"runs"`
	Seconds        float64 `json:"seconds"`
	LongestSeconds float64 `json:"longest_seconds"`
	LongerBelow    float64 `json:"longer_below_ops,omitempty"`
	// Unknown: some steps take a time that cannot be said, which is not in these.
	Unknown bool         `json:"estimate_unknown,omitempty"`
	Plans   []*plan.Plan `json:"plans"` // of one probe, under each condition
}

// newMarkPlan says what a search would do, given the plan of a probe under each condition, or one without any.
func newMarkPlan(m *experiment.Mark, plans []*plan.Plan, timeScale float64) markPlan {
	d := markPlan{Workload: m.Workload, Variable: m.Variable, Limits: m.Limits, From: m.Start, To: m.Most,
		Within: m.Within, Probes: m.Probes, Conditions: m.Conditions, Plans: plans}
	usual, most := judge.LoadTime(m, math.MaxFloat64, nil), judge.LoadTime(m, math.SmallestNonzeroFloat64, nil)
	for i, p := range plans {
		runs := m.Probes
		if i == 0 && m.Start == 0 && !m.Counts() {
			runs++ // without a rate
		}
		if i == 0 && len(plans) > 1 {
			runs++ // the first once more, for drift
		}
		d.Runs, d.Unknown = d.Runs+runs, d.Unknown || p.EstimateUnknown
		d.Seconds += float64(runs) * p.Least().Seconds()
	}
	if d.LongestSeconds = d.Seconds; most > usual {
		d.LongestSeconds += float64(d.Runs) * (most - usual).Seconds() * timeScale
		d.LongerBelow = judge.Needed(m) / m.Seconds
	}
	return d
}

// say prints it, with the plan of a probe below.
func (d markPlan) say(rn *runner) error {
	span := func(seconds float64) string {
		return unit.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Second)).String()
	}
	out := rn.Out
	visible.Fprintf(out, "A search for the mark of %s, by %s.\n%s\n", d.Workload, unit.Words(d.Variable),
		report.SayLimits(d.Limits))
	first := "a run without a rate, then 0.6 of what that did"
	if d.From > 0 {
		first = fmt.Sprintf("%g", d.From)
	}
	top := ""
	if d.To > 0 {
		top = fmt.Sprintf(", %g at most", d.To)
	}
	visible.Fprintf(out, "First %s; then doubled until a limit breaks, or lowered until all hold%s; then near the limit, "+
		"above and below in turn, until the interval is within %.3g %% of the mark.\n", first, top, 100*d.Within)
	under, atLeast := "", map[bool]string{true: "at least "}[d.Unknown]
	if len(d.Conditions) > 0 {
		under = fmt.Sprintf(" under each of %s", unit.Plural(len(d.Conditions), "condition"))
	}
	visible.Fprintf(out, "At most %s%s, each in a run of its own: at most %s in all, of %s%s together.\n",
		unit.Plural(d.Probes, "probe"), under, unit.Plural(d.Runs, "run"), atLeast, span(d.Seconds))
	if d.LongerBelow > 0 {
		visible.Fprintf(out, "Below %.4g a second a probe is longer, for enough operations beyond the percentile: "+
			"%s together if all are.\n", d.LongerBelow, span(d.LongestSeconds))
	}
	visible.Fprintf(out, "Nothing has been touched.\n")
	for i, p := range d.Plans {
		of := ""
		if len(d.Conditions) > 0 {
			of = fmt.Sprintf(" under %q", string(d.Conditions[i]))
		}
		visible.Fprintf(out, "\nOne probe%s:\n\n", of)
		if err := p.Text(out); err != nil {
			return err
		}
	}
	return nil
}
