package analysis

import (
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// Words of faults as targets have them.
const (
	slowDisk = "storage of node-1 takes 10 times as long"
	hung     = "storage of node-2 hangs"
)

// causes is a database of 4,000 operations per second as fast as it can, cut into windows of 200 s each, whose times
// and rate follow the factor by which each window is slower. DSS runs beside it in those whose name says so.
func causes(seed uint64, names []string, slower ...float64) *reporttest.Synthetic {
	const long = 200
	s := reporttest.NewSynthetic(seed, long*len(names), 3)
	factor := func(t int) float64 { return slower[min(t/long, len(slower)-1)] }
	l := reporttest.Load{Name: "OLTP", To: long * len(names), Noise: 0.02, Depth: 16,
		Rate:    func(t int) float64 { return 4000 / factor(t) },
		Seconds: func(t int) float64 { return 4e-3 * factor(t) }}
	from := map[string]int{}
	to := map[string]int{}
	for i, name := range names {
		l.Cuts = append(l.Cuts, reporttest.Cut{At: long * (i + 1), Name: name})
		c, _ := result.CircumstancesOf(name)
		for _, other := range c.Beside {
			if _, seen := from[other]; !seen {
				from[other] = i * long
			}
			to[other] = (i + 1) * long
		}
	}
	s.Load(l)
	for _, other := range []string{"DSS", "Flush"} {
		if to[other] > 0 {
			s.Load(reporttest.Load{Name: other, Node: 1, From: from[other], To: to[other], Rate: flatRate(1400),
				Noise: 0.02, Block: 1 << 20})
		}
	}
	return s
}

// struckBy is a run with faults in force.
func struckBy(s *reporttest.Synthetic, faults ...struct {
	from, to   int
	node, text string
}) *reporttest.Synthetic {
	for _, f := range faults {
		s.Fault(f.from, f.to, f.node, f.text)
	}
	return s
}

type strike = struct {
	from, to   int
	node, text string
}

// hanging is a workload of so many VMs of which the first few do nothing from 300 s for so long; fault says whether the
// journal knows of it.
func hanging(seed uint64, vms, hang, long int, fault bool) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 4)
	if fault {
		s.Fault(300, 300+long, "node-2", hung)
	}
	in := func(t int) bool { return t >= 300 && t < 300+long }
	going := func(t int) float64 {
		if in(t) {
			return float64(vms - hang)
		}
		return float64(vms)
	}
	s.Load(reporttest.Load{Name: "DSS", To: 900, VMs: vms, Spread: true, Noise: 0.02, Depth: 4,
		Rate: func(t int) float64 { return 500 * going(t) }, Seconds: flatRate(1e-3),
		Share: func(vm, t int) float64 {
			if in(t) && vm < hang {
				return 0
			}
			return 1 / going(t)
		}})
	return s
}

// turns are workloads of one group, 200 s each, one after the other.
func turns(seed uint64, loads ...reporttest.Load) *reporttest.Synthetic {
	const long = 200
	s := reporttest.NewSynthetic(seed, long*len(loads), 2)
	for i, l := range loads {
		l.Group, l.From, l.To, l.Noise = "Reader", i*long, i*long+long-5, 0.02
		s.Load(l)
	}
	return s
}

// outrun is a power loss after which another workload begins at once and nothing ever is as before.
func outrun(seed uint64, begins int) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 900, 4)
	s.Fault(300, 0, "node-3", "node-3 crashes")
	s.Load(reporttest.Load{Name: "OLTP", To: 900, Noise: 0.02, Rate: stepped([]int{300, 900}, 4000, 2500)})
	s.Load(reporttest.Load{Name: "Backup", Node: 1, From: begins, To: 900, Noise: 0.02, Rate: flatRate(300)})
	return s
}

// scheduled is a load that stands still for six seconds after a fault and makes up for all of it. It is stopped while
// the node that was lost heals, which costs nothing, and another like it begins.
func scheduled(seed uint64) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 600, 3)
	s.Mark(300, result.KindFault, "Power off sent to node-1")
	s.Mark(340, result.KindFault, "Power on sent to node-1")
	s.Load(reporttest.Load{Name: "Before", Group: "OLTP", To: 400, Noise: 0.01, Rate: func(t int) float64 {
		switch {
		case t >= 301 && t < 307:
			return 2
		case t == 307:
			return 500
		case t == 308:
			return 288
		}
		return 100
	}})
	for i := range s.Data.Workloads {
		s.Data.Workloads[i].Ended = "stopped"
	}
	s.Load(reporttest.Load{Name: "After", Group: "OLTP", From: 406, To: 600, Noise: 0.01, Rate: flatRate(100)})
	return s
}

