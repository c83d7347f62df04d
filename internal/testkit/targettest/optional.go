package targettest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/powertest"
)

var (
	power     = []target.Capability{target.NodePowerControl}
	nodesOff  = append(slices.Clone(powers), target.NodePowerControl)
	shutdown  = append(slices.Clone(nodesOff), target.NodeShutdown)
	snapshots = append(slices.Clone(powers), target.Snapshots)
	migration = append(slices.Clone(powers), target.LiveMigration)
)

var optionalTests = []subtest{
	{name: "node power-off takes its VMs down", needs: nodesOff, run: nodePowerOff},
	{name: "node power objections", needs: power, gentle: true, run: nodePowerObjections},
	{name: "node power controllers", needs: power, run: powerControllers},
	{name: "node shutdown", needs: shutdown, run: nodeShutdown},
	{name: "operations on VMs of a node that is off",
		needs: append(slices.Clone(nodesOff), target.VMMoves, target.VMClones), run: operationsOnDeadNode},
	{name: "snapshot and restore", needs: snapshots, run: snapshotAndRestore},
	{name: "snapshot of running commands", needs: snapshots, gentle: true, run: snapshotRunning},
	{name: "snapshot objections", needs: snapshots, run: snapshotObjections},
	{name: "live migration", needs: migration, gentle: true, run: liveMigration},
	{name: "migrated VM dies with its new node", needs: append(slices.Clone(nodesOff), target.LiveMigration),
		run: migratedDiesWithNode},
	{name: "HA and balancing rules", needs: append(slices.Clone(makes), target.AvailabilityRules),
		run: availabilityRules},
	{name: "storage migration", needs: []target.Capability{target.StorageMigration}, run: storageMigration},
	{name: "addresses", needs: []target.Capability{target.PlaybookHosts}, run: addresses},
	{name: "cluster metrics", needs: []target.Capability{target.ClusterMetrics}, run: clusterMetrics},
	{name: "host counters", gentle: true, run: hostCounters},
	{name: "endpoints", gentle: true, run: endpoints},
}

// state asserts the power state of a node.
func (b *bench) state(node int, want target.PowerState) {
	b.t.Helper()
	b.until("node reaches its state", func() bool {
		state, ready, err := b.cluster.NodeState(b.ctx, node)
		b.must(err)
		return state == want && ready == (want == target.On)
	})
}

// controller is the power controller of a node.
func (b *bench) controller(node int) target.PowerController {
	b.t.Helper()
	c, err := claimed[target.NodePower](b, target.NodePowerControl).PowerController(node)
	b.must(err)
	return c
}

func nodePowerOff(t *testing.T, b *bench) {
	n := len(b.facts.Nodes)
	names := b.running(n + 1) // the first and the last share node 0
	first, last, other := b.word(), b.word(), b.word()
	p, q := b.spawn("a-0", first), b.spawn(names[n], last)
	var r target.Process
	if n > 1 {
		r = b.spawn("a-1", other)
	}
	for range 2 { // repeating is fine
		b.must(b.controller(0).PowerOff(b.ctx))
	}
	b.state(0, target.Off)
	b.dead(first)
	b.dead(last)
	for _, p := range []target.Process{p, q} {
		if exit := b.wait(p); !exit.Lost {
			t.Errorf("exit %+v: want lost", exit)
		}
	}
	if r != nil {
		if b.lives(other) < 2 || b.power("a-1") != target.On {
			t.Error("a VM of another node was hit")
		}
		b.must(r.Kill())
	}
	for range 2 {
		b.must(b.controller(0).PowerOn(b.ctx))
	}
	b.state(0, target.On)
	if b.power("a-0") != target.Off {
		t.Error("the VM came back with its node: nothing restarts it but a power-on")
	}
	b.is(b.host("a-0").Accessible(b.ctx), target.ErrNotAccessible)
	b.must(b.cluster.PowerOn(b.ctx, []string{"a-0", names[n]}, 2))
	if got := b.output("a-0", b.place.Commands.Print("back")); got != "back" {
		t.Errorf("printed %q", got)
	}
}

