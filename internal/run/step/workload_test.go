package step_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/scenario"
)

const (
	sec  = time.Second
	hour = time.Hour
)

// The table of limits: what a synchronous start, or a wait, allows a job that does not end by itself, and how long it
// takes with one that does. A limit is one for all VMs.
func TestLimits(t *testing.T) {
	type args = scenario.Args
	cases := []struct {
		name        string
		start, wait args
		size        time.Duration // of a job without a runtime
		took        time.Duration
		fails       string
	}{
		{"sync, nothing given", args{}, nil, hour, 300 * sec, "not ended within 5 min"},
		{"sync, nothing given, in time", args{}, nil, 200 * sec, 200 * sec, ""},
		{"sync, timeout", args{"timeout_secs": 1000.0}, nil, hour, 1000 * sec, "not ended within"},
		{"sync, timeout, in time", args{"timeout_secs": 14400.0}, nil, hour, hour, ""},
		{"sync, runtime", args{"runtime_secs": 600.0}, nil, 0, 600 * sec, ""},
		{"sync, runtime and stagger", args{"runtime_secs": 600.0, "stagger_secs": 100.0}, nil, 0, 700 * sec, ""},
		{"sync, runtime and timeout", args{"runtime_secs": 600.0, "timeout_secs": 10.0}, nil, 0, 600 * sec, ""},
		{"async", args{"async": true, "runtime_secs": 600.0}, nil, 0, 0, ""},
		{"async and stagger", args{"async": true, "runtime_secs": 600.0, "stagger_secs": 60.0}, nil, 0, 60 * sec, ""},
		{"wait, runtime", args{"async": true, "runtime_secs": 600.0}, args{}, 0, 600 * sec, ""},
		{"wait, no runtime", args{"async": true}, args{}, hour, 300 * sec, "of the wait's begin on 3 VMs"},
		{"wait, no runtime, timeout", args{"async": true}, args{"timeout_secs": 7200.0}, hour, hour, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.machines()
			b.engine.size = c.size
			c.start["workload_name"] = "W"
			err := b.do("workload.Start", c.start)
			if c.wait != nil && err == nil {
				c.wait["workload_name"] = "W"
				err = b.do("workload.Wait", c.wait)
			}
			if got := b.elapsed(); got < c.took || got > c.took+2*sec {
				t.Errorf("took %v, want %v", got, c.took)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			b.end()
		})
	}
}

// A job that goes on beyond its runtime is given the expected end plus the limit, stagger included, whenever the wait
// begins.
func TestLimitCountsFromTheExpectedEnd(t *testing.T) {
	for _, late := range []time.Duration{0, 500 * sec, 5000 * sec} {
		b := newBench(t)
		b.machines()
		b.engine.hang = true
		b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0,
			"stagger_secs": 30.0})
		b.must("test.Wait", scenario.Args{"duration_secs": (late + sec).Seconds()})
		if err := b.do("workload.Wait", scenario.Args{"workload_name": "W", "timeout_secs": 50.0}); err == nil {
			t.Error("a job that never ends was waited for with success")
		}
		want := max(680*sec, late+31*sec)
		if got := b.elapsed(); got < want || got > want+2*sec {
			t.Errorf("gave up after %v, want %v", got, want)
		}
		b.end()
	}
}

func TestStagger(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0,
		"stagger_secs": 5.0, "annotate": true})
	b.must("workload.Wait", scenario.Args{"workload_name": "W", "annotate": true})
	b.expect(b.cluster.lines(), "0s run W on 7_A_0000", "2.5s run W on 7_A_0001", "5s run W on 7_A_0002")
	b.must("workload.Wait", scenario.Args{"workload_name": "W"}) // again is immediate
	b.expect(b.events,
		"0s annotation  Started workload W", "0s workload W start",
		"0s workload W on 7_A_0000 start", "2.5s workload W on 7_A_0001 start", "5s workload W on 7_A_0002 start",
		"10m0s workload W on 7_A_0000 end", "10m2.5s workload W on 7_A_0001 end", "10m5s workload W on 7_A_0002 end",
		"10m5.02s workload W end", "10m5.02s annotation  Finished workload W",
	)
	b.end()
}

// A wait for a workload whose machine has died is no failure, and leaves a trace.
func TestLostMachine(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0})
	b.must("nodes.PowerOff", scenario.Args{"nodes": "1", "annotate": false, "wait_secs": 0.0})
	b.must("workload.Wait", scenario.Args{"workload_name": "W"})
	if b.elapsed() != 600*sec {
		t.Errorf("the wait ended after %v", b.elapsed())
	}
	if want := "0s workload W on 7_A_0001 lost"; !slices.Contains(b.events, want) {
		t.Errorf("no event %q in %q", want, b.events)
	}
	b.end()
}

