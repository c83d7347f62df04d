package residency

import (
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
)

// A rate that rises when a fault is over, or when another load ends, is no tier.
func TestRiseWithAnotherCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		beside, fault [2]int // from, to
		want, never   string
	}{
		"a fault is over":      {fault: [2]int{0, 70}, want: `until then "slow" was in force to 1:10`, never: "resident"},
		"a neighbour leaves":   {beside: [2]int{0, 70}, want: "until then B was at work to 1:10", never: "resident"},
		"nothing but the rise": {want: "data resident on the fast tier, or in a cache, after", never: "until then"},
		"a neighbour much later": {beside: [2]int{300, 350},
			want: "data resident on the fast tier, or in a cache, after", never: "until then"},
		"a fault that stays": {fault: [2]int{30, 0}, want: `until then "slow" began at 0:30`, never: "resident"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				s := reporttest.NewSynthetic(7100+seed, 500, 1)
				s.Load(reporttest.Load{Name: "A", To: 500, Noise: 0.03, Rate: func(t int) float64 {
					if t < 70 {
						return 2000
					}
					return 5000
				}})
				if c.beside[1] > 0 {
					s.Load(reporttest.Load{Name: "B", From: c.beside[0], To: c.beside[1], Noise: 0.03,
						Rate: func(int) float64 { return 3000 }})
				}
				if c.fault != [2]int{} {
					s.Fault(c.fault[0], c.fault[1], "node-0", "slow")
				}
				var got []string
				for _, f := range residency(view.New(s.Manifest, s.Data)) {
					if f.Subject == "A" {
						got = append(got, f.Sentence)
					}
				}
				if len(got) != 1 || !strings.Contains(got[0], c.want) || strings.Contains(got[0], c.never) {
					t.Errorf("%q, want one with %q and without %q", got, c.want, c.never)
				}
			}
		})
	}
}

// The time counts from the workload's start, also where its first reports have no value.
func TestRiseCountsFromTheStart(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(7200, 500, 1)
	s.Load(reporttest.Load{Name: "A", To: 500, Noise: 0.03, Rate: func(t int) float64 {
		if t < 70 {
			return 2000
		}
		return 5000
	}})
	for i := range s.Data.Series {
		clear(s.Data.Series[i].Values[:6])
	}
	told := residency(view.New(s.Manifest, s.Data))
	if len(told) == 0 {
		t.Fatal("nothing is told")
	}
	f := told[0]
	if f.Value == nil || *f.Value < 69 || *f.Value > 71 || !(*f.Low <= 70 && 70 <= *f.High) {
		t.Errorf("%v, %v to %v: %s", *f.Value, *f.Low, *f.High, f.Sentence)
	}
}
