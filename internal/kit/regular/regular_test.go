package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// zoo makes a folder with one of everything, and returns it with what is said of each name when it is opened; "" when
// it opens.
func zoo(t *testing.T) (dir string, says map[string]string) {
	t.Helper()
	dir = t.TempDir()
	short, err := os.MkdirTemp("", "z") // the path of a socket has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	in := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for what, err := range map[string]error{
		"file":   os.WriteFile(in("file"), []byte("text"), 0o600),
		"folder": os.Mkdir(in("folder"), 0o700),
		"pipe":   unix.Mkfifo(in("pipe"), 0o600),
		"socket": os.Rename(filepath.Join(short, "s"), in("socket")),
		"inside": os.Symlink("file", in("inside")),
		"device": os.Symlink("/dev/zero", in("device")),
		"to":     os.Symlink("pipe", in("to")),
		"broken": os.Symlink("nowhere", in("broken")),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	return dir, map[string]string{
		"file": "", "inside": "", "folder": "it is a folder, not a file",
		"pipe": "it is a named pipe, and only", "to": "it is a named pipe",
		"socket": "it is a socket", "device": "it is a device", "broken": "no such file", "none": "no such file",
	}
}

// closed checks that nothing in the folder, nor the folder, is still open.
func closed(t *testing.T, dir string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s was left open", to)
		}
	}
}

func TestReadTakesRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir, says := zoo(t)
	defer closed(t, dir)
	for name, want := range says {
		for _, flag := range []int{0, NoLinks} {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err == nil && flag != 0 && info.Mode()&fs.ModeSymlink != 0 {
				want = "it is a symbolic link"
			}
			data, err := Read(filepath.Join(dir, name), flag, 100)
			var path *fs.PathError
			switch {
			case want == "" && (err != nil || string(data) != "text"):
				t.Errorf("%s: %q, %v", name, data, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
				!errors.As(err, &path) || filepath.Base(path.Path) != name):
				t.Errorf("%s with flag %d: %v, want %q", name, flag, err, want)
			}
		}
	}
}

// A name may come to stand for something else between the look and the open.
func TestWhatWasOpenedIsLookedAt(t *testing.T) {
	t.Parallel()
	dir, _ := zoo(t)
	defer closed(t, dir)
	f, err := checked(os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDONLY|noWait, 0))
	if kind := Kind(0); f != nil || !errors.As(err, &kind) || fs.FileMode(kind) != fs.ModeNamedPipe {
		t.Errorf("%v, %v", f, err)
	}
}

func TestDirTakesRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir, says := zoo(t)
	defer closed(t, dir)
	for name, want := range says {
		if name == "folder" {
			want = "is a directory"
		}
		if name == "device" {
			want = "escapes"
		}
		data, err := fs.ReadFile(Dir(dir), name)
		if want == "" && (err != nil || string(data) != "text") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v; want %q", name, data, err, want)
		}
	}
}

func TestDirIsAFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS{"a": {Data: []byte("1")}, "d/b": {Data: []byte("2")}}); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(Dir(dir), "a", "d/b"); err != nil {
		t.Error(err)
	}
	closed(t, dir)
	if _, err := fs.ReadDir(Dir(filepath.Join(dir, "none")), "."); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "hole")
	const refused = "it is larger than 1 MiB"
	for size, want := range map[int64]string{1 << 20: "", 1<<20 + 1: refused, 1 << 40: refused} {
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
			t.Fatal(err)
		}
		data, err := Read(name, 0, 1<<20)
		if want == "" && (err != nil || int64(len(data)) != size) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %d, %v; want %q", size, len(data), err, want)
		}
	}
	// A file of /proc claims to be empty and is not.
	if data, err := Read("/proc/self/status", 0, 1<<20); err != nil || !strings.Contains(string(data), "Pid:") {
		t.Errorf("%q %v", data, err)
	}
	if _, err := Read("/proc/self/status", 0, 10); err == nil {
		t.Error("a file that grows beyond the bound was read")
	}
	// The memory at address 0 is a file's beginning that no one can read.
	if data, err := Read("/proc/self/mem", 0, 10); !errors.Is(err, unix.EIO) {
		t.Errorf("%q %v", data, err)
	}
}

// What is created or written in place obeys the same rule: a link must not lead a writer to somebody's file.
func TestOpenToWrite(t *testing.T) {
	t.Parallel()
	dir, _ := zoo(t)
	for _, name := range []string{"inside", "pipe", "socket", "broken"} {
		f, err := Open(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC|NoLinks)
		if err == nil {
			t.Errorf("%s was opened for writing", name)
			_ = f.Close()
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "text" {
		t.Errorf("the file behind the link: %q, %v", data, err)
	}
	f, err := Open(filepath.Join(dir, "new"), os.O_RDWR|os.O_CREATE|NoLinks)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Mode()&0o133 != 0 {
		t.Errorf("the new file: %v, %v", info.Mode(), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
