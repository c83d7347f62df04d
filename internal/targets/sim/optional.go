package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/sim/perf"
)

// nodeDo does what a power controller was told under the lock.
func (c *cluster) nodeDo(ctx context.Context, method string, node int, do func()) error {
	err := c.w.call(ctx, method, strconv.Itoa(node), func() error {
		if c.w.nodes[node].dark {
			return errDark
		}
		do()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: node %d: %w", method, node, err)
	}
	return nil
}

// nodeController is the power controller of a node. Rules and faults know its calls as PowerOffNode, PowerOnNode and
// ShutdownNode of the node's number.
type nodeController struct {
	c    *cluster
	node int
}

var _ target.PowerController = nodeController{}

// PowerController implements target.NodePower.
func (c *cluster) PowerController(node int) (target.PowerController, error) {
	err := c.need(target.NodePowerControl)
	if err == nil {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if err = c.w.node(node, false); err == nil && c.w.nodes[node].bare {
			err = target.ErrNoController
		}
	}
	if err != nil {
		return nil, fmt.Errorf("power controller: node %d: %w", node, err)
	}
	return nodeController{c, node}, nil
}

// State implements target.PowerController.
func (p nodeController) State(ctx context.Context) (target.PowerState, error) {
	state, _, err := p.c.NodeState(ctx, p.node)
	return state, err
}

// PowerOff implements target.PowerController.
func (p nodeController) PowerOff(ctx context.Context) error {
	return p.c.nodeDo(ctx, "PowerOffNode", p.node, func() { p.c.w.nodeOff(p.node) })
}

// PowerOn implements target.PowerController.
func (p nodeController) PowerOn(ctx context.Context) error {
	return p.c.nodeDo(ctx, "PowerOnNode", p.node, func() { p.c.w.nodeOn(p.node) })
}

// Shutdown implements target.PowerController.
func (p nodeController) Shutdown(ctx context.Context) error {
	if err := p.c.need(target.NodeShutdown); err != nil {
		return fmt.Errorf("ShutdownNode: node %d: %w", p.node, err)
	}
	return p.c.nodeDo(ctx, "ShutdownNode", p.node, func() { p.c.w.nodeOff(p.node) })
}

// Snapshot implements target.Snapshotter.
func (c *cluster) Snapshot(ctx context.Context, tag string, vms []string) error {
	if err := c.need(target.Snapshots); err != nil {
		return err
	}
	if tag == "" || strings.Contains(tag, "/") {
		return fmt.Errorf("snapshot: tag %q: must not be empty or hold a slash", tag)
	}
	if err := c.each(ctx, "Snapshot", vms, func(m *machine) error {
		if m.snapshots[tag] != nil {
			return fmt.Errorf("snapshot %q exists already", tag)
		}
		return c.w.node(m.Node, true)
	}); err != nil {
		return err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, name := range vms {
		if m := c.machines[name]; m != nil {
			m.snapshots[tag] = slices.Clone(m.texts)
		}
	}
	return nil
}

// Restore implements target.Snapshotter.
func (c *cluster) Restore(ctx context.Context, tag, vm string) error {
	if err := c.need(target.Snapshots); err != nil {
		return err
	}
	return c.each(ctx, "Restore", []string{vm}, func(m *machine) error {
		switch {
		case m.Power == target.On:
			return fmt.Errorf("snapshot %q: it is on: power it off first", tag)
		case m.snapshots[tag] == nil:
			return fmt.Errorf("no such snapshot: %q", tag)
		}
		m.texts = slices.Clone(m.snapshots[tag])
		return nil
	})
}

// Migrate implements target.Migrator.
func (c *cluster) Migrate(ctx context.Context, vm string, node int) error {
	if err := c.need(target.LiveMigration); err != nil {
		return err
	}
	if err := c.spend(ctx, c.w.o.Migration); err != nil {
		return fmt.Errorf("Migrate: vm %q: %w", vm, err)
	}
	return c.each(ctx, "Migrate", []string{vm}, func(m *machine) error {
		if err := errors.Join(c.w.node(node, true), c.w.node(m.Node, true)); err != nil {
			return err
		}
		m.Node = node
		c.w.models.moved(m)
		return nil
	})
}

// SetHA implements target.Availability.
func (c *cluster) SetHA(ctx context.Context, vms []string, enabled bool) error {
	if err := c.need(target.AvailabilityRules); err != nil {
		return err
	}
	return c.each(ctx, "SetHA", vms, func(m *machine) error { m.haOff = !enabled; return nil })
}

// SetBalancing implements target.Availability.
func (c *cluster) SetBalancing(ctx context.Context, vms []string, enabled bool) error {
	if err := c.need(target.AvailabilityRules); err != nil {
		return err
	}
	return c.each(ctx, "SetBalancing", vms, func(m *machine) error { m.pinned = !enabled; return nil })
}

// MoveStorage implements target.StorageMigrator.
func (c *cluster) MoveStorage(ctx context.Context, vms []string, store string) error {
	if err := c.need(target.StorageMigration); err != nil {
		return err
	}
	return c.each(ctx, "MoveStorage", vms, func(m *machine) error { m.store = store; return nil })
}

// Addresses implements target.Addressed: addresses of the range for benchmarks (RFC 2544), one per node, controller VM
// or VM.
func (c *cluster) Addresses(ctx context.Context, group string) (list []string, err error) {
	err = c.need(target.PlaybookHosts)
	if err == nil {
		err = c.w.call(ctx, "Addresses", group, func() error {
			list = c.addresses(group)
			if len(list) == 0 {
				return errors.New("has no VMs")
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("addresses: group %q: %w", group, err)
	}
	return list, nil
}

func (c *cluster) addresses(group string) (list []string) {
	if group == "nodes" || group == "cvms" {
		for i := range c.w.nodes {
			list = append(list, fmt.Sprintf("198.18.%d.%d", map[string]int{"nodes": 0, "cvms": 128}[group]+i/250,
				1+i%250))
		}
		return list
	}
	for _, m := range c.order {
		if m.Group == group && !m.Template {
			list = append(list, m.address())
		}
	}
	return list
}

// ClusterMetrics implements target.MetricsSource with what the performance model says of every node that is on.
func (c *cluster) ClusterMetrics(ctx context.Context) (list []target.Metric, err error) {
	err = c.need(target.ClusterMetrics)
	if err == nil {
		err = c.w.call(ctx, "ClusterMetrics", "", func() error {
			list = c.w.metrics()
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("cluster metrics: %w", err)
	}
	return list, nil
}

// WriteLogBytes implements target.WriteLog with what the performance model says, one log a node.
func (c *cluster) WriteLogBytes(ctx context.Context) (logs map[string]int64, err error) {
	err = c.need(target.WriteLogDrain)
	if err == nil {
		err = c.w.call(ctx, "WriteLogBytes", "", func() error {
			logs = writeLogs(c.w.storage, c.w.clock.Now())
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("write log: %w", err)
	}
	return logs, nil
}

// writeLogs returns what the write log of each node holds, by the name of its controller.
func writeLogs(storage *perf.World, now time.Time) map[string]int64 {
	logs := map[string]int64{}
	for i, left := range storage.WriteLogBytes(now) {
		logs[nodeName(i)] = left
	}
	return logs
}

// PlatformCheck implements target.PlatformChecker: every diagnosis of a node that is on is good.
func (c *cluster) PlatformCheck(ctx context.Context, name string, node int, _ string) error {
	err := c.need(target.PlatformChecks)
	if err == nil {
		err = c.w.call(ctx, "PlatformCheck", name, func() error {
			if node < 0 {
				return nil
			}
			return c.w.node(node, true)
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
