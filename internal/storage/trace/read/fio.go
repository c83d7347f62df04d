package read

import (
	"bytes"
	"errors"
	"strings"

	"plimsoll/internal/storage/trace"
)

func isIolog(head []byte) bool {
	first := string(bytes.TrimSpace(firstLine(head)))
	return first == "fio version 2 iolog" || first == "fio version 3 iolog"
}

// openIolog reads what fio's write_iolog writes. Version 3 has a time in microseconds at the beginning of each line. In
// version 2 time passes only where a line says wait; a log without any has an order and no times, and is told so.
func openIolog(f *file, head []byte) (parser, error) {
	stamped := bytes.HasPrefix(head, []byte("fio version 3"))
	now := int64(0)
	if !stamped {
		f.problems.Note("an I/O log of version 2 has an order and no times, but for its waits", 1,
			func() string { return f.name })
	}
	return &lines{file: f, parse: func(f *file, text []byte, e *trace.Event) (outcome, string) {
		return parseIolog(f, text, e, stamped, &now)
	}}, nil
}

func parseIolog(f *file, text []byte, e *trace.Event, stamped bool, now *int64) (outcome, string) {
	if len(text) == 0 || bytes.HasPrefix(text, []byte("fio version ")) {
		return nothing, ""
	}
	rest := text
	if stamped {
		var w []byte
		w, rest = word(rest)
		us, ok := number(w)
		if !ok || us > 1<<52 {
			return wrong, "a time that is no number of microseconds"
		}
		*now = int64(us) * 1000
	}
	name, rest := word(rest)
	act, rest := word(rest)
	*e = trace.Event{Time: *now, Action: trace.Whole, Aux: trace.UnknownTime}
	switch string(act) {
	case "add", "open", "close":
		return nothing, ""
	case "read":
		e.Op = trace.Read
	case "write":
		e.Op = trace.Write
	case "trim":
		e.Op = trace.Discard
	case "sync", "datasync":
		e.Op = trace.Flush
	case "wait":
		w, _ := word(rest)
		us, ok := number(w)
		if !ok || us > 1<<40 {
			return wrong, "a wait that is no number of microseconds"
		}
		*now += int64(us) * 1000
		return nothing, ""
	default:
		return wrong, "an unknown action"
	}
	e.Device = f.device(name)
	if e.Op == trace.Flush {
		return event, ""
	}
	w, rest := word(rest)
	offset, ok := number(w)
	w, _ = word(rest)
	length, ok2 := number(w)
	switch {
	case !ok || !ok2:
		return wrong, "no offset and length where they should be"
	case offset >= 1<<55 || length >= 1<<32:
		return wrong, "an offset or a length is out of range"
	}
	e.Offset, e.Bytes = offset, uint32(length)
	return event, ""
}

// device is the number of a name. The numbers have a bit that no device of the kernel has.
func (f *file) device(name []byte) uint32 {
	name = cut(name)
	id, ok := f.shared.devices[string(name)]
	if !ok {
		id = 1<<31 | uint32(len(f.shared.devices))
		if len(f.shared.devices) >= 1<<16 {
			return id - 1
		}
		f.shared.devices[string(name)] = id
		f.names.Devices[id] = string(name)
	}
	return id
}

// A log of single operations that fio wrote with log_offset=1: milliseconds of completion, a value, the direction, the
// size, the offset, and of newer versions a priority.
func isFioLog(head []byte) bool {
	columns := bytes.Split(bytes.TrimRight(firstLine(head), "\r"), []byte(", "))
	if len(columns) < 4 || len(columns) > 7 {
		return false
	}
	for _, c := range columns[:4] {
		if _, ok := number(c); !ok {
			return false
		}
	}
	ddir, _ := number(columns[2])
	return ddir <= 2
}

func openFioLog(f *file, head []byte) (parser, error) {
	columns := bytes.Count(firstLine(head), []byte(", ")) + 1
	if columns < 5 || columns == 5 && !offsets(head) {
		return nil, errors.New("it is a log of fio without offsets, which does not say where operations were; " +
			"write it with log_offset=1, or use write_iolog")
	}
	// What the value is only the name tells: _clat and _lat logs have nanoseconds; fio 2 wrote microseconds.
	timed := strings.Contains(f.name, "lat.") || strings.Contains(f.name, "_lat")
	if !timed {
		f.problems.Note("a log of fio whose name does not say that its values are latencies: they are not used", 1,
			func() string { return f.name })
	} else {
		f.problems.Note("latencies of a log of fio are taken as nanoseconds, as fio 3 writes them; fio 2 wrote microseconds", 1,
			func() string { return f.name })
	}
	f.problems.Note("a log of fio has the millisecond in which operations ended: bursts and depth below that are not "+
		"told", 1, func() string { return f.name })
	device := f.device([]byte(f.name))
	return &lines{file: f, parse: func(_ *file, text []byte, e *trace.Event) (outcome, string) {
		return parseFioLog(text, e, device, timed)
	}}, nil
}

// offsets reports whether the fifth column is an offset: a priority is the same in nearly all lines.
func offsets(head []byte) bool {
	different := map[string]bool{}
	for text := range bytes.Lines(head[:bytes.LastIndexByte(head, '\n')+1]) {
		if c := bytes.Split(bytes.TrimRight(text, "\r\n"), []byte(", ")); len(c) == 5 {
			different[string(c[4])] = true
		}
	}
	return len(different) > 2
}

func parseFioLog(text []byte, e *trace.Event, device uint32, timed bool) (outcome, string) {
	if len(text) == 0 {
		return nothing, ""
	}
	var v [5]uint64
	rest := text
	for i := range v {
		var c []byte
		c, rest, _ = bytes.Cut(rest, []byte(","))
		var ok bool
		if v[i], ok = number(bytes.TrimSpace(c)); !ok {
			return wrong, "a column that is no number"
		}
	}
	if v[0] > 1<<42 || v[3] >= 1<<32 || v[4] >= 1<<55 || v[2] > 2 {
		return wrong, "a time, an operation, a size or an offset is out of range"
	}
	*e = trace.Event{Time: int64(v[0]) * 1e6, Action: trace.Whole, Aux: trace.UnknownTime, Device: device,
		Op: [...]trace.Op{trace.Read, trace.Write, trace.Discard}[v[2]], Bytes: uint32(v[3]), Offset: v[4]}
	if timed && v[1] < 1<<60 {
		e.Aux = v[1]
		e.Time -= int64(v[1])
	}
	return event, ""
}
