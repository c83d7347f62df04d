package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Cleanup removes what a run left behind, from any process and any number of times, and settles the verdicts of a run
// that was found dead. The target must be of the kind the run was made on. A run that is still being executed is
// refused. The error is a *LeftoverError when something remains.
//
// The record comes last: on a full disk load ends and room is made first, and what cannot be written down even then is
// an error of its own, an *UnrecordedError, of a run that is removed all the same.
func Cleanup(ctx context.Context, folder *result.Folder, t target.Target) ([]string, error) {
	if err := folder.TryLock(); err != nil {
		return nil, fmt.Errorf("cleanup: %w", err)
	}
	remains, err := t.Destroy(ctx, folder.StateDir())
	if err != nil && len(remains) == 0 {
		remains = []string{sentence(err)}
	}
	if left := restoreHugePages(folder.Dir(), kernelPages); left != "" {
		remains = append(remains, left)
	}
	verdict := result.Verdict{State: "yes", Reason: "by a clean-up after the run"}
	if len(remains) > 0 {
		verdict = result.Verdict{State: "partly", Reason: "what remains: " + shortList(remains)}
	}
	if unwritten := errors.Join(Settle(folder), folder.Update(func(m *result.Manifest) {
		if m.Cleaned.State == "yes" && verdict.State == "yes" {
			return
		}
		m.Cleaned = verdict
	})); unwritten != nil {
		err = errors.Join(err, &UnrecordedError{unwritten})
	}
	if len(remains) > 0 {
		err = errors.Join(err, &LeftoverError{remains})
	}
	if err != nil {
		return remains, fmt.Errorf("cleanup: %w", err)
	}
	return nil, nil
}

// UnrecordedError is the error of a clean-up that did its work and could not write that down.
type UnrecordedError struct{ Err error }

// Error says what is done and what is not.
func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("what was done cannot be noted in the run folder: %s; make room and run `plimsoll cleanup` again",
		sentence(e.Err))
}

// Unwrap gives the reason.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// Settle writes down what the journal says about a run that was found dead: its status, how far its measurement came,
// when it was last heard of. A run that ended by itself, or still goes on, is left as it is.
func Settle(folder *result.Folder) error {
	if folder.Manifest().Status != result.StatusInterrupted {
		return nil
	}
	events, _, err := folder.Events()
	if err != nil {
		return err
	}
	measured := result.Verdict{State: "no", Reason: "the process ended before the run phase began"}
	var last time.Time
	for _, e := range events {
		if e.Time.After(last) {
			last = e.Time
		}
		if e.Kind != result.KindPhase {
			continue
		}
		switch scenario.Phase(e.Phase) {
		case scenario.Run:
			measured = result.Verdict{State: "partly", Reason: "the process ended during the run phase"}
		case scenario.Teardown:
			if measured.State == "partly" {
				measured = result.Verdict{State: "yes", Reason: "the process ended during the teardown"}
			}
		}
	}
	return folder.Update(func(m *result.Manifest) {
		m.Status = result.StatusInterrupted
		if m.Error == "" {
			m.Error = "the process that executed the run ended without a word"
		}
		if m.Ended.IsZero() {
			m.Ended = last
		}
		if m.Measured.State == "pending" {
			m.Measured = measured
		}
		if m.Cleaned.State == "pending" {
			m.Cleaned = result.Verdict{State: "no", Reason: "the process ended before its teardown; `plimsoll " +
				"cleanup` removes what remains"}
		}
	})
}
