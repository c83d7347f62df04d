// Package targettest is the conformance suite of the target contract: every place that holds machines joins it with a
// Factory, in a few lines, and is then held to the same words as all others.
//
// The suite is an explicit, ordered list. Subtests that need a capability which the place does not claim are skipped
// and counted; one that is claimed but not implemented fails. Nothing in it depends on how fast the place is: every
// wait has a limit of a minute and ends when what it waits for is true.
package targettest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// Limit bounds every wait of the suite.
const Limit = time.Minute

// Place is one fresh place: no run has been in it.
type Place struct {
	// New returns a fresh Target value over the place, as a fresh process would have it.
	New func() target.Target
	// Request asks for a run's machines; its StateDir does not exist yet or is empty.
	Request target.Request
	// OtherStateDir is the state folder of a second run in the same place, at the same time.
	OtherStateDir string
	Clock         clock.Clock
	// Commands are what the place's hosts understand.
	Commands Commands
	// Alive counts the processes, on whatever holds them, that a Spawn or Orphan with this word has started and that
	// still live.
	Alive func(word string) int
	// Machines are those of a place that has machines already and makes none, on from the start; two at least for the
	// whole suite.
	Machines []string
	// OwnClocks says that machines have clocks that nobody has set by that of the tests.
	OwnClocks bool
	// Rounds is how often calls are made at once, where that takes long; 0: three times.
	Rounds int
	// Shares says that subtests that leave machines as they were have the same ones, but where everything runs.
	Shares bool
	// Slow says that machines take long to start: as Shares says, and the others, of which each makes its own, run only
	// where everything does.
	Slow bool
	// Remains lists what is left of the run outside its state folder: files, processes, groups, VMs.
	Remains func() []string
}

// Commands makes argument vectors that the hosts of the place understand.
type Commands struct {
	Print func(text string) []string // writes text to standard output, ends with 0
	Fail  func(code int) []string    // ends with that code
	// starts a child and goes on with it for some minutes; both known to Alive
	Spawn     func(word string) []string
	Orphan    func(word string) []string       // as Spawn, but ends with 0 at once and leaves the child behind
	WriteDisk func(path, text string) []string // puts text at the start of a disk
	ReadDisk  func(path string) []string       // prints the first 16 bytes of a disk
	Burn      func() []string                  // uses at least 50 ms of CPU time in a child, ends with 0
	Slow      func(parts ...string) []string   // prints the parts, some time apart, ends with 0
	// Program is the content of a file that, executed, prints a text; nil where files cannot be.
	Program func(text string) string
}

// Shell are the commands of hosts that have a POSIX shell.
var Shell = Commands{
	Print: func(text string) []string { return []string{"printf", "%s", text} },
	Fail:  func(code int) []string { return []string{"sh", "-c", fmt.Sprintf("exit %d", code)} },
	Spawn: func(word string) []string {
		return []string{"sh", "-c", "sleep 300." + word + " & wait"}
	},
	Orphan: func(word string) []string {
		return []string{"sh", "-c", "setsid sleep 300." + word + " >/dev/null 2>&1 & exit 0"}
	},
	WriteDisk: func(path, text string) []string {
		return []string{"sh", "-c", `printf %s "$1" | dd of="$0" conv=notrunc status=none`, path, text}
	},
	ReadDisk: func(path string) []string { return []string{"head", "-c", "16", path} },
	Slow: func(parts ...string) []string {
		return append([]string{"sh", "-c", `for p in "$@"; do printf %s "$p"; sleep 0.1; done`, "slow"}, parts...)
	},
	Program: func(text string) string { return "#!/bin/sh\nprintf %s '" + text + "'\n" },
	Burn: func() []string {
		// Until the child has had ten ticks of 10 ms, however fast its machine is.
		return []string{"sh", "-c", "sh -c 'while read -r l </proc/self/stat; set -- $l; [ ${14} -lt 10 ]; do i=0; " +
			"while [ $i -lt 1000 ]; do i=$((i+1)); done; done'; :"}
	},
}

// Factory makes a fresh place for one subtest.
type Factory func(testing.TB) Place

type subtest struct {
	name   string
	needs  []target.Capability
	gentle bool // to its machines: they are as they were afterwards, but for files that nobody asks for
	run    func(*testing.T, *bench)
}

