//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/procfs"
)

// dieWithin bounds the wait for killed processes: one in the middle of a disk operation dies when that ends.
const dieWithin = time.Minute

// dieAgain is that bound once killed processes were still alive after it.
const dieAgain = 5 * time.Second

// PowerOn implements target.Cluster. A sandbox is on at once, so maxConcurrent is only checked.
func (c *cluster) PowerOn(ctx context.Context, names []string, maxConcurrent int) error {
	if maxConcurrent < 1 {
		return fmt.Errorf("power on: at most %d at a time: must be at least 1", maxConcurrent)
	}
	return each(ctx, "power on", names, func(name string) error {
		b, err := c.occupy(ctx, name)
		if err != nil {
			return err
		}
		defer b.release()
		c.mu.Lock()
		dying := b.dying
		c.mu.Unlock()
		if dying != nil { // a power-off was interrupted
			if err := c.finish(ctx, []*cut{dying}); err != nil {
				return err
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.checkNode(b.node, true); err != nil {
			return fmt.Errorf("vm %q: %w", name, err)
		}
		if b.power == target.On {
			return nil
		}
		if b.dying != nil {
			return fmt.Errorf("vm %q: processes of its last boot are still being ended", name)
		}
		c.boots++
		b.key = "vm-" + b.name + "." + strconv.Itoa(c.boots)
		b.power = target.On
		if err := c.groups.boot(b.key, b.cpus, b.memory); err != nil {
			c.log("vm %q runs without limits: %v", name, err)
		}
		return nil
	})
}

// PowerOff implements target.Cluster.
func (c *cluster) PowerOff(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	var boxes []*sandbox
	var problems []error
	for _, name := range names {
		b, err := c.lookup(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("power off: %w", err))
			continue
		}
		boxes = append(boxes, b)
	}
	return errors.Join(append(problems, wrap("power off", c.powerOff(ctx, boxes)))...)
}

// powerOff turns sandboxes off and returns when none of their processes is left.
func (c *cluster) powerOff(ctx context.Context, boxes []*sandbox) error {
	return c.finish(ctx, c.strike(boxes))
}

// cut is a sandbox whose power has been cut, with what its boot leaves to be cleared away.
type cut struct {
	box   *sandbox
	key   string
	units []*command
}

// strike marks sandboxes off and kills their control groups, waiting for nothing: no command starts in them any more,
// and those that run count as lost. It also returns earlier cuts of theirs that are not at their end.
func (c *cluster) strike(boxes []*sandbox) []*cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cuts []*cut
	for _, b := range boxes {
		if b.dying != nil {
			cuts = append(cuts, b.dying)
		}
		if b.power != target.On {
			continue
		}
		fresh := &cut{box: b, key: b.key}
		for _, u := range b.units {
			if u.key == b.key {
				u.lost = true
				fresh.units = append(fresh.units, u)
			}
		}
		b.power, b.key, b.dying = target.Off, "", fresh
		cuts = append(cuts, fresh)
	}
	if c.groups.track.dir != "" { // else the first pass of finish is as fast
		for _, cut := range cuts {
			killGroup(c.groups.tracked(cut.key))
		}
	}
	return cuts
}

