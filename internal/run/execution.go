package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run/loads"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/run/step"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// execution is one run under way.
type execution struct {
	req      Request
	folder   *result.Folder
	store    *series.Store
	sender   *series.Sender // nil where the metrics are sent nowhere
	recorder *record.Recorder
	scraper  *scraper // nil until provisioned, and where there is nothing to scrape
	clocks   *clocks  // the same
	cost     meter
	began    time.Time

	cluster   target.Cluster // nil until provisioned
	env       *step.Env
	engines   map[string]workload.Engine
	attempted []plan.Step // whose Do was called, in order
	ran       bool        // the run phase began
	finished  bool        // and came to its end
	failure   error       // the first one
	stopped   bool
	refused   bool
	remains   []string
	lost      []string // reasons why data is incomplete

	background       clock.Group
	cancelBackground context.CancelFunc

	mu         sync.Mutex // guards what follows
	phase      scenario.Phase
	current    plan.Step
	stepBegan  time.Time
	faulted    bool // by a step
	journalErr error
	backErrs   []error
	halt       context.CancelCauseFunc
}

var (
	errJournal = errors.New("the run folder cannot be written")
	errLimit   = clock.ErrTimeout
)

// open makes the run folder with manifest, plan and scenario, and the metrics database in it.
func open(ctx context.Context, req Request) (*execution, error) {
	x := &execution{req: req, began: req.Clock.Now(), cost: startMeter(), background: req.Clock.Group()}
	folder, err := result.Create(req.Root, req.manifest(x.began))
	if err != nil {
		return nil, err
	}
	x.folder = folder
	if !req.Labels.Empty() {
		_, err = result.ChangeLabels(folder.Dir(), func(l *result.Labels) { *l = req.Labels })
	}
	if err = errors.Join(err, x.prepare()); err != nil {
		return nil, errors.Join(err, folder.Update(func(m *result.Manifest) {
			m.Status, m.Error, m.Ended = result.StatusFailed, err.Error(), req.Clock.Now()
			m.Measured = result.Verdict{State: "no", Reason: "the run did not begin"}
			m.Collected = m.Measured
			m.Cleaned = result.Verdict{State: "yes", Reason: "nothing was made"}
		}), folder.Close())
	}
	return x, nil
}

func (x *execution) prepare() error {
	if x.req.Facts.Simulated {
		if err := x.folder.Timeless(); err != nil {
			return err
		}
	}
	if err := x.folder.WritePlan(x.req.Plan); err != nil {
		return err
	}
	if err := x.folder.CopyScenario(x.req.Files, x.req.Scenario.Rendered); err != nil {
		return err
	}
	store, err := series.Open(x.folder.MetricsDir(), series.Options{Timeless: x.req.Facts.Simulated})
	if err != nil {
		return err
	}
	x.store = store
	if x.sender, err = x.send(); err != nil {
		return errors.Join(err, store.Close())
	}
	sc := x.req.Scenario
	x.recorder = record.NewRecorder(record.RecorderOptions{
		Store: store, Now: x.req.Clock.Now, Base: x.began, Interval: x.interval(),
		Scope: record.Scope{ScenarioID: sc.ID, ScenarioName: sc.Name, ScenarioDisplayName: sc.DisplayName,
			ClusterName: x.req.Facts.ClusterName},
	})
	x.record(result.Event{Kind: result.KindRunStart, Text: sc.DisplayName,
		Data: result.EventData{Scenario: sc.DisplayName, Target: x.req.Plan.Target, Steps: len(x.req.Plan.Steps)}})
	for _, w := range x.req.Plan.Warnings {
		x.record(result.Event{Kind: result.KindNote, Text: "plan: " + w})
	}
	return x.journalErr
}

// record enters an event into the journal. A journal that cannot be written ends the run: what is not recorded did not
// happen.
func (x *execution) record(e result.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faulted = x.faulted || e.Kind == result.KindFault && e.Data.State == ""
	if e.Time.IsZero() {
		e.Time = x.req.Clock.Now()
	}
	if e.Phase == "" {
		e.Phase = string(x.phase)
	}
	if e.Step == 0 && e.Kind != result.KindWorkload && e.Kind != result.KindPhase {
		e.Step = x.current.Number
	}
	if err := x.folder.AppendEvent(e); err != nil && x.journalErr == nil {
		x.journalErr = fmt.Errorf("%w: %w", errJournal, err)
		if x.halt != nil {
			x.halt(x.journalErr)
		}
	}
	if kind := marked[e.Kind]; kind != "" && x.recorder != nil {
		x.recorder.Event(kind, e.Text)
	}
	if x.req.Observer != nil {
		x.req.Observer.Event(e)
	}
}

