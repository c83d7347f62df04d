package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/report/spread"
	"plimsoll/unit"
)

// windowRow is one operation of a workload in one of its windows.
type windowRow struct {
	Workload  string // with its first row
	Window    string // with its first row
	Operation string
	Values    [6]string // rate, its change, bandwidth, mean, p50, p99
	Moved     bool      // the rate changed by more than a twentieth
}

// windowTable are the windows of all workloads that have several, one below the other, each set against the workload's
// first. Of a workload with many windows the first and those that differ most from it are shown; the percentile tables
// have them all.
func windowTable(doc *Document) (rows []windowRow, left int) {
	var workloads []string
	for _, w := range doc.Workloads {
		workloads = append(workloads, w.Name)
	}
	for _, c := range doc.Comparisons {
		workload := c.Workload
		shown := farthest(inWords(c.Windows), maxSides)
		left += len(c.Windows) - len(shown)
		for i, w := range shown {
			name := companyOf(w.Name, workloads)
			add := func(op string, rate *float64, unit string, first func(WindowTotals) *float64, rest ...string) {
				r := windowRow{Workload: workload, Window: name, Operation: op}
				workload, name = "", ""
				r.Values[0], r.Values[1] = optional(rate, unit), none
				if was := first(c.Windows[0]); i > 0 && rate != nil && was != nil {
					r.Values[1] = change(*was, *rate)
					r.Moved = *was > 0 && (*rate / *was > 1.05 || *rate / *was < 0.95)
				}
				copy(r.Values[2:], rest)
				rows = append(rows, r)
			}
			for _, o := range w.Rows {
				add(o.Op, o.Rate(), o.Unit, func(w WindowTotals) *float64 {
					for _, p := range w.Rows {
						if p.Op == o.Op {
							return p.Rate()
						}
					}
					return nil
				}, optional(o.BytesPerSecond, "bytes/s"), optional(o.Mean, "s"), o.Quantile("p50"), o.Quantile("p99"))
			}
			for _, m := range w.Measures {
				add(m.Name, &m.Value, m.Unit, func(w WindowTotals) *float64 {
					for _, p := range w.Measures {
						if p.Name == m.Name {
							return &p.Value
						}
					}
					return nil
				}, none, none, none, none)
				rows[len(rows)-1].Values[0] = m.Text()
			}
		}
	}
	return rows, left
}

// farthest are the first window and the n-1 others whose rate or mean time differs most from its, in the order of time.
func farthest(windows []WindowTotals, n int) []WindowTotals {
	if len(windows) <= n {
		return windows
	}
	time := func(w WindowTotals) float64 {
		sum, count := 0.0, 0.0
		for _, r := range w.Rows {
			if r.Mean != nil {
				sum, count = sum+*r.Mean*float64(r.Count), count+float64(r.Count)
			}
		}
		return sum / count // none where nothing was timed
	}
	first := windows[0]
	far := func(i int) float64 {
		d := 0.0
		for _, r := range []float64{windows[i].OpsPerSecond / first.OpsPerSecond, time(windows[i]) / time(first)} {
			if l := math.Abs(math.Log(r)); !math.IsNaN(l) {
				d = max(d, l)
			}
		}
		return d
	}
	order := make([]int, len(windows)-1)
	for i := range order {
		order[i] = i + 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far(b), far(a)) })
	order = append(order[:n-1:n-1], 0)
	slices.Sort(order)
	var out []WindowTotals
	for _, i := range order {
		out = append(out, windows[i])
	}
	return out
}

// many is from how many tables of percentiles on a run is told as groups first, and how many of the worst are named.
const (
	many  = 12
	worst = 5
)

// Large reports whether a run has more loads, results or machines than a reader looks at one by one: groups and the
// worst come first then, and what is of each is among all details.
func (doc *Document) Large() bool {
	return len(doc.Latencies) > many || len(doc.Panels) > 2*many || len(doc.VMs) > 8*many
}

// Folded reports whether the tables of each load stand among all details: of a large run, and of one whose results fill
// screens before them.
func (doc *Document) Folded() bool {
	const screens, loads = 6, 3
	return doc.Large() || len(doc.Panels) > screens || len(doc.Latencies) > loads
}

