//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/fleet"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/targets/lab/guest"
	"plimsoll/internal/targets/lab/qemu"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/internal/targets/underneath"
	"plimsoll/result"
	"plimsoll/unit"
)

type cluster struct {
	place    *place
	lab      *lab.Lab
	nodes    []*lab.Node
	image    guest.Image
	accel    string
	access   remote.Access
	dir      string // state folder
	public   string // the key that guests let in
	log      func(string, ...any)
	fault    func(node int, state, text, ends string)
	booted   func(result.Boot)
	operated func(result.PlatformOperation)
	migrated func(result.Migration)

	cpus  *underneath.CPUs
	turn  sync.Mutex // one change of machines at a time
	mu    sync.Mutex
	state state
	hosts fleet.Machines

	stop  context.CancelFunc // of the watch
	group clock.Group
}

var (
	_ target.Cluster      = (*cluster)(nil)
	_ target.VMMaker      = (*cluster)(nil)
	_ target.VMPower      = (*cluster)(nil)
	_ target.VMMover      = (*cluster)(nil)
	_ target.Snapshotter  = (*cluster)(nil)
	_ target.Migrator     = (*cluster)(nil)
	_ target.NodePower    = (*cluster)(nil)
	_ target.Availability = (*cluster)(nil)
	_ target.ScrapeSource = (*cluster)(nil)
	_ target.Addressed    = (*cluster)(nil)
	_ target.LoginSource  = (*cluster)(nil)
	_ target.HostSource   = (*cluster)(nil)
)

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	l, err := p.existing()
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	own := lab.Options{}
	folder, storage, nodes := os.TempDir(), p.storage, cmp.Or(p.nodes, usualNodes)
	if l != nil {
		folder, storage, nodes = l.Dir(), l.Storage(), len(l.Nodes())
	} else if own, err = p.planned(r.StateDir); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	var short []error
	if free := room(folder, storage, nodes); free >= 0 && free < r.DiskBytes {
		short = append(short, fmt.Errorf("disk space: %s needed, %s free in %s", unit.Bytes(r.DiskBytes),
			unit.Bytes(free), folder))
	}
	if free := freeMemory(); free >= 0 && free < r.MemoryBytes {
		short = append(short, fmt.Errorf("memory: %s needed, %s available", unit.Bytes(r.MemoryBytes),
			unit.Bytes(free)))
	}
	if len(short) > 0 {
		return nil, fmt.Errorf("provision: %w", target.NoRoom{Err: errors.Join(short...)})
	}
	b, err := p.boots(ctx)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c := &cluster{place: p, image: b.image, accel: b.proof.Accel, dir: r.StateDir, log: r.Log,
		fault: r.Fault, booted: r.Booted, operated: r.Operated, migrated: r.Migrated,
		group: p.clock.Group(), cpus: underneath.New(os.DirFS("/")),
		state:  state{Lab: own.Dir, Made: l == nil, Run: folderPrefix + r.RunID, VMs: map[string]*vm{}},
		access: remote.Access{Patience: 30 * time.Second, Lease: time.Hour, Clock: p.clock}}
	if l != nil {
		c.state.Lab = l.Dir()
	}
	if c.log == nil {
		c.log = func(string, ...any) {}
	}
	if err := errors.Join(os.MkdirAll(c.dir, 0o700), c.save(), c.makeKey()); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	if l == nil {
		c.log("making a lab of %s in %s", unit.Plural(own.Nodes, "node"), own.Dir)
		if l, err = lab.Up(ctx, own); err != nil {
			return nil, fmt.Errorf("provision: %w", err)
		}
	}
	c.lab, c.nodes = l, l.Nodes()
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.group.Go(func() { c.watch(watched) })
	if p.restarts {
		c.group.Go(func() { c.restart(watched) })
	}
	return c, nil
}

// makeKey makes the key by which this run logs in, in a file that nobody else reads.
func (c *cluster) makeKey() error {
	private, public, err := remote.NewKey("plimsoll")
	if err != nil {
		return err
	}
	c.public = public
	return os.WriteFile(c.keyFile(), private, 0o600)
}

func (c *cluster) keyFile() string { return filepath.Join(c.dir, keyName) }

// Close implements target.Cluster. Guests go on; nothing is restarted any more.
func (c *cluster) Close() error {
	c.stop()
	c.group.Wait()
	return errors.Join(os.RemoveAll(c.keyFile()), c.hosts.Close())
}

