package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/run/step"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio"
	"plimsoll/scenario"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

var engines = map[string]workload.Engine{"fio": fio.Engine{Program: "/nonexistent/fio"}}

// everything is a cluster of four nodes that can do all a step may need.
func everything() target.Facts {
	f := target.Facts{Target: "stated", ClusterName: "four", FreeBytes: -1, FreeMemory: -1,
		Capabilities: map[target.Capability]string{}}
	for _, c := range []target.Capability{
		target.VMCreation, target.VMClones, target.VMPowerControl, target.VMMoves,
		target.NodePowerControl, target.NodeShutdown,
		target.Snapshots, target.LiveMigration, target.AvailabilityRules,
		target.StorageMigration, target.GuestCommands, target.PlaybookHosts, target.WriteLogDrain,
		target.ClusterMetrics, target.PlatformChecks,
	} {
		f.Capabilities[c] = "stated"
	}
	for i := range 4 {
		f.Nodes = append(f.Nodes, target.Node{Index: i, Name: string(rune('A' + i)), Cores: 32, MemoryBytes: 256 << 30,
			Power: "stated"})
	}
	return f
}

// bare is a cluster of four nodes without a single optional capability.
func bare() target.Facts {
	f := everything()
	f.Target = "bare"
	f.Capabilities = map[target.Capability]string{target.VMCreation: "stated", target.VMPowerControl: "stated",
		target.VMClones: "stated", target.VMMoves: "stated"}
	f.Missing = map[target.Capability]string{target.NodePowerControl: "its nodes have no power controllers"}
	for i := range f.Nodes {
		f.Nodes[i].Power = ""
	}
	return f
}

func load(t testing.TB, name string) *scenario.Scenario {
	t.Helper()
	dir := filepath.Join(needs.Corpus(t, "xray"), name)
	sc, diagnostics := scenario.Load(os.DirFS(dir),
		scenario.LoadOptions{ID: 1700000000000, Now: time.UnixMilli(1700000000000), Nodes: 4})
	if sc == nil {
		t.Fatalf("%s does not load: %v", name, diagnostics)
	}
	return sc
}

func corpus(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(needs.Corpus(t, "xray"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) < 18 {
		t.Fatalf("%d scenarios in the corpus, 18 expected", len(names))
	}
	return names
}

// redact keeps the corpus's own words out of the goldens: what is compared are our words and the facts.
func redact(p *plan.Plan) { p.DisplayName = "" }

func TestCorpusPlans(t *testing.T) {
	for _, name := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			sc := load(t, name)
			for place, facts := range map[string]target.Facts{"": everything(), ".bare": bare()} {
				p, err := plan.Build(sc, facts, plan.Options{AllowHostCommands: true, Engines: engines})
				if place == "" && err != nil {
					t.Errorf("on a cluster that can do everything: %v", err)
				}
				redact(p)
				var b bytes.Buffer
				if err := p.Text(&b); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(b.String()) {
					if len([]rune(line)) > 101 {
						t.Errorf("line of %d columns: %s", len([]rune(line))-1, line)
					}
				}
				golden.Compare(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+place+".txt"), b.Bytes())
			}
		})
	}
}

// The numbers of steps after expansion that the reference states for four nodes with power management; clean-up alone
// needs no check of power controllers here.
func TestExpansion(t *testing.T) {
	count := func(facts target.Facts, name string) (n [4]int) {
		p, _ := plan.Build(load(t, name), facts, plan.Options{})
		order := []scenario.Phase{scenario.PreSetup, scenario.Setup, scenario.Run, scenario.Teardown}
		for _, s := range p.Steps {
			for i, phase := range order {
				if s.Phase == phase {
					n[i]++
				}
			}
		}
		return n
	}
	cases := []struct {
		facts target.Facts
		name  string
		want  [4]int
	}{
		{everything(), "utility_cluster_cleanup", [4]int{0, 11, 1, 0}},
		{everything(), "rolling_upgrade", [4]int{1, 16, 20, 11}},
		{bare(), "utility_cluster_cleanup", [4]int{0, 3, 1, 0}},
		{bare(), "rolling_upgrade", [4]int{1, 8, 20, 3}},
	}
	for _, c := range cases {
		if got := count(c.facts, c.name); got != c.want {
			t.Errorf("%s on %s: %v steps per phase, want %v", c.name, c.facts.Target, got, c.want)
		}
	}
}

func TestGroupSizes(t *testing.T) {
	for name, want := range map[string]int{
		"oltp_simulator_small": 3, "database_colocation_standard": 3, "hci_workflow_default": 301,
		"75-VM-Server-Virt": 225, "single-vm-scale": 193,
	} {
		p, err := plan.Build(load(t, name), everything(), plan.Options{})
		if err != nil || len(p.VMs) != want {
			t.Errorf("%s: %d VMs (%v), want %d", name, len(p.VMs), err, want)
		}
	}
}

