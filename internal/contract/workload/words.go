package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"time"
	"unicode"

	"plimsoll/internal/contract/target"
)

const (
	maxWords    = 20  // lines kept
	maxWord     = 300 // bytes of a line kept
	maxWarnings = 20
)

// Said keeps the first lines of text that a tool printed beside its reports: what it objects to stands there. The zero
// value is ready for use.
type Said struct {
	Chatter func(line string) bool   // lines that say nothing; may be nil
	Rewrite func(line string) string // what a line is to be read as; may be nil
	lines   []string
	seen    map[string]bool
}

// Add takes the lines of a text that are new.
func (s *Said) Add(text []byte) {
	for line := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(s.lines) >= maxWords {
			return
		}
		t := printable(line)
		if s.Rewrite != nil {
			t = s.Rewrite(t)
		}
		if t == "" || s.seen[t] || s.Chatter != nil && s.Chatter(t) {
			continue
		}
		if s.seen == nil {
			s.seen = make(map[string]bool)
		}
		s.seen[t] = true
		s.lines = append(s.lines, t)
	}
}

// Beyond are the lines of another text that were not said yet. It is Parser.Words.
func (s *Said) Beyond(text []byte) string {
	more := Said{Rewrite: s.Rewrite, Chatter: func(t string) bool {
		return s.seen[t] || s.Chatter != nil && s.Chatter(t)
	}}
	more.Add(text)
	return more.String()
}

// String is the lines kept.
func (s *Said) String() string { return strings.Join(s.lines, "\n") }

func printable(line []byte) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(line[:min(len(line), maxWord)]), ""))
	return strings.TrimSpace(text)
}

// Warner passes warnings about a tool's output on to a Sink, once for each text and not without end.
type Warner struct {
	Sink Sink
	Tool string
	said map[string]bool
}

// Warn passes on what was skipped or repaired.
func (w *Warner) Warn(format string, args ...any) {
	text := w.Tool + " output: " + fmt.Sprintf(format, args...)
	if w.said[text] || len(w.said) > maxWarnings {
		return
	}
	if w.said == nil {
		w.said = make(map[string]bool)
	}
	if w.said[text] = true; len(w.said) > maxWarnings {
		text = w.Tool + " output: further warnings are left out"
	}
	w.Sink.Warn(text)
}

// Ask runs a short command on a host and returns the beginning of what it printed on its standard output and, where
// merge says so, on its standard error. The file is one of the host's working folder, and is gone afterwards.
func Ask(ctx context.Context, host target.Host, argv []string, file, label string, merge bool) (
	string, target.Exit, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	command := target.Command{Argv: argv, Stdout: file, Label: label, ReadOnly: true}
	if merge {
		command.Stderr = file
	}
	p, err := host.Start(ctx, command)
	if err != nil {
		return "", target.Exit{}, err
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return "", exit, errors.Join(err, p.Kill())
	}
	text, err := target.ReadFile(ctx, host, file, 0, 4096)
	return string(text), exit, errors.Join(err, host.Remove(ctx, file))
}

var unsafeInName = regexp.MustCompile(`[^0-9A-Za-z_.-]+`)

// FolderName is a workload's name made fit for a file, with a mark where two names could become one.
func FolderName(name string) string {
	folder := strings.TrimLeft(unsafeInName.ReplaceAllString(name, "_"), ".-")
	if folder == name && len(name) <= 100 && name != "" {
		return folder
	}
	if folder == "" {
		folder = "workload" // a leading "-" would make the job file an option
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s-%08x", folder[:min(len(folder), 100)], h.Sum32())
}
