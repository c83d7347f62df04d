package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/agent"
	"plimsoll/unit"
)

// guardService keeps the claim on a host's devices.
const guardService = "plimsoll device guard"

// Page gets a page of what the agent counts, and how far the host's clock is ahead. It is not tried again,
// since the next one is asked for soon.
func (h *Host) Page(ctx context.Context) (io.ReadCloser, string, error) {
	if err := h.link.readClock(ctx, 1); err != nil {
		return nil, "", h.fails("counters", err)
	}
	now := h.link.reading()
	answer, err := h.link.ask(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, "", h.fails("counters", err)
	}
	clocks := fmt.Sprintf("# TYPE plimsoll_host_clock_ahead_seconds gauge\nplimsoll_host_clock_ahead_seconds %g\n"+
		"# TYPE plimsoll_host_clock_bound_seconds gauge\nplimsoll_host_clock_bound_seconds %g\n", now.Ahead.Seconds(),
		now.Bound.Seconds())
	return &stream{Reader: io.MultiReader(answer.Body, strings.NewReader(clocks)), close: answer.Body.Close, ctx: ctx},
		answer.Header.Get("Content-Type"), nil
}

// Host is a machine, with a folder of one run on it.
type Host struct {
	access Access
	link   *link
	node   int
	disks  []target.Disk

	claiming sync.Mutex
	begun    sync.Map // the processes that were begun and are not known to have ended, with their labels
}

// NewHost is a machine whose Folder is the run's. It opens no connection.
func (a Access) NewHost(m Machine, node int) *Host {
	return &Host{access: a, link: newLink(m, a.Clock, a.Patience), node: node}
}

// Machine returns what leads to it.
func (h *Host) Machine() Machine { return h.link.Machine }

// Close lets go of the connection. What runs on the machine goes on.
func (h *Host) Close() error { return h.link.close() }

var (
	_ target.Host          = (*Host)(nil)
	_ target.ServiceKeeper = (*Host)(nil)
	_ target.Networked     = (*Host)(nil)
	_ target.Discarder     = (*Host)(nil)
	_ target.Stager        = (*Host)(nil)
	_ target.ClockReader   = (*Host)(nil)
	_ target.StandTeller   = (*Host)(nil)
	_ target.Patient       = (*Host)(nil)
)

// Patience implements target.Patient.
func (h *Host) Patience() time.Duration { return h.link.patience }

// Settled takes a machine of the run as it is, on which its place ran Settling.
func (h *Host) Settled() { h.disks = slices.Clone(h.link.Own) }

// Settle makes the run's folder on a host, puts the agent there, and makes or claims the disks.
func (h *Host) Settle(ctx context.Context, tag string) error {
	c, err := h.link.dial(ctx)
	if err != nil {
		return err
	}
	h.link.spare = c // closed with the link
	program, err := h.access.program(ctx, h.link.Machine, c)
	if err == nil {
		err = h.link.install(ctx, c, program, tag)
	}
	if err != nil {
		return err
	}
	if h.link.Own != nil {
		h.Settled()
		return nil
	}
	var s Seen
	devices := h.link.devices()
	if err := h.link.once(ctx, "POST", "/look", agent.Looking{Disks: devices}, &s.Look); err != nil {
		return h.fails("look", err)
	}
	if err := s.Objections(h.link.Machine); err != nil {
		return err
	}
	h.disks = h.link.DataDisks(s.Sizes())
	for _, d := range h.disks {
		if d.File {
			name, _ := filepath.Rel(h.link.Folder+"/work", d.Path)
			path := query("/make", "name", name, "bytes", fmt.Sprint(d.Bytes))
			if err := h.link.call(ctx, "POST", path, nil, nil); err != nil {
				return h.fails(fmt.Sprintf("disk %s of %v", d.Device, unit.Bytes(d.Bytes)), err)
			}
		}
	}
	return h.claim(ctx, devices)
}

// Claim takes the exclusive claim on the devices again where it is gone, as it is once a host is back that was off, or
// when what held it was killed. The guard looks at them anew.
func (h *Host) Claim(ctx context.Context) error {
	if h.link.Own != nil || len(h.link.devices()) == 0 {
		return nil
	}
	h.claiming.Lock()
	defer h.claiming.Unlock()
	if s, err := h.ServiceState(ctx, guardService); err != nil || s.Running {
		return err
	}
	if err := h.Remove(ctx, ".device-guard"); err != nil { // it tells of the last claim
		return err
	}
	return h.claim(ctx, h.link.devices())
}

