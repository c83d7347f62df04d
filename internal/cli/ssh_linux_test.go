package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
)

// onHosts is a scenario of fio for hosts that are there already.
const onHosts = `
name: on_hosts
display_name: fio on hosts
summary: s
description: ""
estimated_runtime: 60
vms:
  - Loader: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads:
  - Load: {vm_group: Loader, config_file: load.fio, iogen_params: {reporting_interval: 1}}
results:
  - Load: {title: Operations per second, vm_group: Loader, result_type: iops, aggregate: sum, workload_mask: Load}
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: Loader}
  - vm_group.PowerOn: {vm_group_name: Loader}
run:
  - workload.Start: {workload_name: Load, runtime_secs: 6}
teardown:
  - cluster.CleanUp: {}
`

// onTwoHosts are two hosts, plimsoll with a folder for its runs, and the words that have it run fio on both.
func onTwoHosts(t *testing.T) (l *sshtest.Lab, runs string, plimsoll func(...string) (int, string), run []string) {
	t.Helper()
	needs.Fio(t)
	l = sshtest.New(t, "db1", "db2")
	dir := t.TempDir()
	runs = filepath.Join(t.TempDir(), "runs")
	plimsoll = extended(runs, func(*drivers.Registry) {})
	write(t, filepath.Join(dir, "test.yml"), onHosts)
	write(t, filepath.Join(dir, "load.fio"), "[job]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nrate_iops=200\n"+
		"ioengine=libaio\niodepth=2\ndirect=1\ntime_based\nruntime=8\n")
	return l, runs, plimsoll, []string{"run", dir, "--target", "ssh", "--target-opt", "inventory=" + l.Inventory,
		"--target-opt", "agents=" + l.Dir, "--size-scale", "0.002"}
}

// TestRunOverSSH runs fio on two hosts as a user would, then again with one whose server is killed on the way: what was
// measured is kept, the verdict names the host, and a clean-up removes what is left there once it is back.
func TestRunOverSSH(t *testing.T) {
	l, runs, plimsoll, run := onTwoHosts(t)

	code, text := plimsoll(run...)
	if code != 0 {
		t.Fatalf("run ends with %d:\n%s", code, text)
	}
	code, text = plimsoll("report", "latest", "-o", "json")
	if code != 0 {
		t.Fatalf("report ends with %d:\n%s", code, text)
	}
	says(t, text, `"db1`, `"db2`)
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}

	killed := clock.Real{}.Group()
	killed.Go(func() {
		for range 600 {
			if l.Alive("--output-format=json+") >= 2 { // on both
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		l.Hosts[1].Kill(t)
	})
	code, text = plimsoll(append(run, "--target-opt", "patience=3s")...)
	killed.Wait()
	if code == 0 {
		t.Errorf("a run that has lost a host ends with 0:\n%s", text)
	}
	code, text = plimsoll("report", "latest", "-o", "md")
	t.Logf("report (%d): %s", code, text)
	says(t, text, "db2")
	l.Hosts[1].Start(t)
	if len(l.Remains()) == 0 {
		t.Error("nothing is left of a host that was away: what is the clean-up for?")
	}
	entries, err := os.ReadDir(runs)
	if err != nil {
		t.Fatal(err)
	}
	code, text = plimsoll("cleanup", entries[len(entries)-1].Name())
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("cleanup ends with %d, left %q:\n%s", code, left, strings.TrimSpace(text))
	}
}

// TestStoppedOverSSH stops fio (SIGSTOP) on one of two hosts in the middle of a run: it is named there with its process
// and ended, what both measured until then is kept, and nothing is left on the hosts.
func TestStoppedOverSSH(t *testing.T) {
	l, _, plimsoll, run := onTwoHosts(t)
	stopped := clock.Real{}.Group()
	var pid int
	stopped.Go(func() {
		for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); {
			pid = reporting(filepath.Join(l.Dir, "db1"))
			time.Sleep(50 * time.Millisecond)
		}
		if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
			t.Error("no fio was found on db1")
		}
	})
	code, text := plimsoll(append(run, "--patience", "2s")...)
	stopped.Wait()
	if code != exit.Failed {
		t.Errorf("run ends with %d", code)
	}
	says(t, text, `workload "Load" on db1: fio has not ended 2 s after its own time of `,
		fmt.Sprintf("process %d (fio) is stopped (state T)", pid), "run: partial", "cleanup: complete")
	if code, report := plimsoll("report", "latest", "-o", "json"); code != 0 {
		t.Errorf("report ends with %d:\n%s", code, report)
	} else {
		says(t, report, `"db1`, `"db2`)
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// reporting is a fio that works below a folder and has reported what it did, 0 when there is none yet.
func reporting(folder string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		process := filepath.Dir(link)
		name, _ := os.ReadFile(process + "/comm")
		where, err := os.Readlink(link)
		if err != nil || strings.TrimSpace(string(name)) != "fio" || !strings.HasPrefix(where, folder) {
			continue
		}
		text, _ := os.ReadFile(where + "/Load/fio.out")
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && strings.Contains(string(text), `"jobs"`) {
			return pid
		}
	}
	return 0
}
