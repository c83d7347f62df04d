package analysis

import (
	"fmt"

	"plimsoll/result"
)

// Shares of the CPU that a generator may use up before it, and not the storage, is what was measured.
const (
	cpuSaturated = 0.90
	cpuHigh      = 0.70
)

// generatorCPU compares what the generators used with what their VMs and nodes have.
func generatorCPU(v *view) []result.Finding {
	perNode := map[int]float64{}
	for _, l := range v.loads {
		for _, p := range l.parts {
			if s := seconds(p); s > 0 && p.VM != "" {
				perNode[v.place(p.Node)] += p.GeneratorCPUSeconds / s
			}
		}
	}
	var out []result.Finding
	for _, l := range v.loads {
		if f, ok := v.generatorOf(l, perNode); ok {
			out = append(out, f)
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

func (v *view) generatorOf(l *load, perNode map[int]float64) (result.Finding, bool) {
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
		node, all := v.nodes[p.Node], perNode[v.place(p.Node)]
		if c := float64(node.Cores); c > 0 && p.VM != "" && all/c > worst {
			known, worst, used, cores, who = true, all/c, all, c, node.Name
			of = "the cores of node " + node.Name + ", all its generators together"
			if v.host {
				who, of = "the host", "the host's cores, all generators together"
			}
		}
	}
	if l.count() == 0 {
		return result.Finding{}, false
	}
	f := result.Finding{
		Check: "generator-cpu", Subject: l.name, Metric: "CPU used by the load generator", Unit: "%", N: n, Basis: l.basis() + "; averages, so short bursts are not seen",
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
		f.Sentence = what + ". The generator was the limit: this result says nothing about the storage. Give " + who + " more CPUs or spread the load."
	case worst >= cpuHigh:
		f.Severity = result.Caution
		f.Sentence = what + ". Service times may include waiting for a CPU."
	default:
		f.Severity = result.Fine
		f.Sentence = what + ", so the generator was not the limit."
	}
	return f, true
}
