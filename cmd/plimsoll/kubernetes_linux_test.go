package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/scenarios"
)

const longKubernetes = "building Kubernetes takes a quarter of an hour, and nothing shorter is a Kubernetes"

// kubernetes is a real one with the image for pods, and what a run on it is told.
func kubernetes(t *testing.T) (c *k8s.Cluster, s session, target []string) {
	t.Helper()
	needs.Long(t, longKubernetes)
	c = k8s.Start(t)
	dir := t.TempDir()
	s = session{t: t, runs: filepath.Join(dir, "runs")}
	agents := filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(agents, "plimsoll-agent-linux-amd64")
	needs.Copy(t, needs.Program(t, "./cmd/plimsoll-agent"), agent)
	built := strings.Fields(s.must("lab", "image", "build", "pod", "--agent", agent))
	c.Load(t, filepath.Join(built[len(built)-1], "pod.tar"))
	file := filepath.Join(dir, "fleet.yaml")
	text := fmt.Sprintf("platform: kubernetes\nkubeconfig: %s\nnamespace: runs\nstorage_class: %s\nwork_class: %s\n"+
		"images: {\"*\": \"localhost/plimsoll/pod:1\"}\npower:\n", c.Kubeconfig, k8s.Shared, k8s.FilesOnly)
	for _, n := range c.Nodes {
		text += fmt.Sprintf("  %s: {kind: ipmi, address: %s, user: %s, password: \"file:%s\"}\n", n.Name, n.BMC.Address,
			n.BMC.User, n.BMC.PasswordFile)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Call(http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "runs"}})
	return c, s, []string{"--target", "kubernetes", "--target-opt", "file=" + file, "--target-opt", "agents=" + agents}
}

const cutScenario = `name: cut
display_name: A cut
summary: A node is cut by somebody else.
description: ""
estimated_runtime: 60
results: []
vms:
  - Kept: {template: any, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads:
  - Work: {vm_group: Kept, config_file: work.fio, iogen_params: {reporting_interval: 1}}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Kept}
  - vm_group.PowerOn: {vm_group_name: Kept}
  - workload.PrefillRun: {workload_name: Work}
run:
  - workload.Start: {workload_name: Work, runtime_secs: 30}
teardown:
  - cluster.CleanUp: {}
`

const cutJob = `[work]
filename=/dev/sdb
size=1G
rw=randrw
bs=8k
ioengine=libaio
direct=1
iodepth=2
rate_iops=500
time_based
`

// TestCutOnKubernetes has somebody pull the cord of a node under load: what the load does from then on is missing, says
// the run, and its report tells of the outage.
func TestCutOnKubernetes(t *testing.T) {
	c, s, target := kubernetes(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"test.yml": cutScenario, "work.fio": cutJob} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	run := s.command(ctx, append([]string{"run", dir, "--size-scale", "0.0625"}, target...)...)
	var out strings.Builder
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	journal := func() []result.Event {
		var list []result.Event
		files, _ := filepath.Glob(filepath.Join(s.runs, "*", "journal.jsonl"))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			for line := range strings.Lines(string(text)) {
				var e result.Event
				if json.Unmarshal([]byte(line), &e) == nil {
					list = append(list, e)
				}
			}
		}
		return list
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	began := time.Time{}
	end := time.Now().Add(4 * time.Minute)
	for ; began.IsZero() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, e := range journal() {
			if e.Kind == result.KindWorkload && e.Data.VM != "" && !e.Data.Prefill {
				began = e.Time
			}
		}
	}
	if began.IsZero() {
		t.Fatal("its load has not begun")
	}
	t.Cleanup(func() { _ = c.SetPower(c.Nodes[1].Name, true) }) // it is on, unless something went wrong
	time.Sleep(time.Until(began.Add(8 * time.Second)))          // that long the load is as it should be
	bmc := c.Nodes[1].BMC
	if text, err := exec.CommandContext(ctx, "ipmitool", "-I", "lanplus", "-C", "3", "-H", bmc.Address, "-U", bmc.User,
		"-f", bmc.PasswordFile, "chassis", "power", "off").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"run: partial (Kept_0001 went away under workload \"Work\"",
		"Work lost 1 VM of 2", "node " + c.Nodes[1].Name + " is off, by its power controller", "Kept was not back"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	var fault, lost time.Time
	for _, e := range journal() {
		switch {
		case e.Kind == result.KindFault && e.Data.State == result.FaultBegins:
			fault = e.Time
		case e.Kind == result.KindWorkload && e.Data.State == result.WorkloadLost:
			lost = e.Time
		}
	}
	if fault.IsZero() || lost.Before(fault) {
		t.Errorf("the node was off at %v, and the load lost at %v", fault, lost)
	}
}

// TestTryOnKubernetes looks at a cluster by making a machine there: it says how long that took and leaves nothing.
func TestTryOnKubernetes(t *testing.T) {
	c, s, target := kubernetes(t)
	before, err := c.Holds()
	if err != nil {
		t.Fatal(err)
	}
	out := s.must(append([]string{"targets", "check", "kubernetes", "--try"}, target[2:]...)...)
	for _, want := range []string{"note: Tried: a machine with a disk answered after", "its clock is", "schedule ",
		"all of it is removed"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "its clock is -") {
		t.Errorf("it says that a clock is ahead by less than nothing:\n%s", out)
	}
	gone(t, c, before)
}

