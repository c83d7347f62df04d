package run

import (
	"syscall"
	"time"

	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// meter measures what this process itself costs: its own CPU time and memory, without the load generators it starts.
// Wall time is the machine's, also when the run is in virtual time.
type meter struct {
	began time.Time
	cpu   float64
}

func startMeter() meter { return meter{began: clock.Real{}.Now(), cpu: usage().CPUSeconds} }

func (m meter) read() result.Overhead {
	o := usage()
	o.CPUSeconds -= m.cpu
	o.WallSeconds = clock.Real{}.Now().Sub(m.began).Seconds()
	if o.WallSeconds > 0 {
		o.CorePercent = 100 * o.CPUSeconds / o.WallSeconds
	}
	return o
}

func usage() result.Overhead {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return result.Overhead{}
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	resident := int64(u.Maxrss) * rssUnit //nolint:unconvert // of 32 bits elsewhere
	return result.Overhead{CPUSeconds: seconds(u.Utime) + seconds(u.Stime), MaxResidentBytes: resident}
}
