package remote

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
)

// The narrowest reading counts until clocks may have drifted past it; what contradicts an earlier one is of a clock
// that was set.
func TestReadings(t *testing.T) {
	begin := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	reading := func(at, ahead, bound time.Duration) target.ClockReading {
		return target.ClockReading{At: begin.Add(at), Ahead: ahead, Bound: bound}
	}
	for _, c := range []struct {
		name string
		list []target.ClockReading
		now  time.Duration
		want target.ClockReading
	}{
		{"none", nil, 0, reading(0, 0, 0)},
		{"the narrowest", []target.ClockReading{reading(0, 30*ms, 20*ms), reading(0, 12*ms, ms),
			reading(0, 25*ms, 15*ms)}, 0, reading(0, 12*ms, ms)},
		{"it ages", []target.ClockReading{reading(0, 12*ms, ms)}, 10 * time.Second,
			reading(10*time.Second, 12*ms, 6*ms)},
		{"a newer one overtakes it", []target.ClockReading{reading(0, 12*ms, ms), reading(10*time.Second, 15*ms, 4*ms)},
			10 * time.Second, reading(10*time.Second, 15*ms, 4*ms)},
		{"the clock was set", []target.ClockReading{reading(0, 12*ms, ms), reading(time.Second, time.Minute, 50*ms)},
			time.Second, reading(time.Second, time.Minute, 50*ms)},
	} {
		var r readings
		for _, one := range c.list {
			r.add(one)
		}
		if diff := cmp.Diff(c.want, func() target.ClockReading {
			got := r.best(begin.Add(c.now))
			got.At = begin.Add(c.now)
			return got
		}()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}
