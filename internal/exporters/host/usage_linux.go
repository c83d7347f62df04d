package host

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// deviceNumber is a block device's, as /proc/diskstats has it.
func deviceNumber(info fs.FileInfo) (number string, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprint(unix.Major(s.Rdev), ":", unix.Minor(s.Rdev)), true
}

// usageBelow asks the kernel about mounts as they are seen below a root.
func usageBelow(root string) Usage {
	return func(mount string) (FileSystem, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(filepath.Join(root, mount), &s); err != nil {
			return FileSystem{}, err
		}
		block := uint64(max(s.Bsize, 0)) // its type differs between architectures
		return FileSystem{Size: s.Blocks * block, Free: s.Bfree * block, Available: s.Bavail * block, Files: s.Files,
			FilesFree: s.Ffree, ReadOnly: s.Flags&unix.ST_RDONLY != 0}, nil
	}
}
