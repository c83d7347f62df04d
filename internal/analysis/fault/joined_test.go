package fault

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// A load that begins beside what a fault struck is told as such: the fault is charged with what it took itself, and its
// end is no fault.
func TestFaultBeforeAnotherLoad(t *testing.T) {
	t.Parallel()
	const joins, leaves = 400, 700
	level := regexp.MustCompile(`former (4,9|5,0)\d\d IOPS`)
	for name, c := range map[string]struct {
		from, to int
		slowed   float64 // what the fault leaves of the rate
		dead     bool    // and it does nothing afterwards
		want     []string
	}{
		"over, and nothing is done again": {from: 350, to: 355, dead: true,
			want: []string{`After "slow" at 5:50: A was not back at 90 % of its former LEVEL IOPS by the end of the run ` +
				`(no I/O reported again`}},
		"over, and back, before it": {from: 380, to: 388, slowed: 0.4,
			want: []string{`After "slow" at 6:20: A was back at 90 % of its former LEVEL IOPS after 9 s`}},
		"costs nothing": {from: 170, to: 0, slowed: 1,
			want: []string{`After "slow" at 2:50: A kept`}},
		"over while it works": {from: 350, to: 450, slowed: 0.4,
			want: []string{`After "slow" at 5:50: A was not back at 90 % of its former LEVEL IOPS before B began at 6:40; ` +
				`the fault was over after 1 min 40 s, and what is missing since then is not told apart`}},
		"five seconds before it": {from: 395, to: 405, slowed: 0.4,
			want: []string{`After "slow" at 6:35: A was not back at 90 % of its former LEVEL IOPS before B began at 6:40; ` +
				`the fault was over after 10 s, and what is missing since then is not told apart`}},
		"over just before it": {from: 330, to: 397, slowed: 0.4,
			want: []string{`After "slow" at 5:30: A was back at 90 % of its former LEVEL IOPS after 1 min 08 s`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				s := reporttest.NewSynthetic(900+seed, 1000, 1)
				s.Load(reporttest.Load{Name: "A", To: 1000, Noise: 0.02, Rate: func(t int) float64 {
					rate := 5000.0
					if t >= c.from && (t < c.to || c.dead) {
						rate *= c.slowed
					}
					if t >= joins && t < leaves {
						rate *= 0.6
					}
					return rate
				}})
				s.Load(reporttest.Load{Name: "B", From: joins, To: leaves, Noise: 0.02,
					Rate: func(int) float64 { return 2000 }})
				s.Fault(c.from, c.to, "node-0", "slow")
				var got []string
				for _, f := range recovered(view.New(s.Manifest, s.Data)) {
					if f.Subject == "A" {
						got = append(got, level.ReplaceAllString(f.Sentence, "former LEVEL IOPS"))
					}
				}
				if len(got) != len(c.want) {
					t.Fatalf("%q, want %q", got, c.want)
				}
				for i := range c.want {
					if !strings.HasPrefix(got[i], c.want[i]) {
						t.Errorf("%q, want %q", got[i], c.want[i])
					}
				}
			}
		})
	}
}

// What a fault did not take is not charged with it: a report that came late and the next one, which holds the rest; a
// load that ends by itself long after a fault that does not end; the level of a load that falls by itself after a fault
// that was over long before; a rate that goes on rising.
func TestNotOfTheFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to   int // of the fault, 0: it does not end
		rate func(t int) float64
		want string
		not  string
	}{
		"late report": {0, func(t int) float64 {
			return 5000 * map[int]float64{302: 0.001, 303: 1.999}[t] // others below
		}, "kept its", "back at"},
		"end by itself": {0, func(t int) float64 {
			if t >= 560 {
				return 1
			}
			return 5000
		}, "kept its", "back at"},
		"falls by itself": {330, func(t int) float64 {
			switch {
			case t < 300:
				return 5000
			case t < 330:
				return 1600
			case t < 560:
				return 4000
			}
			return 5000
		}, "; the fault was over after 30 s, and what is missing since then is not told apart from what the load does " +
			"by itself.", "overshoot"},
		"rises": {330, func(t int) float64 {
			switch {
			case t < 300:
				return 5000
			case t < 330:
				return 1600
			}
			return 5000 + 30*float64(t-330)
		}, "back at 90 %", "overshoot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40) {
				s := reporttest.NewSynthetic(2000+seed, 600, 1)
				s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.05, Rate: func(t int) float64 {
					if rate := c.rate(t); rate > 0 {
						return rate
					}
					return 5000
				}})
				s.Fault(300, c.to, "node-0", "set")
				told := false
				for _, f := range recovered(view.New(s.Manifest, s.Data)) {
					told = true
					if !strings.Contains(f.Sentence, c.want) || strings.Contains(f.Sentence, c.not) {
						t.Errorf("seed %d: %s", seed, f.Sentence)
					}
				}
				if !told {
					t.Error("nothing said of the fault")
				}
			}
		})
	}
}

