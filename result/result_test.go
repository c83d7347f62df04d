package result_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"plimsoll/hist"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
	"plimsoll/result"
)

var created = time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)

func manifest() result.Manifest {
	return result.Manifest{
		RunID: result.NewRunID(created, "DB colocation!", 0x7f3a), Created: created, Program: "plimsoll test",
		Scenario: result.ScenarioInfo{ID: 7, Name: "db_colocation"}, Target: "local", TimeScale: 1, SizeScale: 1,
	}
}

func create(t testing.TB, root string) *result.Folder {
	t.Helper()
	f, err := result.Create(root, manifest())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if root := os.Getenv("RESULT_TEST_HOLD"); root != "" {
		hold(root)
	}
	os.Exit(m.Run())
}

func TestNewRunID(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"DB colocation!", "20261121-204500-db-colocation-7f3a"},
		{"", "20261121-204500-run-7f3a"},
		{"../../etc", "20261121-204500-etc-7f3a"},
		{strings.Repeat("x", 100), "20261121-204500-" + strings.Repeat("x", 40) + "-7f3a"},
	} {
		if got := result.NewRunID(created, c.name, 0x7f3a); got != c.want {
			t.Errorf("%q: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	root := t.TempDir()
	f := create(t, root)
	must(t, f.WritePlan(map[string]any{"steps": 3}))
	must(t, f.AppendEvent(result.Event{Time: created.Add(time.Second), Kind: result.KindPhase, Phase: "setup"}))
	must(t, f.AppendEvent(result.Event{Time: created.Add(2 * time.Second), Kind: result.KindNote, Text: "two\nlines",
		Data: result.EventData{Pages: 1}}))
	h := &hist.Histogram{}
	h.Add(1000, 3)
	data := &result.Data{Start: created,
		Workloads: []result.Workload{{Name: "w", Ops: []result.OpTotals{{Op: "read", Count: 3, Hist: h}}}}}
	must(t, f.WriteData(data))
	value := 1.5
	findings := []result.Finding{{Check: "c", Severity: result.Info, Value: &value}}
	must(t, f.WriteFindings(findings))
	must(t, f.Update(func(m *result.Manifest) { m.Status = result.StatusSucceeded; m.Measured.State = "yes" }))
	must(t, f.Close())

	g, err := result.Open(f.Dir())
	must(t, err)
	want := manifest()
	want.Version, want.Status = result.FormatVersion, "succeeded"
	want.Measured.State, want.Collected.State, want.Cleaned.State = "yes", "pending", "pending"
	if d := cmp.Diff(want, g.Manifest()); d != "" {
		t.Error(d)
	}
	events, skipped, err := g.Events()
	wantEvents := []result.Event{
		{Time: created.Add(time.Second), Kind: "phase", Phase: "setup"},
		{Time: created.Add(2 * time.Second), Kind: "note", Text: "two\nlines", Data: result.EventData{Pages: 1}},
	}
	if d := cmp.Diff(wantEvents, events); d != "" || skipped != nil || err != nil {
		t.Error(d, skipped, err)
	}
	gotData, err := g.Data()
	if d := cmp.Diff(data, gotData, cmp.Comparer(func(a, b *hist.Histogram) bool {
		return a.Equal(b)
	})); d != "" || err != nil {
		t.Error(d, err)
	}
	gotFindings, err := g.Findings()
	if d := cmp.Diff(findings, gotFindings); d != "" || err != nil {
		t.Error(d, err)
	}
	plan, err := g.Plan()
	if d := cmp.Diff("{\n  \"steps\": 3\n}\n", string(plan)); d != "" || err != nil {
		t.Error(d, err)
	}
	if p := g.Problems(); p != nil {
		t.Error(p)
	}
	if err := g.AppendEvent(result.Event{Kind: "note"}); err == nil {
		t.Error("a folder opened for reading took an event")
	}
	if left, _ := filepath.Glob(filepath.Join(f.Dir(), ".*tmp*")); left != nil {
		t.Error("left behind:", left)
	}
}

func TestCreateRefuses(t *testing.T) {
	root := t.TempDir()
	create(t, root)
	if _, err := result.Create(root, manifest()); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Error(err)
	}
	for _, id := range []string{"", "a/b", "..", ".hidden"} {
		m := manifest()
		m.RunID = id
		if _, err := result.Create(root, m); err == nil {
			t.Errorf("%q accepted", id)
		}
	}
	m := manifest()
	m.RunID = "other"
	blocked := filepath.Join(root, "file")
	must(t, os.WriteFile(blocked, nil, 0o644))
	if _, err := result.Create(blocked, m); err == nil {
		t.Error("created below a file")
	}
}

// The journal's order survives a step of the wall clock: times are placed by the monotonic clock.
func TestClockStepsBack(t *testing.T) {
	m := manifest()
	m.Created = time.Now()
	f, err := result.Create(t.TempDir(), m)
	must(t, err)
	defer f.Close()
	later := time.Now()
	must(t, f.AppendEvent(result.Event{Time: later, Kind: "note"}))
	events, _, err := f.Events()
	must(t, err)
	if got, want := events[0].Time, m.Created.Add(later.Sub(m.Created)); !got.Equal(want) || got.Before(m.Created) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestJournalSkipsWhatItCannotRead(t *testing.T) {
	f := create(t, t.TempDir())
	must(t, f.AppendEvent(result.Event{Time: created, Kind: "note", Text: "first"}))
	path := filepath.Join(f.Dir(), "journal.jsonl")
	add := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = file.WriteString(text)
		must(t, errors.Join(err, file.Close()))
	}
	add("rubbish\n{\"kind\":\"\"}\n\n{\"time\":\"2026-11-21T20:45:09Z\",\"kind\":\"no")
	want := []string{"journal line 2: not a journal event", "journal line 3: an event without a kind",
		"journal line 5: torn (the process ended while writing it)"}
	g, err := result.Open(f.Dir())
	must(t, err)
	if d := cmp.Diff(want, g.Problems()); d != "" {
		t.Error(d)
	}
	// A later writer, such as a clean-up, ends the torn line and goes on.
	must(t, f.Close())
	must(t, g.TryLock())
	must(t, g.AppendEvent(result.Event{Time: created, Kind: "note", Text: "cleaned"}))
	must(t, g.Close())
	events, skipped, err := g.Events()
	if err != nil || len(skipped) != 3 || len(events) != 2 || events[1].Text != "cleaned" {
		t.Error(events, skipped, err)
	}
}

// TestNamesOfRawFiles: names of machines and workloads that somebody else chose become files inside raw, each its own,
// and are found again.
func TestNamesOfRawFiles(t *testing.T) {
	f := create(t, t.TempDir())
	names := map[string]bool{"\x00": true, "w.2": true, strings.Repeat("w", 4999) + "x": true}
	for _, h := range visibletest.Texts {
		names[strings.ToValidUTF8(h.Text, "?")] = true
	}
	type key struct{ vm, workload string }
	got := map[key]int{}
	for name := range names {
		for _, k := range []key{{name, "w"}, {"v", name}} {
			must(t, f.WriteRawJob(result.RawJob{VM: k.vm, Workload: k.workload, Attempt: 1}))
			must(t, f.WriteRawFile(k.vm, k.workload, 1, name, []byte(name)))
			w, err := f.RawWriter(result.RawJob{VM: k.vm, Workload: k.workload, Attempt: 1, Engine: "fio"})
			must(t, err)
			_, err = io.WriteString(w, name)
			must(t, errors.Join(err, w.Close()))
			got[k] = 0
		}
	}
	jobs, problems := f.RawJobs()
	for _, j := range jobs {
		got[key{j.VM, j.Workload}]++
	}
	for k, n := range got {
		if n != 1 {
			t.Errorf("%.60q: found %d times", k, n)
		}
		r, err := f.OpenRaw(result.RawJob{VM: k.vm, Workload: k.workload, Attempt: 1, Engine: "fio"})
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		if string(text) != k.vm && string(text) != k.workload {
			t.Errorf("%.60q holds the output of %.60q", k, text)
		}
	}
	if len(problems) > 0 || len(jobs) != len(got) {
		t.Errorf("%d jobs of %d, problems %.300q", len(jobs), len(got), problems)
	}
	err := filepath.WalkDir(f.Dir(), func(path string, d fs.DirEntry, err error) error {
		if !portable.MatchString(d.Name()) {
			t.Errorf("file %q", path)
		}
		return err
	})
	must(t, err)
}

// portable is a name that neither a shell nor a terminal nor another file system takes for anything else.
var portable = regexp.MustCompile(`^[A-Za-z0-9_%][-A-Za-z0-9_.%=]{0,219}$`)

// TestRunIDsOfNames: a run's folder is a plain one, however its scenario is called.
func TestRunIDsOfNames(t *testing.T) {
	for _, h := range visibletest.Texts {
		if id := result.NewRunID(created, h.Text, 7); !regexp.MustCompile(`^[a-z0-9-]{1,80}$`).MatchString(id) {
			t.Errorf("%s: %q", h.Name, id)
		}
	}
}

func TestOpenDamaged(t *testing.T) {
	for _, c := range []struct {
		name, text string
		problem    string // expected in Problems
		err        string // expected from Open
	}{
		{"cut", `{"version":1,"run_id":"x","sta`, "manifest.json is damaged", ""},
		{"empty", "", "manifest.json is damaged", ""},
		{"wrong type", `{"version":1,"run_id":7}`, "manifest.json is damaged", ""},
		{"no version", `{"run_id":"x"}`, "no format version", ""},
		{"array", `[1,2]`, "manifest.json is damaged", ""},
		{"newer", `{"version":99,"status":3}`, "", "written in format version 99; this program reads up to version 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := create(t, t.TempDir())
			must(t, f.AppendEvent(result.Event{Time: created, Kind: "note"}))
			must(t, os.WriteFile(filepath.Join(f.Dir(), "manifest.json"), []byte(c.text), 0o644))
			g, err := result.Open(f.Dir())
			if c.err != "" {
				var newer *result.NewerError
				if err == nil || !strings.Contains(err.Error(), c.err) || !errors.As(err, &newer) {
					t.Error(err)
				}
				return
			}
			must(t, err)
			if all := strings.Join(g.Problems(), "\n"); !strings.Contains(all, c.problem) {
				t.Errorf("problems %q, want %q", all, c.problem)
			}
			if events, _, err := g.Events(); len(events) != 1 || err != nil {
				t.Error("the journal is not read:", events, err)
			}
			if g.Manifest().RunID == "" || g.Manifest().Status == "" {
				t.Errorf("%+v", g.Manifest())
			}
		})
	}
	t.Run("the journal fills in", func(t *testing.T) {
		f := create(t, t.TempDir())
		must(t, f.AppendEvent(result.Event{Time: created, Kind: result.KindRunStart, Text: "name of it",
			Data: result.EventData{Target: "local", Steps: 3}}))
		must(t, f.AppendEvent(result.Event{Time: created.Add(time.Minute), Kind: result.KindRunEnd,
			Text: result.StatusSucceeded}))
		must(t, os.WriteFile(filepath.Join(f.Dir(), "manifest.json"), nil, 0o644))
		g, err := result.Open(f.Dir())
		must(t, err)
		unknown := result.Verdict{State: "unknown", Reason: "manifest.json is damaged"}
		want := result.Manifest{
			Version: result.FormatVersion, RunID: filepath.Base(f.Dir()),
			Scenario: result.ScenarioInfo{Name: "name of it"}, Target: "local",
			Status: result.StatusSucceeded, Created: created, Ended: created.Add(time.Minute), Measured: unknown,
			Collected: unknown, Cleaned: unknown,
		}
		if diff := cmp.Diff(want, g.Manifest()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"manifest.json is damaged: it is empty or missing"}, g.Problems()); diff != "" {
			t.Error(diff)
		}
	})
	if _, err := result.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run folder") {
		t.Error(err)
	}
	if _, err := result.Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("opened nothing")
	}
}

