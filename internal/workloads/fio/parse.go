package fio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
)

const (
	// closest is how near two reports may be. fio prints its last one right after a timed one, or twice.
	closest = 500 * time.Millisecond
	// maxDocument bounds what is kept while the end of a report has not come.
	maxDocument = 64 << 20
)

// Parse implements workload.Engine. It reads fio's output from beginning to end: reports one after another with any
// text between, through or before them. It fails when there is no report at all.
func (Engine) Parse(d workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	p := newParser(sink, d)
	p.choice = choiceOf(d)
	p.order.apart = p.choice != nil
	if p.choice != nil && p.choice.Mixed {
		p.order.sink, p.order.mixed = one{sink}, true
	}
	return workload.Replay(r, p, "fio")
}

// failedLine matches a line among fio's output about operations that failed.
var failedLine = lazyregexp.New(`(?m)^.*(io_u error|terminating on signal|\berr=\s*[1-9]|verify: bad|verify failed|Input/output error).*$`)

// parser finds reports in a growing stream. The zero value is not usable.
type parser struct {
	buf      []byte // not yet consumed
	searched int    // buf up to here holds no end of a document
	consumed int64  // bytes before buf
	looked   int64  // bytes that were read for a document, some of them again; what Parse costs is in proportion
	warner   workload.Warner
	words    workload.Said
	order    order
	outputs  outputs
	choice   *choice                       // of what stands in the file, nil for all
	seen     func(d *document, output int) // takes the reports in the place of order
	syncs    bool                          // the measures are those of fsync and fdatasync
	cut      int                           // reports that end early
}

// newParser makes a parser of what a job of ours declared, or a choice of what somebody's file holds.
func newParser(sink workload.Sink, d workload.Declared) *parser {
	sections := sectionsOf(d)
	p := &parser{warner: workload.Warner{Sink: sink, Tool: "fio"}, syncs: sections != nil && len(d.Measures) > 0}
	p.words = workload.Said{Chatter: chatter, Rewrite: func(line string) string { return authors(line, sections) }}
	p.order = order{sink: sink, warn: p.warner.Warn}
	return p
}

// Feed implements workload.Parser. It takes the next bytes. A document is decoded when the line that closes it has
// come: a brace in column 0.
func (p *parser) Feed(data []byte) {
	p.buf = append(p.buf, data...)
	done := 0
	for {
		at := bytes.Index(p.buf[max(p.searched, done):], closing)
		if at < 0 {
			break
		}
		end := max(p.searched, done) + at + len(closing)
		p.span(p.buf[done:end])
		done, p.searched = end, end
	}
	if done > 0 {
		p.consumed += int64(done)
		p.buf = p.buf[:copy(p.buf, p.buf[done:])]
	}
	p.searched = max(0, len(p.buf)-len(closing))
	if len(p.buf) > maxDocument {
		p.warner.Warn("%d bytes without the end of a report were skipped", len(p.buf))
		p.consumed += int64(len(p.buf))
		p.buf, p.searched = p.buf[:0], 0
	}
}

var closing = []byte("\n}")

// span decodes the documents in b, which ends where some document may end, and keeps the words between them.
//
// Each byte is read a bounded number of times, whatever b holds: a start that another one found unfit contains can
// only be nested in it, and nesting is bounded.
func (p *parser) span(b []byte) {
	next := starts{b: b}
	for i := 0; i < len(b); {
		brace := bytes.IndexByte(b[i:], '{')
		if brace < 0 {
			p.words.Add(b[i:])
			return
		}
		p.words.Add(b[i : i+brace])
		i += brace
		d, n, err := p.decode(b[i:])
		if err != nil {
			after := next.after(i)
			if d = p.lastOf(b[i:], after == len(b)); d == nil {
				p.damaged(b[i:after], err)
				i = after
				continue
			}
			p.warner.Warn("lines of text inside a report were taken out")
			n = len(b) - i
		}
		for _, problem := range d.problems {
			p.warner.Warn("%s", problem)
		}
		p.handOn(d)
		i += n
	}
}

// handOn hands on what of a report was chosen.
func (p *parser) handOn(d *document) {
	if p.choice == nil && p.seen == nil {
		if p.syncs {
			p.order.values = d.syncValues()
		}
		p.order.add(d)
		return
	}
	output := p.outputs.of(d)
	d = d.flat()
	if p.seen != nil {
		p.seen(d, output)
	}
	if p.choice != nil && p.choice.Output != output {
		return
	}
	if p.choice == nil {
		p.order.add(d)
	} else if d = d.stage(p.choice); d.idle() {
		p.order.last.failed = cmp.Or(d.failure(), p.order.last.failed)
	} else {
		p.order.values = p.choice.values(d)
		p.order.add(d)
	}
}

func (p *parser) decode(b []byte) (*document, int, error) {
	d, n, err := decode(b)
	p.looked += int64(n)
	return d, n, err
}

