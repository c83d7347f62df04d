package step_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/step"
	"plimsoll/internal/testkit/steptest"
	"plimsoll/result"
	"plimsoll/scenario"
)

const diskBytes = 1 << 30 // of every member

// conditioned is a bench whose jobs report: a pass that all of the disk was written, round n the n-th rate.
func conditioned(t *testing.T, rates ...float64) (*bench, *[]result.Event) {
	b := newBench(t)
	b.machines()
	b.engine.size = 100 * time.Second
	b.engine.last = func(label string) workload.Report {
		if strings.Contains(label, "_precondition") {
			return workload.Report{Ops: workload.Counts{{Ops: 8192, Bytes: diskBytes}}}
		}
		n := 1
		if _, number, later := strings.Cut(label, "."); later {
			fmt.Sscan(number, &n)
		}
		return workload.Report{Ops: workload.Counts{{Ops: uint64(rates[min(n, len(rates))-1] * 60), Bytes: 4096}}}
	}
	var events []result.Event
	record := b.env.Record
	b.env.Record = func(e result.Event) {
		e.Step = 1
		events = append(events, e)
		record(e)
	}
	return b, &events
}

func only(t *testing.T, events []result.Event) result.Preconditioning {
	t.Helper()
	pre, _ := result.Prepared(events, false)
	if len(pre) != 1 {
		t.Fatalf("%d preconditionings: %+v", len(pre), pre)
	}
	return pre[0]
}

// What is done and recorded, and what it comes to, by the rates of the rounds.
func TestPrecondition(t *testing.T) {
	for name, c := range map[string]struct {
		rates         []float64
		args          scenario.Args
		rounds        int
		state, reason string
		took          time.Duration
	}{
		"steady at once": {[]float64{100}, scenario.Args{}, 5, result.Preconditioned, "", 500 * sec},
		"worn in after a while": {[]float64{300, 250, 200, 150, 100, 100, 100}, scenario.Args{}, 9,
			result.Preconditioned, "", 740 * sec},
		"never": {[]float64{100, 200, 100, 200, 100, 200, 100, 200}, scenario.Args{"max_rounds": int64(8)}, 8,
			result.PreconditionNotReached, "max_rounds is 8", 680 * sec},
		"no rounds": {nil, scenario.Args{"max_rounds": int64(0)}, 0, result.PreconditionWritten, "", 200 * sec},
		"no passes": {[]float64{100}, scenario.Args{"passes": int64(0)}, 5, result.Preconditioned, "", 300 * sec},
		"no time for more rounds": {[]float64{100}, scenario.Args{"timeout_secs": 400.0}, 3,
			result.PreconditionNotReached, "timeout_secs of 6 min 40 s leave no time for another round", 380 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			b, events := conditioned(t, c.rates...)
			c.args["workload_name"] = "X"
			b.must("workload.Precondition", c.args)
			p := only(t, *events)
			passes := 2
			if c.args.Has("passes") {
				passes = c.args.Int("passes")
			}
			if len(p.Rounds) != c.rounds || p.State != c.state || p.Reason != c.reason || len(p.Passes) != passes ||
				p.VMs != 2 {
				t.Errorf("%d rounds, %q (%s), %d passes, %d VMs: %s", len(p.Rounds), p.State, p.Reason,
					len(p.Passes), p.VMs, p.Sentence())
			}
			for i, r := range p.Rounds { // of both VMs together
				if want := 2 * c.rates[min(i, len(c.rates)-1)]; r.OpsPerSecond != want || r.Seconds != 60 {
					t.Errorf("round %d: %+v, want %v a second", i+1, r, want)
				}
			}
			for _, pass := range p.Passes {
				if diff := cmp.Diff(result.Pass{Bytes: 2 * diskBytes, Seconds: 100}, pass,
					cmpopts.EquateApprox(0.02, 0)); diff != "" {
					t.Error(diff)
				}
			}
			if got := b.elapsed(); got < c.took || got > c.took+20*sec {
				t.Errorf("took %v, want %v", got, c.took)
			}
			b.end()
		})
	}
}

// The disks are written whole whatever the sections say, in blocks that keep as many bytes in flight as a prefill does;
// every round has a sequence of its own.
func TestPreconditionSpecs(t *testing.T) {
	b, _ := conditioned(t, 100)
	b.must("workload.Precondition", scenario.Args{"workload_name": "W", "passes": int64(1), "block_kb": int64(512)})
	seeds := map[uint64]bool{}
	for _, s := range b.engine.spec {
		seeds[s.Seed] = true
		switch pass := strings.HasPrefix(s.Name, "W_precondition"); {
		case pass && (!s.Prefill || !s.Whole || s.Block != 512<<10 || s.Depth != 8 || s.Runtime != 0):
			t.Errorf("a pass: %+v", s)
		case !pass && (s.Prefill || s.Whole || s.Runtime != time.Minute):
			t.Errorf("a round: %+v", s)
		}
	}
	if want := 3 + 5*3; len(seeds) != want || len(b.engine.spec) != want {
		t.Errorf("%d seeds of %d jobs, want %d", len(seeds), len(b.engine.spec), want)
	}
	b.end()
}

