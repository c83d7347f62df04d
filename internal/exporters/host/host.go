// Package host counts what the machine under it does, under the names and in the units of node_exporter (1.x): CPUs,
// load, memory, network, disks, file systems, pressure, paging. Queries and dashboards made for that work here.
//
// It reads /proc below a root, so that a container can look at the machine around it. What the kernel does not have
// is left out; a line that cannot be read is an error that is served, beside everything that could be. It has a small
// part of node_exporter's collectors, and no filters: loop, ram and floppy devices and partitions are left out, as
// there, and so are file systems that are not on this machine, because a server that is gone would hold up the page.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/procfs"
)

// Section is one part of what is counted.
type Section string

// The sections.
const (
	CPU         Section = "cpu"
	Load        Section = "load"
	Memory      Section = "memory"
	Network     Section = "network"
	Disk        Section = "disk"
	FileSystems Section = "filesystem"
	Kernel      Section = "kernel" // of /proc/stat what is not of CPUs, time of the boot, uname
	Paging      Section = "vmstat"
	Pressure    Section = "pressure"
	Quota       Section = "quota"  // limits of the container that the collector is in
	Groups      Section = "cgroup" // limits of control groups, as of containers, under cAdvisor's names
)

// Sections are those of a machine: all but Quota, which is of the container that an agent is in.
func Sections() []Section {
	return []Section{CPU, Load, Memory, Network, Disk, FileSystems, Kernel, Paging, Pressure, Groups}
}

// Kind is the exporter `host`.
func Kind() exporter.Kind {
	return exporter.Kind{
		Name:    "host",
		Summary: "this machine: CPUs, load, memory, network, disks, file systems; under node_exporter's names",
		Options: []target.Option{{Name: "root", Default: "/", Help: "folder that holds the machine's /proc"}},
		New: func(options target.Values) (exporter.Collector, error) {
			root := options.Text("root")
			if info, err := os.Stat(root); err != nil || !info.IsDir() {
				return nil, fmt.Errorf("option %q: %q is no folder", "root", root)
			}
			return New(os.DirFS(root), usageBelow(root), Sections()...), nil
		},
	}
}

// Usage is how full a file system is: sizes in bytes. It is given the path of its mount.
type Usage func(mount string) (u FileSystem, err error)

// FileSystem is how full a file system is.
type FileSystem struct {
	Size, Free, Available uint64 // bytes; Available is what those who are not root may still write
	Files, FilesFree      uint64
	ReadOnly              bool
}

// Collector counts the machine whose /proc is in a file system.
type Collector struct {
	root     fs.FS
	usage    Usage
	sections []Section

	numa map[int]int // the NUMA node of each CPU; empty with fewer than two nodes
	// given are the names in /dev of devices that the kernel calls otherwise, by their numbers: see givenDisks
	given map[string]string

	mu        sync.Mutex
	cpus      map[int]procfs.CPU // when last read
	limited   []group            // as of limitedAt; nil before the first look
	limitedAt time.Time
}

// New makes a collector of some sections. usage may be nil; then there are no file systems.
func New(root fs.FS, usage Usage, sections ...Section) *Collector {
	c := &Collector{root: root, usage: usage, sections: sections, cpus: map[int]procfs.CPU{}}
	c.numa = procfs.NUMANodes(root)
	if nodes := slices.Compact(slices.Sorted(maps.Values(c.numa))); len(nodes) < 2 {
		c.numa = nil
	}
	c.given = givenDisks(root, deviceNumber)
	return c
}

// Describe implements exporter.Collector.
func (c *Collector) Describe() exporter.Description {
	d := exporter.Description{Name: "host", Help: "What this machine does."}
	for _, s := range c.sections {
		d.Families = append(d.Families, described[s]...)
	}
	return d
}

// Collect implements exporter.Collector.
func (c *Collector) Collect(ctx context.Context, emit exporter.Emit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	any := false
	for _, s := range c.sections {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.section(s, emit)
		if any = any || !errors.Is(err, exporter.ErrNoData); err != nil && !errors.Is(err, exporter.ErrNoData) {
			errs = append(errs, err)
		}
	}
	if !any {
		return fmt.Errorf("/proc: %w", exporter.ErrNoData)
	}
	return errors.Join(errs...)
}

func (c *Collector) section(s Section, emit exporter.Emit) error {
	switch s {
	case CPU:
		return c.cpu(emit)
	case Load:
		return c.each("proc/loadavg", emit, load)
	case Memory:
		return c.each("proc/meminfo", emit, memory)
	case Network:
		return c.each("proc/net/dev", emit, network)
	case Disk:
		return c.each("proc/diskstats", emit, func(data []byte, emit exporter.Emit) error {
			return disks(data, c.given, emit)
		})
	case FileSystems:
		return c.fileSystems(emit)
	case Kernel:
		return errors.Join(c.each("proc/stat", emit, kernel), c.uname(emit))
	case Paging:
		return c.each("proc/vmstat", emit, paging)
	case Pressure:
		return c.pressure(emit)
	case Quota:
		return c.quota(emit)
	case Groups:
		return c.groups(emit)
	}
	return fmt.Errorf("no section is called %q", s)
}

