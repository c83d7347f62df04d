package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
)

// controllerVariable names the state folder for a copy of this test that is to be killed.
const controllerVariable = "PLIMSOLL_TEST_CONTROLLER"

// controller makes, starts, snapshots and deletes until it is killed, or for half a minute.
func controller() {
	stateDir := os.Getenv(controllerVariable)
	fail := func(err error) {
		if err != nil {
			fmt.Println("controller:", err)
			os.Exit(1)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fail(os.MkdirAll(filepath.Dir(stateDir), 0o755))
	place, err := Provider{}.New(target.Config{Nodes: 2, Options: target.Options{"dir": filepath.Dir(stateDir),
		"reserve": "1MiB",
		"cgroups": os.Getenv("PLIMSOLL_TEST_CGROUPS")}})
	fail(err)
	opened, err := place.Provision(ctx, target.Request{RunID: "crash", StateDir: stateDir})
	fail(err)
	c := opened.(*cluster)
	fmt.Println("provisioned")
	var listens []int
	if c.wall.namespaces {
		listens = []int{4711}
	}
	fail(
		c.CreateTemplate(ctx,
			target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20, DiskBytes: []int64{4 << 20, 4 << 20}}),
	)
	for i := 0; ctx.Err() == nil; i++ {
		names := []string{fmt.Sprintf("vm-%d-a", i), fmt.Sprintf("vm-%d-b", i)}
		fail(c.Clone(ctx, target.Clone{Source: "t",
			Members: []target.Placement{{Name: names[0]}, {Name: names[1], Node: 1}}}))
		fail(c.PowerOn(ctx, names, 1))
		for _, name := range names {
			h, err := c.Host(name)
			fail(err)
			_, err = h.Start(ctx, target.Command{Stdout: "o", Argv: []string{"sh", "-c",
				"setsid sh -c 'sleep 120; :' & sleep 60 & echo yes; wait"}})
			fail(err)
			fail(h.(target.ServiceKeeper).StartService(ctx, target.Service{Name: "db", Command: target.Command{
				Argv: []string{"sh", "-c", "sleep 120 & sleep 60; :"}, Listens: listens}}))
		}
		fail(c.Snapshot(ctx, "s", names))
		if i > 2 {
			fail(c.Delete(ctx, []string{fmt.Sprintf("vm-%d-a", i-3)}))
		}
	}
	os.Exit(0)
}

// TestDestroyAfterKill kills a controller at random moments; what it leaves must go, whatever it was doing.
func TestDestroyAfterKill(t *testing.T) {
	rounds := 3
	if needs.All() {
		rounds = 12
	}
	for _, cgroups := range []string{"auto", "off"} {
		t.Run("cgroups "+cgroups, func(t *testing.T) {
			seen := 0
			for range rounds {
				seen += killOnce(t, cgroups, time.Duration(rand.Int64N(int64(250*time.Millisecond))))
			}
			if seen == 0 {
				t.Error("no kill left a process or a file: the test tests nothing")
			}
			t.Logf("%d kills left %d files and processes to remove", rounds, seen)
		})
	}
}

// killOnce returns how much the killed controller left.
func killOnce(t *testing.T, cgroups string, after time.Duration) int {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	stateDir := filepath.Join(run, "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), controllerVariable+"="+stateDir, "PLIMSOLL_TEST_CGROUPS="+cgroups)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
	if strings.Contains(out.String(), "controller:") {
		t.Fatalf("the controller failed by itself: %s", out.String())
	}
	left := len(remains(run))
	entries, err := readJournal(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		place, err := Provider{}.New(target.Config{Options: target.Options{"dir": filepath.Dir(run)}})
		if err != nil {
			t.Fatal(err)
		}
		gone, err := place.Destroy(t.Context(), stateDir)
		if err != nil || len(gone) > 0 {
			t.Fatalf("destroy after %v: %v; remains %q", after, err, gone)
		}
	}
	if still := remains(run); len(still) > 0 {
		t.Fatalf("left after a kill at %v: %q", after, still)
	}
	for _, e := range entries {
		if e.Op == "run" {
			if p := running("environ", e.Mark); len(p) > 0 {
				t.Fatalf("processes %q still carry the mark", p)
			}
		}
		if e.Op == "cgroup" {
			if _, err := os.Stat(e.Path); err == nil {
				t.Fatalf("control group %s is left", e.Path)
			}
		}
	}
	return left
}

// TestDestroyLeavesStrangers gives Destroy a journal that names things which are not, or no longer, the run's.
func TestDestroyLeavesStrangers(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	self, ok := readProcess(stranger.Process.Pid)
	if !ok {
		t.Fatal("the stranger is gone")
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(outside, "kept"), 0o755))
	mark := strings.Repeat("ab", markLength/2)
	for name, c := range map[string]struct {
		entries []entry
		remains bool
	}{
		"recycled process id": {entries: []entry{{Op: "run", Mark: mark, Boot: boot},
			{Op: "process", PID: self.pid, Start: self.start - 1}}},
		"another boot": {entries: []entry{{Op: "run", Mark: mark, Boot: "x"},
			{Op: "process", PID: self.pid, Start: self.start}}},
		"no mark": {entries: []entry{{Op: "run", Boot: boot}}, remains: true},
		"climbing name": {entries: []entry{{Op: "run", Mark: mark, Boot: boot}, {Op: "work"},
			{Op: "sandbox", Name: "../outside"}}, remains: true},
		"foreign group": {entries: []entry{{Op: "run", Mark: mark, Boot: boot}, {Op: "cgroup", Path: outside}}},
		"linked sandbox": {entries: []entry{{Op: "run", Mark: mark, Boot: boot}, {Op: "work"},
			{Op: "sandbox", Name: "link"}}},
		"refused sandbox": {entries: []entry{{Op: "run", Mark: mark, Boot: boot}, {Op: "work"},
			{Op: "sandbox", Name: "foreign"},
			{Op: "refused", Name: "foreign"}}, remains: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			must(os.MkdirAll(filepath.Join(run, "work", "foreign"), 0o755))
			if name == "linked sandbox" {
				must(os.Remove(filepath.Join(run, "work", "foreign")))
				must(os.Symlink(outside, filepath.Join(run, "work", "link")))
			}
			j, err := openJournal(filepath.Join(run, "state"))
			must(err)
			must(j.add(true, c.entries...))
			must(j.close())
			place, err := Provider{}.New(target.Config{})
			must(err)
			remains, err := place.Destroy(t.Context(), filepath.Join(run, "state"))
			if (err != nil || len(remains) > 0) != c.remains {
				t.Errorf("destroy: %v, remains %q", err, remains)
			}
			if _, ok := readProcess(self.pid); !ok {
				t.Fatal("a process that is not ours was killed")
			}
			if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
				t.Fatalf("files that are not ours: %v", err)
			}
			if _, err := os.Stat(filepath.Join(run, "work", "foreign")); err != nil && name != "linked sandbox" {
				t.Fatalf("a folder that is not ours: %v", err)
			}
		})
	}
}

