package plan_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

// A workload that trims needs disks that can, and the plan says so for the steps that start it; a prefill of the same
// file does not trim.
func TestTrimIsACapability(t *testing.T) {
	files := fstest.MapFS{"test.yml": {Data: []byte(`name: trims
display_name: Trims
summary: Trims.
description: Trims.
estimated_runtime: 10
vms: [{G: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 1}, nodes: "0", count_per_cluster: 1}}]
workloads:
  - Keeps: {vm_group: G, config_file: keep.fio}
  - Trims: {vm_group: G, config_file: trim.fio}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: G, power_on: True}
  - workload.PrefillRun: {workload_name: Trims}
run:
  - workload.Start: {workload_name: Keeps, runtime_secs: 5}
  - workload.Start: {workload_name: Trims, runtime_secs: 5}
  - workload.Start: {workload_name: Trims, runtime_secs: 5}
teardown: []
`)}, "keep.fio": {Data: []byte("[j]\nfilename=/dev/sdb\nrw=randwrite\nsize=16m\n")}}
	for _, rw := range []string{"trim", "randtrim", "trimwrite", "randtrimwrite"} {
		files["trim.fio"] = &fstest.MapFile{Data: []byte("[j]\nfilename=/dev/sdb\nrw=" + rw + "\nsize=16m\n")}
		sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0), Nodes: 4})
		if sc == nil {
			t.Fatal(diagnostics)
		}
		facts := everything()
		facts.Missing = map[target.Capability]string{target.DiskTrim: "disks are files"}
		p, err := plan.Build(sc, facts, plan.Options{Engines: engines})
		var needing []string
		for _, s := range p.Steps {
			if cmp.Equal(s.Requires, []string{string(target.DiskTrim)}) {
				needing = append(needing, fmt.Sprint(s.Number))
			}
		}
		var refused *plan.Refused
		if !errors.As(err, &refused) || len(needing) != 2 {
			t.Fatalf("%s: error %v, steps %v", rw, err, needing)
		}
		want := []string{"scenario needs trim of data disks for steps " + needing[0] + "-" + needing[1] +
			": target stated cannot: disks are files"}
		if diff := cmp.Diff(want, p.Objections); diff != "" {
			t.Errorf("%s: %s", rw, diff)
		}
		facts.Capabilities[target.DiskTrim] = "stated"
		if _, err := plan.Build(sc, facts, plan.Options{Engines: engines}); err != nil {
			t.Errorf("%s: with the capability: %v", rw, err)
		}
	}
}
