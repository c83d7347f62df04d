package serial

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPulses(t *testing.T) {
	t.Parallel()
	still := func() []float64 {
		out := make([]float64, 100)
		for i := range out {
			out[i] = 100 + math.Sin(float64(i*i)) // a spread of about one
		}
		return out
	}
	with := func(set map[int]float64) []float64 {
		x := still()
		for i, v := range set {
			x[i] = v
		}
		return x
	}
	tests := map[string]struct {
		x    []float64
		want []Pulse
	}{
		"none":      {still(), nil},
		"all alike": {make([]float64, 50), nil},
		"two, of one and of three": {with(map[int]float64{20: 60, 60: 140, 61: 150, 62: 140}),
			[]Pulse{{20, 21}, {60, 63}}},
		"flanks belong to it":            {with(map[int]float64{50: 95, 51: 60, 52: 95}), []Pulse{{50, 53}}},
		"near ones are one":              {with(map[int]float64{50: 60, 53: 60}), []Pulse{{50, 54}}},
		"at both ends":                   {with(map[int]float64{0: 60, 99: 60}), []Pulse{{0, 1}, {99, 100}}},
		"what lasts is none":             {append(make([]float64, 40), still()...), nil},
		"half as far as stands out: not": {with(map[int]float64{50: 103}), nil},
	}
	for name, test := range tests {
		if d := cmp.Diff(test.want, PulsesOf(test.x)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// pulsedSeries is white noise with a pulse of four points every so many, beginning anywhere.
func pulsedSeries(r *rand.Rand, n int, gap float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for at := -gap * r.Float64(); at < float64(n); at += gap * (1 + 0.1*r.NormFloat64()) {
		for k := range 4 {
			if i := int(math.Floor(at)) + k; i >= 0 && i < n {
				x[i] += 20
			}
		}
	}
	return x
}

// The variances of sums with two to five pulses are near what the sums vary by, where slow waves alone give many times
// as much.
func TestSumsOfSeriesWithFewPulses(t *testing.T) {
	t.Parallel()
	const sets, n = 400, 300
	for _, pulses := range []float64{2.4, 3.3, 5} {
		r := rand.New(rand.NewPCG(3, uint64(10*pulses)))
		var sums, squares, ours, waves float64
		told := 0.0
		for range sets {
			x, y := pulsedSeries(r, n, n/pulses), pulsedSeries(r, n, n/pulses)
			total := 0.0
			for i := range x {
				total += x[i] - y[i]
			}
			sx, sy, _, ok := SumsOf(x, y, PulsesOf(x), PulsesOf(y))
			if !ok {
				continue
			}
			told++
			sums, squares = sums+total, squares+total*total
			ours += sx.Variance + sy.Variance
			waves += SumOf(x, nil).Variance + SumOf(y, nil).Variance
		}
		t.Logf("%v pulses: %.2f of the true variance, %.1f by slow waves alone; %.0f of %d told", pulses, ours/squares,
			waves/squares, told, sets)
		if told < 0.9*sets || ours < 0.8*squares || ours > 2*squares {
			t.Errorf("%v pulses: the variance is %.2f of the true one, told of %.0f of %d", pulses, ours/squares, told,
				sets)
		}
	}
}

func TestSumsOfNeedsPulsesOnBothSides(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	x, y := pulsedSeries(r, 300, 100), make([]float64, 300)
	for i := range y {
		y[i] = r.NormFloat64()
	}
	if _, _, _, ok := SumsOf(x, y, PulsesOf(x), PulsesOf(y)); ok {
		t.Error("a side without pulses")
	}
	one := []Pulse{{10, 14}}
	if _, _, _, ok := SumsOf(x, x, one, one); ok {
		t.Error("one pulse says nothing of gaps")
	}
}

// Independent series are rarely alike, whatever their dependence in time; a step of both at one time is.
func TestAlike(t *testing.T) {
	t.Parallel()
	const sets = 1000
	series := func(r *rand.Rand, phi, step float64) []float64 {
		x, state := make([]float64, 150), r.NormFloat64()
		for i := range x {
			x[i] = state
			if i >= 75 {
				x[i] += step
			}
			state = phi*state + math.Sqrt(1-phi*phi)*r.NormFloat64()
		}
		return x
	}
	for _, phi := range []float64{0, 0.5, 0.9} {
		r := rand.New(rand.NewPCG(5, uint64(100*phi)))
		alike, steps := 0, 0
		for range sets {
			if Alike(series(r, phi, 0), series(r, phi, 0)) < 0.01 {
				alike++
			}
			if Alike(series(r, phi, 10), series(r, phi, 10)) < 0.01 {
				steps++
			}
		}
		t.Logf("φ %v: %.1f %% of independent series are alike, %.1f %% with a step", phi, 100*float64(alike)/sets,
			100*float64(steps)/sets)
		if alike > 30 || steps < 950 {
			t.Errorf("φ %v: %d of %d independent series are alike, %d with a step", phi, alike, sets, steps)
		}
	}
	if p := Alike(make([]float64, 50), make([]float64, 50)); p != 1 {
		t.Errorf("two series of nothing: %v", p)
	}
}
