package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
)

// TestSpreadIsNoChangeOfLevel: where the noise is several times as large, few values lie far from the others by chance.
func TestSpreadIsNoChangeOfLevel(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]func(at float64) float64{
		"five times in the last fifth": func(at float64) float64 { return 1 + 4*math.Floor(at/0.8) },
		"five times in the middle": func(at float64) float64 {
			if at > 0.4 && at < 0.6 {
				return 5
			}
			return 1
		},
	} {
		const sets = 60 // without local 12 and 9 of them
		told := 0
		for seed := range uint64(sets) {
			x := lawtest.Series(resample.Source(seed, 17), 300, lawtest.Flat, 0.03, lawtest.White)
			for i := range x {
				x[i] = lawtest.Level + (x[i]-lawtest.Level)*times(float64(i)/float64(len(x)))
			}
			r, err := Detect(x, Options{MinShift: 0.05 * lawtest.Level, Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Points) > 0 {
				told++
			}
		}
		if told > sets/10 {
			t.Errorf("%s: changes in %d of %d", name, told, sets)
		}
	}
}

// A step of the last two values, or the first two, is told there, and by all of its size.
func TestStepOfTwo(t *testing.T) {
	t.Parallel()
	const n, runs = 22, 60
	r := rand.New(rand.NewPCG(4, 6))
	found, placed := 0, 0
	for run := range runs {
		at := map[bool]int{true: n - 2, false: 2}[run%2 == 0]
		x := make([]float64, n)
		for i := range x {
			x[i] = 20 * (1 + 0.03*r.NormFloat64())
			if i >= at {
				x[i] *= 1.3
			}
		}
		got, err := Detect(x, Options{Independent: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got.Points {
			found++
			if p.Index == at && math.Abs(p.After/p.Before/1.3-1) < 0.1 {
				placed++
			}
		}
	}
	if found < runs/2 || placed < found*9/10 {
		t.Errorf("%d found of %d, %d at their place", found, runs, placed)
	}
}
