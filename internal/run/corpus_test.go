package run_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// corpus calls f with every published scenario, in a subtest of its own.
func corpus(t *testing.T, f func(t *testing.T, name, dir string)) {
	root := needs.Corpus(t, "xray")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Run(e.Name(), func(t *testing.T) {
				t.Parallel()
				f(t, strings.ReplaceAll(e.Name(), " ", "-"), filepath.Join(root, e.Name()))
			})
		}
	}
}

// largest are the published scenarios that take longest to simulate.
var largest = []string{"75-VM-Server-Virt", "vdi_simulator_task_25", "single-vm-scale", "hci_workflow_default"}

// The published scenarios run to their end with their default variables, in full length and size, on the simulated
// cluster. Every panel has results, and the plan told how long it would take, within a tenth or a minute. The journals
// are goldens.
func TestCorpusRuns(t *testing.T) {
	needs.Time(t)
	corpus(t, func(t *testing.T, name, dir string) {
		if slices.Contains(largest, name) {
			needs.Long(t, "minutes of simulation; the other published ones run each time")
		}
		h := modelled(t, os.DirFS(dir), sim.Options{})
		began := h.clock.Now()
		s, err := h.execute(t.Context())
		if err != nil {
			t.Error(err)
		}
		took, told := h.clock.Now().Sub(began), h.req.Plan.Estimated()
		if (took - told).Abs() > max(time.Minute, took/10) {
			t.Errorf("the plan said %v, and it took %v", told, took)
		}
		yes := result.Verdict{State: "yes"}
		if s.Status != result.StatusSucceeded || s.Measured != yes || s.Collected != yes {
			t.Errorf("%+v", s)
		}
		h.clean(s)
		data, err := h.folder.Data()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range data.Panels {
			if p.Problem != "" || len(p.Series) == 0 {
				t.Errorf("panel %s: %d series, problem %q", p.Name, len(p.Series), p.Problem)
			}
		}
		golden.Compare(t, filepath.Join("testdata", "corpus", name+".txt"), []byte(journal(h.events, h.events[0].Time)))
	})
}

// Two runs of the same with the same seed leave the same bytes in all files of their folders; with another seed they do
// not.
func TestSameBytes(t *testing.T) {
	needs.Time(t)
	dir := filepath.Join(needs.Corpus(t, "xray"), "snapshot_impact_standard")
	folder := func(seed uint64) map[string]string {
		h := modelled(t, os.DirFS(dir), sim.Options{Seed: seed})
		if _, err := h.execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		return tree(t, h.folder.Dir())
	}
	first, again, other := folder(1), folder(1), folder(2)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed: %s", diff)
	}
	same := 0
	for name, sum := range first {
		if other[name] == sum && strings.HasSuffix(name, ".zst") {
			same++
		}
	}
	if same > 0 || len(first) < 20 {
		t.Errorf("another seed: %d outputs of %d files are the same", same, len(first))
	}
}

// tree is the sum of every file below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		sums[rel] = fmt.Sprintf("%d bytes, %x", len(data), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
