// Package sim is a simulated cluster: a deterministic, discrete-event model of machines, their storage and what goes
// wrong with them.
//
// It implements the whole target contract with every optional interface and is held to the same conformance suite as
// real places. Time is the injected clock's, chance comes from one seed, and nothing waits but through the clock, so on
// a virtual clock a scenario of twelve hours is over in seconds and the same seed gives the same story.
//
// Users select it with --target sim (Provider, options.go); tests make a World of their own, which outlives Target
// values as real machines outlive a process. Load generators do not run on it: the cluster is workload.Simulating,
// their job files are adapted by the real engine and their effect comes from the performance model in package perf,
// whose parameters are the known truth. Other commands in a VM are Go functions found by the first word of their
// argument vector; words without one end well after a scripted time and print nothing.
//
// What goes wrong is declared (Fault) at moments of the run or relative to its steps, and every fault enters the run's
// journal. Tests also use Rule, LoseHost and LoseNode directly.
//
// What it is not: guests have no operating system and no file system, disks hold a text and a size, and playbooks
// change nothing.
package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/unit"
)

// Start is the moment at which simulated runs begin, so that their folders do not depend on when they were made.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options describe a World. The zero value is a healthy cluster of four nodes on the real clock in which nothing takes
// time.
type Options struct {
	Nodes        int                 // 0: four
	Cores        int                 // of a node; 0: 32
	MemoryBytes  int64               // of a node; 0: 256 GiB
	NoController []int               // nodes without a power controller
	Seed         uint64              // of everything that is left to chance
	Clock        clock.Clock         // nil: the real one
	Without      []target.Capability // not claimed, and refused when used all the same
	Faults       []Fault             // see Fault.Check
	Truth        *perf.Truth         // of the storage; nil: perf.DefaultTruth
	NUMA         NUMA                // of every node
	Starved      Starved             // what machines are not given

	FreeBytes  int64 // 0: 16 TiB for each node
	FreeMemory int64 // 0: all nodes' memory

	Runtime   time.Duration // of commands that have no function
	Clone     time.Duration // of one VM
	Boot      time.Duration // of a VM: how long a power-on takes
	NodeBoot  time.Duration // of a node: from power-on until it is ready
	Migration time.Duration // of one VM
	Playbook  time.Duration // see target.Facts.PlaybookTime
	HA        HA            // zero: a VM whose node has failed stays off until a step powers it on

	KeepCalls bool // for Calls
	// RunTools has load generators run as commands, as any other, instead of being modelled.
	RunTools bool
}

// Rule makes calls fail or take time.
type Rule struct {
	// as in the contract: "Clone", "PowerOn", "Start", ...; "" is every call of the cluster, not of its hosts
	Method      string
	Object      string        // VM name, or node index in digits; "" is any
	Count       int           // calls that it applies to; 0 is all
	Probability float64       // that it applies to a call; 0 is always
	From, Until time.Time     // when it applies; zero: always
	Delay       time.Duration // before the call goes on or fails
	Err         error         // nil: only the delay
	// After has the call take effect before it fails: the answer is lost on its way.
	After bool
}

// World is a simulated place.
type World struct {
	o     Options
	clock clock.Clock

	mu       sync.Mutex // never held while sleeping
	rand     *rand.Rand
	rules    []*Rule
	commands map[string]Func
	calls    []string
	nodes    []node
	storage  *perf.World
	models   driver
	runs     map[string]*cluster
}

// node is one node.
type node struct {
	bare  bool // has no power controller
	on    bool
	ready time.Time     // from when on a node that is on is ready
	dark  bool          // its power controller does not answer
	skew  time.Duration // its clock is ahead by that
}

// New makes a world.
func New(o Options) *World {
	if o.Nodes == 0 {
		o.Nodes = 4
	}
	if o.Cores == 0 {
		o.Cores = 32
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = int64(256 * unit.GiB)
	}
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	if o.FreeBytes == 0 {
		o.FreeBytes = int64(o.Nodes) * int64(16*unit.TiB)
	}
	if o.FreeMemory == 0 {
		o.FreeMemory = int64(o.Nodes) * o.MemoryBytes
	}
	if o.Truth == nil {
		truth := perf.DefaultTruth()
		truth.Seed, truth.Host.Cores = o.Seed, o.Cores
		o.Truth = &truth
	}
	w := &World{o: o, clock: o.Clock, rand: rand.New(rand.NewPCG(o.Seed, 1)), commands: builtin(),
		nodes: make([]node, o.Nodes), storage: perf.New(*o.Truth, o.Nodes), runs: map[string]*cluster{}}
	w.models.w = w
	for i := range w.nodes {
		w.nodes[i].on = true
	}
	for _, i := range o.NoController {
		if i >= 0 && i < len(w.nodes) {
			w.nodes[i].bare = true
		}
	}
	return w
}

// Target is a fresh view of the world, as another process would have it.
func (w *World) Target() target.Target { return view{w} }