// get finds a machine; what it points to is read and changed with c.turn held.
func (c *cluster) get(name string) (*vm, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.state.VMs[name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
}

func (c *cluster) node(i int) (*lab.Node, error) {
	if i < 0 || i >= len(c.nodes) {
		return nil, fmt.Errorf("node %d: %w", i, target.ErrNoSuchNode)
	}
	return c.nodes[i], nil
}

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		power := target.Off
		if on, e := c.machine(v).Running(); e != nil {
			power, err = target.Unknown, errors.Join(err, e)
		} else if on {
			power = target.On
		}
		list = append(list, target.VM{Name: v.Name, Group: v.Group, Node: v.Node, Power: power, Template: v.Template})
	}
	slices.SortFunc(list, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return list, errors.Join(err, ctx.Err())
}

// machine is the process that a guest has, or had last.
func (c *cluster) machine(v *vm) *qemu.Machine {
	m := &qemu.Machine{Folder: v.Machine, Spec: qemu.Spec{Name: v.Name}}
	if known, err := qemu.Open(v.Machine); err == nil {
		m = known
	}
	return m
}

// Runs implements fleet.Owner. It reports whether a guest has a process. While it moves from one node to another it has
// one: that is waited for.
func (c *cluster) Runs(name string) bool {
	look := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		v := c.state.VMs[name]
		if v == nil {
			return false
		}
		on, err := c.machine(v).Running()
		return on || err != nil
	}
	if look() {
		return true
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	return look()
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) { return c.handle(name) }

func (c *cluster) handle(name string) (*fleet.Machine, error) {
	if _, err := c.get(name); err != nil {
		return nil, err
	}
	return c.hosts.Get(c, name), nil
}

// Node implements fleet.Owner.
func (c *cluster) Node(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.state.VMs[name]; v != nil {
		return v.Node
	}
	return 0
}

// Disks implements fleet.Owner.
func (c *cluster) Disks(name string) []target.Disk {
	v, err := c.get(name)
	if err != nil {
		return nil
	}
	return fleet.Disks(v.Name, v.DiskBytes)
}

// Address implements fleet.Owner.
func (c *cluster) Address(ctx context.Context, name string) (string, error) {
	a, err := c.address(name)
	if err == nil {
		err = ctx.Err()
	}
	return a.String(), err
}

// address is a guest's own, for as long as it is there.
func (c *cluster) address(vm string) (netip.Addr, error) {
	return c.lab.AddressFor(c.state.Run + "/" + vm)
}

// Logins implements target.LoginSource. All guests of the group are in it, also those that are off.
func (c *cluster) Logins(ctx context.Context, group string) (list []target.Login, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		if v.Group != group || v.Template {
			continue
		}
		a, err := c.address(v.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, c.machineOf(v, a, nil).Login())
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("addresses: group %q: no guest is of this VM group, and nodes of a lab cannot be logged in to",
			group)
	}
	slices.SortFunc(list, func(a, b target.Login) int { return strings.Compare(a.Machine, b.Machine) })
	return list, ctx.Err()
}

// Addresses implements target.Addressed.
func (c *cluster) Addresses(ctx context.Context, group string) (list []string, err error) {
	logins, err := c.Logins(ctx, group)
	for _, l := range logins {
		a, err := c.address(l.Machine)
		if err != nil {
			return nil, err
		}
		list = append(list, a.String())
	}
	return list, err
}

// Endpoints implements target.ScrapeSource: what the agents of guests count, which are machines of their own.
func (c *cluster) Endpoints(ctx context.Context) ([]target.Endpoint, error) {
	return c.hosts.Endpoints(), ctx.Err()
}

// HostCounters implements target.HostSource: the CPUs of this machine, which all guests share.
func (c *cluster) HostCounters(ctx context.Context) (counters target.HostCounters, err error) {
	if err := ctx.Err(); err != nil {
		return counters, fmt.Errorf("host counters: %w", err)
	}
	if counters.CPUs, err = c.cpus.Counters(); err != nil {
		return counters, fmt.Errorf("host counters: %w", err)
	}
	return counters, nil
}

// awake refuses a node that is off, or not ready yet.
func (c *cluster) awake(ctx context.Context, node int) error {
	n, err := c.node(node)
	if err != nil {
		return err
	}
	if power, ready, err := n.State(ctx); err != nil || !ready {
		return errors.Join(fmt.Errorf("node %d (%s): its power is %s, and it is not ready: %w", node, n.Name(), power,
			target.ErrNotAccessible), err)
	}
	return nil
}

// NodeState implements target.Cluster.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	n, err := c.node(node)
	if err != nil {
		return target.Unknown, false, err
	}
	return n.State(ctx)
}

