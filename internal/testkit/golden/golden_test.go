package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB
	said strings.Builder
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said.WriteString(format)
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.said.WriteString(format)
	panic(r)
}

func said(t *testing.T, f func(testing.TB)) (text string) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		text = r.said.String()
	}()
	f(r)
	return ""
}

func setUpdate(t *testing.T, on string) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	if err := flag.Set("update", on); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("update", before) })
}

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "file.golden")
	setUpdate(t, "false")
	if got := said(t, func(tb testing.TB) { Compare(tb, path, []byte("a")) }); !strings.Contains(got, "-update") {
		t.Errorf("a missing file is not explained: %q", got)
	}

	setUpdate(t, "true")
	Compare(t, path, []byte("a\n"))
	if b, err := os.ReadFile(path); err != nil || string(b) != "a\n" {
		t.Fatalf("-update wrote %q, %v", b, err)
	}

	setUpdate(t, "false")
	if got := said(t, func(tb testing.TB) { Compare(tb, path, []byte("a\n")) }); got != "" {
		t.Errorf("equal content objected to: %q", got)
	}
	if got := said(t, func(tb testing.TB) { Compare(tb, path, []byte("b\n")) }); !strings.Contains(got, "differs") {
		t.Errorf("a difference passed: %q", got)
	}
}

func TestUpdatingFollowsTheFlag(t *testing.T) {
	setUpdate(t, "true")
	if !Updating() {
		t.Error("Updating is false with -update")
	}
}
