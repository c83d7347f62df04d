package step

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
	"plimsoll/scenario"
)

// View holds what a step can know before anything is touched.
type View struct {
	Scenario     *scenario.Scenario
	Facts        target.Facts
	Groups       *Groups
	TimeScale    float64 // of durations the author wrote; limits are never scaled
	SizeScale    float64 // of disks
	HostCommands bool    // the operator allows commands on the machine that runs plimsoll
	// Job gives a workload's job on one VM of its group, false where it is not known yet. May be nil.
	Job func(JobUse) (workload.Job, bool)
}

// JobUse is a way in which a workload is used.
type JobUse struct {
	Workload string
	Prefill  bool
	Whole    bool          // of a prefill, as Block: see workload.Spec
	Block    int64         // bytes
	Depth    int           // of a prefill: see workload.Spec
	Runtime  time.Duration // that the step gives it; 0: none
}

// job is View.Job. A job that is not known is taken to run as long as it is told.
func (v View) job(use JobUse) workload.Job {
	if v.Job != nil {
		if job, known := v.Job(use); known {
			return job
		}
	}
	return workload.Job{Limit: use.Runtime}
}

// timed reports whether a job runs for exactly its limit.
func timed(job workload.Job) bool {
	ends := func(s result.Stream) bool { return s.Work > 0 || s.Ends }
	return job.Limit > 0 && !slices.ContainsFunc(job.Streams, ends)
}

// Scaled returns an author's duration in the run's time.
func (v View) Scaled(d time.Duration) time.Duration {
	return time.Duration(math.Round(float64(d) * v.TimeScale))
}

// diskStep rounds scaled disks up, so that a file of exactly the disk's size still fits when a
// generator rounds its own sizes differently.
const diskStep = 1 << 20

// Disks returns the sizes of a group's data disks in this run, bytes.
func (v View) Disks(g scenario.Group) []int64 {
	disks := make([]int64, len(g.DiskBytes))
	for i, b := range g.DiskBytes {
		disks[i] = b
		if v.SizeScale != 1 {
			disks[i] = int64(math.Ceil(float64(b)*v.SizeScale/diskStep)) * diskStep
		}
	}
	return disks
}

// Workload finds a workload of the scenario.
func (v View) Workload(name string) (scenario.Workload, error) {
	for _, w := range v.Scenario.Workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return scenario.Workload{}, fmt.Errorf("workload %q: not declared in the scenario", name)
}

// NodeName names a node for people: by its name, and by its number in scenarios where that is not the end of it.
func (v View) NodeName(i int) string {
	number := fmt.Sprintf("node %d", i)
	if i < 0 || i >= len(v.Facts.Nodes) || v.Facts.Nodes[i].Name == "" {
		return number
	}
	if name := v.Facts.Nodes[i].Name; !strings.HasSuffix(name, strconv.Itoa(i)) {
		return fmt.Sprintf("%s (%s)", name, number)
	}
	return v.Facts.Nodes[i].Name
}

// Groups are a run's VM groups as they are now: vm_group.Grow replaces a group's count. It is safe for concurrent use.
type Groups struct {
	id    int64
	nodes int
	ready []target.Machine

	mu    sync.Mutex
	order []string
	group map[string]scenario.Group
	place map[string][]target.Placement
}

// NewGroups returns the groups as the scenario declares them, on a cluster of the given size. Where machines are there
// already, their groups have these as members.
func NewGroups(sc *scenario.Scenario, nodes int, ready ...target.Machine) *Groups {
	g := &Groups{id: sc.ID, nodes: nodes, ready: ready, group: map[string]scenario.Group{},
		place: map[string][]target.Placement{}}
	for _, decl := range sc.Groups {
		g.order = append(g.order, decl.Name)
		g.group[decl.Name] = decl
	}
	return g
}

// Names lists the groups in the scenario's order.
func (g *Groups) Names() []string { return g.order }

// Get returns a group with the count in force.
func (g *Groups) Get(name string) (scenario.Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	decl, ok := g.group[name]
	if !ok {
		return scenario.Group{}, fmt.Errorf("vm group %q: not declared in the scenario", name)
	}
	return decl, nil
}

// Set replaces a group's declaration.
func (g *Groups) Set(decl scenario.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.group[decl.Name] = decl
	delete(g.place, decl.Name)
}

// Members returns the name and the node of each member the group should have now.
func (g *Groups) Members(name string) ([]target.Placement, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, ok := g.place[name]; ok {
		return m, nil
	}
	decl, ok := g.group[name]
	if !ok {
		return nil, fmt.Errorf("vm group %q: not declared in the scenario", name)
	}
	if len(g.ready) > 0 {
		return g.found(name)
	}
	m, err := place(g.id, decl, g.nodes)
	if err == nil {
		g.place[name] = m
	}
	return m, err
}

// found are the members of a group among the machines that are there already.
func (g *Groups) found(name string) (members []target.Placement, err error) {
	for _, m := range g.ready {
		if m.Group == name {
			members = append(members, target.Placement{Name: m.Name, Node: m.Node})
		}
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("vm group %q: none of the machines that are there has the role %q: give it to some of them",
			name, name)
	}
	return members, nil
}

func place(id int64, decl scenario.Group, nodes int) ([]target.Placement, error) {
	on, err := decl.Place(nodes)
	if err != nil {
		return nil, err
	}
	members := make([]target.Placement, len(on))
	for i, node := range on {
		members[i] = target.Placement{Name: scenario.VMName(id, decl.Name, i), Node: node}
	}
	return members, nil
}