// What ends a job that was on a machine known to be lost is that loss, also when its tool is stopped before it notices.
func TestStopOfALostMachine(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0})
	b.must("nodes.PowerOff", scenario.Args{"nodes": "1", "wait_secs": 0.0})
	ctx, cancel := context.WithCancel(t.Context())
	stopper := b.clock.Group()
	stopper.Go(func() {
		_ = b.clock.Sleep(context.Background(), sec/2)
		cancel()
	})
	b.events = nil
	wait := b.build("workload.Wait", scenario.Args{"workload_name": "W"})[0]
	if err := wait.Do(ctx, b.env); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait: %v", err)
	}
	stopper.Wait()
	b.must("workload.Stop", scenario.Args{"workload_name": "W"})
	b.end()
	b.expect(b.events,
		"0s workload W on 7_A_0001 lost", "500ms workload W on 7_A_0000 stop", "500ms workload W on 7_A_0002 stop",
		"520ms workload W stop",
	)
}

func TestCloseTellsWhatDoesNotEnd(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.engine.deaf = true
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.env.Loads.Close(ctx)
	if want := "workloads: 1 starts have jobs that do not end: context canceled"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	b.end()
}

// A job that vanished in a machine that is back by the time of the wait fails it.
func TestVanishedJob(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.cluster.slow = 10 * sec
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0})
	b.must("nodes.PowerOff", scenario.Args{"nodes": "1"})
	b.must("nodes.PowerOn", scenario.Args{"nodes": "1"})
	b.must("vm_group.PowerOn", scenario.Args{"vm_group_name": "A"})
	err := b.do("workload.Wait", scenario.Args{"workload_name": "W"})
	if err == nil || !strings.Contains(err.Error(), "A_0001: it vanished") {
		t.Errorf("error %v, want one about the job that vanished", err)
	}
	b.end()
}

func TestFailedJob(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.engine.how["7_A_0001"] = errScripted
	b.must("workload.Start", scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0})
	b.must("test.Wait", scenario.Args{"duration_secs": 400.0})
	if got := b.env.Loads.Unnoticed(); len(got) != 1 || !strings.Contains(got[0], "A_0001: the tool refused") {
		t.Errorf("unnoticed failures: %q", got)
	}
	err := b.do("workload.Wait", scenario.Args{"workload_name": "W"})
	if err == nil || !strings.Contains(err.Error(), "A_0001: the tool refused") {
		t.Errorf("error %v, want the tool's", err)
	}
	if got := b.env.Loads.Unnoticed(); got != nil {
		t.Errorf("still unnoticed after a wait: %q", got)
	}
	b.end()
}

func TestStop(t *testing.T) {
	b := newBench(t)
	b.machines()
	start := scenario.Args{"workload_name": "W", "async": true, "runtime_secs": 600.0}
	b.must("workload.Start", start)
	if err := b.do("workload.Start", start); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a workload that runs was started again: %v", err)
	}
	b.must("test.Wait", scenario.Args{"duration_secs": 10.0})
	b.must("workload.Stop", scenario.Args{"workload_name": "W"})
	if err := b.do("workload.Wait", scenario.Args{"workload_name": "W"}); err == nil ||
		!strings.Contains(err.Error(), "stopped before it ended") {
		t.Errorf("a wait after a stop: %v", err)
	}
	b.cluster.log = nil
	b.must("workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 60.0}) // a real second run
	b.expect(b.cluster.lines(), "10.02s run W.2 on 7_A_0000", "10.02s run W.2 on 7_A_0001",
		"10.02s run W.2 on 7_A_0002")
	if err := b.do("workload.Wait", scenario.Args{"workload_name": "X"}); err == nil ||
		!strings.Contains(err.Error(), "never started") {
		t.Errorf("a wait before any start: %v", err)
	}
	b.events = nil
	b.must("workload.Stop", scenario.Args{"workload_name": "X"})
	b.expect(b.events, `1m10.04s warning  workload "X" was never started`)
	b.end()
}

func TestStartNeedsItsMachines(t *testing.T) {
	b := newBench(t)
	start := scenario.Args{"workload_name": "W", "runtime_secs": 1.0}
	if err := b.do("workload.Start", start); err == nil || !strings.Contains(err.Error(), `group "A" has no VMs`) {
		t.Errorf("start without VMs: %v", err)
	}
	b.machines()
	b.must("nodes.PowerOff", scenario.Args{"nodes": "1, 2"})
	want := "2 VMs not accessible: __curie_test_7_A_0001, __curie_test_7_A_0002: " +
		"__curie_test_7_A_0001 is off: not accessible"
	if err := b.do("workload.Start", start); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("start with VMs that are off: %v", err)
	}
	b.end()
}

