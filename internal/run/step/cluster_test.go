package step_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
)

// cluster is a cluster of maps whose every call is logged with the time since the test began.
type cluster struct {
	clock clock.Clock
	began time.Time

	mu    sync.Mutex
	log   []string
	vms   map[string]target.VM
	off   map[int]bool
	slow  time.Duration // until a switched node is seen to have changed
	since map[int]time.Time
	fail  map[string]error // by the first word of a log line

	services map[string]bool // by machine and name: it runs
}

func newCluster(c clock.Clock) *cluster {
	return &cluster{
		clock:    c,
		began:    c.Now(),
		vms:      map[string]target.VM{},
		off:      map[int]bool{},
		since:    map[int]time.Time{},
		fail:     map[string]error{},
		services: map[string]bool{},
	}
}

func (c *cluster) note(format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	c.log = append(c.log, fmt.Sprintf("%s %s", c.clock.Now().Sub(c.began), line))
	word, _, _ := strings.Cut(line, " ")
	return c.fail[word]
}

func (c *cluster) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// change applies f to named machines.
func (c *cluster) change(names []string, f func(*target.VM)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		vm, ok := c.vms[n]
		if !ok {
			return fmt.Errorf("%w: %s", target.ErrNoSuchVM, n)
		}
		f(&vm)
		c.vms[n] = vm
	}
	return nil
}

