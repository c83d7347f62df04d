package read

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"plimsoll/internal/storage/trace"
)

// The binary form is struct blk_io_trace of the kernel's include/uapi/linux/blktrace_api.h, in the byte order of the
// machine that was traced, each record followed by so many bytes as it says of data of its own.
const (
	recordBytes = 48
	magic       = 0x65617400 // and the version in the lowest byte
	version     = 7
	cgroupFlag  = 1 << 8
)

// The categories of an action, in its upper half.
const (
	catWrite  = 1 << (16 + 1)
	catFlush  = 1 << (16 + 2)
	catSync   = 1 << (16 + 3)
	catPacket = 1 << (16 + 9)
	catNotify = 1 << (16 + 10)
	catAhead  = 1 << (16 + 11)
	catMeta   = 1 << (16 + 12)
	catTrim   = 1 << (16 + 13)
	catDriver = 1 << (16 + 14)
	catFUA    = 1 << (16 + 15)
)

// actions by the number that blktrace has for them.
var actions = [...]trace.Action{0, trace.Queue, trace.Merge, trace.Merge, trace.Other, trace.Other, trace.Requeue,
	trace.Issue, trace.Complete, trace.Other, trace.Other, trace.Other, trace.Insert, trace.Split, trace.Other,
	trace.Remap, trace.Other, trace.Other}

func order(head []byte) (binary.ByteOrder, byte) {
	if len(head) < 4 {
		return nil, 0
	}
	for _, o := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if m := o.Uint32(head); m&^0xff == magic {
			return o, byte(m)
		}
	}
	return nil, 0
}

func isBlktrace(head []byte) bool { o, _ := order(head); return o != nil }

// blktrace reads one binary file.
type blktrace struct {
	*file
	buf      []byte
	pos, end int
	offset   int64 // of buf[pos] in the file
	little   bool
	err      error
}

func openBlktrace(f *file, head []byte) (parser, error) {
	o, v := order(head)
	if o != nil && v != version {
		return nil, fmt.Errorf("it is blktrace of version %d, and version %d is read here", v, version)
	}
	return &blktrace{file: f, buf: make([]byte, 128<<10), little: o != binary.BigEndian}, nil
}

// have has at least n bytes in the buffer, or is false at the end.
func (b *blktrace) have(n int) bool {
	for b.end-b.pos < n && b.err == nil {
		if len(b.buf)-b.pos < n || b.pos == b.end {
			b.end = copy(b.buf, b.buf[b.pos:b.end])
			b.pos = 0
		}
		var got int
		got, b.err = b.in.Read(b.buf[b.end:])
		b.end += got
	}
	return b.end-b.pos >= n
}

func (b *blktrace) skip(n int) {
	b.pos += n
	b.offset += int64(n)
}

func (b *blktrace) next(events []trace.Event) (n int, err error) {
	for n < len(events) {
		if !b.have(recordBytes) {
			return n, b.ending(b.end - b.pos)
		}
		raw := b.buf[b.pos : b.pos+recordBytes]
		if !b.recognises(raw) {
			if !b.resume() {
				return n, b.ending(0)
			}
			continue
		}
		var data int
		if b.little {
			data = int(binary.LittleEndian.Uint16(raw[46:]))
		} else {
			data = int(binary.BigEndian.Uint16(raw[46:]))
		}
		if !b.have(recordBytes + data) {
			return n, b.ending(b.end - b.pos)
		}
		raw = b.buf[b.pos : b.pos+recordBytes+data]
		if b.record(raw, &events[n]) {
			n++
		}
		b.skip(len(raw))
	}
	return n, nil
}

// ending is the error at the end of the file, of which the last part is no whole record.
func (b *blktrace) ending(rest int) error {
	if rest > 0 {
		b.problems.Add("a record is cut off", 1, func() string {
			return fmt.Sprintf("%s: byte %d: %d bytes are left", b.name, b.offset, rest)
		})
		b.skip(rest)
	}
	if b.err == nil {
		return io.EOF
	}
	if errors.Is(b.err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("at byte %d: the packed file is cut off", b.offset)
	}
	return b.err
}

// recognises looks for the mark of a record, in either byte order.
func (b *blktrace) recognises(raw []byte) bool {
	o, v := order(raw)
	if o == nil || v != version {
		return false
	}
	if little := o == binary.LittleEndian; little != b.little {
		b.problems.Note("the byte order changes within a file", 1,
			func() string { return fmt.Sprintf("%s: byte %d", b.name, b.offset) })
		b.little = little
	}
	return true
}

