package importer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/workload"
	"plimsoll/result"
)

const (
	elbencho     = "elbencho"
	elbenchoCSV  = "elbencho-csv"
	elbenchoJSON = "elbencho-json"
	elbenchoLive = "elbencho-live"
)

var (
	elbenchoAny     = regexp.MustCompile(`(?m)^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE`)
	elbenchoCSVAny  = regexp.MustCompile(`(?m)^(?:[^\n]*,)?operation,time ms \[first\],time ms \[last\],`)
	elbenchoJSONAny = regexp.MustCompile(`"phase_type"\s*:`)
	elbenchoLiveAny = regexp.MustCompile(`(?i)^\s*ISO Date,Label,Phase,RuntimeMS,Rank,`)
	elbenchoDate    = regexp.MustCompile(`^ISO DATE: (\S{10,40})`)
	elbenchoRow     = regexp.MustCompile(`^(\S*) +([A-Za-z][\w /%.+-]*?)\s*: +(\S+) +(\S+)\s*$`)
	elbenchoLat     = regexp.MustCompile(`^\s+(\S+)( wr| rd)? lat(?:ency)?(?: us)?\s*: \[ min=(\S+) avg=(\S+) max=(\S+) \]`)
	elbenchoPct     = regexp.MustCompile(`^\s+(\S+)( wr| rd)? lat % us\s*: \[ (.*) \]`)
	elbenchoOne     = regexp.MustCompile(`(\d{1,2}(?:\.\d{1,6})?)%<=([\d.]+)`)
	elbenchoRange   = regexp.MustCompile(`^(\d{1,12})(?:-(\d{1,12})|\+)us$`)
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
}

// elbenchoSide is one direction of a phase. What is not known is NaN.
type elbenchoSide struct {
	ios, bytes, entries, firstRate float64
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

// known is a value that is there and above 0.
func known(v float64) bool { return v > 0 }

func (s elbenchoSide) any() bool { return known(s.ios) || known(s.bytes) || known(s.entries) }

// isRead reports whether a phase's own side is reading.
func (p *elbenchoPhase) isRead() bool { return strings.HasPrefix(p.name, "READ") }

// stretch is what a phase measured; false when it counted nothing.
func (p *elbenchoPhase) stretch() (stretch, bool) {
	if p.length <= 0 || !p.main.any() && !p.read.any() {
		return stretch{}, false
	}
	s := stretch{workload: "elbencho " + strings.ToLower(oneLine(p.name)), concurrency: p.concurrency, length: p.length}
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
		blocks := known(side.ios) || known(side.bytes)
		op := result.Operation{Name: name, Noun: noun, Bytes: known(side.bytes), Block: block}
		n, l := side.ios, side.io
		if !blocks {
			op, n, l = result.Operation{Name: "entry", Noun: "entries"}, side.entries, side.entry
		} else if !known(n) {
			n = side.entries // of files of one block each no IOPS are printed
			s.notes = append(s.notes, "it prints no IOPS, as of files of one block each: I/Os are its files")
		}
		c := workload.Counters{Ops: whole(n)}
		if known(side.bytes) {
			c.Bytes = whole(side.bytes)
		}
		if known(l.avg) {
			c.Seconds = l.avg / 1e6 * n
		}
		if l.hist != nil && l.hist.Count() > 0 {
			c.Hist, c.Ops = l.hist, l.hist.Count()
			if known(l.avg) {
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
		if blocks && known(side.entries) {
			value(result.Measure{Name: op.Name + "_entries", Unit: "entries", Kind: result.Count}, side.entries)
		}
		value(result.Measure{Name: op.Name + "_until_first_done", Unit: op.RateUnit(), Better: result.Higher,
			Kind: result.Single}, side.firstRate)
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
			"the time, in which not all threads worked", p.first, p.length))
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
	rows := csv.NewReader(&boundedLines{r: r})
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	var at map[string]int
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return b.done(nil)
		}
		if err != nil {
			return b.done(err)
		}
		n, _ := rows.FieldPos(0)
		cells[0] = strings.TrimPrefix(cells[0], "\ufeff")
		if slices.Contains(cells, "operation") && slices.Contains(cells, "time ms [last]") {
			at = map[string]int{}
			for i, name := range cells {
				at[strings.Clone(name)] = i
			}
			continue
		}
		if at == nil {
			b.book.skip(n, "no line of names above it")
			continue
		}
		if len(cells) < at["time ms [last]"]+1 {
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
				return strings.Clone(cells[i])
			}
			return ""
		}
		p := newElbenchoPhase()
		p.name, p.label = text("operation"), text("label")
		ms := num("time ms [last]")
		p.length, p.first = milliseconds(ms), milliseconds(num("time ms [first]"))
		p.cpu, p.errors = num("CPU% [last]"), orZero(num("errors total"))
		if hosts, threads := num("hosts"), num("threads"); known(hosts) && known(threads) {
			p.concurrency = hosts * threads * max(1, orZero(num("IO depth")))
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
			b.book.skip(n, "%s", cmpOr(bad, "no operation is named"))
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
		entries: num(of + "entries [last]"), firstRate: num(of + "IOPS [first]")}
	if !known(s.ios) {
		s.ios = num(of+"IOPS [last]") * ms / 1e3
	}
	if !known(s.firstRate) && !known(s.ios) {
		s.firstRate = num(of + "entries/s [first]")
	}
	s.io = elbenchoLatency{min: num(of + "IO lat us [min]"), avg: num(of + "IO lat us [avg]"), max: num(of + "IO lat us [max]")}
	s.entry = elbenchoLatency{min: num(of + "Ent lat us [min]"), avg: num(of + "Ent lat us [avg]"),
		max: num(of + "Ent lat us [max]")}
	return s
}

