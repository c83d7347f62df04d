//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/guest"
	"plimsoll/internal/lab"
	"plimsoll/internal/qemu"
	"plimsoll/internal/target"
	"plimsoll/result"
)

// New implements target.Provider. That a lab is needed is for Check to say: a clean-up has no options.
func (p Provider) New(c target.Config) (target.Target, error) {
	v, err := target.Decode(p.Name(), p.Options(), c.Options)
	if err != nil {
		return nil, err
	}
	cache := v.Text("cache")
	if cache == "" {
		if cache, err = guest.DefaultCache(); err != nil {
			return nil, fmt.Errorf("target lab: cache: %w: give --target-opt cache=FOLDER", err)
		}
	}
	agent := v.Text("agent")
	if program, err := os.Executable(); agent == "" && err == nil {
		agent = filepath.Join(filepath.Dir(program), "plimsoll-agent-linux-amd64")
	}
	return &place{restarts: v.Text("ha") == "on", dir: cmp.Or(v.Text("dir"), lab.Folder()), memory: v.Bytes("memory"),
		build: guest.Config{Kind: guest.Kind(v.Text("image")), Cache: cache, Agent: agent},
		nodes: c.Nodes, clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}, nil
}

type place struct {
	dir      string
	build    guest.Config
	nodes    int
	clock    clock.Clock
	memory   int64 // of each guest; 0: as it is given
	restarts bool  // of guests whose node is lost
}

func (p *place) open() (*lab.Lab, error) {
	l, err := lab.Open(p.dir)
	if err != nil {
		return nil, fmt.Errorf("target lab: %w, or name another one with --target-opt dir=FOLDER", err)
	}
	if p.nodes != 0 && p.nodes != len(l.Nodes()) {
		return nil, fmt.Errorf("target lab: nodes %d: the lab has %d", p.nodes, len(l.Nodes()))
	}
	return l, nil
}

// Check implements target.Target.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	l, err := p.open()
	if err != nil {
		return target.Facts{}, err
	}
	facts := target.Facts{Target: "lab", ClusterName: l.ID(), FreeBytes: freeBytes(l), FreeMemory: freeMemory(),
		OneMachine: true, Capabilities: map[target.Capability]string{
			target.VMCreation:        "qcow2 images on the nodes' storage; clones share what they have in common",
			target.VMPowerControl:    "QEMU's process",
			target.VMMoves:           "the storage is that of all nodes",
			target.NodePowerControl:  "the nodes' controllers",
			target.NodeShutdown:      "guests by their power buttons, then the node",
			target.Snapshots:         "inside the images, guests paused together",
			target.LiveMigration:     "QEMU's",
			target.AvailabilityRules: "restarts by plimsoll, while the run lives; nothing is balanced",
			target.NodeFailover:      "restarts by plimsoll on the next living node, while the run lives",
			target.GuestCommands:     "the agent in each guest",
			target.Services:          "the agent in each guest",
			target.PeerNetwork:       "the lab's own",
		}}
	if !p.restarts {
		delete(facts.Capabilities, target.NodeFailover)
	}
	facts.Lacking("guests of the lab have no such thing")
	var objections []error
	for i, n := range l.Nodes() {
		facts.Nodes = append(
			facts.Nodes,
			target.Node{Index: i, Name: n.Name(), Power: "lab", Address: n.Address().String(),
				Cores: runtime.NumCPU(), MemoryBytes: facts.FreeMemory},
		)
		if state, ready, err := n.State(ctx); err != nil || !ready {
			objections = append(
				objections,
				fmt.Errorf("node %q: power %s, ready %t: see plimsoll lab status: %w", n.Name(),
					state, ready, cmp.Or(err, target.ErrNotAccessible)),
			)
		}
	}
	image, err := guest.Build(ctx, p.build)
	if err == nil {
		var proof qemu.Proof
		proof, err = qemu.Accelerator(ctx, image.Kernel, p.build.Cache)
		facts.Environment = append(
			facts.Environment,
			result.Fact{Group: "lab", Name: "acceleration", Value: proof.Reason},
			result.Fact{Group: "lab", Name: "guest image", Value: string(image.Kind) + " " + image.ID},
			result.Fact{Group: "lab", Name: "storage", Value: l.Storage()},
		)
		if p.memory > 0 {
			facts.VMMemoryBytes = max(p.memory, image.MemoryBytes)
		}
	}
	return facts, errors.Join(append(objections, err)...)
}

// workFolder is where guests keep files over power cycles.
const workFolder = "/var/lib/plimsoll/"

// Bounds of waits.
const (
	bootLimit      = 4 * time.Minute        // until a guest answers; five times what it takes on a quiet machine
	lookEach       = 200 * time.Millisecond // for guests that have ended
	restartEach    = time.Second            // for nodes that were lost
	restartsAtOnce = 4
)
