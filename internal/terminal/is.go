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

// Clear empties the screen when w is a terminal, for a table that is made anew; elsewhere it writes nothing.
func Clear(w io.Writer) {
	if !Is(w) {
		return
	}
	if wall, ok := w.(*visible.Writer); ok {
		w = wall.Unwrap()
	}
	_, _ = w.Write([]byte("\x1b[H\x1b[J")) // whoever reads it will say when it is gone
}
