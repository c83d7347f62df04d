package remote

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/ssh/agent"
)

// readings are the last readings of a machine's clock. A round trip that was quick tells more than a later one that was
// not: the one with the narrowest bound counts, until the clocks may have drifted apart since.
type readings struct {
	mu   sync.Mutex
	list []target.ClockReading
}

const (
	mostReadings = 16
	// drift is how fast clocks part at most, in parts of a million: what the kernel lets NTP slew them by.
	drift = 500
)

// grown is the bound of a reading by now.
func grown(r target.ClockReading, now time.Time) time.Duration {
	return r.Bound + now.Sub(r.At).Abs()*drift/1e6
}

// add takes a reading in. Those before it that it contradicts are of a clock that was set since, and are forgotten.
func (r *readings) add(one target.ClockReading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(old target.ClockReading) bool {
		return (old.Ahead - one.Ahead).Abs() > grown(old, one.At)+one.Bound
	})
	r.list = append(r.list, one)
	r.list = r.list[max(0, len(r.list)-mostReadings):]
}

// best returns what is known at a moment: the reading whose bound is narrowest then, with that bound.
func (r *readings) best(now time.Time) (best target.ClockReading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, one := range r.list {
		if one.Bound = grown(one, now); i == 0 || one.Bound <= best.Bound {
			best = one
		}
	}
	best.At = now
	return best
}

// reading is how far the machine's clock is ahead by now, as far as is known.
func (l *link) reading() target.ClockReading { return l.clocks.best(l.clock.Now()) }

// readClock asks the machine for the time, again and again. Its clock was read between the moment when we asked and the
// one when the answer came.
func (l *link) readClock(ctx context.Context, times int) error {
	for range times {
		sent := l.clock.Now()
		answer, err := l.ask(ctx, http.MethodGet, "/hello", nil)
		if err != nil {
			return err
		}
		trip := l.clock.Now().Sub(sent)
		_ = answer.Body.Close() // its header is what counts
		theirs, err := strconv.ParseInt(answer.Header.Get(agent.Hours), 10, 64)
		if err != nil {
			return fmt.Errorf("its clock: %w", err)
		}
		middle := sent.Add(trip / 2)
		l.clocks.add(target.ClockReading{At: middle, Ahead: time.Unix(0, theirs).Sub(middle), Bound: trip / 2})
	}
	return nil
}
