package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/exit"
	"plimsoll/result"
)

// simulatedRun makes a run of a minute on a simulated cluster and returns its folder.
func simulatedRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scenario", "test.yml"), `name: small
display_name: Small
summary: a minute
description: ""
estimated_runtime: 60
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
workloads:
  - W: {vm_group: A, config_file: w.fio}
results:
  - rate: {vm_group: A, result_type: iops}
  - load: {workload_name: W, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: A, power_on: True}
run:
  - workload.Start: {workload_name: W, runtime_secs: 60}
teardown:
  - cluster.CleanUp: {}
`)
	write(t, filepath.Join(dir, "scenario", "w.fio"),
		"[a]\nfilename=/dev/sdb\nsize=64M\nrw=randread\nbs=8k\ntime_based\n")
	a, _, errs := quiet(t)
	runs := filepath.Join(dir, "runs")
	given := filepath.Join(dir, "scenario")
	if code := a.main([]string{"run", given, "--target", "sim", "--nodes", "2", "--dir", runs}); code != exit.Done {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	made, err := filepath.Glob(filepath.Join(runs, "*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%q, %v", made, err)
	}
	return made[0]
}

// again makes the same run once more, beside the first, and returns its folder.
func again(t *testing.T, first string) string {
	t.Helper()
	a, _, errs := quiet(t)
	runs := filepath.Dir(first)
	if code := a.main([]string{"run", filepath.Join(filepath.Dir(runs), "scenario"), "--target", "sim", "--nodes", "2",
		"--dir", runs}); code != exit.Done {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	made, err := filepath.Glob(filepath.Join(runs, "2*"))
	if err != nil || len(made) != 2 {
		t.Fatalf("%q, %v", made, err)
	}
	return made[1]
}

// damages are what may have become of a file, by name. Each returns errSkip where this machine cannot do it.
var damages = map[string]func(name string, data []byte) error{
	"emptied":  func(name string, _ []byte) error { return os.Truncate(name, 0) },
	"cut":      func(name string, data []byte) error { return os.Truncate(name, int64(len(data)/2)) },
	"flipped":  func(name string, data []byte) error { return os.WriteFile(name, flipped(data), 0o600) },
	"nonsense": func(name string, _ []byte) error { return os.WriteFile(name, []byte("[[{\"version\":1,\x00"), 0o600) },
	"huge":     func(name string, _ []byte) error { return os.Truncate(name, 1<<40) },
	"gone":     func(name string, _ []byte) error { return os.Remove(name) },
	"folder":   instead(func(name string) error { return os.Mkdir(name, 0o700) }),
	"pipe":     instead(func(name string) error { return unix.Mkfifo(name, 0o600) }),
	"device": instead(func(name string) error { // endless zeros
		return unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5)))
	}),
	"link": instead(func(name string) error { return os.Symlink("/dev/zero", name) }),
	"loop": instead(func(name string) error { return os.Symlink(filepath.Base(name), name) }),
	"socket": instead(func(name string) error {
		short, err := os.MkdirTemp("", "s") // the path of a socket has at most 108 bytes
		if err != nil {
			return err
		}
		defer os.RemoveAll(short)
		l, err := net.Listen("unix", filepath.Join(short, "s"))
		if err != nil {
			return err
		}
		err = os.Rename(filepath.Join(short, "s"), name)
		return errors.Join(err, l.Close())
	}),
}

func instead(make func(name string) error) func(string, []byte) error {
	return func(name string, _ []byte) error { return errors.Join(os.Remove(name), make(name)) }
}

func flipped(data []byte) []byte {
	out := bytes.Clone(data)
	if len(out) > 0 {
		out[len(out)/2] ^= 0x10
	}
	return out
}

// TestDamagedRuns gives every command that reads run folders every sort of damage in every file of one, as it may have
// come from others. Each command must end, and not by a panic; what was collected before must not be replaced by what
// the damaged files hold.
func TestDamagedRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("some 300 run folders")
	}
	t.Parallel()
	good := simulatedRun(t)
	var files []string
	if err := fs.WalkDir(os.DirFS(good), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) < 12 {
		t.Fatalf("only %q in a run folder", files)
	}
	all := t.TempDir()
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			for damage, do := range damages {
				dir := filepath.Join(all, damage, file)
				name := filepath.Join(dir, filepath.FromSlash(file))
				was, err := linked(good, dir, name)
				if err != nil {
					t.Fatal(err)
				}
				if err := do(name, was); errors.Is(err, fs.ErrPermission) {
					t.Logf("%s: left out: only root can do that", damage)
					continue
				} else if err != nil {
					t.Fatalf("%s: %v", damage, err)
				}
				for _, line := range [][]string{
					{"runs", "show"}, {"report", "-o", "md"}, {"report", "-o", "json", "--again"},
					{"analyze", "--again", "--write"},
				} {
					what := strings.Join(line, " ") + ", " + damage
					if said := ended(t, what, append(line, dir)); strings.Contains(said, "internal error") {
						t.Fatalf("%s: %s", what, said)
					}
				}
				if file == "data.json" {
					continue
				}
				if d := cmp.Diff(kept(t, good, file), kept(t, dir, file)); d != "" {
					t.Errorf("%s: data that were good were replaced\n%s", damage, d)
				}
			}
		})
	}
}

// kept returns what was collected of a run. That lines of its journal are lost is told among the problems.
func kept(t *testing.T, dir, damaged string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "data.json"))
	if err != nil {
		t.Fatal(err)
	}
	if damaged == "journal.jsonl" {
		data = regexp.MustCompile(`,"problems":\["journal[^]]*\]`).ReplaceAll(data, nil)
	}
	return string(data)
}

