package fault

import (
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
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
		want     []string
	}{
		"over, and back, before it": {from: 380, to: 388, slowed: 0.4,
			want: []string{`After "slow" at 6:20: A back at 90 % of its former LEVEL IOPS after 9 s`}},
		"costs nothing": {from: 170, to: 0, slowed: 1,
			want: []string{`After "slow" at 2:50: A kept`}},
		"over while it works": {from: 350, to: 450, slowed: 0.4,
			want: []string{`After "slow" at 5:50: A not back at 90 % of its former LEVEL IOPS before B began at 6:40; ` +
				`the fault was over after 1 min 40 s, and what is missing since then is not told apart`}},
		"over just before it": {from: 330, to: 397, slowed: 0.4,
			want: []string{`After "slow" at 5:30: A back at 90 % of its former LEVEL IOPS after 1 min 08 s`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				s := reporttest.NewSynthetic(900+seed, 1000, 1)
				s.Load(reporttest.Load{Name: "A", To: 1000, Noise: 0.02, Rate: func(t int) float64 {
					rate := 5000.0
					if t >= c.from && t < c.to {
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