func TestPrefill(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.must("workload.PrefillRun", scenario.Args{"workload_name": "X", "max_concurrent": int64(1)})
	b.must("workload.PrefillRun", scenario.Args{"workload_name": "W", "max_concurrent": int64(2)})
	b.must("workload.PrefillStart", scenario.Args{"workload_name": "X", "async": true})
	b.must("workload.PrefillWait", scenario.Args{"workload_name": "X"})
	var order []string
	for _, line := range b.cluster.lines() {
		_, what, _ := strings.Cut(line, " ")
		order = append(order, what)
	}
	b.expect(order,
		"run X_prefill on 7_B_0000", "run X_prefill on 7_B_0001",
		"run W_prefill on 7_A_0000", "run W_prefill on 7_A_0001", "run W_prefill on 7_A_0002",
		"run X_prefill.2 on 7_B_0000", "run X_prefill.2 on 7_B_0001",
	)
	// Two turns, two turns, one; each end is noticed within a hundredth.
	if got := b.elapsed(); got < 500*sec || got > 505*sec {
		t.Errorf("took %v, want 500 s", got)
	}
	if b.engine.most != 2 {
		t.Errorf("%d at a time, want 2", b.engine.most)
	}
	var depths []int
	seeds := map[uint64]bool{}
	for _, s := range b.engine.spec {
		depths = append(depths, s.Depth)
		seeds[s.Seed] = true
	}
	if want := []int{4, 4, 4, 4, 4, 4, 4}; !slices.Equal(depths, want) {
		t.Errorf("depths %v, want %v", depths, want)
	}
	if len(seeds) != 5 {
		t.Errorf("%d different seeds for 5 VMs", len(seeds))
	}
	b.end()
}

// One member that fails fails the prefill; the others stop and none is begun after it.
func TestFailedPrefill(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.engine.how["7_A_0000"] = errScripted
	err := b.do("workload.PrefillRun", scenario.Args{"workload_name": "W", "max_concurrent": int64(2)})
	if err == nil || !strings.Contains(err.Error(), "A_0000: the tool refused") {
		t.Errorf("error %v", err)
	}
	b.expect(b.cluster.lines(), "0s run W_prefill on 7_A_0000", "0s run W_prefill on 7_A_0001")
	b.end()
}

func TestPrefillOfAMachineThatDies(t *testing.T) {
	b := newBench(t)
	b.machines()
	b.engine.size = 1000 * sec
	b.must("workload.PrefillStart", scenario.Args{"workload_name": "X", "async": true})
	b.must("workload.Stop", scenario.Args{"workload_name": "X_prefill"})
	g := b.clock.Group()
	g.Go(func() {
		_ = b.clock.Sleep(t.Context(), 30*sec)
		_ = controller{b.cluster, 1}.PowerOff(t.Context())
	})
	err := b.do("workload.PrefillRun", scenario.Args{"workload_name": "W"})
	if err == nil || !strings.Contains(err.Error(), "A_0001: not accessible any more") {
		t.Errorf("error %v", err)
	}
	g.Wait()
	b.end()
}

// A stop of the run ends every kind of step soon, with the context's error, and leaves no job behind.
func TestStopOfTheRun(t *testing.T) {
	steps := []struct {
		name string
		args scenario.Args
	}{
		{"workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 600.0}},
		{"workload.Start", scenario.Args{"workload_name": "W", "runtime_secs": 600.0, "stagger_secs": 900.0,
			"async": true}},
		{"workload.PrefillRun", scenario.Args{"workload_name": "W", "max_concurrent": int64(1)}},
		{"test.Wait", scenario.Args{"duration_secs": 3600.0}},
		{"nodes.WaitForPowerOff", scenario.Args{"nodes": "0"}},
		{"vm_group.CreatePeriodicSnapshots", scenario.Args{"vm_group_name": "A", "num_snapshots": int64(9),
			"interval_minutes": 10.0}},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			b := newBench(t)
			b.machines()
			ctx, cancel := context.WithCancelCause(t.Context())
			stopper := b.clock.Group()
			stopper.Go(func() {
				_ = b.clock.Sleep(context.Background(), 50*sec)
				cancel(clock.ErrTimeout)
			})
			err := b.build(s.name, s.args)[0].Do(ctx, b.env)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want the context's", err)
			}
			if got := b.elapsed(); got < 50*sec || got > 52*sec {
				t.Errorf("ended after %v, want 50 s", got)
			}
			stopper.Wait()
			if strings.Contains(s.name, "Prefill") || s.args["async"] == nil && s.name == "workload.Start" {
				if stopped, _ := b.env.Loads.StopAll(t.Context()); stopped != nil {
					t.Errorf("left running: %q", stopped)
				}
			}
			b.end()
		})
	}
}

// naming is an engine whose tool the author's file names.
type naming struct {
	*engine
	asked []string
}

func (n *naming) CheckTool(_ context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	n.asked = append(n.asked, host.Name()+" "+spec.Name)
	if spec.ConfigFile == "" || len(spec.Config) == 0 {
		return workload.Tool{}, errors.New("no file to find the name of the tool in")
	}
	return workload.Tool{}, errors.New("sysbench: not found")
}

// The tool that a workload's own file names is looked for before anything is started.
func TestToolNamedByTheFile(t *testing.T) {
	b := newBench(t)
	b.machines()
	n := &naming{engine: b.engine}
	b.env.Loads.Engines["fio"] = n
	err := b.do("workload.Start", scenario.Args{"workload_name": "W"})
	if err == nil || !strings.Contains(err.Error(), "sysbench: not found") || len(n.asked) != 1 ||
		!strings.HasSuffix(n.asked[0], " W") {
		t.Errorf("error %v, asked %q", err, n.asked)
	}
	b.end()
}
