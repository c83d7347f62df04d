package step

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/loads"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// What an estimate assumes where neither the scenario nor the cluster (target.Pace) says.
const (
	AssumedClone     = time.Second       // one VM
	AssumedVMPower   = 2 * time.Second   // a group of VMs, on or off
	AssumedNodeOff   = 10 * time.Second  // until a node is seen to be off
	AssumedNodeOn    = 120 * time.Second // until a node's services are ready
	AssumedMigration = 2 * time.Second   // one VM
)

// horizon is how far beyond its limit a workload is followed, to say how long a limit would do.
const horizon = 24 * time.Hour

// Forecast is the state that a run is expected to have while its steps are gone through in their order. Every step's
// Estimate moves it on.
type Forecast struct {
	View
	Phase scenario.Phase
	Now   time.Duration // since the run began
	// Unknown is set by an Estimate that cannot say how long its step takes: what it returns is the longest that the
	// step is given. Whoever asks clears it before.
	Unknown bool
	// Rehearsal says how long load takes; nil where nothing can.
	Rehearsal workload.Rehearsal

	VMs             []PlannedVM // every machine that is ever made, in order
	PeakVMs         int
	PeakLoads       int // workloads running at once, each counted on every VM that runs it; prefills left out
	PeakDepth       int // operations that these keep outstanding at most
	PeakDisks       int // data disks of VMs at once, those of templates left out
	PeakDiskBytes   int64
	PeakMemoryBytes int64
	Warnings        []string
	Objections      []string // why the run would fail

	now     *string // warnings' subject
	groups  map[string]*foreseenGroup
	off     map[int]bool
	loads   map[string]*foreseenLoad
	started []string
	depths  map[string]int // of prefills, by workload
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
	Step        int     `json:"step,omitempty"`  // of the plan, that makes it
}

type foreseenGroup struct {
	members  []target.Placement
	template bool
	on       bool
	exempt   bool // from restarts on other nodes
}

// foreseenLoad is the latest start of a workload, or of its prefill.
type foreseenLoad struct {
	name, group string
	starts      int
	settled     bool // waited for or stopped
	prefill     bool
	depth       int            // of one VM
	jobs        map[string]int // of the rehearsal, by VM
	known       bool           // it ends at end
	end         time.Duration  // when it ends at the latest; 0: nothing bounds it
	expected    time.Duration  // its begin, stagger and runtime_secs; 0: it was given no runtime
}

// NewForecast returns the state before the first step.
func NewForecast(v View) *Forecast {
	return &Forecast{View: v, groups: map[string]*foreseenGroup{}, off: map[int]bool{},
		loads:  map[string]*foreseenLoad{},
		depths: map[string]int{}}
}

// Subject names what warnings are about, until the next call.
func (f *Forecast) Subject(text string) { f.now = &text }

func (f *Forecast) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, f.subject(fmt.Sprintf(format, args...)))
}

// subject puts before a text what it is about.
func (f *Forecast) subject(text string) string {
	if f.now != nil {
		return *f.now + ": " + text
	}
	return text
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
			Name: m.Name, Group: name, Node: m.Node, CPUs: decl.CPUs, MemoryBytes: decl.MemoryBytes, DiskBytes: disks,
			Grown: grown,
		})
	}
	g.members = append(g.members, members...)
	f.measure()
}

// measure updates the peaks. Templates hold disks and no memory; machines that are off hold disks.
func (f *Forecast) measure() {
	var vms, disks int
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
		disks += len(g.members) * len(f.Disks(decl))
		if g.template && !f.Facts.EmptyTemplates {
			n++
		}
		disk += n * each
		if g.on {
			memory += int64(len(g.members)) * decl.MemoryBytes
		}
	}
	f.PeakVMs = max(f.PeakVMs, vms)
	f.PeakDisks = max(f.PeakDisks, disks)
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
		f.lose(func(group string, _ target.Placement) bool { return group == name })
	}
}

// stranded warns of a wait for a group of which VMs are on nodes that are off, where nothing restarts them elsewhere.
func (f *Forecast) stranded(name string, limit time.Duration) {
	g := f.group(name)
	i := slices.IndexFunc(g.members, func(m target.Placement) bool { return f.off[m.Node] })
	if i >= 0 && (g.exempt || !f.Facts.Can(target.NodeFailover)) {
		why := "they are exempt by disable_ha"
		if !g.exempt {
			why = cmp.Or(f.Facts.Missing[target.NodeFailover], "not on this target")
		}
		text := fmt.Sprintf("group %q is waited for while node %d, where VMs of it are, is off, and nothing restarts "+
			"them elsewhere (%s): after %s the run would fail; lab, kubernetes and sim can restart them", name,
			g.members[i].Node, why, unit.Duration(limit))
		f.Objections = append(f.Objections, f.subject(text))
	}
}