// What had ended before the load that a fault struck began is no company that this load lost.
func TestFaultAfterALoadThatEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]int{"before it": 88, "beside it": 100} {
		s := reporttest.NewSynthetic(970, 400, 1)
		s.Load(reporttest.Load{Name: "fill", To: end, Noise: 0.02, Rate: func(int) float64 { return 900 }})
		s.Load(reporttest.Load{Name: "A", From: 89, To: 400, Noise: 0.02, Rate: func(t int) float64 {
			if t >= 105 && t < 160 {
				return 0
			}
			return 5000
		}})
		s.Fault(105, 160, "node-0", "storage hangs")
		told := false
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			if f.Subject != "A" || !strings.Contains(f.Sentence, "back at 90 %") {
				continue
			}
			told = true
			if with := strings.Contains(f.Sentence, "fill ended"); with != (end > 89) {
				t.Errorf("ended %s: %s", name, f.Sentence)
			}
		}
		if !told {
			t.Errorf("ended %s: nothing said of the fault", name)
		}
	}
}

// What began before the load that a fault struck was there for all of the level before it: its begin is no doubt.
func TestFaultAfterCompanyOfAllItsTime(t *testing.T) {
	t.Parallel()
	for from, doubted := range map[int]bool{86: false, 100: true} {
		s := reporttest.NewSynthetic(970, 400, 1)
		s.Load(reporttest.Load{Name: "B", From: from, To: 400, Noise: 0.02, Rate: func(int) float64 { return 900 }})
		s.Load(reporttest.Load{Name: "A", From: 89, To: 400, Noise: 0.02, Rate: func(t int) float64 {
			if t >= 105 && t < 160 {
				return 0
			}
			return 5000
		}})
		s.Fault(105, 160, "node-0", "storage hangs")
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			if f.Subject == "A" && strings.Contains(f.Sentence, "B began") != doubted {
				t.Errorf("begun at %d: %s", from, f.Sentence)
			}
		}
	}
}