// marked are the kinds of events that dashboards mark their charts with, and what those are called there.
var marked = map[string]string{result.KindFault: "fault", result.KindAnnotation: "stretch"}

// fail keeps the first reason why the run failed.
func (x *execution) fail(err error) {
	if err != nil && x.failure == nil {
		x.failure = err
	}
}

// measure provisions and goes through all phases but teardown.
func (x *execution) measure(outer context.Context) {
	ctx, halt := context.WithCancelCause(outer)
	defer halt(nil)
	if x.req.Limit > 0 {
		limited, cancel := clock.WithTimeout(ctx, x.req.Clock, x.req.Limit)
		defer cancel()
		ctx = limited
	}
	x.mu.Lock()
	x.halt = halt
	x.mu.Unlock()
	if err := x.provision(ctx); err != nil {
		x.end(ctx, outer, err)
		return
	}
	background, cancelBackground := context.WithCancel(ctx)
	x.cancelBackground = cancelBackground
	defer cancelBackground()
	x.env.Background = func(name string, f func(context.Context) error) {
		x.background.Go(func() {
			if err := f(background); err != nil && background.Err() == nil {
				x.mu.Lock()
				x.backErrs = append(x.backErrs, fmt.Errorf("run: %s, in the background: %w", name, err))
				x.mu.Unlock()
			}
		})
	}
	live := x.watch(ctx)
	defer live()
	for _, phase := range []scenario.Phase{scenario.PreSetup, scenario.Setup, scenario.Run} {
		if err := x.steps(ctx, phase); err != nil {
			x.end(ctx, outer, err)
			x.skipRest()
			break
		}
		if phase == scenario.Run {
			x.finished = true
		}
	}
	cancelBackground()
	x.background.Wait()
	x.fail(errors.Join(x.backErrs...))
}

// end decides what ended the steps early: a request to stop, the time limit, a journal that cannot be written, or a
// failure.
func (x *execution) end(ctx, outer context.Context, err error) {
	cause := context.Cause(ctx)
	switch {
	case ctx.Err() == nil:
		x.fail(err)
	case errors.Is(cause, errJournal):
		x.fail(cause)
	case outer.Err() == nil && errors.Is(cause, errLimit):
		x.fail(fmt.Errorf("run: the time limit of %s is over", unit.Duration(x.req.Limit)))
	default:
		x.stopped = true
	}
}

// provision opens the cluster and makes everything the steps work with.
func (x *execution) provision(ctx context.Context) error {
	p := x.req.Plan
	cluster, err := x.req.Target.Provision(ctx, target.Request{
		RunID: x.req.RunID, StateDir: x.folder.StateDir(), DiskBytes: p.PeakDiskBytes, MemoryBytes: p.PeakMemoryBytes,
		Log: func(format string, args ...any) {
			x.record(result.Event{Kind: result.KindNote, Text: fmt.Sprintf(format, args...)})
		},
		Fault: x.fault,
		Booted: func(b result.Boot) {
			x.record(result.Event{Kind: result.KindBoot, Name: b.VM, Data: result.EventData{Boot: &b},
				Text: fmt.Sprintf("answered %s after it was started", unit.Duration(b.Answered.Sub(b.Started)))})
		},
		Migrated: func(m result.Migration) {
			x.record(result.Event{Kind: result.KindMigration, Name: m.VM, Data: result.EventData{Migration: &m},
				Text: fmt.Sprintf("moved to node %d within %.1f s and stood still for %.3f s of it", m.To, m.Seconds,
					m.StillSeconds)})
		},
		Operated: func(o result.PlatformOperation) {
			x.record(result.Event{Kind: result.KindOperation, Name: o.VM, Data: result.EventData{Operation: &o},
				Text: strings.TrimSpace(fmt.Sprintf("%s took %.3f s %s", o.Name, o.Seconds, o.Object))})
			x.recorder.Operation(o)
		},
	})
	if err != nil {
		x.refused = ctx.Err() == nil
		return fmt.Errorf("target %s: %w", p.Target, err)
	}
	x.cluster = cluster
	if x.scraper = x.newScraper(); x.scraper != nil {
		if shared := x.scraper.sharedCounters(ctx); shared != nil {
			x.update(func(m *result.Manifest) { m.SharedCounters = shared })
		}
	}
	x.engines = map[string]workload.Engine{}
	for _, w := range x.req.Scenario.Workloads {
		if e, err := loads.EngineFor(cluster, x.req.Engines, w.Generator); err == nil {
			x.engines[w.Generator] = e
		}
	}
	x.env = &step.Env{
		View: p.View(), Cluster: cluster, Clock: x.req.Clock, Power: &step.Power{}, Looked: &step.Looked{},
		Record: x.record,
		Dir:    x.folder.Dir(),
		Loads: loads.New(ctx, loads.Config{
			Clock: x.req.Clock, Cluster: cluster, Engines: x.engines, Open: x.openOutput, Record: x.record,
			Keep:      x.folder.ServerWriter,
			Printed:   x.printed,
			Patience:  x.req.Patience,
			SizeScale: p.View().SizeScale, TimeScale: p.View().TimeScale, RunID: x.req.RunID,
		}),
	}
	return nil
}