func TestNewerDocuments(t *testing.T) {
	f := create(t, t.TempDir())
	for _, name := range []string{"data.json", "findings.json"} {
		must(t, os.WriteFile(filepath.Join(f.Dir(), name), []byte(`{"version":3}`), 0o644))
	}
	_, err1 := f.Data()
	_, err2 := f.Findings()
	for _, err := range []error{err1, err2} {
		if err == nil || !strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), "version 2") {
			t.Error(err)
		}
	}
}

// hold is the process of TestKilledRun: it makes a run, writes until it is killed.
func hold(root string) {
	f, err := result.Create(root, manifest())
	if err == nil {
		var w io.WriteCloser
		if w, err = f.RawWriter(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Engine: "fio"}); err == nil {
			_ = f.WriteRawJob(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Start: created})
			_ = f.AppendEvent(result.Event{Time: created, Kind: result.KindPhase, Phase: "run"})
			_, _ = w.Write(bytes.Repeat([]byte("a line of output\n"), 10_000))
			time.Sleep(1500 * time.Millisecond) // more than the flush interval
			_, _ = w.Write([]byte("lost"))
			fmt.Println("ready")
			time.Sleep(time.Minute)
			runtime.KeepAlive(f) // else its lock may be collected, and closed
		}
	}
	os.Exit(1)
}

