package result

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// platter is a disk as a power cut leaves it: a file holds what it did when it was last synced, a folder the names
// that it had then.
type platter struct {
	files   map[uint64][]byte
	folders map[uint64]map[string]uint64
}

func inode(t *testing.T, info fs.FileInfo) uint64 {
	t.Helper()
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("files have no numbers here")
	}
	return st.Ino
}

// sync is the disk of a folder under test.
func (p *platter) sync(t *testing.T) disk {
	return func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if !info.IsDir() {
			p.files[inode(t, info)], err = os.ReadFile(f.Name())
			return err
		}
		names := map[string]uint64{}
		entries, err := os.ReadDir(f.Name())
		for _, e := range entries {
			if i, err := e.Info(); err == nil {
				names[e.Name()] = inode(t, i)
				if i.IsDir() && p.folders[inode(t, i)] == nil {
					p.folders[inode(t, i)] = map[string]uint64{}
				}
			}
		}
		p.folders[inode(t, info)] = names
		return err
	}
}

// restore writes what is left of the folder dir.
func (p *platter) restore(t *testing.T, number uint64, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, n := range p.folders[number] {
		to := filepath.Join(dir, name)
		if p.folders[n] != nil {
			p.restore(t, n, to)
		} else if err := os.WriteFile(to, p.files[n], 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// written is something that a folder keeps: how it comes there and what is read of it.
type written struct {
	do   func(*Folder) error
	read func(*Folder) (any, error)
	want any
}

func everythingWritten() map[string]written {
	job := RawJob{VM: "vm/1", Workload: "load", Attempt: 2, Start: time.Unix(1, 0).UTC()}
	jobOf := func(f *Folder) (any, error) {
		jobs, problems := f.RawJobs()
		if problems != nil {
			return nil, errors.New(problems[0])
		}
		return jobs, nil
	}
	eventsOf := func(f *Folder) (any, error) {
		events, _, err := f.Events()
		return events, err
	}
	described := job
	described.Version = FormatVersion
	return map[string]written{
		"run": {
			func(*Folder) error { return nil },
			func(f *Folder) (any, error) { return f.Manifest().Scenario.Name, nil }, "some name",
		},
		"manifest": {
			func(f *Folder) error { return f.Update(func(m *Manifest) { m.Error = "a" }) },
			func(f *Folder) (any, error) { return f.Manifest().Error, nil }, "a",
		},
		"plan": {
			func(f *Folder) error { return f.WritePlan([]int{1, 2}) },
			func(f *Folder) (any, error) { b, err := f.Plan(); return string(b), err }, "[\n  1,\n  2\n]\n",
		},
		"data": {
			func(f *Folder) error { return f.WriteData(&Data{Problems: []string{"b"}}) },
			func(f *Folder) (any, error) {
				d, err := f.Data()
				if err != nil {
					return nil, err
				}
				return d.Problems, nil
			}, []string{"b"},
		},
		"scenario": {
			func(f *Folder) error {
				given := fstest.MapFS{"a/test.yml": {Data: []byte("given")}, "a/b/c.fio": {Data: []byte("job")}}
				return f.CopyScenario(given, []byte("made"))
			},
			func(f *Folder) (any, error) {
				var all []string
				for _, name := range []string{"a/test.yml", "a/b/c.fio", "a/test-parsed.yml"} {
					b, err := fs.ReadFile(f.Scenario(), name)
					if err != nil {
						return nil, err
					}
					all = append(all, string(b))
				}
				return all, nil
			}, []string{"given", "job", "made"},
		},
		"boundary in the journal": {
			func(f *Folder) error {
				note := Event{Kind: KindNote, Text: "x"}
				return errors.Join(f.AppendEvent(note), f.AppendEvent(Event{Kind: KindStepEnd, Step: 3}))
			},
			eventsOf, []Event{{Kind: KindNote, Text: "x"}, {Kind: KindStepEnd, Step: 3}},
		},
		"journal of a folder that was closed": {
			func(f *Folder) error { return errors.Join(f.AppendEvent(Event{Kind: KindNote, Text: "x"}), f.Close()) },
			eventsOf, []Event{{Kind: KindNote, Text: "x"}},
		},
		"job": {func(f *Folder) error { return f.WriteRawJob(job) }, jobOf, []RawJob{described}},
		"raw output": {
			func(f *Folder) error {
				w, err := f.RawWriter(job)
				if err != nil {
					return err
				}
				_, err = io.WriteString(w, "everything")
				return errors.Join(err, w.Close())
			},
			func(f *Folder) (any, error) {
				r, err := f.OpenRaw(job)
				if err != nil {
					return nil, err
				}
				b, err := io.ReadAll(r)
				return string(b) + r.Truncated(), errors.Join(err, r.Close())
			}, "everything",
		},
	}
}

// What a call has returned from is there after a power cut.
func TestWhatIsWrittenSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	for name, c := range everythingWritten() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, p := t.TempDir(), &platter{map[uint64][]byte{}, map[uint64]map[string]uint64{}}
			m := Manifest{RunID: "r", Scenario: ScenarioInfo{Name: "some name"}}
			f, err := create(filepath.Join(root, "of", "runs"), m, p.sync(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := c.do(f); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(root)
			if err != nil {
				t.Fatal(err)
			}
			after := t.TempDir()
			p.restore(t, inode(t, info), after)
			g, err := Open(filepath.Join(after, "of", "runs", "r"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.read(g)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("after the power cut: %v\n%s", err, d)
			}
		})
	}
}

// A device that refuses to keep something, whatever it is, fails the call that has written it.
func TestRefusedByTheDevice(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, c := range everythingWritten() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, bad := 0, 0
			do := func() error {
				calls = 0
				f, err := create(filepath.Join(t.TempDir(), "of"), Manifest{RunID: "r"}, func(*os.File) error {
					if calls++; calls == bad {
						return refused
					}
					return nil
				})
				if err != nil {
					return err
				}
				return errors.Join(c.do(f), f.Close())
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
			for all := calls; bad < all; {
				bad++
				if err := do(); !errors.Is(err, refused) {
					t.Errorf("call %d of %d refused: %v", bad, all, err)
				}
			}
		})
	}
}

