package mark_test

import (
	"math"
	"math/rand/v2"
	"strings"
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
		if t.Logf("%s: %d of %d", kind, in, found); in < found-2 || found < 4 {
			t.Errorf("%s: %d of %d intervals hold it", kind, in, found)
		}
	}
}

// A disk with a credit does more than its cap while a probe lasts: an overload of it ends at the cap, and no mark above
// that is given.
func TestCredit(t *testing.T) {
	t.Parallel()
	q := trust.Queue{Capacity: 200, Servers: 1, Even: true, Credit: 12_000, Quantile: 0.5, Limit: 0.3, Seconds: 12}
	a, err := q.Search(100, rand.New(rand.NewPCG(1, 1)))
	want := "1,600 IOPS ended at 200 IOPS after more at first, as where a credit or a buffer is used up"
	if err != nil || a.Verdict != mark.Inconclusive || !strings.Contains(a.Sentence, want) || *a.Low != 200 {
		t.Errorf("%s %v %v, want %q", a.Sentence, a.Low, err, want)
	}
	// A generator that bore the rate while the credit lasted is not what gave way.
	q = trust.Queue{Capacity: 100, Servers: 1, Even: true, Depth: 1, Credit: 6_000, Quantile: 0.9, Limit: 0.016,
		Seconds: 12}
	a, err = q.Search(60, rand.New(rand.NewPCG(1, 1)))
	if err != nil || a.Verdict != mark.Inconclusive || !strings.Contains(a.Sentence, " IOPS ended at 1") {
		t.Errorf("%s %v", a.Sentence, err)
	}
	// One that outlasts probes by little is in the interval.
	q.Credit, q.Depth = 100, 0
	a, err = q.Search(43, rand.New(rand.NewPCG(1, 1)))
	if err != nil || a.Verdict != mark.Found || *a.Low > 100.01 || *a.Rate <= 100.01 || a.Coarse == 0 {
		t.Errorf("%s %v %v", a.Sentence, a.Low, err)
	}
	// Probes that became longer held less: that is no overload that stays.
	probes := []mark.Probe{{Offered: 250, Margin: 3, Held: true, Seconds: 3},
		{Offered: 440, Behind: true, Seconds: 3, Ended: 70}, {Offered: 250, Behind: true, Seconds: 6, Ended: 70},
		{Offered: 250, Behind: true, Seconds: 6, Ended: 70}, {Offered: 225, Behind: true, Seconds: 6, Ended: 70},
		{Offered: 63, Margin: 3, Held: true, Seconds: 6}}
	if a := mark.Conclude(mark.Settings{Start: 250}, probes); a.Verdict == mark.NotRecovered {
		t.Error(a.Sentence)
	}
}

// A disk that does three times as much for as long as its credit lasts: what is left of that after a probe is what the
// next one has. One that the search uses up gives no mark; of one that lasts beyond it the answer says how long it
// looked.
func TestBurst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasts   float64 // probes
		verdict mark.Verdict
		want    string
	}{
		"two probes":     {2, mark.NotRecovered, "it no longer bore"},
		"twenty of them": {20, mark.Found, "IOPS at p90 < 300ms, which held twice for 30 s; "},
	} {
		q := trust.Queue{Capacity: 100, Servers: 1, Even: true, Quantile: 0.9, Limit: 0.3, Seconds: 30, Burst: 300}
		q.Credit = c.lasts * q.Seconds * (q.Burst - q.Capacity)
		a, err := q.Search(60, rand.New(rand.NewPCG(1, 1)))
		if err != nil || a.Verdict != c.verdict || !strings.Contains(a.Sentence, c.want) {
			t.Errorf("%s: %s %v, want %q", name, a.Sentence, err, c.want)
		}
		if c.verdict == mark.Found && a.HeldFor != 30 {
			t.Errorf("%s: held for %v s", name, a.HeldFor)
		}
	}
}
