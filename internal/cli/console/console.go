// Package console is what commands share: streams, --json and --quiet, documents that are printed or written, files
// that are given, signals that ask to stop, and the shape of commands. It knows no run and no scenario.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
)

// Console is where a command reads and writes, and how it is asked to stop.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	JSON     bool     // --json
	Quiet    bool     // --quiet
	Named    []string // the arguments that are no flags
	Clock    clock.Clock
	Signals  <-chan os.Signal // instead of the process's own; for tests
	stops    atomic.Int32     // signals that this command line was sent while it listened
	heard    sync.Mutex       // guards lastStop
	lastStop time.Time        // when the last of them came
	leave    chan error       // told when it must not wait any more
}

// PrintJSON writes v indented, as every --json does.
func (c *Console) PrintJSON(v any) error {
	e := json.NewEncoder(c.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Notes is where a person is told what goes on; nowhere with --quiet.
func (c *Console) Notes() io.Writer {
	if c.Quiet {
		return io.Discard
	}
	return c.Err
}

// Now is the time of the machine, for identities and file names.
func (c *Console) Now() time.Time { return c.Clock.Now() }

// Sayf prints a line for the person who waits.
func (c *Console) Sayf(format string, args ...any) { visible.Fprintf(c.Notes(), format+"\n", args...) }

// Logger writes lines for operators to standard error.
func (c *Console) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(c.Err, nil)) }

// Confirm asks on standard error and reads a line; anything but y or yes refuses.
func (c *Console) Confirm(question string) error {
	visible.Fprintf(c.Err, "%s [y/N] ", question)
	var answer string
	_, _ = fmt.Fscanln(c.In, &answer) // an empty line and the end of input are a no
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return nil
	}
	return exit.Usagef("answer y, or give --yes", "not confirmed")
}

// Indented writes a document that is kept as JSON.
func Indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
