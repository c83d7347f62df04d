//go:build !linux

package worker

import (
	"errors"
	"os"
)

// Pin is for Linux only: elsewhere CPUsVariable is refused.
func Pin() error {
	if os.Getenv(CPUsVariable) != "" {
		return errors.New("CPUs of a load can be chosen on Linux only")
	}
	return nil
}
