package perf

import (
	"slices"
	"time"
)

// Kind tells what goes wrong.
type Kind string

// The faults there are.
const (
	SlowDisk       Kind = "slow_disk"       // every service time of the node is Factor times as long
	HungIO         Kind = "hung_io"         // nothing completes; what is outstanding does when it ends
	NoisyNeighbour Kind = "noisy_neighbour" // somebody else takes the share Factor of the node's storage
)

// Fault is something that goes wrong with one node's storage for a time.
type Fault struct {
	Kind   Kind
	Node   int
	Factor float64   // see Kind; ignored where it has no meaning or is not above 0
	Until  time.Time // zero: for ever
}

type fault struct {
	Fault
	until int64
}

// Fault begins one now. Several at a node add up.
func (w *World) Fault(now time.Time, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	until := int64(never)
	if !f.Until.IsZero() {
		until = f.Until.UnixNano()
	}
	if f.Node < 0 || f.Node >= len(w.nodes) || until <= w.at || f.Kind != HungIO && !(f.Factor > 0) {
		return
	}
	n := &w.nodes[f.Node]
	n.faults = append(n.faults, fault{Fault: f, until: until})
	w.touch(f.Node)
}

// endFaults removes what is over.
func (w *World) endFaults(n *node) {
	n.faults = slices.DeleteFunc(n.faults, func(f fault) bool { return f.until <= w.at })
}

// slowness is the factor on the node's service times.
func (n *node) slowness() float64 {
	factor := 1.0
	for _, f := range n.faults {
		if f.Kind == SlowDisk {
			factor *= f.Factor
		}
	}
	return factor
}
