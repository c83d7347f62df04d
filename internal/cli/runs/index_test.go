package runs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The index has what comes, and what becomes a run after its folder was made, and loses what goes.
func TestFolderIndex(t *testing.T) {
	root := t.TempDir()
	old := time.Now().Add(-time.Hour)
	x := NewFolderIndex(filepath.Join(root, "runs"))
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(root, "runs", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	is := func(want ...string) {
		t.Helper()
		if dir := filepath.Join(root, "runs"); len(want) > 0 { // so old that its time tells of changes
			if err := os.Chtimes(dir, old, old); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // read, and remembered
			got, err := x.Folders()
			for i := range got {
				got[i], _ = filepath.Rel(root, got[i])
			}
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v, (-want +got)\n%s", err, d)
			}
		}
		old = old.Add(time.Second)
	}
	is()
	put("b/manifest.json", "e/experiment.json", "e/runs/c/manifest.json", "other/file", ".hidden/manifest.json")
	is("runs/b", "runs/e/runs/c")
	put("other/journal.jsonl") // changes nothing of the folder above it
	is("runs/b", "runs/other", "runs/e/runs/c")
	put("a/manifest.json", "e/runs/d/lock")
	is("runs/a", "runs/b", "runs/other", "runs/e/runs/c", "runs/e/runs/d")
	if err := os.RemoveAll(filepath.Join(root, "runs", "b")); err != nil {
		t.Fatal(err)
	}
	is("runs/a", "runs/other", "runs/e/runs/c", "runs/e/runs/d")
}
