package run

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// The clocks of machines are read this often, and each within so long.
const (
	clockEvery = 10 * time.Second
	clockLimit = 5 * time.Second
)

// clocks keeps how far the clocks of the machines are ahead, and tells the recorder, which puts reports on the run's.
type clocks struct {
	x     *execution
	known map[string]*result.HostClock
}

// newClocks returns nil where machines have no clocks of their own, or only in their own time.
func (x *execution) newClocks(ctx context.Context) *clocks {
	if x.req.Facts.Simulated {
		return nil
	}
	vms, err := x.cluster.VMs(ctx)
	if err != nil {
		return nil
	}
	for _, vm := range vms {
		if h, err := x.cluster.Host(vm.Name); err == nil {
			if _, has := h.(target.ClockReader); has {
				return &clocks{x: x, known: map[string]*result.HostClock{}}
			}
		}
	}
	return nil
}

// watch reads the clocks until ctx is done.
func (c *clocks) watch(ctx context.Context) {
	for c.x.req.Clock.Sleep(ctx, clockEvery) == nil {
		c.read(ctx)
	}
}

// read reads the clocks of the machines that are on, all at once. What does not answer is left out: others tell of it.
func (c *clocks) read(ctx context.Context) {
	err := c.x.guarded(func() error {
		vms, err := c.x.cluster.VMs(ctx)
		if err != nil {
			return nil // steps and jobs tell
		}
		limited, cancel := clock.WithTimeout(ctx, c.x.req.Clock, clockLimit)
		defer cancel()
		var mu sync.Mutex
		return clock.Parallel(c.x.req.Clock, len(vms), max(1, len(vms)), func(i int) error {
			if vms[i].Power != target.On || vms[i].Template {
				return nil
			}
			h, err := c.x.cluster.Host(vms[i].Name)
			if err != nil {
				return nil // it was deleted
			}
			reader, has := h.(target.ClockReader)
			if !has {
				return nil
			}
			r, err := reader.ReadClock(limited)
			if err != nil {
				return nil // it is away
			}
			mu.Lock()
			c.note(vms[i].Name, r)
			mu.Unlock()
			c.x.recorder.Clock(vms[i].Name, r.Ahead, r.Bound)
			return nil
		})
	})
	if err != nil {
		c.x.record(result.Event{Kind: result.KindWarning, Text: "the machines' clocks cannot be read",
			Error: sentence(err)})
	}
	list := make([]result.HostClock, 0, len(c.known))
	for _, one := range c.known {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b result.HostClock) int { return strings.Compare(a.VM, b.VM) })
	c.x.update(func(m *result.Manifest) { m.Clocks = list })
}

// note takes a reading in.
func (c *clocks) note(vm string, r target.ClockReading) {
	one := result.ClockReading{Time: r.At.UTC().Round(0), AheadSeconds: r.Ahead.Seconds(),
		BoundSeconds: r.Bound.Seconds()}
	k := c.known[vm]
	if k == nil {
		k = &result.HostClock{VM: vm, First: one, LeastSeconds: one.AheadSeconds, MostSeconds: one.AheadSeconds}
		c.known[vm] = k
	}
	k.Last = one
	k.LeastSeconds, k.MostSeconds = min(k.LeastSeconds, one.AheadSeconds), max(k.MostSeconds, one.AheadSeconds)
	k.Readings++
}
