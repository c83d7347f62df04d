package read

import (
	"bytes"
	"fmt"
	"strings"

	"plimsoll/internal/storage/trace"
)

// layout says where a table of requests has what, in columns from 0; -1 is nowhere.
type layout struct {
	columns                      int // how many there must be; 0 for as many as are needed
	time, op, offset, size, took int
	device, host, pid            int
	timeUnit, tookUnit           uint64 // nanoseconds
	offsetUnit, sizeUnit         uint64 // bytes
	separator                    byte
	assumed                      []string
}

// tableOps are the words that tables have for operations, beside blkparse's letters.
var tableOps = [...]struct {
	op    trace.Op
	names []string
}{
	{trace.Read, []string{"r", "read", "0", "rs", "rd", "28"}},
	{trace.Write, []string{"w", "write", "1", "ws", "wr", "2a"}},
	{trace.Discard, []string{"d", "trim", "discard", "unmap"}},
	{trace.Flush, []string{"f", "flush", "sync"}},
}

// The published layouts without a header.
var (
	// MSR Cambridge (SNIA IOTTA 388): Windows' time of 100 ns, host, disk, type, bytes, bytes, response in 100 ns.
	msr = layout{columns: 7, time: 0, host: 1, device: 2, op: 3, offset: 4, size: 5, took: 6, pid: -1, timeUnit: 100,
		tookUnit: 100, offsetUnit: 1, sizeUnit: 1, separator: ','}
	// Alibaba (block-traces): device, R or W, bytes, bytes, microseconds.
	alibaba = layout{columns: 5, device: 0, op: 1, offset: 2, size: 3, time: 4, took: -1, host: -1, pid: -1,
		timeUnit: 1000, offsetUnit: 1, sizeUnit: 1, separator: ','}
	// Tencent (SNIA IOTTA 27917): seconds, sectors, sectors, 0 read or 1 write, volume.
	tencent = layout{columns: 5, time: 0, offset: 1, size: 2, op: 3, device: 4, took: -1, host: -1, pid: -1,
		timeUnit: 1e9, offsetUnit: 512, sizeUnit: 512, separator: ','}
)

// isFixed recognises a table without a header by its first line, of which every column must be what it should.
func isFixed(l layout) func([]byte) bool {
	return func(head []byte) bool {
		f := &file{names: trace.NewNames(), problems: &trace.Problems{}, shared: &shared{devices: map[string]uint32{}}}
		var e trace.Event
		is, _ := l.parse(f, bytes.TrimRight(firstLine(head), "\r"), &e)
		return is == event
	}
}

func openFixed(l layout) func(*file, []byte) (parser, error) {
	return func(f *file, _ []byte) (parser, error) { return &lines{file: f, parse: l.parse}, nil }
}

// named are the names that columns go by, in lower case without units, blanks, "_" and "-"; with what unit each is when
// its name has none. Units may follow a name: time_ms, offset_sectors, "Latency (us)".
var named = []struct {
	to    string
	names []string
}{
	{"time", []string{"timestamp", "time", "ts", "arrival", "arrivaltime", "starttime", "start", "issued", "date"}},
	{"op", []string{"op", "type", "iotype", "opcode", "operation", "rw", "rwbs", "readwrite", "cmd", "command",
		"ddir"}},
	{"offset", []string{"offset", "lba", "sector", "address", "lbn", "blkno", "startlba", "position", "startsector",
		"byteoffset"}},
	{"size", []string{"size", "length", "len", "bytes", "count", "iosize", "blocks", "sectors", "nsectors",
		"requestsize",
		"transfersize"}},
	{"took", []string{"responsetime", "response", "latency", "lat", "elapsed", "duration", "servicetime", "took",
		"elapsedtime"}},
	{"device", []string{"disknumber", "disk", "device", "dev", "deviceid", "volume", "volumeid", "lun", "vol",
		"diskid"}},
	{"host", []string{"hostname", "host", "server", "node"}},
	{"pid", []string{"pid", "process", "processid", "tid"}},
}

