// Package tracetest makes traces of which every figure is known: requests chosen by a test, and the binary files that
// blktrace would have written of them, in either byte order, of several CPUs.
//
// Tests only: no shipped package imports this one. It knows the kernel's record by itself, so that a mistake in the
// reader is not made twice.
package tracetest

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Device is the number that all events have: 8,16.
const Device = 8<<20 | 16

// Request is one that a test chose. Times are in nanoseconds, places in bytes.
type Request struct {
	Queued, Issued, Completed int64
	Offset                    uint64
	Bytes                     uint32
	Write                     bool
	Sync                      bool
	PID                       uint32
	Pieces                    int // how many queued ones were merged into it; 0 and 1 are one
}

// The actions of blktrace that are written, with their category.
const (
	queued    = 1 | 1<<20
	backMerge = 2 | 1<<20
	got       = 4 | 1<<20
	issued    = 7 | 1<<22
	completed = 8 | 1<<23
	inserted  = 12 | 1<<20
	process   = 1 << 26
	clock     = 1 | 1<<26
)

type record struct {
	time   int64
	offset uint64
	bytes  uint32
	action uint32
	pid    uint32
	data   []byte
	cpu    int
}

// Names are of processes.
type Names map[uint32]string

// Events is how many events Files writes of requests, without notes of names and time.
func Events(requests []Request) (n int) {
	for _, r := range requests {
		n += 3 + 2*max(r.Pieces, 1)
	}
	return n
}

// Files are the files of so many CPUs. A request is queued on one and completed on the next.
func Files(requests []Request, names Names, order binary.ByteOrder, cpus int) [][]byte {
	var all []record
	seconds := binary.NativeEndian.AppendUint32(nil, 0)
	order.PutUint32(seconds, 1_700_000_000)
	all = append(all, record{action: clock, data: append(seconds, 0, 0, 0, 0)})
	for pid, name := range names {
		all = append(all, record{action: process, pid: pid, data: append([]byte(name), make([]byte, 16-len(name))...)})
	}
	for i, r := range requests {
		all = append(all, events(r, i%cpus, (i+1)%cpus)...)
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(a.time, b.time) })
	files, sequence := make([][]byte, cpus), make([]uint32, cpus)
	for _, r := range all {
		sequence[r.cpu]++
		files[r.cpu] = r.append(files[r.cpu], order, sequence[r.cpu])
	}
	return files
}

func events(r Request, cpu, next int) (list []record) {
	kind := uint32(1 << 16)
	if r.Write {
		kind = 1 << 17
	}
	if r.Sync {
		kind |= 1 << 19
	}
	add := func(t int64, action uint32, offset uint64, bytes uint32, cpu int) {
		list = append(list, record{time: t, offset: offset, bytes: bytes, action: action | kind, pid: r.PID, cpu: cpu})
	}
	pieces := max(r.Pieces, 1)
	part := r.Bytes / uint32(pieces)
	for i := range pieces {
		at := r.Offset + uint64(i)*uint64(part)
		add(r.Queued, queued, at, part, cpu)
		if i == 0 {
			add(r.Queued, got, at, part, cpu)
		} else {
			add(r.Queued, backMerge, at, part, cpu)
		}
	}
	add(r.Issued, inserted, r.Offset, r.Bytes, cpu)
	add(r.Issued, issued, r.Offset, r.Bytes, cpu)
	add(r.Completed, completed, r.Offset, r.Bytes, next)
	return list
}

func (r record) append(to []byte, o binary.ByteOrder, sequence uint32) []byte {
	var b [48]byte
	o.PutUint32(b[0:], 0x65617407)
	o.PutUint32(b[4:], sequence)
	o.PutUint64(b[8:], uint64(r.time))
	o.PutUint64(b[16:], r.offset/512)
	o.PutUint32(b[24:], r.bytes)
	o.PutUint32(b[28:], r.action)
	o.PutUint32(b[32:], r.pid)
	o.PutUint32(b[36:], Device)
	o.PutUint32(b[40:], uint32(r.cpu))
	o.PutUint16(b[46:], uint16(len(r.data)))
	return append(append(to, b[:]...), r.data...)
}
