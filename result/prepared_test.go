package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func rates(values ...float64) (rounds []Round) {
	for _, v := range values {
		rounds = append(rounds, Round{OpsPerSecond: v})
	}
	return rounds
}

func TestSteadyRounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds        []Round
		spread, slope float64
		want          bool
	}{
		"level":                     {rates(100, 100, 100, 100, 100), 0, 0, true},
		"the last five count":       {rates(900, 500, 100, 100, 100, 100, 100), 0, 0, true},
		"as wide as it may be":      {rates(110, 90, 100, 90, 110), 0.2, 0, true},
		"wider":                     {rates(111, 90, 99, 90, 110), 0.21, 0.008, false},
		"as steep as it may be":     {rates(95, 97.5, 100, 102.5, 105), 0.1, 0.1, true},
		"steeper, though narrow":    {rates(106, 103, 100, 97, 94), 0.12, 0.12, false},
		"falls as fresh flash does": {rates(300, 200, 150, 120, 105), 195. / 175, 188. / 175, false},
		"four rounds":               {rates(1, 1, 1, 1), math.NaN(), math.NaN(), false},
		"nothing done":              {rates(0, 0, 0, 0, 0), math.NaN(), math.NaN(), false},
		"no number":                 {rates(1, 1, math.NaN(), 1, 1), math.NaN(), math.NaN(), false},
		"infinite":                  {rates(1, 1, math.Inf(1), 1, 1), math.NaN(), math.NaN(), false},
	} {
		spread, slope, got := SteadyRounds(c.rounds)
		same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }
		if got != c.want || !same(spread, c.spread) || !same(slope, c.slope) {
			t.Errorf("%s: spread %v, slope %v, %t; want %v, %v, %t", name, spread, slope, got, c.spread, c.slope,
				c.want)
		}
	}
}

// The verdict does not depend on the unit of the rates, nor the slope's on its direction.
func TestSteadyRoundsScale(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 5, 5).Draw(t, "rates")
		factor := rapid.Float64Range(1e-3, 1e3).Draw(t, "factor")
		var scaled, turned []float64
		for i := range values {
			scaled, turned = append(scaled, values[i]*factor), append(turned, values[len(values)-1-i])
		}
		spread, slope, _ := SteadyRounds(rates(values...))
		for what, other := range map[string][]float64{"scaled": scaled, "turned": turned} {
			s, l, _ := SteadyRounds(rates(other...))
			if math.Abs(s-spread) > 1e-9 || math.Abs(l-slope) > 1e-9 {
				t.Fatalf("%s: %v, %v; want %v, %v", what, s, l, spread, slope)
			}
		}
		if slope > spread*(1+1e-9)*1.5 { // a fitted line is hardly steeper than what it is fitted to
			t.Fatalf("slope %v of a spread of %v", slope, spread)
		}
	})
}

func event(step int, p Preconditioning) Event {
	return Event{Kind: KindPrecondition, Step: step, Data: EventData{Preconditioning: &p}}
}

// What a killed process leaves is what it had done, and says that it was interrupted.
func TestPrepared(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := Preconditioning{Workload: "W", Began: began, State: PreconditionGoesOn, Passes: []Pass{{Bytes: 1}}}
	second := first
	second.Passes, second.State = []Pass{{Bytes: 1}, {Bytes: 2}}, Preconditioned
	other := first
	other.Began = began.Add(time.Hour)
	look := Written{Workload: "W", Bytes: 10, Zero: 1, Blocks: 2}
	events := []Event{event(3, first), event(3, second),
		{Kind: KindWritten, Time: began, Data: EventData{Written: &look}},
		{Kind: KindWritten}, {Kind: KindPrecondition}, event(4, other)}
	second.Step, other.Step, look.Time = 3, 4, began
	dead := other
	dead.State, dead.Reason = PreconditionInterrupted, "the run ended before it did"
	for over, last := range map[bool]Preconditioning{false: other, true: dead} {
		pre, written := Prepared(events, over)
		if diff := cmp.Diff([]Preconditioning{second, last}, pre); diff != "" {
			t.Errorf("over %t: %s", over, diff)
		}
		if diff := cmp.Diff([]Written{look}, written); diff != "" {
			t.Error(diff)
		}
	}
	if !look.Lacking() || (Written{Bytes: 3, Blocks: 1}).Lacking() {
		t.Error("what lacks data")
	}
}

func TestPreparedSentences(t *testing.T) {
	t.Parallel()
	part := int64(3 << 30)
	for want, got := range map[string]string{
		"prefilled: 3 GiB of 4 GiB allocated, 512 of 2,048 sampled blocks zero: a /dev/sdb": Written{
			Ranges: WrittenByPrefill, Bytes: 4 << 30, Mapped: &part, Blocks: 2048, Zero: 512,
			Devices: []string{"a /dev/sdb"}}.Sentence(),
		"to be read: 4 GiB, not all could be looked at": Written{Ranges: ReadByWorkload, Bytes: 4 << 30,
			Problem: "gone"}.Sentence(),
		"purged; 1 of 2 passes, 3 GiB written; interrupted after 0 rounds; it was stopped": Preconditioning{Purged: "so",
			WantPasses: 2, Passes: []Pass{{Bytes: part}}, State: PreconditionInterrupted,
			Reason: "it was stopped"}.Sentence(),
		"1 of 1 pass, 3 GiB written; round 2: 1,234 operations/s": Preconditioning{WantPasses: 1,
			Passes: []Pass{{Bytes: part}}, Rounds: rates(5, 1234.4), State: PreconditionGoesOn}.Sentence(),
		"steady after 5 rounds": Preconditioning{Rounds: rates(1, 1, 1, 1, 1), State: Preconditioned}.Sentence(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// FuzzPrepared: whatever a journal's line holds, what comes of it is in words and in JSON.
func FuzzPrepared(f *testing.F) {
	for _, p := range []any{Preconditioning{Workload: "W", Rounds: rates(1)}, Written{Bytes: 1}, "text", 7} {
		data, err := json.Marshal(map[string]any{"preconditioning": p, "written": p})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d EventData
		if json.Unmarshal(data, &d) != nil {
			return
		}
		pre, written := Prepared([]Event{{Kind: KindPrecondition, Data: d}, {Kind: KindWritten, Data: d}}, true)
		text := fmt.Sprint(len(pre), len(written))
		for _, p := range pre {
			text += p.Sentence()
		}
		for _, w := range written {
			text += w.Sentence()
		}
		if _, err := json.Marshal([]any{pre, written}); err != nil || strings.Contains(text, "%!") {
			t.Errorf("%s: %v", text, err)
		}
	})
}
