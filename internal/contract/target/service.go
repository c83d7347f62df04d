package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"plimsoll/internal/kit/clock"
)

// Service is a program that is kept running beside commands and after them: a database, a cache, an exporter.
type Service struct {
	Name    string  // one of each on a machine
	Command Command // runs in the foreground for as long as the service lives; Label is not needed
}

// ServiceKeeper is implemented by hosts that keep services, claimed as Services. A service is recorded in the run's
// state folder before it is started, and Target.Destroy finds and removes it from a fresh process. It does not depend
// on a connection of ours, and ends with its machine: a power-off of the VM or its node ends it, and nothing restarts
// it.
type ServiceKeeper interface {
	// StartService starts a service and does not wait until it is ready; see Ready. One of that name that runs is an
	// error, one that has ended is started anew.
	StartService(context.Context, Service) error
	// ServiceState tells of a service by name.
	ServiceState(ctx context.Context, name string) (ServiceState, error)
	// StopService asks a service to end (SIGTERM or what the place has for it) and ends it with all its children when
	// it has not done so within grace; at once with grace 0. It returns when the service is gone. Ended already, or
	// never started, is fine.
	StopService(ctx context.Context, name string, grace time.Duration) error
}

// ServiceState is how it is with a service.
type ServiceState struct {
	Started bool // there is, or was, one of that name
	Running bool
	Exit    Exit // of one that is not running any more
}

// Readiness is how it is told that a service can be used. Its zero value is met by a service that runs.
type Readiness struct {
	// Command runs on the service's machine, again and again until it ends with code 0 and, with Match, has printed
	// what matches. What it prints goes to its Stdout.
	Command Command
	// Output is a file of the service's in which Match appears. Used without a Command.
	Output string
	Match  *regexp.Regexp
	Within time.Duration // the limit; 0: a minute
}

const (
	readyWithin = time.Minute
	readyEvery  = 200 * time.Millisecond
	readyOnce   = 10 * time.Second // a single test
	readyFile   = ".ready"         // of tests that name no file
	mostWords   = 64 << 10         // of a service's or a test's output in which a match is looked for
	mostLooked  = 16 << 20         // of an output whose end is looked for
)

// Ready waits until a service that was started on a host can be used. Its error quotes the service's own last words.
func Ready(ctx context.Context, c clock.Clock, h Host, s Service, r Readiness) error {
	keeper, ok := h.(ServiceKeeper)
	if !ok {
		return fmt.Errorf("service %q on %s: %w: the place keeps no services", s.Name, h.Name(), errors.ErrUnsupported)
	}
	limit := r.Within
	if limit <= 0 {
		limit = readyWithin
	}
	deadline := c.Now().Add(limit)
	for {
		state, err := keeper.ServiceState(ctx, s.Name)
		if err != nil {
			return err
		}
		if !state.Running {
			return fmt.Errorf("service %q on %s: it ended before it was ready%s%s", s.Name, h.Name(),
				state.Exit.words(), LastWords(ctx, h, s.Command))
		}
		ready, why, err := r.test(ctx, c, h)
		switch {
		case err != nil:
			return fmt.Errorf("service %q on %s: readiness: %w", s.Name, h.Name(), err)
		case ready:
			return nil
		case !c.Now().Before(deadline):
			return fmt.Errorf("service %q on %s: not ready within %v: %s%s", s.Name, h.Name(), limit, why,
				LastWords(ctx, h, s.Command))
		}
		if err := c.Sleep(ctx, readyEvery); err != nil {
			return err
		}
	}
}

// test tries once.
func (r Readiness) test(ctx context.Context, c clock.Clock, h Host) (ready bool, why string, err error) {
	file := r.Output
	if len(r.Command.Argv) > 0 {
		command := r.Command
		command.Stdout = cmp.Or(command.Stdout, readyFile)
		command.Stderr = command.Stdout
		file = command.Stdout
		p, err := h.Start(ctx, command)
		if err != nil {
			return false, "", err
		}
		limited, cancel := clock.WithTimeout(ctx, c, readyOnce)
		exit, err := p.Wait(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return false, "", errors.Join(ctx.Err(), p.Kill())
		case err != nil:
			return false, fmt.Sprintf("%s did not end within %v", command.Argv[0], readyOnce), p.Kill()
		case exit != (Exit{}):
			return false, command.Argv[0] + " failed" + exit.words() + LastWords(ctx, h, command), nil
		}
	}
	if r.Match == nil || file == "" {
		return true, "", nil
	}
	data, err := ReadFile(ctx, h, file, 0, mostWords)
	if err != nil {
		return false, "", err
	}
	if !r.Match.Match(data) {
		return false, fmt.Sprintf("nothing that was printed matches %q", r.Match), nil
	}
	return true, "", nil
}

// words tell of an end.
func (e Exit) words() string {
	switch {
	case e.Lost:
		return ": its machine went away"
	case e.Signal != "":
		return fmt.Sprintf(": ended by signal %q", e.Signal)
	}
	return fmt.Sprintf(" (code %d)", e.Code)
}

// LastWords are the last lines that a command has printed, its standard error first, as the end of a sentence; "" for
// none. They are a stranger's text.
func LastWords(ctx context.Context, h Host, c Command) string {
	for _, name := range []string{c.Stderr, c.Stdout} {
		if name == "" {
			continue
		}
		r, err := h.Get(ctx, name, 0)
		if err != nil {
			continue
		}
		var end tail
		_, err = io.Copy(&end, io.LimitReader(r, mostLooked))
		if err := errors.Join(err, r.Close()); err != nil {
			continue
		}
		lines := strings.FieldsFunc(string(end), func(r rune) bool { return r == '\n' || r == '\r' })
		if len(lines) > 0 {
			return "; it says: " + strings.Join(lines[max(0, len(lines)-3):], "; ")
		}
	}
	return ""
}

// tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	*t = append(*t, p[max(0, len(p)-most):]...)
	*t = (*t)[max(0, len(*t)-most):]
	return len(p), nil
}