// Run holds the places that the factory makes to the contract.
func Run(t *testing.T, factory Factory) {
	first := factory(t)
	facts, err := first.New().Check(t.Context())
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, c := range powers {
		if len(first.Machines) == 0 && !facts.Can(c) {
			t.Fatalf("there is no machine to test: name those that are there in Place.Machines, or claim %q (%s)", c,
				facts.Missing[c])
		}
	}
	skipped := map[target.Capability]int{}
	tests := slices.Concat(clusterTests, hostTests, machineTests, optionalTests, destroyTests)
	run := func(t *testing.T, s subtest, long bool, open func(testing.TB) *bench) {
		t.Run(s.name, func(t *testing.T) {
			if long {
				needs.Long(t, "it starts machines of its own, which take long")
			}
			for _, c := range s.needs {
				if !facts.Can(c) {
					skipped[c]++
					t.Skipf("not claimed: %s (%s)", c, facts.Missing[c])
				}
			}
			s.run(t, open(t))
		})
	}
	share := first.Slow || first.Shares && !needs.All()
	if share {
		t.Run("on the same machines", func(t *testing.T) {
			b := open(t, factory)
			machines := b.running(sharedMachines)
			for _, s := range tests {
				if s.gentle {
					run(t, s, false, func(t testing.TB) *bench { return b.lent(t, machines) })
				}
			}
		})
	}
	for i, s := range tests {
		if !s.gentle || !share {
			long := first.Slow || share && i%2 == 1 // half of them in every run
			run(t, s, long, func(t testing.TB) *bench { return open(t, factory) })
		}
	}
	total := 0
	for c, n := range skipped {
		total += n
		t.Logf("%d skipped for want of %q: %s", n, c, facts.Missing[c])
	}
	t.Logf("conformance: %d subtests, %d skipped for capabilities not claimed", len(tests), total)
}

// bench is an open cluster in a fresh place, with words for what the subtests do.
type bench struct {
	t       testing.TB
	ctx     context.Context
	place   Place
	facts   target.Facts
	cluster Machines
}

// Machines is a cluster with what makes, powers and moves its machines; a part that the cluster lacks is nil. Subtests
// that use one say so in needs.
type Machines struct {
	target.Cluster
	target.VMMaker
	target.VMPower
	target.VMMover
}

// MachinesOf finds the parts of a cluster.
func MachinesOf(c target.Cluster) Machines {
	m := Machines{Cluster: c}
	m.VMMaker, _ = c.(target.VMMaker)
	m.VMPower, _ = c.(target.VMPower)
	m.VMMover, _ = c.(target.VMMover)
	return m
}

// sharedMachines are as many as a gentle subtest wants at most.
const sharedMachines = 3

// lent is the bench for one more subtest, with machines that run.
func (b *bench) lent(t testing.TB, machines []string) *bench {
	l := *b
	ctx, cancel := context.WithTimeout(context.Background(), 3*Limit)
	t.Cleanup(cancel)
	l.t, l.ctx, l.place.Machines = t, ctx, machines
	return &l
}

func open(t testing.TB, factory Factory) *bench {
	t.Helper()
	p := factory(t)
	b := &bench{t: t, place: p}
	ctx, cancel := context.WithTimeout(context.Background(), 3*Limit)
	b.ctx = ctx
	place := p.New()
	var err error
	if b.facts, err = place.Check(ctx); err != nil {
		t.Fatalf("check: %v", err)
	}
	began := p.Clock.Now()
	p.Request.Operated = func(o result.PlatformOperation) {
		if now := p.Clock.Now(); !slices.Contains(result.PlatformOperations, o.Name) || o.VM == "" || o.Node < 0 ||
			o.Node >= len(b.facts.Nodes) || o.Seconds < 0 || o.Began.Before(began) ||
			o.Began.Add(time.Duration(o.Seconds*float64(time.Second))).After(now.Add(time.Millisecond)) {
			t.Errorf("operation %+v, told at %v of a cluster of %v", o, now, began)
		}
	}
	cluster, err := place.Provision(ctx, p.Request)
	if err != nil {
		t.Fatalf("provision: %v", err)
	}
	b.cluster = MachinesOf(cluster)
	t.Cleanup(func() {
		if err := b.cluster.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		ctx, cancelled := context.WithTimeout(context.Background(), 3*Limit)
		defer cancelled()
		if remains, err := p.New().Destroy(ctx, p.Request.StateDir); err != nil || len(remains) > 0 {
			t.Errorf("destroy: %v; remains: %q", err, remains)
		}
		if left := p.Remains(); len(left) > 0 {
			t.Errorf("left after destroy: %q", left)
		}
		cancel()
	})
	for c, lacks := range map[target.Capability]bool{target.VMCreation: b.cluster.VMMaker == nil,
		target.VMPowerControl: b.cluster.VMPower == nil, target.VMMoves: b.cluster.VMMover == nil} {
		if b.facts.Can(c) && lacks {
			t.Fatalf("%q is claimed, but the cluster does not implement what target.Capability names beside it", c)
		}
	}
	return b
}

const disk = 1 << 20

// template makes a template of two disks and returns its name.
func (b *bench) template() string {
	b.t.Helper()
	name := "template of a group"
	b.must(b.cluster.CreateTemplate(b.ctx, target.Template{Name: name, Group: "g", Image: "ubuntu", Node: 0, CPUs: 1,
		MemoryBytes: 256 << 20, DiskBytes: []int64{disk, disk}}))
	return name
}

