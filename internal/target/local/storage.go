//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// readStorage finds the file system and device of a folder and tries what they can do.
func readStorage(system fs.FS, dir string) storage {
	s := storage{group: storageGroup, dir: dir, free: -1, total: -1}
	if dir == "" {
		s.problem = "no folder to look at"
		s.probe = s.problem
		return s
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		s.free, s.total = int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	}
	mounts, err := readMounts(system)
	if err != nil {
		s.problem = err.Error()
	} else if m, ok := mountOf(mounts, dir); ok {
		s.fstype, s.source = m.fstype, m.source
		s.options = strings.Join(append(m.options, m.super...), ",")
		s.device = blockDevice(system, m)
		s.counted, s.uncounted = countedDevice(system, m)
	} else {
		s.problem = "/proc/self/mountinfo: no mount holds " + dir
	}
	s.try()
	return s
}

// blockDevice is the name below /sys/block of the device of a mount, the whole disk for a partition; "" when there is
// none to be found, as for network and stacked file systems. Some file systems (btrfs) report a device number of their
// own: then the source's name must do.
func blockDevice(system fs.FS, m mount) string {
	if name := deviceOf(system, m.device); name != "" {
		return name
	}
	for _, pattern := range []string{"sys/block/*/dev", "sys/block/*/*/dev"} {
		files, _ := fs.Glob(system, pattern)
		for _, f := range files {
			if path.Join("/dev", path.Base(path.Dir(f))) == m.source {
				return strings.Split(f, "/")[2]
			}
		}
	}
	return ""
}

// try finds out by doing, on files without a name: nothing remains, even after a crash.
func (s *storage) try() {
	fd, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		s.probe = fmt.Sprintf("not tried: no unnamed file in %s: %v", s.dir, err)
		return
	}
	defer unix.Close(fd)
	const size = 1 << 16
	s.preallocate = answer(retry(func() error { return unix.Fallocate(fd, 0, 0, size) }))
	s.punch = answer(retry(func() error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, size/2)
	}))
	if other, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600); err == nil {
		s.reflink = answer(unix.IoctlFileClone(other, fd))
		unix.Close(other)
	}
	direct, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_DIRECT, 0o600)
	s.direct = answer(err)
	if err != nil {
		return
	}
	defer unix.Close(direct)
	var x unix.Statx_t
	if unix.Statx(direct, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &x) == nil && x.Mask&unix.STATX_DIOALIGN != 0 &&
		x.Dio_offset_align > 0 {
		s.offset = fmt.Sprintf("memory %d, offset %d bytes", x.Dio_mem_align, x.Dio_offset_align)
	}
}

func answer(err error) string {
	switch {
	case err == nil:
		return "supported"
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTTY),
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EXDEV):
		return "not supported"
	}
	return "unknown: " + err.Error()
}
