package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
	"plimsoll/scenario"
)

func TestExitCodes(t *testing.T) {
	left := &run.LeftoverError{Remains: []string{"a disk"}}
	cases := map[string]struct {
		err  error
		want int
	}{
		"none":                      {nil, 0},
		"any":                       {errors.New("x"), 1},
		"usage":                     {exit.Usagef("", "x"), 2},
		"scenario":                  {fmt.Errorf("wrapped: %w", exit.Errorf(exit.Scenario, "", "x")), 3},
		"refused by the plan":       {&plan.Refused{Target: "local"}, 4},
		"refused by the target":     {&run.RefusedError{Err: errors.New("full")}, 4},
		"threshold":                 {errors.Join(nil, exit.Errorf(exit.Threshold, "", "x")), 5},
		"left over":                 {left, 6},
		"left over after a failure": {errors.Join(exit.Errorf(exit.Threshold, "", "x"), left), 6},
		"stopped":                   {run.ErrStopped, 130},
	}
	for name, c := range cases {
		if got := exit.Code(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}

func TestComplaints(t *testing.T) {
	for want, err := range map[string]error{
		"plimsoll: a: b\n":                    errors.New("a: b"),
		"plimsoll: a\nplimsoll: b\n":          errors.Join(errors.New("a"), errors.New("b")),
		"plimsoll: check: x\nhint: do this\n": exit.Errorf(exit.Scenario, "do this", "check: x"),
		"":                                    &exit.Error{Err: errors.New("shown"), Said: true},
	} {
		var out bytes.Buffer
		complain(&out, err)
		if out.String() != want {
			t.Errorf("%v prints %q, want %q", err, out.String(), want)
		}
	}
}

func TestVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vars.yml")
	if err := os.WriteFile(file, []byte("iops: 100\nname: from file\nlist: [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := variables(&console.Console{}, []string{file}, []string{
		"iops=4000", "ratio=0.5", "on=true", `text="4"`, "empty=", "path=a: b", "eq=a=b", "none=null", "selector=1:",
		"l=[serva.fio]", "word=yes please",
	})
	want := untyped.Object{
		"iops": 4000, "name": "from file", "list": []any{1, 2}, "ratio": 0.5, "on": true, "text": "4", "empty": "",
		"path": "a: b", "eq": "a=b",
		"none": nil, "selector": "1:", "l": []any{"serva.fio"}, "word": "yes please",
	}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	for _, bad := range []string{"iops", "=4", "x=[1"} {
		_, err := variables(&console.Console{}, nil, []string{bad})
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--set") {
			t.Errorf("--set %q: %v, want a usage error", bad, err)
		}
	}
	if _, err := variables(&console.Console{}, []string{file + ".not"}, nil); exit.Code(err) != exit.Usage {
		t.Errorf("a missing --set-file: %v", err)
	}
}

func TestFactor(t *testing.T) {
	for text, want := range map[string]bool{"0.02": true, "1000": true, "1e-6": true, "0": false, "-1": false,
		"1001": false, "NaN": false, "Inf": false, "half": false, "": false} {
		var f machines.Factor
		if err := f.Set(text); (err == nil) != want {
			t.Errorf("scale %q: %v", text, err)
		}
	}
}

