package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/workloads/command"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/scenario"
)

// ofDatabase is a load that waits, of a server of the run's own or of the user's.
type ofDatabase struct {
	command.Engine
	users postgres.Config
}

func (e ofDatabase) config(spec workload.Spec) postgres.Config {
	if strings.HasPrefix(spec.Name, "Users") {
		return e.users
	}
	return postgres.Config{Database: "bench", Settings: map[string]string{"shared_buffers": "16MB", "fsync": "off"}}
}

func (e ofDatabase) Peers(spec workload.Spec) (workload.Peers, bool, error) {
	p, ok := e.config(spec).Peers()
	return p, ok, nil
}

func (e ofDatabase) Server(spec workload.Spec) (workload.Server, error) {
	return e.config(spec).Server(spec)
}

func (ofDatabase) CheckServer(ctx context.Context, h target.Host, spec workload.Spec) (workload.Tool, error) {
	return postgres.CheckServer(ctx, h, spec)
}

func (e ofDatabase) Counters(spec workload.Spec, host target.Host) (*workload.Scrape, error) {
	return e.config(spec).Counters(spec, host)
}

const databases = `
name: databases
display_name: Databases
summary: s
description: ""
estimated_runtime: 60
vms:
  - DB: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: "0", data_disks: {count: 1, size: 1}}
workloads:
  - Own: {vm_group: DB, generator: command, config_file: wait.yml, iogen_params: {reporting_interval: 1}}
  - Users: {vm_group: DB, generator: command, config_file: wait.yml, iogen_params: {reporting_interval: 1}}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: DB}
  - vm_group.PowerOn: {vm_group_name: DB}
run:
  - workload.Start: {workload_name: Own}
  - workload.Start: {workload_name: Users}
teardown:
  - cluster.CleanUp: {}
`

// A run's own server and the user's are asked what they count for as long as loads use them, without anyone's asking
// for it.
func TestCountersOfDatabases(t *testing.T) {
	users := postgrestest.Start(t)
	t.Setenv("PLIMSOLL_TEST_PASSWORD", postgrestest.Password)
	source, err := secret.ParseSource("env:PLIMSOLL_TEST_PASSWORD")
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", users.Port)
	engines := map[string]workload.Engine{"command": ofDatabase{users: postgres.Config{Password: source,
		Database: "postgres", URL: "postgresql://" + postgrestest.User + "@" + address}}}
	root, place, facts := here(t, target.Config{Nodes: 1,
		AllowHostCommands: true, Options: target.Options{"reserve": "1MiB"}})
	needs.That(t, facts.Can(target.PeerNetwork), "namespaces", facts.Missing[target.PeerNetwork])
	files := fstest.MapFS{"test.yml": {Data: []byte(databases)}, "wait.yml": {Data: []byte(
		"command: [sh, -c, 'sleep 3; echo 1']\noperations: [{name: nap, noun: naps}]\noutput:\n  format: lines\n" +
			"  records: [{match: '^(?P<n>\\d)$', final: true, operations: {nap: {count: {field: n}}}}]\n")}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{Now: time.Now(), Nodes: 1, ID: 7,
		Generators: map[string]scenario.Generator{"command": command.Engine{}}})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 1, SizeScale: 0.001, Engines: engines})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := run.Execute(t.Context(), run.Request{
		Root: root, RunID: "databases", Program: "test", Source: "s", Files: files, Scenario: sc, Plan: p,
		Target: place, Facts: facts, Engines: engines, Clock: clock.Real{}, Observer: telling{func(e result.Event) {
			if e.Data.Endpoint != "" {
				t.Log(e.Text, e.Error) // a busy machine may be late with a page
			} else if e.Kind == result.KindWarning {
				t.Errorf("%s %s %s", e.Name, e.Text, e.Error)
			}
		}},
	})
	if err != nil || summary.Status != result.StatusSucceeded {
		t.Fatalf("%+v, %v", summary, err)
	}
	folder, err := result.Open(summary.Dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, newest, _ := store.Bounds()
	found, err := store.Instant(t.Context(),
		"max by (instance, vm_group, endpoint, datname) (max_over_time(pg_stat_database_xact_commit[1h]) > bool 0)",
		newest)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range found {
		var name []string
		for _, label := range []string{"instance", "vm_group", "endpoint", "datname"} {
			name = append(name, s.Label(label))
		}
		got[strings.Join(name, " ")] = s.Points[0].Value
	}
	want := map[string]float64{
		"__curie_test_7_DB_0000 DB postgres bench": 1, "__curie_test_7_DB_0000 DB postgres postgres": 1,
		address + "  postgres postgres": 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	users.Gone("application_name ~ 'plimsoll'", 5*time.Second)
}
