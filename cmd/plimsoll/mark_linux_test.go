package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
)

// searching is a session with a search of five rates, none of which breaks a limit, on a folder.
func searching(t *testing.T, folder string) (session, []string) {
	t.Helper()
	needs.Fio(t)
	job := filepath.Join(t.TempDir(), "my.fio")
	if err := os.WriteFile(job, []byte("[job]\nrw=randread\nbs=4k\nsize=64m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return session{t: t, runs: filepath.Join(t.TempDir(), "runs")}, []string{"mark", job, "--disk", folder, "--limit",
		"mean < 100s", "--limit", "errors = 0", "--from", "10", "--to", "160", "--probe", "1s", "--size-scale", "0.1"}
}

// wholeSearch demands that a search which had made so many probes goes on to its end.
func wholeSearch(t *testing.T, s session, probes string) {
	t.Helper()
	said := s.must("resume", "latest")
	if !strings.Contains(said, "No limit broke up to 160 IOPS") || !strings.Contains(said, "\n"+probes) {
		t.Errorf("it does not go on to its end, or forgets: %s", said)
	}
	if left := s.cleaned(); left != "" {
		t.Errorf("a clean-up found something: %s", left)
	}
}

// A search that is stopped at any moment, or killed, keeps what it has learned, and goes on to the same kind of answer.
func TestMarkStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word    string
		signal  os.Signal
		learned string
	}{
		{"mark 2", syscall.SIGINT, ""},
		{"probe 1: ", syscall.SIGTERM, ""},
		{"probe 3: ", syscall.SIGINT, "Unfinished after 2 probes: no limit broke up to 20 IOPS"},
		{"probe 3: ", syscall.SIGKILL, "Unfinished after 2 probes: no limit broke up to 20 IOPS"},
	} {
		t.Run(c.signal.String()+" at "+c.word, func(t *testing.T) {
			s, args := searching(t, t.TempDir())
			code, said := signalled(t, s, c.word, []os.Signal{c.signal}, args...)
			if killed := c.signal == syscall.SIGKILL; killed {
				said = ""
				if c.learned != "" {
					said = s.must("report", "latest", "-o", "text")
				}
			} else if code != 130 || !strings.Contains(said, "goes on") {
				t.Errorf("exit code %d: %s", code, said)
			}
			if !strings.Contains(said, c.learned) || c.learned == "" && strings.Contains(said, "o limit broke") {
				t.Errorf("want %q: %s", c.learned, said)
			}
			wholeSearch(t, s, "     10 IOPS")
		})
	}
}

// What was under a folder goes away in the middle of a search, and another file system is there in its place: its
// answers are not taken for those of the first, and the search goes on when that is back.
func TestMarkOnAnotherDisk(t *testing.T) {
	t.Parallel()
	needs.That(t, os.Geteuid() == 0, "root", "run as root")
	folder, under := t.TempDir(), t.TempDir()
	mount := func() {
		t.Helper()
		if out, err := exec.Command("mount", "--bind", under, folder).CombinedOutput(); err != nil {
			t.Skipf("nothing can be mounted here: %v, %s", err, out)
		}
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2g", "apart", under).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v, %s", err, out)
	}
	t.Cleanup(func() { _ = syscall.Unmount(under, syscall.MNT_DETACH) })
	mount()
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	s, args := searching(t, folder)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := s.command(ctx, args...)
	says := &heard{word: "probe 2: ", said: make(chan struct{})}
	c.Stdout, c.Stderr = says, says
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-says.said:
	case <-ctx.Done():
	}
	if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
		t.Error(err)
	}
	_ = c.Wait()
	said := says.String()
	if c.ProcessState.ExitCode() != 1 ||
		!strings.Contains(said, "and the search began on tmpfs, apart: what was asked") ||
		!strings.Contains(said, ": no limit broke up to ") || strings.Contains(said, "o limit broke up to 160") {
		t.Errorf("exit code %d: %s", c.ProcessState.ExitCode(), said)
	}
	mount()
	wholeSearch(t, s, "     10 IOPS")
}

// A search that was killed at a drawn moment and resumed says what one says that nobody touched: the answer, every
// probe and every number.
func TestMarkResumedIsTheSame(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	job := filepath.Join(t.TempDir(), "my.fio")
	place(t, job, "[g]\nioengine=libaio\niodepth=64\nrw=randrw\nbs=8k\nsize=8m\ntime_based\nruntime=5\n")
	search := []string{"mark", job, "--target", "sim", "--target-opt", "seed=7", "--limit", "read p99 < 5ms"}
	answer := func(s session, args ...string) string {
		said, _, _ := strings.Cut(s.must(args...), "\nreport: ")
		return said
	}
	whole := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	began := time.Now()
	want := answer(whole, search...)
	if n := strings.Count(want, "IOPS  held"); n < 2 {
		t.Fatalf("only %d probes held: %s", n, want)
	}
	took, resumed := time.Since(began), 0
	for range needs.Draws(3, 30) {
		s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
		cmd := s.command(t.Context(), search...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := took/4 + rand.N(took/2)
		time.Sleep(at)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		s.must("cleanup")
		found, err := filepath.Glob(filepath.Join(s.runs, "2*", "experiment.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 { // before there was anything to resume
			continue
		}
		resumed++
		if got := answer(s, "resume", "latest"); got != want {
			t.Errorf("killed after %v:\n%s", at, cmp.Diff(want, got))
		}
	}
	if resumed == 0 {
		t.Error("none was begun when it was killed")
	}
}
