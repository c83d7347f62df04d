package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
	"plimsoll/unit"
)

var (
	sysbenchHead     = lazyregexp.New(`(?m)^sysbench (v?\d[\w.-]*)`)
	sysbenchThreads  = lazyregexp.New(`(?m)^Number of threads: (\d{1,6})`)
	sysbenchLine     = lazyregexp.New(`(?m)^\[ +\d+(\.\d+)?s ?\] (thds:|threads:|reads:|[\d.]+ MiB/sec)`)
	sysbenchRate     = lazyregexp.New(`(?m)^Target transaction rate: (\d+)`)
	sysbenchBlock    = lazyregexp.New(`(?mi)^Block size (\d+(?:\.\d+)? ?[KMG]?i?b)`)
	sysbenchMem      = lazyregexp.New(`(?mi)^ *(?:memory )?block size: (\d+(?:\.\d+)? ?[KMG]?(?:i?B)?)\r?$`)
	sysbenchWhich    = lazyregexp.New(`(?m)(?:lat(?:ency)? \(ms, ?|^ *(?:approx\. +)?)(\d+(?:\.\d+)?)(?:%\)|(?:th)? percentile:)`)
	sysbenchTime     = lazyregexp.New(`(?m)^ *(?:total time|time elapsed): +([0-9.]+)s`)
	sysbenchOp       = lazyregexp.New(`(?m)^ *(?:Memory )?operations?(?: type)?: (read|write)`)
	sysbenchSQL      = lazyregexp.New(`(?m)^SQL statistics:|^OLTP test statistics:|\] thds: \d+ tps:`)
	sysbenchEnds     = lazyregexp.New(`^ *(?:execution time \(avg/stddev\)|total time taken by event execution|sum): |^ *avg: +[\d.]+ms`)
	sysbenchQueries  = lazyregexp.New(`^\[ *([0-9.]+)s ?\] thds: \d+ tps: [0-9.]+ qps: ([0-9.]+) `)
	sysbenchPerQuery = lazyregexp.New(`(?m)^ *(?:queries|read/write requests): +\d+ +\(([0-9.]+) per sec`)
	sysbenchTotal    = lazyregexp.New(
		`(?m)^ *(?:transactions|Total operations|Operations performed|total number of events): +(\d+)`)
	sysbenchPerSecond = lazyregexp.New(
		`(?m)^ *(?:transactions|Total operations|Operations performed): +\d+ +\( *([0-9.]+) (?:per sec|ops/sec)`)
	sysbenchEvents = lazyregexp.New(`(?m)^ *total number of events: +[1-9]`)
	sysbenchCPU    = lazyregexp.New(`(?m)^ *events per second: +([0-9.]+)`)
	sysbenchZero   = lazyregexp.New(`(?m)^ *(?:(?:approx\. +)?[\d.]+(?:th)? percentile|max|avg): +(0\.0+)(?:ms)?\r?$`)
	sysbenchFatal  = lazyregexp.New(`^(?:FATAL|PANIC): (.+)`)
	sysbenchOld    = lazyregexp.New(`(?m)^ *read/write requests: `)
	sysbenchFiles  = lazyregexp.New(`(?m)^(\d+ files, | +(?:read|write): +IOPS=|File operations:|Operations performed: +\d+ [Rr]eads?,)|\] reads: [\d.]+ MiB/s writes:`)
)

// sysbenchAsked are what a test says that it was asked for, besides its threads.
var sysbenchAsked = []struct {
	name string
	said *lazyregexp.Regexp
}{
	{"rate", sysbenchRate}, {"block size", sysbenchBlock}, {"block size", sysbenchMem},
	{"test", lazyregexp.New(`(?m)^Doing (.+?) test\r?$`)},
	{"files", lazyregexp.New(`(?m)^(\d+ files, \S+) each`)},
	{"mix", lazyregexp.New(`(?m)^Read/Write ratio for combined random IO test: ([\d.]+)`)},
	{"flushes", lazyregexp.New(`(?m)^Periodic FSYNC enabled, calling fsync\(\) (each \d+)`)},
	{"flags", lazyregexp.New(`(?m)^Extra file open flags: ([^(\r\n]+)`)},
	{"ioengine", lazyregexp.New(`(?m)^Using (\w+) I/O mode`)},
	{"prime limit", lazyregexp.New(`(?m)^(?:Prime numbers limit|Maximum prime number checked in CPU test): (\d+)`)},
	{"operation", sysbenchOp}, {"scope", lazyregexp.New(`(?m)^ +scope: (\w+)`)},
	{"total size", lazyregexp.New(`(?m)^ +total size: (\S+)`)},
}

