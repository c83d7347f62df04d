// Package steptest is the conformance suite of the steps: every target joins it with a Factory and shows that the steps
// of the language have their real effect there, seen through the target's own contract.
//
// The suite is an explicit, ordered list. Subtests that need a capability which the place does not claim are skipped
// and counted. Nothing in it depends on how fast the place is. Tests only: no shipped package imports this one.
package steptest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/run/step"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Place is one fresh place with at least three nodes.
type Place struct {
	Target   target.Target
	StateDir string
	Clock    clock.Clock
	Engines  map[string]workload.Engine // of generator fio
}

// Factory makes a fresh place for one subtest.
type Factory func(testing.TB) Place

// text is the scenario of the suite: one VM on each of the first three nodes, and two on the first.
const text = `
name: steps
display_name: Steps
summary: s
description: ""
estimated_runtime: 60
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 1}, nodes: ":3"}
  - B: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 1}, nodes: "0", count_per_node: 2}
workloads:
  - W: {vm_group: A, config_file: w.fio, iogen_params: {reporting_interval: 1}}
  - X: {vm_group: B, config_file: w.fio, iogen_params: {reporting_interval: 1}}
results: []
setup:
  - cluster.CleanUp: {}
run:
  - test.Wait: {duration_secs: 1}
teardown:
  - cluster.CleanUp: {}
`

const jobs = "[global]\nrw=randwrite\nbs=8k\niodepth=1\nrate_iops=100\ntime_based\n[a]\nfilename=/dev/sdb\nsize=64M\n"

type subtest struct {
	name  string
	needs []target.Capability
	run   func(*bench)
}

// Run holds the place to the steps.
func Run(t *testing.T, factory Factory) {
	facts, err := factory(t).Target.Check(t.Context())
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	if len(facts.Nodes) < 3 {
		t.Fatalf("the suite needs three nodes, the place has %d", len(facts.Nodes))
	}
	skipped := 0
	all := slices.Concat(subtests, language)
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.needs {
				if !facts.Can(c) {
					skipped++
					t.Skipf("not claimed: %s (%s)", c, facts.Missing[c])
				}
			}
			b := open(t, factory(t))
			s.run(b)
			b.close()
		})
	}
	t.Logf("conformance of steps: %d subtests, %d skipped for capabilities not claimed", len(all), skipped)
}

// bench is an open cluster with everything a step needs.
type bench struct {
	t     testing.TB
	place Place
	env   *step.Env

	mu     sync.Mutex
	events []result.Event
}

// Scenario is the suite's: group A has a VM on each of the first three nodes and workload W, group B two on the first
// and workload X.
func Scenario(t testing.TB, id int64) *scenario.Scenario {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "w.fio": {Data: []byte(jobs)}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{ID: id})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	return sc
}

func open(t testing.TB, p Place) *bench {
	t.Helper()
	sc := Scenario(t, 1)
	facts, err := p.Target.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := p.Target.Provision(t.Context(), target.Request{RunID: "steps", StateDir: p.StateDir,
		DiskBytes: 1 << 28, MemoryBytes: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, place: p}
	b.env = &step.Env{
		View: step.View{
			Scenario: sc, Facts: facts, Groups: step.NewGroups(sc, len(facts.Nodes), facts.Machines...),
			TimeScale: 1, SizeScale: 1. / 256,
			HostCommands: true,
		},
		Phase: scenario.Run, Cluster: cluster, Clock: p.Clock, Power: &step.Power{}, Record: b.record, Dir: t.TempDir(),
		Loads: loads.New(t.Context(), loads.Config{
			Clock: p.Clock, Cluster: cluster, Engines: p.Engines, Record: b.record, Open: b.output, SizeScale: 1. / 256,
			TimeScale: 1,
		}),
		Background: func(string, func(context.Context) error) { t.Error("nothing here runs in the background") },
	}
	return b
}

func (b *bench) close() {
	b.t.Helper()
	if err := b.env.Loads.Close(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	if err := b.env.Cluster.Close(); err != nil {
		b.t.Error(err)
	}
	if left, err := b.place.Target.Destroy(b.t.Context(), b.place.StateDir); err != nil || len(left) > 0 {
		b.t.Errorf("destroy: %v, %q left", err, left)
	}
}

func (b *bench) record(e result.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// seen counts the events of a kind whose text begins so.
func (b *bench) seen(kind, lead string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Kind == kind && strings.HasPrefix(e.Text, lead) {
			n++
		}
	}
	return n
}

// nowhere takes a job's output.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
func (nowhere) Report(workload.Report)      {}
func (nowhere) Warn(string)                 {}

func (b *bench) output(loads.Launch) (loads.Output, error) {
	return loads.Output{Raw: nowhere{}, Sink: nowhere{}, Ended: func(result.Ending, string, workload.Outcome) {}}, nil
}

// steps builds what a written step stands for, with defaults filled in.
func (b *bench) steps(name string, args scenario.Args) []step.Step {
	b.t.Helper()
	spec, ok := scenario.LookupStep(name)
	if !ok {
		b.t.Fatalf("no step %q in the language", name)
	}
	list, err := step.Builtin().Build(scenario.Step{Name: name, Phase: scenario.Run, Args: WithDefaults(spec, args)},
		b.env.View)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// WithDefaults fills in what a scenario leaves out.
func WithDefaults(spec scenario.StepSpec, args scenario.Args) scenario.Args {
	full := scenario.Args{}
	for _, row := range spec.Args {
		if row.Default != nil {
			full[row.Name] = row.Default
		}
	}
	maps.Copy(full, args)
	return full
}

// try checks and does a step.
func (b *bench) try(name string, args scenario.Args) error {
	b.t.Helper()
	for _, s := range b.steps(name, args) {
		if err := s.Check(b.env.View); err != nil {
			return err
		}
		if err := s.Do(b.t.Context(), b.env); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) do(name string, args scenario.Args) {
	b.t.Helper()
	if err := b.try(name, args); err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
}

// refuse wants a step to fail with a text in its error.
func (b *bench) refuse(name string, args scenario.Args, text string) {
	b.t.Helper()
	if err := b.try(name, args); err == nil || !strings.Contains(err.Error(), text) {
		b.t.Errorf("%s: error %v, want one with %q", name, err, text)
	}
}

// nodes lists where the members of a group are, in order of name.
func (b *bench) nodes(group string) (nodes []int) {
	b.t.Helper()
	for _, vm := range b.members(group) {
		nodes = append(nodes, vm.Node)
	}
	return nodes
}

func (b *bench) members(group string) []target.VM {
	b.t.Helper()
	all, err := b.env.Cluster.VMs(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(vm target.VM) bool { return vm.Group != group || vm.Template })
}

// answering counts the members of a group that can run commands.
func (b *bench) answering(group string) (n int) {
	b.t.Helper()
	for _, vm := range b.members(group) {
		host, err := b.env.Cluster.Host(vm.Name)
		if err == nil && host.Accessible(b.t.Context()) == nil {
			n++
		}
	}
	return n
}

func (b *bench) expect(what string, got, want any) {
	b.t.Helper()
	if a, ok := got.([]int); ok {
		if w, ok := want.([]int); ok && slices.Equal(a, w) {
			return
		}
	} else if got == want {
		return
	}
	b.t.Errorf("%s: %v, want %v", what, got, want)
}
