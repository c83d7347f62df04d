// Package balance asks whether the work was spread evenly over the CPUs of a run: over nodes that bear the same load,
// over the NUMA nodes of a machine, over the CPUs of one. It gives a view.Check to package analysis, and judges nothing
// where CPUs were not counted.
package balance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// What counts as an imbalance.
const (
	unevenPoints = 25.0 // per cent points between the busiest and the idlest
	unevenTimes  = 2.0
	oneBusy      = 90.0 // per cent of one CPU
	mostly       = 0.5  // share of its time in interrupts from which they are named
)

// use is how much of some CPUs was used.
type use struct {
	view.CPU
	serial.Mean
}

// Imbalance compares the CPUs of nodes that bear the same load, of the NUMA nodes of a machine, and of single CPUs with
// the rest of their machine: one at its limit while another idles makes a server look smaller than it is.
var Imbalance = view.Check{Name: "cpu-imbalance", Rank: 440, Run: imbalance}

func imbalance(v *view.Run) []result.Finding {
	var out []result.Finding
	if cpus := v.CPUs(); !v.OneHost && evenlyPlaced(v, cpus) {
		if f, ok := unevenness(v, cpus, "run", "node"); ok {
			out = append(out, f)
		}
	}
	out = append(out, numaImbalance(v)...)
	if f, ok := hotCPU(v); ok {
		out = append(out, f)
	}
	return out
}

// numaImbalance compares the NUMA nodes of every machine; of several machines it tells of the most uneven.
func numaImbalance(v *view.Run) []result.Finding {
	machines := map[string][]view.CPU{}
	var names []string
	for _, k := range v.Percents(result.NUMACPU) {
		if machines[k.Machine] == nil {
			names = append(names, k.Machine)
		}
		machines[k.Machine] = append(machines[k.Machine], k)
	}
	var worst result.Finding
	found := false
	for _, name := range names {
		f, ok := unevenness(v, machines[name], name, "NUMA node")
		if ok && (!found || *f.Value > *worst.Value) {
			worst, found = f, true
		}
	}
	if !found {
		return nil
	}
	if len(names) > 1 {
		worst.Basis += "; of " + view.Plural(len(names), "machine") + ", the most uneven"
	}
	return []result.Finding{worst}
}

// working is the time in which workloads ran, without as many points at its beginning.
func working(v *view.Run, c *view.Track, without int) (from, to time.Time) {
	var whole view.Load
	for _, l := range v.Loads {
		whole.Parts = append(whole.Parts, l.Parts...)
	}
	from, to = whole.Span()
	return from.Add(time.Duration(float64(without) * c.Step * float64(time.Second))), to
}

// unevenness compares the busiest of some CPUs with the idlest.
func unevenness(v *view.Run, cpus []view.CPU, subject, kind string) (result.Finding, bool) {
	var uses []use
	without := view.Settling
	if kind == "node" { // its series is no rate of counters
		without = 0
	}
	for _, k := range cpus {
		if m, ok := k.During(working(v, k.Track, without)); ok {
			uses = append(uses, use{k, m})
		}
	}
	if len(uses) < 2 {
		return result.Finding{}, false
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(a.Value, b.Value) })
	low, high := uses[0], uses[len(uses)-1]
	f := result.Finding{
		Check: "cpu-imbalance", Subject: subject, Metric: "busiest less idlest", Unit: "% points",
		Value: view.Ptr(high.Value - low.Value), N: len(uses), Limit: view.Ptr(unevenPoints),
		Basis: fmt.Sprintf("mean CPU use of %s while the workloads ran, one run", view.Plural(len(uses), kind)),
	}
	for _, u := range uses {
		f.Evidence = append(f.Evidence, result.Evidence{Name: u.Name, Value: u.Value, Unit: "%"})
	}
	surely := high.Value - low.Value
	if a, b := low.Interval, high.Interval; a.Valid() && b.Valid() {
		// Zou and Donner (2008): limits of a difference from the limits of both.
		down := math.Hypot(high.Value-b.Low, a.High-low.Value)
		up := math.Hypot(b.High-high.Value, low.Value-a.Low)
		f.Low, f.High = view.Ptr(surely-down), view.Ptr(surely+up)
		surely -= down
	} else {
		f.NoInterval = "the series are too short for their own dependence"
	}
	both := fmt.Sprintf("%s used %s of its CPUs and %s %s", high.Name, view.Percent(high.Value/100), low.Name,
		view.Percent(max(0, low.Value)/100))
	if high.Part != "" {
		both = fmt.Sprintf("%s of %s used %s of its CPUs, %s used %s",
			high.Part, high.Machine, view.Percent(high.Value/100), low.Part, view.Percent(max(0, low.Value)/100))
	}
	if surely > unevenPoints && high.Value > unevenTimes*low.Value {
		f.Severity = result.Warning
		f.Sentence = fmt.Sprintf(
			"Load was not balanced: %s. The busier one sets the limit; the system as a whole could do more.", both)
		f.Chart = v.Chart("CPU use", "%", high.Track.Line(high.Name, high.Track.Ops),
			low.Track.Line(low.Name, low.Track.Ops))
		return f, true
	}
	f.Severity = result.Passed
	f.Sentence = fmt.Sprintf("CPU load was balanced: %s.", both)
	return f, true
}

