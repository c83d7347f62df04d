package host

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/kit/procfs"
)

// Bounds of what is looked at of control groups: how many folders, and how long the list of limited ones is good for.
const (
	mostGroups = 4096
	groupsKept = 10 * time.Second
)

// group is a control group whose processes have a limit of CPU time or memory.
type group struct {
	dir     string // below the root
	id      string // its path in the hierarchy, as /proc/PID/cgroup has it
	process string // what most of its processes run, "" where that is not seen
}

// groups tells what limits of control groups held back, under cAdvisor's names: of groups with a CPU quota the periods
// and how many of them were throttled, of those of version 2 that have a limit also what waited.
func (c *Collector) groups(emit exporter.Emit) error {
	if now := time.Now(); c.limited == nil || now.Sub(c.limitedAt) > groupsKept {
		c.limited, c.limitedAt = limitedGroups(c.root), now
	}
	if len(c.limited) == 0 {
		return exporter.ErrNoData
	}
	for _, g := range c.limited {
		labels := []string{"id", g.id, "process", g.process}
		if periods, throttled, ok := procfs.Quota(c.root, g.dir); ok {
			emit("container_cpu_cfs_periods_total", float64(periods), labels...)
			emit("container_cpu_cfs_throttled_periods_total", float64(throttled), labels...)
		}
		for _, resource := range []string{"cpu", "io", "memory"} {
			data, err := fs.ReadFile(c.root, path.Join(g.dir, resource+".pressure"))
			if err != nil {
				continue // of version 1, of a kernel without it, or the group is gone
			}
			_ = procfs.Stalls(data, func(kind string, waited time.Duration) { // a line that cannot be read is no wait
				if kind == "some" {
					emit("container_pressure_"+resource+"_waiting_seconds_total", waited.Seconds(), labels...)
				}
			})
		}
	}
	return nil
}

// limitedGroups are the groups of the hierarchies that are mounted which have a limit.
func limitedGroups(root fs.FS) []group {
	list := []group{}
	looked := 0
	data, err := fs.ReadFile(root, "proc/1/mounts")
	if err != nil {
		data, _ = fs.ReadFile(root, "proc/self/mounts") // without it there are none
	}
	_ = procfs.Lines(data, func(f []string) error {
		if len(f) < 3 || f[2] != "cgroup2" && (f[2] != "cgroup" || len(f) < 4 || !has(f[3], "cpu")) {
			return nil
		}
		top := strings.TrimPrefix(unescape.Replace(f[1]), "/")
		return fs.WalkDir(root, top, func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // a group that is gone by now
			}
			if looked++; looked > mostGroups {
				return fs.SkipAll
			}
			if dir == top {
				return nil // no limit, but in a container: its own is told by Quota
			}
			_, _, quota := procfs.Quota(root, dir)
			if quota || limit(root, dir, "cpu.max") || limit(root, dir, "memory.max") {
				id := "/" + strings.TrimPrefix(strings.TrimPrefix(dir, top), "/")
				list = append(list, group{dir, id, commandOf(root, dir)})
			}
			return nil
		})
	})
	return list
}

// has reports whether a list with commas has a word.
func has(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// limit reports whether a group of version 2 has a limit in one of its files.
func limit(root fs.FS, dir, file string) bool {
	data, err := fs.ReadFile(root, path.Join(dir, file))
	return err == nil && !strings.HasPrefix(string(data), "max")
}

// mostProcesses is how many of a group's processes are asked what they are.
const mostProcesses = 16

// commandOf returns what most of the first processes in a group run, or in those below it where it has none itself.
func commandOf(root fs.FS, dir string) (name string) {
	_ = fs.WalkDir(root, dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		data, _ := fs.ReadFile(root, path.Join(at, "cgroup.procs"))
		pids, of := strings.Fields(string(data)), map[string]int{}
		for _, pid := range pids[:min(len(pids), mostProcesses)] {
			comm, _ := fs.ReadFile(root, path.Join("proc", pid, "comm"))
			command := string(trimmed(comm))
			if of[command]++; of[command] > of[name] || name == "" {
				name = command
			}
		}
		if len(pids) > 0 {
			return fs.SkipAll
		}
		return nil
	})
	return name
}