func nodePowerObjections(_ *testing.T, b *bench) {
	np := claimed[target.NodePower](b, target.NodePowerControl)
	for _, node := range []int{-1, len(b.facts.Nodes), 99} {
		_, err := np.PowerController(node)
		b.is(err, target.ErrNoSuchNode)
	}
	for _, n := range b.facts.Nodes {
		_, err := np.PowerController(n.Index)
		if (err == nil) != (n.Power != "") {
			b.t.Errorf("node %d has a controller %q by its facts: %v", n.Index, n.Power, err)
		}
		if err != nil {
			b.is(err, target.ErrNoController)
		}
	}
}

// powerControllers holds the controllers of a place to their own contract.
func powerControllers(t *testing.T, b *bench) {
	powertest.Run(t, powertest.Place{
		Open: func(testing.TB) target.PowerController { return b.controller(len(b.facts.Nodes) - 1) },
		Wait: func(done func() bool) { b.until("the controller's effect is seen", done) },
		Node: func() (target.PowerState, error) {
			state, _, err := b.cluster.NodeState(b.ctx, len(b.facts.Nodes)-1)
			return state, err
		},
		Graceful: b.facts.Can(target.NodeShutdown),
	})
}

func nodeShutdown(t *testing.T, b *bench) {
	b.running(1)
	w := b.word()
	p := b.spawn("a-0", w)
	b.must(b.controller(0).Shutdown(b.ctx))
	b.state(0, target.Off)
	b.dead(w)
	if exit := b.wait(p); !exit.Lost {
		t.Errorf("exit %+v: want lost", exit)
	}
	b.must(b.controller(0).PowerOn(b.ctx))
	b.state(0, target.On)
}

func operationsOnDeadNode(t *testing.T, b *bench) {
	b.running(1)
	b.must(b.controller(0).PowerOff(b.ctx))
	b.state(0, target.Off)
	h := b.host("a-0")
	_, startErr := h.Start(b.ctx, target.Command{Argv: b.place.Commands.Print("x")})
	for name, err := range map[string]error{
		"PowerOn":    b.cluster.PowerOn(b.ctx, []string{"a-0"}, 1),
		"Accessible": h.Accessible(b.ctx),
		"Start":      startErr,
		"Put":        target.WriteFile(b.ctx, h, "f", nil),
		"CreateTemplate": b.cluster.CreateTemplate(b.ctx, target.Template{Name: "a-0 again", Node: 0,
			DiskBytes: []int64{disk}}),
		"Clone": b.cluster.Clone(b.ctx, target.Clone{Source: "a-0",
			Members: []target.Placement{{Name: "a-0 copy", Node: 0}}}),
	} {
		b.is(err, target.ErrNotAccessible)
		b.fails(err, "a-0", "node 0")
		if t.Failed() {
			t.Fatalf("in %s", name)
		}
	}
	if len(b.facts.Nodes) > 1 {
		b.must(b.cluster.Move(b.ctx, "a-0", 1)) // away from the dead node
		b.must(b.cluster.PowerOn(b.ctx, []string{"a-0"}, 1))
		b.must(b.host("a-0").Accessible(b.ctx))
	}
	b.must(b.cluster.PowerOff(b.ctx, []string{"a-0"}))
	b.must(b.cluster.Delete(b.ctx, []string{"a-0"}))
}

func snapshotAndRestore(t *testing.T, b *bench) {
	s := claimed[target.Snapshotter](b, target.Snapshots)
	names := b.running(2)
	for _, tag := range []string{"one", "two"} {
		for _, n := range names {
			b.writeDisk(n, 0, tag+n)
		}
		b.must(s.Snapshot(b.ctx, tag, names))
	}
	b.writeDisk("a-0", 0, "later")
	b.must(b.cluster.PowerOff(b.ctx, names))
	for _, tag := range []string{"one", "two", "one"} {
		b.must(s.Restore(b.ctx, tag, "a-0"))
		b.must(b.cluster.PowerOn(b.ctx, names, 2))
		if got := [2]string{b.readDisk("a-0", 0), b.readDisk("a-1", 0)}; got != [2]string{tag + "a-0", "twoa-1"} {
			t.Errorf("after restoring %q the disks hold %q", tag, got)
		}
		b.must(b.cluster.PowerOff(b.ctx, names))
	}
}

