//go:build linux

package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Environment reads the environment of a process, as "NAME=value" with a zero byte after each. In the middle of
// starting a program a process shows none for a moment, which is long on a busy machine: one that shows none is asked
// again for 31 ms, unless it is dead or the kernel's own. Whoever looks for processes by a variable and does not ask
// again misses those that are just starting.
func Environment(pid int) ([]byte, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || len(data) > 0 || wait > 16*time.Millisecond || !starting(pid) {
			return data, err
		}
		time.Sleep(wait) // the kernel's pace, not the run's
	}
}

// starting is whether a process that shows no environment may still get one, by /proc/PID/stat (proc(5)).
func starting(pid int) bool {
	fields := Fields(pid)
	if len(fields) < 7 {
		return false
	}
	const kernelThread = 0x00200000 // PF_KTHREAD of the kernel's flags
	flags, err := strconv.ParseUint(fields[6], 10, 32)
	return err == nil && flags&kernelThread == 0 && !strings.ContainsAny(fields[0], "ZX")
}
