package targettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
)

var (
	makes  = []target.Capability{target.VMCreation}
	powers = []target.Capability{target.VMCreation, target.VMPowerControl}
	moves  = append(slices.Clone(powers), target.VMMoves)
	copies = append(slices.Clone(powers), target.VMClones)
)

var clusterTests = []subtest{
	{name: "facts are whole", run: factsAreWhole},
	{name: "machines are listed and reached", run: listedAndReached},
	{name: "template is made once", needs: makes, run: templateIsMadeOnce},
	{name: "template objections", needs: makes, run: templateObjections},
	{name: "clone places and lists", needs: makes, run: clonePlacesAndLists},
	{name: "clone copies contents", needs: copies, run: cloneCopiesContents},
	{name: "clone names what it cannot make", needs: copies, run: cloneNamesFailures},
	{name: "power on and off", needs: powers, run: powerOnAndOff},
	{name: "power-off kills everything", needs: powers, run: powerOffKills},
	{name: "delete", needs: powers, run: deleteVMs},
	{name: "move", needs: moves, run: move},
	{name: "unknown names", needs: moves, run: unknownNames},
	{name: "node states", run: nodeStates},
	{name: "cancelled context", needs: moves, run: cancelledContext},
	{name: "concurrent calls", needs: copies, run: concurrentCalls},
	{name: "request larger than the place", needs: makes, run: requestTooLarge},
}

func factsAreWhole(t *testing.T, b *bench) {
	f := b.facts
	if f.Target == "" || len(f.Nodes) == 0 {
		t.Errorf("facts name no target or no nodes: %+v", f)
	}
	for i, n := range f.Nodes {
		if n.Index != i || n.Name == "" {
			t.Errorf("node %d: %+v: want its index and a name", i, n)
		}
	}
	for _, c := range target.Capabilities() {
		how, why := f.Capabilities[c], f.Missing[c]
		if (how == "") == (why == "") {
			t.Errorf("capability %q: claimed %q, missing %q: want exactly one, with words", c, how, why)
		}
	}
	for _, e := range f.Environment {
		if e.Group == "" || e.Name == "" || (e.Value == "") == (e.Missing == "") {
			t.Errorf("fact %+v: want group, name, and either a value or why there is none", e)
		}
	}
}

// listedAndReached tests what every place can do, also one that makes no machines.
func listedAndReached(t *testing.T, b *bench) {
	names := b.running(2)
	list, err := b.cluster.VMs(b.ctx)
	b.must(err)
	for _, name := range names {
		if !slices.ContainsFunc(list, func(vm target.VM) bool { return vm.Name == name && vm.Power == target.On }) {
			t.Errorf("%s is not listed as on: %+v", name, list)
		}
		h := b.host(name)
		b.must(h.Accessible(b.ctx))
		if h.Name() != name || h.Node() < 0 || h.Node() >= len(b.facts.Nodes) {
			t.Errorf("host of %s calls itself %s, on node %d", name, h.Name(), h.Node())
		}
	}
	_, err = b.cluster.Host("nobody")
	b.is(err, target.ErrNoSuchVM)
	b.fails(err, "nobody")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err = b.cluster.VMs(ctx)
	b.is(err, context.Canceled)
}

