package neighbour

import (
	"strings"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// t0 is when the windows of these tests begin.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// What a table hides for want of operations is in no sentence either.
func TestPercentilesOfAHandful(t *testing.T) {
	window := func(name string, from int, reads, writes uint64) result.Window {
		at := t0.Add(time.Duration(from) * time.Second)
		w := result.Window{Name: name, Start: at, End: at.Add(100 * time.Second)}
		for _, o := range []struct {
			op      string
			n, each uint64
		}{{"read", reads, 1e6}, {"write", writes, uint64(1e6 * (1 + from))}} {
			if o.n > 0 {
				h := &hist.Histogram{}
				h.Add(o.each, o.n)
				w.Ops = append(w.Ops, result.OpTotals{Op: o.op, Count: o.n, Seconds: float64(o.n*o.each) / 1e9, Hist: h})
			}
		}
		return w
	}
	for _, c := range []struct {
		reads, writes uint64
		want          string
	}{{50_000, 1, "reads"}, {50_000, 99, "reads"}, {50_000, 100, "writes"}, {99, 1, ""}, {1, 1, ""}} {
		l := &view.Load{Name: "W", Parts: []*result.Workload{{Operations: result.BlockOperations()}}}
		p := pair{l: l, latency: "service time", first: partsOf([]result.Window{window("alone", 0, c.reads, c.writes)})[0],
			later: partsOf([]result.Window{window("with N", 100, c.reads, c.writes)})[0]}
		told, _, _, _ := p.tail()
		if got := strings.Contains(told, "its "+c.want) && c.want != ""; got != (told != "") || got != (c.want != "") {
			t.Errorf("%d reads and %d writes: %q, want it of %q", c.reads, c.writes, told, c.want)
		}
	}
}
