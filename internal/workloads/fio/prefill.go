package fio

import (
	"strconv"
	"strings"

	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// PrefillBlock is the block size of prefill writes in bytes, unless a Spec says another.
const PrefillBlock = 1 << 20

// contentKeys say what data of a job are like; a prefill's are as much so, or reads would be of other data than writes.
var contentKeys = []string{"buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage", "dedupe_mode",
	"dedupe_working_set_percentage", "buffer_pattern"}

// prefill derives the job that writes every section's extent once, or all of every disk. Of each section filename, size
// and offset are carried over, and how far its data compress or repeat; one that asks for no such share, or for data
// that are nothing but zeros or a pattern, gets fio's incompressible default.
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
		section.Options = append(section.Options, contentOptions(job)...)
		out.Sections = append(out.Sections, section)
	}
}

// contentOptions are what a prefill takes over of a job, so that its data are like the job's.
func contentOptions(job fiofile.Job) (out []fiofile.Option) {
	if r := reducible(job); r <= 0 || r >= 1 {
		return nil
	}
	for _, key := range contentKeys {
		if v := job.Value(key); v != "" {
			out = append(out, fiofile.Option{Key: key, Value: v})
		}
	}
	return out
}

// prefillBlock is the size of the writes in bytes.
func (a *adaptation) prefillBlock() int64 {
	if a.spec.Block > 0 {
		return a.spec.Block
	}
	return PrefillBlock
}

// shrinkPrefillBlocks keeps a section smaller than one prefill block from being written not at all.
func shrinkPrefillBlocks(out *fiofile.File, streams []result.Stream, block int64) {
	for i := range streams {
		disks := int64(1 + strings.Count(streams[i].Device, ":"))
		if b := streams[i].Bytes / disks; b > 0 && b < block {
			out.Jobs()[i].Section.Set("bs", strconv.FormatInt(b, 10))
			streams[i].WriteBytes = float64(b)
		}
	}
}
