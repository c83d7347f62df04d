package compare

import (
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestAlike: means within the threshold are not alike when their repeats allow for more.
func TestAlike(t *testing.T) {
	cell := func(repeats ...float64) CellValue { return CellValue{Value: stat.Mean(repeats, nil), Repeats: repeats} }
	for _, c := range []struct {
		name string
		a, b CellValue
		want bool
	}{
		{"close", cell(150, 150.2, 149.9), cell(150.4, 150.1, 150.3), true},
		{"scattered", cell(25_000, 48_000, 70_000), cell(43_000, 50_000, 57_000), false},
		{"one of each", cell(150), cell(150), false},
		{"all the same", cell(150, 150), cell(151, 151), true},
		{"all the same, apart", cell(100, 100), cell(151, 151), false},
		{"close, apart", cell(100, 100.1, 99.9), cell(120, 120.1, 119.9), false},
	} {
		if got := alike(c.a, c.b, 0.95, 0.05); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
