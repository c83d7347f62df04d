// Package scratch makes the folders for temporary files of this program, and finds those that killed processes left.
//
// A folder belongs to its process as long as that lives: it is locked, and the kernel gives the lock up however the
// process ends. A folder of ours that nobody holds locked is left over. Ours are known by a name that nobody else would
// give, and by their owner: other folders that are called plimsoll-something are somebody's.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is a folder for temporary files, for this user alone.
type Dir struct {
	Path string
	lock *os.File
}

const prefix = "plimsoll-scratch-"

// ours are the names of folders that Make makes.
var ours = regexp.MustCompile(`^` + prefix + `[a-z]+-[0-9]+$`)

// Make makes a folder for files of a kind, a word of small letters, among the temporary files of this machine.
func Make(kind string) (*Dir, error) {
	d, err := try(kind)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = fmt.Errorf("folder of temporary files %s: %w: set TMPDIR to one that can be written", os.TempDir(), path.Err)
	}
	return d, err
}

func try(kind string) (*Dir, error) {
	// Under this name nobody looks for it before it is locked.
	early, err := os.MkdirTemp("", "."+prefix+kind+"-")
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(early)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOLCK) {
			return &Dir{Path: early, lock: lock}, nil // it keeps the name that nobody looks for
		}
	}
	path := filepath.Join(filepath.Dir(early), strings.TrimPrefix(filepath.Base(early), "."))
	if err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), os.Remove(early))
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Remove removes the folder with all that is in it.
func (d *Dir) Remove() error { return errors.Join(os.RemoveAll(d.Path), d.lock.Close()) }

// Clean removes the folders of this user that processes which are gone have left, and returns their names.
func Clean() (removed []string, err error) {
	entries, err := os.ReadDir(os.TempDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !ours.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		path := filepath.Join(os.TempDir(), e.Name())
		switch gone, err := clean(path); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: left by a process that is gone: %w", path, err))
		case gone:
			removed = append(removed, path)
		}
	}
	return removed, errors.Join(errs...)
}

func clean(path string) (gone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // gone meanwhile, or another user's
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return false, nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false, nil // in use
	}
	return true, os.RemoveAll(path)
}
