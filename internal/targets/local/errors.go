//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
	"plimsoll/unit"
)

// explain adds to an error of the operating system what a user needs to act on it: the path and, for a full disk or
// too many files, the numbers. Wanted is the bytes that were to be written, 0 when not known.
func explain(err error, path string, wanted int64) error {
	var pe *fs.PathError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	}
	switch {
	case err == nil:
		return nil
	case regular.Full(err):
		free := "an unknown amount"
		if n, e := regular.Free(path); e == nil {
			free = unit.Bytes(n).String()
		}
		if wanted > 0 {
			return fmt.Errorf("%s: %w: %s wanted, %s free; free some space or use a smaller size scale", path, cause,
				unit.Bytes(wanted), free)
		}
		return fmt.Errorf("%s: %w: %s free; free some space or use a smaller size scale", path, cause, free)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		var lim unix.Rlimit
		if e := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); e == nil {
			return fmt.Errorf("%s: %w: this process may open %d; raise it with ulimit -n", path, cause, lim.Cur)
		}
	case errors.Is(err, unix.EFBIG):
		return fmt.Errorf("%s: %w: %s is more than this file system or ulimit -f allows", path, cause,
			unit.Bytes(wanted))
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s: %w: name a folder that can be written, with --dir or --disk", path, cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: user id %d must own or be allowed to write it", path, cause, unix.Getuid())
	}
	return fmt.Errorf("%s: %w", path, cause)
}
