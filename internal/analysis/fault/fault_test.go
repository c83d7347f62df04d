package fault

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// What costs nothing is not blamed for what comes after it, and the planned end of one of two loads is not taken for a
// loss.
func TestFaultsAreToldApart(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	load := func(name string, from, to int) result.Workload {
		return result.Workload{
			Name:  name,
			VM:    "vm",
			Group: "A",
			Phase: "run",
			Start: at(from),
			End:   at(to),
			Ended: "finished",
		}
	}
	level := func(second int) float64 {
		switch {
		case second > 300 && second <= 360: // what the crash at 300 costs
			return 400
		case second > 900: // the first load has ended
			return 500
		}
		return 1000
	}
	d := &result.Data{Start: start, End: at(1200), Workloads: []result.Workload{load("W", 0, 900), load("W2", 0, 1200)}}
	for _, e := range []struct {
		second int
		text   string
	}{{120, "harmless"}, {300, "crash"}, {420, "over"}, {700, "late"}} {
		d.Events = append(d.Events, result.Mark{Time: at(e.second), Kind: result.KindFault, Text: e.text})
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, name := range []string{"W", "W2"} {
		s := result.Series{
			Name:     name,
			Op:       "read",
			Measure:  result.Rate,
			Workload: name,
			Group:    "A",
			Start:    at(1),
			Step:     1,
		}
		for i := range 1200 {
			v := level(i+1) / 2 * (1 + 0.01*r.NormFloat64())
			if i >= 900 && name == "W" {
				v = 0
			} else if i >= 900 {
				v *= 2
			}
			s.Values = append(s.Values, &v)
		}
		d.Series = append(d.Series, s)
	}
	var got []string
	for _, f := range recovered(view.New(result.Manifest{}, d)) {
		got = append(got, f.Sentence)
	}
	want := []string{
		`After "harmless" at 2:00: A kept`,
		`After "crash" at 5:00: A was back`,
		`After "over" at 7:00: A kept`,
		`After "late" at 11:40: A kept`,
	}
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

// That nothing failed is told only where no workload of the run has failures, and a rate that rose was not kept.
func TestNothingElseFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errors uint64 // of the other load
		after  float64
		want   string
	}{
		"nothing": {0, 5000, `After "slow" at 5:00: A kept its rate of 5,000 IOPS, within normal variation; no errors reported.`},
		"of another": {4, 5000, `After "slow" at 5:00: A kept its rate of 5,000 IOPS, within normal variation; none of its ` +
			`own operations failed in that time.`},
		"faster": {0, 9000, `After "slow" at 5:00: A did not fall below its rate of 5,000 IOPS, with 9,000 IOPS in the ` +
			`middle of what followed; no errors reported.`},
	} {
		s := reporttest.NewSynthetic(1, 600, 1)
		s.Load(reporttest.Load{Name: "A", To: 600, Rate: func(t int) float64 {
			if t < 300 {
				return 5000
			}
			return c.after
		}})
		s.Load(reporttest.Load{Name: "B", To: 600, Errors: c.errors, Rate: func(int) float64 { return 100 }})
		s.Fault(300, 0, "node-0", "slow")
		var got []string
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			if f.Subject == "A" {
				got = append(got, f.Sentence)
			}
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// One machine that stood still is told under one of two faults that came at one moment.
func TestStillOnce(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(1, 600, 1)
	s.Load(reporttest.Load{Name: "A", VMs: 4, Spread: true, To: 600, Noise: 0.01,
		Rate: func(int) float64 { return 4000 }, Share: func(vm, t int) float64 {
			switch still := t >= 301 && t < 330; {
			case still && vm == 0:
				return 0
			case still:
				return 1.0 / 3
			}
			return 0.25
		}})
	s.Fault(300, 0, "node-0", "slow")
	s.Fault(302, 0, "node-1", "cut off")
	var got []string
	for _, f := range recovered(view.New(s.Manifest, s.Data)) {
		said, _, _ := strings.Cut(f.Sentence, ", though")
		said, _, _ = strings.Cut(said, ", within")
		got = append(got, said)
	}
	want := []string{`After "slow" at 5:00, with "cut off": A stood still in part: 1 of its 4 VMs stalled for 29 s`,
		`After "cut off" at 5:02, with "slow": A kept its rate of 3,999 IOPS`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A fault before which too little was reported is said to tell nothing of the way back, not passed over.
func TestTooLittleBeforeTheFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from int
		want []string
	}{
		"two points": {298, []string{`How long A took to come back after "crash" at 5:00 cannot be told: ` +
			"2 points of 1 s came before it, and 3 are needed."}},
		"nothing was at work": {301, nil},
	} {
		s := reporttest.NewSynthetic(1, 600, 1)
		s.Load(reporttest.Load{Name: "W", Group: "A", From: c.from, To: 600, Rate: func(int) float64 { return 1000 }})
		s.Data.Events = append(s.Data.Events, result.Mark{Time: s.At(300), Kind: result.KindFault, Text: "crash"})
		var got []string
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			got = append(got, f.Sentence)
			if f.Value != nil || f.NoInterval == "" || f.Severity != result.Info {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
