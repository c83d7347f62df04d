package ssh

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/unit"
)

// state is what a fresh process needs to remove a run, written down before anything is made.
type state struct {
	Machines []machine `json:"machines"` // their Folder is the run's
	Tag      string    `json:"tag"`      // in each of these
}

const (
	stateFile = "ssh.json"
	// guardService keeps the claim on a host's devices.
	guardService = "plimsoll device guard"
)

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	v, err := p.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	name := "plimsoll-" + r.RunID
	if !plain(name) {
		return nil, fmt.Errorf("provision: run %q: it is no name of a folder", r.RunID)
	}
	s := state{Machines: v.machines, Tag: name + " " + rand.Text()}
	for i := range s.Machines {
		s.Machines[i].Folder += "/" + name
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(r.StateDir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.StateDir, stateFile), data, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c := &cluster{place: p, hosts: make([]*host, len(s.Machines)), byName: map[string]*host{}}
	for i, m := range s.Machines {
		c.hosts[i] = &host{place: p, link: newLink(m, p.clock, p.patience), node: i}
		c.byName[m.Name] = c.hosts[i]
	}
	objections := make([]error, len(c.hosts))
	_ = clock.Parallel(p.clock, len(c.hosts), widest, func(i int) error {
		objections[i] = c.hosts[i].settle(ctx, s.Tag)
		return nil
	})
	if err := errors.Join(objections...); err != nil {
		return nil, errors.Join(fmt.Errorf("provision: %w", err), c.Close())
	}
	return c, nil
}

// Destroy implements target.Target.
func (p *place) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	data, err := os.ReadFile(filepath.Join(stateDir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was made
	}
	var s state
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("destroy: %s: %w", filepath.Join(stateDir, stateFile), err)
	}
	objections := make([]error, len(s.Machines))
	_ = clock.Parallel(p.clock, len(s.Machines), widest, func(i int) error {
		m := s.Machines[i]
		c, err := m.dial(ctx)
		if err == nil {
			err = errors.Join(m.remove(ctx, c, s.Tag), c.Close())
		}
		objections[i] = err
		return nil
	})
	for i, o := range objections {
		if o != nil {
			remains = append(remains, s.Machines[i].Name+":"+s.Machines[i].Folder)
			err = errors.Join(err, fmt.Errorf("destroy: %w", o))
		}
	}
	return remains, err
}

// cluster is the hosts, with a folder of one run on each.
type cluster struct {
	place  *place
	hosts  []*host
	byName map[string]*host
}

var (
	_ target.Cluster      = (*cluster)(nil)
	_ target.ScrapeSource = (*cluster)(nil)
	_ target.VMAddressed  = (*cluster)(nil)
)

// VMs implements target.Cluster: every host is one, and was on before.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	for _, h := range c.hosts {
		list = append(list, target.VM{Name: h.link.Name, Group: h.link.Role, Node: h.node, Power: target.On})
	}
	slices.SortFunc(list, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return list, ctx.Err()
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) {
	if h, ok := c.byName[name]; ok {
		return h, nil
	}
	return nil, fmt.Errorf("machine %q: %w", name, target.ErrNoSuchVM)
}

// NodeState implements target.Cluster: a host that answers is on.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if node < 0 || node >= len(c.hosts) {
		return target.Unknown, false, fmt.Errorf("node %d: %w", node, target.ErrNoSuchNode)
	}
	switch err := c.hosts[node].Accessible(ctx); {
	case ctx.Err() != nil:
		return target.Unknown, false, ctx.Err()
	case err != nil:
		return target.Unknown, false, nil
	}
	return target.On, true, nil
}

// Close implements target.Cluster. What runs on the hosts goes on.
func (c *cluster) Close() (err error) {
	for _, h := range c.hosts {
		err = errors.Join(err, h.link.close())
	}
	return err
}

// VMAddress implements target.VMAddressed.
func (c *cluster) VMAddress(vm string) string {
	if h := c.byName[vm]; h != nil && len(h.link.Jump) == 0 {
		return h.link.Address
	}
	return ""
}

// Endpoints implements target.ScrapeSource: what the agent counts, and how far the host's clock is ahead.
func (c *cluster) Endpoints(ctx context.Context) (list []target.Endpoint, err error) {
	for _, h := range c.hosts {
		list = append(list, target.Endpoint{Name: "agent", VM: h.link.Name, Get: h.page})
	}
	return list, ctx.Err()
}

// page gets a page of counters; it is not tried again, since the next one is asked for soon.
func (h *host) page(ctx context.Context) (io.ReadCloser, string, error) {
	ahead, bound, err := h.link.offset(ctx, 1)
	if err != nil {
		return nil, "", h.fails("counters", err)
	}
	answer, err := h.link.ask(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, "", h.fails("counters", err)
	}
	clocks := fmt.Sprintf("# TYPE plimsoll_host_clock_ahead_seconds gauge\nplimsoll_host_clock_ahead_seconds %g\n"+
		"# TYPE plimsoll_host_clock_bound_seconds gauge\nplimsoll_host_clock_bound_seconds %g\n", ahead.Seconds(),
		bound.Seconds())
	return &stream{Reader: io.MultiReader(answer.Body, strings.NewReader(clocks)), close: answer.Body.Close, ctx: ctx},
		answer.Header.Get("Content-Type"), nil
}

// host is one of them.
type host struct {
	place *place
	link  *link
	node  int
	disks []target.Disk
}

var (
	_ target.Host          = (*host)(nil)
	_ target.ServiceKeeper = (*host)(nil)
	_ target.Networked     = (*host)(nil)
	_ target.Discarder     = (*host)(nil)
)