// damaged tells of a brace that begins nothing readable and of what follows it.
func (p *parser) damaged(b []byte, err error) {
	if looksLikeReport(b) {
		var any json.RawMessage
		within := bytes.Contains(b, firstKey) // else it is what somebody put around a report
		if within && errors.Is(json.NewDecoder(bytes.NewReader(b)).Decode(&any), io.ErrUnexpectedEOF) {
			p.cut++
		}
		p.warner.Warn("a report of %d bytes was skipped: %v", len(b), err)
	} else {
		p.words.Add(b)
	}
}

// starts finds where reports begin: a brace in column 0, or one before fio's first key when the one before was cut in
// the middle of a line.
type starts struct {
	b         []byte
	line, key int // the next of each kind as far as looked for
}

// after is the first start after i, or the end. It is asked with growing i and looks at no byte twice.
func (s *starts) after(i int) int {
	if s.line <= i {
		s.line = len(s.b)
		if at := bytes.Index(s.b[i+1:], []byte("\n{")); at >= 0 {
			s.line = i + 1 + at + 1
		}
	}
	for from := i + 1; s.key <= i; {
		at := bytes.Index(s.b[from:], firstKey)
		if at < 0 {
			s.key = len(s.b)
			break
		}
		if before := bytes.TrimRight(s.b[i+1:from+at], " \t\r\n"); len(before) > 0 && before[len(before)-1] == '{' {
			s.key = i + len(before)
		}
		from += at + len(firstKey)
	}
	return min(s.line, s.key)
}

var firstKey = []byte(`"fio version"`)

func looksLikeReport(b []byte) bool {
	return bytes.Contains(b, []byte(`"fio version"`)) || bytes.Contains(b, []byte(`"jobs"`)) ||
		bytes.Contains(b, []byte(`"jobname"`)) || len(b) > 1 && bytes.HasPrefix(bytes.TrimSpace(b[1:]), []byte(`"`))
}

// lastOf reads a report after which no other begins, in which stand lines that cannot be fio's JSON: those that begin
// in column 0 with anything but a brace. fio's error messages come in such lines, and into the same file. nil when
// there is none, or b is not of the last.
func (p *parser) lastOf(b []byte, last bool) *document {
	if !last {
		return nil
	}
	p.looked += int64(len(b))
	var clean, noise []byte
	for line := range bytes.Lines(b) {
		if c := line[0]; c == ' ' || c == '\t' || c == '{' || c == '}' || c == '\n' || c == '\r' {
			clean = append(clean, line...)
		} else {
			noise = append(noise, line...)
		}
	}
	if len(noise) == 0 {
		return nil
	}
	d, n, err := p.decode(clean)
	if err != nil || len(bytes.TrimSpace(clean[n:])) > 0 {
		return nil
	}
	p.words.Add(noise)
	return d
}

// Finish implements workload.Parser. It decodes what is left and lets go of a report that was held back.
func (p *parser) Finish() (workload.Outcome, error) {
	p.span(p.buf)
	total := p.consumed + int64(len(p.buf))
	p.buf, p.searched = nil, 0
	p.order.finish()
	outcome := workload.Outcome{Reports: p.order.reports, Errors: p.order.last.report.Errors, Message: p.words.String()}
	if f := p.order.last.fatal; f != "" {
		outcome.Failure = p.words.Rewrite(f)
	}
	if p.choice != nil {
		outcome.Failure = failedLine.FindString(outcome.Message)
		if outcome.Failure == "" && !p.order.last.done && !p.order.still && outcome.Reports > 0 {
			outcome.Failure = "its last report says that there was more to do: fio was ended, or what came then is missing"
		}
	}
	if f := p.order.last.failed; f != "" {
		if p.choice != nil {
			outcome.Failure = f
		}
		outcome.Message = strings.TrimSpace(p.words.Rewrite(f) + "\n" + outcome.Message)
	}
	if outcome.Reports > 0 {
		return outcome, nil
	}
	switch {
	case total == 0:
		return outcome, errors.New("parse: fio output: it is empty")
	case p.order.waits:
		return outcome, errors.New("parse: fio output: every report in it is from before its start (startdelay)")
	case p.order.ramp:
		return outcome, errors.New("parse: fio output: every report in it is from the ramp time")
	case p.choice != nil && p.order.last.failed != "":
		return outcome, fmt.Errorf("parse: fio output: nothing was done: %s", p.order.last.failed)
	case outcome.Message == "" && p.cut > 0:
		return outcome, fmt.Errorf("parse: fio output: it is cut in its first report, after %d bytes", total)
	case outcome.Message == "":
		return outcome, fmt.Errorf("parse: fio output: no report could be read in its %d bytes", total)
	}
	return outcome, fmt.Errorf("parse: fio output: no report in its %d bytes; fio says: %s", total,
		workload.FirstLines(outcome.Message, 3))
}
