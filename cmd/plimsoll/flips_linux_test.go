package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/postgrestest"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/internal/testkit/sshtest"
)

// TestFlipsOfKinds turns single bits of all files of run folders of each kind round. What a command then prints is as
// it was, or it ends with 1 and names the file.
func TestFlipsOfKinds(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	outputs, err := filepath.Abs(filepath.Join("..", "..", "internal", "formats", "importer", "testdata", "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	job := filepath.Join(t.TempDir(), "my.fio")
	place(t, job, "[g]\nioengine=psync\nrw=randrw\nbs=8k\nsize=8m\ntime_based\nruntime=5\n")
	for name, make := range map[string]func(*testing.T, session){
		"fio on local": func(t *testing.T, s session) {
			needs.Fio(t)
			s.must("run", tiny(t), "--nodes", "1", "--size-scale", "0.01", "--set", "seconds=3")
		},
		"database": func(t *testing.T, s session) {
			db := postgrestest.Start(t)
			s.env = []string{"PGPASSWORD=" + postgrestest.Password}
			s.must("db", "run", "pgbench", "--server", fmt.Sprintf("postgresql://%s@127.0.0.1:%d/postgres",
				postgrestest.User, db.Port), "--scale", "1", "--clients", "1", "--duration", "3s")
		},
		"import": func(_ *testing.T, s session) {
			name := "pgbench-15.txt"
			if _, err := os.Stat(s.runs); err == nil {
				name = "pgbench-15-rate.txt"
			}
			s.must("import", filepath.Join(outputs, name))
		},
		"experiment": func(_ *testing.T, s session) {
			s.must("run", job, "--target", "sim", "--sweep", "iodepth=1,2", "--quiet")
		},
		"mark": func(_ *testing.T, s session) {
			s.must("mark", job, "--target", "sim", "--limit", "read p99 < 5ms", "--quiet")
		},
		"ssh": func(t *testing.T, s session) {
			if _, err := os.Stat(s.runs); err == nil {
				return // with the first
			}
			needs.Fio(t)
			l := sshtest.NewApart(t, "db1")
			before, after, _ := strings.Cut(hostsScenario, "experiment:\n")
			_, after, _ = strings.Cut(after, "order: interleaved\n")
			dir, plimsoll := onHosts(t, l, strings.Replace(before+after, "default: 6", "default: 3", 1), "time_based\n")
			for range 2 {
				code, out := plimsoll("run", "grid", "--target", "ssh", "--target-opt", "inventory="+l.Inventory,
					"--target-opt", "agents="+l.Dir, "--size-scale", "0.002")
				if code != 0 {
					t.Fatalf("%d: %s", code, out)
				}
			}
			if err := os.CopyFS(s.runs, os.DirFS(filepath.Join(dir, "plimsoll-runs"))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
			make(t, s)
			make(t, s)
			flips(t, s)
		})
	}
}

// flips turns bits round in copies of the second of the two runs that a session has.
func flips(t *testing.T, s session) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.runs, "2*"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%q, %v", found, err)
	}
	other, good := found[0], found[1]
	var files []string
	err = fs.WalkDir(os.DirFS(good), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() > 0 {
				files = append(files, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	print := func(dir string, line ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		cmd := s.command(t.Context(), line...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &o, &e
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), strings.ReplaceAll(o.String(), dir, "RUN"), e.String()
	}
	lines := func(dir string) [][]string {
		return [][]string{{"report", dir, "-o", "json"}, {"compare", other, dir, "-o", "json"},
			{"report", dir, "-o", "csv"}}
	}
	var want []string
	var codes []int
	for _, line := range lines(good) {
		code, out, errs := print(good, line...)
		if code == 1 || code == 2 {
			t.Fatalf("%s: exit code %d\n%s", line[0], code, errs)
		}
		want, codes = append(want, out), append(codes, code)
	}
	random := rand.New(rand.NewPCG(27, 12))
	random.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	told := 0
	for n := range needs.Draws(12, 120) {
		file := files[n%len(files)]
		dir := filepath.Join(folder, fmt.Sprint(n), filepath.Base(good))
		name := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bit := recordtest.Flip(t, random, name, data)
		for i, line := range lines(dir) {
			code, out, errs := print(dir, line...)
			switch {
			case code == codes[i] && out == want[i]:
			case code == 1 && strings.Contains(errs, filepath.Base(file)):
				told++
			default:
				t.Errorf("%s: bit %d of %s: exit code %d\n%s%s", line[0], bit, file, code, errs, cmp.Diff(want[i], out))
			}
		}
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files; %d told", len(files), told)
}
