package compare_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
)

// runs are so many runs of a law from a seed, numbered from first.
func runsOf(seed uint64, first, n int, law comparetest.Law) (out []compare.Run) {
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range n {
		out = append(out, compare.Run{Manifest: comparetest.Manifest(first + i), Data: comparetest.Data(r, law)})
	}
	return out
}

// TestGateOfFewRuns: runs that spread by 5 % and are each steady in themselves. What one more of them shows is held
// against that spread; one run a side decides nothing but what is gross, and says how many would do.
func TestGateOfFewRuns(t *testing.T) {
	t.Parallel()
	base := comparetest.Law{Rate: 400, Mean: 0.002, Spread: 0.05, Noise: 0.02, Seconds: 60}
	slower := func(factor float64) comparetest.Law {
		law := base
		law.Rate, law.Mean, law.Spread = base.Rate/factor, base.Mean*factor, 0
		return law
	}
	tests := map[string]struct {
		baseline, candidate int
		law                 comparetest.Law
		gate                bool
		want                compare.Verdict // of the rate
		said                string
	}{
		"one against five, 10 % slower":  {5, 1, slower(1.1), true, compare.Inconclusive, ""},
		"one against five, half as fast": {5, 1, slower(2), true, compare.Worse, ""},
		"one against one, 15 % slower, gate": {1, 1, slower(1.15), true, compare.Inconclusive,
			"One run a side decides"},
		"one against one, a third as fast":    {1, 1, slower(3), true, compare.Worse, ""},
		"one against one, 15 % slower, shown": {1, 1, slower(1.15), false, compare.Worse, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flat := base
			if test.baseline == 1 {
				flat.Spread = 0
			}
			d, err := compare.Of([]compare.Side{{Name: "A", Runs: runsOf(3, 1, test.baseline, flat)},
				{Name: "B", Runs: runsOf(4, 21, test.candidate, test.law)}}, compare.Options{Gate: test.gate})
			if err != nil {
				t.Fatal(err)
			}
			m := d.Measures[0]
			said := strings.Contains(strings.Join(d.Notes, "\n"), test.said)
			if m.Name != "read IOPS" || m.Verdict != test.want || !said ||
				(test.baseline > 1) != (m.Scope == compare.BetweenRuns) {
				t.Errorf("%s %s, %s, %v; notes %q", m.Name, m.Verdict, m.Scope, m.Interval, d.Notes)
			}
			for _, m := range d.Measures {
				if test.want == compare.Inconclusive && m.Verdict != compare.Inconclusive {
					t.Errorf("%s is %s", m.Name, m.Verdict)
				}
			}
		})
	}
}