// finish kills what is left of the sandboxes until nothing is, and clears their groups away.
func (c *cluster) finish(ctx context.Context, cuts []*cut) error {
	if len(cuts) == 0 {
		return nil
	}
	var names []string
	units := map[string]bool{}
	for _, cut := range cuts {
		names = append(names, strconv.Quote(cut.box.name))
		for _, u := range cut.units {
			units[u.unit()] = true
		}
	}
	err := c.killAll(ctx, func() ([]process, error) {
		if c.groups.track.dir == "" {
			return c.marked(func(unit string) bool { return units[unit] })
		}
		var all []process
		for _, cut := range cuts {
			list, err := members(c.groups.tracked(cut.key))
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		return all, nil
	})
	if err != nil {
		return fmt.Errorf("vm %s: %w", strings.Join(names, ", "), err)
	}
	var problems []error
	for _, cut := range cuts {
		problems = append(problems, c.clear(ctx, cut))
	}
	return errors.Join(problems...)
}

// clear waits for the commands of a cut to be reaped, keeps the account of its CPU time and removes its groups.
func (c *cluster) clear(ctx context.Context, cut *cut) error {
	for _, u := range cut.units {
		select {
		case <-u.done:
		case <-ctx.Done():
			return fmt.Errorf("vm %q: %w", cut.box.name, ctx.Err())
		}
	}
	user, system, _ := groupCPU(c.groups.tracked(cut.key))
	c.mu.Lock()
	if cut.box.dying == cut { // else another call has done it
		cut.box.dying = nil
		cut.box.cpuBefore += user + system
	}
	c.mu.Unlock()
	if err := c.groups.remove(cut.key); err != nil {
		return fmt.Errorf("vm %q: %w", cut.box.name, err)
	}
	return nil
}

// marked lists the live processes of the run whose unit the filter accepts.
func (c *cluster) marked(accept func(unit string) bool) ([]process, error) {
	all, err := marked(c.mark)
	var some []process
	for _, p := range all {
		if accept(p.unit) {
			some = append(some, p)
		}
	}
	return some, err
}

// living lists all live processes of the run.
func (c *cluster) living() ([]process, error) {
	if dir := c.groups.tracked(); dir != "" {
		return members(dir)
	}
	return marked(c.mark)
}

// killAll kills what list returns, again and again, until it returns nothing twice: while the processes are gone
// through, one may be begun that is not seen any more by one that ends before it is.
func (c *cluster) killAll(ctx context.Context, list func() ([]process, error)) error {
	within := dieWithin
	if c.undying.Load() { // a minute was waited for what hangs already
		within = dieAgain
	}
	deadline := c.clock.Now().Add(within)
	before := false // whether there was nothing at the last look
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		left, err := list()
		if err != nil || len(left) == 0 && before {
			return err
		}
		if before = len(left) == 0; before {
			continue
		}
		var problems []error
		for _, p := range left {
			problems = append(problems, p.kill())
		}
		if err := errors.Join(problems...); err != nil {
			return err
		}
		if c.clock.Now().After(deadline) {
			c.undying.Store(true)
			return fmt.Errorf("killed processes still alive after %v: %s", within, describe(left))
		}
		if err := c.clock.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("killed, but not yet seen to end: %s: %w", describe(left), err)
		}
	}
}

// hangs says which processes hang in the kernel though they were killed. Nothing of their disks is removed then:
// whoever touches the file system that they wait for hangs there, too.
func hangs(left []process) error {
	var hung []process
	for _, p := range left {
		if slices.ContainsFunc(procfs.Stands(p.pid), func(s procfs.Standing) bool { return s.State == 'D' }) {
			hung = append(hung, p)
		}
	}
	if len(hung) == 0 {
		return nil
	}
	return fmt.Errorf("left alone, for its file system may not answer: %s", describe(hung))
}

// NodeState implements target.Cluster.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if err := ctx.Err(); err != nil {
		return target.Unknown, false, fmt.Errorf("node state: node %d: %w", node, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkNode(node, false); err != nil {
		return target.Unknown, false, fmt.Errorf("node state: %w", err)
	}
	if !c.on[node] {
		return target.Off, false, nil
	}
	return target.On, true, nil
}

// nodeController switches one logical node. It is asked in the same words as a BMC, and needs no credentials.
type nodeController struct {
	c    *cluster
	node int
}

var _ target.PowerController = nodeController{}

// PowerController implements target.NodePower.
func (c *cluster) PowerController(node int) (target.PowerController, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkNode(node, false); err != nil {
		return nil, fmt.Errorf("power controller: %w", err)
	}
	return nodeController{c, node}, nil
}

// State implements target.PowerController.
func (p nodeController) State(ctx context.Context) (target.PowerState, error) {
	state, _, err := p.c.NodeState(ctx, p.node)
	return state, err
}

// PowerOff implements target.PowerController: every process of the node's sandboxes is killed at once.
func (p nodeController) PowerOff(ctx context.Context) error {
	return p.c.nodeOff(ctx, "power off node", p.node)
}

// Shutdown implements target.PowerController. Sandboxes have no operating system to ask, so it differs from a power-off
// only in order: nothing new starts on the node, then its VMs go one after another.
func (p nodeController) Shutdown(ctx context.Context) error {
	return p.c.nodeOff(ctx, "shut down node", p.node)
}

// PowerOn implements target.PowerController. The node's VMs stay off until they are powered on.
func (p nodeController) PowerOn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("power on node: node %d: %w", p.node, err)
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.on[p.node] = true
	return nil
}

func (c *cluster) nodeOff(ctx context.Context, verb string, node int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: node %d: %w", verb, node, err)
	}
	c.mu.Lock()
	if err := c.checkNode(node, false); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("%s: %w", verb, err)
	}
	c.on[node] = false // before the kill: nothing is powered on behind our back
	boxes := c.sandboxes(node)
	c.mu.Unlock()
	return wrap(fmt.Sprintf("%s: node %d", verb, node), c.powerOff(ctx, boxes))
}
