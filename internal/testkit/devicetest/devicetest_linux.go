// Package devicetest makes machines of text: the parts of /sys, /proc, /dev and /run that tell of a block device, as a
// file system for tests. A machine is a txtar archive. Its comment has a line for each small file, "path: content",
// as most of /sys is; its files are those of several lines. Content that begins with "-> " is a symbolic
// link, "block 8:0" and "char 1:3" are device nodes, "/" is a folder; bytes are written \x00. Lines that begin with "#"
// are remarks.
//
// Loop makes a real device, for tests that write, Mounted a real file system, and Fill fills it.
//
// Tests only: no shipped package imports this one.
package devicetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"plimsoll/internal/testkit/needs"
)

// Names are the machines there are, from disk.
func Names(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir(), "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no machines: ", err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	return names
}

func dir() string {
	return filepath.Join(needs.Root(), "internal", "storage", "device", "testdata", "machines")
}

// Machine reads one. look is the path in its first line, "# look: PATH", that it was made for.
func Machine(t testing.TB, name string) (machine fstest.MapFS, look string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(dir(), name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	machine = fstest.MapFS{}
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		if path, ok := strings.CutPrefix(line, "# look: "); ok {
			look = path
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		path, text, ok := strings.Cut(line+" ", ": ")
		if !ok {
			t.Fatalf("machine %s: %q is no \"path: content\"", name, line)
		}
		Put(machine, path, strings.TrimSuffix(text, " "))
	}
	for _, f := range a.Files {
		machine[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return machine, look
}

// Put puts one file into a machine, by the rules of a line.
func Put(machine fstest.MapFS, path, text string) {
	if plain, err := strconv.Unquote(`"` + text + `"`); err == nil && strings.Contains(text, `\x`) {
		text = plain
	}
	var major, minor uint32
	f := &fstest.MapFile{Data: []byte(text + "\n")}
	switch {
	case strings.HasPrefix(text, "-> "):
		f.Data, f.Mode = []byte(text[3:]), fs.ModeSymlink|0o777
	case text == "/":
		f.Data, f.Mode = nil, fs.ModeDir|0o755
	case scan(text, "block %d:%d", &major, &minor):
		f.Data, f.Mode = nil, fs.ModeDevice|0o660
		f.Sys = &syscall.Stat_t{Rdev: unix.Mkdev(major, minor)}
	case scan(text, "char %d:%d", &major, &minor):
		f.Data, f.Mode = nil, fs.ModeDevice|fs.ModeCharDevice|0o660
		f.Sys = &syscall.Stat_t{Rdev: unix.Mkdev(major, minor)}
	}
	machine[path] = f
}

func scan(text, format string, to ...any) bool {
	n, err := fmt.Sscanf(text, format, to...)
	return err == nil && n == len(to)
}

// Loop makes a loop device of a size in bytes on a file of its own, for as long as the test runs, and returns both.
// flags are losetup's. The test is skipped where it is not root's; where root cannot make one, it is skipped or, in
// CI, fails.
func Loop(t testing.TB, size int64, flags ...string) (node, file string) {
	t.Helper()
	file = filepath.Join(needs.Folder(t), "disk.img")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	return Attach(t, file, flags...), file
}

// Attach makes a loop device on a file or a device.
func Attach(t testing.TB, file string, flags ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loop devices are root's to make: sudo go test, as .ci/run does")
	}
	const how = "apt-get install mount"
	losetup, err := exec.LookPath("losetup")
	needs.That(t, err == nil, "loop devices", how)
	out, err := exec.Command(losetup, append(append([]string{"--find", "--show"}, flags...), file)...).CombinedOutput()
	needs.That(t, err == nil, "loop devices", how+": "+string(out))
	node := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "-d", node).CombinedOutput(); err != nil {
			t.Errorf("losetup -d %s: %v: %s", node, err, out)
		}
	})
	return node
}

// Mounted is a file system of a kind ("ext4") and a size in bytes, on a loop device of its own, for as long as the test
// runs. It wants root, as Attach does.
func Mounted(t testing.TB, kind string, bytes int64) (dir string) {
	t.Helper()
	node, _ := Loop(t, bytes)
	dir = filepath.Join(needs.Folder(t), "mnt")
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run("mkfs."+kind, "-q", node)
	run("mount", node, dir)
	t.Cleanup(func() { run("umount", "--lazy", dir) })
	return dir
}

// Fill takes the room of a file system until so many bytes are left; it is given back by the function that it returns.
func Fill(t testing.TB, dir string, left int64) (giveBack func()) {
	t.Helper()
	var is unix.Statfs_t
	if err := unix.Statfs(dir, &is); err != nil {
		t.Fatal(err)
	}
	ballast, err := os.CreateTemp(dir, "ballast")
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	if err := unix.Fallocate(int(ballast.Fd()), 0, 0, int64(is.Bavail)*is.Bsize-left); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(ballast.Name()); err != nil {
			t.Error(err)
		}
	}
}
