package secret_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/kit/secret"
)

const value = "correct horse battery staple"

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, source string) secret.Secret {
	t.Helper()
	from, err := secret.ParseSource(source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := from.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSources(t *testing.T) {
	t.Setenv("PLIMSOLL_TEST_PASSWORD", value)
	name := write(t, value+"\n", 0o600)
	for _, source := range []string{"env:PLIMSOLL_TEST_PASSWORD", "file:" + name, "command:cat " + name} {
		s := read(t, source)
		if s.Reveal() != value || s.Source().String() != source || s.IsZero() {
			t.Errorf("%s: %q from %s", source, s.Reveal(), s.Source())
		}
		text, _ := s.Source().MarshalText()
		var again secret.Source
		if err := again.UnmarshalText(text); err != nil || again != s.Source() {
			t.Errorf("%s: read back as %s, %v", source, again, err)
		}
	}
}

// A file is found again by a process that runs elsewhere, as a clean-up may.
func TestElsewhere(t *testing.T) {
	name := write(t, value, 0o600)
	t.Chdir(filepath.Dir(name))
	from, err := secret.ParseSource("file:" + filepath.Base(name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := from.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if s := read(t, string(text)); s.Reveal() != value {
		t.Errorf("%q from %s", s.Reveal(), s)
	}
}

// A program that leaves something running, as password managers leave their agents, is not waited for longer than it
// runs itself.
func TestLeavesAgent(t *testing.T) {
	script := write(t, "#!/bin/sh\necho "+value+"\nsleep 5 &\n", 0o700)
	began := time.Now()
	s := read(t, "command:sh "+script)
	if took := time.Since(began); s.Reveal() != value || took > 4*time.Second {
		t.Errorf("%q after %v", s.Reveal(), took)
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{value, "", "env:", "pass:word", "file: "} {
		if s, err := secret.ParseSource(text); err == nil || len(text) > 6 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	t.Setenv("PLIMSOLL_TEST_EMPTY", "")
	t.Setenv("PLIMSOLL_TEST_BLANK", " \t \n")
	long := write(t, strings.Repeat("x", 64<<10+3), 0o600)
	for source, want := range map[string]string{
		"env:PLIMSOLL_TEST_NOT_SET":               "not set",
		"env:PLIMSOLL_TEST_EMPTY":                 "empty",
		"env:PLIMSOLL_TEST_BLANK":                 "blanks alone",
		"file:" + write(t, "  \r\n\n", 0o600):     "blanks alone",
		"command:echo":                            "empty",
		"command:printf \\040\\n":                 "blanks alone",
		"file:/nowhere/at/all":                    "no such file",
		"file:" + t.TempDir():                     "no regular file",
		"file:" + write(t, value, 0o644):          "chmod 600",
		"file:" + long:                            "longer",
		"command:cat " + long:                     "it printed more than 65536 bytes",
		"command:false":                           "exit status 1",
		"command:/no/such/program with arguments": "no such file",
	} {
		from, err := secret.ParseSource(source)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := from.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !s.IsZero() {
			t.Errorf("%s: %v, %v; want %q", source, s, err, want)
		}
	}
	if s, err := (secret.Source{}).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "give env:NAME") {
		t.Errorf("from nowhere: %v, %v", s, err)
	}
}

// The longest value there is, with the line break that does not belong to it, and the file closed after it.
func TestLongest(t *testing.T) {
	longest := strings.Repeat("x", 64<<10)
	name := write(t, longest+"\r\n", 0o600)
	for _, source := range []string{"file:" + name, "command:cat " + name} {
		if got := read(t, source).Reveal(); got != longest {
			t.Errorf("%s: %d bytes", source, len(got))
		}
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == name {
			t.Errorf("%s was left open", to)
		}
	}
}

// However a secret, or what holds one, is printed or encoded, its value does not show.
func TestShowsNothing(t *testing.T) {
	s := read(t, "file:"+write(t, value, 0o600))
	holder := struct {
		User     string
		Password secret.Secret
		Pointer  *secret.Secret
		Map      map[string]secret.Secret
		hidden   secret.Secret
	}{"ada", s, &s, map[string]secret.Secret{"x": s}, s}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s"} {
		shown = append(shown, fmt.Sprintf(verb, s), fmt.Sprintf(verb, holder), fmt.Sprintf(verb, &holder),
			fmt.Sprintf(verb, []any{s}))
	}
	shown = append(shown, fmt.Sprint(s), fmt.Errorf("login: %v", s).Error())
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal, xml.Marshal} {
		text, _ := encode(struct{ S secret.Secret }{s})
		more, _ := encode(holder)
		shown = append(shown, string(text), string(more))
	}
	var log, binary bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("login", "password", s, "holder", holder)
	slog.New(slog.NewTextHandler(&log, nil)).Info("login", "password", s, "holder", holder)
	_ = gob.NewEncoder(&binary).Encode(holder)
	shown = append(shown, log.String(), binary.String())
	hex := fmt.Sprintf("%x", value)
	for _, text := range shown {
		if strings.Contains(text, value) || strings.Contains(strings.ToLower(text), hex) ||
			strings.Contains(text, "battery") {
			t.Errorf("it shows: %s", text)
		}
	}
}

func Example() {
	_ = os.Setenv("DB_PASSWORD", value)
	from, _ := secret.ParseSource("env:DB_PASSWORD")
	password, err := from.Read(context.Background())
	fmt.Println(password, err)
	_, err = secret.ParseSource("hunter2")
	fmt.Println(err)
	// Output:
	// secret from env:DB_PASSWORD <nil>
	// a secret is not given as itself, where lists of processes and histories show it: give env:NAME, file:PATH or command:PROGRAM ARGUMENT...
}
