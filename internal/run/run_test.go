package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run"
	"plimsoll/internal/run/step"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/scenario"
)

func TestEveryKindOfStep(t *testing.T) {
	h := newHarness(t, everyKind)
	s, err := h.execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	yes := result.Verdict{State: "yes"}
	if s.Status != result.StatusSucceeded || s.Measured != yes || s.Collected != yes {
		t.Errorf("%+v", s)
	}
	h.clean(s)
	golden.Compare(t, filepath.Join("testdata", "every-kind.txt"), []byte(journal(h.events, h.events[0].Time)))
	if s.Overhead.MaxResidentBytes == 0 {
		t.Errorf("overhead was not measured: %+v", s.Overhead)
	}
	if m := h.folder.Manifest(); m.Overhead != nil {
		t.Errorf("a simulated run records what it cost: %+v", m.Overhead)
	}
	data, err := h.folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range data.Panels {
		if p.Problem != "" || len(p.Series) == 0 {
			t.Errorf("panel %s: %d series, problem %q", p.Name, len(p.Series), p.Problem)
		}
	}
}

// Same scenario, same seed: the same journal to the nanosecond.
func TestSameJournalEveryTime(t *testing.T) {
	needs.Time(t)
	var first string
	for range 3 {
		h := newHarness(t, everyKind)
		if _, err := h.execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(h.folder.Dir(), "journal.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(b)
		}
		if first != string(b) {
			t.Fatal("two runs of the same wrote different journals")
		}
	}
}

// Every step fails, panics or is stopped, at its start, in its middle and at its end. Whatever happens, teardown has
// run, nothing remains, the folder reads and the verdicts are right.
func TestEveryStepCutShort(t *testing.T) {
	needs.Time(t)
	ways := []string{"fails at its end", "stopped in its middle", "fails at once", "panics", "stopped at its start",
		"stopped at its end"}
	if !needs.All() {
		ways = ways[:2]
	}
	seen := map[string]bool{}
	for i, s := range newHarness(t, everyKind).req.Plan.Steps {
		kind := string(s.Phase) + s.Name
		if seen[kind] {
			continue // the same for the next node or group
		}
		seen[kind] = true
		for _, way := range ways {
			t.Run(fmt.Sprintf("%d %s %s", s.Number, s.Name, way), func(t *testing.T) {
				t.Parallel()
				cutShort(t, i, way)
			})
		}
	}
}

func cutShort(t *testing.T, i int, way string) {
	h := newHarness(t, everyKind)
	h.req.Interval = 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := h.req.Plan.Steps[i]
	h.req.Plan.Steps[i].Do = wrapped{s.Do, func(inner context.Context, e *step.Env) error {
		switch way {
		case "fails at once":
			return errTest
		case "fails at its end":
			return errors.Join(s.Do.Do(inner, e), errTest)
		case "panics":
			panic("the test wants it so")
		case "stopped at its start":
			cancel()
			return s.Do.Do(inner, e)
		case "stopped at its end":
			err := s.Do.Do(inner, e)
			cancel()
			return err
		}
		g := e.Clock.Group()
		g.Go(func() {
			_ = e.Clock.Sleep(context.WithoutCancel(inner), time.Second)
			cancel()
		})
		defer g.Wait()
		return s.Do.Do(inner, e)
	}}
	sum, err := h.execute(ctx)
	h.clean(sum)
	stop := strings.HasPrefix(way, "stopped")
	teardown := s.Phase == "teardown"
	switch {
	case !stop && (sum.Status != result.StatusFailed || exit.Code(err) != exit.Failed):
		t.Errorf("status %s, code %d, error %v", sum.Status, exit.Code(err), err)
	case stop && teardown && (sum.Status != result.StatusSucceeded || err != nil): // too late to stop anything
		t.Errorf("status %s, error %v", sum.Status, err)
	case stop && !teardown && (sum.Status != result.StatusStopped || exit.Code(err) != exit.Interrupted):
		t.Errorf("status %s, code %d, error %v", sum.Status, exit.Code(err), err)
	}
	want := map[string]string{"setup": "no", "run": "partly", "pre_setup": "no", "teardown": "yes"}[string(s.Phase)]
	if last := h.req.Plan.Steps[i+1:]; stop && len(last) > 0 && s.Phase == "run" && last[0].Phase == "teardown" {
		want = "partly" // the last step of the run phase, stopped
	}
	if sum.Measured.State != want {
		t.Errorf("measured: %+v, want %s", sum.Measured, want)
	}
	if texts := strings.Join(kinds(h.events, result.KindStepEnd), "\n"); strings.Contains(texts, "goroutine") {
		t.Errorf("a stack is shown to users: %s", texts)
	}
	data, err := h.folder.Data()
	if err != nil || len(data.Phases) == 0 {
		t.Errorf("data: %v", err)
	}
}

