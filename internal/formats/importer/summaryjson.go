package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
)

const (
	iorJSON      = "ior-json"
	iorCSV       = "ior-csv"
	radosJSON    = "rados-bench-json"
	benchBase    = "benchbase"
	benchBaseRaw = "benchbase-raw"
)

var (
	iorJSONAny   = lazyregexp.New(`"bwMiB"\s*:`)
	iorCSVAny    = lazyregexp.New(`(?m)^access[,;]bw\(MiB/s\)[,;]`)
	radosJSONAny = lazyregexp.New(`"total_(?:writes|reads)_made"\s*:|"concurrent_ios"\s*:|` +
		`"datas"\s*:\s*\[\s*\{\s*"sec"\s*:`)
	benchBaseAny = lazyregexp.New(`"(?:Goodput \(requests/second\)|Measured Requests)"\s*:`)
	benchBaseRow = lazyregexp.New(`^Transaction Type Index,Transaction Name,Start Time \(microseconds\),Latency`)
	benchBasePct = lazyregexp.New(`^(\d+)th Percentile Latency \(microseconds\)$`)
)

func summaryReaders() []reader {
	return []reader{{
		name: iorJSON, holds: "IOR's JSON (-O summaryFormat=JSON)", book: true, recognise: iorJSONAny.Match,
	}, {
		name: iorCSV, holds: "IOR's CSV (-O summaryFormat=CSV)", book: true, recognise: iorCSVAny.Match,
	}, {
		name: radosJSON, holds: "rados bench --format=json", book: true, recognise: radosJSONAny.Match,
	}, {
		name: benchBase, holds: "BenchBase's summary.json", book: true, recognise: benchBaseAny.Match,
	}, {
		name: benchBaseRaw, holds: "BenchBase's single requests (raw.csv)", book: true, recognise: benchBaseRow.Match,
	}}
}

// iorTest makes a stretch of a line of IOR's results, whose figures go by the names of its text.
func iorTest(access string, row figures, facts map[string]string) (stretch, bool) {
	seconds, bandwidth := row.or("total(s)"), row.or("bw(MiB/s)")
	if access != "write" && access != "read" || seconds == 0 || bandwidth == 0 {
		return stretch{}, false
	}
	bytes, op := bandwidth*(1<<20)*seconds, someReads
	if access == "write" {
		op = someWrites
	}
	ops, size := 0.0, ""
	if xfer := row.or("xfer(KiB)") * 1024; xfer > 0 {
		exact, whole := strings.CutSuffix(cmp.Or(facts["xfersize"], facts["transfersize"]), " bytes")
		if whole { // the column has two digits after the point
			xfer = cmp.Or(decimal(exact, ""), xfer)
		}
		// The time in the text has three digits: whole transfers, and IOR's rate, tell it better.
		ops, size = math.Round(bytes/xfer), fmt.Sprintf("%.0f bytes", xfer)
		if ops > 0 {
			bytes = ops * xfer
			seconds = bytes / (1 << 20) / bandwidth
		}
	}
	t := newTally("ior "+access, inSeconds(seconds))
	t.asked("transfer size", size)
	// IOR divides the time of a task by the transfers of one block, whether it did one block, several, or a part of it.
	mean := row.or("Latency(s)")
	if decimal(facts["segments"], "") > 1 || decimal(facts["stonewallingTime"], "") > 0 {
		mean = 0
		t.notes = append(t.notes, "its latency is that of tasks which do one whole block, and these did more or less: it is left out")
	}
	t.did(op, ops, bytes, mean)
	t.concurrency = decimal(cmp.Or(facts["tasks"], firstWord(facts["clients"])), "")
	t.asked("test", access)
	for _, name := range []string{"api", "access", "tasks", "nodes", "blocksize", "aggregate filesize"} {
		t.asked(name, facts[name])
	}
	t.notes = append(t.notes, "its rates are of all the time of a test, opening and closing of files included")
	return t.done(), true
}

// iorNames are what the text calls the members of a result in JSON.
var iorNames = map[string]string{"bwMiB": "bw(MiB/s)", "xferKiB": "xfer(KiB)", "latency": "Latency(s)",
	"totalTime": "total(s)"}

// readIORJSON reads the results of each test; where they stand in it differs between versions.
func readIORJSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "ior"}
	words := &wrongWords{r: r, re: iorWrong}
	err := jsonValues(words, func(_ int, v json.RawMessage) error {
		var doc struct {
			Version, Began, Finished string
			Tests                    []untyped.Object
		}
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		b.tool = "IOR-" + strings.TrimPrefix(cmp.Or(oneLine(doc.Version), "3"), "IOR-")
		from := len(b.stretches)
		began, dated := localDate(doc.Began)
		if dated {
			b.note(noZone)
		}
		for _, test := range doc.Tests {
			facts := map[string]string{}
			for name, v := range test.Object("Options") {
				switch v := v.(type) {
				case string:
					facts[name] = v
				case float64:
					facts[name] = strconv.FormatFloat(v, 'f', -1, 64)
				}
			}
			iorResults(test, func(access string, row figures) {
				if s, ok := iorTest(access, row, facts); ok && len(b.stretches) < mostStretches {
					if dated {
						s.start, dated = began, false
					}
					b.stretches = append(b.stretches, s)
				}
			})
		}
		if doc.Finished == "" {
			b.broke(from, "it does not say that IOR came to its end: the run, or the file, is cut short")
		}
		return nil
	})
	b.failure = cmp.Or(b.failure, words.said())
	return b, err
}

