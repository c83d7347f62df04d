package fio

import (
	"strconv"

	"plimsoll/internal/workloads/fio/fiofile"
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

// wholeBlocks lets the writes of a prefill reach the end of every section, since fio leaves out what is less than a
// block there: the section ends with the block where its disk has room, and has smaller blocks where not.
func (a *adaptation) wholeBlocks() {
	const least = 4096   // what direct I/O takes everywhere
	const most = 1 << 30 // of a larger one less than 0.1 % is left out, and small writes take long
	for i, job := range a.out.Jobs() {
		l, disks := &a.streams[i], a.disksOf(job)
		n := int64(max(1, len(disks)))
		each, block := l.Bytes/n, a.prefillBlock()
		room := smallestDisk(disks).Bytes - l.Offset
		up := (each + block - 1) / block * block
		switch {
		case each <= 0 || l.Bytes%n == 0 && each%block == 0 || a.spec.Whole && each > block:
			continue
		case l.Bytes%n == 0 && each < block && each%least == 0:
			block = each
		case up <= room:
			l.Bytes = up * n
		case each > most:
			continue
		default:
			for block = max(block, least); block > least && each%block != 0; {
				block /= 2
			}
			l.Bytes = min((each+block-1)/block*block, max(room/block*block, block)) * n
		}
		job.Section.Set("size", strconv.FormatInt(l.Bytes, 10))
		job.Section.Set("bs", strconv.FormatInt(block, 10))
		l.WriteBytes = float64(block)
	}
}
