// Package perf is what the simulated cluster's storage does over time, with every parameter known.
//
// A World holds nodes; a Job is a workload on one VM, given as streams. Each stream is a stream of operations at its
// node's storage, which package model solves as a network of queues under the Universal Scalability Law. Between two
// changes (a job begins or ends, a fault, a checkpoint, a full log, a step of promotion) every rate is constant, so
// counters are rates times time plus seeded noise, and nothing is computed for operations one by one. Counters and
// their noise lie on a grid of their own, whoever reads and how often. Histograms are drawn from the stated Law when a
// Report is asked for, and hold exactly as many values as the counter.
//
// docs/simulated-cluster.md has the equations, their sources and where reality differs. The package knows no clock:
// callers say what time it is, never earlier than before. It does no I/O and draws only from Truth.Seed. A World may be
// used by several goroutines.
package perf

import (
	"math"
	"sync"
	"time"

	"plimsoll/internal/targets/sim/model"
)

// never is a time beyond all others.
const never = math.MaxInt64

// World is the storage of a cluster.
type World struct {
	truth Truth

	mu        sync.RWMutex
	at        int64 // nanoseconds since 1970; all is worked out up to here
	nodes     []node
	volumes   map[string]map[string]*volume // by VM and device
	jobs      map[string][]*Job             // running, by VM
	dirty     bool                          // some node must be solved before time goes on
	inflation float64                       // by contention and crosstalk, as last applied to every node
	wave      int64                         // next begin or end of a checkpoint
	finished  int                           // jobs
	tabled    sync.Mutex
	tables    map[string]*table
	streams   []model.Stream // kept for the next solution
	owners    []*stream
}

// node is the storage of one node.
type node struct {
	index   int
	streams []*stream // running or about to begin, in the order of their start
	faults  []fault
	next    int64 // when something here changes by itself
	ends    int64 // when the first job here ends by itself
	since   int64 // tiers and log are settled up to here
	dirty   bool
	hung    bool
	log     float64 // bytes in the write log
	full    bool    // the log throttles
	flow    float64 // bytes per second into the log, less what is drained
	volumes []*volume
	moves   []move
	limit   float64 // factor on all moves that keeps them within the promotion's speed
	busy    float64 // share of the servers
}

// New makes a world of so many nodes with no load. Truth must pass Check.
func New(t Truth, nodes int) *World {
	w := &World{truth: t, nodes: make([]node, nodes), volumes: map[string]map[string]*volume{},
		jobs: map[string][]*Job{}, inflation: 1,
		wave: never, tables: map[string]*table{}}
	for i := range w.nodes {
		w.nodes[i].index, w.nodes[i].next, w.nodes[i].ends = i, never, never
	}
	return w
}

// Advance brings everything up to now. Every method does so by itself.
func (w *World) Advance(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
}

// AdvanceToEnd brings everything up to the next end of a job, at most up to until, and returns the time that it has
// come to.
func (w *World) AdvanceToEnd(until time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goOn(until.UnixNano(), w.finished)
	return time.Unix(0, w.at).UTC()
}

func (w *World) advance(now int64) { w.goOn(now, never) }

// goOn advances to now, or to the first moment at which more jobs have finished.
func (w *World) goOn(now int64, finished int) {
	if now <= w.at {
		return
	}
	if w.at == 0 {
		w.begin(now)
	}
	for {
		if w.dirty {
			w.solve()
		}
		next := w.wave
		for i := range w.nodes {
			next = min(next, w.nodes[i].next)
		}
		if next > now {
			break
		}
		w.at = max(w.at, next)
		w.change()
		if w.finished > finished {
			return
		}
		if w.at == now {
			break // what follows from it is solved when time goes on
		}
	}
	w.at = now
}

// begin sets the clock when time is first told.
func (w *World) begin(now int64) {
	w.at = now
	for i := range w.nodes {
		w.nodes[i].since = now
	}
	w.nextWave()
}

// nextWave finds the next edge of a checkpoint after now.
func (w *World) nextWave() {
	c := w.truth.Checkpoint
	if c.Every <= 0 || c.Lasts <= 0 || c.Load <= 0 {
		return
	}
	into := w.at % int64(c.Every)
	w.wave = w.at - into + int64(c.Every)
	if into < int64(c.Lasts) {
		w.wave = w.at - into + int64(c.Lasts)
	}
}

// checkpointing reports whether a checkpoint is going on.
func (w *World) checkpointing() bool {
	c := w.truth.Checkpoint
	return c.Every > 0 && w.at%int64(c.Every) < int64(c.Lasts)
}

// change does what is due now.
func (w *World) change() {
	if w.wave <= w.at {
		w.nextWave()
		for i := range w.nodes {
			w.touch(i)
		}
	}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.next <= w.at {
			n.next = never
			w.touch(i)
			w.endFaults(n)
			w.turnStreams(n)
		}
	}
}

// touch has a node solved before time goes on.
func (w *World) touch(node int) {
	w.nodes[node].dirty, w.dirty = true, true
}

// solve gives every stream its rate from now on. A node without a change is left as it is unless the cluster's
// inflation has moved by more than a ten-thousandth since it was solved.
func (w *World) solve() {
	w.dirty = false
	shared := w.truth.Contention > 0 || w.truth.Crosstalk > 0
	var some []int // nodes in the network
	net := model.Network{Contention: w.truth.Contention, Crosstalk: w.truth.Crosstalk}
	w.streams, w.owners = w.streams[:0], w.owners[:0]
	for i := range w.nodes {
		n := &w.nodes[i]
		if !n.dirty && (!shared || len(n.streams) == 0) {
			continue
		}
		if n.dirty {
			w.settle(n)
			w.prepare(n)
		}
		net.Servers = append(net.Servers, w.truth.Servers)
		net.Background = append(net.Background, w.background(n))
		for _, l := range n.streams {
			if l.state == running && !n.hung {
				w.streams = append(w.streams, model.Stream{Node: len(some), Depth: max(1, l.spec.Depth),
					Rate: l.spec.Rate, Seconds: l.service, Think: l.spec.Think.Seconds()})
				w.owners = append(w.owners, l)
			}
		}
		some = append(some, i)
	}
	answer := model.Solve(net, w.streams)
	all := math.Abs(answer.Inflation-w.inflation) > 1e-4*w.inflation
	if all {
		w.inflation = answer.Inflation
	}
	for k, i := range some {
		if n := &w.nodes[i]; all || n.dirty {
			if !n.dirty {
				w.settle(n)
			}
			n.busy = answer.Utilisation[k]
			for _, l := range n.streams {
				l.cut(w.at)
				l.idle()
				if n.hung && l.state == running && l.hung == 0 {
					l.hung = w.at
				}
			}
		}
	}
	for k, l := range w.owners {
		if n := &w.nodes[l.job.node]; all || n.dirty {
			l.apply(answer.Throughput[k], answer.Response[k], answer.Inflation, answer.Limited[k])
		}
	}
	for _, i := range some {
		if n := &w.nodes[i]; all || n.dirty {
			n.dirty = false
			for _, l := range n.streams {
				l.open(w.at)
			}
			w.plan(n)
		}
	}
}

func (w *World) background(n *node) float64 {
	b := w.truth.Background
	if w.checkpointing() {
		b += w.truth.Checkpoint.Load
	}
	for _, f := range n.faults {
		if f.Kind == NoisyNeighbour {
			b += f.Factor
		}
	}
	return min(b, 0.99)
}
