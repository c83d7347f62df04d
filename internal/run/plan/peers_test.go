package plan_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/workloads/command"
	"plimsoll/scenario"
)

const clients = `
name: clients
display_name: Clients
summary: s
description: ""
estimated_runtime: 60
vms:
  - DB: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: "0", data_disks: {count: 1, size: 1}}
  - Clients: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
workloads:
  - Asks: {vm_group: Clients, generator: command, config_file: asks.yml}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: DB}
  - vm_group.CloneFromTemplate: {vm_group_name: Clients}
run:
  - workload.Start: {workload_name: Asks}
`

// TestPeers: what a load asks of the place because it goes to other machines is known before there are any.
func TestPeers(t *testing.T) {
	const counted = "command: [ask, \"{peer}\", \"{peers 1}\"]\noperations: [{name: a, noun: as}]\n" +
		"output: {format: lines, records: [{match: '(?P<n>\\d+)', final: true, operations: {a: {count: n}}}]}\n"
	for name, c := range map[string]struct {
		server string
		needs  []target.Capability
		says   string // of what refuses it
	}{
		"started there": {"{vm_group: DB, command: [db], ports: [1]}", []target.Capability{target.Services,
			target.PeerNetwork}, ""},
		"runs there before": {"{vm_group: DB, ports: [1]}", []target.Capability{target.PeerNetwork}, ""},
		"on its own": {"{command: [db], ports: [1]}", []target.Capability{target.Services, target.PeerNetwork},
			""},
		"no such group": {"{vm_group: DBs, command: [db], ports: [1]}", nil, `vm group "DBs": not declared`},
	} {
		files := fstest.MapFS{
			"test.yml": {Data: []byte(clients)},
			"asks.yml": {Data: []byte("server: " + c.server + "\n" + counted)},
		}
		sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 7, Now: time.Unix(1, 0), Nodes: 4})
		if sc == nil {
			t.Fatal(diagnostics)
		}
		build := func(without ...target.Capability) (*plan.Plan, error) {
			facts := everything()
			facts.Capabilities[target.Services], facts.Capabilities[target.PeerNetwork] = "stated", "stated"
			facts.Missing = map[target.Capability]string{}
			for _, w := range without {
				delete(facts.Capabilities, w)
				facts.Missing[w] = "not in this test"
			}
			return plan.Build(sc, facts, plan.Options{Engines: map[string]workload.Engine{"command": command.Engine{}}})
		}
		if c.says == "" {
			facts := everything()
			facts.Lacks = map[string]string{"command": "its machines have no ask: take others"}
			engines := map[string]workload.Engine{"command": command.Engine{}}
			_, err := plan.Build(sc, facts, plan.Options{Engines: engines})
			if err == nil || !strings.Contains(err.Error(), "no ask: take others") {
				t.Errorf("%s, where the program is not: %v", name, err)
			}
		}
		p, err := build()
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "asks.yml") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var needs []target.Capability
		for _, s := range p.Steps {
			for _, r := range s.Requires {
				if r := target.Capability(r); s.Name == "workload.Start" &&
					(r == target.Services || r == target.PeerNetwork) {
					needs = append(needs, r)
				}
			}
		}
		if !slices.Equal(needs, c.needs) {
			t.Errorf("%s: needs %q, want %q", name, needs, c.needs)
		}
		for _, w := range c.needs {
			if _, err := build(w); err == nil || !strings.Contains(err.Error(), string(w)) ||
				!strings.Contains(err.Error(), "not in this test") {
				t.Errorf("%s, on a place without %q: %v", name, w, err)
			}
		}
	}
}
