//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/fleet"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/targets/lab/guest"
	"plimsoll/internal/targets/lab/qemu"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
	"plimsoll/unit"
)

// PowerOn implements target.VMPower. It returns when each guest answers.
func (c *cluster) PowerOn(ctx context.Context, names []string, maxConcurrent int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if maxConcurrent < 1 {
		return fmt.Errorf("power on: at most %d at a time: must be at least 1", maxConcurrent)
	}
	errs, asked := make([]error, len(names)), c.place.clock.Now()
	_ = clock.Parallel(c.place.clock, len(names), maxConcurrent, func(i int) error {
		errs[i] = c.powerOn(ctx, names[i], asked)
		return nil
	})
	return errors.Join(errs...)
}

// powerOn switches a guest on that was asked for at a time, maybe with others, and returns when it answers.
func (c *cluster) powerOn(ctx context.Context, name string, asked time.Time) error {
	began, v, err := c.boot(ctx, name)
	if err != nil {
		return err
	}
	return c.answers(ctx, v, asked, began)
}

// answers waits for a guest, and tells of the boot that began; at no time when it ran already.
func (c *cluster) answers(ctx context.Context, v *vm, asked, began time.Time) error {
	if err := c.reach(ctx, v); err != nil || c.booted == nil || began.IsZero() {
		return err
	}
	c.mu.Lock()
	b := result.Boot{VM: v.Name, Group: v.Group, Node: v.Node, Asked: asked, Started: began,
		Answered: c.place.clock.Now()}
	c.mu.Unlock()
	c.booted(b)
	return nil
}

// boot starts a guest's process on its node, and says when it began to; at no time when there is one.
func (c *cluster) boot(ctx context.Context, name string) (began time.Time, v *vm, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if v, err = c.get(name); err != nil {
		return began, nil, fmt.Errorf("power on: %w", err)
	}
	began, err = c.launch(ctx, v)
	return began, v, err
}

// forget has the lab's network look for a guest's card anew.
func (c *cluster) forget(ctx context.Context, vm string) error {
	address, err := c.address(vm)
	if err != nil {
		return err
	}
	return c.lab.Forget(ctx, address)
}

// launch is boot with c.turn held: a guest's start does not begin before it is its turn.
func (c *cluster) launch(ctx context.Context, v *vm) (began time.Time, err error) {
	if on, err := c.machine(v).Running(); err != nil || on {
		return began, err
	}
	if linked := c.above(v.Name, nil); len(linked) > 0 {
		return began, fmt.Errorf("power on: vm %q: %s are linked clones of it, and would change with it", v.Name,
			unit.List(linked, 5))
	}
	began = c.place.clock.Now()
	n := c.nodes[v.Node]
	if err := c.awake(ctx, v.Node); err != nil {
		return began, fmt.Errorf("power on: vm %q: %w", v.Name, err)
	}
	spec, err := c.spec(ctx, n, v)
	if err != nil {
		return began, fmt.Errorf("power on: vm %q: %w", v.Name, err)
	}
	folder := c.process(v, v.Node)
	if err := c.change(func() { v.Machine, v.On, v.Template = folder, true, false }); err != nil {
		return began, err
	}
	c.ends(v.Name)
	m, err := qemu.Create(folder, spec)
	if err == nil {
		err = n.Tap(ctx, spec.NIC.Tap)
	}
	if err == nil {
		err = c.forget(ctx, v.Name)
	}
	if err == nil {
		err = m.Start(ctx, n.Start)
	}
	if err == nil {
		err = c.offerButton(n, v)
	}
	return began, err
}

// ends ends what goes on in the life that a guest had.
func (c *cluster) ends(name string) {
	if h, err := c.handle(name); err == nil {
		_ = h.Begin(nil) // nobody is there to part from
	}
}

// process is the folder of a guest's process on a node.
func (c *cluster) process(v *vm, node int) string {
	return filepath.Join(c.dir, "vm", v.Name, c.nodes[node].Name())
}

