//go:build !linux

package direct

import (
	"errors"
	"os"
	"runtime"
)

const nonblock = 0

func bypass(*os.File) (direct bool, why string) {
	return false, "on " + runtime.GOOS + " it is not known how"
}

// Written is not known here.
func (f *File) Written(_, _ int64) (bytes int64, known bool, err error) { return 0, false, nil }

// Allocated is not known here.
func (f *File) Allocated() (int64, error) { return 0, errors.ErrUnsupported }

// Forget cannot be asked for here.
func (f *File) Forget() error { return errors.ErrUnsupported }
