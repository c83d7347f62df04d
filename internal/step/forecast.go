package step

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/target"
	"plimsoll/scenario"
)

// What an estimate assumes where neither the scenario nor the cluster (target.Pace) says.
const (
	AssumedClone     = time.Second       // one VM
	AssumedVMPower   = 2 * time.Second   // a group of VMs, on or off
	AssumedNodeOff   = 10 * time.Second  // until a node is seen to be off
	AssumedNodeOn    = 120 * time.Second // until a node's services are ready
	AssumedMigration = 2 * time.Second   // one VM
	AssumedBandwidth = 200 << 20         // bytes/s that a node writes or reads in large blocks
)

// Forecast is the state that a run is expected to have while its steps are gone through in their order. Every step's
// Estimate moves it on.
type Forecast struct {
	View
	Phase scenario.Phase
	Now   time.Duration // since the run began
	// Extent is how many bytes one VM writes when the workload, or its prefill, runs to its end; 0 is unknown. May be nil.
	Extent func(workload string, prefill bool) int64
	// Depth is how many operations one VM keeps outstanding at most while the workload runs for so long; 0 is unknown. May be nil.
	Depth func(workload string, runtime time.Duration) int

	VMs             []PlannedVM // every machine that is ever made, in order
	PeakVMs         int
	PeakLoads       int // workloads running at once, each counted on every VM that runs it; prefills left out
	PeakDepth       int // operations that these keep outstanding at most
	PeakDiskBytes   int64
	PeakMemoryBytes int64
	Warnings        []string

	now     *string // warnings' subject
	groups  map[string]*foreseenGroup
	off     map[int]bool
	loads   map[string]*foreseenLoad
	started []string
}

// PlannedVM is a machine that the run will make.
type PlannedVM struct {
	Name        string  `json:"name"`
	Group       string  `json:"group"`
	Node        int     `json:"node"`
	CPUs        int     `json:"cpus"`
	MemoryBytes int64   `json:"memory_bytes"`
	DiskBytes   []int64 `json:"disk_bytes"`
	Grown       bool    `json:"grown,omitempty"` // added to a group that had members already
}

type foreseenGroup struct {
	members  []target.Placement
	template bool
	on       bool
}

type foreseenLoad struct {
	group   string
	starts  int
	settled bool // waited for or stopped
	end     time.Duration
	known   bool // end is known
	depth   int  // of one VM, aPrefill for a prefill
}

// aPrefill is the depth of prefills, which do not count: they have a limit of their own.
const aPrefill = -1

// NewForecast returns the state before the first step.
func NewForecast(v View) *Forecast {
	return &Forecast{View: v, groups: map[string]*foreseenGroup{}, off: map[int]bool{}, loads: map[string]*foreseenLoad{}}
}

// Subject names what warnings are about, until the next call.
func (f *Forecast) Subject(text string) { f.now = &text }

func (f *Forecast) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if f.now != nil {
		text = *f.now + ": " + text
	}
	f.Warnings = append(f.Warnings, text)
}

func (f *Forecast) group(name string) *foreseenGroup {
	g := f.groups[name]
	if g == nil {
		g = &foreseenGroup{}
		f.groups[name] = g
	}
	return g
}

// clone enters new members of a group.
func (f *Forecast) clone(name string, members []target.Placement) {
	g := f.group(name)
	decl, err := f.Groups.Get(name)
	if err != nil {
		return
	}
	disks, grown := f.Disks(decl), len(g.members) > 0
	for _, m := range members {
		f.VMs = append(f.VMs, PlannedVM{
			Name: m.Name, Group: name, Node: m.Node, CPUs: decl.CPUs, MemoryBytes: decl.MemoryBytes, DiskBytes: disks, Grown: grown,
		})
	}
	g.members = append(g.members, members...)
	f.measure()
}

// measure updates the peaks. Templates hold disks and no memory; machines that are off hold disks.
func (f *Forecast) measure() {
	var vms int
	var disk, memory int64
	for name, g := range f.groups {
		decl, err := f.Groups.Get(name)
		if err != nil {
			continue
		}
		var each int64
		for _, b := range f.Disks(decl) {
			each += b
		}
		n := int64(len(g.members))
		vms += len(g.members)
		if g.template {
			n++
		}
		disk += n * each
		if g.on {
			memory += int64(len(g.members)) * decl.MemoryBytes
		}
	}
	f.PeakVMs = max(f.PeakVMs, vms)
	f.PeakDiskBytes = max(f.PeakDiskBytes, disk)
	f.PeakMemoryBytes = max(f.PeakMemoryBytes, memory)
}

