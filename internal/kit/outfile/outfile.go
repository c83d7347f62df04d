// Package outfile is the one way to write a file that a user has named.
//
// What stands at a name decides how it is written. A regular file is replaced as a whole: a reader sees the old one or
// the new one, and a failure leaves the old one as it was; the new one has its mode and its owner. Where nothing is, a
// file is made with the mode that the umask leaves. A symbolic link is followed to what it stands for, and stays a
// link. Character devices and named pipes are written to, and so is what this process has open already, as /dev/stdout.
// All else is refused by name: folders, sockets, block devices, which are somebody's data, and a file with several
// names (hard links), of which a new file could keep only one.
//
// Documents within a folder that this program keeps for itself go through Replace, which follows nothing.
//
// A process that is killed while it writes leaves a temporary file behind. Its name says whose it was, so that the next
// file written into that folder, and Clean, remove it, and leave alone what a process that lives is writing.
package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// File is an output that is being written. It ends with Commit or with Discard.
type File struct {
	f     *os.File
	final string // where f is moved to; "" of what is written to directly
	sync  bool   // something stands there that a power cut must not lose
	keep  bool   // f is standard output or standard error of this process, which stays open
}

// Write writes what the name stands for as a whole.
func Write(name string, write func(io.Writer) error) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	return f.fill(write)
}

// Replace puts a new file in the place of whatever has that name, which is not followed and of which nothing is kept.
func Replace(name string, write func(io.Writer) error) error {
	_, _ = Clean(filepath.Dir(name)) // what is left there is in nobody's way
	t, err := Temporary(filepath.Dir(name), 0o666)
	if err != nil {
		return err
	}
	return (&File{f: t, final: name}).fill(write)
}

func (f *File) fill(write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	err := write(b)
	if err == nil {
		err = b.Flush() // after an error it would be told twice
	}
	if err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.f.Write(p) }

// Commit puts what was written in its place.
func (f *File) Commit() error {
	var err error
	if f.sync {
		err = f.f.Sync()
	}
	if !f.keep {
		err = errors.Join(err, f.f.Close())
	}
	if f.final == "" {
		return err
	}
	if err == nil {
		err = os.Rename(f.f.Name(), f.final)
	}
	if err != nil {
		_ = os.Remove(f.f.Name()) // the error that counts is there already
	}
	return err
}

// Discard leaves what stood there as it was. What was written to a device or a pipe stays written.
func (f *File) Discard() {
	if !f.keep {
		_ = f.f.Close() // nobody wants what was written
	}
	if f.final != "" {
		_ = os.Remove(f.f.Name()) // at worst it stays, beside what is whole
	}
}

// Create opens what a name stands for, to be written as a whole.
func Create(name string) (*File, error) {
	at, err := follow(name)
	if err != nil {
		return nil, err
	}
	if own, ok := opened(at); ok {
		return own.open(name)
	}
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return beside(name, at, 0o666)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeNamedPipe != 0:
		return pipe(name, at)
	case info.Mode()&fs.ModeCharDevice != 0:
		f, err := os.OpenFile(at, os.O_WRONLY|unix.O_NOCTTY, 0)
		return direct(name, f, err, fs.ModeCharDevice)
	case info.Mode().IsRegular() && ofKernel(at):
		return nil, &fs.PathError{Op: "write", Path: name,
			Err: errors.New("it is a file of the kernel's, and not written to: give the name of a file")}
	case info.Mode().IsRegular():
		return replacing(name, at, info)
	}
	return nil, refuse(name, info.Mode())
}

// Grow is Create for what is measured while it is written: where nothing stands yet, the file has its name from the
// first byte, so that whoever watches sees it grow, and keeps what is there however its writer ends.
func Grow(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return Create(name)
	}
	if err != nil {
		return nil, err
	}
	return &File{f: f}, nil
}

// ofKernel reports files that look regular, and are what the kernel answers with.
func ofKernel(at string) bool {
	real, err := filepath.EvalSymlinks(at)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return err == nil && (strings.HasPrefix(real, "/proc/") || strings.HasPrefix(real, "/sys/"))
}

func refuse(name string, mode fs.FileMode) error {
	what := "something special, and not written to"
	switch {
	case mode.IsDir():
		what = "a folder: give the name of a file in it"
	case mode&fs.ModeSocket != 0:
		what = "a socket, and not written to: give the name of a file"
	case mode&fs.ModeDevice != 0:
		what = "a block device, whose data it would overwrite: give the name of a file"
	}
	return &fs.PathError{Op: "write", Path: name, Err: errors.New("it is " + what)}
}

// follow goes from link to link to the name of what is no link, or is nothing yet. Files that processes hold open are
// links of the kernel, whose text is no name.
func follow(name string) (string, error) {
	links := 0
	for at := name; ; {
		dir, err := filepath.EvalSymlinks(filepath.Dir(at))
		if errors.Is(err, fs.ErrNotExist) {
			return at, nil // which is said where a file would be made in it
		}
		if err != nil {
			return "", err
		}
		if named := filepath.Join(dir, filepath.Base(at)); openFile.MatchString(named) {
			return named, nil
		}
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return at, nil
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !os.IsPathSeparator(at[len(at)-1]):
			return at, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			return at, nil
		}
		if links++; links > 40 {
			return "", &fs.PathError{Op: "write", Path: name, Err: syscall.ELOOP}
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if at = to; !filepath.IsAbs(to) {
			at = dir + string(filepath.Separator) + to
		}
	}
}

