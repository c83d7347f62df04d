package fio

import (
	"strconv"
	"strings"

	"plimsoll/internal/fiofile"
	"plimsoll/internal/workload"
)

// PrefillBlock is the block size of prefill writes in bytes, unless a Spec says another.
const PrefillBlock = 1 << 20

// prefill derives the job that writes every section's extent once, or all of every disk. Only filename, size and offset
// of each section are carried over, so the content is fio's incompressible default whatever the workload's own data
// looks like.
func (a *adaptation) prefill() {
	global := fiofile.Section{Name: fiofile.Global, Options: []fiofile.Option{
		{Key: "ioengine", Value: "libaio"},
		{Key: "direct", Value: "1"},
		{Key: "bs", Value: strconv.FormatInt(a.prefillBlock(), 10)},
		{Key: "iodepth", Value: strconv.Itoa(max(1, a.spec.Depth))},
		{Key: "rw", Value: "write"},
	}}
	global.Options = append(global.Options, forced...)
	out := &fiofile.File{Name: a.source.Name, Sections: []fiofile.Section{global}}
	a.out = out
	if a.spec.Whole {
		for i, d := range a.spec.Disks {
			section := fiofile.Section{Name: "disk-" + strconv.Itoa(i+1)}
			section.Set("filename", d.Device)
			section.Set("size", strconv.FormatInt(d.Bytes, 10))
			out.Sections = append(out.Sections, section)
		}
		return
	}
	for _, job := range a.source.Jobs() {
		section := fiofile.Section{Name: job.Name, Line: job.Line, Col: job.Col}
		for _, key := range []string{"filename", "size", "offset"} {
			o, given := last(job.Section, key)
			if !given && key != "offset" {
				a.objectAt(job.Line, job.Col, "[%s] prefill needs %s in the section itself; %s", job.Name, key,
					"a value in [global], or filesize alone, is not enough")
			}
			if !given {
				continue
			}
			if o, ok := a.pass(job.Section, o); ok {
				section.Options = append(section.Options, o)
			}
		}
		out.Sections = append(out.Sections, section)
	}
}

// prefillBlock is the size of the writes in bytes.
func (a *adaptation) prefillBlock() int64 {
	if a.spec.Block > 0 {
		return a.spec.Block
	}
	return PrefillBlock
}

// shrinkPrefillBlocks keeps a section smaller than one prefill block from being written not at all.
func shrinkPrefillBlocks(out *fiofile.File, lanes []workload.Lane, block int64) {
	for i := range lanes {
		disks := int64(1 + strings.Count(lanes[i].Device, ":"))
		if b := lanes[i].Bytes / disks; b > 0 && b < block {
			out.Jobs()[i].Section.Set("bs", strconv.FormatInt(b, 10))
			lanes[i].WriteBytes = float64(b)
		}
	}
}
