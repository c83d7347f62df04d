package report

import (
	"testing"
	"time"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// Every report with series has one chart on its first screen, of what the answer says; it is not among the results
// again.
func TestFirstChart(t *testing.T) {
	t.Parallel()
	value := func(v float64) *float64 { return &v }
	start := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	series := func(name, measure, unit, op, workload string, values ...*float64) result.Series {
		return result.Series{Name: name, Op: op, Measure: measure, Unit: unit, Workload: workload, Start: start,
			Step: 1, Values: values}
	}
	rates := []result.Series{
		series("A", result.Rate, "ops/s", "read", "A", value(1), value(2), nil, nil),
		series("A", result.Rate, "ops/s", "write", "A", value(10), nil, nil, nil),
		series("A: disk-1", result.Rate, "ops/s", "read", "A", value(1), value(2), nil, nil),
		series("B", result.Rate, "ops/s", "read", "B", nil, nil, value(5), value(6)),
		series("C", result.Rate, "transactions/s", "pay", "C", value(7), value(7), value(7), value(7)),
	}
	rates[2].Section = "disk-1"
	panel := func(title, unit, group string) result.Panel {
		return result.Panel{Title: title, Unit: unit, VMGroup: group,
			Series: []result.Series{series(title, "", unit, "", "", value(3), value(4))}}
	}
	panels := []result.Panel{panel("A's time", "us", "As"), {Title: "nothing", Unit: "ops/s", VMGroup: "Bs",
		Problem: "none"}, panel("B's rate", "ops/s", "Bs")}
	loads := []WorkloadSummary{{Name: "Fill", Prefill: true}, {Name: "A", Group: "As"}, {Name: "B", Group: "Bs"},
		{Name: "C", Group: "Cs"}}
	about := func(subject string, chart *result.Chart) []result.Finding {
		return []result.Finding{{Check: "windows", Severity: result.Passed, Subject: subject, Sentence: "It is so.",
			Metric: "rate, with / alone", Unit: "ratio", Rank: 110, Harm: value(0), Chart: chart}}
	}
	drawing := &result.Chart{Title: "B: IOPS", XUnit: "s", YUnit: "ops/s",
		Lines: []result.ChartLine{{X: []float64{0, 1}, Y: []*float64{value(1), value(2)}}}}
	many := append(loads[:4:4], WorkloadSummary{Name: "D"}, WorkloadSummary{Name: "E"}, WorkloadSummary{Name: "F"},
		WorkloadSummary{Name: "G"})
	for name, c := range map[string]struct {
		doc       Document
		top, lead string
		names     int
		left      int // of the results
	}{
		"what the answer says, though nothing changed": {Document{Findings: about("B", drawing), Workloads: loads,
			Panels: panels}, "B: IOPS", "", 0, 3},
		"workloads beside each other": {Document{Findings: about("B", nil), Workloads: loads, Series: rates,
			Panels: panels}, "", "Rate of each workload", 2, 3},
		"the result of the answer's workload": {Document{Findings: about("B", nil), Workloads: many, Panels: panels},
			"", "B's rate", 1, 2},
		"the first result":     {Document{Workloads: many, Panels: panels[:2]}, "", "A's time", 1, 1},
		"the one of few loads": {Document{Workloads: loads[:2], Series: rates, Panels: panels}, "", "A's time", 1, 2},
		"no result at all":     {Document{Workloads: loads[:2], Series: rates}, "", "Rate of A", 1, 0},
		"nothing over time":    {Document{Findings: about("B", nil), Workloads: loads}, "", "", 0, 0},
	} {
		c.doc.Start = start
		v := newView(&c.doc)
		top, lead, names := "", "", 0
		if v.Top != nil {
			top = v.Top.Title
		}
		if v.Lead != nil {
			lead, names = v.Lead.Title, len(v.Lead.Chart.Names)
		}
		left := 0
		for _, g := range v.PanelGroups {
			left += len(g.Panels)
		}
		if top != c.top || lead != c.lead || names != c.names || left != c.left {
			t.Errorf("%s: drawing %q, chart %q with %d lines, %d results; want %q, %q, %d, %d", name, top, lead, names,
				left, c.top, c.lead, c.names, c.left)
		}
		if lead == "Rate of each workload" && (v.charts[2].Values[0][0] != 11 || v.charts[2].Values[1][3] != 6) {
			t.Errorf("%v", v.charts[2].Values)
		}
	}
	in := runInput(reporttest.Options{VMs: 3, Length: 2 * time.Minute})
	in.Findings = nil
	if v := newView(New(in)); v.Lead == nil || v.Lead.Chart == nil {
		t.Error("a run that was not analysed has no first chart")
	}
}