// checkedAfter is a load that does nothing more after a fault, and another of the same VMs after it.
func checkedAfter(seed uint64, ended result.Ending) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(seed, 400, 3)
	s.Mark(100, result.KindFault, "Power off sent to node-1")
	to := map[result.Ending]int{result.Lost: 100, result.Stopped: 300}[ended]
	s.Load(reporttest.Load{Name: "Write", Group: "Writer", To: to, Noise: 0.01, Ended: ended, Writes: 1,
		Rate: stepped([]int{100, 400}, 100, 0)})
	s.Load(reporttest.Load{Name: "Check", Group: "Writer", From: 310, To: 400, Noise: 0.01, Block: 1 << 20,
		Rate: flatRate(50)})
	return s
}

// TestTruthOfCauses holds the words about runs in which several things change, and of which it is known what did it.
func TestTruthOfCauses(t *testing.T) {
	with, faulty := "with DSS", `with DSS, after "`+slowDisk+`"`
	over := `with DSS, after "` + slowDisk + ` no more"`
	alone := func(name string, rate float64) reporttest.Load {
		return reporttest.Load{Name: name, Rate: flatRate(rate), Random: 1}
	}
	dealt := func(l reporttest.Load, kind result.SkewKind, value float64) reporttest.Load {
		l.Skew = result.Skew{Kind: kind, Value: value}
		return l
	}
	sized := func(l reporttest.Load, block int) reporttest.Load { l.Block = block; return l }
	deep := func(l reporttest.Load, depth int) reporttest.Load { l.Depth = depth; return l }
	mixed := func(l reporttest.Load, writes float64) reporttest.Load { l.Writes = writes; return l }
	holdTruths(t, "testdata/truth-causes.txt", []truth{
		{"a harmless neighbour, then a slow disk", struckBy(causes(31, []string{"alone", with, faulty, over},
			1, 1, 5, 1), strike{400, 600, "node-1", slowDisk}), "windows latency-cost"},
		{"a slow disk before the neighbour, which costs something, too", struckBy(causes(32,
			[]string{"alone", `alone, after "` + slowDisk + `"`, with, over}, 1, 3, 4.5, 1.5),
			strike{200, 600, "node-1", slowDisk}), "windows"},
		{"neighbour and slow disk at one moment, for good", struckBy(causes(33, []string{"alone", with}, 1, 4),
			strike{200, 0, "node-1", slowDisk}), "windows latency-cost"},
		{"neighbour and slow disk at one moment, the disk recovers", struckBy(causes(34, []string{"alone", with, over},
			1, 4, 1), strike{200, 400, "node-1", slowDisk}), "windows"},
		{"two faults overlap", struckBy(causes(35, []string{"alone", `alone, after "` + slowDisk + `"`,
			`alone, after "` + hung + `"`, `alone, after "` + slowDisk + ` no more"`, `alone, after "` + hung + ` no more"`},
			1, 2, 6, 3, 1), strike{200, 600, "node-1", slowDisk}, strike{400, 800, "node-2", hung}), "windows"},
		{"one neighbour comes as another goes", causes(36, []string{"with DSS", "with Flush"}, 1, 2), "windows"},
		{"and it had been alone before", causes(37, []string{"alone", "with DSS", "with Flush"}, 1, 1, 2), "windows"},
		{"a VM of four hangs", hanging(38, 4, 1, 30, true), "recovery stalls"},
		{"half of the VMs hang", hanging(39, 6, 3, 45, true), "recovery"},
		{"a VM of forty hangs", hanging(40, 40, 1, 60, true), "recovery"},
		{"all VMs hang", hanging(41, 3, 3, 30, true), "recovery"},
		{"a VM of four hangs, and nobody knows why", hanging(42, 4, 1, 20, false), "stalls"},
		{"a crash as a backup begins", outrun(43, 302), "recovery"},
		{"a backup long after a crash", outrun(44, 600), "recovery"},
		{"a load on a schedule that stands still and catches up, then is stopped", scheduled(51), "recovery"},
		{"a load that is not started again, but another", checkedAfter(52, "lost"), "recovery"},
		{"a load that hangs while another begins", checkedAfter(53, "stopped"), "recovery"},
		{"hot spots", turns(45, alone("Even", 4000), dealt(alone("Zipf", 8000), result.Zipf, 1.2),
			dealt(alone("Pareto", 4010), result.Pareto, 0.2)), "in-turn"},
		{"larger blocks", turns(46, alone("Small", 9000), sized(alone("Large", 4000), 64<<10)), "in-turn"},
		{"deeper", turns(47, deep(alone("Shallow", 4000), 4), deep(alone("Deep", 4100), 32)), "in-turn"},
		{"writes for reads", turns(48, alone("Reads", 4000), mixed(alone("Writes", 1000), 1)), "in-turn"},
		{"two things at once", turns(49, alone("Reads", 4000),
			sized(dealt(alone("Other", 1000), result.Zipf, 1.1), 64<<10)),
			"in-turn"},
		{"the same again", turns(50, alone("First", 4000), alone("Second", 3000)), "in-turn"},
	})
}

