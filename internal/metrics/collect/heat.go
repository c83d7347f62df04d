package collect

import (
	"math"
	"slices"
	"sync"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// Rows of a heat map: ten per factor of ten, from 1 us to 1,000 s; what is outside goes to the first or last row.
const (
	rowsPerDecade = 10
	firstDecade   = 3 // 10^3 ns
	lastDecade    = 12
	heatRows      = (lastDecade - firstDecade) * rowsPerDecade
)

// rowOf is the row of a bucket, by its middle.
var rowOf = func() []uint8 {
	table := make([]uint8, hist.Index(math.MaxUint64)+1)
	for i := range table {
		row := math.Floor((math.Log10(float64(max(1, hist.Middle(i)))) - firstDecade) * rowsPerDecade)
		table[i] = uint8(min(max(row, 0), heatRows-1))
	}
	return table
}()

// heat counts operations of one workload by kind, time and latency.
type heat struct {
	grid    grid
	mu      sync.Mutex
	columns [][]*hist.Histogram // by operation of the layout
	course  bool                // it is known when things were
}

func newHeat(g grid, operations int) *heat {
	return &heat{grid: g, columns: make([][]*hist.Histogram, operations)}
}

// cutter is that of one start. Of its only report of more than a column nobody knows when in that time things were: it
// is no course, and counted at its end.
func (h *heat) cutter(begin tally.Mark) *cutter {
	var begun bool
	c := &cutter{cell: max(0, h.grid.cell(begin.At)), from: begin, end: func() {}}
	c.bound = func(i int) (time.Time, bool) { return h.grid.edge(i + 1), i < h.grid.n-1 }
	first := c.end
	c.emit = func(i int, from, to tally.Mark) {
		d, _ := histsBetween(from, to) // said by the grid's cutter
		switch {
		case d == nil || !to.At.After(from.At):
		case begun || to.At.Sub(from.At) <= h.grid.step:
			first()
			h.spread(from.At, to.At, d)
			first, c.end = func() {}, func() {}
			begun = true
			h.mu.Lock()
			h.course = true
			h.mu.Unlock()
		default:
			begun, first = true, func() { h.spread(from.At, to.At, d) }
			c.end = func() { h.spread(h.grid.edge(i), h.grid.edge(i+1), d) }
		}
	}
	return c
}

// spread adds what was done between two moments to the columns of that time, evenly: a report that was late leaves no
// column empty and the next one twice as full.
func (h *heat) spread(from, to time.Time, hists []*hist.Histogram) {
	const slack = 0.05 // of a column, by which a report may miss its end
	column := func(t time.Time) float64 {
		at := float64(t.Sub(h.grid.start)) / float64(h.grid.step)
		if near := math.Round(at); math.Abs(at-near) < slack {
			at = near
		}
		return min(max(at, 0), float64(h.grid.n))
	}
	begin, end := column(from), column(to)
	first := min(int(begin), h.grid.n-1)
	shares := make([]float64, max(1, int(math.Ceil(end))-first))
	for i := range shares {
		at := float64(first + i)
		shares[i] = (min(end, at+1) - max(begin, at)) / (end - begin)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for op, one := range hists {
		if one == nil || one.Count() == 0 {
			continue
		}
		if h.columns[op] == nil {
			h.columns[op] = make([]*hist.Histogram, h.grid.n)
		}
		into := h.columns[op][first : first+len(shares)]
		if len(into) == 1 && into[0] == nil {
			into[0] = one
			continue
		}
		for i := range into {
			if into[i] == nil {
				into[i] = &hist.Histogram{}
			}
		}
		if len(into) == 1 {
			into[0].Merge(one)
		} else {
			split(one, shares, into)
		}
	}
}

// split adds operations to histograms by shares that make 1, in whole operations.
func split(all *hist.Histogram, shares []float64, into []*hist.Histogram) {
	owed, parts := make([]float64, len(shares)), make([]uint64, len(shares))
	for bucket, n := range all.All() {
		left := n
		for i, share := range shares {
			owed[i] += share * float64(n)
			parts[i] = min(left, uint64(max(0, owed[i])))
			left -= parts[i]
			owed[i] -= float64(parts[i])
		}
		for ; left > 0; left-- {
			most := slices.Index(owed, slices.Max(owed))
			parts[most]++
			owed[most]--
		}
		for i, part := range parts {
			into[i].AddBucket(bucket, part)
		}
	}
}

// result is the map of all operations together, of the rows in use; nil when nothing was counted,
// or nobody knows when.
func (h *heat) result() *result.HeatMap {
	counts := make([][heatRows]uint64, h.grid.n)
	low, high := heatRows, -1
	for _, columns := range h.columns {
		for at, one := range columns {
			if one == nil {
				continue
			}
			for i, n := range one.All() {
				row := int(rowOf[i])
				counts[at][row] += n
				low, high = min(low, row), max(high, row)
			}
		}
	}
	if high < low || !h.course {
		return nil
	}
	out := &result.HeatMap{Start: h.grid.start, Step: h.grid.step.Seconds()}
	for r := low; r <= high+1; r++ {
		out.EdgesNs = append(out.EdgesNs, significant(math.Pow(10, firstDecade+float64(r)/rowsPerDecade), 6))
	}
	for _, col := range counts {
		out.Counts = append(out.Counts, slices.Clone(col[low:high+1]))
	}
	return out
}

// courseQuantiles are those that comparisons give intervals of.
var courseQuantiles = []float64{0.5, 0.9, 0.99, 0.999}

// overTime is how the operations of one kind lie in time, nil when there were none. It counts above the end of a
// percentile's bucket, or above its beginning when nothing lies beyond; when everything lies in that bucket, the
// percentile is left out.
func (h *heat) overTime(op int) *result.OverTime {
	whole := &hist.Histogram{}
	for _, one := range h.columns[op] {
		if one != nil {
			whole.Merge(one)
		}
	}
	if whole.Count() == 0 {
		return nil
	}
	out := &result.OverTime{Start: h.grid.start, Step: h.grid.step.Seconds(), Counts: make([]uint64, h.grid.n)}
	for _, q := range courseQuantiles {
		v, _ := whole.Quantile(q)
		low, above := hist.Bounds(hist.Index(v))
		if whole.CountAbove(above) == 0 {
			above = max(low, 1) - 1
		}
		if n := whole.CountAbove(above); n > 0 && n < whole.Count() {
			out.Slower = append(out.Slower, result.Slower{Quantile: q, AboveNs: above,
				Counts: make([]uint64, h.grid.n)})
		}
	}
	for at, one := range h.columns[op] {
		if one == nil {
			continue
		}
		out.Counts[at] = one.Count()
		for _, s := range out.Slower {
			s.Counts[at] = one.CountAbove(s.AboveNs)
		}
	}
	return out
}

// addOps adds counts and histograms by operation to a list that holds those that occurred.
func addOps(l tally.Layout, list []result.OpTotals, v tally.Totals, hists []*hist.Histogram) []result.OpTotals {
	for i, op := range l.Operations {
		if v.Ops(i) == 0 && v.Bytes(i) == 0 {
			continue
		}
		at := slices.IndexFunc(list, func(o result.OpTotals) bool { return o.Op == op.Name })
		if at < 0 {
			list = append(list, result.OpTotals{Op: op.Name})
			at = len(list) - 1
		}
		o := &list[at]
		o.Count += uint64(v.Ops(i))
		o.Bytes += uint64(v.Bytes(i))
		o.Seconds += v.Seconds(i)
		if hists != nil && hists[i] != nil {
			if o.Hist == nil {
				o.Hist = &hist.Histogram{}
			}
			o.Hist.Merge(hists[i])
		}
	}
	return list
}
