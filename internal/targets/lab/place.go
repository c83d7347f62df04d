//go:build linux

package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/installed"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/targets/lab/guest"
	"plimsoll/internal/targets/lab/qemu"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/result"
	"plimsoll/unit"
)

type place struct {
	settings
}

// topology is how guests are told of their CPUs. One socket, thread and node each is how QEMU does it by itself.
func (s settings) topology() qemu.Topology {
	t := qemu.Topology{Pins: s.pins}
	if s.sockets > 1 || s.threads > 1 {
		t.Sockets, t.Threads = s.sockets, s.threads
	}
	if s.numa > 1 {
		t.NUMA = s.numa
	}
	return t
}

func open(s settings) (target.Target, error) { return &place{s}, nil }

// usualNodes are those of a lab that a run makes, unless the user says how many.
const usualNodes = 3

// overhead is the memory of an emulated guest's process beside the guest's own.
const overhead = 96 << 20

// existing is the lab that the user has named or that is up where labs are, nil when the run is to make one.
func (p *place) existing() (*lab.Lab, error) {
	l, err := lab.Open(cmp.Or(p.dir, lab.Folder()))
	if p.dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("target lab: %w, or name another one with --target-opt dir=FOLDER", err)
	}
	if p.nodes != 0 && p.nodes != len(l.Nodes()) {
		return nil, fmt.Errorf("target lab: nodes %d: the lab in %s has %d: --nodes %[3]d", p.nodes, l.Dir(),
			len(l.Nodes()))
	}
	return l, nil
}

// planned are the options of a lab that the run makes. Its folder has a short name, since sockets lie in it.
func (p *place) planned(stateDir string) (lab.Options, error) {
	program, err := os.Executable()
	if err != nil {
		return lab.Options{}, err
	}
	state, err := filepath.Abs(stateDir)
	if err != nil {
		return lab.Options{}, err
	}
	temporary, err := filepath.Abs(os.TempDir())
	if err != nil {
		return lab.Options{}, err
	}
	id := sha256.Sum256([]byte(state))
	return lab.Options{Dir: filepath.Join(temporary, "plimsoll-lab-"+hex.EncodeToString(id[:4])), Program: program,
		Nodes: cmp.Or(p.nodes, usualNodes), Storage: p.storage}, nil
}

// images returns what guests are built of.
func (p *place) images() (guest.Config, error) {
	c := guest.Config{Kind: guest.Kind(p.image), Cache: p.cache, Agent: p.agent, Packages: p.packages}
	var err error
	if c.Cache == "" {
		if c.Cache, err = guest.DefaultCache(); err != nil {
			return c, fmt.Errorf("target lab: option \"cache\": %w: give --target-opt cache=FOLDER", err)
		}
	}
	if c.Agent == "" {
		if c.Agent, err = installed.Path("plimsoll-agent-linux-amd64"); err != nil {
			return c, fmt.Errorf("target lab: option \"agent\": %w: give --target-opt agent=FILE", err)
		}
	}
	return c, nil
}

// found keeps the images found, by what they are built of: asking the package manager takes seconds.
var found struct {
	sync.Mutex
	images map[[4]string]booting
}

// booting is an image and how guests that boot it are run.
type booting struct {
	image guest.Image
	proof qemu.Proof
}

// boots is the image of the guests, built if it is in no cache, and how they are run.
func (p *place) boots(ctx context.Context) (b booting, err error) {
	c, err := p.images()
	if err != nil {
		return b, err
	}
	found.Lock()
	defer found.Unlock()
	key := [4]string{string(c.Kind), c.Cache, c.Agent, strings.Join(c.Packages, ",")}
	if b, ok := found.images[key]; ok && remote.Exists(b.image.Kernel) {
		return b, nil
	}
	if b.image, err = guest.Build(ctx, c); err != nil {
		return b, err
	}
	if b.proof, err = qemu.Accelerator(ctx, b.image.Kernel, c.Cache); err != nil {
		return b, err
	}
	if found.images == nil {
		found.images = map[[4]string]booting{}
	}
	found.images[key] = b
	return b, nil
}

