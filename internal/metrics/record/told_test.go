package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestClockSeconds holds what is told of a tool's clock: what its measured error allows is not, nor, where nothing is
// measured, what lies below a second.
func TestClockSeconds(t *testing.T) {
	t.Parallel()
	const ms, µs = time.Millisecond, time.Microsecond
	type told struct {
		First float64
		Now   *float64
	}
	measured := func(ahead, bound time.Duration) machineClock {
		return machineClock{known: true, ahead: ahead, bound: bound}
	}
	for name, c := range map[string]struct {
		clock   machineClock
		ahead   time.Duration
		bounded bool
		guessed bool
		want    told
	}{
		"nothing measured, close":  {ahead: 999 * ms, bounded: true},
		"nothing measured, ahead":  {ahead: time.Second, bounded: true, want: told{First: 1}},
		"nothing measured, behind": {ahead: -2*time.Second - 400*µs, bounded: true, want: told{First: -2}},
		"measured, no report yet":  {clock: measured(5*time.Second, ms), ahead: 1500 * ms, want: told{First: 1.5}},
		"within its error":         {clock: measured(3*ms, 3*ms), ahead: 3 * ms, bounded: true},
		"beyond its error": {clock: measured(-4*ms, 3*ms), ahead: -4 * ms, bounded: true,
			want: told{First: -.004}},
		"moved by its error": {clock: measured(10*ms, 2*ms), ahead: 8 * ms, bounded: true,
			want: told{First: .008}},
		"moved beyond its error": {clock: measured(11*ms, 2*ms), ahead: 8 * ms, bounded: true,
			want: told{.008, new(.011)}},
		"moved back": {clock: measured(0, 2*ms), ahead: 8 * ms, bounded: true,
			want: told{.008, new(0.)}},
		"guessed, and read later": {clock: measured(-2*ms, 9*ms), ahead: -692 * ms, bounded: true,
			guessed: true},
		"guessed, and read later, beyond": {clock: measured(-20*ms, 9*ms), ahead: -692 * ms, bounded: true,
			guessed: true, want: told{First: -.02}},
		"guessed, and set before it was read": {clock: measured(0, 9*ms), ahead: -5 * time.Second, bounded: true,
			guessed: true, want: told{-5, new(0.)}},
		"moved by a millisecond":     {clock: measured(ms, 0), bounded: true},
		"moved beyond a millisecond": {clock: measured(1600*µs, 0), bounded: true, want: told{Now: new(.002)}},
	} {
		j := &Job{vm: &vmState{clock: c.clock}, ahead: c.ahead, bounded: c.bounded, guessed: c.guessed}
		first, now := j.ClockSeconds()
		if diff := cmp.Diff(c.want, told{first, now}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWarnings holds that a warning is told once, with how often it came, and that points came too late.
func TestWarnings(t *testing.T) {
	t.Parallel()
	r := NewRecorder(RecorderOptions{Now: time.Now})
	if got := r.Warnings(); got != nil {
		t.Errorf("without any: %q", got)
	}
	j := &Job{r: r}
	for _, text := range []string{"once", "again", "again", "again", "both", "both"} {
		j.Warn(text)
	}
	r.dropped = 1
	want := []string{"1 points came too late for the metrics database and were left out of it", "again (3 times)",
		"both (2 times)", "once"}
	if diff := cmp.Diff(want, r.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
