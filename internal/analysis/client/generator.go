// Package client asks whether the load generator, and not what it was to measure, was the limit: its CPUs, its one busy
// thread, its waiting for a CPU. It gives view.Checks to package analysis, and says where what a generator cost is not
// known.
package client

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Shares of the CPU that a generator may use up before it, and not the storage, is what was measured.
const (
	cpuSaturated = 0.90
	cpuHigh      = 0.70
)

// shortest is how many seconds a load runs at least for its use of CPUs to be one.
const shortest = 1

// CPU compares what the generators used with what their VMs and nodes have.
var CPU = view.Check{Name: "generator-cpu", Rank: 240, Run: generatorCPU}

func generatorCPU(v *view.Run) []result.Finding {
	var out []result.Finding
	var unknown []string
	places := byPlace(v)
	for _, l := range v.Loads {
		if l.Verifies() {
			continue // its answer is what it found, however fast
		}
		f, ok := generatorOf(v, l, places)
		switch {
		case !ok:
		case f.Value == nil && unknown != nil: // said once for all
			unknown = append(unknown, l.Name)
		default:
			if f.Value == nil {
				unknown = []string{l.Name}
			}
			out = append(out, f)
		}
	}
	for i := range out {
		if f := &out[i]; f.Value == nil && len(unknown) > 1 {
			f.Subject = "run"
			f.Sentence = fmt.Sprintf(
				"CPU use of the load generators of %s is not known, so they may have been the limit.",
				view.Three(unknown))
		}
	}
	return out
}

// use is how many core-seconds the generators of a place have taken by each moment at which one of them begins or ends.
type use struct{ steps []useStep }

type useStep struct {
	at    time.Time
	cores float64 // taken from then on; before add has summed them up: how many more
	until float64 // core-seconds
}

// byPlace returns what the generators take on machines that may take each other's CPUs. It is summed up once, however
// many they are: each is then looked at with all that run beside it.
func byPlace(v *view.Run) map[int]*use {
	out := map[int]*use{}
	for _, l := range v.Loads {
		for _, q := range l.Parts {
			s := view.Seconds(q)
			if q.Merged() || s == 0 {
				continue
			}
			place := v.Place(q.Node)
			if out[place] == nil {
				out[place] = &use{}
			}
			for _, t := range q.Times() {
				if t.End.After(t.Start) {
					out[place].steps = append(out[place].steps, useStep{at: t.Start, cores: q.GeneratorCPUSeconds / s},
						useStep{at: t.End, cores: -q.GeneratorCPUSeconds / s})
				}
			}
		}
	}
	for _, u := range out {
		u.sum()
	}
	return out
}

func (u *use) sum() {
	slices.SortStableFunc(u.steps, func(a, b useStep) int { return a.at.Compare(b.at) })
	for i := 1; i < len(u.steps); i++ {
		before, step := u.steps[i-1], &u.steps[i]
		step.until = before.until + before.cores*step.at.Sub(before.at).Seconds()
		step.cores += before.cores
	}
}

// by returns what was taken by a moment.
func (u *use) by(at time.Time) float64 {
	i := sort.Search(len(u.steps), func(i int) bool { return u.steps[i].at.After(at) }) - 1
	if i < 0 {
		return 0
	}
	return u.steps[i].until + u.steps[i].cores*at.Sub(u.steps[i].at).Seconds()
}

// beside is how many cores the generators of a place, p's included, took on average while p ran.
func (u *use) beside(p *result.Workload) (cores float64) {
	if u == nil {
		return 0
	}
	for _, t := range p.Times() {
		if t.End.After(t.Start) {
			cores += (u.by(t.End) - u.by(t.Start)) / view.Seconds(p)
		}
	}
	return cores
}

// machineBusy is how busy a tool says that the processors of its own machine were, in per cent.
func machineBusy(l *view.Load) (busy float64, ok bool) {
	for _, p := range l.Parts {
		for _, m := range p.Measures {
			if v, there := m.Over(p.Values, view.Seconds(p)); there && m.Name == "cpu" && m.Unit == "%" {
				busy, ok = max(busy, v), true
			}
		}
	}
	return busy, ok
}

