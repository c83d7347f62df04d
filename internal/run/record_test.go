package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run"
	"plimsoll/internal/run/step"
	"plimsoll/internal/targets/sim"
	"plimsoll/result"
)

// short is a scenario of two machines that wait.
const short = `
name: short
display_name: Short
summary: s
description: d
estimated_runtime: 30
vars: {wait: {default: 20}}
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: ":2", count_per_node: 1, data_disks: {count: 1, size: 1}}
workloads:
  - W: {vm_group: A, config_file: w.fio}
results:
  - rate: {vm_group: A, result_type: iops}
assert:
  - in time: {workload: W, operation: read, measure: p99, at_most: 5}
  - fast: {result: rate, statistic: min, at_least: 1}
  - met: {finding: offered-rate}
  - counted: {query: 'max(x{__curie_filter_scenario__})', at_most: 7}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A}
  - vm_group.PowerOn: {vm_group_name: A}
run:
  - test.Wait: {duration_secs: {{ wait }}}
  - workload.Start: {workload_name: W, runtime_secs: 10}
teardown:
  - cluster.CleanUp: {}
`

// The manifest is the whole record of what was run, and how it went.
func TestManifest(t *testing.T) {
	h := newHarness(t, short)
	h.req.Operator, h.req.Options = "somebody", map[string]string{"nodes": "4"}
	s, err := h.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	yes := result.Verdict{State: "yes"}
	want := result.Manifest{
		RunID: "run", Program: "test", Operator: "somebody", Status: result.StatusSucceeded,
		Created: h.events[0].Time, Ended: h.events[len(h.events)-1].Time,
		Scenario: result.ScenarioInfo{ID: 1700000000000, Name: "short", DisplayName: "Short", Summary: "s",
			Description: "d", Source: "test", EstimatedSeconds: 30,
			Vars: []result.Var{{Name: "wait", Value: "20", From: "default"}},
			Asserts: []result.Assert{
				{Name: "in time", Workload: "W", Operation: "read", Measure: "p99", AtMost: new(5.0)},
				{Name: "fast", Result: "rate", Statistic: "min", AtLeast: new(1.0)},
				{Name: "met", Finding: "offered-rate", Severity: "warning"},
				{Name: "counted", Query: `max(x{scenario_id="1700000000000"})`, AtMost: new(7.0)},
			}},
		Target: h.req.Plan.Target, ClusterName: h.req.Facts.ClusterName, Simulated: true, TimeScale: 1, SizeScale: 0.01,
		Options: map[string]string{"nodes": "4"}, Notes: h.req.Facts.Notes, Environment: h.req.Facts.Environment,
		OneMachine: h.req.Facts.OneMachine, DiskCounters: result.CountersDerived,
		Measured: yes, Collected: yes, Cleaned: yes,
	}
	for i, n := range h.req.Facts.Nodes {
		want.Nodes = append(want.Nodes, result.Node{Index: i, Name: n.Name, Cores: n.Cores, MemoryBytes: n.MemoryBytes})
	}
	got := h.folder.Manifest()
	if len(want.Nodes) != 4 || len(got.Hashes) < 3 {
		t.Errorf("%d nodes, %d sums of files", len(want.Nodes), len(got.Hashes))
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(result.Manifest{}, "Hashes", "Version"),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	summary := run.Summary{RunID: "run", Dir: h.folder.Dir(), Status: result.StatusSucceeded, Measured: yes,
		Collected: yes, Cleaned: yes, Elapsed: got.Ended.Sub(got.Created)}
	if diff := cmp.Diff(summary, s, cmpopts.IgnoreFields(run.Summary{}, "Overhead")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is lacking of a request is listed.
func TestIncompleteRequests(t *testing.T) {
	all := newHarness(t, short).req
	for want, change := range map[string]func(*run.Request){
		"a scenario":           func(r *run.Request) { r.Scenario = nil },
		"a plan":               func(r *run.Request) { r.Plan = nil },
		"a target":             func(r *run.Request) { r.Target = nil },
		"a clock":              func(r *run.Request) { r.Clock = nil },
		"the scenario's files": func(r *run.Request) { r.Files = nil },
		"a folder for runs":    func(r *run.Request) { r.Root = "" },
		"a run id":             func(r *run.Request) { r.RunID = "" },
	} {
		r := all
		change(&r)
		if _, err := run.Execute(t.Context(), r); err == nil || err.Error() != "run: the request lacks "+want {
			t.Errorf("without %s: %v", want, err)
		}
	}
	refused := *all.Plan
	refused.Objections = []string{"it cannot be"}
	all.Plan = &refused
	if _, err := run.Execute(t.Context(), all); err == nil || !strings.Contains(err.Error(), "objections") {
		t.Errorf("a plan with objections: %v", err)
	}
}

// A run that cannot have its folder does not begin; one whose folder cannot hold what it needs says so in its manifest.
func TestRunThatCannotBegin(t *testing.T) {
	h := newHarness(t, short)
	h.req.Root = filepath.Join(h.req.Root, "file")
	if err := os.WriteFile(h.req.Root, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := run.Execute(t.Context(), h.req); err == nil || s.Dir != "" || len(h.events) > 0 {
		t.Errorf("%v, %+v, %d events", err, s, len(h.events))
	}
	h = newHarness(t, short)
	h.req.Files = fstest.MapFS{"test.yml": {Mode: os.ModeSymlink}}
	if _, err := run.Execute(t.Context(), h.req); err == nil {
		t.Fatal("a scenario that cannot be copied was run")
	}
	folder, err := result.Open(filepath.Join(h.req.Root, "run"))
	if err != nil {
		t.Fatal(err)
	}
	m := folder.Manifest()
	no := result.Verdict{State: "no", Reason: "the run did not begin"}
	if m.Status != result.StatusFailed || m.Error == "" || m.Ended.IsZero() || m.Measured != no || m.Collected != no ||
		m.Cleaned != (result.Verdict{State: "yes", Reason: "nothing was made"}) {
		t.Errorf("%+v", m)
	}
}

// watched keeps what a run's observer is told.
type watched struct {
	h    *harness
	told func(run.Progress)
}

func (w watched) Event(e result.Event)    { w.h.Event(e) }
func (w watched) Progress(p run.Progress) { w.told(p) }

// What is left is the sum of the estimates of what is to come, and is not known as long as a step is to come that
// nothing can tell of.
func TestProgress(t *testing.T) {
	h := newHarness(t, short)
	steps := h.req.Plan.Steps
	const unknown = 2 // the wait
	steps[unknown].EstimateUnknown = true
	began := h.clock.Now()
	var stepBegan time.Time
	h.hook = func(e result.Event) {
		if e.Kind == result.KindStepStart {
			stepBegan = e.Time
		}
	}
	n := 0
	h.req.Observer = watched{h, func(p run.Progress) {
		n++
		now := h.clock.Now()
		want := run.Progress{Phase: p.Step.Phase, Step: p.Step, Steps: len(steps), Elapsed: now.Sub(began)}
		for _, s := range steps {
			left := time.Duration(s.EstimateSeconds * float64(time.Second))
			if s.Number == p.Step.Number {
				left -= now.Sub(stepBegan)
				want.Late, left = max(0, -left), max(0, left)
			}
			if s.Number >= p.Step.Number {
				want.Left += left
				want.Unknown = want.Unknown || s.EstimateUnknown
			}
		}
		if diff := cmp.Diff(want, p, cmpopts.IgnoreFields(run.Progress{}, "Rows", "Step", "Phase")); diff != "" {
			t.Errorf("in step %d: (-want +got)\n%s", p.Step.Number, diff)
		}
	}}
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("told %d times", n)
	}
}

// However rarely metrics are due, there is a last look when the run phase is over and when the teardown is.
func TestLastLook(t *testing.T) {
	h := newHarness(t, short)
	h.req.Interval = time.Hour
	var told []string
	h.req.Observer = watched{h, func(p run.Progress) { told = append(told, string(p.Phase)) }}
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"run", "teardown"}, told); diff != "" {
		t.Error(diff)
	}
}

// A defect of a step fails the step; where it happened stands in the journal, and only there.
func TestDefectOfAStep(t *testing.T) {
	h := newHarness(t, short)
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(context.Context, *step.Env) error { panic("no such thing") }}
	})
	s, err := h.execute(t.Context())
	const want = "run: step 3 (test.Wait): internal error, please report it: no such thing"
	if exit.Code(err) != exit.Failed || s.Error != want {
		t.Errorf("%q, %v", s.Error, err)
	}
	var found []string
	for _, e := range h.events {
		if e.Kind != result.KindWarning {
			continue
		}
		found = append(found, fmt.Sprint(e.Phase, e.Step, e.Name, ": ", e.Text, "; ", e.Data.Panic, " ",
			strings.Contains(strings.Join(e.Data.Stack, "\n"), "record_test.go")))
	}
	if diff := cmp.Diff([]string{"run3test.Wait: a defect in plimsoll ended this step; no such thing true"},
		found); diff != "" {
		t.Error(diff)
	}
	h.clean(s)
}

