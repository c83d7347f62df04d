package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
)

// NUMA says how a node's CPU time falls on its NUMA nodes. It is part of the truth: whatever compares NUMA nodes must
// find it.
type NUMA struct {
	Nodes int     `yaml:"nodes"` // of every node, alike in CPUs; below 2 nothing is served of them
	First float64 `yaml:"first"` // share of the CPU time on the first as long as it has CPUs for it; 0: an even part
}

// mostNUMA is how many NUMA nodes a machine has at most.
const mostNUMA = 64

func (n NUMA) check() error {
	var errs []error
	if n.Nodes < 0 || n.Nodes > mostNUMA {
		errs = append(errs, fmt.Errorf("numa.nodes: %d: must be from 0 to %d", n.Nodes, mostNUMA))
	}
	if !(n.First >= 0 && n.First <= 1) {
		errs = append(errs, fmt.Errorf("numa.first: %v: must be a share from 0 to 1", n.First))
	}
	if n.First > 0 && n.Nodes < 2 {
		errs = append(errs, errors.New("numa.first: there is one NUMA node: give numa.nodes as well"))
	}
	return errors.Join(errs...)
}

func (n NUMA) facts() []result.Fact {
	if n.Nodes < 2 {
		return nil
	}
	facts := []result.Fact{{Group: "cpu", Name: "NUMA nodes of a node", Value: fmt.Sprint(n.Nodes)}}
	if n.First > 0 {
		facts = append(facts, result.Fact{Group: "cpu", Name: "share of CPU time on the first NUMA node",
			Value: fmt.Sprint(n.First)})
	}
	return facts
}

// Starved says what CPU time machines are not given. It is counted as a kernel counts it and slows nothing down:
// whatever looks at such counters must find it.
type Starved struct {
	Steal float64 `yaml:"steal"` // share of every node's CPU time that its hypervisor gives to others
	Quota float64 `yaml:"quota"` // share of the periods in which the CPU quota of every VM that is on holds it back
}

func (s Starved) check() error {
	var errs []error
	if !(s.Steal >= 0 && s.Steal <= 1) {
		errs = append(errs, fmt.Errorf("starved.steal: %v: must be a share from 0 to 1", s.Steal))
	}
	if !(s.Quota >= 0 && s.Quota <= 1) {
		errs = append(errs, fmt.Errorf("starved.quota: %v: must be a share from 0 to 1", s.Quota))
	}
	return errors.Join(errs...)
}

func (s Starved) facts() (facts []result.Fact) {
	if s.Steal > 0 {
		facts = append(facts, result.Fact{Group: "cpu", Name: "share of CPU time that a hypervisor gives to others",
			Value: fmt.Sprint(s.Steal)})
	}
	if s.Quota > 0 {
		facts = append(facts, result.Fact{Group: "cpu", Name: "share of periods in which CPU quotas hold VMs back",
			Value: fmt.Sprint(s.Quota)})
	}
	return facts
}

// period is that of a CPU quota.
const period = 100 * time.Millisecond

// spread is the share of its CPUs that each NUMA node uses when the whole node uses the share u of all of them. What
// the first has no CPUs for goes to the others.
func (n NUMA) spread(u float64) []float64 {
	out := make([]float64, n.Nodes)
	all := u * float64(n.Nodes)
	out[0] = u
	if n.First > 0 {
		out[0] = min(1, all*n.First)
	}
	for i := 1; i < n.Nodes; i++ {
		out[i] = min(1, (all-out[0])/float64(n.Nodes-1))
	}
	return out
}

// cpuTimes are what the NUMA nodes of all nodes have counted up to a moment.
type cpuTimes struct {
	at   time.Time
	list []target.CPUCounter
}

// HostCounters implements target.HostSource: the time of the CPUs of every NUMA node of the nodes that are on, from the
// load that the performance model puts on them, where there are several or some is stolen; and what declared quotas
// have done. Between two calls the load is taken to be what it is at the second.
func (c *cluster) HostCounters(ctx context.Context) (out target.HostCounters, err error) {
	starved := c.w.o.Starved
	if c.w.o.NUMA.Nodes < 2 && starved == (Starved{}) {
		return out, nil
	}
	err = c.w.call(ctx, "HostCounters", "", func() error {
		if c.w.o.NUMA.Nodes >= 2 || starved.Steal > 0 {
			out.CPUs = c.w.count(&c.cpus)
		}
		if starved.Quota > 0 {
			out.Quotas = c.throttled()
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("host counters: %w", err)
	}
	return out, nil
}

// count moves the counters on to now. w.mu must be held.
func (w *World) count(t *cpuTimes) (list []target.CPUCounter) {
	numa, steal, now := w.o.NUMA, w.o.Starved.Steal, w.clock.Now()
	numa.Nodes = max(1, numa.Nodes)
	if t.list == nil {
		t.at = now
		for i := range w.nodes {
			for k := range numa.Nodes {
				t.list = append(t.list, target.CPUCounter{Host: nodeName(i), CPU: -1, NUMA: k})
			}
		}
	}
	elapsed := now.Sub(t.at).Seconds() * float64(w.o.Cores) / float64(numa.Nodes)
	t.at = now
	for i, use := range w.storage.NodeMetrics(now) {
		if !w.nodes[i].on {
			continue
		}
		for k, share := range numa.spread(use.CPU) {
			one := &t.list[i*numa.Nodes+k]
			one.User += time.Duration(share * elapsed * float64(time.Second))
			one.Steal += time.Duration(min(steal, 1-share) * elapsed * float64(time.Second))
			one.Idle += time.Duration(max(0, 1-share-steal) * elapsed * float64(time.Second))
			list = append(list, *one)
		}
	}
	return list
}

// throttled are the quotas of the VMs that are on, since the cluster was made. w.mu must be held.
func (c *cluster) throttled() (list []target.QuotaCounter) {
	now := c.w.clock.Now()
	if c.quotasSince.IsZero() {
		c.quotasSince = now
	}
	periods := float64(now.Sub(c.quotasSince) / period)
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		if c.machines[name].Power == target.On {
			list = append(list, target.QuotaCounter{Machine: name, Periods: uint64(periods),
				Throttled: uint64(periods * c.w.o.Starved.Quota)})
		}
	}
	return list
}
