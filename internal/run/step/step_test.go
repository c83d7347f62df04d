package step_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/run/step"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/steptest"
	"plimsoll/result"
	"plimsoll/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryStepHasOneBuilder(t *testing.T) {
	builders := step.Builtin()
	for _, spec := range scenario.Steps() {
		if builders[spec.Name] == nil {
			t.Errorf("%s is in the language and has no implementation", spec.Name)
		}
		delete(builders, spec.Name)
	}
	for name := range builders {
		t.Errorf("%s is implemented and not in the language", name)
	}
}

// The reference's table for eight at a time, with 1 where it shows fio a depth of 0.
func TestPrefillDepth(t *testing.T) {
	vms := []int{1, 2, 3, 4, 5, 8, 16}
	for nodes, want := range map[int][]int{
		1: {4, 2, 1, 1, 1, 1, 1}, 2: {4, 4, 2, 2, 1, 1, 1}, 3: {4, 4, 4, 2, 2, 1, 1}, 4: {4, 4, 4, 4, 2, 2, 2},
		8: {4, 4, 4, 4, 4, 4, 4},
	} {
		for i, n := range vms {
			if got := step.PrefillDepth(n, nodes, 8); got != want[i] {
				t.Errorf("%d VMs on %d nodes: depth %d, want %d", n, nodes, got, want[i])
			}
		}
	}
}

// bench is everything a step needs, on a virtual clock, with the events it made.
type bench struct {
	t       *testing.T
	clock   *clock.Virtual
	cluster *cluster
	engine  *engine
	env     *step.Env
	events  []string
	back    clock.Group

	stopAfter time.Duration
}

func newBench(t *testing.T) *bench {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v := clock.NewVirtual(began)
	b := &bench{t: t, clock: v, cluster: newCluster(v), back: v.Group()}
	b.engine = &engine{c: b.cluster, size: 100 * time.Second, how: map[string]error{}}
	facts := target.Facts{Target: "test", Capabilities: map[target.Capability]string{
		target.VMCreation: "test", target.VMPowerControl: "test", target.VMMoves: "test"}}
	for _, c := range []target.Capability{target.NodePowerControl, target.NodeShutdown, target.Snapshots,
		target.LiveMigration,
		target.AvailabilityRules, target.StorageMigration, target.GuestCommands} {
		facts.Capabilities[c] = "test"
	}
	for i := range 4 {
		facts.Nodes = append(facts.Nodes, target.Node{Index: i, Name: fmt.Sprint("n", i), Power: "test"})
	}
	sc := steptest.Scenario(t, 7)
	record := func(e result.Event) {
		if e.Kind == result.KindNote {
			return
		}
		vm := e.Data.VM
		if vm != "" {
			vm = " on " + short(vm)
		}
		text := strings.TrimSpace(fmt.Sprintf("%s %s%s %s %s", e.Kind, e.Name, vm, e.Text, e.Error))
		b.events = append(b.events, fmt.Sprintf("%s %s", v.Now().Sub(began), text))
	}
	b.env = &step.Env{
		View: step.View{Scenario: sc, Facts: facts, Groups: step.NewGroups(sc, 4), TimeScale: 1, SizeScale: 1,
			HostCommands: true},
		Phase: scenario.Run, Cluster: b.cluster, Clock: v, Power: &step.Power{}, Record: record, Dir: t.TempDir(),
		Loads: loads.New(t.Context(), loads.Config{
			Clock: v, Cluster: b.cluster, Engines: map[string]workload.Engine{"fio": b.engine}, Record: record,
			SizeScale: 1, TimeScale: 1,
			Open: func(loads.Launch) (loads.Output, error) {
				return loads.Output{Raw: discard{}, Sink: discard{},
					Ended: func(result.Ending, string, workload.Outcome) {}}, nil
			},
		}),
		Background: func(_ string, f func(context.Context) error) { b.back.Go(func() { _ = f(t.Context()) }) },
	}
	return b
}

// build makes the steps of one written step with the option table's defaults filled in.
func (b *bench) build(name string, args scenario.Args) []step.Step {
	b.t.Helper()
	spec, ok := scenario.LookupStep(name)
	if !ok {
		b.t.Fatalf("no step %s", name)
	}
	full := steptest.WithDefaults(spec, args)
	if text, ok := full["nodes"].(string); ok {
		full["nodes"] = scenario.Selector{Text: text}
	}
	steps, err := step.Builtin().Build(scenario.Step{Name: name, Phase: scenario.Run, Args: full}, b.env.View)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return steps
}

