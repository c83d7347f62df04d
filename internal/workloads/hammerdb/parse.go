package hammerdb

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
	"plimsoll/unit"
)

// format holds what Parse needs to know of a job.
type format struct {
	Queries bool `json:"queries,omitempty"` // TPROC-H
}

// parser reads the lines that the worker prints: seconds since the start, a blank, a line of HammerDB's.
type parser struct {
	declared workload.Declared
	format   format
	sink     workload.Sink
	warner   workload.Warner
	lines    workload.Lines
	said     workload.Said
	out      workload.Outcome

	began    time.Time     // of the worker
	users    time.Duration // when the first of them began
	running  bool          //
	timed    bool          // the time of the test goes on
	ended    time.Duration // when it was over
	lost     uint64        // calls of procedures that HammerDB takes for no failure
	at       time.Duration // of the line
	last     time.Duration // of the report
	samples  int
	sampled  time.Duration // when the last sample was
	rest     float64       // TPM of the time between the last sample and the end of the test
	orders   []reading     // of the time that is timed
	result   hammer.Result
	profile  hammer.Profile
	queries  workload.Counters
	values   []float64
	failures uint64
	worked   bool
	waiting  *workload.Report // of a query: the last one is the final
}

var _ workload.Parser = (*parser)(nil)

// reading holds what the districts' order numbers came to at a moment.
type reading struct {
	at  time.Duration
	sum float64
}

// most is how far HammerDB's own figure may be from what was counted before it is said.
const most = 0.03

