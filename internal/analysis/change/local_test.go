package change

import (
	"math"
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
