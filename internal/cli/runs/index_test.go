package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/kit/clock"
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

// A list of many runs is read once: the next reads only what has changed since, and completes only what it shows.
func TestListFromIndex(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	const runs = 230
	idOf := func(i int) string { return fmt.Sprintf("20260301-%06d-many-%04x", i, i) }
	write := func(i int, name, text string) {
		t.Helper()
		dir := filepath.Join(root, idOf(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	manifest := func(i int, scenario string) string {
		return fmt.Sprintf(`{"version":1,"run_id":%q,"status":"succeeded","target":"local","created":%q,`+
			`"ended":"2026-03-02T10:01:00Z","scenario":{"name":%q}}`, idOf(i),
			time.Date(2026, 3, 1, 10, 0, i, 0, time.UTC).Format(time.RFC3339), scenario)
	}
	for i := range runs {
		write(i, "manifest.json", manifest(i, "many"))
	}
	list := func(f listFilter) (got []string) {
		t.Helper()
		var out, warned bytes.Buffer
		st := &Store{Targets: &machines.Targets{RunsDir: root,
			Console: &console.Console{Out: &out, Err: &warned, JSON: true, Clock: clock.Real{}}}}
		if err := st.listRuns("runs list: ", f); err != nil {
			t.Fatal(err)
		}
		var rows []listedRun
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Bytes == 0 || filepath.Dir(r.Dir) != root {
				t.Errorf("%+v", r)
			}
			got = append(got, strings.TrimSpace(r.RunID[9:15]+" "+r.Scenario+" "+r.Name+" "+r.Problem))
		}
		return got
	}
	newest := listFilter{limit: 2}
	if d := cmp.Diff([]string{"000229 many", "000228 many"}, list(newest)); d != "" {
		t.Fatal(d)
	}
	// What stands unchanged by its size and time is not read again.
	file := filepath.Join(root, idOf(229), "manifest.json")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(229, "manifest.json", manifest(229, "MANY"))
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := list(newest); got[0] != "000229 many" {
		t.Errorf("read anew: %q", got)
	}
	write(228, "labels.json", `{"version":1,"name":"mine","tags":["kept"]}`)
	write(227, "manifest.json", manifest(227, "other"))
	write(226, "manifest.json", `{"version":99}`)
	write(225, "journal.jsonl", "no line of a journal\n")
	write(230, "manifest.json", manifest(230, "new"))
	if err := os.RemoveAll(filepath.Join(root, idOf(229))); err != nil {
		t.Fatal(err)
	}
	got := list(listFilter{limit: 4})
	for i, want := range []string{"000230 new", "000228 many mine", "000227 other",
		"000225 many  journal line 1"} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("row %d is %q, want %q", i, got[i], want)
		}
	}
	if got := list(listFilter{tags: []string{"kept"}}); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got := list(listFilter{}); len(got) != runs || !strings.Contains(strings.Join(got, "\n"), "version 99") {
		t.Errorf("%d runs, %q", len(got), got[len(got)-2:])
	}
}
