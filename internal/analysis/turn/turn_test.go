package turn

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// What two workloads differ by is not laid at the door of what they declare where one of them moved by itself: data
// that came to a faster tier while it ran, or a tier that was full.
func TestMovesByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, later func(at int) float64
		want         string
	}{
		"both hold still": {func(int) float64 { return 3000 }, func(int) float64 { return 5000 }, ""},
		"data come to a faster tier while the first runs": {
			func(at int) float64 { return min(5000, 500+30*float64(at)) }, func(int) float64 { return 5000 },
			"; Uniform itself went from "},
		"the tier is full while the later runs": {func(int) float64 { return 5000 }, func(at int) float64 {
			if at > 100 {
				return 1500
			}
			return 5000
		}, "; Zipf itself went from "},
		"both moved, by far less than they differ": {func(at int) float64 { return 1000 + 0.3*float64(at) },
			func(int) float64 { return 5000 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reporttest.NewSynthetic(3500, 420, 1)
			s.Load(reporttest.Load{Name: "Uniform", Group: "A", To: 200, Noise: 0.02, Random: 1, Rate: c.first})
			s.Load(reporttest.Load{Name: "Zipf", Group: "A", From: 220, To: 420, Noise: 0.02, Random: 1,
				Skew: result.Skew{Kind: result.Zipf, Value: 1.2},
				Rate: func(at int) float64 { return c.later(at - 220) }})
			var got []string
			for _, f := range inTurn(view.New(s.Manifest, s.Data)) {
				got = append(got, f.Sentence)
				if (f.Harm == nil) != (c.want != "") {
					t.Errorf("weight %v: %s", f.Weight(), f.Sentence)
				}
			}
			if len(got) != 1 || !strings.Contains(got[0], "With access distribution zipf:1.2 instead of uniform, Zipf did ") ||
				!strings.Contains(got[0], c.want) || strings.Contains(got[0], "itself") != (c.want != "") {
				t.Errorf("%q, want it to say %q", got, c.want)
			}
		})
	}
}

// A load has one rate on a page: VMs that begin and end at moments a little apart are counted over the time from the
// first that began to the last that ended, as the tables do.
func TestOneRate(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(1, 420, 2)
	for _, l := range []reporttest.Load{{Name: "Reads", From: 0, To: 200},
		{Name: "Writes", From: 220, To: 420, Writes: 1}} {
		l.Group, l.VMs, l.Spread, l.Rate = "A", 2, true, func(int) float64 { return 3000 }
		s.Load(l)
	}
	for i := range s.Data.Workloads { // each VM has its own 190 s
		switch w := &s.Data.Workloads[i]; w.VM {
		case "A_0000":
			w.End = w.End.Add(-10 * time.Second)
		case "A_0001":
			w.Start = w.Start.Add(10 * time.Second)
		}
	}
	v := view.New(s.Manifest, s.Data)
	for i, l := range v.Loads {
		if w := l.Whole(); l.Completed() == 0 || l.Longest() != w.Seconds() {
			t.Errorf("%d: judged by %v s, the table has %v s", i, l.Longest(), w.Seconds())
		}
	}
	got := inTurn(v)
	if len(got) != 1 || !strings.HasPrefix(got[0].Sentence,
		"With share of reads 0 % instead of 100 %, Writes did 3,000 IOPS against 3,000 of Reads: ") {
		t.Errorf("%v", got)
	}
}

// TestOptions: what only the tool's own options say is a difference like any other.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, later string
		writes       float64
		want         string
	}{
		"nothing else": {"ioengine=libaio", "ioengine=libaio", 1,
			"With share of reads 0 % instead of 100 %, Writes did "},
		"an option, too": {"ioengine=libaio", "ioengine=libaio, fsync=1", 1,
			"they differ in several things, share of reads and options"},
		"options alone": {"fsync=1, ioengine=sync", "fsync=1, ioengine=libaio, nice=3", 0,
			"With options ioengine=libaio nice=3 instead of ioengine=sync, Writes did "},
		"none before": {"", "fsync=1", 0, "With options fsync=1 instead of none, Writes did "},
	} {
		s := reporttest.NewSynthetic(1, 420, 1)
		s.Load(reporttest.Load{Name: "Reads", Group: "A", To: 200, Rate: func(int) float64 { return 3000 }})
		s.Load(reporttest.Load{Name: "Writes", Group: "A", From: 220, To: 420, Writes: c.writes,
			Rate: func(int) float64 { return 4000 }})
		for _, w := range s.Data.Workloads {
			for j := range w.Streams {
				w.Streams[j].Also = map[string]string{"Reads": c.first, "Writes": c.later}[w.Name]
			}
		}
		got := inTurn(view.New(s.Manifest, s.Data))
		if len(got) != 1 || !strings.Contains(got[0].Sentence, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
