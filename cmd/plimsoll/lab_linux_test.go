package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/needs"
)

// labSession is a session whose labs lie in a folder of its own, with the options that its runs on one have.
func labSession(t *testing.T) (s session, temporary string, run []string) {
	t.Helper()
	needs.Lab(t, false)
	needs.QEMU(t)
	agent, runs, scenario := filepath.Join(t.TempDir(), "plimsoll-agent"), t.TempDir(), tiny(t)
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agent, "./cmd/plimsoll-agent")
	build.Dir, build.Env = needs.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	temporary, err := os.MkdirTemp("", "pl") // short, since sockets are below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(temporary) }) // when it is empty, which the tests see to
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PLIMSOLL_LAB", "/nowhere/lab")
	return session{t, filepath.Join(runs, "runs")}, temporary, []string{"run", scenario, "--target", "lab",
		"--nodes", "2", "--size-scale", "0.01", "--set", "seconds=2", "--target-opt", "storage=shared", "--target-opt",
		"agent=" + agent}
}

// nothingLeft demands that neither labs nor what runs in them are left.
func nothingLeft(t *testing.T, temporary string) {
	t.Helper()
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", temporary, left, err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range processes {
		if line, err := os.ReadFile(p); err == nil && strings.Contains(string(line), temporary) {
			t.Errorf("%s still lives: %q", filepath.Dir(p), line)
		}
	}
}

// A run where no lab is up makes one, works in guests, and takes it down.
func TestRunOnLab(t *testing.T) {
	s, temporary, run := labSession(t)
	out := s.must(run...)
	for _, want := range []string{"run: complete   collection: complete   cleanup: complete   (succeeded)", "Load"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	nothingLeft(t, temporary)
	if out := s.must("cleanup"); !strings.Contains(out, "nothing to clean up") {
		t.Errorf("cleanup: %s", out)
	}
}

// Plimsoll is killed while it makes a lab, starts guests, and has them work: a fresh process removes all of it.
func TestRunOnLabKilled(t *testing.T) {
	s, temporary, run := labSession(t)
	for _, moment := range []string{"", "power on group", "run workload"} {
		cmd := s.command(t.Context(), run...)
		lines, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for moment == "" && t.Context().Err() == nil { // the lab has begun to be
			if found, _ := filepath.Glob(filepath.Join(temporary, "*", "lab.json")); len(found) > 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		var last string
		for r := bufio.NewScanner(lines); moment != "" && r.Scan(); {
			if last = r.Text(); strings.Contains(last, moment) {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !strings.Contains(last, moment) {
			t.Fatalf("it ended before %q: %s", moment, last)
		}
		s.must("cleanup")
		nothingLeft(t, temporary)
	}
}
