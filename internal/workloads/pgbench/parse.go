package pgbench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	"plimsoll/result"
)

// TextOf says what is known of a text that pgbench printed, before it is read as a job's.
type TextOf struct {
	Rate     bool          // of --rate: times are response times
	Clocks   bool          // progress lines have times of day
	Interval time.Duration // between those; 0: a second
	Length   time.Duration // of the test, better than by the text; 0: as that has it
}

// DeclareText returns what a text of pgbench's counts that others kept. Parse reads it.
func DeclareText(o TextOf) workload.Declared {
	d := (&config{}).declared()
	if o.Rate {
		d.Latency = "response time"
	}
	d.Format, _ = json.Marshal(format{Text: true, Clocks: o.Clocks, Interval: o.Interval.Seconds(),
		Length: o.Length.Seconds()}) // plain values
	return d
}

func cutLine(text string) (line, rest string, found bool) {
	line, rest, found = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line), strings.TrimSpace(rest), found
}

// hint says what to do about pgbench's own words.
func hint(message string) string {
	for _, h := range []struct{ words, advice string }{
		{"password authentication failed", "give server: password: env:NAME or file:PATH of the right one"},
		{"no password supplied", "give server: password: env:NAME or file:PATH"},
		{"remaining connection slots", "take fewer clients, or have the server admit more (max_connections)"},
		{"too many clients already", "take fewer clients, or have the server admit more (max_connections)"},
		{"Connection refused", "see that the server runs and listens there"},
		{"terminating connection", "the server ended or was restarted under the load"},
		{"server closed the connection", "the server ended or was restarted under the load"},
		{`relation "pgbench_`, "its tables are not there: put a prefill step before, or run pgbench -i"},
	} {
		if strings.Contains(message, h.words) {
			return h.advice
		}
	}
	return ""
}

// behind is how many of pgbench's own reports are waited for before one stands in for the log's: at a low rate a thread
// hands over its log so late, a page of it at a time.
const behind = 3

// parser reads what the worker prints: pgbench's own lines, and States of its log. Of a job without a log, and of what
// others kept, pgbench's own lines are all there is.
type parser struct {
	declared workload.Declared
	format   format
	sink     workload.Sink
	warner   workload.Warner
	states   *workload.StateParser
	lines    workload.Lines
	said     workload.Said
	text     pgbench.Text

	began   time.Time         // by the worker
	zero    time.Time         // of progress lines with times of day, when the first began
	queue   []workload.Report // of progress lines that the log may still say better
	sum     workload.Counters // of all progress lines, a lower bound in the first mode, the nearest in the second
	rounded float64           // what sum was rounded from
	failed  uint64            // by all progress lines
	first   *workload.Report  // of the log, of nothing done: it is held back until there is more
	last    workload.Report
	reports int
}

var _ workload.Parser = (*parser)(nil)

func newParser(d workload.Declared, sink workload.Sink) (*parser, error) {
	p := &parser{
		declared: d,
		sink:     sink,
		lines:    workload.Lines{Longest: longest},
		warner:   workload.Warner{Sink: sink, Tool: Name},
	}
	if err := json.Unmarshal(d.Format, &p.format); err != nil || len(d.Operations) == 0 {
		return nil, fmt.Errorf("pgbench: the description of its output is damaged: %q", d.Format)
	}
	p.said.Chatter = chatter
	p.states = workload.NewStateParser(d, fromLog{p}, Name)
	return p, nil
}

// chatter says of a line that it is no word that matters to who looks for a cause.
func chatter(line string) bool {
	low := strings.ToLower(line)
	return strings.HasPrefix(low, "number of ") || !slices.ContainsFunc([]string{"error", "fatal", "could not", "abort",
		"plimsoll", "refused", "terminat", "closed", "hint", "detail", "unrecognized", "invalid", "cannot"},
		func(word string) bool { return strings.Contains(low, word) })
}

// longest bounds a line.
const longest = 8 << 20

// Feed implements workload.Parser.
func (p *parser) Feed(data []byte) { p.lines.Feed(data, p.line) }

func (p *parser) line(line []byte) {
	if !p.format.Text && bytes.HasPrefix(line, []byte("{")) {
		var own struct {
			Began       int64         `json:"began_ns"`
			Initialized time.Duration `json:"initialized_ns"`
		}
		switch err := json.Unmarshal(line, &own); {
		case err == nil && own.Began > 0:
			p.began = time.Unix(0, own.Began)
			return
		case err == nil && own.Initialized > p.last.Elapsed && p.format.Prefill && !p.last.Final:
			p.rows(own.Initialized, uint64(p.format.Scale)*pgbench.RowsOfScale, true)
			return
		}
		p.states.Feed(append(slices.Clone(line), '\n'))
		return
	}
	if p.format.Prefill {
		p.prefill(line)
		return
	}
	text := strings.TrimSuffix(string(line), "\r")
	progress, is := p.text.Line(text)
	switch {
	case !is:
		p.said.Add(line)
	case p.format.Text:
		p.addProgress(progress)
	case len(p.declared.Operations) == 1:
		p.standIn(progress)
	}
}