// claim starts what holds the claim, until the run ends or the host does.
func (h *Host) claim(ctx context.Context, devices []agent.Disk) error {
	if len(devices) == 0 {
		return nil
	}
	given, err := json.Marshal(devices)
	if err != nil {
		return err
	}
	keep := target.Service{Name: guardService, Command: target.Command{ReadOnly: true, Stdout: ".device-guard",
		Stderr: ".device-guard",
		Argv:   []string{h.link.Folder + "/" + agent.Program, "hold", h.link.Folder, string(given)}}}
	if err := h.StartService(ctx, keep); err != nil {
		return err
	}
	return target.Ready(ctx, h.access.Clock, h, keep, target.Readiness{Output: ".device-guard",
		Match: regexp.MustCompile(`(?m)^claimed$`)})
}

// fails names the machine and what it is about in an error.
func (h *Host) fails(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("machine %q: %q: %w", h.link.Name, what, err)
}

// Name implements target.Host.
func (h *Host) Name() string { return h.link.Name }

// Node implements target.Host.
func (h *Host) Node() int { return h.node }

// Disks implements target.Host.
func (h *Host) Disks() []target.Disk { return slices.Clone(h.disks) }

// Address implements target.Networked.
func (h *Host) Address(ctx context.Context) (string, error) {
	if h.link.Network != "" {
		return h.link.Network, ctx.Err()
	}
	return h.link.Address, ctx.Err()
}

// accessLimit is how long a host may take to say that it is there.
const accessLimit = 20 * time.Second

// Accessible implements target.Host.
func (h *Host) Accessible(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return h.fails("accessible", err)
	}
	limited, cancel := clock.WithTimeout(ctx, h.access.Clock, accessLimit)
	defer cancel()
	err := h.link.once(limited, "GET", "/hello", nil, nil)
	if err != nil && ctx.Err() == nil && !errors.Is(err, target.ErrNotAccessible) {
		err = fmt.Errorf("%w: %w", target.ErrNotAccessible, err)
	}
	return h.fails("accessible", err)
}

// Put implements target.Host. It is tried once: a stream cannot be read twice.
func (h *Host) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	source := &stream{Reader: content, ctx: ctx}
	answer, err := h.link.ask(ctx, "PUT", query("/file", "name", name, "mode", fmt.Sprintf("%o", mode.Perm())), source)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		err = errors.Join(err, answer.Body.Close())
	}
	if broken := source.broken(); broken != nil {
		err = broken
	}
	return h.fails(name, err)
}

// Get implements target.Host.
func (h *Host) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	var r io.ReadCloser
	err := h.link.again(ctx, func() error {
		answer, err := h.link.ask(ctx, "GET", query("/file", "name", name, "offset", fmt.Sprint(offset)), nil)
		if err == nil {
			r = &stream{Reader: answer.Body, close: answer.Body.Close, ctx: ctx}
		}
		return err
	})
	return r, h.fails(name, err)
}

// Remove implements target.Host.
func (h *Host) Remove(ctx context.Context, name string) error {
	return h.fails(name, h.link.call(ctx, "DELETE", query("/file", "name", name), nil, nil))
}

// Discard implements target.Discarder.
func (h *Host) Discard(ctx context.Context, name string, upto int64) error {
	return h.fails(name, h.link.call(ctx, "POST", query("/discard", "name", name, "upto", fmt.Sprint(upto)), nil, nil))
}