// vms makes n VMs a-0, a-1, ... round the nodes.
func (b *bench) vms(n int) []string {
	b.t.Helper()
	var members []target.Placement
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("a-%d", i))
		members = append(members, target.Placement{Name: names[i], Node: i % len(b.facts.Nodes)})
	}
	b.must(b.cluster.Clone(b.ctx, target.Clone{Source: b.template(), Group: "g", Members: members}))
	return names
}

// name is that of the i-th machine that running gave.
func (b *bench) name(i int) string {
	if len(b.place.Machines) > 0 {
		return b.place.Machines[i]
	}
	return fmt.Sprintf("a-%d", i)
}

// running makes n VMs and powers them on, or takes those that the place has.
func (b *bench) running(n int) []string {
	b.t.Helper()
	if len(b.place.Machines) > 0 {
		if len(b.place.Machines) < n {
			b.t.Skipf("the place has %d machines, %d are needed", len(b.place.Machines), n)
		}
		return b.place.Machines[:n]
	}
	names := b.vms(n)
	b.must(b.cluster.PowerOn(b.ctx, names, 2))
	return names
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// fails asserts an error that contains all of the words.
func (b *bench) fails(err error, words ...string) {
	b.t.Helper()
	if err == nil {
		b.t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			b.t.Errorf("error %q does not name %q", err, w)
		}
	}
}

func (b *bench) host(name string) target.Host {
	b.t.Helper()
	h, err := b.cluster.Host(name)
	b.must(err)
	return h
}

func (b *bench) start(vm string, argv []string) target.Process {
	b.t.Helper()
	p, err := b.host(vm).Start(b.ctx, target.Command{Argv: argv, Stdout: "out/stdout", Stderr: "out/stderr",
		Label: "test"})
	b.must(err)
	return p
}

func (b *bench) wait(p target.Process) target.Exit {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Limit)
	defer cancel()
	exit, err := p.Wait(ctx)
	b.must(err)
	return exit
}

// output runs a command to its good end and returns what it printed.
func (b *bench) output(vm string, argv []string) string {
	b.t.Helper()
	if exit := b.wait(b.start(vm, argv)); exit != (target.Exit{}) {
		b.t.Fatalf("%q in %s: %+v", argv, vm, exit)
	}
	data, err := target.ReadFile(b.ctx, b.host(vm), "out/stdout", 0, 1<<20)
	b.must(err)
	return string(data)
}

// writeDisk and readDisk use the disk's start as a label.
func (b *bench) writeDisk(vm string, i int, text string) {
	b.t.Helper()
	b.output(vm, b.place.Commands.WriteDisk(b.host(vm).Disks()[i].Path, text))
}

func (b *bench) readDisk(vm string, i int) string {
	b.t.Helper()
	return strings.TrimRight(b.output(vm, b.place.Commands.ReadDisk(b.host(vm).Disks()[i].Path)), "\x00")
}

// spawn starts a command with a child and returns when both live.
func (b *bench) spawn(vm, word string) target.Process {
	b.t.Helper()
	before := b.place.Alive(word)
	p := b.start(vm, b.place.Commands.Spawn(word))
	b.until("the command and its child live", func() bool { return b.place.Alive(word) >= before+2 })
	return p
}

// until polls, on the place's clock, for as long as a command may take.
func (b *bench) until(what string, done func() bool) {
	b.t.Helper()
	deadline := b.place.Clock.Now().Add(Limit)
	for !done() {
		if b.place.Clock.Now().After(deadline) {
			b.t.Fatalf("not within %v: %s", Limit, what)
		}
		b.must(b.place.Clock.Sleep(b.ctx, 2*time.Millisecond))
	}
}

// lives counts what lives of a command and its child. A process in the middle of an exec shows no command line, so what
// is not seen is looked for again; what has ended does not come back.
func (b *bench) lives(word string) (n int) {
	for range 20 {
		if n = b.place.Alive(word); n >= 2 {
			break
		}
		b.must(b.place.Clock.Sleep(b.ctx, 10*time.Millisecond))
	}
	return n
}

// dead asserts that nothing which a Spawn with the word has started lives.
func (b *bench) dead(word string) {
	b.t.Helper()
	if n := b.place.Alive(word); n != 0 {
		b.t.Errorf("%d processes of %q still live", n, word)
	}
}

// power is the power state of a VM, as listed.
func (b *bench) power(name string) target.PowerState {
	b.t.Helper()
	list, err := b.cluster.VMs(b.ctx)
	b.must(err)
	for _, vm := range list {
		if vm.Name == name {
			return vm.Power
		}
	}
	b.t.Fatalf("vm %q is not listed", name)
	return target.Unknown
}

// claimed asserts that the cluster implements what its place claims.
func claimed[I any](b *bench, c target.Capability) I {
	b.t.Helper()
	i, ok := b.cluster.Cluster.(I)
	if !ok {
		b.t.Fatalf("%q is claimed, but the cluster does not implement %T", c, (*I)(nil))
	}
	return i
}

// word is a number that no other test's processes carry, fit to be the fraction of a time to sleep.
func (b *bench) word() string { return strconv.Itoa(int(1e8 + rand.Int32N(9e8))) }
