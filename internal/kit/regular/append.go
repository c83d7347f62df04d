package regular

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Append writes one record to the end of a file that nobody else writes, whole or not at all: what a full disk has
// taken of it is given back, so that the next record does not begin in the middle of a line.
func Append(f *os.File, record []byte) error {
	n, err := f.Write(record)
	if err == nil || n == 0 {
		return err
	}
	info, lookError := f.Stat()
	if lookError != nil {
		return errors.Join(err, lookError)
	}
	return errors.Join(err, f.Truncate(info.Size()-int64(n)))
}

// Full reports whether a write failed for want of room, be it the disk's or a quota's.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Free is the space that this user may still fill on the file system of path or of its nearest existing parent.
func Free(path string) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	for {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		if err == nil {
			return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // it is of 32 bits elsewhere
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) || path == "/" {
			return 0, fmt.Errorf("%s: free space: %w", path, err)
		}
		path = filepath.Dir(path)
	}
}
