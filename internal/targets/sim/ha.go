package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
	"plimsoll/unit"
)

// HA holds what the cluster does by itself when a node fails, however it came to be off. VMs that were on there and are
// not exempt (vm_group.DisableHA, disable_ha of a clone) are powered on there again if it is back, else where there is
// most memory left; what ran in them is gone. If the node is still off then, the others make up for the copies it held.
type HA struct {
	After   time.Duration // from the failure until the cluster acts on it; 0: it never does
	Rebuild time.Duration // for which the other nodes rebuild; 0: they do not
	Load    float64       // share of the other nodes' storage that this takes
}

// defaultHA acts for VMs whose scenario asks for it, and rebuilds nothing.
var defaultHA = HA{After: time.Minute}

func (h HA) check() error {
	var errs []error
	if h.After < 0 || h.Rebuild < 0 {
		errs = append(errs, fmt.Errorf("ha: after %s, rebuild %s: must not be negative", h.After, h.Rebuild))
	}
	if h.After == 0 && h.Rebuild > 0 {
		errs = append(errs,
			errors.New("ha.rebuild: nothing is rebuilt without high availability: give ha.after as well"))
	}
	if (h.Rebuild > 0) != (h.Load > 0) || !(h.Load >= 0 && h.Load < 1) {
		errs = append(errs, fmt.Errorf("ha.load: %v: must be a share, above 0 and below 1 when there is a rebuild, "+
			"and nothing otherwise", h.Load))
	}
	return errors.Join(errs...)
}

// note returns what a reader of the results must know.
func (h HA) note() string {
	text := fmt.Sprintf("%s after a node has failed, its VMs that are not exempt are powered on elsewhere",
		unit.Duration(h.After))
	if h.Rebuild > 0 {
		text += fmt.Sprintf(", and for %s a rebuild takes %s of the other nodes' storage", unit.Duration(h.Rebuild),
			unit.Percent(h.Load))
	}
	return "High availability: " + text + "."
}

// failed is told that a node went off with these VMs on it. The world's lock must be held.
func (in *injector) failed(node int, vms []string) {
	if in.c.w.o.HA.After <= 0 || in.c.closed {
		return
	}
	in.group.Go(func() {
		if in.c.spend(in.ctx, in.c.w.o.HA.After) == nil {
			in.restart(node, vms)
			in.rebuild(node)
		}
	})
}

// retry is how often a cluster without any node that is ready looks whether one is.
const retry = 10 * time.Second

// restart powers the VMs of a failed node on again, as soon as a node is ready.
func (in *injector) restart(node int, vms []string) {
	c := in.c
	ready, booting, left := c.failover(vms)
	for ; !ready; ready, booting, left = c.failover(vms) {
		if c.spend(in.ctx, retry) != nil {
			return
		}
	}
	if len(booting)+left == 0 {
		return
	}
	text := fmt.Sprintf("high availability powers on VMs of %s: %d", nodeName(node), len(booting))
	if left > 0 {
		text += fmt.Sprintf("; no node has the memory for %d more", left)
	}
	in.tell(-1, result.PowerOn, text, "")
	in.group.Go(func() {
		stopped := c.spend(in.ctx, c.w.o.Boot) != nil
		for _, name := range booting {
			c.failedOver(name, !stopped)
		}
	})
}

// failover gives the VMs that are off, and not exempt, a node that is ready and has the memory. It returns whether
// there is any such node, who boots there, and how many do not fit.
func (c *cluster) failover(vms []string) (ready bool, booting []string, left int) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	free := make([]int64, len(c.w.nodes)) // below 0: not ready
	for i, n := range c.w.nodes {
		if free[i] = -1; n.on && !c.w.clock.Now().Before(n.ready) {
			free[i], ready = c.w.o.MemoryBytes, true
		}
	}
	for _, run := range c.w.runs {
		for _, m := range run.machines {
			if m.Power == target.On || m.failover {
				free[m.Node] -= m.memory
			}
		}
	}
	for _, name := range vms {
		m := c.machines[name]
		if m == nil || m.haOff || !m.orphan || m.failover || m.Power == target.On {
			continue
		}
		most := slices.Index(free, slices.Max(free))
		if free[m.Node] >= m.memory {
			most = m.Node // it is back
		}
		if !ready || free[most] < m.memory {
			left++
			continue
		}
		free[most] -= m.memory
		m.Node, m.failover = most, true
		c.w.models.moved(m)
		booting = append(booting, name)
	}
	return ready, booting, left
}

// failedOver ends the boot of a VM: it is on, unless it was powered off or deleted meanwhile or its new node has failed
// as well.
func (c *cluster) failedOver(name string, on bool) {
	c.w.mu.Lock()
	if m := c.machines[name]; m != nil {
		m.failover, on = false, on && m.orphan
	}
	c.w.mu.Unlock()
	if on {
		_ = c.booted(name) // not being there any more is no failure of anybody's
	}
}

// rebuild has the nodes that are on make up for one that still is not.
func (in *injector) rebuild(node int) {
	w := in.c.w
	h := w.o.HA
	w.mu.Lock()
	now, others := w.clock.Now(), 0
	if h.Rebuild > 0 && !w.nodes[node].on {
		for i := range w.nodes {
			if w.nodes[i].on {
				w.storage.Fault(now, perf.Fault{Kind: perf.NoisyNeighbour, Node: i, Factor: h.Load,
					Until: now.Add(h.Rebuild)})
				others++
			}
		}
		w.models.changed()
	}
	w.mu.Unlock()
	if others == 0 {
		return
	}
	rebuilt := "the data of " + nodeName(node) + " are being rebuilt"
	in.tell(-1, "rebuild", rebuilt, "")
	if in.c.spend(in.ctx, h.Rebuild) == nil {
		w.mu.Lock()
		w.models.changed()
		w.mu.Unlock()
		in.tell(-1, "over", "the data of "+nodeName(node)+" are rebuilt", rebuilt)
	}
}
