package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/run/step"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/scenario"
)

// moments are when a step is hit.
var moments = []string{"start", "middle", "end"}

// quick is a published scenario on the simulated cluster, time a hundredth, sizes a thousandth.
func quick(t *testing.T, dir string) *harness {
	t.Helper()
	h := modelled(t, os.DirFS(dir), sim.Options{})
	h.plan(plan.Options{TimeScale: 0.01, SizeScale: 0.001, Engines: h.req.Engines})
	return h
}

// everyScenario are the published scenarios, and one of ours with a step that they lack.
func everyScenario(t *testing.T, f func(t *testing.T, name, dir string)) {
	t.Run("worn-in", func(t *testing.T) {
		t.Parallel()
		f(t, "worn-in", filepath.Join("..", "..", "scenarios", "worn-in"))
	})
	corpus(t, f)
}

// at has f called once, at a moment of the i-th step of the plan.
func (h *harness) at(i int, moment string, f func()) {
	s := h.req.Plan.Steps[i]
	inner := s.Do
	h.req.Plan.Steps[i].Do = wrapped{inner, func(ctx context.Context, e *step.Env) error {
		switch moment {
		case "start":
			f()
			return inner.Do(ctx, e)
		case "end":
			err := inner.Do(ctx, e)
			f()
			return err
		}
		over, cancel := context.WithCancel(context.WithoutCancel(ctx))
		g := e.Clock.Group()
		g.Go(func() {
			// the step may be over before
			_ = e.Clock.Sleep(over, time.Duration(s.EstimateSeconds/2*float64(time.Second)))
			f()
		})
		err := inner.Do(ctx, e)
		cancel()
		g.Wait()
		return err
	}}
}

// The process dies at the start, in the middle and at the end of every step of every published scenario. The folder it
// leaves reads, says interrupted, and gets the verdicts its journal allows from a clean-up, which leaves nothing.
func TestProcessKilledInEveryStep(t *testing.T) {
	needs.Time(t)
	everyScenario(t, func(t *testing.T, name, dir string) {
		h := quick(t, dir)
		type death struct{ dir, phase, when string }
		var deaths []death
		copies := t.TempDir()
		hit := h.req.Plan.Steps
		if !needs.All() { // every fourth kind of step, beginning elsewhere in every scenario
			all := distinct(hit)
			hit = nil
			for i := len(name) % 4; i < len(all); i += 4 {
				hit = append(hit, all[i])
			}
		}
		for _, s := range hit {
			for _, moment := range moments {
				h.at(s.Number-1, moment, func() {
					d := death{filepath.Join(copies, fmt.Sprint(len(deaths))), string(s.Phase),
						fmt.Sprintf("%s of step %d", moment, s.Number)}
					h.leave(d.dir, len(deaths)%20 == 0)
					deaths = append(deaths, d)
				})
			}
		}
		if _, err := h.execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, d := range deaths {
			h.foundDead(d.dir, d.phase, d.when)
		}
		if want := len(moments) * len(hit); len(deaths) != want {
			t.Errorf("%d deaths, want %d", len(deaths), want)
		}
	})
}

// leave copies the run folder as a process that died now would leave it: the whole of it, or only what a clean-up
// reads.
func (h *harness) leave(dir string, whole bool) {
	h.t.Helper()
	run := filepath.Join(h.req.Root, "run")
	if whole {
		if err := os.CopyFS(dir, os.DirFS(run)); err != nil {
			h.t.Error(err)
		}
		return
	}
	for _, name := range []string{"raw", "metrics", "state", "scenario"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			h.t.Error(err)
		}
	}
	for _, name := range []string{"manifest.json", "plan.json", "journal.jsonl", "lock"} {
		data, err := os.ReadFile(filepath.Join(run, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			h.t.Error(err)
		}
	}
}

