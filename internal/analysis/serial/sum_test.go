package serial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"plimsoll/internal/analysis/resample"
)

func ExampleSumOf() {
	x := make([]float64, 100)
	for i := range x {
		x[i] = float64(i % 2) // an alternation, which no long stretch shows
	}
	s := SumOf(x, nil)
	fmt.Printf("%.2g with %.2g degrees of freedom, %g if all points were independent\n", s.Variance, s.DOF, 100*0.25)
	// Output:
	// 0.25 with 6 degrees of freedom, 25 if all points were independent
}

// The recurrence gives what cosines give.
func TestSumIsTheMeanSquareOfWaves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	x := make([]float64, 500)
	for i := range x {
		x[i] = 7 + r.NormFloat64()
	}
	phi := ar1Of(x, []part{{0, 500}})
	want := 0.0
	for j := 1; j <= 10; j++ {
		sum, angle := 0.0, math.Pi*float64(j)/500
		for i, v := range x {
			sum += v * math.Cos(angle*(float64(i)+0.5))
		}
		want += sum * sum * 2 / 10 * (1 - 2*phi*math.Cos(angle) + phi*phi) / ((1 - phi) * (1 - phi))
	}
	if s := SumOf(x, nil); math.Abs(s.Variance/want-1) > 1e-9 || math.Abs(s.DOF-10) > 1e-9 ||
		math.Abs(s.Worth*(1+phi)/(1-phi)-500) > 1e-9 {
		t.Errorf("%+v, want %g with 10 degrees of freedom", s, want)
	}
}

// TestSumCoverage: Student's t on it holds the mean of a dependent series as often as it says.
func TestSumCoverage(t *testing.T) {
	t.Parallel()
	const sets = 2000
	r := rand.New(rand.NewPCG(2, 3))
	for _, c := range []struct {
		n, parts int
		phi      float64
	}{{20, 1, 0}, {40, 1, 0.5}, {150, 1, 0}, {150, 1, 0.5}, {150, 1, 0.8}, {300, 1, 0.9}, {300, 3, 0.5}, {1500, 1,
		0.8}} {
		held := 0
		for range sets {
			x := ar1(r, c.n, c.phi, 0, 1)
			var starts []int
			mean := 0.0
			for i := range x {
				mean += x[i] / float64(c.n)
				k := i * c.parts / c.n
				if k > len(starts) {
					starts = append(starts, i)
				}
				x[i] += float64(10 * k)
			}
			s := SumOf(x, starts)
			if math.Abs(mean) <= resample.StudentT(0.95, s.DOF)*math.Sqrt(s.Variance)/float64(c.n) {
				held++
			}
		}
		share := float64(held) / sets
		t.Logf("%d points in %d parts, phi %.1f: covered %.3f", c.n, c.parts, c.phi, share)
		if share < 0.93 || share > 0.97 {
			t.Errorf("%d points in %d parts, phi %.1f: covered %.3f", c.n, c.parts, c.phi, share)
		}
	}
}

// Checkpoints every 20 points make the mean of 300 far less uncertain than as many independent points of their spread
// would be.
func TestSumOfARepetition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	x := make([]float64, 300)
	for i := range x {
		x[i] = r.NormFloat64()
		if i%20 < 4 {
			x[i] -= 20
		}
	}
	independent := float64(len(x)) * stat.Variance(x, nil)
	if s := SumOf(x, nil); s.Variance > independent/5 {
		t.Errorf("the variance of the sum is %.3g, of independent points %.3g", s.Variance, independent)
	}
}

func TestSumProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 0, 200).Draw(t, "x")
		var starts []int
		for at := 0; at < len(x); {
			at += rapid.IntRange(1, 100).Draw(t, "part")
			starts = append(starts, at)
		}
		s := SumOf(x, starts)
		if !(s.Variance >= 0 && s.DOF >= 0 && s.Worth >= 0) || math.IsInf(s.Variance, 0) ||
			s.Variance > 0 && s.DOF < 1-1e-9 ||
			s.Worth > float64(len(x)) {
			t.Fatalf("%+v", s)
		}
		scaled := make([]float64, len(x))
		for i, v := range x {
			scaled[i] = 4 * v
		}
		if four := SumOf(scaled, starts); math.Abs(four.Variance-16*s.Variance) > 1e-6*four.Variance ||
			math.Abs(four.DOF-s.DOF) > 1e-6*s.DOF {
			t.Fatalf("four times the series: %+v, of the series itself %+v", four, s)
		}
	})
}

func BenchmarkSumOf(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{300, 3000, 30000} {
		x := ar1(r, n, 0.5, 0, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				SumOf(x, nil)
			}
		})
	}
}
