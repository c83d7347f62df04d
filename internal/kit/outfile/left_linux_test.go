package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dying are the ways to write, each in the middle of its work.
var dying = map[string]func(dir string, die func(io.Writer) error) error{
	"new": func(dir string, die func(io.Writer) error) error { return Write(filepath.Join(dir, "out"), die) },
	"over another": func(dir string, die func(io.Writer) error) error {
		return errors.Join(Write(filepath.Join(dir, "out"), text("whole")), Write(filepath.Join(dir, "out"), die))
	},
	"replace": func(dir string, die func(io.Writer) error) error { return Replace(filepath.Join(dir, "out"), die) },
	"folder": func(dir string, die func(io.Writer) error) error {
		return Folder(filepath.Join(dir, "out"), func(part string) error {
			f, err := os.Create(filepath.Join(part, "file"))
			if err != nil {
				return err
			}
			return die(f)
		})
	},
}

// TestMain is, in a process of its own, one that is killed while it writes.
func TestMain(m *testing.M) {
	how, ok := os.LookupEnv("OUTFILE_TEST_DIES")
	if !ok {
		os.Exit(m.Run())
	}
	err := dying[how](os.Getenv("OUTFILE_TEST_DIR"), func(w io.Writer) error {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			_, err = w.Write(make([]byte, 100_000))
		}
		return errors.Join(err, p.Kill())
	})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// killed makes what a killed process leaves, and returns its name.
func killed(t *testing.T, dir, how string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "OUTFILE_TEST_DIES="+how, "OUTFILE_TEST_DIR="+dir)
	said, err := c.CombinedOutput()
	left := slices.DeleteFunc(names(t, dir), func(n string) bool { return !strings.HasPrefix(n, ".plimsoll-") })
	if c.ProcessState.ExitCode() != -1 || len(left) != 1 {
		t.Fatalf("%v, %q: left %q", err, said, left)
	}
	return left[0]
}

func TestLeftByTheKilled(t *testing.T) {
	t.Parallel()
	for how := range dying {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			left := killed(t, dir, how)
			removed, err := Clean(dir)
			if want := []string{filepath.Join(dir, left)}; err != nil || !cmp.Equal(want, removed) {
				t.Errorf("removed %q, %v; want %q", removed, err, want)
			}
			// The next file that is written there does the same.
			killed(t, dir, how)
			if err := Write(filepath.Join(dir, "out.md"), text("text")); err != nil {
				t.Fatal(err)
			}
			want := []string{"out.md"}
			if how == "over another" {
				want = []string{"out", "out.md"}
				holds("whole")(t, filepath.Join(dir, "out"))
			}
			if got := names(t, dir); !cmp.Equal(want, got) {
				t.Errorf("there is %q, want %q", got, want)
			}
		})
	}
}

// Only what is known to be left is removed.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := strings.Split(killed(t, dir, "new"), "-") // "", machine, boot, space, pid, began, number
	mine, err := Create(filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(field int, value string) string {
		parts := slices.Clone(dead)
		parts[field] = value
		return strings.Join(parts, "-")
	}
	alive := fmt.Sprint(os.Getpid())
	began, _ := began(os.Getpid())
	gone := []string{strings.Join(dead, "-"), with(2, "00000000"), with(4, alive)}
	stay := []string{
		filepath.Base(mine.f.Name()), with(1, "00000000"), with(3, "1"), with(4, "0"), with(4, "12345678901"),
		with(6, "1"),
		strings.Replace(with(4, alive), "-"+dead[5]+"-", "-"+began+"-", 1),
		".plimsoll-0123456789abcdef", ".plimsoll-notes", "plimsoll.md",
	}
	for _, name := range append(stay[1:], gone[1:]...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "other"), 0o700), os.Symlink("other", filepath.Join(dir, with(6,
		"00000000000000ff"))), os.WriteFile(filepath.Join(dir, "other", "precious"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Clean(dir); err != nil {
		t.Fatal(err)
	}
	got := names(t, dir)
	slices.Sort(got)
	want := append(slices.Clone(stay), "other")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	holds("")(t, filepath.Join(dir, "other", "precious"))
	if err := mine.Commit(); err != nil {
		t.Error(err)
	}
	if removed, err := Clean(filepath.Join(dir, "missing")); removed != nil || err != nil {
		t.Errorf("a folder that is not there: %q, %v", removed, err)
	}
}
