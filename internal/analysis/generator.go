package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// Shares of the CPU that a generator may use up before it, and not the storage, is what was measured.
const (
	cpuSaturated = 0.90
	cpuHigh      = 0.70
)

// generatorCPU compares what the generators used with what their VMs and nodes have.
func generatorCPU(v *view) []result.Finding {
	var out []result.Finding
	var unknown []string
	for _, l := range v.loads {
		f, ok := v.generatorOf(l)
		switch {
		case !ok:
		case f.Value == nil && unknown != nil: // said once for all
			unknown = append(unknown, l.name)
		default:
			if f.Value == nil {
				unknown = []string{l.name}
			}
			out = append(out, f)
		}
	}
	for i := range out {
		if f := &out[i]; f.Value == nil && len(unknown) > 1 {
			f.Subject = "run"
			f.Sentence = fmt.Sprintf("What the load generators of %s cost in CPU is not known, so it cannot be ruled out that they were the limit.", some(unknown))
		}
	}
	return out
}

// place is the node whose CPUs a VM uses; the nodes of one host have them in common.
func (v *view) place(node int) int {
	if v.host {
		return 0
	}
	return node
}

// together is how many cores the generators on the CPUs that p's generator uses took on average while p ran. One that ran beside
// p for a part of the time counts for that part.
func (v *view) together(p *result.Workload) float64 {
	sum := 0.0
	for _, l := range v.loads {
		for _, q := range l.parts {
			if q.VM == "" || seconds(q) == 0 || v.place(q.Node) != v.place(p.Node) {
				continue
			}
			if beside := overlap(q.Times(), p.Times()); beside > 0 {
				sum += q.GeneratorCPUSeconds / seconds(q) * beside / seconds(p)
			}
		}
	}
	return sum
}

func (v *view) generatorOf(l *load) (result.Finding, bool) {
	var worst, used, cores float64
	var who, of string
	known, n := false, 0
	for _, p := range l.parts {
		s := seconds(p)
		if s == 0 || !(p.GeneratorCPUSeconds > 0) {
			continue
		}
		n++
		here := p.GeneratorCPUSeconds / s
		if c := float64(v.vms[p.VM].CPUs); c > 0 && here/c >= worst {
			known, worst, used, cores, who, of = true, here/c, here, c, p.VM, "the CPUs of "+p.VM
		}
		node, all := v.nodes[p.Node], v.together(p)
		if c := float64(node.Cores); c > 0 && p.VM != "" && all/c > worst {
			known, worst, used, cores, who = true, all/c, all, c, node.Name
			of = "the cores of node " + node.Name + ", all its generators together"
			if v.host {
				who, of = "the host", "the host's cores, all generators together"
			}
		}
	}
	if !l.reported() {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "generator-cpu", Subject: l.name, Metric: "CPU used by the load generator", Unit: "%", N: n,
		Basis:      l.basis() + "; averages, so short bursts are not seen",
		NoInterval: "one total per process from the operating system",
	}
	if !known {
		f.Severity = result.Notice
		f.Sentence = fmt.Sprintf("What the load generator of %s cost in CPU is not known, so it cannot be ruled out that the generator was the limit.", l.name)
		return f, true
	}
	f.Value, f.Limit = ptr(worst*100), ptr(cpuSaturated*100)
	f.Evidence = []result.Evidence{{Name: "cores used", Value: used, Unit: "count"}, {Name: "cores there", Value: cores, Unit: "count"}}
	what := fmt.Sprintf("The load generator of %s used %s of %s", l.name, percent(worst), of)
	switch {
	case worst >= cpuSaturated:
		f.Severity = result.Blocker
		f.Sentence = fmt.Sprintf("%s. The generator was the limit: this result says nothing about %s. Give %s more CPUs or spread the load.", what, l.server(), who)
	case worst >= cpuHigh:
		f.Severity = result.Caution
		f.Sentence = what + ". Service times may include waiting for a CPU."
	default:
		f.Severity = result.Fine
		f.Sentence = what + ", so the generator was not the limit."
	}
	return f, true
}

// What counts as one busy thread, as one that lacks a CPU and as an idle server.
const (
	threadBusy   = 0.95 // of one CPU, on average over the whole window
	threadMost   = 1.05
	threadWaited = 0.10 // of the time ready and without a CPU
	serverIdle   = 50.0 // per cent of the node's CPUs, or of the device's time
	flat         = 0.10 // coefficient of variation below which throughput is called flat
)

