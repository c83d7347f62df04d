package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// What counts as an imbalance.
const (
	unevenPoints = 25.0 // per cent points between the busiest and the idlest
	unevenTimes  = 2.0
	oneBusy      = 90.0 // per cent of one CPU
	mostly       = 0.5  // share of its time in interrupts from which they are named
)

// settling is how many points at the beginning of a workload are left out where counters were turned into rates over several points.
const settling = 4

// use is how much of some CPUs was used.
type use struct {
	cpu
	serial.Mean
}

// imbalance compares the CPUs of nodes that bear the same load, of the NUMA nodes of a machine, and of single CPUs with the rest of their
// machine: one at its limit while another idles makes a server look smaller than it is.
func imbalance(v *view) []result.Finding {
	var out []result.Finding
	if cpus := v.cpus(); !v.host && v.evenlyPlaced(cpus) {
		if f, ok := v.unevenness(cpus, "run", "node"); ok {
			out = append(out, f)
		}
	}
	out = append(out, v.numaImbalance()...)
	if f, ok := v.hotCPU(); ok {
		out = append(out, f)
	}
	return out
}

// numaImbalance compares the NUMA nodes of every machine; of several machines it tells of the most uneven.
func (v *view) numaImbalance() []result.Finding {
	machines := map[string][]cpu{}
	var names []string
	for _, k := range v.percents(result.NUMACPU) {
		if machines[k.machine] == nil {
			names = append(names, k.machine)
		}
		machines[k.machine] = append(machines[k.machine], k)
	}
	var worst result.Finding
	found := false
	for _, name := range names {
		f, ok := v.unevenness(machines[name], name, "NUMA node")
		if ok && (!found || *f.Value > *worst.Value) {
			worst, found = f, true
		}
	}
	if !found {
		return nil
	}
	if len(names) > 1 {
		worst.Basis += "; of " + plural(len(names), "machine") + ", the most uneven"
	}
	return []result.Finding{worst}
}

// working is the time in which workloads ran, without as many points at its beginning.
func (v *view) working(c *track, without int) (from, to time.Time) {
	var whole load
	for _, l := range v.loads {
		whole.parts = append(whole.parts, l.parts...)
	}
	from, to = whole.span()
	return from.Add(time.Duration(float64(without) * c.step * float64(time.Second))), to
}

// unevenness compares the busiest of some CPUs with the idlest.
func (v *view) unevenness(cpus []cpu, subject, kind string) (result.Finding, bool) {
	var uses []use
	without := settling
	if kind == "node" { // its series is no rate of counters
		without = 0
	}
	for _, k := range cpus {
		if m, ok := k.during(v.working(k.c, without)); ok {
			uses = append(uses, use{k, m})
		}
	}
	if len(uses) < 2 {
		return result.Finding{}, false
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(a.Value, b.Value) })
	low, high := uses[0], uses[len(uses)-1]
	f := result.Finding{
		Check: "cpu-imbalance", Subject: subject, Metric: "busiest less idlest", Unit: "% points", Value: ptr(high.Value - low.Value), N: len(uses), Limit: ptr(unevenPoints),
		Basis: fmt.Sprintf("mean CPU use of %s while the workloads ran, one run", plural(len(uses), kind)),
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
	if high.part != "" {
		both = fmt.Sprintf("%s of %s used %s of its CPUs, %s used %s",
			high.part, high.machine, percent(high.Value/100), low.part, percent(max(0, low.Value)/100))
	}
	if surely > unevenPoints && high.Value > unevenTimes*low.Value {
		f.Severity = result.Caution
		f.Sentence = fmt.Sprintf("The load was not spread evenly: %s. What is measured is the limit of the busier one; the whole could do more.", both)
		f.Chart = v.chart("CPU use", "%", high.c.line(high.name, high.c.ops), low.c.line(low.name, low.c.ops))
		return f, true
	}
	f.Severity = result.Fine
	f.Sentence = fmt.Sprintf("The CPUs were used evenly enough: %s.", both)
	return f, true
}

// hotCPU looks for a single CPU at its limit while the rest of its machine idles, as one thread or one interrupt queue makes it.
func (v *view) hotCPU() (result.Finding, bool) {
	all := v.percents(result.HostCPUs)
	if !v.host || len(all) != 1 || len(v.m.Nodes) == 0 || v.m.Nodes[0].Cores < 2 {
		return result.Finding{}, false // the number of CPUs is known of this host alone
	}
	mean, ok := all[0].during(v.working(all[0].c, settling))
	var hot use
	for _, k := range v.percents(result.OneCPU) {
		if m, fine := k.during(v.working(k.c, settling)); fine && m.Value > hot.Value {
			hot = use{k, m}
		}
	}
	if !ok || hot.c == nil {
		return result.Finding{}, false
	}
	n := float64(v.m.Nodes[0].Cores)
	rest := max(0, (n*mean.Value-hot.Value)/(n-1))
	name := hot.part
	f := result.Finding{
		Check: "cpu-imbalance", Subject: name, Metric: "busiest CPU less the others", Unit: "% points", Value: ptr(hot.Value - rest), N: int(n), Limit: ptr(unevenPoints),
		NoInterval: "the busiest of several, found by looking", Basis: "time of every CPU of the host while the workloads ran, whatever used it",
		Evidence: []result.Evidence{{Name: name, Value: hot.Value, Unit: "%"}, {Name: "the others on average", Value: rest, Unit: "%"}},
	}
	both := fmt.Sprintf("%s was busy %s of the time and the other %s %s on average", name, percent(hot.Value/100), sayCount(n-1), percent(rest/100))
	if n == 2 {
		both = fmt.Sprintf("%s was busy %s of the time and the other CPU %s", name, percent(hot.Value/100), percent(rest/100))
	}
	if hot.Value < oneBusy || hot.Value-rest < unevenPoints || hot.Value < unevenTimes*rest {
		f.Severity, f.Sentence = result.Fine, "No single CPU of the host was the limit: "+both+"."
		return f, true
	}
	f.Severity = result.Caution
	f.Sentence = fmt.Sprintf("One CPU of the host was at its limit: %s. Work that one thread does, and that cannot be spread, ends there.", both)
	for _, k := range v.percents(result.OneCPUInterrupts) {
		if m, ok := k.during(v.working(k.c, settling)); ok && k.machine == hot.machine && k.part == hot.part && m.Value > mostly*hot.Value {
			f.Evidence = append(f.Evidence, result.Evidence{Name: name + " in interrupts", Value: m.Value, Unit: "%"})
			f.Sentence = fmt.Sprintf("One CPU of the host was at its limit: %s. It spent %s of the time in interrupts: spread them over more queues or CPUs.", both, percent(m.Value/100))
		}
	}
	f.Chart = v.chart("CPU use", "%", hot.c.line(name, hot.c.ops), all[0].c.line("all CPUs", all[0].c.ops))
	return f, true
}

// evenlyPlaced reports whether every node with a series bears as many parts of every workload as every other.
func (v *view) evenlyPlaced(cpus []cpu) bool {
	if len(cpus) < 2 {
		return false
	}
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
