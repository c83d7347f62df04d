package corunning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

func flat(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// told are the sentences about a workload of a run.
func told(s *reporttest.Synthetic, subject string) (changes, all []string) {
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if f.Subject != subject {
			continue
		}
		all = append(all, f.Sentence)
		if f.Severity != result.Passed {
			changes = append(changes, f.Sentence)
		}
	}
	return changes, all
}

// A phase of one report is no phase: which moment its rate is of is left to chance.
func TestShortPhasesAreNotCompared(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3401, 301, 2)
	s.Load(reporttest.Load{Name: "A", To: 301, Noise: 0.02, Rate: func(t int) float64 {
		if t >= 300 {
			return 900
		}
		return 6000
	}, Cuts: []reporttest.Cut{{At: 150, Name: "alone"}, {At: 300, Name: "with B"}, {At: 301, Name: "with C"}}})
	s.Load(reporttest.Load{Name: "B", From: 150, To: 300, Noise: 0.02, Rate: flat(100)})
	changes, all := told(s, "A")
	if len(changes) > 0 || len(all) == 0 || strings.Contains(strings.Join(all, " "), "with C") {
		t.Errorf("%q of %q", changes, all)
	}
}

// Where no two phases are long enough to be compared, what was done in them is told without a verdict; where two loads
// only start a moment apart nothing is.
func TestOnlyShortPhases(t *testing.T) {
	t.Parallel()
	for at, want := range map[int]string{3: `A: 6,000 IOPS alone, 4,000 with B; whether that is a change cannot be told, ` +
		"in so short a time.", 1: ""} {
		length := map[int]int{3: 6, 1: 60}[at]
		s := reporttest.NewSynthetic(3410, 60, 5)
		s.Load(reporttest.Load{Name: "A", To: length, Rate: func(t int) float64 {
			if t >= at {
				return 4000
			}
			return 6000
		}, Cuts: []reporttest.Cut{{At: at, Name: "alone"}, {At: length, Name: "with B"}}})
		s.Load(reporttest.Load{Name: "B", Node: 1, From: at, To: length, Rate: flat(100)})
		for i := range s.Data.Series {
			s.Data.Series[i].Step = 5
		}
		_, all := told(s, "A")
		if got := strings.Join(all, " "); got != want {
			t.Errorf("cut at %d: %q, want %q", at, got, want)
		}
	}
}

// A neighbour of which some VMs had ended is not the same neighbour.
func TestFewerVMs(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3402, 600, 2)
	s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
		if t >= 300 {
			return 8000
		}
		return 6000
	}, Cuts: []reporttest.Cut{{At: 300, Name: "with B"}, {At: 600, Name: "with B and C"}}})
	s.Load(reporttest.Load{Name: "B", VMs: 2, To: 600, Noise: 0.02, Rate: flat(800)})
	s.Load(reporttest.Load{Name: "C", From: 300, To: 600, Noise: 0.02, Rate: flat(10)})
	for i := range s.Data.Workloads {
		w := &s.Data.Workloads[i]
		if w.Name == "A" {
			for k := range w.Windows {
				w.Windows[k].Beside = [][]string{{"B"}, {"B", "C"}}[k]
			}
		}
		if w.Name == "B" && strings.HasSuffix(w.VM, "1") {
			w.End = w.Start.Add(w.End.Sub(w.Start) / 2)
		}
	}
	changes, all := told(s, "A")
	if len(changes) == 0 || !strings.Contains(changes[0], "fewer VMs of B ran") {
		t.Errorf("%q of %q", changes, all)
	}
}

// What a latency did before the neighbour came is not the neighbour's.
func TestDriftWithinThePhaseBefore(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3403, 600, 2)
	s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Offered: 4000, Rate: flat(4000),
		Seconds: func(t int) float64 { return 3e-4 + 3e-3*max(0, 1-float64(t)/250) },
		Cuts:    []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with B"}}})
	s.Load(reporttest.Load{Name: "B", Node: 1, From: 300, To: 600, Noise: 0.02, Rate: flat(100)})
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if f.Subject == "A" && (f.Weight() > 0 || f.Severity != result.Passed &&
			!strings.Contains(f.Sentence, "drift")) {
			t.Errorf("weight %v: %s", f.Weight(), f.Sentence)
		}
	}
}

