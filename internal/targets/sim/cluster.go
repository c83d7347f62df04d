package sim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// cluster is one run's view of the world. Its state is guarded by the world's lock.
type cluster struct {
	w        *World
	machines map[string]*machine
	order    []*machine // by name
	made     int        // machines
	closed   bool
	cpus     cpuTimes
	// quotasSince is when declared quotas began to count.
	quotasSince time.Time
	tellBooted  func(result.Boot) // may be nil
	*injector
}

// machine is one VM.
type machine struct {
	target.VM
	memory    int64
	disks     []target.Disk
	texts     []string // what the disks hold
	snapshots map[string][]string
	files     map[string][]byte
	running   []*process
	services  map[string]*process // by name, those that have ended too
	number    int                 // of all machines that the cluster has had; see address
	lost      bool                // on, but not answering
	gone      bool
	store     string
	haOff     bool
	orphan    bool // off because its node failed, not because anybody wanted it
	failover  bool // high availability is powering it on
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
	_ target.HostSource      = (*cluster)(nil)
	_ target.WriteLog        = (*cluster)(nil)
	_ target.PlatformChecker = (*cluster)(nil)
	_ target.StepWatcher     = (*cluster)(nil)
	_ workload.Simulating    = (*cluster)(nil)
)

func newMachine(vm target.VM, sizes []int64) *machine {
	m := &machine{
		VM:        vm,
		texts:     make([]string, len(sizes)),
		snapshots: map[string][]string{},
		files:     map[string][]byte{},
		services:  map[string]*process{},
	}
	for i, size := range sizes {
		device := "/dev/sd" + string(rune('b'+i))
		m.disks = append(m.disks, target.Disk{Device: device, Path: path.Join("/sim", vm.Name, path.Base(device)),
			ID: "sim-" + vm.Name + "-" + path.Base(device), Bytes: size, File: true})
	}
	return m
}

// address is one of the range for benchmarks (RFC 2544).
func (m *machine) address() string { return fmt.Sprintf("198.19.%d.%d", m.number/250, 1+m.number%250) }

// kill ends all commands. The world's lock must be held.
func (m *machine) kill(lost bool) {
	for _, p := range slices.Clone(m.running) {
		p.end(target.Exit{Code: -1, Signal: "killed", Lost: lost})
	}
}

func (m *machine) powerOff() {
	m.kill(true) // before it is forgotten that it did not answer
	m.Power, m.lost, m.orphan = target.Off, false, false
}

