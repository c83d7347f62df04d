package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
)

// keeping is a folder of runs with a baseline, a history with a change, and a record, and lines of commands that change
// and that show these. Of them the first has the file in it.
type keeping struct {
	runs, table         string
	files               map[string]string // by the first word of the commands that read it
	changes, shows, all [][]string
}

func newKeeping(t *testing.T) keeping {
	t.Helper()
	run := simulatedRun(t)
	k := keeping{runs: filepath.Dir(run), table: filepath.Join(t.TempDir(), "table.csv")}
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, "c%d,%d\n", i, 100+i%3-40*(i/30))
	}
	write(t, k.table, "commit,p99\n"+rows.String())
	k.changes = [][]string{
		{"history", "add", "nightly", k.table, "--better", "p99=lower"},
		{"history", "ack", "nightly", "p99", "--note", "the new kernel"},
		{"baseline", "set", "weekly", run},
		{"catalogue", "add", run, "--system", "a rack"},
		{"history", "rename", "nightly", "p99", "p99_ms"},
	}
	k.shows = [][]string{{"history", "show", "nightly"}, {"baseline", "show", "weekly"},
		{"baseline", "check", "weekly", run, "--fail-on", "none"}, {"catalogue", "list", "rack"}}
	k.all = append(k.changes, k.shows...)
	for _, line := range k.changes[:4] {
		if code, said := k.say(t, k.runs, line...); code != exit.Done {
			t.Fatalf("%q: exit code %d\n%s", line, code, said)
		}
	}
	k.files = map[string]string{"history": ".histories/nightly.json", "baseline": ".baselines/weekly.json",
		"catalogue": ".catalogue/" + filepath.Base(run) + ".json"}
	for _, name := range k.files {
		if _, err := os.Stat(filepath.Join(k.runs, name)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// say runs a command on a folder of runs, and gives its exit code and all that it says.
func (k keeping) say(t *testing.T, runs string, line ...string) (code int, said string) {
	t.Helper()
	a, out, errs := quiet(t)
	code = a.main(append(append([]string{}, line...), "--dir", runs))
	return code, out.String() + errs.String()
}

// TestDamagedKept gives every command on baselines, histories and records every sort of damage in their files. Each
// ends, not by a panic, and none replaces what it could not read with less.
func TestDamagedKept(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	k := newKeeping(t)
	for of, file := range k.files {
		whole, err := os.ReadFile(filepath.Join(k.runs, file))
		if err != nil {
			t.Fatal(err)
		}
		for damage, do := range damages {
			for _, line := range k.all {
				if line[0] != of {
					continue
				}
				runs := filepath.Join(t.TempDir(), "runs")
				name := filepath.Join(runs, file)
				if _, err := linked(k.runs, runs, name); err != nil {
					t.Fatal(err)
				}
				if err := do(name, whole); errors.Is(err, fs.ErrPermission) {
					continue // only root can do that
				} else if err != nil {
					t.Fatal(err)
				}
				before, _ := os.Lstat(name)
				what := strings.Join(line[:2], " ") + ", " + damage
				said := ended(t, what, append(append([]string{}, line...), "--dir", runs))
				if strings.Contains(said, "internal error") {
					t.Errorf("%s: %s", what, said)
				}
				after, _ := os.Lstat(name)
				if damage == "flipped" || damage == "gone" || line[0] == "catalogue" && before.Mode().IsRegular() {
					continue // as good as another, none at all, or a record that is made anew
				}
				if after == nil || !os.SameFile(before, after) || said == "" && line[0] != "catalogue" {
					t.Errorf("%s: what was there is replaced, or nothing is said: %q", what, said)
				}
			}
		}
	}
}

// TestNoRoomToKeep has every command that changes a baseline, a history or a record do so on a full disk, and where
// nothing may be written. It says so, and all is as it was; what shows them works; with room, all do.
func TestNoRoomToKeep(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	k := newKeeping(t)
	disk := needs.Disk(t, "24m")
	runs, ballast := filepath.Join(disk, "runs"), filepath.Join(disk, "ballast")
	if err := os.CopyFS(runs, os.DirFS(k.runs)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	kept := func() (all string) {
		for _, pattern := range []string{".histories/*", ".baselines/*", ".catalogue/*", ".*/.plimsoll-*"} {
			names, err := filepath.Glob(filepath.Join(runs, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				all += name + ": " + string(text) + "\n"
			}
		}
		return all
	}
	before := kept()
	for _, want := range []string{"no space left on device", "read-only file system"} {
		if strings.HasPrefix(want, "read-only") {
			if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range k.changes {
			code, said := k.say(t, runs, line...)
			if code != exit.Failed || !strings.Contains(said, want) || kept() != before {
				t.Errorf("%q: exit code %d, %q is not said or files are changed: %s", line, code, want, said)
			}
		}
		for _, line := range k.shows {
			if code, said := k.say(t, runs, line...); code != exit.Done {
				t.Errorf("%q: exit code %d\n%s", line, code, said)
			}
		}
	}
	err = errors.Join(syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""), os.Remove(ballast))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range k.changes {
		if code, said := k.say(t, runs, line...); code != exit.Done {
			t.Errorf("%q: exit code %d\n%s", line, code, said)
		}
	}
}

// TestKeptAtOnce: of many that change a history at once, none loses what another added.
func TestKeptAtOnce(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	k := newKeeping(t)
	var all sync.WaitGroup
	for i := range 12 {
		table := filepath.Join(t.TempDir(), "more.csv")
		write(t, table, fmt.Sprintf("commit,p99\nmore%d,60\n", i))
		all.Go(func() {
			line := []string{"history", "add", "nightly", table, "--better", "p99=lower"}
			if i%3 == 0 {
				line = k.changes[1]
			}
			if code, said := k.say(t, k.runs, line...); code != exit.Done {
				t.Errorf("%q: exit code %d\n%s", line, code, said)
			}
		})
	}
	all.Wait()
	if _, said := k.say(t, k.runs, "history", "show", "nightly"); !strings.Contains(said, "in 68 results") ||
		!strings.Contains(said, "the new kernel") {
		t.Errorf("something is lost: %s", said)
	}
}
