//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	machine "plimsoll/internal/exporters/host"
)

// metricNames are the cluster metrics served here, under the scenario language's names.
var metricNames = []string{"CpuUsage.Avg.Percent", "CpuUsage.Avg.Megahertz", "MemUsage.Avg.Percent"}

// ClusterMetrics implements target.MetricsSource. A node's CPU use is the time that the processes of its VMs have used
// since the last call (since Provision in the first), as a share of all cores of this host; its memory use is their
// resident memory as a share of the host's. A VM that migrates takes the time since the last call with it.
func (c *cluster) ClusterMetrics(ctx context.Context) ([]target.Metric, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cluster metrics: %w", err)
	}
	processors, err := readCPU(c.system)
	if err != nil {
		return nil, fmt.Errorf("cluster metrics: %w", err)
	}
	memory, err := readMemory(c.system)
	if err != nil {
		return nil, fmt.Errorf("cluster metrics: %w", err)
	}
	var all []process
	if c.groups.track.dir == "" {
		if all, err = marked(c.mark); err != nil {
			return nil, fmt.Errorf("cluster metrics: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	elapsed := now.Sub(c.sampled)
	used := make([]time.Duration, len(c.on))
	resident := make([]int64, len(c.on))
	for _, b := range c.sandboxes(-1) {
		cpu, rss := c.consumption(b, all)
		used[b.node] += max(0, cpu-b.counted) // less when a command ended between two looks at it
		resident[b.node] += rss
		b.counted = max(cpu, b.counted)
	}
	c.sampled = now
	var out []target.Metric
	for node, on := range c.on {
		if !on {
			continue // a node that is off reports nothing
		}
		share := 0.0
		if elapsed > 0 {
			share = used[node].Seconds() / (elapsed.Seconds() * float64(processors.count))
		}
		out = append(out, target.Metric{Name: metricNames[0], Node: node, Value: 100 * share})
		if processors.megahertz > 0 {
			out = append(out, target.Metric{Name: metricNames[1], Node: node,
				Value: share * float64(processors.count) * processors.megahertz})
		}
		out = append(out, target.Metric{Name: metricNames[2], Node: node,
			Value: 100 * float64(resident[node]) / float64(memory.total)})
	}
	return out, nil
}

// consumption is the CPU time that a sandbox has used since it was made and its resident memory now. Processes are
// those of the run, needed where control groups do not track. c.mu must be held.
func (c *cluster) consumption(b *sandbox, run []process) (time.Duration, int64) {
	total, resident := b.cpuBefore, int64(0)
	if b.key == "" {
		return total, 0
	}
	var mine []process
	if dir := c.groups.tracked(b.key); dir != "" {
		if user, system, ok := groupCPU(dir); ok {
			total += user + system
		}
		mine, _ = members(dir) // what vanishes meanwhile has no memory
	} else {
		for _, p := range run {
			if strings.HasPrefix(p.unit, b.name+"/") {
				mine = append(mine, p)
				total += p.user + p.system
			}
		}
	}
	for _, p := range mine {
		resident += p.rssBytes
	}
	return total, resident
}

// peakRSS is the most memory that a process has had resident (VmHWM), or what it has now.
func peakRSS(p process) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return p.rssBytes
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10,
				64); err == nil {
				return kib << 10
			}
		}
	}
	return p.rssBytes
}

var _ target.ScrapeSource = (*cluster)(nil)

// servedSections are what is served of this machine. Disks are not among them: those of the VMs are derived from what
// load generators do, and counters of the device below would be counted besides them. File systems are the run's own
// business.
var servedSections = []machine.Section{
	machine.CPU,
	machine.Load,
	machine.Memory,
	machine.Network,
	machine.Kernel,
	machine.Paging,
	machine.Pressure,
	machine.Groups,
}

// Endpoints implements target.ScrapeSource: this machine, whose counters are those of every sandbox on it.
func (c *cluster) Endpoints(ctx context.Context) ([]target.Endpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("endpoints: %w", err)
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	if c.exporter == nil {
		x, err := exporter.New("", machine.New(c.system, nil, servedSections...))
		if err != nil {
			return nil, fmt.Errorf("endpoints: %w", err)
		}
		c.exporter = x
	}
	return []target.Endpoint{{Name: "host", Machine: hostName, Shared: true, Get: c.exporter.Get}}, nil
}
