package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// manyRuns are folders of runs that have ended.
func manyRuns(t *testing.T, n int) (root string) {
	t.Helper()
	root = t.TempDir()
	for i := range n {
		id := fmt.Sprintf("20260301-%06d-many-%04d", i, i)
		dir := filepath.Join(root, id)
		text := fmt.Sprintf(`{"version":1,"run_id":%q,"status":"succeeded","target":"local",`+
			`"created":"2026-03-01T10:00:00Z","ended":"2026-03-01T10:01:00Z","scenario":{"name":"many"}}`, id)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The next server knows what the one before it read, but for what has changed since; an index of another version, a
// damaged one and one that cannot be written are no index.
func TestRemembered(t *testing.T) {
	root := manyRuns(t, worthKeeping+10)
	file := filepath.Join(t.TempDir(), "cache", "runs.index")
	folders := func() ([]string, error) { return result.Folders(root) }
	shelfOf := func(index, version string) *shelf {
		return newShelf(Options{Folders: folders, Now: time.Now, Index: index, Version: version})
	}
	look := func(s *shelf) (ids []string, read int) {
		books, err := s.all()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range books {
			ids = append(ids, b.id+" "+b.labels.Name+" "+b.manifest.Scenario.Name+" "+b.made.String())
		}
		read = int(s.read.Load())
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return ids, read
	}
	was, read := look(shelfOf(file, "1"))
	if len(was) != worthKeeping+10 || read != len(was) {
		t.Fatalf("%d runs, %d read", len(was), read)
	}
	again, read := look(shelfOf(file, "1"))
	if diff := cmp.Diff(was, again); diff != "" || read != 0 {
		t.Errorf("%d read: %s", read, diff)
	}
	changed := filepath.Join(root, "20260301-000003-many-0003")
	if _, err := result.ChangeLabels(changed, func(l *result.Labels) { l.Name = "new" }); err != nil {
		t.Fatal(err)
	}
	after, read := look(shelfOf(file, "1"))
	if diff := cmp.Diff(was, after); diff == "" || read != 1 {
		t.Errorf("a run that was changed: %d read: %s", read, diff)
	}
	if _, read := look(shelfOf(file, "2")); read != len(was) {
		t.Errorf("of another version %d were read", read)
	}
	if err := os.WriteFile(file, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, read := look(shelfOf(file, "2")); read != len(was) {
		t.Errorf("of a damaged index %d were read", read)
	}
	if _, read := look(shelfOf(filepath.Join(changed, "manifest.json", "no"), "2")); read != len(was) {
		t.Errorf("without an index %d were read", read)
	}
}

// A list that is asked for while many runs are read for the first time has those that were, the newest first, and says
// how many are to come; whoever wants all waits for all.
func TestSoon(t *testing.T) {
	root := manyRuns(t, 3*atOnce)
	s := newShelf(Options{Folders: func() ([]string, error) { return result.Folders(root) }, Now: time.Now})
	reached, proceed := make(chan struct{}), make(chan struct{})
	s.paused = func(left int) {
		if left == 3*atOnce-firstAtOnce {
			close(reached)
			<-proceed
		}
	}
	all := make(chan int)
	go func() {
		books, _ := s.all()
		all <- len(books)
	}()
	<-reached
	books, left, err := s.soon()
	if len(books) != firstAtOnce || left != 3*atOnce-firstAtOnce || err != nil ||
		books[0].id != "20260301-001499-many-1499" {
		t.Errorf("%d runs, %d left, %v", len(books), left, err)
	}
	close(proceed)
	if n := <-all; n != 3*atOnce {
		t.Errorf("%d runs in the end", n)
	}
	if books, left, err := s.soon(); len(books) != 3*atOnce || left != 0 || err != nil {
		t.Errorf("%d runs, %d left, %v", len(books), left, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
