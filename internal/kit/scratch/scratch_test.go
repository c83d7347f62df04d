package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain is, in a process of its own, one that makes a folder and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("SCRATCH_TEST_DIES") == "" {
		os.Exit(m.Run())
	}
	d, err := Make("killed")
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path, "file"), []byte("text"), 0o600)
	}
	if err == nil {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
	}
	select {}
}

func TestClean(t *testing.T) { // not parallel: TMPDIR is of the whole process
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dies := exec.CommandContext(t.Context(), os.Args[0])
	dies.Env = append(os.Environ(), "SCRATCH_TEST_DIES=1")
	var killed *exec.ExitError
	if err := dies.Run(); !errors.As(err, &killed) {
		t.Fatal(err)
	}
	mine, err := Make("mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(tmp, "plimsoll-notes-2026"), 0o700),
		os.Mkdir(filepath.Join(tmp, "somebody"), 0o700),
		os.Symlink("somebody", filepath.Join(tmp, "plimsoll-scratch-link-1")),
		os.WriteFile(filepath.Join(tmp, "plimsoll-scratch-file-2"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "plimsoll-scratch-killed-*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("%q, %v", left, err)
	}
	removed, err := Clean()
	if err != nil || !cmp.Equal(left, removed) {
		t.Errorf("removed %q, %v, want %q", removed, err, left)
	}
	for _, stays := range []string{mine.Path, tmp + "/plimsoll-notes-2026", tmp + "/somebody",
		tmp + "/plimsoll-scratch-link-1", tmp + "/plimsoll-scratch-file-2"} {
		if _, err := os.Lstat(stays); err != nil {
			t.Error(err)
		}
	}
	if err := mine.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