var openFile = regexp.MustCompile(`^/proc/(\d+)/(?:task/\d+/)?fd/(\d+)$`)

// number is that of a file which this process has open, negative of one of another process.
type number int

// opened recognises the kernel's name of an open file.
func opened(at string) (number, bool) {
	m := openFile.FindStringSubmatch(at)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[2])
	if self, _ := os.Readlink("/proc/self"); err != nil || m[1] != self {
		n = -1
	}
	return number(n), true
}

// open writes where the file stands, after what is in it, as all else does that the process has it for.
func (n number) open(name string) (*File, error) {
	switch n {
	case -1:
		return nil, &fs.PathError{Op: "write", Path: name,
			Err: errors.New("it is what another process has open, and not written to: give the name of a file")}
	case 1:
		return &File{f: os.Stdout, keep: true}, nil
	case 2:
		return &File{f: os.Stderr, keep: true}, nil
	}
	d, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "write", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(d), name)
	if info, err := f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	} else if mode := info.Mode(); mode.IsDir() || mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0 {
		return nil, errors.Join(refuse(name, mode), f.Close())
	}
	return &File{f: f}, nil
}

// direct looks whether what was opened is still of its kind.
func direct(name string, f *os.File, err error, kind fs.FileMode) (*File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&kind == 0 {
		err = &fs.PathError{Op: "write", Path: name, Err: errors.New("it was exchanged for something else meanwhile")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f: f}, nil
}

// readerWait is how long a pipe may be without a reader.
var readerWait = 10 * time.Second

// pipe opens a named pipe once somebody reads it. To open it plainly is to wait for ever, deaf to signals.
func pipe(name, at string) (*File, error) {
	const step = 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		f, err := os.OpenFile(at, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.ENXIO) {
			return direct(name, f, err, fs.ModeNamedPipe)
		}
		if waited >= readerWait {
			return nil, &fs.PathError{Op: "write", Path: name, Err: fmt.Errorf(
				"it is a named pipe that nobody has read for %v: start its reader first", readerWait)}
		}
		time.Sleep(step)
	}
}

// replacing makes the file that takes the place of another, with its mode and owner.
func replacing(name, at string, old fs.FileInfo) (*File, error) {
	fail := func(text string, args ...any) (*File, error) {
		return nil, &fs.PathError{Op: "write", Path: name, Err: fmt.Errorf(text, args...)}
	}
	writable, err := os.OpenFile(at, os.O_WRONLY|unix.O_NONBLOCK, 0) // else a rename would get round its mode
	if err != nil {
		return nil, err
	}
	if err := writable.Close(); err != nil {
		return nil, err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	if ok && was.Nlink > 1 {
		return fail("it has %d names (hard links), and a new file would have this one alone: "+
			"give another name, or remove this one first", was.Nlink)
	}
	f, err := beside(name, at, 0o600)
	if err != nil {
		return nil, err
	}
	f.sync = true
	now, err := f.f.Stat()
	if err != nil {
		f.Discard()
		return nil, err
	}
	if is, known := now.Sys().(*syscall.Stat_t); known && ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		if err := f.f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			f.Discard()
			return fail("it belongs to user %d and group %d, and a new file in its place could not be given to "+
				"them: give another name", was.Uid, was.Gid)
		}
	}
	if err := f.f.Chmod(old.Mode().Perm()); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// beside makes the file that is moved to its place when it is whole.
func beside(name, at string, mode fs.FileMode) (*File, error) {
	_, _ = Clean(filepath.Dir(at)) // what is left there is in nobody's way
	t, err := Temporary(filepath.Dir(at), mode)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the folder %s does not exist", filepath.Dir(at))
	}
	if why := new(fs.PathError); errors.As(err, &why) {
		err = fmt.Errorf("no file can be made in the folder %s: %w", filepath.Dir(at), why.Err)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return &File{f: t, final: at}, nil
}

// Temporary makes a new file in a folder, under a name of its own that lists of files hide. Its mode is what the umask
// leaves of the one given.
func Temporary(dir string, mode fs.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(filepath.Join(dir, temporaryName()), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// TemporaryFolder makes a new folder in another, as Temporary does a file.
func TemporaryFolder(dir string) (string, error) {
	_, _ = Clean(dir) // what is left there is in nobody's way
	part := filepath.Join(dir, temporaryName())
	return part, os.Mkdir(part, 0o777)
}

// Folder makes a new folder and what is in it, or nothing: fill is given a folder beside it, which takes the name when
// it is whole. What exists is not touched.
func Folder(name string, fill func(dir string) error) error {
	name = filepath.Clean(name)
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "make", Path: name, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	part, err := TemporaryFolder(filepath.Dir(name))
	if err != nil {
		return err
	}
	if err = fill(part); err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return nil
}