// deleteAll forgets every machine.
func (f *Forecast) deleteAll() {
	f.lose(func(string, target.Placement) bool { return true })
	for _, g := range f.groups {
		for _, m := range g.members {
			if f.Rehearsal != nil {
				f.Rehearsal.Forget(f.Now, m.Name)
			}
		}
		*g = foreseenGroup{}
	}
}

// begin enters a start of a workload, or of its prefill, whose last job is launched when stagger has passed.
func (f *Forecast) begin(name, group string, job workload.Job, prefill bool, stagger time.Duration) *foreseenLoad {
	l := f.loads[name]
	if l == nil {
		l = &foreseenLoad{name: name, group: group, prefill: prefill}
		f.loads[name] = l
		f.started = append(f.started, name)
	}
	if l.starts > 0 {
		f.warn("workload %q is started again: a second run of it, recorded as its start %d", name, l.starts+1)
	}
	l.starts++
	l.settled, l.known, l.end, l.expected, l.depth = false, timed(job), 0, 0, 0
	l.jobs = map[string]int{}
	if job.Limit > 0 {
		l.end = f.Now + stagger + job.Limit
	}
	for _, stream := range job.Streams {
		l.depth += stream.Depth
	}
	f.crowd()
	if n := f.needMembers(group); n > 0 && !f.group(group).on && len(f.off) == 0 {
		f.warn("the VMs of group %q are off at this point; power them on first", group)
	}
	return l
}

// launch starts a load on one VM of its group.
func (f *Forecast) launch(l *foreseenLoad, at time.Duration, m target.Placement, job workload.Job) {
	if f.Rehearsal != nil && len(job.Streams) > 0 {
		l.jobs[m.Name] = f.Rehearsal.Start(at, m.Name, m.Node, job)
	}
}

// until rehearses until something holds, at most until limit, and returns when that is.
func (f *Forecast) until(limit time.Duration, holds func() bool) (at time.Duration, ok bool) {
	for at = f.Rehearsal.Advance(f.Now); at < f.Now; {
		at = f.Rehearsal.Advance(f.Now)
	}
	for !holds() {
		if at >= limit {
			return at, false
		}
		at = f.Rehearsal.Advance(limit)
	}
	return at, true
}

// running is on how many VMs a load runs at the time that the rehearsal has come to.
func (f *Forecast) running(l *foreseenLoad) int {
	n := 0
	for _, job := range l.jobs {
		if !f.Rehearsal.Ended(job) {
			n++
		}
	}
	return n
}

// over reports whether a load has ended by now. One of which nobody can say that runs until it is waited for.
func (f *Forecast) over(l *foreseenLoad) bool {
	switch {
	case l.known:
		return l.end <= f.Now
	case len(l.jobs) == 0:
		return l.settled
	}
	_, over := f.until(f.Now, func() bool { return f.running(l) == 0 })
	return over
}

// crowd updates how much runs at once. Prefills do not count: they have a limit of their own.
func (f *Forecast) crowd() {
	loads, depth := 0, 0
	for _, l := range f.loads {
		if l.prefill || f.over(l) {
			continue
		}
		n := len(f.group(l.group).members)
		loads += n
		depth += n * l.depth
	}
	f.PeakLoads, f.PeakDepth = max(f.PeakLoads, loads), max(f.PeakDepth, depth)
}

// await enters a wait for a workload and returns how long it is expected to last. The limit counts from the end that
// the start was given, without one from now. Where nothing tells, the wait is taken to last as long as it may.
func (f *Forecast) await(name string, limit time.Duration) time.Duration {
	l := f.loads[name]
	if l == nil {
		f.warn("workload %q was not started before", name)
		return 0
	}
	l.settled = true
	if l.expected > 0 {
		limit = max(0, l.expected+limit-f.Now)
	}
	left, most := l.end-f.Now, ""
	switch {
	case l.known:
	case len(l.jobs) > 0:
		end, over := f.until(f.Now+limit+horizon, func() bool { return f.running(l) == 0 })
		left = end - f.Now
		if !over {
			most = "more than "
		}
	case len(f.group(l.group).members) == 0:
		return 0
	default:
		f.Unknown = true
		if l.end > 0 {
			limit = min(limit, left)
		}
		return max(0, limit)
	}
	if left > limit {
		lead := ""
		if l.expected == 0 && !l.prefill {
			lead = "has no runtime_secs and "
		}
		f.warn("workload %q %sis expected to take %s%s, but is given %s",
			name, lead, most, unit.Duration(left.Round(time.Second)), unit.Duration(limit))
	}
	return min(max(0, left), limit)
}