// offerButton lets a graceful shutdown of the node reach the guest.
func (c *cluster) offerButton(n *lab.Node, v *vm) error {
	link := filepath.Join(n.Guests(), socketName(c.state.Run, v.Name))
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(filepath.Join(v.Machine, qemu.MonitorFile), link)
}

// spec is a guest as it starts on a node, with an identity of its own that it has for as long as it is there.
func (c *cluster) spec(ctx context.Context, n *lab.Node, v *vm) (qemu.Spec, error) {
	address, err := c.address(v.Name)
	if err != nil {
		return qemu.Spec{}, err
	}
	id, err := c.identity(v, address)
	if err != nil {
		return qemu.Spec{}, err
	}
	b, err := c.image.Boot(ctx, c.folder(n, v.Name), id)
	if err != nil {
		return qemu.Spec{}, err
	}
	key, err := id.PublicKey()
	if err != nil {
		return qemu.Spec{}, err
	}
	known := knownhosts.Line([]string{address.String()}, key) + "\n"
	if err := os.WriteFile(c.knownHosts(v.Name), []byte(known), 0o600); err != nil {
		return qemu.Spec{}, err
	}
	s := qemu.Spec{
		Name:        v.Name,
		Accel:       c.accel,
		CPUs:        v.CPUs,
		Topology:    c.place.topology(),
		MemoryBytes: v.MemoryBytes >> 20 << 20,
		Kernel:      b.Kernel,
		Initrd:      b.Initrd,
		Append:      b.Append,
		Args:        b.Args,
		NIC:         &qemu.NIC{MAC: id.MAC().String(), Tap: fmt.Sprintf("g%d", address.As4()[3])},
	}
	for _, d := range b.Drives {
		s.Disks = append(
			s.Disks,
			qemu.Disk{Path: d.Path, Format: d.Format, Bus: d.Bus, Serial: d.Serial, ReadOnly: d.ReadOnly},
		)
	}
	for i := range v.DiskBytes {
		s.Disks = append(s.Disks, c.disk(n, v, i))
	}
	return s, nil
}

// identity is a guest's own, made at its first start and the same ever after. The file holds a secret.
func (c *cluster) identity(v *vm, address netip.Addr) (id guest.Identity, err error) {
	file := filepath.Join(c.dir, "vm", v.Name, "identity.json")
	data, err := os.ReadFile(file)
	if err == nil {
		return id, json.Unmarshal(data, &id)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	id, err = guest.NewIdentity(c.hostName(v.Name, address), prefix(address), c.nodes[0].Address(),
		strings.TrimSpace(c.public))
	if err == nil {
		data, err = json.Marshal(id)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file+".part", data, 0o600)
	}
	if err != nil {
		return id, err
	}
	return id, os.Rename(file+".part", file)
}

func (c *cluster) knownHosts(vm string) string { return filepath.Join(c.dir, "vm", vm, "known_hosts") }

// hostName is a machine's name as a host may have it, with the end of its address where that leaves nothing of the
// name, or what another machine has as well.
func (c *cluster) hostName(vm string, address netip.Addr) string {
	plain := plainName(vm)
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.state.VMs {
		if plain == "" || other != vm && plainName(other) == plain {
			return strings.TrimLeft(fmt.Sprintf("%.59s-%d", plain, address.As4()[3]), "-")
		}
	}
	return plain
}

func plainName(vm string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(vm))
	return strings.Trim(name[:min(63, len(name))], "-")
}

// machineOf is how a guest is logged in to, over the lab's network.
func (c *cluster) machineOf(v *vm, address netip.Addr, disks []target.Disk) remote.Machine {
	return remote.Machine{Name: v.Name, Role: v.Group, Folder: workFolder + c.state.Run,
		Agent: "/usr/bin/plimsoll-agent", Network: address.String(), Own: disks,
		Hop: remote.Hop{Address: address.String(), Port: 22, User: "root", Keys: []string{c.keyFile()},
			KnownHosts: []string{c.knownHosts(v.Name)}, Dial: c.lab.Dial}}
}

