package run_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/run/step"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/fake"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
	"plimsoll/scenario"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(peerVariable); what != "" {
		peer(what)
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	needs.Print(os.Stderr)
	os.Exit(code)
}

// everyKind is a scenario with a step of every kind that moves something, two groups on four nodes and a node that is
// off at the end of the run phase.
const everyKind = `
name: every kind
display_name: Every kind
summary: s
description: ""
estimated_runtime: 600
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
  - B: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, nodes: "1", count_per_node: 2}
workloads:
  - W: {vm_group: A, config_file: w.fio, iogen_params: {reporting_interval: 1}}
  - X: {vm_group: B, config_file: w.fio}
results:
  - rate: {vm_group: A, result_type: iops, aggregate: sum}
  - active: {workload_name: W, result_type: active}
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: A}
  - vm_group.CloneFromTemplate: {vm_group_name: B, power_on: True}
  - vm_group.PowerOn: {vm_group_name: A}
  - workload.PrefillRun: {workload_name: W, max_concurrent: 2}
  - vm_group.Grow: {vm_group_name: B, count_per_cluster: 3}
  - vm_group.WaitForPowerOn: {vm_group_name: B}
run:
  - workload.Start: {workload_name: W, runtime_secs: 300, async: True, stagger_secs: 30, annotate: True}
  - workload.Start: {workload_name: X, runtime_secs: 20, annotate: True}
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: B, num_snapshots: 3, interval_minutes: 1, async: True}
  - vm_group.MigrateGroup: {vm_group_name: B, from_node: 1, to_node: 2}
  - vm_group.ResetGroupPlacement: {vm_group_name: B}
  - nodes.PowerOff: {nodes: "0", wait_secs: 60}
  - test.Wait: {duration_secs: 20}
  - nodes.PowerOn: {nodes: "0"}
  - vm_group.PowerOn: {vm_group_name: A}
  - vm_group.RunCommand: {vm_group_name: B, command: "true"}
  - workload.Start: {workload_name: X, runtime_secs: 900, async: True}
  - test.Wait: {duration_secs: 30}
  - nodes.Shutdown: {nodes: "3"}
  - vm_group.PowerOff: {vm_group_name: B}
teardown:
  - cluster.CleanUp: {}
`

// jobs is the job file of everyKind: a paced mixed load.
const jobs = "[global]\nrw=randrw\nbs=8k\niodepth=4\nrate_iops=50,50\nsize=1G\ntime_based\n[a]\nfilename=/dev/sdb\n" +
	"size=1G\n"

// harness is one world with one scenario in virtual time.
type harness struct {
	t      *testing.T
	clock  *clock.Virtual
	world  *sim.World
	files  fs.FS
	sc     *scenario.Scenario
	events []result.Event
	hook   func(result.Event) // called with every event
	req    run.Request
	folder *result.Folder
}

func newHarness(t *testing.T, text string) *harness {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "w.fio": {Data: []byte(jobs)}}
	h := harnessOf(t, files, sim.Options{Seed: 1, KeepCalls: true, RunTools: true, Boot: 2 * time.Second,
		NodeBoot:  30 * time.Second,
		FreeBytes: 1 << 50, FreeMemory: 1 << 50}, map[string]workload.Engine{"fio": fake.Engine{Samples: 20}})
	h.world.Command("sh", func(*sim.Call) target.Exit { return target.Exit{} })
	h.plan(plan.Options{TimeScale: 1, SizeScale: 0.01, Engines: h.req.Engines})
	return h
}

// modelled is a harness for a scenario as users run it with --target sim: fio's job files, the performance model, full
// time and size.
func modelled(t *testing.T, files fs.FS, o sim.Options) *harness {
	t.Helper()
	o.Seed, o.Clone, o.Boot, o.NodeBoot = max(o.Seed, 1), time.Second, 15*time.Second, 4*time.Minute
	o.Migration, o.Playbook = 5*time.Second, 10*time.Minute
	h := harnessOf(t, files, o, map[string]workload.Engine{"fio": fio.Engine{}})
	h.plan(plan.Options{TimeScale: 1, SizeScale: 1, Engines: h.req.Engines})
	return h
}

func harnessOf(t *testing.T, files fs.FS, o sim.Options, engines map[string]workload.Engine) *harness {
	t.Helper()
	v := clock.NewVirtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	o.Clock = v
	h := &harness{t: t, clock: v, files: files, world: sim.New(o)}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: 1700000000000, Nodes: 4})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	h.sc = sc
	place := h.world.Target()
	facts, err := place.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.req = run.Request{
		Root: t.TempDir(), RunID: "run", Program: "test", Source: "test", Files: files, Scenario: sc, Target: place,
		Facts:   facts,
		Engines: engines, Clock: v, Observer: h,
	}
	return h
}