func TestKilledRun(t *testing.T) {
	root := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), "RESULT_TEST_HOLD="+root)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = out.Read(make([]byte, 8))
	must(t, err)
	dir := filepath.Join(root, manifest().RunID)

	f, err := result.Open(dir)
	must(t, err)
	if s := f.Manifest().Status; s != result.StatusExecuting {
		t.Errorf("status %q while it executes", s)
	}
	if err := result.Remove(dir, true); !errors.Is(err, result.ErrBusy) ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
		t.Errorf("remove while it executes: %v", err)
	}
	if err := f.TryLock(); !errors.Is(err, result.ErrBusy) {
		t.Errorf("second writer: %v", err)
	}

	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if s := f.Manifest().Status; s != result.StatusInterrupted {
		t.Errorf("status %q after the kill", s)
	}
	r, err := f.OpenRaw(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Engine: "fio"})
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	if want := bytes.Repeat([]byte("a line of output\n"), 10_000); !bytes.Equal(text, want) {
		t.Errorf("%d bytes of raw output, want %d", len(text), len(want))
	}
	if r.Truncated() == "" {
		t.Error("the cut is not reported")
	}
	must(t, r.Close())
	list, err := result.Folders(root)
	must(t, err)
	if len(list) != 1 || result.Size(list[0]) == 0 {
		t.Errorf("%+v", list)
	}
	must(t, result.Remove(dir, false))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("still there:", err)
	}
}

