package corunning

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// What came long after a fault, in the second half of what followed it, is not laid at its door.
func TestWhatComesLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to int
		harm     bool
	}{"at once": {120, 600, true}, "later": {400, 600, false}} {
		s := reporttest.NewSynthetic(3600, 600, 1)
		rate := func(int) float64 { return 8000 }
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: rate, Seconds: func(t int) float64 {
			if t >= c.from && t < c.to && t%9 < 2 {
				return 8e-3
			}
			return 1e-3
		}, Cuts: []reporttest.Cut{{At: 120, Name: "alone"}, {At: 600, Name: `alone, after "slow"`}}})
		s.Fault(120, 0, "node-0", "slow")
		harm, told := false, 0
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Subject == "A" {
				harm, told = harm || f.Weight() > 0, told+1
			}
		}
		if told == 0 || harm != c.harm {
			t.Errorf("%s: %d told, harm %v", name, told, harm)
		}
	}
}

// Of a time in which nothing was done no percentiles are told: those of its histogram are of what came after it.
func TestNoPercentilesOfNothing(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3670, 600, 1)
	s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
		switch {
		case t >= 300 && t < 330:
			return 0
		case t >= 270 && t < 300:
			return 4000
		}
		return 8000
	}, Cuts: []reporttest.Cut{{At: 271, Name: "alone"}, {At: 300, Name: `alone, after "slow"`},
		{At: 331, Name: `alone, after "hangs"`}, {At: 600, Name: `alone, after "hangs no more"`}}})
	s.Fault(270, 330, "node-0", "slow")
	s.Fault(300, 330, "node-0", "hangs")
	told := 0
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if !strings.Contains(f.Sentence, "−100 %") {
			continue
		}
		told++
		if strings.Contains(f.Sentence, "p50") {
			t.Error(f.Sentence)
		}
	}
	if told == 0 {
		t.Error("that nothing was done is not told")
	}
}

// A level from which the time under a fault is taken out is not called one under it.
func TestButForTheTime(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(3650, 600, 1)
	s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
		if t >= 300 && t < 308 {
			return 0
		}
		return 500
	}, Cuts: []reporttest.Cut{{At: 304, Name: "alone"}, {At: 380, Name: `alone, after "slow no more"`},
		{At: 600, Name: "alone again"}}})
	s.Fault(300, 308, "node-0", "slow")
	for i := range s.Data.Workloads {
		for k := range s.Data.Workloads[i].Windows {
			if w := &s.Data.Workloads[i].Windows[k]; strings.Contains(w.Name, "no more") {
				w.After = "slow no more"
			}
		}
	}
	told := 0
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if strings.Contains(f.Sentence, "in part under") ||
			strings.Contains(f.Sentence, "but for the time") && strings.Contains(f.Sentence, "p99") { // which hold it
			t.Error(f.Sentence)
		}
		if strings.Contains(f.Sentence, `but for the time under "slow"`) {
			told++
		}
	}
	if told == 0 {
		t.Error("the stretch is not told")
	}
}

// What does not go away with its cause is not told as the cause's: before, with and after are looked at.
func TestBeforeWithAndAfter(t *testing.T) {
	t.Parallel()
	const says = "not told apart from drift"
	for name, c := range map[string]struct {
		rate func(t int) float64
		want bool
	}{
		"a warm-up": {func(t int) float64 {
			if t < 110 {
				return 9000
			}
			return 7000
		}, true},
		"a short warm-up": {func(t int) float64 {
			if t < 40 {
				return 12000
			}
			return 8000
		}, false},
		"a load that costs": {func(t int) float64 {
			if t >= 200 && t < 400 {
				return 5000
			}
			return 8000
		}, false},
		"one that costs, amid a drift": {func(t int) float64 {
			switch {
			case t < 200:
				return 8000
			case t < 400:
				return 5000
			}
			return 7000
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				s := reporttest.NewSynthetic(3300+seed, 600, 2)
				s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: c.rate, Cuts: []reporttest.Cut{
					{At: 200, Name: "alone"}, {At: 400, Name: "with B"}, {At: 600, Name: "alone again"}}})
				s.Load(reporttest.Load{Name: "B", From: 200, To: 400, Noise: 0.02,
					Rate: func(int) float64 { return 100 }})
				told := 0
				for _, f := range windows(view.New(s.Manifest, s.Data)) {
					if f.Check != "windows" || f.Subject != "A" || !strings.Contains(f.Metric, "with B") {
						continue
					}
					told++
					if got := strings.Contains(f.Sentence, says); got != c.want ||
						(got || name == "a short warm-up") == (f.Weight() > 0) ||
						(name == "a short warm-up") != strings.Contains(f.Sentence, "without the warm-up, the first ") {
						t.Errorf("weight %v: %s", f.Weight(), f.Sentence)
					}
				}
				if told != 1 {
					t.Errorf("told %d times", told)
				}
			}
		})
	}
}

