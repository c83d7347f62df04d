package sim_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/target"
	"plimsoll/internal/target/sim"
	"plimsoll/internal/target/targettest"
)

// readyMade is a place with three machines that are on and that it neither makes nor powers, as hosts over a network
// are.
type readyMade struct{ target.Target }

func (p readyMade) Check(ctx context.Context) (target.Facts, error) {
	f, err := p.Target.Check(ctx)
	f.Missing = maps.Clone(f.Missing)
	for c := range f.Capabilities {
		if c != target.GuestCommands {
			f.Missing[c] = "the machines were there before"
		}
	}
	f.Capabilities = map[target.Capability]string{target.GuestCommands: f.Capabilities[target.GuestCommands]}
	return f, err
}

func (p readyMade) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	c, err := p.Target.Provision(ctx, r)
	if err != nil {
		return nil, err
	}
	m := targettest.MachinesOf(c)
	names := []string{"db1", "db2", "web1"}
	var all []target.Placement
	for i, name := range names {
		all = append(all, target.Placement{Name: name, Node: i})
	}
	return struct{ target.Cluster }{c}, errors.Join(
		m.CreateTemplate(ctx, target.Template{Name: "t", DiskBytes: []int64{1 << 20, 1 << 20}}),
		m.Clone(ctx, target.Clone{Source: "t", Members: all}), m.PowerOn(ctx, names, 3))
}

// TestConformanceOfReadyMadeMachines is the suite on a place that can do nothing but list and reach its machines.
func TestConformanceOfReadyMadeMachines(t *testing.T) {
	targettest.Run(t, func(t testing.TB) targettest.Place {
		p := factory()(t)
		inner := p.New
		p.New = func() target.Target { return readyMade{inner()} }
		p.Machines = []string{"db1", "db2", "web1"}
		return p
	})
}

// TestConformanceDecorated: a decorator hides nothing that a place can do.
func TestConformanceDecorated(t *testing.T) {
	var mu sync.Mutex
	methods := map[string]int{}
	trace := target.Trace(time.Now, func(c target.Call, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		methods[c.Method]++
	})
	t.Run("suite", func(t *testing.T) {
		targettest.Run(t, func(t testing.TB) targettest.Place {
			p := factory()(t)
			inner := p.New
			p.New = func() target.Target {
				return target.Decorate(target.Decorate(inner(), target.Limit(64)), trace)
			}
			return p
		})
	})
	for _, want := range []string{"Check", "Provision", "Destroy", "VMs", "NodeState", "CreateTemplate", "Clone",
		"Delete", "PowerOn",
		"PowerOff", "Move", "Power.PowerOff", "Power.PowerOn", "Power.Shutdown", "Power.State", "Snapshot", "Restore",
		"Migrate", "SetHA", "SetBalancing",
		"MoveStorage", "Addresses", "ClusterMetrics", "Host.Start", "Host.Put", "Host.Get", "Host.StartService",
		"Host.ServiceState", "Host.StopService", "Host.Address", "Host.Remove", "Host.Accessible"} {
		if methods[want] == 0 {
			t.Errorf("no call of %s went through the decorator", want)
		}
	}
}

// TestRetry: what fails for a passing reason is done again, a started command is not.
func TestRetry(t *testing.T) {
	w := sim.New(sim.Options{})
	passing := errors.New("busy")
	w.Fail(sim.Rule{Method: "PowerOn", Object: "a", Count: 2, Err: passing})
	var waits []time.Duration
	wait := func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	place := target.Decorate(w.Target(), target.Retry(3, time.Second, wait, func(err error) bool {
		return errors.Is(err, passing)
	}))
	c, err := place.Provision(t.Context(), target.Request{RunID: "1", StateDir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	m := targettest.MachinesOf(c)
	err = errors.Join(m.CreateTemplate(t.Context(), target.Template{Name: "a"}),
		m.PowerOn(t.Context(), []string{"a"}, 1))
	if err != nil || len(waits) != 2 || waits[0] != time.Second || waits[1] != 2*time.Second {
		t.Errorf("%v after waits of %v", err, waits)
	}
	if err := m.PowerOn(t.Context(), []string{"nobody"}, 1); !errors.Is(err, target.ErrNoSuchVM) || len(waits) != 2 {
		t.Errorf("%v after waits of %v: want no second try", err, waits)
	}
}