// each reads a file and gives it to a parser. A file that is not there, or that the kernel refuses to fill, is no data.
func (c *Collector) each(file string, emit exporter.Emit, parse func([]byte, exporter.Emit) error) error {
	data, err := fs.ReadFile(c.root, file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errors.ErrUnsupported):
		return exporter.ErrNoData
	case err != nil:
		return fmt.Errorf("/%s: %w", file, cause(err))
	}
	if err := parse(data, emit); err != nil {
		return fmt.Errorf("/%s: %w", file, err)
	}
	return nil
}

// cause is an error of a file without its path, which is said in front.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// cpu counts the time of the CPUs, which never falls.
func (c *Collector) cpu(emit exporter.Emit) error {
	return c.each("proc/stat", emit, func(data []byte, emit exporter.Emit) error {
		now, err := procfs.CPUs(data)
		for _, one := range now {
			one = one.Rising(c.cpus[one.Number])
			c.cpus[one.Number] = one
			label := strconv.Itoa(one.Number)
			for m, name := range modes {
				emit("node_cpu_seconds_total", one.Seconds(procfs.Mode(m)), "cpu", label, "mode", name)
			}
			emit("node_cpu_guest_seconds_total", one.Seconds(procfs.Guest), "cpu", label, "mode", "user")
			emit("node_cpu_guest_seconds_total", one.Seconds(procfs.GuestNice), "cpu", label, "mode", "nice")
			// node_exporter has no such metric
			if node, ok := c.numa[one.Number]; ok {
				emit("plimsoll_cpu_numa_node_info", 1, "cpu", label, "numa_node", strconv.Itoa(node))
			}
		}
		return err
	})
}

// uname is who the machine says it is.
func (c *Collector) uname(emit exporter.Emit) error {
	read := func(name string) string {
		data, _ := fs.ReadFile(c.root, "proc/sys/kernel/"+name) // what is not there is no label
		return string(trimmed(data))
	}
	release := read("osrelease")
	if release == "" {
		return nil
	}
	emit("node_uname_info", 1, "domainname", read("domainname"), "machine", read("arch"), "nodename", read("hostname"),
		"release", release, "sysname", read("ostype"), "version", read("version"))
	return nil
}

// pressure is how long tasks have waited for something there is too little of.
func (c *Collector) pressure(emit exporter.Emit) error {
	var errs []error
	for _, resource := range []string{"cpu", "io", "irq", "memory"} {
		errs = append(errs, c.each("proc/pressure/"+resource, emit, func(data []byte, emit exporter.Emit) error {
			return stalls(resource, data, emit)
		}))
	}
	missing := func(err error) bool { return errors.Is(err, exporter.ErrNoData) }
	if known := slices.DeleteFunc(slices.Clone(errs), missing); len(known) > 0 {
		return errors.Join(known...)
	}
	return exporter.ErrNoData
}

// quota returns what the limits of this container, of CPU time and of memory, have done where it has them.
func (c *Collector) quota(emit exporter.Emit) error {
	found := exporter.ErrNoData
	for _, group := range procfs.OwnGroups {
		if periods, throttled, ok := procfs.Quota(c.root, group); ok {
			emit(quotaPeriods, float64(periods))
			emit(quotaThrottled, float64(throttled))
			found = nil
			break
		}
	}
	if limit, hits, ok := procfs.MemoryLimit(c.root); ok {
		emit(memoryLimit, float64(limit))
		if hits != nil {
			emit(memoryHits, float64(*hits))
		}
		found = nil
	}
	return found
}

// fileSystems tells how full the file systems of this machine are, each where it was mounted first.
func (c *Collector) fileSystems(emit exporter.Emit) error {
	if c.usage == nil {
		return exporter.ErrNoData
	}
	file := "proc/1/mounts"
	if _, err := fs.Stat(c.root, file); err != nil {
		file = "proc/self/mounts"
	}
	return c.each(file, emit, func(data []byte, emit exporter.Emit) error {
		var errs []error
		for _, m := range parseMounts(data) {
			labels := []string{"device", m.device, "mountpoint", m.point, "fstype", m.kind}
			u, err := c.usage(m.point)
			emit("node_filesystem_device_error", truth(err != nil), labels...)
			if err != nil {
				if !errors.Is(err, fs.ErrPermission) &&
					!errors.Is(err, fs.ErrNotExist) { // other users' and namespaces' mounts
					errs = append(errs, fmt.Errorf("%q: %w", m.point, err))
				}
				continue
			}
			emit("node_filesystem_size_bytes", float64(u.Size), labels...)
			emit("node_filesystem_free_bytes", float64(u.Free), labels...)
			emit("node_filesystem_avail_bytes", float64(u.Available), labels...)
			emit("node_filesystem_files", float64(u.Files), labels...)
			emit("node_filesystem_files_free", float64(u.FilesFree), labels...)
			emit("node_filesystem_readonly", truth(u.ReadOnly), labels...)
		}
		return errors.Join(errs...)
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