// stop enters the stop of a workload.
func (f *Forecast) stop(name string) {
	l := f.loads[name]
	if l == nil {
		f.warn("workload %q was not started before", name)
		return
	}
	f.halt(l)
}

// halt ends a load now, on every VM.
func (f *Forecast) halt(l *foreseenLoad) {
	for _, job := range l.jobs {
		f.Rehearsal.Stop(f.Now, job)
	}
	l.settled, l.known, l.end = true, true, f.Now
}

// Unsettled lists the workloads that are still expected to run now and that no step has waited for or stopped.
func (f *Forecast) Unsettled() []string {
	var open []string
	for _, name := range f.started {
		if l := f.loads[name]; !l.settled && !f.over(l) {
			open = append(open, name)
		}
	}
	return open
}

// SettleAll ends the workloads that still run when the run phase ends.
func (f *Forecast) SettleAll() {
	for _, l := range f.loads {
		if !f.over(l) {
			f.halt(l)
		}
	}
}

// switchOff enters nodes that lose power, and with them what runs on their VMs. Where those VMs come back by
// themselves, and what a rebuild takes of the storage, is nobody's to say.
func (f *Forecast) switchOff(nodes []int) {
	for _, n := range nodes {
		f.off[n] = true
	}
	f.lose(func(_ string, m target.Placement) bool { return f.off[m.Node] })
	restarts := false
	for _, g := range f.groups {
		restarts = restarts || f.Facts.Can(target.NodeFailover) && !g.exempt &&
			slices.ContainsFunc(g.members, func(m target.Placement) bool { return f.off[m.Node] })
	}
	if f.Rehearsal != nil && (restarts || !f.Rehearsal.LosePower(nodes)) {
		f.doubt()
	}
}

// doubt ends the rehearsal: from now on nothing can say how long load takes.
func (f *Forecast) doubt() {
	for _, l := range f.loads {
		if f.over(l) {
			f.halt(l)
		}
		clear(l.jobs)
	}
	f.Rehearsal = nil
}

// lose ends what runs on VMs that are lost. A load that has no VM left has ended.
func (f *Forecast) lose(lost func(group string, m target.Placement) bool) {
	for _, l := range f.loads {
		if f.over(l) {
			continue
		}
		left := false
		for _, m := range f.group(l.group).members {
			job, runs := l.jobs[m.Name]
			switch {
			case !lost(l.group, m):
				left = true
			case runs:
				f.Rehearsal.Stop(f.Now, job)
			}
		}
		if !left {
			f.halt(l)
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

// start enters a start of a workload and returns how long its step lasts.
func (f *Forecast) start(load scenario.Workload, o loads.Options, limit time.Duration, async bool) time.Duration {
	members := f.group(load.Group).members
	stagger := o.Stagger
	if len(members) < 2 {
		stagger = 0 // there is nobody to wait for
	}
	job := f.job(JobUse{Workload: load.Name, Runtime: o.Runtime})
	l := f.begin(load.Name, load.Group, job, false, stagger)
	if o.Runtime > 0 {
		l.expected = f.Now + o.Runtime + stagger
	}
	for i, offset := range loads.Offsets(len(members), stagger) {
		f.launch(l, f.Now+offset, members[i], job)
	}
	if async {
		return stagger
	}
	f.Now += stagger
	defer func() { f.Now -= stagger }()
	return stagger + f.await(load.Name, limit)
}

// prefill enters a prefill of so many members at a time, each within the limit, and returns how long its step lasts. A
// width of 0 is a prefill of all members at once.
func (f *Forecast) prefill(load scenario.Workload, width int, limit time.Duration, async bool) time.Duration {
	if _, decided := f.depths[load.Name]; !decided {
		f.depths[load.Name] = prefillDepthOf(f.View, load, width)
	}
	use := JobUse{Workload: load.Name, Prefill: true, Depth: f.depths[load.Name]}
	return f.prepare(loads.PrefillName(load.Name), load.Group, use, width, limit, async)
}

// prepare is prefill for a use of a workload that writes.
func (f *Forecast) prepare(name, group string, use JobUse, width int, limit time.Duration, async bool) time.Duration {
	members := f.group(group).members
	if width <= 0 {
		width = max(1, len(members))
	}
	job := f.job(use)
	l := f.begin(name, group, job, true, 0)
	at := f.Now
	for i, m := range members {
		if i >= width && len(l.jobs) == i {
			at, _ = f.until(at+limit, func() bool { return f.running(l) < width })
		}
		f.launch(l, at, m, job)
	}
	switch {
	case async:
		return 0
	case len(l.jobs) > 0:
		limit += at - f.Now
	default: // every turn may take its limit
		limit *= time.Duration((len(members) + width - 1) / width)
	}
	return f.await(l.name, limit)
}
