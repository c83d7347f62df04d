package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	pgbenchload "plimsoll/internal/workloads/pgbench"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	"plimsoll/result"
	"plimsoll/unit"
)

// pgbenchTest is one of the tests of a text: loops append their outputs to one file.
type pgbenchTest struct {
	lines    [][]byte // of progress apart, since the two streams may come in any order
	progress [][]byte
	at       time.Duration // of the last line of progress
	head     bool          // the line of the version was there
	kind     bool          // the line of the type of transactions was there
	totals   bool
	rate     bool // the last line of the totals was there
	bad      bool // an error was told
}

var (
	pgbenchProgress = lazyregexp.New(`^progress: ([0-9.]+) s, `)
	pgbenchAnyTotal = lazyregexp.New(`^(?:number of transactions actually processed: \d|tps = )`)
	pgbenchRate     = lazyregexp.New(`^tps = [0-9.]+ \((?:excluding|without|including reconnection)`)
	pgbenchTotal    = lazyregexp.New(`^(?:duration: |number of (?:clients|transactions actually processed): )\d`)
	pgbenchLag      = lazyregexp.New(`^(?:rate limit schedule lag|progress: .*\blag [\d.]+ ms)`)
	pgbenchWrong    = lazyregexp.New(`^pgbench: (?:error|fatal): `)
	pgbenchName     = lazyregexp.New(`[^a-z0-9_-]+`)
)

// readPgbench reads what pgbench prints, of one test or of several that were appended to one file.
func readPgbench(f format, r io.Reader) (*book, error) {
	b := &book{tool: "pgbench"}
	var tests []*pgbenchTest
	kept := 0
	err := eachLine(r, func(_ int, line []byte) error {
		line = bytes.TrimRight(line, "\r")
		if kept += len(line) + 1; kept > mostJSON {
			return fmt.Errorf("more than %d MiB of pgbench's lines: split the file", mostJSON>>20)
		}
		var t *pgbenchTest
		if len(tests) > 0 {
			t = tests[len(tests)-1]
		}
		head, kind := bytes.HasPrefix(line, []byte("pgbench (")), bytes.HasPrefix(line, []byte("transaction type: "))
		step, isStep := pgbenchStep(line)
		if t == nil || head && (t.head || t.totals || t.bad) || kind && (t.kind || t.totals) ||
			t.rate && pgbenchTotal.Match(line) || isStep && t.totals &&
			(len(t.progress) == 0 || step <= t.at) || isStep && step <= t.at && !t.totals && len(t.progress) > 0 {
			if len(tests) > mostStretches {
				return fmt.Errorf("more than %d tests in it: split the file", mostStretches)
			}
			t = &pgbenchTest{}
			tests = append(tests, t)
		}
		t.head, t.kind = t.head || head, t.kind || kind
		t.rate = t.rate || pgbenchRate.Match(line)
		t.totals, t.bad = t.totals || pgbenchAnyTotal.Match(line), t.bad || pgbenchWrong.Match(line)
		if isStep {
			t.at = step
			t.progress = append(t.progress, slices.Clone(line))
		} else {
			t.lines = append(t.lines, slices.Clone(line))
		}
		return nil
	})
	tests = rejoined(tests)
	for i, t := range tests {
		if bad := b.pgbenchTest(t, len(tests) > 1); bad != nil {
			if len(tests) == 1 {
				return b, errors.Join(bad, err)
			}
			said := bad.Error()
			if i := slices.IndexFunc(t.lines, pgbenchWrong.Match); i >= 0 {
				said = oneLine(string(t.lines[i]))
			}
			b.lost = cmp.Or(b.lost, fmt.Sprintf("test %d of %d: %s", i+1, len(tests), said))
		}
	}
	return b, err
}

func pgbenchStep(line []byte) (time.Duration, bool) {
	m := pgbenchProgress.FindSubmatch(line)
	if m == nil {
		return 0, false
	}
	v, err := quantity(string(m[1]))
	return time.Duration(min(v, 9e9) * float64(time.Second)), err == nil
}

// rejoined gives each test its own progress where the totals stand before it, as in a text that was put together of
// standard output and standard error.
func rejoined(tests []*pgbenchTest) []*pgbenchTest {
	n := len(tests)
	if n < 2 || len(tests[0].progress) > 0 || !tests[0].totals || tests[n-1].totals || len(tests[n-1].progress) == 0 {
		return tests
	}
	for i := range n - 1 {
		tests[i].progress, tests[i+1].progress = tests[i+1].progress, nil
	}
	tests[n-2].lines = append(tests[n-2].lines, tests[n-1].lines...)
	return tests[:n-1]
}

// reports keeps what a parser reports.
type reports struct {
	all      []workload.Report
	warnings []string
}