// quietly is a run of four VMs in which nothing happened but noise: a co-running workload and two overlapping faults
// that do nothing, and then another workload of the same VMs that only spreads its reads otherwise.
func quietly(seed uint64) *reporttest.Synthetic {
	const vms = 4
	random := rand.New(rand.NewPCG(seed, 6))
	s := reporttest.NewSynthetic(seed, 900, 4)
	s.Fault(200, 400, "node-1", slowDisk)
	s.Fault(300, 500, "node-2", hung)
	each := make([][]float64, vms)
	for i := range each {
		each[i] = reporttest.Dependent(random, 900, 1, 0.08, 0.5)
	}
	all := func(t int) (sum float64) {
		for i := range each {
			sum += each[i][t] / vms
		}
		return sum
	}
	l := reporttest.Load{Name: "Even", Group: "Reader", VMs: vms, Spread: true, To: 600, Random: 1, Depth: 4,
		Rate: func(t int) float64 { return 4000 * all(t) }, Seconds: func(t int) float64 { return 4e-3 / all(t) },
		Share: func(vm, t int) float64 { return each[vm][t] / all(t) / vms },
		Cuts: []reporttest.Cut{{At: 100, Name: "alone"}, {At: 200, Name: "with DSS"},
			{At: 300, Name: `with DSS, after "` + slowDisk + `"`}, {At: 400, Name: `with DSS, after "` + hung + `"`},
			{At: 500, Name: `with DSS, after "` + slowDisk + ` no more"`},
			{At: 600, Name: `with DSS, after "` + hung + ` no more"`}}}
	s.Load(l)
	l.Name, l.Skew, l.From, l.To, l.Cuts = "Zipf", result.Skew{Kind: result.Zipf, Value: 1.2}, 605, 900, nil
	s.Load(l)
	s.Load(reporttest.Load{Name: "DSS", Node: 1, From: 100, To: 600, Rate: flatRate(1400), Noise: 0.05, Block: 1 << 20})
	return s
}

// TestFalseAlarmsOfCauses counts what is said of runs in which much changes and nothing of it does anything.
func TestFalseAlarmsOfCauses(t *testing.T) {
	rounds := needs.Draws(20, 100)
	const asked = " windows latency-cost recovery stalls in-turn " // TestFalseAlarms asks the others
	alarms := map[string]int{}
	for i := range rounds {
		seen := map[string]bool{}
		s := quietly(uint64(700 + i))
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Severity != result.Passed && strings.Contains(asked, " "+f.Check+" ") {
				seen[f.Check] = true
				t.Logf("%d %s: %s", i, f.Check, f.Sentence)
			}
		}
		for check := range seen {
			alarms[check]++
		}
	}
	for check, n := range alarms {
		t.Logf("%s: %d of %d", check, n, rounds)
		if n > rounds*5/100 {
			t.Errorf("%s spoke up in %d of %d runs in which nothing happened", check, n, rounds)
		}
	}
}