// do checks and does.
func (b *bench) do(name string, args scenario.Args) error {
	b.t.Helper()
	for _, s := range b.build(name, args) {
		if err := s.Check(b.env.View); err != nil {
			return err
		}
		if err := s.Do(b.t.Context(), b.env); err != nil {
			return err
		}
	}
	return nil
}

// must is do for what is no part of the question.
func (b *bench) must(name string, args scenario.Args) {
	b.t.Helper()
	if err := b.do(name, args); err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
}

// machines clones and powers on both groups, then forgets what was noted.
func (b *bench) machines() {
	for _, g := range []string{"A", "B"} {
		b.must("vm_group.CloneFromTemplate", scenario.Args{"vm_group_name": g, "power_on": true})
	}
	b.cluster.log, b.events = nil, nil
}

func (b *bench) elapsed() time.Duration { return b.clock.Now().Sub(b.cluster.began) }

// end closes what runs, so that no goroutine is left.
func (b *bench) end() {
	b.t.Helper()
	b.back.Wait()
	if err := b.env.Loads.Close(context.Background()); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) expect(got []string, want ...string) {
	b.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		b.t.Errorf("(-want +got)\n%s", d)
	}
}

func TestGroupLife(t *testing.T) {
	b := newBench(t)
	group := scenario.Args{"vm_group_name": "A"}
	b.must("vm_group.CloneFromTemplate", group)
	b.must("vm_group.PowerOn", scenario.Args{"vm_group_name": "A", "max_concurrent": int64(2), "annotate": true})
	b.must("vm_group.MigrateGroup", scenario.Args{"vm_group_name": "A", "from_node": int64(0), "to_node": "-1"})
	b.must("vm_group.ResetGroupPlacement", group)
	b.must("vm_group.CreatePeriodicSnapshots", scenario.Args{"vm_group_name": "A", "num_snapshots": int64(3),
		"interval_minutes": 10.0})
	b.must("vm_group.RelocateGroupDatastore", scenario.Args{"vm_group_name": "A", "dest_datastore_name": "D"})
	b.must("vm_group.DisableHA", group)
	b.must("vm_group.PowerOff", group)
	b.must("vm_group.Grow", scenario.Args{"vm_group_name": "A", "count_per_node": int64(2), "linked_clone": true})
	b.must("cluster.PowerOffCurieVMs", nil)
	b.must("cluster.DeleteCurieVMs", nil)
	b.expect(b.cluster.lines(),
		"0s template A disks [1073741824]",
		"0s clone A x3 linked=false",
		"0s ha false x3",
		"0s balancing false x3",
		"0s on x3 by 2",
		"0s migrate 7_A_0000 to 3",
		"0s migrate 7_A_0000 to 0",
		"0s snapshot __curie_7_A_1 x3",
		"10m0s snapshot __curie_7_A_2 x3",
		"20m0s snapshot __curie_7_A_3 x3",
		"20m0s storage x3 to D",
		"20m0s ha false x3",
		"20m0s off x3",
		"20m0s clone A x3 linked=true",
		"20m0s delete x7",
	)
	b.expect(b.events,
		"0s annotation  Powering on group A",
		"0s annotation  Powered on group A",
		"0s annotation  Snapshot 1 of group A",
		"10m0s annotation  Snapshot 2 of group A",
		"20m0s annotation  Snapshot 3 of group A",
	)
	b.end()
}

func TestGroupsWithoutVMs(t *testing.T) {
	fails := []string{"vm_group.PowerOn", "vm_group.PowerOff", "vm_group.Grow", "vm_group.RunCommand"}
	for _, spec := range scenario.Steps() {
		if !strings.HasPrefix(spec.Name, "vm_group.") || spec.Name == "vm_group.CloneFromTemplate" {
			continue
		}
		b := newBench(t)
		args := scenario.Args{"vm_group_name": "A", "count_per_cluster": int64(9), "num_snapshots": int64(1),
			"interval_minutes": 1.0,
			"from_node":        int64(0), "to_node": int64(1), "command": "true", "dest_datastore_name": "D"}
		if spec.Name != "vm_group.Grow" {
			delete(args, "count_per_cluster")
		}
		err := b.do(spec.Name, args)
		if failed := err != nil; failed != slices.Contains(fails, spec.Name) {
			t.Errorf("%s on a group without VMs: %v", spec.Name, err)
		}
		b.end()
	}
}

