package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

const (
	throttled = 5.0  // per cent of a quota's periods from which on it is told
	fullNode  = 90.0 // per cent of a node's CPUs from which on it is told
)

// Starved tells whom CPU time was kept from by something that is no storage: a quota that held processes back, a
// hypervisor that gave the CPUs to others, a node whose CPUs were used up. Each is told where it was counted.
var Starved = view.Check{Name: "cpu-starved", Rank: 247, Run: starved}

func starved(v *view.Run) []result.Finding {
	var out []result.Finding
	doubt := "if that is the server of the load, "
	if len(groupsOfServers(v)) > 0 {
		doubt = ""
	}
	for _, k := range []struct {
		of    []view.CPU
		limit float64
		about func(view.CPU, *view.Load) bool
		// metric and evidence name what was counted, sentence takes the machine, the share and the workloads.
		metric, sentence string
	}{
		{
			v.Percents(result.QuotaThrottled), throttled, quotaOf, "periods in which a CPU quota held back",
			"The CPU quota of %s held processes back in %s of its periods while %s ran (nr_throttled): what they waited " +
				"for it is in rates and latencies, and the storage's part in them cannot be told.",
		},
		{
			v.Percents(result.QuotaThrottled), throttled, quotaOfServer(v), "periods in which a CPU quota held back",
			"The CPU quota of %s held processes back in %s of its periods while %s ran (nr_throttled): " + doubt +
				"what they waited for it is in rates and latencies.",
		},
		{
			stealing(v), stolen, placed(v), "CPU time given to other guests (steal)",
			"Of the CPU time of %s %s went to other guests of its hypervisor (steal) while %s ran: rates and latencies are " +
				"those of a machine that was not given its CPUs.",
		},
		{
			nodes(v), fullNode, placed(v), "CPU use of a node",
			"The CPUs of %s were busy %s of the time while %s ran: rates and latencies may be limited by that node's CPUs, " +
				"not by its storage.",
		},
	} {
		names, worst, loads := starvedOf(v, k.of, k.limit, k.about)
		if len(names) == 0 {
			continue
		}
		out = append(out, result.Finding{
			Check: "cpu-starved", Severity: result.Warning, Subject: view.Three(names), Metric: k.metric, Unit: "%",
			Value: view.Ptr(worst), N: len(names), Limit: view.Ptr(k.limit),
			NoInterval: "a mean over the measured time of what the kernel counts",
			Basis:      "counters of the machines while the workloads ran, whatever used them",
			Evidence:   []result.Evidence{{Name: k.metric, Value: worst, Unit: "%"}},
			Sentence:   fmt.Sprintf(k.sentence, view.Three(names), view.Percent(worst/100), view.Three(loads)),
		})
	}
	return out
}

// starvedOf are the machines that were over the limit, the one that was by most first, how far that was, and the
// workloads that ran meanwhile.
func starvedOf(v *view.Run, machines []view.CPU, limit float64, about func(view.CPU, *view.Load) bool) (
	names []string, worst float64, loads []string,
) {
	most := map[string]float64{}
	for _, l := range v.Loads {
		if l.Verifies() {
			continue
		}
		for _, k := range machines {
			if m, ok := k.Over(l); ok && m.Value >= limit && about(k, l) {
				name := cmp.Or(k.Machine, k.Name)
				if k.Part != "" {
					name = k.Part + " of " + name
				}
				most[name] = max(most[name], m.Value)
				if !slices.Contains(loads, l.Name) {
					loads = append(loads, l.Name)
				}
			}
		}
	}
	for name, value := range most {
		worst, names = max(worst, value), append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b)) })
	return names, worst, loads
}

// servers are the programs of databases, and how the version of such a server begins.
var servers = map[string]string{"postgres": "PostgreSQL", "mariadbd": "MariaDB", "mysqld": "MySQL"}

// onServers are the engines whose load goes to a database, the version of which is not always known.
var onServers = []string{"pg", "pgbench", "tprocc", "tproch", "hammerdb"}

// quotaOf reports whether a quota is one that a workload is under.
func quotaOf(k view.CPU, l *view.Load) bool {
	return !strings.Contains(k.Part, groupMark) && (k.Machine == "host" || slices.ContainsFunc(l.Parts,
		func(p *result.Workload) bool { return p.VM == k.Machine }))
}

// groupMark stands between the program of a control group and its path.
const groupMark = " (cgroup "

// groupsOfServers are the control groups of the servers of loads, as far as they are known.
func groupsOfServers(v *view.Run) (groups []string) {
	for _, f := range v.Manifest.Environment {
		if strings.HasPrefix(f.Group, result.ServerGroup) && f.Name == result.ControlGroup {
			groups = append(groups, f.Value)
		}
	}
	return groups
}

// quotaOfServer reports whether a quota is one of a control group that runs such a server as a workload's load goes to:
// that very server where its group is known, since more than one may run on a machine.
func quotaOfServer(v *view.Run) func(k view.CPU, l *view.Load) bool {
	known := groupsOfServers(v)
	return func(k view.CPU, l *view.Load) bool {
		process, path, group := strings.Cut(k.Part, groupMark)
		path = strings.TrimSuffix(path, ")")
		server := servers[process]
		return group && server != "" && slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return strings.HasPrefix(p.Server, server) || p.Server == "" && slices.Contains(onServers, p.Engine)
		}) && (len(known) == 0 || slices.ContainsFunc(known, func(of string) bool {
			return of == path || strings.HasPrefix(of, path+"/")
		}))
	}
}

// placed reports whether a workload runs on a machine, as far as that is known.
func placed(v *view.Run) func(view.CPU, *view.Load) bool {
	return func(k view.CPU, l *view.Load) bool {
		return v.OneHost || slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			return v.Nodes[p.Node].Name == cmp.Or(k.Machine, k.Name) || p.VM == k.Machine
		})
	}
}

// stealing are the machines that lost CPU time, but the one host that host-cpu tells of.
func stealing(v *view.Run) []view.CPU {
	if _, _, taken := hostUsedUp(v); taken >= stolen {
		return nil
	}
	return v.Percents(result.HostSteal)
}

// nodes are the nodes of a cluster; on one host their CPUs are the host's, which host-cpu tells of.
func nodes(v *view.Run) []view.CPU {
	if v.OneHost {
		return nil
	}
	return v.Percents(result.NodeCPU)
}
