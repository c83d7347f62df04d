package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plimsoll/internal/target"
	"plimsoll/unit"
)

var capabilities = []target.Capability{target.NodePowerControl, target.NodeShutdown, target.Snapshots, target.LiveMigration,
	target.AvailabilityRules, target.StorageMigration, target.GuestCommands, target.PlaybookHosts,
	target.ControllerCommands, target.WriteLogDrain, target.ClusterMetrics, target.FolderImport}

var metricNames = []string{"CpuUsage.Avg.Megahertz", "CpuUsage.Avg.Percent", "MemUsage.Avg.Percent",
	"NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"}

// view is a Target of a world.
type view struct{ w *World }

// Check implements target.Target.
func (v view) Check(ctx context.Context) (target.Facts, error) {
	if err := v.w.enter(ctx, "Check", ""); err != nil {
		return target.Facts{}, fmt.Errorf("check: %w", err)
	}
	f := target.Facts{Target: "fake", ClusterName: "fake cluster", Capabilities: map[target.Capability]string{},
		Missing: map[target.Capability]string{}, Metrics: metricNames, FreeBytes: v.w.o.FreeBytes, FreeMemory: v.w.o.FreeMemory,
		Environment: []target.Fact{{Group: "host", Name: "kernel", Value: "simulated"}, {Group: "storage", Name: "device", Missing: "there is none"}}}
	for i := range v.w.on {
		f.Nodes = append(f.Nodes, target.Node{Index: i, Name: fmt.Sprintf("node-%d", i), Cores: 16, MemoryBytes: int64(128 * unit.GiB), Power: "fake"})
	}
	for _, c := range capabilities {
		if slices.Contains(v.w.o.Without, c) {
			f.Missing[c] = "switched off by the test"
		} else {
			f.Capabilities[c] = "simulated"
		}
	}
	return f, nil
}

// Provision implements target.Target.
func (v view) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	if err := v.w.enter(ctx, "Provision", ""); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	var objections []error
	if r.DiskBytes > v.w.o.FreeBytes {
		objections = append(objections, fmt.Errorf("provision: disk space: %s needed, %s free", unit.Bytes(r.DiskBytes), unit.Bytes(v.w.o.FreeBytes)))
	}
	if r.MemoryBytes > v.w.o.FreeMemory {
		objections = append(objections, fmt.Errorf("provision: memory: %s needed, %s available", unit.Bytes(r.MemoryBytes), unit.Bytes(v.w.o.FreeMemory)))
	}
	if err := errors.Join(objections...); err != nil {
		return nil, err
	}
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if v.w.runs[r.StateDir] != nil {
		return nil, fmt.Errorf("provision: %s holds the remains of a run; clean it up first", r.StateDir)
	}
	c := &cluster{w: v.w, machines: map[string]*machine{}}
	v.w.runs[r.StateDir] = c
	return c, nil
}

// Destroy implements target.Target.
func (v view) Destroy(ctx context.Context, stateDir string) ([]string, error) {
	if err := v.w.enter(ctx, "Destroy", ""); err != nil {
		return []string{stateDir}, fmt.Errorf("destroy: %w", err)
	}
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if c := v.w.runs[stateDir]; c != nil {
		for name, m := range c.machines {
			m.powerOff()
			m.gone = true
			delete(c.machines, name)
		}
		delete(v.w.runs, stateDir)
	}
	return nil, nil
}
