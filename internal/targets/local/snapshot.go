//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// Snapshot implements target.Snapshotter: copies of the disk files, sharing blocks where the file system can. So that
// all are of one moment, the processes of the VMs stand still meanwhile; the log says for how long.
func (c *cluster) Snapshot(ctx context.Context, tag string, vms []string) error {
	if err := checkName(tag); err != nil {
		return fmt.Errorf("snapshot: tag: %w", err)
	}
	if len(c.raw) > 0 {
		return fmt.Errorf("snapshot %q: data disks are whole devices, which are not copied", tag)
	}
	names := slices.Compact(slices.Sorted(slices.Values(vms))) // one order, or two calls could wait for each other
	var boxes []*sandbox
	var problems []error
	for _, name := range names {
		b, err := c.occupy(ctx, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("snapshot %q: %w", tag, err))
			continue
		}
		defer b.release()
		boxes = append(boxes, b)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	began := c.clock.Now()
	thaw, err := c.freeze(ctx, boxes)
	thaw = sync.OnceFunc(thaw)
	defer thaw()
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", tag, err)
	}
	for i, b := range boxes {
		if err := c.snapshotOne(ctx, tag, b); err != nil {
			for _, done := range boxes[:i] { // all or none
				err = errors.Join(err, c.removeAll(snapshotDir(done.name, tag)))
			}
			return fmt.Errorf("snapshot %q: %w", tag, err)
		}
	}
	thaw()
	c.log("snapshot %q: %d VMs were paused for %v", tag, len(boxes), c.clock.Now().Sub(began).Round(time.Millisecond))
	return nil
}

func snapshotDir(vm, tag string) string { return path.Join(vm, "snapshots", tag) }

func (c *cluster) snapshotOne(ctx context.Context, tag string, b *sandbox) error {
	c.mu.Lock()
	err := c.checkNode(b.node, true)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("vm %q: %w", b.name, err)
	}
	dir := snapshotDir(b.name, tag)
	if err := c.work.MkdirAll(path.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("vm %q: %w", b.name, explain(err, filepath.Join(c.workDir, path.Dir(dir)), 0))
	}
	if err := c.work.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("vm %q: %w", b.name, explain(err, filepath.Join(c.workDir, dir), 0))
	}
	for i, d := range b.disks {
		image, s := imageName(d.Device), b.at[i]
		err := s.root.MkdirAll(dir, 0o755) // of the first store it is there
		if err == nil {
			err = c.copyImage(ctx, s, path.Join(b.name, image), s, path.Join(dir, image), d.Bytes)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("vm %q: %w", b.name, err), c.removeAll(dir))
		}
	}
	return nil
}

// Restore implements target.Snapshotter. Each disk is replaced whole, so an interrupted restore leaves none half-way.
func (c *cluster) Restore(ctx context.Context, tag, vm string) error {
	fail := func(err error) error { return fmt.Errorf("restore %q: vm %q: %w", tag, vm, err) }
	if err := checkName(tag); err != nil {
		return fail(err)
	}
	b, err := c.occupy(ctx, vm)
	if err != nil {
		return fmt.Errorf("restore %q: %w", tag, err)
	}
	defer b.release()
	c.mu.Lock()
	busy := b.power == target.On
	err = c.checkNode(b.node, true)
	c.mu.Unlock()
	if err != nil {
		return fail(err)
	}
	if busy {
		return fail(errors.New("it is on: power it off first"))
	}
	if _, err := c.work.Stat(snapshotDir(vm, tag)); err != nil {
		return fail(fmt.Errorf("no such snapshot: %w", explain(err, filepath.Join(c.workDir, snapshotDir(vm, tag)), 0)))
	}
	for i, d := range b.disks {
		image, s := path.Join(vm, imageName(d.Device)), b.at[i]
		fresh := image + ".restore"
		err := c.copyImage(ctx, s, path.Join(snapshotDir(vm, tag), imageName(d.Device)), s, fresh, d.Bytes)
		if err == nil {
			err = s.root.Rename(fresh, image)
		}
		if err != nil {
			return errors.Join(fail(err), s.root.RemoveAll(fresh))
		}
	}
	return nil
}

// freeze stops every process of the sandboxes. The function it returns, also with an error, lets them go on. A kill
// reaches frozen processes all the same.
func (c *cluster) freeze(ctx context.Context, boxes []*sandbox) (thaw func(), err error) {
	c.mu.Lock()
	var dirs []string
	var names []string
	for _, b := range boxes {
		if b.power == target.On {
			dirs = append(dirs, c.groups.tracked(b.key))
			names = append(names, b.name)
		}
	}
	c.mu.Unlock()
	if c.groups.track.dir != "" {
		thaw = func() {
			for _, dir := range dirs {
				_ = put(path.Join(dir, "cgroup.freeze"), "0") // gone when the VM went off meanwhile
			}
		}
		for _, dir := range dirs {
			if err := put(path.Join(dir, "cgroup.freeze"), "1"); err != nil {
				return thaw, fmt.Errorf("stop processes: %w", err)
			}
		}
		return thaw, c.settle(ctx, func() (bool, error) { return frozen(dirs), nil })
	}
	list := func() ([]process, error) {
		return c.marked(func(unit string) bool { return slices.Contains(names, path.Dir(unit)) })
	}
	thaw = func() {
		left, _ := list()
		for _, p := range left {
			_ = p.signal(unix.SIGCONT) // ended meanwhile, or not ours to signal and so not stopped either
		}
	}
	if len(names) == 0 {
		return func() {}, nil
	}
	return thaw, c.settle(ctx, func() (bool, error) {
		all, err := list()
		still := true
		for _, p := range all {
			if p.state != 'T' {
				still = false
				err = errors.Join(err, p.signal(unix.SIGSTOP))
			}
		}
		return still, err
	})
}

// settle polls until done, for half a minute at most.
func (c *cluster) settle(ctx context.Context, done func() (bool, error)) error {
	deadline := c.clock.Now().Add(30 * time.Second)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if c.clock.Now().After(deadline) {
			return errors.New("stop processes: not all stand still after 30 s")
		}
		if err := c.clock.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("stop processes: %w", err)
		}
	}
}

// frozen reports whether every group that still exists says so in cgroup.events.
func frozen(dirs []string) bool {
	for _, dir := range dirs {
		data, err := readControl(path.Join(dir, "cgroup.events"))
		if err == nil && !slices.Contains(data, "frozen 1") {
			return false
		}
	}
	return true
}