func TestGrowMovesAndPowersOn(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("vm_group.MigrateGroup", scenario.Args{"vm_group_name": "A", "from_node": int64(1), "to_node": int64(3)})
	b.cluster.log = nil
	b.must("vm_group.Grow", scenario.Args{"vm_group_name": "A", "count_per_cluster": int64(5)})
	b.expect(b.cluster.lines(), "0s migrate 7_A_0001 to 1", "0s clone A x2 linked=false", "0s on x2 by 100")
	if err := b.do("vm_group.Grow", scenario.Args{"vm_group_name": "A", "count_per_node": int64(1)}); err == nil {
		t.Error("growing from 5 to 3 was accepted")
	}
	b.end()
}

// written are arguments for a step of the language, of those that fit it.
func written(spec scenario.StepSpec, group string) scenario.Args {
	args := scenario.Args{"vm_group_name": group, "count_per_cluster": int64(5), "num_snapshots": int64(1),
		"interval_minutes": 1.0, "from_node": int64(0), "to_node": int64(2), "command": "true", "power_on": true,
		"dest_datastore_name": "D", "nodes": "1", "node_index": int64(1), "node_count": int64(1), "workload_name": "W",
		"duration_secs": 60.0, "cmd": "true"}
	maps.DeleteFunc(args, func(name string, _ any) bool {
		return !slices.ContainsFunc(spec.Args, func(a scenario.ArgSpec) bool { return a.Name == name })
	})
	return args
}

// TestWords shows what each step is called, says and needs.
func TestWords(t *testing.T) {
	var text strings.Builder
	for _, spec := range scenario.Steps() {
		if strings.HasPrefix(spec.Name, "playbook") {
			continue // its words are of a file
		}
		b := newBench(t)
		for _, s := range b.build(spec.Name, written(spec, "A")) {
			fmt.Fprintf(&text, "%s: %s %v\n", s.Name(), s.Text(), s.Requires())
		}
		b.end()
	}
	golden.Compare(t, "testdata/words.golden", []byte(text.String()))
}

// A group that the scenario does not have was refused when that was read. These look it up again.
func TestUnknownGroup(t *testing.T) {
	lists := []string{ // they ask the cluster what there is of the group, and there is nothing
		"vm_group.WaitForPowerOn", "vm_group.CreatePeriodicSnapshots", "vm_group.MigrateGroup",
		"vm_group.RelocateGroupDatastore", "vm_group.EnableHA", "vm_group.DisableHA",
	}
	for _, spec := range scenario.Steps() {
		if args := written(spec, "none"); args["vm_group_name"] != nil && !slices.Contains(lists, spec.Name) {
			b := newBench(t)
			if err := b.do(spec.Name, args); err == nil || !strings.Contains(err.Error(), `"none"`) {
				t.Errorf("%s: %v", spec.Name, err)
			}
			b.end()
		}
	}
}

// What a cluster refuses fails the step that has asked for it, whichever of its commands that was.
func TestRefusedByTheCluster(t *testing.T) {
	before := map[string]string{
		"vm_group.PowerOn": "vm_group.PowerOff", "nodes.PowerOn": "nodes.PowerOff",
		"nodes.WaitForPowerOff": "nodes.PowerOff",
	}
	ready := func(t *testing.T, name string) *bench {
		b := newBench(t)
		if name != "vm_group.CloneFromTemplate" {
			b.machines()
			away := scenario.Args{"vm_group_name": "A", "from_node": int64(1), "to_node": int64(3)}
			b.must("vm_group.MigrateGroup", away)
		}
		if first := before[name]; first != "" {
			spec, _ := scenario.LookupStep(first)
			b.must(first, written(spec, "A"))
		}
		b.cluster.log = nil
		return b
	}
	for _, spec := range scenario.Steps() {
		if !slices.Contains([]string{"nodes", "meta", "vm_group", "cluster"}, strings.Split(spec.Name, ".")[0]) {
			continue
		}
		args := written(spec, "A")
		t.Run(spec.Name, func(t *testing.T) {
			b := ready(t, spec.Name)
			b.must(spec.Name, args)
			b.end()
			words := map[string]bool{"list": !strings.HasPrefix(spec.Name, "nodes.")}
			for _, line := range b.cluster.lines() {
				words[strings.Fields(line)[1]] = true
			}
			for word, used := range words {
				if !used {
					continue
				}
				b := ready(t, spec.Name)
				refused := errors.New("refused")
				b.cluster.fail[word] = refused
				if err := b.do(spec.Name, args); !errors.Is(err, refused) {
					t.Errorf("%q refused: %v", word, err)
				}
				b.cluster.fail = nil
				b.end()
			}
		})
	}
}

