// Package fake is a cluster in memory, for tests of everything that works on a target.
//
// It implements the whole contract with every optional interface and is held to the same conformance suite as real
// places. It is deterministic: time is the injected clock's, chance comes from one seed, and nothing waits but
// through the clock, so it also runs under a virtual one. Disks have a size and a text; commands are Go functions
// found by the first word of their argument vector, or, for words without one, end well after a scripted time.
//
// A World is the place; it outlives Target values as real machines outlive a process, which is how Destroy from a
// fresh Target is tested. Tests make it misbehave: Fail makes methods fail or dawdle, LoseHost and LoseNode take
// machines away, Options.Without takes capabilities away.
//
// It refuses nothing that a real place would accept; it is for tests only and no user can select it.
package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/unit"
)

// Options describe a World. The zero value is a healthy cluster of four nodes on the real clock.
type Options struct {
	Nodes   int    // 0: four
	Seed    uint64 // of the rules' probabilities
	Clock   clock.Clock
	Without []target.Capability // not claimed, and refused when used all the same

	FreeBytes  int64 // 0: 16 TiB
	FreeMemory int64 // 0: 1 TiB

	Runtime  time.Duration // of commands that have no function
	Boot     time.Duration // of a VM: how long a power-on takes
	NodeBoot time.Duration // of a node: from power-on until it is ready
}

// Rule makes calls fail or take time.
type Rule struct {
	Method      string        // as in the contract: "Clone", "PowerOn", "Start", ...
	Object      string        // VM name, or node index in digits; "" is any
	Count       int           // calls that it applies to; 0 is all
	Probability float64       // that it applies to a call; 0 is always
	Delay       time.Duration // before the call goes on or fails
	Err         error         // nil: only the delay
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
	on       []bool
	ready    []time.Time // from when on a node that is on is ready
	runs     map[string]*cluster
}

// New makes a world.
func New(o Options) *World {
	if o.Nodes == 0 {
		o.Nodes = 4
	}
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	if o.FreeBytes == 0 {
		o.FreeBytes = int64(16 * unit.TiB)
	}
	if o.FreeMemory == 0 {
		o.FreeMemory = int64(unit.TiB)
	}
	w := &World{o: o, clock: o.Clock, rand: rand.New(rand.NewPCG(o.Seed, 1)), commands: builtin(),
		on: make([]bool, o.Nodes), ready: make([]time.Time, o.Nodes), runs: map[string]*cluster{}}
	for i := range w.on {
		w.on[i] = true
	}
	return w
}

// Target is a fresh view of the world, as another process would have it.
func (w *World) Target() target.Target { return view{w} }

// Provider makes views of the world, whatever the options say.
func (w *World) Provider() target.Provider { return provider{w} }

type provider struct{ w *World }

func (provider) Name() string                               { return "fake" }
func (provider) Summary() string                            { return "a cluster in memory, for tests" }
func (provider) Options() []target.Option                   { return nil }
func (p provider) New(target.Config) (target.Target, error) { return view(p), nil }

// Command gives a meaning to the first word of argument vectors.
func (w *World) Command(name string, f Func) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commands[name] = f
}

// Fail adds a rule. The first rule that applies to a call decides.
func (w *World) Fail(r Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, &r)
}

// Calls lists the calls so far, each as its method and object: "PowerOn a-0", "PowerOffNode 2".
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
			for p := range m.running {
				left = append(left, "command "+p.call.Argv[0]+" in "+name)
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
			for p := range m.running {
				if slices.Contains(p.call.Argv, word) {
					n += 1 + p.children
				}
			}
		}
	}
	return n
}

// LoseHost makes a VM stop answering, in every run: it is still on, its commands are lost. PowerOff and PowerOn bring it back.
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
	w.on[node] = false
	for _, c := range w.runs {
		for _, m := range c.machines {
			if m.Node == node {
				m.powerOff()
			}
		}
	}
}

// enter is how every call begins: it records the call and applies the first rule that matches.
func (w *World) enter(ctx context.Context, method, object string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	w.calls = append(w.calls, method+" "+object)
	var hit Rule
	for _, r := range w.rules {
		if r.Method != method || r.Object != "" && r.Object != object || r.Count < 0 ||
			r.Probability > 0 && w.rand.Float64() >= r.Probability {
			continue
		}
		hit = *r
		if r.Count > 0 {
			if r.Count--; r.Count == 0 {
				r.Count = -1 // used up
			}
		}
		break
	}
	w.mu.Unlock()
	if err := w.clock.Sleep(ctx, hit.Delay); err != nil {
		return err
	}
	return hit.Err
}

// node checks an index and, with up, that the node is on. w.mu must be held.
func (w *World) node(node int, up bool) error {
	if node < 0 || node >= len(w.on) {
		return fmt.Errorf("node %d: %w: the cluster has %d, counted from 0", node, target.ErrNoSuchNode, len(w.on))
	}
	if up && !w.on[node] {
		return fmt.Errorf("node %d: %w: it is powered off", node, target.ErrNotAccessible)
	}
	return nil
}
