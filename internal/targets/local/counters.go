//go:build linux

package local

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/targets/underneath"
)

const hostName = underneath.Name

// HostCounters implements target.HostSource from /proc: the time of every CPU with its NUMA node, the block devices
// that hold the data disks where the kernel names them, and of every command of the run what its busiest thread did
// since the last call.
func (c *cluster) HostCounters(ctx context.Context) (target.HostCounters, error) {
	var out target.HostCounters
	if err := ctx.Err(); err != nil {
		return out, fmt.Errorf("host counters: %w", err)
	}
	var err error
	if out.CPUs, err = c.cpus.Counters(); err != nil {
		return out, fmt.Errorf("host counters: /proc/stat: %s", device.Reason(err))
	}
	if len(c.devices) > 0 {
		data, err := fs.ReadFile(c.system, "proc/diskstats")
		if err != nil {
			return out, fmt.Errorf("host counters: /proc/diskstats: %s", device.Reason(err))
		}
		for _, name := range c.devices {
			if d, ok := deviceCounter(data, name); ok {
				out.Devices = append(out.Devices, d)
			}
		}
	}
	out.Generators = c.generators()
	out.Quotas, out.Waits = c.quotas(), waits(c.system)
	return out, nil
}

// waits reads /proc/pressure, which not every kernel keeps.
func waits(system fs.FS) (list []target.WaitCounter) {
	for _, resource := range []string{"cpu", "io", "memory"} {
		data, err := fs.ReadFile(system, "proc/pressure/"+resource)
		if err != nil {
			continue
		}
		_ = procfs.Stalls(data, func(kind string, waited time.Duration) { // a line that cannot be read is no wait
			if kind == "some" {
				list = append(list, target.WaitCounter{Machine: hostName, Resource: resource, Waited: waited})
			}
		})
	}
	return list
}

// quotas reads what the CPU quotas of the sandboxes have done, and that of the group in which this process is, as a
// container has one: all of the run is below that.
func (c *cluster) quotas() (list []target.QuotaCounter) {
	boots := map[string]string{} // names of the sandboxes that are on, by their groups' keys
	c.mu.Lock()
	for _, b := range c.sandboxes(-1) {
		if b.key != "" && b.cpus > 0 {
			boots[b.key] = b.name
		}
	}
	c.mu.Unlock()
	if c.groups.cpu.dir != "" {
		for _, key := range slices.Sorted(maps.Keys(boots)) {
			if q, ok := quotaOf(c.system, path.Join(c.groups.cpu.dir, c.groups.name, key)); ok {
				q.Machine = boots[key]
				list = append(list, q)
			}
		}
	}
	if q, ok := ownQuota(c.system); ok {
		q.Machine = hostName
		list = append(list, q)
	}
	return list
}

// ownQuota is that of the quotas above this process that held most back.
func ownQuota(system fs.FS) (most target.QuotaCounter, found bool) {
	mounts, err := device.Mounts(system)
	if err != nil {
		return most, false
	}
	own := ownGroups(system)
	for _, m := range mounts {
		group := own[""]
		if m.FSType == "cgroup" && slices.Contains(m.Super, "cpu") {
			group = own["cpu"]
		} else if m.FSType != "cgroup2" {
			continue
		}
		for dir := groupDir(m, group); ; dir = path.Dir(dir) {
			if q, ok := quotaOf(system, dir); ok && (!found || q.Throttled > most.Throttled) {
				most, found = q, true
			}
			if dir == m.Point || dir == "/" {
				break
			}
		}
	}
	return most, found
}

// quotaOf reads the counters of a group's quota; false where it has none.
func quotaOf(system fs.FS, dir string) (q target.QuotaCounter, ok bool) {
	q.Periods, q.Throttled, ok = procfs.Quota(system, dir)
	return q, ok
}

// deviceCounter finds a device in /proc/diskstats; false when it is not there, or its line does not fit.
func deviceCounter(data []byte, name string) (target.DeviceCounter, bool) {
	list, _ := procfs.Disks(data, procfs.MillisBusy+1)
	for _, d := range list {
		if d.Name == name {
			return target.DeviceCounter{
				Host: hostName, Device: name, Reads: d.Counts[procfs.ReadsCompleted],
				ReadBytes: d.Counts[procfs.SectorsRead] * procfs.SectorBytes, Writes: d.Counts[procfs.WritesCompleted],
				WrittenBytes: d.Counts[procfs.SectorsWritten] * procfs.SectorBytes,
				Busy:         time.Duration(d.Counts[procfs.MillisBusy]) * time.Millisecond,
				Operations: time.Duration(d.Counts[procfs.MillisReading]+d.Counts[procfs.MillisWriting]) *
					time.Millisecond,
			}, true
		}
	}
	return target.DeviceCounter{}, false
}

// countedDevice is the block device whose counters see all that happens to the files of a mount, or why there is none.
// Only a mount that carries the device's own number will do: the sources that other file systems name may be one of
// several members.
func countedDevice(system fs.FS, m device.Mount) (name, why string) {
	if name := device.Whole(system, device.OfNumber(system, m.Device)); name != "" {
		return name, ""
	}
	switch m.FSType {
	case "tmpfs", "ramfs":
		return "", m.FSType + " is memory, no device"
	case "overlay":
		return "", "overlay lies on other mounts, which this process may not see"
	}
	return "", fmt.Sprintf("%s carries no block device's number (%s), so no one device's counters are sure to see "+
		"its files", m.FSType, m.Device)
}

// generators compares every running command's threads with what they were when last looked at.
func (c *cluster) generators() (list []target.GeneratorUse) {
	c.looking.Lock()
	defer c.looking.Unlock()
	var pids []int
	of := map[int]target.GeneratorUse{} // by process
	c.mu.Lock()
	for _, b := range c.sandboxes(-1) {
		for _, u := range b.units {
			if !u.service { // what a load goes to is not what makes it
				pids = append(pids, u.cmd.Process.Pid)
				of[u.cmd.Process.Pid] = target.GeneratorUse{VM: b.name, Label: u.label}
			}
		}
	}
	c.mu.Unlock()
	slices.Sort(pids)
	uses := c.threads.Look(c.system, c.clock.Now(), pids)
	for _, pid := range pids {
		if use, ok := uses[pid]; ok {
			one := of[pid]
			one.Busy, one.Waiting = use.Busy, use.Waiting
			list = append(list, one)
		}
	}
	return list
}
