package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/golden"
	"plimsoll/internal/needs"
	"plimsoll/internal/target/sim"
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

// The published scenarios run to their end with their default variables, in full length and size, on the simulated cluster. Every panel
// has results. The journals are goldens.
func TestCorpusRuns(t *testing.T) {
	corpus(t, func(t *testing.T, name, dir string) {
		h := modelled(t, os.DirFS(dir), sim.Options{})
		s, err := h.execute(t.Context())
		if err != nil {
			t.Error(err)
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
