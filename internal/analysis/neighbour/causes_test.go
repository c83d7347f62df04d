package neighbour

import (
	"strings"
	"testing"

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
		if f.Severity != result.Fine {
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
		if f.Subject == "A" && (f.Weight() > 0 || f.Severity != result.Fine && !strings.Contains(f.Sentence, "drift")) {
			t.Errorf("weight %v: %s", f.Weight(), f.Sentence)
		}
	}
}
