package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
	"plimsoll/scenario"
)

// teardown runs on every path, in a context that a stop of the run does not end.
//
// In order: stop our workloads; after a failure or a stop, undo what steps left (nodes that are off); the author's
// teardown steps; undo what even those left; let go of the cluster; have the target remove what remains.
func (x *execution) teardown(outer context.Context) {
	ctx := context.WithoutCancel(outer)
	x.beginPhase(scenario.Teardown)
	if x.env != nil {
		live := x.watch(ctx)
		x.stopWorkloads(ctx)
		if x.failure != nil || x.stopped {
			x.undo(ctx)
		}
		if !x.req.Keep {
			x.teardownSteps(ctx)
		}
		x.undo(ctx)
		live()
		x.letGo(ctx)
	}
	x.closeMetrics()
	x.remove(ctx)
	x.sent(outer)
	x.mu.Lock()
	x.current = plan.Step{}
	x.mu.Unlock()
	x.record(result.Event{Kind: result.KindRunEnd, Text: x.status(), Error: x.reason(),
		Data: result.EventData{State: x.status()}})
}

// stopWorkloads ends what still runs and says so. Failures that no step has noticed make the data incomplete.
func (x *execution) stopWorkloads(ctx context.Context) {
	stopped, remains := x.env.Loads.StopAll(ctx)
	if len(stopped) > 0 {
		x.record(result.Event{Kind: result.KindNote, Text: "still running at the end of the run phase, stopped: " +
			some(stopped)})
	}
	for _, text := range remains {
		x.record(result.Event{Kind: result.KindWarning, Text: text})
	}
	for _, text := range x.env.Loads.Unnoticed() {
		x.record(result.Event{Kind: result.KindWarning, Text: "failed while no step waited for it: " + text})
		x.lost = append(x.lost, text)
	}
}

// undo repairs what the attempted steps left, newest first.
func (x *execution) undo(ctx context.Context) {
	for _, s := range slices.Backward(x.attempted) {
		env := *x.env
		env.Phase = scenario.Teardown
		if err := x.guarded(func() error { return s.Do.Undo(ctx, &env) }); err != nil {
			x.record(result.Event{Kind: result.KindWarning, Name: s.Name, Text: "could not undo", Error: sentence(err)})
			x.fail(fmt.Errorf("teardown: undo of step %d (%s): %w", s.Number, s.Name, err))
		}
	}
}

// guarded keeps a panic from ending the teardown.
func (x *execution) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error, please report it: %v", p)
		}
	}()
	return f()
}

// teardownSteps executes the author's teardown. One that fails does not keep the next from running.
func (x *execution) teardownSteps(ctx context.Context) {
	for _, s := range x.req.Plan.Steps {
		if s.Phase != scenario.Teardown {
			continue
		}
		if err := x.step(ctx, s); err != nil {
			x.fail(err)
		}
	}
}

// letGo ends all jobs and closes the cluster.
func (x *execution) letGo(ctx context.Context) {
	limited, cancel := clock.WithTimeout(ctx, x.req.Clock, time.Minute)
	defer cancel()
	if err := x.env.Loads.Close(limited); err != nil {
		x.record(result.Event{Kind: result.KindWarning, Text: "ending the workloads", Error: sentence(err)})
	}
	if err := x.cluster.Close(); err != nil {
		x.record(result.Event{Kind: result.KindWarning, Text: "closing the cluster", Error: sentence(err)})
	}
}

// remove has the target take away what remains.
func (x *execution) remove(ctx context.Context) {
	verdict := result.Verdict{State: "yes"}
	switch {
	case x.req.Keep && x.cluster != nil:
		verdict = result.Verdict{State: "no", Reason: "kept on request; `plimsoll cleanup` removes it"}
	default:
		var err error
		x.remains, err = x.destroy(ctx)
		if err != nil {
			x.record(result.Event{Kind: result.KindWarning, Text: "removing what remains", Error: sentence(err)})
			if len(x.remains) == 0 {
				x.remains = []string{sentence(err)}
			}
		}
		if len(x.remains) > 0 {
			verdict = result.Verdict{State: "partly", Reason: "what remains: " + some(x.remains)}
		}
	}
	x.update(func(m *result.Manifest) { m.Cleaned = verdict })
}