func generatorOf(v *view.Run, l *view.Load, places map[int]*use) (result.Finding, bool) {
	var worst, used, cores, alone float64
	var who, of string
	known, n, short := false, 0, false
	for _, p := range l.Parts {
		s := view.Seconds(p)
		if s < shortest { // what it took to start is most of what it took
			short = true
			continue
		}
		if !(p.GeneratorCPUSeconds > 0) {
			continue
		}
		n++
		here := p.GeneratorCPUSeconds / s
		alone = max(alone, here)
		if c := cpusOf(v, p.VM); c > 0 && here/c >= worst {
			known, worst, used, cores, who, of = true, here/c, here, c, p.VM, "the CPUs of "+p.VM
		}
		node, all := v.Nodes[p.Node], places[v.Place(p.Node)].beside(p)
		if c := float64(node.Cores); c > 0 && !p.Merged() && all/c > worst {
			known, worst, used, cores, who = true, all/c, all, c, node.Name
			of = "the cores of node " + node.Name + ", all its generators together"
			if v.OneHost {
				who, of = "the host", "the host's cores, all generators together"
			}
		}
	}
	if !l.Reported() || n == 0 && short {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "generator-cpu", Subject: l.Name, Metric: "CPU used by the load generator", Unit: "%", N: n,
		Basis:      l.Basis() + "; averages, so short bursts are not seen",
		NoInterval: "one total per process from the operating system",
	}
	if !known && alone > 0 && view.IsFinite(alone) {
		f.Severity, f.Value, f.Unit = result.Info, view.Ptr(alone), "count"
		f.Evidence = []result.Evidence{{Name: "cores used", Value: alone, Unit: "count"}}
		f.Sentence = fmt.Sprintf("The load generator of %s used %.3g CPUs on average; how many its machine has is not known, "+
			"so it may have been the limit, as one whose processes each use a whole CPU is.", l.Name, alone)
		return f, true
	}
	if busy, ok := machineBusy(l); !known && ok {
		f.Severity, f.Value = result.Info, view.Ptr(busy)
		f.Metric, f.NoInterval = "CPU of the load generator's machine", "one figure of the tool's own"
		f.Sentence = fmt.Sprintf("CPU use of the load generator of %s is not known, only that its machine's processors were "+
			"%s busy on average: it may have been the limit, as one whose threads each use a whole CPU is.", l.Name,
			view.Percent(busy/100))
		if busy >= 100*cpuSaturated {
			f.Severity = result.Warning
		}
		return f, true
	}
	if !known {
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("CPU use of the load generator of %s is not known, so it may have been the limit.",
			l.Name)
		return f, true
	}
	f.Value, f.Limit = view.Ptr(worst*100), view.Ptr(cpuSaturated*100)
	f.Evidence = []result.Evidence{
		{Name: "cores used", Value: used, Unit: "count"},
		{Name: "cores there", Value: cores, Unit: "count"},
	}
	what := fmt.Sprintf("The load generator of %s used %s of %s", l.Name, view.Percent(worst), of)
	switch {
	case worst >= cpuSaturated:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf(
			"%s: it was the limit, and this result says nothing about %s. Give %s more CPUs or spread the load.", what,
			server(l), who)
	case worst >= cpuHigh:
		f.Severity = result.Warning
		f.Sentence = what + ": service times may include waiting for a CPU."
	default:
		f.Severity = result.Passed
		f.Sentence = what + ": it was not the limit."
		if use, ok := hostUse(v, l); ok && use >= hostBusy {
			f.Sentence = what + "; all CPUs of the host were busy, so it may have waited for one."
		}
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

// Limit looks for a generator whose one thread was busy all the time though its VM had CPUs to spare: a client that
// draws its own progress, or computes what it sends, reaches its limit long before the server does. Where threads were
// watched, one that was always ready and often had no CPU is told too: its waits are in the times of the operations.
var Limit = view.Check{Name: "client-limit", Rank: 250, Run: clientLimit}

func clientLimit(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		if l.Verifies() {
			continue
		}
		var busy, starved []string
		var ran, waited, have float64
		for _, p := range l.Parts {
			one, wait := busiestThread(v, p)
			switch {
			case one >= threadBusy && one <= threadMost:
				busy = append(busy, view.Subject(p))
				ran, have = max(ran, one), cpusOf(v, p.VM)
			case wait >= threadWaited && one+wait >= threadBusy:
				starved = append(starved, view.Subject(p))
				ran, waited = max(ran, one), max(waited, wait)
			}
		}
		_, limited, _ := l.Offered()
		most := (len(l.Parts) + 1) / 2
		switch {
		case !l.Reported():
		case len(busy) > 0 && len(busy) >= most && limited == 0:
			out = append(out, busyClient(v, l, busy, ran, have))
		case len(starved) > 0 && len(starved) >= most:
			out = append(out, starvedClient(l, starved, ran, waited))
		}
	}
	return out
}

// cpusOf are the CPUs that a VM can have: those it was given, and where VMs are no more than processes of one host
// those of the host at the most.
func cpusOf(v *view.Run, vm string) float64 {
	have := v.VMs[vm].CPUs
	if nodes := v.Manifest.Nodes; v.OneHost && len(nodes) > 0 && nodes[0].Cores > 0 {
		have = min(have, nodes[0].Cores)
	}
	return float64(have)
}

// busiestThread is the share of a CPU that the busiest thread of a generator took, and the share of the time for which
// it was ready and waited for one. Where threads were not watched it is the mean over its processes, and nothing is
// known of waits. Zeros when its VM has no CPU to spare: then the CPUs of the VM are the limit, which is another
// finding.
func busiestThread(v *view.Run, p *result.Workload) (ran, waited float64) {
	cpus := cpusOf(v, p.VM)
	if p.ThreadBusy != nil && view.IsFinite(*p.ThreadBusy) {
		if p.ThreadWaiting != nil && view.IsFinite(*p.ThreadWaiting) {
			waited = *p.ThreadWaiting
		}
		if cpus <= 1 && waited < threadWaited {
			return 0, 0
		}
		return *p.ThreadBusy, waited
	}
	s, threads := view.Seconds(p), 0.0
	for _, l := range p.Streams {
		threads += float64(max(1, l.Processes))
	}
	if !p.MovesBlocks() {
		return 0, 0 // a stream of others may be any number of threads
	}
	if s == 0 || cpus <= threads || threads == 0 {
		return 0, 0
	}
	return p.GeneratorCPUSeconds / s / threads, 0
}

// watched reports whether the generator's threads were.
func watched(l *view.Load) bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return p.ThreadBusy != nil })
}