// Data that cannot be collected is a verdict and a warning; what was measured stays.
func TestNothingCollected(t *testing.T) {
	for why, damage := range map[string]func(*harness){
		"internal error": func(h *harness) {
			h.req.Engines = map[string]workload.Engine{"fio": unreadable{h.req.Engines["fio"]}}
		},
		"it is a folder": func(h *harness) {
			h.hook = func(e result.Event) {
				journal := filepath.Join(h.req.Root, "run", "journal.jsonl")
				if e.Kind != result.KindRunEnd {
					return
				}
				if err := errors.Join(os.Remove(journal), os.Mkdir(journal, 0o755)); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			h := newHarness(t, short)
			damage(h)
			called := false
			h.req.Finish = append(h.req.Finish, func(context.Context, *result.Folder, *result.Data) error {
				called = true
				return nil
			})
			s, err := h.execute(t.Context())
			if err != nil || s.Status != result.StatusSucceeded || s.Measured.State != "yes" ||
				s.Collected.State != "no" || !strings.Contains(s.Collected.Reason, why) || called {
				t.Errorf("%v, %+v, documents made: %v", err, s, called)
			}
			if got := h.folder.Manifest().Collected; got != s.Collected {
				t.Errorf("the manifest says %+v", got)
			}
			texts := kinds(h.events, result.KindWarning)
			if len(texts) != 1 || !strings.HasPrefix(texts[0], "collecting ") {
				t.Errorf("warnings %q", texts)
			}
		})
	}
}

