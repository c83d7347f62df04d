package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/target"
)

// cluster is one run's view of the world. Its state is guarded by the world's lock.
type cluster struct {
	w        *World
	machines map[string]*machine
	closed   bool
}

// machine is one VM.
type machine struct {
	target.VM
	disks     []target.Disk
	texts     []string // what the disks hold
	snapshots map[string][]string
	files     map[string][]byte
	running   map[*process]struct{}
	lost      bool // on, but not answering
	gone      bool
	store     string
	haOff     bool
	pinned    bool
}

var (
	_ target.Cluster         = (*cluster)(nil)
	_ target.NodePower       = (*cluster)(nil)
	_ target.Snapshotter     = (*cluster)(nil)
	_ target.Migrator        = (*cluster)(nil)
	_ target.Availability    = (*cluster)(nil)
	_ target.StorageMigrator = (*cluster)(nil)
	_ target.Addressed       = (*cluster)(nil)
	_ target.MetricsSource   = (*cluster)(nil)
)

func newMachine(vm target.VM, sizes []int64) *machine {
	m := &machine{VM: vm, texts: make([]string, len(sizes)), snapshots: map[string][]string{}, files: map[string][]byte{},
		running: map[*process]struct{}{}}
	for i, size := range sizes {
		device := "/dev/sd" + string(rune('b'+i))
		m.disks = append(m.disks, target.Disk{Device: device, Path: path.Join("/fake", vm.Name, path.Base(device)), Bytes: size, File: true})
	}
	return m
}

// kill ends all commands. The world's lock must be held.
func (m *machine) kill(lost bool) {
	for p := range m.running {
		p.end(target.Exit{Code: -1, Signal: "killed", Lost: lost})
	}
}

func (m *machine) powerOff() {
	m.Power, m.lost = target.Off, false
	m.kill(true)
}

// find returns a machine. The world's lock must be held.
func (c *cluster) find(name string) (*machine, error) {
	if m := c.machines[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
}

// each enters the method for every name and does it under the lock, in order; errors are joined.
func (c *cluster) each(ctx context.Context, method string, names []string, do func(*machine) error) error {
	var problems []error
	for _, name := range names {
		err := c.w.enter(ctx, method, name)
		if err == nil {
			err = c.locked(name, do)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: vm %q: %w", method, name, err))
		}
	}
	return errors.Join(problems...)
}

func (c *cluster) locked(name string, do func(*machine) error) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	m, err := c.find(name)
	if err != nil {
		return err
	}
	return do(m)
}