var tuples = lazyregexp.New(`^(\d{1,15}) of \d+ tuples \(\d+%\).* done \(elapsed ([0-9.]{1,12}) s`)

// prefill takes a line of pgbench -i. Where it can, it goes back in a line and writes it again.
func (p *parser) prefill(line []byte) {
	for part := range bytes.SplitSeq(line, []byte("\r")) {
		m := tuples.FindSubmatch(part)
		if m == nil {
			p.said.Add(part)
			continue
		}
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		seconds, err2 := strconv.ParseFloat(string(m[2]), 64)
		at := time.Duration(seconds * float64(time.Second))
		if err == nil && err2 == nil && at >= p.last.Elapsed+time.Second/2 && n >= p.last.Ops.Total() && !p.last.Final {
			p.rows(at, n, false)
		}
	}
}

func (p *parser) rows(at time.Duration, n uint64, final bool) {
	p.give(workload.Report{Elapsed: at, Final: final, Values: []float64{},
		Ops: workload.Counts{{Ops: max(n, p.last.Ops.Total()), Seconds: at.Seconds()}}})
}

// fromLog takes the reports of the log.
type fromLog struct{ *parser }

// Report implements workload.Sink.
func (l fromLog) Report(r workload.Report) {
	p := l.parser
	p.queue = slices.DeleteFunc(p.queue, func(q workload.Report) bool { return q.Elapsed <= r.Elapsed || r.Final })
	if p.reports > 0 && (r.Elapsed <= p.last.Elapsed || r.Ops.Total() < p.last.Ops.Total()) {
		return // pgbench's own lines have told of it
	}
	if p.reports == 0 && !r.Final && r.Ops.Total()+r.Errors == 0 {
		p.first = &r
		return
	}
	r.Errors = max(r.Errors, p.last.Errors)
	if p.first != nil && p.reports == 0 {
		p.give(*p.first)
	}
	p.give(r)
}

// Warn implements workload.Sink.
func (l fromLog) Warn(text string) { l.sink.Warn(text) }

// give reports, and keeps in mind.
func (p *parser) give(r workload.Report) {
	p.last = r
	p.reports++
	p.sink.Report(r)
}

// standIn holds what a progress line says until the log has said it, or is late.
func (p *parser) standIn(g pgbench.Progress) {
	if p.began.IsZero() || g.Time.IsZero() {
		return
	}
	length := time.Second
	if !p.zero.IsZero() {
		length = g.Time.Sub(p.zero)
	}
	p.zero = g.Time
	if length <= 0 || length > time.Hour {
		return
	}
	// The rate is printed to a tenth, the time to a millisecond: a few transactions can be told exactly, of many no
	// more is counted than there were.
	n := g.TPS * length.Seconds()
	if unsure := 0.05*length.Seconds() + g.TPS*0.001; unsure < 0.5 {
		n = math.Round(n)
	} else {
		n = math.Floor(n - unsure)
	}
	p.count(max(n, 0), g)
	r := workload.Report{Elapsed: g.Time.Sub(p.began), Ops: workload.Counts{p.sum}, Errors: p.failed}
	if p.queue = append(p.queue, r); len(p.queue) <= behind {
		return
	}
	r, p.queue = p.queue[0], p.queue[1:]
	if r.Elapsed <= p.last.Elapsed {
		return
	}
	r.Values, r.CPUSeconds = gaps(len(p.declared.Measures)), p.last.CPUSeconds
	for i, m := range p.declared.Measures {
		if m.Kind == result.Count && i < len(p.last.Values) {
			r.Values[i] = p.last.Values[i]
		}
	}
	if p.reports > 0 {
		was := p.last.Ops[0]
		r.Ops[0].Ops, r.Ops[0].Seconds = max(r.Ops[0].Ops, was.Ops), max(r.Ops[0].Seconds, was.Seconds)
		r.Errors = max(r.Errors, p.last.Errors)
	}
	p.give(r)
}

// count adds what a progress line tells.
func (p *parser) count(n float64, g pgbench.Progress) {
	p.rounded += n
	p.sum.Ops = uint64(math.Round(min(p.rounded, 1<<53)))
	if !math.IsNaN(g.MeanMS) {
		p.sum.Seconds += n * g.MeanMS / 1e3
	}
	p.failed += g.Failed
}

