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

	"plimsoll/internal/contract/target"
)

// host is access to one machine.
type host struct {
	c *cluster
	m *machine
}

var (
	_ target.Host          = (*host)(nil)
	_ target.ServiceKeeper = (*host)(nil)
	_ target.Networked     = (*host)(nil)
	_ target.Discarder     = (*host)(nil)
	_ target.DiskPurger    = (*host)(nil)
	_ target.Follower      = (*process)(nil)
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

// Put implements target.Host. Machines have no modes: every file can be executed.
func (h *host) Put(ctx context.Context, name string, _ fs.FileMode, content io.Reader) error {
	if err := h.file(ctx, "Put", name, func(string) error { return nil }); err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("Put: vm %q: file %q: %w", h.m.Name, name, err)
	}
	h.c.w.mu.Lock()
	defer h.c.w.mu.Unlock()
	if err := errors.Join(ctx.Err(), h.accessible()); err != nil { // it may have gone off meanwhile
		return fmt.Errorf("Put: vm %q: %w", h.m.Name, err)
	}
	h.m.files[path.Clean(name)] = data
	return nil
}

func (h *host) content(name string) ([]byte, error) {
	data, ok := h.m.files[name]
	if !ok {
		return nil, fmt.Errorf("file %q: %w", name, fs.ErrNotExist)
	}
	return data, nil
}

// Get implements target.Host.
func (h *host) Get(ctx context.Context, name string, offset int64) (r io.ReadCloser, err error) {
	err = h.file(ctx, "Get", name, func(name string) error {
		if offset < 0 {
			return fmt.Errorf("file %q: offset %d: must not be negative", name, offset)
		}
		data, err := h.content(name)
		if err != nil {
			return err
		}
		r = &stored{ctx, bytes.NewReader(bytes.Clone(data[min(offset, int64(len(data))):]))}
		return nil
	})
	return r, err
}

// stored holds what a file held when it was asked for.
type stored struct {
	ctx context.Context
	*bytes.Reader
}

func (s *stored) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

func (s *stored) Close() error { return nil }

// Address implements target.Networked: one of the range for benchmarks (RFC 2544).
func (h *host) Address(ctx context.Context) (address string, err error) {
	err = h.do(ctx, "Address", func() error {
		address = h.m.address()
		return h.c.need(target.PeerNetwork)
	})
	return address, err
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

// PurgeDisk implements target.DiskPurger.
func (h *host) PurgeDisk(ctx context.Context, device string) (how string, err error) {
	err = h.do(ctx, "PurgeDisk", func() error {
		if err := h.c.need(target.DiskPurge); err != nil {
			return err
		}
		if !slices.ContainsFunc(h.m.disks, func(d target.Disk) bool { return d.Device == device }) {
			return fmt.Errorf("it has no data disk %q", device)
		}
		h.c.w.storage.Purge(h.c.w.clock.Now(), h.m.Name, device)
		return nil
	})
	return "every block discarded, simulated", err
}

// Start implements target.Host.
func (h *host) Start(ctx context.Context, r target.Command) (target.Process, error) {
	return h.start(ctx, r, true)
}

// start makes a process of a command. Without run it does nothing by itself: a model says what it does.
func (h *host) start(ctx context.Context, r target.Command, run bool) (*process, error) {
	p := &process{w: h.c.w, c: h.c, m: h.m, out: r.Stdout, argv: slices.Clone(r.Argv)}
	err := h.do(ctx, "Start", func() error { return h.launch(p, r, run) })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// launch is start with the world's lock held.
func (h *host) launch(p *process, r target.Command, run bool) error {
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
		call := &Call{Argv: p.argv, Env: slices.Clone(r.Env), Label: r.Label, Clock: h.c.w.clock, ctx: commandCtx, p: p}
		h.c.w.clock.Group().Go(func() { p.run(f, call) })
	}
	h.m.running = append(h.m.running, p)
	return nil
}

// StartService implements target.ServiceKeeper. A program without a function runs until it is ended.
func (h *host) StartService(ctx context.Context, s target.Service) error {
	if err := h.c.need(target.Services); err != nil {
		return err
	}
	return h.do(ctx, "StartService", func() error {
		if s.Name == "" {
			return errors.New("a service needs a name")
		}
		if before := h.m.services[s.Name]; before != nil && !before.ended {
			return fmt.Errorf("service %q: it runs already; stop it first", s.Name)
		}
		p := &process{
			w:       h.c.w,
			c:       h.c,
			m:       h.m,
			out:     s.Command.Stdout,
			argv:    slices.Clone(s.Command.Argv),
			service: true,
		}
		if err := h.launch(p, s.Command, true); err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
		h.m.services[s.Name] = p
		return nil
	})
}

// ServiceState implements target.ServiceKeeper.
func (h *host) ServiceState(ctx context.Context, name string) (state target.ServiceState, err error) {
	err = h.do(ctx, "ServiceState", func() error {
		if p := h.m.services[name]; p != nil {
			state = target.ServiceState{Started: true, Running: !p.ended, Exit: p.exit}
		}
		return nil
	})
	return state, err
}

// StopService implements target.ServiceKeeper. What is simulated ends as soon as it is asked.
func (h *host) StopService(ctx context.Context, name string, grace time.Duration) error {
	return h.do(ctx, "StopService", func() error {
		if p := h.m.services[name]; p != nil {
			signal := "terminated"
			if grace <= 0 {
				signal = "killed"
			}
			p.end(target.Exit{Code: -1, Signal: signal})
		}
		return nil
	})
}

// process is a started command. Its state is guarded by the world's lock.
type process struct {
	w        *World
	c        *cluster
	m        *machine
	name     string // first of argv
	argv     []string
	out      string
	cancel   context.CancelFunc // nil without a function
	children int
	service  bool
	ended    bool
	silent   bool // its machine did not answer when it ended
	exit     target.Exit
	usage    target.Usage
	waiters  []context.CancelFunc
	readers  []context.CancelFunc // of its output
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
	p.printed()
}

// printed wakes those who follow the output. The world's lock must be held.
func (p *process) printed() {
	for _, wake := range p.readers {
		wake()
	}
	p.readers = nil
}

// Follow implements target.Follower.
func (p *process) Follow(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	h := &host{c: p.c, m: p.m}
	r, err := h.Get(ctx, name, offset)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	return &stream{p: p, ctx: ctx, stop: stop, name: path.Clean(name), offset: offset}, r.Close()
}

// stream is a file that a command writes. It waits on the clock.
type stream struct {
	p      *process
	ctx    context.Context
	stop   context.CancelFunc
	name   string
	offset int64
}

// Read implements io.Reader.
func (s *stream) Read(into []byte) (int, error) {
	w := s.p.w
	for {
		w.mu.Lock()
		data, ended := s.p.m.files[s.name], s.p.ended
		if err := s.ctx.Err(); err != nil {
			w.mu.Unlock()
			return 0, err
		}
		if s.offset < int64(len(data)) {
			n := copy(into, data[s.offset:])
			s.offset += int64(n)
			w.mu.Unlock()
			return n, nil
		}
		if ended {
			w.mu.Unlock()
			return 0, io.EOF
		}
		sleep, wake := context.WithCancel(s.ctx)
		s.p.readers = append(s.p.readers, wake)
		w.mu.Unlock()
		_ = w.clock.Sleep(sleep, forever) // what woke us is seen above
		wake()
	}
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.stop()
	return nil
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