func sysbenchReaders() []reader {
	return []reader{{
		name: "sysbench", holds: "what sysbench prints (0.4 and later): interval reports, totals, histogram",
		recognise: func(head []byte) bool { return sysbenchHead.Match(head) || sysbenchLine.Match(head) },
		prepare:   prepareSysbench,
	}}
}

const sysbenchText = "sysbench"

// mostSysbench bounds a file of several tests.
const mostSysbench = 256 << 20

// readSysbench reads a file to which several tests were appended: each by itself, as if it were the only one.
func readSysbench(_ format, r io.Reader) (*book, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostSysbench+1))
	if err != nil || len(data) > mostSysbench {
		return nil, cmp.Or(err, fmt.Errorf("more than %d MiB: split it", mostSysbench>>20))
	}
	b := &book{tool: "sysbench"}
	heads := sysbenchHead.FindAllIndex(data, -1)
	for i, at := range heads {
		end := len(data)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		text := data[at[0]:end]
		d := &Reading{As: sysbenchText, Latency: "service time"}
		err := prepareSysbench(d, &given{head: text[:min(len(text), HeadBytes)], content: bytes.NewReader(text)})
		var rec reportsOf
		if err == nil {
			_, err = Engines()[d.Engine].Parse(d.Declared, bytes.NewReader(text), &rec)
		}
		if err != nil || len(rec) == 0 || rec[len(rec)-1].Elapsed <= 0 {
			b.lost = cmp.Or(b.lost, d.Failure, fmt.Sprintf("test %d of %d cannot be read", i+1, len(heads)))
			continue
		}
		b.tool = d.Tool
		b.stretches = append(b.stretches, stretch{workload: d.Workload, operations: d.Declared.Operations,
			measures: d.Declared.Measures, concurrency: d.Concurrency, length: rec[len(rec)-1].Elapsed, reports: rec,
			notes: d.Notes, unseen: d.Unseen, latency: d.Latency, failure: d.Failure, facts: d.Facts,
			streams: d.Streams})
	}
	return b, nil
}

// reportsOf are the reports of a test.
type reportsOf []workload.Report

// Report implements workload.Sink.
func (r *reportsOf) Report(one workload.Report) { *r = append(*r, one) }

// Warn implements workload.Sink. What is skipped is said when the whole of a test is.
func (r *reportsOf) Warn(string) {}

// sysbenchTail reads the lines that every kind of test ends with.
const sysbenchTail = `
    - match: '^ *(?:total time|time elapsed): +(?P<t>[0-9.]+)s'
      final: true
      elapsed: {field: t, unit: s{{if .Scale}}, scale: {{.Scale}}{{end}}}
{{if .P}}    - match: '^ *(?:approx\. +)?{{.P}}(?:th)? percentile: +(?P<p>[0-9.]*[1-9][0-9.]*)'
      final: true
      measures: {{"{"}}{{.Name}}: p}
{{end}}    - match: '^ +max: +(?P<ms>[0-9.]*[1-9][0-9.]*)(?:ms)?$'
      final: true
      measures: {max: ms}
`

const sysbenchMeasures = `
measures:
{{if .P}}  - {name: {{.Name}}, unit: ms, better: lower, kind: single}
{{end}}  - {name: max, unit: ms, better: lower, kind: single}
`

const sysbenchLatency = `latency: {{.Latency}}
command: [sysbench]
`

// sysbenchHistogram is of every latency, in the order sysbench prints it.
const sysbenchHistogram = `    - match: '^ *(?P<ms>[0-9.]+) \|[* ]* (?P<n>[0-9]+)$'
      histogram: {operation: {{.Op}}, upto: {field: ms, unit: ms}, count: n}
    - match: '^ *sum: +(?P<sum>[0-9.]+)'
      final: true
      operations: {{"{"}}{{.Op}}: {sum: {field: sum, unit: ms}}}
    - match: '^ *total time taken by event execution: +(?P<sum>[0-9.]+)s?$'
      final: true
      operations: {{"{"}}{{.Op}}: {sum: {field: sum, unit: s}}}
`

