package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// filesOf writes the files of a script into a folder and returns that.
func filesOf(t *testing.T, script string) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/script/" + script + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		place(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	return dir
}

// tiny writes the scenario of the run script into a folder and returns its path.
func tiny(t *testing.T) string {
	t.Helper()
	return filepath.Join(filesOf(t, "run"), "tiny")
}

func place(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// session is a user's terminal: one folder of runs, one way to call plimsoll.
type session struct {
	t    *testing.T
	runs string
	env  []string // besides that of the test
}

func (s session) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "plimsoll", args...) // the test binary by that name; see TestMain
	cmd.Env = append(append(os.Environ(), "PLIMSOLL_RUNS="+s.runs), s.env...)
	return cmd
}

// must runs a command that has to succeed and returns what it printed to standard output.
func (s session) must(args ...string) string {
	s.t.Helper()
	var out, err bytes.Buffer
	cmd := s.command(s.t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil {
		s.t.Fatalf("plimsoll %s: %v\n%s%s", strings.Join(args, " "), e, &out, &err)
	}
	return out.String()
}

// cleaned returns what a clean-up of the runs removes. Temporary files do not count: other tests, whose processes are
// killed beside this one, leave theirs in the same folder.
func (s session) cleaned() string {
	s.t.Helper()
	var rest strings.Builder
	for line := range strings.Lines(s.must("cleanup")) {
		if !strings.Contains(line, "nothing to clean up") && !strings.Contains(line, ": temporary files of a process") {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// BenchmarkCheck is a whole process: start, read a scenario, print, end.
func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		if out, err := exec.Command("plimsoll", "check", "mixed-bursty").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// BenchmarkPlan is a whole process that reads the largest scenario of the library, looks at this machine and makes the
// plan.
func BenchmarkPlan(b *testing.B) {
	for b.Loop() {
		if out, err := exec.Command("plimsoll", "plan", "mixed-bursty").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