// wrongWords keeps what a tool says of its failure among its figures, or before them.
type wrongWords struct {
	r   io.Reader
	re  *lazyregexp.Regexp
	all bytes.Buffer
}

// Read implements io.Reader. What goes through is bounded by who reads it.
func (w *wrongWords) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.all.Write(p[:n])
	return n, err
}

// said are the first words of a failure, "" where there are none.
func (w *wrongWords) said() string {
	if m := w.re.FindSubmatch(w.all.Bytes()); m != nil {
		return oneLine(string(m[0]))
	}
	return ""
}

// iorResults finds the results in a test.
func iorResults(in any, take func(access string, row figures)) {
	if list, ok := in.([]any); ok {
		for _, one := range list {
			iorResults(one, take)
		}
	}
	of, ok := untyped.Of(in)
	if !ok {
		return
	}
	if access, ok := of["access"].(string); ok && of["bwMiB"] != nil {
		row := figures{}
		for key, name := range iorNames {
			if v, ok := of[key].(float64); ok && v >= 0 {
				row[name] = v
			}
		}
		take(access, row)
		return
	}
	for _, key := range []string{"Results", "Options"} {
		iorResults(of[key], take)
	}
}

// readIORCSV reads a row for each access of each repetition. Such a file has neither times nor what was asked.
func readIORCSV(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "ior"}
	var columns []string
	european := false // a spreadsheet saved it with semicolons, and may have written commas in numbers
	err := eachLine(r, func(n int, line []byte) error {
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		if strings.HasPrefix(text, "access;") {
			european = true
		}
		if european {
			text = strings.NewReplacer(",", ".", ";", ",").Replace(text)
		}
		cells := strings.Split(text, ",")
		switch {
		case iorWrong.Match(line):
			b.broke(0, oneLine(string(line)))
			return nil
		case cells[0] == "access":
			columns = cells
			for i, name := range columns {
				if name == "Latency" {
					columns[i] = "Latency(s)"
				}
			}
			return nil
		case columns == nil || cells[0] != "write" && cells[0] != "read":
			return nil
		case len(cells) != len(columns):
			b.failure = fmt.Sprintf("line %d has %d columns below a line of %d names: the file is cut short", n, len(cells),
				len(columns))
			return nil
		}
		row := figures{}
		for i, c := range cells {
			if v, err := quantity(c); err == nil {
				row[columns[i]] = v
			}
		}
		tasks := strconv.FormatFloat(row.or("numTasks"), 'f', -1, 64)
		s, ok := iorTest(cells[0], row, map[string]string{"tasks": tasks})
		if ok && len(b.stretches) < mostStretches {
			b.stretches = append(b.stretches, s)
		}
		return nil
	})
	return b, err
}

// radosText are the names of rados bench's figures in its text, by those of its JSON. All are texts there.
var radosNames = map[string]string{"total_time_run": "Total time run", "total_writes_made": "Total writes made",
	"total_reads_made": "Total reads made", "write_size": "Write size", "read_size": "Read size",
	"object_size": "Object size", "average_latency": "Average Latency", "max_latency": "Max latency",
	"min_latency": "Min latency"}

// readRadosJSON reads one bench after another, with its course.
func readRadosJSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "rados bench"}
	words := &wrongWords{r: r, re: radosWrong}
	err := jsonValues(words, func(_ int, v json.RawMessage) error {
		var doc untyped.Object
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		if inner := doc.Object("bench"); inner != nil {
			doc = inner
		}
		total := figures{}
		for key, name := range radosNames {
			if v, err := quantity(fmt.Sprint(doc[key])); err == nil {
				total[name] = v
			}
		}
		one := radosBench{total: total}
		one.concurrency = numberIn(doc, "concurrent_ios")
		for _, moment := range doc.Objects("datas") {
			at, err := quantity(fmt.Sprint(moment["sec"]))
			done, err2 := quantity(fmt.Sprint(moment["finished"]))
			if err == nil && err2 == nil {
				one.moment(inSeconds(at), whole(done))
			}
		}
		return one.end(b)
	})
	b.failure = cmp.Or(b.failure, words.said())
	return b, err
}

// radosBench is one bench on its way.
type radosBench struct {
	kind        string
	concurrency float64
	total       figures
	rows        []workload.Report
	wrong       string // what it says went wrong
}