// sysbenchSQLLayout counts transactions. The queries that these are made of stand beside them, and are added to
// nothing.
const sysbenchSQLLayout = sysbenchLatency + `operations:
  - {name: transaction, noun: transactions}
` + sysbenchMeasures + `  - {name: {{.Queries}}, unit: queries/s, kind: {{.Kind}}}
output:
  format: lines
  records:
    - match: '^\[ *(?P<t>[0-9.]+)s ?\] thds: \d+ tps: (?P<tps>[0-9.]+) qps: (?P<qps>[0-9.]+) .*\): (?P<p>[0-9.]+) err/s:? (?P<err>[0-9.]+)'
      elapsed: {field: t, unit: s}
      operations: {transaction: {rate: tps}}
      errors: {rate: err}
      measures: {{"{"}}{{.Interval}}: p, {{.Queries}}: qps}
    - match: '^ *transactions: +(?P<n>\d+)'
      final: true
      operations: {transaction: {count: n}}
    - match: '^\[ *(?P<t>[0-9.]+)s ?\] threads: \d+, tps: (?P<tps>[0-9.]+), reads(?:/s)?: (?P<r>[0-9.]+), .*response time: (?P<p>[0-9.]+)ms.*?(?:errors: (?P<err>[0-9.]+).*)?$'
      elapsed: {field: t, unit: s}
      operations: {transaction: {rate: tps}}
      errors: {rate: err}
      measures: {{"{"}}{{.Interval}}: p}
` + sysbenchSQLTotals + sysbenchHistogram + sysbenchTail

const sysbenchSQLTotals = `{{if .Q}}    - match: '^ *(?:queries|read/write requests): +\d+ +\([0-9.]+ per sec'
      final: true
      measures: {{"{"}}{{.Queries}}: {value: {{.Q}}}}
{{end}}    - match: '^ *(?:ignored errors|deadlocks): +(?P<n>\d+)'
      final: true
      errors: {count: n}
`

// sysbenchSkipLayout counts events, where none of them is a transaction.
const sysbenchSkipLayout = sysbenchLatency + `operations:
  - {name: event, noun: events}
` + sysbenchMeasures + `  - {name: {{.Queries}}, unit: queries/s, kind: {{.Kind}}}
output:
  format: lines
  records:
` + sysbenchEventTotal + sysbenchSQLTotals + sysbenchHistogram + sysbenchTail

const sysbenchEventTotal = `    - match: '^ *total number of events: +(?P<n>[0-9]+)'
      final: true
      operations: {event: {count: n}}
`

const sysbenchFileLayout = sysbenchLatency + `operations:
  - {name: read, noun: reads, bytes: true}
  - {name: write, noun: writes, bytes: true}
measures:
  - {name: fsyncs, unit: fsyncs/s, kind: single}
{{if .P}}  - {name: {{.Name}}, unit: ms, better: lower, kind: single}
{{end}}  - {name: mean, unit: ms, better: lower, kind: single}
  - {name: max, unit: ms, better: lower, kind: single}
output:
  format: lines
  records:
    - match: '^\[ *(?P<t>[0-9.]+)s ?\] reads: (?P<r>[0-9.]+) MiB/s writes: (?P<w>[0-9.]+) MiB/s fsyncs: (?P<f>[0-9.]+)/s latency \(ms,[0-9.]+%\): (?P<p>[0-9.]+)'
      elapsed: {field: t, unit: s}
      operations:
        read: {rate: {field: r, scale: {{.PerMiB}}}, bytes: {rate: {field: r, unit: MiB}}}
        write: {rate: {field: w, scale: {{.PerMiB}}}, bytes: {rate: {field: w, unit: MiB}}}
      measures: {fsyncs: f, {{.Interval}}: p}
    - match: '^Operations performed: +(?P<r>\d+) [Rr]eads?, (?P<w>\d+) [Ww]rites?, (?P<f>\d+) Other'
      final: true
      operations:
        read: {count: r{{if .Block}}, bytes: {count: {field: r, scale: {{.Block}}}}{{end}}}
        write: {count: w{{if .Block}}, bytes: {count: {field: w, scale: {{.Block}}}}{{end}}}
    - match: '^ +avg: +(?P<ms>[0-9.]*[1-9][0-9.]*)(?:ms)?$'
      final: true
      measures: {mean: ms}
{{if .Time}}    - match: '^ *reads/s: +(?P<r>[0-9.]+)'
      final: true
      operations: {read: {count: {field: r, scale: {{.Time}}}}}
    - match: '^ *writes/s: +(?P<w>[0-9.]+)'
      final: true
      operations: {write: {count: {field: w, scale: {{.Time}}}}}
    - match: '^ *read, MiB/s: +(?P<r>[0-9.]+)'
      final: true
      operations: {read: {bytes: {count: {field: r, unit: MiB, scale: {{.Time}}}}}}
    - match: '^ *written, MiB/s: +(?P<w>[0-9.]+)'
      final: true
      operations: {write: {bytes: {count: {field: w, unit: MiB, scale: {{.Time}}}}}}
    - match: '^ *read: +IOPS=(?P<r>[0-9.]+) (?P<b>[0-9.]+) MiB/s'
      final: true
      operations: {read: {count: {field: r, scale: {{.Time}}}, bytes: {count: {field: b, unit: MiB, scale: {{.Time}}}}}}
    - match: '^ *write: +IOPS=(?P<w>[0-9.]+) (?P<b>[0-9.]+) MiB/s'
      final: true
      operations: {write: {count: {field: w, scale: {{.Time}}}, bytes: {count: {field: b, unit: MiB, scale: {{.Time}}}}}}
{{end}}    - match: '^ *(?:fsyncs/s|fsync): +(?:IOPS=)?(?P<f>[0-9.]+)'
      final: true
      measures: {fsyncs: f}
` + sysbenchTail

