package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
)

// standing returns what is at a name: a file, or a folder of them, without what a killed process was writing there; ""
// when nothing is.
func standing(t *testing.T, name string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".plimsoll-") {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s: %s\n", strings.TrimPrefix(path, name), data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all.String()
}

// TestWritersKilled kills every command that writes at random moments. What it was to write is then as it was before,
// or whole; what it reads is unharmed; the same command works afterwards.
func TestWritersKilled(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	db := postgrestest.Start(t)
	first := session{t: t, runs: filepath.Join(t.TempDir(), "runs"),
		env: []string{"PGPASSWORD=" + postgrestest.Password}}
	for _, seed := range []string{"1", "2"} {
		first.must("run", tiny(t), "--target", "sim", "--target-opt", "seed="+seed, "--size-scale", "0.01", "--quiet")
		first.must("runs", "name", "latest", "of"+seed)
	}
	first.must("baseline", "set", "weekly", "latest")
	first.must("history", "add", "nightly", "latest")
	first.must("catalogue", "add", "latest", "--system", "before")
	begun := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	partOf(begun, "run", filepath.Join(filesOf(t, "experiment"), "grid"), "--target", "sim", "--nodes", "1")
	files := t.TempDir()
	var rows strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&rows, "%d,write,%d,8192,%d,d1\n", i, i*7919%5000*8192, 100+i%50)
	}
	table := filepath.Join(files, "table.csv")
	place(t, table, "time_ms,op,offset_bytes,size_bytes,latency_us,device\n"+rows.String())
	falls := filepath.Join(files, "falls.csv")
	rows.Reset()
	for i := range 60 {
		fmt.Fprintf(&rows, "c%d,%d\n", i, 100+i%3-40*(i/30))
	}
	place(t, falls, "commit,p99\n"+rows.String())
	first.must("history", "add", "falls", falls, "--better", "p99=lower")
	vdb := filepath.Join(files, "my.vdb")
	place(t, vdb, "sd=sd1,lun=/srv/file,size=64m\nwd=wd1,sd=sd1,xfersize=8k,rdpct=70\nrd=rd1,wd=wd1,iorate=100,elapsed=2\n")
	bench, err := filepath.Abs(filepath.Join("..", "..", "internal", "formats", "importer", "testdata", "outputs",
		"pgbench-15-rate.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		// out names the file that the command writes, in the working folder; "" when it writes into the folder of runs.
		out   string
		fresh bool     // nothing may be there before
		tells []string // a command that reads what was written
		once  string   // in the list of runs once it is done, which refuses another time
		of    session  // the runs that there are; none: those of first
	}{
		"report":    {args: []string{"report", "latest", "--output", "out"}, out: "out"},
		"json":      {args: []string{"report", "latest", "-o", "json", "--output", "out"}, out: "out"},
		"csv":       {args: []string{"report", "latest", "-o", "csv", "--output", "out"}, out: "out"},
		"parquet":   {args: []string{"report", "latest", "-o", "parquet", "--output", "out"}, out: "out"},
		"metrics":   {args: []string{"metrics", "export", "latest", "--output", "out"}, out: "out"},
		"compare":   {args: []string{"compare", "of1", "of2", "-o", "html", "--output", "out"}, out: "out"},
		"convert":   {args: []string{"convert", vdb, "--to", "fio", "--output", "out"}, out: "out"},
		"trace":     {args: []string{"trace", table, "-o", "html", "--output", "out"}, out: "out"},
		"trace job": {args: []string{"trace", table, "--fio", "out"}, out: "out"},
		"db state": {args: []string{"db", "state", "--server", "postgresql://" + postgrestest.User + "@127.0.0.1:" +
			fmt.Sprint(db.Port) + "/postgres", "--save", "out"}, out: "out",
			tells: []string{"db", "state", "--diff", "out", "out"}},
		"content":    {args: []string{"content", "write", "out", "--size", "24MiB"}, out: "out", fresh: true},
		"scenario":   {args: []string{"scenarios", "new", "out"}, out: "out", fresh: true},
		"dashboards": {args: []string{"dashboards", "write", "out"}, out: "out", fresh: true},
		"import":     {args: []string{"import", bench}, once: "-import-"},
		"catalogue": {args: []string{"catalogue", "add", "latest", "--system", "after", "--replace"},
			tells: []string{"catalogue", "list", "before"}},
		"baseline": {args: []string{"baseline", "set", "weekly", "latest"},
			tells: []string{"baseline", "show", "weekly"}},
		"history": {args: []string{"history", "add", "nightly", "latest"},
			tells: []string{"history", "show", "nightly"}},
		"acknowledged": {args: []string{"history", "ack", "falls", "p99", "--note", "the new kernel"},
			tells: []string{"history", "show", "falls"}},
		"of a file": {args: []string{"history", "add", "falls", falls}, tells: []string{"history", "show", "falls"}},
		"tag":       {args: []string{"runs", "tag", "latest", "weekly"}},
		"note":      {args: []string{"runs", "note", "latest", "of the old firmware"}},
		"name":      {args: []string{"runs", "name", "latest", "before"}},
		"cleanup":   {args: []string{"cleanup", "latest"}},
		"run":       {args: []string{"run", tiny(t), "--target", "sim", "--size-scale", "0.01"}},
		"resume":    {args: []string{"resume", "latest"}, of: begun},
		"rm":        {args: []string{"runs", "rm", "latest", "--yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			out := filepath.Join(work, c.out)
			s := session{t: t, runs: filepath.Join(work, "runs"), env: first.env}
			written := func() string {
				if c.out == "" {
					return ""
				}
				return standing(t, out)
			}
			again := func() (before string) {
				from := os.DirFS(cmp.Or(c.of.runs, first.runs))
				if err := errors.Join(os.RemoveAll(work), os.CopyFS(s.runs, from)); err != nil {
					t.Fatal(err)
				}
				if c.out != "" && !c.fresh {
					place(t, out, "what stood here")
				}
				return written()
			}
			works := func(args []string, when string) {
				cmd := s.command(t.Context(), args...)
				cmd.Dir = work
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %q: %v: %s", when, args, err, said)
				}
			}
			again()
			began := time.Now()
			works(c.args, "at first")
			whole, want := time.Since(began), written()
			for range needs.Draws(3, 30) {
				before := again()
				cmd := s.command(t.Context(), c.args...)
				cmd.Dir = work
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				at := rand.N(whole)
				time.Sleep(at)
				_ = cmd.Process.Kill()
				var exit *exec.ExitError
				if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				when := fmt.Sprintf("killed after %v", at)
				got := written()
				switch {
				case c.out != "" && got == before:
				case c.tells != nil:
					works(c.tells, when)
				case name == "dashboards" && strings.HasPrefix(want, got): // whole files, one after another
				case c.out != "" && got != want:
					t.Errorf("%s: %d bytes, neither the %d before nor the %d that are whole", when, len(got), len(before),
						len(want))
				}
				list := s.must("runs", "list")
				if strings.Contains(list, "unreadable") {
					t.Errorf("%s: %s", when, list)
				}
				s.must("cleanup")
				if c.once != "" && strings.Contains(list, c.once) {
					s.must("report", "latest")
					continue
				}
				if c.fresh {
					if err := os.RemoveAll(out); err != nil {
						t.Fatal(err)
					}
				}
				works(c.args, when)
			}
		})
	}
}