// SpreadHead are the columns of Spread.
var SpreadHead = spreadHead("Group", "Loads")

// VMSpreadHead are the columns of SpreadOfVMs.
var VMSpreadHead = spreadHead("Workload", "VMs")

func spreadHead(what, of string) []string {
	return []string{what, of, "Operation", "Rate of each: lowest", "middle", "highest", "p99: lowest", "middle",
		"highest", "Errors"}
}

// SpreadOfVMs are the machines of each load as the rows of a table, as Spread's, and the worst of them; nil of few.
func (doc *Document) SpreadOfVMs() (rows [][]string, named []string) {
	if len(doc.VMs) <= many || len(doc.Latencies) > many {
		return nil, nil
	}
	var loads []spread.Load
	prefix := commonPrefix(doc.VMs)
	for _, w := range doc.Workloads {
		if w.Merged() || w.Prefill || w.Again {
			continue
		}
		errors := w.Errors
		for _, r := range w.Totals.Rows {
			if r.NoRate {
				continue
			}
			name := w.Name + " on VM " + strings.TrimPrefix(w.VM, prefix)
			loads = append(loads, spread.Load{Name: name, Of: w.Name, Op: r.Op, Unit: r.Unit, Rate: r.OpsPerSecond,
				P99: r.told("p99"), Errors: errors})
			errors = 0
		}
	}
	return told(loads)
}

// Spread are the groups of a large run as the rows of a table, and the names of the worst loads with why; nil of
// others.
func (doc *Document) Spread() (rows [][]string, named []string) {
	if len(doc.Latencies) <= many {
		return nil, nil
	}
	var loads []spread.Load
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 {
			continue
		}
		errors := doc.failed(l.Workload)
		for _, r := range l.Windows[0].Rows {
			loads = append(loads, spread.Load{Name: l.Workload, Op: r.Op, Unit: r.Unit, Rate: r.OpsPerSecond,
				P99: r.told("p99"), Errors: errors})
			errors = 0
		}
	}
	return told(loads)
}

// told are the groups of loads and the worst loads.
func told(loads []spread.Load) (rows [][]string, named []string) {
	groups := spread.Groups(loads)
	if len(groups) > len(loads)/2 { // they are unlike: each is told
		return nil, nil
	}
	for _, g := range groups {
		row := []string{g.Name, plain(float64(g.N)), g.Op, quantity(g.Rate.Low, g.Unit),
			quantity(g.Rate.Middle, g.Unit), quantity(g.Rate.High, g.Unit), none, none, none, plain(float64(g.Errors))}
		if g.P99 != nil {
			row[6], row[7], row[8] = duration(g.P99.Low), duration(g.P99.Middle), duration(g.P99.High)
		}
		rows = append(rows, row)
	}
	for _, l := range spread.Worst(loads, worst) {
		text := fmt.Sprintf("%s: %s %s", l.Name, l.Op, quantity(l.Rate, l.Unit))
		if l.P99 != nil {
			text += ", p99 " + duration(*l.P99)
		}
		if l.Errors > 0 {
			text += ", " + unit.Plural(int(l.Errors), "operation") + " failed"
		}
		named = append(named, text)
	}
	return rows, named
}

// spreadView are the groups of many loads, or of the machines of each, and the worst of them.
type spreadView struct {
	ID, Title, Note string
	Head            []string
	Rows            [][]string
	Worst           []string
}

func (v *view) spreads() {
	add := func(s spreadView, rows [][]string, worst []string) bool {
		if s.Rows, s.Worst = rows, worst; rows != nil {
			v.Spreads = append(v.Spreads, s)
		}
		return rows != nil
	}
	rows, worst := v.Document.Spread()
	v.Grouped = add(spreadView{ID: "groups", Title: "Groups", Head: SpreadHead,
		Note: "Loads whose names differ by numbers alone, not by sizes and counts, are a group. " +
			"Each value is that of one of them; nothing is averaged."}, rows, worst)
	rows, worst = v.SpreadOfVMs()
	add(spreadView{ID: "vms", Title: "From VM to VM", Head: VMSpreadHead,
		Note: "Each value is that of one VM; nothing is averaged."}, rows, worst)
}
