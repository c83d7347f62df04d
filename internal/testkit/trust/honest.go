package trust

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// alarmed reports whether something is said of what was set up to do nothing. What is true of each such run, such as
// how large its working set is, is no alarm, and neither is that something cannot be told.
func alarmed(found []result.Finding) bool {
	return slices.ContainsFunc(found, func(f result.Finding) bool {
		return f.Severity != result.Passed && !slices.Contains([]string{"cache", "ingest", "latency-kind",
			"too-short"}, f.Check) &&
			!strings.Contains(f.Sentence, "inconclusive")
	})
}

// honest are kinds of runs in which nothing happens.
var honest = []struct {
	name string // for who reads
	run  func(seed uint64) *reporttest.Synthetic
}{
	{"a load alone, φ 0.5", func(seed uint64) *reporttest.Synthetic {
		noise := reporttest.Dependent(resample.Source(seed, 91), 600, 1, 0.03, 0.5)
		s := reporttest.NewSynthetic(seed, 600, 2)
		s.Load(reporttest.Load{Name: "A", To: 600, Rate: func(t int) float64 { return 8000 * noise[t] }})
		return s
	}},
	{"a rate that is held, on four VMs", func(seed uint64) *reporttest.Synthetic {
		s := reporttest.NewSynthetic(seed, 600, 4)
		s.Load(reporttest.Load{Name: "A", VMs: 4, Spread: true, To: 600, Offered: 4000, Noise: 0.02,
			Rate: func(int) float64 { return 4000 }, Seconds: func(int) float64 { return 5e-4 }})
		return s
	}},
	{"a neighbour that costs nothing comes and goes", func(seed uint64) *reporttest.Synthetic {
		noise := reporttest.Dependent(resample.Source(seed, 92), 900, 1, 0.03, 0.3)
		s := reporttest.NewSynthetic(seed, 900, 2)
		s.Load(reporttest.Load{Name: "A", To: 900, Rate: func(t int) float64 { return 6000 * noise[t] },
			Cuts: []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with B"},
				{At: 900, Name: "alone again"}}})
		s.Load(reporttest.Load{Name: "B", Node: 1, From: 300, To: 600, Noise: 0.05,
			Rate: func(int) float64 { return 900 }})
		return s
	}},
	{"a fault that costs nothing", func(seed uint64) *reporttest.Synthetic {
		noise := reporttest.Dependent(resample.Source(seed, 93), 600, 1, 0.04, 0.5)
		s := reporttest.NewSynthetic(seed, 600, 2)
		s.Mark(350, result.KindFault, "clocks of node-1 go ahead by 0 s")
		s.Load(reporttest.Load{Name: "A", To: 600, Rate: func(t int) float64 { return 3000 * noise[t] },
			Writes: 0.3, Cuts: []reporttest.Cut{{At: 350, Name: "at the start"}, {At: 600, Name: "after it"}}})
		return s
	}},
	{"lognormal noise, half of it writes", func(seed uint64) *reporttest.Synthetic {
		noise := lawtest.Series(resample.Source(seed, 95), 600, lawtest.Flat, 0.04, lawtest.Skewed)
		s := reporttest.NewSynthetic(seed, 600, 1)
		s.Load(reporttest.Load{Name: "A", To: 600, Writes: 0.5, Rate: func(t int) float64 { return 5 * noise[t] }})
		return s
	}},
	{"two loads on nodes of their own, from start to end", func(seed uint64) *reporttest.Synthetic {
		s := reporttest.NewSynthetic(seed, 600, 2)
		for node, name := range []string{"A", "B"} {
			noise := reporttest.Dependent(resample.Source(seed, uint64(96+node)), 600, 1, 0.02, 0.4)
			s.Load(reporttest.Load{Name: name, Node: node, To: 600, Block: 4096 << (2 * node),
				Rate: func(t int) float64 { return 7000 * noise[t] }})
		}
		return s
	}},
	{"sixteen VMs, each with noise of its own", func(seed uint64) *reporttest.Synthetic {
		s := reporttest.NewSynthetic(seed, 480, 4)
		s.Load(reporttest.Load{Name: "A", VMs: 16, Spread: true, To: 480, Noise: 0.03,
			Rate: func(int) float64 { return 40000 }})
		return s
	}},
	{"a neighbour that costs nothing stays to the end", func(seed uint64) *reporttest.Synthetic {
		noise := reporttest.Dependent(resample.Source(seed, 98), 720, 1, 0.03, 0.5)
		s := reporttest.NewSynthetic(seed, 720, 2)
		s.Load(reporttest.Load{Name: "A", To: 720, Rate: func(t int) float64 { return 9000 * noise[t] },
			Cuts: []reporttest.Cut{{At: 360, Name: "alone"}, {At: 720, Name: "with B"}}})
		s.Load(reporttest.Load{Name: "B", Node: 1, From: 360, To: 720, Noise: 0.03,
			Rate: func(int) float64 { return 400 }})
		return s
	}},
}