// resume goes on to the next mark of a record.
func (b *blktrace) resume() bool {
	from := b.offset
	value := bytes.Clone(b.buf[b.pos : b.pos+min(16, b.end-b.pos)])
	b.bad("no record where one should begin, bytes left out up to the next", "byte", from, value)
	for b.have(recordBytes) {
		window := b.buf[b.pos:b.end]
		for i := 1; i+4 <= len(window); i++ {
			if o, v := order(window[i:]); o != nil && v == version {
				b.skip(i)
				return true
			}
		}
		b.skip(len(window) - 3)
	}
	b.skip(b.end - b.pos)
	return false
}

// record makes an event of a record; false of those that are none.
func (b *blktrace) record(raw []byte, e *trace.Event) bool {
	var at, sector uint64
	var n, action, pid, device uint32
	var failed uint16
	if b.little {
		o := binary.LittleEndian
		at, sector, n, action = o.Uint64(raw[8:]), o.Uint64(raw[16:]), o.Uint32(raw[24:]), o.Uint32(raw[28:])
		pid, device, failed = o.Uint32(raw[32:]), o.Uint32(raw[36:]), o.Uint16(raw[44:])
	} else {
		o := binary.BigEndian
		at, sector, n, action = o.Uint64(raw[8:]), o.Uint64(raw[16:]), o.Uint32(raw[24:]), o.Uint32(raw[28:])
		pid, device, failed = o.Uint32(raw[32:]), o.Uint32(raw[36:]), o.Uint16(raw[44:])
	}
	data := raw[recordBytes:]
	if action&cgroupFlag != 0 && len(data) >= 8 {
		data = data[8:]
	}
	if action&catNotify != 0 {
		b.notify(action, at, pid, data)
		return false
	}
	kind := action & 0xff
	if int(kind) >= len(actions) || kind == 0 {
		b.problems.Add("an unknown action", 1, func() string {
			return fmt.Sprintf("%s: byte %d: action %#x", b.name, b.offset, action)
		})
		return false
	}
	if !b.place(sector, at, b.offset) {
		return false
	}
	*e = trace.Event{Time: int64(at), Offset: sector * 512, Bytes: n, Device: device, PID: pid, Action: actions[kind]}
	if e.Action == trace.Other {
		return true
	}
	e.Op, e.Flags = category(action, n)
	if failed != 0 && e.Action == trace.Complete {
		e.Flags |= trace.Failed
	}
	if e.Action == trace.Split && len(data) >= 8 {
		e.Aux = binary.BigEndian.Uint64(data) * 512
	}
	return true
}

// place refuses what can be on no device.
func (f *file) place(sector, at uint64, offset int64) bool {
	if sector < 1<<46 && at < 1<<62 {
		return true
	}
	f.problems.Add("a sector or a time is out of range", 1, func() string {
		return fmt.Sprintf("%s: byte %d: sector %d, time %d ns", f.name, offset, sector, at)
	})
	return false
}

// category reads the operation and its flags, in the way that blkparse prints them.
func category(action, n uint32) (op trace.Op, flags uint8) {
	switch {
	case action&catTrim != 0:
		op = trace.Discard
	case action&catWrite != 0:
		op = trace.Write
	case n > 0:
		op = trace.Read
	case action&catFlush != 0:
		return trace.Flush, 0
	}
	for _, f := range [...]struct {
		bit  uint32
		flag uint8
	}{{catSync, trace.Sync}, {catMeta, trace.Meta}, {catAhead, trace.Ahead}, {catFUA, trace.FUA},
		{catFlush, trace.Barrier}, {catPacket, trace.Packet}} {
		if action&f.bit != 0 {
			flags |= f.flag
		}
	}
	return op, flags
}

// notify takes a message: the name of a process, the time of day, a text.
func (b *blktrace) notify(action uint32, at uint64, pid uint32, data []byte) {
	o := binary.ByteOrder(binary.LittleEndian)
	if !b.little {
		o = binary.BigEndian
	}
	switch action & 0xff {
	case 0:
		name, _, _ := bytes.Cut(data, []byte{0})
		b.names.Process(pid, string(name))
	case 1:
		if len(data) >= 8 && b.names.Clock.IsZero() {
			b.names.Clock, b.names.ClockAt = time.Unix(int64(o.Uint32(data)), int64(o.Uint32(data[4:]))), int64(at)
		}
	}
}