func TestRemoveKeepsWhatIsNotCleaned(t *testing.T) {
	f := create(t, t.TempDir())
	must(t, os.WriteFile(filepath.Join(f.StateDir(), "made.json"), []byte("{}"), 0o644))
	must(t, f.Close())
	if err := result.Remove(f.Dir(), false); err == nil || !strings.Contains(err.Error(), "plimsoll cleanup") {
		t.Error(err)
	}
	// What a later version says of its cleaning is not known here.
	must(t, os.WriteFile(filepath.Join(f.Dir(), "manifest.json"), []byte(`{"version":99}`), 0o644))
	if err := result.Remove(f.Dir(), false); err == nil || !strings.Contains(err.Error(), "plimsoll cleanup") {
		t.Error(err)
	}
	must(t, result.Remove(f.Dir(), true))
	if err := result.Remove(t.TempDir(), true); err == nil {
		t.Error("removed a folder that is no run")
	}
}

// Where something else stands in the place of the lock, nobody may think to hold it.
func TestLockThatIsNoFile(t *testing.T) {
	f := create(t, t.TempDir())
	must(t, f.Close())
	lock := filepath.Join(f.Dir(), "lock")
	must(t, os.Remove(lock))
	must(t, os.Mkdir(lock, 0o755))
	r, err := result.Open(f.Dir())
	must(t, err)
	for name, err := range map[string]error{"lock": r.TryLock(), "remove": result.Remove(f.Dir(), true)} {
		if err == nil || !strings.Contains(err.Error(), "it is a folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFoldersOfRuns(t *testing.T) {
	root := t.TempDir()
	for i := range 3 {
		m := manifest()
		m.RunID = result.NewRunID(created.Add(time.Duration(i)*time.Hour), "x", uint16(i))
		f, err := result.Create(root, m)
		must(t, err)
		must(t, f.Close())
	}
	must(t, os.Mkdir(filepath.Join(root, "not-a-run"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, manifest().RunID[:9]+"214500-x-0001", "manifest.json"),
		[]byte(`{"version":5}`), 0o644))
	list, err := result.Folders(root)
	must(t, err)
	var got []string
	for _, dir := range list {
		f, err := result.Glance(dir)
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, f.Manifest().RunID+" "+f.Manifest().Status)
	}
	if len(got) != 3 || !strings.HasPrefix(got[2], "20261121-224500") || !strings.Contains(got[1], "version 5") ||
		!strings.Contains(got[0], "interrupted") {
		t.Errorf("%q", got)
	}
	if list, err := result.Folders(filepath.Join(root, "none")); len(list) > 0 || err != nil {
		t.Error(list, err)
	}
}

func TestRaw(t *testing.T) {
	f := create(t, t.TempDir())
	names := []struct {
		vm, load string
		attempt  int
	}{{"vm", "load", 1}, {"vm", "load", 2}, {"vm", "load.2", 1}, {"vm/../x", "..", 1}, {"", "a b\x00", 1}}
	for i, n := range names {
		must(t, f.WriteRawJob(result.RawJob{VM: n.vm, Workload: n.load, Attempt: n.attempt, Engine: "fio",
			Start: created.Add(time.Duration(i))}))
		must(t, f.WriteRawFile(n.vm, n.load, n.attempt, "job.fio", []byte("[job]")))
		w, err := f.RawWriter(result.RawJob{VM: n.vm, Workload: n.load, Attempt: n.attempt, Engine: "fio"})
		must(t, err)
		_, err = fmt.Fprintf(w, "output %d", i)
		must(t, err)
		must(t, w.Close())
		must(t, w.Close())
		if _, err := w.Write(nil); err == nil {
			t.Error("wrote after close")
		}
	}
	if _, err := f.RawWriter(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Engine: "fio"}); !errors.Is(err,
		fs.ErrExist) {
		t.Errorf("a start written twice: %v", err)
	}
	jobs, problems := f.RawJobs()
	if len(jobs) != len(names) || problems != nil {
		t.Fatal(jobs, problems)
	}
	for i, j := range jobs {
		if j.VM != names[i].vm || j.Workload != names[i].load || j.Attempt != names[i].attempt {
			t.Errorf("%d: %+v", i, j)
		}
		r, err := f.OpenRaw(j)
		must(t, err)
		text, err := io.ReadAll(r)
		if string(text) != fmt.Sprint("output ", i) || err != nil || r.Truncated() != "" {
			t.Errorf("%d: %q %v %q", i, text, err, r.Truncated())
		}
		must(t, r.Close())
	}
	outside, err := filepath.Glob(filepath.Join(f.Dir(), "x*"))
	if err != nil || outside != nil {
		t.Error("escaped:", outside, err)
	}

	must(t, f.Hash(t.Context()))
	if len(f.Manifest().Hashes) != 3*len(names) || f.VerifyHashes(t.Context()) != nil {
		t.Errorf("%v %v", f.Manifest().Hashes, f.VerifyHashes(t.Context()))
	}
	must(t, f.WriteRawFile("vm", "load", 1, "job.fio", []byte("[changed]")))
	bad := f.VerifyHashes(t.Context())
	if len(bad) != 1 || !strings.Contains(bad[0], "raw/vm/load/job.fio: changed since the run") {
		t.Error(bad)
	}
	must(t, os.WriteFile(filepath.Join(f.Dir(), "raw/vm/load/job.json"), []byte("{"), 0o644))
	if jobs, problems := f.RawJobs(); len(jobs) != len(names)-1 || len(problems) != 1 {
		t.Error(len(jobs), problems)
	}
}

