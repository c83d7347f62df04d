package procfs

import (
	"os"
	"strconv"
	"strings"
)

// VMStat counts, among much else, the processes that the kernel has killed for want of memory.
const VMStat = "/proc/vmstat"

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