// boundedLines ends reading at a line that is too long.
type boundedLines struct {
	r    io.Reader
	line int
}

// Read implements io.Reader.
func (b *boundedLines) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for _, c := range p[:n] {
		if b.line++; c == '\n' {
			b.line = 0
		}
		if b.line > longestLine {
			return 0, fmt.Errorf("a line of more than %d bytes", longestLine)
		}
	}
	return n, err
}

// elbenchoDone is a part of a phase in JSON.
type elbenchoDone struct {
	elbenchoCounts
	Milliseconds flexible `json:"elapsed_time_ms"`
	CPU          flexible `json:"cpu%"`
	Read         struct {
		elbenchoCounts
	} `json:"rwmix_read"`
	Latency struct {
		IO      elbenchoTimes `json:"IO"`
		Entries elbenchoTimes `json:"entries"`
	} `json:"latency"`
	Errors flexible `json:"errors_total"`
}

type elbenchoCounts struct {
	IOPS    flexible `json:"iops"`
	IOs     flexible `json:"ios"`
	Bytes   flexible `json:"bytes"`
	Entries flexible `json:"entries"`
	PerSec  flexible `json:"entries/s"`
}

type elbenchoTimes struct {
	elbenchoSpan
	Histogram struct {
		elbenchoBuckets
		Read elbenchoBuckets `json:"rwmix_read"`
	} `json:"histogram"`
	Read elbenchoSpan `json:"rwmix_read"`
}

type elbenchoSpan struct {
	Min flexible `json:"min_us"`
	Avg flexible `json:"avg_us"`
	Max flexible `json:"max_us"`
}

type elbenchoBuckets struct {
	Buckets []struct {
		Range string   `json:"range"`
		Count flexible `json:"count"`
	} `json:"buckets"`
}

// flexible is a number that may stand in quotes; what is none, or not there, is NaN.
type flexible struct {
	v     float64
	there bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *flexible) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if text == "" || text == "null" {
		return nil
	}
	v, err := quantity(text)
	if err != nil {
		return err
	}
	f.v, f.there = v, true
	return nil
}

func (f flexible) value() float64 {
	if !f.there {
		return math.NaN()
	}
	return f.v
}

func (c elbenchoCounts) side(ms float64, first elbenchoCounts) elbenchoSide {
	s := elbenchoSide{ios: c.IOs.value(), bytes: c.Bytes.value(), entries: c.Entries.value(), firstRate: first.IOPS.value()}
	if !known(s.ios) {
		s.ios = c.IOPS.value() * ms / 1e3
	}
	if !known(s.ios) && !known(s.firstRate) {
		s.firstRate = first.PerSec.value()
	}
	return s
}