func snapshotRunning(t *testing.T, b *bench) {
	s := claimed[target.Snapshotter](b, target.Snapshots)
	b.running(1)
	w := b.word()
	p := b.spawn("a-0", w)
	b.must(s.Snapshot(b.ctx, "live", []string{"a-0"}))
	if got := b.output("a-0", b.place.Commands.Print("on")); got != "on" || b.lives(w) < 2 {
		t.Errorf("after the snapshot: printed %q, %d processes live", got, b.place.Alive(w))
	}
	b.must(p.Kill())
	b.dead(w)
}

func snapshotObjections(_ *testing.T, b *bench) {
	s := claimed[target.Snapshotter](b, target.Snapshots)
	names := b.running(1)
	b.must(s.Snapshot(b.ctx, "tag", names))
	b.fails(s.Snapshot(b.ctx, "tag", names), "a-0", "tag", "exist")
	b.fails(s.Snapshot(b.ctx, "../tag", names), "../tag")
	err := s.Snapshot(b.ctx, "other", []string{"a-0", "nobody"})
	b.is(err, target.ErrNoSuchVM)
	b.fails(err, "nobody")
	b.fails(s.Restore(b.ctx, "tag", "a-0"), "a-0", "on")
	b.must(b.cluster.PowerOff(b.ctx, names))
	b.fails(s.Restore(b.ctx, "other", "a-0"), "a-0", "other") // none was taken: all or nothing
	b.is(s.Restore(b.ctx, "tag", "nobody"), target.ErrNoSuchVM)
}

func liveMigration(t *testing.T, b *bench) {
	m := claimed[target.Migrator](b, target.LiveMigration)
	if len(b.facts.Nodes) < 2 {
		t.Skip("one node only")
	}
	b.running(1)
	w := b.word()
	p := b.spawn("a-0", w)
	for range 2 { // where it is already is fine
		b.must(m.Migrate(b.ctx, "a-0", 1))
	}
	if n := b.host("a-0").Node(); n != 1 || b.power("a-0") != target.On || b.lives(w) < 2 {
		t.Errorf("on node %d, %s, %d processes live", n, b.power("a-0"), b.place.Alive(w))
	}
	b.is(m.Migrate(b.ctx, "a-0", 99), target.ErrNoSuchNode)
	b.is(m.Migrate(b.ctx, "nobody", 0), target.ErrNoSuchVM)
	b.must(p.Kill())
}

func migratedDiesWithNode(t *testing.T, b *bench) {
	m := claimed[target.Migrator](b, target.LiveMigration)
	if len(b.facts.Nodes) < 2 {
		t.Skip("one node only")
	}
	b.running(1)
	w := b.word()
	b.spawn("a-0", w)
	b.must(m.Migrate(b.ctx, "a-0", 1))
	b.must(b.controller(0).PowerOff(b.ctx))
	b.state(0, target.Off)
	if b.lives(w) < 2 {
		t.Error("it died with the node that it had left")
	}
	b.is(m.Migrate(b.ctx, "a-0", 0), target.ErrNotAccessible)
	b.must(b.controller(1).PowerOff(b.ctx))
	b.state(1, target.Off)
	b.dead(w)
}

func availabilityRules(_ *testing.T, b *bench) {
	a := claimed[target.Availability](b, target.AvailabilityRules)
	names := b.vms(2)
	for _, on := range []bool{false, false, true} {
		b.must(a.SetHA(b.ctx, names, on))
		b.must(a.SetBalancing(b.ctx, names, on))
	}
	b.is(a.SetHA(b.ctx, []string{"nobody"}, false), target.ErrNoSuchVM)
	b.is(a.SetBalancing(b.ctx, []string{"nobody"}, false), target.ErrNoSuchVM)
}

func storageMigration(_ *testing.T, b *bench) {
	s := claimed[target.StorageMigrator](b, target.StorageMigration)
	names := b.running(2)
	b.must(s.MoveStorage(b.ctx, names, "other"))
	b.is(s.MoveStorage(b.ctx, []string{"nobody"}, "other"), target.ErrNoSuchVM)
}

