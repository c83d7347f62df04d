package loads

import (
	"context"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/target"
)

// gate lets the jobs of a start begin together: each waits behind it when all but its beginning is done.
type gate struct {
	mu      sync.Mutex
	left    map[*job]bool // those that are neither ready nor over
	ready   chan struct{} // closed when left is empty
	release chan struct{} // closed when they may begin
}

// gateLimit is how long those that are ready wait for the others.
const gateLimit = time.Minute

// gated puts the jobs of a start behind a gate, if they are to begin together and their hosts can wait; else nil. Hosts
// that can are real ones: nothing here waits by the run's clock, which may be virtual.
func (l *Set) gated(s *Start, stagger time.Duration) *gate {
	if stagger > 0 || len(s.jobs) < 2 {
		return nil
	}
	g := &gate{left: map[*job]bool{}, ready: make(chan struct{}), release: make(chan struct{})}
	for _, j := range s.jobs {
		if _, can := target.HostAs[target.Stager](j.host); !can {
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

// wait is called by a job that is ready, and returns when it may begin.
func (g *gate) wait(ctx context.Context, j *job) error {
	g.leave(j)
	select {
	case <-g.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open lets them begin once all are ready or over, but those that are late no later than after limit. It returns the
// machines that were not.
func (g *gate) open(ctx context.Context, limit time.Duration) (late []string, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-g.ready:
	case <-timer.C:
	case <-ctx.Done(): // the jobs are stopped by who stops the run
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	close(g.release)
	g.mu.Lock()
	defer g.mu.Unlock()
	for j := range g.left {
		late = append(late, j.vm.Name)
	}
	slices.Sort(late)
	return late, nil
}
