package sim_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/targettest"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
)

const paced = "[global]\nioengine=libaio\ndirect=1\nrw=randrw\nbs=8k\niodepth=4\ntime_based\n[a]\nfilename=/dev/sdb\n" +
	"rate_iops=300,100\nsize=512k\n"

// modelled is a simulated cluster with its engine for fio and a machine that is on.
func modelled(t testing.TB, c clock.Clock, o sim.Options) (*sim.World, target.Cluster, workload.Engine, target.Host) {
	t.Helper()
	o.Clock = c
	w := sim.New(o)
	ctx := context.Background()
	opened, err := w.Target().Provision(ctx, target.Request{RunID: "run", StateDir: "state"})
	if err != nil {
		t.Fatal(err)
	}
	cluster := targettest.MachinesOf(opened)
	t.Cleanup(func() { _ = cluster.Close() })
	for _, err := range []error{
		cluster.CreateTemplate(ctx, target.Template{Name: "t", Group: "g", DiskBytes: []int64{1 << 20, 1 << 20}}),
		cluster.Clone(ctx, target.Clone{Source: "t", Group: "g", Members: []target.Placement{{Name: "a", Node: 1}}}),
		cluster.PowerOn(ctx, []string{"a"}, 1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	engine, ok := opened.(workload.Simulating).Engine("fio", fio.Engine{})
	if !ok {
		t.Fatal("fio is not modelled")
	}
	host, err := cluster.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	return w, opened, engine, host
}

func TestEngineConformance(t *testing.T) {
	needs.Time(t)
	_, _, engine, _ := modelled(t, clock.Real{}, sim.Options{})
	workloadtest.Suite{
		Engine: engine,
		Host: func(t testing.TB) target.Host {
			_, _, _, host := modelled(t, clock.Real{}, sim.Options{})
			return host
		},
		Good: []byte(paced),
		Sections: []byte("[global]\nfilename=/dev/sdb\nsize=512k\ntime_based\n[data]\nrw=randrw\nrate_iops=200\n" +
			"numjobs=2\n[log]\nrw=write\nrate_iops=100\nstartdelay=500ms\n"),
		Faulty:     []byte("[a]\nfilename=/dev/sdz9\nexec_prerun=rm\nsize=1x\n"),
		Objections: []string{"/dev/sdz9"},
		Noise:      []byte("this is not\na report {\n"),
	}.Run(t)
}

// run starts a job on the machine and returns what it reported and how it ended.
func run(t *testing.T, c clock.Clock, engine workload.Engine, host target.Host,
	runtime time.Duration) (*workloadtest.Recorder, []byte, workload.Outcome, error) {
	t.Helper()
	job, err := engine.Command(workload.Spec{Name: "W", VM: "a", ConfigFile: "w.fio", Config: []byte(paced),
		Disks: host.Disks(), Runtime: runtime, SizeScale: 1, TimeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	sink, raw := &workloadtest.Recorder{}, &bytes.Buffer{}
	o, err := engine.Run(t.Context(), workload.Env{Host: host, Clock: c, Raw: raw, Sink: sink}, job)
	return sink, raw.Bytes(), o, err
}

// A job does what its file offers, ends when it should, and its output replays to the same reports.
func TestModelledJob(t *testing.T) {
	v := clock.NewVirtual(sim.Start)
	_, _, engine, host := modelled(t, v, sim.Options{Seed: 3})
	began := v.Now()
	sink, raw, o, err := run(t, v, engine, host, 12*time.Hour)
	if err != nil || o.Stopped || o.Exit != (target.Exit{}) {
		t.Fatalf("%+v, %v", o, err)
	}
	if took := v.Now().Sub(began); took != 12*time.Hour {
		t.Errorf("it took %v", took)
	}
	last := sink.Reports[len(sink.Reports)-1]
	if !last.Final || last.Elapsed != 12*time.Hour || len(sink.Reports) != 1440 || o.Reports != 1440 {
		t.Errorf("%d reports, the last after %v, final %t", len(sink.Reports), last.Elapsed, last.Final)
	}
	for name, c := range map[string]struct {
		workload.Counters
		want float64
	}{"reads": {last.Ops[0], 300 * 43200}, "writes": {last.Ops[1], 100 * 43200}} {
		if got := float64(c.Ops); got < 0.99*c.want || got > 1.01*c.want || c.Bytes != 8192*c.Ops ||
			c.Hist.Count() != c.Ops {
			t.Errorf("%s: %+v, want about %.0f of 8 KiB", name, c.Counters, c.want)
		}
	}
	again := &workloadtest.Recorder{}
	if _, err := engine.Parse(workload.Declared{Operations: result.BlockOperations()}, bytes.NewReader(raw),
		again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sink.Reports, again.Reports); diff != "" {
		t.Errorf("replayed: %s", diff)
	}
}

// A node that goes away takes the job with it; what was done until then has been reported.
func TestModelledJobIsLost(t *testing.T) {
	v := clock.NewVirtual(sim.Start)
	w, _, engine, host := modelled(t, v, sim.Options{})
	g := v.Group()
	g.Go(func() {
		_ = v.Sleep(t.Context(), 90*time.Second+500*time.Millisecond)
		w.LoseNode(1)
	})
	sink, _, o, err := run(t, v, engine, host, time.Hour)
	g.Wait()
	if err != nil || !o.Exit.Lost || o.Stopped {
		t.Fatalf("%+v, %v", o, err)
	}
	last := sink.Reports[len(sink.Reports)-1]
	if last.Elapsed != 90*time.Second+500*time.Millisecond || last.Final || last.Ops[0].Hist == nil {
		t.Errorf("last report after %v, final %t", last.Elapsed, last.Final)
	}
}

// A machine that does not answer reports nothing; its job goes on and is all there when it answers again.
func TestModelledJobInASilentMachine(t *testing.T) {
	v := clock.NewVirtual(sim.Start)
	_, _, engine, host := modelled(t, v,
		sim.Options{Faults: []sim.Fault{{Kind: sim.AgentLost, Nodes: []int{1}, At: 20 * time.Second,
			For: 50 * time.Second}}})
	sink, _, o, err := run(t, v, engine, host, time.Minute)
	if err != nil || o.Exit != (target.Exit{}) {
		t.Fatalf("%+v, %v", o, err)
	}
	var times []time.Duration
	for _, r := range sink.Reports {
		times = append(times, r.Elapsed)
	}
	if last := sink.Reports[len(sink.Reports)-1]; last.Elapsed != time.Minute || !last.Final || len(times) > 25 {
		t.Errorf("reports after %v", times)
	}
}
