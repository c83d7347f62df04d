package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/contract/target"
)

const (
	poll        = 250 * time.Millisecond
	readBytes   = 256 << 10
	discardStep = 1 << 20          // bytes read before the host may give their space back
	killGrace   = 30 * time.Second // for a killed process to be gone
	stderrBytes = 64 << 10         // of the tool's own words that are looked at
)

// Parser turns a tool's output, as it grows, into reports to its Sink.
type Parser interface {
	// Feed takes the next bytes.
	Feed([]byte)
	// Finish comes after the last ones. Outcome has Reports, Errors, Message and Failure; the error says that nothing
	// could be read.
	Finish() (Outcome, error)
	// Worked reports whether anything was done so far, be it in vain.
	Worked() bool
	// Words are the lines of a text that are the tool's own, and not in its output as well.
	Words(text []byte) string
}

// Words say how to speak of a tool in messages.
type Words struct {
	Name string                      // "fio"
	Hint func(message string) string // what to do about its own words; "" for nothing. May be nil
}

// Follow runs a job whose tool writes its reports to Job.Output: it puts the files on the host, starts the command,
// hands output to the raw log and then to the parser as it grows, kills the tool when ctx is done, and says how it
// went. It is Engine.Run for engines with a tool of their own.
//
// When the machine goes away under the job (Exit.Lost) that is no error: what was reported until then stands. A job
// that ends by itself with success but without having done anything has failed.
func Follow(ctx context.Context, env Env, job Job, parser Parser, words Words) (Outcome, error) {
	name := job.Command.Label
	if err := prepare(ctx, env.Host, job); err != nil {
		if ctx.Err() != nil {
			return Outcome{Stopped: true}, nil
		}
		return Outcome{}, fmt.Errorf("start: workload %s on %s: %w", name, env.Host.Name(), err)
	}
	process, began, err := env.Start(ctx, job.Command)
	if err != nil {
		if ctx.Err() != nil {
			return Outcome{Stopped: true}, nil
		}
		return Outcome{}, fmt.Errorf("start: workload %s on %s: %w", name, env.Host.Name(), err)
	}
	if env.Started != nil {
		env.Started()
	}
	if b, ok := env.Sink.(Beginner); ok && !began.At.IsZero() {
		b.Begun(began.At)
	}
	f := &follower{env: env, job: job, process: process, parser: parser, words: words}
	outcome, err := f.run(ctx)
	outcome.Began = began
	return outcome, err
}

// Replay feeds raw output to a parser from beginning to end. It is Engine.Parse for engines that Follow.
func Replay(r io.Reader, parser Parser, name string) (Outcome, error) {
	buf := make([]byte, readBytes)
	for {
		n, err := r.Read(buf)
		parser.Feed(buf[:n])
		if errors.Is(err, io.EOF) {
			return parser.Finish()
		}
		if err != nil {
			outcome, _ := parser.Finish()
			return outcome, fmt.Errorf("parse: %s output: %w", name, err)
		}
	}
}

