package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// OIDs of the types whose values are sent in binary; everything else goes as text, which the server reads itself.
const (
	oidInt8 = 20
	oidInt2 = 21
	oidInt4 = 23
)

// Arg is a value of a parameter: a whole number, a text, or null.
type Arg struct {
	text string
	n    int64
	kind byte
}

const (
	null byte = iota
	whole
	text
)

// Int is a whole number, for a parameter of any type that the server reads one as.
func Int(n int64) Arg { return Arg{n: n, kind: whole} }

// Text is a value as SQL writes it without quotes: a text, a decimal number, a timestamp.
func Text(s string) Arg { return Arg{text: s, kind: text} }

// Null is the absent value.
func Null() Arg { return Arg{} }

// Statement holds what Prepare made of an SQL statement. It is not changed after that, and every connection that has
// prepared the same name may use it.
type Statement struct {
	Name    string
	SQL     string
	Params  []uint32 // OIDs of the parameters' types, as the server determined them
	Columns []string // names of what it returns, none for a statement that returns no rows
}

// Append adds to dst the messages that execute the statement: Bind, Describe of the portal where describe says so
// (libpq sends one), and Execute. AppendSync has to follow. Bytes after dst's length are garbage when it fails.
func (s *Statement) Append(dst []byte, describe bool, args ...Arg) ([]byte, error) {
	if len(args) != len(s.Params) {
		return dst, fmt.Errorf("statement %q has %d parameters, not %d", s.SQL, len(s.Params), len(args))
	}
	return appendExecute(dst, s.Name, s.Params, describe, args)
}

// AppendUnnamed adds the messages that parse sql as the unnamed statement and execute it, its arguments as text.
func AppendUnnamed(dst []byte, sql string, args ...Arg) ([]byte, error) {
	return appendExecute(appendParse(dst, "", sql), "", nil, true, args)
}

// AppendQuery adds the message of a simple query, which may be several statements. No AppendSync follows.
func AppendQuery[T string | []byte](dst []byte, sql T) []byte {
	dst, at := begin(dst, 'Q')
	return finish(append(append(dst, sql...), 0), at)
}

// AppendSync adds the end of what is answered as a whole.
func AppendSync(dst []byte) []byte { return append(dst, 'S', 0, 0, 0, 4) }

// AppendPrepare adds the messages that prepare a statement under a name, in place of another of that name, and describe
// it. Reply.Described gives what they are answered with, and AppendSync has to follow.
func AppendPrepare(dst []byte, name, sql string) []byte {
	dst, at := begin(dst, 'C') // that there is none is no error
	dst = finish(append(append(append(dst, 'S'), name...), 0), at)
	dst, at = begin(appendParse(dst, name, sql), 'D')
	return finish(append(append(append(dst, 'S'), name...), 0), at)
}

// AppendNamed executes a statement of that name whose parameters' types are not known yet, its arguments as text.
func AppendNamed(dst []byte, name string, args ...Arg) ([]byte, error) {
	return appendExecute(dst, name, nil, true, args)
}

func appendParse(dst []byte, name, sql string) []byte {
	dst, at := begin(dst, 'P')
	dst = append(append(dst, name...), 0)
	dst = append(append(dst, sql...), 0)
	return finish(append(dst, 0, 0), at) // no types of ours
}

func appendExecute(dst []byte, name string, types []uint32, describe bool, args []Arg) ([]byte, error) {
	if len(args) > math.MaxUint16 {
		return dst, fmt.Errorf("%d parameters; PostgreSQL takes %d", len(args), math.MaxUint16)
	}
	dst, at := begin(dst, 'B')
	dst = append(dst, 0) // the unnamed portal
	dst = append(append(dst, name...), 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(args)))
	for i := range args {
		dst = append(dst, 0, byte(min(1, binarySize(types, i, &args[i]))))
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(args)))
	for i := range args {
		if len(args[i].text) > maxMessage {
			return dst, fmt.Errorf("parameter %d is a text of %d bytes", i+1, len(args[i].text))
		}
		dst = appendValue(dst, binarySize(types, i, &args[i]), &args[i])
	}
	dst = finish(append(dst, 0, 0), at) // results as text
	if describe {
		dst = append(dst, 'D', 0, 0, 0, 6, 'P', 0)
	}
	return append(dst, 'E', 0, 0, 0, 9, 0, 0, 0, 0, 0), nil
}

// binarySize is how many bytes a value takes in binary, 0 for one that is sent as text: a number that is out of range,
// too, so that the server objects to it.
func binarySize(types []uint32, i int, a *Arg) int {
	if a.kind != whole || i >= len(types) {
		return 0
	}
	switch t := types[i]; {
	case t == oidInt4 && a.n == int64(int32(a.n)):
		return 4
	case t == oidInt8:
		return 8
	case t == oidInt2 && a.n == int64(int16(a.n)):
		return 2
	}
	return 0
}

