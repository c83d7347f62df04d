package curve

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func Example() {
	c, err := Read([]Point{
		{Concurrency: 1, Throughput: 2500, ResponseSeconds: 400e-6},
		{Concurrency: 60, Throughput: 140000, ResponseSeconds: 428e-6},
		{Concurrency: 240, Throughput: 440000, ResponseSeconds: 545e-6},
		{Concurrency: 480, Throughput: 600000, ResponseSeconds: 800e-6},
		{Concurrency: 960, Throughput: 610000, ResponseSeconds: 1574e-6},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("one client: %.0f/s in %.0f us\n", c.Single.Throughput, 1e6*c.Single.ResponseSeconds)
	fmt.Printf("knee: %.0f/s in %.0f us at %g (between %g and %g)\n", c.Knee.Throughput, 1e6*c.Knee.ResponseSeconds,
		c.Knee.Concurrency, c.KneeLow, c.KneeHigh)
	fmt.Printf("saturated from %g on, asymptotes cross at %.0f\n", c.SaturatedFrom, c.Crossing)
	// Output:
	// one client: 2500/s in 400 us
	// knee: 440000/s in 545 us at 240 (between 60 and 480)
	// saturated from 480 on, asymptotes cross at 244
}

// The exact curve of one queue visited by N clients without thinking, service 1 s at one of m equal stations (balanced
// network, Lazowska and others 1984, chapter 5): X = N/(N+m−1), R = N+m−1. Power X/R = N/(N+m−1)² is greatest at N =
// m−1.
func TestKneeOfBalancedNetwork(t *testing.T) {
	const m = 9
	var points []Point
	for n := 1.0; n <= 64; n++ {
		points = append(points, Point{Concurrency: n, Throughput: n / (n + m - 1), ResponseSeconds: n + m - 1})
	}
	c, err := Read(points)
	if err != nil {
		t.Fatal(err)
	}
	if c.Knee.Concurrency != m-1 || c.KneeLow != m-2 || c.KneeHigh != m || len(c.Warnings) != 0 {
		t.Errorf("knee at %g (%g to %g), want %d; %q", c.Knee.Concurrency, c.KneeLow, c.KneeHigh, m-1, c.Warnings)
	}
	if want := m * c.Saturation.Throughput; math.Abs(c.Crossing-want) > 1e-9 {
		t.Errorf("crossing %v, want %v", c.Crossing, want)
	}
}

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		points []Point
		want   string
	}{
		"no single":  {[]Point{{2, 20, 0, 0}, {4, 38, 0, 0}, {8, 39, 0, 0}}, "nothing was measured at one client"},
		"still up":   {[]Point{{1, 10, 0, 0}, {2, 20, 0, 0}, {4, 40, 0, 0}}, "saturation was not seen"},
		"knee ahead": {[]Point{{1, 10, 0, 0}, {2, 20, 0, 0}, {4, 40, 0, 0}}, "the knee lies at or beyond 4"},
		"knee below": {[]Point{{1, 10, 0, 0}, {2, 11, 0, 0}, {4, 11, 0, 0}}, "the knee lies at or below 1"},
		"little":     {[]Point{{1, 10, 0.1, 0}, {2, 18, 0.11, 0}, {4, 20, 0.1, 0}}, "-50 % off Little's law"},
		"doubt":      {[]Point{{1, 10, 0, 0.1}, {2, 18, 0, 1}, {4, 25, 0, 1}, {8, 26, 0, 1}}, "the knee is in doubt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Read(test.points)
			if err != nil ||
				!slices.ContainsFunc(c.Warnings, func(s string) bool { return strings.Contains(s, test.want) }) {
				t.Errorf("%v, warnings %q lack %q", err, c.Warnings, test.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	_, err := Read([]Point{{0, math.NaN(), -1, math.Inf(1)}, {0, 1, 1, 0}})
	want := strings.Join([]string{
		"curve: point 1: concurrency 0: must be a finite number above 0",
		"curve: point 1: throughput NaN: must be a finite number above 0",
		"curve: point 1: response time -1 s: must be a finite number above 0, or 0 when not measured",
		"curve: point 1: standard error +Inf: must be a finite number, not negative",
		"curve: point 2: concurrency 0: must be a finite number above 0",
		"curve: point 2: concurrency 0 is there twice: join repeats first",
		"curve: 2 points: at least 3 are needed for a curve",
	}, "\n")
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
}

// Order does not matter, derived response times obey Little's law exactly, and the knee lies within its bounds.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Point {
			return Point{
				Concurrency: rapid.Float64Range(1, 1e6).Draw(t, "n"),
				Throughput:  rapid.Float64Range(1e-3, 1e9).Draw(t, "x"),
			}
		}), 3, 20, func(p Point) float64 { return p.Concurrency }).Draw(t, "points")
		a, err1 := Read(points)
		slices.Reverse(points)
		b, err2 := Read(points)
		if d := cmp.Diff(a, b); d != "" || err1 != nil || err2 != nil {
			t.Fatal(d, err1, err2)
		}
		for _, p := range a.Points {
			if math.Abs(p.LittleError) > 1e-9 {
				t.Fatalf("%+v", p)
			}
		}
		if a.KneeLow > a.Knee.Concurrency || a.KneeHigh < a.Knee.Concurrency {
			t.Fatalf("knee %+v, %v to %v", a.Knee, a.KneeLow, a.KneeHigh)
		}
	})
}
