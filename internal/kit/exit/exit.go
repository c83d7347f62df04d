// Package exit is how a command line ends: the exit codes, errors that know theirs and what to do about them, and the
// one function that turns an error into a code.
//
// It stands below all that a command calls. An error type of another package takes part by its method ExitCode; nothing
// here ends the process or prints.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes. They are a promise to scripts; docs/how-to/stop-and-clean-up.md says the same.
const (
	Done         = 0
	Failed       = 1
	Usage        = 2 // the command line is wrong
	Scenario     = 3 // the scenario is invalid
	Refused      = 4 // by the target, or unlike runs were compared
	Threshold    = 5 // it ran, and a threshold failed
	Uncleaned    = 6 // teardown is incomplete; what remains was printed
	Inconclusive = 7 // a gate of one run a side, which decides nothing that is not gross
	Interrupted  = 130
)

// Error is an error with its exit code.
type Error struct {
	Code int
	Err  error
	Hint string // what to do about it; "" when there is nothing to say
	Said bool   // everything worth saying was printed already
}

// Error is the error without its hint: phase: subject: cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode implements Coded.
func (e *Error) ExitCode() int { return e.Code }

// Errorf makes an error of a code.
func Errorf(code int, hint, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Usagef makes the error of a wrong command line.
func Usagef(hint, format string, args ...any) error { return Errorf(Usage, hint, format, args...) }

// Coded is an error that stands for an exit code.
type Coded interface {
	error
	ExitCode() int
}

// Code is the exit code of an error. Of several in it, machines left behind come before everything else, then the first
// that a command gave, then the highest; Failed stands for errors without one.
func Code(err error) int {
	if err == nil {
		return Done
	}
	highest := Failed
	for _, c := range codes(err) {
		highest = max(highest, c)
		if c == Uncleaned {
			return Uncleaned
		}
	}
	if given, ok := errors.AsType[*Error](err); ok {
		return given.Code
	}
	return highest
}

// codes are those of all errors that err wraps, itself among them.
func codes(err error) (list []int) {
	if c, ok := err.(Coded); ok { //nolint:errorlint // errors.As would find but the first of them
		list = append(list, c.ExitCode())
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			list = append(list, codes(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = append(list, codes(inner)...)
		}
	}
	return list
}