// Command gives a meaning to the first word of argument vectors.
func (w *World) Command(name string, f Func) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commands[name] = f
}

// Fail adds a rule. The first rule that applies to a call decides.
func (w *World) Fail(r Rule) { w.rule(r) }

func (w *World) rule(r Rule) *Rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, &r)
	return &r
}

// Calls lists the calls so far when Options.KeepCalls is set, each as its method and object: "PowerOn a-0",
// "PowerOffNode 2".
func (w *World) Calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// Remains lists what all runs have left, commands included.
func (w *World) Remains() (left []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.runs {
		for name, m := range c.machines {
			left = append(left, "vm "+name)
			for _, p := range m.running {
				left = append(left, "command "+p.name+" in "+name)
			}
		}
	}
	slices.Sort(left)
	return left
}

// Alive counts the running processes, children included, of commands whose arguments hold the word.
func (w *World) Alive(word string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.runs {
		for _, m := range c.machines {
			for _, p := range m.running {
				if slices.Contains(p.argv, word) {
					n += 1 + p.children
				}
			}
		}
	}
	return n
}

// LoseHost makes a VM stop answering, in every run: it is still on, its commands are lost. PowerOff and PowerOn bring
// it back.
func (w *World) LoseHost(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.runs {
		if m := c.machines[name]; m != nil {
			m.lost = true
			m.kill(true)
		}
	}
}

// LoseNode is a power failure that nobody ordered.
func (w *World) LoseNode(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodeOff(node)
}

// nodeOff takes a node and everything on it down. w.mu must be held.
func (w *World) nodeOff(node int) {
	failed := w.nodes[node].on
	w.nodes[node].on = false
	for _, c := range w.runs {
		var on []string
		for _, m := range c.order {
			if m.Node != node {
				continue
			}
			was := m.Power
			m.powerOff()
			if m.orphan = was == target.On; m.orphan {
				on = append(on, m.Name)
			}
		}
		if failed {
			c.injector.failed(node, on)
		}
	}
}

// nodeOn gives a node power. w.mu must be held.
func (w *World) nodeOn(node int) {
	if n := &w.nodes[node]; !n.on {
		n.on, n.ready = true, w.clock.Now().Add(w.o.NodeBoot)
	}
}

// errLost is how a call ends whose answer did not arrive.
var errLost = errors.New("no answer came; whether it took effect is unknown")

// call is how every call to the world goes: it is recorded, the first rule that matches is applied, and it takes effect
// with the world locked.
func (w *World) call(ctx context.Context, method, object string, do func() error) error {
	hit, err := w.enter(ctx, method, object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	return hit.Err
}

// enter records a call and applies the first rule that matches. It returns the rule when its error comes after the
// effect.
func (w *World) enter(ctx context.Context, method, object string) (Rule, error) {
	if err := ctx.Err(); err != nil {
		return Rule{}, err
	}
	w.mu.Lock()
	if w.o.KeepCalls {
		w.calls = append(w.calls, method+" "+object)
	}
	hit := w.match(method, object)
	w.mu.Unlock()
	if hit.Delay > 0 {
		if err := w.clock.Sleep(ctx, hit.Delay); err != nil {
			return Rule{}, err
		}
	}
	if hit.After {
		return hit, nil
	}
	return Rule{}, hit.Err
}

// hostMethods are the calls to a machine, not to the cluster's management.
var hostMethods = []string{"Accessible", "Put", "Get", "Remove", "Discard", "Start", "StartService", "ServiceState",
	"StopService", "Address", "Check", "Provision", "Destroy"}

// match returns the first rule that applies to a call. w.mu must be held.
func (w *World) match(method, object string) Rule {
	for _, r := range w.rules {
		if !r.applies(method, object) || r.Count < 0 {
			continue
		}
		if now := w.clock.Now(); now.Before(r.From) || !r.Until.IsZero() && !now.Before(r.Until) {
			continue
		}
		if r.Probability > 0 && w.rand.Float64() >= r.Probability {
			continue
		}
		hit := *r
		if r.Count > 0 {
			if r.Count--; r.Count == 0 {
				r.Count = -1 // used up
			}
		}
		return hit
	}
	return Rule{}
}

func (r *Rule) applies(method, object string) bool {
	if r.Method == "" && slices.Contains(hostMethods, method) || r.Method != "" && r.Method != method {
		return false
	}
	return r.Object == "" || r.Object == object
}

// node checks an index and, with up, that the node is on. w.mu must be held.
func (w *World) node(node int, up bool) error {
	if node < 0 || node >= len(w.nodes) {
		return fmt.Errorf("node %d: %w: the cluster has %d, counted from 0", node, target.ErrNoSuchNode, len(w.nodes))
	}
	if up && !w.nodes[node].on {
		return fmt.Errorf("node %d: %w: it is powered off", node, target.ErrNotAccessible)
	}
	return nil
}
