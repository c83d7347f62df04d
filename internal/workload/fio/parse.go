package fio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/workload"
)

const (
	// closest is how near two reports may be. fio prints its last one right after a timed one, or twice.
	closest = 500 * time.Millisecond
	// maxDocument bounds what is kept while the end of a report has not come.
	maxDocument = 64 << 20
	maxWarnings = 20
)

// Parse implements workload.Engine. It reads fio's output from beginning to end: reports one after another with any
// text between, through or before them. It fails when there is no report at all.
func (Engine) Parse(d workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.Replay(r, newParser(sink, sectionsOf(d)), "fio")
}

// parser finds reports in a growing stream. The zero value is not usable.
type parser struct {
	sink     workload.Sink
	buf      []byte // not yet consumed
	searched int    // buf up to here holds no end of a document
	consumed int64  // bytes before buf
	warned   map[string]bool
	words    words
	order    order
}

func newParser(sink workload.Sink, sections []string) *parser {
	p := &parser{sink: sink, warned: make(map[string]bool), words: words{sections: sections}}
	p.order = order{sink: sink, warn: p.warn}
	return p
}

// warn passes on what was skipped or repaired, once for each text and not without end.
func (p *parser) warn(format string, args ...any) {
	text := "fio output: " + fmt.Sprintf(format, args...)
	if p.warned[text] || len(p.warned) > maxWarnings {
		return
	}
	if p.warned[text] = true; len(p.warned) > maxWarnings {
		text = "fio output: further warnings are left out"
	}
	p.sink.Warn(text)
}

// Feed implements workload.Parser. It takes the next bytes. A document is decoded when the line that closes it has come: a brace in column 0.
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
	p.consumed += int64(done)
	p.buf = p.buf[:copy(p.buf, p.buf[done:])]
	p.searched = max(0, len(p.buf)-len(closing))
	if len(p.buf) > maxDocument {
		p.warn("%d bytes without the end of a report were skipped", len(p.buf))
		p.consumed += int64(len(p.buf))
		p.buf, p.searched = p.buf[:0], 0
	}
}

var closing = []byte("\n}")

// span decodes the documents in b, which ends where some document may end, and keeps the words between them.
func (p *parser) span(b []byte) {
	for len(b) > 0 {
		start := bytes.IndexByte(b, '{')
		if start < 0 {
			p.words.add(b)
			return
		}
		p.words.add(b[:start])
		b = b[start:]
		d, n, err := decode(b)
		if err != nil {
			if d, n = decodeWithoutNoise(b, &p.words); d == nil {
				b = p.damaged(b, err)
				continue
			}
			p.warn("lines of text inside a report were taken out")
		}
		for _, problem := range d.problems {
			p.warn("%s", problem)
		}
		p.order.take(d)
		b = b[n:]
	}
}

// damaged skips a brace that begins nothing readable and returns where to go on: at the next beginning of a report,
// else at the end.
func (p *parser) damaged(b []byte, err error) []byte {
	skipped := nextStart(b)
	if looksLikeReport(b[:skipped]) {
		p.warn("a report of %d bytes was skipped: %v", skipped, err)
	} else {
		p.words.add(b[:skipped])
	}
	return b[skipped:]
}

// nextStart is where the next report after the one at the start of b begins: a brace in column 0, or one before
// fio's first key when the one before was cut in the middle of a line.
func nextStart(b []byte) int {
	next := len(b)
	if i := bytes.Index(b[1:], []byte("\n{")); i >= 0 {
		next = i + 2
	}
	for from := 1; from < next; {
		i := bytes.Index(b[from:next], firstKey)
		if i < 0 {
			break
		}
		before := bytes.TrimRight(b[:from+i], " \t\r\n")
		if len(before) > 1 && before[len(before)-1] == '{' {
			return len(before) - 1
		}
		from += i + len(firstKey)
	}
	return next
}

var firstKey = []byte(`"fio version"`)

func looksLikeReport(b []byte) bool {
	return bytes.Contains(b, []byte(`"fio version"`)) || bytes.Contains(b, []byte(`"jobs"`)) ||
		bytes.Contains(b, []byte(`"jobname"`)) || len(b) > 1 && bytes.HasPrefix(bytes.TrimSpace(b[1:]), []byte(`"`))
}

// decodeWithoutNoise tries once more without the lines that cannot be fio's JSON: those that begin in column 0 with
// anything but a brace. fio's error messages come in such lines, and into the same file.
func decodeWithoutNoise(b []byte, w *words) (*document, int) {
	var clean, noise []byte
	for line := range bytes.Lines(b) {
		if c := line[0]; c == ' ' || c == '\t' || c == '{' || c == '}' || c == '\n' || c == '\r' {
			clean = append(clean, line...)
		} else {
			noise = append(noise, line...)
		}
	}
	if len(noise) == 0 {
		return nil, 0
	}
	d, n, err := decode(clean)
	if err != nil || len(bytes.TrimSpace(clean[n:])) > 0 {
		return nil, 0
	}
	w.add(noise)
	return d, len(b)
}

// Finish implements workload.Parser. It decodes what is left and lets go of a report that was held back.
func (p *parser) Finish() (workload.Outcome, error) {
	p.span(p.buf)
	total := p.consumed + int64(len(p.buf))
	p.buf, p.searched = nil, 0
	p.order.finish()
	outcome := workload.Outcome{Reports: p.order.reports, Errors: p.order.last.report.Errors, Message: p.words.String()}
	if f := p.order.last.failed; f != "" {
		outcome.Message = strings.TrimSpace(p.words.authors(f) + "\n" + outcome.Message)
	}
	if outcome.Reports > 0 {
		return outcome, nil
	}
	switch {
	case total == 0:
		return outcome, errors.New("parse: fio output: it is empty")
	case p.order.ramp:
		return outcome, errors.New("parse: fio output: every report in it is from the ramp time")
	case outcome.Message == "":
		return outcome, fmt.Errorf("parse: fio output: no report could be read in its %d bytes", total)
	}
	return outcome, fmt.Errorf("parse: fio output: no report in its %d bytes; fio says: %s", total, workload.FirstLines(outcome.Message, 3))
}