func templateIsMadeOnce(t *testing.T, b *bench) {
	name := b.template()
	want := []target.VM{{Name: name, Group: "g", Node: 0, Power: target.Off, Template: true}}
	for range 2 {
		b.template() // an existing one is left as it is
		got, err := b.cluster.VMs(b.ctx)
		b.must(err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	disks := b.host(name).Disks()
	var devices []string
	for _, d := range disks {
		devices = append(devices, d.Device)
		if d.Bytes != disk || d.Path == "" {
			t.Errorf("disk %+v: want %d bytes and a path", d, disk)
		}
	}
	if diff := cmp.Diff([]string{"/dev/sdb", "/dev/sdc"}, devices); diff != "" {
		t.Error(diff)
	}
}

func templateObjections(_ *testing.T, b *bench) {
	b.fails(b.cluster.CreateTemplate(b.ctx, target.Template{Name: "t-1", Node: 0, DiskBytes: []int64{-1}}), "t-1",
		"/dev/sdb", "-1")
	err := b.cluster.CreateTemplate(b.ctx, target.Template{Name: "t-2", Node: 99})
	b.fails(err, "t-2", "99")
	b.is(err, target.ErrNoSuchNode)
	b.fails(b.cluster.CreateTemplate(b.ctx, target.Template{Name: "../t-3", Node: 0}), "../t-3")
}

// is asserts what callers tell apart with errors.Is.
func (b *bench) is(err, want error) {
	b.t.Helper()
	if !errors.Is(err, want) {
		b.t.Errorf("error %v: want one that is %q", err, want)
	}
}

func clonePlacesAndLists(t *testing.T, b *bench) {
	names := b.vms(3)
	got, err := b.cluster.VMs(b.ctx)
	b.must(err)
	var want []target.VM
	for i, n := range names {
		want = append(want, target.VM{Name: n, Group: "g", Node: i % len(b.facts.Nodes), Power: target.Off})
	}
	want = append(want, target.VM{Name: "template of a group", Group: "g", Power: target.Off, Template: true})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, n := range names {
		if h := b.host(n); h.Name() != n || h.Node() != i%len(b.facts.Nodes) || len(h.Disks()) != 2 {
			t.Errorf("host of %s: %s on node %d with %d disks", n, h.Name(), h.Node(), len(h.Disks()))
		}
	}
}

func cloneCopiesContents(t *testing.T, b *bench) {
	b.running(1)
	b.writeDisk("a-0", 0, "first")
	b.writeDisk("a-0", 1, "second")
	for _, linked := range []bool{false, true} { // of a running VM, as Grow does
		name := fmt.Sprintf("copy-%t", linked)
		b.must(b.cluster.Clone(b.ctx, target.Clone{Source: "a-0", Group: "h", Linked: linked,
			Members: []target.Placement{{Name: name, Node: 0}}}))
		b.must(b.cluster.PowerOn(b.ctx, []string{name}, 1))
		if got := [2]string{b.readDisk(name, 0), b.readDisk(name, 1)}; got != [2]string{"first", "second"} {
			t.Errorf("%s holds %q", name, got)
		}
		b.writeDisk(name, 0, "other")
		if got := b.readDisk("a-0", 0); got != "first" {
			t.Errorf("writing to the clone changed its source to %q", got)
		}
	}
}

func cloneNamesFailures(t *testing.T, b *bench) {
	b.vms(1)
	err := b.cluster.Clone(b.ctx, target.Clone{Source: "a-0", Group: "g", Members: []target.Placement{
		{Name: "b-0", Node: 0}, {Name: "b-1", Node: 99}, {Name: "b-2", Node: 0}, {Name: "bad/name", Node: 0}}})
	b.fails(err, "b-1", "99", "bad/name")
	b.is(err, target.ErrNoSuchNode)
	for _, n := range []string{"b-0", "b-2"} {
		if b.power(n) != target.Off {
			t.Errorf("%s was not made or is not off", n)
		}
	}
	b.is(b.cluster.Clone(b.ctx, target.Clone{Source: "nobody", Members: []target.Placement{{Name: "c", Node: 0}}}),
		target.ErrNoSuchVM)
}

func powerOnAndOff(t *testing.T, b *bench) {
	names := b.vms(2)
	b.is(b.host("a-0").Accessible(b.ctx), target.ErrNotAccessible)
	for range 2 { // again is fine
		b.must(b.cluster.PowerOn(b.ctx, names, 1))
	}
	for _, n := range names {
		b.must(b.host(n).Accessible(b.ctx))
		if b.power(n) != target.On {
			t.Errorf("%s is %s", n, b.power(n))
		}
	}
	b.must(target.WriteFile(b.ctx, b.host("a-0"), "kept", []byte("through a power cycle")))
	for range 2 {
		b.must(b.cluster.PowerOff(b.ctx, names))
	}
	h := b.host("a-0")
	err := h.Accessible(b.ctx)
	b.is(err, target.ErrNotAccessible)
	b.fails(err, "a-0")
	_, err = h.Start(b.ctx, target.Command{Argv: b.place.Commands.Print("x")})
	b.is(err, target.ErrNotAccessible)
	b.is(target.WriteFile(b.ctx, h, "f", nil), target.ErrNotAccessible)
	_, err = target.ReadFile(b.ctx, h, "kept", 0, 10)
	b.is(err, target.ErrNotAccessible)
	b.is(h.Remove(b.ctx, "kept"), target.ErrNotAccessible)
	b.must(b.cluster.PowerOn(b.ctx, names, 10))
	data, err := target.ReadFile(b.ctx, h, "kept", 0, 100)
	b.must(err)
	if string(data) != "through a power cycle" {
		t.Errorf("after the power cycle the file holds %q", data)
	}
}

func powerOffKills(t *testing.T, b *bench) {
	b.running(2)
	dies, lives := b.word(), b.word()
	gone, stays := b.spawn("a-0", dies), b.spawn("a-1", lives)
	b.must(b.cluster.PowerOff(b.ctx, []string{"a-0"}))
	b.dead(dies)
	if exit := b.wait(gone); !exit.Lost {
		t.Errorf("exit %+v: want lost", exit)
	}
	if n := b.lives(lives); n < 2 {
		t.Errorf("the other VM's command and child: %d live", n)
	}
	b.must(stays.Kill())
}

func deleteVMs(t *testing.T, b *bench) {
	b.running(2)
	w := b.word()
	p := b.spawn("a-0", w)
	h := b.host("a-0")
	for range 2 { // gone already is fine
		b.must(b.cluster.Delete(b.ctx, []string{"a-0", "never was"}))
	}
	b.dead(w)
	if exit := b.wait(p); !exit.Lost {
		t.Errorf("exit %+v: want lost", exit)
	}
	b.is(h.Accessible(b.ctx), target.ErrNotAccessible)
	_, err := b.cluster.Host("a-0")
	b.is(err, target.ErrNoSuchVM)
	if b.power("a-1") != target.On {
		t.Error("the other VM went off")
	}
	// The name is free again, and the new VM has empty disks.
	b.must(b.cluster.Clone(b.ctx, target.Clone{Source: "template of a group",
		Members: []target.Placement{{Name: "a-0", Node: 0}}}))
	b.must(b.cluster.PowerOn(b.ctx, []string{"a-0"}, 1))
	if got := b.readDisk("a-0", 0); got != "" {
		t.Errorf("the new disk holds %q", got)
	}
}

func move(t *testing.T, b *bench) {
	if len(b.facts.Nodes) < 2 {
		t.Skip("one node only")
	}
	b.vms(1)
	b.must(b.cluster.Move(b.ctx, "a-0", 1))
	b.must(b.cluster.Move(b.ctx, "a-0", 1))
	if n := b.host("a-0").Node(); n != 1 {
		t.Errorf("on node %d, want 1", n)
	}
	b.is(b.cluster.Move(b.ctx, "a-0", 99), target.ErrNoSuchNode)
	b.must(b.cluster.PowerOn(b.ctx, []string{"a-0"}, 1))
	b.fails(b.cluster.Move(b.ctx, "a-0", 0), "a-0", "on")
}

func unknownNames(_ *testing.T, b *bench) {
	b.running(1)
	err := b.cluster.PowerOn(b.ctx, []string{"nobody", "a-0"}, 1)
	b.is(err, target.ErrNoSuchVM)
	b.fails(err, "nobody")
	err = b.cluster.PowerOff(b.ctx, []string{"nobody", "a-0"})
	b.is(err, target.ErrNoSuchVM)
	if b.power("a-0") != target.Off {
		b.t.Error("one unknown name kept the others from being powered off")
	}
	b.is(b.cluster.Move(b.ctx, "nobody", 0), target.ErrNoSuchVM)
	_, err = b.cluster.Host("nobody")
	b.is(err, target.ErrNoSuchVM)
	b.fails(err, "nobody")
	b.fails(b.cluster.PowerOn(b.ctx, []string{"a-0"}, 0), "0")
}

func nodeStates(t *testing.T, b *bench) {
	for i := range b.facts.Nodes {
		state, ready, err := b.cluster.NodeState(b.ctx, i)
		if state != target.On || !ready || err != nil {
			t.Errorf("node %d: %s, ready %t, %v", i, state, ready, err)
		}
	}
	for _, i := range []int{-1, len(b.facts.Nodes)} {
		_, _, err := b.cluster.NodeState(b.ctx, i)
		b.is(err, target.ErrNoSuchNode)
		b.fails(err, fmt.Sprint(i))
	}
}

func cancelledContext(t *testing.T, b *bench) {
	names := b.running(1)
	p := b.spawn("a-0", b.word())
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	h := b.host("a-0")
	_, listErr := b.cluster.VMs(ctx)
	_, _, stateErr := b.cluster.NodeState(ctx, 0)
	_, startErr := h.Start(ctx, target.Command{Argv: b.place.Commands.Print("x")})
	_, readErr := target.ReadFile(ctx, h, "f", 0, 1)
	_, waitErr := p.Wait(ctx)
	for name, err := range map[string]error{
		"VMs": listErr, "NodeState": stateErr, "Start": startErr, "Get": readErr, "Wait": waitErr,
		"CreateTemplate": b.cluster.CreateTemplate(ctx, target.Template{Name: "t", DiskBytes: []int64{disk}}),
		"Clone":          b.cluster.Clone(ctx, target.Clone{Source: "a-0", Members: []target.Placement{{Name: "c"}}}),
		"PowerOn":        b.cluster.PowerOn(ctx, names, 1),
		"PowerOff":       b.cluster.PowerOff(ctx, names),
		"Delete":         b.cluster.Delete(ctx, names),
		"Move":           b.cluster.Move(ctx, "a-0", 0),
		"Accessible":     h.Accessible(ctx),
		"Put":            target.WriteFile(ctx, h, "f", nil),
		"Remove":         h.Remove(ctx, "f"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v: want the context's error", name, err)
		}
	}
	list, err := b.cluster.VMs(b.ctx)
	b.must(err)
	if len(list) != 2 || b.power("a-0") != target.On {
		t.Errorf("calls with a cancelled context changed the cluster: %+v", list)
	}
	b.must(p.Kill())
}

// concurrentCalls is for the race detector, and for locks: everything at once must end, and in a state that adds up.
func concurrentCalls(t *testing.T, b *bench) {
	names := b.running(4)
	rounds := b.place.Rounds
	if rounds == 0 {
		rounds = 3
	}
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			for round := range rounds {
				_ = b.cluster.PowerOff(b.ctx, []string{name})
				_ = b.cluster.PowerOn(b.ctx, []string{name}, 1)
				if err := b.cluster.Clone(b.ctx, target.Clone{Source: name, Group: "h",
					Members: []target.Placement{{Name: fmt.Sprintf("c-%d-%d", i, round), Node: 0}}}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			h := b.host(name)
			for range 5 {
				p, err := h.Start(b.ctx, target.Command{Argv: b.place.Commands.Print("x"), Stdout: "o"})
				if err != nil {
					if !errors.Is(err, target.ErrNotAccessible) {
						t.Error(err)
					}
					continue
				}
				p.Usage()
				_, _ = p.Wait(b.ctx)
				_, _ = target.ReadFile(b.ctx, h, "o", 0, 10)
				_, _ = b.cluster.VMs(b.ctx)
				_, _, _ = b.cluster.NodeState(b.ctx, 0)
			}
		})
	}
	wg.Wait()
	list, err := b.cluster.VMs(b.ctx)
	b.must(err)
	if want := 1 + 4 + 4*rounds; len(list) != want || !slices.IsSortedFunc(list, func(a, b target.VM) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		t.Errorf("%d VMs, want %d, sorted by name", len(list), want)
	}
}

func requestTooLarge(t *testing.T, b *bench) {
	if b.facts.FreeBytes < 0 {
		t.Skip("the place does not know its free space")
	}
	p := b.place.New()
	r := b.place.Request
	r.StateDir += "-of-another"
	r.DiskBytes, r.MemoryBytes = 1<<60, 1<<59
	c, err := p.Provision(b.ctx, r)
	if err == nil {
		c.Close()
	}
	b.fails(err, "disk space", "memory", "free", "available")
	remains, err := p.Destroy(b.ctx, r.StateDir)
	b.must(err)
	if len(remains) > 0 {
		t.Errorf("remains: %q", remains)
	}
}