// suffixes are the units that a name may end with: nanoseconds for times, bytes for places.
var suffixes = []struct {
	ends  string
	times uint64
	bytes uint64
}{
	{"nanoseconds", 1, 0}, {"ns", 1, 0}, {"100ns", 100, 0}, {"filetime", 100, 0}, {"microseconds", 1e3, 0},
	{"us", 1e3, 0}, {"usec", 1e3, 0}, {"milliseconds", 1e6, 0}, {"ms", 1e6, 0}, {"msec", 1e6, 0}, {"seconds", 1e9, 0},
	{"sec", 1e9, 0}, {"s", 1e9, 0}, {"sectors", 0, 512}, {"blocks512", 0, 512}, {"bytes", 0, 1}, {"byte", 0, 1},
	{"b", 0, 1}, {"kib", 0, 1024}, {"kb", 0, 1024}, {"4k", 0, 4096},
}

func isCSV(head []byte) bool { _, err := headed(firstLine(head)); return err == nil }

func openCSV(f *file, head []byte) (parser, error) {
	l, err := headed(firstLine(head))
	if err != nil {
		return nil, err
	}
	for _, a := range l.assumed {
		f.problems.Note("assumed of a table: "+a, 1, func() string { return f.name })
	}
	first := true
	return &lines{file: f, parse: func(f *file, text []byte, e *trace.Event) (outcome, string) {
		if first {
			first = false
			return nothing, ""
		}
		return l.parse(f, text, e)
	}}, nil
}

// headed makes a layout of a header.
func headed(header []byte) (*layout, error) {
	l := &layout{time: -1, op: -1, offset: -1, size: -1, took: -1, device: -1, host: -1, pid: -1, timeUnit: 1e9,
		tookUnit: 1e9, offsetUnit: 1, sizeUnit: 1, separator: ','}
	for _, s := range []byte{'\t', ';'} {
		if bytes.Count(header, []byte{s}) > bytes.Count(header, []byte{l.separator}) {
			l.separator = s
		}
	}
	to := map[string]struct {
		at   *int
		unit *uint64
	}{"time": {&l.time, &l.timeUnit}, "op": {&l.op, nil}, "offset": {&l.offset, &l.offsetUnit},
		"size": {&l.size, &l.sizeUnit}, "took": {&l.took, &l.tookUnit}, "device": {&l.device, nil},
		"host": {&l.host, nil}, "pid": {&l.pid, nil}}
	for i, name := range strings.Split(strings.TrimPrefix(string(bytes.TrimSpace(header)), "\ufeff"),
		string(l.separator)) {
		what, unit, said := column(name)
		c := to[what]
		if c.at == nil || *c.at >= 0 {
			continue
		}
		*c.at = i
		switch {
		case c.unit == nil:
		case said:
			*c.unit = unit
		case what == "time" || what == "took":
			l.assumed = append(l.assumed, fmt.Sprintf("column %q is in seconds", name))
		default:
			l.assumed = append(l.assumed, fmt.Sprintf("column %q is in bytes", name))
		}
	}
	for what, at := range map[string]int{"time": l.time, "operation": l.op, "offset": l.offset, "size": l.size} {
		if at < 0 {
			return nil, fmt.Errorf("its header %q names no column of the %s", cut(header), what)
		}
	}
	return l, nil
}

// column says what a column holds by its name, and its unit where the name says one.
func column(name string) (what string, unit uint64, said bool) {
	name = strings.ToLower(strings.Trim(strings.TrimSpace(name), `"`))
	plain := strings.NewReplacer(" ", "", "_", "", "-", "", "(", "", ")", "", "[", "", "]", "").Replace(name)
	for _, n := range named {
		for _, known := range n.names {
			rest, ok := strings.CutPrefix(plain, known)
			if !ok {
				continue
			}
			if rest == "" {
				switch known {
				case "lba", "sector", "lbn", "blkno", "startlba", "startsector", "blocks", "sectors", "nsectors":
					return n.to, 512, true
				case "bytes", "byteoffset":
					return n.to, 1, true
				}
				return n.to, 0, false
			}
			for _, s := range suffixes {
				if rest == s.ends {
					if n.to == "time" || n.to == "took" {
						return n.to, s.times, s.times > 0
					}
					return n.to, s.bytes, s.bytes > 0
				}
			}
		}
	}
	return "", 0, false
}

