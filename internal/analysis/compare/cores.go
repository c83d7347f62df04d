package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/result"
)

// Cores are the processors of a side's servers, as the user says.
type Cores struct {
	Physical float64 // 0: not known
	VCPUs    int     // as the server's system counts them
}

// ReadCores reads 8 (cores, and as many vCPUs), 8/16 (cores and the vCPUs on them), or /16 (vCPUs, of cores nothing is
// known).
func ReadCores(text string) (Cores, error) {
	cores, vcpus, both := strings.Cut(text, "/")
	if !both {
		vcpus = cores
	}
	c := Cores{}
	var errs [2]error
	if cores != "" {
		var n int
		n, errs[0] = strconv.Atoi(cores)
		c.Physical = float64(n)
	}
	c.VCPUs, errs[1] = strconv.Atoi(vcpus)
	if errs != [2]error{} || c.VCPUs < 1 || c.Physical < 1 && cores != "" || c.Physical > float64(c.VCPUs) {
		return Cores{}, fmt.Errorf("%q is neither a number of cores such as 8, nor cores and vCPUs such as 8/16, nor "+
			"vCPUs alone such as /16", text)
	}
	return c, nil
}

// Whose processors a rate is divided by.
const (
	ofVMs      = "its VMs"
	ofServer   = "its server's VMs"
	ofDeclared = "declared"
)

// kinds of virtual processors.
const (
	hyperThread = "a hyper-thread"
	wholeCore   = "a core"
	notKnown    = "not known"
)

// normalise sets each workload's throughput against the processors that it had: those of the database servers that
// did the work, else those of its VMs. A virtual processor may be a core on one side and a hyper-thread on the other,
// which alone can halve a rate.
func (d *Document) normalise(sides []Side, declared []Cores) {
	kinds := map[string]bool{}
	for i, s := range sides {
		for _, cell := range allCells([]Side{s}) {
			runs := s.in(cell)
			for _, w := range merged(runs[0].Data, false) {
				n := Normalised{Side: s.Name, Cell: cell, Workload: w.Name, VCPU: notKnown}
				l := loads(runs, w.Name)
				if n.Unit = result.RateUnit(w.Occurred()); len(w.Occurred()) == 0 {
					continue // it counts no operations
				}
				for _, of := range l.of {
					for _, o := range of.Ops {
						if seconds := of.Seconds(); seconds > 0 {
							n.OpsPerSecond += float64(o.Count) / seconds / float64(len(l.of))
						}
					}
				}
				if i < len(declared) && declared[i].VCPUs > 0 {
					n.Of = ofDeclared
					n.cores(declared[i])
				} else if there, of, server := processors(runs[0], w.Group); of == "" {
					d.Notes = append(d.Notes, fmt.Sprintf("What processors the server of %s has is not known (%s): "+
						"say it with --cores, as physical cores or cores/vCPUs, before its rate is set against another's.",
						s.Name, server))
				} else if n.Of = of; there.VCPUs == 0 {
					continue // whose processors nobody counted, as those of an imported output
				} else {
					n.cores(there)
				}
				kinds[n.VCPU] = true
				d.Normalised = append(d.Normalised, n)
			}
		}
	}
	if kinds[hyperThread] && kinds[wholeCore] {
		d.Notes = append(d.Notes, "A virtual processor is a hyper-thread on one side and a whole core on the other: "+
			"compare the rates per physical core, not those per vCPU.")
	}
	d.perCore()
}

// processors are those that a workload of a group had; whose is "" when its server is known by its address only.
func processors(r Run, group string) (c Cores, whose, server string) {
	var servers []string
	for i := range r.Data.Series {
		if s := &r.Data.Series[i]; s.Measure == result.DatabaseTransactions && !slices.Contains(servers, s.Machine) {
			servers = append(servers, s.Machine)
		}
	}
	whose = ofVMs
	inGroup := func(vm result.VM) bool { return vm.Group == group }
	here := inGroup
	if len(servers) > 0 && !slices.ContainsFunc(r.Data.VMs, func(vm result.VM) bool {
		return inGroup(vm) && slices.Contains(servers, vm.Name)
	}) {
		whose, here = ofServer, func(vm result.VM) bool { return slices.Contains(servers, vm.Name) }
	}
	for _, vm := range r.Data.VMs {
		if here(vm) {
			c.VCPUs += vm.CPUs
		}
	}
	if whose == ofServer && c.VCPUs == 0 {
		return c, "", strings.Join(servers, ", ")
	}
	perCore := 0.0
	for _, f := range result.Find(r.Manifest.Environment, result.ThreadsPerCore) {
		perCore = max(perCore, f.Number)
	}
	if perCore > 0 {
		c.Physical = float64(c.VCPUs) / perCore
	}
	return c, whose, ""
}

// cores fills in what one virtual processor is, and the rates per processor.
func (n *Normalised) cores(c Cores) {
	if n.VCPUs = c.VCPUs; c.VCPUs == 0 {
		return
	}
	v := n.OpsPerSecond / float64(c.VCPUs)
	n.PerVCPU = &v
	if c.Physical <= 0 {
		return
	}
	n.VCPU = wholeCore
	if float64(c.VCPUs) > c.Physical {
		n.VCPU = hyperThread
	}
	physical := c.Physical
	each := n.OpsPerSecond / physical
	n.PhysicalCores, n.PerPhysicalCore = &physical, &each
}

// perCore says in words how the sides stand per physical core, where they have unlike processors.
func (d *Document) perCore() {
	for i, n := range d.Normalised {
		first := slices.IndexFunc(d.Normalised, func(o Normalised) bool {
			return o.Workload == n.Workload && o.Cell == n.Cell
		})
		base := d.Normalised[first]
		if first == i || base.Side == n.Side || base.PerPhysicalCore == nil || n.PerPhysicalCore == nil ||
			!(*base.PerPhysicalCore > 0) || base.VCPUs == n.VCPUs && *base.PhysicalCores == *n.PhysicalCores {
			continue
		}
		ratio := func(of, over float64) string {
			digits := max(3, math.Ceil(math.Log10(max(of/over, 1))))
			return strconv.FormatFloat(of/over, 'g', int(digits), 64)
		}
		d.Notes = append(d.Notes, fmt.Sprintf("%s: %s does %s times the rate of %s; per vCPU %s times (%d and %d), "+
			"per physical core %s times (%g and %g).",
			n.Workload, n.Side, ratio(n.OpsPerSecond, base.OpsPerSecond), base.Side,
			ratio(*n.PerVCPU, *base.PerVCPU), n.VCPUs, base.VCPUs, ratio(*n.PerPhysicalCore, *base.PerPhysicalCore),
			*n.PhysicalCores, *base.PhysicalCores))
	}
}
