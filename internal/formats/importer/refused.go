package importer

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"plimsoll/internal/formats/convert"
	"plimsoll/internal/kit/lazyregexp"
)

var (
	aTable = lazyregexp.New(`^[^\n,;\t]+(?:[,;\t][^\n,;\t]*)+\r?\n(?:[^\n]*[,;\t]\s*"?-?[\d.]+"?\s*(?:[,;\t\r\n]|$))`)
	aPage  = lazyregexp.New(`(?m)^# (?:HELP|TYPE) \w+ `)
)

// Resembles says of the beginning of a file of no known form what it looks like and what to do with that; "" when it
// says nothing.
func Resembles(head []byte) string { return resembles(plainHead(head)) }

// resembles says of a file of no known form what it looks like and what to do with that; "" when it says nothing.
func resembles(head []byte) string {
	asked, _ := convert.ByContent(head)
	switch {
	case bytes.HasPrefix(head, []byte{0x07, 't', 'a', 'e'}):
		return "blktrace's binary events, of which single ones are not read; iostat or fio's logs show a device's course"
	case aPage.Match(head):
		return "a page of an exporter, which is one moment and no course"
	case asked.Name == "fio":
		return "a job file of fio, which plimsoll run takes as a scenario"
	case asked.Name == "vdbench":
		return "parameters of vdbench; import what it left in its output folder"
	case aTable.Match(head):
		for _, o := range tables {
			if o.is.Match(head) {
				return "a table of " + o.name + ": " + tableTaken
			}
		}
		return "a table: " + tableTaken
	case len(head) < HeadBytes && bytes.HasPrefix(head, []byte("<?xml")) &&
		endsEarly(xml.NewDecoder(bytes.NewReader(head))):
		return "XML that ends early: the file is cut short"
	case len(head) < HeadBytes && len(head) > 0 && (head[0] == '{' || head[0] == '['):
		if err := json.Unmarshal(head, new(any)); err != nil && strings.Contains(err.Error(), "unexpected end") {
			return "JSON that ends early: the file is cut short"
		}
	}
	return ""
}

// endsEarly reports whether XML ends within an element.
func endsEarly(d *xml.Decoder) bool {
	for {
		if _, err := d.Token(); err != nil {
			return !errors.Is(err, io.EOF)
		}
	}
}

