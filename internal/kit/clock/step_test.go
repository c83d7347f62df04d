package clock

import (
	"testing"
	"time"
	"unsafe"
)

// set is a moment as it reads when the wall clock was set to another time before it, by whole seconds: the first word
// of a time with a monotonic reading holds the wall's seconds above thirty bits of nanoseconds.
func set(now time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += uint64(seconds) << 30
	return now
}

// A wall clock that is set to another time changes nothing of the run's.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int64{-86400, -3600, -1, 1, 3600, 86400} {
		now := time.Now()
		wrong := set(now, seconds)
		if moved := wrong.Round(0).Sub(now.Round(0)); moved != time.Duration(seconds)*time.Second {
			t.Fatalf("set by %d s, it moved by %v", seconds, moved)
		}
		if got, want := since(wrong), since(now); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("set by %d s: %v, want %v", seconds, got, want)
		}
	}
	before := time.Now()
	if got := (Real{}).Now(); got.Before(before.Add(-time.Second)) || got.After(time.Now().Add(time.Second)) {
		t.Errorf("%v, and the wall clock says %v", got, before)
	}
}
