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
			from, to := q.Start, q.End
			if p.Start.After(from) {
				from = p.Start
			}
			if p.End.Before(to) {
				to = p.End
			}
			if beside := to.Sub(from).Seconds(); beside > 0 {
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
