package steady

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestGaps(t *testing.T) {
	t.Parallel()
	no := math.NaN()
	got := Gaps([]float64{no, no, no, no, 1, no, no, 2, no, no, no, 3, 4, no, no, no, no, 5, no, no, no, no})
	if diff := cmp.Diff([]Stall{{8, 10}, {13, 16}}, got); diff != "" {
		t.Error(diff)
	}
}
