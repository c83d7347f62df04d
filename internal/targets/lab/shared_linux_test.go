package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/testkit/needs"
)

// sharedDir has the lab of all tests of the package, which SharedLab has made; forget takes it off the record.
var (
	sharedDir string
	forget    func()
)

// SharedLab is a lab of two nodes that share a folder, both of which are on, with no run in it: made with the first
// test that wants it. Tests that want it are not beside each other.
func SharedLab(t testing.TB) *lab.Lab {
	t.Helper()
	needs.Lab(t, false)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if sharedDir == "" {
		program, err := os.Executable()
		must(err)
		dir, err := os.MkdirTemp("", "plimsoll-lab-test-")
		must(err)
		forget, err = needs.Record(dir)
		must(err)
		sharedDir = dir
		_, err = lab.Up(t.Context(), lab.Options{Dir: filepath.Join(dir, "lab"), Nodes: 2, Storage: lab.Shared,
			Program: program})
		must(err)
	}
	l, err := lab.Open(filepath.Join(sharedDir, "lab"))
	must(err)
	for _, n := range l.Nodes() {
		must(n.Power().PowerOn(t.Context()))
	}
	must(l.WaitReady(t.Context(), l.Nodes()...))
	return l
}

// DownSharedLab removes it at the end of all tests.
func DownSharedLab() error {
	if sharedDir == "" {
		return nil
	}
	remains, err := lab.Down(context.Background(), filepath.Join(sharedDir, "lab"))
	if err == nil && len(remains) > 0 {
		err = fmt.Errorf("the lab of the tests has left %q", remains)
	}
	if err != nil {
		return err
	}
	forget()
	return os.RemoveAll(sharedDir)
}
