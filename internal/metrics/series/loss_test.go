package series_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/metrics/series"
)

// TestFolderRemoved: the folder of a database, or a part of it, goes away while it is written. That is told from then
// on, nothing panics, and what was written before can be read.
func TestFolderRemoved(t *testing.T) {
	for _, part := range []string{".", "wal", "chunks_head"} {
		for _, timeless := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "metrics")
			s, err := series.Open(dir, series.Options{Timeless: timeless})
			if err != nil {
				t.Fatal(err)
			}
			write := func(i int) error {
				b := s.Batch()
				b.Float("x", label("a"), at(float64(i)), float64(i))
				return b.Commit()
			}
			const before = 1000 // points make several chunks, so that there are some to be moved out of memory
			for i := range before {
				if err := write(i); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
				t.Fatal(err)
			}
			const says = "was removed while the run wrote to it"
			for range 2 {
				if err := write(before); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s, timeless %v: a later point: %v", part, timeless, err)
				}
			}
			if err := s.Close(); err != nil { // told already
				t.Errorf("%s, timeless %v: close: %v", part, timeless, err)
			}
			view, err := series.OpenReadOnly(dir, series.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := view.Range(t.Context(), "x", at(0), at(before), time.Second)
			if n := len(got); err != nil || n != 1 || len(got[0].Points) < before {
				t.Errorf("%s, timeless %v: %d series, %v", part, timeless, n, err)
			}
			if err := view.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFolderRemovedBeforeClose: nothing was written since.
func TestFolderRemovedBeforeClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	s, err := series.Open(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		b := s.Batch()
		b.Float("x", label("a"), at(float64(i)), float64(i))
		commit(t, b)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "points until then are kept") {
		t.Errorf("close: %v", err)
	}
}
