package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run/experiment"
)

// A probe that offers its rate for longer is expected to take longer, by what its load does.
func TestTimeLeft(t *testing.T) {
	m := &experiment.Mark{Workload: "pg", Seconds: 5, Limits: []string{"pg tx p99 < 20ms"}}
	lines := []judge.Searched{{Probes: make([]mark.Probe, 1)}}
	load := judge.LoadTime(m, 250, []mark.Probe{{Held: true}, {}})
	if load < 80*time.Second || load > 81*time.Second { // 200 beyond p99 of 250 a second
		t.Fatalf("a load of %s", load)
	}
	if got := judge.LoadTime(m, 250, []mark.Probe{{Held: true}}); got < 16*time.Second || got > 17*time.Second {
		t.Errorf("in the ramp: %s", got)
	}
	got := left(lines, 3, load, 5*time.Second, 8*time.Second, 1)
	if got != "; 1 min 23 s to 2 min 46 s left" && got != "; 1 min 24 s to 2 min 48 s left" {
		t.Errorf("left: %q", got)
	}
	if got := left(lines, 3, load, 5*time.Second, 10*time.Millisecond, 1); got != "" {
		t.Errorf("of a simulation: %q", got)
	}
	if got := judge.LoadTime(m, 0, nil); got != 5*time.Second {
		t.Errorf("without a rate: %s", got)
	}
}

// A generator that gave way is no bound of the mark.
func TestBoundsOfGenerator(t *testing.T) {
	low, high := judge.Bounds([]mark.Probe{{Offered: 200, Generator: "it fell behind"}, {Offered: 50, Held: true},
		{Offered: 100, Generator: "it fell behind"}})
	if low != 50 || high != 0 {
		t.Errorf("between %v and %v", low, high)
	}
}

// A search that was ended before a further condition was begun says so.
func TestNotBegun(t *testing.T) {
	a, _, errs := quiet(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s", "test.yml"), `name: s
display_name: S
summary: One.
description: ""
estimated_runtime: 30
results: []
vms:
  - V: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
workloads:
  - W: {vm_group: V, config_file: w.fio}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: V, power_on: True}
run:
  - workload.Start: {workload_name: W, runtime_secs: 30}
teardown: [cluster.CleanUp: {}]
`)
	write(t, filepath.Join(dir, "s", "w.fio"),
		"[r]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\nsize=1g\n")
	args := []string{"mark", filepath.Join(dir, "s"), "--vary", "rate", "--target", "sim", "--from", "100",
		"--to", "200", "--limit", "read p50 < 1s", "--condition", "alone", "--condition", "node-lost", "--dir", dir}
	if code := a.main(args); code != 0 || !strings.Contains(errs.String(), "under each of 2 conditions") {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	journal, err := filepath.Glob(filepath.Join(dir, "*", "cells.jsonl"))
	if err != nil || len(journal) != 1 {
		t.Fatal(journal, err)
	}
	text, err := os.ReadFile(journal[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, journal[0], strings.Join(strings.SplitAfter(string(text), "\n")[:2], "")) // of the first probe
	folder, err := experiment.Open(filepath.Dir(journal[0]))
	if err != nil {
		t.Fatal(err)
	}
	b, out, _ := quiet(t)
	b.RunsDir = dir
	if err := b.sides.MarkResult(folder, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `Under "node-lost" no rate was offered yet.`) {
		t.Errorf("%s", out)
	}
}

// beside is a scenario of a workload and another that ends as it likes; the disks are filled first, or are not.
func beside(t *testing.T, filled bool) string {
	t.Helper()
	dir, fill := filepath.Join(t.TempDir(), "s"), ""
	if filled {
		fill = "  - workload.PrefillRun: {workload_name: W}\n  - workload.PrefillRun: {workload_name: B}\n"
	}
	write(t, filepath.Join(dir, "test.yml"), `name: s
display_name: S
summary: One.
description: ""
estimated_runtime: 30
results: []
vms:
  - V: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
workloads:
  - W: {vm_group: V, config_file: w.fio}
  - B: {vm_group: V, config_file: b.fio}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: V, power_on: True}
`+fill+`run:
  - workload.Start: {workload_name: W, runtime_secs: 20}
  - workload.Start: {workload_name: B}
