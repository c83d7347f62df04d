package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"plimsoll/internal/storage/trace"
)

// outcome tells what a line proved to be.
type outcome uint8

const (
	wrong   outcome = iota // not understood
	nothing                // in order, but no event
	event
)

// line reads one line into an event.
type line func(f *file, text []byte, e *trace.Event) (outcome, string)

// lines reads a file line by line.
type lines struct {
	*file
	parse    line
	number   int64
	good     bool
	brackets bool // lines end with one, so that a last one without is cut off
}

func openLines(parse line) func(*file, []byte) (parser, error) {
	return func(f *file, _ []byte) (parser, error) { return &lines{file: f, parse: parse, brackets: true}, nil }
}

// linesOf recognises a format by its lines: one of the first is an event, and none of those before it is anything else
// than a line of the format.
func linesOf(parse line) func([]byte) bool {
	return func(head []byte) bool {
		f := &file{names: trace.NewNames(), problems: &trace.Problems{}, shared: &shared{devices: map[string]uint32{}}}
		var e trace.Event
		bad := 0
		for text := range bytes.Lines(head) {
			switch is, _ := parse(f, bytes.TrimRight(text, "\r\n"), &e); is {
			case event:
				return true
			case wrong:
				if bad++; bad > 20 {
					return false
				}
			}
		}
		return false
	}
}

func (l *lines) next(events []trace.Event) (n int, err error) {
	for n < len(events) {
		text, err := l.in.ReadSlice('\n')
		if len(text) == 0 && err != nil {
			return n, l.ending(err)
		}
		l.number++
		if errors.Is(err, bufio.ErrBufferFull) {
			l.bad("a line of more than 64 KiB", "line", l.number, text)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = l.in.ReadSlice('\n')
			}
			continue
		}
		whole := err == nil
		text = bytes.TrimRight(text, "\r\n")
		is, why := l.parse(l.file, text, &events[n])
		switch {
		case is == event && !whole && l.brackets && !bytes.HasSuffix(text, []byte("]")):
			l.bad("the last line is cut off", "line", l.number, text)
		case is == event:
			n++
			l.good = true
		case is == wrong && l.good && !whole:
			l.bad("the last line is cut off", "line", l.number, text)
		case is == wrong:
			l.bad(why, "line", l.number, text)
		}
	}
	return n, nil
}

func (l *lines) ending(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("at line %d: the packed file is cut off", l.number)
	}
	return err
}

// word cuts the next word off.
func word(text []byte) (w, rest []byte) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	from := i
	for i < len(text) && text[i] != ' ' && text[i] != '\t' {
		i++
	}
	return text[from:i], text[i:]
}

