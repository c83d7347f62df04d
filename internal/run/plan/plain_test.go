package plan_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

const plainScenario = `name: plain
display_name: Plain
summary: S
description: ""
estimated_runtime: 90
results: []
vms:
  - A: {template: any, data_disks: {count: 1, size: 1}, count_per_cluster: 2}
workloads:
  - Work: {vm_group: A, config_file: work.fio}
  - Never: {vm_group: A, config_file: work.fio}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A}
  - vm_group.PowerOn: {vm_group_name: A}
run:
  - workload.Start: {workload_name: Work, runtime_secs: 60}
`

// withWork reads a scenario whose workloads have work.fio.
func withWork(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	sc, diagnostics := scenario.Load(fstest.MapFS{"test.yml": {Data: []byte(text)},
		"work.fio": {Data: []byte("[w]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n")}},
		scenario.LoadOptions{ID: 7, Now: time.Unix(1, 0)})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	return sc
}

// A comparison stands after the set-up, of each workload that is started; a place that has nothing beside its VMs
// refuses it, by its own words.
func TestComparePlain(t *testing.T) {
	sc := withWork(t, plainScenario)
	able := everything()
	able.Capabilities[target.PlainJobs] = "stated"
	p, err := plan.Build(sc, able, plan.Options{Engines: engines, ComparePlain: 6, TimeScale: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		if s.Phase == scenario.Setup || s.Phase == scenario.Run {
			got = append(got, s.Name)
		}
		if s.Name == "workload.ComparePlain" && (!strings.Contains(s.Text, "6 turns of 2 s each way") ||
			s.EstimateSeconds != 24) {
			t.Errorf("%q takes %v s", s.Text, s.EstimateSeconds)
		}
	}
	want := "vm_group.CloneFromTemplate vm_group.PowerOn workload.ComparePlain workload.Start"
	if strings.Join(got, " ") != want {
		t.Errorf("%q: want %q", got, want)
	}
	for _, turns := range []int{-1, 1, 1001} {
		_, err = plan.Build(sc, able, plan.Options{Engines: engines, ComparePlain: turns})
		if err == nil || !strings.Contains(err.Error(), "want 2 to 1000 turns") {
			t.Errorf("%d turns: %v", turns, err)
		}
	}
	none := everything()
	none.Missing = map[target.Capability]string{target.PlainJobs: "its nodes are shut"}
	_, err = plan.Build(sc, none, plan.Options{Engines: engines, ComparePlain: 6})
	if err == nil || !strings.Contains(err.Error(), "jobs beside a VM for step 3: target stated cannot: its nodes are shut") {
		t.Errorf("%v", err)
	}
}
