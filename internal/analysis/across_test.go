package analysis

import (
	"math"
	"strings"
	"testing"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

func repeats(runs ...*reporttest.Synthetic) []Repeat {
	var out []Repeat
	for _, r := range runs {
		out = append(out, Repeat{r.Manifest, r.Data})
	}
	return out
}

// TestAcrossRecovery: three outages of known length give their mean and a spread; one that never came back is said.
func TestAcrossRecovery(t *testing.T) {
	all := Across(repeats(outage(1, 118), outage(2, 120), outage(3, 122)))
	if len(all) != 1 || all[0].Check != "recovery-repeats" || all[0].Value == nil || math.Abs(*all[0].Value-147) > 1.5 {
		t.Fatalf("want one recovery of about 147 s, got %+v", all)
	}
	if f := all[0]; f.Low == nil || *f.Low > 147 || *f.High < 147 || f.N != 3 {
		t.Errorf("interval %v to %v of %d", f.Low, f.High, f.N)
	}
	lost := Across(repeats(outage(1, 118), outage(2, 120), outage(3, 600)))
	if len(lost) != 1 || lost[0].Severity != result.Warning || !strings.Contains(lost[0].Sentence, "1 of 3") {
		t.Errorf("one of three never came back: %+v", lost)
	}
	if got := Across(repeats(outage(1, 100))); got != nil {
		t.Errorf("one run shows no spread: %+v", got)
	}
	if got := Across([]Repeat{{}, {}}); got != nil {
		t.Errorf("runs without data: %+v", got)
	}
}

// TestAcrossSweep: a sweep of which each run measured one working set.
func TestAcrossSweep(t *testing.T) {
	var runs []*reporttest.Synthetic
	for i := range 5 {
		s := reporttest.NewSynthetic(uint64(i), 120, 1)
		mean := 4e-3
		if i >= 3 {
			mean = 5.5e-3
		}
		s.Load(
			reporttest.Load{
				Name:   "Reads",
				To:     120,
				Depth:  1,
				Extent: 1 << (30 + 2*i),
				Noise:  0.03,
				Rate:   flatRate(1 / mean),
			},
		)
		runs = append(runs, s)
	}
	all := Across(repeats(runs...))
	if len(all) != 1 || all[0].Check != "cache-steps" || !strings.Contains(all[0].Sentence, "1 step at ×1.3") {
		t.Errorf("want one step, got %+v", all)
	}
}
