package analysis

import "testing"

// A rate that rises and stays is one thing; one that comes back to where it began is held down by something that comes and goes.
func TestReturns(t *testing.T) {
	repeat := func(pattern ...[2]float64) (values []float64) { // level, points
		for _, p := range pattern {
			for range int(p[1]) {
				values = append(values, p[0])
			}
		}
		return values
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"rises and stays", repeat([2]float64{100, 10}, [2]float64{400, 10}, [2]float64{1000, 60}), false},
		{"a stall", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{0, 6}, [2]float64{1000, 30}), false},
		{"a dip on its way", repeat([2]float64{100, 10}, [2]float64{400, 10}, [2]float64{110, 10}, [2]float64{1000, 60}), false},
		{"checkpoints", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{105, 4}, [2]float64{1000, 30}), true},
		{"a blink", repeat([2]float64{100, 10}, [2]float64{1000, 30}, [2]float64{105, 2}, [2]float64{1000, 30}), false},
		{"from nothing", repeat([2]float64{0, 10}, [2]float64{1000, 30}), false},
	} {
		if got := returns(c.values, c.values[0], 1000); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
