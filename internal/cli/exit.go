package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/run"
	"plimsoll/internal/visible"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitScenario    = 3   // the scenario is invalid
	exitTarget      = 4   // the target refused
	exitThreshold   = 5   // it ran, and a threshold failed
	exitUncleaned   = 6   // teardown is incomplete; what remains was printed
	exitInterrupted = 130 // Ctrl-C
)

// failure is an error that knows its exit code and what to do about it.
type failure struct {
	code int
	err  error
	hint string
	said bool // everything worth saying was printed already
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail is an error of the given code: phase: subject: cause.
func fail(code int, hint, format string, args ...any) error {
	return &failure{code: code, err: fmt.Errorf(format, args...), hint: hint}
}

// usage is a wrong command line.
func usage(hint, format string, args ...any) error { return fail(exitUsage, hint, format, args...) }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case run.Code(err) == run.CodeUncleaned:
		return exitUncleaned // machines left behind come before everything else
	case errors.As(err, &f):
		return f.code
	}
	return run.Code(err)
}

// complain prints an error as "plimsoll: phase: subject: cause" and its hint below. Joined errors get a line each.
func complain(w io.Writer, err error) {
	var f *failure
	known := errors.As(err, &f)
	if known && f.said {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(err.Error(), "\n"), "\n") {
		visible.Fprintf(w, "plimsoll: %s\n", line)
	}
	if known && f.hint != "" {
		visible.Fprintf(w, "hint: %s\n", f.hint)
	}
}