// settle makes the run's folder on a host, puts the agent there, and makes or claims the disks.
func (h *host) settle(ctx context.Context, tag string) error {
	c, err := h.link.dial(ctx)
	if err != nil {
		return err
	}
	h.link.spare = c // closed with the link
	if err := h.place.install(ctx, h.link.machine, c, tag); err != nil {
		return err
	}
	var s seen
	devices := h.link.devices()
	if err := h.link.once(ctx, "POST", "/look", agent.Looking{Disks: devices}, &s.Look); err != nil {
		return h.fails("look", err)
	}
	if err := s.objections(h.link.machine); err != nil {
		return err
	}
	h.disks = h.link.dataDisks(s.sizes())
	for _, d := range h.disks {
		if d.File {
			name, _ := filepath.Rel(h.link.Folder+"/work", d.Path)
			path := query("/make", "name", name, "bytes", fmt.Sprint(d.Bytes))
			if err := h.link.call(ctx, "POST", path, nil, nil); err != nil {
				return h.fails(fmt.Sprintf("disk %s of %v", d.Device, unit.Bytes(d.Bytes)), err)
			}
		}
	}
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
	return target.Ready(ctx, h.place.clock, h, keep, target.Readiness{Output: ".device-guard",
		Match: regexp.MustCompile(`(?m)^claimed$`)})
}

// fails names the machine and what it is about in an error.
func (h *host) fails(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("machine %q: %q: %w", h.link.Name, what, err)
}

// Name implements target.Host.
func (h *host) Name() string { return h.link.Name }

// Node implements target.Host.
func (h *host) Node() int { return h.node }

// Disks implements target.Host.
func (h *host) Disks() []target.Disk { return slices.Clone(h.disks) }

// Address implements target.Networked.
func (h *host) Address(ctx context.Context) (string, error) {
	if h.link.Network != "" {
		return h.link.Network, ctx.Err()
	}
	return h.link.Address, ctx.Err()
}

// accessLimit is how long a host may take to say that it is there.
const accessLimit = 20 * time.Second

// Accessible implements target.Host.
func (h *host) Accessible(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return h.fails("accessible", err)
	}
	limited, cancel := clock.WithTimeout(ctx, h.place.clock, accessLimit)
	defer cancel()
	err := h.link.once(limited, "GET", "/hello", nil, nil)
	if err != nil && ctx.Err() == nil && !errors.Is(err, target.ErrNotAccessible) {
		err = fmt.Errorf("%w: %w", target.ErrNotAccessible, err)
	}
	return h.fails("accessible", err)
}

// Put implements target.Host. It is tried once: a stream cannot be read twice.
func (h *host) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
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
func (h *host) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
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
func (h *host) Remove(ctx context.Context, name string) error {
	return h.fails(name, h.link.call(ctx, "DELETE", query("/file", "name", name), nil, nil))
}

// Discard implements target.Discarder.
func (h *host) Discard(ctx context.Context, name string, upto int64) error {
	return h.fails(name, h.link.call(ctx, "POST", query("/discard", "name", name, "upto", fmt.Sprint(upto)), nil, nil))
}

// Start implements target.Host. The command has an id, so that it is started once, however often we have to ask.
func (h *host) Start(ctx context.Context, c target.Command) (target.Process, error) {
	what := c.Label
	if len(c.Argv) > 0 {
		what = c.Argv[0]
	}
	p := &process{host: h, id: "command-" + strings.ToLower(rand.Text()), done: make(chan struct{}, 1)}
	var s agent.State
	err := h.link.call(ctx, "POST", "/unit/"+p.id, h.start(c), &s)
	if err == nil && s.Failed != "" {
		err = errors.New(s.Failed)
	}
	if err != nil {
		return nil, h.fails(what, err)
	}
	return p, nil
}

func (h *host) start(c target.Command) agent.Start {
	s := agent.Start{Command: c, Lease: h.place.lease}
	if !c.ReadOnly {
		s.Disks = h.link.devices()
	}
	return s
}

// StartService implements target.ServiceKeeper.
func (h *host) StartService(ctx context.Context, v target.Service) error {
	var s agent.State
	err := ctx.Err()
	if err == nil && v.Name == "" {
		err = errors.New("a service needs a name")
	}
	if err == nil {
		path := query("/service/"+servicePath(v.Name), "nonce", strings.ToLower(rand.Text()))
		err = h.link.call(ctx, "POST", path, h.start(v.Command), &s)
	}
	if err == nil && s.Failed != "" {
		err = errors.New(s.Failed)
	}
	return h.fails("service "+v.Name, err)
}

// ServiceState implements target.ServiceKeeper.
func (h *host) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	var s agent.State
	if err := h.link.call(ctx, "GET", "/service/"+servicePath(name), nil, &s); err != nil {
		return target.ServiceState{}, h.fails("service "+name, err)
	}
	return target.ServiceState{Started: s.Known, Running: s.Running, Exit: s.Exit}, nil
}

// StopService implements target.ServiceKeeper.
func (h *host) StopService(ctx context.Context, name string, grace time.Duration) error {
	path := query("/service/"+servicePath(name)+"/stop", "grace", grace.String())
	return h.fails("service "+name, h.link.call(ctx, "POST", path, nil, nil))
}

// process is a command that was started.
type process struct {
	host *host
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
	}
}

// callLimit bounds calls that have no context.
const callLimit = 2 * time.Minute

// Kill implements target.Process.
func (p *process) Kill() error {
	if _, ok := p.settled(); ok {
		return nil
	}
	ctx, cancel := clock.WithTimeout(context.Background(), p.host.place.clock, callLimit)
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
	ctx, cancel := clock.WithTimeout(context.Background(), p.host.place.clock, pingEvery)
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
			f.whole = err == io.EOF //nolint:errorlint // readers return it as it is
			return n, nil
		case err == io.EOF: //nolint:errorlint // readers return it as it is
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
