package result_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if l, err := result.ReadLabels(dir); err != nil || !l.Empty() {
		t.Errorf("without a file: %+v, %v", l, err)
	}
	var g sync.WaitGroup
	for i := range 20 { // each of them reads, adds and writes
		g.Go(func() {
			if _, err := result.ChangeLabels(dir, func(l *result.Labels) {
				l.Tags = append(l.Tags, fmt.Sprint("t", i%10))
			}); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if _, err := result.ChangeLabels(dir, func(l *result.Labels) {
		l.Name, l.Note = "before-upgrade", " with the old <firmware>\n"
	}); err != nil {
		t.Fatal(err)
	}
	got, err := result.ReadLabels(dir)
	want := result.Labels{Version: result.FormatVersion, Name: "before-upgrade", Note: "with the old <firmware>",
		Tags: []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := result.ChangeLabels(dir, func(l *result.Labels) { *l = result.Labels{} }); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("without labels the folder holds %v (%v)", left, err)
	}
}

func TestLabelsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, l := range []result.Labels{
		{Name: "-x"}, {Name: "a/b"}, {Name: "a b"}, {Name: ".."}, {Name: strings.Repeat("x", 65)}, {Name: "ü"},
		{Tags: []string{"ok", ""}}, {Tags: []string{"+a"}}, {Tags: []string{"a,b"}},
		{Tags: []string{strings.Repeat("x", 65)}}, {Note: strings.Repeat("x", 4097)},
		{Note: "\xff"},
	} {
		dir := t.TempDir()
		if _, err := result.ChangeLabels(dir, func(old *result.Labels) { *old = l }); err == nil {
			t.Errorf("%+v is taken", l)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%+v leaves %v", l, left)
		}
	}
	for _, l := range []result.Labels{{Name: "v1.2_x-3"}, {Tags: []string{"host=db7", "a:b/c", "7"}}, {},
		{Name: strings.Repeat("x", 64), Tags: []string{strings.Repeat("x", 64)}, Note: strings.Repeat("x", 4096)}} {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestLabelsThatCannotBeRead compares the whole error, and what a change of such labels leaves.
func TestLabelsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"version":2,"tags":"a"}`: "run folder: labels.json: damaged: json: cannot unmarshal string into Go struct field " +
			"Labels.tags of type []string",
		`{"name":"x"}`: "run folder: labels.json: damaged: no format version",
		`{"version":2,"name":"a b"}`: `run folder: labels.json: "a b" cannot be a run's name: want letters, digits, dots, ` +
			"dashes and underscores, at most 64, a letter or a digit first",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "labels.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := result.ReadLabels(dir)
		if diff := cmp.Diff(result.Labels{}, l); diff != "" || err == nil || err.Error() != want {
			t.Errorf("%s is read as %s, %v, want %s", text, diff, err, want)
		}
		changed, err := result.ChangeLabels(dir, func(l *result.Labels) { l.Name = "y" })
		if err == nil || err.Error() != "labels: "+dir+": "+want || !cmp.Equal(changed, result.Labels{}) {
			t.Errorf("%s is changed to %+v, %v", text, changed, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("%s has become %s (%v)", text, left, err)
		}
	}
	if l, err := result.ChangeLabels(filepath.Join(t.TempDir(), "none"), func(*result.Labels) {}); err == nil {
		t.Errorf("labels of no folder: %+v", l)
	}
}

// FuzzLabels: whatever a file holds, labels that are read from it can be written again.
func FuzzLabels(f *testing.F) {
	for _, text := range []string{`{"version":2,"name":"x","tags":["a"]}`, `{"version":99}`, `{`, `{"version":2,"tags":"a"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "labels.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := result.ReadLabels(dir); err != nil {
			return
		}
		if _, err := result.ChangeLabels(dir, func(*result.Labels) {}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
