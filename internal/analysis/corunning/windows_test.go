package corunning

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
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
				w.Ops = append(w.Ops,
					result.OpTotals{Op: o.op, Count: o.n, Seconds: float64(o.n*o.each) / 1e9, Hist: h})
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
			first:   parted(window("alone", 0, c.reads, c.writes))[0],
			later:   parted(window("with N", 100, c.reads, c.writes))[0],
		}
		told, _, _, _ := p.tail()
		if got := strings.HasPrefix(told, c.want+" ") && c.want != ""; got != (told != "") || got != (c.want != "") {
			t.Errorf("%d reads and %d writes: %q, want it of %q", c.reads, c.writes, told, c.want)
		}
	}
}

// parted are the parts of windows in a run without faults.
func parted(windows ...result.Window) []part {
	v := view.New(result.Manifest{}, &result.Data{})
	return partsOf(windows, v.ConditionsOf(nil, windows))
}

// TestCounterparts: each part is compared with one from which it differs in one thing, where there is one; the
// yardstick is the first of those with the fewest faults. Conditions are letters, of faults f and g.
func TestCounterparts(t *testing.T) {
	for name, c := range map[string]struct {
		parts []string
		want  []string // the later part < its counterpart, and what changed when more than one thing did
	}{
		"a neighbour comes and goes":   {[]string{"", "A", ""}, []string{"1<0", "2<0"}},
		"a fault after a neighbour":    {[]string{"", "A", "Af", "A"}, []string{"1<0", "2<1", "3<0"}},
		"both at once, the fault goes": {[]string{"", "Af", "A"}, []string{"1<2", "2<0"}},
		"both at once, both stay":      {[]string{"", "Af"}, []string{"1<0: A ran and \"f\" was in force"}},
		"both at once, both go":        {[]string{"", "Af", ""}, []string{"1<0: A ran and \"f\" was in force", "2<0"}},
		"one comes as another goes":    {[]string{"A", "B"}, []string{"1<0: B ran and A did not run"}},
		"and alone is known":           {[]string{"", "A", "B"}, []string{"1<0", "2<0"}},
		"begins under a fault":         {[]string{"f", "", "f"}, []string{"0<1", "2<1"}},
		"faults overlap":               {[]string{"", "f", "fg", "g", ""}, []string{"1<0", "2<1", "3<0", "4<0"}},
		"faults begin together": {[]string{"", "fg"},
			[]string{"1<0: \"f\" was in force and \"g\" was in force"}},
		"two come, one goes":            {[]string{"", "AB", "A"}, []string{"1<2", "2<0"}},
		"two and a fault, which goes":   {[]string{"", "ABf", "AB"}, []string{"1<2"}},
		"two faults come and none goes": {[]string{"", "fg", "fg"}, []string{"2<1"}},
	} {
		var parts []part
		for _, letters := range c.parts {
			p := part{}
			for _, r := range letters {
				if r >= 'a' {
					p.conditions.Faults = append(p.conditions.Faults, fmt.Sprintf("%q", string(r)))
				} else {
					p.conditions.Beside = append(p.conditions.Beside, string(r))
				}
			}
			parts = append(parts, p)
		}
		var got []string
		for _, k := range counterparts(parts, 0) {
			said := fmt.Sprintf("%d<%d", k.later, k.first)
			if len(k.changes) > 1 {
				said += ": " + view.Listed(k.changes)
			}
			got = append(got, said)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// What an end of a window holds of a fault, up to 5 % of it, makes it no window of that fault: the crash, not what was
// before it, is what changed.
func TestEdgesOfFaults(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	v := view.New(result.Manifest{}, &result.Data{Start: t0, Events: []result.Mark{
		{Kind: result.KindFault, State: result.FaultBegins, Text: "slow", Node: "n", Time: at(98)},
		{Kind: result.KindFault, State: result.FaultOver, Text: "fast", Node: "n", Time: at(152)}}})
	window := func(after string, from, to int) result.Window {
		c := result.Circumstances{After: after}
		return result.Window{Name: c.Name(), Circumstances: c, Start: at(from), End: at(to)}
	}
	windows := []result.Window{window("", 0, 100), window("slow", 100, 150), window("fast", 150, 250)}
	parts := partsOf(windows, v.ConditionsOf(&view.Load{}, windows))
	var got []string
	for _, k := range counterparts(parts, 0) {
		was, is := whenever(parts[k.first], parts[k.later])
		got = append(got, was+" | "+is)
	}
	want := []string{`at the start | after "slow"`, `at the start | after "fast"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for better, want := range map[bool]bool{true: true, false: false} { // what got better is not the fault's doing
		p := pair{l: &view.Load{}, first: parts[0], later: parts[1]}
		if p.gained(better); (p.lasts != "") != want {
			t.Errorf("better %v: %q", better, p.lasts)
		}
	}
	if edges := parts[0].conditions.Edge; len(edges) != 1 || len(parts[0].conditions.Faults) != 0 {
		t.Errorf("%+v: the first 2 s of the fault are at its end", parts[0].conditions)
	}
}

// Names of workloads and texts of annotations that look like parts of a window's name are not taken for these: windows
// are joined, and told apart, by who ran beside.
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
	for _, p := range parted(windows(result.Circumstances{}, beside("DB"), beside("DB (2)"), again,
		result.Circumstances{Again: 2})...) {
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
		w := parted(windows(c.first, c.later)...)
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
	if n := len(parted(all...)); n != len(all) {
		t.Errorf("%d parts of %d windows", n, len(all))
	}
	if was, is := whenever(parted(all...)[0], parted(all...)[1]); was != "a" || is != "a (2)" {
		t.Errorf("%q and %q", was, is)
	}
}

// TestFaultOnSeveralNodesAtOnce: what began on two nodes at one moment is not told as that of the first alone.
func TestFaultOnSeveralNodesAtOnce(t *testing.T) {
	t.Parallel()
	const hangs = "storage of node-2 hangs"
	later := part{Window: result.Window{Circumstances: result.Circumstances{After: hangs}},
		conditions: view.Conditions{OfFault: true, Faults: []string{`"` + hangs + `" and 1 more`}}}
	if _, is := whenever(part{opening: true}, later); is != `alone, under "`+hangs+`" and 1 more` {
		t.Error(is)
	}
	later.conditions.Faults = []string{`"` + hangs + `"`}
	if was, is := whenever(part{opening: true}, later); was != "at the start" || is != `after "`+hangs+`"` {
		t.Error(was, is)
	}
}

// A rate that wanders over a time too short for blocks of points has no interval: one from its count would be a tenth
// of what it wanders. A count that varies by chance alone has one.
func TestShortAndWandering(t *testing.T) {
	t.Parallel()
	for swing, interval := range map[float64]bool{0: true, 0.25: false} {
		s := reporttest.NewSynthetic(3700, 72, 2)
		s.Load(reporttest.Load{Name: "A", To: 72, Noise: 0.001, Cuts: []reporttest.Cut{{At: 36, Name: "alone"},
			{At: 72, Name: "with B"}}, Rate: func(t int) float64 {
			if t < 36 {
				return 4000
			}
			return 450 * (1 + swing*math.Sin(float64(t-36)/6))
		}})
		s.Load(reporttest.Load{Name: "B", From: 36, To: 72, Noise: 0.02, Rate: func(int) float64 { return 100 }})
		told := 0
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Check != "windows" || f.Subject != "A" {
				continue
			}
			told++
			if (f.Low != nil) != interval || (f.NoInterval == "") != interval || f.Severity != result.Info {
				t.Errorf("swing %v: interval %v, %q, %s: %s", swing, f.Low != nil, f.NoInterval, f.Severity, f.Sentence)
			}
		}
		if told != 1 {
			t.Errorf("swing %v: told %d times", swing, told)
		}
	}
}

// Whether a rate was met in too short a time to tell is said as that, beside the phase in which it can be told.
func TestRateOfAShortPhase(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(1, 300, 1)
	s.Load(reporttest.Load{Name: "A", To: 300, Offered: 20, Rate: func(int) float64 { return 20 }})
	v := view.New(s.Manifest, s.Data)
	p := &pair{v: v, l: v.Loads[0], was: "alone", is: "with B", first: part{seconds: 200}, later: part{seconds: 2}}
	for _, c := range []struct {
		first, later uint64
		want         string
	}{
		{4000, 40, " Target rate 20: met both times."},
		{4000, 36, " Target rate 20: met alone; with B 90 % of it, in too short a time to tell whether it was met."},
	} {
		if got := p.kept(c.first, c.later); got != c.want {
			t.Errorf("%d, %d: %q, want %q", c.first, c.later, got, c.want)
		}
	}
}

// Two times of one name under one fault are told apart by what was marked between them.
func TestSidesOfOneName(t *testing.T) {
	c := view.Conditions{Faults: []string{`"off"`}, OfFault: true}
	side := func(after string) part {
		o := result.Circumstances{After: after}
		return part{Window: result.Window{Name: o.Name(), Circumstances: o}, conditions: c}
	}
	if was, is := whenever(side("back"), side("rebuilt")); was == is || !strings.Contains(is, `after "rebuilt"`) {
		t.Errorf("%s | %s", was, is)
	}
}

// What is left of a load may be faster for the VMs that a fault took.
func TestFewerVMsMayBeFaster(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	l := &view.Load{Parts: []*result.Workload{{End: at(100)}, {End: at(50), Ended: result.Lost}}}
	p := pair{l: l, first: part{}, later: part{conditions: view.Conditions{Faults: []string{"crash"}, OfFault: true}}}
	p.first.Start, p.first.End, p.later.Start, p.later.End = at(0), at(50).Add(-1), at(51), at(100)
	if p.gained(true); strings.Contains(p.lasts, "no fault") || !strings.Contains(p.lasts, "fewer VMs") {
		t.Errorf("%q", p.lasts)
	}
}