// Start implements target.Host. The command has an id, so that it is started once, however often we have to ask.
func (h *Host) Start(ctx context.Context, c target.Command) (target.Process, error) {
	p, err := h.begin(ctx, c, false)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (h *Host) begin(ctx context.Context, c target.Command, held bool) (*process, error) {
	what := c.Label
	if len(c.Argv) > 0 {
		what = c.Argv[0]
	}
	p := &process{host: h, id: "command-" + strings.ToLower(rand.Text()), done: make(chan struct{}, 1)}
	var s agent.State
	start, err := h.start(ctx, c)
	start.Held = held
	if err == nil {
		err = h.link.call(ctx, "POST", "/unit/"+p.id, start, &s)
	}
	if err == nil && s.Failed != "" {
		err = errors.New(s.Failed)
	}
	if err != nil {
		return nil, h.fails(what, err)
	}
	h.begun.Store(p, c.Label)
	return p, nil
}

// Stands implements target.StandTeller. A host that does not answer soon tells nothing.
func (h *Host) Stands(label string) (names []string) {
	ctx, cancel := clock.WithTimeout(context.Background(), h.access.Clock, pingEvery)
	defer cancel()
	h.begun.Range(func(p, of any) bool {
		if p := p.(*process); of == label {
			var some []string
			if h.link.once(ctx, "GET", "/unit/"+p.id+"/stands", nil, &some) == nil {
				names = append(names, some...)
			}
		}
		return true
	})
	return names
}

// staged is a command that is ready on a host.
type staged struct {
	process *process
	what    string
}

// Stage implements target.Stager.
func (h *Host) Stage(ctx context.Context, c target.Command) (target.Staged, error) {
	p, err := h.begin(ctx, c, true)
	if err != nil {
		return nil, err
	}
	if _, err := h.ReadClock(ctx); err != nil { // to tell when it began
		return nil, errors.Join(err, p.Kill())
	}
	return &staged{p, c.Label}, nil
}

// Release implements target.Staged.
func (s *staged) Release(ctx context.Context, at time.Time) (target.Process, target.Begun, error) {
	h := s.process.host
	var state agent.State
	theirs := at.Add(h.link.reading().Ahead).UnixNano()
	path := query("/unit/"+s.process.id+"/release", "at", fmt.Sprint(theirs))
	err := h.link.call(ctx, "POST", path, nil, &state)
	if err == nil && state.Failed != "" {
		err = errors.New(state.Failed)
	}
	if err != nil {
		return nil, target.Begun{}, h.fails(s.what, err)
	}
	now := h.link.reading()
	if state.Began == 0 {
		return s.process, target.Begun{}, nil
	}
	return s.process, target.Begun{At: time.Unix(0, state.Began).Add(-now.Ahead), Within: now.Bound}, nil
}

// Drop implements target.Staged.
func (s *staged) Drop(context.Context) error { return s.process.Kill() }

// clockTrips is how many round trips a reading of a clock takes: the shortest counts.
const clockTrips = 5

// ReadClock implements target.ClockReader. It is not tried again.
func (h *Host) ReadClock(ctx context.Context) (target.ClockReading, error) {
	if err := h.link.readClock(ctx, clockTrips); err != nil {
		return target.ClockReading{}, h.fails("clock", err)
	}
	return h.link.reading(), nil
}

// start returns what the agent is asked. The devices that a command may write to are claimed when it begins, whatever
// has become of the host since the run took them.
func (h *Host) start(ctx context.Context, c target.Command) (agent.Start, error) {
	s := agent.Start{Command: c, Lease: h.access.Lease}
	if c.ReadOnly {
		return s, nil
	}
	s.Disks = h.link.devices()
	return s, h.Claim(ctx)
}

// StartService implements target.ServiceKeeper.
func (h *Host) StartService(ctx context.Context, v target.Service) error {
	var s agent.State
	err := ctx.Err()
	if err == nil && v.Name == "" {
		err = errors.New("a service needs a name")
	}
	var start agent.Start
	if err == nil {
		start, err = h.start(ctx, v.Command)
	}
	if err == nil {
		path := query("/service/"+servicePath(v.Name), "nonce", strings.ToLower(rand.Text()))
		err = h.link.call(ctx, "POST", path, start, &s)
	}
	if err == nil && s.Failed != "" {
		err = errors.New(s.Failed)
	}
	return h.fails("service "+v.Name, err)
}

// ServiceState implements target.ServiceKeeper.
func (h *Host) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	var s agent.State
	if err := h.link.call(ctx, "GET", "/service/"+servicePath(name), nil, &s); err != nil {
		return target.ServiceState{}, h.fails("service "+name, err)
	}
	return target.ServiceState{Started: s.Known, Running: s.Running, Exit: s.Exit}, nil
}

// StopService implements target.ServiceKeeper.
func (h *Host) StopService(ctx context.Context, name string, grace time.Duration) error {
	path := query("/service/"+servicePath(name)+"/stop", "grace", grace.String())
	return h.fails("service "+name, h.link.call(ctx, "POST", path, nil, nil))
}

// process is a command that was started.
type process struct {
	host *Host
	id   string
	done chan struct{} // holds a token when ended is set
	last agent.State
}

var _ target.Follower = (*process)(nil)

// settled is the state that it ended with, once that is known.
func (p *process) settled() (agent.State, bool) {
	select {
	case token := <-p.done:
		p.done <- token
		return p.last, true
	default:
		return agent.State{}, false
	}
}

