package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
)

// line is a report in the raw output. Counters are cumulative, histograms in nanoseconds.
type line struct {
	Time    time.Time `json:"time"`
	Elapsed int64     `json:"elapsed_ns"`
	Read    *counted  `json:"read"`
	Write   *counted  `json:"write"`
	Trim    *counted  `json:"trim"`
	CPU     float64   `json:"cpu_seconds"`
	Errors  uint64    `json:"errors"`
	Final   bool      `json:"final"`
	// Sections are in the order of the job's streams, of jobs that tell them apart.
	Sections []section `json:"sections"`
}

type section struct {
	Stream int      `json:"lane"`
	Read   *counted `json:"read"`
	Write  *counted `json:"write"`
	Trim   *counted `json:"trim"`
}

type counted struct {
	Ops     uint64          `json:"ops"`
	Bytes   uint64          `json:"bytes"`
	Seconds float64         `json:"service_seconds"`
	Hist    *hist.Histogram `json:"service_time"`
}

// appendLine appends a report as a line of JSON, as encoding/json would write it and several times faster.
// at is where the operations of workload.BlockOrder are among the report's.
func appendLine(b []byte, r workload.Report, at [3]int) []byte {
	b = append(b, `{"time":"`...)
	b = r.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = strconv.AppendInt(append(b, `","elapsed_ns":`...), int64(r.Elapsed), 10)
	b = appendCounters(b, r.Ops, at)
	if r.CPUSeconds > 0 {
		b = strconv.AppendFloat(append(b, `,"cpu_seconds":`...), r.CPUSeconds, 'g', -1, 64)
	}
	if r.Errors > 0 {
		b = strconv.AppendUint(append(b, `,"errors":`...), r.Errors, 10)
	}
	if r.Final {
		b = append(b, `,"final":true`...)
	}
	for i, s := range r.Sections {
		if i == 0 {
			b = append(b, `,"sections":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"lane":`...), int64(i), 10)
		b = append(appendCounters(b, s, at), '}')
	}
	if len(r.Sections) > 0 {
		b = append(b, ']')
	}
	return append(b, "}\n"...)
}

func appendCounters(b []byte, all workload.Counts, at [3]int) []byte {
	for i, k := range at {
		if k < 0 || all[k].Ops == 0 {
			continue
		}
		c := all[k]
		b = strconv.AppendUint(append(b, directions[i]...), c.Ops, 10)
		b = strconv.AppendUint(append(b, `,"bytes":`...), c.Bytes, 10)
		b = strconv.AppendFloat(append(b, `,"service_seconds":`...), c.Seconds, 'g', -1, 64)
		if c.Hist != nil {
			b = c.Hist.AppendJSON(append(b, `,"service_time":`...))
		}
		b = append(b, '}')
	}
	return b
}

// directions are how the counters of each begin in a line, in workload.BlockOrder.
var directions = [3]string{`,"read":{"ops":`, `,"write":{"ops":`, `,"trim":{"ops":`}

// parseLine reads a line of a job with n operations, of which those of workload.BlockOrder are at. ok is false when it
// is no report.
func parseLine(text []byte, n int, at [3]int) (r workload.Report, ok bool) {
	if r, ok := quickLine(text, n, at); ok {
		return r, true
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil || l.Time.IsZero() {
		return workload.Report{}, false
	}
	unpack := func(all ...*counted) workload.Counts {
		out := make(workload.Counts, n)
		for i, c := range all {
			if c != nil && at[i] >= 0 {
				out[at[i]] = workload.Counters{Ops: c.Ops, Bytes: c.Bytes, Seconds: c.Seconds, Hist: c.Hist}
			}
		}
		return out
	}
	r = workload.Report{
		Time: l.Time, Elapsed: time.Duration(l.Elapsed), Ops: unpack(l.Read, l.Write, l.Trim),
		CPUSeconds: l.CPU, Errors: l.Errors, Final: l.Final,
	}
	for i, s := range l.Sections {
		if s.Stream != i {
			return workload.Report{}, false
		}
		r.Sections = append(r.Sections, unpack(s.Read, s.Write, s.Trim))
	}
	return r, true
}

// cursor goes through a line that appendLine wrote.
type cursor struct {
	rest []byte
	n    int    // operations of the job
	at   [3]int // those of the directions
	bad  bool
}

// skip goes past a text that may be next.
func (c *cursor) skip(text string) bool {
	rest, ok := bytes.CutPrefix(c.rest, []byte(text))
	if ok {
		c.rest = rest
	}
	return ok
}

// need goes past a text that must be next.
func (c *cursor) need(text string) { c.bad = c.bad || !c.skip(text) }

// until returns what comes before the next of the letters.
func (c *cursor) until(letters string) string {
	i := bytes.IndexAny(c.rest, letters)
	if i < 0 {
		c.bad = true
		return ""
	}
	text := c.rest[:i]
	c.rest = c.rest[i:]
	return string(text)
}

func (c *cursor) uint() uint64 {
	n, err := strconv.ParseUint(c.until(",}"), 10, 64)
	c.bad = c.bad || err != nil
	return n
}

func (c *cursor) float() float64 {
	f, err := strconv.ParseFloat(c.until(",}"), 64)
	c.bad = c.bad || err != nil
	return f
}

// hist reads a histogram, which has no braces inside.
func (c *cursor) hist() *hist.Histogram {
	end := bytes.IndexByte(c.rest, '}') + 1
	h := &hist.Histogram{}
	if end == 0 || h.UnmarshalJSON(c.rest[:end]) != nil {
		c.bad = true
		return nil
	}
	c.rest = c.rest[end:]
	return h
}

func (c *cursor) counters() workload.Counts {
	all := make(workload.Counts, c.n)
	var lost workload.Counters // of an operation that the job does not have
	for i, k := range c.at {
		if !c.skip(directions[i]) {
			continue
		}
		to := &lost
		if k >= 0 {
			to = &all[k]
		}
		to.Ops = c.uint()
		c.need(`,"bytes":`)
		to.Bytes = c.uint()
		c.need(`,"service_seconds":`)
		to.Seconds = c.float()
		if c.skip(`,"service_time":`) {
			to.Hist = c.hist()
		}
		c.need("}")
	}
	return all
}

func (c *cursor) sections() (all []workload.Counts) {
	for !c.bad {
		c.need(`{"lane":`)
		c.bad = c.uint() != uint64(len(all)) || c.bad
		s := c.counters()
		c.need("}")
		all = append(all, s)
		if c.skip("]") {
			break
		}
		c.need(",")
	}
	return all
}

// quickLine reads exactly what appendLine writes, several times faster than encoding/json.
func quickLine(text []byte, n int, at [3]int) (r workload.Report, ok bool) {
	c := cursor{rest: text, n: n, at: at}
	c.need(`{"time":"`)
	when, err := time.Parse(time.RFC3339Nano, c.until(`"`))
	r.Time = when
	c.need(`","elapsed_ns":`)
	r.Elapsed = time.Duration(c.uint())
	r.Ops = c.counters()
	if c.skip(`,"cpu_seconds":`) {
		r.CPUSeconds = c.float()
	}
	if c.skip(`,"errors":`) {
		r.Errors = c.uint()
	}
	r.Final = c.skip(`,"final":true`)
	if c.skip(`,"sections":[`) {
		r.Sections = c.sections()
	}
	c.need("}")
	return r, err == nil && !c.bad && len(c.rest) == 0
}