// quiet is an app on buffers, with a folder of runs of its own.
func quiet(t *testing.T) (*app, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	var out, err bytes.Buffer
	a := newApp(&console.Console{In: strings.NewReader(""), Out: &out, Err: &err, Clock: stopped{}}, drivers.All())
	a.RunsDir = filepath.Join(t.TempDir(), "runs")
	return a, &out, &err
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestSourcesOfAScenario(t *testing.T) {
	a, _, _ := quiet(t)
	dir := t.TempDir()
	write(t, dir+"/sc/test.yml", "name: x\n")
	write(t, dir+"/outside.txt", "secret")
	write(t, dir+"/sc/notes.txt", "")
	if err := os.Symlink("../outside.txt", dir+"/sc/link"); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	f, err := z.Create("inner/test.yml")
	if err == nil {
		_, err = f.Write([]byte("name: x\n"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/sc.zip", packed.String())

	for given, file := range map[string]string{dir + "/sc": "test.yml", dir + "/sc/test.yml": "test.yml",
		dir + "/sc.zip": "inner/test.yml", "restore": "restore.fio"} {
		src, err := a.planner.open(given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if _, err := fs.ReadFile(src.fsys, file); err != nil {
			t.Errorf("%s: %v", given, err)
		}
		src.close()
	}
	src, err := a.planner.open(dir + "/sc")
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	if b, err := fs.ReadFile(src.fsys, "link"); err == nil {
		t.Errorf("a symbolic link led out of the scenario, to %q", b)
	}
	write(t, dir+"/sweep.sh", "#!/bin/bash\nhosts=(a b)\necho sd=sd1,lun=/dev/sdb > x.vdb\nvdbench -f x.vdb\n")
	for given, say := range map[string]string{
		dir + "/sweep.sh": "nor does it hold a job", // and no parameters of vdbench with faults
		dir + "/none":     "no such file", dir + "/sc/notes.txt": "neither a directory", "restroe": "no such file",
		dir + "/outside.txt/x": "not a directory",
	} {
		if _, err := a.planner.open(given); exit.Code(err) != exit.Scenario || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an invalid scenario saying %q", given, err, say)
		}
	}
	write(t, dir+"/broken.zip", "no zip")
	if _, err := a.planner.open(dir + "/broken.zip"); exit.Code(err) != exit.Scenario {
		t.Errorf("a broken zip: %v", err)
	}
	var f2 *exit.Error
	if _, err := a.planner.open("restroe"); !errors.As(err, &f2) || !strings.Contains(f2.Hint, `"restore"`) {
		t.Errorf("the nearest name is not offered: %v", err)
	}
}

func TestRunsInsideTheScenarioAreNotPartOfIt(t *testing.T) {
	a, _, _ := quiet(t)
	dir := t.TempDir()
	a.RunsDir = filepath.Join(dir, "plimsoll-runs")
	write(t, dir+"/test.yml", "name: x\n")
	write(t, dir+"/plimsoll-runs/1/scenario/test.yml", "name: x\n")
	write(t, dir+"/old/1/manifest.json", "{}") // of runs that were put elsewhere then
	write(t, dir+"/old/1/journal.jsonl", "")
	write(t, dir+"/2/manifest.json", "{}")
	write(t, dir+"/2/lock", "")
	write(t, dir+"/2/scenario/test.yml", "name: x\n")
	write(t, dir+"/e/experiment.json", "{}")
	write(t, dir+"/e/lock.experiment", "")
	write(t, dir+"/own/manifest.json", "{}") // a file of the author's
	src, err := a.planner.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	var seen []string
	if err := fs.WalkDir(src.fsys, ".", func(name string, _ fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{".", "old", "own", "own/manifest.json", "test.yml"}; !cmp.Equal(want, seen) {
		t.Error(cmp.Diff(want, seen))
	}
	for _, name := range []string{"plimsoll-runs/1/scenario/test.yml", "2/scenario/test.yml", "e"} {
		if _, err := fs.Stat(src.fsys, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is hidden, and yet: %v", name, err)
		}
	}
}

// stopped is a clock that stands still.
type stopped struct{ scenarioClock }

// A run that was killed between its last removal and its last verdict gets that verdict from a clean-up, once.
func TestCleanupSettlesAfterTheLastRemoval(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // what others left in that of the machine is cleaned up, too
	a, out, errs := quiet(t)
	folder, err := result.Create(a.RunsDir, result.Manifest{RunID: "20260101-000000-x-0001", Created: time.Now(),
		Status: result.StatusExecuting, Target: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"run", "teardown"} {
		if err := folder.AppendEvent(result.Event{Kind: result.KindPhase, Phase: phase, Name: phase}); err != nil {
			t.Fatal(err)
		}
	}
	err = folder.Update(func(m *result.Manifest) { m.Cleaned = result.Verdict{State: "yes"} })
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"20260101-000000-x-0001: cleaned\n", "nothing to clean up in " + a.RunsDir + "\n"} {
		out.Reset()
		if code := a.main([]string{"cleanup", "--dir", a.RunsDir}); code != exit.Done || out.String() != want {
			t.Errorf("exit code %d, %q, %s: want %q", code, out, errs, want)
		}
	}
	again, err := result.Open(folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if m := again.Manifest(); m.Measured.State != "yes" || m.Cleaned != (result.Verdict{State: "yes"}) {
		t.Errorf("measured %+v, cleaned %+v", m.Measured, m.Cleaned)
	}
}

// What killed processes were writing is found beside the runs and within them, beside baselines, and where the user is.
func TestCleanupFindsWhatWasBeingWritten(t *testing.T) { // not parallel: the working folder is of the whole process
	a, out, errs := quiet(t)
	folder, err := result.Create(a.RunsDir, result.Manifest{RunID: "20260101-000000-x-0001", Created: time.Now(),
		Status: result.StatusExecuting, Target: "local"})
	if err != nil {
		t.Fatal(err)
	}
	err = folder.Update(func(m *result.Manifest) {
		m.Cleaned, m.Measured = result.Verdict{State: "yes"}, result.Verdict{State: "yes"}
	})
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	t.Chdir(here)
	t.Setenv("TMPDIR", t.TempDir())
	deep := filepath.Join(folder.Dir(), "raw", "a")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, name := range []string{result.BaselineDir, result.CatalogueDir, result.HistoryDir} {
		kept = append(kept, filepath.Join(a.RunsDir, name))
		if err := os.Mkdir(filepath.Join(a.RunsDir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	node := filepath.Join("lab", "node1")
	t.Setenv("PLIMSOLL_LAB", "lab")
	if err := errors.Join(os.MkdirAll(node, 0o700), os.WriteFile("lab/lab.json", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Concat([]string{folder.Dir(), deep, a.RunsDir}, kept, []string{".", "lab", node}) {
		mine, err := outfile.Temporary(dir, 0o600) // which stays
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Close()
		name := strings.Replace(mine.Name(), fmt.Sprintf("-%d-", os.Getpid()),
			fmt.Sprintf("-%d-", ended.Process.Pid), 1)
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, name+": temporary files of a process that is gone: cleaned")
	}
	if code := a.main([]string{"cleanup", "--dir", a.RunsDir}); code != exit.Done {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Error(diff)
	}
}

// The first signal ends the context, the second the command, whatever that is doing and whichever part of it listens.
func TestStopper(t *testing.T) {
	a, _, _ := quiet(t)
	signals := make(chan os.Signal)
	a.Signals = signals
	forever := make(chan struct{})
	defer close(forever)
	told := make(chan bool)
	go func() {
		signals <- os.Interrupt
		<-told
		signals <- os.Interrupt
	}()
	err := a.UntilLeft(func() error {
		s := a.Stoppable()
		s.Tell(func() { close(told) })
		<-s.Ctx.Done()
		<-told
		s.Release()
		later, stop := a.Interruptible()
		defer stop()
		if context.Cause(later) != console.ErrInterrupted { //nolint:errorlint // the cause itself
			t.Errorf("a later part of the command was not told: %v", context.Cause(later))
		}
		<-forever
		return nil
	})
	if exit.Code(err) != exit.Interrupted {
		t.Errorf("left with %v", err)
	}
}

// Signals that come when a command that was told to stop has done so do not end it by themselves: its exit code tells
// what became of it.
func TestSignalsAfterTheStop(t *testing.T) {
	const program = "PLIMSOLL_TEST_STOPPED"
	if os.Getenv(program) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignalsAfterTheStop$")
		again.Env = append(os.Environ(), program+"=1")
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "three signals later") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	s := new(console.Console).Stoppable()
	send := func(sig syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGINT)
	<-s.Ctx.Done()
	s.Release()
	send(syscall.SIGINT)
	send(syscall.SIGTERM)
	send(syscall.SIGQUIT)
	fmt.Println("three signals later")
}

// SIGQUIT stops like the others, and writes stacks into the run folder once that is there.
func TestStacks(t *testing.T) {
	made, here := t.TempDir(), t.TempDir()
	t.Chdir(here)
	for dir, want := range map[string]string{made: made, filepath.Join(made, "not yet"): here} {
		a, _, errs := quiet(t)
		signals := make(chan os.Signal)
		a.Signals = signals
		s := a.Stoppable()
		s.About(dir)
		told := make(chan bool)
		s.Tell(func() { close(told) })
		signals <- syscall.SIGQUIT
		<-s.Ctx.Done()
		<-told
		s.Release()
		files, err := filepath.Glob(filepath.Join(want, "stacks-*.txt"))
		if err != nil || len(files) != 1 || !strings.Contains(errs.String(), files[0]) {
			t.Fatalf("%s: files %q, %v; said %q", dir, files, err, errs)
		}
		data, err := os.ReadFile(files[0])
		if err != nil || !strings.Contains(string(data), "TestStacks") {
			t.Errorf("%v: %.200s", err, data)
		}
	}
}

func TestThresholdsNameThePanels(t *testing.T) {
	if err := judge.Thresholds(document(0)); err != nil {
		t.Errorf("nothing failed, and yet: %v", err)
	}
	err := judge.Thresholds(document(2))
	if exit.Code(err) != exit.Threshold || !strings.Contains(err.Error(), "Lost writes") {
		t.Errorf("%v, want exit code 5 and the panel's title", err)
	}
}

func TestRefusedScenarioSaysEverything(t *testing.T) {
	a, out, errs := quiet(t)
	dir := t.TempDir()
	write(t, dir+"/test.yml", "name: 5\nvms: {}\n")
	if code := a.main([]string{"check", dir}); code != exit.Scenario {
		t.Errorf("exit code %d", code)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, dir) {
			t.Errorf("a line does not begin with the file as the user names it: %q", line)
		}
	}
	if n := strings.Count(out.String(), ": error: "); n < 3 {
		t.Errorf("only %d objections:\n%s%s", n, out, errs)
	}
	if scenario.Error.String() != "error" {
		t.Error("the word for an error has changed")
	}
}

func TestFindingsOfASummary(t *testing.T) {
	var out bytes.Buffer
	all := []result.Finding{
		{Check: "cache", Severity: result.Info, Sentence: "small"},
		{Check: "cpu", Severity: result.Invalid, Sentence: "A was out of CPU."},
		{Check: "errors", Severity: result.Passed, Sentence: "none"},
		{Check: "cpu", Severity: result.Invalid, Sentence: "B was out of CPU."},
		{Check: "cpu", Severity: result.Warning, Sentence: "C nearly."},
	}
	if err := runs.PrintFindings(&out, all); err != nil {
		t.Fatal(err)
	}
	want := "invalid: A was out of CPU. (and 1 more like it)\nwarning: C nearly.\ninfo: small\nchecks passed: 1\n\n"
	if out.String() != want {
		t.Error(cmp.Diff(want, out.String()))
	}
}

// full is a disk with no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// What cannot be printed is no success, of help neither.
func TestHelpThatIsLost(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help", "run"}, {"run", "--help"}, {"catalogue"}, {"version"}} {
		var errs bytes.Buffer
		if code := Main(args, strings.NewReader(""), full{}, &errs); code != exit.Failed {
			t.Errorf("%q: exit code %d, and says %q", args, code, errs.String())
		}
	}
}

// An import that was interrupted keeps nothing: the next one of the same files is not told that they are there.
func TestImportInterrupted(t *testing.T) {
	output := filepath.Join(t.TempDir(), "fio_lat.1.log")
	write(t, output, "1000, 2000000, 0, 4096, 0\n2000, 3000000, 0, 4096, 0\n")
	a, _, errs := quiet(t)
	signals := make(chan os.Signal)
	a.Signals = signals
	told, stop := a.Interruptible()
	signals <- syscall.SIGHUP
	<-told.Done()
	stop()
	if code := a.main([]string{"import", output, "--dir", a.RunsDir}); code != exit.Interrupted {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if left, _ := os.ReadDir(a.RunsDir); len(left) > 0 || strings.Contains(errs.String(), "canceled") {
		t.Errorf("%v are left, and it says %q", left, errs)
	}
	again, _, errs := quiet(t)
	if code := again.main([]string{"import", output, "--dir", a.RunsDir}); code != exit.Done {
		t.Errorf("the next import: exit code %d: %s", code, errs)
	}
}

// Without fio nothing is begun that needs it: it is said once, and nothing is left behind. Not parallel, as the
// environment is of the whole process.
func TestWithoutFio(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	job := filepath.Join(t.TempDir(), "job.fio")
	write(t, job, "[j]\nrw=randread\nsize=16m\nruntime=1\ntime_based\n")
	for _, args := range [][]string{
		{"run", job},
		{"run", job, "--sweep", "iodepth=1,2,4"},
		{"mark", job, "--limit", "read p99 < 5ms"},
		{"device", "sweep", t.TempDir(), "--size", "64MiB"},
	} {
		a, _, errs := quiet(t)
		code := a.main(append(args, "--dir", a.RunsDir))
		if _, err := os.Stat(a.RunsDir); code != exit.Refused || strings.Count(errs.String(), "fio: not found") != 1 ||
			!strings.Contains(errs.String(), "vioperf") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: exit code %d, folder of runs: %v\n%s", args, code, err, errs)
		}
	}
}