// A latency that rises all the time, as of fresh disks, owes that to no fault after which it rose on, though the time
// before the fault is too short to show it. One that is another after the fault, and stays so, is not called a drift.
func TestDriftWithinThePhaseAfter(t *testing.T) {
	t.Parallel()
	const start, over = 60, 100
	step := func(t int) float64 { return 2e-4 + 4e-5*float64(min(1, t/start)) }
	since := func(t int) float64 { return 2e-4 + max(0, 2.5e-7*float64(t-start)) }
	for name, c := range map[string]struct {
		began   int
		seconds func(t int) float64
		drifts  bool
	}{
		"rises, a short time before": {7, func(t int) float64 { return 2e-4 * (1 + 0.3*float64(t)/300) }, true},
		"rises":                      {start, func(t int) float64 { return 2e-4 * (1 + 0.3*float64(t)/300) }, true},
		"is another since":           {start, step, false},
		"rises since":                {start, since, false},
	} {
		s := reporttest.NewSynthetic(3404, 300, 1)
		noise := reporttest.Dependent(resample.Source(3404, 1), 300, 1, 0.02, 0)
		s.Load(reporttest.Load{Name: "A", To: 300, Noise: 0.02, Offered: 4000, Rate: flat(4000),
			Seconds: func(t int) float64 { return c.seconds(t) * noise[t] },
			Cuts:    []reporttest.Cut{{At: c.began, Name: "a"}, {At: over, Name: "b"}, {At: 300, Name: "c"}}})
		for i := range s.Data.Workloads {
			for k := range s.Data.Workloads[i].Windows {
				w := &s.Data.Workloads[i].Windows[k]
				of := result.Circumstances{After: []string{"", "far hang", "far hang no more"}[k]}
				w.Name, w.Circumstances = of.Name(), of
			}
		}
		s.Fault(c.began, over, "node-9", "far hang")
		told := 0
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Check != "latency-cost" || f.Severity == result.Passed || !strings.Contains(f.Sentence, "no more") {
				continue
			}
			told++
			if hedged := strings.Contains(f.Sentence, "of the two by itself"); hedged != c.drifts ||
				c.drifts && f.Weight() > 0 {
				t.Errorf("%s: weight %v: %s", name, f.Weight(), f.Sentence)
			}
		}
		if told == 0 {
			t.Errorf("%s: nothing told", name)
		}
	}
}

// Bursts that come again under names of their own are one neighbour: what meets few of them, such as a checkpoint, is
// not their doing, and what meets all of them is.
func TestBurstsThatComeAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		slow  []int // bursts in which A is at 2,400 instead of 6,000
		blame bool
	}{{"two of ten", []int{3, 7}, false}, {"all of ten", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, true}} {
		const bursts, alone, each = 10, 100, 20
		s := reporttest.NewSynthetic(3404, alone+bursts*each, 2)
		cuts := []reporttest.Cut{{At: alone, Name: "alone"}}
		for i := range bursts {
			cuts = append(cuts, reporttest.Cut{At: alone + (i+1)*each, Name: fmt.Sprintf("with B %d", i)})
		}
		s.Load(reporttest.Load{Name: "A", To: alone + bursts*each, Noise: 0.02, Cuts: cuts, Rate: func(t int) float64 {
			if t >= alone && slices.Contains(c.slow, (t-alone)/each) {
				return 2400
			}
			return 6000
		}})
		for i := range bursts {
			s.Load(reporttest.Load{Name: fmt.Sprintf("B %d", i), From: alone + i*each, To: alone + (i+1)*each,
				Noise: 0.02, Rate: flat(800)})
		}
		for i := range s.Data.Workloads {
			w := &s.Data.Workloads[i]
			if w.Name != "A" {
				w.Group = "B"
				continue
			}
			for k := 1; k < len(w.Windows); k++ {
				w.Windows[k].Beside = []string{fmt.Sprintf("B %d", k-1)}
			}
		}
		s.Data.Series = nil // as of a group that several workloads share
		changes, all := told(s, "A")
		if len(all) == 0 || len(changes) > 0 != c.blame {
			t.Errorf("%s: %q of %q", c.name, changes, all)
		}
	}
}