// A place that cannot remove anything, and does not know what remains, is quoted, here and when it is asked again.
func TestCleanupThatFails(t *testing.T) {
	h := newHarness(t, short)
	place := h.req.Target
	h.req.Target = helpless{place}
	s, err := h.execute(t.Context())
	partly := result.Verdict{State: "partly", Reason: "what remains: the test wants it so"}
	if exit.Code(err) != exit.Uncleaned || s.Cleaned != partly || len(s.Remains) != 1 {
		t.Errorf("%v, %+v", err, s)
	}
	if diff := cmp.Diff([]string{"removing what remains the test wants it so"},
		kinds(h.events, result.KindWarning)); diff != "" {
		t.Error(diff)
	}
	left, err := run.Cleanup(t.Context(), h.folder, h.req.Target)
	if exit.Code(err) != exit.Uncleaned || len(left) != 1 || left[0] != errTest.Error() {
		t.Errorf("%v, %q", err, left)
	}
	if v := h.folder.Manifest().Cleaned; v != partly {
		t.Errorf("cleaned: %+v", v)
	}
	if left, err := run.Cleanup(t.Context(), h.folder, place); err != nil || left != nil {
		t.Errorf("%v, %q", err, left)
	}
	if v := h.folder.Manifest().Cleaned; v != (result.Verdict{State: "yes", Reason: "by a clean-up after the run"}) {
		t.Errorf("cleaned: %+v", v)
	}
	// Nor is a run clean for ever that once was: what a later look finds counts.
	if _, err := run.Cleanup(t.Context(), h.folder, h.req.Target); exit.Code(err) != exit.Uncleaned {
		t.Error(err)
	}
	if v := h.folder.Manifest().Cleaned; v != partly {
		t.Errorf("cleaned: %+v", v)
	}
}

