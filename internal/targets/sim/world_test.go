package sim_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/targettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func factory(without ...target.Capability) targettest.Factory {
	return func(t testing.TB) targettest.Place {
		w := sim.New(sim.Options{Seed: 1, Without: without})
		dir := t.TempDir()
		return targettest.Place{
			New:           w.Target,
			Request:       target.Request{RunID: "run", StateDir: filepath.Join(dir, "state")},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Alive:         w.Alive,
			Remains:       w.Remains,
			Commands: targettest.Commands{
				Print:     func(text string) []string { return []string{"print", text} },
				Fail:      func(code int) []string { return []string{"exit", strconv.Itoa(code)} },
				Spawn:     func(word string) []string { return []string{"spawn", word} },
				Orphan:    func(word string) []string { return []string{"orphan", word} },
				WriteDisk: func(path, text string) []string { return []string{"diskwrite", path, text} },
				ReadDisk:  func(path string) []string { return []string{"diskread", path} },
				Burn:      func() []string { return []string{"burn", "100ms"} },
				Slow:      func(parts ...string) []string { return append([]string{"slow", "20ms"}, parts...) },
			},
		}
	}
}

func TestConformance(t *testing.T) { targettest.Run(t, factory()) }

// TestConformanceWithoutCapabilities is the suite on the poorest place that the contract allows.
func TestConformanceWithoutCapabilities(t *testing.T) {
	targettest.Run(t, factory(target.NodePowerControl, target.NodeShutdown, target.Snapshots, target.LiveMigration,
		target.AvailabilityRules, target.StorageMigration, target.PlaybookHosts, target.ClusterMetrics))
}

// controller is the power controller of a node.
func controller(t testing.TB, c target.Cluster, node int) target.PowerController {
	t.Helper()
	p, err := c.(target.NodePower).PowerController(node)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkConformance(b *testing.B) { targettest.Benchmark(b, factory()) }

// cluster opens a world with the VMs a-0 ... a-(n-1), all on.
func cluster(t *testing.T, w *sim.World, n int) targettest.Machines {
	t.Helper()
	opened, err := w.Target().Provision(t.Context(), target.Request{RunID: "run", StateDir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	c := targettest.MachinesOf(opened)
	if err := c.CreateTemplate(t.Context(),
		target.Template{Name: "t", Group: "g", DiskBytes: []int64{1 << 30}}); err != nil {
		t.Fatal(err)
	}
	var members []target.Placement
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("a-%d", i))
		members = append(members, target.Placement{Name: names[i], Node: i % 4})
	}
	if err := c.Clone(t.Context(), target.Clone{Source: "t", Group: "g", Members: members}); err != nil {
		t.Fatal(err)
	}
	if err := c.PowerOn(t.Context(), names, n); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRules(t *testing.T) {
	boom := errors.New("boom")
	w := sim.New(sim.Options{Seed: 7})
	c := cluster(t, w, 2)
	w.Fail(sim.Rule{Method: "PowerOff", Object: "a-0", Count: 2, Err: boom})
	for round, want := range []error{boom, boom, nil} {
		if err := c.PowerOff(t.Context(), []string{"a-1", "a-0"}); !errors.Is(err, want) {
			t.Errorf("round %d: %v, want %v", round, err, want)
		}
	}
	w.Fail(sim.Rule{Method: "VMs", Probability: 0.5, Err: boom})
	failed := 0
	for range 100 {
		if _, err := c.VMs(t.Context()); err != nil {
			failed++
		}
	}
	if failed < 30 || failed > 70 {
		t.Errorf("%d of 100 calls failed, want about half", failed)
	}
	w.Fail(sim.Rule{Method: "Delete", Object: "a-1", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Delete(ctx, []string{"a-1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
}

func TestLosses(t *testing.T) {
	w := sim.New(sim.Options{})
	c := cluster(t, w, 3)
	for _, l := range []struct {
		vm   string
		lose func()
		want target.PowerState
	}{
		{"a-0", func() { w.LoseHost("a-0") }, target.On},
		{"a-1", func() { w.LoseNode(1) }, target.Off},
	} {
		h, err := c.Host(l.vm)
		if err != nil {
			t.Fatal(err)
		}
		p, err := h.Start(t.Context(), target.Command{Argv: []string{"sleep", "1h"}})
		if err != nil {
			t.Fatal(err)
		}
		l.lose()
		if exit, err := p.Wait(t.Context()); !exit.Lost || err != nil {
			t.Errorf("%s: exit %+v, %v: want lost", l.vm, exit, err)
		}
		if err := h.Accessible(t.Context()); !errors.Is(err, target.ErrNotAccessible) {
			t.Errorf("%s: %v", l.vm, err)
		}
		vms, err := c.VMs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, vm := range vms {
			if vm.Name == l.vm && vm.Power != l.want {
				t.Errorf("%s is %s, want %s", l.vm, vm.Power, l.want)
			}
		}
	}
}

// TestVirtualTime runs hours of commands in no time, twice, and wants the same story.
func TestVirtualTime(t *testing.T) {
	story := func() (events []string) {
		v := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		began := v.Now()
		tell := func(what string) { events = append(events, fmt.Sprintf("%v %s", v.Now().Sub(began), what)) }
		w := sim.New(sim.Options{Clock: v, Boot: time.Minute, NodeBoot: 5 * time.Minute, Runtime: 3 * time.Hour})
		c := cluster(t, w, 4)
		tell("booted")
		g := v.Group()
		for i := range 4 {
			g.Go(func() {
				h, err := c.Host(fmt.Sprintf("a-%d", i))
				if err != nil {
					t.Error(err)
					return
				}
				p, err := h.Start(t.Context(), target.Command{Argv: []string{"load"}})
				if err != nil {
					t.Error(err)
					return
				}
				exit, err := p.Wait(t.Context())
				tell(fmt.Sprintf("%s ended, lost %t, %v", h.Name(), exit.Lost, err))
			})
		}
		g.Go(func() {
			_ = v.Sleep(t.Context(), time.Hour)
			if err := errors.Join(controller(t, c.Cluster, 2).PowerOff(t.Context()), controller(t, c.Cluster,
				2).PowerOn(t.Context())); err != nil {
				t.Error(err)
			}
			for {
				if _, ready, _ := c.NodeState(t.Context(), 2); ready {
					tell("node 2 ready")
					return
				}
				_ = v.Sleep(t.Context(), 10*time.Second)
			}
		})
		g.Wait()
		return events
	}
	want := []string{"1m0s booted", "1h1m0s a-2 ended, lost true, <nil>", "1h6m0s node 2 ready",
		"3h1m0s a-0 ended, lost false, <nil>", "3h1m0s a-1 ended, lost false, <nil>",
		"3h1m0s a-3 ended, lost false, <nil>"}
	for range 3 {
		if diff := cmp.Diff(want, story()); diff != "" {
			t.Fatal(diff)
		}
	}
}