// Every call to the target fails once.
func TestEveryCallFails(t *testing.T) {
	needs.Time(t)
	h := newHarness(t, everyKind)
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, call := range h.world.Calls() {
		method, _, _ := strings.Cut(call, " ")
		if seen[method] || method == "Destroy" || method == "Check" || method == "Provision" {
			continue
		}
		seen[method] = true
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everyKind)
			h.world.Fail(sim.Rule{Method: method, Count: 1, Delay: time.Second, Err: errTest})
			s, _ := h.execute(t.Context())
			h.clean(s)
		})
	}
	if len(seen) < 10 {
		t.Errorf("only %d methods were called", len(seen))
	}
}

// Without any teardown of the author's, nodes are switched back on and machines removed all the same, after a success
// too.
func TestNoTeardown(t *testing.T) {
	text, _, _ := strings.Cut(everyKind, "teardown:")
	h := newHarness(t, text)
	s, err := h.execute(t.Context())
	if err != nil {
		t.Error(err)
	}
	h.clean(s)
}

func TestRefusal(t *testing.T) {
	h := newHarness(t, everyKind)
	h.world.Fail(sim.Rule{Method: "Provision", Err: errTest})
	s, err := run.Execute(t.Context(), h.req)
	if exit.Code(err) != exit.Refused || s.Status != result.StatusFailed || s.Measured.State != "no" ||
		s.Cleaned.State != "yes" {
		t.Errorf("code %d, %v, %+v", exit.Code(err), err, s)
	}
}

func TestLeftovers(t *testing.T) {
	h := newHarness(t, everyKind)
	h.world.Fail(sim.Rule{Method: "Destroy", Count: 1, Err: errTest})
	s, err := h.execute(t.Context())
	if exit.Code(err) != exit.Uncleaned || len(s.Remains) == 0 || s.Status != result.StatusSucceeded ||
		s.Cleaned.State != "partly" {
		t.Errorf("code %d, %v, %+v", exit.Code(err), err, s)
	}
	for range 2 {
		if left, err := run.Cleanup(t.Context(), h.folder, h.world.Target()); err != nil || left != nil {
			t.Errorf("clean-up: %v %q", err, left)
		}
	}
	if v := h.folder.Manifest().Cleaned; v.State != "yes" {
		t.Errorf("cleaned: %+v", v)
	}
	if left := h.world.Remains(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestKeep(t *testing.T) {
	h := newHarness(t, everyKind)
	h.req.Keep = true
	s, err := h.execute(t.Context())
	if err != nil || s.Cleaned.State != "no" || len(h.world.Remains()) == 0 {
		t.Errorf("%v, %+v, remains %q", err, s.Cleaned, h.world.Remains())
	}
	for i := range 4 {
		if !h.nodeOn(i) {
			t.Errorf("node %d was left off", i)
		}
	}
	if _, err := run.Cleanup(t.Context(), h.folder, h.world.Target()); err != nil || len(h.world.Remains()) > 0 {
		t.Errorf("clean-up: %v, remains %q", err, h.world.Remains())
	}
}

func TestTimeLimit(t *testing.T) {
	h := newHarness(t, everyKind)
	h.req.Limit = 100 * time.Second
	s, err := h.execute(t.Context())
	if s.Status != result.StatusFailed || exit.Code(err) != exit.Failed ||
		!strings.Contains(s.Error, "time limit of 1 min 40 s") {
		t.Errorf("%+v, %v", s, err)
	}
	h.clean(s)
}

// An earlier failure wins over a stop during the teardown.
func TestFailureThenStop(t *testing.T) {
	h := newHarness(t, everyKind)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(context.Context, *step.Env) error { return errTest }}
	})
	h.hook = func(e result.Event) {
		if e.Kind == result.KindPhase && e.Phase == "teardown" {
			cancel()
		}
	}
	s, err := h.execute(ctx)
	if s.Status != result.StatusFailed || exit.Code(err) != exit.Failed {
		t.Errorf("%+v, %v", s, err)
	}
	h.clean(s)
}

// The error of a step in the background fails the run.
func TestBackgroundFailure(t *testing.T) {
	h := newHarness(t, everyKind)
	h.world.Fail(sim.Rule{Method: "Snapshot", Err: errTest})
	s, _ := h.execute(t.Context())
	if s.Status != result.StatusFailed || !strings.Contains(s.Error, "in the background") {
		t.Errorf("%+v", s)
	}
	h.clean(s)
}

