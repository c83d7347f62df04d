package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	elbencho     = "elbencho"
	elbenchoCSV  = "elbencho-csv"
	elbenchoJSON = "elbencho-json"
	elbenchoLive = "elbencho-live"
)

var (
	elbenchoAny     = lazyregexp.New(`(?m)^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE`)
	elbenchoCSVAny  = lazyregexp.New(`(?m)^(?:[^\n]*,)?operation,time ms \[first\],time ms \[last\],`)
	elbenchoJSONAny = lazyregexp.New(`"phase_type"\s*:`)
	elbenchoLiveAny = lazyregexp.New(`(?i)^\s*ISO Date,Label,Phase,RuntimeMS,Rank,`)
	elbenchoDate    = lazyregexp.New(`^ISO DATE: (\S{10,40})`)
	elbenchoRow     = lazyregexp.New(`^(\S*) +([A-Za-z][\w /%.+-]*?)\s*: +(\S+) +(\S+)\s*$`)
	elbenchoLat     = lazyregexp.New(`^\s+(\S+)( wr| rd)? lat(?:ency)?(?: us)?\s*: \[ min=(\S+) avg=(\S+) max=(\S+) \]`)
	elbenchoPct     = lazyregexp.New(`^\s+(\S+)( wr| rd)? lat % us\s*: \[ (.*) \]`)
	elbenchoOne     = lazyregexp.New(`(\d{1,2}(?:\.\d{1,6})?)%<=([\d.]+)`)
	elbenchoWrong   = lazyregexp.New(`^(?:ERROR: |.*\bTerminating due to |.*Caught (?:SIGINT|SIGTERM|exception))`)
	elbenchoRange   = lazyregexp.New(`^(\d{1,12})(?:-(\d{1,12})|\+)us$`)
)

func elbenchoReaders() []reader {
	return []reader{{
		name: elbenchoLive, holds: "elbencho's live statistics (--livecsv)", book: true,
		recognise: elbenchoLiveAny.Match,
	}, {
		name: elbenchoCSV, holds: "elbencho's results as CSV (--csvfile), with its line of names", book: true,
		recognise: elbenchoCSVAny.Match,
	}, {
		name: elbenchoJSON, holds: "elbencho's results as JSON (--jsonfile)", book: true,
		recognise: func(head []byte) bool {
			return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && elbenchoJSONAny.Match(head) &&
				bytes.Contains(head, []byte(`"last_done"`))
		},
	}, {
		name: elbencho, holds: "elbencho's table of results, as printed or by --resfile", book: true,
		recognise: elbenchoAny.Match,
	}}
}

// elbenchoPhase is one phase: what was written, or of a phase that only reads, read; and what was read beside writing.
type elbenchoPhase struct {
	name        string
	start       time.Time
	end         time.Time
	length      time.Duration // until the last thread was done
	first       time.Duration // until the first was
	main, read  elbenchoSide
	cpu         float64
	errors      float64
	concurrency float64
	label       string
	facts       []result.Fact
}

// elbenchoAsked are what is asked of a test, as its column and its key in JSON are named but for case and blanks.
var elbenchoAsked = []string{"block size", "file size", "direct IO", "random", "IO depth", "threads", "hosts"}

// elbenchoSide is one direction of a phase. What is not known is NaN.
type elbenchoSide struct {
	ios, bytes, entries, firstRate float64
	entryRate                      float64 // as stated
	io, entry                      elbenchoLatency
}

// elbenchoLatency is in microseconds.
type elbenchoLatency struct {
	min, avg, max float64
	stated        map[string]float64 // percentiles, the upper ends of buckets
	hist          *hist.Histogram
}

func newElbenchoPhase() *elbenchoPhase {
	none := math.NaN()
	l := elbenchoLatency{min: none, avg: none, max: none}
	s := elbenchoSide{ios: none, bytes: none, entries: none, firstRate: none, io: l, entry: l}
	return &elbenchoPhase{main: s, read: s, cpu: none}
}

// positive tells whether a value is there and above 0.
func positive(v float64) bool { return v > 0 }

func (s elbenchoSide) any() bool { return positive(s.ios) || positive(s.bytes) || positive(s.entries) }

// isRead reports whether a phase's own side is reading.
func (p *elbenchoPhase) isRead() bool { return strings.HasPrefix(p.name, "READ") }

// exactly makes the length of a phase of entries that of their rate as stated, where it is in the same whole
// millisecond: of 5 ms the rate would be a fifth off.
func (p *elbenchoPhase) exactly() {
	if s := p.main; !positive(s.ios) && positive(s.entries) && positive(s.entryRate) {
		exact := milliseconds(1e3 * s.entries / s.entryRate).Round(time.Microsecond)
		if (exact - p.length).Abs() <= time.Millisecond {
			p.length = exact
		}
	}
}