func (h *harness) plan(o plan.Options) {
	o.Forecaster, _ = h.req.Target.(workload.Forecaster)
	p, err := plan.Build(h.sc, h.req.Facts, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.req.Plan = p
}

// Event and Progress make the harness the run's observer.
func (h *harness) Event(e result.Event) {
	h.events = append(h.events, e)
	if h.hook != nil {
		h.hook(e)
	}
}

func (h *harness) Progress(run.Progress) {}

func (h *harness) execute(ctx context.Context) (run.Summary, error) {
	h.t.Helper()
	s, err := run.Execute(ctx, h.req)
	if s.Dir == "" {
		h.t.Fatalf("no run folder: %v", err)
	}
	folder, openErr := result.Open(s.Dir)
	if openErr != nil {
		h.t.Fatal(openErr)
	}
	h.folder = folder
	return s, err
}

// clean fails the test when anything is left of the run, in the world or in the folder's record of it.
func (h *harness) clean(s run.Summary) {
	h.t.Helper()
	if left := h.world.Remains(); len(left) > 0 {
		h.t.Errorf("left behind: %q", left)
	}
	if s.Cleaned.State != "yes" || len(s.Remains) > 0 {
		h.t.Errorf("cleaned: %+v, remains %q", s.Cleaned, s.Remains)
	}
	for _, v := range []result.Verdict{s.Measured, s.Collected} {
		if v.State != "yes" && (v.State == "pending" || v.Reason == "") {
			h.t.Errorf("verdicts: measured %+v, collected %+v", s.Measured, s.Collected)
		}
	}
	for i := range h.req.Facts.Nodes {
		if !h.nodeOn(i) {
			h.t.Errorf("node %d was left off", i)
		}
	}
	if _, problems, err := h.folder.Events(); err != nil || len(problems) > 0 {
		h.t.Errorf("journal: %v %q", err, problems)
	}
	if problems := h.folder.Problems(); len(problems) > 0 {
		h.t.Errorf("folder: %q", problems)
	}
	if s.Collected.State != "no" {
		if _, err := h.folder.Data(); err != nil {
			h.t.Errorf("data: %v", err)
		}
	}
}

func (h *harness) nodeOn(i int) bool {
	c, err := h.world.Target().Provision(context.Background(),
		target.Request{RunID: "look", StateDir: fmt.Sprint(h.t.Name(), i)})
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _, _ = h.world.Target().Destroy(context.Background(), fmt.Sprint(h.t.Name(), i)) }()
	state, _, err := c.NodeState(context.Background(), i)
	return err == nil && state == target.On
}

// journal prints events for comparison: offsets in seconds, phases, steps, names. Starts and ends of a workload on many
// VMs at one moment share a line. Notes are left out.
func journal(events []result.Event, began time.Time) string {
	var b strings.Builder
	count, last := 0, ""
	flush := func() {
		switch {
		case count > 1:
			fmt.Fprintf(&b, "%s (%d VMs)\n", last, count)
		case count == 1:
			fmt.Fprintln(&b, last)
		}
		count, last = 0, ""
	}
	for _, e := range events {
		if e.Kind == result.KindNote {
			continue
		}
		at := e.Time.Sub(began).Round(time.Second).Seconds()
		line := fmt.Sprintf("%6.0f %-9s %-10s", at, e.Phase, e.Kind)
		if e.Step > 0 {
			line += fmt.Sprintf(" %3d", e.Step)
		} else {
			line += "    "
		}
		for _, part := range []string{e.Name, e.Text, e.Error} {
			if part != "" && e.Kind != result.KindRunStart {
				line += " " + part
			}
		}
		line = strings.TrimRight(line, " ")
		if e.Data.VM == "" {
			flush()
		} else {
			line += " on a VM"
		}
		if line != last {
			flush()
		}
		count, last = count+1, line
	}
	flush()
	return b.String()
}

// withStep puts a step of the test's own in place of the n-th step of the plan that has the given name.
func (h *harness) withStep(name string, n int, wrap func(step.Step) step.Step) {
	h.t.Helper()
	for i, s := range h.req.Plan.Steps {
		if s.Name == name {
			if n == 0 {
				h.req.Plan.Steps[i].Do = wrap(s.Do)
				return
			}
			n--
		}
	}
	h.t.Fatalf("no step %s in the plan", name)
}

// wrapped is a step with another Do.
type wrapped struct {
	step.Step
	do func(context.Context, *step.Env) error
}

func (w wrapped) Do(ctx context.Context, e *step.Env) error { return w.do(ctx, e) }

var errTest = errors.New("the test wants it so")

func kinds(events []result.Event, kind string) (texts []string) {
	for _, e := range events {
		if e.Kind == kind {
			texts = append(texts, strings.TrimSpace(e.Name+" "+e.Text+" "+e.Error))
		}
	}
	return slices.Clip(texts)
}