// Report implements workload.Sink.
func (r *reports) Report(rep workload.Report) { r.all = append(r.all, rep) }

// Warn implements workload.Sink.
func (r *reports) Warn(text string) { r.warnings = append(r.warnings, text) }

// pgbenchTest makes a stretch of a test, and one more of its scripts where it tells several apart.
func (b *book) pgbenchTest(test *pgbenchTest, several bool) error {
	var text pgbench.Text
	var steps []pgbench.Progress
	var o pgbenchload.TextOf
	all := slices.Concat(test.lines, test.progress)
	for _, line := range all {
		if p, ok := text.Line(string(line)); ok {
			steps = append(steps, p)
		}
		o.Rate = o.Rate || pgbenchLag.Match(line)
	}
	t := text.Totals()
	if t.Version != "" {
		b.tool = "pgbench " + t.Version
	}
	s := stretch{workload: "pgbench", latency: "service time"}
	if o.Rate { // a transaction's time counts from when it was due
		s.latency = "response time"
	}
	if t.Clients > 0 {
		s.workload, s.concurrency = "pgbench "+unit.Plural(int(min(t.Clients, 1e6)), "client"), t.Clients
	}
	switch {
	case t.Rate() > 0 && t.Processed > 0: // pgbench's own time, which begins when all clients are connected
		o.Length = time.Duration(min(t.Processed/t.Rate(), 1e8) * float64(time.Second))
	case len(steps) == 0 && math.IsNaN(t.Seconds):
		return errors.New("neither -T nor -P was used, so it does not say over what time it was measured")
	}
	if len(steps) > 0 {
		if o.Clocks = !steps[0].Time.IsZero(); o.Clocks {
			if len(steps) > 1 {
				o.Interval = steps[1].Time.Sub(steps[0].Time)
			} else {
				s.notes = append(s.notes, "its one line of progress is taken as being of one second")
			}
		}
	}
	d := pgbenchload.DeclareText(o)
	var kept reports
	outcome, err := pgbenchload.Engine{}.Parse(d, bytes.NewReader(append(bytes.Join(all, []byte("\n")), '\n')), &kept)
	if len(kept.all) == 0 {
		return errors.Join(err, errors.New("it holds no figures"))
	}
	b.skipped = append(b.skipped, kept.warnings...)
	s.operations, s.measures, s.reports, s.failure = d.Operations, d.Measures, kept.all, outcome.Failure
	last := &s.reports[len(s.reports)-1]
	s.length = last.Elapsed
	last.Errors += uint64(t.Aborted) // by an error that is not among those that it counts
	if !last.Time.IsZero() {
		s.start = last.Time.Add(-last.Elapsed)
	}
	switch {
	case s.failure != "":
	case t.Processed > 0 && math.IsNaN(t.Rate()):
		s.failure = "it ends within its totals: the file is cut short"
	case t.Trouble != "" && math.IsNaN(t.Processed):
		s.failure = "it ended before its totals: " + oneLine(t.Trouble)
	case math.IsNaN(t.Processed):
		s.notes = append(s.notes,
			"it holds no totals: they went elsewhere (standard output), or the test was ended before its time")
	case t.Trouble != "":
		s.notes = append(s.notes, "pgbench says: "+oneLine(t.Trouble))
	}
	if t.Type != "" {
		s.notes = append(s.notes, pgbenchSaid(t))
		script := scriptName(t.Type)
		if len(t.Scripts) > 1 {
			var all []string
			for _, of := range t.Scripts {
				all = append(all, fmt.Sprintf("%s@%g", scriptName(of.Name), of.Weight))
			}
			script = strings.Join(all, ", ")
		}
		s.facts = append(s.facts, asked("script", script), asked("mode", t.Mode))
		switch { // before 14 no text tells -C
		case t.Reconnects:
			s.facts = append(s.facts, asked("connections", "one for each transaction"))
		case !math.IsNaN(t.ConnectMS):
			s.facts = append(s.facts, asked("connections", "kept"))
		}
		switch {
		case !math.IsNaN(t.PerClient):
			s.facts = append(s.facts, asked("runtime", fmt.Sprintf("%g transactions of each client", t.PerClient)))
		case !math.IsNaN(t.Seconds):
			s.facts = append(s.facts, asked("runtime", fmt.Sprintf("%gs", t.Seconds)))
		}
		if !math.IsNaN(t.Scale) {
			s.facts = append(s.facts, asked("scale", strconv.FormatFloat(t.Scale, 'g', -1, 64)))
		}
	}
	s.unseen = []string{
		"percentiles of latency: pgbench prints means; its log (-l) holds every transaction",
		"the storage underneath: pgbench counts no I/O of devices",
	}
	s.figures(pgbenchFigures(t))
	if len(t.Scripts) < 2 {
		statementMeans(&s, t, nil)
		b.stretches = append(b.stretches, s)
		return nil
	}
	b.stretches = append(b.stretches, s, scriptsOf(s, t))
	return nil
}

