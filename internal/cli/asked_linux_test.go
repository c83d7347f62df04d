package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/result"
)

const onServer = `
name: on_server
display_name: A load on a server
summary: s
description: ""
estimated_runtime: 10
vms:
  - Client: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1, nodes: "0"}
workloads:
  - Load: {vm_group: Client, generator: pg, config_file: load.yml}
results:
  - Load: {title: Transactions per second, vm_group: Client, result_type: iops, aggregate: sum, workload_mask: Load}
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: Client, power_on: true}
run:
  - workload.Start: {workload_name: Load, runtime_secs: 1}
teardown:
  - cluster.CleanUp: {}
`

// A scenario's server of the user's says itself what it is set to; where it does not answer, the report says why, and
// what a command line names is refused.
func TestServerIsAsked(t *testing.T) {
	server := postgrestest.Start(t, "work_mem=5MB")
	t.Setenv("ASKED", postgrestest.Password)
	t.Setenv("WRONG", "x")
	dir := t.TempDir()
	address := fmt.Sprintf("postgresql://%s@127.0.0.1:%d/postgres", postgrestest.User, server.Port)
	write(t, filepath.Join(dir, "test.yml"), onServer)
	for password, want := range map[string]string{
		"ASKED": "fsync off; full_page_writes on; synchronous_commit on; version PostgreSQL; work_mem 5MB",
		"WRONG": "settings not_known",
	} {
		write(t, filepath.Join(dir, "load.yml"), fmt.Sprintf("server: {url: %q, password: \"env:%s\"}\n"+
			"initialise: never\nscripts: [{name: one, text: \"SELECT 1;\"}]\n", address, password))
		a, _, _ := quiet(t)
		p, err := a.planner.prepare(t.Context(), "run", dir, scenarioFlags{nodes: 1},
			machines.Flags{Name: "local", TimeScale: 1, SizeScale: 1, AllowHostCommands: true})
		if err != nil {
			t.Fatal(err)
		}
		err = a.planner.ask(t.Context(), p)
		p.close()
		var got []string
		for _, f := range p.facts.Environment {
			if f.Group == result.ServerGroup && slices.Contains([]string{"version", "settings", "fsync",
				"synchronous_commit", "full_page_writes", "work_mem"}, f.Name) {
				value, _, _ := strings.Cut(strings.Replace(f.Value, "not known:", "not_known", 1), " ")
				got = append(got, f.Name+" "+value)
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, "; "); text != want || (err != nil) != (password == "WRONG") {
			t.Errorf("%s: %v, %q, want %q", password, err, text, want)
		}
	}
	plimsoll := extended(filepath.Join(dir, "runs"), func(*drivers.Registry) {})
	code, text := plimsoll("db", "run", "pg", "--server", address, "--password", "env:WRONG")
	if code != 1 {
		t.Errorf("db run ends with %d", code)
	}
	says(t, text, "password authentication failed")
}
