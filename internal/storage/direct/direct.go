// Package direct opens files and block devices so that what is read and written passes by the page cache, where that
// can be; where not, it says why, and the caller says so.
//
// It stands below what reads and writes storage as such (content, integrity). It opens regular files and block devices
// only, never waits at what is neither, and makes new files but replaces none. Whether a device may be written at all
// is not asked here: devices are opened for reading, and who has a device open for writing hands it in by Of.
package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
)

// Align divides every buffer's address, offset and length, in bytes, as the strictest device there is wants it.
const Align = 4096

// File is an open file or device.
type File struct {
	*os.File
	Bytes  int64  // its size when it was opened
	Device bool   // it is a block device
	Direct bool   // reads and writes pass by the page cache
	Why    string // why they do not
}

// Buffer is a buffer of n bytes that starts where direct I/O wants it.
func Buffer(n int) []byte {
	b := make([]byte, n+Align)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % Align)
	return b[skip : skip+n : skip+n]
}

// OpenRead opens a regular file or a block device for reading. Anything else gives an error that says what it is.
func OpenRead(name string) (*File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !isBlock(info.Mode()) {
		return of(regular.Open(name, os.O_RDONLY))
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isBlock(info.Mode()) { // exchanged meanwhile
		return nil, errors.Join(err, fmt.Errorf("%s: it is no block device any more", name), f.Close())
	}
	return Of(f)
}

// Create makes a new file for reading and writing. What exists is never opened: the error is fs.ErrExist.
func Create(name string) (*File, error) {
	return of(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644))
}

func of(f *os.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return Of(f)
}

// Of turns what is open already. It owns f from then on, also when it fails.
func Of(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d := &File{File: f, Bytes: info.Size(), Device: isBlock(info.Mode())}
	if d.Device {
		if d.Bytes, err = f.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	d.Direct, d.Why = bypass(f)
	return d, nil
}

func isBlock(m fs.FileMode) bool { return m&fs.ModeDevice != 0 && m&fs.ModeCharDevice == 0 }

// Each calls do for the numbers below n, several at once, until one fails or ctx ends; it returns why.
func Each(ctx context.Context, workers int, n int64, do func(worker int, i int64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(worker, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Beside reports whether two paths lie on the same file system. Of what does not exist yet, its folder counts.
func Beside(a, b string) (bool, error) {
	var of [2]unix.Stat_t
	for i, name := range []string{a, b} {
		err := unix.Stat(name, &of[i])
		for errors.Is(err, unix.ENOENT) && name != filepath.Dir(name) {
			name = filepath.Dir(name)
			err = unix.Stat(name, &of[i])
		}
		if err != nil {
			return false, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
	return of[0].Dev == of[1].Dev, nil
}

// Free is how many bytes the file system of a folder has left for us.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // of 32 bits elsewhere
}
