package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// NodeCPU is the name of the CPU series of nodes in result.Data.
const NodeCPU = "node_cpu"

// What counts as one busy thread, as an idle server and as an imbalance.
const (
	threadBusy   = 0.95 // of one CPU, on average over the whole window
	threadMost   = 1.05
	serverIdle   = 50.0 // per cent of the node's CPUs
	flat         = 0.10 // coefficient of variation below which throughput is called flat
	unevenPoints = 25.0 // per cent points between the busiest and the idlest
	unevenTimes  = 2.0
)

// cpu is the CPU use of one node, or one NUMA node, in per cent.
type cpu struct {
	name string
	node int // index; -1 unknown
	c    *course
}

// cpus are the CPU series of the run: those collected for every node, else those of a result of the scenario.
func (v *view) cpus() []cpu {
	var out []cpu
	take := func(s *result.Series) {
		if !(s.Step > 0) || !isFinite(s.Step) || len(s.Values) == 0 {
			return
		}
		c := &course{origin: v.d.Start, start: s.Start, step: s.Step, ops: gaps(len(s.Values))}
		c.add(c.ops, s, nil)
		k := cpu{name: s.Name, node: -1, c: c}
		for _, n := range v.m.Nodes {
			if n.Name == s.Name {
				k.node = n.Index
			}
		}
		out = append(out, k)
	}
	for i := range v.d.Series {
		if s := &v.d.Series[i]; s.Metric == NodeCPU && s.Unit == "%" {
			take(s)
		}
	}
	if out != nil {
		return out
	}
	for i := range v.d.Panels {
		p := &v.d.Panels[i]
		if p.Kind != "cluster" || p.Unit != "%" || !strings.HasPrefix(p.Type, "CpuUsage") {
			continue
		}
		for k := range p.Series {
			take(&p.Series[k])
			if n := len(out); len(p.Series) == len(v.m.Nodes) && out[n-1].node < 0 {
				out[n-1].node = v.m.Nodes[k].Index // results list nodes in their order
			}
		}
		return out
	}
	return nil
}

// over is the mean CPU use while a workload ran.
func (k cpu) over(l *load) (serial.Mean, bool) {
	from, to := l.span()
	values, missing := finiteOf(k.c.between(from, to).ops)
	if len(values) < 5 || missing > mostGaps {
		return serial.Mean{}, false
	}
	m, err := serial.MeanOf(values, Confidence)
	return m, err == nil
}

// clientLimit looks for a generator whose one thread was busy all the time though its VM had CPUs to spare: a client that draws
// its own progress, or computes what it sends, reaches its limit long before the server does.
func clientLimit(v *view) []result.Finding {
	var out []result.Finding
	cpus := v.cpus()
	for _, l := range v.loads {
		var busy []string
		var used, have float64
		for _, p := range l.parts {
			s := seconds(p)
			c := float64(v.vms[p.VM].CPUs)
			threads := float64(len(p.Lanes))
			if s == 0 || c <= threads || threads == 0 {
				continue
			}
			if share := p.GeneratorCPUSeconds / s / threads; share >= threadBusy && share <= threadMost {
				busy = append(busy, subject(p))
				used, have = p.GeneratorCPUSeconds/s, c
			}
		}
		_, limited, _ := l.offered()
		if len(busy) == 0 || len(busy) < (len(l.parts)+1)/2 || limited > 0 || l.count() == 0 {
			continue
		}
		f := result.Finding{
			Check: "client-limit", Subject: l.name, Severity: result.Caution, Metric: "CPU of the generator", Unit: "count", Value: ptr(used), N: len(l.parts), Limit: ptr(threadBusy),
			NoInterval: "one total per process from the operating system", Basis: l.basis(),
			Evidence: []result.Evidence{{Name: "CPUs used", Value: used, Unit: "count"}, {Name: "CPUs of its VM", Value: have, Unit: "count"}},
		}
		even := false
		if c := v.course(l); c != nil {
			values, _ := finiteOf(c.ops)
			if m, sd := meanDeviation(values); len(values) > 10 && m > 0 {
				even = sd/m < flat
				f.Chart = v.chart(l.name+": operations per second", "ops/s", c.line(l.name, c.ops))
			}
		}
		idle, known := 0.0, false
		for _, k := range cpus {
			if m, ok := k.over(l); ok {
				idle, known = max(idle, m.Value), true
			}
		}
		if known {
			f.Evidence = append(f.Evidence, result.Evidence{Name: "busiest node's CPU", Value: idle, Unit: "%"})
		}
		said := fmt.Sprintf("The generator of %s kept each of its processes at one whole CPU (on %s) while its VM has %s", l.name, some(busy), sayCount(have))
		switch {
		case known && idle < serverIdle && even:
			f.Severity = result.Blocker
			f.Sentence = fmt.Sprintf("%s, throughput was flat, and the busiest node used %s of its CPUs: this is the client's limit, not the server's.", said, percent(idle/100))
		case even:
			f.Sentence = said + " and throughput was flat: it may be the client's limit, not the server's. Use more processes, or have it print less."
		default:
			f.Sentence = said + ": it may be the client's limit, not the server's. Use more processes, or have it print less."
		}
		out = append(out, f)
	}
	return out
}