func (s elbenchoSpan) latency(b elbenchoBuckets) (elbenchoLatency, error) {
	l := elbenchoLatency{min: s.Min.value(), avg: s.Avg.value(), max: s.Max.value()}
	for _, x := range b.Buckets {
		m := elbenchoRange.FindStringSubmatch(x.Range)
		if m == nil || !x.Count.there {
			return l, fmt.Errorf("a bucket %.40q of a histogram cannot be read", x.Range)
		}
		high := number(m[1])
		if m[2] != "" {
			high = number(m[2])
		}
		if l.hist == nil {
			l.hist = &hist.Histogram{}
		}
		if x.Count.v >= 1 {
			l.hist.Add(uint64(max(high*1e3, 1)), whole(x.Count.v))
		}
	}
	return l, nil
}

// readElbenchoJSON reads a value per phase.
func readElbenchoJSON(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	err := jsonValues(r, func(line int, v json.RawMessage) error {
		var doc struct {
			Phase  string       `json:"phase_type"`
			Label  string       `json:"label"`
			Start  string       `json:"iso_start_date"`
			First  elbenchoDone `json:"first_done"`
			Last   elbenchoDone `json:"last_done"`
			Config struct {
				Hosts   flexible `json:"hosts"`
				Threads flexible `json:"threads"`
				Depth   flexible `json:"io_depth"`
				Version string   `json:"version"`
			} `json:"config"`
		}
		if err := json.Unmarshal(v, &doc); err != nil {
			b.book.skip(line, "%v", err)
			return nil
		}
		if doc.Phase == "" {
			b.book.skip(line, "no phase is named")
			return nil
		}
		p := newElbenchoPhase()
		p.name, p.label = doc.Phase, doc.Label
		ms := doc.Last.Milliseconds.value()
		p.length, p.first = milliseconds(ms), milliseconds(doc.First.Milliseconds.value())
		p.cpu, p.errors = doc.Last.CPU.value(), orZero(doc.Last.Errors.value())
		p.main = doc.Last.side(ms, doc.First.elbenchoCounts)
		p.read = doc.Last.Read.side(ms, doc.First.Read.elbenchoCounts)
		var errs [4]error
		t := doc.Last.Latency
		p.main.io, errs[0] = t.IO.latency(t.IO.Histogram.elbenchoBuckets)
		p.main.entry, errs[1] = t.Entries.latency(t.Entries.Histogram.elbenchoBuckets)
		p.read.io, errs[2] = t.IO.Read.latency(t.IO.Histogram.Read)
		p.read.entry, errs[3] = t.Entries.Read.latency(t.Entries.Histogram.Read)
		if err := errors.Join(errs[:]...); err != nil {
			b.book.skip(line, "%v", err)
		}
		if known(doc.Config.Threads.value()) {
			p.concurrency = max(1, orZero(doc.Config.Hosts.value())) * doc.Config.Threads.v *
				max(1, orZero(doc.Config.Depth.value()))
		}
		if v := doc.Config.Version; v != "" && b.book.tool == "" {
			b.book.tool = "elbencho " + oneLine(v)
		}
		if at, zoned, _ := isoDate(doc.Start); !at.IsZero() {
			if p.start = at; !zoned {
				b.book.note(elbenchoLocal)
			}
		}
		return b.add(p)
	})
	return b.done(err)
}

// elbenchoElapsed reads a time as the table has it: in milliseconds, or like 1m39.973s.
func elbenchoElapsed(what, text string) (time.Duration, error) {
	if strings.HasSuffix(what, " ms") {
		v, err := quantity(text)
		return milliseconds(v), err
	}
	d, err := time.ParseDuration(strings.ReplaceAll(text, ":", ""))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.40q is no time", text)
	}
	return d, nil
}

// elbenchoMicroseconds reads a latency, which newer versions print with a unit.
func elbenchoMicroseconds(text string) float64 {
	if v, err := quantity(text); err == nil {
		return v
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return float64(d) / float64(time.Microsecond)
	}
	return math.NaN()
}

