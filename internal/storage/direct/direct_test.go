package direct_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"plimsoll/internal/storage/direct"
)

// A file is written past the page cache where that can be, and says where it cannot.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := direct.Create(filepath.Join(dir, "new"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	b := direct.Buffer(2 * direct.Align)
	_, err = f.WriteAt(b, direct.Align)
	fmt.Println(err, f.Direct || f.Why != "")
	// Output: <nil> true
}

func TestBuffer(t *testing.T) {
	t.Parallel()
	for n := range 100 {
		b := direct.Buffer(n)
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b) != n || cap(b) != n || at%direct.Align != 0 {
			t.Fatalf("a buffer of %d bytes has %d, room for %d, at %x", n, len(b), cap(b), at)
		}
	}
}

// TestNothingElse: what is neither file nor block device is refused at once, and what exists is not made anew.
func TestNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{pipe: "a named pipe", dir: "a folder", "/dev/zero": "a device",
		filepath.Join(dir, "none"): "no such file"} {
		if f, err := direct.OpenRead(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := direct.Create(pipe); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}

// TestWritten tells what was written from holes, and from space set aside.
func TestWritten(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("holes are known on Linux only")
	}
	f, err := direct.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 512 << 10} {
		if _, err := f.WriteAt(direct.Buffer(64<<10), at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ from, to, want int64 }{{0, 1 << 20, 128 << 10}, {0, 4096, 4096},
		{64 << 10, 512 << 10, 0}, {32 << 10, 516 << 10, 36 << 10}, {900 << 10, 1 << 20, 0}} {
		n, known, err := f.Written(c.from, c.to)
		if err != nil || known && n != c.want {
			t.Errorf("%d to %d: %d, %v, want %d", c.from, c.to, n, err, c.want)
		}
		if !known {
			t.Skip("this file system has no map of holes")
		}
	}
	if n, err := f.Allocated(); err != nil || n < 128<<10 || n >= 1<<20 {
		t.Errorf("%d bytes are allocated, %v", n, err)
	}
}