// parse reads a line of a table.
func (l *layout) parse(f *file, text []byte, e *trace.Event) (outcome, string) {
	if len(text) == 0 {
		return nothing, ""
	}
	var cells [32][]byte
	n := 0
	for rest, more := text, true; more && n < len(cells); n++ {
		cells[n], rest, more = bytes.Cut(rest, []byte{l.separator})
		cells[n] = bytes.Trim(cells[n], " \t\"")
	}
	if l.columns > 0 && n != l.columns {
		return wrong, fmt.Sprintf("a row that has not %d columns", l.columns)
	}
	cell := func(i int) []byte {
		if i < 0 || i >= n {
			return nil
		}
		return cells[i]
	}
	*e = trace.Event{Action: trace.Whole, Aux: trace.UnknownTime}
	var ok bool
	if e.Op, e.Flags, ok = tableOp(cell(l.op)); !ok {
		return wrong, "an unknown operation"
	}
	offset, ok := number(cell(l.offset))
	size, ok2 := number(cell(l.size))
	switch {
	case !ok || !ok2:
		return wrong, "an offset or a size that is no whole number"
	case offset >= 1<<55/l.offsetUnit || size >= 1<<32/l.sizeUnit:
		return wrong, "an offset or a size is out of range"
	}
	e.Offset, e.Bytes = offset*l.offsetUnit, uint32(size*l.sizeUnit)
	whole, part, ok := decimal(cell(l.time), l.timeUnit)
	if !ok {
		return wrong, "a time that is no number"
	}
	if !f.shared.hasBase {
		f.shared.base, f.shared.hasBase = whole, true
	}
	since := int64(whole - f.shared.base)
	if limit := int64(1<<62) / int64(l.timeUnit); since > limit || since < -limit {
		return wrong, "a time is out of range"
	}
	e.Time = since*int64(l.timeUnit) + part
	if took := cell(l.took); len(took) > 0 {
		if whole, part, ok := decimal(took, l.tookUnit); ok && whole < 1<<60/l.tookUnit {
			e.Aux = whole*l.tookUnit + uint64(part)
		} else if string(took) != "-1" {
			return wrong, "a response time that is no number"
		}
	}
	if pid, ok := number(cell(l.pid)); ok {
		e.PID = uint32(pid)
	}
	e.Device = f.tableDevice(cell(l.host), cell(l.device))
	return event, ""
}

func (f *file) tableDevice(host, device []byte) uint32 {
	switch {
	case len(host) > 0:
		var name [256]byte
		return f.device(append(append(append(name[:0], cut(host)...), '/'), cut(device)...))
	case len(device) > 0:
		return f.device(cut(device))
	}
	return f.device([]byte("table"))
}

// tableOp reads an operation as tables have it.
func tableOp(w []byte) (trace.Op, uint8, bool) {
	var low [16]byte
	if len(w) > len(low) {
		return 0, 0, false
	}
	text := low[:len(w)]
	for i, c := range w {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		text[i] = c
	}
	for i := range tableOps {
		o := &tableOps[i]
		for _, name := range o.names {
			if string(text) == name {
				return o.op, 0, true
			}
		}
	}
	return rwbs(w)
}

// decimal reads a number with or without a fraction, as whole units and the fraction in nanoseconds.
func decimal(w []byte, unit uint64) (whole uint64, part int64, ok bool) {
	digits, fraction, has := bytes.Cut(w, []byte{'.'})
	if whole, ok = number(digits); !ok || !has {
		return whole, 0, ok
	}
	fraction = fraction[:min(len(fraction), 12)]
	v, ok := number(fraction)
	if !ok {
		return whole, 0, len(fraction) == 0
	}
	scale := 1.0
	for range fraction {
		scale *= 10
	}
	return whole, int64(float64(v) / scale * float64(unit)), true
}