// find returns a machine. The world's lock must be held.
func (c *cluster) find(name string) (*machine, error) {
	if m := c.machines[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
}

// each does the method for every name under the lock, in order; errors are joined.
func (c *cluster) each(ctx context.Context, method string, names []string, do func(*machine) error) error {
	var problems []error
	for _, name := range names {
		if err := c.one(ctx, method, name, do); err != nil {
			problems = append(problems, fmt.Errorf("%s: vm %q: %w", method, name, err))
		}
	}
	return errors.Join(problems...)
}

// one does the method for one machine under the lock.
func (c *cluster) one(ctx context.Context, method, name string, do func(*machine) error) error {
	return c.w.call(ctx, method, name, func() error {
		m, err := c.find(name)
		if err != nil {
			return err
		}
		return do(m)
	})
}

// need refuses the use of a capability that is not claimed.
func (c *cluster) need(capability target.Capability) error {
	if slices.Contains(c.w.o.Without, capability) {
		return fmt.Errorf("%s: not claimed by this cluster, and used all the same", capability)
	}
	return nil
}

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	err = c.w.call(ctx, "VMs", "", func() error {
		list = make([]target.VM, len(c.order))
		for i, m := range c.order {
			list[i] = m.VM
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	return list, nil
}

// CreateTemplate implements target.Cluster.
func (c *cluster) CreateTemplate(ctx context.Context, t target.Template) error {
	err := c.w.call(ctx, "CreateTemplate", t.Name, func() error {
		m := newMachine(target.VM{Name: t.Name, Group: t.Group, Node: t.Node, Power: target.Off, Template: true},
			t.DiskBytes)
		m.memory = t.MemoryBytes
		err := c.add(m)
		if errors.Is(err, errExists) {
			return nil
		}
		return err
	})
	if err != nil {
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
	m.number = c.made
	c.made++
	c.machines[m.Name] = m
	at, _ := c.place(m.Name)
	c.order = slices.Insert(c.order, at, m)
	return nil
}

// remove takes a machine away. The world's lock must be held.
func (c *cluster) remove(m *machine) {
	m.powerOff()
	m.gone = true
	c.w.storage.Forget(c.w.clock.Now(), m.Name)
	delete(c.machines, m.Name)
	if at, ok := c.place(m.Name); ok {
		c.order = slices.Delete(c.order, at, at+1)
	}
}

// place is where a machine is, or would be, in the order of names.
func (c *cluster) place(name string) (int, bool) {
	return slices.BinarySearchFunc(c.order, name, func(m *machine, name string) int {
		return strings.Compare(m.Name, name)
	})
}

// Clone implements target.Cluster.
func (c *cluster) Clone(ctx context.Context, r target.Clone) error {
	source := machine{}
	if err := c.one(ctx, "Clone", r.Source, func(m *machine) error { source = *m; return nil }); err != nil {
		return fmt.Errorf("clone: source %q: %w", r.Source, err)
	}
	sizes := make([]int64, len(source.disks))
	for i, d := range source.disks {
		sizes[i] = d.Bytes
	}
	var problems []error
	for _, p := range r.Members {
		err := c.spend(ctx, c.w.o.Clone)
		if err == nil {
			err = c.w.call(ctx, "Clone", p.Name, func() error {
				m := newMachine(target.VM{Name: p.Name, Group: r.Group, Node: p.Node, Power: target.Off}, sizes)
				m.texts, m.memory = slices.Clone(source.texts), source.memory
				return c.add(m)
			})
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("clone: vm %q: %w", p.Name, err))
		}
	}
	return errors.Join(problems...)
}

// spend lets time pass.
func (c *cluster) spend(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	return c.w.clock.Sleep(ctx, d)
}

// PowerOn implements target.Cluster; every batch of maxConcurrent takes one boot time.
func (c *cluster) PowerOn(ctx context.Context, names []string, maxConcurrent int) error {
	if maxConcurrent < 1 {
		return fmt.Errorf("power on: at most %d at a time: must be at least 1", maxConcurrent)
	}
	var problems []error
	asked := c.w.clock.Now()
	for batch := range slices.Chunk(names, maxConcurrent) {
		var booting []string
		began := c.w.clock.Now()
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
		if err := c.spend(ctx, c.w.o.Boot); err != nil {
			return errors.Join(append(problems, fmt.Errorf("power on: vm %q: %w", booting[0], err))...)
		}
		for _, name := range booting {
			if err := c.booted(name); err != nil {
				problems = append(problems, fmt.Errorf("power on: vm %q: %w", name, err))
				continue
			}
			c.tellBoot(name, asked, began)
		}
	}
	return errors.Join(problems...)
}

// tellBoot has the run keep how long a machine took that was asked for, and began to boot, at given times.
func (c *cluster) tellBoot(name string, asked, began time.Time) {
	if c.tellBooted == nil {
		return
	}
	c.w.mu.Lock()
	m, err := c.find(name)
	b := result.Boot{VM: name, Asked: asked, Started: began, Answered: c.w.clock.Now()}
	if err == nil {
		b.Group, b.Node = m.Group, m.Node
	}
	c.w.mu.Unlock()
	c.tellBooted(b)
}

// booted ends a machine's boot; its node may have been lost meanwhile.
func (c *cluster) booted(name string) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	m, err := c.find(name)
	if err == nil {
		err = c.w.node(m.Node, true)
	}
	if err == nil {
		m.Power = target.On
	}
	return err
}

// PowerOff implements target.Cluster.
func (c *cluster) PowerOff(ctx context.Context, names []string) error {
	return c.each(ctx, "PowerOff", names, func(m *machine) error { m.powerOff(); return nil })
}

// Delete implements target.Cluster.
func (c *cluster) Delete(ctx context.Context, names []string) error {
	var problems []error
	for _, name := range names {
		err := c.each(ctx, "Delete", []string{name}, func(m *machine) error { c.remove(m); return nil })
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
		c.w.models.moved(m)
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
func (c *cluster) NodeState(ctx context.Context, node int) (state target.PowerState, ready bool, err error) {
	state = target.Unknown
	err = c.w.call(ctx, "NodeState", strconv.Itoa(node), func() error {
		if err := c.w.node(node, false); err != nil {
			return err
		}
		switch n := c.w.nodes[node]; {
		case n.dark:
			return errDark
		case n.on:
			state, ready = target.On, !c.w.clock.Now().Before(n.ready)
		default:
			state = target.Off
		}
		return nil
	})
	if err != nil {
		return target.Unknown, false, fmt.Errorf("node state: node %d: %w", node, err)
	}
	return state, ready, nil
}

var errDark = fmt.Errorf("%w: its power controller does not answer", target.ErrNotAccessible)

// Close implements target.Cluster.
func (c *cluster) Close() error {
	c.injector.stop()
	c.w.models.settle()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.closed = true
	return nil
}
