package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/effect"
)

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// grown adds points from..to-1 of a measure that drops by a tenth at 12, with a gap at 5.
func grown(t *testing.T, h *History, name string, from, to int) (told []string) {
	t.Helper()
	for i := from; i < to; i++ {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		level := 100.0
		if i >= 12 {
			level = 90
		}
		p := Point{Label: fmt.Sprint("c", i), Values: map[string]float64{"flat": 50 + r.NormFloat64()}}
		if i != 5 {
			p.Values[name] = level + r.NormFloat64()
		}
		if h.Add(p) != 1 || h.Add(p) != 0 {
			t.Fatalf("point %d", i)
		}
		changes, err := h.Changes(0.01)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.New {
				told = append(told, fmt.Sprintf("%s at %s: %s", c.Measure, c.At, c.Verdict))
			}
		}
		h.Tell(changes, day)
	}
	return told
}

func TestToldOnce(t *testing.T) {
	t.Parallel()
	h := &History{Better: map[string]effect.Direction{"rate": effect.HigherIsBetter}}
	if d := cmp.Diff([]string{"rate at c12: worse"}, grown(t, h, "rate", 0, 40)); d != "" {
		t.Error(d)
	}
	k, err := h.Acknowledge("rate", "", "a new kernel", "me")
	if err != nil || k.At != "c12" {
		t.Error(k, err)
	}
	if err := h.Rename("rate", "read rate"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string(nil), grown(t, h, "read rate", 40, 50)); d != "" {
		t.Error(d)
	}
	changes, err := h.Changes(0.01)
	if err != nil || len(changes) != 1 || changes[0].New || changes[0].Note != "a new kernel" ||
		changes[0].Verdict != Worse || changes[0].Points != 49 {
		t.Errorf("%+v, %v", changes, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := &History{Points: []Point{{Label: "x", Values: map[string]float64{"a": 1, "b": 2}}}}
	for want, err := range map[string]error{
		`no measure "c" to rename`:                      h.Rename("c", "d"),
		`x has both "a" and "b": they are two measures`: h.Rename("a", "b"),
		`no known change of "a"`:                        second(h.Acknowledge("a", "", "", "")),
		`no known change of "a" at "x"`:                 second(h.Acknowledge("a", "x", "", "")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

func second(_ Known, err error) error { return err }
