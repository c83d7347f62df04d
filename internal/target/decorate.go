package target

import (
	"context"
	"io"
	"io/fs"
	"net"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// As finds an optional interface of a cluster, whatever decorators are around it: through a decorator its methods are
// decorated as well. A type that a decorator does not know comes from the innermost cluster.
func As[T any](c Cluster) (T, bool) {
	d, wrapped := any(c).(*decoratedCluster)
	if !wrapped {
		t, ok := any(c).(T)
		return t, ok
	}
	inner, ok := As[T](d.inner)
	if !ok {
		return inner, false
	}
	if t, ok := any(d).(T); ok {
		return t, true
	}
	return inner, true
}

// HostAs is As for hosts.
func HostAs[T any](h Host) (T, bool) {
	d, wrapped := any(h).(*decoratedHost)
	if !wrapped {
		t, ok := any(h).(T)
		return t, ok
	}
	inner, ok := HostAs[T](d.Host)
	if !ok {
		return inner, false
	}
	if t, ok := any(d).(T); ok {
		return t, true
	}
	return inner, true
}

// TargetAs finds an optional interface of a target, whatever decorators are around it. What it gives is not decorated.
func TargetAs[T any](t Target) (T, bool) {
	if d, wrapped := t.(*decoratedTarget); wrapped {
		return TargetAs[T](d.inner)
	}
	found, ok := t.(T)
	return found, ok
}

// Call is one call of a method of a cluster, one of its hosts or a power controller.
type Call struct {
	Method  string // "PowerOn", "Host.Start", "Power.PowerOff"
	Subject string // a VM, host or node number, where there is one
}

// Around does a call, or does not, or does it again.
type Around func(ctx context.Context, call Call, do func(context.Context) error) error

// Decorate puts something around every method of a target's clusters and hosts that takes a context. The cluster
// keeps its capabilities: see As.
func Decorate(t Target, around Around) Target { return &decoratedTarget{t, around} }

type decoratedTarget struct {
	inner  Target
	around Around
}

func (d *decoratedTarget) Check(ctx context.Context) (f Facts, err error) {
	err = d.around(ctx, Call{"Check", ""}, func(ctx context.Context) (err error) {
		f, err = d.inner.Check(ctx)
		return err
	})
	return f, err
}

func (d *decoratedTarget) Provision(ctx context.Context, r Request) (Cluster, error) {
	var c Cluster
	err := d.around(ctx, Call{"Provision", r.RunID}, func(ctx context.Context) (err error) {
		c, err = d.inner.Provision(ctx, r)
		return err
	})
	if err != nil || c == nil {
		return c, err
	}
	return &decoratedCluster{c, d.around}, nil
}

func (d *decoratedTarget) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	err = d.around(ctx, Call{"Destroy", ""}, func(ctx context.Context) (err error) {
		remains, err = d.inner.Destroy(ctx, stateDir)
		return err
	})
	return remains, err
}

// decoratedCluster has every optional interface; As gives those that the cluster inside has.
type decoratedCluster struct {
	inner  Cluster
	around Around
}

var (
	_ VMMaker         = (*decoratedCluster)(nil)
	_ VMPower         = (*decoratedCluster)(nil)
	_ VMMover         = (*decoratedCluster)(nil)
	_ NodePower       = (*decoratedCluster)(nil)
	_ Snapshotter     = (*decoratedCluster)(nil)
	_ Migrator        = (*decoratedCluster)(nil)
	_ Availability    = (*decoratedCluster)(nil)
	_ StorageMigrator = (*decoratedCluster)(nil)
	_ Addressed       = (*decoratedCluster)(nil)
	_ WriteLog        = (*decoratedCluster)(nil)
	_ PlatformChecker = (*decoratedCluster)(nil)
	_ MetricsSource   = (*decoratedCluster)(nil)
	_ HostSource      = (*decoratedCluster)(nil)
	_ ScrapeSource    = (*decoratedCluster)(nil)
	_ ServiceKeeper   = (*decoratedHost)(nil)
	_ Networked       = (*decoratedHost)(nil)
	_ Discarder       = (*decoratedHost)(nil)
	_ DiskReader      = (*decoratedHost)(nil)
	_ DiskPurger      = (*decoratedHost)(nil)
	_ Stager          = (*decoratedHost)(nil)
	_ ClockReader     = (*decoratedHost)(nil)
)

// use does a call of an optional interface, which As has found before.
func use[T any](ctx context.Context, d *decoratedCluster, method, subject string,
	do func(context.Context, T) error) error {
	inner, ok := As[T](d.inner)
	if !ok {
		panic("target: a decorator was asked for " + reflect.TypeFor[T]().Name() +
			", which its cluster lacks: find it with target.As")
	}
	return d.around(ctx, Call{method, subject}, func(ctx context.Context) error { return do(ctx, inner) })
}

