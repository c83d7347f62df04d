package neighbour

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
				w.Ops = append(
					w.Ops,
					result.OpTotals{Op: o.op, Count: o.n, Seconds: float64(o.n*o.each) / 1e9, Hist: h},
				)
			}
		}
		return w
	}
	for _, c := range []struct {
		reads, writes uint64
		want          string
	}{{50_000, 1, "read"}, {50_000, 99, "read"}, {50_000, 100, "write"}, {99, 1, ""}, {1, 1, ""}} {
		l := &view.Load{Name: "W", Parts: []*result.Workload{{Operations: result.BlockOperations()}}}
		p := pair{
			l:       l,
			latency: "service time",
			first:   partsOf([]result.Window{window("alone", 0, c.reads, c.writes)})[0],
			later:   partsOf([]result.Window{window("with N", 100, c.reads, c.writes)})[0],
		}
		told, _, _, _ := p.tail()
		if got := strings.HasPrefix(told, c.want+" ") && c.want != ""; got != (told != "") || got != (c.want != "") {
			t.Errorf("%d reads and %d writes: %q, want it of %q", c.reads, c.writes, told, c.want)
		}
	}
}

// Names of workloads and texts of annotations that look like parts of a window's name are not taken for these: windows
// are
// joined, and told apart, by who ran beside.
func TestNamesThatLookLikeWindows(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	windows := func(all ...result.Circumstances) (out []result.Window) {
		for i, c := range all {
			out = append(out, result.Window{Name: c.Name(), Circumstances: c, Start: at(10 * i), End: at(10*i + 10)})
		}
		return out
	}
	beside := func(names ...string) result.Circumstances { return result.Circumstances{Beside: names} }
	again := beside("DB")
	again.Again = 2
	var names []string
	for _, p := range partsOf(windows(result.Circumstances{}, beside("DB"), beside("DB (2)"), again,
		result.Circumstances{Again: 2})) {
		names = append(names, p.Name+": "+time.Duration(p.seconds*float64(time.Second)).String())
	}
	if diff := cmp.Diff([]string{"alone: 20s", "with DB: 20s", "with DB (2): 10s"}, names); diff != "" {
		t.Error(diff)
	}
	lunch := result.Circumstances{After: "lunch, after a while", Again: 2}
	for _, c := range []struct {
		first, later result.Circumstances
		was, is      string
	}{
		{result.Circumstances{}, result.Circumstances{Again: 2}, "alone", "alone again"},
		{result.Circumstances{}, beside("A and B and C and D"), "alone", "with A and B and C and D"},
		{result.Circumstances{}, beside("A", "B", "C", "D"), "alone", "with A, B, C and 1 more"},
		{result.Circumstances{}, lunch, "at the start", `after "lunch, after a while" (2)`},
		{beside("A"), lunch, "with A", `alone, after "lunch, after a while" (2)`},
		{beside(`A, after "x"`), beside(`A, after "x"`, "B"), `with A, after "x"`, `with A, after "x" and B`},
	} {
		w := windows(c.first, c.later)
		if was, is := whenever(w[0], w[1]); was != c.was || is != c.is {
			t.Errorf("%+v and %+v are %q and %q, want %q and %q", c.first, c.later, was, is, c.was, c.is)
		}
	}
}

// Windows that do not say who ran beside, as other programs may write, are called what they are called and are never
// joined.
func TestWindowsOfOthers(t *testing.T) {
	var all []result.Window
	for i, name := range []string{"a", "a (2)", "b", "b (2)", "c"} {
		all = append(all, result.Window{Name: name, Start: t0.Add(time.Duration(i) * time.Minute),
			End: t0.Add(time.Duration(i+1) * time.Minute)})
	}
	if n := len(partsOf(all)); n != len(all) {
		t.Errorf("%d parts of %d windows", n, len(all))
	}
	if was, is := whenever(all[0], all[1]); was != "a" || is != "a (2)" {
		t.Errorf("%q and %q", was, is)
	}
}
