package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// moments is how many times a run is killed, spread evenly over its length, besides the dense first ones.
const moments = 12

// TestKilledAtAnyMoment kills plimsoll with SIGKILL at a sweep of moments of a real run. Afterwards one `plimsoll
// cleanup` from a fresh process must leave no process, no file and no control group of the run, and the report must
// still be readable.
func TestKilledAtAnyMoment(t *testing.T) {
	needs.Fio(t)
	scenario := tiny(t)
	args := []string{"run", scenario, "--nodes", "2", "--size-scale", "0.01", "--set", "seconds=2"}
	began := time.Now()
	session{t: t, runs: filepath.Join(t.TempDir(), "runs")}.must(args...)
	whole := time.Since(began)
	// The first hundredths of a second make folders, files and control groups: that is where a record could be late.
	at := []time.Duration{2, 5, 10, 15, 20, 30, 45, 60, 90}
	for i := range at {
		at[i] *= time.Millisecond
	}
	for i := range moments {
		at = append(at, whole*time.Duration(2*i+1)/(2*moments))
	}
	for i, at := range at {
		if !needs.All() && i%5 != 2 { // one of the dense first ones, one of set-up, two under load
			continue
		}
		t.Run(fmt.Sprintf("moment %02d", i+1), func(t *testing.T) {
			t.Parallel()
			killed(t, args, at)
		})
	}
}

func killed(t *testing.T, args []string, at time.Duration) {
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	cmd := s.command(t.Context(), args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(at)
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	groups := controlGroups(t, s.runs)
	t.Logf("killed after %v with %d control groups: %s", at, len(groups), lastLine(said.String()))

	s.must("runs", "list")
	s.must("cleanup")
	s.nothingLives(groups)
	folders, err := filepath.Glob(filepath.Join(s.runs, "*"))
	if err != nil || len(folders) > 1 {
		t.Fatalf("run folders: %v, %v", folders, err)
	}
	for _, folder := range folders {
		if _, err := os.Lstat(filepath.Join(folder, "work")); err == nil {
			t.Errorf("disks left in %s", folder)
		}
		html := filepath.Join(t.TempDir(), "report.html")
		s.must("report", "latest", "--output", html)
		if info, err := os.Stat(html); err != nil || info.Size() < 1000 {
			t.Errorf("no report: %v", err)
		}
		if out := s.must("runs", "list"); !strings.Contains(out, "interrupted") &&
			!strings.Contains(out, "succeeded") ||
			strings.Contains(out, "pending") {
			t.Errorf("verdicts are not settled:\n%s", out)
		}
	}
	if out := s.cleaned(); out != "" {
		t.Errorf("the second clean-up found something: %s", out)
	}
}

// nothingLives fails the test when a process of the session's runs is left, or one of the control groups.
func (s session) nothingLives(groups []string) {
	s.t.Helper()
	if left := processes(s.t, s.runs); len(left) > 0 {
		s.t.Errorf("processes left: %v", left)
	}
	for _, dir := range groups {
		if _, err := os.Stat(dir); err == nil {
			s.t.Errorf("control group left: %s", dir)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

var groupPath = regexp.MustCompile(`/sys/fs/cgroup/[^"\s]+`)

// controlGroups are those that the run's state says it uses and that bear our name.
func controlGroups(t *testing.T, runs string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(runs, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name,
			string(filepath.Separator)+"state"+string(filepath.Separator)) {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, path := range groupPath.FindAllString(string(data), -1) {
			if strings.Contains(path, "plimsoll") && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// processes are those whose command line, environment or working folder names a folder. A process may need a moment to
// leave the table.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	var left []string
	for range 50 {
		left = left[:0]
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
			// a command's working folder may not be seen from here
			home, _ := os.ReadFile(filepath.Join(dir, "environ"))
			if filepath.Base(dir) != fmt.Sprint(syscall.Getpid()) && (bytes.Contains(line, []byte(folder)) ||
				bytes.Contains(home, []byte("HOME="+folder)) || strings.HasPrefix(cwd, folder)) {
				left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}
