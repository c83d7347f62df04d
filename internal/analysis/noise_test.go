package analysis

import (
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/internal/analysis/scale"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestFalseAlarms counts what is said of runs in which nothing happened but noise that depends on its neighbours.
func TestFalseAlarms(t *testing.T) {
	rounds := needs.Draws(20, 120)
	alarms := map[string]int{}
	for i := range rounds {
		seed := uint64(100 + i)
		noise := reporttest.Dependent(rand.New(rand.NewPCG(seed, 5)), 600, 1, 0.05, 0.5)
		s := reporttest.NewSynthetic(seed, 600, 2)
		s.Mark(450, result.KindFault, "node-1 power off")
		s.Load(reporttest.Load{
			Name: "OLTP", To: 600, Rate: func(t int) float64 { return 4000 * noise[t] },
			Seconds: func(t int) float64 { return 2e-3 / noise[t] },
			Cuts:    []reporttest.Cut{{At: 300, Name: "alone"}, {At: 600, Name: "with DSS"}},
		})
		s.Load(
			reporttest.Load{
				Name:  "DSS",
				Node:  1,
				From:  300,
				To:    600,
				Rate:  flatRate(1400),
				Noise: 0.05,
				Block: 1 << 20,
			},
		)
		s.CPU("node-0", flatRate(40), 6)
		s.CPU("node-1", flatRate(40), 6)
		seen := map[string]bool{}
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Severity != result.Passed && f.Check != "cache" && !strings.Contains(f.Sentence, "inconclusive") {
				seen[f.Check] = true
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

// TestContentionCoverage: the interval of the contention fitted to a scale-out run holds the law's.
func TestContentionCoverage(t *testing.T) {
	rounds := needs.Draws(15, 60)
	in := 0
	for i := range rounds {
		s := scaleOut(uint64(i), 0.01, 1e-5)
		f := scale.Scalability.Run(view.New(s.Manifest, s.Data))
		if len(f) == 0 || f[0].Check != "scalability" || f[0].Low == nil {
			t.Fatalf("seed %d: %+v", i, f)
		}
		if *f[0].Low <= 1 && 1 <= *f[0].High {
			in++
		}
	}
	t.Logf("covered %.3f", float64(in)/float64(rounds))
	if share := float64(in) / float64(rounds); share < 0.88 {
		t.Errorf("the interval held the truth in %.1f %% of the runs", 100*share)
	}
}

// TestFaultInAStage: a stage under a fault says nothing of how throughput grows.
func TestFaultInAStage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, until int // of the fault, seconds
		left        int // stages of nine
	}{{500, 520, 8}, {600, 840, 7}, {300, 1080, 2}} {
		s := scaleOut(7, 0.001, 0)
		s.Fault(c.from, c.until, "node-0", "storage of node-0 hangs")
		found := scale.Scalability.Run(view.New(s.Manifest, s.Data))
		fitted := len(found) > 1 && !strings.Contains(found[0].Sentence, "is not told: faults were in force")
		if len(found) == 0 || found[0].N != c.left || fitted != (c.left >= 4) {
			t.Errorf("from %d to %d s: %+v", c.from, c.until, found)
		}
	}
}
