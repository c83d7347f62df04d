// Package regular opens files that others have given us: a scenario, a table, a run folder from somewhere else. It
// opens regular files only, it looks before it opens, and it never waits.
//
// To open a named pipe is to wait until somebody writes to it, deaf to every signal; a device may be endless, or do
// something merely because it was opened. So whatever reads a file that this process did not just write goes through
// here, and is told what stands in its place. Reading whole files is bounded: a file with a hole may claim any size.
// What is meant to be a stream, as standard input is, does not come through here.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NoLinks is a flag for files in a folder that holds none of its own, as run folders do: a symbolic link there is
// refused, for whoever gave the folder could lead a reader, or worse a writer, anywhere.
const NoLinks = unix.O_NOFOLLOW

// Document bounds what is read at once where no smaller bound is known, in bytes: ten times the largest document that
// runs of 10,000 machines have made.
const Document = 512 << 20

// Kind is the error of something that is no regular file.
type Kind fs.FileMode

// Error says what it is, and what to do.
func (k Kind) Error() string {
	what := "something special"
	switch mode := fs.FileMode(k); {
	case mode.IsDir():
		return "it is a folder, not a file"
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return "it is " + what + ", and only a regular file is read here: put a copy of what it holds in its place"
}

// TooLarge is the error of a file that holds more than its reader takes.
type TooLarge int64

// Error says how much would have been too much.
func (n TooLarge) Error() string { return fmt.Sprintf("it is larger than %d MiB", int64(n)>>20) }

// Open opens a regular file. flag is as for os.OpenFile, or NoLinks besides; a file that it creates may be read by
// all. What is no regular file gives a Kind, wrapped in an *fs.PathError.
func Open(name string, flag int) (*os.File, error) {
	look := os.Stat
	if flag&NoLinks != 0 {
		look = os.Lstat
	}
	if info, err := look(name); err == nil && !info.Mode().IsRegular() {
		return nil, refuse(name, info)
	}
	return checked(os.OpenFile(name, flag|noWait, 0o644))
}

// noWait has an open return at once whatever the name has come to stand for.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY

// checked looks again at what was opened: it may have been exchanged since the first look.
func checked(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse(f.Name(), info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func refuse(name string, info fs.FileInfo) error {
	return &fs.PathError{Op: "open", Path: name, Err: Kind(info.Mode().Type())}
}

// Read reads a regular file of at most so many bytes; a larger one gives a TooLarge, wrapped in an *fs.PathError. flag
// is as for Open.
func Read(name string, flag int, most int64) ([]byte, error) {
	f, err := Open(name, os.O_RDONLY|flag)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLarge := &fs.PathError{Op: "read", Path: name, Err: TooLarge(most)}
	if info.Size() > most {
		return nil, tooLarge
	}
	data := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most: // it grows
			return nil, tooLarge
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// Dir is a folder as a file system in which only regular files can be opened, and folders be listed. Symbolic links
// lead to what is below it, not out of it.
type Dir string

// Open implements fs.FS.
func (d Dir) Open(name string) (fs.File, error) {
	info, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer root.Close() // what was opened in it stays open
	switch {
	case info.IsDir():
		return root.OpenFile(name, noWait|unix.O_DIRECTORY, 0)
	case !info.Mode().IsRegular():
		return nil, refuse(name, info)
	}
	return checked(root.OpenFile(name, noWait, 0))
}

// Stat implements fs.StatFS.
func (d Dir) Stat(name string) (fs.FileInfo, error) { return in(d, fs.Stat, name) }

// ReadDir implements fs.ReadDirFS.
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) { return in(d, fs.ReadDir, name) }

func in[T any](d Dir, do func(fs.FS, string) (T, error), name string) (T, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return *new(T), err
	}
	defer root.Close()
	return do(root.FS(), name)
}
