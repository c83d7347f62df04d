//go:build linux

package local

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"plimsoll/internal/storage/device"
	"plimsoll/result"
	"plimsoll/unit"
)

// ioLimits are the keys of io.max, and what they bound.
var ioLimits = []struct {
	key, name string
	kind      result.FactKind
}{
	{"riops", "reads a second", result.LimitReadRate},
	{"wiops", "writes a second", result.LimitWriteRate},
	{"rbps", "bytes read a second", result.LimitReadBandwidth},
	{"wbps", "bytes written a second", result.LimitWriteBandwidth},
}

// limitFacts tells what the groups above this process allow on the device under the disks (io.max): the least of each.
func limitFacts(l *factList, system fs.FS, st storage) {
	mounts, err := device.Mounts(system)
	if err != nil || st.device == "" {
		return
	}
	least, where := map[string]float64{}, map[string]string{}
	for _, m := range mounts {
		if m.FSType != "cgroup2" {
			continue
		}
		for dir := groupDir(m, ownGroups(system)[""]); ; dir = path.Dir(dir) {
			for key, most := range maxOf(system, dir, device.Whole(system, st.device)) {
				if was, ok := least[key]; !ok || most < was {
					least[key], where[key] = most, dir
				}
			}
			if dir == m.Point || dir == "/" {
				break
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
		f := l.add(st.group, k.name+" at most", value+" by io.max of "+where[k.key], "")
		f.Kind, f.Number = k.kind, most
		f.Identifies = result.Path
	}
}

// maxOf reads what a group's io.max allows on a device.
func maxOf(system fs.FS, dir, name string) map[string]float64 {
	data, _ := fs.ReadFile(system, strings.TrimPrefix(path.Join(dir, "io.max"), "/"))
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || name == "" || device.Whole(system, device.OfNumber(system, fields[0])) != name {
			continue
		}
		out := map[string]float64{}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			if n, err := strconv.ParseUint(value, 10, 64); err == nil && n < math.MaxInt64 {
				out[key] = float64(n)
			}
		}
		return out
	}
	return nil
}
