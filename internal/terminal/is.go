package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"plimsoll/internal/visible"
)

// Is reports whether what is written to w comes to a terminal, where a person reads it, and not to a file or a pipe.
func Is(w io.Writer) bool {
	if wall, ok := w.(*visible.Writer); ok {
		w = wall.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