// moment takes how much was done by a time.
func (o *radosBench) moment(at time.Duration, done uint64) {
	k := len(o.rows)
	if at > 0 && k < mostRows && (k == 0 || at > o.rows[k-1].Elapsed && done >= o.rows[k-1].Ops[0].Ops) {
		o.rows = append(o.rows, workload.Report{Elapsed: at, Ops: workload.Counts{{Ops: done}}})
	}
}

// readBenchBase reads summaries of BenchBase: requests that did what they were to do are its goodput, and the others
// failed, or were rolled back as the benchmark means to.
func readBenchBase(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "BenchBase"}
	err := jsonValues(r, func(_ int, v json.RawMessage) error {
		var doc untyped.Object
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		num := func(of untyped.Object, name string) float64 {
			v, err := quantity(fmt.Sprint(of[name]))
			if err != nil {
				return math.NaN()
			}
			return v
		}
		seconds := num(doc, "Elapsed Time (nanoseconds)") / 1e9
		good, all := num(doc, "Goodput (requests/second)"), num(doc, "Throughput (requests/second)")
		n := num(doc, "Measured Requests")
		if math.IsNaN(seconds) && n > 0 && all > 0 {
			seconds = n / all
		}
		length := inSeconds(seconds)
		if length == 0 || math.IsNaN(good) {
			return errors.New("a summary without its elapsed time and goodput")
		}
		t := newTally(strings.TrimSpace("BenchBase "+oneLine(doc.Text("Benchmark Type"))), length)
		latency := doc.Object("Latency Distribution")
		mean := num(latency, "Average Latency (microseconds)") / 1e6
		if math.IsNaN(mean) {
			mean = 0
		}
		t.did(result.Operation{Name: "request", Noun: "requests"}, math.Round(good*seconds), 0, mean)
		t.unfailing = true
		if all > good {
			t.figure(result.Measure{Name: "without_success", Unit: "requests", Kind: result.Count},
				math.Round(all*seconds)-math.Round(good*seconds))
		}
		t.figure(single("p50", "ms"), num(latency, "Median Latency (microseconds)")/1e3)
		for _, name := range slices.Sorted(maps.Keys(latency)) {
			if m := benchBasePct.FindStringSubmatch(name); m != nil {
				t.figure(single("p"+m[1], "ms"), num(latency, name)/1e3)
			}
		}
		t.figure(single("max", "ms"), num(latency, "Maximum Latency (microseconds)")/1e3)
		t.concurrency = numberIn(doc, "terminals")
		for _, name := range []string{"scalefactor", "isolation", "DBMS Type"} {
			if v := doc[name]; v != nil {
				t.asked(name, oneLine(fmt.Sprint(v)))
			}
		}
		if at := num(doc, "Start timestamp (milliseconds)"); at > 0 {
			t.start = time.UnixMilli(int64(min(at, 1e13))).UTC()
		} else if at := num(doc, "Current Timestamp (milliseconds)"); at > 0 {
			t.start = time.UnixMilli(int64(min(at, 1e13))).UTC().Add(-length)
		}
		if state, ok := doc["Final State"].(string); ok && state != "EXIT" && state != "DONE" {
			t.failure = fmt.Sprintf("BenchBase says: Final State %s", oneLine(state))
		}
		t.notes = append(t.notes, "requests are those that did what they were to do (goodput); the others of its throughput "+
			"failed, or were rolled back as its benchmark means to (TPC-C does so with some new orders): it does not tell these "+
			"apart", "times and percentiles are BenchBase's, of all requests")
		b.stretches = append(b.stretches, t.done())
		return b.tooMany("summaries")
	})
	return b, err
}

// readBenchBaseRaw reads single requests, one test after another. Their times are seconds, whatever their column says.
func readBenchBaseRaw(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "BenchBase"}
	var l *requestLog
	columns, torn := 0, 0
	end := func() {
		n := len(b.stretches)
		if l.add(b); len(b.stretches) > n {
			b.stretches[n].unfailing = true
		}
		if torn > 0 {
			b.broke(n, fmt.Sprintf(tornRow, torn))
		}
		torn = 0
	}
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if cells[0] == "Transaction Type Index" {
			end()
			l, columns = newRequestLog("BenchBase", true), len(cells)
			return b.tooMany("tests")
		}
		if len(cells) != columns || columns < 4 {
			torn = n
			return nil
		}
		at, err := quantity(strings.TrimSpace(cells[2]))
		took, err2 := quantity(cells[3])
		if err = cmp.Or(err, err2); err != nil {
			torn = n
			b.skip(n, "%s", err)
			return nil
		}
		if name := oneLine(cells[1]); name != "" && len(l.labels) < mostKinds {
			l.labels[name] = true
		}
		l.request(int64(at*1e9), int64(took*1e3), true, 0)
		return nil
	})
	end()
	return b, err
}
