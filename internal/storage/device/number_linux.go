package device

import (
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// NumberOf is the number, major:minor, as the kernel writes it, of the device that a node stands for.
func NumberOf(info fs.FileInfo) (string, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&fs.ModeDevice == 0 {
		return "", false
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), true
}

// FileOf is which file a name stands for, whatever other names it has.
func FileOf(info fs.FileInfo) (File, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return File{}, false
	}
	return File{fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), st.Ino}, true
}