// Check implements target.Target. The one thing that it makes is the image, in its cache.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	var objections []error
	l, err := p.existing()
	if err != nil {
		return target.Facts{}, err
	}
	facts := target.Facts{Target: "lab", ClusterName: "lab of the run", FreeMemory: freeMemory(), OneMachine: true,
		MoreMemory: "--target-opt memory", Capabilities: capabilities()}
	if err := p.checkPins(); err != nil {
		objections = append(objections, err)
	}
	storage, folder := p.storage, os.TempDir()
	var nodes []*lab.Node
	for _, program := range []string{"qemu-system-x86_64", "qemu-img"} {
		if _, err := exec.LookPath(program); err != nil {
			objections = append(objections, fmt.Errorf("target lab: %s is missing: apt-get install "+
				"--no-install-recommends qemu-system-x86 qemu-utils", program))
		}
	}
	if l != nil {
		facts.ClusterName, storage, folder, nodes = "lab "+l.ID(), l.Storage(), l.Dir(), l.Nodes()
		if _, err := l.Mend(ctx); err != nil && p.power != "button" { // nodes are switched by their controllers
			objections = append(objections, fmt.Errorf("target lab: %w", err))
		}
		for _, n := range nodes {
			if state, ready, err := n.State(ctx); err != nil || !ready {
				objections = append(objections, fmt.Errorf("target lab: node %q: power %s, ready %t: see plimsoll lab "+
					"status: %w", n.Name(), state, ready, cmp.Or(err, target.ErrNotAccessible)))
			}
		}
	} else {
		o, err := p.planned("check")
		if err == nil {
			nodes, err = o.Check()
		}
		if err != nil {
			objections = append(objections, err)
		}
	}
	facts.FreeBytes = room(folder, storage, len(nodes))
	for i, n := range nodes {
		facts.Nodes = append(facts.Nodes, target.Node{Index: i, Name: n.Name(), Power: p.power, Cores: runtime.NumCPU(),
			MemoryBytes: totalMemory(), Address: n.Address().String()})
	}
	if !p.restarts {
		delete(facts.Capabilities, target.NodeFailover)
		facts.Missing = map[target.Capability]string{target.NodeFailover: "it is switched off by --target-opt ha=off"}
	}
	facts.Lacking("the lab has no such thing")
	facts.Missing[target.ClusterMetrics] = "nodes share this machine's processors and disks: see its own counters"
	if p.image != worker {
		facts.Capabilities[target.PlaybookHosts] = "this machine's Ansible, over SSH into guests"
	} else {
		facts.Missing[target.PlaybookHosts] = "guests of image worker have no Python: add --target-opt image=debian"
		const postgres = "guests of image worker have no PostgreSQL: add --target-opt image=debian"
		facts.Lacks = map[string]string{"postgresql": postgres, "pgbench": postgres,
			"mariadb": "guests of image worker have no MariaDB: add --target-opt image=debian --target-opt " +
				"packages=mariadb-server"}
	}
	facts.Missing[target.VMExporters] = "guests are in namespaces of the lab: the agent's own page is read"
	facts.Notes = []string{fmt.Sprintf("Guests have at most %v of memory, whatever the scenario gives them (option memory). "+
		"All nodes share this machine: what is measured there is no cluster's speed.", unit.Bytes(p.memory))}
	if p.dropped {
		facts.Notes = append(facts.Notes, "Guests never flush their data disks (option flush): what they were told is safe "+
			"is lost with their node's power.")
	}
	facts.VMMemoryBytes = p.memory + overhead
	b, err := p.boots(ctx)
	if err == nil {
		facts.Pace = target.Pace{Clone: time.Second, VMOn: 20 * time.Second, NodeOn: 15 * time.Second,
			Migration: 3 * time.Second}
		facts.Environment = append(facts.Environment,
			result.Fact{Group: "lab", Name: "acceleration", Value: b.proof.Reason},
			result.Fact{Group: "lab", Name: "guest image", Value: string(b.image.Kind) + " " + b.image.ID},
			result.Fact{Group: "lab", Name: "storage", Value: storage},
		)
		if p.memory < b.image.MemoryBytes {
			err = fmt.Errorf("target lab: option \"memory\": %v: image %s boots with %v or more", unit.Bytes(p.memory),
				b.image.Kind, unit.Bytes(b.image.MemoryBytes))
		}
	}
	return facts, errors.Join(append(objections, err)...)
}

// checkPins objects to CPUs that this machine has not, or does not give to this process.
func (p *place) checkPins() error {
	var ours unix.CPUSet
	if len(p.pins) == 0 {
		return nil
	}
	if err := unix.SchedGetaffinity(0, &ours); err != nil {
		return fmt.Errorf("target lab: option \"pins\": %w", err)
	}
	for _, pin := range p.pins {
		if !ours.IsSet(pin) {
			return fmt.Errorf("target lab: option \"pins\": CPU %d: none that guests may have here: give some of "+
				"Cpus_allowed_list in /proc/self/status", pin)
		}
	}
	return nil
}

func capabilities() map[target.Capability]string {
	return map[target.Capability]string{
		target.VMCreation:        "qcow2 images on the nodes' storage; clones share what they have in common",
		target.VMPowerControl:    "QEMU's process",
		target.VMClones:          "copies of what their disks have of their own",
		target.VMMoves:           "the storage is that of all nodes",
		target.NodePowerControl:  "the nodes' controllers, over IPMI 2.0 or Redfish (option power)",
		target.NodeShutdown:      "guests by their power buttons, then the node",
		target.Snapshots:         "inside the images, guests paused together",
		target.LiveMigration:     "QEMU's",
		target.AvailabilityRules: "restarts by plimsoll, while the run lives; nothing is balanced",
		target.NodeFailover:      "restarts by plimsoll on the next living node, while the run lives",
		target.GuestCommands:     "the agent in each guest",
		target.Services:          "the agent in each guest",
		target.PeerNetwork:       "the lab's own",
	}
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

// room returns what fits into a folder of each byte as many copies as the storage keeps, -1 if that cannot be told.
func room(folder, storage string, nodes int) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return -1
	}
	free := int64(s.Bavail) * s.Bsize
	if storage == lab.Gluster {
		free /= int64(max(1, min(nodes, 3)))
	}
	return free
}

func freeMemory() int64  { return memory("MemAvailable") }
func totalMemory() int64 { return max(0, memory("MemTotal")) }

// memory is a line of the kernel's, -1 if there is none.
func memory(name string) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, name+": %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return -1
}
