package vioperf

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"plimsoll/internal/kit/regular"
)

// machine holds what a run touches; tests put faults in its place.
type machine struct {
	// look finds what lies under a folder.
	look func(dir string) (Place, error)
	// create makes a new file, and open opens a disk. Writes pass by the page cache if that is wanted and possible;
	// else why says what keeps them from it.
	create, open func(name string, direct bool) (f file, why string, err error)
	// disk finds what else is to be known of a disk whose name is.
	disk func(Place) Place
	// count reads the counters of the machine and of the device of a place.
	count func(Place) counters
	// buffers gives memory that direct I/O can use, and what gives it back.
	buffers func(bytes int) ([]byte, func(), error)
	cores   func() int
	// waiting prepares for so many goroutines that wait for the kernel at once, and returns what undoes that.
	waiting func(goroutines int) (restore func())
}

// counters are what was counted up to a moment.
type counters struct {
	user, system time.Duration // of this process
	busy         time.Duration // of all processors of the machine
	device       *tally        // nil: there is none, or it cannot be read
}

// refusal says why nothing can be written somewhere.
func refusal(path string, err error) error {
	var why string
	switch {
	case errors.Is(err, syscall.EROFS):
		why = "the file system is read-only: mount it for writing, or give another folder"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		why = "no permission to write there: give a folder of yours"
	case errors.Is(err, syscall.ENOTDIR):
		why = "it is no folder: give the folder in which to write"
	case errors.Is(err, syscall.ENOENT):
		why = "there is no such folder: make it, or give another"
	case regular.Full(err):
		why = "not even an empty file has room: free some space, files or quota"
	default:
		return err // it names its path
	}
	return fmt.Errorf("%s: %s", path, why)
}