// number reads digits up to the end of a word.
func number(w []byte) (v uint64, ok bool) {
	if len(w) == 0 || len(w) > 19 {
		return 0, false
	}
	for _, c := range w {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	return v, true
}

// seconds reads 12.345678901 as nanoseconds.
func seconds(w []byte) (ns int64, ok bool) {
	point := bytes.IndexByte(w, '.')
	if point < 0 || len(w)-point-1 > 9 || point > 9 {
		return 0, false
	}
	whole, ok := number(w[:point])
	part, ok2 := number(w[point+1:])
	if !ok || !ok2 {
		return 0, false
	}
	for i := len(w) - point - 1; i < 9; i++ {
		part *= 10
	}
	return int64(whole)*1e9 + int64(part), true
}

// numbers reads 259,0 as a device.
func numbers(w []byte) (id uint32, ok bool) {
	comma := bytes.IndexByte(w, ',')
	if comma < 0 {
		return 0, false
	}
	major, ok := number(w[:comma])
	minor, ok2 := number(w[comma+1:])
	return uint32(major<<20 | minor), ok && ok2 && major < 1<<12 && minor < 1<<20
}

// rwbs reads the letters of an operation. F before an operation is a flush before it, after it the device's cache
// written through.
func rwbs(w []byte) (op trace.Op, flags uint8, ok bool) {
	i := 0
	if len(w) > 1 && w[0] == 'F' && bytes.IndexByte([]byte("RWDNF"), w[1]) >= 0 {
		flags |= trace.Barrier
		i++
	}
	if len(w) == 0 {
		return 0, 0, false
	}
	switch w[i] {
	case 'R':
		op = trace.Read
	case 'W':
		op = trace.Write
	case 'D':
		op = trace.Discard
	case 'F':
		op = trace.Flush
	case 'N':
		if op = trace.None; flags&trace.Barrier != 0 {
			op = trace.Flush
		}
	case 'Z':
		op = trace.None
	default:
		return 0, 0, false
	}
	if op == trace.Flush {
		flags = 0
	}
	for _, c := range w[i+1:] {
		switch c {
		case 'S':
			flags |= trace.Sync
		case 'M':
			flags |= trace.Meta
		case 'A':
			flags |= trace.Ahead
		case 'F':
			flags |= trace.FUA
		case 'E', 'B', 'U', 'O', 'C', 'R', 'Z': // erase, barrier of old, zones, zeroes, atomic
		default:
			return 0, 0, false
		}
	}
	return op, flags, true
}

// letters are blkparse's names of actions.
func letters(w []byte) (a trace.Action, ok bool) {
	if len(w) == 1 {
		switch w[0] {
		case 'Q':
			return trace.Queue, true
		case 'M', 'F':
			return trace.Merge, true
		case 'X':
			return trace.Split, true
		case 'A':
			return trace.Remap, true
		case 'I':
			return trace.Insert, true
		case 'D':
			return trace.Issue, true
		case 'R':
			return trace.Requeue, true
		case 'C':
			return trace.Complete, true
		case 'G', 'S', 'P', 'U', 'T', 'B', 'm':
			return trace.Other, true
		}
	}
	return trace.Other, string(w) == "UT"
}

// parseBlkparse reads a line as blkparse prints it by default: device, CPU, sequence, seconds, process, action,
// operation, and what belongs to the action. The summary at the end is none of its lines' business.
func parseBlkparse(f *file, text []byte, e *trace.Event) (outcome, string) {
	w, rest := word(text)
	device, ok := numbers(w)
	if !ok {
		if summary(text) {
			return nothing, ""
		}
		return wrong, "a line that does not begin with a device"
	}
	*e = trace.Event{Device: device}
	_, rest = word(rest) // CPU
	_, rest = word(rest) // sequence
	w, rest = word(rest)
	if e.Time, ok = seconds(w); !ok {
		return wrong, "a time that is no number of seconds"
	}
	w, rest = word(rest)
	pid, ok := number(w)
	if !ok {
		return wrong, "a process that is no number"
	}
	e.PID = uint32(pid)
	return parseAction(f, rest, e)
}

// summary reports whether a line is of blkparse's summary, or of the head.
func summary(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t")
	if len(trimmed) == 0 || trimmed[0] == '#' {
		return true
	}
	for _, begins := range []string{"CPU", "Total (", "Reads ", "Read ", "IO unplugs", "Throughput (", "Events (",
		"Skips:", "Input file ", "Writes ", "Write "} {
		if bytes.HasPrefix(trimmed, []byte(begins)) {
			return true
		}
	}
	return false
}

// parseAction reads an action, an operation and what follows it.
func parseAction(f *file, rest []byte, e *trace.Event) (outcome, string) {
	w, rest := word(rest)
	var ok bool
	if e.Action, ok = letters(w); !ok {
		return wrong, "an unknown action"
	}
	if e.Action == trace.Other {
		return event, ""
	}
	w, rest = word(rest)
	if e.Op, e.Flags, ok = rwbs(w); !ok {
		return wrong, "an unknown operation"
	}
	return parsePlace(f, rest, e)
}

// parsePlace reads "SECTOR + SECTORS ...", "SECTOR / SECTOR", "BYTES (COMMAND)" or nothing, and the name of the process
// or the error at the end.
func parsePlace(f *file, rest []byte, e *trace.Event) (outcome, string) {
	w, after := word(rest)
	if len(w) == 0 || w[0] == '[' {
		return finish(f, rest, e)
	}
	sector, ok := number(w)
	if !ok {
		return wrong, "a sector that is no number"
	}
	w, after = word(after)
	switch {
	case len(w) > 0 && w[0] == '(':
		e.Flags |= trace.Packet
		return finish(f, after, e)
	case len(w) == 0 || w[0] == '[': // without data
		if sector >= 1<<46 {
			return wrong, "a sector or a size is out of range"
		}
		e.Offset = sector * 512
		return finish(f, rest, e)
	}
	sign := w[0]
	w, after = word(after)
	second, ok := number(w)
	if !ok || len(w) == 0 || sign != '+' && sign != '/' {
		return wrong, "no place and size where they should be"
	}
	if sector >= 1<<46 || second >= 1<<46 || sign == '+' && second >= 1<<23 {
		return wrong, "a sector or a size is out of range"
	}
	e.Offset = sector * 512
	if sign == '/' {
		e.Aux = second * 512
	} else {
		e.Bytes = uint32(second * 512)
	}
	return finish(f, after, e)
}

// finish reads the brackets at the end: the process, or of a completion the error.
func finish(f *file, rest []byte, e *trace.Event) (outcome, string) {
	open, end := bytes.IndexByte(rest, '['), bytes.LastIndexByte(rest, ']')
	if open < 0 || end < open {
		return event, ""
	}
	name := cut(rest[open+1 : end])
	if e.Action != trace.Complete {
		if old, ok := f.names.Processes[e.PID]; !ok || old != string(name) {
			f.names.Process(e.PID, string(name))
		}
		return event, ""
	}
	if len(name) != 1 || name[0] != '0' {
		e.Flags |= trace.Failed
	}
	return event, ""
}

// points are the kernel's trace points of block I/O, by the action that they are.
var points = map[string]trace.Action{"block_bio_queue": trace.Queue, "block_rq_insert": trace.Insert,
	"block_rq_issue": trace.Issue, "block_rq_complete": trace.Complete, "block_rq_requeue": trace.Requeue,
	"block_bio_backmerge": trace.Merge, "block_bio_frontmerge": trace.Merge, "block_split": trace.Split,
	"block_bio_remap": trace.Remap, "block_getrq": trace.Other, "block_plug": trace.Other, "block_unplug": trace.Other,
	"block_rq_merge": trace.Other, "block_rq_remap": trace.Other, "block_bio_bounce": trace.Other,
	"block_touch_buffer": trace.Other, "block_dirty_buffer": trace.Other, "block_io_start": trace.Other,
	"block_io_done": trace.Other, "block_rq_error": trace.Other, "block_bio_complete": trace.Other}

// parseTracefs reads a line of tracefs' trace or of perf script: "TASK-PID [CPU] FLAGS SECONDS: ..." with an event's
// name and fields, or what the tracer called blk prints.
func parseTracefs(f *file, text []byte, e *trace.Event) (outcome, string) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] == '#' {
		return nothing, ""
	}
	cpu := bytes.Index(text, []byte(" ["))
	if cpu < 0 {
		return wrong, "a line without a CPU"
	}
	if lost := bytes.Index(text, []byte("LOST ")); lost >= 0 && bytes.HasPrefix(bytes.TrimSpace(text), []byte("CPU:")) {
		f.lost(text[lost+5:])
		return nothing, ""
	}
	*e = trace.Event{}
	task := bytes.TrimSpace(text[:cpu])
	dash := max(bytes.LastIndexByte(task, '-'), bytes.LastIndexByte(task, ' '))
	pid, ok := number(task[dash+1:])
	if !ok {
		return wrong, "a process that is no number"
	}
	e.PID = uint32(pid)
	rest := text[cpu:]
	w, rest := word(rest)
	for i := 0; i < 3; i++ {
		if w, rest = word(rest); len(w) > 1 && w[len(w)-1] == ':' {
			break
		}
	}
	if len(w) < 2 {
		return wrong, "a line without a time"
	}
	if e.Time, ok = seconds(w[:len(w)-1]); !ok {
		return wrong, "a time that is no number of seconds"
	}
	w, after := word(rest)
	if device, ok := numbers(w); ok {
		e.Device = device
		return parseAction(f, after, e)
	}
	name := bytes.TrimPrefix(bytes.TrimSuffix(w, []byte(":")), []byte("block:"))
	action, ok := points[string(name)]
	if !ok {
		if bytes.HasPrefix(name, []byte("block_")) {
			return wrong, "an unknown action"
		}
		return nothing, ""
	}
	e.Action = action
	if action == trace.Other {
		w, _ = word(after)
		if e.Device, ok = numbers(w); !ok {
			return nothing, "" // plugs have no device
		}
		return event, ""
	}
	return parsePoint(f, after, e)
}