// cpu is the CPU use of one node, in per cent; or of a part of a machine, or of a device.
type cpu struct {
	name          string
	machine, part string // part is "" for all of its CPUs
	node          int    // index; -1 unknown
	c             *track
}

// cpus are the CPU series of the run: those collected for every node, else those of a result of the scenario.
func (v *view) cpus() []cpu {
	var out []cpu
	if out = v.percents(result.NodeCPU); out != nil {
		return out
	}
	for i := range v.d.Panels {
		p := &v.d.Panels[i]
		if p.Kind != "cluster" || p.Unit != "%" || !strings.HasPrefix(p.Type, "CpuUsage") {
			continue
		}
		for k := range p.Series {
			one, ok := v.percent(&p.Series[k])
			if !ok {
				continue
			}
			out = append(out, one)
			if n := len(out); len(p.Series) == len(v.m.Nodes) && out[n-1].node < 0 {
				out[n-1].node = v.m.Nodes[k].Index // results list nodes in their order
			}
		}
		return out
	}
	return nil
}

// percents are the series of one name in per cent.
func (v *view) percents(metric string) (out []cpu) {
	for i := range v.d.Series {
		if s := &v.d.Series[i]; s.Measure == metric && s.Unit == "%" {
			if k, ok := v.percent(s); ok {
				out = append(out, k)
			}
		}
	}
	return out
}

func (v *view) percent(s *result.Series) (cpu, bool) {
	if !(s.Step > 0) || !isFinite(s.Step) || len(s.Values) == 0 {
		return cpu{}, false
	}
	c := &track{origin: v.d.Start, start: s.Start, step: s.Step, ops: gaps(len(s.Values))}
	c.add(c.ops, s, nil)
	k := cpu{name: s.Name, machine: s.Machine, part: s.Part, node: -1, c: c}
	for _, n := range v.m.Nodes {
		if n.Name == s.Name {
			k.node = n.Index
		}
	}
	return k, true
}

// over is the mean CPU use while a workload ran.
func (k cpu) over(l *load) (serial.Mean, bool) {
	var values []float64
	for _, t := range l.times() {
		values = append(values, k.c.between(t.Start, t.End).ops...)
	}
	return meanUse(values)
}

func (k cpu) during(from, to time.Time) (serial.Mean, bool) {
	return meanUse(k.c.between(from, to).ops)
}

func meanUse(use []float64) (serial.Mean, bool) {
	values, missing := finiteOf(use)
	if len(values) < 5 || missing > mostGaps {
		return serial.Mean{}, false
	}
	m, err := serial.MeanOf(values, Confidence)
	return m, err == nil
}

// clientLimit looks for a generator whose one thread was busy all the time though its VM had CPUs to spare: a client that draws
// its own progress, or computes what it sends, reaches its limit long before the server does. Where threads were watched, one that was
// always ready and often had no CPU is told too: its waits are in the times of the operations.
func clientLimit(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		var busy, starved []string
		var ran, waited, have float64
		for _, p := range l.parts {
			one, wait := v.busiestThread(p)
			switch {
			case one >= threadBusy && one <= threadMost:
				busy = append(busy, subject(p))
				ran, have = max(ran, one), float64(v.vms[p.VM].CPUs)
			case wait >= threadWaited && one+wait >= threadBusy:
				starved = append(starved, subject(p))
				ran, waited = max(ran, one), max(waited, wait)
			}
		}
		_, limited, _ := l.offered()
		most := (len(l.parts) + 1) / 2
		switch {
		case !l.reported():
		case len(busy) > 0 && len(busy) >= most && limited == 0:
			out = append(out, v.busyClient(l, busy, ran, have))
		case len(starved) > 0 && len(starved) >= most:
			out = append(out, starvedClient(l, starved, ran, waited))
		}
	}
	return out
}