// TestDestroyOfLiveRun must not take a run away from the process that executes it.
func TestDestroyOfLiveRun(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	stateDir := filepath.Join(run, "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), controllerVariable+"="+stateDir, "PLIMSOLL_TEST_CGROUPS=auto")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // "provisioned"
		t.Fatal(err)
	}
	place, err := Provider{}.New(target.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = place.Destroy(t.Context(), stateDir)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("destroy: %v: want a refusal that names process %d", err, cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if remains, err := place.Destroy(t.Context(), stateDir); err != nil || len(remains) > 0 {
		t.Errorf("destroy after its end: %v, %q", err, remains)
	}
}

// TestSignalsToRecycledIDs: a process that has the id of another, with another start time, is never signalled.
func TestSignalsToRecycledIDs(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	self, ok := readProcess(stranger.Process.Pid)
	if !ok {
		t.Fatal("the stranger is gone")
	}
	for _, start := range []uint64{self.start - 1, self.start + 1, 0} {
		former := self
		former.start = start
		if err := former.kill(); err != nil {
			t.Error(err)
		}
		if err := former.signal(unix.SIGSTOP); err != nil {
			t.Error(err)
		}
	}
	// The signal that is meant for it arrives first when none of the others was sent.
	if err := self.signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	state, err := stranger.Process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if ws := state.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGTERM {
		t.Errorf("it ended by %v", ws.Signal())
	}
}

// TestDestroyOfLinkedWork: a work folder that has become a symbolic link is left alone with what it leads to.
func TestDestroyOfLinkedWork(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	kept := filepath.Join(run, "elsewhere", "vm", "kept")
	state := abandoned(t, run, entry{Op: "work"}, entry{Op: "sandbox", Name: "vm"})
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, nil, 0o644),
		os.Symlink("elsewhere", filepath.Join(run, "work"))); err != nil {
		t.Fatal(err)
	}
	place, err := Provider{}.New(target.Config{})
	if err != nil {
		t.Fatal(err)
	}
	remains, err := place.Destroy(t.Context(), state)
	if diff := cmp.Diff([]string{filepath.Join(run, "work")}, remains); diff != "" || err == nil {
		t.Errorf("%v: remains %s", err, diff)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if link, err := os.Readlink(filepath.Join(run, "work")); err != nil || link != "elsewhere" {
		t.Errorf("the link is now %q, %v", link, err)
	}
}

// TestDestroyTellsWhatRemains of a run whose sandboxes could all be removed; once that is gone, it is done.
func TestDestroyTellsWhatRemains(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	foreign := filepath.Join(run, "work", "foreign")
	state := abandoned(t, run, entry{Op: "work"}, entry{Op: "sandbox", Name: "vm"})
	files := filepath.Join(run, "work", "vm", "files")
	if err := errors.Join(os.MkdirAll(files, 0o755), os.WriteFile(foreign, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	place, err := Provider{}.New(target.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		remains, err := place.Destroy(t.Context(), state)
		diff := cmp.Diff([]string{filepath.Join(run, "work")}, remains)
		if diff != "" || err == nil || !strings.Contains(err.Error(), "not ours") {
			t.Errorf("%v: remains %s", err, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "work", "vm")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the sandbox: %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if remains, err := place.Destroy(t.Context(), state); err != nil || remains != nil {
		t.Errorf("%v, %q", err, remains)
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("in the state folder: %v, %v", left, err)
	}
}

// abandoned writes the journal of a run of this boot that has died, and returns its state folder.
func abandoned(t *testing.T, run string, entries ...entry) string {
	t.Helper()
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(run, "state")
	j, err := openJournal(state)
	if err != nil {
		t.Fatal(err)
	}
	entries = append([]entry{{Op: "run", Mark: newMark(), Boot: boot}}, entries...)
	if err := errors.Join(j.add(true, entries...), j.close()); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestDisksElsewhere: data disks that were asked for in a folder of the user's lie in one of the run's own there, which
// a fresh process removes; what else lies there stays, and so does a folder that only a journal of others names.
func TestDisksElsewhere(t *testing.T) {
	disks, run := t.TempDir(), t.TempDir()
	kept := filepath.Join(disks, "kept")
	if err := os.WriteFile(kept, []byte("the user's"), 0o600); err != nil {
		t.Fatal(err)
	}
	stateDir := filepath.Join(run, "state")
	if err := os.Mkdir(stateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	options := target.Options{"dir": disks, "reserve": "1MiB", "cgroups": "off"}
	place, err := Provider{}.New(target.Config{Nodes: 1, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	c, err := place.Provision(t.Context(), target.Request{RunID: "r", StateDir: stateDir})
	if err != nil {
		t.Fatal(err)
	}
	maker, _ := c.(target.VMMaker)
	if err := maker.CreateTemplate(t.Context(), target.Template{Name: "gold",
		DiskBytes: []int64{1 << 20}}); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(disks, "plimsoll-*", "gold", "sdb.img")); len(found) != 1 {
		t.Errorf("disks: %v", found)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	fresh, err := Provider{}.New(target.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if remains, err := fresh.Destroy(t.Context(), stateDir); err != nil || remains != nil {
		t.Errorf("%v, %v", remains, err)
	}
	if left, _ := os.ReadDir(disks); len(left) != 1 || left[0].Name() != "kept" {
		t.Errorf("left: %v", left)
	}
	forged := fmt.Sprintf(
		`{"op":"run","run":"r","mark":"%032d"}`+"\n"+`{"op":"work","path":%q}`+"\n"+`{"op":"sandbox","name":"kept"}`+"\n",
		1, disks)
	if err := os.WriteFile(filepath.Join(stateDir, journalName), []byte(forged), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Destroy(t.Context(), stateDir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a journal of others had it removed: %v", err)
	}
}

// Disks are dealt out in turn over the folders given, member by member, and a snapshot of each lies beside it. A fresh
// process that knows the state folder only finds all of them again.
func TestDisksDealtOut(t *testing.T) {
	t.Parallel()
	one, two, run := t.TempDir(), t.TempDir(), t.TempDir()
	stateDir := filepath.Join(run, "state")
	if err := os.Mkdir(stateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	place, err := Provider{}.New(target.Config{Nodes: 1, Options: target.Options{"dir": one + ":" + two,
		"reserve": "1MiB", "cgroups": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	open, err := place.Provision(t.Context(), target.Request{RunID: "r", StateDir: stateDir,
		Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
	if err != nil {
		t.Fatal(err)
	}
	c := open.(*cluster)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.CreateTemplate(t.Context(), target.Template{Name: "gold", DiskBytes: []int64{1 << 20, 1 << 20, 1 << 20}}))
	must(c.Clone(t.Context(), target.Clone{Source: "gold", Members: []target.Placement{{Name: "a"}, {Name: "b"}}}))
	must(c.Snapshot(t.Context(), "s", []string{"a"}))
	must(c.Restore(t.Context(), "s", "a"))
	images := func(dir string) (found []string) {
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".img") && !strings.Contains(p, "gold") {
				rel, _ := filepath.Rel(dir, p)
				_, rel, _ = strings.Cut(rel, "/")
				found = append(found, rel)
			}
			return nil
		})
		return found
	}
	want := [][]string{{"a/sdb.img", "a/sdd.img", "a/snapshots/s/sdb.img", "a/snapshots/s/sdd.img", "b/sdc.img"},
		{"a/sdc.img", "a/snapshots/s/sdc.img", "b/sdb.img", "b/sdd.img"}}
	if diff := cmp.Diff(want, [][]string{images(one), images(two)}); diff != "" {
		t.Errorf("disks:\n%s", diff)
	}
	if text := fmt.Sprintf("disks of b: sdb in %s, sdc in %s, sdd in %s", two, one, two); !slices.Contains(said, text) {
		t.Errorf("not said %q: %q", text, said)
	}
	must(c.Delete(t.Context(), []string{"a"}))
	if left := images(two); len(left) != 2 {
		t.Errorf("deleted, and there are: %q", left)
	}
	must(c.Close())
	fresh, err := Provider{}.New(target.Config{})
	must(err)
	remains, err := fresh.Destroy(t.Context(), stateDir)
	must(err)
	for _, dir := range []string{one, two} {
		if left, _ := os.ReadDir(dir); len(left) > 0 || len(remains) > 0 {
			t.Errorf("left: %v, %v", left, remains)
		}
	}
}

// Folders that no disks can be put in are refused by name, all at once.
func TestStoreFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/in", "b", "c:d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string][]string{
		"a:b":               nil,
		"c:d":               nil,
		"a:a":               {"a: is the same folder as "},
		"b:link":            {"link: is the same folder as "},
		"a:a/in":            {"a/in: lies in "},
		"a/in:a":            {"a: holds "},
		"none:file:b:a/in:": {"none: no such file", "file: is no folder", "a folder without a name"},
		"/dev/null:b":       {"/dev/null: is a character device"},
	} {
		parts := strings.Split(given, ":")
		for i, p := range parts {
			if p != "" && p[0] != '/' {
				parts[i] = filepath.Join(dir, p)
			}
		}
		text := strings.Join(parts, ":")
		if given == "c:d" {
			text = filepath.Join(dir, given)
		}
		dirs, err := storeFolders(text)
		if len(want) == 0 {
			if err != nil || given == "a:b" && len(dirs) != 2 || given == "c:d" && len(dirs) != 1 {
				t.Errorf("%q: %q, %v", given, dirs, err)
			}
			continue
		}
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: error %v does not say %q", given, err, w)
			}
		}
	}
}
