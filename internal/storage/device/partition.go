package device

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"plimsoll/unit"
)

// Part is a partition of a disk.
type Part struct {
	Name       string       `json:"name"`
	Number     int          `json:"number"`
	StartBytes int64        `json:"start_bytes"`
	SizeBytes  int64        `json:"size_bytes"`
	Misaligned []Misaligned `json:"misaligned,omitempty"`
}

// Misaligned is a boundary that a partition does not begin on, and what comes of it.
type Misaligned struct {
	Against string `json:"against"` // what the boundary is of
	Bytes   int64  `json:"bytes"`   // from one boundary to the next
	Off     int64  `json:"off_bytes"`
	Why     string `json:"why"`
}

// parts are the partitions that the kernel knows of a disk, by their start.
func parts(system fs.FS, dir string, disk Device) (list []Part) {
	for _, name := range names(system, dir) {
		at := path.Join(dir, name)
		if _, err := fs.Stat(system, path.Join(at, "partition")); err != nil {
			continue
		}
		l := looker{system, at, disk.Unknown}
		p := Part{Name: name, Number: int(l.number(name+".number", "partition")),
			StartBytes: l.number(name+".start_bytes", "start") * sectorBytes,
			SizeBytes:  l.number(name+".size_bytes", "size") * sectorBytes}
		p.Misaligned = misaligned(p.StartBytes, disk.Queue)
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Part) int {
		switch {
		case a.StartBytes != b.StartBytes:
			return int(min(1, max(-1, a.StartBytes-b.StartBytes)))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// misaligned compares the start of a partition with the device's physical block, with its optimal request, and with
// 1 MiB, which is what tools use because media hide larger pages than they tell.
func misaligned(start int64, q Queue) (list []Misaligned) {
	add := func(against string, bytes, first int64, why string) {
		if off := (start - first) % bytes; off != 0 {
			list = append(list, Misaligned{against, bytes, (off + bytes) % bytes, why})
		}
	}
	if q.PhysicalBlockBytes > 0 {
		why := fmt.Sprintf("a write of %v touches two physical blocks, and the device reads, changes and writes both",
			unit.Bytes(q.PhysicalBlockBytes))
		if start == dosStart {
			why = "it begins at sector 63, as DOS laid partitions on cylinders: " + why
		}
		add("physical block", q.PhysicalBlockBytes, q.AlignmentBytes, why)
	}
	if q.OptimalIOBytes > 0 {
		add("optimal request", q.OptimalIOBytes, q.AlignmentBytes,
			"a request of the optimal size spans two stripes, and so two members of an array")
	}
	add("boundary", 1<<20, 0, "flash pages, erase blocks and stripes are larger than devices tell, and divide 1 MiB")
	return list
}

// dosStart is where the first partition began when disks still had cylinders: sector 63.
const dosStart = 63 * sectorBytes