// mistakes is a scenario with one mistake of each kind that only a cluster can show.
const mistakes = `
name: mistakes
display_name: Mistakes
summary: s
description: ""
estimated_runtime: 10
vms:
  - A B: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
  - A_B: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
  - far: {template: ubuntu1604, nodes: "2", vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
workloads:
  - W: {vm_group: A B, config_file: w.fio}
results: []
setup:
  - workload.Start: {workload_name: W, runtime_secs: 60, async: True}
  - workload.Wait: {workload_name: W}
  - workload.Start: {workload_name: W, async: True, runtime_secs: 600}
run:
  - nodes.PowerOff: {nodes: "9"}
  - nodes.PowerOff: {nodes: "0"}
  - vm_group.Grow: {vm_group_name: A B, count_per_cluster: 1}
  - vm_group.MigrateGroup: {vm_group_name: A B, from_node: 0, to_node: 7}
  - test.Wait: {duration_secs: 60}
  - experimental.Shell: {cmd: "true"}
`

func mistaken(t *testing.T) *scenario.Scenario {
	t.Helper()
	fsys := fstest.MapFS{
		"test.yml": {Data: []byte(mistakes)},
		"w.fio":    {Data: []byte("[global]\nrw=write\n[a]\nfilename=/dev/sdb\nsize=1G\niolog=/etc/passwd\n")},
	}
	sc, diagnostics := scenario.Load(fsys, scenario.LoadOptions{ID: 7, Now: time.Unix(1, 0)})
	if sc == nil {
		t.Fatalf("%v", diagnostics)
	}
	return sc
}

func TestEveryObjectionAtOnce(t *testing.T) {
	facts := bare()
	facts.Nodes = facts.Nodes[:2]
	p, err := plan.Build(mistaken(t), facts, plan.Options{Engines: engines})
	var refused *plan.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want *plan.Refused", err)
	}
	if len(refused.Errs) != len(p.Objections) {
		t.Errorf("%d errors, %d objections", len(refused.Errs), len(p.Objections))
	}
	var b bytes.Buffer
	if err := p.Text(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "mistakes.txt"), b.Bytes())
}

// What the target says of itself and what does not fit on it are in the plan, so before anything is made.
func TestTargetInPlan(t *testing.T) {
	for name, c := range map[string]struct {
		free, memory int64
		want         string
	}{
		"nothing free":    {0, -1, "nothing is free beyond what the target keeps in reserve: it will refuse"},
		"too little free": {1 << 30, -1, "1 GiB are free: the target may refuse; a size scale of"},
		"no memory":       {-1, 0, "of memory, 0 B are free: the target may refuse"},
		"not known":       {-1, -1, ""},
		"enough":          {1 << 60, 1 << 60, ""},
	} {
		facts := everything()
		facts.FreeBytes, facts.FreeMemory, facts.Notes = c.free, c.memory, []string{"Disks would be in memory."}
		p, err := plan.Build(load(t, "database_colocation_standard"), facts, plan.Options{Engines: engines})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Text(&b); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(text, "About target stated - Disks would be in memory.") ||
			!strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "are free") {
			t.Errorf("%s: want %q in\n%s", name, c.want, b.String())
		}
	}
}

func TestSamePlanEveryTime(t *testing.T) {
	var first []byte
	for range 5 {
		p, err := plan.Build(load(t, "rolling_upgrade"), everything(),
			plan.Options{Engines: engines, TimeScale: 0.01, SizeScale: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(first, b) {
			t.Fatalf("two plans of the same differ:\n%s\n%s", first, b)
		}
	}
}

func TestScales(t *testing.T) {
	sc := load(t, "database_colocation_standard")
	full, err := plan.Build(sc, everything(), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := plan.Build(sc, everything(), plan.Options{TimeScale: 0.1, SizeScale: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := float64(tenth.PeakDiskBytes), float64(full.PeakDiskBytes)/10; got < want || got > want*1.001 {
		t.Errorf("disks of %v bytes at a tenth, want %v or a little more", got, want)
	}
	if got, most := tenth.EstimatedSeconds, full.EstimatedSeconds*0.15; got > most {
		t.Errorf("%v s at a tenth of the time, want less than %v", got, most)
	}
	if tenth.PeakMemoryBytes != full.PeakMemoryBytes {
		t.Errorf("memory scaled from %d to %d", full.PeakMemoryBytes, tenth.PeakMemoryBytes)
	}
	for _, scale := range []float64{-1, 1e9} {
		if _, err := plan.Build(sc, everything(), plan.Options{TimeScale: scale}); err == nil {
			t.Errorf("time scale %v was accepted", scale)
		}
	}
}

func TestDiskDevice(t *testing.T) {
	for i, want := range map[int]string{0: "/dev/sdb", 5: "/dev/sdg", 24: "/dev/sdz", 25: "/dev/sdaa", 26: "/dev/sdab",
		50: "/dev/sdaz", 51: "/dev/sdba"} {
		if got := step.DiskDevice(i); got != want {
			t.Errorf("disk %d is %s, want %s", i, got, want)
		}
	}
}

// BenchmarkLoadCheckPlan is load, check and plan of the corpus's scenario with the most groups and steps.
func BenchmarkLoadCheckPlan(b *testing.B) {
	dir := os.DirFS(filepath.Join(needs.Corpus(b, "xray"), "single-vm-scale"))
	for b.Loop() {
		sc, diagnostics := scenario.Load(dir, scenario.LoadOptions{ID: 1, Now: time.Unix(1, 0), Nodes: 4})
		if sc == nil {
			b.Fatal(diagnostics)
		}
		if _, err := plan.Build(sc, everything(), plan.Options{Engines: engines}); err != nil {
			b.Fatal(err)
		}
	}
}