// hotCPU looks for a single CPU at its limit while the rest of its machine idles, as one thread or one interrupt queue
// makes it.
func hotCPU(v *view.Run) (result.Finding, bool) {
	all := v.Percents(result.HostCPUs)
	if !v.OneHost || len(all) != 1 || len(v.Manifest.Nodes) == 0 || v.Manifest.Nodes[0].Cores < 2 {
		return result.Finding{}, false // the number of CPUs is known of this host alone
	}
	mean, ok := all[0].During(working(v, all[0].Track, view.Settling))
	var hot use
	for _, k := range v.Percents(result.OneCPU) {
		if m, fine := k.During(working(v, k.Track, view.Settling)); fine && m.Value > hot.Value {
			hot = use{k, m}
		}
	}
	if !ok || hot.Track == nil {
		return result.Finding{}, false
	}
	n := float64(v.Manifest.Nodes[0].Cores)
	rest := max(0, (n*mean.Value-hot.Value)/(n-1))
	name := hot.Part
	f := result.Finding{
		Check: "cpu-imbalance", Subject: name, Metric: "busiest CPU less the others", Unit: "% points",
		Value: view.Ptr(hot.Value - rest), N: int(n), Limit: view.Ptr(unevenPoints),
		NoInterval: "the busiest of several, found by looking", Basis: "time of every CPU of the host while the workloads ran, whatever used it",
		Evidence: []result.Evidence{
			{Name: name, Value: hot.Value, Unit: "%"},
			{Name: "the others on average", Value: rest, Unit: "%"},
		},
	}
	both := fmt.Sprintf("%s was busy %s of the time and the other %s %s on average", name, view.Percent(hot.Value/100),
		view.SayCount(n-1), view.Percent(rest/100))
	if n == 2 {
		both = fmt.Sprintf("%s was busy %s of the time and the other CPU %s", name, view.Percent(hot.Value/100),
			view.Percent(rest/100))
	}
	if mean.Value >= oneBusy {
		return result.Finding{}, false // all of them were at their limit together
	}
	if hot.Value < oneBusy || hot.Value-rest < unevenPoints || hot.Value < unevenTimes*rest {
		f.Severity, f.Sentence = result.Passed, "No single CPU of the host was the limit: "+both+"."
		return f, true
	}
	f.Severity = result.Warning
	f.Sentence = fmt.Sprintf("One CPU of the host was at its limit: %s. Single-threaded work cannot go beyond that.",
		both)
	for _, k := range v.Percents(result.OneCPUInterrupts) {
		if m, ok := k.During(working(v, k.Track, view.Settling)); ok && k.Machine == hot.Machine &&
			k.Part == hot.Part &&
			m.Value > mostly*hot.Value {
			f.Evidence = append(f.Evidence, result.Evidence{Name: name + " in interrupts", Value: m.Value, Unit: "%"})
			f.Sentence = fmt.Sprintf(
				"One CPU of the host was at its limit: %s. It spent %s of the time in interrupts: spread them over more queues or CPUs.",
				both, view.Percent(m.Value/100))
		}
	}
	f.Chart = v.Chart("CPU use", "%", hot.Track.Line(name, hot.Track.Ops),
		all[0].Track.Line("all CPUs", all[0].Track.Ops))
	return f, true
}

// evenlyPlaced reports whether every node with a series bears as many parts of every workload as every other.
func evenlyPlaced(v *view.Run, cpus []view.CPU) bool {
	if len(cpus) < 2 {
		return false
	}
	for _, l := range v.Loads {
		on := map[int]int{}
		for _, p := range l.Parts {
			on[p.Node]++
		}
		for _, k := range cpus {
			if k.Node < 0 || on[k.Node] == 0 || on[k.Node] != on[cpus[0].Node] {
				return false
			}
		}
	}
	return true
}