// Runs that can be repeated wait for no disk.
func TestTimelessRunsForceNothing(t *testing.T) {
	t.Parallel()
	calls := 0
	f, err := create(t.TempDir(), Manifest{RunID: "r"}, func(*os.File) error { calls++; return nil })
	if err == nil {
		err = f.Timeless()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := calls
	w, err := f.RawWriter(RawJob{VM: "vm", Workload: "load", Attempt: 1, Engine: "fio"})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.Close(), f.WriteData(&Data{}), f.WriteRawJob(RawJob{VM: "vm", Workload: "load", Attempt: 1}),
		f.AppendEvent(Event{Kind: KindStepEnd}), f.CopyScenario(fstest.MapFS{"test.yml": {}}, nil), f.Close())
	if err != nil || calls != before {
		t.Errorf("%d calls after Timeless, %v", calls-before, err)
	}
}

// Folders made and opened by others than tests use the real disk.
func TestFoldersSyncToTheDevice(t *testing.T) {
	t.Parallel()
	made, err := Create(t.TempDir(), Manifest{RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	opened, err := Open(made.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*Folder{"made": made, "opened": opened} {
		if f.disk == nil || !errors.Is(f.disk((*os.File)(nil)), os.ErrInvalid) { // as (*os.File).Sync answers
			t.Errorf("a folder that was %s syncs nothing", name)
		}
	}
}

// What a run in virtual time wrote has the sums that its files have, though nothing is read again, and a job that is
// described again has the newer description whole, longer or shorter.
func TestSumsTakenWhileWritten(t *testing.T) {
	t.Parallel()
	f, err := Create(t.TempDir(), Manifest{RunID: "r"})
	if err == nil {
		err = f.Timeless()
	}
	if err != nil {
		t.Fatal(err)
	}
	job := RawJob{VM: "vm/1", Workload: "load", Attempt: 1, Engine: "fio"}
	w, err := f.RawWriter(job)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		if _, err := w.Write(bytes.Repeat([]byte{byte('a' + n%26)}, n*1000)); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(w.Close(), f.WriteRawFile(job.VM, job.Workload, 1, "job.fio", []byte("[a]\n")))
	for _, message := range []string{"", "long " + strings.Repeat("x", 200), "short", strings.Repeat("y", onePage)} {
		job.Message = message
		err = errors.Join(err, f.WriteRawJob(job))
		if jobs, problems := f.RawJobs(); len(jobs) != 1 || jobs[0].Message != message || problems != nil {
			t.Errorf("%d jobs, %q", len(jobs), problems)
		}
	}
	if err := errors.Join(err, f.Hash(t.Context())); err != nil {
		t.Fatal(err)
	}
	names, err := f.measuredFiles()
	if err != nil || len(names) != 3 || len(f.Manifest().Hashes) != 3 {
		t.Errorf("%q, %d sums, %v", names, len(f.Manifest().Hashes), err)
	}
	if bad := f.VerifyHashes(t.Context()); bad != nil {
		t.Errorf("%q", bad)
	}
	// The sum is of what was meant: what the disk has made of it is seen.
	path := filepath.Join(f.Dir(), filepath.FromSlash(names[0]))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Hash(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bad := f.VerifyHashes(t.Context()); len(bad) != 1 || !strings.HasPrefix(bad[0], names[0]+": changed") {
		t.Errorf("%q", bad)
	}
}