// readElbenchoText reads tables of results.
func readElbenchoText(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	var p *elbenchoPhase
	var start time.Time
	var rates, readRates float64
	finish := func() error {
		if p != nil {
			seconds := p.length.Seconds()
			if !known(p.main.ios) {
				p.main.ios = rates * seconds
			}
			if !known(p.read.ios) {
				p.read.ios = readRates * seconds
			}
		}
		err := b.add(p)
		p, rates, readRates = nil, math.NaN(), math.NaN()
		return err
	}
	err := eachLine(r, func(n int, raw []byte) error {
		text := strings.TrimRight(string(bytes.ToValidUTF8(raw, []byte("?"))), " \t\r")
		if m := elbenchoDate.FindStringSubmatch(text); m != nil {
			if at, zoned, _ := isoDate(m[1]); !at.IsZero() {
				if start = at; !zoned {
					b.book.note(elbenchoLocal)
				}
			}
			return nil
		}
		if strings.HasPrefix(text, "OPERATION ") || strings.HasPrefix(text, "---") {
			return finish()
		}
		if m := elbenchoLat.FindStringSubmatch(text); m != nil && p != nil {
			l := p.latency(m[1], m[2])
			l.min, l.avg, l.max = elbenchoMicroseconds(m[3]), elbenchoMicroseconds(m[4]), elbenchoMicroseconds(m[5])
			return nil
		}
		if m := elbenchoPct.FindStringSubmatch(text); m != nil && p != nil {
			l := p.latency(m[1], m[2])
			for _, q := range elbenchoOne.FindAllStringSubmatch(m[3], 12) {
				if l.stated == nil {
					l.stated = map[string]float64{}
				}
				l.stated[q[1]] = number(q[2])
			}
			return nil
		}
		m := elbenchoRow.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		what := m[2]
		if strings.HasPrefix(what, "Elapsed") && m[1] != "" {
			if err := finish(); err != nil {
				return err
			}
			p = newElbenchoPhase()
			p.name, p.start = m[1], start
			start = time.Time{}
			first, err := elbenchoElapsed(what, m[3])
			last, err2 := elbenchoElapsed(what, m[4])
			if err := errors.Join(err, err2); err != nil {
				b.book.skip(n, "%v", err)
				p = nil
				return nil
			}
			p.first, p.length = first, last
			return nil
		}
		if p == nil || m[1] != "" {
			return nil
		}
		first, err := quantity(m[3])
		last, err2 := quantity(m[4])
		if err := errors.Join(err, err2); err != nil {
			if !strings.HasSuffix(what, "each") {
				b.book.skip(n, "%v, in %q", err, what)
			}
			return nil
		}
		switch what {
		case "IOPS", "IOPS write":
			rates, p.main.firstRate = last, first
		case "IOPS read":
			readRates, p.read.firstRate = last, first
		case "IOs total", "IOs write":
			p.main.ios = last
		case "IOs read":
			p.read.ios = last
		case "Total MiB", "MiB write":
			p.main.bytes = last * (1 << 20)
		case "MiB read":
			p.read.bytes = last * (1 << 20)
		case "Files total", "Dirs total", "Objects total", "Buckets total", "Files write", "Objects write", "Entries total":
			if !known(p.main.entries) {
				p.main.entries = last
			}
		case "Files read", "Objects read":
			p.read.entries = last
		case "CPU util %":
			p.cpu = last
		}
		return nil
	})
	return b.done(errors.Join(err, finish()))
}

// latency is where the table's times of I/Os or of entries go.
func (p *elbenchoPhase) latency(what, side string) *elbenchoLatency {
	s := &p.main
	if strings.TrimSpace(side) == "rd" {
		s = &p.read
	}
	if what == "IO" {
		return &s.io
	}
	return &s.entry
}

// readElbenchoLive reads live statistics: a row for each moment and each thread, of which those of all threads count.
func readElbenchoLive(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	b.book.tool = "elbencho"
	live := &elbenchoCourse{}
	rows := csv.NewReader(&boundedLines{r: r})
	rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = -1, true, true
	var at map[string]int
	for n := 0; ; {
		cells, err := rows.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			live.finish(&b.book)
			return b.done(err)
		}
		line, _ := rows.FieldPos(0)
		if at == nil {
			at = map[string]int{}
			for i, name := range cells {
				at[strings.ToLower(strings.TrimPrefix(name, "\ufeff"))] = i
			}
			continue
		}
		cell := func(name string) string {
			if i, ok := at[name]; ok && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		if cell("rank") != "Total" {
			continue
		}
		if n++; n > mostRows {
			live.finish(&b.book)
			return b.done(fmt.Errorf("more than %d rows of all threads: split the file", mostRows))
		}
		ms, err := quantity(cell("runtimems"))
		if err != nil || cell("phase") == "" {
			b.book.skip(line, "no phase, or no time since its start: %.40q %.40q", cell("phase"), cell("runtimems"))
			continue
		}
		row := elbenchoMoment{phase: oneLine(cell("phase")), label: oneLine(cell("label")),
			mix: strings.ToLower(cell("mixtype")), at: milliseconds(ms)}
		var errs [5]error
		get := func(i int, name string) (v float64) {
			if v, errs[i] = quantity(cell(name)); errs[i] != nil && cell(name) == "" {
				errs[i] = nil
			}
			return v
		}
		row.bytes, row.rate = get(0, "donebytes"), get(1, "iops")
		row.entries, row.us, row.active = get(2, "entries"), get(3, "lat io us"), get(4, "active")
		if err := errors.Join(errs[:]...); err != nil {
			b.book.skip(line, "%v", err)
			continue
		}
		if t, zoned, _ := isoDate(cell("iso date")); !t.IsZero() {
			if row.clock = t; !zoned {
				b.book.note(elbenchoLocal)
			}
		}
		if err := live.take(&b.book, row); err != nil {
			return b.done(err)
		}
	}
}