func (c *cluster) VMs(context.Context) ([]target.VM, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fail["list"]; err != nil {
		return nil, err
	}
	var list []target.VM
	for _, vm := range c.vms {
		list = append(list, vm)
	}
	slices.SortFunc(list, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (c *cluster) CreateTemplate(_ context.Context, t target.Template) error {
	if err := c.note("template %s disks %v", t.Group, t.DiskBytes); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[t.Name] = target.VM{Name: t.Name, Group: t.Group, Node: t.Node, Power: target.Off, Template: true}
	return nil
}

func (c *cluster) Clone(_ context.Context, cl target.Clone) error {
	if err := c.note("clone %s x%d linked=%t", cl.Group, len(cl.Members), cl.Linked); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range cl.Members {
		c.vms[m.Name] = target.VM{Name: m.Name, Group: cl.Group, Node: m.Node, Power: target.Off}
	}
	return nil
}

func (c *cluster) PowerOn(_ context.Context, names []string, most int) error {
	if err := c.note("on x%d by %d", len(names), most); err != nil {
		return err
	}
	return c.change(names, func(vm *target.VM) { vm.Power = target.On })
}

func (c *cluster) PowerOff(_ context.Context, names []string) error {
	if err := c.note("off x%d", len(names)); err != nil {
		return err
	}
	return c.change(names, func(vm *target.VM) { vm.Power = target.Off })
}

func (c *cluster) Delete(_ context.Context, names []string) error {
	if err := c.note("delete x%d", len(names)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		delete(c.vms, n)
	}
	return nil
}

func (c *cluster) Move(_ context.Context, vm string, node int) error {
	if err := c.note("move %s to %d", short(vm), node); err != nil {
		return err
	}
	return c.change([]string{vm}, func(v *target.VM) { v.Node = node })
}

func (c *cluster) Migrate(_ context.Context, vm string, node int) error {
	if err := c.note("migrate %s to %d", short(vm), node); err != nil {
		return err
	}
	return c.change([]string{vm}, func(v *target.VM) { v.Node = node })
}

func (c *cluster) Host(name string) (target.Host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	vm, ok := c.vms[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", target.ErrNoSuchVM, name)
	}
	return &host{c: c, name: name, node: vm.Node}, nil
}

func (c *cluster) NodeState(_ context.Context, node int) (target.PowerState, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fail["node-state"]; err != nil {
		return target.Unknown, false, err
	}
	off := c.off[node]
	if at, ok := c.since[node]; ok && c.clock.Now().Sub(at) < c.slow {
		off = !off
	}
	if off {
		return target.Off, false, nil
	}
	return target.On, true, nil
}

func (c *cluster) Close() error { return nil }

func (c *cluster) power(node int, off bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off[node] != off {
		c.since[node] = c.clock.Now()
	}
	c.off[node] = off
	for name, vm := range c.vms {
		if vm.Node == node && off {
			vm.Power = target.Off
			c.vms[name] = vm
		}
	}
}

func (c *cluster) PowerController(node int) (target.PowerController, error) {
	return controller{c, node}, nil
}

// controller is the power controller of a node.
type controller struct {
	c    *cluster
	node int
}

func (p controller) State(ctx context.Context) (target.PowerState, error) {
	state, _, err := p.c.NodeState(ctx, p.node)
	return state, err
}

func (p controller) PowerOff(context.Context) error { return p.set("node-off %d", true) }
func (p controller) PowerOn(context.Context) error  { return p.set("node-on %d", false) }
func (p controller) Shutdown(context.Context) error { return p.set("node-shutdown %d", true) }

func (p controller) set(format string, off bool) error {
	err := p.c.note(format, p.node)
	if err == nil {
		p.c.power(p.node, off)
	}
	return err
}

func (c *cluster) Snapshot(_ context.Context, tag string, vms []string) error {
	return c.note("snapshot %s x%d", tag, len(vms))
}

func (c *cluster) Restore(_ context.Context, tag, vm string) error { return nil }

func (c *cluster) SetHA(_ context.Context, vms []string, on bool) error {
	return c.note("ha %t x%d", on, len(vms))
}

func (c *cluster) SetBalancing(_ context.Context, vms []string, on bool) error {
	return c.note("balancing %t x%d", on, len(vms))
}

func (c *cluster) MoveStorage(_ context.Context, vms []string, store string) error {
	return c.note("storage x%d to %s", len(vms), store)
}

// short is the number at the end of a machine's name with its group.
func short(vm string) string { return vm[strings.LastIndex(vm, "test_")+5:] }

// host is one machine of a cluster; its commands succeed at once unless they are "false".
type host struct {
	c    *cluster
	name string
	node int
}

func (h *host) Name() string { return h.name }
func (h *host) Node() int    { return h.node }
func (h *host) Disks() []target.Disk {
	return []target.Disk{{Device: "/dev/sdb", Path: "/dev/sdb", Bytes: 1 << 30}}
}

func (h *host) Accessible(ctx context.Context) error {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	vm, ok := h.c.vms[h.name]
	if !ok || vm.Power != target.On || h.c.off[vm.Node] {
		return fmt.Errorf("%s is off: %w", h.name, target.ErrNotAccessible)
	}
	return ctx.Err()
}

func (h *host) Start(_ context.Context, cmd target.Command) (target.Process, error) {
	err := h.c.note("command on %s as %s: %s", short(h.name), cmd.User, cmd.Argv[len(cmd.Argv)-1])
	return ended{exit: target.Exit{Code: map[bool]int{true: 1}[cmd.Argv[len(cmd.Argv)-1] == "false"]}}, err
}

func (h *host) Put(context.Context, string, fs.FileMode, io.Reader) error { return nil }
func (h *host) Get(context.Context, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}
func (h *host) Remove(context.Context, string) error { return nil }

type ended struct{ exit target.Exit }

func (p ended) Wait(context.Context) (target.Exit, error) { return p.exit, nil }
func (p ended) Kill() error                               { return nil }
func (p ended) Usage() target.Usage                       { return target.Usage{} }

// engine runs jobs that last as long as their spec says or, without a runtime, as long as the test says.
type engine struct {
	c    *cluster
	size time.Duration    // of jobs without a runtime
	how  map[string]error // by VM's short name: how its jobs fail, half-way
	hang bool             // jobs never end by themselves
	deaf bool             // jobs do not end when they are told to
	mu   sync.Mutex
	now  int // running
	most int // at the same time
	spec []workload.Spec
	// last gives the report of a job at its end, or when it is stopped, by its name. May be nil.
	last func(label string) workload.Report
}

func (e *engine) Describe() workload.Description { return workload.Description{Name: "scripted"} }
func (e *engine) Check(context.Context, target.Host) (workload.Tool, error) {
	return workload.Tool{Version: "1"}, nil
}
func (e *engine) Validate(workload.Spec) error { return nil }

func (e *engine) Command(s workload.Spec) (workload.Job, error) {
	d := s.Runtime
	if d == 0 {
		d = e.size
	}
	e.mu.Lock()
	e.spec = append(e.spec, s)
	e.mu.Unlock()
	return workload.Job{Limit: d, Command: target.Command{Label: s.Name}}, nil
}

var errScripted = errors.New("the tool refused")

func (e *engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	name := short(env.Host.Name())
	_ = e.c.note("run %s on %s", job.Command.Label, name)
	e.mu.Lock()
	e.now++
	e.most = max(e.most, e.now)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.now--
		e.mu.Unlock()
	}()
	if e.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	began := env.Clock.Now()
	defer func() {
		if e.last != nil {
			r := e.last(job.Command.Label)
			r.Elapsed = env.Clock.Now().Sub(began)
			env.Sink.Report(r)
		}
	}()
	for e.hang || env.Clock.Now().Sub(began) < job.Limit {
		if err := e.how[name]; err != nil && env.Clock.Now().Sub(began) >= job.Limit/2 {
			return workload.Outcome{Exit: target.Exit{Code: 1}}, err
		}
		pause := time.Second
		if !e.hang {
			pause = min(pause, job.Limit-env.Clock.Now().Sub(began))
		}
		if env.Clock.Sleep(ctx, pause) != nil {
			return workload.Outcome{Stopped: true}, nil
		}
		if env.Host.Accessible(ctx) != nil && ctx.Err() == nil {
			return workload.Outcome{Exit: target.Exit{Code: -1, Lost: true}}, nil
		}
	}
	return workload.Outcome{}, nil
}

func (e *engine) Parse(workload.Declared, io.Reader, workload.Sink) (workload.Outcome, error) {
	return workload.Outcome{}, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
func (discard) Report(workload.Report)      {}
func (discard) Warn(string)                 {}

// Services of the machines, by machine and name; true while they run.
func (h *host) StartService(ctx context.Context, s target.Service) error {
	if err := errors.Join(h.Accessible(ctx), h.c.note("serve %s on %s", s.Name, short(h.name))); err != nil {
		return err
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.c.services[h.name+" "+s.Name] = true
	return nil
}

func (h *host) ServiceState(ctx context.Context, name string) (target.ServiceState, error) {
	if err := h.Accessible(ctx); err != nil {
		return target.ServiceState{}, err
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	running, started := h.c.services[h.name+" "+name]
	return target.ServiceState{Started: started, Running: running, Exit: target.Exit{Code: 3}}, nil
}

func (h *host) StopService(_ context.Context, name string, grace time.Duration) error {
	h.c.mu.Lock()
	h.c.services[h.name+" "+name] = false
	h.c.mu.Unlock()
	return h.c.note("stop %s on %s within %s", name, short(h.name), grace)
}

func (h *host) Address(context.Context) (string, error) { return "at " + short(h.name), nil }

// serving is an engine whose load goes to a server on the machines of group B.
type serving struct {
	*engine
	use   workload.Peers
	stays bool
}

func (s serving) CheckServer(_ context.Context, host target.Host, _ workload.Spec) (workload.Tool, error) {
	return workload.Tool{Version: "db 7.1 of " + short(host.Name())}, nil
}

func (s serving) Peers(workload.Spec) (workload.Peers, bool, error) { return s.use, true, nil }

func (s serving) Server(spec workload.Spec) (workload.Server, error) {
	return workload.Server{
		Grace:   5 * time.Second,
		Stays:   s.stays,
		Ready:   target.Readiness{Command: target.Command{Argv: []string{"ping " + spec.Address}}},
		Service: target.Service{Name: spec.Name, Command: target.Command{Argv: []string{"db"}}},
	}, nil
}
