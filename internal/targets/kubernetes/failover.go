package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/fleet"
	"plimsoll/result"
)

var _ target.Availability = (*cluster)(nil)

// restartEach is how often machines of lost nodes are looked for.
const restartEach = 2 * time.Second

// SetHA implements target.Availability.
func (c *cluster) SetHA(_ context.Context, names []string, enabled bool) error {
	list, err := fleet.Named(names, c.get)
	return errors.Join(err, c.change(func() {
		for _, v := range list {
			v.Exempt = !enabled
		}
	}))
}

// SetBalancing implements target.Availability. A pod stays where it is, so all are exempt from it.
func (c *cluster) SetBalancing(_ context.Context, names []string, _ bool) error {
	_, err := fleet.Named(names, c.get)
	return err
}

// restart starts machines whose node lost its power on another one, and tries again until it works, somebody switches
// the machine off, or the run ends. What cannot be is told once.
func (c *cluster) restart(ctx context.Context) {
	told := map[string]bool{}
	for c.place.clock.Sleep(ctx, restartEach) == nil {
		group := c.place.clock.Group()
		why := make(chan string, len(c.waiting()))
		for _, v := range c.waiting() {
			group.Go(func() {
				if err := c.failover(ctx, v); err != nil && ctx.Err() == nil {
					select {
					case why <- fmt.Sprintf("vm %s is not restarted yet: %v", v.Name, err):
					default:
					}
				}
			})
		}
		group.Wait()
		close(why)
		for text := range why {
			if !told[text] {
				told[text] = true
				c.log("%s", text)
			}
		}
	}
}

// waiting are machines that should run and whose node went off.
func (c *cluster) waiting() (list []*vm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		if v.Wanted && v.Lost && !v.On && !v.Exempt {
			list = append(list, v)
		}
	}
	return list
}

// failover starts a machine of a lost node on the next one that is ready and that its volumes are reached from.
func (c *cluster) failover(ctx context.Context, v *vm) error {
	lost := v.Node
	if !c.isOff(ctx, lost) { // it is back: what was on it is switched on by steps
		return nil
	}
	var refused []error
	for step := 1; step < len(c.nodes); step++ {
		to := (lost + step) % len(c.nodes)
		o, err := c.api.get(ctx, nodes, c.nodes[to].Name)
		if err == nil && (o == nil || !nodeReady(o)) {
			err = fmt.Errorf("node %q is not ready", c.nodes[to].Name)
		}
		if err == nil {
			err = c.reached(ctx, v, to)
		}
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if !slices.Contains(c.waiting(), v) {
			return nil
		}
		if err := c.change(func() { v.Node = to }); err != nil {
			return err
		}
		if err := c.on(ctx, v.Name, c.place.clock.Now()); err != nil {
			return errors.Join(err, c.change(func() {
				if !v.On {
					v.Node = lost
				}
			}))
		}
		c.tell(to, result.Restarted, "vm %s is restarted on %s", v.Name, c.nodes[to].Name)
		return nil
	}
	return errors.Join(refused...)
}

// reached refuses a node from which the storage does not reach a machine's volumes.
func (c *cluster) reached(ctx context.Context, v *vm, node int) error {
	to := c.nodes[node].Name
	for _, claim := range v.claims() {
		hosts, err := c.api.keptTo(ctx, claim)
		if err != nil {
			return err
		}
		if hosts != nil && !slices.Contains(hosts, to) {
			return fmt.Errorf("its volume %s is kept to %s, and cannot be used on %s", claim,
				strings.Join(hosts, ", "), to)
		}
	}
	return nil
}
