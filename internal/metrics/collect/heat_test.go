package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/result"
)

// TestOverTime: operations are counted above the bucket of each percentile; above its beginning when nothing lies
// beyond, and not at all when everything is in one bucket.
func TestOverTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := newHeat(grid{start: start, step: 5 * time.Second, n: 3}, 3)
	add := func(column, op int, latencies ...uint64) {
		hists := make([]*hist.Histogram, 3)
		hists[op] = &hist.Histogram{}
		for _, ns := range latencies {
			hists[op].Add(ns, 1)
		}
		h.spread(h.grid.edge(column), h.grid.edge(column+1), hists)
	}
	add(0, 0, 10, 20, 20, 90)
	add(2, 0, 10, 20)
	add(7, 0, 90, 90) // after the last column
	add(1, 1, 50, 50)
	if diff := cmp.Diff(&result.OverTime{Start: start, Step: 5, Counts: []uint64{4, 0, 4}, Slower: []result.Slower{
		{Quantile: 0.5, AboveNs: 20, Counts: []uint64{1, 0, 2}},
		{Quantile: 0.9, AboveNs: 89, Counts: []uint64{1, 0, 2}},
		{Quantile: 0.99, AboveNs: 89, Counts: []uint64{1, 0, 2}},
		{Quantile: 0.999, AboveNs: 89, Counts: []uint64{1, 0, 2}},
	}}, h.overTime(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&result.OverTime{Start: start, Step: 5, Counts: []uint64{0, 2, 0}}, h.overTime(1)); diff != "" {
		t.Error(diff)
	}
	if c := h.overTime(2); c != nil {
		t.Errorf("a course of nothing: %+v", c)
	}
}

// A report that was late fills the columns that it is of, and no operation is lost or made.
func TestHeatOfLateReports(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   []float64 // of reports, in seconds
		ops  []uint64  // at each latency in each report
		want []uint64
	}{
		{[]float64{1, 2, 4, 5, 6}, []uint64{100, 100, 200, 100, 100}, []uint64{200, 200, 200, 200, 200, 200}},
		{[]float64{1.01, 3.1, 4.02, 6}, []uint64{101, 209, 92, 198}, []uint64{202, 199, 199, 204, 198, 198}},
		{[]float64{0.4, 1.4, 3.5, 4.4, 5.4}, []uint64{40, 100, 210, 90, 100}, []uint64{200, 200, 200, 200, 200, 80}},
		{[]float64{2, 6}, []uint64{1, 3}, []uint64{1, 1, 2, 2, 1, 1}},
		{[]float64{6, 9}, []uint64{6, 3}, []uint64{2, 2, 2, 2, 2, 8}}, // beyond the end: in the last column
	} {
		h := newHeat(grid{start: start, step: time.Second, n: 6}, 1)
		from := start
		for i, s := range c.at {
			one := &hist.Histogram{}
			one.Add(1000, c.ops[i])
			one.Add(5000, c.ops[i])
			to := start.Add(time.Duration(s * float64(time.Second)))
			h.spread(from, to, []*hist.Histogram{one})
			from = to
		}
		if diff := cmp.Diff(c.want, h.overTime(0).Counts); diff != "" {
			t.Errorf("%v: %s", c.at, diff)
		}
	}
}
