package procfs

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// OwnGroups are where a container sees its own control group, in either version's hierarchy. On a machine they are the
// root of all, which has no quota.
var OwnGroups = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}

// Quota reads what the CPU quota of a control group has done, in either version's hierarchy: the periods in which its
// processes had something to do, and those in which they were held back. ok is false where it has none.
func Quota(system fs.FS, group string) (periods, throttled uint64, ok bool) {
	data, err := fs.ReadFile(system, strings.TrimPrefix(path.Join(group, "cpu.stat"), "/"))
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
		case name == "nr_periods":
			periods = n
		case name == "nr_throttled":
			throttled = n
		}
	}
	return periods, throttled, periods > 0
}
