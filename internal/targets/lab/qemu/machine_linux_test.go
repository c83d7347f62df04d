package qemu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// limit bounds what takes a moment on a quiet machine.
const limit = 90 * time.Second

// counter makes a machine that boots testdata/guest.bin, which counts in sector 1 of its disk.
func counter(t *testing.T, format string) *Machine {
	t.Helper()
	needs.QEMU(t)
	parent := t.TempDir()
	needs.Outlives(t, parent)
	folder := filepath.Join(parent, strings.Repeat("a-long-path,", 12)) // of no socket
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/guest.bin")
	if err != nil {
		t.Fatal(err)
	}
	raw := filepath.Join(folder, "disk.raw")
	if err := os.WriteFile(raw, append(program, make([]byte, mebibyte-len(program))...), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := raw
	if format == Qcow2 {
		disk = filepath.Join(folder, "disk.qcow2")
		if err := CopyImage(t.Context(), disk, raw, Raw); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Create(folder, Spec{Name: "counter", Accel: TCG, CPUs: 1, MemoryBytes: 16 * mebibyte,
		Disks: []Disk{{Path: disk, Format: format, Serial: "counter"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Kill(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// start starts it, and waits until it counts.
func start(t *testing.T, m *Machine) {
	t.Helper()
	if err := m.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	counts(t, m)
}

// counts waits until the machine has counted further.
func counts(t *testing.T, m *Machine) {
	t.Helper()
	file := filepath.Join(m.Folder, SerialFile)
	before, _ := os.ReadFile(file)
	for deadline := time.Now().Add(limit); ; time.Sleep(pollEvery) {
		now, err := os.ReadFile(file)
		if err == nil && len(now) > len(before)+2 {
			if text := strings.Trim(string(now), "."); text != "" {
				t.Fatalf("it says %q", text)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not count: %q", m.Spec.Name, now)
		}
	}
}

// counted returns what the disk of a machine that is off holds.
func counted(t *testing.T, disk Disk) uint32 {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	_, err := qemuImg(t.Context(), raw, "convert", "-f", disk.Format, "-O", Raw, disk.Path, raw)
	must(t, err)
	data, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint32(data[512:])
}

func state(t *testing.T, m *Machine, want string) {
	t.Helper()
	if got, err := m.State(t.Context()); err != nil || got != want {
		t.Fatalf("state %q (%v), want %q", got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLifeOfAMachine(t *testing.T) {
	t.Parallel()
	m := counter(t, Raw)
	state(t, m, "off")
	start(t, m)
	state(t, m, "running")
	if err := m.Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "it runs already") {
		t.Fatal(err)
	}
	// A fresh process has nothing but the folder.
	again, err := Open(m.Folder)
	must(t, err)
	if !cmp.Equal(again, m) {
		t.Fatal(cmp.Diff(again, m))
	}
	must(t, again.Pause(t.Context()))
	state(t, m, "paused")
	must(t, again.Resume(t.Context()))
	counts(t, m)
	must(t, again.Reset(t.Context()))
	counts(t, m)
	if got := m.Console(2); got != `".."` {
		t.Errorf("its console ends with %s", got)
	}
	button(t, again)
	must(t, again.Limit(t.Context(), 0, Limits{IOPS: 5}))
	must(t, again.Grow(t.Context(), 0, 2*mebibyte))
	must(t, again.Kill())
	must(t, again.Kill())
	state(t, m, "off")
	if info, err := ImageInfo(t.Context(), m.Spec.Disks[0].Path); err != nil || info.VirtualBytes != 2*mebibyte {
		t.Fatal(info, err)
	}
	if counted(t, m.Spec.Disks[0]) == 0 {
		t.Fatal("nothing was written")
	}
	// Told that its disk has grown, the BIOS takes that for an error of the next write, if it still came to one.
	must(t, os.Remove(filepath.Join(m.Folder, SerialFile)))
	start(t, m)
}

// button presses it: this guest does not heed it, QEMU tells of it.
func button(t *testing.T, m *Machine) {
	t.Helper()
	monitor, err := m.Monitor(t.Context())
	must(t, err)
	defer monitor.Close()
	must(t, monitor.Do(t.Context(), "system_powerdown", nil, nil))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		e, err := monitor.Event(ctx)
		must(t, err)
		if e.Name == "POWERDOWN" {
			return
		}
	}
}

// The guest's CPUs are in sockets and NUMA nodes as asked for, each keeps to its CPU of this host, and one that this
// host does not have is an error.
func TestTopology(t *testing.T) {
	t.Parallel()
	m := counter(t, Raw)
	var here unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &here))
	first := 0
	for !here.IsSet(first) {
		first++
	}
	m.Spec.CPUs, m.Spec.Topology = 4, Topology{Sockets: 2, Threads: 2, NUMA: 2, Pins: []int{first}}
	must(t, m.Save())
	start(t, m)
	type place struct {
		Node   int `json:"node-id"`
		Socket int `json:"socket-id"`
		Core   int `json:"core-id"`
		Thread int `json:"thread-id"`
	}
	var cpus []struct {
		Thread int   `json:"thread-id"`
		Props  place `json:"props"`
	}
	must(t, m.order(t.Context(), "query-cpus-fast", nil, &cpus))
	var places []place
	for _, c := range cpus {
		places = append(places, c.Props)
		var set unix.CPUSet
		must(t, unix.SchedGetaffinity(c.Thread, &set))
		if set.Count() != 1 || !set.IsSet(first) {
			t.Errorf("thread %d may run on %d CPUs of this host, want CPU %d only", c.Thread, set.Count(), first)
		}
	}
	want := []place{{0, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Error(diff)
	}
	must(t, m.Kill())
	m.Spec.Topology.Pins = []int{1023}
	if err := m.Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "keep to CPU 1023 of this host") {
		t.Error(err)
	}
	state(t, m, "off")
}

func TestAFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	m := counter(t, Raw)
	must(t, os.Remove(m.Spec.Disks[0].Path))
	err := m.Start(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "No such file or directory") {
		t.Fatal(err)
	}
	state(t, m, "off")
}

// A process file may name a process that is another's by now.
func TestForeignProcessesAreLeftAlone(t *testing.T) {
	t.Parallel()
	m := counter(t, Raw)
	other := exec.Command("sleep", "600")
	must(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	must(t, os.WriteFile(filepath.Join(m.Folder, pidFile), []byte(strconv.Itoa(other.Process.Pid)+"\n"), 0o600))
	state(t, m, "off")
	must(t, m.Kill())
	must(t, other.Process.Signal(unix.Signal(0)))
	start(t, m)
	must(t, os.Remove(filepath.Join(m.Folder, pidFile))) // and a lost one is no reason to forget a machine
	state(t, m, "running")
	must(t, m.Kill())
	state(t, m, "off")
}

func TestSnapshotsOfAGroup(t *testing.T) {
	t.Parallel()
	on, off, raw := counter(t, Qcow2), counter(t, Qcow2), counter(t, Raw)
	if _, err := SnapshotAll(t.Context(), "a", []*Machine{on, raw}); err == nil ||
		!strings.Contains(err.Error(), "keeps none") {
		t.Fatal(err)
	}
	start(t, on)
	paused, err := SnapshotAll(t.Context(), "first", []*Machine{off, on})
	must(t, err)
	if paused <= 0 || paused > limit {
		t.Fatal(paused)
	}
	counts(t, on)
	if err := on.Restore(t.Context(), "first"); err == nil {
		t.Fatal("a running machine was restored")
	}
	must(t, on.Kill())
	disk := on.Spec.Disks[0]
	info, err := ImageInfo(t.Context(), disk.Path)
	must(t, err)
	if len(info.Snapshots) != 1 || info.Snapshots[0].Tag != "first" {
		t.Fatal(info)
	}
	// Cut off in the middle of writing it may have lost counts that it never flushed; the image itself is whole.
	must(t, CheckImage(t.Context(), disk.Path, Qcow2))
	must(t, on.Restore(t.Context(), "first"))
	was := counted(t, disk)
	if was == 0 {
		t.Fatal("the snapshot holds nothing")
	}
	must(t, off.Restore(t.Context(), "first"))
	if n := counted(t, off.Spec.Disks[0]); n != 0 {
		t.Fatal(n)
	}
	start(t, on)
	must(t, on.Kill())
	must(t, on.Restore(t.Context(), "first"))
	if n := counted(t, disk); n != was {
		t.Fatalf("%d after it was restored again, want %d", n, was)
	}
}

func TestLiveMigration(t *testing.T) {
	t.Parallel()
	source := counter(t, Qcow2)
	start(t, source)
	destination, err := Create(t.TempDir(), source.Spec)
	must(t, err)
	defer func() { must(t, destination.Kill()) }()
	// To nowhere: the source goes on.
	must(t, destination.Await(t.Context(), nil))
	state(t, destination, "inmigrate")
	if _, err := Migrate(t.Context(), source, destination, "192.0.2.1"); err == nil {
		t.Fatal("migrated to an address of nobody's")
	}
	state(t, destination, "off")
	counts(t, source)
	// Given up before it began.
	must(t, destination.Await(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Migrate(ctx, source, destination, "127.0.0.1"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	counts(t, source)

	must(t, destination.Await(t.Context(), nil))
	done, err := Migrate(t.Context(), source, destination, "127.0.0.1")
	must(t, err)
	if done.Total <= 0 || done.Downtime < 0 || done.MemoryBytes <= 0 {
		t.Fatalf("%+v", done)
	}
	state(t, source, "off")
	state(t, destination, "running")
	counts(t, destination)
	if err := source.Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Fatalf("two writers of one disk: %v", err)
	}
	must(t, destination.Kill())
	must(t, CheckImage(t.Context(), source.Spec.Disks[0].Path, Qcow2))
}

func TestClonesAreApart(t *testing.T) {
	t.Parallel()
	m := counter(t, Qcow2)
	disk := m.Spec.Disks[0]
	clone := filepath.Join(t.TempDir(), "clone.qcow2")
	must(t, CloneImage(t.Context(), clone, disk.Path, Qcow2))
	must(t, GrowImage(t.Context(), clone, Qcow2, 3*mebibyte))
	info, err := ImageInfo(t.Context(), clone)
	must(t, err)
	if want := (Image{Path: clone, Format: Qcow2, VirtualBytes: 3 * mebibyte, ActualBytes: info.ActualBytes,
		Backing: disk.Path}); !cmp.Equal(info, want) {
		t.Fatal(cmp.Diff(want, info))
	}
	m.Spec.Disks[0] = Disk{Path: clone, Format: Qcow2, IgnoreFlush: true}
	must(t, m.Save())
	start(t, m)
	var nodes []struct {
		Node  string `json:"node-name"`
		Cache struct {
			NoFlush bool `json:"no-flush"`
			Direct  bool
		}
	}
	must(t, m.order(t.Context(), "query-named-block-nodes", map[string]any{"flat": true}, &nodes))
	lies := false
	for _, n := range nodes {
		lies = lies || n.Node == DiskName(0) && n.Cache.NoFlush && n.Cache.Direct
	}
	if !lies {
		t.Fatalf("%+v", nodes)
	}
	must(t, m.Kill())
	if n := counted(t, disk); n != 0 {
		t.Fatalf("the clone's origin has %d", n)
	}
	if err := CheckImage(t.Context(), filepath.Join(t.TempDir(), "none"), Qcow2); err == nil {
		t.Fatal("an image that is not there is whole")
	}
}

// The guest of the tests is no Linux: what cannot be shown to boot is not used, and why is said and kept.
func TestAcceleratorIsProved(t *testing.T) {
	t.Parallel()
	needs.QEMU(t)
	if _, err := os.Stat(device); err == nil {
		kernel := filepath.Join(t.TempDir(), "vmlinuz")
		must(t, os.WriteFile(kernel, make([]byte, 8192), 0o600))
		cache := t.TempDir()
		first, err := prove(t.Context(), kernel, 2*time.Second)
		must(t, err)
		if first.Accel != TCG || !strings.Contains(first.Reason, "emulation: there is a /dev/kvm, but ") {
			t.Fatalf("%+v", first)
		}
		key, err := proofKey(t.Context(), kernel)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(cache, "accelerator-"+key+".json"),
			[]byte(`{"accel":"kvm","reason":"kept","took_ns":7}`), 0o600))
		kept, err := Accelerator(t.Context(), kernel, cache)
		if want := (Proof{Accel: KVM, Reason: "kept", Took: 7, Cached: true}); err != nil || kept != want {
			t.Fatal(kept, err)
		}
		return
	}
	p, err := Accelerator(t.Context(), "/nowhere", "")
	if want := (Proof{Accel: TCG, Reason: "emulation: there is no /dev/kvm"}); err != nil || p != want {
		t.Fatal(p, err)
	}
}
