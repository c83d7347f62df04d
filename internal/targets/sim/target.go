package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
	"plimsoll/unit"
)

// capabilities are what the cluster claims unless it is told not to, with how.
var capabilities = map[target.Capability]string{
	target.VMCreation:         "simulated",
	target.VMPowerControl:     "simulated",
	target.VMClones:           "simulated",
	target.VMMoves:            "simulated",
	target.NodePowerControl:   "simulated",
	target.NodeShutdown:       "simulated",
	target.Snapshots:          "simulated, in no time",
	target.LiveMigration:      "simulated",
	target.AvailabilityRules:  "simulated",
	target.NodeFailover:       "simulated",
	target.StorageMigration:   "recorded; the performance model knows no stores",
	target.GuestCommands:      "commands do nothing and succeed",
	target.Services:           "simulated: a service does nothing until it is stopped",
	target.PeerNetwork:        "addresses are given; nothing is sent",
	target.PlaybookHosts:      "playbooks are checked, not run: they change nothing and load nothing",
	target.ControllerCommands: "on this machine, with --allow-host-commands",
	target.WriteLogDrain:      "the performance model's write logs",
	target.ClusterMetrics:     "from the performance model",
	target.PlatformChecks:     "simulated: good for every node that is on",
	target.DiskTrim:           "simulated",
	target.DiskPurge:          "simulated, in no time",
	target.FolderImport:       "a folder is an image without data disks",
}

var metricNames = []string{"CpuUsage.Avg.Megahertz", "CpuUsage.Avg.Percent", "MemUsage.Avg.Percent",
	"NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"}

// megahertz is the clock of a simulated core, which only turns shares of CPU time into megahertz.
const megahertz = 2500

// idleMemory is the share of a node's memory that is in use without any VM.
const idleMemory = 0.1

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// view is a Target of a world.
type view struct{ w *World }

// Check implements target.Target.
func (v view) Check(ctx context.Context) (target.Facts, error) {
	var f target.Facts
	err := v.w.call(ctx, "Check", "", func() error {
		f = v.w.facts()
		return nil
	})
	if err != nil {
		return target.Facts{}, fmt.Errorf("check: %w", err)
	}
	return f, nil
}

// facts are what there is to know. w.mu must be held.
func (w *World) facts() target.Facts {
	f := target.Facts{
		Target: "sim", ClusterName: "simulated cluster", Simulated: true, PlaybookTime: w.o.Playbook,
		Capabilities: map[target.Capability]string{},
		Missing: map[target.Capability]string{
			target.VMExporters: "nothing serves ports in a simulated VM",
			target.PlainJobs:   "the model has nothing between a VM's job and its disks",
		}, Metrics: metricNames, FreeBytes: w.o.FreeBytes, FreeMemory: w.o.FreeMemory,
		MoreDisk: moreDisk, MoreMemory: moreMemory,
		Pace:        target.Pace{Clone: w.o.Clone, VMOn: w.o.Boot, NodeOn: w.o.NodeBoot, Migration: w.o.Migration},
		Environment: w.environment(), Notes: w.notes(),
	}
	for i := range w.nodes {
		n := target.Node{Index: i, Name: nodeName(i), Cores: w.o.Cores, MemoryBytes: w.o.MemoryBytes,
			Power: "simulated"}
		if w.nodes[i].bare {
			n.Power = ""
		}
		f.Nodes = append(f.Nodes, n)
	}
	for c, how := range capabilities {
		switch {
		case slices.Contains(w.o.Without, c):
			f.Missing[c] = "taken away by the options of the simulated cluster: see --target-opt without"
		case (c == target.NodePowerControl || c == target.NodeShutdown) && len(w.o.NoController) >= len(w.nodes):
			f.Missing[c] = "no node has a power controller, as the options of the simulated cluster say: " +
				"--target-opt power=all gives them"
		case c == target.NodeFailover && w.o.HA.After == 0:
			f.Missing[c] = "switched off by the options of the simulated cluster: --target-opt ha.after=1m brings it"
		case c == target.NodeFailover:
			f.Capabilities[c] = fmt.Sprintf(
				"simulated, %s after the failure: --target-opt ha.after=TIME changes it, 0s switches it off",
				unit.Duration(w.o.HA.After))
		default:
			f.Capabilities[c] = how
		}
	}
	return f
}

