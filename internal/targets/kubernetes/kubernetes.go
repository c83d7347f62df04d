// Package kubernetes is the place of pods on a cluster's nodes: `--target kubernetes`.
//
// A machine is a pod, while it is on, and claims of volumes, for as long as it is there: one for the agent and what it
// keeps, and one for each data disk, as block devices /dev/sdb and on. The cluster's own scheduler, provisioner and
// kubelets place, make, start and remove them. The agent works over the pods/exec of the API, so that nothing has to be
// reached but that.
//
// Everything of a run has its label and is in the one namespace that the user names, where nothing else is touched. It
// refuses to go on where a permission, the namespace, a storage class or a node is missing, and says all of it at once.
package kubernetes

import (
	"cmp"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// Provider makes places of pods. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "kubernetes" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "pods with block volumes on the nodes of a Kubernetes cluster"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "file", Help: "the fleet's file: namespace, storage class, images, nodes and how they are " +
			"switched (docs/how-to/kubernetes.md)"},
		{Name: "agents",
			Help: "folder of the agents' programs (default: beside plimsoll, or in ../libexec/plimsoll from there)"},
		{Name: "ha", Type: target.Choice, Default: "on", Choices: []string{"on", "off"},
			Help: "on: machines of a node whose power controller says that it is off, unless exempt (disable_ha), " +
				"are restarted on another one"},
	}
}

type place struct {
	file, agents string
	restarts     bool
	nodes        int
	clock        clock.Clock
	sums         sync.Map // of agents' programs, by their paths
	images       sync.Map // sums of the agents in images, by the digests of these
	kinds        []target.PowerKind
	goneLimit    time.Duration
	onLimit      time.Duration // until a pod runs: volumes are made and an image may be fetched meanwhile
	sayAfter     time.Duration // of that when it is told for the first time what it waits for
	stuckLimit   time.Duration // of that for which it waits for what does not pass by itself
}

// New implements target.Provider.
func (p Provider) New(c target.Config) (target.Target, error) {
	v, err := target.Decode(p.Name(), p.Options(), c.Options)
	if err != nil {
		return nil, err
	}
	return &place{file: v.Text("file"), agents: v.Text("agents"), restarts: v.Text("ha") == "on",
		nodes: c.Nodes, kinds: c.PowerKinds,
		goneLimit: goneLimit, onLimit: 5 * time.Minute, sayAfter: 5 * time.Second, stuckLimit: time.Minute,
		clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}, nil
}
