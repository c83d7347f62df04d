package guard

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"plimsoll/internal/storage/device"
)

// attached asks an open loop device what it is made of: a file, or the device of a number.
func attached(f fs.File) (file device.File, on string, ok bool) {
	node, ok := f.(*os.File)
	if !ok {
		return file, "", false
	}
	is, err := unix.IoctlLoopGetStatus64(int(node.Fd()))
	if err != nil {
		return file, "", false
	}
	number := func(n uint64) string { return fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n)) }
	if is.Rdevice != 0 && is.Rdevice != is.Device { // of a regular file it is one of these, by the kernel's version
		return file, number(is.Rdevice), true
	}
	return device.File{Device: number(is.Device), Inode: is.Inode}, "", true
}