func TestCopyScenario(t *testing.T) {
	src := fstest.MapFS{
		"inner/test.yml": {Data: []byte("name: {{ x }}")}, "inner/a.fio": {Data: []byte("[a]")},
		"inner/sub/b.yml": {Data: []byte("b")},
	}
	f := create(t, t.TempDir())
	must(t, f.CopyScenario(src, []byte("name: y")))
	for name, file := range src {
		got, err := fs.ReadFile(f.Scenario(), name)
		if err != nil || !bytes.Equal(got, file.Data) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	_, path := f.RenderedFile()
	text, err := f.Rendered()
	if path != "inner/test-parsed.yml" || string(text) != "name: y" || err != nil {
		t.Error(path, string(text), err)
	}
	if err := f.CopyScenario(fstest.MapFS{"pipe": {Mode: fs.ModeNamedPipe}}, nil); err == nil {
		t.Error("copied a pipe")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"run_id":"a","status":"executing","created":"2026-11-21T20:45:00Z"}`))
	f.Add([]byte(`{"version":3}`))
	f.Add([]byte(`{"version":1,"run_id":"../../x"}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, doc []byte) {
		must(t, os.WriteFile(filepath.Join(dir, "manifest.json"), doc, 0o644))
		g, err := result.Open(dir)
		if err != nil {
			var newer *result.NewerError
			if !errors.As(err, &newer) || newer.Have <= result.FormatVersion {
				t.Fatalf("%q: %v", doc, err)
			}
			return
		}
		if id := g.Manifest().RunID; id == "" || strings.ContainsAny(id, "/\\") {
			t.Fatalf("run id %q", id)
		}
		if v := g.Manifest().Version; v < 1 || v > result.FormatVersion {
			t.Fatalf("version %d", g.Manifest().Version)
		}
	})
}

