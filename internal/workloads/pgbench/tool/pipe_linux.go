package pgbench

import (
	"errors"
	"os"
	"syscall"
)

// pipe is a named pipe, which has a writer of ours for as long as it is not to end.
type pipe struct {
	path           string
	reader, keeper *os.File
}

func openPipe(path string) (*pipe, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	keeper, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return &pipe{path, reader, keeper}, nil
}
