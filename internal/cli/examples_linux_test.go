package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/folders"
	"plimsoll/internal/workloads/dd"
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
		a := newApp(&console.Console{In: strings.NewReader(""), Out: &out, Err: &out, Clock: clock.Real{}}, registry)
		code := a.main(append(args, "--dir", runs))
		return code, out.String()
	}
}

// says holds a text, wherever its lines are broken, against words that must be in it.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	unbroken := strings.Join(strings.Fields(text), " ")
	for _, w := range words {
		if !strings.Contains(unbroken, w) {
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

// TestExampleTarget runs the place of docs/how-to/add-a-target.md as users would: it is listed and looked at, its
// secret is told nowhere, and a scenario that needs machines made is refused with its own words before anything starts.
func TestExampleTarget(t *testing.T) {
	dir := t.TempDir()
	plimsoll := extended(filepath.Join(dir, "runs"),
		func(r *drivers.Registry) { r.Targets = append(r.Targets, folders.Provider{}) })
	code, text := plimsoll("targets", "list")
	if code != 0 {
		t.Errorf("targets list ends with %d", code)
	}
	says(t, text, "folders", "stand for hosts that are there already", "env:NAME")
	var machines []string
	for _, name := range []string{"db1", "db2", "web1", "web2"} {
		machines = append(machines, filepath.Join(dir, name))
		write(t, filepath.Join(dir, name, "data.img"), "x")
	}
	write(t, filepath.Join(dir, "db2", "password"), "open sesame\n")
	given := []string{
		"--target-opt",
		"machines=" + strings.Join(machines, ":"),
		"--target-opt",
		"password=env:FOLDERS_KEY",
	}
	check := append([]string{"targets", "check", "folders"}, given...)
	code, text = plimsoll(check...)
	says(t, text, "secret from env:FOLDERS_KEY: the variable is not set")
	if code != 4 {
		t.Errorf("without the password targets check ends with %d", code)
	}
	t.Setenv("FOLDERS_KEY", "open sesame")
	code, text = plimsoll(check...)
	says(t, text, "db1", "db2", "VMs made, cloned and deleted", "its machines are there already")
	if code != 0 || strings.Contains(text, "sesame") {
		t.Errorf("targets check ends with %d:\n%s", code, text)
	}
	code, text = plimsoll(append([]string{"plan", "db-colocation", "--target", "folders"}, given...)...)
	says(t, text, "scenario needs VMs made, cloned and deleted for step",
		"target folders cannot: its machines are there already")
	if code != 4 {
		t.Errorf("plan ends with %d", code)
	}
}
