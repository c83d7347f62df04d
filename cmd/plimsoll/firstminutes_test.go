package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
)

// firstPage is the page with a script.
const firstPage = "docs/how-to/first-ten-minutes.md"

// TestFirstTenMinutes does what the page tells a stranger to do, as it is written there, with real fio: a curve over
// the depths and its knee. Only the first two commands are replaced: the tree at hand stands for the clone, and this
// test for what make would build.
func TestFirstTenMinutes(t *testing.T) {
	needs.Fio(t)
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(needs.Root(), filepath.FromSlash(firstPage)))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no script")
	}
	script := string(block[1])
	file := regexp.MustCompile(`(?ms)^\[reads\]\n(.*?)^END\n`)
	if lines := strings.Count(file.FindString(script), "\n") - 1; lines > 6 {
		t.Errorf("the job file has %d lines", lines)
	}
	commands := strings.Split(strings.TrimSpace(file.ReplaceAllString(script, "")), "\n")
	if len(commands) > 5 {
		t.Errorf("%d commands: %q", len(commands), commands)
	}
	const replaced = `git() { mkdir "$3" && ln -s "$2"/* "$3" && rm -rf "$3/bin" "$3/plimsoll-runs"; }
make() { mkdir -p bin && ln -s "$(command -v plimsoll)" bin/plimsoll; }
`
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", replaced+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REPOSITORY="+needs.Root(), "PLIMSOLL_RUNS=")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("the last three commands took %s", time.Since(began).Round(time.Second))

	runs := session{t: t, runs: filepath.Join(dir, "plimsoll", "plimsoll-runs")}
	var report struct {
		Sweeps []struct {
			Workload, Factor string
			Steps            []struct{ Level string }
			Knee             int
		}
	}
	if err := json.Unmarshal([]byte(runs.must("report", "latest", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Sweeps) != 1 {
		t.Fatalf("%d sweeps in the report", len(report.Sweeps))
	}
	sweep := report.Sweeps[0]
	var depths []string
	for _, s := range sweep.Steps {
		depths = append(depths, s.Level)
	}
	if diff := cmp.Diff([]string{"1", "2", "4", "8", "16", "32"}, depths); diff != "" || sweep.Workload != "reads" ||
		sweep.Factor != "iodepth" || sweep.Knee < 0 || sweep.Knee >= len(sweep.Steps) {
		t.Errorf("%+v\n%s", sweep, diff)
	}
	html, err := os.ReadFile(filepath.Join(dir, "plimsoll", "curve.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reads read IOPS over iodepth",
		"Knee (most throughput for its latency) at iodepth " + depths[sweep.Knee]} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "plimsoll", "plimsoll-*")); err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
