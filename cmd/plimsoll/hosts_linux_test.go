package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/bmctest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
	"plimsoll/internal/workloads/postgres"
)

const hostsScenario = `
name: on_hosts
display_name: fio on hosts
summary: s
description: ""
estimated_runtime: 60
vars:
  secs: {default: 6}
experiment:
  factors: {secs: [6, 7]}
  repeats: 1
  order: interleaved
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
  - workload.Start: {workload_name: Load, runtime_secs: {{ secs }}}
teardown:
  - cluster.CleanUp: {}
`

// onHosts is a folder with a scenario "grid" for hosts, and a plimsoll that runs in it where they are reached.
func onHosts(t *testing.T, l *sshtest.Lab, text, job string) (dir string, plimsoll func(...string) (int, string)) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "grid"), 0o755); err != nil {
		t.Fatal(err)
	}
	sshtest.Write(t, filepath.Join(dir, "grid", "test.yml"), text)
	sshtest.Write(t, filepath.Join(dir, "grid", "load.fio"), "[job]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\n"+
		"rate_iops=100\nioengine=libaio\niodepth=2\ndirect=1\n"+job)
	program := filepath.Join(dir, "plimsoll")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, func(words ...string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.Space, program}, words...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("plimsoll %v: %v:\n%s", words, err, out)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
}

// TestMarkOnHosts: a search on a host that crashes in the second probe says what it learned before, and goes on when
// the host is back.
func TestMarkOnHosts(t *testing.T) {
	needs.Fio(t)
	l := sshtest.NewApart(t, "db1")
	before, after, _ := strings.Cut(hostsScenario, "experiment:\n")
	_, after, _ = strings.Cut(after, "order: interleaved\n")
	dir, plimsoll := onHosts(t, l, strings.Replace(before+after, "default: 6", "default: 3", 1), "time_based\n")
	crashed := make(chan struct{})
	go func() {
		defer close(crashed)
		for range 1200 {
			runs, _ := filepath.Glob(filepath.Join(dir, "plimsoll-runs", "*", "runs", "*"))
			if len(runs) == 2 && sshtest.Alive("--output-format=json+") > 0 {
				l.Hosts[0].Crash(t)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	code, text := plimsoll("mark", "grid", "--vary", "rate", "--from", "50", "--to", "100", "--limit", "p99 < 30s",
		"--target", "ssh", "--target-opt", "inventory="+l.Inventory, "--target-opt", "agents="+l.Dir, "--target-opt",
		"patience=3s", "--size-scale", "0.002")
	<-crashed
	t.Logf("mark ends with %d:\n%s", code, text)
	if code == 0 || !strings.Contains(text, "No limit broke up to 50 IOPS") ||
		!strings.Contains(text, "plimsoll resume") {
		t.Error("it ends well, forgets the first probe, or does not say how to go on")
	}
	l.Hosts[0].Start(t)
	code, text = plimsoll("resume", "latest")
	t.Logf("resume ends with %d:\n%s", code, text)
	if code != 0 || !strings.Contains(text, "No limit broke up to 100 IOPS") {
		t.Error("it does not go on to its end")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestFailoverOnHosts: the host of a database loses its power, and its standby on another one takes over. With
// synchronous replication nothing that was acknowledged is lost.
func TestFailoverOnHosts(t *testing.T) {
	needs.Long(t, "a failover with its time before and after")
	_, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	l := sshtest.NewApart(t, "db1", "db2", "client")
	if err := os.Chmod(filepath.Dir(l.Dir), 0o711); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	text := strings.Replace(l.Text, "Loader", "Databases", 2)
	text = strings.Replace(text, "Loader", "Client", 1)
	var first *bmctest.BMC
	for _, h := range l.Hosts {
		bmc := bmctest.NewIn(t, l.Space)
		if first == nil {
			first = bmc
		}
		power := "power: {kind: ipmi"
		for name, value := range bmc.Options(t) {
			power += fmt.Sprintf(", %s: %s", name, value)
		}
		text = strings.Replace(text, h.Name+": {", h.Name+": {"+power+"}, ", 1)
	}
	sshtest.Write(t, l.Inventory, text)
	_, plimsoll := onHosts(t, l, hostsScenario, "")
	over, switched := make(chan struct{}), make(chan struct{})
	go func() { // the host runs as long as its BMC has it on
		defer close(switched)
		for on := true; ; time.Sleep(20 * time.Millisecond) {
			select {
			case <-over:
				return
			default:
			}
			is, err := first.State()
			if err != nil || is == target.Unknown || on == (is == target.On) {
				continue
			}
			if on = is == target.On; on {
				l.Hosts[0].Start(t)
			} else {
				l.Hosts[0].Crash(t)
			}
		}
	}()
	code, out := plimsoll("run", "db-failover", "--once", "--set", "replication=synchronous", "--set", "before_secs=5",
		"--set", "after_secs=10", "--set", "clients=4", "--target", "ssh", "--target-opt", "inventory="+l.Inventory,
		"--target-opt", "agents="+l.Dir, "--target-opt", "patience=3s", "--size-scale", "0.002")
	close(over)
	<-switched
	t.Logf("run ends with %d:\n%s", code, out)
	if code != 0 || !strings.Contains(out, "acknowledged commits are on the standby that took over") {
		t.Error("it does not end well, or does not say what was lost")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestHostLostAndResumed: an experiment over two machines, of which one crashes in the first run. What was measured is
// kept, the verdict says whose part is missing, no run follows without it, and when it is back resume makes what is
// left.
func TestHostLostAndResumed(t *testing.T) {
	needs.Fio(t)
	l := sshtest.NewApart(t, "db1", "db2")
	dir, plimsoll := onHosts(t, l, hostsScenario, "")
	crashed := make(chan struct{})
	go func() {
		defer close(crashed)
		for range 600 {
			if sshtest.Alive("--output-format=json+") >= 2 { // on both
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		l.Hosts[1].Crash(t)
	}()
	code, text := plimsoll("run", "grid", "--target", "ssh", "--target-opt", "inventory="+l.Inventory, "--target-opt",
		"agents="+l.Dir, "--target-opt", "patience=3s", "--size-scale", "0.002")
	<-crashed
	t.Logf("run ends with %d:\n%s", code, text)
	if code == 0 || !strings.Contains(text, "plimsoll resume") {
		t.Error("it ends well, or does not say how to go on")
	}
	runs, err := filepath.Glob(filepath.Join(dir, "plimsoll-runs", "*", "runs", "*", "data.json"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("no run has data: %v", err)
	}
	var data struct {
		Workloads []struct {
			VM, Ended string
			Ops       []struct{ Count uint64 }
		}
	}
	raw, err := os.ReadFile(runs[0])
	if err == nil {
		err = json.Unmarshal(raw, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range data.Workloads {
		if len(w.Ops) == 0 || w.Ops[0].Count == 0 {
			t.Errorf("nothing that %q did is kept", w.VM)
		}
		if w.VM == "db2" && w.Ended != "lost" {
			t.Errorf("the one that crashed has %q", w.Ended)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(filepath.Dir(runs[0]), "manifest.json"))
	if err != nil || !bytes.Contains(manifest, []byte(`db2 went away under workload`)) {
		t.Errorf("the verdict does not name it: %v, %s", err, manifest)
	}
	l.Hosts[1].Start(t)
	code, text = plimsoll("resume", "latest")
	t.Logf("resume ends with %d:\n%s", code, text)
	if code != 0 || !strings.Contains(text, "0 of 2 runs made") || !strings.Contains(text, "2 of 2 runs measured") {
		t.Error("it does not make the run again that has lost a machine, and go on to its end")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