// ask is use for what gives a value.
func ask[T, V any](ctx context.Context, d *decoratedCluster, method, subject string,
	do func(context.Context, T) (V, error)) (v V, err error) {
	err = use(ctx, d, method, subject, func(ctx context.Context, t T) (err error) { v, err = do(ctx, t); return err })
	return v, err
}

func one(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

func (d *decoratedCluster) VMs(ctx context.Context) ([]VM, error) {
	return ask(ctx, d, "VMs", "", func(ctx context.Context, c Cluster) ([]VM, error) { return c.VMs(ctx) })
}

func (d *decoratedCluster) Host(name string) (Host, error) {
	h, err := d.inner.Host(name)
	if err != nil {
		return nil, err
	}
	return &decoratedHost{h, d.around}, nil
}

func (d *decoratedCluster) NodeState(ctx context.Context, node int) (state PowerState, ready bool, err error) {
	err = use(ctx, d, "NodeState", "", func(ctx context.Context, c Cluster) (err error) {
		state, ready, err = c.NodeState(ctx, node)
		return err
	})
	return state, ready, err
}

func (d *decoratedCluster) Close() error { return d.inner.Close() }

func (d *decoratedCluster) CreateTemplate(ctx context.Context, t Template) error {
	return use(ctx, d, "CreateTemplate", t.Name, func(ctx context.Context, c VMMaker) error {
		return c.CreateTemplate(ctx, t)
	})
}

func (d *decoratedCluster) Clone(ctx context.Context, k Clone) error {
	return use(ctx, d, "Clone", k.Source, func(ctx context.Context, c VMMaker) error { return c.Clone(ctx, k) })
}

func (d *decoratedCluster) Delete(ctx context.Context, names []string) error {
	return use(ctx, d, "Delete", one(names), func(ctx context.Context, c VMMaker) error { return c.Delete(ctx, names) })
}

func (d *decoratedCluster) PowerOn(ctx context.Context, names []string, maxConcurrent int) error {
	return use(ctx, d, "PowerOn", one(names), func(ctx context.Context, c VMPower) error {
		return c.PowerOn(ctx, names, maxConcurrent)
	})
}

func (d *decoratedCluster) PowerOff(ctx context.Context, names []string) error {
	return use(ctx, d, "PowerOff", one(names), func(ctx context.Context, c VMPower) error {
		return c.PowerOff(ctx, names)
	})
}

func (d *decoratedCluster) Move(ctx context.Context, vm string, node int) error {
	return use(ctx, d, "Move", vm, func(ctx context.Context, c VMMover) error { return c.Move(ctx, vm, node) })
}

func (d *decoratedCluster) PowerController(node int) (PowerController, error) {
	inner, ok := As[NodePower](d.inner)
	if !ok {
		panic("target: a decorator was asked for NodePower, which its cluster lacks: find it with target.As")
	}
	c, err := inner.PowerController(node)
	if err != nil {
		return nil, err
	}
	return &decoratedController{c, d.around, strconv.Itoa(node)}, nil
}

func (d *decoratedCluster) Snapshot(ctx context.Context, tag string, vms []string) error {
	return use(ctx, d, "Snapshot", one(vms), func(ctx context.Context, c Snapshotter) error {
		return c.Snapshot(ctx, tag, vms)
	})
}

func (d *decoratedCluster) Restore(ctx context.Context, tag, vm string) error {
	return use(ctx, d, "Restore", vm, func(ctx context.Context, c Snapshotter) error { return c.Restore(ctx, tag, vm) })
}

func (d *decoratedCluster) Migrate(ctx context.Context, vm string, toNode int) error {
	return use(ctx, d, "Migrate", vm, func(ctx context.Context, c Migrator) error { return c.Migrate(ctx, vm, toNode) })
}

func (d *decoratedCluster) SetHA(ctx context.Context, vms []string, enabled bool) error {
	return use(ctx, d, "SetHA", one(vms), func(ctx context.Context, c Availability) error {
		return c.SetHA(ctx, vms, enabled)
	})
}

func (d *decoratedCluster) SetBalancing(ctx context.Context, vms []string, enabled bool) error {
	return use(ctx, d, "SetBalancing", one(vms), func(ctx context.Context, c Availability) error {
		return c.SetBalancing(ctx, vms, enabled)
	})
}

func (d *decoratedCluster) MoveStorage(ctx context.Context, vms []string, store string) error {
	return use(ctx, d, "MoveStorage", one(vms), func(ctx context.Context, c StorageMigrator) error {
		return c.MoveStorage(ctx, vms, store)
	})
}

func (d *decoratedCluster) Addresses(ctx context.Context, group string) ([]string, error) {
	return ask(ctx, d, "Addresses", group, func(ctx context.Context, c Addressed) ([]string, error) {
		return c.Addresses(ctx, group)
	})
}

func (d *decoratedCluster) WriteLogBytes(ctx context.Context) (map[string]int64, error) {
	return ask(ctx, d, "WriteLogBytes", "", func(ctx context.Context, c WriteLog) (map[string]int64, error) {
		return c.WriteLogBytes(ctx)
	})
}

func (d *decoratedCluster) PlatformCheck(ctx context.Context, name string, node int, store string) error {
	return use(ctx, d, "PlatformCheck", name, func(ctx context.Context, c PlatformChecker) error {
		return c.PlatformCheck(ctx, name, node, store)
	})
}

func (d *decoratedCluster) ClusterMetrics(ctx context.Context) ([]Metric, error) {
	return ask(ctx, d, "ClusterMetrics", "", func(ctx context.Context, c MetricsSource) ([]Metric, error) {
		return c.ClusterMetrics(ctx)
	})
}

func (d *decoratedCluster) HostCounters(ctx context.Context) (HostCounters, error) {
	return ask(ctx, d, "HostCounters", "", func(ctx context.Context, c HostSource) (HostCounters, error) {
		return c.HostCounters(ctx)
	})
}

func (d *decoratedCluster) Endpoints(ctx context.Context) ([]Endpoint, error) {
	return ask(ctx, d, "Endpoints", "", func(ctx context.Context, c ScrapeSource) ([]Endpoint, error) {
		return c.Endpoints(ctx)
	})
}

// decoratedHost has every optional interface of hosts; HostAs gives those that the host inside has.
type decoratedHost struct {
	Host
	around Around
}

func (d *decoratedHost) call(ctx context.Context, method string, do func(context.Context) error) error {
	return d.around(ctx, Call{"Host." + method, d.Name()}, do)
}

func (d *decoratedHost) Accessible(ctx context.Context) error {
	return d.call(ctx, "Accessible", func(ctx context.Context) error { return d.Host.Accessible(ctx) })
}

func (d *decoratedHost) Start(ctx context.Context, c Command) (p Process, err error) {
	err = d.call(ctx, "Start", func(ctx context.Context) (err error) { p, err = d.Host.Start(ctx, c); return err })
	return p, err
}

func (d *decoratedHost) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	return d.call(ctx, "Put", func(ctx context.Context) error { return d.Host.Put(ctx, name, mode, content) })
}

