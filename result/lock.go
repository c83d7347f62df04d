package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
)

// takeLock opens path and holds it locked until the file is closed or the process dies, however it dies.
func takeLock(path string) (*os.File, error) {
	file, err := regular.Open(path, os.O_RDWR|os.O_CREATE|regular.NoLinks)
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (%s)", ErrBusy, lockOwner(path))
		}
		return nil, fmt.Errorf("lock: %w", err)
	}
	// Who holds it is said for people. A full disk has no room for that, and keeps nobody from cleaning up.
	if file.Truncate(0) == nil {
		_, _ = fmt.Fprintf(file, "process %d\n", os.Getpid())
	}
	return file, nil
}

// flock tries for a moment: a reader that looks whether the lock is held has it for an instant itself.
func flock(file *os.File) (err error) {
	for range 5 {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// ErrBusy is returned when another process writes the folder.
var ErrBusy = errors.New("the run is executing in another process")

func lockOwner(path string) string {
	b, err := regular.Read(path, regular.NoLinks, 64)
	if err != nil || len(b) == 0 {
		return "process unknown"
	}
	return string(b[:max(0, len(b)-1)])
}

// lockHeld reports whether some process holds the lock at path.
func lockHeld(path string) (bool, error) {
	file, err := regular.Open(path, os.O_RDONLY|regular.NoLinks)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return errors.Is(err, unix.EWOULDBLOCK), nil
	}
	return false, nil
}