// need refuses the use of a capability that is not claimed.
func (c *cluster) need(capability target.Capability) error {
	if slices.Contains(c.w.o.Without, capability) {
		return fmt.Errorf("%s: not claimed by this cluster, and used all the same", capability)
	}
	return nil
}

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) ([]target.VM, error) {
	if err := c.w.enter(ctx, "VMs", ""); err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	var list []target.VM
	for _, m := range c.machines {
		list = append(list, m.VM)
	}
	slices.SortFunc(list, func(a, b target.VM) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// CreateTemplate implements target.Cluster.
func (c *cluster) CreateTemplate(ctx context.Context, t target.Template) error {
	err := c.w.enter(ctx, "CreateTemplate", t.Name)
	if err == nil {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		err = c.add(newMachine(target.VM{Name: t.Name, Group: t.Group, Node: t.Node, Power: target.Off, Template: true}, t.DiskBytes))
	}
	if err != nil && !errors.Is(err, errExists) {
		return fmt.Errorf("create template: vm %q: %w", t.Name, err)
	}
	return nil
}

var errExists = errors.New("exists already")

// add makes a machine a member. The world's lock must be held.
func (c *cluster) add(m *machine) error {
	if m.Name == "" || strings.Contains(m.Name, "/") {
		return fmt.Errorf("name %q: must not be empty or hold a slash", m.Name)
	}
	if c.machines[m.Name] != nil {
		return errExists
	}
	for _, d := range m.disks {
		if d.Bytes <= 0 {
			return fmt.Errorf("disk %s: size %d: must be positive", d.Device, d.Bytes)
		}
	}
	if err := c.w.node(m.Node, true); err != nil {
		return err
	}
	c.machines[m.Name] = m
	return nil
}

// Clone implements target.Cluster.
func (c *cluster) Clone(ctx context.Context, r target.Clone) error {
	if err := c.w.enter(ctx, "Clone", r.Source); err != nil {
		return fmt.Errorf("clone: source %q: %w", r.Source, err)
	}
	var problems []error
	for _, p := range r.Members {
		err := c.w.enter(ctx, "Clone", p.Name)
		if err == nil {
			err = c.locked(r.Source, func(source *machine) error {
				var sizes []int64
				for _, d := range source.disks {
					sizes = append(sizes, d.Bytes)
				}
				m := newMachine(target.VM{Name: p.Name, Group: r.Group, Node: p.Node, Power: target.Off}, sizes)
				m.texts = slices.Clone(source.texts)
				return c.add(m)
			})
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("clone: vm %q: %w", p.Name, err))
		}
	}
	return errors.Join(problems...)
}

// PowerOn implements target.Cluster; every batch of maxConcurrent takes one boot time.
func (c *cluster) PowerOn(ctx context.Context, names []string, maxConcurrent int) error {
	if maxConcurrent < 1 {
		return fmt.Errorf("power on: at most %d at a time: must be at least 1", maxConcurrent)
	}
	var problems []error
	for batch := range slices.Chunk(names, maxConcurrent) {
		var booting []string
		problems = append(problems, c.each(ctx, "PowerOn", batch, func(m *machine) error {
			if err := c.w.node(m.Node, true); err != nil {
				return err
			}
			if m.Power != target.On {
				booting = append(booting, m.Name)
			}
			return nil
		}))
		if len(booting) == 0 {
			continue
		}
		if err := c.w.clock.Sleep(ctx, c.w.o.Boot); err != nil {
			return errors.Join(append(problems, fmt.Errorf("power on: vm %q: %w", booting[0], err))...)
		}
		for _, name := range booting {
			if err := c.locked(name, func(m *machine) error {
				if err := c.w.node(m.Node, true); err != nil {
					return err // lost while it booted
				}
				m.Power = target.On
				return nil
			}); err != nil {
				problems = append(problems, fmt.Errorf("power on: vm %q: %w", name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// PowerOff implements target.Cluster.
func (c *cluster) PowerOff(ctx context.Context, names []string) error {
	return c.each(ctx, "PowerOff", names, func(m *machine) error { m.powerOff(); return nil })
}

// Delete implements target.Cluster.
func (c *cluster) Delete(ctx context.Context, names []string) error {
	var problems []error
	for _, name := range names {
		err := c.each(ctx, "Delete", []string{name}, func(m *machine) error {
			m.powerOff()
			m.gone = true
			delete(c.machines, name)
			return nil
		})
		if !errors.Is(err, target.ErrNoSuchVM) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// Move implements target.Cluster.
func (c *cluster) Move(ctx context.Context, vm string, node int) error {
	return c.each(ctx, "Move", []string{vm}, func(m *machine) error {
		if err := c.w.node(node, true); err != nil {
			return err
		}
		if m.Power == target.On && m.Node != node {
			return errors.New("it is on: power it off or migrate it")
		}
		m.Node = node
		return nil
	})
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	m, err := c.find(name)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return &host{c, m}, nil
}

// NodeState implements target.Cluster.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if err := c.w.enter(ctx, "NodeState", strconv.Itoa(node)); err != nil {
		return target.Unknown, false, fmt.Errorf("node state: node %d: %w", node, err)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if err := c.w.node(node, false); err != nil {
		return target.Unknown, false, fmt.Errorf("node state: %w", err)
	}
	if !c.w.on[node] {
		return target.Off, false, nil
	}
	return target.On, !c.w.clock.Now().Before(c.w.ready[node]), nil
}

// Close implements target.Cluster.
func (c *cluster) Close() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.closed = true
	return nil
}

// nodeDo enters a node method and does it under the lock.
func (c *cluster) nodeDo(ctx context.Context, method string, capability target.Capability, node int, do func()) error {
	err := c.need(capability)
	if err == nil {
		err = c.w.enter(ctx, method, strconv.Itoa(node))
	}
	if err == nil {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if err = c.w.node(node, false); err == nil {
			do()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: node %d: %w", method, node, err)
	}
	return nil
}

// PowerOffNode implements target.NodePower.
func (c *cluster) PowerOffNode(ctx context.Context, node int) error {
	return c.nodeDo(ctx, "PowerOffNode", target.NodePowerControl, node, func() { c.w.nodeOff(node) })
}

// PowerOnNode implements target.NodePower.
func (c *cluster) PowerOnNode(ctx context.Context, node int) error {
	return c.nodeDo(ctx, "PowerOnNode", target.NodePowerControl, node, func() {
		if !c.w.on[node] {
			c.w.on[node], c.w.ready[node] = true, c.w.clock.Now().Add(c.w.o.NodeBoot)
		}
	})
}

// ShutdownNode implements target.NodePower.
func (c *cluster) ShutdownNode(ctx context.Context, node int) error {
	return c.nodeDo(ctx, "ShutdownNode", target.NodeShutdown, node, func() { c.w.nodeOff(node) })
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
	return c.each(ctx, "Migrate", []string{vm}, func(m *machine) error {
		if err := errors.Join(c.w.node(node, true), c.w.node(m.Node, true)); err != nil {
			return err
		}
		m.Node = node
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

// Addresses implements target.Addressed: documentation addresses (RFC 5737), one per node, controller VM or VM.
func (c *cluster) Addresses(ctx context.Context, group string) ([]string, error) {
	err := c.need(target.PlaybookHosts)
	if err == nil {
		err = c.w.enter(ctx, "Addresses", group)
	}
	if err != nil {
		return nil, fmt.Errorf("addresses: group %q: %w", group, err)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	var list []string
	if group == "nodes" || group == "cvms" {
		for i := range c.w.on {
			list = append(list, fmt.Sprintf("192.0.2.%d", i+map[string]int{"nodes": 1, "cvms": 101}[group]))
		}
		return list, nil
	}
	for i, name := range slices.Sorted(maps.Keys(c.machines)) {
		if m := c.machines[name]; m.Group == group && !m.Template {
			list = append(list, fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("addresses: group %q: has no VMs", group)
	}
	return list, nil
}

// ClusterMetrics implements target.MetricsSource: CPU and memory grow with the commands that run on a node.
func (c *cluster) ClusterMetrics(ctx context.Context) ([]target.Metric, error) {
	err := c.need(target.ClusterMetrics)
	if err == nil {
		err = c.w.enter(ctx, "ClusterMetrics", "")
	}
	if err != nil {
		return nil, fmt.Errorf("cluster metrics: %w", err)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	busy := make([]float64, len(c.w.on))
	for _, m := range c.machines {
		busy[m.Node] += float64(len(m.running))
	}
	var list []target.Metric
	for node, on := range c.w.on {
		if !on {
			continue
		}
		cpu := min(100, 5+10*busy[node])
		for i, v := range []float64{16 * 2500 * cpu / 100, cpu, min(100, 20+5*busy[node]), 1000 * busy[node], 800 * busy[node]} {
			list = append(list, target.Metric{Name: metricNames[i], Node: node, Value: v})
		}
	}
	return list, nil
}
