package cli

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepInherited keeps what this process was given open by its caller, a lock of flock(1) or an end of a pipe, from the
// processes that it starts: daemons and load that outlive it would hold that for as long as they live.
func keepInherited() {
	open, _ := os.ReadDir("/dev/fd") // where there is none, all is as it was
	for _, f := range open {
		if n, err := strconv.Atoi(f.Name()); err == nil && n > 2 {
			unix.CloseOnExec(n)
		}
	}
}