// PowerController implements target.NodePower.
func (c *cluster) PowerController(node int) (target.PowerController, error) {
	n, err := c.node(node)
	if err != nil {
		return nil, err
	}
	b := n.BMC()
	options := target.Options{"address": b.Address.String(), "user": b.User, "password": "file:" + b.PasswordFile}
	switch c.place.power {
	case "redfish":
		options["ca"] = b.CAFile
	case "button":
		return n.Power(), nil
	}
	var kinds []target.PowerKind // they lie in the lab's network
	for _, k := range c.place.kinds {
		if through, can := k.(target.PowerThrough); can {
			kinds = append(kinds, through.Through(c.lab.Dial))
		}
	}
	return target.PowerSetting{Kind: c.place.power, Options: options}.Open(n.Name(), kinds)
}

// folder is where a machine's disks are, as a node sees them.
func (c *cluster) folder(n *lab.Node, vm string) string {
	return filepath.Join(n.Mount(), c.state.Run, vm)
}

// checkName refuses names that cannot be a folder.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 200 || strings.ContainsAny(name, "/\x00\n,") {
		return fmt.Errorf("name %q: want 1 to 200 bytes, no slash, comma, line feed or null byte", name)
	}
	return nil
}

func diskFile(i int) string { return "disk" + strconv.Itoa(i+1) + ".qcow2" }

