package importer

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
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
	jmeterCSV  = "jmeter"
	jmeterXML  = "jmeter-xml"
	heyCSV     = "hey-csv"
	vegetaCSV  = "vegeta-csv"
	vegetaRows = "vegeta-rows"
)

var (
	jmeterAny     = lazyregexp.New(`^"?timeStamp"?[,;\t|]"?elapsed"?[,;\t|][^\n]*\bsuccess\b`)
	heyCSVAny     = lazyregexp.New(`^response-time,DNS\+dialup,[^\n]*,offset\b`)
	vegetaCSVAny  = lazyregexp.New(`^\d{18,19},\d{1,3},\d+,\d+,\d+,`)
	vegetaRowsAny = lazyregexp.New(`^\s*\{"attack":"[^"\n]*","seq":\d+,"code":\d+,"timestamp":"`)
	jmeterXMLAny  = lazyregexp.New(`<testResults version=`)
	jmeterParent  = lazyregexp.New(`Number of samples in transaction : (\d+)`)
)

func requestLogReaders() []reader {
	return []reader{
		{name: jmeterCSV, holds: "JMeter's samples (JTL) as CSV, with its line of names", book: true,
			recognise: jmeterAny.Match},
		{name: jmeterXML, holds: "JMeter's samples (JTL) as XML", book: true, recognise: jmeterXMLAny.Match},
		{name: heyCSV, holds: "hey's requests (-o csv)", book: true, recognise: heyCSVAny.Match},
		{name: vegetaCSV, holds: "vegeta's requests (encode -to csv)", book: true, recognise: vegetaCSVAny.Match},
		{name: vegetaRows, holds: "vegeta's requests (encode -to json)", book: true, recognise: vegetaRowsAny.Match},
	}
}

// mostSeconds bounds the reports that are made of a log of requests: those of a longer one are further apart.
const mostSeconds = 3600

// requestLog is a test of which each request is told: when it began and how long it took, in nanoseconds.
type requestLog struct {
	tool    string
	clock   bool // its times are of a clock, and else since its begin
	rows    uint64
	from    int64
	to      int64
	width   int64 // of a part of it
	parts   map[int64]*requestPart
	threads map[float64]uint64 // how many requests said so
	labels  map[string]bool
	parents uint64 // rows that are of others together
	alone   uint64 // rows that are of others which have none of their own
	last    map[string]int64
	seen    map[uint64]uint64
	bytes   bool
	notes   []string
	unseen  []string
}

// requestPart counts what ended within a part of a test.
type requestPart struct {
	workload.Counters
	failed uint64
}

func newRequestLog(tool string, clock bool) *requestLog {
	return &requestLog{tool: tool, clock: clock, width: int64(time.Second), parts: map[int64]*requestPart{},
		threads: map[float64]uint64{}, labels: map[string]bool{}, seen: map[uint64]uint64{}, from: math.MaxInt64,
		last: map[string]int64{}}
}

// again reports whether the number of a request was there before: it is of a further test.
func (l *requestLog) again(number uint64) bool {
	bit := uint64(1) << (number % 64)
	was := l.seen[number/64]&bit != 0
	l.seen[number/64] |= bit
	return was
}

// request counts a request, in the part in which it ended.
func (l *requestLog) request(began, took int64, well bool, size float64) {
	l.rows++
	l.from, l.to = min(l.from, began), max(l.to, began+took)
	if len(l.parts) >= mostSeconds {
		l.widen()
	}
	at := (began + took) / l.width
	p := l.parts[at]
	if p == nil {
		p = &requestPart{}
		l.parts[at] = p
	}
	if !well {
		p.failed++
		return
	}
	if p.Hist == nil {
		p.Hist = &hist.Histogram{}
	}
	p.Hist.Add(uint64(max(took, 1)), 1)
	p.Ops++
	p.Seconds += float64(took) / 1e9
	p.Bytes += whole(size)
	l.bytes = l.bytes || size > 0
}

// widen puts every two parts together.
func (l *requestLog) widen() {
	wider := map[int64]*requestPart{}
	for at, p := range l.parts {
		if w := wider[at/2]; w != nil {
			w.Counters.Add(p.Counters)
			w.failed += p.failed
		} else {
			wider[at/2] = p
		}
	}
	l.parts, l.width = wider, 2*l.width
}