const sysbenchMemoryLayout = sysbenchLatency + `operations:
  - {name: {{.Op}}, noun: {{.Op}}s, bytes: true}
` + sysbenchMeasures + `output:
  format: lines
  records:
    - match: '^\[ *(?P<t>[0-9.]+)s ?\] (?P<mib>[0-9.]+) MiB/sec'
      elapsed: {field: t, unit: s}
      operations: {{"{"}}{{.Op}}: {rate: {field: mib, scale: {{.PerMiB}}}, bytes: {rate: {field: mib, unit: MiB}}}}
    - match: '^(?:Total operations|Operations performed): (?P<n>[0-9]+)'
      final: true
      operations: {{"{"}}{{.Op}}: {count: n}}
    - match: '^(?P<mib>[0-9.]+) Mi?B transferred'
      final: true
      operations: {{"{"}}{{.Op}}: {bytes: {count: {field: mib, unit: MiB}}}}
` + sysbenchHistogram + sysbenchTail

const sysbenchEventLayout = sysbenchLatency + `operations:
  - {name: event, noun: events}
` + sysbenchMeasures + `output:
  format: lines
  records:
    - match: '^\[ *(?P<t>[0-9.]+)s ?\] .*eps: (?P<eps>[0-9.]+) lat \(ms,[0-9.]+%\): (?P<p>[0-9.]+)'
      elapsed: {field: t, unit: s}
      operations: {event: {rate: eps}}
      measures: {{"{"}}{{.Interval}}: p}
` + sysbenchEventTotal + sysbenchHistogram + sysbenchTail

// sysbenchFailure returns what a test says of its failure, or that it did not come to its totals, "" for neither; and
// how many queries its intervals tell of until when.
func sysbenchFailure(g *given) (failure string, queries, until float64, err error) {
	in, err := g.rewound()
	if err != nil {
		return "", 0, 0, err
	}
	fatal, ended := "", false
	err = eachLine(in, func(_ int, line []byte) error {
		ended = ended || sysbenchEnds.Match(line)
		if m := sysbenchQueries.FindSubmatch(line); m != nil {
			at, _ := strconv.ParseFloat(string(m[1]), 64)
			qps, _ := strconv.ParseFloat(string(m[2]), 64)
			queries, until = queries+qps*max(at-until, 0), max(at, until)
		}
		if m := sysbenchFatal.FindSubmatch(line); m != nil && fatal == "" {
			fatal = "sysbench says: " + oneLine(string(m[1]))
		}
		return nil
	})
	switch {
	case err != nil || fatal != "":
		return fatal, queries, until, err
	case !ended:
		return "it ends before sysbench's totals: the test, or the file, is cut short", queries, until, nil
	}
	return "", queries, until, nil
}

// stretched is by how much the time over which sysbench's rates are is longer than the total time that it prints, as
// they include the end of its threads; 0 where it does not say.
func stretched(text []byte, total float64) float64 {
	n, _ := strconv.ParseFloat(found(sysbenchTotal, text), 64)
	rate, _ := strconv.ParseFloat(cmp.Or(found(sysbenchPerSecond, text), found(sysbenchCPU, text)), 64)
	if !(n > 0 && rate > 0 && total > 0) {
		return 0
	}
	if by := n / rate / total; by > 1+0.005/rate+1e-4/total && by < 1.1 { // beyond what rounding explains
		return by
	}
	return 0
}

