package plan_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

// TestGivenDisks: more data disks than there are devices, and larger ones, are refused by name and number.
func TestGivenDisks(t *testing.T) {
	t.Parallel()
	sc, diagnostics := scenario.Load(fstest.MapFS{"test.yml": {Data: []byte(`name: given
display_name: Given
summary: Given.
description: Given.
estimated_runtime: 10
vms: [{G: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 4}, nodes: "0-1", count_per_cluster: 2}}]
workloads: []
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: G, power_on: True}
run:
  - test.Wait: {duration_secs: 1}
teardown: []
`)}}, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0), Nodes: 4})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	const large, small = 1 << 40, 1 << 30
	for name, c := range map[string]struct {
		disks []target.Disk
		want  []string
	}{
		"made to measure": {nil, nil},
		"enough":          {[]target.Disk{{Path: "/dev/sdx", Bytes: large}, {Path: "/dev/sdy", Bytes: large}}, nil},
		"too few": {[]target.Disk{{Path: "/dev/sdx", Bytes: large}}, []string{
			"data disks: the scenario has 2 data disks at a time; devices given for them: 1 (/dev/sdx); give more, or take " +
				"a scenario of fewer VMs"}},
		"too small": {[]target.Disk{{Path: "/dev/sdx", Bytes: large}, {Path: "/dev/sdy", Bytes: small}}, []string{
			`data disks: disk 1 of VM "__curie_test_1_G_0000" is 4 GiB, and /dev/sdy has 1 GiB: give a larger device, or ` +
				"a smaller size scale, or, where a job of fio says no size=, --job-size 1GiB"}},
	} {
		facts := everything()
		facts.DataDisks = c.disks
		p, err := plan.Build(sc, facts, plan.Options{Engines: engines})
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, p.Objections); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
