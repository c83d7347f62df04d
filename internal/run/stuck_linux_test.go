package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
	"plimsoll/scenario"
)

const paced = `
name: paced
display_name: Paced
summary: s
description: ""
estimated_runtime: 60
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, nodes: "0", count_per_node: 1}
workloads:
  - W: {vm_group: A, config_file: w.fio}
results:
  - rate: {vm_group: A, result_type: iops, aggregate: sum}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A, power_on: True}
run:
  - workload.Start: {workload_name: W, runtime_secs: 12}
teardown:
  - cluster.CleanUp: {}
`

// generatorsOf are the processes of that name that work below a folder.
func generatorsOf(t *testing.T, name, dir string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, comm := range links {
		process := filepath.Dir(comm)
		text, _ := os.ReadFile(comm)
		mounts, _ := os.ReadFile(process + "/mountinfo")
		if strings.TrimSpace(string(text)) == name && strings.Contains(string(mounts), dir) {
			pid, err := strconv.Atoi(filepath.Base(process))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// A real fio that is stopped, or killed as for want of memory, ends its run soon after: the run says what happened to
// it, keeps what was measured, and leaves nothing.
func TestGeneratorHit(t *testing.T) {
	needs.Fio(t)
	needs.That(t, os.Geteuid() == 0, "processes behind the wall", "run as root")
	for name, c := range map[string]struct {
		signal syscall.Signal
		want   []string
	}{
		"stopped": {syscall.SIGSTOP, []string{"fio has not ended 2 s after its own time of 12 s: ",
			"(fio) is stopped (state T)"}},
		"killed": {syscall.SIGKILL, []string{`fio was ended by signal "killed"`, "out of memory?"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, place, facts := here(t, target.Config{Nodes: 1})
			req := pacedRun(t, root, place, facts)
			hit := make(chan []int, 1)
			req.Observer = &hitting{logging{t}, func() {
				pids := generatorsOf(t, "fio", root)
				for _, pid := range pids {
					if err := syscall.Kill(pid, c.signal); err != nil {
						t.Error(err)
					}
				}
				hit <- pids
			}}
			s, err := run.Execute(t.Context(), req)
			select {
			case pids := <-hit:
				if len(pids) == 0 {
					t.Fatal("no fio was found")
				}
			default:
				t.Fatalf("the run ended before its fio was hit: %v; %+v", err, s)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it fails with %v, want %q in it", err, want)
				}
			}
			partly := result.Verdict{State: "partly", Reason: "the run phase did not come to its end"}
			if s.Measured != partly || s.Cleaned.State != "yes" {
				t.Errorf("%+v", s)
			}
			measuredSome(t, s.Dir)
			if left := generatorsOf(t, "fio", root); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// pacedRun is a request to run a paced load of 12 s on one machine, whose generator is given 2 s beyond its time: on a
// busy machine, too, its first report comes before its end.
func pacedRun(t *testing.T, root string, place target.Target, facts target.Facts) run.Request {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(paced)}, "w.fio": {Data: []byte("[a]\nioengine=psync\n" +
		"rw=randwrite\nbs=8k\nsize=8m\nrate_iops=200\ntime_based\nfilename=/dev/sdb\n")}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{Now: time.Now(), Nodes: 1})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	engines := map[string]workload.Engine{"fio": fio.Engine{}}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 1, SizeScale: 0.02, Engines: engines})
	if err != nil {
		t.Fatal(err)
	}
	return run.Request{Root: root, RunID: "hit", Program: "test", Source: "paced", Files: files, Scenario: sc, Plan: p,
		Target: place, Facts: facts, Engines: engines, Clock: clock.Real{}, Patience: 2 * time.Second}
}

// measuredSome demands that a run has kept what was measured until it was ended.
func measuredSome(t *testing.T, dir string) {
	t.Helper()
	folder, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	measured := func(w result.Workload) bool {
		return slices.ContainsFunc(w.Ops, func(o result.OpTotals) bool { return o.Count > 0 })
	}
	if !slices.ContainsFunc(data.Workloads, measured) {
		t.Errorf("nothing was kept of what was measured: %+v", data.Workloads)
	}
}

// A device that answers nobody any more, here a file system that is frozen, ends its run though its processes cannot be
// killed: what hangs on which device is named, nothing there is touched, and what remains is removed once it answers.
func TestDeviceHangs(t *testing.T) {
	needs.Long(t, "killed processes are waited for, for two minutes")
	needs.Fio(t)
	disks := devicetest.Mounted(t, "ext4", 700<<20)
	device, err := filepath.EvalSymlinks(sourceOf(t, disks))
	if err != nil {
		t.Fatal(err)
	}
	root, place, facts := here(t, target.Config{Nodes: 1, Options: target.Options{"dir": disks}})
	f, err := os.Open(disks)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	thaw := sync.OnceValue(func() error { return unix.IoctlSetInt(int(f.Fd()), 0xC0045878, 0) }) // FITHAW
	t.Cleanup(func() { _ = thaw() })
	req := pacedRun(t, root, place, facts)
	req.Observer = &hitting{logging{t}, func() {
		if err := unix.IoctlSetInt(int(f.Fd()), 0xC0045877, 0); err != nil { // FIFREEZE
			t.Error(err)
		}
	}}
	s, err := run.Execute(t.Context(), req)
	hangs := "hangs in the kernel (state D, in percpu_rwsem_wait; it has open files of " + device + ")"
	for _, want := range []string{"fio has not ended 2 s after its own time of 12 s: ", hangs} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it fails with %v, want %q in it", err, want)
		}
	}
	partly := result.Verdict{State: "partly", Reason: "the run phase did not come to its end"}
	left, isLeft := errors.AsType[*run.LeftoverError](err)
	if s.Measured != partly || s.Cleaned.State != "partly" || !isLeft ||
		!slices.ContainsFunc(left.Remains, func(what string) bool { return strings.Contains(what, hangs) }) {
		t.Errorf("%+v", s)
	}
	measuredSome(t, s.Dir)
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	if remains, err := place.Destroy(t.Context(), filepath.Join(s.Dir, "state")); err != nil || len(remains) > 0 {
		t.Errorf("%v remain: %v", remains, err)
	}
	if names, err := filepath.Glob(disks + "/plimsoll*"); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// sourceOf is the device of a mounted file system.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == dir {
			return f[0]
		}
	}
	t.Fatalf("%s is not mounted", dir)
	return ""
}

// hitting does something once, when a workload has reported.
type hitting struct {
	logging
	hit func()
}

func (h *hitting) Progress(p run.Progress) {
	works := func(r record.LiveRow) bool { return r.Ops > 0 }
	if h.hit != nil && slices.ContainsFunc(p.Rows(), works) {
		h.hit()
		h.hit = nil
	}
}
