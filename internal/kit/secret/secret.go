// Package secret holds values that must reach no argument list, log, journal or report: passwords, tokens, keys.
//
// A Secret is always read from a Source, which may be written down: the name of an environment variable, a file, a
// command. So a fresh process, as a clean-up after a crash is one, gets it again from what was recorded. A Secret
// prints, marshals and formats as the words of its source; only Reveal gives the value. It is a leaf: it imports
// nothing of ours.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// longest bounds a value, so that a wrong file is noticed.
const longest = 64 << 10

// Source says where a secret is kept. It holds nothing secret itself.
type Source struct{ kind, where string }

// Kinds of source, as they are written before the colon.
const (
	env     = "env"
	file    = "file"
	command = "command"
)

const forms = "give env:NAME, file:PATH or command:PROGRAM ARGUMENT..."

// ParseSource reads env:NAME, file:PATH or command:PROGRAM ARGUMENT... . Any other text is refused without being
// quoted: it may be the secret itself.
func ParseSource(text string) (Source, error) {
	kind, where, ok := strings.Cut(text, ":")
	if !ok || kind != env && kind != file && kind != command {
		return Source{}, fmt.Errorf("a secret is not given as itself, where lists of processes and histories "+
			"show it: %s", forms)
	}
	if where = strings.TrimSpace(where); where == "" {
		return Source{}, fmt.Errorf("%s: it names nothing: %s", kind, forms)
	}
	if abs, err := filepath.Abs(where); err == nil && kind == file { // a clean-up may run elsewhere
		where = abs
	}
	return Source{kind, where}, nil
}

// String is the source as ParseSource reads it.
func (s Source) String() string {
	if s == (Source{}) {
		return "nowhere"
	}
	return s.kind + ":" + s.where
}

// MarshalText implements encoding.TextMarshaler.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSource(string(text))
	return err
}

// Read gets the secret. One line break at its end does not belong to it. An empty value is an error, and
// so is one of blanks alone, which anybody can guess and some servers take for none.
func (s Source) Read(ctx context.Context) (Secret, error) {
	value, err := s.read(ctx)
	if err != nil {
		return Secret{}, fmt.Errorf("secret from %s: %w", s, err)
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	switch {
	case len(value) == 0:
		return Secret{}, fmt.Errorf("secret from %s: it is empty", s)
	case len(bytes.TrimSpace(value)) == 0:
		return Secret{}, fmt.Errorf("secret from %s: it holds blanks alone, which anybody can guess", s)
	case len(value) > longest:
		return Secret{}, fmt.Errorf("secret from %s: it is longer than %d bytes", s, longest)
	}
	text := string(value)
	return Secret{s, &text}, nil
}

func (s Source) read(ctx context.Context) ([]byte, error) {
	switch s.kind {
	case env:
		value, ok := os.LookupEnv(s.where)
		if !ok {
			return nil, errors.New("the variable is not set")
		}
		return []byte(value), nil
	case file:
		info, err := os.Stat(s.where)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, errors.New("it is no regular file")
		}
		if info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("others may read it (mode %v): chmod 600 %s", info.Mode().Perm(), s.where)
		}
		f, err := os.Open(s.where)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, longest+1))
	case command:
		words := strings.Fields(s.where)
		run := exec.CommandContext(ctx, words[0], words[1:]...)
		var out bytes.Buffer
		// What it leaves running may hold its output open. That may hold the secret, so it is not quoted.
		run.Stdout, run.WaitDelay = &limited{&out}, time.Second
		if err := run.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return nil, err
		}
		return out.Bytes(), nil
	}
	return nil, errors.New(forms)
}

// Reader reads the secret each time it is called; nil when there is none.
func (s Source) Reader() func(context.Context) (string, error) {
	if s == (Source{}) {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		value, err := s.Read(ctx)
		return value.Reveal(), err
	}
}

// limited takes no more than a secret may be long.
type limited struct{ to *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.to.Len()+len(p) > longest+2 {
		return 0, fmt.Errorf("it printed more than %d bytes", longest)
	}
	return l.to.Write(p)
}

// Secret is a value that shows itself to Reveal alone. The zero value is no secret.
type Secret struct {
	source Source
	// value is behind a pointer, which fmt does not follow in a field that is not exported, where it calls no method
	// either.
	value *string
}

// Reveal is the value. It goes to where it is needed and is kept nowhere.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Source is where it was read from, and where a fresh process reads it again.
func (s Secret) Source() Source { return s.source }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == nil }

func (s Secret) String() string {
	if s.IsZero() {
		return "no secret"
	}
	return "secret from " + s.source.String()
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// Format implements fmt.Formatter, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText implements encoding.TextMarshaler, and so for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
