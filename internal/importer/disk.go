package importer

import (
	"errors"
	"strconv"
	"time"

	"plimsoll/internal/lazyregexp"
)

var (
	diskspdAny   = lazyregexp.New(`(?m)^Results for timespan \d+:`)
	diskspdStart = lazyregexp.New(`(?m)^\s*start time: (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) UTC`)
	diskspdMore  = lazyregexp.New(`(?m)^Results for timespan 2:`)
	diskspdTime  = lazyregexp.New(`(?m)^actual test time:\s+([\d.]+)s`)
	diskspdTree  = lazyregexp.New(`^\s*(?:<\?xml[^>]*>\s*)?<Results>\s*<System>`)
	diskspdLat   = lazyregexp.New(`(?m)^thread \|.*AvgLat`)
)

func diskReaders() []reader {
	return []reader{{
		name: "diskspd", holds: "DISKSPD's text results of one timespan",
		recognise: diskspdAny.Match, prepare: prepareDiskspd,
	}, {
		name: diskspdXML, holds: "DISKSPD's results as XML, of any number of time spans", book: true,
		recognise: diskspdTree.Match,
	}}
}

// The columns of DISKSPD's tables are bytes, I/Os, MiB/s, I/O per s and, with -L, the mean latency in ms. Percentiles
// are its own.
const diskspdLayout = `command: [diskspd]
operations:
  - {name: read, noun: reads, bytes: true}
  - {name: write, noun: writes, bytes: true}
measures:
  - {name: read_p50, unit: ms, better: lower, kind: single}
  - {name: read_p90, unit: ms, better: lower, kind: single}
  - {name: read_p99, unit: ms, better: lower, kind: single}
  - {name: read_p99.9, unit: ms, better: lower, kind: single}
  - {name: write_p50, unit: ms, better: lower, kind: single}
  - {name: write_p90, unit: ms, better: lower, kind: single}
  - {name: write_p99, unit: ms, better: lower, kind: single}
  - {name: write_p99.9, unit: ms, better: lower, kind: single}
  - {name: read_mean, unit: ms, better: lower, kind: single}
  - {name: write_mean, unit: ms, better: lower, kind: single}
output:
  format: lines
  records:
    - match: '^actual test time:\s+(?P<t>[0-9.]+)s'
      final: true
      elapsed: {field: t, unit: s}
    - after: '^Read IO'
      match: '^total: +(?P<b>\d+) \| +(?P<n>\d+) \|[^|]*\|'
      final: true
      operations: {read: {count: n, bytes: {count: b}}}
    - after: '^Write IO'
      match: '^total: +(?P<b>\d+) \| +(?P<n>\d+) \|[^|]*\|'
      final: true
      operations: {write: {count: n, bytes: {count: b}}}
{{if .Lat}}    - after: '^Read IO'
      match: '^total: +\d+ \| +[1-9]\d* \|[^|]*\|[^|]*\| +(?P<lat>[0-9.]+) '
      final: true
      measures: {read_mean: lat}
    - after: '^Write IO'
      match: '^total: +\d+ \| +[1-9]\d* \|[^|]*\|[^|]*\| +(?P<lat>[0-9.]+) '
      final: true
      measures: {write_mean: lat}
{{range .Rows}}    - match: '^ *{{.Row}} \| +(?:(?P<r>[0-9.]+)|N/A) \| +(?:(?P<w>[0-9.]+)|N/A) \|'
      final: true
      measures: {read_{{.Name}}: r, write_{{.Name}}: w}
{{end}}{{end}}`

func prepareDiskspd(d *Reading, g *given) error {
	d.Tool = "DISKSPD"
	if diskspdMore.Match(g.head) {
		return errors.New("it holds several timespans: save each by itself")
	}
	seconds, err := strconv.ParseFloat(found(diskspdTime, g.head), 64)
	if err != nil || !(seconds > 0 && seconds < 1e8) {
		return errors.New("it does not say its \"actual test time\"")
	}
	if at, err := time.Parse("2006/01/02 15:04:05", found(diskspdStart, g.head)); err == nil {
		g.modified = at.Add(time.Duration(seconds * float64(time.Second)))
		d.dated = "DISKSPD's own start time, without its warm-up"
	}
	d.Unseen = []string{
		"percentiles and means of latency but those that DISKSPD printed",
		"the device underneath: its counters are in no such file",
	}
	type row struct{ Row, Name string }
	values := map[string]any{"Lat": diskspdLat.Match(g.head),
		"Rows": []row{{"50th", "p50"}, {"90th", "p90"}, {"99th", "p99"}, {"3-nines", "p99.9"}}}
	return d.declare(diskspdLayout, values)
}
