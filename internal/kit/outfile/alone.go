package outfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/clock"
)

// Alone runs do while no other process is in it for the same folder, which is made where it is missing: files there
// that are read, changed and replaced lose nothing of each other. Another process is waited for until ctx is done,
// whose cause is the error then; waiting is told so once. Where a file system knows no locks, do runs all the same.
func Alone(ctx context.Context, dir string, waiting func(), do func() error) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for said := false; ; said = true {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return do()
		}
		if !said {
			waiting()
		}
		if (clock.Real{}).Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("%s: %w", dir, context.Cause(ctx))
		}
	}
}
