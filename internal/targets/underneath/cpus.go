// Package underneath counts what the machine below VMs does, for targets whose nodes are all parts of this one.
//
// It stands beside the targets, above procfs. It starts nothing and keeps nothing but what it read last.
package underneath

import (
	"io/fs"
	"sync"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/procfs"
)

// Name stands for this machine in counters.
const Name = "host"

// CPUs counts the time of this machine's CPUs. It is safe for concurrent use.
type CPUs struct {
	system fs.FS
	numa   map[int]int // the NUMA node of each CPU

	mu   sync.Mutex
	last map[int]procfs.CPU
}

// New counts on a machine whose /proc and /sys are in a file system, / of the machine itself. Which NUMA node a CPU
// belongs to is read once; where the kernel lists none, all are of node 0.
func New(system fs.FS) *CPUs {
	return &CPUs{system: system, numa: procfs.NUMANodes(system), last: map[int]procfs.CPU{}}
}

// Counters are those of every CPU, which never fall. A line of /proc/stat that does not fit is left out.
func (c *CPUs) Counters() (list []target.CPUCounter, err error) {
	data, err := fs.ReadFile(c.system, "proc/stat")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := procfs.CPUs(data)
	for _, one := range now {
		one = one.Rising(c.last[one.Number])
		c.last[one.Number] = one
		list = append(list, target.CPUCounter{
			Host: Name, CPU: one.Number, NUMA: c.numa[one.Number],
			User: one.Time(procfs.User, procfs.Nice), System: one.Time(procfs.System),
			Idle:      one.Time(procfs.Idle, procfs.IOWait),
			Interrupt: one.Time(procfs.IRQ, procfs.SoftIRQ), Steal: one.Time(procfs.Steal),
		})
	}
	return list, nil
}
