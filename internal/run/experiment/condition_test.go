package experiment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/run/experiment"
	"plimsoll/scenario"
)

// Each condition's run, step by step, of a scenario that runs two workloads beside each other.
func TestConditions(t *testing.T) {
	t.Parallel()
	start := func(name string, secs float64) scenario.Step {
		return scenario.Step{Name: "workload.Start", Phase: scenario.Run,
			Args: scenario.Args{"workload_name": name, "runtime_secs": secs, "async": true}}
	}
	sc := func() *scenario.Scenario {
		return &scenario.Scenario{
			Workloads: []scenario.Workload{{Name: "OLTP", Group: "A"}, {Name: "Batch", Group: "B"},
				{Name: "Idle", Group: "B"}},
			Setup: []scenario.Step{{Name: "vm_group.CloneFromTemplate"}},
			Run: []scenario.Step{start("OLTP", 10), {Name: "test.Wait"}, start("OLTP", 300), start("Batch", 60),
				{Name: "workload.Wait"}},
		}
	}
	for _, x := range []struct {
		condition experiment.Condition
		want      string
	}{
		{"alone", "Start OLTP 300"},
		{"with Batch", "Start Batch 320 async; Wait 10; Start OLTP 300; Stop Batch"},
		{"worn-in", "Precondition OLTP; Start OLTP 300"},
		{"migrating", "Start OLTP 300 async; Wait 37.5; MigrateGroup A 0 -1; Wait 37.5; ResetGroupPlacement A; " +
			"Wait 37.5; MigrateGroup A 0 -1; Wait 37.5; ResetGroupPlacement A; Wait OLTP"},
		{"node-lost", "EnableHA A; PowerOff -1; WaitForPowerOn A; Start OLTP 300; PowerOn -1"},
		{"node-lost 2", "EnableHA A; PowerOff 2; WaitForPowerOn A; Start OLTP 300; PowerOn 2"},
		{"node-back", "EnableHA A; PowerOff -1; Wait 60; PowerOn -1; WaitForPowerOn A; Start OLTP 300"},
	} {
		s, before := sc(), sc()
		if err := x.condition.Apply(s, "OLTP"); err != nil {
			t.Errorf("%s: %v", x.condition, err)
			continue
		}
		var got []string
		for _, step := range s.Run {
			_, text, _ := strings.Cut(step.Name, ".")
			for _, name := range []string{"workload_name", "vm_group_name", "nodes", "from_node", "to_node",
				"runtime_secs", "duration_secs"} {
				if step.Args.Has(name) {
					text += fmt.Sprintf(" %v", step.Args[name])
				}
			}
			if step.Args.Bool("async") {
				text += " async"
			}
			if got = append(got, text); step.Phase != scenario.Run {
				t.Errorf("%s: %s belongs to %q", x.condition, text, step.Phase)
			}
		}
		if diff := cmp.Diff(x.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s:\n%s", x.condition, diff)
		}
		if s.Run = before.Run; !cmp.Equal(before, s) {
			t.Errorf("%s changes more than the run", x.condition)
		}
	}
	for condition, want := range map[experiment.Condition]string{
		"with Nobody": `condition "with Nobody": the scenario starts no workload of that name; it has: Batch`,
		"with Idle":   `condition "with Idle": the scenario starts no workload of that name; it has: Batch`,
		"with OLTP":   `condition "with OLTP": "OLTP" is the workload that is measured`,
		"node-lost x": `condition "node-lost x": selector "x": `,
		"sideways":    `condition "sideways" is none of alone, with WORKLOAD, node-lost, node-back, migrating and worn-in`,
	} {
		if err := condition.Apply(sc(), "OLTP"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
	if err := experiment.Alone.Apply(sc(), "Idle"); err == nil {
		t.Error("a workload that is never started has a mark")
	}
}
