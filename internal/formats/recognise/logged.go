package recognise

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/formats/importer"
	"plimsoll/internal/kit/lazyregexp"
)

// Log is how a log's own words stand before each line of a tool's output: a time, a host, a container.
type Log struct {
	steps   []logStep
	example string // of what stands before a line
}

// logStep takes one thing from the beginning of each line.
type logStep struct {
	of    *lazyregexp.Regexp // its first group, if any, is whose line it is
	whose []string           // lines of others are left out; nil: nobody is told apart
	same  string             // instead of a pattern: what all lines begin with
	json  bool               // each line is a JSON object whose "log" is the line
	sure  bool               // no tool's own lines all begin so
}

const logDay = `\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?`

// logPrefixes are those of journals, containers, build servers and shells over many hosts. A line may have several.
var logPrefixes = []*lazyregexp.Regexp{
	lazyregexp.New(`^\[` + logDay + `(?:Z|[+-]\d\d:?\d\d)?\](?: |$)`),
	lazyregexp.New(`^` + logDay + `(?:Z| ?[+-]\d\d:?\d\d| UTC)?(?: (?:stdout|stderr) [FP])?` +
		`(?:[ :-]{1,3}\[?(?:DEBUG|INFO|WARNING|WARN|ERROR)\]?(?::| -)?)?:?(?: |$)`),
	lazyregexp.New(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?(?: |$)`),
	lazyregexp.New(`^(\S+ [\w.@/-]+(?:\[\d+\])?):(?: |$)`),
	lazyregexp.New(`^(?:\x1b\[[\d;]*m)*([\w.-]+) +\|(?:\x1b\[[\d;]*m)*(?: |$)`),
	lazyregexp.New(`^\[((?:pod/)?[\w.-]+(?:/[\w.-]+)*)\](?: |$)`),
	lazyregexp.New(`^\[\d+,(\d+)\]<\w+>:`),
	lazyregexp.New(`^([\w.-]+):(?: |$)`),
	lazyregexp.New(`^(?:\[\d\d:\d\d:\d\d(?:[.,]\d+)?\](?: |$)|\d\d:\d\d:\d\d(?:  |$))`),
	lazyregexp.New(`^>(?: |$)`), // a quotation
	logTime,
}

// logTime is how lines of tools begin, too.
var logTime = lazyregexp.New(`^\d\d:\d\d:\d\d(?:[.,]\d+)?(?: |$)`)

const (
	fewestLogged = 4  // lines
	mostSteps    = 4  // from the beginning of a line
	mostSources  = 64 // whose lines are told apart
)

// Logged says how a log's words stand before the lines of a text that begins so: nil where there are none, or where
// what is left is no output that is known. Lines of several who each printed such an output are refused.
func Logged(head []byte) (*Log, error) {
	lines := linesOf(head)
	if len(lines) < fewestLogged {
		return nil, nil
	}
	l, best := &Log{}, 0
	for len(l.steps) < mostSteps {
		step, ok := stepOf(lines)
		if !ok || !step.sure && is(lines) {
			break
		}
		if len(l.steps) == 0 {
			kept, _ := step.line(lines[0])
			l.example = strings.TrimSpace(strings.TrimSuffix(string(lines[0]), string(kept)))
		}
		if step.of != nil && step.of.NumSubexp() > 0 {
			var err error
			if step.whose, err = speakers(step, lines); step.whose == nil {
				return nil, err
			}
		}
		l.steps, lines = append(l.steps, step), step.lines(lines)
		if is(lines) {
			best = len(l.steps)
		}
	}
	if best == 0 {
		return nil, nil
	}
	l.steps = l.steps[:best]
	return l, nil
}

// is reports whether lines are of a known output. What is looked for in fio's and HammerDB's may stand
// anywhere in a line.
func is(lines [][]byte) bool {
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	switch as, _, known, _ := importer.Recognise(text); {
	case as == "fio-text":
		return fioTextClean.Match(text)
	case as == "fio":
		return fioJSONClean.Match(text)
	case as == "hammerdb":
		return hammerClean.Match(text)
	default:
		return known
	}
}

var (
	fioTextClean = lazyregexp.New(`(?m)^ *(?:Run status group \d|[^ :]+: \(groupid=\d|[^ :]+: \(g=\d+\): rw=)`)
	hammerClean  = lazyregexp.New(`(?m)^\s*(?:Vuser \d+:|Virtual User \d+: |HammerDB CLI|Hammerdb Log @)`)
	fioJSONClean = lazyregexp.New(`(?m)^[\s{]*"fio version"`)
)

// linesOf are the whole lines of a text that hold something.
func linesOf(head []byte) [][]byte {
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	return slices.DeleteFunc(bytes.Split(head, []byte("\n")),
		func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
}

// stepOf finds what nearly all lines begin with.
func stepOf(lines [][]byte) (logStep, bool) {
	if len(lines) == 0 {
		return logStep{}, false
	}
	enough := len(lines) - len(lines)/50
	if bytes.HasPrefix(lines[0], []byte(`{"log":`)) {
		return logStep{json: true, sure: true}, true
	}
	for _, p := range logPrefixes {
		n := 0
		for _, line := range lines {
			if p.Match(bytes.TrimRight(line, "\r")) {
				n++
			}
		}
		if n >= enough {
			return logStep{of: p, sure: p != logTime}, true
		}
	}
	same := bytes.TrimRight(lines[0], "\r")
	for _, line := range lines[1:] {
		n := 0
		for n < min(len(same), len(line)) && same[n] == line[n] {
			n++
		}
		same = same[:n]
	}
	return logStep{same: string(same)}, len(same) > 0
}

// speakers are those whose lines are read: all that are one program's, one after another; else the only one who printed
// an output that is known.
func speakers(step logStep, lines [][]byte) ([]string, error) {
	var names []string
	var turns []string // whose lines follow one another
	of := map[string][][]byte{}
	for _, line := range lines {
		name := step.who(line)
		if of[name] == nil {
			if names = append(names, name); len(names) > mostSources {
				return nil, nil
			}
		}
		of[name] = append(of[name], line)
		if n := len(turns); n == 0 || turns[n-1] != name {
			turns = append(turns, name)
		}
	}
	var tell []string
	for _, name := range names {
		rest, s, ok := of[name], step, true
		for n := 1; ok && n < mostSteps; n++ {
			if rest = s.lines(rest); is(rest) {
				tell = append(tell, name)
				break
			}
			s, ok = stepOf(rest)
		}
	}
	if len(tell) < 2 {
		return tell, nil
	}
	program := func(name string) string { p, _, _ := strings.Cut(name, "["); return p }
	for _, name := range tell {
		n := 0
		for _, t := range turns {
			if t == name {
				n++
			}
		}
		if n > 1 || program(name) != program(tell[0]) || !strings.Contains(name, "[") {
			return nil, fmt.Errorf("%w (%s): give the lines of each in a file of its own", ErrMixed,
				strings.Join(tell, ", "))
		}
	}
	return tell, nil
}

// ErrMixed is of a log in which several outputs stand among one another.
var ErrMixed = errors.New("it is a log in which the outputs of several stand line by line among one another")

// who says whose a line is.
func (s logStep) who(line []byte) string {
	if m := s.of.FindSubmatch(bytes.TrimRight(line, "\r")); m != nil {
		return string(m[1])
	}
	return ""
}

// line is a line without what the log put before it; not kept: it is somebody else's.
func (s logStep) line(line []byte) (rest []byte, kept bool) {
	switch {
	case s.json:
		var o struct{ Log string }
		if err := json.Unmarshal(line, &o); err != nil {
			return line, true
		}
		return []byte(strings.TrimRight(o.Log, "\r\n")), true
	case s.of == nil:
		if rest, ok := bytes.CutPrefix(line, []byte(s.same)); ok {
			return rest, true
		}
		return bytes.TrimPrefix(line, bytes.TrimRight([]byte(s.same), " \t")), true
	}
	m := s.of.FindSubmatch(bytes.TrimRight(line, "\r"))
	if m == nil {
		return line, s.whose == nil || len(bytes.TrimSpace(line)) == 0
	}
	return line[len(m[0]):], s.whose == nil || slices.Contains(s.whose, string(m[1]))
}

func (s logStep) lines(lines [][]byte) (out [][]byte) {
	for _, line := range lines {
		if rest, kept := s.line(line); kept && len(bytes.TrimSpace(rest)) > 0 {
			out = append(out, rest)
		}
	}
	return out
}

// String is an example of what stands before a line.
func (l *Log) String() string { return l.example }

// Text is a text without what the log put before its lines.
func (l *Log) Text(r io.Reader) io.Reader {
	return &unlogged{log: l, in: bufio.NewReader(r)}
}

// unlogged reads a log line by line.
type unlogged struct {
	log *Log
	in  *bufio.Reader
	out []byte
	err error
}

// Read implements io.Reader.
func (u *unlogged) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		var line []byte
		for { // a line longer than any reader takes is passed on in pieces
			piece, err := u.in.ReadSlice('\n')
			line = append(line, piece...)
			if !errors.Is(err, bufio.ErrBufferFull) || len(line) > importer.HeadBytes {
				if u.err = err; errors.Is(err, bufio.ErrBufferFull) {
					u.err = nil
				}
				break
			}
		}
		text, end := bytes.CutSuffix(line, []byte("\n"))
		kept := true
		for _, s := range u.log.steps {
			if text, kept = s.line(text); !kept {
				break
			}
		}
		if u.out = nil; kept {
			u.out = text
			if end {
				u.out = append(slices.Clone(text), '\n')
			}
		}
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}
