//go:build linux

// Package lab is the place of QEMU guests on the nodes of a miniature cluster: `--target lab`.
//
// Package internal/lab has made the nodes, with network, storage and power controllers; internal/guest the images;
// internal/qemu runs the guests, as processes of their nodes; internal/remote works inside them. A guest's disks lie on
// the nodes' storage in a folder of the run, what its process needs lies in the run's state folder, both written down
// before they are made, so that Destroy finds all of it from a fresh process.
//
// It is in no registry yet: it has not been through the conformance suite, and switches nodes itself, not by their
// controllers. It refuses a lab that is not there, nodes that are off, and folders of other runs.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/guest"
	"plimsoll/internal/lab"
	"plimsoll/internal/qemu"
	"plimsoll/internal/target"
	"plimsoll/result"
)

// Provider makes places of guests. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "lab" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "QEMU guests on the nodes that plimsoll lab up has made on this machine"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "dir", Help: "the folder of the lab, as given to plimsoll lab up"},
		{Name: "cache", Help: "the folder of guest images (default: that of plimsoll lab image)"},
		{Name: "agent", Help: "the file plimsoll-agent-linux-amd64 (default: beside plimsoll)"},
		{Name: "image", Default: string(guest.Worker), Help: "what guests boot: worker or debian"},
		{Name: "ha", Default: "on", Help: "on: guests of a node that is lost are started on another one; off: they are not"},
	}
}

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
	if ha := v.Text("ha"); ha != "on" && ha != "off" {
		return nil, fmt.Errorf("target lab: ha %q: want on or off", ha)
	}
	return &place{restarts: v.Text("ha") == "on", dir: v.Text("dir"), build: guest.Config{Kind: guest.Kind(v.Text("image")), Cache: cache,
		Agent: v.Text("agent")}, nodes: c.Nodes, clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}, nil
}

type place struct {
	dir   string
	build guest.Config
	nodes int
	clock clock.Clock
	// restarts of guests whose node is lost
	restarts bool
}

func (p *place) open() (*lab.Lab, error) {
	if p.dir == "" {
		return nil, errors.New("target lab: no lab: make one with plimsoll lab up, and give --target-opt dir=FOLDER")
	}
	l, err := lab.Open(p.dir)
	if err == nil && p.nodes != 0 && p.nodes != len(l.Nodes()) {
		err = fmt.Errorf("target lab: nodes %d: the lab has %d", p.nodes, len(l.Nodes()))
	}
	return l, err
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
			target.PlaybookHosts:     "the guests' addresses, reached from the lab's network only",
		}}
	if !p.restarts {
		delete(facts.Capabilities, target.NodeFailover)
	}
	facts.Lacking("guests of the lab have no such thing")
	var objections []error
	for i, n := range l.Nodes() {
		facts.Nodes = append(
			facts.Nodes,
			target.Node{Index: i, Name: n.Name(), Power: "lab", Address: n.Address().String()},
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
		facts.VMMemoryBytes = 0
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
