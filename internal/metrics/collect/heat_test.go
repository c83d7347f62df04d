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
		h.add(column, hists)
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
