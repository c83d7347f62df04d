package steady

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/testkit/lawtest"
	"plimsoll/internal/testkit/needs"
)

func ExampleRounds() {
	iops := []float64{98000, 71000, 52000, 45000, 41500, 40200, 40900, 40100, 40600}
	s, err := Rounds(iops, Rule{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, rounds %d to %d, mean %.0f, spread %.1f %%, line moves %.1f %%\n", s.Reached, s.First+1, s.Last+1,
		s.Mean, 100*s.Spread, 100*s.Excursion)
	// Output: true, rounds 5 to 9, mean 40660, spread 3.4 %, line moves 1.9 %
}

func TestRounds(t *testing.T) {
	tests := map[string]struct {
		values []float64
		rule   Rule
		want   Settled
	}{
		"on the edge of spread": {
			[]float64{91, 101, 111, 101, 91},
			Rule{Spread: 20. / 99},
			Settled{Reached: true, Last: 4, Mean: 99, Spread: 20. / 99},
		},
		"spread": {
			[]float64{100, 130, 100, 130, 100},
			Rule{},
			Settled{
				Last:   4,
				Mean:   112,
				Spread: 30. / 112,
				Reason: "rounds 1 to 5 spread over 26.8 % of their mean, 20.0 % are allowed",
			},
		},
		"slope": {
			[]float64{94, 97, 100, 103, 106},
			Rule{},
			Settled{
				Last:      4,
				Mean:      100,
				Spread:    0.12,
				Excursion: 0.12,
				Reason:    "the line through rounds 1 to 5 moves by 12.0 % of their mean, 10.0 % are allowed",
			},
		},
		"ceiling": {
			[]float64{1, 2, 3, 4, 5, 6, 6, 6, 6, 6},
			Rule{Ceiling: 5},
			Settled{
				Last:      4,
				Mean:      3,
				Spread:    4. / 3,
				Excursion: 4. / 3,
				Reason: "rounds 1 to 5 spread over 133.3 % of their mean, 20.0 % are allowed; the ceiling of 5 rounds was " +
					"reached; of all 10 rounds, round 1 lies furthest from their median: 1, where that is 5.5",
			},
		},
		"the worst beyond the ceiling": {
			append(slices.Repeat([]float64{1, 2}, 20), 449, 1),
			Rule{},
			Settled{
				First:     20,
				Last:      24,
				Mean:      1.4,
				Spread:    1 / 1.4,
				Excursion: 0,
				Reason: "rounds 21 to 25 spread over 71.4 % of their mean, 20.0 % are allowed; the ceiling of 25 rounds was " +
					"reached; of all 42 rounds, round 41 lies furthest from their median: 449, where that is 1.5",
			},
		},
		"left again": {
			append(slices.Repeat([]float64{100}, 30), 449, 100, 130),
			Rule{},
			Settled{
				Last: 4,
				Mean: 100,
				Reason: "rounds 1 to 5 were steady, and it was left again: round 31 lies +349.0 % from their mean, " +
					"the furthest of 2 such, 20.0 % are allowed",
			},
		},
		"too few": {
			[]float64{5, 5},
			Rule{},
			Settled{Last: 1, Reason: "2 rounds: the rule needs a window of 5"},
		},
		"all zero": {make([]float64, 5), Rule{}, Settled{Last: 4,
			Reason: "all values are 0: nothing was done, or nothing was counted"}},
		"negative": {
			[]float64{-100, -101, -100, -99, -100},
			Rule{},
			Settled{Reached: true, Last: 4, Mean: -100, Spread: 0.02, Excursion: 0.008},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Rounds(test.values, test.rule)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Interval.Valid() && got.Interval.Reason == "" {
				t.Error("no interval and no reason")
			}
			got.Interval = resample.Interval{}
			if d := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	_, err := Rounds([]float64{math.NaN()}, Rule{Window: 2, Spread: -1, Excursion: math.NaN(), Ceiling: 1})
	want := strings.Join([]string{
		"steady: window of 2 rounds: at least 3 are needed for a line",
		"steady: spread -1: must be above 0, as 0.2 for 20 %",
		"steady: excursion NaN: must be above 0, as 0.1 for 10 %",
		"steady: ceiling of 1 rounds: must hold a window of 2",
		"steady: value 1 is NaN: remove it or fill the gap first",
	}, "\n")
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	if _, err := Window([]float64{math.Inf(1)}, Options{Tolerance: 2}); err == nil ||
		strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two objections: %v", err)
	}
}

// Scaling changes nothing but the mean, and a reached window does hold the rule.
func TestRoundsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(1, 3), 0, 40).Draw(t, "x")
		f := rapid.Float64Range(1e-3, 1e3).Draw(t, "f")
		scaled := make([]float64, len(x))
		for i := range x {
			scaled[i] = x[i] * f
		}
		a, err1 := Rounds(x, Rule{Spread: 0.3, Excursion: 0.15})
		b, err2 := Rounds(scaled, Rule{Spread: 0.3, Excursion: 0.15})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if a.Reached != b.Reached || a.First != b.First || a.Reached == (a.Reason != "") {
			t.Fatalf("%+v\n%+v", a, b)
		}
		if a.Reached && (a.Spread > 0.3 || a.Excursion > 0.15 || a.Last-a.First != 4) {
			t.Fatalf("%+v", a)
		}
	})
}

