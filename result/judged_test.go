package result

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
)

// judgedRun is a workload of which the two windows in the middle count.
func judgedRun() Workload {
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	ops := func(n uint64) []OpTotals {
		h := &hist.Histogram{}
		h.Add(1000, n)
		return []OpTotals{{Op: "read", Count: n, Seconds: float64(n) * 1e-6, Hist: h}}
	}
	return Workload{Name: "W", Start: at(0), End: at(50), Ops: ops(700),
		Measures: []Measure{{Name: "n", Kind: Count}, {Name: "tps", Kind: Level}, {Name: "p95", Kind: Single}},
		Windows: []Window{
			{Name: "while its VMs start", Start: at(0), End: at(10), Ops: ops(100), Partial: true},
			{
				Name:   "alone",
				Start:  at(10),
				End:    at(20),
				Ops:    ops(200),
				Values: []Value{{"n", 5}, {"tps", 10}, {"p95", 1}},
			},
			{
				Name:   "with N",
				Start:  at(20),
				End:    at(40),
				Ops:    ops(300),
				Values: []Value{{"n", 6}, {"tps", 40}, {"p95", 2}},
			},
			{Name: "while its VMs end", Start: at(40), End: at(50), Ops: ops(100), Partial: true},
		}}
}

// Data collected before the time by which a workload is judged was kept are judged by the windows in which all VMs
// worked, so that they compare with data of today.
func TestJudgedByWindows(t *testing.T) {
	d := Data{Workloads: []Workload{judgedRun()}}
	d.judgeByWindows()
	w := d.Workloads[0].Judged()
	h := &hist.Histogram{}
	h.Add(1000, 500)
	want := []OpTotals{{Op: "read", Count: 500, Seconds: 500e-6, Hist: h}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, w.Ops, cmp.Comparer((*hist.Histogram).Equal), near); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Value{{"n", 11}, {"tps", 30}}, w.Values, near); diff != "" || w.Seconds() != 30 {
		t.Errorf("%g s: %s", w.Seconds(), diff)
	}
	d.Workloads[0] = judgedRun()
	d.Workloads[0].Windows[2].Values = nil
	d.judgeByWindows()
	if diff := cmp.Diff([]Value{{"tps", 10}}, d.Workloads[0].Judged().Values, near); diff != "" {
		t.Errorf("of measures that one window lacks: %s", diff)
	}
	if first := d.Workloads[0].Windows[1].Ops[0].Hist.Count(); first != 200 {
		t.Errorf("the window itself now has %d operations", first)
	}
}

// The words for what is left out, and the length without pauses.
func TestPartOfTheTime(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	one, two := []Span{{Start: at(10), End: at(30)}}, []Span{{Start: at(0), End: at(5)}, {Start: at(10), End: at(30)}}
	for _, c := range []struct {
		w       Workload
		words   string
		seconds float64
	}{
		{Workload{}, "", 50},
		{Workload{Spans: one, Staggered: true}, "while all its VMs ran", 20},
		{Workload{Spans: one, Staggered: true, Ended: "lost"}, "while all its VMs were to run", 20},
		{Workload{Spans: two, Starts: 2}, "without the pauses between its starts", 25},
		{Workload{Spans: two, Starts: 2, VM: "vm", Ended: "lost"}, "without the pauses between its starts", 25},
		{Workload{Spans: two, Starts: 2, Staggered: true}, "while all its VMs ran, without the pauses between its starts",
			25},
	} {
		c.w.Start, c.w.End = at(0), at(50)
		if c.w.Part() != c.words || c.w.Seconds() != c.seconds {
			t.Errorf("%q, %g s; want %q, %g", c.w.Part(), c.w.Seconds(), c.words, c.seconds)
		}
	}
}
