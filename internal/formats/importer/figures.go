package importer

import (
	"math"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// tally makes a stretch of what a tool tells once, at its end.
type tally struct {
	stretch
	report workload.Report
}

func newTally(name string, length time.Duration) *tally {
	t := &tally{stretch: stretch{workload: name, length: length}}
	t.report = workload.Report{Elapsed: length, Final: true}
	t.unseen = []string{"the device underneath: its counters are in no such file"}
	return t
}

// did adds an operation: how many of it were done, the bytes and the mean time of one in seconds, 0 where not known.
func (t *tally) did(op result.Operation, n, bytes, mean float64) {
	op.Bytes = op.Bytes || bytes > 0
	t.operations = append(t.operations, op)
	t.report.Ops = append(t.report.Ops, workload.Counters{Ops: whole(n), Bytes: whole(bytes), Seconds: mean * n})
}

// figure adds a figure of the tool's own, unless there is none.
func (t *tally) figure(m result.Measure, v float64) {
	if !math.IsNaN(v) {
		t.measures, t.report.Values = append(t.measures, m), append(t.report.Values, v)
	}
}

// asked adds a fact, unless the file does not say it.
func (t *tally) asked(name, value string) {
	if value != "" {
		t.facts = append(t.facts, asked(name, value))
	}
}

func (t *tally) done() stretch {
	t.reports = []workload.Report{t.report}
	return t.stretch
}

var (
	someReads  = result.Operation{Name: "read", Noun: "reads", Block: result.BlockRead}
	someWrites = result.Operation{Name: "write", Noun: "writes", Block: result.BlockWrite}
)

// inSeconds is a number of seconds as a time, 0 of what is none.
func inSeconds(v float64) time.Duration {
	if !(v > 0 && v < 1e9) {
		return 0
	}
	return time.Duration(v * float64(time.Second))
}

// lastReturn returns what a terminal shows of a line that a tool wrote anew again and again.
func lastReturn(text string) string {
	text = strings.TrimRight(text, "\r")
	return text[strings.LastIndexByte(text, '\r')+1:]
}

// localDate reads a date as C's ctime writes it, without a zone.
func localDate(text string) (time.Time, bool) {
	at, err := time.Parse("Mon Jan 2 15:04:05 2006", strings.Join(strings.Fields(text), " "))
	return at, err == nil
}

const noZone = "its times have no time zone and are read as UTC"