func TestFinishers(t *testing.T) {
	h := newHarness(t, everyKind)
	called := 0
	h.req.Finish = append(h.req.Finish,
		func(_ context.Context, f *result.Folder, _ *result.Data) error { called++; return f.WriteFindings(nil) },
		func(context.Context, *result.Folder, *result.Data) error { called++; panic("a defect of the report") },
		func(context.Context, *result.Folder, *result.Data) error { called++; return errTest },
	)
	s, err := h.execute(t.Context())
	if err != nil || called != 3 || s.Status != result.StatusSucceeded || s.Measured.State != "yes" ||
		s.Collected.State != "partly" {
		t.Errorf("%d called, %v, %+v", called, err, s)
	}
}

func TestIncompleteRequest(t *testing.T) {
	if _, err := run.Execute(t.Context(), run.Request{}); err == nil {
		t.Error("an empty request was executed")
	}
}

// The folder of a process that died at any event of the journal opens, says interrupted, and gets the verdicts that its
// journal allows.
func TestFoundDead(t *testing.T) {
	h := newHarness(t, everyKind)
	copies := t.TempDir()
	type death struct{ dir, phase string }
	var deaths []death
	h.hook = func(e result.Event) {
		if e.Kind != result.KindStepStart && e.Kind != result.KindPhase && e.Kind != result.KindFault || e.Step%3 != 0 {
			return
		}
		d := death{filepath.Join(copies, fmt.Sprint(len(deaths))), e.Phase}
		if err := os.CopyFS(d.dir, os.DirFS(filepath.Join(h.req.Root, "run"))); err != nil {
			t.Error(err)
		}
		deaths = append(deaths, d)
	}
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"pre_setup": "no", "setup": "no", "run": "partly", "teardown": "yes"}
	for _, d := range deaths {
		folder, err := result.Open(d.dir)
		if err != nil {
			t.Fatal(err)
		}
		if s := folder.Manifest().Status; s != result.StatusInterrupted {
			t.Errorf("dead in %s: status %s", d.phase, s)
		}
		if left, err := run.Cleanup(t.Context(), folder, h.world.Target()); err != nil || left != nil {
			t.Errorf("dead in %s: clean-up: %v %q", d.phase, err, left)
		}
		m := folder.Manifest()
		if m.Status != result.StatusInterrupted || m.Measured.State != want[d.phase] || m.Cleaned.State != "yes" ||
			m.Ended.IsZero() {
			t.Errorf("dead in %s: %s, measured %+v, cleaned %+v, ended %v", d.phase, m.Status, m.Measured, m.Cleaned,
				m.Ended)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(deaths) < 20 {
		t.Errorf("only %d deaths", len(deaths))
	}
}

// A run that still goes on is not cleaned up from elsewhere.
func TestCleanupOfALivingRun(t *testing.T) {
	h := newHarness(t, everyKind)
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(ctx context.Context, e *step.Env) error {
			other, err := result.Open(e.Dir)
			if err != nil {
				return err
			}
			if _, err := run.Cleanup(ctx, other, h.world.Target()); err == nil {
				t.Error("a living run was cleaned up")
			}
			return s.Do(ctx, e)
		}}
	})
	if _, err := h.execute(t.Context()); err != nil {
		t.Error(err)
	}
}

// A workload that fails while nobody waits for it does not end the run, but what was measured is incomplete.
func TestUnnoticedFailure(t *testing.T) {
	h := newHarness(t, everyKind)
	h.req.Engines = map[string]workload.Engine{"fio": failing{h.req.Engines["fio"]}}
	s, err := h.execute(t.Context())
	if err != nil || s.Status != result.StatusSucceeded || s.Measured.State != "partly" ||
		!strings.Contains(s.Measured.Reason, "no space left") {
		t.Errorf("%v, %+v", err, s)
	}
	h.clean(s)
}

// failing is an engine whose disk fills up after a while under workload W.
type failing struct{ workload.Engine }

func (f failing) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	if job.Command.Label != "W" {
		return f.Engine.Run(ctx, env, job)
	}
	if env.Clock.Sleep(ctx, 5*time.Second) != nil {
		return workload.Outcome{Stopped: true}, nil
	}
	return workload.Outcome{Exit: target.Exit{Code: 1}}, fmt.Errorf("run: workload W: %w", syscall.ENOSPC)
}

func ExampleCode() {
	fmt.Println(exit.Code(nil), exit.Code(run.ErrStopped),
		exit.Code(errors.Join(run.ErrStopped, &run.LeftoverError{Remains: []string{"vm"}})))
	// Output: 0 130 6
}

