package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/kit/exit"
	"plimsoll/unit"
)

// Runner makes the runs of an experiment.
type Runner interface {
	// Begin makes a run ready, touching nothing. Its error ends the experiment.
	Begin(context.Context, Planned) (Run, error)
}

// Run is one run, ready to be made.
type Run interface {
	ID() string
	// Make executes it within a limit; 0 is none.
	Make(ctx context.Context, limit time.Duration) Outcome
	Close()
}

// Outcome is how a run went.
type Outcome struct {
	Verdict Verdict
	Failure string // why it did not come to its end, for the record; "" when it did
	NoRoom  bool   // it failed for want of room
	Err     error  // of one that is done, that a threshold failed
}

// Verdict says how the experiment goes on after a run.
type Verdict int

// The verdicts.
const (
	Measured Verdict = iota // the run is part of the result
	Unusable                // the experiment goes on without it, if it is not the third in a row
	LeaveOff                // no run may follow
)

// mostFailures is how many runs in a row may fail: what is wrong then is not the cell.
const mostFailures = 3

// Conduct is how an experiment is gone on with.
type Conduct struct {
	Limit time.Duration // of all runs together; 0: none
	Now   func() time.Time
	Say   func(format string, args ...any) // a line for the person who waits
	// Only is the sequence number of the one run that is made of those that are left; 0: all of them.
	Only int
}

// Interrupted is the error of an experiment that was stopped on request, and says how to go on.
func (f *Folder) Interrupted() error {
	return exit.Errorf(exit.Interrupted, "plimsoll resume "+f.record.ID+" goes on", "run: interrupted")
}

// Run makes the runs that are left, one after the other, and records each before and after. It reports whether all were
// gone through, and the thresholds that failed in them; the error is why it ended before.
func (c Conduct) Run(ctx context.Context, f *Folder, r Runner) (whole bool, failed []string, err error) {
	progress, err := f.Progress()
	if err != nil {
		return false, nil, exit.Errorf(exit.Failed, "", "run: %w", err)
	}
	began, inARow := c.Now(), 0
	progress.Left = slices.DeleteFunc(progress.Left, func(p Planned) bool { return c.Only > 0 && p.Sequence != c.Only })
	for i, planned := range progress.Left {
		left := c.Now().Sub(began) / time.Duration(max(i, 1)) * time.Duration(len(progress.Left)-i)
		out := c.one(ctx, f, r, planned, began, left)
		switch out.Verdict {
		case LeaveOff:
			return false, nil, out.Err
		case Unusable:
			if inARow++; inARow == mostFailures {
				return false, nil, exit.Errorf(exit.Failed, "mend what is wrong, then: plimsoll resume "+f.record.ID,
					"run: three runs in a row failed: %w", out.Err)
			}
		case Measured:
			inARow = 0
			if out.Err != nil {
				failed = append(failed, fmt.Sprintf("%s (%s): %v", f.record.Cell(planned.Cell).Title(),
					unit.Plural(planned.Repeat, "repeat"), out.Err))
			}
		}
	}
	return true, failed, nil
}

// one makes one run, of which the others take about as long as left.
func (c Conduct) one(ctx context.Context, f *Folder, r Runner, p Planned, began time.Time, left time.Duration) Outcome {
	leave := func(err error) Outcome { return Outcome{Verdict: LeaveOff, Err: err} }
	run, err := r.Begin(ctx, p)
	if ctx.Err() != nil {
		err = f.Interrupted()
	}
	if run != nil {
		defer run.Close()
	}
	if err != nil {
		return leave(err)
	}
	text := fmt.Sprintf("run %d of %d: %s, repeat %d of %d", p.Sequence, len(f.record.Sequence),
		f.record.Cell(p.Cell).Title(), p.Repeat, f.record.Repeats)
	if left >= time.Second {
		text += fmt.Sprintf("; about %s left", unit.Duration(left.Round(time.Second)))
	}
	c.Say("%s", text)
	event := Event{Time: c.Now().UTC(), Sequence: p.Sequence, State: Started, RunID: run.ID()}
	if err := f.Append(event); err != nil {
		return leave(exit.Errorf(exit.Failed, "", "run: %w", err))
	}
	var limit time.Duration
	if c.Limit > 0 {
		if limit = began.Add(c.Limit).Sub(c.Now()); limit <= 0 {
			return leave(exit.Errorf(exit.Failed, "plimsoll resume "+f.record.ID+" goes on",
				"run: the time limit is reached"))
		}
	}
	out := run.Make(ctx, limit)
	event.Time, event.State = c.Now().UTC(), Done
	if out.Failure != "" {
		event.State, event.Error, event.NoRoom = Failed, out.Failure, out.NoRoom
	}
	if err := f.Append(event); err != nil {
		return leave(errors.Join(exit.Errorf(exit.Failed, "", "run: %w", err), out.Err))
	}
	if out.Verdict == Unusable && out.Failure != "" {
		c.Say("run %s failed: %s", run.ID(), out.Failure)
	}
	return out
}
