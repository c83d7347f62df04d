package vioperf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/testkit/devicetest"
	"plimsoll/internal/testkit/needs"
)

func onMount(dir string) Options {
	o := Defaults()
	o.Dir, o.Threads, o.BlockBytes, o.Duration, o.Verify = dir, 2, 64<<10, 3*time.Second, true
	return o
}

// A real file system that is full: at its reserve the run ends, or goes round; without a reserve the kernel ends it.
// What was written is right in all cases, and nothing is left behind.
func TestRealFullDisk(t *testing.T) {
	dir := devicetest.Mounted(t, "ext4", 64<<20)
	for _, c := range []struct {
		reserve  int64
		whenFull string
		ended    Ending
	}{{-1, Stop, Full}, {8 << 20, Wrap, Time}, {0, Stop, Full}} {
		o := onMount(dir)
		o.Reserve, o.WhenFull = c.reserve, c.whenFull
		if c.whenFull == Wrap {
			o.Rate = 40e6
		}
		res, err := Write(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if res.Ended != c.ended || res.Verification.Wrong() > 0 || res.Verification.Blocks == 0 || res.Bytes < 10<<20 {
			t.Errorf("reserve %d, %s: ended by %s (%s) after %d bytes; %s; %v", c.reserve, c.whenFull, res.Ended,
				res.Error, res.Bytes, res.Verification, res.Verification.Found)
		}
		if (res.Wrapped > 0) != (c.whenFull == Wrap) {
			t.Errorf("wrapped after %v", res.Wrapped)
		}
		if !strings.HasPrefix(res.Device, "loop") || res.DeviceSaw == nil || res.DeviceSaw.Writes == 0 {
			t.Errorf("device %q saw %+v", res.Device, res.DeviceSaw)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 { // lost+found
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := devicetest.Mounted(t, "ext4", 32<<20)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	o := onMount(dir)
	o.Reserve = 0
	_, err := Write(t.Context(), o)
	if want := dir + ": the file system is read-only: mount it for writing, or give another folder"; fmt.Sprint(err) !=
		want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A file system that goes read-only, and whose mount goes away, while it is written.
func TestFileSystemThatGoesAway(t *testing.T) {
	dir := devicetest.Mounted(t, "ext4", 64<<20)
	o := onMount(dir)
	o.Rate, o.Duration, o.Verify = 5e6, 30*time.Second, false
	told := false
	o.Progress = func(Second) {
		if !told {
			told = true
			// The kernel's own switch for a file system that must stop at once (EXT4_IOC_SHUTDOWN, as xfs's GOINGDOWN).
			f, err := os.Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			const shutdown, noLog = 0x8004587d, 2
			if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLog); err != nil {
				t.Error(err)
			}
			_ = f.Close() // opened for reading
		}
	}
	res, err := Write(t.Context(), o)
	if res == nil || res.Ended != Failed || res.Bytes == 0 || !strings.Contains(res.Error, "input/output error") {
		t.Fatalf("%+v, %v", res, err)
	}
	// Its files cannot be removed any more: the error says so by name.
	if err == nil || !strings.Contains(err.Error(), FolderPrefix) || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("%v", err)
	}
}

func TestPlacesThatAreNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		file:             ": it is no folder: give the folder in which to write",
		file + "-absent": ": there is no such folder: make it, or give another",
		"/proc":          "0 B of 0 B are free",
		"/dev/null":      "it is no folder",
	} {
		o := onMount(dir)
		if _, err := Write(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}
}

// Files in memory are written, too, and the result says that no device saw them.
func TestMemory(t *testing.T) {
	const shm = "/dev/shm"
	place, err := thisMachine().look(shm)
	needs.That(t, err == nil && place.Memory(), "tmpfs at "+shm, "mount -t tmpfs tmpfs "+shm)
	dir, err := os.MkdirTemp(shm, "vioperf-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := onMount(dir)
	o.Rate, o.Duration = 10e6, 300*time.Millisecond
	res, err := Write(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Ended != Time || res.NoDevice != "tmpfs is memory, no device" || res.Verification.FromMemory !=
		"tmpfs is memory" || res.Verification.Wrong() > 0 {
		t.Errorf("%+v, %+v", res, res.Verification)
	}
}