func (w *World) notes() []string {
	notes := []string{
		"This run is simulated: time is virtual, and every number comes from a model whose parameters are in the " +
			"record of the environment. It says nothing about any real storage.",
		"Of fio jobs flushes, zones, flows and thinktime_iotime are not modelled.",
		"The load that playbooks put on machines is not modelled: VMs of which a playbook makes the load show the " +
			"model's background only.",
	}
	if w.o.HA.After > 0 && w.o.HA != defaultHA { // the default is told of by the steps that ask for it
		notes = append(notes, w.o.HA.note())
	}
	for _, f := range w.o.Faults {
		notes = append(notes, "declared fault: "+f.String())
	}
	return notes
}

// environment lists what a reader of the results must know of the cluster.
func (w *World) environment() []result.Fact {
	facts := []result.Fact{
		{Group: "simulation", Name: "seed", Value: fmt.Sprint(w.o.Seed)},
		{Group: "simulation", Name: "nodes", Value: fmt.Sprint(len(w.nodes))},
		{Group: "simulation", Name: "clone, each VM", Value: w.o.Clone.String()},
		{Group: "simulation", Name: "boot of VMs", Value: w.o.Boot.String()},
		{Group: "simulation", Name: "boot of a node", Value: w.o.NodeBoot.String()},
		{Group: "simulation", Name: "migration of a VM", Value: w.o.Migration.String()},
		{Group: "simulation", Name: "length of a playbook", Value: w.o.Playbook.String()},
		{Group: "cpu", Name: "cores of a node", Value: fmt.Sprint(w.o.Cores)},
		{Group: "memory", Name: "of a node", Value: unit.Bytes(w.o.MemoryBytes).String()},
	}
	facts = append(append(facts, w.o.NUMA.facts()...), w.o.Starved.facts()...)
	return append(facts, truthFacts(*w.o.Truth)...)
}

// Provision implements target.Target.
func (v view) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	var c *cluster
	err := v.w.call(ctx, "Provision", "", func() error {
		if err := v.w.fits(r); err != nil {
			return err
		}
		if v.w.runs[r.StateDir] != nil {
			return fmt.Errorf("%s holds the remains of a run; clean it up first", r.StateDir)
		}
		c = &cluster{w: v.w, machines: map[string]*machine{}, tellBooted: r.Booted}
		c.injector = newInjector(c, r)
		v.w.runs[r.StateDir] = c
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c.injector.open()
	return c, nil
}

// What gives a cluster more room.
const (
	moreDisk   = "--target-opt disk=SIZE (of every node) or --nodes"
	moreMemory = "--target-opt memory=SIZE (of every node) or --nodes"
)

// fits compares what a run needs with what there is.
func (w *World) fits(r target.Request) error {
	var objections []error
	if r.DiskBytes > w.o.FreeBytes {
		objections = append(objections, fmt.Errorf("disk space: %s needed, %s free: %s gives more",
			unit.Bytes(r.DiskBytes), unit.Bytes(w.o.FreeBytes), moreDisk))
	}
	if r.MemoryBytes > w.o.FreeMemory {
		objections = append(objections, fmt.Errorf("memory: %s needed, %s available: %s gives more",
			unit.Bytes(r.MemoryBytes), unit.Bytes(w.o.FreeMemory), moreMemory))
	}
	if len(objections) > 0 {
		return target.NoRoom{Err: errors.Join(objections...)}
	}
	return nil
}

// Destroy implements target.Target.
func (v view) Destroy(ctx context.Context, stateDir string) ([]string, error) {
	err := v.w.call(ctx, "Destroy", "", func() error {
		if c := v.w.runs[stateDir]; c != nil {
			for _, m := range slices.Clone(c.order) {
				c.remove(m)
			}
			delete(v.w.runs, stateDir)
		}
		return nil
	})
	if err != nil {
		return []string{stateDir}, fmt.Errorf("destroy: %w", err)
	}
	return nil, nil
}

// metrics are the counters of the nodes that are on. w.mu must be held.
func (w *World) metrics() (list []target.Metric) {
	memory := make([]int64, len(w.nodes))
	for _, c := range w.runs {
		for _, m := range c.machines {
			if m.Power == target.On {
				memory[m.Node] += m.memory
			}
		}
	}
	for i, use := range w.storage.NodeMetrics(w.clock.Now()) {
		if !w.nodes[i].on {
			continue
		}
		values := []float64{float64(w.o.Cores) * megahertz * use.CPU, 100 * use.CPU,
			100 * min(1, idleMemory+float64(memory[i])/float64(w.o.MemoryBytes)), use.Received / 1000, use.Sent / 1000}
		for k, v := range values {
			list = append(list, target.Metric{Name: metricNames[k], Node: i, Value: v})
		}
	}
	return list
}