// partOf runs an experiment and kills it after its second run.
func partOf(s session, args ...string) {
	s.t.Helper()
	cmd := s.command(s.t.Context(), args...)
	says := &heard{word: "run 3 of", said: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = says, says
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-says.said:
	case <-time.After(time.Minute):
		s.t.Errorf("it never came to its third run: %s", says)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	s.must("cleanup")
}

// TestExperimentsKilled kills an experiment and a sweep with real load; one clean-up ends and removes all of it.
func TestExperimentsKilled(t *testing.T) {
	needs.Fio(t)
	t.Parallel()
	folder := t.TempDir()
	t.Cleanup(func() {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left in the folder that was measured: %v %v", left, err)
		}
	})
	files := t.TempDir()
	place(t, filepath.Join(files, "j.fio"), "[g]\nioengine=psync\nrw=randwrite\nbs=8k\nsize=8m\ntime_based\n"+
		"runtime=30\n")
	for name, args := range map[string][]string{
		"sweep": {"device", "sweep", folder, "--what", "iodepth", "--levels", "1,8", "--size", "32MiB", "--duration",
			"30s", "--warm-up", "1s", "--repeats", "1"},
		"experiment": {"run", filepath.Join(files, "j.fio"), "--sweep", "iodepth=1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
			cmd := s.command(t.Context(), args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			loaded := filepath.Join(s.runs, "*", "runs", "*", "raw", "*", "*", "*")
			deadline := time.Now().Add(time.Minute)
			for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				if found, _ := filepath.Glob(loaded); len(found) > 0 {
					break
				}
			}
			_ = cmd.Process.Kill()
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it had ended: %s", &said)
			}
			if found, _ := filepath.Glob(loaded); len(found) == 0 {
				t.Fatalf("it came to no load: %s", &said)
			}
			groups := controlGroups(t, s.runs)
			s.must("runs", "list")
			s.must("cleanup")
			s.nothingLives(groups)
			if out := s.cleaned(); out != "" {
				t.Errorf("the second clean-up found something: %s", out)
			}
		})
	}
}