// refusedReaders recognise what is not read, so that a user is told what it is and what to do instead.
func refusedReaders() []reader {
	re := func(pattern string) func([]byte) bool { return lazyregexp.New(pattern).Match }
	list := []reader{
		{name: "fio words", holds: "what fio said without a report", recognise: re(`^fio: \S|(?m)^\S+: verify failed at file `),
			advice: "it holds no measurement"},
		{name: "sar binary", holds: "sar's binary file",
			recognise: func(head []byte) bool {
				return bytes.HasPrefix(head, []byte{0x96, 0xd5}) || bytes.HasPrefix(head, []byte{0xd5, 0x96})
			},
			advice: "make text of it: sadf -d -U FILE -- -A"},
		{name: "blkparse", holds: "blkparse's output", recognise: re(`(?m)^( *\d+,\d+ +\d+ +\d+ +\d+\.\d{9} +\d+ +[A-Z]|CPU\d+ \(\S+\):)`),
			advice: "single events of a device are not read; iostat or fio's logs show it over time"},
		{name: "redis-benchmark -q", holds: "redis-benchmark's short form (-q)",
			recognise: re(`(?m)(?:^|\r)[^\r\n:]+: [\d.]+ requests per second(?:, p50=[\d.]+ msec)? *\r?$`),
			advice:    "it says neither how many requests there were nor for how long: give what it prints without -q"},
		{name: "redis-benchmark --csv", holds: "redis-benchmark's CSV (--csv)",
			recognise: re(`^"test","rps"|^"(?:PING_\w+|SET|GET|INCR|[LR]PUSH|[LRS]POP|HSET|SADD|Z\w+|[LM]\w+[^"\n]*)","[\d.]+"\r?\n`),
			advice: "its rows are unlike commands, and it says neither how many requests there were nor for how long: give " +
				"what it prints without --csv"},
		{name: "vegeta binary", holds: "vegeta's binary results",
			recognise: func(head []byte) bool {
				return bytes.Contains(head[:min(len(head), 64)], []byte("\x06Result\x01")) &&
					bytes.Contains(head, []byte("\x03Seq\x01"))
			},
			advice: "make text of it: vegeta encode -to csv FILE"},
		{name: "HammerDB's results", holds: "HammerDB's results of all jobs (jobs, jobs result)",
			recognise: re(`"bm"\s*:\s*"TPC-[CH]"|\bbm TPC-[CH] tstamp |(?m)^Jobid +Database +Date +Workload +NOPM`),
			advice:    "it does not say how long a test was: give all lines of each job (jobs JOBID)"},
		{name: "HammerDB's lists", holds: "a list of Tcl, of HammerDB's jobs", recognise: hammerList.Match,
			advice: tclLists},
		{name: "HammerDB's metrics", holds: "the processor use of a HammerDB job (jobs JOBID metrics)",
			recognise: re(`^\s*\{\s*"[-\d]+ [\d:]+"\s*:\s*\{\s*"usr%"\s*:`),
			advice:    "it holds no load: give all lines of the job (jobs JOBID)"},
		{name: "JMeter's summaries", holds: "JMeter's lines of summary",
			advice:    "give the samples that jmeter -l writes (JTL)",
			recognise: re(`(?m)^(?:.* )?summary [+=] +\d+ in +[\d:.]+s? += +[\d.]+/s Avg:`)},
		{name: "BenchBase's log", holds: "what BenchBase prints",
			recognise: re(`Results\(state=\w+, nanoSeconds=\d+, measuredRequests=\d+\)`), advice: "give its summary.json"},
		{name: "pgbench init", holds: "what pgbench -i prints", recognise: re(`(?m)^\d+ of \d+ tuples \(\d+%\) done`),
			advice: "loading tables is no measurement that can be read; import the output of the run that follows"},
	}
	for _, o := range others {
		list = append(list, reader{name: o.name, holds: "output of " + strings.TrimSuffix(o.name, ","),
			recognise: o.is.Match, advice: "make a table (CSV) of its figures for analyze, compare or usl"})
	}
	const percentiles = "its rows are percentiles of one test, which are no course and have no mean: give what the " +
		"tool printed of its totals"
	list = append(list, reader{name: "ab -g", holds: "ab's table of requests (-g)", recognise: sortedByTime,
		advice: "ab sorts it by time taken, which would look like a course: put its rows in the order of seconds first"},
		reader{name: "ab -e", holds: "ab's percentiles (-e)", recognise: re(`^Percentage served,Time in ms`),
			advice: percentiles},
		reader{name: "HdrHistogram", holds: "percentiles of a histogram (HdrHistogram)", advice: percentiles,
			recognise: re(`^\s*"?Value(?:\(\w+\))?"?[\s,]+"?Percentile"?[\s,]+"?TotalCount`)})
	return list
}

const tclLists = "have HammerDB write JSON (jobs format JSON), and give that"

// wrapped recognise what others put around an output, in which it may be recognised all the same.
func wrapped() []reader {
	return []reader{
		{name: "tar archive", holds: "an archive (tar)", advice: "unpack it, and give the folder",
			recognise: func(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }},
		{name: "Ansible's JSON", holds: "JSON of Ansible about a command", recognise: lazyregexp.New(`"stdout(?:_lines)?"\s*:\s*["\[]`).Match,
			advice: "give what the command printed: jq -r .stdout FILE"},
	}
}

const tableTaken = "analyze, steady, changes, usl, compare and baseline take it as it is"

// tables are those of tools, by their line of names.
var tables = []struct {
	name string
	is   *lazyregexp.Regexp
}{
	{"locust", lazyregexp.New(`^"?Type"?,"?Name"?,"?# requests`)},
	{"JMeter's samples without their success", lazyregexp.New(`^timeStamp,elapsed,`)},
	{"COSBench", lazyregexp.New(`^Op-Type,Op-Count,Byte-Count,|^Timestamp,Op-Count,`)},
	{"BenchBase's course", lazyregexp.New(`^Time \(seconds\),(?:Requests,)?Throughput \(requests/second\),`)},
}