// stretch returns what a phase measured; false when it counted nothing.
func (p *elbenchoPhase) stretch() (stretch, bool) {
	if p.length <= 0 || !p.main.any() && !p.read.any() {
		return stretch{}, false
	}
	p.exactly()
	s := stretch{workload: "elbencho " + strings.ToLower(oneLine(p.name)), concurrency: p.concurrency, length: p.length,
		facts: p.facts}
	if p.label != "" {
		s.workload += " " + oneLine(p.label)
	}
	if s.start = p.start; s.start.IsZero() && !p.end.IsZero() {
		s.start = p.end.Add(-p.length)
	}
	rep := workload.Report{Elapsed: p.length, Final: true, Errors: whole(p.errors)}
	value := func(m result.Measure, v float64) {
		if !math.IsNaN(v) {
			s.measures, rep.Values = append(s.measures, m), append(rep.Values, v)
		}
	}
	add := func(side elbenchoSide, name, noun string, block result.Block) {
		if !side.any() {
			return
		}
		blocks := positive(side.ios) || positive(side.bytes)
		op := result.Operation{Name: name, Noun: noun, Bytes: positive(side.bytes), Block: block}
		n, l := side.ios, side.io
		if !blocks {
			op, n, l = result.Operation{Name: "entry", Noun: "entries"}, side.entries, side.entry
		} else if !positive(n) {
			n = side.entries // of files of one block each no IOPS are printed
			s.notes = append(s.notes, "it prints no IOPS, as of files of one block each: I/Os are its files")
		}
		c := workload.Counters{Ops: whole(n)}
		if positive(side.bytes) {
			c.Bytes = whole(side.bytes)
		}
		if positive(l.avg) {
			c.Seconds = l.avg / 1e6 * n
		}
		if l.hist != nil && l.hist.Count() > 0 {
			c.Hist, c.Ops = l.hist, l.hist.Count()
			if positive(l.avg) {
				c.Seconds = l.avg / 1e6 * float64(c.Ops)
			}
			s.notes = append(s.notes, "percentiles are the upper ends of elbencho's buckets: the true ones lie within "+
				"that bucket")
		}
		s.operations, rep.Ops = append(s.operations, op), append(rep.Ops, c)
		value(single(op.Name+"_min", "us"), l.min)
		value(single(op.Name+"_max", "us"), l.max)
		for _, q := range slices.SortedFunc(mapKeys(l.stated), byNumber) {
			value(single(op.Name+"_p"+q, "us"), l.stated[q])
		}
		if blocks && positive(side.entries) {
			value(result.Measure{Name: op.Name + "_entries", Unit: "entries", Kind: result.Count}, side.entries)
		}
		// It says which way is good of none: the result of a test is the rate until the last is done.
		value(result.Measure{Name: op.Name + "_until_first_done", Unit: op.RateUnit(), Kind: result.Single},
			side.firstRate)
	}
	name, noun, block := "write", "writes", result.BlockWrite
	if p.isRead() {
		name, noun, block = "read", "reads", result.BlockRead
	}
	add(p.main, name, noun, block)
	if name != "read" {
		add(p.read, "read", "reads", result.BlockRead)
	}
	if p.first > 0 {
		value(result.Measure{Name: "first_done", Unit: "s", Kind: result.Single}, p.first.Seconds())
	}
	value(result.Measure{Name: "cpu", Unit: "%", Kind: result.Single}, p.cpu)
	if gap := p.length - p.first; p.first > 0 && gap > p.length/10 {
		s.notes = append(s.notes, fmt.Sprintf("its first thread was done after %v, its last after %v: rates are of all "+
			"the time, in which not all threads worked", p.first, p.length.Round(10*time.Microsecond)))
	}
	s.unseen = []string{"the device underneath: its counters are in no such file"}
	if !slices.ContainsFunc(rep.Ops, func(c workload.Counters) bool { return c.Hist != nil }) {
		s.unseen = append(s.unseen, "percentiles of latency but those that elbencho states; its JSON with --lathisto has "+
			"a histogram")
	}
	s.reports = []workload.Report{rep}
	return s, true
}

func mapKeys(m map[string]float64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func byNumber(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return strings.Compare(a, b)
}

// elbenchoBook makes stretches of phases.
type elbenchoBook struct {
	book  book
	empty []string // phases that count nothing
}

func (b *elbenchoBook) add(p *elbenchoPhase) error {
	if p == nil {
		return nil
	}
	s, ok := p.stretch()
	switch {
	case ok && len(b.book.stretches) >= mostStretches:
		return fmt.Errorf("more than %d phases: split the file", mostStretches)
	case ok:
		b.book.stretches = append(b.book.stretches, s)
	case !slices.Contains(b.empty, oneLine(p.name)) && len(b.empty) < 20:
		b.empty = append(b.empty, oneLine(p.name))
	}
	return nil
}

func (b *elbenchoBook) done(err error) (*book, error) {
	if len(b.empty) > 0 {
		b.book.notes = append(b.book.notes, "phases that count no operations are left out: "+
			strings.Join(b.empty, ", "))
	}
	if b.book.tool == "" {
		b.book.tool = "elbencho"
	}
	return &b.book, err
}

// isoDate reads a time as elbencho writes it, and says whether it has a zone and parts of a second: since it has those,
// it is the begin of the phase, and was the end before.
func isoDate(text string) (at time.Time, zoned, begin bool) {
	for _, layout := range []string{"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true, strings.Contains(text, ".")
		}
	}
	if t, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
		return t, false, strings.Contains(text, ".")
	}
	return time.Time{}, false, false
}