// TestFullDisk fills the disk of the run folders at every step of a run with real load. The run ends by itself, or is
// killed, and a clean-up ends the load and removes the files though there is no room to note it; with room it is noted.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	for _, word := range []string{"about", "setup, step", "run, step", "Started workload", "teardown, step"} {
		for _, dies := range []bool{false, true} {
			name := "ends by itself"
			if dies {
				name = "is killed"
			}
			t.Run(name+" at "+word, func(t *testing.T) {
				t.Parallel()
				disk := needs.Disk(t, "400m")
				s := session{t: t, runs: filepath.Join(disk, "runs")}
				cmd := s.command(t.Context(), "run", tiny(t), "--nodes", "1", "--size-scale", "0.01", "--set",
					"seconds=3", "--target-opt", "reserve=1MiB")
				says, ended := startUntil(t, cmd, word)
				ballast := filepath.Join(disk, "ballast")
				fill(t, ballast)
				if dies {
					_ = cmd.Process.Kill()
				}
				select {
				case <-ended:
				case <-time.After(2 * time.Minute):
					_ = cmd.Process.Kill()
					t.Errorf("it does not end on a full disk: %s", says)
				}
				if list, ended := s.must("runs", "list"), cmd.ProcessState.ExitCode(); !dies &&
					strings.Contains(list, "succeeded") != (ended == 0) {
					t.Errorf("it ended with %d, and is listed as %s\n%s", ended, list, says)
				}
				fill(t, ballast) // what the run has freed as well
				groups := controlGroups(t, s.runs)
				for range 2 {
					cleanup := s.command(t.Context(), "cleanup")
					out, err := cleanup.CombinedOutput()
					if err != nil && !strings.Contains(string(out), "cannot be noted") {
						t.Errorf("clean-up on a full disk: %v: %s", err, out)
					}
				}
				s.nothingLives(groups)
				if left, _ := filepath.Glob(filepath.Join(s.runs, "*", "work")); len(left) > 0 {
					t.Errorf("files left: %v", left)
				}
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
				s.must("cleanup")
				list := s.must("runs", "list")
				if strings.Contains(list, "cleanup:") || strings.Contains(list, "unreadable") {
					t.Errorf("verdicts are not settled: %s", list)
				}
			})
		}
	}
}

// fill writes to a file until its file system is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 1; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
}

// TestOutOfMemory has the kernel kill a generator that wants more memory than its machine has: the run is partial, and
// says so in its error and in its findings.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	needs.Fio(t)
	_, err := os.Stat("/sys/fs/cgroup/memory")
	needs.That(t, err == nil && os.Geteuid() == 0, "limits of memory",
		"run as root, with memory control groups of version 1")
	scenario := tiny(t)
	place(t, filepath.Join(scenario, "load.fio"), "[global]\nioengine=libaio\ndirect=1\ntime_based\n[load]\nfilename=/dev/sdb\n"+
		"size=1G\nrw=randwrite\nbs=16m\niodepth=64\nrefill_buffers\n")
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	out, err := s.command(t.Context(), "run", scenario, "--nodes", "1", "--set", "seconds=5").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{"failed on 1 VM of 1 (the VM of One): fio was ended by signal \"killed\"; nothing of ours sent " +
		"it: the kernel counts ", " killed for want of memory there meanwhile.", "run: partial", "cleanup: complete"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