// add puts a test into a book: its requests by the time at which they ended.
func (l *requestLog) add(b *book) {
	if l == nil || l.rows == 0 {
		return
	}
	t := newTally(l.tool, 0)
	zero := int64(0)
	if l.clock {
		zero = l.from
		t.start = time.Unix(0, zero).UTC()
	}
	t.length = time.Duration(l.to - zero)
	t.notes, t.unseen = l.notes, append(l.unseen, serverUnseen)
	t.notes = append(t.notes, "each request counts when it ended; times and bytes are of those that did not fail")
	t.concurrency = l.atOnce(t)
	if len(l.labels) > 0 && len(l.labels) < mostKinds {
		t.asked("requests", strings.Join(slices.Sorted(maps.Keys(l.labels)), "; "))
	}
	if l.parents > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%d rows of transaction controllers are left out: their requests are "+
			"rows of their own", l.parents))
	}
	if l.alone > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%d of its requests are transactions (Generate parent sample), which may be of "+
			"several requests each: those have no rows", l.alone))
	}
	t.operations = []result.Operation{{Name: "request", Noun: "requests", Bytes: l.bytes}}
	var sum workload.Counters
	failed := uint64(0)
	parts := slices.Sorted(maps.Keys(l.parts))
	for i, at := range parts {
		sum.Add(l.parts[at].Counters)
		failed += l.parts[at].failed
		r := workload.Report{Elapsed: time.Duration((at+1)*l.width - zero), Errors: failed, Final: i == len(parts)-1}
		if r.Final {
			r.Elapsed = t.length
		}
		if l.clock {
			r.Time = t.start.Add(r.Elapsed)
		}
		r.Ops = workload.Counts{sum}
		if sum.Hist != nil {
			r.Ops[0].Hist = sum.Hist.Clone()
		}
		t.reports = append(t.reports, r)
	}
	if n := len(b.stretches); n > 0 && l.clock {
		before := b.stretches[n-1]
		t.beside = !before.start.IsZero() && t.start.Before(before.start.Add(before.length))
	}
	b.stretches = append(b.stretches, t.stretch)
}

// steadily is the number that the greater part of so many rows says; 0 where none does.
func steadily(said map[float64]uint64, rows uint64) float64 {
	for n, times := range said {
		if 5*times >= 4*rows {
			return n
		}
	}
	return 0
}

// atOnce is how many were at work at once, if the greater part of the requests says the same; 0 otherwise.
func (l *requestLog) atOnce(t *tally) float64 {
	if n := steadily(l.threads, l.rows); n > 0 {
		return n
	}
	if len(l.threads) > 0 {
		all := slices.Sorted(maps.Keys(l.threads))
		t.notes = append(t.notes, fmt.Sprintf("its threads vary from %g to %g: no one number was at work", all[0],
			all[len(all)-1]))
	}
	return 0
}

// eachRow calls f with the cells of every row of a CSV; a cell within quotes may go over lines.
func eachRow(r io.Reader, by func(first string) rune, f func(n int, cells []string) error) error {
	var open []byte
	comma := rune(0)
	err := eachLine(r, func(n int, line []byte) error {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if open != nil {
			line = append(append(open, '\n'), line...)
			open = nil
		}
		if len(line) == 0 {
			return nil
		}
		if comma == 0 {
			comma = by(string(line))
		}
		if !bytes.Contains(line, []byte(`"`)) {
			return f(n, strings.Split(string(line), string(comma)))
		}
		if bytes.Count(line, []byte(`"`))%2 == 1 {
			if len(line) > longestLine {
				return errors.New("a quotation has no end: the file is cut short or damaged")
			}
			open = bytes.Clone(line)
			return nil
		}
		in := csv.NewReader(bytes.NewReader(line))
		in.Comma, in.LazyQuotes, in.FieldsPerRecord = comma, true, -1
		cells, err := in.Read()
		if err != nil {
			return err
		}
		return f(n, cells)
	})
	if err == nil && open != nil {
		err = errors.New("a quotation has no end: the file is cut short")
	}
	return err
}

const tornRow = "line %d has other columns than the names say: the file is cut short or damaged"

func byComma(string) rune { return ',' }

// named are the cells of a row by the names of their columns.
func named(columns, cells []string) map[string]string {
	out := make(map[string]string, len(cells))
	for i, name := range columns {
		out[name] = cells[i]
	}
	return out
}

// jmeterTimes are how JMeter writes when a sample began, unless it is in milliseconds.
var jmeterTimes = []string{"2006/01/02 15:04:05.000", "2006-01-02 15:04:05.000", "2006/01/02 15:04:05",
	"2006-01-02 15:04:05", "2006-01-02T15:04:05.000Z07:00"}