// After a stop or a failure in the run phase, what steps left is undone before the author's teardown begins.
func TestUndoneBeforeTeardown(t *testing.T) {
	for name, failure := range map[string]error{"stop": nil, "failure": errTest} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everyKind)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			node := func(e *step.Env) target.PowerState {
				t.Helper()
				state, _, err := e.Cluster.NodeState(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				return state
			}
			h.withStep("test.Wait", 0, func(s step.Step) step.Step { // while node 0 is off
				return wrapped{s, func(ctx context.Context, e *step.Env) error {
					if got := node(e); got != target.Off {
						t.Errorf("node 0 is %s: this test tests nothing", got)
					}
					if failure == nil {
						cancel()
					}
					return errors.Join(failure, ctx.Err())
				}}
			})
			began := false
			for i, s := range h.req.Plan.Steps {
				if s.Phase == scenario.Teardown && !began {
					began = true
					h.req.Plan.Steps[i].Do = wrapped{s.Do, func(ctx context.Context, e *step.Env) error {
						if got := node(e); got != target.On {
							t.Errorf("node 0 is %s when teardown begins", got)
						}
						return s.Do.Do(ctx, e)
					}}
				}
			}
			s, _ := h.execute(ctx)
			h.clean(s)
			if !began {
				t.Error("there was no teardown")
			}
		})
	}
}

// A journal that cannot be written is a failure, though the run ends as by a stop.
func TestJournalThatCannotBeWritten(t *testing.T) {
	h := newHarness(t, everyKind)
	h.withStep("test.Wait", 0, func(s step.Step) step.Step {
		return wrapped{s, func(ctx context.Context, e *step.Env) error {
			noJSON := result.Migration{Seconds: math.NaN()}
			e.Record(result.Event{Kind: result.KindNote, Data: result.EventData{Migration: &noJSON}})
			return s.Do(ctx, e)
		}}
	})
	s, err := h.execute(t.Context())
	const want = "the run folder cannot be written"
	if s.Status != result.StatusFailed || exit.Code(err) != exit.Failed || !strings.Contains(s.Error, want) {
		t.Errorf("%s, code %d, %q, %v", s.Status, exit.Code(err), s.Error, err)
	}
	h.clean(s)
}

// Steps that a failure or a stop keeps from running are in the journal, each once, and no others.
func TestSkippedSteps(t *testing.T) {
	for name, failure := range map[string]error{"stop": nil, "failure": errTest} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everyKind)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h.withStep("vm_group.Grow", 0, func(s step.Step) step.Step {
				return wrapped{s, func(ctx context.Context, _ *step.Env) error {
					if failure == nil {
						cancel()
					}
					return errors.Join(failure, ctx.Err())
				}}
			})
			if _, err := h.execute(ctx); err == nil {
				t.Fatal("it went through")
			}
			var want, got []string
			after := false
			for _, s := range h.req.Plan.Steps {
				if after && s.Phase != scenario.Teardown {
					want = append(want, fmt.Sprintf("%s %d %s", s.Phase, s.Number, s.Name))
				}
				after = after || s.Name == "vm_group.Grow"
			}
			events, _, err := h.folder.Events()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Kind == result.KindStepEnd && e.Text == "skipped" {
					got = append(got, fmt.Sprintf("%s %d %s", e.Phase, e.Step, e.Name))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
				t.Errorf("%d steps to be skipped (-want +got)\n%s", len(want), diff)
			}
		})
	}
}

// What a target could not remove is told even when it calls that no error and all else went well.
func TestLeftoversWithoutAnError(t *testing.T) {
	h := newHarness(t, everyKind)
	h.req.Target = untidy{h.req.Target}
	s, err := h.execute(t.Context())
	var left *run.LeftoverError
	want := result.Verdict{State: "partly", Reason: "what remains: a disk"}
	if exit.Code(err) != exit.Uncleaned || !errors.As(err, &left) || s.Cleaned != want ||
		s.Status != result.StatusSucceeded {
		t.Errorf("%v, %+v", err, s)
	}
	if diff := cmp.Diff([]string{"a disk"}, s.Remains); diff != "" {
		t.Error(diff)
	}
	if got := h.folder.Manifest().Cleaned; got != want {
		t.Errorf("the manifest says %+v", got)
	}
}

// untidy is a place where a disk remains.
type untidy struct{ target.Target }

func (u untidy) Destroy(ctx context.Context, stateDir string) ([]string, error) {
	remains, err := u.Target.Destroy(ctx, stateDir)
	return append(remains, "a disk"), err
}
