package importer

import (
	"bytes"
	"regexp"
)

// refusedReaders recognise what is not read, so that a user is told what it is and what to do instead.
func refusedReaders() []reader {
	re := func(pattern string) func([]byte) bool { return regexp.MustCompile(pattern).Match }
	return []reader{
		{name: "fio text", holds: "fio's output for people or in terse form",
			recognise: func(head []byte) bool { return fioTerse.Match(head) || fioNormal.Match(head) },
			advice:    "it has no histogram and no times; run fio with --output-format=json+ and import that"},
		{name: "fio words", holds: "what fio said without a report", recognise: re(`^fio: \S|(?m)^\S+: verify failed at file `),
			advice: "it holds no measurement"},
		{name: "diskspd xml", holds: "DISKSPD's XML results", recognise: re(`^\s*<Results>\s*<System>`),
			advice: "it is not read yet; run diskspd with -Rtext"},
		{name: "sar binary", holds: "sar's binary file",
			recognise: func(head []byte) bool {
				return bytes.HasPrefix(head, []byte{0x96, 0xd5}) || bytes.HasPrefix(head, []byte{0xd5, 0x96})
			},
			advice: "make text of it: sadf -d -U FILE -- -A"},
		{name: "blkparse", holds: "blkparse's output", recognise: re(`(?m)^( *\d+,\d+ +\d+ +\d+ +\d+\.\d{9} +\d+ +[A-Z]|CPU\d+ \(\S+\):)`),
			advice: "single events of a device are not read; iostat or fio's logs show its course"},
		{name: "pgbench init", holds: "what pgbench -i prints", recognise: re(`(?m)^\d+ of \d+ tuples \(\d+%\) done`),
			advice: "loading tables is no measurement that can be read; import the output of the run that follows"},
	}
}
