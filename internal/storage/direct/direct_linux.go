package direct

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

// bypass asks the kernel to pass by the page cache from now on.
func bypass(f *os.File) (direct bool, why string) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_NONBLOCK|unix.O_DIRECT)
	}
	if err != nil {
		return false, "its file system takes no direct I/O (" + err.Error() + ")"
	}
	return true, ""
}

// Written is how many bytes of a range of a file were ever written: neither holes nor space merely set aside. It is not
// known of devices, and where a file system has no map.
func (f *File) Written(from, to int64) (bytes int64, known bool, err error) {
	if f.Device {
		return 0, false, nil
	}
	for at := from; at < to; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO): // only a hole is left
			return bytes, true, nil
		case err != nil:
			return 0, false, nil // no map here
		}
		if data >= to {
			break
		}
		hole, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return 0, false, err
		}
		bytes += min(hole, to) - data
		at = hole
	}
	return bytes, true, nil
}

// Allocated is how many bytes of the medium a file takes; the size of a device.
func (f *File) Allocated() (int64, error) {
	if f.Device {
		return f.Bytes, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return st.Blocks * 512, nil
}

// Forget has the kernel drop what it holds of the file in the page cache, so that reads come from the storage where
// they cannot pass by.
func (f *File) Forget() error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
