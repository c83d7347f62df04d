//go:build linux

package local

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/storage/device"
	"plimsoll/result"
	"plimsoll/unit"
)

// ioLimits are what a quota of I/O bounds: its key in io.max, and its file in version 1 of control groups.
var ioLimits = []struct {
	key, file, name string
	kind            result.FactKind
}{
	{"riops", "blkio.throttle.read_iops_device", "reads a second", result.LimitReadRate},
	{"wiops", "blkio.throttle.write_iops_device", "writes a second", result.LimitWriteRate},
	{"rbps", "blkio.throttle.read_bps_device", "bytes read a second", result.LimitReadBandwidth},
	{"wbps", "blkio.throttle.write_bps_device", "bytes written a second", result.LimitWriteBandwidth},
}

// limitFacts tells what the groups of this process allow on the device under the disks, the least of each: those above
// its own count as well, but in version 1, where they do not bound it.
func limitFacts(l *factList, system fs.FS, st storage) {
	mounts, err := device.Mounts(system)
	if err != nil || st.device == "" {
		return
	}
	disk, own := device.Whole(system, st.device), ownGroups(system)
	least, where := map[string]float64{}, map[string]string{}
	note := func(key, value, file, dir string) {
		most, err := strconv.ParseUint(value, 10, 64)
		if was, ok := least[key]; err == nil && most < math.MaxInt64 && (!ok || float64(most) < was) {
			least[key], where[key] = float64(most), file+" of "+dir
		}
	}
	for _, m := range mounts {
		switch {
		case m.FSType == "cgroup" && slices.Contains(m.Super, "blkio"):
			dir := groupDir(m, own["blkio"])
			for _, k := range ioLimits {
				for _, value := range ofDevice(system, path.Join(dir, k.file), disk) {
					note(k.key, value, k.file, dir)
				}
			}
		case m.FSType == "cgroup2":
			for dir := groupDir(m, own[""]); ; dir = path.Dir(dir) {
				for _, field := range ofDevice(system, path.Join(dir, "io.max"), disk) {
					key, value, _ := strings.Cut(field, "=")
					note(key, value, "io.max", dir)
				}
				if dir == m.Point || dir == "/" {
					break
				}
			}
		}
	}
	for _, k := range ioLimits {
		most, ok := least[k.key]
		if !ok {
			continue
		}
		value := unit.Rate(most).String()
		if strings.HasSuffix(k.key, "bps") {
			value = unit.Bandwidth(most).String()
		}
		f := l.add(st.group, k.name+" at most", value+" by "+where[k.key], "")
		f.Kind, f.Number = k.kind, most
		f.Identifies = result.Path
	}
}

// ofDevice are the words of a group's file that follow a device's number.
func ofDevice(system fs.FS, file, disk string) []string {
	data, _ := fs.ReadFile(system, strings.TrimPrefix(file, "/"))
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 0 && disk != "" && device.Whole(system, device.OfNumber(system, fields[0])) == disk {
			return fields[1:]
		}
	}
	return nil
}