// parsePoint reads the fields of a trace point: device, operation, for requests of a driver's own also the bytes and
// the command in brackets, then the place.
func parsePoint(f *file, rest []byte, e *trace.Event) (outcome, string) {
	w, rest := word(rest)
	var ok bool
	if e.Device, ok = numbers(w); !ok {
		return wrong, "a line without a device"
	}
	w, rest = word(rest)
	if e.Op, e.Flags, ok = rwbs(w); !ok {
		return wrong, "an unknown operation"
	}
	command := bytes.IndexByte(rest, '(')
	if plus := bytes.IndexByte(rest, '+'); command >= 0 && (plus < 0 || command < plus) {
		end := bytes.IndexByte(rest, ')')
		if end < command {
			return wrong, "a command without its end"
		}
		if end > command+1 {
			e.Flags |= trace.Packet
		}
		rest = rest[end+1:]
	}
	w, _ = word(rest)
	if string(w) == "18446744073709551615" { // a flush has no place; newer kernels print 0 + 0
		e.Flags &^= trace.Packet
		return finish(f, rest, e)
	}
	return parsePlace(f, rest, e)
}

// lost counts the events that the kernel had no room for.
func (f *file) lost(rest []byte) {
	w, _ := word(rest)
	n, _ := number(w)
	f.problems.Add("events that the kernel lost, because its buffer was full", max(n, 1),
		func() string { return f.name })
}
