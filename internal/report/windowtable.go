package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
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
			times, rest := statedOf(w.Measures)
			for _, t := range times {
				add(t.of, nil, "", func(WindowTotals) *float64 { return nil }, none, t.cell("mean"),
					t.cell("p50"), t.cell("p99"))
			}
			for _, m := range rest {
				add(sayMeasure(m.Name), &m.Value, m.Unit, func(w WindowTotals) *float64 {
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

// statedTime matches a time of operations that a tool states as a measure of its own, and their number: read_p99,
// "job 1 read_max", sync_count.
var statedTime = lazyregexp.New(`^(.+)[_ ](p\d{1,2}(?:\.\d+)?|mean|min|max|count)$`)

const statedCount = "count"

// statedAs is of what operations a measure is a time that a tool states, or their number, and which; "" of others.
func statedAs(m MeasureRow) (of, what string) {
	parts := statedTime.FindStringSubmatch(m.Name)
	if parts == nil || (parts[2] == statedCount) != (m.Unit == "count") ||
		parts[2] != statedCount && !slices.Contains(timeUnits, m.Unit) {
		return "", ""
	}
	return parts[1], parts[2]
}

// timeUnits are the units of times.
var timeUnits = []string{"us", "µs", "ms", "s"}

// stated are the times that a tool states of one kind of operation, as text, by what they are: p99, mean, max.
type stated struct {
	of string
	at map[string]string
}

// cell is one of the times, a dash where it is not stated.
func (s stated) cell(what string) string { return cmp.Or(s.at[what], none) }

// has reports whether any of some is stated.
func (s stated) has(some ...string) bool {
	return slices.ContainsFunc(some, func(what string) bool { return s.at[what] != "" })
}

// without adds a figure for each of the upper percentiles where there is no p99, which has a column; of the upper half
// where no column has anything.
func (s stated) without(operation string, add func(Figure)) {
	for _, what := range slices.Sorted(maps.Keys(s.at)) {
		column := what == "p50" || what == "p99.9"
		upper := strings.HasPrefix(what, "p9") || len(what) > 2 && what > "p5" && !s.has("mean", "p50", "p99.9")
		if s.has("p99") || column || !upper {
			continue
		}
		add(Figure{measure: true, value: true, Operation: operation + " " + what, Rate: s.at[what], Bandwidth: none,
			Mean: none, P50: none, P99: none, P999: none})
	}
}

// statedOf are the times that measures state, where percentiles are among them, and the measures that are none.
func statedOf(measures []MeasureRow) (all []stated, rest []MeasureRow) {
	find := func(m MeasureRow) (of, what string, i int) {
		of, what = statedAs(m)
		return of, what, slices.IndexFunc(all, func(s stated) bool { return s.of == of })
	}
	for _, m := range measures {
		if of, what, i := find(m); i < 0 && strings.HasPrefix(what, "p") {
			all = append(all, stated{of, map[string]string{}})
		}
	}
	for _, m := range measures {
		if _, what, i := find(m); i >= 0 {
			all[i].at[what] = m.Text()
		} else {
			rest = append(rest, m)
		}
	}
	return all, rest
}

// cells are the times under timesHead.
func (s stated) cells() (out []string) {
	for _, what := range timesHead {
		out = append(out, s.cell(what))
	}
	return out
}

// placed goes through a window's operations, each with the times that a tool states of it where it left no
// distribution of them, nil where there are none, and then through stated times of no such operation. It returns the
// measures that are no times.
func (w WindowTotals) placed(each func(*OpRow, *stated)) (rest []MeasureRow) {
	times, rest := statedOf(w.Measures)
	for i := range w.Rows {
		r := &w.Rows[i]
		at := slices.IndexFunc(times, func(s stated) bool { return s.of == r.Op })
		if r.Max != nil || at < 0 {
			each(r, nil)
			continue
		}
		t := times[at]
		times = slices.Delete(times, at, at+1)
		each(r, &t)
	}
	for i := range times {
		each(nil, &times[i])
	}
	return rest
}

// sayMeasure is the name of a percentile that a tool states, as people read it: "read p90". Other measures keep theirs.
func sayMeasure(name string) string {
	if m := statedTime.FindStringSubmatch(name); m != nil && m[2][0] == 'p' {
		return m[1] + " " + m[2]
	}
	return name
}

// timesHead are the columns of times in a table of percentiles.
var timesHead = []string{"mean", "p50", "p90", "p99", "p99.9", "max"}

// PercentileRow is one operation or measure of a workload in one window, as text.
type PercentileRow struct {
	Window, Length, Operation string
	Cells                     []string // count, rate, bandwidth, and timesHead
}

type percentileRows []PercentileRow

// Table is the workload's table of percentiles: what a tool states of times stands in the columns.
func (l Latency) Table() (rows percentileRows) {
	for _, w := range l.Rows() {
		add := func(op string, cells ...string) {
			rows = append(rows, PercentileRow{w.Name, duration(w.Seconds), op, cells})
		}
		rest := w.placed(func(r *OpRow, t *stated) {
			if r == nil {
				add(t.of, append([]string{t.cell(statedCount), none, none}, t.cells()...)...)
				return
			}
			times := []string{optional(r.Mean, "s"), r.Quantile("p50"), r.Quantile("p90"), r.Quantile("p99"),
				r.Quantile("p99.9"), optional(r.Max, "s")}
			if t != nil {
				times = t.cells()
				if r.Mean != nil {
					times[0] = duration(*r.Mean)
				}
			}
			if r.Saturated > 0 {
				times[len(times)-1] = "≥ " + times[len(times)-1]
			}
			add(r.Op, append([]string{plain(float64(r.Count)), optional(r.Rate(), r.Unit),
				optional(r.BytesPerSecond, "bytes/s")}, times...)...)
		})
		for _, m := range rest {
			add(sayMeasure(m.Name), none, m.Text(), none, none, none, none, none, none, none)
		}
	}
	return rows
}

// mostPercentiles is how many rows of a table of percentiles are in sight; the others open when they are asked for.
const mostPercentiles = 16

// Top are the rows in sight, More the others.
func (t percentileRows) Top() percentileRows  { return t[:min(len(t), mostPercentiles)] }
func (t percentileRows) More() percentileRows { return t[min(len(t), mostPercentiles):] }

// StatedTable holds all times that a tool states of a workload, a row for each kind of operation.
type StatedTable struct {
	Head []string
	Rows [][]string
}

// Stated are the times that a tool states of a workload's first window, where the table of percentiles has not a
// column for each; nil where it has.
func (l Latency) Stated() *StatedTable {
	if len(l.Windows) == 0 {
		return nil
	}
	var head []string
	times, _ := statedOf(l.Windows[0].Measures)
	more := false
	for _, s := range times {
		for what := range s.at {
			if what != statedCount && !slices.Contains(head, what) {
				head, more = append(head, what), more || !slices.Contains(timesHead, what)
			}
		}
	}
	if !more {
		return nil
	}
	rank := func(what string) float64 {
		percent, err := strconv.ParseFloat(strings.TrimPrefix(what, "p"), 64)
		if err != nil { // mean and min first, max last
			return map[string]float64{"mean": -2, "min": -1, "max": 101}[what]
		}
		return percent
	}
	slices.SortFunc(head, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	table := &StatedTable{Head: append([]string{"Operation"}, head...)}
	for _, s := range times {
		row := []string{s.of}
		for _, what := range head {
			row = append(row, s.cell(what))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}
