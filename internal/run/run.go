// Package run executes a plan: it opens a run folder, provisions the target, goes through the steps phase by phase,
// keeps a journal of everything, records metrics while it goes on, and always tears down.
//
// It stands between plan and the run folder, knows no tool and no provider, and judges no numbers. What it promises:
//
//   - manifest and plan are on disk before anything is touched;
//   - after a failure or a stop the run's workloads are stopped, nodes it switched off are switched back on, the
//     author's teardown steps run, and the target removes what remains, in a context of its own that the stop does not
//     end;
//   - data measured until then is collected all the same: measured, collected and cleaned are three separate verdicts;
//   - a stop ends as "stopped" and an earlier failure as "failed", whatever step they hit;
//   - a panic of a step is that step's failure;
//   - time passes only through the run's clock, so simulated clusters run in virtual time.
//
// What a dead process has left is removed by Cleanup from another one.
package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/scratch"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Request is everything a run needs.
type Request struct {
	Root     string // folder that holds run folders
	RunID    string // see result.NewRunID
	Program  string // program and version, for the record
	Operator string
	Source   string // the scenario as the user named it
	Labels   result.Labels
	Files    fs.FS // the scenario's directory, copied into the run folder
	Scenario *scenario.Scenario
	Plan     *plan.Plan
	Target   target.Target
	Facts    target.Facts
	Options  map[string]string // the target's options for the record, secrets left out
	Engines  map[string]workload.Engine
	Clock    clock.Clock

	Keep  bool          // leave the machines as they are: no teardown steps, no removal
	Limit time.Duration // longest time for everything before teardown; 0 none
	// Patience is how long a load generator may stand still, or go on beyond its own time, before it is ended; 0 means
	// loads.DefaultPatience.
	Patience time.Duration
	// AtOnce is how many bytes of raw output and metrics a run still collects that ends by ErrTerminated; 0 means
	// collectedAtOnce.
	AtOnce int64
	// Interval between points of metrics; 0 means one second, or five in simulated runs of more than an hour.
	Interval time.Duration
	Observer Observer
	// Remote is where the metrics are sent while the run goes on; may be nil, and is where time is simulated.
	Remote *series.Remote
	// Finish is called in order with the data collected, with the folder still open for writing: analysis, report.
	Finish []func(context.Context, *result.Folder, *result.Data) error
}

