//go:build linux

package folders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"plimsoll/internal/contract/target"
)

// cluster is the machines, with a working folder of one run in each.
type cluster struct{ hosts map[string]*host }

// VMs implements target.Cluster.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		list = append(list, target.VM{Name: name, Node: c.hosts[name].node, Power: target.On})
	}
	return list, ctx.Err()
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) {
	if h, ok := c.hosts[name]; ok {
		return h, nil
	}
	return nil, fmt.Errorf("machine %q: %w", name, target.ErrNoSuchVM)
}

// NodeState implements target.Cluster: whoever looks runs on the node.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if node < 0 || node >= len(c.hosts) {
		return target.Unknown, false, fmt.Errorf("node %d: %w", node, target.ErrNoSuchNode)
	}
	return target.On, true, ctx.Err()
}

// Close implements target.Cluster.
func (c *cluster) Close() (err error) {
	for _, h := range c.hosts {
		err = errors.Join(err, h.root.Close())
	}
	return err
}

// host is one of them.
type host struct {
	place *place
	name  string
	node  int
	work  string   // the working folder
	root  *os.Root // of it; nothing leads out
	disks []target.Disk
	count atomic.Int64 // of commands and of files that are not whole yet
}

var _ target.Host = (*host)(nil)

// reach makes the working folder of a run in a machine.
func reach(p *place, node int, dir, folder string) (*host, error) {
	h := &host{place: p, name: filepath.Base(dir), node: node, work: filepath.Join(dir, folder)}
	images, err := fs.Glob(os.DirFS(dir), "*.img") // sorted
	if err != nil {
		return nil, err
	}
	for i, name := range images[:min(len(images), 25)] {
		image := filepath.Join(dir, name)
		info, err := os.Stat(image)
		if err != nil {
			return nil, err
		}
		h.disks = append(h.disks, target.Disk{Device: "/dev/sd" + string(rune('b'+i)), Path: image, ID: image,
			Bytes: info.Size(), File: true})
	}
	if err := os.Mkdir(h.work, 0o755); err != nil {
		return nil, err
	}
	h.root, err = os.OpenRoot(h.work)
	return h, err
}

// Name implements target.Host.
func (h *host) Name() string { return h.name }

// Node implements target.Host.
func (h *host) Node() int { return h.node }

// Disks implements target.Host.
func (h *host) Disks() []target.Disk { return slices.Clone(h.disks) }

// Accessible implements target.Host.
func (h *host) Accessible(ctx context.Context) error { return ctx.Err() }

// on does something to a file of the working folder, and names both in what fails.
func (h *host) on(ctx context.Context, name string, do func() error) error {
	err := ctx.Err()
	if err == nil && (!filepath.IsLocal(name) || path.Clean(name) == ".") {
		err = errors.New("it is not below the working folder")
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("machine %q: %q: %w", h.name, name, err)
	}
	return nil
}

// create opens a file for writing. Its folders are made.
func (h *host) create(name string, mode fs.FileMode) (*os.File, error) {
	if err := h.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return h.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
}

// Put implements target.Host.
func (h *host) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	return h.on(ctx, name, func() error {
		part := fmt.Sprintf("%s.part%d", name, h.count.Add(1))
		f, err := h.create(part, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, &stream{Reader: content, ctx: ctx})
		if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
			err = h.root.Rename(part, name)
		}
		if err != nil {
			return errors.Join(err, h.root.Remove(part))
		}
		return nil
	})
}

// Get implements target.Host.
func (h *host) Get(ctx context.Context, name string, offset int64) (r io.ReadCloser, err error) {
	err = h.on(ctx, name, func() error {
		if offset < 0 {
			return fmt.Errorf("offset %d is below 0", offset)
		}
		f, err := h.root.Open(name)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		r = &stream{io.NewSectionReader(f, offset, max(info.Size()-offset, 0)), f, ctx}
		return nil
	})
	return r, err
}

// stream obeys a context.
type stream struct {
	io.Reader
	io.Closer
	ctx context.Context
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// Remove implements target.Host.
func (h *host) Remove(ctx context.Context, name string) error {
	return h.on(ctx, name, func() error { return h.root.RemoveAll(name) })
}

// Start implements target.Host.
func (h *host) Start(ctx context.Context, c target.Command) (target.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("machine %q: %w", h.name, err)
	}
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("machine %q: command %q is empty", h.name, c.Label)
	}
	p := &process{host: h, unit: fmt.Sprintf("%s#%d\x00", h.work, h.count.Add(1)), done: make(chan struct{})}
	p.command = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.command.Dir = h.work
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.work, "LC_ALL=C"}, c.Env...)
	p.command.Env = append(p.command.Env, unitVariable+p.unit[:len(p.unit)-1])
	files := map[string]*os.File{}
	for _, name := range []string{c.Stdout, c.Stderr} {
		if name == "" || files[name] != nil {
			continue
		}
		err := h.on(ctx, name, func() (err error) {
			files[name], err = h.create(name, target.PlainFile)
			return err
		})
		if err != nil {
			return nil, err
		}
		defer files[name].Close() // the command has its own
	}
	if f := files[c.Stdout]; f != nil {
		p.command.Stdout = f
	}
	if f := files[c.Stderr]; f != nil {
		p.command.Stderr = f
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("machine %q: %s: %w", h.name, strconv.Quote(c.Argv[0]), err)
	}
	h.place.clock.Group().Go(func() {
		_ = p.command.Wait()                                                    // its state tells how it ended
		p.left = end(context.Background(), h.place.clock, h.place.wait, p.unit) // children
		close(p.done)
	})
	return p, nil
}

// process is a command that was started.
type process struct {
	host    *host
	unit    string
	command *exec.Cmd
	done    chan struct{}
	left    error // what of it could not be ended
}

// Wait implements target.Process.
func (p *process) Wait(ctx context.Context) (target.Exit, error) {
	select {
	case <-ctx.Done():
		return target.Exit{}, ctx.Err()
	case <-p.done:
	}
	exit := target.Exit{Code: p.command.ProcessState.ExitCode()}
	if s, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		exit.Signal = s.Signal().String()
	}
	return exit, p.left
}

// Kill implements target.Process.
func (p *process) Kill() error {
	return end(context.Background(), p.host.place.clock, p.host.place.wait, p.unit)
}

// Usage implements target.Process. Of a command that runs it is not known.
func (p *process) Usage() target.Usage {
	select {
	case <-p.done:
	default:
		return target.Usage{}
	}
	u := target.Usage{User: p.command.ProcessState.UserTime(), System: p.command.ProcessState.SystemTime()}
	if r, ok := p.command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSSBytes = r.Maxrss << 10
	}
	return u
}
