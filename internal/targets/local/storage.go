//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/storage/device"
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
	mounts, err := device.Mounts(system)
	if err != nil {
		s.problem = err.Error()
	} else if m, ok := device.MountOf(mounts, dir); ok {
		s.fstype, s.source = m.FSType, m.Source
		s.options = strings.Join(append(m.Options, m.Super...), ",")
		s.device = device.Whole(system, device.OfMount(system, m))
		s.counted, s.uncounted = countedDevice(system, m)
	} else {
		s.problem = "/proc/self/mountinfo: no mount holds " + dir
	}
	s.try()
	return s
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
