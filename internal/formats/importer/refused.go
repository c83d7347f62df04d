package importer

import (
	"bytes"

	"plimsoll/internal/formats/convert"
	"plimsoll/internal/kit/lazyregexp"
)

var (
	aTable = lazyregexp.New(`^[^\n,;\t]+(?:[,;\t][^\n,;\t]*)+\r?\n(?:[^\n]*[,;\t]\s*"?-?[\d.]+"?\s*(?:[,;\t\r\n]|$))`)
	aPage  = lazyregexp.New(`(?m)^# (?:HELP|TYPE) \w+ `)
)

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
		return "a table: analyze, steady, changes, usl, compare and baseline take it as it is"
	}
	return ""
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
		{name: "pgbench init", holds: "what pgbench -i prints", recognise: re(`(?m)^\d+ of \d+ tuples \(\d+%\) done`),
			advice: "loading tables is no measurement that can be read; import the output of the run that follows"},
	}
	for _, o := range others {
		list = append(list, reader{name: o.name, holds: "output of " + o.name, recognise: o.is.Match,
			advice: "make a table (CSV) of its figures for analyze, compare or usl"})
	}
	return list
}

// wrapped recognise what others put around an output, in which it may be recognised all the same.
func wrapped() []reader {
	return []reader{
		{name: "tar archive", holds: "an archive (tar)", advice: "unpack it, and give the folder",
			recognise: func(head []byte) bool { return len(head) > 262 && string(head[257:262]) == "ustar" }},
		{name: "Ansible's JSON", holds: "JSON of Ansible about a command", recognise: lazyregexp.New(`"stdout(?:_lines)?"\s*:\s*["\[]`).Match,
			advice: "give what the command printed: jq -r .stdout FILE"},
	}
}

// others are tools whose outputs are not read.
var others = []struct {
	name string
	is   *lazyregexp.Regexp
}{
	{"hdparm", lazyregexp.New(`(?m)^ Timing (?:cached|buffered disk|O_DIRECT disk|O_DIRECT cached) reads: `)},
	{"redis-benchmark",
		lazyregexp.New(`(?m)^ *\d+ requests completed in [\d.]+ seconds|^\S+: [\d.]+ requests per second`)},
	{"memtier_benchmark", lazyregexp.New(`(?m)^ALL STATS\r?$|"ALL STATS"\s*:`)},
	{"mysqlslap", lazyregexp.New(`(?m)^\tAverage number of seconds to run all queries: `)},
	{"iperf3", lazyregexp.New(`"version"\s*:\s*"iperf 3|(?m)^\[ ID\] Interval +Transfer +`)},
	{"cassandra-stress", lazyregexp.New(`(?mi)^op rate +: +[\d,.]+`)},
	{"hey or etcd's benchmark", lazyregexp.New(`(?m)^  Requests/sec:\s+[\d.]+`)},
	{"warp", lazyregexp.New(`(?m)^(?:Operation|Report): (?:PUT|GET|DELETE|STAT|LIST)\b.*\n[\s\S]{0,300}?Average: `)},
	{"s3bench", lazyregexp.New(`(?m)^Results Summary for \w+ Operation\(s\)`)},
	{"filebench", lazyregexp.New(`(?m)^[\d.]+: IO Summary: +\d+ ops`)},
	{"CrystalDiskMark", lazyregexp.New(`(?m)^ *CrystalDiskMark \d`)},
	{"YABS", lazyregexp.New(`(?m)^fio Disk Speed Tests \(`)},
	{"HCIBench, its summary,", lazyregexp.New(`(?m)^THROUGHPUT += [\d.]+ MB/s`)},
	{"k6, its samples,", lazyregexp.New(`(?m)^\{"(?:metric|type)":"[^"]+","(?:type|data)":.*"(?:Point|Metric)"`)},
}