// busiestThread is the share of a CPU that the busiest thread of a generator took, and the share of the time for which it was ready and
// waited for one. Where threads were not watched it is the mean over its processes, and nothing is known of waits. Zeros when its VM
// has no CPU to spare: then the CPUs of the VM are the limit, which is another finding.
func (v *view) busiestThread(p *result.Workload) (ran, waited float64) {
	cpus := float64(v.vms[p.VM].CPUs)
	if p.ThreadBusy != nil && isFinite(*p.ThreadBusy) {
		if p.ThreadWaiting != nil && isFinite(*p.ThreadWaiting) {
			waited = *p.ThreadWaiting
		}
		if cpus <= 1 && waited < threadWaited {
			return 0, 0
		}
		return *p.ThreadBusy, waited
	}
	s, threads := seconds(p), float64(len(p.Lanes))
	if !p.MovesBlocks() {
		return 0, 0 // a lane of others may be any number of threads
	}
	if s == 0 || cpus <= threads || threads == 0 {
		return 0, 0
	}
	return p.GeneratorCPUSeconds / s / threads, 0
}

// watched reports whether the generator's threads were.
func (l *load) watched() bool {
	return slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return p.ThreadBusy != nil })
}

// busyClient says whose limit it was, as far as the servers' CPUs, or the device under the disks of one host, tell.
func (v *view) busyClient(l *load, busy []string, used, have float64) result.Finding {
	f := result.Finding{
		Check: "client-limit", Subject: l.name, Severity: result.Caution, Metric: "busiest thread of the generator", Unit: "count", Value: ptr(used), N: len(l.parts), Limit: ptr(threadBusy),
		NoInterval: "a share of the time accounted by the operating system", Basis: l.basis(),
		Evidence: []result.Evidence{{Name: "CPUs used by one thread", Value: used, Unit: "count"}, {Name: "CPUs of its VM", Value: have, Unit: "count"}},
	}
	even := false
	if c := v.track(l); c != nil {
		values, _ := finiteOf(c.ops)
		if m, sd := meanDeviation(values); len(values) > 10 && m > 0 {
			even = sd/m < flat
			f.Chart = v.chart(l.name+": "+l.main().per, l.main().unit, c.line(l.name, c.ops))
		}
	}
	servers, what, whose := v.cpus(), "the busiest node used %s of its CPUs", "the server's"
	if v.host { // the nodes' CPUs are the generators'
		servers = nil
		if l.movesBlocks() {
			servers, what, whose = v.percents(result.DeviceBusy), "the device under the disks was at work %s of the time",
				"the storage's"
		}
	}
	idle, known := 0.0, false
	for _, k := range servers {
		if m, ok := k.over(l); ok {
			idle, known = max(idle, m.Value), true
		}
	}
	if known {
		f.Evidence = append(f.Evidence, result.Evidence{Name: map[bool]string{false: "busiest node's CPU", true: "device at work"}[v.host], Value: idle, Unit: "%"})
	}
	how := "kept each of its processes at one whole CPU"
	if l.watched() {
		how = "kept one whole CPU busy with a single thread"
	}
	said := fmt.Sprintf("The generator of %s %s (on %s) while its VM has %s", l.name, how, some(busy), sayCount(have))
	switch {
	case known && idle < serverIdle && even:
		f.Severity = result.Blocker
		f.Sentence = fmt.Sprintf("%s, throughput was flat, and "+what+": this is the client's limit, not %s.", said, percent(idle/100), whose)
	case even:
		f.Sentence = said + " and throughput was flat: it may be the client's limit, not " + whose + ". Use more processes, or have it print less."
	default:
		f.Sentence = said + ": it may be the client's limit, not " + whose + ". Use more processes, or have it print less."
	}
	return f
}

// server is what a workload loads, in a sentence.
func (l *load) server() string {
	if l.movesBlocks() {
		return "the storage"
	}
	return "the server"
}

// starvedClient tells of threads that were ready and had no CPU.
func starvedClient(l *load, starved []string, ran, waited float64) result.Finding {
	return result.Finding{
		Check: "client-limit", Subject: l.name, Severity: result.Caution, Metric: "wait of the busiest thread for a CPU", Unit: "%", Value: ptr(100 * waited), N: len(l.parts), Limit: ptr(100 * threadWaited),
		NoInterval: "a share of the time accounted by the operating system", Basis: l.basis(),
		Evidence: []result.Evidence{{Name: "ran", Value: 100 * ran, Unit: "%"}, {Name: "was ready and waited", Value: 100 * waited, Unit: "%"}},
		Sentence: fmt.Sprintf("The busiest thread of the generator of %s was never idle, yet had a CPU only %s of the time and waited %s of it for one (on %s). Its waits are in the times of its operations: CPUs were the limit, not %s.",
			l.name, percent(ran), percent(waited), some(starved), l.server()),
	}
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
