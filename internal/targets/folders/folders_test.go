//go:build linux

package folders

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/targettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFolders(t *testing.T) {
	needs.Time(t)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		dir, names := t.TempDir(), []string{"db1", "db2", "web1"}
		options := target.Options{"password": "file:" + filepath.Join(dir, "key")}
		write(t, filepath.Join(dir, "key"), "open sesame\n")
		for _, name := range names {
			machine := filepath.Join(dir, name)
			write(t, filepath.Join(machine, "password"), "open sesame\n")
			write(t, filepath.Join(machine, "data.img"), strings.Repeat("x", 1<<20))
			write(t, filepath.Join(machine, "log.img"), strings.Repeat("x", 1<<16))
			options["machines"] += machine + ":"
		}
		return targettest.Place{
			New:           func() target.Target { return open(t, options) },
			Request:       target.Request{RunID: "one", StateDir: filepath.Join(dir, "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         alive,
			Machines:      names,
			Remains: func() []string {
				left, _ := filepath.Glob(filepath.Join(dir, "*", "plimsoll-*"))
				return left
			},
		}
	})
}

// alive counts the processes with a word in their command line.
func alive(word string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if data, err := os.ReadFile(line); err == nil && bytes.Contains(data, []byte(word)) {
			n++
		}
	}
	return n
}

func open(t testing.TB, options target.Options) target.Target {
	t.Helper()
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fails(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v: want %q", err, w)
		}
	}
}

// Objections come all at once, and hold the password of neither side.
func TestObjections(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FOLDERS_KEY", "not sesame")
	write(t, filepath.Join(dir, "a", "db", "password"), "sesame")
	write(t, filepath.Join(dir, "file"), "")
	both := strings.Join(
		[]string{filepath.Join(dir, "a", "db"), filepath.Join(dir, "none", "db"), filepath.Join(dir, "file")}, ":")
	_, err := open(t, target.Options{"machines": both, "password": "env:FOLDERS_KEY"}).Check(t.Context())
	fails(t, err, "the password from env:FOLDERS_KEY is wrong", `two machines are called "db"`, "no such file",
		"it is no folder")
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("a password is told: %v", err)
	}
	_, err = open(t, target.Options{"machines": filepath.Join(dir, "a", "db")}).Check(t.Context())
	fails(t, err, "asks for a password: give --target-opt password=")
	_, err = open(t, nil).Check(t.Context())
	fails(t, err, "no machines")
	_, err = Provider{}.New(
		target.Config{Nodes: 2, Options: target.Options{"machines": dir, "password": "sesame", "wait": "1h",
			"machine": "x"}},
	)
	fails(t, err, "every machine is a node", "a secret is not given as itself", `"1h" is no time from 100ms to 10m`,
		`did you mean "machines"?`)
}

// A fresh process that is given no options removes a run by what was written down, in which there is no password; and
// says what it cannot remove while the password is not where it was.
func TestDestroyWithoutOptions(t *testing.T) {
	dir := t.TempDir()
	key, machine, state := filepath.Join(dir, "key"), filepath.Join(dir, "db"), filepath.Join(dir, "state")
	write(t, key, "open sesame")
	write(t, filepath.Join(machine, "password"), "open sesame")
	c, err := open(t, target.Options{"machines": machine, "password": "file:" + key}).Provision(t.Context(),
		target.Request{RunID: "one", StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Host("db")
	if err != nil {
		t.Fatal(err)
	}
	word := "300.41" + strconv.Itoa(os.Getpid())
	p, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", "setsid sleep " + word + " & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(state, stateFile))
	if err != nil || bytes.Contains(written, []byte("sesame")) || !bytes.Contains(written, []byte("file:"+key)) {
		t.Errorf("written down is %s, %v", written, err)
	}
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(machine, "plimsoll-one")
	remains, err := open(t, nil).Destroy(t.Context(), state)
	if len(remains) != 1 || remains[0] != work {
		t.Errorf("remains %q, want %s", remains, work)
	}
	fails(t, err, "db", key)
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	remains, err = open(t, nil).Destroy(t.Context(), state)
	if len(remains) != 0 || err != nil || alive(word) != 0 {
		t.Errorf("remains %q, %v; %d processes live", remains, err, alive(word))
	}
	if _, err := os.Lstat(work); !os.IsNotExist(err) {
		t.Errorf("%s: %v", work, err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// What was there before the run is neither used nor removed.
func TestTakesNoFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "db", "plimsoll-one", "theirs")
	write(t, theirs, "x")
	p, state := open(t, target.Options{"machines": filepath.Join(dir, "db")}), filepath.Join(dir, "state")
	_, err := p.Provision(t.Context(), target.Request{RunID: "one", StateDir: state})
	fails(t, err, filepath.Dir(theirs), "is there already")
	if remains, err := p.Destroy(t.Context(), state); err != nil || remains != nil {
		t.Errorf("%q, %v", remains, err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}
