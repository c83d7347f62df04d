package command

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
)

const (
	maxLine     = 1 << 20
	maxDocument = 64 << 20
	maxColumns  = 10_000
	maxAttempts = 100 // at finding the document among other text
	maxElapsed  = 1e9 // seconds
)

// parser reads a program's output as its layout says.
type parser struct {
	layout   *layout
	warner   *workload.Warner
	said     workload.Said
	state    *state
	buf      []byte
	skipping bool // until the end of a line that is too long
	lines    int  // that are not empty; of a document 1
	first    string
	matched  []int // lines, by record
	header   []string
	section  string // after: of the records whose heading came last
}

func newParser(declared workload.Declared, sink workload.Sink) (*parser, error) {
	l, err := prepare(declared)
	if err != nil {
		return nil, err
	}
	warner := &workload.Warner{Sink: sink, Tool: l.Program}
	return &parser{layout: l, warner: warner, state: newState(declared, warner),
		matched: make([]int, len(l.Records))}, nil
}

// limit is how much is kept while the end of a line or document has not come.
func (p *parser) limit() int {
	if p.layout.Format == formatJSON || p.layout.Format == formatObjects {
		return maxDocument
	}
	return maxLine
}

// Feed implements workload.Parser.
func (p *parser) Feed(data []byte) {
	if p.layout.Format == formatJSON {
		p.keep(data)
		return
	}
	for len(data) > 0 {
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			p.keep(data)
			return
		}
		p.keep(data[:end])
		p.line(false)
		data = data[end+1:]
	}
}

func (p *parser) keep(data []byte) {
	if p.skipping = p.skipping || len(p.buf)+len(data) > p.limit(); !p.skipping {
		p.buf = append(p.buf, data...)
	}
}

// line takes the line in buf. One that is cut, because no line end followed, is read by final records only: programs
// often end without a line end, but one that was killed may have stopped in the middle of a number.
func (p *parser) line(cut bool) {
	line, long := bytes.TrimRight(p.buf, " \t"), p.skipping
	p.buf, p.skipping = p.buf[:0], false
	if p.lines == 0 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if long {
		p.warner.Warn("a line of more than %d bytes was skipped", p.limit())
	}
	if len(bytes.TrimSpace(line)) == 0 || long {
		return
	}
	if p.lines++; p.lines == 1 {
		p.first = string(bytes.TrimSpace(line[:min(len(line), 200)]))
	}
	used := false
	switch p.layout.Format {
	case formatObjects:
		used = p.object(line)
	case formatCSV:
		used = p.row(string(line), cut)
	default:
		used = p.match(string(line), cut)
	}
	if !used {
		p.said.Add(line)
	}
}

// match holds a line against every record. One with a heading takes lines only while no other heading came.
func (p *parser) match(line string, cut bool) (used bool) {
	for i := range p.layout.Records {
		if r := &p.layout.Records[i]; r.After != "" && r.after.MatchString(line) {
			p.section, used = r.After, true
			break
		}
	}
	for i := range p.layout.Records {
		r := &p.layout.Records[i]
		if cut && !r.Final || r.After != "" && r.After != p.section {
			continue
		}
		if m := r.match.FindStringSubmatch(line); m != nil {
			used = true
			p.count(i, func(field string) (string, bool) {
				for k, name := range r.match.SubexpNames() {
					if name == field && m[k] != "" {
						return m[k], true
					}
				}
				return "", false
			})
		}
	}
	return used
}

// row holds a row of a table against every record. The header is the first that has every column the records name.
func (p *parser) row(line string, cut bool) (used bool) {
	cells, ok := p.cells(line)
	if !ok {
		return false
	}
	if !p.layout.NoHeader && p.header == nil {
		for _, name := range p.columns() {
			if !slices.Contains(cells, name) {
				return false
			}
		}
		p.header = cells
		return true
	}
	if slices.Equal(cells, p.header) {
		return true // said again
	}
	get := func(field string) (string, bool) {
		i := slices.Index(p.header, field)
		if i < 0 {
			position, err := strconv.Atoi(field)
			if i = position - 1; err != nil {
				return "", false
			}
		}
		if i < 0 || i >= len(cells) {
			return "", false
		}
		return cells[i], true
	}
	for i := range p.layout.Records {
		r := &p.layout.Records[i]
		all := !cut || r.Final
		r.eachField(func(field string, _ *yaml.Node) {
			_, there := get(field)
			all = all && there
		})
		if all && r.chosen(get) {
			used = true
			p.count(i, get)
		}
	}
	return used
}