// varied is a run in which nothing happens: its length, load, noise and machines are drawn, and neighbours that cost
// nothing, a fault that costs nothing or a rate that is held.
func varied(seed uint64) *reporttest.Synthetic {
	r := resample.Source(seed, 99)
	seconds, nodes := 300+60*r.IntN(16), 1+r.IntN(5)
	noise := []lawtest.Noise{lawtest.White, lawtest.AR(0.3), lawtest.AR(0.6), lawtest.Heavy, lawtest.Skewed,
		lawtest.Coarse}[r.IntN(6)]
	x := lawtest.Series(r, seconds, lawtest.Flat, 0.005+0.04*r.Float64(), noise)
	level := 400 * math.Pow(100, r.Float64())
	s := reporttest.NewSynthetic(seed, seconds, nodes)
	l := reporttest.Load{Name: "A", To: seconds, VMs: 1 + r.IntN(8), Spread: r.IntN(2) == 0,
		Writes: []float64{0, 0.3, 0.5, 1}[r.IntN(4)], Block: 512 << r.IntN(12), Depth: 1 << r.IntN(6),
		Rate: func(t int) float64 { return level * x[t] / lawtest.Level }}
	begins := 0 // of the neighbours, one after the other
	switch r.IntN(5) {
	case 1:
		n := 2 + r.IntN(4)
		for i := range n {
			name, end := "alone", seconds*(i+1)/n
			if i > 0 {
				name = fmt.Sprintf("B%d", i)
				s.Load(reporttest.Load{Name: name, Node: nodes - 1, From: begins, To: end, Noise: 0.03,
					Rate: func(int) float64 { return 300 }})
				name = "with " + name
			}
			l.Cuts = append(l.Cuts, reporttest.Cut{At: end, Name: name})
			begins = end
		}
	case 2:
		const slow = "storage takes twice as long"
		at := seconds/3 + r.IntN(seconds/6)
		over := at + 10 + r.IntN(seconds/4)
		s.Fault(at, over, fmt.Sprintf("node-%d", nodes-1), slow)
		l.Cuts = []reporttest.Cut{{At: at, Name: "alone"}, {At: over, Name: "alone, after \"" + slow + "\""},
			{At: seconds, Name: "alone, after \"" + slow + " no more\""}}
	case 3:
		l.Offered, l.Depth = level, 64
		l.Rate = func(int) float64 { return level }
		l.Seconds = func(t int) float64 { return 1e-3 * x[t] / lawtest.Level }
	case 4:
		from, to := seconds/3, 2*seconds/3
		l.Cuts = []reporttest.Cut{{At: from, Name: "alone"}, {At: to, Name: "with B"},
			{At: seconds, Name: "alone again"}}
		s.Load(reporttest.Load{Name: "B", Node: nodes - 1, From: from, To: to, Noise: 0.05,
			Rate: func(int) float64 { return 900 }})
	}
	s.Load(l)
	return s
}

// honestClaims are what all checks together say of runs and tables in which nothing happens.
func honestClaims() (out []Claim) {
	add := func(name string, high float64, sets int, one func(seed uint64) bool) {
		out = append(out, Claim{Family: "together", Name: name, Low: 0, High: high, Sets: sets,
			Measure: func(seed uint64, n int) (c Count, _ error) {
				for set := range uint64(n) {
					c.Of++
					if one(seed + 7919*set) { // odd, so that kinds take turns
						c.Hits++
					}
				}
				return c, nil
			}})
	}
	add("runs of eight kinds in turn in which nothing happens: any check speaks up", 0.02, 200, func(seed uint64) bool {
		s := honest[seed%uint64(len(honest))].run(seed)
		return alarmed(analysis.Run(s.Manifest, s.Data))
	})
	add("runs drawn at random in which nothing happens: any check speaks up", 0.02, 200, func(seed uint64) bool {
		s := varied(seed)
		return alarmed(analysis.Run(s.Manifest, s.Data))
	})
	add("tables of noise of six kinds in turn, 600 rows: any check speaks up", 0.03, 200, func(seed uint64) bool {
		noise := even[seed%uint64(len(even))].noise
		found, _ := analysis.OfTable(analysis.Table{Step: 1, Columns: []analysis.Column{{Name: "iops",
			Kind:   analysis.Rate,
			Values: lawtest.Series(resample.Source(seed, 94), 600, lawtest.Flat, 0.02, noise)}}})
		return alarmed(found)
	})
	return out
}
