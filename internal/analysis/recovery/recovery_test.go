package recovery

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
)

func Example() {
	var points []Point
	for t := 1.0; t <= 300; t++ { // power is cut at 100 s, back at half speed at 160 s, whole at 200 s
		v := 1000.0
		switch {
		case t > 100 && t <= 160:
			v = 0
		case t > 160 && t <= 200:
			v = 500
		}
		points = append(points, Point{t, v})
	}
	r, err := Measure(points, 100, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf(
		"first work after %.0f s, 90 %% after %.0f s, %.0f operations lost\n",
		r.First.Seconds,
		r.Regained.Seconds,
		r.LostWork,
	)
	// Output: first work after 61 s, 90 % after 101 s, 80000 operations lost
}

func series(values ...float64) (points []Point) {
	for i, v := range values {
		points = append(points, Point{float64(i + 1), v})
	}
	return points
}

func TestMeasure(t *testing.T) {
	at := func(seconds float64) Moment {
		return Moment{
			Reached:  true,
			Seconds:  seconds,
			Interval: resample.Interval{Low: seconds - 1, High: seconds, Confidence: 1, Method: "between two points"},
		}
	}
	within := func(low, high float64) Moment {
		m := at(high)
		m.Interval.Low = low
		return m
	}
	tests := map[string]struct {
		points []Point
		want   Recovery
	}{
		"clean": {series(10, 10, 10, 0, 0, 5, 10, 10, 12, 10), Recovery{
			Stopped: at(1), First: at(3), Regained: within(3-5./9, 4), Overshoot: 0.2, LostWork: 25, Behind: 25,
			Warnings: nil,
		}},
		"a blip is not a recovery": {series(10, 10, 10, 0, 10, 0, 0, 10, 10, 10), Recovery{
			Stopped: at(1), First: at(2), Regained: at(5), LostWork: 30, Behind: 30,
		}},
		"never back": {series(10, 10, 10, 0, 0, 4, 4), Recovery{
			Stopped: at(
				1,
			), First: at(3), Regained: never("90 %% of the level before was not regained within 4 s"),
			LostWork: 32, Behind: 32,
		}},
		"never any work": {series(10, 10, 10, 0, 0), Recovery{
			Stopped: at(
				1,
			), First: never("no work was done again before the series ends"),
			Regained: never("90 %% of the level before was not regained within 2 s"),
			LostWork: 20, Behind: 20,
		}},
		"slowed only": {series(10, 10, 10, 6, 6, 10, 10, 10), Recovery{
			Stopped: never(
				"throughput never fell below 1 %% of the level before",
			), First: never("work never stopped"), Regained: within(2-6./9, 3), Lowest: 6, LostWork: 8, Behind: 8,
		}},
		"made up for": {series(10, 10, 10, 1, 1, 26, 10, 10), Recovery{
			Stopped: never("throughput never fell below 1 %% of the level before"),
			First:   never("work never stopped"), Regained: within(2-1./9, 3), Lowest: 1, LostWork: 2, Behind: 18,
			Overshoot: 1.6,
		}},
		"not touched": {series(10, 10, 10, 10, 10, 10), Recovery{
			Stopped: never(
				"throughput never fell below 1 %% of the level before",
			), First: never("work never stopped"), Regained: at(1), Lowest: 10,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Measure(test.points, 3, Options{HoldSeconds: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got.Before.Value != 10 {
				t.Errorf("level before %v", got.Before)
			}
			got.Before = test.want.Before
			if d := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestTheWayBackWithinAPoint: the level comes back at a moment of which points of several seconds know little.
func TestTheWayBackWithinAPoint(t *testing.T) {
	for _, step := range []float64{1, 3, 5} {
		for _, low := range []float64{0, 300, 700} {
			for fault := 20 * step; fault < 21*step; fault += 0.3 {
				for _, lasts := range []float64{0.4 * step, 1.7 * step, 5.1 * step, 6.9 * step} {
					var points []Point
					for end := step; end <= 40*step; end += step {
						struck := max(0, min(end, fault+lasts)-max(end-step, fault))
						points = append(points, Point{end, 1000 - (1000-low)*struck/step})
					}
					r, err := Measure(points, fault, Options{})
					if err != nil || !r.Regained.Reached {
						t.Fatal(r, err)
					}
					if in := r.Regained.Interval; r.Lowest < 900 && !(in.Low <= lasts+1e-9 && lasts <= in.High) {
						t.Errorf("points of %v s, %v left for %v s from %v s on: between %v s and %v s", step, low, lasts,
							fault, in.Low, in.High)
					}
				}
			}
		}
	}
}

func TestHoldCutShort(t *testing.T) {
	r, err := Measure(series(10, 10, 10, 0, 10), 3, Options{HoldSeconds: 30})
	want := []string{"the series ends 1 s after the level was regained, a hold of 30 s was asked for"}
	if d := cmp.Diff(want, r.Warnings); d != "" || err != nil {
		t.Error(err, d)
	}
}

func TestRefusals(t *testing.T) {
	_, err := Measure([]Point{{2, 1}, {1, math.NaN()}}, 5, Options{Fraction: 2, HoldSeconds: -1, Confidence: 1})
	want := strings.Join([]string{
		"recovery: fraction 2: must be above 0 and at most 1, as 0.9",
		"recovery: hold of -1 s: must be above 0",
		"recovery: confidence 1: must lie between 0 and 1, as 0.95",
		"recovery: point 2: throughput NaN: must be a finite number, not negative; leave gaps out",
		"recovery: point 2: time 1 s: must be finite and after the one before",
		"recovery: 2 points before the fault at 5 s and 0 after: at least 3 and 1 are needed",
	}, "\n")
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	if _, err := Measure(series(0, 0, 0, 1), 3, Options{}); err == nil {
		t.Error("no level before, and no objection")
	}
}

func TestRepeats(t *testing.T) {
	s, err := Repeats(
		[]Moment{
			{Reached: true, Seconds: 598},
			{Reached: true, Seconds: 604},
			{Reached: true, Seconds: 601},
			never("no"),
		},
		0.95,
	)
	if err != nil {
		t.Fatal(err)
	}
	// t(0.975, 2) = 4.303; 3·4.303/√3 = 7.453
	if s.N != 3 || s.Missing != 1 || s.Mean != 601 || math.Abs(s.Interval.High-608.453) > 0.001 || s.Min != 598 ||
		s.Max != 604 ||
		len(s.Warnings) != 1 {
		t.Errorf("%+v", s)
	}
	if s, err := Repeats(nil, 0.95); err != nil || s.Interval.Valid() || s.Interval.Reason == "" {
		t.Errorf("%+v, %v", s, err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	covered := 0
	for range 4000 {
		var m []Moment
		for range 3 {
			m = append(m, Moment{Reached: true, Seconds: 600 + 5*r.NormFloat64()})
		}
		if s, _ := Repeats(m, 0.95); s.Interval.Contains(600) {
			covered++
		}
	}
	if covered < 3720 || covered > 3880 {
		t.Errorf("interval of three repeats covers in %d of 4000", covered)
	}
}

// Whatever comes, moments are ordered and each lies within its interval; scaling throughput changes no time.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 20), rapid.Just(0.0), rapid.Just(10.0)), 4, 60).
			Draw(t, "values")
		values = append([]float64{10, 10, 10}, values...)
		a, err := Measure(series(values...), 3, Options{})
		if err != nil {
			t.Fatal(err)
		}
		scaled := slices.Clone(values)
		for i := range scaled {
			scaled[i] *= 1024 // exact
		}
		b, err := Measure(series(scaled...), 3, Options{})
		if err != nil || a.Stopped != b.Stopped || a.First != b.First || a.Regained != b.Regained {
			t.Fatalf("%+v\n%+v\n%v", a, b, err)
		}
		if a.Regained.Reached && a.First.Reached && a.Regained.Seconds < a.First.Seconds ||
			a.First.Reached && a.First.Seconds <= a.Stopped.Seconds {
			t.Fatalf("%+v", a)
		}
		for _, m := range []Moment{a.Stopped, a.First, a.Regained} {
			if m.Reached != m.Interval.Contains(m.Seconds) || m.Reached == (m.Reason != "") {
				t.Fatalf("%+v", m)
			}
		}
	})
}