func appendValue(dst []byte, size int, a *Arg) []byte {
	switch {
	case a.kind == null:
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	case a.kind == text:
		return append(binary.BigEndian.AppendUint32(dst, uint32(len(a.text))), a.text...)
	case size == 2:
		return append(dst, 0, 0, 0, 2, byte(a.n>>8), byte(a.n))
	case size == 4:
		return append(dst, 0, 0, 0, 4, byte(a.n>>24), byte(a.n>>16), byte(a.n>>8), byte(a.n))
	case size == 8:
		return binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 8), uint64(a.n))
	}
	at := len(dst)
	dst = strconv.AppendInt(append(dst, 0, 0, 0, 0), a.n, 10)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func begin(dst []byte, kind byte) ([]byte, int) { return append(dst, kind, 0, 0, 0, 0), len(dst) + 1 }

func finish(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// maxMessage bounds a message: PostgreSQL's own limit of a value.
const maxMessage = 1 << 30

// Reply holds what the server answers to one request, up to its being ready for the next. It is filled by Feed, and
// read like a cursor: Next, then the columns of that row. The zero value is ready for use, and Reset makes it so again.
type Reply struct {
	// Keep says whether rows are kept to be read; without it they are counted alone.
	Keep bool
	// Describe says whether what AppendPrepare asks for is wanted, see Described.
	Describe bool
	Status   byte   // 'I' no transaction is open, 'T' one is, 'E' one is that can only be rolled back; 0: not known yet
	Err      *Error // the first one, nil without
	Rows     int    // rows returned, of all statements

	kept    []byte // messages T, D and C, whole
	at      int    // in kept, of what Next looks at next
	row     []byte // the row that Next found: its columns
	columns int
	names   []byte // of the result that the row is of
	part    []byte // of a message that is not whole yet
	skip    int    // bytes of a message of no interest still to come
	tag     []byte
	params  []uint32
	fields  []string
	copying bool // the server waits for data of COPY
	took    int  // bytes of the answer
}

// Reset forgets the answer and keeps its memory, unless that was much.
func (r *Reply) Reset() {
	const much = 1 << 20
	kept, part := r.kept[:0], r.part[:0]
	if cap(kept) > much {
		kept = nil
	}
	if cap(part) > much {
		part = nil
	}
	*r = Reply{Keep: r.Keep, Describe: r.Describe, kept: kept, part: part, tag: r.tag[:0]}
}

var errShort = errors.New("the server's message is shorter than it says")

// Feed takes the next bytes of the server, and reports whether the answer is whole, and how many bytes it took: those
// after that belong to the next answer. An error means that they are no messages of PostgreSQL's: nothing that follows
// can be read.
func (r *Reply) Feed(data []byte) (used int, done bool, err error) {
	defer func() {
		if r.took += used; r.Keep && r.took > maxKept && !done && err == nil {
			err = &TooLargeError{maxKept}
		}
	}()
	for used < len(data) {
		rest := data[used:]
		if r.skip > 0 {
			n := min(r.skip, len(rest))
			r.skip -= n
			used += n
			continue
		}
		if len(r.part) > 0 {
			n, whole, err := r.gather(rest)
			used += n
			if err != nil || !whole {
				return used, false, err
			}
			done, err := r.message(r.part[0], r.part[5:], r.part)
			r.part = r.part[:0]
			if done || err != nil {
				return used, done, err
			}
			continue
		}
		if len(rest) < 5 {
			r.part = append(r.part, rest...)
			return len(data), false, nil
		}
		size, err := sizeOf(rest)
		if err != nil {
			return used, false, err
		}
		if len(rest) < size {
			if r.wants(rest[0]) {
				r.part = append(r.part, rest...)
			} else {
				r.note(rest[0])
				r.skip = size - len(rest)
			}
			return len(data), false, nil
		}
		used += size
		if done, err := r.message(rest[0], rest[5:size], rest[:size]); done || err != nil {
			return used, done, err
		}
	}
	return used, false, nil
}

// gather completes the message that has begun in part.
func (r *Reply) gather(rest []byte) (used int, whole bool, err error) {
	if missing := 5 - len(r.part); missing > 0 {
		used = min(missing, len(rest))
		if r.part = append(r.part, rest[:used]...); len(r.part) < 5 {
			return used, false, nil
		}
	}
	size, err := sizeOf(r.part)
	if err != nil {
		return used, false, err
	}
	n := min(size-len(r.part), len(rest)-used)
	r.part = append(r.part, rest[used:used+n]...)
	return used + n, len(r.part) == size, nil
}

// sizeOf is the length of the message that begins with these five bytes, its header included.
func sizeOf(header []byte) (int, error) {
	n := binary.BigEndian.Uint32(header[1:])
	if header[0] != 'D' && n > maxKept && n <= maxMessage { // of rows alone that are not kept the server says as much
		return 0, &TooLargeError{maxKept}
	}
	if n < 4 || n > maxMessage {
		return 0, fmt.Errorf("the server's message %q has a length of %d: that is no PostgreSQL", header[0], n)
	}
	return int(n) + 1, nil
}

// wants reports whether what is in a message matters, note counts one that does not.
func (r *Reply) wants(kind byte) bool {
	switch kind {
	case 'D', 'T':
		return r.Keep || r.Describe
	case 'Z', 'E', 'C', 'G', 'H', 'W':
		return true
	case 't':
		return r.Describe
	}
	return false
}

func (r *Reply) note(kind byte) {
	if kind == 'D' {
		r.Rows++
	}
}

// message takes a whole message, and says whether it was the last one.
func (r *Reply) message(kind byte, body, whole []byte) (done bool, err error) {
	r.note(kind)
	switch kind {
	case 'Z':
		if len(body) != 1 {
			return false, errShort
		}
		r.Status = body[0]
		return true, nil
	case 'D':
		if r.Keep {
			r.kept = append(r.kept, whole...)
		}
	case 'C':
		r.tag = append(r.tag[:0], bytes.TrimSuffix(body, []byte{0})...)
		if r.Keep {
			r.kept = append(r.kept, whole...)
		}
	case 'T':
		if r.Keep {
			r.kept = append(r.kept, whole...)
		}
		if r.Describe {
			r.fields, err = fieldNames(body)
		}
	case 't':
		if r.Describe {
			r.params, err = paramTypes(body)
		}
	case 'E':
		if r.Err == nil {
			r.Err = readError(body)
		}
	case 'G':
		r.copying = true
		return true, nil
	case 'H', 'W':
		return false, errors.New("COPY TO is not supported: select the rows")
	}
	return false, err
}

func paramTypes(body []byte) ([]uint32, error) {
	if len(body) < 2 || len(body) != 2+4*int(binary.BigEndian.Uint16(body)) {
		return nil, errShort
	}
	types := make([]uint32, 0, (len(body)-2)/4)
	for at := 2; at < len(body); at += 4 {
		types = append(types, binary.BigEndian.Uint32(body[at:]))
	}
	return types, nil
}

func fieldNames(body []byte) (names []string, err error) {
	if len(body) < 2 {
		return nil, errShort
	}
	n, body := int(binary.BigEndian.Uint16(body)), body[2:]
	for range n {
		name, rest, ok := bytes.Cut(body, []byte{0})
		if !ok || len(rest) < 18 {
			return nil, errShort
		}
		names = append(names, string(name))
		body = rest[18:]
	}
	return names, nil
}

// Affected is the number of rows that the last statement inserted, changed, deleted or returned; 0 for others.
func (r *Reply) Affected() int64 {
	n, err := strconv.ParseInt(string(r.tag[bytes.LastIndexByte(r.tag, ' ')+1:]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Described is the statement that AppendPrepare prepared, where Describe asks for it.
func (r *Reply) Described(name, sql string) *Statement {
	return &Statement{Name: name, SQL: sql, Params: r.params, Columns: r.fields}
}

// Tag returns what the server calls the last statement that it completed, as "UPDATE 1".
func (r *Reply) Tag() string { return string(r.tag) }

// Next goes on to the next row that was kept, of all results in order, and reports whether there is one.
func (r *Reply) Next() bool {
	for r.at < len(r.kept) {
		m := r.kept[r.at:]
		size := 1 + int(binary.BigEndian.Uint32(m[1:]))
		r.at += size
		switch m[0] {
		case 'T':
			r.names = m[5:size]
		case 'D':
			if size < 7 {
				continue
			}
			r.columns, r.row = int(binary.BigEndian.Uint16(m[5:])), m[7:size]
			return true
		}
	}
	r.row, r.columns = nil, 0
	return false
}

// NextResult goes on past the rows of one statement and its end. It reports whether there was such an end; count is the
// number of its rows that were left over.
func (r *Reply) NextResult() (count int, ok bool) {
	for r.at < len(r.kept) {
		m := r.kept[r.at:]
		r.at += 1 + int(binary.BigEndian.Uint32(m[1:]))
		switch m[0] {
		case 'D':
			count++
		case 'C':
			return count, true
		}
	}
	return count, false
}

// Columns is how many columns the row has.
func (r *Reply) Columns() int { return r.columns }

// Column is a column of the row, from 0, as text. It is nil for null and for one that there is not, and valid until the
// next request.
func (r *Reply) Column(i int) []byte {
	row := r.row
	for n := 0; n < r.columns && len(row) >= 4; n++ {
		size := int(int32(binary.BigEndian.Uint32(row)))
		row = row[4:]
		if size > len(row) {
			return nil
		}
		if n == i {
			if size < 0 {
				return nil
			}
			return row[:size:size]
		}
		row = row[max(size, 0):]
	}
	return nil
}

// Int is a column of the row as a whole number.
func (r *Reply) Int(i int) (int64, error) {
	n, err := strconv.ParseInt(string(r.Column(i)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("column %d is %q, no whole number", i+1, r.Column(i))
	}
	return n, nil
}

// Names are the columns' names of the result that the row is of; nil where the server described none (a prepared
// statement has them in Statement.Columns).
func (r *Reply) Names() []string {
	if r.names == nil {
		return nil
	}
	names, err := fieldNames(r.names)
	if err != nil {
		return nil
	}
	return names
}
