// Package clock is the only source of time, sleep and goroutines for everything that runs a scenario.
//
// Steps, engines and targets never call time.Now, time.Sleep or the go statement for scenario work: they ask
// a Clock. The real clock is a thin cover over package time. A virtual clock (used by simulated clusters) runs
// one goroutine of the scenario at a time and jumps to the next wake-up when all of them sleep, so that twelve
// hours pass in seconds and the same seed gives the same order of events. That only works while every
// goroutine that can sleep was started through Group.Go and every wait is a Sleep or a Group.Wait: do not
// block on channels or condition variables across virtual time; poll with Sleep.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock tells the time of a run and makes its goroutines.
type Clock interface {
	// Now is the current time of the run, in UTC. It never goes back.
	Now() time.Time
	// Sleep waits for d (returning at once when d <= 0) or until ctx is done, whichever is first,
	// and returns ctx.Err() in the second case.
	Sleep(ctx context.Context, d time.Duration) error
	// Group returns an empty group of goroutines known to the clock.
	Group() Group
}

// Group is a set of goroutines of one clock. Go starts one; Wait returns when all have ended.
type Group interface {
	Go(func())
	Wait()
}

// Real is the machine's clock.
type Real struct{}

var _ Clock = Real{}

// origin is when this process began, or little later, with the monotonic reading.
var origin = time.Now()

// Now is when this process began and what has passed since, by the monotonic clock: a wall clock that is set to another
// time meanwhile ends no run early and holds none up, and no journal goes back.
func (Real) Now() time.Time { return since(time.Now()) }

// since is now in UTC, which drops the monotonic reading, by that reading.
func since(now time.Time) time.Time { return origin.UTC().Add(now.Sub(origin)) }

// Sleep implements Clock.
func (Real) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Group implements Clock.
func (Real) Group() Group { return &realGroup{} }

type realGroup struct{ wg sync.WaitGroup }

func (g *realGroup) Go(f func()) { g.wg.Go(f) }
func (g *realGroup) Wait()       { g.wg.Wait() }