// linked makes a folder of links to the files of another, but for one that is a copy, to be damaged. Commands replace
// files, they change none.
func linked(from, dir, copied string) (data []byte, err error) {
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		dst := filepath.Join(dir, rel)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(dst, 0o700)
		case dst != copied && d.Name() != "lock": // which would be one lock of all
			return os.Link(name, dst)
		}
		bytes, err := os.ReadFile(name)
		if dst == copied {
			data = bytes
		}
		return errors.Join(err, os.WriteFile(dst, bytes, 0o600))
	})
	return data, err
}

// ended runs a command and returns what it said on standard error. A command that does not come back would wait for
// ever: what it reads is ready, or never will be.
func ended(t *testing.T, what string, args []string) string {
	t.Helper()
	a, _, errs := quiet(t)
	done := make(chan int, 1)
	go func() { done <- a.main(args) }()
	select {
	case <-done:
		return errs.String()
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s: it does not end", what)
	}
	return ""
}

// What was measured may be damaged without any reader noticing: a bit of a number is as good as another. The sums
// taken at the end of the run tell; where there are none, as of older runs, what is missing does.
func TestDamageIsTold(t *testing.T) {
	t.Parallel()
	good := simulatedRun(t)
	find := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(good, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q %v", pattern, found, err)
		}
		name, err := filepath.Rel(good, found[0])
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	raw, chunks := find("raw/*/W/fio.out.zst"), find("metrics/*/chunks/000001")
	all := t.TempDir()
	for name, c := range map[string]struct {
		file, damage   string
		hashes, before bool
		says           string
	}{
		"raw output, collected before": {raw, "flipped", true, true,
			"no longer hold what was collected of them before"},
		"metrics, collected before":           {chunks, "flipped", true, true, chunks + ": changed since the run"},
		"raw output, not collected":           {raw, "flipped", true, false, raw + ": changed since the run"},
		"metrics, not collected":              {chunks, "flipped", true, false, chunks + ": changed since the run"},
		"raw output of an older run":          {raw, "emptied", false, true, "operations then, "},
		"metrics of an older run":             {chunks, "emptied", false, true, "results with data then, "},
		"raw output of an older run is gone":  {raw, "gone", false, true, "operations then, "},
		"metrics are a pipe":                  {chunks, "pipe", true, true, chunks + ": open "},
		"older run, not collected, no output": {raw, "emptied", false, false, "it holds no report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(all, name)
			damaged := filepath.Join(dir, c.file)
			was, err := linked(good, dir, damaged)
			if err == nil {
				err = damages[c.damage](damaged, was)
			}
			if err == nil && !c.before {
				err = os.Remove(filepath.Join(dir, "data.json"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.hashes {
				folder, err := result.Open(dir)
				if err == nil {
					err = folder.Update(func(m *result.Manifest) { m.Hashes = nil })
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			a, out, errs := quiet(t)
			code := a.main([]string{"report", "-o", "md", "--again", dir})
			if c.before {
				if code != exit.Failed || !strings.Contains(errs.String(), c.says) {
					t.Errorf("exit code %d, and %q is not said: %s", code, c.says, errs)
				}
				if d := cmp.Diff(kept(t, good, c.file), kept(t, dir, c.file)); d != "" {
					t.Errorf("data that were good were replaced\n%s", d)
				}
				return
			}
			folder, err := result.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			v := folder.Manifest().Collected
			text := strings.ReplaceAll(out.String(), `\`, "")
			told := strings.Contains(v.Reason, c.says) && strings.Contains(text, c.says)
			if code != exit.Done || v.State != "partly" || !told {
				t.Errorf("exit code %d, collected %+v; want partly, with %q, and so the report:\n%s%s", code, v, c.says,
					text, errs)
			}
		})
	}
}

// TestDamagedRunsAreNotKept: no command keeps a number of a run, or of a search, of which a file was changed, nor sets
// it beside others, unless the run is trusted. The file is named.
func TestDamagedRunsAreNotKept(t *testing.T) {
	t.Parallel()
	run := simulatedRun(t)
	runs := filepath.Dir(run)
	a, _, errs := quiet(t)
	if code := a.main([]string{"mark", filepath.Join(filepath.Dir(runs), "scenario"), "--target", "sim", "--limit",
		"read p99 < 1s", "--vary", "rate", "--from", "100", "--to", "2000", "--dir", runs}); code != exit.Done {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	found, err := filepath.Glob(filepath.Join(runs, "*", "runs", "*", "data.json"))
	if err != nil || len(found) < 3 {
		t.Fatalf("%q, %v", found, err)
	}
	search := filepath.Dir(filepath.Dir(filepath.Dir(found[0])))
	number := regexp.MustCompile(`"count":\d+`)
	for of, file := range map[string]string{
		run: filepath.Join(run, "data.json"), search: found[0], filepath.Dir(found[1]): found[1],
	} {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := number.FindIndex(whole)
		if at == nil {
			t.Fatalf("no number in %s", whole)
		}
		changed := bytes.Clone(whole)
		changed[at[1]-1] ^= 1 // another digit
		write(t, file, string(changed))
		for name, line := range map[string][]string{
			"baseline set":   {"baseline", "set", "kept", of},
			"catalogue add":  {"catalogue", "add", of, "--to", filepath.Join(runs, ".kept")},
			"catalogue show": {"catalogue", "show", of},
			"history add":    {"history", "add", "kept", of},
		} {
			if name == "history add" && of == search {
				continue // it takes none
			}
			kept := func() []string {
				var all []string
				for _, pattern := range []string{".baselines/*.json", ".kept/*.json", ".histories/*.json"} {
					files, err := filepath.Glob(filepath.Join(runs, pattern))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, files...)
				}
				return all
			}
			a, _, errs := quiet(t)
			code := a.main(append(line, "--dir", runs))
			if code != exit.Failed || !strings.Contains(errs.String(), "is damaged: data.json") || len(kept()) > 0 {
				t.Errorf("%s %s: exit code %d, kept %q\n%s", name, of, code, kept(), errs)
			}
			a, _, errs = quiet(t)
			code = a.main(append(line, "--dir", runs, "--trust"))
			unknown := "nothing in it can be set beside others" // this search found no mark
			if name == "catalogue add" && of == search && strings.Contains(errs.String(), unknown) {
				continue
			}
			if code != exit.Done || !strings.Contains(errs.String(), "is damaged: data.json") {
				t.Errorf("%s %s --trust: exit code %d\n%s", name, of, code, errs)
			}
			if name != "catalogue show" && len(kept()) != 1 {
				t.Errorf("%s %s --trust: kept %q", name, of, kept())
			}
			for _, file := range kept() {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(t, file, string(whole))
	}
}