func addresses(t *testing.T, b *bench) {
	a := claimed[target.Addressed](b, target.PlaybookHosts)
	b.running(2)
	group, want := "g", 2
	if len(b.facts.Machines) > 0 {
		group, want = b.facts.Machines[0].Group, 0
		for _, m := range b.facts.Machines {
			if m.Group == group {
				want++
			}
		}
	}
	got, err := a.Addresses(b.ctx, group)
	b.must(err)
	if len(got) != want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != want {
		t.Errorf("addresses of the group %q: %q, want %d", group, got, want)
	}
	if _, err := a.Addresses(b.ctx, "nobody"); err == nil {
		t.Error("an unknown group has addresses")
	}
}

func clusterMetrics(t *testing.T, b *bench) {
	m := claimed[target.MetricsSource](b, target.ClusterMetrics)
	b.running(1)
	b.output(b.name(0), b.place.Commands.Print("x"))
	got, err := m.ClusterMetrics(b.ctx)
	b.must(err)
	names := map[string]int{}
	for _, v := range got {
		names[v.Name]++
		if v.Node < 0 || v.Node >= len(b.facts.Nodes) || v.Value < 0 {
			t.Errorf("metric %+v: node or value out of range", v)
		}
	}
	want := map[string]int{}
	for _, n := range b.facts.Metrics {
		want[n] = len(b.facts.Nodes)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("values per metric served: %s", diff)
	}
}

// hostCounters holds that what is counted never goes back, each thing once, and that shares are shares.
func hostCounters(t *testing.T, b *bench) {
	source, ok := b.cluster.Cluster.(target.HostSource)
	if !ok {
		t.Skip("not implemented: target.HostSource")
	}
	b.running(1)
	read := func() (target.HostCounters, map[string]target.CPUCounter) {
		got, err := source.HostCounters(b.ctx)
		b.must(err)
		cpus := map[string]target.CPUCounter{}
		for _, c := range got.CPUs {
			key := fmt.Sprintf("%s, NUMA node %d, CPU %d", c.Host, c.NUMA, c.CPU)
			if _, twice := cpus[key]; twice {
				t.Errorf("%s: counted twice", key)
			}
			cpus[key] = c
		}
		for _, g := range got.Generators {
			if g.Busy < 0 || g.Busy > 1 || g.Waiting < 0 || g.Waiting > 1 {
				t.Errorf("generator %+v: shares go from 0 to 1", g)
			}
		}
		return got, cpus
	}
	first, cpus := read()
	b.output(b.name(0), b.place.Commands.Print("x"))
	second, later := read()
	for key, c := range later {
		if before := cpus[key]; c.User < before.User || c.System < before.System || c.Interrupt < before.Interrupt {
			t.Errorf("%s: %+v after %+v", key, c, before)
		}
	}
	for i, d := range second.Devices {
		if before := first.Devices[i]; d.Device != before.Device || d.Reads < before.Reads ||
			d.WrittenBytes < before.WrittenBytes || d.Busy < before.Busy {
			t.Errorf("%+v after %+v", d, before)
		}
	}
}

// endpoints holds that each is named once and belongs to one machine, that its page can be had twice, and that it obeys
// the context.
func endpoints(t *testing.T, b *bench) {
	source, ok := b.cluster.Cluster.(target.ScrapeSource)
	if !ok {
		t.Skip("not implemented: target.ScrapeSource")
	}
	b.running(1)
	list, err := source.Endpoints(b.ctx)
	b.must(err)
	seen := map[[2]string]bool{}
	for _, e := range list {
		key := [2]string{e.VM + e.Machine, e.Name}
		if (e.VM == "") == (e.Machine == "") || e.Name == "" || seen[key] || e.Shared && e.VM != "" {
			t.Errorf("endpoint %q of VM %q, machine %q, shared %v: want one machine, and a name of its own there",
				e.Name, e.VM, e.Machine, e.Shared)
		}
		seen[key] = true
		for range 2 {
			body, kind, err := e.Get(b.ctx)
			b.must(err)
			page, err := io.ReadAll(body)
			b.must(errors.Join(err, body.Close()))
			if len(page) == 0 || kind == "" {
				t.Errorf("endpoint %q: a page of %d bytes, content type %q", e.Name, len(page), kind)
			}
		}
		over, cancel := context.WithCancel(b.ctx)
		cancel()
		if body, _, err := e.Get(over); err == nil { // what is at hand may be given all the same
			_, _ = io.Copy(io.Discard, body)
			b.must(body.Close())
		}
	}
}