// needMembers warns of a step on a group that has no machines yet.
func (f *Forecast) needMembers(name string) int {
	n := len(f.group(name).members)
	if n == 0 {
		f.warn("group %q has no VMs at this point; clone them first", name)
	}
	return n
}

func (f *Forecast) powered(name string, on bool) {
	f.group(name).on = on
	f.measure()
	if !on {
		f.lose(func(group string) bool { return group == name })
	}
}

// deleteAll forgets every machine.
func (f *Forecast) deleteAll() {
	for _, g := range f.groups {
		*g = foreseenGroup{}
	}
}

// begin enters a start of a workload that ends at end, when that is known.
func (f *Forecast) begin(load, group string, end time.Duration, known bool, depth int) {
	l := f.loads[load]
	if l == nil {
		l = &foreseenLoad{group: group}
		f.loads[load] = l
		f.started = append(f.started, load)
	}
	if l.starts > 0 {
		f.warn("workload %q is started again: a second run of it, recorded as its start %d", load, l.starts+1)
	}
	l.starts++
	l.settled, l.end, l.known, l.depth = false, end, known, depth
	f.crowd()
	if n := f.needMembers(group); n > 0 && !f.group(group).on && len(f.off) == 0 {
		f.warn("the VMs of group %q are off at this point; power them on first", group)
	}
}

// crowd updates how much runs at once.
func (f *Forecast) crowd() {
	loads, depth := 0, 0
	for _, l := range f.loads {
		if l.depth == aPrefill || l.known && l.end <= f.Now || !l.known && l.settled {
			continue
		}
		n := len(f.group(l.group).members)
		loads += n
		depth += n * l.depth
	}
	f.PeakLoads, f.PeakDepth = max(f.PeakLoads, loads), max(f.PeakDepth, depth)
}

// settle enters a wait for a workload, or its stop, and returns how long until its end.
func (f *Forecast) settle(load string, stop bool) (left time.Duration, known bool) {
	l := f.loads[load]
	if l == nil {
		f.warn("workload %q was not started before", load)
		return 0, true
	}
	l.settled = true
	if stop {
		l.end, l.known = f.Now, true
	}
	return max(0, l.end-f.Now), l.known
}

// Unsettled lists the workloads that are still expected to run now and that no step has waited for or stopped.
func (f *Forecast) Unsettled() []string {
	var open []string
	for _, name := range f.started {
		if l := f.loads[name]; !l.settled && (!l.known || l.end > f.Now) {
			open = append(open, name)
		}
	}
	return open
}

// SettleAll is what the end of the run phase does to workloads that are still running.
func (f *Forecast) SettleAll() {
	for _, l := range f.loads {
		l.settled = true
	}
}

// switchOff enters nodes that lose power. Workloads all of whose VMs are there end with them.
func (f *Forecast) switchOff(nodes []int) {
	for _, n := range nodes {
		f.off[n] = true
	}
	f.lose(func(group string) bool {
		return !slices.ContainsFunc(f.group(group).members, func(m target.Placement) bool { return !f.off[m.Node] })
	})
}

// lose ends the workloads of groups that have no machine left to run on.
func (f *Forecast) lose(lost func(group string) bool) {
	for _, l := range f.loads {
		if lost(l.group) && (!l.known || l.end > f.Now) {
			l.settled, l.known, l.end = true, true, f.Now
		}
	}
}

// NodesOff lists the nodes that are expected to be off now.
func (f *Forecast) NodesOff() []int {
	var off []int
	for n, is := range f.off {
		if is {
			off = append(off, n)
		}
	}
	slices.Sort(off)
	return off
}

// transfer is how long the given number of VMs of a group take to move that many bytes each.
func (f *Forecast) transfer(group string, bytesEach int64) time.Duration {
	perNode := map[int]int{}
	most := 0
	for _, m := range f.group(group).members {
		perNode[m.Node]++
		most = max(most, perNode[m.Node])
	}
	return time.Duration(float64(bytesEach) * float64(most) / cmp.Or(f.Facts.Pace.BytesPerSecond, AssumedBandwidth) * float64(time.Second)).Round(time.Second)
}

func (f *Forecast) depth(load string, runtime time.Duration) int {
	if f.Depth == nil {
		return 0
	}
	return f.Depth(load, runtime)
}

func (f *Forecast) extent(load string, prefill bool) int64 {
	if f.Extent == nil {
		return 0
	}
	return f.Extent(load, prefill)
}
