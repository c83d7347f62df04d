package steady

import (
	"math"
	"strings"
	"testing"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
)

// TestSpreadIsPartOfTheState: a level that holds still with a spread that does not is not steady, and why is told.
func TestSpreadIsPartOfTheState(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		points int
		times  func(i, n int) float64
		want   string // part of the reason; "" where it is steady
	}{
		"the same throughout": {600, func(int, int) float64 { return 1 }, ""},
		"five times in the last fifth": {600, func(i, n int) float64 {
			if i >= n*4/5 {
				return 5
			}
			return 1
		}, "its spread grows along it"},
		"five times in the sixth tenth": {300, func(i, n int) float64 {
			if i >= n/2 && i < n*6/10 {
				return 5
			}
			return 1
		}, "its spread is not the same throughout: points 148 to 177 lie"},
		"shrinks to a third": {300, func(i, n int) float64 { return 3 - 2*float64(i)/float64(n) },
			"its spread shrinks along it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := lawtest.Series(resample.Source(3, 1), test.points, lawtest.Flat, 0.03, lawtest.White)
			for i := range x {
				x[i] = lawtest.Level + (x[i]-lawtest.Level)*test.times(i, len(x))
			}
			s, err := Window(x, Options{})
			if err != nil || s.Reached != (test.want == "") || !strings.Contains(s.Reason, test.want) {
				t.Errorf("reached %v, reason %q, %v; want %q", s.Reached, s.Reason, err, test.want)
			}
		})
	}
}

// TestSwell: noise that swells to four times and falls again is not steady, wherever its loudest stretch lies.
func TestSwell(t *testing.T) {
	t.Parallel()
	steady := 0
	for seed := range uint64(60) {
		x := lawtest.Series(resample.Source(seed, 2), 600, lawtest.Flat, 0.03, lawtest.White)
		for i := range x {
			x[i] = lawtest.Level + (x[i]-lawtest.Level)*(1+3*math.Sin(math.Pi*float64(i)/600))
		}
		if s, err := Window(x, Options{Seed: seed + 1}); err != nil {
			t.Fatal(err)
		} else if s.Reached {
			steady++
		}
	}
	if steady > 1 {
		t.Errorf("%d of 60 are called steady", steady)
	}
}