// A rate that falls all the time fell no more at a moment that is marked than at any other; one that fell at that
// moment did.
func TestSlopeThroughAMoment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rate  func(t int) float64
		blame bool
	}{
		{"a slope", func(t int) float64 { return 6000 * (1 - 0.0015*float64(t)) }, false},
		{"a step", func(t int) float64 { return 6000 - 600*float64(t/90) }, true},
		{"level, then a slope", func(t int) float64 { return 6000 - 20*max(0, float64(t-90)) }, true},
	} {
		s := reporttest.NewSynthetic(3405, 180, 1)
		s.Load(reporttest.Load{Name: "A", To: 180, Noise: 0.02, Rate: c.rate,
			Cuts: []reporttest.Cut{{At: 90, Name: "alone"}, {At: 180, Name: "with B"}}})
		s.Load(reporttest.Load{Name: "B", Node: 1, From: 90, To: 180, Noise: 0.02, Rate: flat(100)})
		changes, all := told(s, "A")
		if told := strings.Join(changes, " "); len(all) == 0 || len(changes) == 0 ||
			strings.Contains(told, "not told apart from drift") == c.blame {
			t.Errorf("%s: %q of %q", c.name, changes, all)
		}
	}
}

// A yardstick that is later in time than what is compared with it says of VMs that they were lost in between, and two
// windows are compared once.
func TestLaterYardstick(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3406, 300, 2)
	s.Load(reporttest.Load{Name: "A", VMs: 4, To: 300, Noise: 0.02, Rate: func(t int) float64 {
		if t >= 140 {
			return 4500
		}
		return 6000
	}, Cuts: []reporttest.Cut{{At: 150, Name: "alone"}, {At: 300, Name: "alone, after \"node-0 is back\""}}})
	s.Fault(140, 150, "node-0", "node-0 crashes")
	for i := range s.Data.Workloads {
		if w := &s.Data.Workloads[i]; strings.HasSuffix(w.VM, "3") {
			w.Ended, w.End = "lost", s.At(140)
		}
	}
	_, all := told(s, "A")
	rates := 0
	for _, said := range all {
		if strings.Contains(said, "IOPS") {
			rates++
		}
	}
	if rates != 1 || !strings.Contains(all[0], "1 of its 4 VMs lost in between") {
		t.Errorf("%q", all)
	}
}

