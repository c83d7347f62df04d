package result

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRecordOf(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	make := func(name string) {
		t.Helper()
		name = filepath.Join(at, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"run/manifest.json", "run/journal.jsonl", "run/data.json", "run/raw/0/w",
		"grid/cells.jsonl", "grid/experiment.json",
		"grid/runs/1/plan.json", ".catalogue/x.json", "half/manifest.json", "half/x"} {
		make(name)
	}
	for link, to := range map[string]string{"link": "run/data.json", "folder": "run/raw", "shared": ".catalogue"} {
		if err := os.Symlink(filepath.Join(at, to), filepath.Join(at, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"run/data.json": "run", "run/raw/0/w": "run", "run/raw/0/new": "run", "run/report.html": "", "run/new.md": "",
		"grid/cells.jsonl": "grid", "grid/runs/new": "grid", "grid/runs/1/plan.json": "grid", "grid/report.html": "",
		".catalogue/x.json": ".catalogue", ".histories/new.json": "", "half/x": "", "new": "", "nowhere/new": "",
		"link": "run", "folder/0/w": "run", "folder/new": "run", "shared/x.json": ".catalogue",
	} {
		if want != "" {
			want = filepath.Join(at, want)
		}
		if got := RecordOf(filepath.Join(at, name)); got != want {
			t.Errorf("%s is a part of %q, want %q", name, got, want)
		}
	}
}