// A pass that does not write everything, a round that does nothing, a limit, a stop: what was done is kept and marked.
func TestPreconditionFails(t *testing.T) {
	fills := func(bytes, errors uint64) func(*bench) {
		return func(b *bench) {
			b.engine.last = func(string) workload.Report {
				return workload.Report{Ops: workload.Counts{{Ops: 1, Bytes: bytes}}, Errors: errors}
			}
		}
	}
	for name, c := range map[string]struct {
		args          scenario.Args
		change        func(*bench)
		fails, state  string
		passes, round int
	}{
		"a full disk": {scenario.Args{}, fills(diskBytes/2, 77),
			"pass 1 wrote 1 GiB of 2 GiB, 154 writes failed: is a disk full, read-only or gone?", "failed", 1, 0},
		"a disk too small":   {scenario.Args{}, fills(diskBytes-1, 0), "pass 1 wrote", "failed", 1, 0},
		"nothing in a round": {scenario.Args{"passes": int64(0)}, fills(0, 9), "", "failed", 0, 0},
		"a tool that refuses": {scenario.Args{}, func(b *bench) { b.engine.how["7_B_0001"] = errScripted },
			"the tool refused", "failed", 1, 0},
		"a limit in a pass": {scenario.Args{"timeout_secs": 150.0}, func(*bench) {},
			"timeout_secs of 2 min 30 s were over in pass 2 of 2", "failed", 2, 0},
		"a stop in a pass":  {scenario.Args{}, stopAfter(30 * sec), "context canceled", "interrupted", 1, 0},
		"a stop in a round": {scenario.Args{}, stopAfter(290 * sec), "context canceled", "interrupted", 2, 1},
		"machines that went away": {scenario.Args{"passes": int64(0)}, func(b *bench) {
			b.back.Go(func() {
				_ = b.clock.Sleep(b.t.Context(), 90*sec)
				b.cluster.mu.Lock()
				b.cluster.off[0] = true
				b.cluster.mu.Unlock()
			})
		}, "round 2: 2 VMs went away", "failed", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, events := conditioned(t, 100)
			if strings.HasPrefix(name, "nothing") {
				b.engine.last = func(string) workload.Report { return workload.Report{Errors: 9} }
				c.fails = "round 1 completed no operation, 18 operations failed"
			} else {
				c.change(b)
			}
			c.args["workload_name"] = "X"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if stop := b.stopAfter; stop > 0 {
				b.back.Go(func() { _ = b.clock.Sleep(ctx, stop); cancel() })
			}
			s := b.build("workload.Precondition", c.args)[0]
			err := s.Do(ctx, b.env)
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
			p := only(t, *events)
			if p.State != c.state || len(p.Passes) != c.passes || len(p.Rounds) != c.round || p.Reason == "" {
				t.Errorf("%s: %d passes, %d rounds, %q; want %s, %d, %d", p.State, len(p.Passes), len(p.Rounds),
					p.Reason, c.state, c.passes, c.round)
			}
			b.end()
		})
	}
}

func stopAfter(d time.Duration) func(*bench) { return func(b *bench) { b.stopAfter = d } }

// Devices that are given for disks are written as a whole, however large the scenario's disks are.
func TestPreconditionOfDevices(t *testing.T) {
	b := newBench(t)
	spec, _ := scenario.LookupStep("workload.Precondition")
	one := scenario.Step{Name: spec.Name, Args: steptest.WithDefaults(spec, scenario.Args{"workload_name": "W"})}
	for want, given := range map[string][]target.Disk{
		"(6 GiB in all)":  nil,
		"(14 GiB in all)": {{Bytes: 4 << 30}, {Bytes: 2 << 30}},
	} {
		b.env.Facts.DataDisks = given
		s, err := step.Builtin().Build(one, b.env.View)
		if err != nil {
			t.Fatal(err)
		}
		if text := s[0].Text(); !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	b.end()
}

// What cannot be meant is refused when the plan is made.
func TestPreconditionRefused(t *testing.T) {
	b := newBench(t)
	spec, _ := scenario.LookupStep("workload.Precondition")
	for want, args := range map[string]scenario.Args{
		"takes 5 of them": {"max_rounds": int64(4)},
		"nothing to do":   {"max_rounds": int64(0), "passes": int64(0)},
		"not declared":    {"workload_name": "nobody"},
	} {
		if !args.Has("workload_name") {
			args["workload_name"] = "W"
		}
		one := scenario.Step{Name: spec.Name, Args: steptest.WithDefaults(spec, args)}
		_, err := step.Builtin().Build(one, b.env.View)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
	b.end()
}