// reach waits until a guest that was started answers, and lets the agent work there.
func (c *cluster) reach(ctx context.Context, v *vm) error {
	guest, err := c.handle(v.Name)
	if err != nil {
		return err
	}
	return guest.Wake(ctx, func(ctx context.Context) (*remote.Host, error) { return c.settled(ctx, v, guest) })
}

func (c *cluster) settled(ctx context.Context, v *vm, guest *fleet.Machine) (*remote.Host, error) {
	address, err := c.address(v.Name)
	if err != nil {
		return nil, err
	}
	m := c.machineOf(v, address, guest.Disks())
	limited, cancel := clock.WithTimeout(ctx, c.place.clock, bootLimit)
	defer cancel()
	var last error // of an attempt that was not cut off
	for {
		h := c.access.NewHost(m, v.Node)
		err := h.Settle(limited, c.state.Run)
		if err == nil && c.place.dropped {
			err = dropFlushes(limited, h)
		}
		if err == nil {
			return h, nil
		}
		err = errors.Join(err, h.Close())
		if on, e := c.machine(v).Running(); e != nil || !on {
			return nil, errors.Join(
				fmt.Errorf("power on: vm %q: its process ended: %w", v.Name, target.ErrNotAccessible),
				e,
				err,
			)
		}
		if limited.Err() == nil || last == nil {
			last = err
		}
		if c.place.clock.Sleep(limited, 500*time.Millisecond) == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("power on: vm %q: %w", v.Name, ctx.Err())
		}
		return nil, fmt.Errorf("power on: vm %q: it does not answer after %v: %w; its console: %s", v.Name, bootLimit, last,
			c.machine(v).Console(1000))
	}
}

// dropFlushes has a guest believe that its data disks have no cache, so that nothing ever makes safe what QEMU still
// holds. It is forgotten with the guest's power.
func dropFlushes(ctx context.Context, h *remote.Host) error {
	const script = `for d in /sys/block/sd[b-z]/queue/write_cache; do ! test -e $d || echo write through >$d; done`
	p, err := h.Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c", script}, Label: "flush=dropped"})
	if err != nil {
		return err
	}
	if end, err := p.Wait(ctx); err != nil || end != (target.Exit{}) {
		return errors.Join(fmt.Errorf("flush=dropped: the guest ends with %d", end.Code), err)
	}
	return nil
}

// PowerOff implements target.VMPower.
func (c *cluster) PowerOff(ctx context.Context, names []string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	for _, name := range names {
		v, e := c.get(name)
		if e == nil {
			e = c.change(func() { v.On = false })
		}
		if e == nil && v.Machine != "" {
			e = c.machine(v).Kill()
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("power off: %w", e))
			continue
		}
		c.ends(name)
	}
	return errors.Join(err, ctx.Err())
}

// Migrate implements target.Migrator.
func (c *cluster) Migrate(ctx context.Context, name string, to int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	v, err := c.get(name)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	n, err := c.node(to)
	if err != nil || to == v.Node {
		return err
	}
	if err := c.awake(ctx, to); err != nil {
		return fmt.Errorf("migrate: vm %q: %w", name, err)
	}
	source := c.machine(v)
	spec := source.Spec
	from := c.nodes[v.Node]
	spec.Disks = append([]qemu.Disk(nil), spec.Disks...)
	for i, d := range spec.Disks {
		if rest, ok := strings.CutPrefix(d.Path, from.Mount()+"/"); ok {
			spec.Disks[i].Path = filepath.Join(n.Mount(), rest)
		}
	}
	destination, err := qemu.Create(c.process(v, to), spec)
	if err == nil {
		err = n.Tap(ctx, spec.NIC.Tap)
	}
	if err == nil {
		err = destination.Await(ctx, n.Start)
	}
	if err != nil {
		return fmt.Errorf("migrate: vm %q: %w", name, err)
	}
	began := c.place.clock.Now()
	moved, err := qemu.Migrate(ctx, source, destination, n.Address().String())
	if err != nil {
		return err
	}
	if c.migrated != nil {
		c.migrated(result.Migration{VM: name, Group: v.Group, From: v.Node, To: to, Began: began,
			Seconds: moved.Total.Seconds(), StillSeconds: moved.Downtime.Seconds(), MemoryBytes: moved.MemoryBytes})
	}
	err = c.change(func() { v.Node, v.Machine = to, destination.Folder })
	gone := os.RemoveAll(filepath.Join(from.Guests(), socketName(c.state.Run, name)))
	return errors.Join(err, gone, from.Untap(ctx, spec.NIC.Tap), c.offerButton(n, v))
}

