//go:build !linux

package agent

import (
	"errors"
	"io"
)

func run([]string, io.Reader, io.Writer) error { return errors.New("it works on Linux only") }
