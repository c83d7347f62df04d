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

// MemoryLimit reads how much memory the container of this process may have, in either version's hierarchy, and how
// often it wanted more: hits is nil where the kernel may not count that, as Linux 6.18 in version 1 where swap is
// limited with memory. ok is false where it has no limit.
func MemoryLimit(system fs.FS) (limit uint64, hits *uint64, ok bool) {
	number := func(file string) (uint64, bool) {
		data, err := fs.ReadFile(system, "sys/fs/cgroup/"+file)
		n, e := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
		return n, err == nil && e == nil // "max" is none
	}
	if limit, ok = number("memory/memory.limit_in_bytes"); ok {
		of, counted := number("memory/memory.failcnt")
		both, _ := number("memory/memory.memsw.failcnt") // a request is refused by the one limit or the other
		swap, is := number("memory/memory.memsw.limit_in_bytes")
		if n := of + both; n > 0 || counted && (!is || swap > limit) { // else it may never be counted
			hits = &n
		}
		return limit, hits, limit < 1<<60 // none is the largest that there are pages for
	}
	if limit, ok = number("memory.max"); !ok {
		return 0, nil, false
	}
	data, _ := fs.ReadFile(system, "sys/fs/cgroup/memory.events")
	_ = Lines(data, func(f []string) error {
		if n, err := Counts(f[1:]); f[0] == "max" && err == nil && len(n) == 1 {
			hits = &n[0]
		}
		return nil
	})
	return limit, hits, true
}
