package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/golden"
)

// made makes a target as a user would.
func made(nodes int, o target.Options) (target.Target, error) {
	return sim.Provider{}.New(target.Config{Nodes: nodes, Options: o, Clock: clock.NewVirtual(sim.Start)})
}

// Every file under testdata/bad is refused with all objections, each with its position where it has one.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			place, err := made(0, target.Options{"file": name})
			if err != nil {
				t.Fatalf("the file was read before its time: %v", err)
			}
			_, err = place.Check(t.Context())
			if err == nil {
				t.Fatal("it was accepted")
			}
			golden.Compare(t, strings.TrimSuffix(name, ".yaml")+".txt", []byte(err.Error()+"\n"))
			if _, again := place.Provision(t.Context(), target.Request{StateDir: "x"}); again == nil {
				t.Error("and provisioned")
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	_, err := made(0, target.Options{"sed": "3", "model.contenton": "1", "boot": "soon", "faults": "[]", "cores": "["})
	if err == nil {
		t.Fatal("accepted")
	}
	golden.Compare(t, "testdata/bad-options.txt", []byte(err.Error()+"\n"))
	place, err := made(0, target.Options{"file": "no-such-file.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := place.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-file.yaml") {
		t.Errorf("%v", err)
	}
	for _, nodes := range []int{-1, 10_001} {
		if _, err := made(0, target.Options{"nodes": fmt.Sprint(nodes)}); err == nil {
			t.Errorf("%d nodes are accepted", nodes)
		}
	}
}

// A file sets everything there is; single options win over it, --nodes over both.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sim.yaml")
	text := `
nodes: 3
cores: 16
memory: 64GiB
disk: 1TiB
power: 0,2
without: [VM group snapshots]
seed: 9
clone: 2s
boot: 1m
node_boot: 10m
migration: 7s
playbook: 1h
model:
  contention: 0.01
  fast: {read_seconds: 1e-3}
  checkpoint: {every: 5m, lasts: 30s, load: 0.4}
faults:
  - {kind: node_crash, nodes: 1, at: 1h, for: 5m}
  - {kind: api_error, step: "workload.Start#2", at: 90s, probability: 0.25, methods: [Clone]}
`
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	place, err := made(5, target.Options{"file": name, "cores": "8", "model.crosstalk": "1e-5"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := place.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []target.Node{}
	for i := range 5 {
		n := target.Node{Index: i, Name: f.Nodes[i].Name, Cores: 8, MemoryBytes: 64 << 30}
		if i == 0 || i == 2 {
			n.Power = "simulated"
		}
		want = append(want, n)
	}
	if diff := cmp.Diff(want, f.Nodes); diff != "" {
		t.Error(diff)
	}
	if f.FreeBytes != 5<<40 || f.FreeMemory != 5*64<<30 || f.PlaybookTime != time.Hour || f.Can(target.Snapshots) ||
		!f.Simulated {
		t.Errorf("%+v", f)
	}
	have := map[string]string{}
	for _, e := range f.Environment {
		have[e.Group+"/"+e.Name] = e.Value
	}
	for name, value := range map[string]string{
		"simulation/seed": "9", "simulation/boot of VMs": "1m0s", "model/contention": "0.01",
		"model/crosstalk":         "1e-05",
		"model/fast.read_seconds": "0.001", "model/checkpoint.every": "5m0s", "model/seed": "9",
		"model/host.cores": "8",
	} {
		if have[name] != value {
			t.Errorf("%s is %q, want %q", name, have[name], value)
		}
	}
	notes := strings.Join(f.Notes, "\n")
	for _, words := range []string{"node-1 crashes for 5 min, 1 h after the beginning",
		"25 % of calls of Clone to the cluster fail, 1 min 30 s after step workload.Start#2 begins"} {
		if !strings.Contains(notes, words) {
			t.Errorf("the notes lack %q: %s", words, notes)
		}
	}
}

func TestNoControllers(t *testing.T) {
	place, err := made(2, target.Options{"power": "none"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := place.Check(t.Context())
	if err != nil || f.Can(target.NodePowerControl) || f.Can(target.NodeShutdown) ||
		f.Missing[target.NodePowerControl] == "" {
		t.Errorf("%v, %+v", err, f.Missing)
	}
}

func FuzzFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("nodes: 3\npower: [0-1]\nfaults: [{kind: agent_lost, groups: [a], step: x, at: 5s}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "sim.yaml")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		place, err := made(0, target.Options{"file": name})
		if err != nil {
			t.Fatal(err)
		}
		facts, err := place.Check(t.Context())
		if err == nil && (len(facts.Nodes) == 0 || len(facts.Nodes) > 10_000 || facts.FreeBytes <= 0) {
			t.Errorf("accepted with %d nodes and %d bytes", len(facts.Nodes), facts.FreeBytes)
		}
	})
}
