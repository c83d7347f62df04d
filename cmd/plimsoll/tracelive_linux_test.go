package main

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

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
)

// TestTraceADevice traces a loop device at work until it is interrupted: what was seen until then is told, the kept
// text tells the same once more, and nothing remains of the tracing.
func TestTraceADevice(t *testing.T) {
	dir := needs.Folder(t)
	file := filepath.Join(dir, "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 64<<20)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "losetup", "-f", "--show", file).Output()
	needs.That(t, err == nil, "loop devices", "root, and losetup of util-linux")
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
			t.Errorf("losetup -d %s: %v: %s", device, err, out)
		}
	})
	ctx, end := context.WithCancel(t.Context())
	written, failed := make(chan struct{}), make(chan error, 1)
	go func() { failed <- inARow(ctx, device, written) }()
	defer func() {
		end()
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}()
	<-written
	s := session{t: t, runs: filepath.Join(dir, "runs")}
	kept := filepath.Join(dir, "kept.txt")
	c := s.command(t.Context(), "trace", device, "--duration", "1h", "--save", kept)
	var text, errs bytes.Buffer
	c.Stdout, c.Stderr = &text, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for { // until something was seen
		if info, err := os.Stat(kept); err == nil && info.Size() > 64<<10 {
			break
		}
		select {
		case err := <-ended:
			needs.That(t, c.ProcessState.ExitCode() != exit.Refused, "tracefs", "root, and a kernel that traces")
			t.Fatalf("%v: %s", err, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	const sentence = "\nLog: sequential 16 KiB writes.\n"
	if !strings.Contains(text.String(), sentence) || !strings.Contains(text.String(), device+" (tracefs, live)") {
		t.Errorf("%s%s", text.String(), errs.String())
	}
	if again := s.must("trace", kept); !strings.Contains(again, sentence) {
		t.Error(again)
	}
}

// inARow writes blocks of 16 KiB in a row, again from the beginning at the end, and says when it has begun.
func inARow(ctx context.Context, device string, begun chan<- struct{}) error {
	f, err := os.OpenFile(device, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		close(begun)
		return err
	}
	block, err := unix.Mmap(-1, 0, 16<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned
	for at := int64(0); err == nil && ctx.Err() == nil; at = (at + 16<<10) % (64 << 20) {
		_, err = f.WriteAt(block, at)
		if at == 0 && begun != nil {
			close(begun)
			begun = nil
		}
	}
	return errors.Join(err, unix.Munmap(block), f.Close())
}
