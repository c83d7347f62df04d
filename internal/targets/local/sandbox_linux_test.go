package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
)

const (
	errNoSpace      = unix.ENOSPC
	errTooManyFiles = unix.EMFILE
	errTooLarge     = unix.EFBIG
	errReadOnly     = unix.EROFS
)

// sandboxes opens a cluster with a template and one VM, a, that is on.
func sandboxes(t *testing.T, options target.Options, size int64) (*cluster, *host) {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	if options["reserve"] == "" {
		options["reserve"] = "1MiB"
	}
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	tc, err := p.Provision(t.Context(), target.Request{RunID: "run", StateDir: filepath.Join(run, "state"),
		Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	c := tc.(*cluster)
	t.Cleanup(func() {
		if remains, err := p.Destroy(context.Background(), filepath.Join(run, "state")); err != nil ||
			len(remains) > 0 {
			t.Errorf("destroy: %v, %q", err, remains)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		c.goroutines.Wait()
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.CreateTemplate(t.Context(), target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{size}}))
	must(c.Clone(t.Context(), target.Clone{Source: "t", Members: []target.Placement{{Name: "a"}}}))
	must(c.PowerOn(t.Context(), []string{"a"}, 1))
	h, err := c.Host("a")
	must(err)
	return c, h.(*host)
}

// finish runs a shell command and returns its exit and output.
func finish(t *testing.T, h *host, script string) (target.Exit, string, target.Process) {
	t.Helper()
	p, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", script}, Stdout: "o", Stderr: "o"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out, err := target.ReadFile(t.Context(), h, "o", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(out), p
}

func TestDisksTakeTheirSpace(t *testing.T) {
	const size = 8 << 20
	c, h := sandboxes(t, target.Options{}, size)
	// The template's takes none: nobody writes to it.
	for name, want := range map[string]int64{filepath.Join(c.workDir, "t", "sdb.img"): 0, h.Disks()[0].Path: size} {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		if st.Size != size || st.Blocks*512 < want || want == 0 && st.Blocks > 0 {
			t.Errorf("%s: %d bytes long, %d taken: want %d and %d", name, st.Size, st.Blocks*512, size, want)
		}
	}
}

// TestLimitsAreEnforced runs where control groups are permitted, and says so where not.
func TestLimitsAreEnforced(t *testing.T) {
	c, h := sandboxes(t, target.Options{}, 1<<20)
	if c.groups.cpu.dir == "" || c.groups.memory.dir == "" {
		t.Skipf("limits cannot be tested here: CPU %q, memory %q", c.groups.cpu.why, c.groups.memory.why)
	}
	read := func(b controlBase, v1, v2 string) string {
		t.Helper()
		if b.v2 {
			v1 = v2
		}
		data, err := os.ReadFile(filepath.Join(b.dir, c.groups.name, h.b.key, v1))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	if got := read(c.groups.cpu, "cpu.cfs_quota_us", "cpu.max"); !strings.HasPrefix(got, "100000") {
		t.Errorf("one CPU is a quota of %q", got)
	}
	if got := read(c.groups.memory, "memory.limit_in_bytes", "memory.max"); got != "67108864" {
		t.Errorf("64 MiB are a limit of %q", got)
	}
	// A process that wants more memory than its VM has does not get it.
	exit, out, _ := finish(t, h, `head -c 100000000 /dev/zero | tr '\0' x | sh -c 'v=$(cat); echo ${#v}'`)
	if strings.Contains(out, "100000000") {
		t.Errorf("100 MB fitted into 64 MiB: %+v %q", exit, out)
	}
	// It is told from one that somebody killed.
	for script, want := range map[string]target.Exit{
		"exec tail /dev/zero": {Code: -1, Signal: "killed", Starved: 1},
		"kill -9 $$":          {Code: -1, Signal: "killed"},
	} {
		if exit, out, _ := finish(t, h, script); exit != want {
			t.Errorf("%s: %+v, want %+v: %s", script, exit, want, out)
		}
	}
	// Two busy processes in a VM of one CPU get no more than one, with a little for scheduling.
	began := time.Now()
	_, _, p := finish(t, h, `b() { i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }; b & b & wait`)
	wall, u := time.Since(began), p.Usage()
	if cpu := u.User + u.System; cpu > wall+wall/4+100*time.Millisecond {
		t.Errorf("%v of CPU time in %v with one CPU", cpu, wall)
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_OPERATOR", "leaked")
	_, h := sandboxes(t, target.Options{}, 1<<20)
	exit, out, _ := finish(t, h, `env; pwd; echo fd; ls /proc/self/fd; ps -o sid= -p $$ | tr -d ' '; echo $$`)
	if exit != (target.Exit{}) {
		t.Fatalf("%+v: %s", exit, out)
	}
	if strings.Contains(out, "leaked") {
		t.Error("the environment of plimsoll reaches commands")
	}
	for _, want := range []string{"PLIMSOLL_RUN=", "PLIMSOLL_UNIT=a/", "HOME=" + h.dir(), "\n" + h.dir() + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if _, after, _ := strings.Cut(out, "fd\n"); strings.Contains(after, "\n4\n") {
		t.Errorf("the command has inherited descriptors:\n%s", after)
	}
}

func TestSymbolicLinksDoNotLeadOut(t *testing.T) {
	c, h := sandboxes(t, target.Options{}, 1<<20)
	secret := filepath.Join(filepath.Dir(c.workDir), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, out, _ := finish(t, h,
		"ln -s "+secret+" link; ln -s ../../../ up; ln -s ../sdb.img disk"); exit.Code != 0 {
		t.Fatal(out)
	}
	for _, name := range []string{"link", "up/secret", "disk"} {
		if data, err := target.ReadFile(t.Context(), h, name, 0, 10); err == nil {
			t.Errorf("%s: read %q", name, data)
		}
		err := target.WriteFile(t.Context(), h, name, []byte("x"))
		if strings.Contains(name, "/") == (err == nil) { // a link is replaced by the file and not followed
			t.Errorf("%s: written: %v", name, err)
		}
		_ = h.Remove(t.Context(), name) // removes the link at most
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("the file outside is now %q, %v", data, err)
	}
	if data, err := os.ReadFile(h.Disks()[0].Path); err != nil || bytes.Contains(data, []byte("x")) {
		t.Errorf("the disk was written to: %v", err)
	}
}

func TestDiscardGivesSpaceBack(t *testing.T) {
	_, h := sandboxes(t, target.Options{}, 1<<20)
	if err := target.WriteFile(t.Context(), h, "log", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	taken := func() int64 {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(h.dir(), "log"), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	before := taken()
	if err := h.Discard(t.Context(), "log", 1<<19); err != nil {
		t.Fatal(err)
	}
	if after := taken(); after > before-(1<<19) {
		if storage := readStorage(h.c.system, h.dir()); storage.punch != "supported" {
			t.Skipf("this file system cannot punch holes: %s", storage.punch)
		}
		t.Errorf("%d bytes taken, %d before", after, before)
	}
}

func TestRoomIsKept(t *testing.T) {
	free, err := regular.Free(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	c.reserve = 2 * free // more than anything else on this machine can free meanwhile
	err = c.CreateTemplate(t.Context(), target.Template{Name: "big", DiskBytes: []int64{1 << 30}})
	for _, want := range []string{"big", "1 GiB needed", "free", "reserve"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: does not say %q", err, want)
		}
	}
	if err := c.Snapshot(t.Context(), "s", []string{"a"}); err == nil &&
		readStorage(c.system, c.workDir).reflink != "supported" {
		t.Error("a snapshot was copied into the reserve")
	}
}

func TestFolderThatWasThereBefore(t *testing.T) {
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	foreign := filepath.Join(c.workDir, "b", "precious")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	err := c.Clone(t.Context(), target.Clone{Source: "t", Members: []target.Placement{{Name: "b"}}})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("clone: %v", err)
	}
	entries, err := readJournal(filepath.Join(filepath.Dir(c.workDir), "state"))
	if err != nil {
		t.Fatal(err)
	}
	var w wreck
	w.read(entries)
	for _, name := range w.sandboxes {
		if name == "b" {
			t.Error("destroy would remove a folder that was there before")
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Dir(foreign)); err != nil { // or destroy rightly reports it
		t.Fatal(err)
	}
}

func TestUsageOfRunningCommand(t *testing.T) {
	for _, groups := range []string{"auto", "off"} {
		t.Run("cgroups "+groups, func(t *testing.T) {
			c, h := sandboxes(t, target.Options{"cgroups": groups}, 1<<20)
			p, err := h.Start(t.Context(), target.Command{Argv: []string{"sh", "-c", "(while :; do :; done) & wait"}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for p.Usage().User < 50*time.Millisecond {
				if err := c.clock.Sleep(ctx, 10*time.Millisecond); err != nil {
					t.Fatalf("usage never reached 50 ms: %+v", p.Usage())
				}
			}
			m, err := c.ClusterMetrics(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m[0].Name != "CpuUsage.Avg.Percent" || m[0].Value <= 0 || m[len(m)-1].Value < 0 {
				t.Errorf("metrics of a busy node: %+v", m)
			}
			running := p.Usage()
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if u := p.Usage(); groups == "auto" && c.groups.track.dir != "" && u.User < running.User {
				t.Errorf("usage went from %+v to %+v at the end", running, u)
			}
		})
	}
}

func TestCopyKeepsHolesAndContents(t *testing.T) {
	c, h := sandboxes(t, target.Options{}, 4<<20)
	if _, out, _ := finish(t, h,
		`printf head | dd of="`+h.Disks()[0].Path+`" conv=notrunc status=none; printf tail | dd of="`+
			h.Disks()[0].Path+`" conv=notrunc seek=4194300 bs=1 status=none`); out != "" {
		t.Fatal(out)
	}
	if err := c.Clone(t.Context(), target.Clone{Source: "a", Members: []target.Placement{{Name: "b"}}}); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cmp", h.Disks()[0].Path,
		filepath.Join(c.workDir, "b", "sdb.img")).CombinedOutput(); err != nil {
		t.Errorf("the clone differs: %s", out)
	}
}

// What is to stay free is not given to a run: not in the facts that a plan is made from, nor when the run begins.
func TestReserveIsNotGivenAway(t *testing.T) {
	dir := t.TempDir()
	p, err := Provider{}.New(target.Config{Options: target.Options{"dir": dir, "reserve": "1PiB"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Check(t.Context())
	if err != nil || f.FreeBytes != 0 || f.FreeMemory != 0 {
		t.Errorf("%v: %d bytes and %d of memory are free for runs", err, f.FreeBytes, f.FreeMemory)
	}
	requests := map[string]target.Request{"disk space: 1 B needed": {DiskBytes: 1},
		"memory: 1 B needed": {MemoryBytes: 1}}
	for name, r := range requests {
		r.RunID, r.StateDir = "run", filepath.Join(dir, "run", "state")
		_, err := p.Provision(t.Context(), r)
		for _, want := range []string{name, "1 PiB kept in reserve"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %q", err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that was refused has made its folder: %v", err)
	}
}
