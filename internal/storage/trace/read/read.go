// Package read reads traces of block I/O that other tools left: blktrace's binary files, blkparse's text, the text of
// the kernel's tracefs and of perf script, fio's I/O logs (versions 2 and 3) and its logs of single operations, and
// tables in CSV (of Microsoft Research Cambridge, Alibaba, Tencent, and any whose header names its columns).
//
// It stands before internal/storage/trace: Open makes one Source of any number of files, merged by time, with the names
// and the problems that the analysis tells of. A format is recognised by content; files packed with gzip or zstd are
// unpacked on the way. Memory is bounded: events that are up to 65,536 places from where they belong are put in order,
// later ones are counted. Nothing that a file holds ends the reading but an error of reading itself: what cannot be
// understood is counted, named with its file and line or byte, and left out.
package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/kit/plaintext"
	"plimsoll/internal/storage/trace"
)

// Input is a file that was opened.
type Input struct {
	Name string
	From io.Reader
}

// Trace holds what Open makes of files.
type Trace struct {
	trace.Source
	Names    *trace.Names
	Problems *trace.Problems
	Formats  []string // of each input
	unpack   []func()
}

// Close lets go of what unpacks. The inputs are their openers' to close.
func (t *Trace) Close() {
	for _, done := range t.unpack {
		done()
	}
}

// parser reads one file. n may be less than there is room for; at the end the error is io.EOF.
type parser interface {
	next(events []trace.Event) (n int, err error)
}

// file is one input as parsers see it.
type file struct {
	name     string
	in       *bufio.Reader
	names    *trace.Names
	problems *trace.Problems
	shared   *shared
}

// shared holds what all files of a trace have in common.
type shared struct {
	base    uint64 // the first time stamp, in its unit
	hasBase bool
	devices map[string]uint32
}

// bad counts what could not be understood.
func (f *file) bad(what, unit string, at int64, value []byte) {
	f.problems.Add(what, 1, func() string { return fmt.Sprintf("%s: %s %d: %q", f.name, unit, at, cut(value)) })
}

func cut(value []byte) []byte { return value[:min(len(value), 120)] }

const headBytes = 64 << 10

// Open makes one trace of files. format is one of Formats, or "" for what each file proves to be. The error says of
// each file that cannot be read as a trace what it is not.
func Open(inputs []Input, format string) (*Trace, error) {
	t := &Trace{Names: trace.NewNames(), Problems: &trace.Problems{}}
	if format != "" && !slices.Contains(Formats(), format) {
		return nil, fmt.Errorf("no format %q; there are: %s", format, strings.Join(Formats(), ", "))
	}
	common := &shared{devices: map[string]uint32{}}
	var merge merger
	var failed []error
	for _, in := range inputs {
		f := &file{name: in.Name, names: t.Names, problems: t.Problems, shared: common}
		p, as, err := f.open(t, in.From, format)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", in.Name, err))
			continue
		}
		t.Formats = append(t.Formats, as)
		merge.files = append(merge.files, &sorter{file: f, from: p, window: max(window/len(inputs), 1<<10)})
	}
	if len(failed) > 0 {
		t.Close()
		return nil, errors.Join(failed...)
	}
	t.Source = &merge
	return t, nil
}

func (f *file) open(t *Trace, from io.Reader, format string) (parser, string, error) {
	f.in = bufio.NewReaderSize(from, headBytes)
	if head, err := f.in.Peek(1); len(head) == 0 && errors.Is(err, io.EOF) {
		return nil, "", errors.New("it is empty")
	}
	unpacked, done, err := plaintext.Unpack(f.in)
	if err != nil {
		return nil, "", err
	}
	t.unpack = append(t.unpack, done)
	if unpacked != io.Reader(f.in) {
		f.in = bufio.NewReaderSize(unpacked, headBytes)
	}
	head, err := f.in.Peek(headBytes)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	for _, known := range formats {
		if format == known.name || format == "" && known.is(head) {
			p, err := known.open(f, head)
			return p, known.name, err
		}
	}
	return nil, "", fmt.Errorf("it is no trace that is known here (%s); --from says what it is. It begins with %.32q",
		strings.Join(Formats(), ", "), cut(firstLine(head)))
}