func meanDeviation(x []float64) (mean, deviation float64) {
	if len(x) < 2 {
		return math.NaN(), math.NaN()
	}
	mean = total(x) / float64(len(x))
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(x)-1))
}

// imbalance compares the CPUs of nodes that bear the same load, and of the NUMA nodes of a host: one at its limit while another idles
// makes a server look smaller than it is.
func imbalance(v *view) []result.Finding {
	cpus := v.cpus()
	if len(cpus) < 2 || v.host {
		cpus = slices.DeleteFunc(cpus, func(k cpu) bool { return !numa(k) })
	}
	if len(cpus) < 2 || !numa(cpus[0]) && !v.evenlyPlaced(cpus) {
		return nil
	}
	var whole load
	for _, l := range v.loads {
		whole.parts = append(whole.parts, l.parts...)
	}
	type use struct {
		cpu
		serial.Mean
	}
	var uses []use
	for _, k := range cpus {
		if m, ok := k.over(&whole); ok {
			uses = append(uses, use{k, m})
		}
	}
	if len(uses) < 2 {
		return nil
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(a.Value, b.Value) })
	low, high := uses[0], uses[len(uses)-1]
	f := result.Finding{
		Check: "cpu-imbalance", Subject: "run", Metric: "busiest less idlest", Unit: "% points", Value: ptr(high.Value - low.Value), N: len(uses), Limit: ptr(unevenPoints),
		Basis: fmt.Sprintf("mean CPU use of %s while the workloads ran, one run", plural(len(uses), "node")),
	}
	for _, u := range uses {
		f.Evidence = append(f.Evidence, result.Evidence{Name: u.name, Value: u.Value, Unit: "%"})
	}
	surely := high.Value - low.Value
	if a, b := low.Interval, high.Interval; a.Valid() && b.Valid() {
		// Zou and Donner (2008): limits of a difference from the limits of both.
		down := math.Hypot(high.Value-b.Low, a.High-low.Value)
		up := math.Hypot(b.High-high.Value, low.Value-a.Low)
		f.Low, f.High = ptr(surely-down), ptr(surely+up)
		surely -= down
	} else {
		f.NoInterval = "the series are too short for their own dependence"
	}
	both := fmt.Sprintf("%s used %s of its CPUs and %s %s", high.name, percent(high.Value/100), low.name, percent(max(0, low.Value)/100))
	if surely > unevenPoints && high.Value > unevenTimes*low.Value {
		f.Severity = result.Caution
		f.Sentence = fmt.Sprintf("The load was not spread evenly: %s. What is measured is the limit of the busier one; the whole could do more.", both)
		f.Chart = v.chart("CPU use", "%", high.c.line(high.name, high.c.ops), low.c.line(low.name, low.c.ops))
		return []result.Finding{f}
	}
	f.Severity = result.Fine
	f.Sentence = fmt.Sprintf("The CPUs were used evenly enough: %s.", both)
	return []result.Finding{f}
}

func numa(k cpu) bool { return strings.Contains(strings.ToLower(k.name), "numa") }

// evenlyPlaced reports whether every node with a series bears as many parts of every workload as every other.
func (v *view) evenlyPlaced(cpus []cpu) bool {
	for _, l := range v.loads {
		on := map[int]int{}
		for _, p := range l.parts {
			on[p.Node]++
		}
		for _, k := range cpus {
			if k.node < 0 || on[k.node] == 0 || on[k.node] != on[cpus[0].node] {
				return false
			}
		}
	}
	return true
}
