package procfs

import (
	"io/fs"
	"path"
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
	_ = Lines(data, func(f []string) error { // a line that cannot be read is no quota
		if n, err := Counts(f[1:]); err == nil && len(n) == 1 {
			switch f[0] {
			case "nr_periods":
				periods = n[0]
			case "nr_throttled":
				throttled = n[0]
			}
		}
		return nil
	})
	return periods, throttled, periods > 0
}