// readJMeter reads samples, one test after another; each begins with a line of names.
func readJMeter(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "JMeter"}
	var columns []string
	var l *requestLog
	torn := 0 // the last line that has other than its columns
	end := func() {
		if l.add(b); torn > 0 && l != nil {
			b.broke(0, fmt.Sprintf(tornRow, torn))
		}
		l, torn = nil, 0
	}
	err := eachRow(r, func(first string) rune {
		_, rest, _ := strings.Cut(strings.ReplaceAll(first, `"`, ""), "timeStamp")
		return rune((rest + ",")[0])
	}, func(n int, cells []string) error {
		if cells[0] == "timeStamp" {
			end()
			columns, l = cells, newRequestLog("JMeter", true)
			for _, need := range []string{"elapsed", "success"} {
				if !slices.Contains(columns, need) {
					return fmt.Errorf("it has no column %q: have JMeter save it (jmeter.save.saveservice)", need)
				}
			}
			return b.tooMany("tests")
		}
		if l == nil {
			return nil
		}
		if len(cells) != len(columns) {
			torn = n
			b.skip(n, "it has %d columns, and %d names stand above", len(cells), len(columns))
			return nil
		}
		l.jmeter(named(columns, cells), n, b)
		return nil
	})
	end()
	return b, err
}

// jmeter takes a sample by JMeter's names of its columns. That of a transaction controller is of requests which have
// samples of their own, by the same thread since it began, or which have none.
func (l *requestLog) jmeter(row map[string]string, n int, b *book) {
	at, err := jmeterTime(row["timeStamp"], b)
	took, err2 := quantity(row["elapsed"])
	if err = cmp.Or(err, err2); err != nil {
		b.skip(n, "%s", err)
		return
	}
	thread := row["threadName"]
	if m := jmeterParent.FindStringSubmatch(row["responseMessage"]); m != nil {
		if last, ok := l.last[thread]; m[1] == "0" || ok && last >= at {
			l.parents++
			return
		}
		l.alone++
	} else if _, ok := l.last[thread]; ok || len(l.last) < mostRows {
		l.last[thread] = at
	}
	if threads, err := quantity(row["allThreads"]); err == nil && threads > 0 {
		l.threads[threads]++
	}
	if label := oneLine(row["label"]); label != "" && len(l.labels) < mostKinds {
		l.labels[label] = true
	}
	l.request(at, int64(took*1e6), strings.EqualFold(row["success"], "true"), decimal(row["bytes"], ""))
}

// jmeterNames are the columns of JMeter's CSV by the attributes of its XML.
var jmeterNames = map[string]string{"ts": "timeStamp", "t": "elapsed", "lb": "label", "rm": "responseMessage",
	"tn": "threadName", "s": "success", "by": "bytes", "na": "allThreads"}

// readJMeterXML reads samples, one test after another. Samples within one are its redirects and what its page holds,
// which are in its time, but within a transaction's they are its requests.
func readJMeterXML(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "JMeter"}
	type sample struct {
		row    map[string]string
		line   int
		parent bool // of a transaction
		inner  bool // within a request
	}
	var l *requestLog
	var open []sample
	cut := func(why string) {
		if open = nil; l != nil {
			l.add(b)
			b.broke(0, why)
		}
		l = nil
	}
	in := xml.NewDecoder(r)
	in.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is made UTF-8 before
	for {
		token, err := in.Token()
		line, _ := in.InputPos()
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			cut(fmt.Sprintf("its XML ends early, or is damaged, at line %d: what JMeter did after that is not in it", line))
			return b, nil
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "testResults":
				cut("its XML ends before </testResults>: the test, or the file, is cut short")
				if l = newRequestLog("JMeter", true); len(b.stretches) > mostStretches {
					return b, b.tooMany("tests")
				}
			case "httpSample", "sample":
				if l == nil || len(open) >= mostColumns {
					continue
				}
				one := sample{row: map[string]string{}, line: line}
				for _, a := range e.Attr {
					if name := jmeterNames[a.Name.Local]; name != "" {
						one.row[name] = a.Value
					}
				}
				one.parent = jmeterParent.MatchString(one.row["responseMessage"])
				if n := len(open); n > 0 {
					one.inner = open[n-1].inner || !open[n-1].parent
				}
				open = append(open, one)
			}
		case xml.EndElement:
			switch n := len(open); {
			case e.Name.Local == "testResults" && l != nil:
				l.add(b)
				l = nil
			case (e.Name.Local == "httpSample" || e.Name.Local == "sample") && n > 0 && l != nil:
				if one := open[n-1]; !one.inner {
					l.jmeter(one.row, one.line, b)
				}
				open = open[:n-1]
			}
		}
	}
}

