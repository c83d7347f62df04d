package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/storage/trace"
	"plimsoll/internal/storage/trace/live"
	"plimsoll/internal/storage/trace/read"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	os.Exit(code)
}

// What is no block device is not traced.
func Example() {
	_, ok := live.Device("/dev/null")
	fmt.Println(ok)
	// Output: false
}

// loop is a block device of this test's own.
func loop(t *testing.T) string {
	t.Helper()
	device, _ := devicetest.Loop(t, 64<<20)
	return device
}

func start(ctx context.Context, t *testing.T, device string, o live.Options) *live.Session {
	t.Helper()
	b, ok := live.Device(device)
	if !ok {
		t.Fatalf("%s is no block device", device)
	}
	s, err := live.Start(ctx, b, o)
	needs.That(t, !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENODEV),
		"tracefs", fmt.Sprintf("root, and a kernel that traces: %v", err))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryRequest: each request that was made while it looked on is seen, with its process, issue and completion, and
// nothing remains.
func TestEveryRequest(t *testing.T) {
	device := loop(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := start(ctx, t, device, live.Options{Duration: time.Hour, BufferBytes: 1 << 20})
	dir := s.Dir()
	const n = 50
	writes(t, device, n)
	end()
	var kept bytes.Buffer
	opened, err := read.Open([]read.Input{{Name: device, From: io.TeeReader(s, &kept)}}, "tracefs")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := trace.Analyze(opened, trace.Options{}, opened.Names, opened.Problems, func() error { return nil })
	if err := errors.Join(err, s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains: %v", dir, err)
	}
	if r.Layer.Issued != n || r.Layer.Completed != n || len(r.Operations) != 1 || r.Operations[0].Bytes != n*8192 ||
		r.Operations[0].Service.Count != n || r.Partial {
		t.Errorf("%+v %+v %+v\n%s", r.Layer, r.Operations, r.Problems, kept.String())
	}
	// The kernel tells of threads, and the runtime may go on in another one at any write.
	writes := 0
	for _, p := range r.Processes {
		if p.PID == 0 || p.Name != r.Processes[0].Name {
			t.Errorf("processes %+v", r.Processes)
		}
		writes += int(p.Writes)
	}
	if writes != n || !strings.Contains(kept.String(), "block_rq_issue") {
		t.Errorf("%d writes by processes %+v, want %d", writes, r.Processes, n)
	}
}

// writes writes n blocks of 8 KiB, 64 KiB apart, around the page cache.
func writes(t *testing.T, device string, n int) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // nothing is kept
	// Pages, for their alignment.
	raw, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(raw) }()
	for i := range n {
		if _, err := f.WriteAt(raw, int64(i)<<16); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStale: what a killed process left is removed by the next that starts.
func TestStale(t *testing.T) {
	device := loop(t)
	s := start(t.Context(), t, device, live.Options{Duration: time.Millisecond})
	stale := filepath.Join(filepath.Dir(s.Dir()), "plimsoll-2147483646") // above all numbers of processes
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(s); err != nil {
		t.Fatal(err)
	}
	again := s.Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next := start(t.Context(), t, device, live.Options{Duration: time.Millisecond})
	defer next.Close()
	_, err := os.Stat(stale)
	if !errors.Is(err, os.ErrNotExist) || next.Dir() != again {
		t.Errorf("%s remains: %v", stale, err)
		_ = os.Remove(stale)
	}
}

// TestOneAtATime: a second session of one process is refused rather than mixed up with the first.
func TestOneAtATime(t *testing.T) {
	device := loop(t)
	s := start(t.Context(), t, device, live.Options{Duration: time.Hour})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	b, _ := live.Device(device)
	if second, err := live.Start(t.Context(), b, live.Options{Duration: time.Hour}); err == nil {
		t.Error("a second session began", second.Close())
	}
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Errorf("the first session is gone: %v", err)
	}
}

// TestEndsWhileTheDeviceWorks: a session ends in its time also where there is always more to read, as of a device that
// is faster than its reader.
func TestEndsWhileTheDeviceWorks(t *testing.T) {
	device := loop(t)
	ctx, end := context.WithCancel(t.Context())
	s := start(ctx, t, device, live.Options{Duration: time.Hour})
	writes(t, device, 1)
	end()
	var err error
	buf := make([]byte, 1<<16)
	for range 1000 {
		writes(t, device, 1)
		if _, err = s.Read(buf); err != nil {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("after 1000 reads: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