func (d *decoratedHost) Get(ctx context.Context, name string, offset int64) (r io.ReadCloser, err error) {
	err = d.call(ctx, "Get",
		func(ctx context.Context) (err error) { r, err = d.Host.Get(ctx, name, offset); return err })
	return r, err
}

func (d *decoratedHost) Remove(ctx context.Context, name string) error {
	return d.call(ctx, "Remove", func(ctx context.Context) error { return d.Host.Remove(ctx, name) })
}

func (d *decoratedHost) StartService(ctx context.Context, s Service) error {
	inner, _ := HostAs[ServiceKeeper](d.Host)
	return d.call(ctx, "StartService", func(ctx context.Context) error { return inner.StartService(ctx, s) })
}

func (d *decoratedHost) ServiceState(ctx context.Context, name string) (state ServiceState, err error) {
	inner, _ := HostAs[ServiceKeeper](d.Host)
	err = d.call(ctx, "ServiceState", func(ctx context.Context) (err error) {
		state, err = inner.ServiceState(ctx, name)
		return err
	})
	return state, err
}

func (d *decoratedHost) StopService(ctx context.Context, name string, grace time.Duration) error {
	inner, _ := HostAs[ServiceKeeper](d.Host)
	return d.call(ctx, "StopService", func(ctx context.Context) error { return inner.StopService(ctx, name, grace) })
}

func (d *decoratedHost) Address(ctx context.Context) (address string, err error) {
	inner, _ := HostAs[Networked](d.Host)
	err = d.call(ctx, "Address",
		func(ctx context.Context) (err error) { address, err = inner.Address(ctx); return err })
	return address, err
}

func (d *decoratedHost) Discard(ctx context.Context, name string, upto int64) error {
	inner, _ := HostAs[Discarder](d.Host)
	return d.call(ctx, "Discard", func(ctx context.Context) error { return inner.Discard(ctx, name, upto) })
}