func jmeterTime(text string, b *book) (int64, error) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		if v < 1e11 || v > 1e13 {
			return 0, fmt.Errorf("%.40q is no time in milliseconds", text)
		}
		return v * 1e6, nil
	}
	for _, layout := range jmeterTimes {
		if at, err := time.Parse(layout, text); err == nil {
			if !strings.HasSuffix(layout, "07:00") {
				b.note(noZone)
			}
			return at.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%.40q is no time", text)
}

// readHeyCSV reads requests of hey. Those without an answer it leaves out.
func readHeyCSV(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "hey"}
	var columns []string
	var l *requestLog
	torn := 0
	end := func() {
		if l != nil && l.rows >= mostOfHey {
			l.notes = append(l.notes, "hey keeps its first million requests: what came after is not in it")
		}
		switch {
		case l != nil && l.rows == 0 && torn == 0:
			b.lost = cmp.Or(b.lost, "it holds no request that was answered, or is cut short")
		case torn > 0:
			l.add(b)
			b.broke(0, fmt.Sprintf(tornRow, torn))
		default:
			l.add(b)
		}
		l, torn = nil, 0
	}
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if cells[0] == "response-time" {
			end()
			columns, l = cells, newRequestLog("hey", false)
			l.unseen = []string{"requests without an answer: hey leaves them out"}
			if !slices.Contains(columns, "offset") {
				return errors.New(`it has no column "offset", without which nothing says when a request was made`)
			}
			return b.tooMany("tests")
		}
		if l == nil {
			return nil
		}
		if len(cells) != len(columns) {
			torn = n
			return nil
		}
		row := named(columns, cells)
		took, err := quantity(row["response-time"])
		began, err2 := quantity(row["offset"])
		code, err3 := quantity(row["status-code"])
		if err = cmp.Or(err, err2, err3); err != nil {
			b.skip(n, "%s", err)
			return nil
		}
		l.request(int64(began*1e9), int64(took*1e9), code >= 100 && code < 400, 0)
		return nil
	})
	end()
	return b, err
}

// vegetaTests puts requests of vegeta into tests: by the name of the attack, and by their numbers, which begin anew.
type vegetaTests struct {
	*book
	open map[string]*requestLog
	all  []*requestLog
}

func newVegetaTests() *vegetaTests {
	return &vegetaTests{book: &book{tool: "vegeta"}, open: map[string]*requestLog{}}
}

func (v *vegetaTests) request(attack string, number uint64, at, took int64, code, size float64, why string) error {
	l := v.open[attack]
	if l == nil || l.again(number) {
		if len(v.all) >= mostStretches {
			return fmt.Errorf("more than %d attacks: split the file", mostStretches)
		}
		l = newRequestLog(strings.TrimSpace("vegeta "+oneLine(attack)), true)
		l.again(number)
		v.open[attack], v.all = l, append(v.all, l)
	}
	l.request(at, took, why == "" && code >= 100 && code < 400, size)
	return nil
}

func (v *vegetaTests) end(torn int) *book {
	for _, l := range v.all {
		l.add(v.book)
	}
	if torn > 0 {
		v.broke(0, fmt.Sprintf("line %d is no request: the file is cut short or damaged", torn))
	}
	return v.book
}

// readVegetaCSV reads requests of vegeta: time, code, latency, bytes out and in, error, body, attack, number and more.
func readVegetaCSV(_ format, r io.Reader) (*book, error) {
	v, torn := newVegetaTests(), 0
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if len(cells) < 9 {
			torn = n
			v.skip(n, "it has %d columns, and not the 9 or more of vegeta", len(cells))
			return nil
		}
		at, err := strconv.ParseInt(cells[0], 10, 64)
		code, err2 := quantity(cells[1])
		took, err3 := strconv.ParseInt(cells[2], 10, 62)
		size, err4 := quantity(cells[4])
		number, err5 := strconv.ParseUint(cells[8], 10, 64)
		if err = cmp.Or(err, err2, err3, err4, err5); err != nil {
			v.skip(n, "%s", err)
			return nil
		}
		return v.request(cells[7], number, at, took, code, size, cells[5])
	})
	return v.end(torn), err
}

// readVegetaRows reads requests of vegeta, each an object of JSON on a line of its own.
func readVegetaRows(_ format, r io.Reader) (*book, error) {
	v, torn := newVegetaTests(), 0
	err := eachLine(r, func(n int, line []byte) error {
		var row struct {
			Attack    string
			Seq       uint64
			Code      float64
			Timestamp time.Time
			Latency   int64
			BytesIn   float64 `json:"bytes_in"`
			Error     string
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err := json.Unmarshal(line, &row); err != nil || row.Timestamp.IsZero() || row.Latency < 0 {
			torn = n
			v.skip(n, "it is no request of vegeta")
			return nil
		}
		return v.request(row.Attack, row.Seq, row.Timestamp.UnixNano(), row.Latency, row.Code, row.BytesIn, row.Error)
	})
	return v.end(torn), err
}
