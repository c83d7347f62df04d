package cli

import (
	"io"
	"os"
	"plimsoll/internal/kit/clock"
	"sync"
	"sync/atomic"
	"time"
)

// console is where a command reads and writes, and how it is asked to stop.
type console struct {
	in       io.Reader
	out, err io.Writer
	json     bool // --json
	quiet    bool // --quiet
	clock    clock.Clock
	signals  <-chan os.Signal // instead of the process's own; for tests
	stops    atomic.Int32     // signals that this command line was sent while it listened
	heard    sync.Mutex       // guards lastStop
	lastStop time.Time        // when the last of them came
	leave    chan error       // told when it must not wait any more
}
