package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/run/experiment"
	"plimsoll/scenario"
)

// crew makes runs as it is told: one outcome per run, in order, each a minute long.
type crew struct {
	outcomes []experiment.Outcome
	made     []string // cell, and the limit it was given
	closed   int
	now      time.Time
	refuse   int // Begin fails at this run, from 1
	record   experiment.Record
}

type crewRun struct {
	*crew
	planned experiment.Planned
}

func (c *crew) Begin(_ context.Context, p experiment.Planned) (experiment.Run, error) {
	if c.refuse == len(c.made)+1 {
		return nil, errors.New("no target")
	}
	return crewRun{c, p}, nil
}

func (r crewRun) ID() string { return fmt.Sprintf("run-%d", r.planned.Sequence) }
func (r crewRun) Close()     { r.closed++ }

func (r crewRun) Make(_ context.Context, limit time.Duration) experiment.Outcome {
	out := r.outcomes[len(r.made)]
	r.made = append(r.made, fmt.Sprint(r.record.Cell(r.planned.Cell).Label(), " ", limit))
	r.now = r.now.Add(time.Minute)
	return out
}

func TestConduct(t *testing.T) {
	t.Parallel()
	good := experiment.Outcome{}
	bad := experiment.Outcome{Verdict: experiment.Unusable, Failure: "no space", Err: errors.New("run: no space")}
	low := experiment.Outcome{Err: errors.New("p99 is too high")}
	leave := experiment.Outcome{Verdict: experiment.LeaveOff, Err: errors.New("stopped")}
	for name, c := range map[string]struct {
		outcomes []experiment.Outcome
		refuse   int
		limit    time.Duration
		whole    bool
		failed   []string
		err      string
		code     int
		said     []string
		events   []string
	}{
		"all measure": {
			outcomes: []experiment.Outcome{good, low, good, good}, whole: true,
			failed: []string{"depth 2 (1 repeat): p99 is too high"},
			said: []string{
				"run 1 of 4: depth 1, repeat 1 of 2", "run 2 of 4: depth 2, repeat 1 of 2; about 3 min left",
				"run 3 of 4: depth 1, repeat 2 of 2; about 2 min left", "run 4 of 4: depth 2, repeat 2 of 2; about 1 " +
					"min left",
			},
			events: []string{"1 started", "1 done", "2 started", "2 done", "3 started", "3 done", "4 started",
				"4 done"},
		},
		"one fails": {
			outcomes: []experiment.Outcome{good, bad, good, good}, whole: true,
			said: []string{
				"run 1 of 4: depth 1, repeat 1 of 2", "run 2 of 4: depth 2, repeat 1 of 2; about 3 min left",
				"run run-2 failed: no space",
				"run 3 of 4: depth 1, repeat 2 of 2; about 2 min left", "run 4 of 4: depth 2, repeat 2 of 2; about 1 " +
					"min left",
			},
			events: []string{
				"1 started", "1 done", "2 started", "2 failed no space", "3 started", "3 done", "4 started", "4 done",
			},
		},
		"three in a row fail": {
			outcomes: []experiment.Outcome{bad, bad, bad}, code: exit.Failed,
			err: "run: three runs in a row failed: run: no space",
			said: []string{
				"run 1 of 4: depth 1, repeat 1 of 2", "run run-1 failed: no space",
				"run 2 of 4: depth 2, repeat 1 of 2; about 3 min left", "run run-2 failed: no space",
				"run 3 of 4: depth 1, repeat 2 of 2; about 2 min left", "run run-3 failed: no space",
			},
			events: []string{
				"1 started", "1 failed no space", "2 started", "2 failed no space", "3 started", "3 failed no space",
			},
		},
		"a stop": {
			outcomes: []experiment.Outcome{good, leave}, code: exit.Failed, err: "stopped",
			said: []string{
				"run 1 of 4: depth 1, repeat 1 of 2", "run 2 of 4: depth 2, repeat 1 of 2; about 3 min left",
			},
			events: []string{"1 started", "1 done", "2 started", "2 done"},
		},
		"the target is gone": {
			outcomes: []experiment.Outcome{good}, refuse: 2, code: exit.Failed, err: "no target",
			said:   []string{"run 1 of 4: depth 1, repeat 1 of 2"},
			events: []string{"1 started", "1 done"},
		},
		"the time is over": {
			outcomes: []experiment.Outcome{good}, limit: time.Minute, code: exit.Failed,
			err: "run: the time limit is reached",
			said: []string{
				"run 1 of 4: depth 1, repeat 1 of 2", "run 2 of 4: depth 2, repeat 1 of 2; about 3 min left",
			},
			events: []string{"1 started", "1 done", "2 started"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := &scenario.Scenario{Name: "s", Experiment: &scenario.Experiment{
				Repeats: 2, Order: scenario.OrderInterleaved,
				Factors: []scenario.Factor{{Name: "depth", Levels: []any{int64(1), int64(2)}}},
			}}
			r := experiment.NewRecord("20261122-120000-s-0001", sc)
			r.File = "test.yml"
			folder, err := experiment.Create(t.TempDir(), r, fstest.MapFS{"test.yml": {Data: []byte("x")}})
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			var said []string
			crew := &crew{outcomes: c.outcomes, refuse: c.refuse, now: time.Unix(0, 0), record: folder.Record()}
			conduct := experiment.Conduct{
				Limit: c.limit, Now: func() time.Time { return crew.now },
				Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
			}
			whole, failed, err := conduct.Run(t.Context(), folder, crew)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if whole != c.whole || text != c.err || exit.Code(err) != c.code {
				t.Errorf("whole %t, error %q, code %d; want %t, %q, %d", whole, text, exit.Code(err), c.whole, c.err,
					c.code)
			}
			var events []string
			all, err := folder.Events()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				line := fmt.Sprintf("%d %s", e.Sequence, e.State)
				if e.Error != "" {
					line += " " + e.Error
				}
				events = append(events, line)
			}
			if diff := cmp.Diff(c.failed, failed) + cmp.Diff(c.said, said) + cmp.Diff(c.events, events); diff != "" {
				t.Error(diff)
			}
			if made := len(crew.made); crew.closed < made || crew.closed > made+1 {
				t.Errorf("%d runs made, %d closed", made, crew.closed)
			}
		})
	}
}

// A stop while a run is made ready leaves the experiment with the way to go on.
func TestConductInterrupted(t *testing.T) {
	t.Parallel()
	sc := &scenario.Scenario{Name: "s", Experiment: grid}
	r := experiment.NewRecord("20261122-120000-s-0001", sc)
	r.File = "test.yml"
	folder, err := experiment.Create(t.TempDir(), r, fstest.MapFS{"test.yml": {Data: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	conduct := experiment.Conduct{Now: time.Now, Say: func(string, ...any) { t.Error("it begins a run") }}
	_, _, err = conduct.Run(ctx, folder, &crew{refuse: 1})
	var e *exit.Error
	if !errors.As(err, &e) || e.Code != exit.Interrupted || e.Hint != "plimsoll resume 20261122-120000-s-0001 goes on" {
		t.Errorf("%+v", err)
	}
}