func TestRunCommand(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("vm_group.RunCommand", scenario.Args{"vm_group_name": "B", "command": "true"})
	b.must("vm_group.RunCommand", scenario.Args{"vm_group_name": "B", "command": "false", "fail_on_error": false,
		"user": "root"})
	if err := b.do("vm_group.RunCommand", scenario.Args{"vm_group_name": "B", "command": "false"}); err == nil {
		t.Error("exit status 1 is no failure")
	}
	b.expect(b.cluster.lines(),
		"0s command on 7_B_0000 as nutanix: true", "0s command on 7_B_0001 as nutanix: true",
		"0s command on 7_B_0000 as root: false", "0s command on 7_B_0001 as root: false",
		"0s command on 7_B_0000 as nutanix: false",
	)
	b.end()
}

func TestNodes(t *testing.T) {
	b := newBench(t)
	b.cluster.slow = 12 * time.Second
	b.must("nodes.PowerOff", scenario.Args{"nodes": "0, 2"})
	b.must("nodes.PowerOn", scenario.Args{"nodes": "0", "wait_secs": 0.0})
	b.must("nodes.WaitForPowerOn", scenario.Args{"nodes": "0"})
	off := b.build("nodes.Shutdown", scenario.Args{"nodes": "1"})[0]
	if err := off.Do(t.Context(), b.env); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has nothing left to repair
		if err := off.Undo(t.Context(), b.env); err != nil {
			t.Fatal(err)
		}
	}
	if left := b.env.Power.Off([]int{0, 1, 2, 3}); !slices.Equal(left, []int{2}) {
		t.Errorf("nodes %v are thought to be off", left)
	}
	b.expect(b.cluster.lines(), "0s node-off 0", "0s node-off 2", "12s node-on 0", "24s node-shutdown 1",
		"36s node-on 1")
	b.expect(b.events,
		"0s fault n0 Switched n0 off",
		"0s fault n2 Switched n2 off",
		"12s annotation  n0 is off", "12s annotation  n2 is off",
		"12s fault n0 Switched n0 on",
		"24s annotation  n0 is on and ready", "24s node-return n0 ready 12 s after it was switched on",
		"24s fault n1 Shutting down n1",
		"36s annotation  n1 is off", "36s fault n1 Switched n1 back on",
		"48s node-return n1 ready 12 s after it was switched on",
	)
	b.end()
}

// A command that a controller refuses fails the step also when nobody waits for the effect.
func TestRefusedPowerOff(t *testing.T) {
	b := newBench(t)
	b.cluster.fail["node-off"] = errors.New("refused")
	if err := b.do("nodes.PowerOff", scenario.Args{"nodes": "1", "wait_secs": 0.0}); err == nil ||
		!strings.Contains(err.Error(), "n1") {
		t.Errorf("error %v, want one that names the node", err)
	}
	b.end()
}

func TestNodeThatStaysOff(t *testing.T) {
	b := newBench(t)
	b.cluster.slow = time.Hour
	err := b.do("nodes.PowerOff", scenario.Args{"nodes": "1", "wait_secs": 30.0})
	if want := "nodes: waiting until off: not within 30 s; last seen: n1 is on"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if b.elapsed() != 30*time.Second {
		t.Errorf("it took %v", b.elapsed())
	}
	b.end()
}

