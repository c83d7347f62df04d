package procfs

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// NUMANodes tells which NUMA node each CPU of a machine belongs to, whose / is given. It is empty where the kernel
// lists no nodes; a list that cannot be read is left out.
func NUMANodes(system fs.FS) map[int]int {
	of := map[int]int{}
	lists, _ := fs.Glob(system, "sys/devices/system/node/node[0-9]*/cpulist")
	for _, file := range lists {
		node, err := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(file)), "node"))
		data, unread := fs.ReadFile(system, file)
		if err != nil || unread != nil {
			continue
		}
		for _, cpu := range parseList(string(data)) {
			of[cpu] = node
		}
	}
	return of
}

// mostCPUs bounds what a list may name; the largest kernels are built for 8192.
const mostCPUs = 1 << 16

// parseList reads the kernel's lists of numbers, such as "0-3,8,10-11".
func parseList(text string) (list []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b >= mostCPUs {
			continue
		}
		for i := a; i <= b; i++ {
			list = append(list, i)
		}
	}
	return list
}
