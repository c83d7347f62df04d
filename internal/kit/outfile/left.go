package outfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"

	"plimsoll/internal/kit/procfs"
)

// temporaries are the names of files that are being written: the machine, its boot, the namespace of process ids, the
// process, when that began, and a number that makes it the only one.
var temporaries = regexp.MustCompile(
	`^\.plimsoll-([0-9a-f]{8})-([0-9a-f]{8})-([0-9]{1,20})-([0-9]{1,9})-([0-9]{1,20})-[0-9a-f]{16}$`)

// writer holds what the name of a temporary file says of the process that writes it.
type writer struct {
	machine, boot, space string
	pid                  int
	began                string // in ticks since the boot
}

// self is this process, where the system tells.
var self = sync.OnceValues(func() (w writer, ok bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(boot) < 8 {
		return w, false
	}
	space, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return w, false
	}
	inode, ok := space.Sys().(*syscall.Stat_t)
	if !ok {
		return w, false
	}
	id, _ := os.ReadFile("/etc/machine-id") // a machine without one is told from others by its boots alone
	h := fnv.New32a()
	_, _ = h.Write(id) // it never fails
	w = writer{machine: fmt.Sprintf("%08x", h.Sum32()), boot: string(boot[:8]), pid: os.Getpid(),
		space: strconv.FormatUint(inode.Ino, 10)}
	if len(id) == 0 {
		w.machine = w.boot
	}
	w.began, _ = began(w.pid)
	return w, w.began != ""
})

// temporaryName is a new name for a temporary file of this process.
func temporaryName() string {
	w, ok := self()
	if !ok {
		return fmt.Sprintf(".plimsoll-%016x", rand.Uint64())
	}
	return fmt.Sprintf(".plimsoll-%s-%s-%s-%d-%s-%016x", w.machine, w.boot, w.space, w.pid, w.began, rand.Uint64())
}

// began is when a process did, "" when it has ended or that cannot be seen.
func began(pid int) (ticks string, ended bool) {
	fields := procfs.Fields(pid)
	if len(fields) < 20 {
		return "", errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // others' are hidden from some users
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return "", true
	}
	return fields[19], false
}

// dead reports whether a name is that of a temporary file whose process is known to be gone.
func dead(name string) bool {
	m, w, known := temporaries.FindStringSubmatch(name), writer{}, false
	if m != nil {
		w, known = self()
	}
	switch {
	case !known || m[1] != w.machine: // a machine that shares the folder
		return false
	case m[2] != w.boot:
		return true
	case m[3] != w.space: // a container whose processes are not seen from here
		return false
	}
	pid, err := strconv.Atoi(m[4])
	if err != nil || pid == 0 {
		return false
	}
	now, ended := began(pid)
	return ended || now != "" && now != m[5]
}

// mostNames bounds how much of a folder is looked at: a large one is not read for every file that is written there.
const mostNames = 20_000

// Clean removes from a folder what killed processes were writing there, and returns its names. What is below the folder
// is left alone, and so is what this user may not remove.
func Clean(dir string) (removed []string, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(mostNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	errs := []error{err, d.Close()}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if !dead(name) {
			continue
		}
		err := os.RemoveAll(path) // of a link it is the link
		if errors.Is(err, fs.ErrPermission) {
			continue // another user's
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: left by a process that is gone: %w", path, err))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(errs...)
}
