package fio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/target"
	"plimsoll/internal/workload"
)

const (
	poll        = 250 * time.Millisecond
	readBytes   = 256 << 10
	discardStep = 1 << 20          // bytes read before the host may give their space back
	killGrace   = 30 * time.Second // for a killed process to be gone
)

// Run implements workload.Engine. When the machine goes away under the job (Exit.Lost) that is no error: what was
// reported until then stands. A job that ends by itself with success but without a single operation has failed.
func (e Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	name := job.Command.Label
	if err := prepare(ctx, env.Host, job); err != nil {
		if ctx.Err() != nil {
			return workload.Outcome{Stopped: true}, nil
		}
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", name, env.Host.Name(), err)
	}
	process, err := env.Host.Start(ctx, job.Command)
	if err != nil {
		if ctx.Err() != nil {
			return workload.Outcome{Stopped: true}, nil
		}
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", name, env.Host.Name(), err)
	}
	f := &follower{env: env, job: job, process: process, parser: newParser(env.Sink)}
	f.parser.words.sections = laneNames(job.Lanes)
	return f.run(ctx)
}

func prepare(ctx context.Context, host target.Host, job workload.Job) error {
	if err := host.Accessible(ctx); err != nil {
		return err
	}
	if err := host.Remove(ctx, job.Output); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(job.Files)) {
		if err := host.WriteFile(ctx, name, job.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// follower reads a running job's output as it grows.
type follower struct {
	env       workload.Env
	job       workload.Job
	process   target.Process
	parser    *parser
	offset    int64
	discarded int64
	readError error
	rawError  error
}

func (f *follower) run(ctx context.Context) (workload.Outcome, error) {
	var ended atomic.Bool
	var exit target.Exit
	var waitError error
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	group := f.env.Clock.Group()
	group.Go(func() {
		exit, waitError = f.process.Wait(waiting)
		ended.Store(true)
	})
	// Reading goes on after ctx is done: what fio wrote until it was killed belongs to the result.
	reading := context.WithoutCancel(ctx)
	for !ended.Load() && f.env.Clock.Sleep(ctx, poll) == nil && f.rawError == nil {
		f.read(reading)
	}
	var killError error
	stopped := ctx.Err() != nil && !ended.Load()
	if ended.Load() && waitError != nil {
		killError = f.process.Kill() // how it is with the job is unknown; it must not go on unseen
	}
	if !ended.Load() {
		killError = f.process.Kill()
		for waited := time.Duration(0); !ended.Load() && waited < killGrace; waited += poll / 10 {
			_ = f.env.Clock.Sleep(reading, poll/10) // cannot be cancelled, so cannot fail
		}
		giveUp()
	}
	group.Wait()
	f.read(reading)
	outcome, parseError := f.parser.finish()
	outcome.Exit, outcome.Stopped, outcome.Usage = exit, stopped, f.process.Usage()
	if text := f.stderr(reading); text != "" {
		outcome.Message = strings.TrimSpace(text + "\n" + outcome.Message)
	}
	return outcome, f.verdict(outcome, parseError, errors.Join(waitError, killError))
}

// read takes everything the output file holds beyond what was read before. A machine that does not answer is tried
// again at the next turn.
func (f *follower) read(ctx context.Context) {
	for f.rawError == nil {
		data, err := f.env.Host.ReadAt(ctx, f.job.Output, f.offset, readBytes)
		f.readError = err
		if err != nil || len(data) == 0 {
			break
		}
		if _, err := f.env.Raw.Write(data); err != nil {
			f.rawError = fmt.Errorf("raw output: %w", err)
			return
		}
		f.offset += int64(len(data))
		f.parser.feed(data)
	}
	if d, ok := f.env.Host.(target.Discarder); ok && f.offset-f.discarded >= discardStep {
		if d.Discard(ctx, f.job.Output, f.offset) == nil { // only saves space; nothing depends on it
			f.discarded = f.offset
		}
	}
}

// stderr returns fio's own words outside its output file, without what that file holds as well.
func (f *follower) stderr(ctx context.Context) string {
	if f.job.Command.Stderr == "" {
		return ""
	}
	text, err := f.env.Host.ReadAt(ctx, f.job.Command.Stderr, 0, 64<<10)
	if err != nil {
		return ""
	}
	w := words{sections: f.parser.words.sections}
	w.add(text)
	kept := w.lines[:0]
	for _, line := range w.lines {
		if !f.parser.words.seen[line] {
			kept = append(kept, line)
		}
	}
	w.lines = kept
	return w.String()
}

// verdict decides whether a job failed, and says why in one line with fio's own words.
func (f *follower) verdict(o workload.Outcome, parseError, endError error) error {
	var cause error
	switch {
	case f.rawError != nil:
		cause = f.rawError
	case endError != nil:
		cause = endError
	case o.Stopped || o.Exit.Lost:
		return nil
	case o.Exit.Signal != "":
		cause = fmt.Errorf("fio was ended by signal %q; nothing of ours sent it", o.Exit.Signal)
		if o.Exit.Signal == "killed" {
			cause = fmt.Errorf("%w (out of memory?)", cause)
		}
	case o.Exit.Code != 0:
		cause = fmt.Errorf("fio ended with code %d", o.Exit.Code)
	case parseError != nil:
		cause = errors.Join(parseError, f.readError)
	case !f.parser.order.worked():
		cause = errors.New("fio ended with success but did not complete a single operation")
	default:
		return nil
	}
	what := firstLines(cmp.Or(o.Message, "nothing"), 3)
	text := fmt.Sprintf("fio says: %s", what)
	if advice := hint(o.Message); advice != "" {
		text += "; " + advice
	}
	return fmt.Errorf("run: workload %s on %s: %w; %s; its job file is %s there",
		f.job.Command.Label, f.env.Host.Name(), cause, text, path.Join(path.Dir(f.job.Output), "job.fio"))
}

// worked reports whether anything was done, be it in vain.
func (o *order) worked() bool {
	r := &o.last.report
	return r.Read.Ops+r.Write.Ops+r.Trim.Ops+r.Errors > 0
}