func prepare(ctx context.Context, host target.Host, job Job) error {
	if err := host.Accessible(ctx); err != nil {
		return err
	}
	if err := host.Remove(ctx, job.Output); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(job.Files)) {
		if err := target.WriteFile(ctx, host, name, job.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// follower reads a running job's output as it grows.
type follower struct {
	env       Env
	job       Job
	process   target.Process
	parser    Parser
	words     Words
	buffer    []byte
	offset    int64
	discarded int64
	readError error
	rawError  error
}

func (f *follower) run(ctx context.Context) (Outcome, error) {
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
	// Reading goes on after ctx is done: what the tool wrote until it was killed belongs to the result.
	reading := context.WithoutCancel(ctx)
	if f.follow(ctx, reading, ended.Load) {
		group.Wait() // the stream knew of the end first
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
	outcome, parseError := f.parser.Finish()
	outcome.Exit, outcome.Stopped, outcome.Usage = exit, stopped, f.process.Usage()
	if text := f.stderr(reading); text != "" {
		outcome.Message = strings.TrimSpace(text + "\n" + outcome.Message)
	}
	return outcome, f.verdict(outcome, parseError, errors.Join(waitError, killError))
}

// follow takes output as it comes, as a stream where the host has one, until the tool has ended, ctx is done or the raw
// log cannot be written. A host that does not answer is tried again at the next turn. It reports whether the stream
// said that the tool has ended.
func (f *follower) follow(ctx, reading context.Context, ended func() bool) bool {
	following, _ := f.process.(target.Follower)
	for !ended() && f.rawError == nil {
		if following != nil {
			stream, err := following.Follow(ctx, f.job.Output, f.offset)
			if err == nil {
				err = f.copy(reading, stream)
				_ = stream.Close() // what could be read was
			}
			if errors.Is(err, io.EOF) {
				return true
			}
			f.readError = err
		}
		if f.env.Clock.Sleep(ctx, poll) != nil {
			return false
		}
		f.read(reading)
	}
	return false
}

// read takes everything the output file holds beyond what was read before.
func (f *follower) read(ctx context.Context) {
	if f.rawError != nil {
		return
	}
	r, err := f.env.Host.Get(ctx, f.job.Output, f.offset)
	f.readError = err
	if err != nil {
		return
	}
	if err := f.copy(ctx, r); !errors.Is(err, io.EOF) {
		f.readError = err
	}
	_ = r.Close() // read only
}

// copy hands on what a stream gives until its end, io.EOF, or another error.
func (f *follower) copy(ctx context.Context, from io.Reader) error {
	if f.buffer == nil {
		f.buffer = make([]byte, readBytes)
	}
	for {
		n, err := from.Read(f.buffer)
		if n > 0 {
			if _, err := f.env.Raw.Write(f.buffer[:n]); err != nil {
				f.rawError = fmt.Errorf("raw output: %w", err)
				return f.rawError
			}
			f.offset += int64(n)
			f.parser.Feed(f.buffer[:n])
			f.discard(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// discard has the host give back the space of what was read.
func (f *follower) discard(ctx context.Context) {
	if d, ok := f.env.Host.(target.Discarder); ok && f.offset-f.discarded >= discardStep {
		if d.Discard(ctx, f.job.Output, f.offset) == nil { // only saves space; nothing depends on it
			f.discarded = f.offset
		}
	}
}

// stderr returns the tool's own words outside its output file.
func (f *follower) stderr(ctx context.Context) string {
	if f.job.Command.Stderr == "" || f.job.Command.Stderr == f.job.Output {
		return ""
	}
	text, err := target.ReadFile(ctx, f.env.Host, f.job.Command.Stderr, 0, stderrBytes)
	if err != nil {
		return ""
	}
	return f.parser.Words(text)
}

// verdict decides whether a job failed, and says why in one line with the tool's own words.
func (f *follower) verdict(o Outcome, parseError, endError error) error {
	var cause error
	tool := f.words.Name
	switch {
	case f.rawError != nil:
		cause = f.rawError
	case endError != nil:
		cause = endError
	case o.Stopped || o.Exit.Lost:
		return nil
	case o.Exit.Signal != "":
		cause = fmt.Errorf("%s was ended by signal %q; nothing of ours sent it", tool, o.Exit.Signal)
		if n := o.Exit.Starved; n > 0 {
			cause = fmt.Errorf("%w: the kernel counts %d killed for want of memory there meanwhile", cause, n)
		} else if o.Exit.Signal == "killed" {
			cause = fmt.Errorf("%w (out of memory?)", cause)
		}
	case o.Exit.Code != 0:
		cause = fmt.Errorf("%s ended with code %d", tool, o.Exit.Code)
	case parseError != nil:
		cause = errors.Join(parseError, f.readError)
	case o.Failure != "":
		cause = fmt.Errorf("%s ended with success but reports an error: %s", tool, o.Failure)
	case !f.parser.Worked():
		cause = fmt.Errorf("%s ended with success but did not complete a single operation", tool)
	default:
		return nil
	}
	text := fmt.Sprintf("%s says: %s", tool, FirstLines(cmp.Or(o.Message, "nothing"), 3))
	if f.words.Hint != nil {
		if advice := f.words.Hint(o.Message); advice != "" {
			text += "; " + advice
		}
	}
	if f.job.Config != "" {
		text += "; its job file is " + f.job.Config + " there"
	}
	return fmt.Errorf("run: workload %s on %s: %w; %s", f.job.Command.Label, f.env.Host.Name(), cause, text)
}

// FirstLines joins the first n lines of a message into one, but those that a later one of them holds.
func FirstLines(message string, n int) string {
	lines := strings.Split(message, "\n")
	lines = lines[:min(n, len(lines))]
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	var kept []string
	for i, line := range lines {
		if !slices.ContainsFunc(lines[i+1:], func(later string) bool { return strings.Contains(later, line) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}
