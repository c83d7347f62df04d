//go:build linux

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/targets/underneath"
	"plimsoll/unit"
)

// cluster is the open sandboxes of one run.
//
// Two kinds of locks: mu guards all state and is held for moments only; a sandbox's op is held for as long as its
// files are being copied or removed, and is always taken before mu. Power-offs take no op, so they are never kept
// waiting by a copy.
type cluster struct {
	settings
	journal    *journal
	log        func(string, ...any)
	mark, run  string
	stores     []*store   // where data disks lie; the first holds all else of the sandboxes
	workDir    string     // of the first
	work       *os.Root   // of the first
	dealt      int        // disks of members so far
	raw        []*rawDisk // devices that are data disks instead; constant
	groups     groupSet
	wall       wall        // around every command
	network    network     // of the commands that have ports
	undying    atomic.Bool // processes did not end though they were killed
	goroutines clock.Group // one per running command

	mu     sync.Mutex
	boxes  map[string]*sandbox
	on     []bool // nodes
	boots  int
	starts int
	closed bool
	// numbered is how many sandboxes have asked for their address.
	numbered int
	told     map[string]bool // things said once
	sampled  time.Time       // of the CPU metrics

	cpus     *underneath.CPUs
	devices  []string   // whose counters see the data disks
	looking  sync.Mutex // at counters; guards what is below
	threads  procfs.ThreadWatch
	exporter *exporter.Exporter // see Endpoints
}

// sandbox is one VM. Fields below op are guarded by cluster.mu.
type sandbox struct {
	name, group string
	template    bool
	cpus        int
	memory      int64
	disks       []target.Disk
	at          []*store      // of each disk that is a file
	raw         []*rawDisk    // of each disk that is a device
	op          chan struct{} // holds one token while a long operation has the files

	node      int
	power     target.PowerState
	key       string // of the control groups of this boot; "" when off
	making    bool   // not yet a member: its disks are being written
	gone      bool
	haOff     bool
	pinned    bool // exempt from balancing
	dying     *cut // power-off not yet seen to its end
	units     map[int]*command
	services  map[string]*command // by name, those that have ended too
	number    int                 // for its address; 0: never asked for
	cpuBefore time.Duration       // used by boots and, without control groups, commands that have ended
	counted   time.Duration       // CPU time that metrics have reported
}

var (
	_ target.Cluster       = (*cluster)(nil)
	_ target.NodePower     = (*cluster)(nil)
	_ target.Snapshotter   = (*cluster)(nil)
	_ target.Migrator      = (*cluster)(nil)
	_ target.Availability  = (*cluster)(nil)
	_ target.MetricsSource = (*cluster)(nil)
	_ target.HostSource    = (*cluster)(nil)
)

// find returns a finished sandbox. c.mu must be held.
func (c *cluster) find(name string) (*sandbox, error) {
	b, ok := c.boxes[name]
	if !ok || b.making || b.gone {
		return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
	}
	return b, nil
}

func (c *cluster) lookup(name string) (*sandbox, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(name)
}

// checkNode returns an error for an index outside the cluster and, with up, for a node that is off. c.mu must be held.
func (c *cluster) checkNode(node int, up bool) error {
	if node < 0 || node >= len(c.on) {
		return fmt.Errorf("node %d: %w: the cluster has %d, counted from 0", node, target.ErrNoSuchNode, len(c.on))
	}
	if up && !c.on[node] {
		return fmt.Errorf("node %d: %w: it is powered off", node, target.ErrNotAccessible)
	}
	return nil
}

// occupy finds a sandbox and takes its files for a long operation, until release.
func (c *cluster) occupy(ctx context.Context, name string) (*sandbox, error) {
	b, err := c.lookup(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("vm %q: %w", name, err)
	}
	select {
	case b.op <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("vm %q: %w", name, ctx.Err())
	}
	if now, err := c.lookup(name); err != nil || now != b { // deleted while we waited
		b.release()
		return nil, fmt.Errorf("vm %q: %w", name, target.ErrNoSuchVM)
	}
	return b, nil
}

