package needs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/kit/procfs"
)

// records has a folder for each live process of tests, named by it, with a link to each folder that Outlives names. The
// place is that of the process's start: tests change TMPDIR.
var records = filepath.Join(os.TempDir(), "plimsoll-tests-left")

// Folder is a temporary folder of a test for what may outlive the test's process: see Outlives.
func Folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Outlives(t, dir)
	return dir
}

// Disk is a Folder that is a file system in memory of a size, such as 32m. Nothing may hold it when the test ends.
func Disk(t testing.TB, size string) string {
	t.Helper()
	That(t, os.Geteuid() == 0, "a small file system", "run as root")
	dir := Folder(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Outlives is Record for as long as a test runs.
func Outlives(t testing.TB, folder string) {
	t.Helper()
	forget, err := Record(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forget)
}

// Record records a folder from which processes, mounts and network namespaces come that do not end with this process,
// such as a lab's, until it is forgotten. Where the process is killed the next one that records any removes all of it,
// with the folder.
func Record(folder string) (forget func(), err error) {
	clearOnce()
	own := filepath.Join(records, incarnation(os.Getpid()))
	link := filepath.Join(own, fmt.Sprint(recorded.Add(1)))
	forget = func() {
		_ = os.Remove(link) // the next process finds a folder that is gone
		_ = os.Remove(own)  // not while there are others
	}
	for { // another test may forget the last one
		err := os.MkdirAll(own, 0o700)
		if err == nil {
			err = os.Symlink(folder, link)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return forget, err
		}
	}
}

var recorded atomic.Int64

var clearOnce = sync.OnceFunc(func() {
	for _, left := range clear(records) {
		fmt.Println("needs: a killed run of tests has left", left)
	}
})

// clear removes what dead processes have left, and names what it has found.
func clear(records string) (found []string) {
	links, _ := filepath.Glob(filepath.Join(records, "*", "*"))
	for _, link := range links {
		own := filepath.Dir(link)
		pid, _ := strconv.Atoi(strings.Split(filepath.Base(own), "-")[0])
		if incarnation(pid) == filepath.Base(own) {
			continue // it lives
		}
		if folder, err := os.Readlink(link); err == nil && filepath.IsAbs(folder) && folder != "/" {
			found = append(found, remove(folder)...)
		}
		_ = os.Remove(link) // another process does the same
		_ = os.Remove(own)
	}
	return found
}

// incarnation is a process as none after it has it: its number, and when it started. One that has ended and that nobody
// has waited for is gone.
func incarnation(pid int) string {
	if fields := procfs.Fields(pid); len(fields) > 19 && fields[0] != "Z" {
		return fmt.Sprintf("%d-%s", pid, fields[19])
	}
	return fmt.Sprintf("%d-gone", pid)
}

// remove ends what a folder has: processes that name it, work in it or are in its namespaces, mounts on it and below
// it, loop devices of files in it, the namespaces of labs below it, and itself.
func remove(folder string) (found []string) {
	var spaces []string
	for _, pattern := range []string{"lab.json", "*/lab.json", "*/*/lab.json"} {
		names, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, name := range names {
			var lab struct{ ID string }
			if data, err := os.ReadFile(name); err == nil && json.Unmarshal(data, &lab) == nil && lab.ID != "" {
				list, _ := filepath.Glob("/run/netns/plimsoll-lab-" + lab.ID + "-*")
				spaces = append(spaces, list...)
			}
		}
	}
	for range 100 {
		pids := living(folder)
		for _, space := range spaces {
			out, _ := exec.Command("ip", "netns", "pids", filepath.Base(space)).Output()
			for _, text := range strings.Fields(string(out)) {
				if pid, err := strconv.Atoi(text); err == nil {
					pids = append(pids, pid)
				}
			}
		}
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if name := fmt.Sprint("process ", pid); !slices.Contains(found, name) {
				found = append(found, name)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		time.Sleep(10 * time.Millisecond) // the kernel's pace
	}
	for _, loop := range loops(folder) {
		found = append(found, "device "+loop)
		_ = exec.Command("losetup", "-d", loop).Run() // as above
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	lines := strings.Split(string(mounts), "\n")
	slices.Reverse(lines) // the last one first
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4]+"/", folder+"/") {
			found = append(found, "mount "+fields[4])
			_ = syscall.Unmount(fields[4], syscall.MNT_DETACH) // what remains is told below
		}
	}
	for _, space := range spaces {
		found = append(found, "namespace "+filepath.Base(space))
		_ = exec.Command("ip", "netns", "del", filepath.Base(space)).Run() // as above
	}
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return found
	}
	if now, _ := os.ReadFile("/proc/self/mountinfo"); bytes.Contains(now, []byte(" "+folder+"/")) ||
		bytes.Contains(now, []byte(" "+folder+" ")) {
		return append(found, "folder "+folder+", which is still mounted on and stays")
	}
	_ = os.RemoveAll(folder)
	return append(found, "folder "+folder)
}

// loops are the loop devices of files in a folder.
func loops(folder string) (nodes []string) {
	names, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, name := range names {
		if file, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(file), folder+"/") {
			nodes = append(nodes, "/dev/"+strings.Split(name, "/")[3])
		}
	}
	return nodes
}

// living are other processes whose command line names a folder or what lies in it, or that work there.
func living(folder string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(f)
		works, _ := os.Readlink(filepath.Join(filepath.Dir(f), "cwd"))
		end := -1
		if at := bytes.Index(line, []byte(folder)); at >= 0 {
			end = at + len(folder)
		}
		if works == folder || strings.HasPrefix(works, folder+"/") ||
			end >= 0 && (end == len(line) || line[end] == 0 || line[end] == '/') {
			pids = append(pids, pid)
		}
	}
	return slices.Compact(pids)
}