// gone waits until the cluster holds no more than before.
func gone(t *testing.T, c *k8s.Cluster, before k8s.Holdings) {
	t.Helper()
	after, err := before, error(nil)
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		after, err = c.Holds()
		more := slices.Concat(after.Volumes, after.Loops, after.Shims)
		for _, was := range slices.Concat(before.Volumes, before.Loops, before.Shims) {
			more = slices.DeleteFunc(more, func(now string) bool { return now == was })
		}
		if err == nil && len(more) == 0 {
			return
		}
	}
	t.Errorf("before there was %+v, afterwards %+v, %v", before, after, err)
}

// TestPlansOnKubernetes plans the published scenarios and those of the library on a Kubernetes of four nodes. What it
// refuses it refuses for want of something that it says.
func TestPlansOnKubernetes(t *testing.T) {
	c, s, target := kubernetes(t)
	fleet := strings.TrimPrefix(target[3], "file=")
	text, err := os.ReadFile(fleet)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "  "+c.Nodes[1].Name+":")
	one := first[strings.LastIndex(first, "{"):]
	for _, name := range []string{"more1", "more2"} { // they are nothing but words, and nothing is sent there
		c.Call(http.MethodPost, "/api/v1/nodes", map[string]any{"metadata": map[string]any{"name": name}})
		t.Cleanup(func() { _, _ = c.Call(http.MethodDelete, "/api/v1/nodes/"+name, nil) })
		text = fmt.Appendf(text, "  %s: %s", name, one)
	}
	if err := os.WriteFile(fleet, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ready := func() {
		for _, name := range []string{"more1", "more2"} {
			if _, err := c.Call(http.MethodPatch, "/api/v1/nodes/"+name+"/status", map[string]any{
				"status": map[string]any{
					"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Test",
						"lastHeartbeatTime": time.Now().UTC().Format(time.RFC3339)}}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	root := needs.Corpus(t, "xray")
	published, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range published {
		if e.IsDir() {
			all = append(all, filepath.Join(root, e.Name()))
		}
	}
	all = append(all, scenarios.Names()...)
	// Why a scenario cannot be run there.
	lacks := map[string]string{
		"bursty-oltp-db": "playbooks over SSH", "vdbench": "playbooks over SSH",
		"rolling_upgrade": "live migration between nodes", "vm_live_migration": "live migration between nodes",
	}
	planned := 0
	for _, name := range all {
		ready()
		plan := append([]string{"plan", name, "--allow-host-commands"}, target...)
		out, err := s.command(t.Context(), plan...).CombinedOutput()
		why, may := lacks[filepath.Base(name)]
		switch {
		case err == nil && may:
			t.Errorf("%s is planned, though it lacks %q", name, why)
		case err == nil:
			planned++
		case !may || !strings.Contains(string(out), why):
			t.Errorf("%s: %v\n%s", name, err, out)
		default:
			t.Logf("%s: not to be run there: %s", filepath.Base(name), why)
		}
	}
	t.Logf("%d of %d are planned", planned, len(all))
}

const rollingScenario = `name: rolling
display_name: Rolling snapshots
summary: Snapshots are taken again and again under load.
description: ""
estimated_runtime: 60
results: []
vms:
  - Kept: {template: any, vcpus: 1, ram_mb: 96, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads:
  - Work: {vm_group: Kept, config_file: work.fio, iogen_params: {reporting_interval: 1}}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Kept}
  - vm_group.PowerOn: {vm_group_name: Kept}
  - workload.PrefillRun: {workload_name: Work}
run:
  - workload.Start: {workload_name: Work, runtime_secs: 1800, async: True}
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: Kept, num_snapshots: 4, interval_minutes: 6}
  - workload.Wait: {workload_name: Work}
teardown:
  - cluster.CleanUp: {}
assert:
  - bound soon: {query: 'max(max_over_time(plimsoll_platform_operation_seconds{operation="bind"}[1h]))', at_most: 60}
  - snapshots at once: {query: 'max(max_over_time(plimsoll_platform_operation_seconds{operation="snapshot"}[1h]))',
      at_most: 0.001}
  - all snapshots: {query: 'count(max_over_time(plimsoll_platform_operation_seconds{operation="snapshot"}[1h]))',
      at_least: 8, at_most: 8}
`

// TestPlainOnKubernetes compares a job in a pod with the same beside it, takes snapshots under load, and holds what the
// platform took for them to conditions, in one run.
func TestPlainOnKubernetes(t *testing.T) {
	c, s, target := kubernetes(t)
	before, err := c.Holds()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"test.yml": rollingScenario,
		"work.fio": cutJob} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := s.command(t.Context(), append([]string{"run", dir, "--size-scale", "0.5", "--time-scale", "0.025",
		"--compare-plain"}, target...)...)
	text, err := run.CombinedOutput()
	out := string(text)
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != 5 { // one condition cannot hold
		t.Errorf("%v: want exit code 5", err)
	}
	t.Log(out)
	for _, want := range []string{"snapshots at once", "beside it"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	folder, err := result.Open(filepath.Join(s.runs, s.newest()))
	if err != nil {
		t.Fatal(err)
	}
	data, err := folder.Data()
	if err = errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	if len(data.Plain) != 1 || len(data.Plain[0].Turns) != 6 {
		t.Errorf("compared: %+v", data.Plain)
	}
	done := map[string]int{}
	for _, o := range data.Operations {
		done[o.Name]++
	}
	if done[result.Snapshotted] != 8 || done[result.Bound] != 4 {
		t.Errorf("the platform did %v", done)
	}
	gone(t, c, before)
}