const elbenchoLocal = "its times have no time zone and are read as UTC"

func (b *book) note(text string) {
	if !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}

// readElbenchoCSV reads a row per phase.
func readElbenchoCSV(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	rows := newCSVRows(r)
	var at map[string]int
	for {
		cells, n, err := rows.next()
		if errors.Is(err, io.EOF) {
			return b.done(nil)
		}
		if err != nil {
			return b.done(err)
		}
		cells[0] = strings.TrimPrefix(cells[0], "\ufeff")
		if slices.Contains(cells, "operation") && slices.Contains(cells, "time ms [last]") {
			at = map[string]int{}
			for i, name := range cells {
				at[name] = i
			}
			continue
		}
		if at == nil {
			b.book.skip(n, "no line of names above it")
			continue
		}
		if len(cells) < len(at) {
			b.book.failure = fmt.Sprintf("line %d has %d columns below a line of %d names: the file is cut short", n, len(cells),
				len(at))
			b.book.skip(n, "%d columns below a line of %d names", len(cells), len(at))
			continue
		}
		bad := ""
		num := func(name string) float64 {
			i, ok := at[name]
			if !ok || i >= len(cells) || strings.TrimSpace(cells[i]) == "" {
				return math.NaN()
			}
			v, err := quantity(strings.TrimSpace(cells[i]))
			if err != nil {
				bad = fmt.Sprintf("%v, in the column %q", err, name)
			}
			return v
		}
		text := func(name string) string {
			if i, ok := at[name]; ok && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		p := newElbenchoPhase()
		p.name, p.label = text("operation"), text("label")
		ms := num("time ms [last]")
		p.length, p.first = milliseconds(ms), milliseconds(num("time ms [first]"))
		p.cpu, p.errors = num("CPU% [last]"), orZero(num("errors total"))
		if hosts, threads := num("hosts"), num("threads"); positive(hosts) && positive(threads) {
			p.concurrency = hosts * threads * max(1, orZero(num("IO depth")))
		}
		for _, name := range elbenchoAsked {
			p.facts = append(p.facts, asked(name, text(name)))
		}
		p.main = elbenchoColumns(num, "", ms)
		p.read = elbenchoColumns(num, "rwmix read ", ms)
		t, zoned, begin := isoDate(text("ISO date"))
		if !t.IsZero() && !zoned {
			b.book.note(elbenchoLocal)
		}
		if begin {
			p.start = t
		} else {
			p.end = t
		}
		if v := text("version"); v != "" && b.book.tool == "" {
			b.book.tool = "elbencho " + oneLine(v)
		}
		if bad != "" || p.name == "" {
			b.book.skip(n, "%s", cmp.Or(bad, "no operation is named"))
			continue
		}
		if err := b.add(p); err != nil {
			return b.done(err)
		}
	}
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func milliseconds(v float64) time.Duration {
	return time.Duration(min(orZero(v), 1e12) * float64(time.Millisecond))
}

// elbenchoColumns is one direction of a row. I/Os are counted since a late version; before, their rate times the time
// tells.
func elbenchoColumns(num func(string) float64, of string, ms float64) elbenchoSide {
	s := elbenchoSide{ios: num(of + "IOs [last]"), bytes: num(of+"MiB [last]") * (1 << 20),
		entries: num(of + "entries [last]"), firstRate: num(of + "IOPS [first]"),
		entryRate: num(of + "entries/s [last]")}
	if !positive(s.ios) {
		s.ios = num(of+"IOPS [last]") * ms / 1e3
	}
	if !positive(s.firstRate) && !positive(s.ios) {
		s.firstRate = num(of + "entries/s [first]")
	}
	times := func(what string) elbenchoLatency {
		return elbenchoLatency{min: num(of + what + " lat us [min]"), avg: num(of + what + " lat us [avg]"),
			max: num(of + what + " lat us [max]")}
	}
	s.io, s.entry = times("IO"), times("Ent")
	return s
}

// csvRows reads a CSV line by line: elbencho does not escape the quotes of its command, which stands in the last column
// and would go on over the lines that follow.
type csvRows struct {
	lines *bufio.Scanner
	line  int
}

func newCSVRows(r io.Reader) *csvRows {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	return &csvRows{lines: lines}
}

// next are the cells of the next line that is not empty; the error is io.EOF after the last.
func (c *csvRows) next() (cells []string, line int, err error) {
	for c.lines.Scan() {
		if c.line++; len(bytes.TrimSpace(c.lines.Bytes())) == 0 {
			continue
		}
		row := csv.NewReader(bytes.NewReader(c.lines.Bytes()))
		row.FieldsPerRecord, row.LazyQuotes = -1, true
		cells, err := row.Read()
		if err != nil {
			return nil, c.line, fmt.Errorf("line %d: %w", c.line, err)
		}
		return cells, c.line, nil
	}
	if err := c.lines.Err(); err != nil {
		return nil, c.line, fmt.Errorf("after line %d: %w", c.line, err)
	}
	return nil, c.line, io.EOF
}