// Wait implements target.Process. A host that has not answered for as long as we are patient has taken the command with
// it.
func (p *process) Wait(ctx context.Context) (target.Exit, error) {
	if s, ok := p.settled(); ok {
		return s.Exit, nil
	}
	var s agent.State
	err := p.host.link.call(ctx, "GET", "/unit/"+p.id+"/end", nil, &s)
	switch {
	case ctx.Err() != nil:
		return target.Exit{}, ctx.Err()
	case errors.Is(err, target.ErrNotAccessible), err == nil && !s.Known:
		return target.Exit{Code: -1, Lost: true}, nil
	case err != nil:
		return target.Exit{}, p.host.fails("wait", err)
	}
	p.settle(s)
	return s.Exit, nil
}

// settle keeps the state that it ended with.
func (p *process) settle(s agent.State) {
	p.host.link.turn <- struct{}{}
	defer func() { <-p.host.link.turn }()
	if _, ok := p.settled(); !ok && !s.Running {
		p.last = s
		p.done <- struct{}{}
		p.host.begun.Delete(p)
	}
}

// callLimit bounds calls that have no context.
const callLimit = 2 * time.Minute

// Kill implements target.Process.
func (p *process) Kill() error {
	if _, ok := p.settled(); ok {
		return nil
	}
	ctx, cancel := clock.WithTimeout(context.Background(), p.host.access.Clock, callLimit)
	defer cancel()
	var s agent.State
	if err := p.host.link.call(ctx, "POST", "/unit/"+p.id+"/stop", nil, &s); err != nil {
		return p.host.fails("kill", err)
	}
	p.settle(s)
	return nil
}

// Usage implements target.Process. It is zero where the host does not answer.
func (p *process) Usage() target.Usage {
	if s, ok := p.settled(); ok {
		return s.Usage
	}
	ctx, cancel := clock.WithTimeout(context.Background(), p.host.access.Clock, pingEvery)
	defer cancel()
	var s agent.State
	if err := p.host.link.once(ctx, "GET", "/unit/"+p.id, nil, &s); err != nil {
		return target.Usage{}
	}
	return s.Usage
}

// Follow implements target.Follower. When the connection is lost it goes on where it was.
func (p *process) Follow(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, p.host.fails(name, fmt.Errorf("offset %d is below 0", offset))
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{process: p, name: name, offset: offset, ctx: ctx, cancel: cancel}
	if err := f.open(); err != nil {
		cancel()
		return nil, p.host.fails(name, err)
	}
	return f, nil
}

// follower reads a file that grows.
type follower struct {
	process *process
	name    string
	offset  int64
	ctx     context.Context
	cancel  func()
	body    io.ReadCloser
	whole   bool
}

func (f *follower) open() error {
	l := f.process.host.link
	return l.again(f.ctx, func() error {
		answer, err := l.ask(f.ctx, "GET", query("/unit/"+f.process.id+"/follow", "name", f.name, "offset",
			fmt.Sprint(f.offset)), nil)
		if err == nil {
			f.body = answer.Body
		}
		return err
	})
}

func (f *follower) Read(b []byte) (int, error) {
	for {
		if err := f.ctx.Err(); err != nil {
			return 0, err
		}
		if f.whole {
			return 0, io.EOF
		}
		n, err := f.body.Read(b)
		f.offset += int64(n)
		switch {
		case n > 0:
			f.whole = err == io.EOF // readers return it as it is
			return n, nil
		case err == io.EOF: // readers return it as it is
			return 0, err
		case err == nil:
			continue
		case f.ctx.Err() != nil:
			return 0, f.ctx.Err()
		}
		_ = f.body.Close() // it broke
		if err := f.open(); err != nil {
			if f.ctx.Err() != nil {
				err = f.ctx.Err()
			}
			return 0, f.process.host.fails(f.name, err)
		}
	}
}

// Close ends a Read that waits.
func (f *follower) Close() error {
	f.cancel()
	return nil
}

// stream obeys a context, and remembers why what it reads from broke.
type stream struct {
	io.Reader
	close func() error
	ctx   context.Context
	mu    sync.Mutex
	why   error
}

func (s *stream) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		if s.ctx.Err() != nil {
			err = s.ctx.Err()
		}
		s.mu.Lock()
		s.why = err
		s.mu.Unlock()
	}
	return n, err
}

func (s *stream) broken() error { s.mu.Lock(); defer s.mu.Unlock(); return s.why }

// Close implements io.Closer.
func (s *stream) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// servicePath is the name of a service in a path.
func servicePath(name string) string { return url.PathEscape(name) }