teardown: [cluster.CleanUp: {}]
`)
	job := "[r]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\ntime_based\nsize=64m\n"
	write(t, filepath.Join(dir, "w.fio"), job)
	write(t, filepath.Join(dir, "b.fio"), job+"runtime=5\nrate_iops=100\n")
	return dir
}

// A condition that cannot be had ends no search: the others have their marks, and resume tries that one again.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	a, out, errs := quiet(t)
	code := a.main([]string{"mark", beside(t, true), "--target", "sim", "--vary", "rate", "--workload", "W", "--from",
		"100000", "--probes", "5", "--limit", "read p99 < 5ms", "--dir", a.RunsDir, "--condition", "alone",
		"--condition", "with B", "--condition", "worn-in"})
	for _, want := range []string{"alone: ", "worn-in: ", "probe 6, alone: ", "the search goes on without",
		`condition "with B": "B" did not run beside "W" to its end`} {
		if code != exit.Failed || strings.Count(out.String()+errs.String(), want) == 0 {
			t.Errorf("exit code %d, no %q: %s%s", code, want, out, errs)
		}
	}
	out.Reset()
	errs.Reset()
	code = a.main([]string{"resume", "latest", "--dir", a.RunsDir})
	if n := strings.Count(errs.String(), "probe 1, with B"); code != exit.Failed || n != 1 ||
		strings.Contains(errs.String(), ", worn-in: ") || strings.Contains(out.String(), `\n`) {
		t.Errorf("exit code %d, %d probes with B: %s%s", code, n, out, errs)
	}
}

// A number for which there is no room is the end of what is offered and no failure, for resume, too, which asks again:
// there may be room by then. That there is none for one is a failure.
func TestRoomOfVMs(t *testing.T) {
	t.Parallel()
	a, out, errs := quiet(t)
	args := []string{"mark", beside(t, true), "--target", "sim", "--vary", "vms", "--workload", "W", "--limit",
		"read p99 < 5ms", "--condition", "alone", "--dir", a.RunsDir, "--nodes", "1"}
	const want = "alone: No limit broke up to 3 VMs; for 4 VMs there is no room: target sim: provision: memory: 2 GiB "
	for _, with := range [][]string{append(args, "--target-opt", "memory=1800MiB"),
		{"resume", "latest", "--dir", a.RunsDir}} {
		out.Reset()
		if code := a.main(with); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%v: exit code %d, %s%s", with, code, out, errs)
		}
	}
	if n := strings.Count(errs.String(), "no room: "); n != 3 { // of 4, and of 6 and 4 again
		t.Errorf("no room %d times: %s", n, errs)
	}
	if code := a.main(append(args, "--target-opt", "memory=256MiB")); code != exit.Failed ||
		!strings.Contains(errs.String(), "a probe failed: target sim: provision: memory: ") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// A mark whose runs are invalid is not said without that.
func TestMarkOfInvalidRuns(t *testing.T) {
	t.Parallel()
	for filled, want := range map[bool]string{true: "", false: "Invalid in all 2 runs"} {
		a, out, errs := quiet(t)
		args := []string{"mark", beside(t, filled), "--target", "sim", "--vary", "rate", "--workload", "W", "--from",
			"1000", "--to", "2000", "--limit", "read p99 < 5ms", "--dir", a.RunsDir, "--condition", "alone"}
		if code := a.main(args); code != 0 || !strings.HasPrefix(out.String(), want) ||
			strings.Contains(out.String(), "Invalid in") == filled {
			t.Errorf("filled %v: exit code %d, %s%s", filled, code, out, errs)
		}
		out.Reset()
		if a.main(append(args, "--json")); strings.Contains(out.String(), `"severity": "invalid"`) == filled {
			t.Errorf("filled %v: %s", filled, out)
		}
	}
}

// ticking is a clock of which every look takes a minute.
type ticking struct {
	scenarioClock
	looks atomic.Int64
}

func (c *ticking) Now() time.Time {
	return c.scenarioClock.Now().Add(time.Duration(c.looks.Add(1)) * time.Minute)
}

// A time limit is of the whole search, and not of each of its probes, also where it ends one under way.
func TestTimeLimitOfSearch(t *testing.T) {
	for limit, want := range map[string]string{"20m": "Unfinished after 2 probes: no limit broke up to", "6m": ""} {
		var out, errs bytes.Buffer
		a := newApp(&console.Console{In: strings.NewReader(""), Out: &out, Err: &errs, Clock: &ticking{}},
			drivers.All())
		job := filepath.Join(t.TempDir(), "my.fio")
		write(t, job, "[r]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\n")
		code := a.main([]string{"mark", job, "--target", "sim", "--limit", "p99 < 5ms", "--from", "100",
			"--to", "100000", "--time-limit", limit, "--dir", t.TempDir()})
		if code != exit.Failed || !strings.Contains(errs.String(), ": the time limit is reached") ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", limit, code, &out, &errs)
		}
	}
}
