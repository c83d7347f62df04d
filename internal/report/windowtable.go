package report

import (
	"cmp"
	"math"
	"slices"
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
				}, optional(o.BytesPerSecond, "bytes/s"), optional(o.Mean, "s"), optional(o.P50, "s"), optional(o.P99,
					"s"))
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