func (p *parser) cells(line string) ([]string, bool) {
	r := csv.NewReader(strings.NewReader(line))
	r.LazyQuotes, r.FieldsPerRecord = true, -1
	if p.layout.Separator != "" {
		r.Comma = rune(p.layout.Separator[0])
	}
	cells, err := r.Read()
	if err != nil || len(cells) > maxColumns {
		return nil, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

var position = lazyregexp.New(`^[0-9]+$`)

// columns are the names of columns that records ask for.
func (p *parser) columns() (names []string) {
	for i := range p.layout.Records {
		p.layout.Records[i].eachField(func(field string, _ *yaml.Node) {
			if !position.MatchString(field) && !slices.Contains(names, field) {
				names = append(names, field)
			}
		})
	}
	return names
}

// object reads a line that is one JSON value.
func (p *parser) object(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var v any
	if line[0] != '{' && line[0] != '[' || d.Decode(&v) != nil || d.InputOffset() != int64(len(line)) {
		return false
	}
	return p.elements(v)
}

// elements holds a value, or each of those in it, against every record.
func (p *parser) elements(v any) (used bool) {
	for i := range p.layout.Records {
		r := &p.layout.Records[i]
		list := []any{v}
		if r.Each != "" {
			list, _ = r.each.in(v).([]any)
		}
		for _, e := range list {
			get := func(field string) (string, bool) {
				switch value := r.paths[field].in(e).(type) {
				case json.Number:
					return value.String(), true
				case string:
					return value, true
				case bool:
					return strconv.FormatBool(value), true
				}
				return "", false
			}
			some := false
			r.eachField(func(field string, _ *yaml.Node) {
				_, there := get(field)
				some = some || there
			})
			if some && r.chosen(get) {
				used = true
				p.count(i, get)
			}
		}
	}
	return used
}

// document finds the one document of the output, which other text may surround.
func (p *parser) document() error {
	if p.skipping {
		return fmt.Errorf("it has more than %d bytes, which is more than is kept of a document", p.limit())
	}
	text := bytes.TrimPrefix(p.buf, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	p.lines, p.first = 1, string(bytes.TrimSpace(text)[:min(len(bytes.TrimSpace(text)), 200)])
	var failed error
	attempts := 0
	for at := 0; at < len(text) && attempts < maxAttempts; {
		line := text[at:]
		if trimmed := bytes.TrimLeft(line, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
			attempts++
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var v any
			err := d.Decode(&v)
			if err == nil {
				p.said.Add(text[:at])
				p.said.Add(line[d.InputOffset():])
				p.elements(v)
				return nil
			}
			if failed == nil {
				failed = fmt.Errorf("its JSON cannot be read: %w", err)
			}
		}
		next := bytes.IndexByte(line, '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	p.said.Add(text)
	return failed
}

// chosen reports whether what where: asks for is so.
func (r *record) chosen(get func(string) (string, bool)) bool {
	for _, w := range r.Where {
		if text, _ := get(w.Field); !w.match.MatchString(text) {
			return false
		}
	}
	return true
}

// count counts what a record found.
func (p *parser) count(i int, get func(field string) (string, bool)) {
	p.matched[i]++
	r, s := &p.layout.Records[i], p.state
	read := func(x *number) (float64, bool) {
		text, _ := get(x.Field)
		v, ok, err := x.parse(text)
		if err != nil {
			p.warner.Warn("record %d: %v", i+1, err)
		}
		return v, ok
	}
	atLeast0 := func(x *number) (float64, bool) {
		v, ok := read(x)
		if ok && v < 0 {
			p.warner.Warn("record %d: field %s is negative: %g", i+1, x.Field, v)
			return 0, false
		}
		return v, ok
	}
	if r.Elapsed != nil {
		v, ok := atLeast0(r.Elapsed)
		if ok && v > maxElapsed {
			p.warner.Warn("record %d: %g s is no elapsed time", i+1, v)
			return
		}
		at := time.Duration(v * float64(time.Second))
		switch {
		case ok && r.Final:
			s.sum.elapsed = max(s.sum.elapsed, at)
		case !ok:
			return // what it holds is of no known moment; said
		case !s.moment(at):
			p.warner.Warn("record %d: the elapsed time went back from %v to %v; what goes with it is left out", i+1,
				s.elapsed, at)
			return
		}
	}
	s.sum.given = s.sum.given || r.Final
	s.open = s.open || !r.Final
	count := func(k *counter, to *tally, what string) (v, added float64) {
		if k == nil {
			return 0, 0
		}
		v, ok := atLeast0(k.Number)
		if !ok {
			return 0, 0
		}
		if k.How == byRate && s.elapsed == 0 && v > 0 {
			p.warner.Warn("record %d: a rate of %s before any time had passed counts for nothing", i+1, what)
		}
		was := to.value
		added, fell := to.add(k.How, v, s.elapsed, r.Final)
		if fell {
			p.warner.Warn("record %d: %s fell from %.0f to %.0f; the larger is kept", i+1, what, was, v)
		}
		return v, added
	}
	count(r.Errors, &s.errors, "errors")
	for k := range r.Operations {
		of := &r.Operations[k]
		o, noun := &s.ops[of.Operation], s.declared.Operations[of.Operation].Noun
		v, added := count(of.Ops, &o.ops, noun)
		count(of.Bytes, &o.bytes, "bytes of "+noun)
		if of.Mean != nil && of.Ops != nil {
			mean, ok := atLeast0(of.Mean)
			switch {
			case ok && of.Ops.How == byRate:
				o.seconds.estimated = true
				o.seconds.add(byDelta, mean*added, s.elapsed, r.Final)
			case ok:
				o.seconds.add(of.Ops.How, mean*v, s.elapsed, r.Final)
			}
		}
		if of.Sum != nil {
			if sum, ok := atLeast0(of.Sum); ok {
				o.seconds.add(byCount, sum, s.elapsed, r.Final)
			}
		}
	}
	for _, m := range r.Measures {
		if v, ok := read(m.Value); ok {
			s.value(m.Measure, v, r.Final)
		}
	}
	if h := r.Histogram; h != nil {
		upTo, ok := atLeast0(h.UpTo)
		n, counted := atLeast0(h.Count)
		o := &s.ops[h.Operation]
		if o.hist == nil {
			o.hist = &hist.Histogram{}
		}
		if ok && counted && n >= 1 {
			o.hist.Add(uint64(min(upTo*1e9, math.MaxInt64/2)), uint64(n))
		}
	}
}

// Finish implements workload.Parser.
func (p *parser) Finish() (workload.Outcome, error) {
	var failed error
	if p.layout.Format == formatJSON {
		failed = p.document()
	} else {
		p.line(true)
	}
	p.state.finish()
	outcome := workload.Outcome{Reports: p.state.reports, Errors: p.state.errors.whole(),
		Message: complaintsFirst(p.said.String())}
	if outcome.Reports == 0 {
		return outcome, fmt.Errorf("parse: %s output: %w", p.layout.Program, p.why(failed))
	}
	for i, n := range p.matched {
		if n == 0 && p.state.sum.given && !p.layout.Versions {
			p.warner.Warn("record %d (line %d of the file) matched none of %s", i+1, p.layout.Records[i].Line, p.read())
		}
	}
	return outcome, nil
}

var complaint = lazyregexp.New(`(?i)\b(fatal|error|fail(ed|ure)?|cannot|can't|could not|unable|invalid|unknown|` +
	`unrecognized|denied|no such|not found|usage)\b`)

// complaintsFirst puts the lines that say what is wrong before banners and the like.
func complaintsFirst(message string) string {
	lines := strings.Split(message, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return strings.Join(lines, "\n")
}

func rank(line string) int {
	if complaint.MatchString(line) {
		return 0
	}
	return 1
}

// read says what was read.
func (p *parser) read() string {
	if p.layout.Format == formatJSON {
		return "the document"
	}
	return fmt.Sprintf("%d lines", p.lines)
}

// why says why there is no report.
func (p *parser) why(failed error) error {
	some := 0
	for _, n := range p.matched {
		some += min(n, 1)
	}
	switch {
	case failed != nil:
		return failed
	case p.lines == 0:
		return errors.New("it is empty")
	case p.layout.Format == formatCSV && !p.layout.NoHeader && p.header == nil:
		return fmt.Errorf("none of %d lines has the columns %s; the first line was %q", p.lines,
			strings.Join(p.columns(), ", "),
			p.first)
	case some == 0:
		return fmt.Errorf("0 of %d records matched any of %s; the first line was %q", len(p.matched), p.read(), p.first)
	}
	return fmt.Errorf("%d of %d records matched some of %s, but no number with a time could be read from them", some,
		len(p.matched), p.read())
}

// Worked implements workload.Parser.
func (p *parser) Worked() bool { return p.state.worked }

// Words implements workload.Parser.
func (p *parser) Words(text []byte) string { return p.said.Beyond(text) }