// Observer is told what goes on. Its methods are called one at a time and must return soon.
type Observer interface {
	// Event is called with everything that enters the journal.
	Event(result.Event)
	// Progress is called once per interval while steps run.
	Progress(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Phase   scenario.Phase
	Step    plan.Step // being executed
	Steps   int       // of the plan
	Elapsed time.Duration
	// Left adds up the estimates of the current and the remaining steps. Unknown: nothing can say how long
	// some of them take.
	Left    time.Duration
	Unknown bool
	// Late is for how long the current step has gone on beyond its estimate.
	Late time.Duration
	// Rows tells what the workloads do now. It costs a look at every VM: call it, during Progress, only for what is
	// shown.
	Rows func() []record.LiveRow
}

// Summary is how a run went.
type Summary struct {
	RunID     string
	Dir       string
	Status    string
	Error     string
	Measured  result.Verdict
	Collected result.Verdict
	Cleaned   result.Verdict
	Remains   []string        // what could not be removed
	Elapsed   time.Duration   // of the run's own time
	Overhead  result.Overhead // what it cost on this machine
}

// ErrStopped is in the error of a run that was stopped on request.
var ErrStopped error = stoppedError{}

type stoppedError struct{}

func (stoppedError) Error() string { return "stopped on request" }

// ExitCode implements exit.Coded.
func (stoppedError) ExitCode() int { return exit.Interrupted }

// ErrTerminated is the cause of a context whose run is ended by somebody who kills soon, as SIGTERM says. What was
// measured is kept, and where to collect it would take long that is left for later.
var ErrTerminated = errors.New("interrupted")

// collectedAtOnce is raw output and metrics of which collecting and reporting take a second or two, in bytes.
const collectedAtOnce = 256 << 20

// RefusedError is the error of a run that the target refused before anything was made.
type RefusedError struct{ Err error }

// Error says why.
func (e *RefusedError) Error() string { return e.Err.Error() }

// ExitCode implements exit.Coded.
func (e *RefusedError) ExitCode() int { return exit.Refused }

// Unwrap gives the target's own error.
func (e *RefusedError) Unwrap() error { return e.Err }

// LeftoverError tells what a teardown could not remove.
type LeftoverError struct{ Remains []string }

// Error lists what remains.
func (e *LeftoverError) Error() string {
	return fmt.Sprintf("teardown: incomplete; `plimsoll cleanup` tries again; what remains: %s", shortList(e.Remains))
}

// ExitCode implements exit.Coded: machines left behind come before everything else.
func (e *LeftoverError) ExitCode() int { return exit.Uncleaned }

// Execute runs the plan. Cancelling ctx stops the run: workloads end, teardown runs, data is kept. The summary is valid
// whenever a run folder was made; the error joins why the run failed or was stopped with what remains.
func Execute(ctx context.Context, req Request) (Summary, error) {
	if err := req.check(); err != nil {
		return Summary{}, fmt.Errorf("run: %w", err)
	}
	if err := Roomy(req.Root); err != nil {
		return Summary{}, fmt.Errorf("run: %w", err)
	}
	x, err := open(ctx, req)
	if err != nil {
		return Summary{}, fmt.Errorf("run: %w", err)
	}
	defer x.folder.Close() // everything written is synced; close is called again below
	x.measure(ctx)
	x.teardown(ctx)
	x.scraper.sum()
	x.settle()
	// At thousands of VMs collecting needs the room they take.
	x.recorder, x.store, x.env, x.scraper = nil, nil, nil, nil
	x.collect(ctx)
	return x.summary()
}

// Roomy refuses a run whose metrics would have no room when it ends. How much more it writes is not known before.
func Roomy(root string) error {
	temporary, err := scratch.Make("try") // through one they are read
	if err == nil {
		err = temporary.Remove()
	}
	if err != nil {
		return &RefusedError{err}
	}
	free, err := regular.Free(root)
	if err != nil || free >= series.Room { // where it cannot be looked up, writing says what is wrong
		return nil
	}
	return &RefusedError{fmt.Errorf("%s has %s free, %s less than the %s that a run folder needs, and more the longer a "+
		"run is: free some, or give another folder with --dir", root, unit.Bytes(free), unit.Bytes(series.Room-free),
		unit.Bytes(series.Room))}
}

func (r *Request) check() error {
	var errs []error
	for name, missing := range map[string]bool{
		"a scenario": r.Scenario == nil, "a plan": r.Plan == nil, "a target": r.Target == nil,
		"a clock":              r.Clock == nil,
		"the scenario's files": r.Files == nil, "a folder for runs": r.Root == "", "a run id": r.RunID == "",
	} {
		if missing {
			errs = append(errs, fmt.Errorf("the request lacks %s", name))
		}
	}
	if r.Remote != nil && r.Facts.Simulated {
		errs = append(errs, exit.Usagef("plimsoll metrics export has the series of a run that is over",
			"remote write is for runs in the world's time, not for simulated ones"))
	}
	if r.Plan != nil && len(r.Plan.Objections) > 0 {
		errs = append(errs, errors.New("the plan has objections; it cannot be executed"))
	}
	return errors.Join(errs...)
}

// manifest is the record of what is about to happen.
func (r *Request) manifest(created time.Time) result.Manifest {
	sc := r.Scenario
	m := result.Manifest{
		RunID: r.RunID, Program: r.Program, Operator: r.Operator, Created: created, Status: result.StatusExecuting,
		Scenario: result.ScenarioInfo{
			ID: sc.ID, Name: sc.Name, DisplayName: sc.DisplayName, Summary: sc.Summary, Description: sc.Description,
			Source: r.Source, EstimatedSeconds: sc.EstimatedRuntime.Seconds(),
		},
		Target: r.Plan.Target, ClusterName: r.Facts.ClusterName, Simulated: r.Facts.Simulated,
		TimeScale: r.Plan.TimeScale, SizeScale: r.Plan.SizeScale,
		Options: r.Options, Notes: r.Facts.Notes, Environment: r.Facts.Environment, OneMachine: r.Facts.OneMachine,
		DiskCounters: result.CountersDerived, // until exporters are known to have served them
	}
	for _, v := range sc.Vars {
		m.Scenario.Vars = append(m.Scenario.Vars, result.Var{Name: v.Name, Value: fmt.Sprint(v.Value), From: v.From})
	}
	m.Scenario.Asserts = asserts(sc)
	for _, n := range r.Facts.Nodes {
		m.Nodes = append(m.Nodes, result.Node{Index: n.Index, Name: n.Name, Cores: n.Cores, MemoryBytes: n.MemoryBytes})
	}
	return m
}

// asserts are the author's conditions for the record, each with what it is about alone.
func asserts(sc *scenario.Scenario) []result.Assert {
	var out []result.Assert
	for _, a := range sc.Asserts {
		r := result.Assert{Name: a.Name, Description: a.Description, AtLeast: a.AtLeast, AtMost: a.AtMost}
		switch {
		case a.Query != "":
			r.Query = collect.Filled(a.Query, sc.ID)
		case a.Result != "":
			r.Result, r.Statistic = a.Result, a.Statistic
		case a.Workload != "":
			r.Workload, r.Operation, r.Measure = a.Workload, a.Operation, a.Measure
		default:
			r.Finding, r.Severity = a.Finding, result.Severity(a.Severity)
		}
		out = append(out, r)
	}
	return out
}

func shortList(items []string) string {
	const most = 5
	text := ""
	for i, item := range items {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(items)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += item
	}
	return text
}
