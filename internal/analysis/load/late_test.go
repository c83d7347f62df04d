package load

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestCatchUpIsNotMeeting: a load on a schedule that stands still and catches up in a burst did not meet its rate.
func TestCatchUpIsNotMeeting(t *testing.T) {
	t.Parallel()
	const offered = 4000
	for name, c := range map[string]struct {
		still int // seconds from 300 s on, made up for at twice the rate
		want  string
	}{
		"kept":               {0, "target rate met (within"},
		"a second":           {1, "target rate met (within"},
		"still for 8 s":      {8, "from 5:00 on it fell 7."},
		"still for 15 s":     {15, "from 5:00 on it fell 14."},
		"still for a minute": {60, "from 5:00 on it fell 59."},
	} {
		s := reporttest.NewSynthetic(91, 600, 2)
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.01, Offered: offered, Rate: func(t int) float64 {
			switch {
			case t >= 300 && t < 300+c.still:
				return 0
			case t >= 300+c.still && t < 300+2*c.still:
				return 2 * offered
			}
			return offered
		}})
		told := offeredRate(view.New(s.Manifest, s.Data))
		if len(told) != 1 || !strings.Contains(told[0].Sentence, c.want) ||
			(told[0].Severity == result.Passed) != (c.still < 2) {
			t.Errorf("%s: %+v", name, told)
		}
	}
}

// TestWhatIsForgivenIsNotMadeUpFor: a load that goes on at its rate after it stood still has not caught up.
func TestWhatIsForgivenIsNotMadeUpFor(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(93, 1200, 1)
	s.Load(reporttest.Load{Name: "A", To: 1200, Noise: 0.01, Offered: 4000, Rate: func(t int) float64 {
		if t >= 300 && t < 305 {
			return 0
		}
		return 4000
	}})
	if told := offeredRate(view.New(s.Manifest, s.Data)); len(told) != 1 ||
		!strings.Contains(told[0].Sentence, "of work behind and did not make up for it") {
		t.Errorf("%+v", told)
	}
}

// A VM that was lost before its first report began nothing late: the others met what was theirs, and the rate was not
// met.
func TestALostVMIsNotLate(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(92, 300, 2)
	s.Load(reporttest.Load{Name: "A", VMs: 2, Spread: true, To: 300, Noise: 0.01, Offered: 4000,
		Rate:  func(int) float64 { return 2000 },
		Share: func(vm, _ int) float64 { return float64(1 - vm) }})
	first, lost, all := &s.Data.Workloads[1], &s.Data.Workloads[3], &s.Data.Workloads[4] // after their fills
	first.Ops, lost.Ops, lost.End, lost.Ended = all.Ops, nil, lost.Start, result.Lost
	v := view.New(s.Manifest, s.Data)
	told := offeredRate(v)
	want := "target rate not met: its VMs met it while they ran, but 1 of 2 ended early"
	if len(told) != 1 || !strings.Contains(told[0].Sentence, want) {
		t.Errorf("%+v, want %q", told, want)
	}
	if kind := latencyKind(v); len(kind) != 1 || strings.Contains(kind[0].Sentence, "missed") {
		t.Errorf("%+v", kind)
	}
}

// What took longer than a limit that its generator was given is said, from a hundredth on.
func TestOverTheLimit(t *testing.T) {
	load := func(late float64) []result.Finding {
		w := result.Workload{Name: "pgbench", VM: "pg", Start: t0, End: t0.Add(time.Minute), Latency: "response time",
			Operations: []result.Operation{{Name: "transaction", Noun: "transactions"}},
			Ops:        []result.OpTotals{{Op: "transaction", Count: 9_000, Seconds: 90}},
			Measures:   []result.Measure{{Name: "late", Unit: "transactions", Kind: result.Single}},
			Values:     []result.Value{{Measure: "late", Value: late}}}
		return operationErrors(view.New(result.Manifest{}, &result.Data{Start: t0, End: w.End,
			Workloads: []result.Workload{w}}))
	}
	if f := load(900); f[0].Severity != result.Warning || !strings.Contains(f[0].Sentence,
		"but 900 of 9,000 (10 %) took longer") {
		t.Errorf("%+v", f)
	}
	if f := load(9); f[0].Severity != result.Passed {
		t.Errorf("%+v", f)
	}
}