func (d *decoratedHost) DialSocket(ctx context.Context, name string) (c net.Conn, err error) {
	inner, _ := HostAs[SocketDialer](d.Host)
	err = d.call(ctx, "DialSocket",
		func(ctx context.Context) (err error) { c, err = inner.DialSocket(ctx, name); return err })
	return c, err
}

func (d *decoratedHost) OpenDisk(ctx context.Context, device string) (f DiskFile, err error) {
	inner, _ := HostAs[DiskReader](d.Host)
	err = d.call(ctx, "OpenDisk",
		func(ctx context.Context) (err error) { f, err = inner.OpenDisk(ctx, device); return err })
	return f, err
}

func (d *decoratedHost) PurgeDisk(ctx context.Context, device string) (how string, err error) {
	inner, _ := HostAs[DiskPurger](d.Host)
	err = d.call(ctx, "PurgeDisk",
		func(ctx context.Context) (err error) { how, err = inner.PurgeDisk(ctx, device); return err })
	return how, err
}

func (d *decoratedHost) Stage(ctx context.Context, c Command) (s Staged, err error) {
	inner, _ := HostAs[Stager](d.Host)
	err = d.call(ctx, "Stage", func(ctx context.Context) (err error) { s, err = inner.Stage(ctx, c); return err })
	if err != nil {
		return nil, err
	}
	return &decoratedStaged{d, s}, nil
}

func (d *decoratedHost) ReadClock(ctx context.Context) (r ClockReading, err error) {
	inner, _ := HostAs[ClockReader](d.Host)
	err = d.call(ctx, "ReadClock", func(ctx context.Context) (err error) { r, err = inner.ReadClock(ctx); return err })
	return r, err
}

// decoratedStaged is a command that is ready on a host.
type decoratedStaged struct {
	host  *decoratedHost
	inner Staged
}

func (d *decoratedStaged) Release(ctx context.Context, at time.Time) (p Process, b Begun, err error) {
	err = d.host.call(ctx, "Release",
		func(ctx context.Context) (err error) { p, b, err = d.inner.Release(ctx, at); return err })
	return p, b, err
}

func (d *decoratedStaged) Drop(ctx context.Context) error {
	return d.host.call(ctx, "Drop", d.inner.Drop)
}

// decoratedController is the power controller of a node.
type decoratedController struct {
	inner  PowerController
	around Around
	node   string
}

var _ PowerController = (*decoratedController)(nil)

func (d *decoratedController) State(ctx context.Context) (state PowerState, err error) {
	state = Unknown
	err = d.around(ctx, Call{"Power.State", d.node}, func(ctx context.Context) (err error) {
		state, err = d.inner.State(ctx)
		return err
	})
	return state, err
}

func (d *decoratedController) PowerOn(ctx context.Context) error {
	return d.around(ctx, Call{"Power.PowerOn", d.node}, d.inner.PowerOn)
}

func (d *decoratedController) PowerOff(ctx context.Context) error {
	return d.around(ctx, Call{"Power.PowerOff", d.node}, d.inner.PowerOff)
}

func (d *decoratedController) Shutdown(ctx context.Context) error {
	return d.around(ctx, Call{"Power.Shutdown", d.node}, d.inner.Shutdown)
}

// Limit lets at most n calls go on at once; the others wait for their turn, or for ctx.
func Limit(n int) Around {
	places := make(chan struct{}, n)
	return func(ctx context.Context, _ Call, do func(context.Context) error) error {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-places }()
		return do(ctx)
	}
}

// Trace tells of every call that has ended, with how long it took by a clock.
func Trace(now func() time.Time, tell func(call Call, took time.Duration, err error)) Around {
	return func(ctx context.Context, call Call, do func(context.Context) error) error {
		began := now()
		err := do(ctx)
		tell(call, now().Sub(began), err)
		return err
	}
}

// unrepeatable are calls that are never done again.
var unrepeatable = []string{"Host.Start", "Host.Stage", "Host.Release", "Host.StartService", "Host.Put"}

// Retry does calls again that fail for a reason which passes, after waits that double from first on, at most times in
// all. Host.Start and its like are never repeated: what they started may go on. Nor is Host.Put: its stream cannot be
// read twice.
func Retry(
	times int,
	first time.Duration,
	wait func(context.Context, time.Duration) error,
	passes func(error) bool,
) Around {
	return func(ctx context.Context, call Call, do func(context.Context) error) error {
		pause := first
		for left := times; ; left-- {
			err := do(ctx)
			if err == nil || left <= 1 || slices.Contains(unrepeatable, call.Method) || !passes(err) ||
				ctx.Err() != nil {
				return err
			}
			if wait(ctx, pause) != nil {
				return err
			}
			pause *= 2
		}
	}
}
