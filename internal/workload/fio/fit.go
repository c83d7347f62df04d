package fio

import (
	"fmt"
	"strconv"

	"plimsoll/scenario/fiofile"
)

// fit keeps every extent on its disk. A file-backed disk would silently grow if fio wrote beyond it. What goes beyond
// only through rounding is cut, with a note; what the author himself placed there is an objection.
func (a *adaptation) fit() {
	for _, job := range a.out.Jobs() {
		disks := a.disksOf(job)
		n := int64(len(disks))
		offset, okOffset := a.bytes(job, "offset")
		size, okSize := a.bytes(job, "size")
		if n == 0 || !okOffset || !okSize {
			continue
		}
		smallest := disks[0].Bytes
		for _, d := range disks {
			smallest = min(smallest, d.Bytes)
		}
		end := offset + (size+n-1)/n
		if smallest <= 0 || end <= smallest {
			continue
		}
		o, _ := job.Get("size")
		block := largestBlock(job)
		slack := max(sizeUnit, block) * 2
		room := (smallest - offset) / block * block
		if a.spec.SizeScale == 1 || end-smallest > slack || room < block {
			a.object(job.Section, o, fmt.Sprintf("offset %d and size %d bytes end beyond %s, which has %d bytes%s",
				offset, size, disks[0].Device, smallest, scaleWord(a.spec.SizeScale)))
			continue
		}
		job.Section.Set("size", strconv.FormatInt(room*n, 10))
		a.note("[%s] size cut from %d to %d bytes, what is left of %s after its offset", job.Name, size, room*n, disks[0].Device)
	}
}

func scaleWord(scale float64) string {
	if scale == 1 {
		return ""
	}
	return fmt.Sprintf(" (all scaled by %g)", scale)
}

// bytes returns the value of a size option in force for a job; absent is 0, and a percentage or something that only fio
// can read is not ok.
func (a *adaptation) bytes(job fiofile.Job, key string) (int64, bool) {
	text := job.Value(key)
	if text == "" {
		return 0, true
	}
	size, err := a.parseSize(job.Section, text)
	return size.Bytes, err == nil && size.Percent == 0
}
