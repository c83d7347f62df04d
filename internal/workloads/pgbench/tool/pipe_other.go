//go:build !linux

package pgbench

import (
	"errors"
	"os"
)

type pipe struct {
	path           string
	reader, keeper *os.File
}

func openPipe(string) (*pipe, error) { return nil, errors.ErrUnsupported }
