package loads

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// Jobs behind a gate begin at one moment: when the last is ready or over, or without those that take too long.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		ready []time.Duration // of each job, after the start; 0: it ends without ever being ready
		late  []string
		at    time.Duration
	}{
		"all ready":            {[]time.Duration{time.Second, 3 * time.Second}, nil, 3 * time.Second},
		"one fails":            {[]time.Duration{time.Second, 0}, nil, time.Second},
		"one takes a long day": {[]time.Duration{time.Second, 24 * time.Hour}, []string{"b"}, gateLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			began := time.Now()
			g := &gate{machines: len(c.ready), left: map[*job]bool{}, ready: make(chan struct{}),
				release: make(chan struct{})}
			moments := make(chan time.Duration, len(c.ready))
			jobs := make([]*job, len(c.ready))
			for i := range c.ready {
				jobs[i] = &job{vm: target.VM{Name: string(rune('a' + i))}}
				g.left[jobs[i]] = true
			}
			for i, after := range c.ready {
				j := jobs[i]
				go func() {
					defer g.leave(j)
					if after == 0 || (clock.Real{}).Sleep(ctx, after) != nil {
						return
					}
					if at, err := g.wait(ctx, j); err == nil {
						moments <- at.Sub(began)
					}
				}()
			}
			synctest.Wait()
			late, err := g.open(ctx, clock.Real{}, gateLimit)
			if diff := cmp.Diff(c.late, late); diff != "" || err != nil {
				t.Errorf("%s: %v, late %s", name, err, diff)
			}
			if got, want := <-moments, c.at+lead(len(c.ready)); got != want {
				t.Errorf("%s: they begin after %v, want %v", name, got, want)
			}
			stop()
		})
	}
	g := &gate{machines: 1, left: map[*job]bool{{}: true}, ready: make(chan struct{}), release: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := g.open(ctx, clock.Real{}, gateLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is stopped: %v", err)
	}
}
