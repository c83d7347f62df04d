package console

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/plaintext"
	"plimsoll/internal/kit/regular"
)

// OpenGiven opens a file that the user named. Standard input ("-" or /dev/stdin) and what a shell hands over as
// /dev/fd/N, as it does for <(command), are streams: they are read as they come, and a signal ends that as it ends the
// program. All else must be a regular file, for a pipe that nobody writes to would be waited for without end.
func (c *Console) OpenGiven(name string) (io.ReadCloser, error) {
	text, ok := strings.CutPrefix(name, "/dev/fd/")
	if !ok {
		text, ok = strings.CutPrefix(name, "/proc/self/fd/")
	}
	n, err := strconv.Atoi(text)
	switch {
	case name == "-" || name == "/dev/stdin" || ok && err == nil && n == 0:
		return io.NopCloser(c.In), nil
	case ok && err == nil:
		// The descriptor itself: to open its name once more would wait for a writer that may be gone.
		fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		return os.NewFile(uintptr(fd), name), nil
	}
	return regular.Open(name, os.O_RDONLY)
}

// ReadGiven reads a file that the user named, of at most so many bytes. Text in UTF-16, or with a byte order mark, is
// given as plain UTF-8.
func (c *Console) ReadGiven(name string, most int64) ([]byte, error) {
	in, err := c.OpenGiven(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(data)) > most {
		err = regular.TooLarge(most)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return plaintext.Bytes(data), nil
}
