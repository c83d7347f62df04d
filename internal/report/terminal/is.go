package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Is reports whether what is written to w comes to a terminal, where a person reads it, and not to a file or a pipe.
func Is(w io.Writer) bool {
	_, ok := size(w)
	return ok
}

// Width is how many columns the terminal has to which w is written; 0 where it is none, or does not say.
func Width(w io.Writer) int {
	columns, _ := size(w)
	return columns
}

func size(w io.Writer) (columns int, ok bool) {
	f, ok := Unwrapped(w).(*os.File)
	if !ok {
		return 0, false
	}
	s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(s.Col), true
}

// Unwrapped is the writer below those that change what passes.
func Unwrapped(w io.Writer) io.Writer {
	for {
		outer, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// Clear empties the screen when w is a terminal, for a table that is made anew; elsewhere it writes nothing.
func Clear(w io.Writer) {
	if !Is(w) {
		return
	}
	_, _ = Unwrapped(w).Write([]byte("\x1b[H\x1b[J")) // whoever reads it will say when it is gone
}