// A level that holds is no drift, whatever the last point of what came after it does; a line through both is one.
func TestStraight(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	p := &pair{a: &view.Track{Start: start, Step: 2}, b: &view.Track{Start: start.Add(300 * time.Second), Step: 2}}
	for name, c := range map[string]struct {
		at   func(i int) float64
		want bool
	}{
		"flat":                       {func(int) float64 { return 1 }, false},
		"flat, cut short at the end": {func(i int) float64 { return 1 - 0.9*float64(i/159) }, false},
		"flat, then lower":           {func(i int) float64 { return 1 - 0.3*float64(min(1, i/150)) }, false},
		"a line throughout":          {func(i int) float64 { return 1 - 0.2*float64(i)/160 }, true},
	} {
		hits := 0
		for seed := range uint64(60) {
			r := resample.Source(seed, 3)
			x := make([]float64, 160)
			for i := range x {
				x[i] = 9000 * c.at(i) * (1 + 0.02*r.NormFloat64())
			}
			if p.straight(x[:150], x[150:], true) {
				hits++
			}
		}
		if c.want && hits < 54 || !c.want && hits > 0 {
			t.Errorf("%s: %d of 60", name, hits)
		}
	}
}

// What moves by itself within a part, or between two in the same company, is no fault's and no neighbour's doing; and a
// fault that was over before the report that ends its part is measured while it was in force.
func TestWhatMovesByItself(t *testing.T) {
	t.Parallel()
	swing := func(t int) float64 { // full for 80 s, then throttled for 25
		if t%105 < 80 {
			return 8000
		}
		return 2000
	}
	hangs := func(t int) float64 {
		if t >= 300 && t < 317 {
			return 0
		}
		return 8000
	}
	cuts := func(end int, after string) []reporttest.Cut {
		return []reporttest.Cut{{At: 300, Name: "alone"}, {At: end, Name: "alone, after \"f\""},
			{At: 600, Name: after}}
	}
	for name, c := range map[string]struct {
		rate func(t int) float64
		over int
		cuts []reporttest.Cut
		want string
	}{
		"a fault meets a swing": {func(t int) float64 { return swing(t + 94) }, 325, cuts(325, "alone again"),
			"it moved so within the earlier of the two by itself, so it is not told apart from drift."},
		"a fault ends between two reports": {hangs, 317, cuts(320, "alone again"), "0 after \"f\" (−100 %)"},
		"a fault that takes half": {func(t int) float64 { return hangs(t)/2 + 4000 }, 317, cuts(325, "alone again"),
			"after \"f\" (−50"},
		"it nearly stands still before": {func(t int) float64 {
			if t < 300 {
				return 100
			}
			return 8000
		}, 325, cuts(325, "alone again"), `; it nearly stood still at the start, so what made the difference is not told.`},
	} {
		s := reporttest.NewSynthetic(41, 600, 1)
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.01, Rate: c.rate, Cuts: c.cuts})
		if c.over > 0 {
			s.Fault(300, c.over, "node-0", "f")
		}
		var got []string
		for _, f := range windows(view.New(s.Manifest, s.Data)) {
			if f.Check == "windows" && f.Value != nil && (*f.Value < 0.8 || *f.Value > 1.25) {
				got = append(got, f.Sentence)
			}
		}
		if len(got) == 0 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Times that rise a hundredfold with a co-running load are of one that stood still least of all before.
func TestTimesRise(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(42, 600, 2)
	s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
		if t >= 300 {
			return 400
		}
		return 40_000
	}, Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with B"}}})
	s.Load(reporttest.Load{Name: "B", From: 300, To: 600, Noise: 0.02, Rate: func(int) float64 { return 100 }})
	times := 0
	for _, f := range windows(view.New(s.Manifest, s.Data)) {
		if strings.Contains(f.Sentence, "stood still") {
			t.Errorf("%s", f.Sentence)
		}
		if f.Value != nil && strings.HasPrefix(f.Metric, "mean ") && *f.Value > 50 {
			times++
		}
	}
	if times == 0 {
		t.Error("no mean time rose")
	}
}

// TestBetween: a load that was as fast already in the same company, before a neighbour came, owes that to none.
func TestBetween(t *testing.T) {
	t.Parallel()
	window := func(from, to int, rate float64, beside ...string) result.Window {
		at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
		return result.Window{Start: at(from), End: at(to),
			Circumstances: result.Circumstances{Beside: beside},
			Ops:           []result.OpTotals{{Op: "read", Count: uint64(rate * float64(to-from))}}}
	}
	for name, c := range map[string]struct {
		middle result.Window
		want   bool
	}{
		"fast already, alone":        {window(300, 315, 350), true},
		"hardly faster, alone":       {window(300, 315, 120), false},
		"fast already, with another": {window(300, 315, 350, "C"), false},
	} {
		v := view.New(result.Manifest{}, &result.Data{Start: t0})
		windows := []result.Window{window(0, 300, 100), c.middle, window(330, 600, 400, "B")}
		every := v.ConditionsOf(&view.Load{}, windows)
		parts := partsOf(windows, every)
		p := pair{first: parts[0], later: parts[2], windows: windows, every: every}
		if got := p.between(countOver) != ""; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