func prepareSysbench(d *Reading, g *given) error {
	failure, queries, until, err := sysbenchFailure(g)
	if err != nil {
		return err
	}
	d.Failure = failure
	d.Tool = "sysbench"
	text := slices.Concat(g.head, End(g.content)) // its totals come after all its intervals
	if failure != "" && !sysbenchLine.Match(text) && !sysbenchTime.Match(text) {
		return errors.New("it holds no figures: " + failure)
	}
	if v := found(sysbenchHead, text); v != "" {
		d.Tool += " " + v
	}
	d.Concurrency, _ = strconv.ParseFloat(found(sysbenchThreads, text), 64) // 0 where it does not say
	for _, a := range sysbenchAsked {
		if v := found(a.said, text); v != "" && v != "0" {
			d.Facts = append(d.Facts, asked(a.name, v))
		}
	}
	values := map[string]string{"Latency": "service time", "Op": "event", "P": "", "Interval": "max"}
	total, _ := strconv.ParseFloat(found(sysbenchTime, text), 64)
	if by := stretched(text, total); by > 0 {
		values["Scale"] = strconv.FormatFloat(by, 'f', -1, 64)
		total *= by
	}
	if rate := found(sysbenchRate, text); rate != "" && rate != "0" {
		// sysbench adds the time that an event waited for a free thread.
		values["Latency"] = "response time"
		d.Latency = "response time"
		r, _ := strconv.ParseFloat(rate, 64)
		if !sysbenchFiles.Match(text) { // whose events are flushes, too
			d.Streams = []result.Stream{{Name: "threads", Noun: "set of threads", Depth: int(d.Concurrency), Rate: r,
				OpenLoop: true}}
		}
	}
	// --percentile picks one; 100 is the maximum, 0 none.
	if p := found(sysbenchWhich, text); p != "" {
		if v, err := strconv.ParseFloat(p, 64); err == nil && v > 0 && v < 100 {
			values["P"], values["Name"], values["Interval"] = p, "p"+p, "p"+p
		}
	}
	if found(sysbenchZero, text) != "" {
		d.Notes = append(d.Notes, "times that it prints as 0.00 ms are below 5 µs, and left out")
	}
	d.Unseen = []string{
		"the storage underneath: sysbench counts no I/O of devices",
	}
	switch {
	case sysbenchSQL.Match(text):
		values["Op"], values["Queries"], values["Kind"] = "transaction", "queries", "level"
		if sysbenchOld.Match(text) { // 0.4 and 0.5 count reads and writes alone, and no interval has their sum
			values["Queries"], values["Kind"] = "reads_and_writes", "single"
		}
		// Over all of the test is what its total says: what its intervals leave came after the last of them.
		if q, err := strconv.ParseFloat(found(sysbenchPerQuery, text), 64); err == nil {
			if until > 0 && total > until {
				q = max((q*total-queries)/(total-until), 0)
			}
			values["Q"] = strconv.FormatFloat(q, 'f', -1, 64)
		}
		d.Workload = "sysbench oltp"
		if found(sysbenchTotal, text) == "0" && sysbenchEvents.Match(text) {
			values["Op"] = "event"
			d.Notes = append(d.Notes,
				"it made no transactions of its queries, so its events are counted, which its intervals do not tell")
			return d.declare(sysbenchSkipLayout, values)
		}
		return d.declare(sysbenchSQLLayout, values)
	case sysbenchFiles.Match(text):
		d.Workload = "sysbench fileio"
		values["Time"] = found(sysbenchTime, text) // its summary holds rates, which give counts with it
		if values["PerMiB"] = perMiB(found(sysbenchBlock, text)); values["PerMiB"] == "0" {
			d.Notes = append(d.Notes,
				"it does not say its block size, so its reads and writes are not counted, only their bytes")
		} else if f, err := strconv.ParseFloat(values["PerMiB"], 64); err == nil {
			values["Block"] = strconv.FormatFloat(float64(unit.MiB)/f, 'f', 0, 64)
		}
		return d.declare(sysbenchFileLayout, values)
	case sysbenchMem.Match(text):
		values["Op"] = cmp.Or(found(sysbenchOp, text), "write")
		d.Workload = "sysbench memory"
		values["PerMiB"] = perMiB(found(sysbenchMem, text))
		return d.declare(sysbenchMemoryLayout, values)
	}
	d.Workload = "sysbench"
	return d.declare(sysbenchEventLayout, values)
}

// perMiB is how many blocks of that size are in a MiB, "0" when the size is not known. sysbench writes Kb and KiB for
// 1024 bytes.
func perMiB(size string) string {
	m := regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?) ?([KMG]?)(?:i?B)?$`).FindStringSubmatch(size)
	if m == nil {
		return "0"
	}
	n, err := strconv.ParseFloat(m[1], 64)
	factor := map[string]float64{"": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "m": 1 << 20, "G": 1 << 30,
		"g": 1 << 30}[m[2]]
	if err != nil || !(n*factor >= 1) {
		return "0"
	}
	return strconv.FormatFloat(float64(unit.MiB)/(n*factor), 'g', -1, 64)
}