// A fault that comes while an earlier one is not made up for is named with it; one that was over long before takes
// nothing from the level that the next one is measured against; VMs that are back are no overshoot.
func TestFaultsOneAfterAnother(t *testing.T) {
	t.Parallel()
	find := func(s *reporttest.Synthetic, fault string) string {
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			if strings.Contains(f.Sentence, fault) && f.Subject == "A" {
				return f.Sentence
			}
		}
		return ""
	}
	run := func(parts map[[2]int]float64) *reporttest.Synthetic {
		s := reporttest.NewSynthetic(950, 600, 1)
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
			rate := 5000.0
			for span, left := range parts {
				if t >= span[0] && t < span[1] {
					rate *= left
				}
			}
			return rate
		}})
		return s
	}
	s := run(map[[2]int]float64{{200, 210}: 0.6, {207, 260}: 0.8})
	s.Fault(200, 210, "node-0", "noisy")
	s.Fault(207, 260, "node-0", "slow")
	if got := find(s, `After "noisy"`); !strings.Contains(got, `cannot be told, since "slow" began at 3:27`) {
		t.Errorf("overlapping: %s", got)
	}
	s = run(map[[2]int]float64{{200, 260}: 0.4, {300, 340}: 0.5})
	s.Fault(200, 260, "node-0", "noisy")
	s.Fault(300, 340, "node-0", "slow")
	if got := find(s, `After "slow"`); !regexp.MustCompile(`former (4,9|5,0)\d\d IOPS`).MatchString(got) {
		t.Errorf("one after the other: %s", got)
	}

	s = run(map[[2]int]float64{{204, 260}: 0.4})
	s.Fault(200, 206, "node-1", "clocks")
	s.Fault(204, 260, "node-0", "slow")
	if got := find(s, `"slow"`); !strings.HasPrefix(got, `After "slow" at 3:24, with "clocks": A was back at 90 %`) ||
		find(s, `After "clocks"`) != "" {
		t.Errorf("it went on until another came: %s", got)
	}
	s = run(map[[2]int]float64{{200, 260}: 0.4})
	s.Fault(200, 260, "node-0", "slow")
	s.Fault(204, 206, "node-1", "clocks")
	if got := find(s, `"slow"`); !strings.HasPrefix(got, `After "slow" at 3:20, with "clocks": A was back at 90 %`) {
		t.Errorf("another came when it had taken: %s", got)
	}
	s = run(map[[2]int]float64{{100, 200}: 0.7, {130, 600}: 0.8})
	s.Fault(100, 200, "node-1", "slow")
	s.Fault(130, 0, "node-0", "off")
	if got := find(s, `After "off"`); !strings.Contains(got, `with "slow": A was back at 90 %`) ||
		!strings.Contains(got, `cannot be told, since "slow" was over at 3:20`) {
		t.Errorf("back by the end of another: %s", got)
	}

	s = reporttest.NewSynthetic(951, 700, 3)
	rate := func(t int) float64 {
		if t >= 100 && t < 300 {
			return 4000
		}
		return 6000
	}
	s.Load(reporttest.Load{Name: "before", Group: "A", VMs: 3, Spread: true, To: 300, Noise: 0.02, Rate: rate})
	s.Load(reporttest.Load{Name: "after", Group: "A", VMs: 3, Spread: true, From: 400, To: 700, Noise: 0.02,
		Rate: rate})
	for i := range s.Data.Workloads {
		if w := &s.Data.Workloads[i]; w.Name == "before" {
			w.Ended = "lost"
			if strings.HasSuffix(w.VM, "0") {
				w.End = s.At(100)
			}
		}
	}
	s.Mark(100, result.KindFault, "node-0 crashes")
	s.Mark(300, result.KindFault, "power off")
	if got := find(s, `After "power off"`); !strings.Contains(got, "that was of 2 VMs, and 3 worked afterwards") {
		t.Errorf("a VM that is back: %s", got)
	}
}

// Faults of two kinds within a few seconds are both named, an order to switch power on is none, and where the
// measurement ends in a drop, nothing is "kept".
func TestFaultsOfAMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off, end int // seconds: power lost, end of the run
		want     []string
	}{
		"a clock is set, then power is lost": {off: 102, end: 300, want: []string{
			`After "clock ahead" at 1:40, with "power off": A was not back at 90 % of its former LEVEL IOPS by the end`}},
		"at the end": {off: 197, end: 200, want: []string{
			`After "clock ahead" at 1:40: A kept`,
			`After "power off" at 3:17, with "clock ahead": A was measured for 3 s more, `}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reporttest.NewSynthetic(77, c.end, 1)
			s.Load(reporttest.Load{Name: "A", To: c.end, Noise: 0.02, Rate: func(t int) float64 {
				if t >= c.off {
					return 3000
				}
				return 5000
			}})
			mark := func(second int, text, state string) {
				s.Data.Events = append(
					s.Data.Events,
					result.Mark{Time: s.Data.Start.Add(time.Duration(second) * time.Second),
						Kind: result.KindFault, Text: text, Node: "node-0", State: state},
				)
			}
			mark(100, "clock ahead", result.FaultBegins)
			mark(c.off, "power off", result.PowerOff)
			mark(c.off+4, "power on", result.PowerOn)
			var got []string
			for _, f := range recovered(view.New(s.Manifest, s.Data)) {
				got = append(got, regexp.MustCompile(`former (4,9|5,0)\d\d IOPS`).ReplaceAllString(f.Sentence,
					"former LEVEL IOPS"))
			}
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i := range c.want {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("%q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}
