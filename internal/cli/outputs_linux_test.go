package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
)

// standings are what may stand at the name of an output. Each is made, and told by seen afterwards; want is what is
// seen then, where NEW stands for what the command writes.
var standings = map[string]struct {
	make func(name string) error
	want string
	code int
}{
	"nothing":       {func(string) error { return nil }, "file 644 NEW", exit.Done},
	"file":          {func(name string) error { return stood(name, 0o640) }, "file 640 NEW", exit.Done},
	"link":          {linkTo(true), "link to other: file 644 NEW", exit.Done},
	"dangling link": {linkTo(false), "link to other: file 644 NEW", exit.Done},
	"hard link": {func(name string) error {
		return errors.Join(stood(name, 0o644), os.Link(name, filepath.Join(filepath.Dir(name), "other")))
	}, "file 644 old", exit.Failed},
	"null":         {mknod(unix.S_IFCHR, 1, 3), "device 666", exit.Done},
	"full":         {mknod(unix.S_IFCHR, 1, 7), "device 666", exit.Failed},
	"block device": {mknod(unix.S_IFBLK, 7, 251), "block 666", exit.Failed},
	"pipe":         {func(name string) error { return unix.Mkfifo(name, 0o644) }, "pipe 644: NEW", exit.Done},
	"folder":       {func(name string) error { return os.Mkdir(name, 0o755) }, "folder", exit.Failed},
}

func stood(name string, mode fs.FileMode) error {
	return errors.Join(os.WriteFile(name, []byte("old"), 0o600), os.Chmod(name, mode))
}

func linkTo(there bool) func(string) error {
	return func(name string) error {
		if err := os.Symlink("other", name); err != nil || !there {
			return err
		}
		return stood(filepath.Join(filepath.Dir(name), "other"), 0o644)
	}
}

func mknod(kind, major, minor uint32) func(string) error {
	return func(name string) error {
		return errors.Join(unix.Mknod(name, kind|0o600, int(unix.Mkdev(major, minor))), os.Chmod(name, 0o666))
	}
}

// seen tells what stands at a name.
func seen(t *testing.T, name, written string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		return err.Error()
	}
	perm := " " + fs.FileMode.Perm(info.Mode()).String()
	perm = map[string]string{" -rw-r--r--": " 644", " -rw-r-----": " 640", " -rw-rw-rw-": " 666"}[perm]
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			t.Fatal(err)
		}
		return "link to " + to + ": " + seen(t, filepath.Join(filepath.Dir(name), to), written)
	case mode&fs.ModeCharDevice != 0:
		return "device" + perm
	case mode&fs.ModeDevice != 0:
		return "block" + perm
	case mode&fs.ModeNamedPipe != 0:
		return "pipe" + perm + ": " + written
	case mode.IsDir():
		return "folder"
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "old" {
		text = []byte("NEW")
	}
	return "file" + perm + " " + string(text)
}

// alike are flags for outputs whose commands need a server or a device, or serve until they are stopped, with the
// function of package outfile that they write through, as another command here does.
var alike = map[string]string{
	"db state --save": "Write, as report", "nutanix simulate --ca": "Write",
	"trace --save": "Grow, which its own tests try",
}