// elbenchoMoment is a row of all threads.
type elbenchoMoment struct {
	phase, label, mix                string
	at                               time.Duration
	clock                            time.Time
	bytes, rate, entries, us, active float64
}

// elbenchoCourse makes stretches of moments.
type elbenchoCourse struct {
	rows []elbenchoMoment
}

func (c *elbenchoCourse) take(b *book, m elbenchoMoment) error {
	if n := len(c.rows); n > 0 {
		last := c.rows[n-1]
		if last.phase != m.phase || last.label != m.label || m.at < last.at {
			if c.finish(b); len(b.stretches) >= mostStretches {
				return fmt.Errorf("more than %d phases: split the file", mostStretches)
			}
		}
	}
	c.rows = append(c.rows, m)
	return nil
}

// finish makes a stretch of the phase so far. With reads beside writes, each moment has a row of both.
func (c *elbenchoCourse) finish(b *book) {
	rows := c.rows
	c.rows = nil
	if len(rows) == 0 || rows[len(rows)-1].at <= 0 {
		return
	}
	s := stretch{workload: strings.TrimSpace("elbencho " + strings.ToLower(rows[0].phase) + " " + rows[0].label)}
	mixed := slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.mix == "write" }) &&
		slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.mix == "read" })
	blocks := slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.rate > 0 || r.bytes > 0 })
	ops := result.BlockOperations()
	switch reads := strings.HasPrefix(rows[0].phase, "READ") || rows[0].mix == "read"; {
	case mixed:
		s.operations = ops[:2]
	case !blocks:
		s.operations = []result.Operation{{Name: "entry", Noun: "entries"}}
	case reads:
		s.operations = ops[:1]
	default:
		s.operations = ops[1:2]
	}
	counts := make(workload.Counts, len(s.operations))
	n := make([]float64, len(counts))
	seconds := make([]float64, len(counts))
	before := make([]time.Duration, len(counts))
	for i, r := range rows {
		k := 0
		if mixed && r.mix == "write" {
			k = 1
		} else if mixed && r.mix != "read" {
			continue // the sum of both
		}
		if r.at < before[k] {
			continue
		}
		if blocks {
			did := r.rate * (r.at - before[k]).Seconds()
			n[k] += did
			seconds[k] += did * r.us / 1e6
		} else {
			n[k] = max(n[k], r.entries)
		}
		before[k] = r.at
		counts[k] = workload.Counters{Ops: whole(n[k]), Bytes: max(counts[k].Bytes, whole(r.bytes)), Seconds: seconds[k]}
		if !s.operations[k].Bytes {
			counts[k].Bytes = 0
		}
		s.concurrency = max(s.concurrency, r.active)
		if i+1 < len(rows) && rows[i+1].at == r.at {
			continue
		}
		s.reports = append(s.reports, workload.Report{Elapsed: r.at, Ops: slices.Clone(counts)})
	}
	last := rows[len(rows)-1]
	if len(s.reports) == 0 || counts.Total() == 0 {
		return
	}
	s.reports[len(s.reports)-1].Final = true
	if s.length = last.at; !last.clock.IsZero() {
		s.start = last.clock.Add(-last.at)
	}
	s.notes = []string{"operations are the rates of the moments times the time between them"}
	s.unseen = []string{"percentiles of latency: live statistics have means",
		"what was done after the last moment: the results (--csvfile, --jsonfile) have all of it",
		"the device underneath: its counters are in no such file"}
	b.stretches = append(b.stretches, s)
}