// A node that cannot be told to come back is not waited for as one that was, and not at all when it is not there any
// more.
func TestNodeThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		told, state error
		atMost      time.Duration
	}{
		"refused": {errors.New("its controller is gone"), nil, 10 * time.Minute},
		"gone":    {errors.New("its controller is gone"), target.ErrNoSuchNode, 0},
		"told":    {nil, target.ErrNoSuchNode, 0},
		"unseen":  {nil, errors.New("the API does not answer"), 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			off := b.build("nodes.PowerOff", scenario.Args{"nodes": "1"})[0]
			if err := off.Do(t.Context(), b.env); err != nil {
				t.Fatal(err)
			}
			b.cluster.fail["node-on"], b.cluster.fail["node-state"] = c.told, c.state
			before := b.elapsed()
			err := off.Undo(t.Context(), b.env)
			if took := b.elapsed() - before; err == nil || took > c.atMost {
				t.Errorf("after %v: %v", took, err)
			}
			// What nobody has told for as long is not waited for again.
			before = b.elapsed()
			err = b.do("nodes.WaitForPowerOn", scenario.Args{"nodes": "2", "wait_secs": 2400.0})
			if took := b.elapsed() - before; c.state != nil && (err == nil || took > 0) {
				t.Errorf("another one after %v: %v", took, err)
			}
			b.end()
		})
	}
}

func TestRollingUpgrade(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("meta.RollingUpgrade", scenario.Args{"node_count": int64(1)})
	b.expect(b.cluster.lines(),
		"0s migrate 7_A_0000 to 1", "0s migrate 7_B_0000 to 1", "0s migrate 7_B_0001 to 1", "0s node-shutdown 0",
		"0s node-on 0", "0s migrate 7_A_0000 to 0", "0s migrate 7_B_0000 to 0", "0s migrate 7_B_0001 to 0",
	)
	b.end()
}

func TestBackgroundSnapshots(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("vm_group.CreatePeriodicSnapshots", scenario.Args{"vm_group_name": "B", "num_snapshots": int64(2),
		"interval_minutes": 1.0, "async": true})
	b.must("test.Wait", scenario.Args{"duration_secs": 90.0})
	b.expect(b.cluster.lines(), "0s snapshot __curie_7_B_1 x2", "1m0s snapshot __curie_7_B_2 x2")
	b.end()
}

func TestRefusedByItsArguments(t *testing.T) {
	b := newBench(t)
	start := scenario.Args{"workload_name": "W", "async": true, "timeout_secs": 5.0}
	_, err := step.Builtin().Build(scenario.Step{Name: "workload.Start", Phase: scenario.Run, Args: start}, b.env.View)
	if err == nil || !strings.Contains(err.Error(), "timeout_secs has no meaning with async") {
		t.Errorf("error %v", err)
	}
	b.end()
}

func TestShell(t *testing.T) {
	b := newBench(t)
	b.must("experimental.Shell", scenario.Args{"cmd": "test -d . && echo hello"})
	err := b.do("experimental.Shell", scenario.Args{"cmd": "echo broken; exit 3"})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v, want the exit status and what was printed", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	shell := b.build("experimental.Shell", scenario.Args{"cmd": "true"})[0]
	if err := shell.Do(stopped, b.env); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped run: %v", err)
	}
	b.env.HostCommands = false
	if err := b.do("experimental.Shell", scenario.Args{"cmd": "true"}); err == nil {
		t.Error("a command was run without permission")
	}
	b.end()
}

func TestChecks(t *testing.T) {
	for _, name := range []string{"check.OobConfigured", "check.ClusterReady", "check.ClustersMatch"} {
		b := newBench(t)
		b.must(name, scenario.Args{"annotate": true})
		b.expect(b.events, "0s annotation  "+name+": passed")
		b.end()
	}
	b := newBench(t)
	for _, name := range []string{"check.HypervisorConnectivity", "check.NodePowerManagementConnectivity"} {
		b.must(name, scenario.Args{"node_index": int64(1)})
		if err := b.do(name, scenario.Args{"node_index": "9"}); err == nil {
			t.Errorf("%s of node 9 of 4 succeeded", name)
		}
	}
	b.must("nodes.PowerOff", scenario.Args{"nodes": "1"})
	if err := b.do("check.HypervisorConnectivity", scenario.Args{"node_index": int64(1)}); err == nil {
		t.Error("a node that is off answered")
	}
	b.must("check.ClusterReady", nil) // powers it on
	b.must("check.HypervisorConnectivity", scenario.Args{"node_index": int64(1)})
	b.must("experimental.WaitOplogEmpty", nil)
	b.env.Facts.Nodes[2].Power = ""
	if err := b.do("check.OobConfigured", nil); err == nil {
		t.Error("a node without a controller passed")
	}
	b.end()
}
