package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// TestWritersKilled kills every command that writes at random moments. What it was to write is then as it was before,
// or whole; what it reads is unharmed; the same command works afterwards.
func TestWritersKilled(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	first := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	for _, seed := range []string{"seed=1", "seed=2"} {
		first.must("run", tiny(t), "--target", "sim", "--target-opt", seed, "--size-scale", "0.01", "--quiet")
	}
	const times = 6
	for name, c := range map[string]struct {
		args []string
		out  string // file that is written, in the working folder; "" when what is written is in the folder of runs
	}{
		"report":  {[]string{"report", "latest", "--output", "out"}, "out"},
		"json":    {[]string{"report", "latest", "-o", "json", "--output", "out"}, "out"},
		"metrics": {[]string{"metrics", "export", "latest", "--output", "out"}, "out"},
		"tag":     {[]string{"runs", "tag", "latest", "weekly"}, ""},
		"note":    {[]string{"runs", "note", "latest", "of the old firmware"}, ""},
		"name":    {[]string{"runs", "name", "latest", "before"}, ""},
		"cleanup": {[]string{"cleanup", "latest"}, ""},
		"run":     {[]string{"run", tiny(t), "--target", "sim", "--size-scale", "0.01"}, ""},
		"rm":      {[]string{"runs", "rm", "latest", "--yes"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			s := session{t: t, runs: filepath.Join(work, "runs")}
			again := func() {
				if err := os.RemoveAll(s.runs); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(s.runs, os.DirFS(first.runs)); err != nil {
					t.Fatal(err)
				}
			}
			again()
			began := time.Now()
			cmd := s.command(t.Context(), c.args...)
			cmd.Dir = work
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			whole := time.Since(began)
			var want []byte
			if c.out != "" {
				var err error
				if want, err = os.ReadFile(filepath.Join(work, c.out)); err != nil {
					t.Fatal(err)
				}
			}
			for range times {
				again()
				const before = "what stood here"
				if c.out != "" {
					place(t, filepath.Join(work, c.out), before)
				}
				cmd := s.command(t.Context(), c.args...)
				cmd.Dir = work
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				at := time.Duration(rand.Int64N(int64(whole)))
				time.Sleep(at)
				_ = cmd.Process.Kill()
				var exit *exec.ExitError
				if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				if c.out != "" {
					got, err := os.ReadFile(filepath.Join(work, c.out))
					if err != nil || string(got) != before && !bytes.Equal(got, want) {
						t.Errorf("killed after %v: %v, %d bytes, neither the %d before nor the %d that are whole", at, err, len(got),
							len(before), len(want))
					}
				}
				if list := s.must("runs", "list"); strings.Contains(list, "unreadable") {
					t.Errorf("killed after %v: %s", at, list)
				}
				s.must("cleanup")
				cmd = s.command(t.Context(), c.args...)
				cmd.Dir = work
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("killed after %v, then again: %v: %s", at, err, said)
				}
			}
		})
	}
}

// TestExperimentsKilled kills an experiment and a sweep with real load; one clean-up ends and removes all of it.
func TestExperimentsKilled(t *testing.T) {
	needs.Fio(t)
	t.Parallel()
	folder := t.TempDir()
	t.Cleanup(func() {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left in the folder that was measured: %v %v", left, err)
		}
	})
	files := t.TempDir()
	place(t, filepath.Join(files, "j.fio"), "[g]\nioengine=psync\nrw=randwrite\nbs=8k\nsize=8m\ntime_based\n"+
		"runtime=30\n")
	for name, args := range map[string][]string{
		"sweep": {"device", "sweep", folder, "--what", "iodepth", "--levels", "1,8", "--size", "32MiB", "--duration",
			"30s", "--warm-up", "1s", "--repeats", "1"},
		"experiment": {"run", filepath.Join(files, "j.fio"), "--sweep", "iodepth=1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
			cmd := s.command(t.Context(), args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			loaded := filepath.Join(s.runs, "*", "runs", "*", "raw", "*", "*", "*")
			deadline := time.Now().Add(time.Minute)
			for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				if found, _ := filepath.Glob(loaded); len(found) > 0 {
					break
				}
			}
			_ = cmd.Process.Kill()
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it had ended: %s", &said)
			}
			if found, _ := filepath.Glob(loaded); len(found) == 0 {
				t.Fatalf("it came to no load: %s", &said)
			}
			groups := controlGroups(t, s.runs)
			s.must("runs", "list")
			s.must("cleanup")
			s.nothingLives(groups)
			if out := s.cleaned(); out != "" {
				t.Errorf("the second clean-up found something: %s", out)
			}
		})
	}
}

// TestFullDisk fills the disk of the run folders at every step of a run with real load. The run ends by itself, or is
// killed, and a clean-up ends the load and removes the files though there is no room to note it; with room it is noted.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	needs.That(t, os.Geteuid() == 0, "a small file system", "run as root")
	for _, word := range []string{"about", "setup, step", "run, step", "Started workload", "teardown, step"} {
		for _, dies := range []bool{false, true} {
			name := "ends by itself"
			if dies {
				name = "is killed"
			}
			t.Run(name+" at "+word, func(t *testing.T) {
				t.Parallel()
				disk := t.TempDir()
				if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=400m"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := syscall.Unmount(disk, 0); err != nil {
						t.Error(err)
					}
				})
				s := session{t: t, runs: filepath.Join(disk, "runs")}
				cmd := s.command(t.Context(), "run", tiny(t), "--nodes", "1", "--size-scale", "0.01", "--set",
					"seconds=3", "--target-opt", "reserve=1MiB")
				says := &heard{word: word, said: make(chan struct{})}
				cmd.Stdout, cmd.Stderr = says, says
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				select {
				case <-says.said:
				case err := <-ended:
					t.Fatalf("it never came there: %v: %s", err, says)
				}
				ballast := filepath.Join(disk, "ballast")
				fill(t, ballast)
				if dies {
					_ = cmd.Process.Kill()
				}
				select {
				case <-ended:
				case <-time.After(2 * time.Minute):
					_ = cmd.Process.Kill()
					t.Errorf("it does not end on a full disk: %s", says)
				}
				if list, ended := s.must("runs", "list"), cmd.ProcessState.ExitCode(); !dies &&
					strings.Contains(list, "succeeded") != (ended == 0) {
					t.Errorf("it ended with %d, and is listed as %s", ended, list)
				}
				fill(t, ballast) // what the run has freed as well
				groups := controlGroups(t, s.runs)
				for range 2 {
					cleanup := s.command(t.Context(), "cleanup")
					out, err := cleanup.CombinedOutput()
					if err != nil && !strings.Contains(string(out), "cannot be noted") {
						t.Errorf("clean-up on a full disk: %v: %s", err, out)
					}
				}
				s.nothingLives(groups)
				if left, _ := filepath.Glob(filepath.Join(s.runs, "*", "work")); len(left) > 0 {
					t.Errorf("files left: %v", left)
				}
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
				s.must("cleanup")
				list := s.must("runs", "list")
				if strings.Contains(list, "cleanup:") || strings.Contains(list, "unreadable") {
					t.Errorf("verdicts are not settled: %s", list)
				}
			})
		}
	}
}

// fill writes to a file until its file system is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 1; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
}