func (x *execution) destroy(ctx context.Context) (remains []string, err error) {
	err = x.guarded(func() error {
		var inner error
		remains, inner = x.req.Target.Destroy(ctx, x.folder.StateDir())
		return inner
	})
	return remains, err
}

// update writes to the manifest; a folder that cannot be written has been noticed by the journal already.
func (x *execution) update(change func(*result.Manifest)) {
	if err := x.folder.Update(change); err != nil {
		x.fail(fmt.Errorf("%w: %w", errJournal, err))
	}
}

func (x *execution) status() string {
	switch {
	case x.failure != nil:
		return result.StatusFailed
	case x.stopped:
		return result.StatusStopped
	}
	return result.StatusSucceeded
}

func (x *execution) reason() string {
	if x.failure != nil {
		return sentence(x.failure)
	}
	return ""
}

// settle writes the verdict about the measurement and the status before anything is made of the data.
func (x *execution) settle() {
	measured := result.Verdict{State: "yes"}
	switch {
	case !x.ran:
		measured = result.Verdict{State: "no", Reason: "the run phase never began"}
	case !x.finished && x.stopped:
		measured = result.Verdict{State: "partly", Reason: "the run was stopped during the run phase"}
	case !x.finished:
		measured = result.Verdict{State: "partly", Reason: "the run phase did not come to its end"}
	case len(x.lost) > 0:
		measured = result.Verdict{State: "partly", Reason: some(x.lost)}
	}
	if away := x.away(); measured.State == "yes" && len(away) > 0 {
		measured = result.Verdict{State: "partly", Reason: some(away)}
	}
	cost := x.cost.read()
	x.update(func(m *result.Manifest) {
		m.Status, m.Error, m.Ended, m.Measured = x.status(), x.reason(), x.req.Clock.Now(), measured
		if !x.req.Facts.Simulated { // what a simulated run costs is no fact of the run
			m.Overhead = &cost
		}
		m.DiskCounters = x.recorder.DiskCounters()
		for _, w := range x.recorder.Warnings() {
			m.Notes = append(m.Notes, "generator output: "+w)
		}
	})
}

// away tells of machines that are there already and went away under their load, though nothing in the run was to make
// them. What they did until then counts; what they would have done is missing.
func (x *execution) away() []string {
	x.mu.Lock()
	faulted := x.faulted
	x.mu.Unlock()
	if len(x.req.Facts.Machines) == 0 || faulted || x.env == nil {
		return nil
	}
	return x.env.Loads.Lost()
}

// summary closes the folder and tells how the run went.
func (x *execution) summary() (Summary, error) {
	if x.failure != nil && x.folder.Manifest().Error != x.reason() { // it came after the verdict, as of a full disk
		x.update(func(m *result.Manifest) { m.Status, m.Error = x.status(), x.reason() })
	}
	m := x.folder.Manifest()
	s := Summary{
		RunID: m.RunID, Dir: x.folder.Dir(), Status: m.Status, Error: m.Error, Measured: m.Measured,
		Collected: m.Collected,
		Cleaned:   m.Cleaned, Remains: x.remains, Elapsed: x.req.Clock.Now().Sub(x.began), Overhead: x.cost.read(),
	}
	var errs []error
	switch {
	case x.failure != nil && x.refused:
		errs = append(errs, &RefusedError{x.failure})
	case x.failure != nil:
		errs = append(errs, x.failure)
	case x.stopped:
		errs = append(errs, ErrStopped)
	}
	if len(x.remains) > 0 {
		errs = append(errs, &LeftoverError{x.remains})
	}
	if err := x.folder.Close(); err != nil {
		errs = append(errs, fmt.Errorf("run folder: %w", err))
		x.fail(err)
		x.update(func(m *result.Manifest) { m.Status, m.Error = x.status(), x.reason() })
		s.Status, s.Error = x.status(), x.reason()
	}
	return s, errors.Join(errs...)
}
