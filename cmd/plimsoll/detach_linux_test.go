package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// A detached run goes on when its terminal is closed, is found again, shows itself to whoever attaches, lets them go,
// and ends in order when one of them asks, however often.
func TestDetach(t *testing.T) {
	needs.Fio(t)
	t.Parallel()
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	id, _, _ := strings.Cut(s.must("run", tiny(t), "--nodes", "1", "--size-scale", "0.01", "--set", "seconds=60",
		"--detach"), " ")
	if list := s.must("runs", "list"); !strings.Contains(list, id) || !strings.Contains(list, "executing") {
		t.Fatalf("it is not found again: %s", list)
	}
	code, said := signalled(t, s, "Started workload", []os.Signal{syscall.SIGINT}, "attach")
	if code != 130 || !strings.Contains(said, id+" goes on") {
		t.Errorf("left with %d: %s", code, said)
	}
	groups := controlGroups(t, s.runs)
	if out := s.must("cleanup"); !strings.Contains(out, "going on") {
		t.Errorf("a run that goes on was cleaned up: %s", out)
	}
	ends := make(chan string, 4)
	for i := range cap(ends) {
		args := []string{"attach", id[:len(id)-2], "--stop"}
		if i < 2 { // these two only look on: none of them is asked in the run's place
			args = args[:2]
		}
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := s.command(ctx, args...).CombinedOutput()
			if err != nil {
				out = append(out, err.Error()...)
			}
			ends <- string(out)
		}()
	}
	for range cap(ends) {
		if out := <-ends; !strings.Contains(out, "cleanup: complete   (stopped)") || strings.Contains(out, "goes on") {
			t.Errorf("it ended with: %s", out)
		}
	}
	s.nothingLives(groups)
	if out := s.cleaned(); out != "" {
		t.Errorf("a clean-up found something: %s", out)
	}
	if list := s.must("runs", "list"); !strings.Contains(list, "stopped, run: partial") {
		t.Errorf("it is listed as %s", list)
	}
}

// A detached run that comes to nothing says why where it was asked for, with its exit code, and leaves nothing.
func TestDetachRefused(t *testing.T) {
	t.Parallel()
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	cmd := s.command(t.Context(), "run", "no-such-scenario", "--detach")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), `"no-such-scenario": no such file`) {
		t.Errorf("%v: %s", err, out)
	}
	if left, err := os.ReadDir(s.runs); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
