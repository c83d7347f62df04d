package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/clock"
	"plimsoll/internal/drivers"
	"plimsoll/internal/workload/dd"
)

// commits is a scenario whose workload is the worked example of an engine.
const commits = `
name: commits
display_name: Commits of a log
summary: s
description: ""
estimated_runtime: 60
vms:
  - Base: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: "0", data_disks: {count: 1, size: 1}}
workloads:
  - Log: {vm_group: Base, generator: dd, config_file: log.dd, iogen_params: {reporting_interval: 1}}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Base}
  - vm_group.PowerOn: {vm_group_name: Base}
run:
  - workload.Start: {workload_name: Log, runtime_secs: 4}
teardown:
  - cluster.CleanUp: {}
`

// extended is the program with a line more in its registry.
func extended(runs string, add func(*drivers.Registry)) func(...string) (int, string) {
	registry := drivers.All()
	add(&registry)
	return func(args ...string) (int, string) {
		var out bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &out, clock: clock.Real{}, drivers: registry}
		code := a.main(append(args, "--dir", runs))
		return code, out.String()
	}
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said in\n%s", w, text)
		}
	}
}

// TestExampleEngine runs the engine of docs/how-to/add-an-engine.md as users would: its words come through check, plan,
// run and report, though nothing but its one line in the registry knows of it.
func TestExampleEngine(t *testing.T) {
	dir, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	plimsoll := extended(runs, func(r *drivers.Registry) { r.Engines = append(r.Engines, dd.Engine{}) })
	write(t, filepath.Join(dir, "test.yml"), commits)

	write(t, filepath.Join(dir, "log.dd"), "commit 8KiB\ndisk /dev/sdc\n")
	code, text := plimsoll("check", dir)
	if code != 3 {
		t.Errorf("check ends with %d", code)
	}
	says(t, text, `log.dd:2:1: error: `, `the VM has no "/dev/sdc"`)

	write(t, filepath.Join(dir, "log.dd"), "commit 8KiB\n")
	if code, text = plimsoll("run", dir, "--size-scale", "0.016"); code != 0 {
		t.Fatalf("run ends with %d:\n%s", code, text)
	}
	t.Log(text)
	if code, text = plimsoll("report", "latest", "-o", "md"); code != 0 {
		t.Fatalf("report ends with %d:\n%s", code, text)
	}
	says(t, text, "commits/s", "passes")
	if code, text = plimsoll("report", "latest", "-o", "html", "--output", filepath.Join(dir, "r.html")); code != 0 {
		t.Fatalf("report ends with %d:\n%s", code, text)
	}
	page, err := os.ReadFile(filepath.Join(dir, "r.html"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(page), "commits/s", "passes")
}
