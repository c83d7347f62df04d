package remote_test

import (
	"testing"
	"time"

	"plimsoll/internal/testkit/sshtest"
)

// A clock that is ahead is measured as such, and what begins there is dated by ours.
func TestClockAhead(t *testing.T) {
	const ahead = 90 * time.Second
	h := fleetOf(t, sshtest.NewAhead(t, ahead, "one"), 1)[0]
	r, err := h.ReadClock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Bound <= 0 || (r.Ahead-ahead).Abs() > r.Bound {
		t.Errorf("it is %v ± %v ahead: want %v", r.Ahead, r.Bound, ahead)
	}
	ready, err := h.Stage(t.Context(), clocked)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	p, begun, err := ready.Release(t.Context(), before)
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	if begun.At.Before(before.Add(-begun.Within)) || begun.At.After(after.Add(begun.Within)) {
		t.Errorf("it began at %v ± %v: it was released at %v and the answer came at %v", begun.At, begun.Within, before,
			after)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
