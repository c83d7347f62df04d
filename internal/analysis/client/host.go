package client

import (
	"fmt"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// hostBusy is from where on the CPUs of a machine are taken to be used up, whoever uses them.
const hostBusy = 90.0 // per cent

// stolen is from where on it is told that a hypervisor gave the CPUs to others.
const stolen = 5.0 // per cent

// Host tells where all CPUs of the one machine that everything shared were busy: then what was measured may be their
// limit, whatever each generator by itself used.
var Host = view.Check{Name: "host-cpu", Rank: 245, Run: hostCPU}

func hostCPU(v *view.Run) []result.Finding {
	names, most, taken := hostUsedUp(v)
	if len(names) == 0 {
		return uncounted(v)
	}
	which := "All CPUs of the host together were"
	if len(v.Manifest.Nodes) > 0 && v.Manifest.Nodes[0].Cores == 1 {
		which = "The one CPU of the host was"
	}
	f := result.Finding{
		Check: "host-cpu", Severity: result.Warning, Subject: "run", Metric: "CPU use of the host", Unit: "%",
		Value: view.Ptr(most), N: len(names), Limit: view.Ptr(hostBusy),
		NoInterval: "a mean over the measured time of what the kernel counts",
		Basis:      "time of all CPUs of the host while the workloads ran, whatever used it",
		Evidence:   []result.Evidence{{Name: "CPU use of the host", Value: most, Unit: "%"}},
		Sentence: fmt.Sprintf("%s busy %s of the time while %s ran: rates and latencies may be limited by CPU, and a "+
			"co-running workload takes CPU time first of all.", which, view.Percent(most/100), view.Three(names)),
	}
	if taken >= stolen {
		f.Evidence = append(f.Evidence, result.Evidence{Name: "taken by other machines", Value: taken, Unit: "%"})
		f.Sentence = fmt.Sprintf("%s busy %s of the time while %s ran, %s of it with other guests of the same "+
			"hypervisor (steal): rates and latencies are those of a machine that was not given its CPUs.", which,
			view.Percent(most/100), view.Three(names), view.Percent(taken/most))
	}
	return []result.Finding{f}
}

// hostUsedUp are the workloads during which the CPUs of the one machine were used up, the most that they were busy, and
// the most that its hypervisor gave to others meanwhile, both in per cent.
func hostUsedUp(v *view.Run) (names []string, most, taken float64) {
	for _, l := range v.Loads {
		if use, ok := hostUse(v, l); ok && use >= hostBusy {
			names, most = append(names, l.Name), max(most, use)
			for _, s := range v.Percents(result.HostSteal) {
				if m, ok := s.Over(l); ok {
					taken = max(taken, m.Value)
				}
			}
		}
	}
	return names, most, taken
}

// hostUse is how busy the CPUs of the one machine were while a workload ran, in per cent; false where that was not
// counted.
func hostUse(v *view.Run, l *view.Load) (float64, bool) {
	all := v.Percents(result.HostCPUs)
	if !v.OneHost || len(all) != 1 {
		return 0, false
	}
	use, ok := all[0].Over(l)
	return use.Value, ok
}

// mostUncounted is the share of the time without counters of the machine from which on it is told.
const mostUncounted = 0.25

// uncounted tells where this machine's counters are missing for much of the time though they are read by the program
// that runs on it: that program then waited for a CPU, and what it says of servers and machines misses just the time
// in which they were busiest.
func uncounted(v *view.Run) []result.Finding {
	all := v.Percents(result.HostCPUs)
	if !v.OneHost || len(all) != 1 {
		return nil
	}
	var names []string
	most := 0.0
	for _, l := range v.Loads {
		n, step, there, seconds := 0, all[0].Track.Step, 0, 0.0
		for _, t := range l.Times() {
			some, _ := view.FiniteOf(all[0].Track.Between(t.Start, t.End).Ops)
			there, seconds = there+len(some), seconds+t.End.Sub(t.Start).Seconds()
		}
		if n = int(seconds / step); n < 10 {
			continue
		}
		if missing := 1 - float64(there)/float64(n); missing >= mostUncounted {
			names, most = append(names, l.Name), max(most, missing)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []result.Finding{{
		Check: "host-cpu", Severity: result.Warning, Subject: "run", Metric: "time without counters of the host",
		Unit: "%", Value: view.Ptr(100 * most), N: len(names), Limit: view.Ptr(100 * mostUncounted),
		NoInterval: "counted, not sampled", Basis: "counters of the host, which are read every second",
		Sentence: fmt.Sprintf("Counters of the host are missing for %s of the time while %s ran: plimsoll itself was not "+
			"given a CPU to read them. CPU was the limit, and what is known of the host and of servers is of the rest of the "+
			"time only.", view.Percent(most), view.Three(names)),
	}}
}