func ar1(r *rand.Rand, n int, phi, mean, sd float64) []float64 {
	x := make([]float64, n)
	state := r.NormFloat64()
	for i := range x {
		x[i] = mean + sd*state
		state = phi*state + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return x
}

func TestWindow(t *testing.T) {
	needs.Time(t)
	type check func(t *testing.T, s Stretch)
	reached := func(want bool, reason string) check {
		return func(t *testing.T, s Stretch) {
			if s.Reached != want || !strings.Contains(s.Reason, reason) {
				t.Errorf("reached %v, reason %q", s.Reached, s.Reason)
			}
		}
	}
	tests := map[string]struct {
		n     int
		at    func(i int) float64
		check check
	}{
		"steady from the start": {1800, func(int) float64 { return 0 }, func(t *testing.T, s Stretch) {
			reached(true, "")(t, s)
			if s.WarmUp > 200 || !s.Mean.Interval.Contains(1000) {
				t.Errorf("%+v", s)
			}
		}},
		"warm-up": {
			1800,
			func(i int) float64 { return -800 * math.Exp(-float64(i)/60) },
			func(t *testing.T, s Stretch) {
				reached(true, "")(t, s)
				if s.First < 120 || s.First > 500 {
					t.Errorf("steady from %d", s.First)
				}
			},
		},
		"never settles": {1800, func(i int) float64 { return float64(i) }, reached(false, "")},
		"drift":         {1800, func(i int) float64 { return 0.2 * float64(i) }, reached(false, "")},
		"level shift in the middle": {
			1800,
			func(i int) float64 { return 400 * b2f(i >= 1000) },
			func(t *testing.T, s Stretch) {
				reached(false, "its level changes by +39")(t, s)
				if len(s.Changes) != 1 || s.Changes[0].Index < 995 || s.Changes[0].Index > 1005 || s.First != 0 {
					t.Errorf("%+v", s)
				}
			},
		},
		"small shift does not matter": {1800, func(i int) float64 { return 20 * b2f(i >= 1000) }, reached(true, "")},
		"checkpoints": {1800, func(i int) float64 { return -500 * b2f(i%120 < 15) }, func(t *testing.T, s Stretch) {
			reached(true, "")(t, s)
			if !s.Period.Found || math.Abs(s.Period.Points-120) > 8 {
				t.Errorf("period %+v", s.Period)
			}
			if !s.Mean.Interval.Contains(1000 - 500./8) {
				t.Errorf("mean %+v", s.Mean)
			}
		}},
		"too short": {
			40,
			func(int) float64 { return 0 },
			reached(false, "40 points: at least 50 are needed, use rounds instead"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := ar1(rand.New(rand.NewPCG(41, 2)), test.n, 0.5, 1000, 20)
			for i := range x {
				x[i] += test.at(i)
			}
			s, err := Window(x, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("warm-up %d, %d to %d, drift %.3f, period %.1f, reason %q, warnings %q", s.WarmUp, s.First, s.Last,
				s.DriftShare, s.Period.Points, s.Reason, s.Warnings)
			test.check(t, s)
			if s.Mean.Interval.Valid() == (s.Mean.Interval.Reason != "") {
				t.Errorf("interval %+v", s.Mean.Interval)
			}
		})
	}
}

// TestNotSteadyBecause: every way not to be steady is named, whatever the seed; make trust counts them over many.
func TestNotSteadyBecause(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	white := lawtest.White
	tests := map[string]struct {
		points int
		shape  lawtest.Shape
		noise  lawtest.Noise
		why    string
	}{
		"falling line":        {600, lawtest.Line(-0.2), white, "it drifts by −"},
		"rising line":         {600, lawtest.Line(0.09), white, "it drifts by +"},
		"cliff":               {600, lawtest.StepAt(0.9, -0.6), white, "its level changes by −"},
		"cliff in few points": {90, lawtest.StepAt(0.9, -0.6), white, ""},
		"step in the middle":  {400, lawtest.StepAt(0.5, 0.2), lawtest.AR(0.5), ""},
		"hole":                {600, lawtest.Hole(0.1, 10, -1), nil, "it stalled at points 61 to 70"},
		"dead end": {
			600,
			lawtest.Hole(0.984, 10, -1),
			nil,
			"it ends in a stall, from point 591 on",
		},
		"a line that steps come near": {450, lawtest.Line(-0.12), white, "it drifts by −"},
		"growing swings":              {600, lawtest.Wave(20, 0, 0.5), white, "its spread grows"},
		"fewer than three swings":     {120, lawtest.Wave(2.2, 0.1, 0.1), white, "fewer than three swings"},
		"never settles":               {600, lawtest.Settling(-0.6, 250), white, ""},
		"random walk":                 {600, lawtest.Flat, lawtest.Walk, ""},
	}
	for name, test := range tests {
		for seed := range uint64(4) {
			x := make([]float64, test.points) // without noise, so that a standstill is one
			if test.noise != nil {
				x = lawtest.Series(resample.Source(seed, 71), test.points, test.shape, 0.02, test.noise)
			} else {
				quiet := lawtest.Series(resample.Source(seed, 71), test.points, lawtest.Flat, 0.02, white)
				for i := range x {
					x[i] = quiet[i] * (1 + test.shape(i, test.points))
				}
			}
			s, err := Window(x, Options{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			if s.Reached || !strings.Contains(s.Reason, test.why) || test.why != "" && s.CannotTell ||
				s.WarmUp > test.points/3 {
				t.Errorf("%s, seed %d: %+v", name, seed, s)
			}
			if !s.CannotTell && s.Mean.Interval.Valid() {
				t.Errorf("%s, seed %d: a mean of what was not steady has the interval %v", name, seed, s.Mean.Interval)
			}
		}
	}
}

// A million points are judged in one pass: a mean taken anew for each of them took minutes.
func TestAMillionPoints(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	x := ar1(rand.New(rand.NewPCG(5, 5)), 1_000_000, 0.5, 1000, 20)
	s, err := Window(x, Options{})
	if err != nil || !s.Reached || !s.Mean.Interval.Contains(1000) {
		t.Errorf("%+v, %v", s, err)
	}
	for i := 900_000; i < len(x); i++ {
		x[i] *= 0.9
	}
	s, err = Window(x, Options{})
	if err != nil || s.Reached || len(s.Changes) != 1 || s.Changes[0].Index/10_000 != 90 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTolerance: what is asked for is what is applied.
// Rows of zeros that chance explains, and values on both sides of zero, are no standstill.
func TestNoStandstill(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	few, around := make([]float64, 600), make([]float64, 600)
	for i := range few {
		few[i], around[i] = float64(1+r.IntN(5)), r.NormFloat64()
		if r.IntN(10) == 0 {
			few[i] = 0
		}
	}
	copy(few[100:], []float64{0, 0, 0}) // expected once in 1,000 points of these
	hole := slices.Clone(few)
	copy(hole[200:], make([]float64, 12))
	for name, test := range map[string]struct {
		x    []float64
		want []Stall
		says string
	}{"counts of few": {few, nil, ""}, "and a hole": {hole, []Stall{{200, 211}}, "stalled"},
		"around zero": {around, nil, "cannot be told from 0"}} {
		s, err := Window(test.x, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(test.want, s.Still); d != "" || !strings.Contains(s.Reason, test.says) {
			t.Errorf("%s: %s (-want +got):\n%s", name, s.Reason, d)
		}
	}
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	x := lawtest.Series(resample.Source(5, 72), 600, lawtest.Line(-0.08), 0.02, lawtest.White)
	for tolerance, want := range map[float64]bool{0.02: false, 0.05: false, 0.07: false, 0.1: true} {
		if s, err := Window(x, Options{Tolerance: tolerance}); err != nil || s.Reached != want || s.CannotTell {
			t.Errorf("tolerance %v: %+v, %v", tolerance, s, err)
		}
	}
	// In few points and much noise the same line can neither be seen nor excluded.
	x = lawtest.Series(resample.Source(6, 72), 60, lawtest.Flat, 0.1, lawtest.AR(0.7))
	if s, err := Window(x, Options{}); err != nil || !s.CannotTell || !strings.Contains(s.Reason, "it may drift by ") {
		t.Errorf("%+v, %v", s, err)
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Stationary series, dependent or not, are called steady nearly always, and the interval of the mean covers as it says
// although the window was chosen by the data.
func TestStationaryIsSteady(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const sets = 100
	for _, phi := range []float64{0, 0.7} {
		r := rand.New(rand.NewPCG(42, uint64(phi*10)))
		steady, covered, given := 0, 0, 0
		for range sets {
			s, err := Window(ar1(r, 1500, phi, 500, 25), Options{Seed: r.Uint64()})
			if err != nil {
				t.Fatal(err)
			}
			if s.Reached {
				steady++
			}
			if s.Mean.Interval.Valid() {
				given++
				if s.Mean.Interval.Contains(500) {
					covered++
				}
			}
		}
		t.Logf("phi %.1f: steady %.3f, mean covered %.3f of %d", phi, float64(steady)/sets,
			float64(covered)/float64(given), given)
		if steady < sets*95/100 || float64(covered) < 0.92*float64(given) || float64(covered) > 0.97*float64(given) ||
			given < sets/2 {
			t.Errorf("phi %v: steady %d of %d, covered %d of %d", phi, steady, sets, covered, given)
		}
	}
}

func TestWarmUp(t *testing.T) {
	x := make([]float64, 200)
	for i := range x {
		x[i] = 100 + float64(i%2)
		if i < 40 {
			x[i] = float64(i)
		}
	}
	if n, ok := WarmUp(x); n != 40 || !ok {
		t.Errorf("warm-up of %d points, %v", n, ok)
	}
	for i := range x {
		x[i] = math.Exp(-float64(i) / 150)
	}
	if n, ok := WarmUp(x); n != 0 || !ok {
		t.Errorf("of a series that only falls %d points are called a warm-up", n)
	}
	for _, short := range [][]float64{nil, {1}, make([]float64, 12)} {
		if n, ok := WarmUp(short); n != 0 || !ok {
			t.Errorf("%v: %d, %v", short, n, ok)
		}
	}
}

func TestAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, 0, 1, 7})), 0,
			300).
			Draw(t, "x")
		s, err := Window(x, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Reached == (s.Reason != "") || len(x) > 0 && (s.First < 0 || s.Last >= len(x) || s.First > s.Last) {
			t.Fatalf("%+v of %d points", s, len(x))
		}
	})
}

func BenchmarkWindow(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		x := ar1(rand.New(rand.NewPCG(1, 1)), n, 0.5, 1000, 20)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Window(x, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