func Example() {
	root, _ := os.MkdirTemp("", "runs")
	defer os.RemoveAll(root)
	f, err := result.Create(root, result.Manifest{RunID: "20261121-204500-demo-7f3a", Created: created})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = f.AppendEvent(result.Event{Time: created, Kind: result.KindPhase, Phase: "setup"})
	_ = f.Close()

	g, err := result.Open(f.Dir())
	events, _, _ := g.Events()
	fmt.Println(g.Manifest().Status, events[0].Phase, err)
	// Output: interrupted setup <nil>
}

// Raw output that grows out of proportion is read up to a bound, and says so; a stream that asks for a huge window is
// not.
func TestRawBombs(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	f := create(t, t.TempDir())
	must(t, f.WriteRawJob(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Start: created}))
	file := filepath.Join(f.Dir(), "raw/vm/load/fio.out.zst")
	read := func() (n int64, truncated string, err error) {
		r, err := f.OpenRaw(result.RawJob{VM: "vm", Workload: "load", Attempt: 1, Engine: "fio"})
		must(t, err)
		n, err = io.Copy(io.Discard, r)
		must(t, r.Close())
		return n, r.Truncated(), err
	}
	var frame bytes.Buffer
	enc, err := zstd.NewWriter(&frame)
	must(t, err)
	_, err = enc.Write(make([]byte, 256<<20))
	must(t, errors.Join(err, enc.Close()))
	must(t, os.WriteFile(file, bytes.Repeat(frame.Bytes(), 3), 0o600))
	if n, truncated, err := read(); n != 768<<20 || truncated != "" || err != nil {
		t.Errorf("three frames: %d bytes, %q, %v", n, truncated, err)
	}
	must(t, os.WriteFile(file, bytes.Repeat(frame.Bytes(), 40), 0o600)) // of 10 GiB
	n, _, err := read()
	if n < 1<<30 || n > 1<<30+1<<27 || err == nil || !strings.Contains(err.Error(), "out of proportion") {
		t.Errorf("forty frames: %d bytes, %v", n, err)
	}
	huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x98, 0x01, 0x00, 0x00} // a window of 512 MiB
	must(t, os.WriteFile(file, huge, 0o600))
	if n, truncated, err := read(); n != 0 || !strings.Contains(truncated, "window") || err != nil {
		t.Errorf("a huge window: %d bytes, %q, %v", n, truncated, err)
	}
}

// A journal may be larger than anything that a run writes, and none of its lines need be one.
func TestJournalsAreBounded(t *testing.T) {
	t.Parallel()
	f := create(t, t.TempDir())
	must(t, f.AppendEvent(result.Event{Time: created, Kind: result.KindNote, Text: "x"}))
	file, err := os.OpenFile(filepath.Join(f.Dir(), "journal.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	for range 1000 {
		_, err := file.Write(bytes.Repeat([]byte("no\n"), 100))
		must(t, err)
	}
	must(t, file.Truncate(1<<40))
	must(t, file.Close())
	events, skipped, err := f.Events()
	must(t, err)
	want := []string{"journal line 2: not a journal event", "journal: 99981 more lines like these",
		"journal: it is larger than 128 MiB; the rest was not read"}
	if len(events) != 1 || len(skipped) != 22 || !cmp.Equal(want, []string{skipped[0], skipped[20], skipped[21]}) {
		t.Errorf("%d events, %q", len(events), skipped)
	}
}
