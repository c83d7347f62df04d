// Package golden compares what a test produced with a file kept in the repository, and rewrites the file when
// asked to.
//
//	go test ./internal/run/plan -update
//
// rewrites every golden file of the package. Goldens hold no clock, no host name, no absolute path and no map
// order; a test that has those in its output replaces them first. Tests only: no shipped package imports this one.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update is looked up first, so that a test binary in which another package has defined -update still starts.
var update = updateFlag()

func updateFlag() func() bool {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "rewrite golden files instead of comparing with them")
	}
	return func() bool {
		f := flag.Lookup("update")
		g, ok := f.Value.(flag.Getter)
		if !ok {
			return f.Value.String() == "true"
		}
		on, _ := g.Get().(bool)
		return on
	}
}

// Updating reports whether golden files are to be rewritten.
func Updating() bool { return update() }

// Compare fails the test, showing the difference, when got is not what the file at path holds. The path is
// relative to the test's package. With -update the file and its folders are written instead.
func Compare(t testing.TB, path string, got []byte) {
	t.Helper()
	if update() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run this test with -update to write it, then read what it wrote)", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (-want +got; -update rewrites it):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}
