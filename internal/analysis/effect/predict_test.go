package effect

import (
	"math/rand/v2"
	"testing"
)

// One value against several is judged by what a further one of the several would be: the interval covers as it says,
// honest ones seldom fail, and large differences are found.
func TestOneAgainstSeveral(t *testing.T) {
	t.Parallel()
	const sets = 3000
	r := rand.New(rand.NewPCG(41, 9))
	for _, n := range []int{2, 3, 5, 10} {
		draw := func(k int, level float64) []float64 {
			out := make([]float64, k)
			for i := range out {
				out[i] = level * (1 + 0.04*r.NormFloat64())
			}
			return out
		}
		held, worse := 0, 0
		for range sets {
			c, err := Compare(draw(n, 70), draw(1, 70), Options{Threshold: 0.05})
			if err != nil {
				t.Fatal(err)
			}
			if c.Difference.Interval.Contains(0) {
				held++
			}
			if c.Verdict == Worse {
				worse++
			}
		}
		if share := float64(held) / sets; share < 0.935 || share > 0.965 {
			t.Errorf("%d repeats: the interval held no difference in %.3f", n, share)
		}
		if share := float64(worse) / sets; share > 0.01 {
			t.Errorf("%d repeats: %.3f of honest ones are worse", n, share)
		}
	}
	found := 0
	for range sets {
		base := make([]float64, 6)
		for i := range base {
			base[i] = 12 * (1 + 0.03*r.NormFloat64())
		}
		c, err := Compare(base, []float64{17 * (1 + 0.03*r.NormFloat64())},
			Options{Threshold: 0.05, Direction: LowerIsBetter})
		if err != nil {
			t.Fatal(err)
		}
		if c.Verdict == Worse {
			found++
		}
	}
	if found < sets*95/100 {
		t.Errorf("40 %% more is found in %d of %d", found, sets)
	}
}

// Values beyond all measurement are refused, so that no sum of theirs overflows.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	if _, err := Compare([]float64{1, 2, 3e300}, []float64{1, 2, 3}, Options{}); err == nil {
		t.Error("no objection")
	}
}
