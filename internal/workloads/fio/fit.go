package fio

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/workloads/fio/fiofile"
)

// fit keeps every extent on its disk: fio lets a file grow to whatever a job asks for. What goes beyond only through
// rounding is cut, with a note; what the author himself placed there is an objection.
func (a *adaptation) fit() {
	for _, job := range a.out.Jobs() {
		disks := a.disksOf(job)
		if smallest := smallestDisk(disks); smallest.Bytes > 0 {
			a.fitJob(job, smallest, int64(len(disks)))
		}
	}
}

func smallestDisk(disks []target.Disk) target.Disk {
	if len(disks) == 0 {
		return target.Disk{}
	}
	smallest := disks[0]
	for _, d := range disks {
		if d.Bytes < smallest.Bytes {
			smallest = d
		}
	}
	return smallest
}

func (a *adaptation) fitJob(job fiofile.Job, disk target.Disk, n int64) {
	var v [4]int64
	for i, key := range []string{"offset", "offset_increment", "size", "filesize"} {
		var ok bool
		if v[i], ok = a.bytes(job, key); !ok {
			o, _ := job.Get(key)
			a.object(job.Section, o, "cannot be compared with the size of "+disk.Device+"; write a plain number "+
				"with a unit")
			return
		}
	}
	offset, increment, size, filesize := v[0], v[1], v[2], v[3]
	offset = add63(offset, mul63(increment, int64(number(job, "numjobs", 1))-1))
	end := max(add63(offset, (size+n-1)/n), filesize)
	if end <= disk.Bytes {
		return
	}
	block := largestBlock(job)
	room := (disk.Bytes - offset) / block * block
	if a.spec.SizeScale == 1 || end-disk.Bytes > 2*max(sizeUnit, block) || room < block || size == 0 ||
		filesize > disk.Bytes {
		o, ok := job.Get("size")
		if !ok {
			o = fiofile.Option{Key: "filename", Value: disk.Device, Line: job.Line}
		}
		a.object(job.Section, o, fmt.Sprintf("it ends at byte %d, beyond %s, which has %d bytes%s",
			end, disk.Device, disk.Bytes, scaleWord(a.spec.SizeScale)))
		return
	}
	job.Section.Set("size", strconv.FormatInt(room*n, 10))
	a.note("[%s] size cut from %d to %d bytes, what is left of %s after its offset", job.Name, size, room*n,
		disk.Device)
}

func scaleWord(scale float64) string {
	if scale == 1 {
		return ""
	}
	return fmt.Sprintf(" (all scaled by %g)", scale)
}

// bytes returns the value of a size option in force for a job, the larger one of a range. Absent is 0, and so is a
// percentage, which fio takes of the disk itself. It is not ok when only fio could read it.
func (a *adaptation) bytes(job fiofile.Job, key string) (int64, bool) {
	_, text, isRange := strings.Cut(job.Value(key), "-")
	if !isRange {
		text = job.Value(key)
	}
	if text == "" {
		return 0, true
	}
	size, err := a.parseSize(job.Section, text)
	return size.Bytes, err == nil
}

// add63 and mul63 stop at the greatest value instead of wrapping round.
func add63(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mul63(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