// watch ends what goes on with guests that have ended, with their nodes or by themselves.
func (c *cluster) watch(ctx context.Context) {
	for c.place.clock.Sleep(ctx, lookEach) == nil {
		c.hosts.Forget()
	}
}

// restart starts guests whose node was lost on one that lives, and tries again until it works or the run ends.
func (c *cluster) restart(ctx context.Context) {
	for c.place.clock.Sleep(ctx, restartEach) == nil {
		for i, n := range c.nodes {
			if power, _, err := n.State(ctx); err != nil || power != target.Off {
				continue
			}
			names := c.lost(i)
			_ = clock.Parallel(c.place.clock, len(names), restartsAtOnce, func(k int) error {
				if err := c.failover(ctx, names[k], i); err != nil {
					c.log("restart of vm %q: %v; it is tried again", names[k], err)
				}
				return nil
			})
		}
	}
}

// lost are the machines of a node that should be on, and are to be restarted elsewhere.
func (c *cluster) lost(node int) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.VMs {
		if v.Node == node && v.On && !v.Exempt {
			names = append(names, v.Name)
		}
	}
	return names
}

// failover starts a guest of a lost node on another one. After an error it is the lost node's again, and so is tried
// again.
func (c *cluster) failover(ctx context.Context, name string, lost int) error {
	for step := 1; step < len(c.nodes); step++ {
		to := (lost + step) % len(c.nodes)
		if _, ready, err := c.nodes[to].State(ctx); err != nil || !ready {
			continue
		}
		began, v, err := c.rescue(ctx, name, lost, to)
		if err != nil || began.IsZero() {
			return err
		}
		if err := c.answers(ctx, v, began, began); err != nil {
			return errors.Join(err, c.forsake(ctx, v, lost, to))
		}
		if c.fault != nil {
			c.fault(to, result.Restarted, fmt.Sprintf("vm %s is restarted on %s", name, c.nodes[to].Name()), "")
		}
		return nil
	}
	return errors.New("no other node is ready")
}

// rescue starts the process of a guest of a lost node on another one, if nobody has switched the guest off, moved or
// exempted it meanwhile.
func (c *cluster) rescue(ctx context.Context, name string, lost, to int) (began time.Time, v *vm, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !slices.Contains(c.lost(lost), name) {
		return began, nil, nil
	}
	if v, err = c.get(name); err == nil {
		err = c.change(func() { v.Node = to })
	}
	if err == nil {
		began, err = c.launch(ctx, v)
	}
	if err != nil {
		err = errors.Join(err, c.machine(v).Kill(), c.change(func() { v.Node = lost }))
	}
	return began, v, err
}

// forsake gives a guest that was restarted in vain back to its lost node, unless the run has ended.
func (c *cluster) forsake(ctx context.Context, v *vm, lost, to int) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	if ctx.Err() != nil || !slices.Contains(c.lost(to), v.Name) {
		return nil
	}
	return errors.Join(c.machine(v).Kill(), c.change(func() { v.Node = lost }))
}