// TestOutputs gives every command that writes a file for a user every kind of file as its output.
func TestOutputs(t *testing.T) {
	needs.Time(t)
	needs.Super(t)
	t.Parallel()
	run := simulatedRun(t)
	second := again(t, run)
	in := t.TempDir()
	trace, job := filepath.Join(in, "trace.txt"), filepath.Join(in, "job.fio")
	write(t, trace, "fio version 3 iolog\n22 /dev/sdb add\n126 /dev/sdb open\n130 /dev/sdb read 57344 8192\n"+
		"217 /dev/sdb write 0 4096\n900 /dev/sdb read 8192 8192\n")
	write(t, job, "[a]\nfilename=/dev/sdb\nsize=64M\nrw=randread\nbs=8k\nruntime=10\ntime_based\n")
	runs := filepath.Dir(run)
	for _, line := range [][]string{{"baseline", "set", "base", run}, {"history", "add", "base", run, second}} {
		a, _, errs := quiet(t)
		if code := a.main(append(line, "--dir", runs)); code != exit.Done {
			t.Fatalf("%s: exit code %d\n%s", line, code, errs)
		}
	}
	commands := map[string][]string{
		"run --junit": {"run", filepath.Join(filepath.Dir(runs), "scenario"), "--target", "sim", "--nodes", "2",
			"--dir", t.TempDir(), "--assert", "W read iops > 1", "--junit", "OUT"},
		"baseline check --output": {"baseline", "check", "base", second, "--dir", runs, "--fail-on", "none", "--output",
			"OUT"},
		"baseline check --junit": {"baseline", "check", "base", second, "--dir", runs, "--fail-on", "none", "--junit",
			"OUT"},
		"history add --output":    {"history", "add", "base", second, "--dir", runs, "--output", "OUT"},
		"history show --output":   {"history", "show", "base", "--dir", runs, "--output", "OUT"},
		"report --output":         {"report", run, "-o", "md", "--output", "OUT"},
		"report page":             {"report", run, "--output", "OUT"},
		"metrics query --output":  {"metrics", "query", run, "up", "-o", "csv", "--output", "OUT"},
		"metrics export --output": {"metrics", "export", run, "--output", "OUT"},
		"compare --output":        {"compare", run, second, "--output", "OUT"},
		"compare --junit":         {"compare", run, second, "--junit", "OUT"},
		"convert --output":        {"convert", job, "--to", "vdbench", "--output", "OUT"},
		"trace --output":          {"trace", trace, "--output", "OUT"},
		"trace --fio":             {"trace", trace, "--fio", "OUT"},
		"trace --series":          {"trace", trace, "--series", "OUT"},
		"man":                     {"man", "DIR"},                 // its page is OUT
		"dashboards":              {"dashboards", "write", "DIR"}, // its dashboard is OUT
	}
	a, _, _ := quiet(t)
	writes := regexp.MustCompile("(?i)(to|in) this `file`|`file` to write")
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimPrefix(c.CommandPath(), "plimsoll ") + " --" + f.Name
			if writes.MatchString(f.Usage) && commands[name] == nil && alike[name] == "" {
				t.Errorf("%s is not tried", name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
	outs := map[string]string{"man": "plimsoll.1", "dashboards": "run.json"}
	for command, line := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			got, want := map[string]string{}, map[string]string{}
			for kind, s := range standings {
				dir := t.TempDir()
				name := filepath.Join(dir, "out")
				if page, ok := outs[command]; ok {
					name = filepath.Join(dir, page)
				}
				if err := s.make(name); err != nil {
					t.Fatal(err)
				}
				read := make(chan string, 1)
				if kind == "pipe" {
					go func() {
						text, err := os.ReadFile(name)
						if err != nil || len(text) == 0 {
							read <- "nothing"
						} else {
							read <- "NEW"
						}
					}()
				}
				var given []string
				for _, word := range line {
					given = append(given, strings.NewReplacer("OUT", name, "DIR", dir).Replace(word))
				}
				a, _, errs := quiet(t)
				code := a.main(given)
				written := ""
				for kind == "pipe" && written == "" {
					select {
					case written = <-read:
					case <-time.After(10 * time.Millisecond): // a reader that nobody wrote to waits for a writer
						if f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
							_ = f.Close()
						}
					}
				}
				if code != s.code {
					t.Errorf("%s: exit code %d, want %d\n%s", kind, code, s.code, errs)
				}
				if s.code != exit.Done && !strings.Contains(errs.String(), name) {
					t.Errorf("%s: %s does not name %s", kind, errs, name)
				}
				got[kind], want[kind] = seen(t, name, written), s.want
				if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || left != nil {
					t.Errorf("%s: left %q, %v", kind, left, err)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