// fault enters a fault that the target brings about by itself.
func (x *execution) fault(node int, state, text, ends string) {
	e := result.Event{Kind: result.KindFault, Text: text, Data: result.EventData{State: state, Ends: ends}}
	if state == result.Restarted {
		e.Kind = result.KindAnnotation
	}
	if node >= 0 && node < len(x.req.Facts.Nodes) {
		e.Name, e.Data.Node = x.req.Facts.Nodes[node].Name, &node
	}
	x.record(e)
}

// steps executes the steps of one phase. The first error ends it.
func (x *execution) steps(ctx context.Context, phase scenario.Phase) error {
	begun := false
	for _, s := range x.req.Plan.Steps {
		if s.Phase != phase {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !begun {
			begun = true
			x.beginPhase(phase)
		}
		if err := x.step(ctx, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (x *execution) beginPhase(phase scenario.Phase) {
	x.mu.Lock()
	already := x.phase == phase
	x.phase, x.current = phase, plan.Step{}
	x.mu.Unlock()
	if already {
		return
	}
	if phase == scenario.Run {
		x.ran = true
	}
	x.record(result.Event{Kind: result.KindPhase, Name: string(phase)})
}

// step executes one step: checks it again, does it, and records how it went.
func (x *execution) step(ctx context.Context, s plan.Step) error {
	x.mu.Lock()
	x.current, x.stepBegan = s, x.req.Clock.Now()
	x.mu.Unlock()
	x.record(result.Event{Kind: result.KindStepStart, Name: s.Name, Text: s.Text})
	if w, ok := x.cluster.(target.StepWatcher); ok {
		w.StepBegins(s.Number, s.Name)
	}
	env := *x.env
	env.Phase = s.Phase
	x.attempted = append(x.attempted, s)
	err := x.do(ctx, s, &env)
	end := result.Event{Kind: result.KindStepEnd, Name: s.Name}
	switch {
	case ctx.Err() != nil:
		end.Text, end.Data.State = "stopped", "stopped"
		err = ctx.Err()
	case err != nil:
		err = fmt.Errorf("%s: step %d (%s): %w", s.Phase, s.Number, s.Name, err)
		end.Error = sentence(err)
	}
	x.record(end)
	return err
}

// do calls the step. A panic is a defect of ours: the journal keeps the stack, the user gets a sentence.
func (x *execution) do(ctx context.Context, s plan.Step, env *step.Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error, please report it: %v", p)
			x.record(result.Event{Kind: result.KindWarning, Name: s.Name, Text: "a defect in plimsoll ended this step",
				Data: result.EventData{Panic: fmt.Sprint(p), Stack: strings.Split(string(debug.Stack()), "\n")}})
		}
	}()
	if err := s.Do.Check(env.View); err != nil {
		return err
	}
	return s.Do.Do(ctx, env)
}

// skipRest records the steps that will not be executed.
func (x *execution) skipRest() {
	last := 0
	if n := len(x.attempted); n > 0 {
		last = x.attempted[n-1].Number
	}
	for _, s := range x.req.Plan.Steps {
		if s.Number > last && s.Phase != scenario.Teardown {
			x.record(result.Event{Kind: result.KindStepEnd, Phase: string(s.Phase), Step: s.Number, Name: s.Name,
				Text: "skipped", Data: result.EventData{State: "skipped"}})
		}
	}
}

// sentence is an error on one line.
func sentence(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
