package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/scenario"
	"plimsoll/unit"
)

// ConditionFactor is the name of the factor that conditions are levels of.
const ConditionFactor = "condition"

// Condition acts on a workload while it is measured. The run of its scenario is replaced: the machines are
// made, filled and removed as the scenario says, and in between only the condition is made, the workload runs once, and
// the condition is undone.
//
//	alone           no other workload runs
//	with NAME       the workload NAME runs beside it, from before it begins until it has ended
//	node-lost       a node (the last one, or N) is off; its VMs were restarted elsewhere, where that is done
//	node-back       that node was off for a minute and has just come back
//	migrating       the VMs of its group that are on the first node move to the last one and back, twice, as it runs
//	worn-in         its disks were written over and over before, until rates were steady (workload.Precondition)
type Condition string

// Fixed conditions.
const (
	Alone    Condition = "alone"
	WornIn   Condition = "worn-in"
	Moving   Condition = "migrating"
	nodeLost           = "node-lost"
	nodeBack           = "node-back"
	with               = "with "
)

// awaySeconds is for how long the node of node-back is off, leadSeconds how long a neighbour runs before the workload
// begins, nodeSeconds the limit for switching a node.
const (
	awaySeconds = 60.
	leadSeconds = 10.
	nodeSeconds = 2400.
)

// Beside is the workload that runs beside, "" for none.
func (c Condition) Beside() string {
	name, ok := strings.CutPrefix(string(c), with)
	if !ok {
		return ""
	}
	return strings.TrimSpace(name)
}

// Nodes is how many nodes it takes at least.
func (c Condition) Nodes() int {
	if kind, _, _ := strings.Cut(string(c), " "); kind == nodeLost || kind == nodeBack || c == Moving {
		return 2
	}
	return 1
}

// Apart reports whether a search may go on with other conditions where a run under this one has failed: it is the
// workload's own, or touches no node. A node that did not come back is missing from all that follows.
func (c Condition) Apart() bool { return c.Nodes() == 1 || c == Moving }

// Apply puts a workload of a scenario under the condition. It replaces the scenario's steps and changes nothing else
// of it; the error says which conditions there are.
func (c Condition) Apply(sc *scenario.Scenario, workload string) error {
	start, ok := startOf(sc, workload)
	if !ok {
		return fmt.Errorf("condition %q: the scenario does not start workload %q", string(c), workload)
	}
	start.Args["async"], start.Args["annotate"] = false, true
	run, group := []scenario.Step{start}, groupOf(sc, workload)
	kind, node, _ := strings.Cut(string(c), " ")
	switch {
	case c == Alone:
	case c == WornIn:
		run = []scenario.Step{step("workload.Precondition", "workload_name", workload), start}
	case c == Moving:
		eighth := step("test.Wait", "duration_secs", start.Args.Float("runtime_secs")/8)
		if eighth.Args["duration_secs"] == 0. {
			return fmt.Errorf("condition %q: the step that starts %q has no runtime_secs", string(c), workload)
		}
		start.Args["async"] = true
		away := step("vm_group.MigrateGroup", "vm_group_name", group, "from_node", int64(0), "to_node", int64(-1))
		back := step("vm_group.ResetGroupPlacement", "vm_group_name", group)
		run = []scenario.Step{start, eighth, away, eighth, back, eighth, away, eighth, back,
			step("workload.Wait", "workload_name", workload)}
	case c.Beside() == workload:
		return fmt.Errorf("condition %q: %q is the workload that is measured", string(c), workload)
	case c.Beside() != "":
		beside, ok := startOf(sc, c.Beside())
		if !ok {
			return fmt.Errorf("condition %q: the scenario starts no workload of that name; it has: %s", string(c),
				cmp.Or(unit.List(others(sc, workload), 12), "no other"))
		}
		if beside.Args["async"], beside.Args["annotate"] = true, true; beside.Args.Has("runtime_secs") {
			beside.Args["runtime_secs"] = start.Args.Float("runtime_secs") + 2*leadSeconds
		}
		run = []scenario.Step{beside, step("test.Wait", "duration_secs", leadSeconds), start,
			step("workload.Stop", "workload_name", c.Beside())}
	case c.Nodes() > 1:
		if node == "" {
			node = "-1"
		}
		nodes, err := scenario.ParseSelector(node)
		if err != nil {
			return fmt.Errorf("condition %q: %w", string(c), err)
		}
		off := step("nodes.PowerOff", "nodes", nodes, "wait_secs", nodeSeconds)
		on := step("nodes.PowerOn", "nodes", nodes, "wait_secs", nodeSeconds)
		ready := step("vm_group.WaitForPowerOn", "vm_group_name", group, "wait_secs", nodeSeconds)
		run = []scenario.Step{step("vm_group.EnableHA", "vm_group_name", group), off, ready, start, on}
		if kind == nodeBack {
			run = []scenario.Step{run[0], off, step("test.Wait", "duration_secs", awaySeconds), on, ready, start}
		}
	default:
		return fmt.Errorf("condition %q is none of alone, with WORKLOAD, node-lost, node-back, migrating and worn-in",
			string(c))
	}
	sc.Run = run
	return nil
}

// startOf is a copy of the step that starts a workload, of the run's the last, which is the one that is measured.
func startOf(sc *scenario.Scenario, workload string) (scenario.Step, bool) {
	for _, steps := range [][]scenario.Step{sc.Run, sc.Setup} {
		for _, s := range slices.Backward(steps) {
			if s.Name == "workload.Start" && s.Args.String("workload_name") == workload {
				s.Args, s.Phase = cloned(s.Args), scenario.Run
				return s, true
			}
		}
	}
	return scenario.Step{}, false
}

func cloned(a scenario.Args) scenario.Args {
	out := scenario.Args{}
	for name, v := range a {
		out[name] = v
	}
	return out
}

// others are the workloads that can run beside one.
func others(sc *scenario.Scenario, workload string) (names []string) {
	for _, w := range sc.Workloads {
		if _, ok := startOf(sc, w.Name); ok && w.Name != workload {
			names = append(names, w.Name)
		}
	}
	return names
}

func groupOf(sc *scenario.Scenario, workload string) string {
	for _, w := range sc.Workloads {
		if w.Name == workload {
			return w.Group
		}
	}
	return ""
}

// step is a step of the run with the arguments that are given, name and value in turn, and the defaults of the others.
func step(name string, given ...any) scenario.Step {
	s := scenario.Step{Name: name, Phase: scenario.Run, Args: scenario.Args{}}
	spec, _ := scenario.LookupStep(name)
	for _, arg := range spec.Args {
		if arg.Default != nil {
			s.Args[arg.Name] = arg.Default
		}
	}
	for i := 0; i < len(given); i += 2 {
		s.Args[given[i].(string)] = given[i+1]
	}
	return s
}
