package mark_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/testkit/trust"
)

// A rate beyond the capacity holds for as long as its queue takes to grow: probes of 3 to 30 s at 20 to 2,000 a second
// find what a queue bears for ever, or say that they are too short.
func TestQueues(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"cap", "errors", "queue", "even service"} {
		r := rand.New(rand.NewPCG(11, 3))
		in, found := 0, 0
		for range 12 {
			q := trust.DrawQueue(kind, r)
			a, err := q.Search(q.Capacity*math.Exp(-2+2*r.Float64()), r)
			if err != nil {
				t.Fatalf("%v: %v", q, err)
			}
			if len(a.Probes) > mark.DefaultProbes {
				t.Errorf("%v: %d probes", q, len(a.Probes))
			}
			if a.Verdict != mark.Found {
				continue
			}
			found++
			if m := q.Mark(); *a.Low <= m*1.0001 && m <= *a.High*1.0001 {
				in++
			} else {
				t.Logf("%v (%.5g): %s %q", q, m, a.Sentence, a.Warnings)
			}
		}
		if t.Logf("%s: %d of %d", kind, in, found); in < found-2 || found < 6 {
			t.Errorf("%s: %d of %d intervals hold it", kind, in, found)
		}
	}
}