// That a change came late is told by times that moved: where they stayed and the rate did not, they say nothing.
func TestBelatedByTimesThatMoved(t *testing.T) {
	t.Parallel()
	track := func(n int, seconds func(i int) float64) *view.Track {
		c := &view.Track{Step: 5}
		for i := range n {
			ops := 1000 + float64(i%7)
			c.Ops, c.Busy = append(c.Ops, ops), append(c.Busy, ops*seconds(i))
		}
		return c
	}
	even := func(int) float64 { return 344e-6 }
	for name, c := range map[string]struct {
		later func(i int) float64
		want  bool
	}{
		"as before":              {func(i int) float64 { return 344e-6 * (1 + 1e-4*float64(i/12)) }, false},
		"slower from the start":  {func(int) float64 { return 688e-6 }, false},
		"slower from its middle": {func(i int) float64 { return 344e-6 * (1 + float64(i/12)) }, true},
	} {
		p := &pair{a: track(30, even), b: track(24, c.later)}
		p.later.Start = p.later.Start.Add(time.Hour)
		if got := p.belated(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A VM that was lost to a fault is missing when that is over, too: what came since is not charged with it, and it is
// named.
func TestLostToAFaultThatIsOver(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(31, 300, 3)
	lost := func(t int) float64 { return []float64{3000, 2000, 1000}[min(2, t/100)] }
	cuts := []reporttest.Cut{{At: 100, Name: "a"}, {At: 200, Name: "b"}, {At: 300, Name: "c"}}
	s.Load(reporttest.Load{Name: "A", VMs: 3, Spread: true, To: 300, Noise: 0.01, Rate: lost, Cuts: cuts})
	for i := range s.Data.Workloads {
		w := &s.Data.Workloads[i]
		for node, end := range map[string]int{"0": 100, "1": 200} {
			if strings.HasSuffix(w.VM, node) {
				w.Ended, w.End = result.Lost, s.At(end)
			}
		}
		for k := range w.Windows {
			after := []string{"", "node-0 crashes", "node-1 is cut off"}[k]
			c := result.Circumstances{After: after}
			w.Windows[k].Name, w.Windows[k].Circumstances = c.Name(), c
		}
	}
	s.Fault(100, 200, "node-0", "node-0 crashes")
	s.Fault(200, 0, "node-1", "node-1 is cut off")
	var got []string
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if f.Check == "windows" {
			got = append(got, f.Sentence)
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{`1,998 after "node-0 crashes" (−33.5 %); 1 of its 3 VMs lost by then; `,
		`which of 2 changes did that cannot be told, since no time had only one of them: "node-1 is cut off" was in force ` +
			`and VMs lost at "node-0 crashes" were missing.`} {
		if !strings.Contains(all, want) {
			t.Errorf("want %s in\n%s", want, all)
		}
	}
}

// What VMs had done that were lost is no drift, though the load went up and down by itself before.
func TestLostVMsAreNoDrift(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{true, false} {
		s := reporttest.NewSynthetic(32, 400, 2)
		rate := func(t int) float64 {
			x := 4000.0
			if t >= 100 && t < 200 { // a checkpoint
				x = 2400
			}
			if t >= 300 {
				x = 2000
			}
			return x
		}
		s.Load(reporttest.Load{Name: "A", VMs: 2, Spread: true, To: 400, Noise: 0.01, Rate: rate,
			Cuts: []reporttest.Cut{{At: 300, Name: "a"}, {At: 400, Name: "b"}}})
		for i := range s.Data.Workloads {
			w := &s.Data.Workloads[i]
			if lost && strings.HasSuffix(w.VM, "0") {
				w.Ended, w.End = result.Lost, s.At(300)
			}
			for k := range w.Windows {
				c := result.Circumstances{After: []string{"", "node-0 crashes"}[k]}
				w.Windows[k].Name, w.Windows[k].Circumstances = c.Name(), c
			}
		}
		s.Fault(300, 0, "node-0", "node-0 crashes")
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Check == "windows" && strings.Contains(f.Sentence, "not told apart from drift") == lost {
				t.Errorf("VMs lost: %v: %s", lost, f.Sentence)
			}
		}
	}
}

// A load that warms up is not slow by a fault that came while it did, though it is fast once that is over; one that was
// fast before the fault, too, is.
func TestSlowBeforeTheFault(t *testing.T) {
	t.Parallel()
	for warms, want := range map[bool]string{true: "; it had been so before the fault, too", false: ": ×"} {
		s := reporttest.NewSynthetic(33, 300, 1)
		seconds := func(t int) float64 {
			switch {
			case t >= 20 && t < 60, warms && t < 20:
				return 3e-3
			}
			return 0.6e-3
		}
		s.Load(reporttest.Load{Name: "A", To: 300, Noise: 0.01, Offered: 1000, Rate: flat(1000), Seconds: seconds,
			Cuts: []reporttest.Cut{{At: 20, Name: "a"}, {At: 60, Name: "b"}, {At: 300, Name: "c"}}})
		for i := range s.Data.Workloads {
			for k := range s.Data.Workloads[i].Windows {
				w := &s.Data.Workloads[i].Windows[k]
				c := result.Circumstances{After: []string{"", "far crash", "far crash no more"}[k]}
				w.Name, w.Circumstances = c.Name(), c
				if k == 0 { // as where the report at its end lies after the beginning
					w.End = w.End.Add(3e9)
				}
			}
		}
		s.Fault(20, 60, "node-9", "far crash")
		said := false
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Check == "latency-cost" && f.Severity != result.Passed {
				said = said || strings.Contains(f.Sentence, want)
				if warms && !strings.Contains(f.Sentence, "not told apart") {
					t.Errorf("warms up: %s", f.Sentence)
				}
			}
		}
		if !said {
			t.Errorf("warms up: %v: nothing says %q", warms, want)
		}
	}
}

// A rate that was whole before one of four hung is not said to have been so slow before, though the operation that hung
// makes the time after it look unlike both.
func TestFastBeforeTheHang(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(34, 300, 1)
	rate := func(t int) float64 {
		if t >= 10 && t < 39 {
			return 750
		}
		return 1000
	}
	seconds := func(t int) float64 {
		if t >= 39 && t < 41 {
			return 60e-3
		}
		return 0.6e-3
	}
	s.Load(reporttest.Load{Name: "A", To: 300, Noise: 0.03, Rate: rate, Seconds: seconds,
		Cuts: []reporttest.Cut{{At: 10, Name: "a"}, {At: 39, Name: "b"}, {At: 300, Name: "c"}}})
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Windows {
			w := &s.Data.Workloads[i].Windows[k]
			c := result.Circumstances{After: []string{"", "hang", "hang no more"}[k]}
			w.Name, w.Circumstances = c.Name(), c
			if k == 0 { // as where the report at its end lies after the beginning
				w.End = w.End.Add(time.Second)
			}
		}
	}
	s.Fault(10, 39, "node-3", "hang")
	said := false
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if f.Check == "windows" && f.Severity != result.Passed {
			said = said || strings.Contains(f.Sentence, "−25")
			if strings.Contains(f.Sentence, "had been so before") {
				t.Error(f.Sentence)
			}
		}
	}
	if !said {
		t.Error("nothing says what the hang took")
	}
}
