package fio

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reads is an entry of a report that read for a time, from a moment on, both in milliseconds.
func reads(name string, group, start, ms uint64) entry {
	e := entry{name: name, group: group, startMS: start}
	e.dirs[0].runtimeMS = ms
	return e
}

// TestStages holds which entries of a report ran together: what begins as an earlier one ends is a stage of its own.
func TestStages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs []entry
		want [][]int
	}{
		"together":               {[]entry{reads("a", 0, 100, 1000), reads("b", 0, 100, 1000)}, [][]int{{0, 1}}},
		"one after other":        {[]entry{reads("b", 0, 2100, 1000), reads("a", 0, 100, 2000)}, [][]int{{1}, {0}}},
		"a little sooner":        {[]entry{reads("a", 0, 100, 2000), reads("b", 0, 2000, 1000)}, [][]int{{0}, {1}}},
		"well before":            {[]entry{reads("a", 0, 100, 2000), reads("b", 0, 1999, 1000)}, [][]int{{0, 1}}},
		"a long one much before": {[]entry{reads("a", 0, 100, 10_000), reads("b", 0, 9849, 9000)}, [][]int{{0, 1}}},
		"a long one just before": {[]entry{reads("a", 0, 100, 10_000), reads("b", 0, 9850, 9000)}, [][]int{{0}, {1}}},
		"the longest of a stage counts": {[]entry{reads("a", 0, 100, 5000), reads("b", 0, 200, 100),
			reads("c", 0, 300, 100)}, [][]int{{0, 1, 2}}},
		"groups in their order": {[]entry{reads("a", 7, 100, 1000), reads("b", 3, 100, 1000), reads("c", 7, 100, 1000)},
			[][]int{{0, 2}, {1}}},
	} {
		if diff := cmp.Diff(c.want, (&document{jobs: c.jobs}).stages()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestStaggered holds from which part of their time on entries are said to have begun one after another.
func TestStaggered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs []entry
		want time.Duration
	}{
		"one":               {jobs: []entry{reads("a", 0, 500, 1000)}},
		"under a hundredth": {jobs: []entry{reads("a", 0, 100, 1000), reads("b", 0, 109, 900)}},
		"a hundredth":       {[]entry{reads("a", 0, 110, 1000), reads("b", 0, 100, 900)}, 10 * time.Millisecond},
		"of the three furthest": {[]entry{reads("a", 0, 200, 900), reads("b", 0, 100, 900), reads("c", 0, 350, 900)},
			250 * time.Millisecond},
	} {
		entries := make([]int, len(c.jobs))
		for i := range entries {
			entries[i] = i
		}
		if got := (&document{jobs: c.jobs}).staggered(entries); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestLengths holds when reads, writes and trims of entries stand by themselves.
func TestLengths(t *testing.T) {
	t.Parallel()
	times := func(r, w, d uint64) (e entry) {
		e.dirs[0].runtimeMS, e.dirs[1].runtimeMS, e.dirs[2].runtimeMS = r, w, d
		return e
	}
	for name, c := range map[string]struct {
		e    entry
		want []int
	}{
		"alike": {times(1000, 1000, 0), []int{0}}, "nearly": {times(1000, 950, 0), []int{0}},
		"unlike": {times(1000, 949, 0), []int{1, 2}}, "short ones": {times(10, 5, 0), []int{0}},
		"shorter ones": {times(11, 5, 0), []int{1, 2}}, "reads alone": {times(1000, 0, 0), []int{0}},
		"all three": {times(100, 1000, 1000), []int{1, 2, 3}}, "trims and writes": {times(0, 500, 1000), []int{2, 3}},
		"nothing": {times(0, 0, 0), []int{0}},
	} {
		if diff := cmp.Diff(c.want, (&document{jobs: []entry{c.e}}).lengths([]int{0})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPartName holds what people call a part, and the sizes of its blocks.
func TestPartName(t *testing.T) {
	t.Parallel()
	got := []string{Part{Jobs: []string{"b", "a", "b"}}.Name(), Part{Jobs: []string{"b"}, Only: "writes"}.Name(),
		Part{Only: "reads"}.Name(), BlockSize(true, false, 4096, 8192), BlockSize(false, true, 4096, 8192),
		BlockSize(true, true, 4096, 8192), BlockSize(true, true, 4096, 4096)}
	want := []string{"a, b", "b writes", "reads", "4096 bytes", "8192 bytes", "4096 bytes read, 8192 written",
		"4096 bytes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
