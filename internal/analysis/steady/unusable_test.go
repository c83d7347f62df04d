package steady

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/lawtest"
)

// Nothing but zeros, and values that make the mean by themselves, are never steady; far but bearable ones are no
// objection.
func TestUnusable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(88, 3))
	with := func(n int, stray float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 640 + 12*r.NormFloat64()
		}
		out[n/3] = stray
		return out
	}
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"honest":         {with(400, 640), true},
		"zeros":          {make([]float64, 400), false},
		"near the most":  {with(400, 1e308), false},
		"far below":      {with(400, -1e300), false},
		"a wrong unit":   {with(400, 640e6), false},
		"a little aside": {with(400, 700), true},
	} {
		got, err := Window(c.values, Options{})
		if err != nil || got.Reached != c.want || got.Reached == (got.Reason != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		rounds, err := Rounds(c.values[len(c.values)/3-2:][:5], Rule{})
		if err != nil || rounds.Reached != c.want {
			t.Errorf("%s, as rounds: %+v, %v", name, rounds, err)
		}
	}
}

// TestStraysAreNamed: a point or two that lie far further off than all others leave a series steady, and are named;
// noise of its own, heavy tails and outliers, is not.
func TestStraysAreNamed(t *testing.T) {
	t.Parallel()
	const sets = 200
	named := map[string]int{}
	for set := range uint64(sets) {
		for name, noise := range map[string]lawtest.Noise{"white": lawtest.White, "heavy": lawtest.Heavy,
			"skewed": lawtest.Skewed, "outliers": lawtest.Outliers} {
			x := lawtest.Series(rand.New(rand.NewPCG(set, 6)), 300, lawtest.Flat, 0.03, noise)
			s := Stretch{}
			s.astray(x, 0.05)
			named[name] += len(s.Warnings)
		}
	}
	for name, n := range named {
		if n > sets/50 {
			t.Errorf("%s: points named in %d of %d", name, n, sets)
		}
	}
	for want, strays := range map[string]map[int]float64{
		"point 101 is 5500, where the median is":                                 {100: 5500},
		"point 8 is 0, where the median is":                                      {7: 0},
		"point 11 is 4000, point 300 is 5500, where the median is":               {10: 4000, 299: 5500},
		"point 81 is 100, point 91 is 2000, point 151 is 0, where the median is": {80: 100, 90: 2000, 150: 0},
	} {
		x := lawtest.Series(rand.New(rand.NewPCG(3, 6)), 300, lawtest.Flat, 0.03, lawtest.White)
		for i := range x {
			x[i] *= 1000 / lawtest.Level
		}
		for i, v := range strays {
			x[i] = v
		}
		got, err := Window(x, Options{})
		if err != nil || !got.Reached || !strings.Contains(strings.Join(got.Warnings, "; "), want) {
			t.Errorf("%s: %v %q %q, %v", want, got.Reached, got.Reason, got.Warnings, err)
		}
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	no := math.NaN()
	got := Gaps([]float64{no, no, no, no, 1, no, no, 2, no, no, no, 3, 4, no, no, no, no, 5, no, no, no, no})
	if diff := cmp.Diff([]Stall{{8, 10}, {13, 16}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestWhatSpreadIsNot: one value far out, a level that moved for a while, and a drift are told as what they are,
// and are no spread that grows or shrinks.
func TestWhatSpreadIsNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		points int
		at     func(i int) float64 // times the level
		want   string
	}{
		"one of 40 times, early": {120, func(i int) float64 { return map[bool]float64{true: 40}[i == 17] + 1 },
			`^point 18 is .*: by itself it moves the mean by 3\d\.?\d* %$`},
		"one of 40 times, late": {300, func(i int) float64 { return map[bool]float64{true: 40}[i == 250] + 1 },
			`^point 251 is .*: by itself it moves the mean by 1\d\.?\d* %$`},
		"a burst of eight": {300, func(i int) float64 { return map[bool]float64{true: 2}[i >= 257 && i < 265] + 1 },
			`^its level changes by \+20\d\.\d % at point 258, and once more$`},
		"a slope to a plateau": {120, func(i int) float64 { return 1 - 0.3*min(1, float64(i)/60) }, `it drifts by [^;]*`},
	} {
		r := rand.New(rand.NewPCG(88, 4))
		values := make([]float64, c.points)
		for i := range values {
			values[i] = 1000*c.at(i) + 20*r.NormFloat64()
		}
		got, err := Window(values, Options{})
		if err != nil || got.Reached || !regexp.MustCompile(c.want).MatchString(got.Reason) ||
			strings.Contains(got.Reason, "spread") {
			t.Errorf("%s: %q, %v; want %s", name, got.Reason, err, c.want)
		}
	}
}