func firstLine(head []byte) []byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return line
}

// formats are tried in this order.
var formats = []struct {
	name string
	is   func(head []byte) bool
	open func(f *file, head []byte) (parser, error)
}{
	{"blktrace", isBlktrace, openBlktrace},
	{"iolog", isIolog, openIolog},
	{"blkparse", linesOf(parseBlkparse), openLines(parseBlkparse)},
	{"tracefs", linesOf(parseTracefs), openLines(parseTracefs)},
	{"fio-log", isFioLog, openFioLog},
	{"csv-msr", isFixed(msr), openFixed(msr)},
	{"csv-alibaba", isFixed(alibaba), openFixed(alibaba)},
	{"csv-tencent", isFixed(tencent), openFixed(tencent)},
	{"csv", isCSV, openCSV},
}

// Formats are the names of the formats.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// window is by how many places, in all files together, events are put in order.
const window = 1 << 16

// sorter gives the events of a file in the order of time.
type sorter struct {
	file   *file
	from   parser
	window int
	buf    []trace.Event
	pos    int // the next to give
	ready  int // those before it may be given
	err    error
	last   int64
	gave   bool
}

// fill has at least one event ready unless there are no more.
func (s *sorter) fill() {
	if s.pos < s.ready || s.err != nil && s.ready == len(s.buf) {
		return
	}
	s.buf = s.buf[:copy(s.buf[:cap(s.buf)], s.buf[s.pos:])]
	s.pos = 0
	moved := uint64(0)
	for s.err == nil && len(s.buf) < 2*s.window {
		from := len(s.buf)
		s.buf = slices.Grow(s.buf, 512) // small files take little
		var n int
		n, s.err = s.from.next(s.buf[from:min(cap(s.buf), 2*s.window)])
		s.buf = s.buf[:from+n]
		for i := max(from, 1); i < from+n; i++ {
			if s.buf[i].Time < s.buf[i-1].Time {
				moved++
			}
		}
	}
	if moved > 0 {
		slices.SortStableFunc(s.buf, func(a, b trace.Event) int {
			switch {
			case a.Time < b.Time:
				return -1
			case a.Time > b.Time:
				return 1
			}
			return 0
		})
		s.file.problems.Note("times that go back, put in order", moved, func() string { return s.file.name })
	}
	s.ready = len(s.buf)
	if s.err == nil {
		s.ready = max(s.ready-s.window, 1)
	}
	if s.gave && s.ready > 0 && s.buf[0].Time < s.last {
		late := uint64(0)
		for late < uint64(s.ready) && s.buf[late].Time < s.last {
			late++
		}
		s.file.problems.Note(fmt.Sprintf("events more than %d places from where their time belongs, taken as they came",
			s.window), late, func() string { return s.file.name })
	}
	if s.ready > 0 {
		s.last, s.gave = max(s.last, s.buf[s.ready-1].Time), true
	}
}

// merger gives the events of several files in the order of time.
type merger struct{ files []*sorter }

// Next implements trace.Source.
func (m *merger) Next(events []trace.Event) (n int, err error) {
	for n < len(events) {
		var first *sorter
		until := int64(1<<63 - 1)
		for _, s := range m.files {
			s.fill()
			if s.pos == s.ready {
				continue
			}
			switch t := s.buf[s.pos].Time; {
			case first == nil:
				first = s
			case t < first.buf[first.pos].Time:
				until, first = min(until, first.buf[first.pos].Time), s
			default:
				until = min(until, t)
			}
		}
		if first == nil {
			return n, m.ended()
		}
		for n < len(events) && first.pos < first.ready && first.buf[first.pos].Time <= until {
			events[n] = first.buf[first.pos]
			n++
			first.pos++
		}
	}
	return n, nil
}

// ended tells of files that could not be read to their end, and is io.EOF.
func (m *merger) ended() error {
	for _, s := range m.files {
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			s.file.problems.Add("a file could not be read to its end", 1,
				func() string { return fmt.Sprintf("%s: %v", s.file.name, s.err) })
			s.err = io.EOF
		}
	}
	return io.EOF
}
