package importer

import (
	"bytes"
	"regexp"

	"plimsoll/internal/formats/convert"
	"plimsoll/internal/kit/lazyregexp"
)

var (
	aTable = lazyregexp.New(`^[^\n,;\t]+(?:[,;\t][^\n,;\t]*)+\r?\n(?:[^\n]*[,;\t]\s*-?[\d.]+\s*(?:[,;\t\r\n]|$))`)
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
	re := func(pattern string) func([]byte) bool { return regexp.MustCompile(pattern).Match }
	return []reader{
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
}
