package loads

import (
	"context"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// gate lets the jobs of a start begin together: each waits behind it when all but its beginning is done.
type gate struct {
	machines int
	mu       sync.Mutex
	left     map[*job]bool // those that are neither ready nor over
	ready    chan struct{} // closed when left is empty
	release  chan struct{} // closed when it is known when they begin
	at       time.Time     // which is then
}

// gateLimit is how long those that are ready wait for the others.
const gateLimit = 3 * time.Minute // programs of our own are put on machines before that, which may be slow

// lead is how long before they begin they are told so: for as long as it takes to tell all of them, so that those that
// begin first do not keep the message from the others. They share a connection's way, or this machine's processors.
func lead(machines int) time.Duration {
	return 100*time.Millisecond + time.Duration(machines)*2*time.Millisecond
}

// gated puts the jobs of a start behind a gate, if they are to begin together and their hosts can wait; else nil. Hosts
// that can are real ones: nothing here waits by the run's clock, which may be virtual.
func (l *Set) gated(s *Start, stagger time.Duration) *gate {
	if stagger > 0 || len(s.jobs) < 2 {
		return nil
	}
	g := &gate{machines: len(s.jobs), left: map[*job]bool{}, ready: make(chan struct{}), release: make(chan struct{})}
	for _, j := range s.jobs {
		if _, can := j.host.(target.Stager); !can {
			return nil
		}
		g.left[j] = true
	}
	for _, j := range s.jobs {
		j.gate = g
	}
	return g
}

// leave takes a job off the list of those that are waited for. Twice is fine.
func (g *gate) leave(j *job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.left[j] {
		return
	}
	delete(g.left, j)
	if len(g.left) == 0 {
		close(g.ready)
	}
}

// wait is called by a job that is ready, and returns when it is known when it begins.
func (g *gate) wait(ctx context.Context, j *job) (at time.Time, err error) {
	g.leave(j)
	select {
	case <-g.release:
		return g.at, nil
	case <-ctx.Done():
		return at, ctx.Err()
	}
}

// open lets them begin once all are ready or over, and no later than after limit. It returns the machines that were not
// ready by then.
func (g *gate) open(ctx context.Context, c clock.Clock, limit time.Duration) (late []string, err error) {
	within, cancel := clock.WithTimeout(ctx, c, limit)
	defer cancel()
	select {
	case <-g.ready:
	case <-within.Done():
		if err := ctx.Err(); err != nil {
			return nil, err // the jobs are stopped by who stops the run
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = c.Now().Add(lead(g.machines))
	close(g.release)
	for j := range g.left {
		late = append(late, j.vm.Name)
	}
	slices.Sort(late)
	return late, nil
}