// foundDead opens the folder of a process that died in a phase and cleans up after it, twice.
func (h *harness) foundDead(dir, phase, when string) {
	t := h.t
	t.Helper()
	want := map[string]string{"pre_setup": "no", "setup": "no", "run": "partly", "teardown": "yes"}[phase]
	folder, err := result.Open(dir)
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return
	}
	defer folder.Close()
	if s := folder.Manifest().Status; s != result.StatusInterrupted {
		t.Errorf("%s: status %s", when, s)
	}
	for range 2 {
		if left, err := run.Cleanup(t.Context(), folder, h.world.Target()); err != nil || left != nil {
			t.Errorf("%s: clean-up: %v %q", when, err, left)
		}
	}
	if _, problems, err := folder.Events(); err != nil || len(problems) > 0 {
		t.Errorf("%s: journal: %v %q", when, err, problems)
	}
	m := folder.Manifest()
	if m.Status != result.StatusInterrupted || m.Measured.State != want || m.Cleaned.State != "yes" {
		t.Errorf("%s: %s, measured %+v, cleaned %+v", when, m.Status, m.Measured, m.Cleaned)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// distinct are the first steps of each name in each phase.
func distinct(steps []plan.Step) (list []plan.Step) {
	seen := map[string]bool{}
	for _, s := range steps {
		if key := string(s.Phase) + s.Name; !seen[key] {
			seen[key] = true
			list = append(list, s)
		}
	}
	return list
}

// A run is stopped at the start, in the middle or at the end of every kind of step in every phase of every published
// scenario, at some of them when short. Teardown has run, nothing remains, the folder reads, the verdicts are right.
func TestStoppedInEveryStep(t *testing.T) {
	needs.Time(t)
	everyScenario(t, func(t *testing.T, name, dir string) {
		steps := quick(t, dir).req.Plan.Steps
		for i, s := range distinct(steps) {
			for k, moment := range moments {
				if !needs.All() && (i+len(name)+k)%(4*len(moments)) != 0 {
					continue
				}
				h := quick(t, dir)
				ctx, cancel := context.WithCancel(t.Context())
				h.at(s.Number-1, moment, cancel)
				sum, err := h.execute(ctx)
				cancel()
				h.stopped(sum, err, s, fmt.Sprintf("%s of step %d (%s)", moment, s.Number, s.Name))
				if t.Failed() {
					return
				}
			}
		}
	})
}

// stopped holds a run that was stopped in a step to what was promised.
func (h *harness) stopped(sum run.Summary, err error, s plan.Step, when string) {
	t := h.t
	t.Helper()
	h.clean(sum)
	status, code, measured := result.StatusStopped, exit.Interrupted, "no"
	switch s.Phase {
	case scenario.Run:
		measured = "partly"
	case scenario.Teardown: // too late to stop anything
		status, code, measured = result.StatusSucceeded, exit.Done, "yes"
	}
	if sum.Status != status || exit.Code(err) != code || sum.Measured.State != measured {
		t.Errorf("%s: status %s, code %d, measured %+v, error %v", when, sum.Status, exit.Code(err), sum.Measured, err)
	}
	if _, err := h.folder.Data(); err != nil {
		t.Errorf("%s: data: %v", when, err)
	}
}

// A run that is terminated, as before a kill, leaves much raw output uncollected, sums included; a run that is stopped
// otherwise, or left little, is collected.
func TestTerminatedRunIsCollectedLater(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cause  error
		atOnce int64
		want   string
	}{{run.ErrTerminated, 1, "pending"}, {run.ErrTerminated, 0, "yes"}, {context.Canceled, 1, "yes"}} {
		h := newHarness(t, short)
		h.req.AtOnce = test.atOnce
		ctx, cancel := context.WithCancelCause(t.Context())
		steps := h.req.Plan.Steps
		last := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Phase == scenario.Teardown }) - 1
		h.at(last, moments[len(moments)-1], func() { cancel(test.cause) })
		sum, err := h.execute(ctx)
		cancel(nil)
		_, missing := h.folder.Data()
		if !errors.Is(err, run.ErrStopped) || sum.Collected.State != test.want ||
			(missing != nil) != (test.want == "pending") {
			t.Errorf("%v, %d: %v, collected %+v, data: %v", test.cause, test.atOnce, err, sum.Collected, missing)
		}
		if len(h.folder.Manifest().Hashes) == 0 {
			t.Errorf("%v, %d: raw output has no sums", test.cause, test.atOnce)
		}
	}
}