// pgbenchSaid returns what a test was of.
func pgbenchSaid(t pgbench.Totals) string {
	said := "transactions: " + oneLine(t.Type)
	if !math.IsNaN(t.Scale) {
		said += fmt.Sprintf("; scale %g", t.Scale)
	}
	if t.Mode != "" {
		said += "; query mode " + oneLine(t.Mode)
	}
	return said
}

// scriptName is a script's name as that of an operation: the builtin's as --builtin takes it, or its file's.
func scriptName(name string) string {
	for long, short := range map[string]string{"TPC-B (sort of)": "tpcb-like", "simple update": "simple-update",
		"select only": "select-only"} {
		if strings.Contains(name, "<builtin: "+long+">") {
			return short
		}
	}
	name = strings.ToLower(path.Base(strings.ReplaceAll(name, "\\", "/")))
	name = strings.Trim(pgbenchName.ReplaceAllString(strings.TrimSuffix(name, path.Ext(name)), "-"), "-")
	return cmp.Or(name[:min(len(name), 40)], "script")
}

// scriptsOf returns what the scripts of a test did, each an operation, beside the test as a whole.
func scriptsOf(all stretch, t pgbench.Totals) stretch {
	s := stretch{workload: all.workload + ", by script", latency: all.latency, start: all.start,
		length: all.length, beside: true, again: true}
	rep := workload.Report{Elapsed: s.length, Final: true}
	var names []string
	for _, of := range t.Scripts {
		name := scriptName(of.Name)
		for n, first := 2, name; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		names = append(names, name)
		s.operations = append(s.operations, result.Operation{Name: name, Noun: "transactions"})
		c := workload.Counters{Ops: whole(of.Processed)}
		if !math.IsNaN(of.MeanMS) {
			c.Seconds = of.MeanMS / 1e3 * of.Processed
		}
		rep.Ops = append(rep.Ops, c)
		if of.Failed > 0 {
			rep.Errors += whole(of.Failed)
			s.measures = append(s.measures, single(name+"_failed", "transactions"))
			rep.Values = append(rep.Values, of.Failed)
		}
	}
	s.reports = []workload.Report{rep}
	s.notes = []string{"the same transactions as in " + all.workload + ", told apart by script"}
	statementMeans(&s, t, names)
	return s
}

// pgbenchFigures are pgbench's counts of transactions that did not go as they were meant to, and its lags.
func pgbenchFigures(t pgbench.Totals) (all []result.Measure, values []float64) {
	for _, f := range []struct {
		name, unit string
		value      float64
	}{{pgbench.SkippedMeasure, "transactions", t.Skipped}, {pgbench.LateMeasure, "transactions", t.Late},
		{pgbench.RetriedMeasure, "transactions", t.Retried}, {pgbench.RetriesMeasure, "retries", t.Retries},
		{pgbench.LagMean, "ms", t.LagMS}, {pgbench.LagMax, "ms", t.LagMaxMS}} {
		if !math.IsNaN(f.value) {
			all, values = append(all, single(f.name, f.unit)), append(values, f.value)
		}
	}
	return all, values
}

// figures adds figures of the tool's own to the last report of a stretch.
func (s *stretch) figures(all []result.Measure, values []float64) {
	s.measures = append(s.measures, all...)
	for i := range s.reports {
		r := &s.reports[i]
		if r.Values = slices.Clone(r.Values); i == len(s.reports)-1 {
			r.Values = append(append(r.Values, gaps(len(s.measures)-len(all)-len(r.Values))...), values...)
		}
		r.Values = append(r.Values, gaps(len(s.measures)-len(r.Values))...)
	}
}

// statementMeans adds the means of statements (-r) to the last report of a stretch; scripts are the names of several.
func statementMeans(s *stretch, t pgbench.Totals, scripts []string) {
	var all []result.Measure
	var values []float64
	number := map[int]int{}
	for _, st := range t.Statements {
		if strings.HasPrefix(st.Text, `\`) {
			continue
		}
		word := "sql"
		if words := pgbench.StatementWords(st.Text + ";"); len(words) > 0 {
			word = words[0]
		}
		number[st.Script]++
		name := fmt.Sprintf("%s%d_%s", pgbench.StatementWord, number[st.Script], word)
		if st.Script < len(scripts) {
			name = scripts[st.Script] + "_" + name
		}
		if len(all) >= mostColumns {
			break
		}
		all, values = append(all, single(name, "ms")), append(values, st.MeanMS)
	}
	s.figures(all, values)
}
