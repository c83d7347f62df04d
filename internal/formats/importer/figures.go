package importer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
	"plimsoll/unit"
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
	for i, op := range t.operations {
		if c := t.report.Ops[i]; c.Ops > 0 {
			t.doubt(op.Name, c.Seconds/float64(c.Ops))
		}
	}
	t.reports = []workload.Report{t.report}
	return t.stretch
}

// doubt leaves out what a tool states of the times of an operation when its largest one is far below their mean: a
// version counted them in another unit than it says.
func (t *tally) doubt(name string, mean float64) {
	of := func(m result.Measure) bool {
		rest, ok := strings.CutPrefix(m.Name, name+"_")
		if !ok && len(t.operations) == 1 {
			rest, ok = m.Name, true
		}
		return ok && timeRank.MatchString(rest)
	}
	i := slices.IndexFunc(t.measures, func(m result.Measure) bool { return of(m) && strings.HasSuffix(m.Name, "max") })
	if i < 0 || !(t.report.Values[i]*unit.Seconds[t.measures[i].Unit] < mean/2) {
		return
	}
	t.notes = append(t.notes, fmt.Sprintf("its percentiles and largest time of %s are left out: they say at most %g %s, and "+
		"the sum of its times makes %.3g ms on average", name, t.report.Values[i], t.measures[i].Unit, mean*1e3))
	var measures []result.Measure
	var values []float64
	for i, m := range t.measures {
		if !of(m) {
			measures, values = append(measures, m), append(values, t.report.Values[i])
		}
	}
	t.measures, t.report.Values = measures, values
}

// timeRank are the ends of names of figures of times.
var timeRank = lazyregexp.New(`^(?:p\d+(?:\.\d+)?|max|min)$`)

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