// CreateTemplate implements target.VMMaker.
func (c *cluster) CreateTemplate(ctx context.Context, t target.Template) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if _, err := c.get(t.Name); err == nil {
		return nil
	}
	err := errors.Join(checkName(t.Name), c.awake(ctx, t.Node), fleet.CheckDisks(t.DiskBytes))
	if err != nil {
		return fmt.Errorf("vm %q: %w", t.Name, err)
	}
	n := c.nodes[t.Node]
	v := &vm{Name: t.Name, Group: t.Group, Node: t.Node, Template: true, CPUs: min(max(1, t.CPUs), runtime.NumCPU()),
		MemoryBytes: max(min(t.MemoryBytes, c.place.memory), c.image.MemoryBytes), DiskBytes: t.DiskBytes}
	if err := c.place.topology().Check(v.CPUs, v.MemoryBytes); err != nil {
		return fmt.Errorf("vm %q: target options sockets, threads, numa: %w", t.Name, err)
	}
	if v.CPUs < t.CPUs {
		c.log("vm %q: %d CPUs, as many as this machine has, not %d", t.Name, v.CPUs, t.CPUs)
	}
	return c.add(v, func() error {
		for i, bytes := range t.DiskBytes {
			if err := qemu.CreateImage(ctx, filepath.Join(c.folder(n, v.Name), diskFile(i)), bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

// add writes a machine down, then makes it. One that could not be made is none.
func (c *cluster) add(v *vm, fill func() error) error {
	n := c.nodes[v.Node]
	c.mu.Lock()
	c.state.VMs[v.Name] = v
	err := c.save()
	c.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(c.folder(n, v.Name), 0o700)
	}
	if err == nil {
		err = fill()
	}
	if err == nil {
		return nil
	}
	gone := os.RemoveAll(c.folder(n, v.Name))
	if gone == nil {
		gone = c.change(func() { delete(c.state.VMs, v.Name) })
	}
	return errors.Join(fmt.Errorf("vm %q: %w", v.Name, err), gone)
}

// Clone implements target.VMMaker. The source of linked clones must stay as it is: it is a template, or never on again.
func (c *cluster) Clone(ctx context.Context, k target.Clone) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	source, err := c.get(k.Source)
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	var errs []error
	running, err := c.machine(source).Running()
	if err != nil {
		return fmt.Errorf("clone: vm %q: %w", k.Source, err)
	}
	// A layer must not lie on what changes: a clone of a machine that runs is whole.
	linked := k.Linked && !running
	for _, p := range k.Members {
		err := errors.Join(checkName(p.Name), c.awake(ctx, p.Node))
		if _, e := c.get(p.Name); e == nil {
			err = errors.Join(err, errors.New("it exists already"))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clone: vm %q: %w", p.Name, err))
			continue
		}
		n := c.nodes[p.Node]
		v := &vm{Name: p.Name, Group: k.Group, Node: p.Node, CPUs: source.CPUs, MemoryBytes: source.MemoryBytes,
			DiskBytes: slices.Clone(source.DiskBytes)}
		if linked {
			v.Base = k.Source
		}
		began := c.place.clock.Now()
		err = c.add(v, func() error {
			if running {
				var to []string
				for i := range v.DiskBytes {
					to = append(to, filepath.Join(c.folder(n, v.Name), diskFile(i)))
				}
				return c.machine(source).CopyDisks(ctx, c.dataDisks(source), to)
			}
			for i := range v.DiskBytes {
				from := filepath.Join(c.folder(n, k.Source), diskFile(i))
				to := filepath.Join(c.folder(n, v.Name), diskFile(i))
				copied := qemu.CopyImage
				if linked {
					copied = qemu.CloneImage
				}
				if err := copied(ctx, to, from, qemu.Qcow2); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			c.did(result.Cloned, v, began)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// did tells of what was done for a guest.
func (c *cluster) did(operation string, v *vm, began time.Time) {
	if c.operated != nil {
		c.operated(result.PlatformOperation{Name: operation, VM: v.Name, Group: v.Group, Node: v.Node, Began: began,
			Seconds: c.place.clock.Now().Sub(began).Seconds()})
	}
}

// dataDisks are the numbers that a guest's data disks have in its machine: those of its image come before.
func (c *cluster) dataDisks(v *vm) (list []int) {
	all := len(c.machine(v).Spec.Disks)
	for i := range v.DiskBytes {
		list = append(list, all-len(v.DiskBytes)+i)
	}
	return list
}

// above are the guests, but for some, whose disks are layers above those of one: what is written to that one, or its
// end, would damage theirs.
func (c *cluster) above(base string, but []string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		if v.Base == base && !slices.Contains(but, v.Name) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Delete implements target.VMMaker.
func (c *cluster) Delete(ctx context.Context, names []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if linked := c.above(name, names); len(linked) > 0 {
			return fmt.Errorf(
				"delete: vm %q: %s are linked clones of it: delete them first",
				name,
				unit.List(linked, 5),
			)
		}
	}
	err := c.PowerOff(
		ctx,
		slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, e := c.get(n); return e != nil }),
	)
	c.turn.Lock()
	defer c.turn.Unlock()
	for _, name := range names {
		v, gone := c.get(name)
		if gone != nil {
			continue
		}
		began := c.place.clock.Now()
		e := errors.Join(os.RemoveAll(c.folder(c.nodes[v.Node], name)), c.lab.Release(c.state.Run+"/"+name))
		if e == nil {
			e = c.change(func() {
				delete(c.state.VMs, name)
				c.hosts.Drop(name)
			})
		}
		if e == nil {
			c.did(result.Deleted, v, began)
		} else {
			err = errors.Join(err, fmt.Errorf("delete: vm %q: %w", name, e))
		}
	}
	return err
}

// Move implements target.VMMover.
func (c *cluster) Move(ctx context.Context, name string, node int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	if err == nil {
		_, err = c.node(node)
	}
	err = cmp.Or(ctx.Err(), err)
	if err != nil {
		return fmt.Errorf("move: %w", err)
	}
	if on, err := c.machine(v).Running(); err != nil || on {
		return fmt.Errorf("move: vm %q: it is on: use live migration: %w", name, err)
	}
	return c.change(func() { v.Node = node })
}

// change alters a machine and writes it down.
func (c *cluster) change(do func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	return c.save()
}

// Snapshot implements target.Snapshotter.
func (c *cluster) Snapshot(ctx context.Context, tag string, names []string) error {
	if err := cmp.Or(ctx.Err(), checkName(tag)); err != nil {
		return fmt.Errorf("snapshot: tag %w", err)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	var machines []*qemu.Machine
	for _, name := range names {
		v, err := c.get(name)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		machines = append(machines, c.withDisks(v))
	}
	_, err := qemu.SnapshotAll(ctx, tag, machines)
	return err
}

// withDisks is a machine with its disks, also when it was never on.
func (c *cluster) withDisks(v *vm) *qemu.Machine {
	m := c.machine(v)
	if on, _ := m.Running(); !on {
		m.Spec.Disks = nil
		for i := range v.DiskBytes {
			m.Spec.Disks = append(m.Spec.Disks, c.disk(c.nodes[v.Node], v, i))
		}
	}
	return m
}

func (c *cluster) disk(n *lab.Node, v *vm, i int) qemu.Disk {
	return qemu.Disk{Path: filepath.Join(c.folder(n, v.Name), diskFile(i)), Format: qemu.Qcow2,
		Serial: fmt.Sprintf("data%d", i+1)}
}

// Restore implements target.Snapshotter.
func (c *cluster) Restore(ctx context.Context, tag, name string) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if on, err := c.machine(v).Running(); err != nil || on {
		return errors.Join(fmt.Errorf("restore: vm %q: it is on: power it off first", name), err)
	}
	return c.withDisks(v).Restore(ctx, tag)
}

// SetHA implements target.Availability.
func (c *cluster) SetHA(_ context.Context, names []string, enabled bool) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	list, err := fleet.Named(names, c.get)
	return errors.Join(err, c.change(func() {
		for _, v := range list {
			v.Exempt = !enabled
		}
	}))
}

// SetBalancing implements target.Availability. Nothing is balanced here, so all are exempt from it.
func (c *cluster) SetBalancing(_ context.Context, names []string, _ bool) error {
	_, err := fleet.Named(names, c.get)
	return err
}

// prefix is the network of guests.
func prefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 24) }