func (b *sandbox) release() { <-b.op }

// each calls do for every name in order and joins the errors.
func each(ctx context.Context, verb string, names []string, do func(name string) error) error {
	var problems []error
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			problems = append(problems, fmt.Errorf("%s: vm %q and %d more: %w", verb, name, len(names)-i-1, err))
			break
		}
		if err := do(name); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", verb, err))
		}
	}
	return errors.Join(problems...)
}

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) ([]target.VM, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []target.VM
	for _, b := range c.boxes {
		if !b.making && !b.gone {
			list = append(list, target.VM{Name: b.name, Group: b.group, Node: b.node, Power: b.power,
				Template: b.template})
		}
	}
	slices.SortFunc(list, func(a, b target.VM) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// claim enters a sandbox into the list, not yet a member. It returns false when there is a VM of that name.
func (c *cluster) claim(b *sandbox) (bool, error) {
	if err := checkName(b.name); err != nil {
		return false, fmt.Errorf("vm %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, errors.New("the cluster is closed")
	}
	if err := c.checkNode(b.node, true); err != nil {
		return false, fmt.Errorf("vm %q: %w", b.name, err)
	}
	if old, ok := c.boxes[b.name]; ok {
		if old.making {
			return false, fmt.Errorf("vm %q: is being made by another call", b.name)
		}
		return false, nil
	}
	b.op, b.units, b.power, b.making = make(chan struct{}, 1), map[int]*command{}, target.Off, true
	b.services = map[string]*command{}
	c.boxes[b.name] = b
	return true, nil
}

// build makes the folder of a reserved sandbox, fills it, and makes it a member, or removes what there is of it.
func (c *cluster) build(b *sandbox, fill func() error) error {
	err := c.work.Mkdir(b.name, 0o755)
	for _, s := range c.stores[1:] {
		if err == nil && slices.Contains(b.at, s) {
			err = s.root.Mkdir(b.name, 0o755)
		}
	}
	if errors.Is(err, fs.ErrExist) { // not ours: take the name out of the journal
		err = errors.Join(explain(err, path.Join(c.workDir, b.name), 0),
			c.journal.add(true, entry{Op: "refused", Name: b.name}))
	} else if err != nil {
		err = explain(err, path.Join(c.workDir, b.name), 0)
	} else if err = c.makeFiles(b); err != nil {
		err = explain(err, path.Join(c.workDir, b.name, "files"), 0)
	} else {
		err = fill()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, c.removeAll(b.name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.making = false
	if err != nil {
		delete(c.boxes, b.name)
		return fmt.Errorf("vm %q: %w", b.name, err)
	}
	return nil
}

// makeFiles makes the working folder, which is the commands' own.
func (c *cluster) makeFiles(b *sandbox) error {
	name := path.Join(b.name, "files")
	if err := c.work.Mkdir(name, 0o755); err != nil {
		return err
	}
	return c.give(c.work, name)
}

// give makes a file or folder below root the property of the user that commands run as.
func (c *cluster) give(root *os.Root, name string) error {
	if c.wall.id == 0 {
		return nil
	}
	return root.Lchown(name, c.wall.id, c.wall.id)
}

// CreateTemplate implements target.Cluster. The image's name is kept for people only: sandboxes have no system disk.
func (c *cluster) CreateTemplate(ctx context.Context, t target.Template) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create template: vm %q: %w", t.Name, err)
	}
	if t.Folder {
		return fmt.Errorf("create template: vm %q: image %q: this host has no images to import; use a template of "+
			"type DISK", t.Name, t.Image)
	}
	b := &sandbox{name: t.Name, group: t.Group, template: true, node: t.Node, cpus: t.CPUs, memory: t.MemoryBytes}
	for i, size := range t.DiskBytes {
		if size <= 0 {
			return fmt.Errorf("create template: vm %q: disk %s: size %d: must be positive", t.Name, deviceName(i), size)
		}
		if len(c.raw) > 0 { // a template is never on: its members get the devices
			b.disks = append(b.disks, target.Disk{Device: deviceName(i), Bytes: size})
			continue
		}
		c.deal(b, i, size, i)
	}
	fresh, err := c.claim(b)
	if err != nil || !fresh {
		return wrap("create template", err)
	}
	if err := c.journal.add(true, entry{Op: "sandbox", Name: t.Name}); err != nil {
		c.forget(b)
		return fmt.Errorf("create template: vm %q: %w", t.Name, err)
	}
	return wrap("create template", c.build(b, func() error { return c.makeDisks(b, false) }))
}

// wrap prefixes an error with its phase.
func wrap(phase string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", phase, err)
}

func (c *cluster) forget(b *sandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, b.name)
}

// removeAll removes a folder of that name from every store.
func (c *cluster) removeAll(name string) error {
	if c.undying.Load() {
		left, err := c.living()
		if err := errors.Join(err, hangs(left)); err != nil {
			return err
		}
	}
	var problems []error
	for _, s := range c.stores {
		if err := s.root.RemoveAll(name); err != nil {
			problems = append(problems, explain(err, path.Join(s.dir, name), 0))
		}
	}
	return errors.Join(problems...)
}

// makeDisks gives a new sandbox empty disks; those of a template, which nobody writes to, take no space.
func (c *cluster) makeDisks(b *sandbox, space bool) error {
	for _, s := range c.stores {
		if err := c.room(s, b.bytesOn(s)); err != nil {
			return err
		}
	}
	for i := range b.at {
		if err := c.makeDisk(b, i, space); err != nil {
			return err
		}
	}
	return nil
}

// room refuses to write more than the file system holds, less the reserve.
func (c *cluster) room(s *store, wanted int64) error {
	if wanted == 0 {
		return nil
	}
	free, err := regular.Free(s.dir)
	if err != nil {
		return err
	}
	if wanted > free-c.reserve {
		return fmt.Errorf("disk space: %s needed, %s free on the file system of %s less %s kept in reserve",
			unit.Bytes(wanted), unit.Bytes(free), s.dir, unit.Bytes(c.reserve))
	}
	return nil
}

// Clone implements target.Cluster. Disks are copied, contents included, those of a template, which nobody can write to,
// made; the working folder starts empty.
func (c *cluster) Clone(ctx context.Context, r target.Clone) error {
	source, err := c.occupy(ctx, r.Source)
	if err != nil {
		return fmt.Errorf("clone: source: %w", err)
	}
	defer source.release()
	if len(c.raw) > 0 && !source.template {
		return fmt.Errorf("clone: source: vm %q: its data disks are whole devices, which are not copied", r.Source)
	}
	if r.Linked {
		c.once("linked clones", "linked clones are copies here, sharing blocks where the file system can")
	}
	var members []*sandbox
	var entries []entry
	var problems []error
	for _, m := range r.Members {
		b := &sandbox{name: m.Name, group: r.Group, node: m.Node, cpus: source.cpus, memory: source.memory}
		first := c.turn(len(source.disks))
		for i, d := range source.disks {
			if len(c.raw) > 0 {
				break
			}
			c.deal(b, i, d.Bytes, first+i)
		}
		fresh, err := c.claim(b)
		if err == nil && fresh && len(c.raw) > 0 {
			if err = c.assign(b, source.disks); err != nil {
				c.forget(b)
			}
		}
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("clone: %w", err))
		case !fresh:
			problems = append(problems, fmt.Errorf("clone: vm %q: exists already", m.Name))
		default:
			members = append(members, b)
			c.tellStores(b)
			entries = append(entries, entry{Op: "sandbox", Name: m.Name})
		}
	}
	if err := c.journal.add(true, entries...); err != nil {
		for _, b := range members {
			c.forget(b)
		}
		return errors.Join(append(problems, fmt.Errorf("clone: %w", err))...)
	}
	for _, b := range members {
		err := ctx.Err()
		if err == nil {
			err = c.build(b, func() error {
				if source.template {
					return errors.Join(c.makeNodes(b), c.makeDisks(b, true))
				}
				return errors.Join(c.makeNodes(b), c.copyDisks(ctx, source, b))
			})
		} else {
			c.forget(b)
			err = fmt.Errorf("vm %q: not made: %w", b.name, err)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("clone: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Delete implements target.Cluster.
func (c *cluster) Delete(ctx context.Context, names []string) error {
	return each(ctx, "delete", names, func(name string) error {
		b, err := c.occupy(ctx, name)
		if errors.Is(err, target.ErrNoSuchVM) {
			return nil
		}
		if err != nil {
			return err
		}
		defer b.release()
		if err := c.powerOff(ctx, []*sandbox{b}); err != nil {
			return err
		}
		c.mu.Lock()
		b.gone = true // from here on nothing starts in it
		c.mu.Unlock()
		err = c.removeAll(name)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			b.gone = false // listed still, so that the deletion can be repeated
			return fmt.Errorf("vm %q: %w", name, err)
		}
		delete(c.boxes, name)
		return nil
	})
}

// Move implements target.Cluster.
func (c *cluster) Move(ctx context.Context, vm string, node int) error {
	return c.place(ctx, "move", vm, node, false)
}

// Migrate implements target.Migrator. Processes go on: only the node that they count for changes.
func (c *cluster) Migrate(ctx context.Context, vm string, node int) error {
	return c.place(ctx, "migrate", vm, node, true)
}

func (c *cluster) place(ctx context.Context, verb, vm string, node int, live bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: vm %q: %w", verb, vm, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := c.find(vm)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := c.checkNode(node, true); err != nil {
		return fmt.Errorf("%s: vm %q: to %w", verb, vm, err)
	}
	if err := c.checkNode(b.node, live); err != nil {
		return fmt.Errorf("%s: vm %q: from %w", verb, vm, err)
	}
	if !live && b.power == target.On && b.node != node {
		return fmt.Errorf("%s: vm %q: it is on: power it off or migrate it", verb, vm)
	}
	b.node = node
	return nil
}

// SetHA implements target.Availability: recorded, since nothing here restarts a VM on its own.
func (c *cluster) SetHA(ctx context.Context, vms []string, enabled bool) error {
	return each(ctx, "set HA", vms, c.rule(func(b *sandbox) { b.haOff = !enabled }))
}

// SetBalancing implements target.Availability: recorded, since nothing here moves a VM on its own.
func (c *cluster) SetBalancing(ctx context.Context, vms []string, enabled bool) error {
	return each(ctx, "set balancing", vms, c.rule(func(b *sandbox) { b.pinned = !enabled }))
}

func (c *cluster) rule(set func(*sandbox)) func(string) error {
	return func(name string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		b, err := c.find(name)
		if err == nil {
			set(b)
		}
		return err
	}
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) {
	b, err := c.lookup(name)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return &host{c: c, b: b}, nil
}

// Close implements target.Cluster. Commands go on, and Destroy finds them.
func (c *cluster) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	var problems []error
	for _, s := range c.stores {
		problems = append(problems, s.root.Close())
	}
	return errors.Join(append(problems, c.network.close(), c.journal.close(), releaseAll(c.raw))...)
}

// once logs a line the first time that it is said.
func (c *cluster) once(key, format string, args ...any) {
	c.mu.Lock()
	said := c.told[key]
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[key] = true
	c.mu.Unlock()
	if !said {
		c.log(format, args...)
	}
}

// sandboxes lists the members on a node, or on all with node < 0, by name. c.mu must be held.
func (c *cluster) sandboxes(node int) []*sandbox {
	var list []*sandbox
	for _, name := range slices.Sorted(maps.Keys(c.boxes)) {
		if b := c.boxes[name]; !b.making && (node < 0 || b.node == node) {
			list = append(list, b)
		}
	}
	return list
}