func gaps(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// addProgress takes a progress line where there is no log. One report is held back: the totals may correct it.
func (p *parser) addProgress(g pgbench.Progress) {
	step := time.Second
	if seconds := p.format.Interval; seconds > 0 && seconds < 1e6 {
		step = time.Duration(seconds * float64(time.Second))
	}
	r := workload.Report{Elapsed: g.Elapsed}
	if !g.Time.IsZero() {
		if p.zero.IsZero() {
			p.zero = g.Time.Add(-step)
		}
		if r.Elapsed = g.Time.Sub(p.zero); p.format.Clocks {
			r.Time = g.Time
		}
	}
	before := p.last.Elapsed
	if n := len(p.queue); n > 0 {
		before = p.queue[n-1].Elapsed
	}
	length := (r.Elapsed - before).Seconds()
	if length <= 0 || length > 1e6 {
		p.warner.Warn("a progress line after %v that goes back was left out", r.Elapsed)
		return
	}
	p.count(g.TPS*length, g)
	r.Ops, r.Errors, r.Values = workload.Counts{p.sum}, p.failed, gaps(len(p.declared.Measures))
	if len(p.queue) > 0 {
		p.give(p.queue[0])
	}
	p.queue = []workload.Report{r}
}

// Finish implements workload.Parser.
func (p *parser) Finish() (workload.Outcome, error) {
	p.lines.End(p.line)
	t := p.text.Totals()
	if p.format.Text {
		p.finishText(t)
	}
	if p.format.Scale > 0 && !math.IsNaN(t.Scale) && t.Scale != float64(p.format.Scale) {
		p.warner.Warn("the tables have scale %g, and %d was asked for: a prefill step makes them anew", t.Scale,
			p.format.Scale)
	}
	states, _ := p.states.Finish() // says that there were none, which is said below
	out := workload.Outcome{Reports: p.reports, Errors: p.last.Errors, Message: p.said.String(), Failure: t.Failure()}
	if out.Failure != "" {
		p.warner.Warn("%s", out.Failure)
		out.Message = out.Failure // the lines of single clients say the same again
	}
	if states.Message != "" {
		out.Message += "\n" + states.Message
	}
	if p.reports == 0 {
		return out, errors.New("pgbench: nothing in its output says what it has done")
	}
	return out, nil
}

// finishText makes the last report of the totals, where there are any.
func (p *parser) finishText(t pgbench.Totals) {
	r := workload.Report{Ops: workload.Counts{p.sum}, Errors: p.failed, Values: gaps(len(p.declared.Measures))}
	if n := len(p.queue); n > 0 {
		r, p.queue = p.queue[n-1], nil
	}
	if math.IsNaN(t.Processed) {
		if r.Elapsed > 0 {
			p.give(r)
		}
		return
	}
	seconds := t.Seconds
	if p.format.Length > 0 {
		seconds = p.format.Length
	}
	if !math.IsNaN(seconds) {
		// A last line of progress may come a little after the end.
		end := time.Duration(min(seconds, 1e8) * float64(time.Second))
		if end > r.Elapsed {
			if !r.Time.IsZero() {
				r.Time = r.Time.Add(end - r.Elapsed)
			}
			r.Elapsed = end
		}
	}
	if r.Elapsed <= p.last.Elapsed {
		return
	}
	r.Final = true
	was := workload.Counters{}
	if p.reports > 0 {
		was = p.last.Ops[0]
	}
	c := workload.Counters{Ops: max(uint64(min(t.Processed, 1<<53)), was.Ops), Seconds: r.Ops[0].Seconds}
	if !math.IsNaN(t.MeanMS) {
		c.Seconds = t.MeanMS / 1e3 * t.Processed
	}
	c.Seconds = max(c.Seconds, was.Seconds)
	r.Ops = workload.Counts{c}
	if !math.IsNaN(t.Failed) {
		r.Errors = max(p.last.Errors, uint64(min(t.Failed, 1<<53)))
	}
	values := map[string]float64{pgbench.RetriedMeasure: t.Retried, pgbench.RetriesMeasure: t.Retries,
		pgbench.SkippedMeasure: t.Skipped, pgbench.LateMeasure: t.Late}
	var names []string
	for _, m := range p.declared.Measures {
		names = append(names, m.Name)
	}
	pgbench.Singles(t, names, values)
	for i, name := range names {
		if v, known := values[name]; known {
			r.Values[i] = v
		}
	}
	p.give(r)
}

// Worked implements workload.Parser.
func (p *parser) Worked() bool { return p.reports > 0 && p.last.Ops.Total()+p.last.Errors > 0 }

// Words implements workload.Parser.
func (p *parser) Words(text []byte) string { return p.said.Beyond(text) }
