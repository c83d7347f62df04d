package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/target"
)

// host is access to one machine.
type host struct {
	c *cluster
	m *machine
}

var (
	_ target.Host        = (*host)(nil)
	_ target.FileFetcher = (*host)(nil)
	_ target.Discarder   = (*host)(nil)
)

// Name implements target.Host.
func (h *host) Name() string { return h.m.Name }

// Node implements target.Host.
func (h *host) Node() int {
	h.c.w.mu.Lock()
	defer h.c.w.mu.Unlock()
	return h.m.Node
}

// Disks implements target.Host.
func (h *host) Disks() []target.Disk { return slices.Clone(h.m.disks) }

// do does a method with the world locked and the machine accessible.
func (h *host) do(ctx context.Context, method string, do func() error) error {
	err := h.c.w.call(ctx, method, h.m.Name, func() error {
		if err := h.accessible(); err != nil {
			return err
		}
		return do()
	})
	if err != nil {
		return fmt.Errorf("%s: vm %q: %w", method, h.m.Name, err)
	}
	return nil
}

func (h *host) accessible() error {
	switch {
	case h.m.gone:
		return fmt.Errorf("%w: it was deleted", target.ErrNotAccessible)
	case h.c.closed:
		return fmt.Errorf("%w: the cluster is closed", target.ErrNotAccessible)
	case h.m.lost:
		return fmt.Errorf("%w: it does not answer", target.ErrNotAccessible)
	case h.m.Power != target.On:
		if err := h.c.w.node(h.m.Node, true); err != nil {
			return err
		}
		return fmt.Errorf("%w: it is powered off", target.ErrNotAccessible)
	}
	return nil
}

// Accessible implements target.Host.
func (h *host) Accessible(ctx context.Context) error {
	return h.do(ctx, "Accessible", func() error { return nil })
}

// clean checks a path relative to the working folder.
func clean(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("file %q: must be a path below the working folder", name)
	}
	return path.Clean(name), nil
}

func (h *host) file(ctx context.Context, method, name string, do func(name string) error) error {
	return h.do(ctx, method, func() error {
		name, err := clean(name)
		if err != nil {
			return err
		}
		return do(name)
	})
}

// WriteFile implements target.Host.
func (h *host) WriteFile(ctx context.Context, name string, data []byte) error {
	return h.file(ctx, "WriteFile", name, func(name string) error {
		h.m.files[name] = bytes.Clone(data)
		return nil
	})
}

func (h *host) content(name string) ([]byte, error) {
	data, ok := h.m.files[name]
	if !ok {
		return nil, fmt.Errorf("file %q: %w", name, fs.ErrNotExist)
	}
	return data, nil
}

// ReadAt implements target.Host.
func (h *host) ReadAt(ctx context.Context, name string, offset int64, limit int) (got []byte, err error) {
	err = h.file(ctx, "ReadAt", name, func(name string) error {
		if offset < 0 || limit < 0 {
			return fmt.Errorf("file %q: offset %d, limit %d: must not be negative", name, offset, limit)
		}
		data, err := h.content(name)
		if n := min(int64(limit), int64(len(data))-offset); err == nil && n > 0 {
			got = bytes.Clone(data[offset : offset+n])
		}
		return err
	})
	return got, err
}

// Fetch implements target.FileFetcher.
func (h *host) Fetch(ctx context.Context, name string) (r io.ReadCloser, err error) {
	err = h.file(ctx, "Fetch", name, func(name string) error {
		data, err := h.content(name)
		r = io.NopCloser(bytes.NewReader(bytes.Clone(data)))
		return err
	})
	return r, err
}

// Remove implements target.Host.
func (h *host) Remove(ctx context.Context, name string) error {
	return h.file(ctx, "Remove", name, func(name string) error {
		if name == "." {
			return errors.New("the working folder itself stays")
		}
		for f := range h.m.files {
			if f == name || strings.HasPrefix(f, name+"/") {
				delete(h.m.files, f)
			}
		}
		return nil
	})
}

// Discard implements target.Discarder.
func (h *host) Discard(ctx context.Context, name string, upto int64) error {
	return h.file(ctx, "Discard", name, func(name string) error {
		data := h.m.files[name]
		clear(data[:min(max(upto, 0), int64(len(data)))])
		return nil
	})
}

// Start implements target.Host.
func (h *host) Start(ctx context.Context, r target.Command) (target.Process, error) {
	return h.start(ctx, r, true)
}

// start makes a process of a command. Without run it does nothing by itself: a model says what it does.
func (h *host) start(ctx context.Context, r target.Command, run bool) (*process, error) {
	p := &process{w: h.c.w, m: h.m, out: r.Stdout, argv: slices.Clone(r.Argv)}
	err := h.do(ctx, "Start", func() error {
		if len(r.Argv) == 0 {
			return fmt.Errorf("command %q: no argv", r.Label)
		}
		p.name = r.Argv[0]
		for _, name := range []string{r.Stdout, r.Stderr} {
			if name == "" {
				continue
			}
			name, err := clean(name)
			if err != nil {
				return err
			}
			h.m.files[name] = nil
		}
		if p.out != "" {
			p.out = path.Clean(p.out)
		}
		if run {
			f, err := h.c.w.function(p.name)
			if err != nil {
				return err
			}
			var commandCtx context.Context
			commandCtx, p.cancel = context.WithCancel(context.Background())
			call := &Call{Argv: p.argv, Env: slices.Clone(r.Env), Label: r.Label, Clock: h.c.w.clock, ctx: commandCtx,
				p: p}
			h.c.w.clock.Group().Go(func() { p.run(f, call) })
		}
		h.m.running = append(h.m.running, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// process is a started command. Its state is guarded by the world's lock.
type process struct {
	w        *World
	m        *machine
	name     string // first of argv
	argv     []string
	out      string
	cancel   context.CancelFunc // nil without a function
	children int
	ended    bool
	silent   bool // its machine did not answer when it ended
	exit     target.Exit
	usage    target.Usage
	waiters  []context.CancelFunc
}

func (p *process) run(f Func, call *Call) {
	exit := f(call)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.end(exit)
}

// end ends the process and all its children, and wakes those who wait. The world's lock must be held.
func (p *process) end(exit target.Exit) {
	if p.ended {
		return
	}
	p.ended, p.exit, p.children, p.silent = true, exit, 0, p.m.lost
	p.m.running = slices.DeleteFunc(p.m.running, func(q *process) bool { return q == p })
	if p.cancel != nil {
		p.cancel()
	}
	for _, wake := range p.waiters {
		wake()
	}
	p.waiters = nil
}

// forever is longer than any run.
const forever = 100 * 365 * 24 * time.Hour

// Wait implements target.Process. It sleeps on the clock under a context that the end of the process cancels.
func (p *process) Wait(ctx context.Context) (target.Exit, error) {
	sleep, wake := context.WithCancel(ctx)
	defer wake()
	p.w.mu.Lock()
	if !p.ended {
		p.waiters = append(p.waiters, wake)
		p.w.mu.Unlock()
		_ = p.w.clock.Sleep(sleep, forever) // which of the two woke us is asked below
		p.w.mu.Lock()
	}
	defer p.w.mu.Unlock()
	if p.ended {
		return p.exit, nil
	}
	return target.Exit{}, ctx.Err()
}

// Kill implements target.Process.
func (p *process) Kill() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.end(target.Exit{Code: -1, Signal: "killed"})
	return nil
}

// Usage implements target.Process.
func (p *process) Usage() target.Usage {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.usage
}