// busyClient says whose limit it was, as far as the servers' CPUs, or the device under the disks of one host, tell.
func busyClient(v *view.Run, l *view.Load, busy []string, used, have float64) result.Finding {
	f := result.Finding{
		Check: "client-limit", Subject: l.Name, Severity: result.Warning, Metric: "busiest thread of the generator",
		Unit: "count", Value: view.Ptr(used), N: len(l.Parts), Limit: view.Ptr(threadBusy),
		NoInterval: "a share of the time accounted by the operating system", Basis: l.Basis(),
		Evidence: []result.Evidence{
			{Name: "CPUs used by one thread", Value: used, Unit: "count"},
			{Name: "CPUs of its VM", Value: have, Unit: "count"},
		},
	}
	even := false
	if c := v.Track(l); c != nil {
		values, _ := view.FiniteOf(c.Ops)
		if m, sd := meanDeviation(values); len(values) > 10 && m > 0 {
			even = sd/m < flat
			f.Chart = v.Chart(l.Name+": "+l.Main().Per, l.Main().Unit, c.Line(l.Name, c.Ops))
		}
	}
	servers, what, whose := v.CPUs(), "the busiest node used %s of its CPUs", "the server's"
	if v.OneHost { // the nodes' CPUs are the generators'
		servers = nil
		if l.MovesBlocks() {
			servers, what, whose = v.Percents(
				result.DeviceBusy), "the device under the disks was at work %s of the time",
				"the storage's"
		}
	}
	idle, known := 0.0, false
	for _, k := range servers {
		if m, ok := k.Over(l); ok {
			idle, known = max(idle, m.Value), true
		}
	}
	if known {
		f.Evidence = append(
			f.Evidence,
			result.Evidence{
				Name:  map[bool]string{false: "busiest node's CPU", true: "device at work"}[v.OneHost],
				Value: idle,
				Unit:  "%",
			},
		)
	}
	how := "kept each of its processes at one full CPU"
	if watched(l) {
		how = "kept one CPU busy with a single thread"
	}
	said := fmt.Sprintf("The load generator of %s %s (%s, of %s CPUs)", l.Name, how, view.Three(busy),
		view.SayCount(have))
	switch {
	case known && idle < serverIdle && even:
		f.Severity = result.Invalid
		f.Sentence = fmt.Sprintf("%s, throughput was flat, and "+what+": this is the client's limit, not %s.", said,
			view.Percent(idle/100), whose)
	case even:
		f.Sentence = said + " and throughput was flat: it may be the client's limit, not " + whose +
			". Use more processes, or have it print less."
	default:
		f.Sentence = said + ": it may be the client's limit, not " + whose +
			". Use more processes, or have it print less."
	}
	return f
}

// server returns what a workload loads, in a sentence.
func server(l *view.Load) string {
	if l.MovesBlocks() {
		return "the storage"
	}
	return "the server"
}

// starvedClient tells of threads that were ready and had no CPU.
func starvedClient(l *view.Load, starved []string, ran, waited float64) result.Finding {
	return result.Finding{
		Check: "client-limit", Subject: l.Name, Severity: result.Warning,
		Metric: "wait of the busiest thread for a CPU", Unit: "%", Value: view.Ptr(100 * waited), N: len(l.Parts),
		Limit:      view.Ptr(100 * threadWaited),
		NoInterval: "a share of the time accounted by the operating system", Basis: l.Basis(),
		Evidence: []result.Evidence{
			{Name: "ran", Value: 100 * ran, Unit: "%"},
			{Name: "was ready and waited", Value: 100 * waited, Unit: "%"},
		},
		Sentence: fmt.Sprintf(
			"The busiest thread of the load generator of %s was hardly ever idle, yet ran only %s of the time and waited %s of it for a CPU (on %s). Latencies include those waits: CPUs were the limit, not %s.",
			l.Name, view.Percent(ran), view.Percent(waited), view.Three(starved), server(l)),
	}
}

func meanDeviation(x []float64) (mean, deviation float64) {
	if len(x) < 2 {
		return math.NaN(), math.NaN()
	}
	mean = view.Total(x) / float64(len(x))
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(x)-1))
}
