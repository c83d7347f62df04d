//go:build unix

package integrity

import (
	"time"

	"golang.org/x/sys/unix"
)

// spent is the processor time of this program, in seconds.
func spent() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}
