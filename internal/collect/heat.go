package collect

import (
	"math"
	"slices"
	"sync"

	"plimsoll/hist"
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

// heat counts operations of one workload by time and latency.
type heat struct {
	grid   grid
	mu     sync.Mutex
	counts [][heatRows]uint64
}

func newHeat(g grid) *heat { return &heat{grid: g, counts: make([][heatRows]uint64, g.n)} }

func (h *heat) add(column int, hists [3]*hist.Histogram) {
	column = min(max(column, 0), h.grid.n-1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range hists {
		if one == nil {
			continue
		}
		for i, n := range one.All() {
			h.counts[column][rowOf[i]] += n
		}
	}
}

// result keeps the rows in use; nil when nothing was counted.
func (h *heat) result() *result.HeatMap {
	low, high := heatRows, -1
	for _, col := range h.counts {
		for r, n := range col {
			if n > 0 {
				low, high = min(low, r), max(high, r)
			}
		}
	}
	if high < low {
		return nil
	}
	out := &result.HeatMap{Start: h.grid.start, Step: h.grid.step.Seconds()}
	for r := low; r <= high+1; r++ {
		out.EdgesNs = append(out.EdgesNs, significant(math.Pow(10, firstDecade+float64(r)/rowsPerDecade), 6))
	}
	for _, col := range h.counts {
		out.Counts = append(out.Counts, slices.Clone(col[low:high+1]))
	}
	return out
}

// addOps adds counts and histograms of the three operations to a list that holds those that occurred.
func addOps(list []result.OpTotals, v totals, hists [3]*hist.Histogram) []result.OpTotals {
	for i, name := range opNames {
		if v.ops[i] == 0 && v.bytes[i] == 0 {
			continue
		}
		at := slices.IndexFunc(list, func(o result.OpTotals) bool { return o.Op == name })
		if at < 0 {
			list = append(list, result.OpTotals{Op: name})
			at = len(list) - 1
		}
		o := &list[at]
		o.Count += uint64(v.ops[i])
		o.Bytes += uint64(v.bytes[i])
		o.Seconds += v.seconds[i]
		if hists[i] != nil {
			if o.Hist == nil {
				o.Hist = &hist.Histogram{}
			}
			o.Hist.Merge(hists[i])
		}
	}
	return list
}