func newParser(d workload.Declared, sink workload.Sink) (*parser, error) {
	p := &parser{
		declared: d,
		sink:     sink,
		lines:    workload.Lines{Longest: longest},
		warner:   workload.Warner{Sink: sink, Tool: "HammerDB"},
	}
	if err := json.Unmarshal(d.Format, &p.format); err != nil {
		return nil, fmt.Errorf("hammerdb: the description of its output is damaged: %w", err)
	}
	p.said.Chatter = func(line string) bool {
		words := []string{"hammerdb: ", "error", "fail", "plimsoll", "unknown", "invalid", "no such", "not ", "cannot",
			"usage"}
		low := strings.ToLower(line)
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	p.queries.Hist = &hist.Histogram{}
	p.values = make([]float64, len(d.Measures))
	for i := range p.values {
		p.values[i] = math.NaN()
	}
	return p, nil
}

// longest bounds a line.
const longest = 64 << 10

// Feed implements workload.Parser.
func (p *parser) Feed(data []byte) { p.lines.Feed(data, func(line []byte) { p.line(string(line)) }) }

func (p *parser) line(line string) {
	stamp, text, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseFloat(stamp, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		p.said.Add([]byte(line))
		return
	}
	p.at = max(p.at, time.Duration(seconds*float64(time.Second)))
	if taken, err := p.profile.Line(text); taken {
		if err != nil {
			p.warner.Warn("time profile: %v", err)
		}
		return
	}
	if p.course(text) {
		return
	}
	if r, ok := hammer.Achieved(text); ok {
		p.result, p.worked = r, true
		return
	}
	if s, ok := hammer.Counter(text); ok && !p.format.Queries {
		// The first one is before anything has run; ramp-up and what comes after the test are no part of it. One that
		// comes after the test tells of its rest when most of its time is that.
		if p.samples++; p.samples > 1 && p.timed {
			p.sample(counterMeasure, s.TPM)
		} else if since := p.at - p.sampled; p.ended > 0 && p.rest == 0 && 2*(p.since()-p.ended) < since {
			p.rest = s.TPM
		}
		p.sampled = p.at
		return
	}
	if q, ok := hammer.ReadQuery(text); ok && p.format.Queries {
		p.query(q)
		return
	}
	if v, ok := hammer.QuerySet(text); ok {
		p.set("query_set", max(v, p.get("query_set")))
	}
	if v, ok := hammer.GeometricMean(text); ok {
		p.set("geometric_mean", max(v, p.get("geometric_mean")))
	}
	p.said.Add([]byte(text))
}

// course takes a line that may say how far the test has come, or what went wrong. It reports whether the line is the
// worker's own and says no more.
func (p *parser) course(text string) bool {
	if stamp, ok := strings.CutPrefix(text, hammer.Began); ok {
		if n, err := strconv.ParseInt(stamp, 10, 64); err == nil && n > 0 {
			p.began = time.Unix(0, n).UTC()
		}
		return true
	}
	if text, ok := strings.CutPrefix(text, hammer.Counted); ok {
		if sum, err := strconv.ParseFloat(text, 64); err == nil {
			p.counted(reading{p.at, sum})
		}
		return true
	}
	if why, ok := strings.CutPrefix(text, hammer.Uncounted); ok {
		p.warner.Warn("new orders are not counted beside HammerDB's own figure: %s", why)
		return true
	}
	switch {
	case strings.HasPrefix(text, "Transaction Counter Error"):
		p.warner.Warn("HammerDB's transaction counter does not run (%s): it needs a user that may look at all databases, of "+
			"PostgreSQL pg_superuser among settings and pg_superuserpass among passwords", text)
	case hammer.Failed(text) || hammer.Trouble(text):
		p.failures++
	case hammer.Swallowed(text):
		p.failures++
		p.lost++
	case p.format.Queries:
	case hammer.Begins(text) && !p.running:
		p.running, p.users = true, p.at
	case hammer.Times(text):
		if p.timed = true; !p.running {
			p.running, p.users = true, p.at
		}
		if p.since() > 0 { // a ramp-up is no part of what the counter's figures are of
			p.sample(counterMeasure, math.NaN())
		}
	case hammer.Ends(text):
		p.timed, p.ended = false, p.since()
	}
	return false
}

// since is how long the users have run.
func (p *parser) since() time.Duration { return p.at - p.users }

func (p *parser) index(name string) int {
	for i, m := range p.declared.Measures {
		if m.Name == name {
			return i
		}
	}
	return -1
}

func (p *parser) set(name string, v float64) {
	if i := p.index(name); i >= 0 {
		p.values[i] = v
	}
}

// get is a value, 0 where there is none yet.
func (p *parser) get(name string) float64 {
	if i := p.index(name); i >= 0 && !math.IsNaN(p.values[i]) {
		return p.values[i]
	}
	return 0
}

// give reports; a moment has one report.
func (p *parser) give(r workload.Report) {
	if r.Elapsed <= p.last {
		if !r.Final {
			return
		}
		r.Elapsed = p.last + time.Millisecond
	}
	if !p.began.IsZero() {
		r.Time = p.began.Add(p.users + r.Elapsed)
	}
	p.last, p.out.Reports = r.Elapsed, p.out.Reports+1
	p.sink.Report(r)
}

// counted takes a reading of the order numbers: the figure is of all the time, and the course, where HammerDB's own
// counter does not give one, of that between two.
func (p *parser) counted(r reading) {
	if p.orders = append(p.orders, r); len(p.orders) == 1 {
		return
	}
	before := p.orders[len(p.orders)-2]
	// The last one may be of no time. Of two courses each would take the other's time.
	if minutes := (r.at - before.at).Minutes(); minutes > 1.0/60 && p.samples == 0 {
		p.sample(courseMeasure, (r.sum-before.sum)/minutes)
	}
	p.orders = []reading{p.orders[0], r}
}

// finishOrders holds HammerDB's figure to what was counted.
func (p *parser) finishOrders() {
	if len(p.orders) < 2 {
		return
	}
	first, last := p.orders[0], p.orders[1]
	if last.at <= first.at {
		return
	}
	nopm := (last.sum - first.sum) / (last.at - first.at).Minutes()
	p.set(countedMeasure, nopm)
	if p.samples == 0 { // it is taken for what users did beyond, so that the mean is that of the time that is timed
		p.set(courseMeasure, nopm)
	}
	if math.Abs(p.result.NOPM-nopm) > most*max(p.result.NOPM, nopm) {
		p.warner.Warn("HammerDB says %.0f NOPM, and the districts' order numbers rose by %.0f in %v, which is %.0f a minute",
			p.result.NOPM, last.sum-first.sum, unit.Duration((last.at - first.at).Round(time.Millisecond)), nopm)
	}
}

func (p *parser) sample(measure string, value float64) {
	values := make([]float64, len(p.values))
	for i := range values {
		values[i] = math.NaN()
	}
	if i := p.index(measure); i >= 0 {
		values[i] = value
	}
	p.give(workload.Report{Elapsed: p.since(), Ops: make(workload.Counts, len(p.declared.Operations)), Values: values,
		Errors: p.failures})
}

func (p *parser) query(q hammer.Query) {
	p.worked = true
	p.queries.Ops++
	p.queries.Seconds += q.Seconds
	p.queries.Hist.Add(uint64(max(q.Seconds*1e9, 1)), 1)
	name := fmt.Sprintf("query_%02d", q.Number)
	p.set(name, max(q.Seconds, p.get(name)))
	if p.waiting != nil {
		p.give(*p.waiting)
	}
	c := p.queries
	c.Hist = c.Hist.Clone()
	p.waiting = &workload.Report{Elapsed: p.at, Ops: workload.Counts{c}, Values: slices.Clone(p.values),
		Errors: p.failures}
}

// Finish implements workload.Parser.
func (p *parser) Finish() (workload.Outcome, error) {
	p.lines.End(func(line []byte) { p.line(string(line)) })
	r := workload.Report{Elapsed: p.since(), Errors: p.failures, Final: true}
	if p.lost > 0 {
		p.warner.Warn("%s of HammerDB's procedures failed and their virtual users went on, as they do unless "+
			"pg_raiseerror is set: they are counted as failed", unit.Plural(int(min(p.lost, 1<<31)), "call"))
	}
	switch {
	case p.format.Queries && p.waiting != nil:
		r.Ops = p.waiting.Ops
	case !p.format.Queries && p.result.NOPM+p.result.TPM > 0:
		r.Ops = p.finishProfile()
		// What users did is over the time that they ran: starting them, and gathering their times, is none of it.
		if elapsed := cmp.Or(p.profile.Elapsed(), p.ended); elapsed > 0 && elapsed < p.since() {
			r.Elapsed = elapsed
		}
		p.set("NOPM", p.result.NOPM)
		p.finishOrders()
		p.set("TPM", p.result.TPM)
		if odd := p.result.Odd(); odd != "" {
			p.warner.Warn("%s", odd)
		}
		if p.samples > 1 { // a time without a sample would be taken for one without transactions
			p.set(counterMeasure, cmp.Or(p.rest, p.result.TPM))
		}
	default:
		p.out.Message, p.out.Errors = p.said.String(), p.failures
		if p.out.Reports == 0 {
			return p.out, errors.New("HammerDB: its output has neither a result nor a query that was completed")
		}
		return p.out, nil
	}
	r.Values = p.values
	p.give(r)
	p.out.Message, p.out.Errors = p.said.String(), p.failures
	return p.out, nil
}

// finishProfile counts what the time profile has of each kind.
func (p *parser) finishProfile() workload.Counts {
	counts := make(workload.Counts, len(p.declared.Operations))
	if len(counts) == 0 {
		return counts
	}
	if len(p.profile.Kinds) == 0 {
		p.warner.Warn("there is no time profile although it was asked for")
	}
	for i, o := range p.declared.Operations {
		t := p.profile.Of[o.Name]
		if t == nil {
			continue
		}
		counts[i] = workload.Counters{Ops: uint64(t.Calls), Seconds: t.TotalMS / 1e3}
		for key, v := range t.Stated {
			p.set(o.Name+"_"+strings.ReplaceAll(key, ".", "_"), v)
		}
	}
	if doubled := p.profile.Doubled(); doubled != "" {
		p.warner.Warn("%s", doubled)
	}
	return counts
}

// Worked implements workload.Parser.
func (p *parser) Worked() bool { return p.worked }

// Words implements workload.Parser.
func (p *parser) Words(text []byte) string { return p.said.Beyond(text) }
