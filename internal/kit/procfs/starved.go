package procfs

import (
	"os"
	"strconv"
	"strings"
)

// VMStat counts, among much else, the processes that the kernel has killed for want of memory.
const VMStat = "/proc/vmstat"

// OwnStarved is the file that counts those of this process's part of the machine, a container's: VMStat where it has
// the whole of it.
func OwnStarved() string {
	for _, file := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if _, ok := Starved(file); ok && limited() {
			return file
		}
	}
	return VMStat
}

// limited reports whether the group that is seen as the root of all has a limit of its own, as no real root has.
func limited() bool {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(file)
		if n, e := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && e == nil && n < 1<<60 {
			return true
		}
	}
	return false
}

// Starved is how many processes the kernel has killed for want of memory, by one of its files that count them:
// VMStat, or memory.events or memory.oom_control of a control group. ok is false where it does not.
func Starved(file string) (n int, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "oom_kill" {
			n, err := strconv.Atoi(fields[1])
			return n, err == nil
		}
	}
	return 0, false
}
