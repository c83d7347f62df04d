package plan_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/run/plan"
	"plimsoll/scenario"
)

// A workload that reads beyond what was prefilled is refused, unless something else writes there; one on disks that
// nobody prefills is the findings' to tell.
func TestReadsBeyondThePrefill(t *testing.T) {
	const global = "[global]\ntime_based\n"
	for name, c := range map[string]struct {
		read, fill, steps, refused string
	}{
		"all of it": {"[r]\nfilename=/dev/sdb\nsize=512m\nrw=randread\n", "",
			"  - workload.PrefillRun: {workload_name: Read}", ""},
		"processes with parts of their own": {
			"[r]\nfilename=/dev/sdb\nsize=128m\noffset_increment=128m\nnumjobs=4\nrw=read\n", "",
			"  - workload.PrefillRun: {workload_name: Read}",
			`workload "Read" reads 512 MiB of /dev/sdb, of which 384 MiB from byte 134217728 on are not prefilled`},
		"a fill of its own is too short": {"[r]\nfilename=/dev/sdb\nsize=512m\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n", "  - workload.PrefillRun: {workload_name: Fill}",
			"256 MiB from byte 268435456 on are not prefilled"},
		"a fill elsewhere": {"[r]\nfilename=/dev/sdb\noffset=512m\nsize=256m\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n", "  - workload.PrefillRun: {workload_name: Fill}",
			"reads 256 MiB of /dev/sdb, of which 256 MiB from byte 536870912 on"},
		"two fills": {"[r]\nfilename=/dev/sdb\nsize=512m\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n[g]\nfilename=/dev/sdb\noffset=256m\nsize=256m\nrw=write\n",
			"  - workload.PrefillRun: {workload_name: Fill}", ""},
		"the rest is written by a workload": {"[r]\nfilename=/dev/sdb\nsize=512m\nrw=randrw\n",
			"[f]\nfilename=/dev/sdb\nsize=512m\nrw=write\n[g]\nfilename=/dev/sdc\nsize=1m\nrw=write\n",
			"  - workload.PrefillRun: {workload_name: Fill}", ""},
		"no prefill": {"[r]\nfilename=/dev/sdb\nsize=512m\nrw=randread\n", "", "", ""},
		"another disk": {"[r]\nfilename=/dev/sdc\nsize=512m\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n", "  - workload.PrefillRun: {workload_name: Fill}", ""},
		"preconditioned": {"[r]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n",
			"  - workload.PrefillRun: {workload_name: Fill}\n  - workload.Precondition: {workload_name: Read}", ""},
		"preconditioned without passes": {"[r]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n",
			"[f]\nfilename=/dev/sdb\nsize=256m\nrw=write\n", "  - workload.PrefillRun: {workload_name: Fill}\n" +
				"  - workload.Precondition: {workload_name: Read, passes: 0}", "768 MiB from byte 268435456 on"},
	} {
		files := fstest.MapFS{"test.yml": {Data: []byte(`name: reads
display_name: Reads
summary: Reads.
description: Reads.
estimated_runtime: 10
vms: [{G: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 2, size: 1}, nodes: "0", count_per_cluster: 1}}]
workloads:
  - Read: {vm_group: G, config_file: read.fio}
  - Fill: {vm_group: G, config_file: fill.fio}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: G, power_on: True}
` + c.steps + `
run:
  - workload.Start: {workload_name: Read, runtime_secs: 5}
teardown: []
`)}, "read.fio": {Data: []byte(global + c.read)}, "fill.fio": {Data: []byte(global + c.fill + c.read)}}
		if c.fill != "" {
			files["fill.fio"] = &fstest.MapFile{Data: []byte("[global]\n" + c.fill)}
		}
		sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0), Nodes: 4})
		if sc == nil {
			t.Fatal(diagnostics)
		}
		p, err := plan.Build(sc, everything(), plan.Options{Engines: engines})
		said := strings.Join(p.Objections, "\n")
		if (err != nil) != (c.refused != "") || !strings.Contains(said, c.refused) {
			t.Errorf("%s: %v; want %q", name, err, c.refused)
		}
	}
}
