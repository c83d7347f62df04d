package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/testkit/golden"
	"plimsoll/scenario"
	"plimsoll/scenarios"
)

// cluster returns what a target would say of a plain cluster of this many nodes that can do everything.
func cluster(nodes int) target.Facts {
	f := target.Facts{Target: "paper", ClusterName: "paper", FreeBytes: -1, FreeMemory: -1,
		Capabilities: map[target.Capability]string{}}
	for i := range nodes {
		f.Nodes = append(f.Nodes, target.Node{Index: i, Name: "node-" + string(rune('a'+i)), Cores: 16,
			MemoryBytes: 256 << 30, Power: "paper"})
	}
	for _, c := range []target.Capability{
		target.VMCreation, target.VMClones, target.VMPowerControl, target.VMMoves,
		target.NodePowerControl, target.NodeShutdown, target.NodeFailover,
		target.Snapshots, target.LiveMigration, target.AvailabilityRules, target.GuestCommands,
		target.ClusterMetrics, target.Services, target.PeerNetwork, target.ControllerCommands,
	} {
		f.Capabilities[c] = "on paper"
	}
	return f
}

func TestLibraryIsStrictlyCleanAndPlans(t *testing.T) {
	names := scenarios.Names()
	if len(names) < 8 {
		t.Fatalf("the library holds only %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys, ok := scenarios.Open(name)
			if !ok {
				t.Fatal("listed, but cannot be opened")
			}
			sc, diagnostics := scenario.Load(fsys,
				scenario.LoadOptions{ID: 1700000000000, Now: time.Unix(1700000000, 0), Nodes: 4, Strict: true})
			for _, d := range diagnostics {
				if d.Code == "extension" {
					continue // experiments and asserts are ours, and named so
				}
				t.Errorf("not clean in the strict reading: %s", d)
			}
			if sc == nil {
				t.FailNow()
			}
			if want := "plimsoll_" + strings.ReplaceAll(name, "-", "_"); sc.Name != want {
				t.Errorf("name is %q, want %q after its folder", sc.Name, want)
			}
			for _, v := range sc.Vars {
				if v.DisplayName == "" || v.Description == "" || (v.Min == nil || v.Max == nil) && v.Options == nil {
					t.Errorf("variable %q lacks a display name, a description or a bound", v.Name)
				}
			}
			for _, r := range sc.Results {
				if r.Hint == "" {
					t.Errorf("result %q does not say how to read it", r.Name)
				}
			}
			p, err := plan.Build(sc, cluster(4), plan.Options{Engines: drivers.All().ByName()})
			if err != nil {
				t.Fatalf("does not plan: %v", err)
			}
			var text bytes.Buffer
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/library/"+name+".plan", text.Bytes())
			if _, err := plan.Build(sc, cluster(4), plan.Options{Engines: drivers.All().ByName(), TimeScale: 0.02,
				SizeScale: 0.002}); err != nil {
				t.Errorf("does not plan when scaled: %v", err)
			}
		})
	}
}