// sortedByTime reports whether a text is ab's table of requests as ab leaves it: in the order of the times they took.
func sortedByTime(head []byte) bool {
	if !bytes.HasPrefix(head, []byte("starttime\tseconds\tctime\tdtime\tttime\t")) {
		return false
	}
	last := 0.0
	for line := range bytes.Lines(wholeLines(head)) {
		if cells := strings.Split(string(line), "\t"); len(cells) > 4 && cells[4] != "ttime" {
			took := decimal(cells[4], "")
			if took < last {
				return false
			}
			last = took
		}
	}
	return true
}

// others are tools whose outputs are not read.
var others = []struct {
	name string
	is   *lazyregexp.Regexp
}{
	{"hdparm", lazyregexp.New(`(?m)^ *Timing (?:cached|buffered disk|O_DIRECT disk|O_DIRECT cached) reads: `)},
	{"iperf3", lazyregexp.New(`"version"\s*:\s*"iperf 3|(?m)^\[ ID\] Interval +Transfer +`)},
	{"cassandra-stress", lazyregexp.New(`(?mi)^op rate +: +[\d,.]+`)},
	{"ab as a page (-w)", lazyregexp.New(`This is ApacheBench, Version `)},
	{"gatling", lazyregexp.New(`(?m)^---- Global Information -|^RUN\t[\w.$]+\t`)},
	{"locust", lazyregexp.New(`(?m)^ *Type +Name +# reqs +# fails`)},
	{"stress-ng", lazyregexp.New(`(?m)^stress-ng: \w+: +\[\d+\] `)},
	{"Intel's Memory Latency Checker (mlc)", lazyregexp.New(`(?m)^Intel\(R\) Memory Latency Checker`)},
	{"ioping", lazyregexp.New(`(?m)^--- .* ioping statistics ---`)},
	{"dbench", lazyregexp.New(`(?m)^dbench version |^Throughput [\d.]+ MB/sec +\d+ clients`)},
	{"fs_mark", lazyregexp.New(`(?m)^#? *FSUse% +Count +Size +Files/sec`)},
	{"PostMark", lazyregexp.New(`(?m)^PostMark v\d`)},
	{"sockperf", lazyregexp.New(`(?m)^sockperf: `)},
	{"JuiceFS's bench", lazyregexp.New(`(?m)^\| +ITEM +\| +VALUE +\| +COST +\|`)},
	{"BenchmarkSQL", lazyregexp.New(`(?m)Measured tpmC \(NewOrders\) = `)},
	{"go-ycsb", lazyregexp.New(`(?m)^(?:READ|UPDATE|INSERT|SCAN|READ_MODIFY_WRITE|TOTAL) +- Takes\(s\): `)},
	{"go-tpc, of TPC-H,", lazyregexp.New(`(?m)^\[Summary\] Q\d+ *[:-]`)},
	{"iozone -R, its part for Excel,", lazyregexp.New(`(?m)^"(?:Re)?[Ww]riter report"|^"(?:Re)?[Rr]eader report"`)},
	{"winsat", lazyregexp.New(`(?m)^Windows System Assessment Tool|^> Disk +(?:Random|Sequential) `)},
	{"zpool iostat", lazyregexp.New(`(?m)^pool +alloc +free +read +write +read +write\r?$`)},
	{"SPDK's perf", lazyregexp.New(`(?m)^Device Information +: +IOPS +MiB/s +Average`)},
	{"warp", lazyregexp.New(`(?m)^(?:Operation|Report): (?:PUT|GET|DELETE|STAT|LIST)\b.*\n[\s\S]{0,300}?Average: `)},
	{"s3bench", lazyregexp.New(`(?m)^Results Summary for \w+ Operation\(s\)`)},
	{"filebench", lazyregexp.New(`(?m)^[\d.]+: IO Summary: +\d+ ops`)},
	{"CrystalDiskMark", lazyregexp.New(`(?m)^ *CrystalDiskMark \d`)},
	{"YABS", lazyregexp.New(`(?m)^fio Disk Speed Tests \(`)},
	{"HCIBench, its summary,", lazyregexp.New(`(?m)^[ \t]*THROUGHPUT += [\d.]+ MB/s`)},
}