// helpless is a place that removes nothing.
type helpless struct{ target.Target }

func (helpless) Destroy(context.Context, string) ([]string, error) { return nil, errTest }

// What the journal of a dead run says is settled: when it was last heard of, and nothing when it cannot be read.
func TestSettle(t *testing.T) {
	h := newHarness(t, short)
	dead, blind := filepath.Join(t.TempDir(), "dead"), filepath.Join(t.TempDir(), "blind")
	var last time.Time
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(ctx context.Context, e *step.Env) error {
			last = h.events[len(h.events)-1].Time
			for _, to := range []string{dead, blind} {
				if err := os.CopyFS(to, os.DirFS(e.Dir)); err != nil {
					return err
				}
			}
			return s.Do(ctx, e)
		}}
	})
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Open(dead)
	if err == nil {
		err = run.Settle(folder)
	}
	if m := folder.Manifest(); err != nil || !m.Ended.Equal(last) || m.Error == "" ||
		m.Measured != (result.Verdict{State: "partly", Reason: "the process ended during the run phase"}) {
		t.Errorf("%v, %+v; last heard of at %v", err, m, last)
	}
	journal := filepath.Join(blind, "journal.jsonl")
	if folder, err = result.Open(blind); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(journal, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Cleanup(t.Context(), folder, h.world.Target()); err == nil {
		t.Error("a run was settled without its journal")
	}
}

// A workload whose output has no place is not started.
func TestNoPlaceForOutput(t *testing.T) {
	h := newHarness(t, short)
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(_ context.Context, e *step.Env) error {
			raw := filepath.Join(e.Dir, "raw")
			if err := os.RemoveAll(raw); err != nil {
				return err
			}
			return os.WriteFile(raw, nil, 0o644)
		}}
	})
	s, err := h.execute(t.Context())
	if exit.Code(err) != exit.Failed || !strings.Contains(s.Error, "output:") {
		t.Errorf("%v, %+v", err, s)
	}
	if left := h.world.Remains(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What the place counts of its machines and its nodes is in the metrics, by their names.
func TestCountersOfThePlace(t *testing.T) {
	h := modelled(t, fstest.MapFS{"test.yml": {Data: []byte(short)}, "w.fio": {Data: []byte(jobs)}}, sim.Options{})
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := series.OpenReadOnly(h.folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := h.events[len(h.events)-1].Time
	found, err := store.Range(t.Context(), `count by (node, instance) (last_over_time(`+
		`plimsoll_cluster_cpu_usage_avg_percent[5m]))`, at, at, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, s := range found {
		got = append(got, s.Label("node")+" "+s.Label("instance"))
	}
	for _, n := range h.req.Facts.Nodes {
		want = append(want, fmt.Sprint(n.Index, " ", n.Name))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("metrics of the nodes %q, want %q", got, want)
	}
}

// unreadable is an engine with a defect in what reads its output again.
type unreadable struct{ workload.Engine }

func (unreadable) Parse(workload.Declared, io.Reader, workload.Sink) (workload.Outcome, error) {
	panic("a defect")
}
