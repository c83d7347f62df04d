package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
	"plimsoll/result"
	"plimsoll/unit"
)

const (
	hammerdb        = "hammerdb"
	hammerdbTcount  = "hammerdb-tcount"
	hammerdbProfile = "hammerdb-profile"
	hammerdbJSON    = "hammerdb-json"
)

var (
	hammerAny = lazyregexp.New(`(?m)^HammerDB CLI v|^Hammerdb Log @|System achieved \d+ |^Vuser \d+:|^Virtual User \d+: \S|` +
		`^Copyright \(C\) [-\d]+ Steve Shaw`)
	hammerTcountAny  = lazyregexp.New(`^(?:\s*)Hammerdb Transaction Counter Log @ `)
	hammerProfileAny = lazyregexp.New(`(?m)^.{0,40}Hammerdb Time Profile Report @ `)
	hammerTold       = lazyregexp.New(`(?m)^HammerDB CLI v|System achieved \d+ |^Vuser \d+:`)
	hammerJSONAny    = lazyregexp.New(`"(?:TEST RESULT : )?System achieved |"TEST RESULT : |"[\w ]{1,30} tpm"\s*:\s*\{|` +
		`"(?:NEWORD|PAYMENT)"\s*:\s*\{|"schema"\s*:\s*"hammerdb-job-report-|"Geometric mean of query times`)
	hammerSays  = lazyregexp.New(`^Virtual User (\d{1,6}): (.*)$`)
	hammerList  = lazyregexp.New(`^\w+ \{elapsed_ms [\d.]+ calls |^\{[^{}]{1,40} tpm\} \{\{`)
	hammerQuery = lazyregexp.New(`query \d+ completed in [\d.]+ seconds`)
	hammerBuild = lazyregexp.New(`(?m)^BUILD RETURNED|Vuser \d+:(?:CREATING|Loading |TPCC? SCHEMA COMPLETE)`)
	hammerTest  = lazyregexp.New(`Processing \d+ transactions with(?:out)? output suppressed`)
	hammerStamp = lazyregexp.New(`^Timestamp \d+ @ (.{20,40})$`)
	hammerOver  = lazyregexp.New(`^HammerDB CLI v|^Vuser 1 created|^ALL VIRTUAL USERS COMPLETE`)
	hammerBegin = lazyregexp.New(`^Vuser 1 created|^Vuser 1:(?:RUNNING|Beginning rampup time)`)
	hammerHead  = lazyregexp.New(`^(.{0,40}?)\s*Hammerdb (?:Transaction Counter Log|Time Profile Report|Log) @ (.{20,40})$`)
)

func hammerReaders() []reader {
	return []reader{{
		name: hammerdbTcount, holds: "HammerDB's transaction counter log (hdbtcount.log)", book: true,
		recognise: hammerTcountAny.Match,
	}, {
		name: hammerdbProfile, holds: "HammerDB's time profile (hdbxtprofile.log), a time per transaction", book: true,
		recognise: func(head []byte) bool { return hammerProfileAny.Match(head) && !hammerTold.Match(head) },
	}, {
		name: hammerdbJSON, holds: "JSON of HammerDB's jobs: result, timing, transaction counter", book: true,
		recognise: func(head []byte) bool {
			begin := bytes.TrimLeft(head, " \t\r\n")
			return len(begin) > 0 && (begin[0] == '{' || begin[0] == '[' || bytes.HasPrefix(begin, []byte("---"))) &&
				hammerJSONAny.Match(head)
		},
	}, {
		name: hammerdb, holds: "what HammerDB's command line or log says of TPROC-C and TPROC-H", book: true,
		recognise: hammerAny.Match,
	}}
}

// hammerRun is one test of TPROC-C on its way.
type hammerRun struct {
	minutes float64
	users   float64
}

// hammerQueries are the queries of TPROC-H that were timed.
type hammerQueries struct {
	n, users  int
	seconds   float64
	byUser    map[string]float64
	ended     int // lines of completed sets
	longest   map[int]float64
	set       float64 // how long a set of queries took at most
	geometric float64
}

type hammerParser struct {
	book    book
	head    time.Time // of a log
	at      time.Time // of the line before, where it is stamped
	test    hammerRun
	queries hammerQueries
	failed  int    // virtual users of the test on its way, or of the last one
	begun   bool   // the test on its way has begun, and what failed is not of the one before
	lost    uint64 // its transactions that failed and were not said to
	trouble string // the first line about what went wrong
	build   bool
	driver  bool
	secret  bool
	zone    string
	local   bool // times without a zone
	samples []hammerSample
	counter string // what the database is, by the counter
	gap     time.Duration
	figures int  // of the counter, without times
	whole   bool // some times of queries have lost their fractions
	profile hammer.Profile
	passing bool   // there are percentiles of intervals (etprof)
	next    func() // what follows is of a further job
}

// hammerSample is one figure of the transaction counter.
type hammerSample struct {
	at  time.Time
	tpm float64
}

func newHammerParser(f format) *hammerParser {
	return &hammerParser{book: book{tool: "HammerDB"}, gap: time.Duration(f.Seconds * float64(time.Second)),
		profile: hammer.Profile{Of: map[string]*hammer.Transaction{}},
		queries: newHammerQueries(), next: func() {}}
}

func newHammerQueries() hammerQueries {
	return hammerQueries{byUser: map[string]float64{}, longest: map[int]float64{}}
}

func readHammerText(f format, r io.Reader) (*book, error) {
	p := newHammerParser(f)
	err := eachLine(r, func(n int, line []byte) error {
		text := strings.Trim(string(bytes.ToValidUTF8(line, []byte("?"))), " \t\r")
		if m := hammerSays.FindStringSubmatch(text); m != nil { // as jobs JOBID prints what was said
			text = hammerSaid(m[1], m[2])
		}
		return p.line(n, text, f.Reader)
	})
	return &p.book, errors.Join(err, p.close(f))
}

// hammerSaid is a line that a job kept as its virtual user printed it. Number 0 is of who starts the others.
func hammerSaid(user, text string) string {
	if user == "0" || strings.HasPrefix(text, "Vuser ") {
		return text
	}
	return "Vuser " + user + ":" + text
}

// date reads a date as Tcl writes it. Zones other than UTC are names that mean several things.
func (p *hammerParser) date(text string) (time.Time, bool) {
	at, zone, ok := hammer.Date(text)
	p.zone = cmp.Or(zone, p.zone)
	return at, ok
}

// line takes a line of a text that a reader reads.
func (p *hammerParser) line(n int, text, reader string) error {
	p.secret = p.secret || hammer.Secret(text)
	if m := hammerHead.FindStringSubmatch(text); m != nil {
		switch { // what came before is of another run, whose log was appended to
		case reader == hammerdbTcount && len(p.samples) > 0:
			p.closeCounter()
			p.samples = nil
		case reader == hammerdbProfile && len(p.profile.Kinds) > 0:
			p.closeProfile(p.head)
			p.profile = hammer.Profile{Of: map[string]*hammer.Transaction{}}
		}
		if len(p.book.stretches) > mostStretches {
			return fmt.Errorf("more than %d runs in it: split the file", mostStretches)
		}
		p.head, _ = p.date(m[2])
		if m[1] != "" {
			p.counter = oneLine(m[1])
		}
		return nil
	}
	if m := hammerStamp.FindStringSubmatch(text); m != nil {
		p.at, _ = p.date(m[1])
		return nil
	}
	switch reader {
	case hammerdbTcount:
		return p.count(n, text)
	case hammerdbProfile:
		_, err := p.profileLine(n, text)
		return err
	}
	if taken, err := p.profileLine(n, text); taken || err != nil {
		return err
	}
	p.passing = p.passing || strings.Contains(text, "|PERCENTILES ")
	p.driver = p.driver || hammerTest.MatchString(text)
	p.build = p.build || hammerBuild.MatchString(text)
	if hammerOver.MatchString(text) { // of a further call, or of further virtual users
		p.closeQueries()
	}
	if v, ok := hammer.Version(text); ok {
		p.book.tool = "HammerDB " + v
	}
	minutes, timed := hammer.Minutes(text)
	if begins := hammerBegin.MatchString(text); (begins || timed) && (!p.begun || p.test.minutes > 0) {
		p.endTest()
		p.test, p.begun = hammerRun{}, begins
	}
	if timed {
		p.test = hammerRun{minutes: minutes}
	}
	if users, ok := hammer.Users(text); ok {
		p.test.users = users
	}
	p.wrong(text)
	if r, ok := hammer.Achieved(text); ok {
		return p.achieved(n, r)
	}
	if one, ok := hammer.ReadQuery(text); ok {
		q := &p.queries
		if len(q.byUser) >= mostColumns || len(q.longest) >= mostColumns {
			return errors.New("more virtual users than can be told apart")
		}
		q.n++
		q.seconds += one.Seconds
		q.byUser[one.User] += one.Seconds
		q.longest[one.Number] = max(q.longest[one.Number], one.Seconds)
	}
	if seconds, ok := hammer.QuerySet(text); ok {
		p.queries.set, p.queries.ended = max(p.queries.set, seconds), p.queries.ended+1
	}
	if mean, ok := hammer.GeometricMean(text); ok {
		p.queries.geometric = mean
		p.queries.users++
	}
	if hammerList.MatchString(text) {
		p.book.skip(n, "it is a list of Tcl, which is not read: "+tclLists)
	}
	if sample, ok := hammer.Counter(text); ok {
		p.counter = sample.Database
		p.figures++
	}
	return nil
}

// wrong takes a line that may say what went wrong.
func (p *hammerParser) wrong(text string) {
	switch {
	case hammer.Failed(text):
		p.failed++
	case hammer.Swallowed(text):
		p.lost++
	case !hammer.Trouble(text) || p.trouble != "":
	default:
		p.trouble = oneLine(text)
	}
}

// failure returns what the test's virtual users came to, "" when none failed.
func (p *hammerParser) failure(users float64) string {
	if p.failed == 0 {
		return ""
	}
	said := unit.Plural(p.failed, "virtual user")
	if users > 0 {
		said = fmt.Sprintf("%d of %s", p.failed, unit.Plural(int(users), "virtual user"))
	}
	if said += " FINISHED FAILED"; p.trouble != "" {
		said += ": " + p.trouble
	}
	return said
}

// endTest gives the last test what was said after its result: its time profile, its errors.
func (p *hammerParser) endTest() {
	n := len(p.book.stretches)
	if p.test.minutes > 0 || p.begun && p.failed > 0 { // what was said is of a test without a result
		p.book.lost = cmp.Or(p.book.lost, p.failure(p.test.users), p.trouble,
			`a test in it has no "TEST RESULT": it was cut short, or the file is`)
	} else if n > 0 {
		s := &p.book.stretches[n-1]
		last := &s.reports[len(s.reports)-1]
		s.failure = cmp.Or(p.failure(s.concurrency), s.failure)
		last.Errors += uint64(p.failed)
		if p.lost > 0 {
			last.Errors += p.lost
			s.notes = append(s.notes, fmt.Sprintf("%s of HammerDB's procedures failed and their virtual users went on, as "+
				"they do unless raiseerror is set", unit.Plural(int(min(p.lost, 1<<31)), "call")))
		}
	}
	p.failed, p.lost, p.trouble = 0, 0, ""
	if len(p.profile.Kinds) == 0 {
		return
	}
	if p.closeProfile(p.head); len(p.book.stretches) > n && n > 0 {
		beside := &p.book.stretches[n]
		beside.beside, beside.start, beside.concurrency = true, time.Time{}, 0
		if before := &p.book.stretches[n-1]; before.start.IsZero() && !p.head.IsZero() {
			before.start = p.head.Add(-max(before.length, beside.length))
		}
	}
	p.profile = hammer.Profile{Of: map[string]*hammer.Transaction{}}
}

// number is a figure of digits that a pattern has found.
func number(text string) float64 {
	v, err := quantity(text)
	if err != nil {
		return 0
	}
	return v
}

// hammerRates are what HammerDB states of a test of TPROC-C.
func hammerRates() []result.Measure {
	return []result.Measure{
		{Name: "NOPM", Unit: "NOPM", Better: result.Higher, Kind: result.Level},
		{Name: "TPM", Unit: "TPM", Better: result.Higher, Kind: result.Level},
	}
}

const hammerTPMNote = "NOPM are new orders a minute, by which databases may be compared; TPM are the database's own " +
	"transactions, by which only runs of one database may. Neither is an audited result of a TPC benchmark"

// achieved makes a test of a result line. One without its time says again what stands above it, or leaves too much out.
func (p *hammerParser) achieved(n int, r hammer.Result) error {
	if p.test.minutes <= 0 {
		if k := len(p.book.stretches); k == 0 || !slices.Equal(p.book.stretches[k-1].reports[0].Values,
			[]float64{r.NOPM, r.TPM}) {
			p.book.skip(n, "%.0f NOPM from %.0f TPM, without how long the test was: give all lines of the job "+
				"(jobs JOBID)", r.NOPM, r.TPM)
		}
		return nil
	}
	s := stretch{workload: "TPROC-C", concurrency: p.test.users, measures: hammerRates()}
	if p.test.users > 0 {
		s.workload += fmt.Sprintf(" %g VU", p.test.users)
	}
	s.length = time.Duration(p.test.minutes * float64(time.Minute))
	s.reports = []workload.Report{{Elapsed: s.length, Values: []float64{r.NOPM, r.TPM}, Final: true}}
	if !p.at.IsZero() {
		s.start = p.at.Add(-s.length)
	}
	s.notes = []string{hammerTPMNote, "database: " + oneLine(r.Database)}
	s.facts = append(s.facts, asked("database", r.Database))
	if odd := r.Odd(); odd != "" {
		s.notes = append(s.notes, odd)
	}
	latency := "latency: the result has none; the time profile (xtprof) has"
	if p.passing {
		latency = "latency: the time profile in it (etprof) is of intervals of one virtual user, which nothing combines; " +
			"xtprof is of all"
	}
	s.unseen = []string{latency, "the storage underneath: HammerDB counts no I/O"}
	p.book.stretches = append(p.book.stretches, s)
	p.test, p.begun = hammerRun{}, false
	return nil
}

// count takes a line of the transaction counter.
func (p *hammerParser) count(n int, text string) error {
	found, ok := hammer.Counter(text)
	if !ok {
		if text != "" && !strings.HasPrefix(text, "+-") {
			p.book.skip(n, "no figure of the counter: %.60q", text)
		}
		return nil
	}
	if len(p.samples) >= mostRows {
		return fmt.Errorf("more than %d samples: split the file", mostRows)
	}
	p.counter = found.Database
	s := hammerSample{tpm: found.TPM}
	if found.At != "" {
		if at, ok := p.date(found.At); ok {
			s.at = at
		}
	}
	p.samples = append(p.samples, s)
	return nil
}

// profileLine takes a line of a time profile.
func (p *hammerParser) profileLine(n int, text string) (bool, error) {
	taken, err := p.profile.Line(text)
	if err != nil && len(p.profile.Kinds) < 32 {
		p.book.skip(n, "%v", err)
		return taken, nil
	}
	return taken, err
}

// close makes stretches of what was found.
func (p *hammerParser) close(f format) error {
	b := &p.book
	broken := cmp.Or(p.failure(p.test.users), p.trouble)
	switch f.Reader {
	case hammerdbTcount:
		p.closeCounter()
	case hammerdbProfile:
		p.closeProfile(p.head)
	default:
		p.closeQueries()
		p.endTest()
		if p.figures > 0 && f.Reader == hammerdb {
			b.notes = append(b.notes, fmt.Sprintf("%s of the transaction counter in it have no times and are left out: "+
				"its log (hdbtcount.log) has them", unit.Plural(p.figures, "figure")))
		}
	}
	if p.secret {
		b.notes = append(b.notes, "HammerDB prints passwords of the database, and a run folder keeps the file as it is: "+
			"think of that before it is passed on")
	}
	if p.zone != "" {
		b.notes = append(b.notes, fmt.Sprintf("its times are in zone %q, a name that means several, and are read as UTC",
			oneLine(p.zone)))
	}
	if p.local {
		b.notes = append(b.notes, "its times have no time zone and are read as UTC")
	}
	if len(b.stretches) > 0 || f.Reader != hammerdb {
		return nil
	}
	switch {
	case p.build:
		return errors.New("it is of building a schema, which is no measurement; import the output of the test that follows")
	case p.test.minutes > 0 && broken != "":
		return fmt.Errorf(`it holds no "TEST RESULT": %s`, broken)
	case p.test.minutes > 0:
		return errors.New(`it holds no "TEST RESULT": the test was cut short, or the file is`)
	case p.driver:
		return errors.New(`it is of a test driver without a time (pg_driver and others "test"), which states no result; ` +
			`"timed" does`)
	}
	return nil
}

func (p *hammerParser) closeQueries() {
	q := p.queries
	if q.n == 0 && (q.set == 0 || q.geometric == 0) {
		return
	}
	s := stretch{workload: "TPROC-H", concurrency: float64(len(q.byUser))}
	longest := slices.Max(append(slices.Collect(maps.Values(q.byUser)), q.set))
	s.length = time.Duration(longest * float64(time.Second))
	rep := workload.Report{Elapsed: s.length, Final: true}
	if q.n > 0 { // else a job's result, which has no query of its own
		s.operations = []result.Operation{{Name: "query", Noun: "queries", Set: true}}
		rep.Ops = workload.Counts{{Ops: uint64(q.n), Seconds: q.seconds}}
	}
	if p.whole {
		rep.Ops[0].Seconds = 0
		s.notes = append(s.notes, "its JSON has times of queries of 10 s and more without their fractions, up to a second too "+
			"short: there is no mean of them")
	}
	if q.set == 0 {
		s.failure = "it does not say that a set of queries was completed: the test, or the file, is cut short"
	} else if open := len(q.byUser) - q.ended; open > 0 && !p.whole {
		s.failure = fmt.Sprintf("%d of its %d users did not complete their queries: the test, or the file, is cut short", open,
			len(q.byUser))
	}
	if q.geometric > 0 && q.users == 1 {
		s.measures = append(s.measures, single("geometric_mean", "s"))
		rep.Values = append(rep.Values, q.geometric)
	}
	if q.set > 0 {
		s.measures, rep.Values = append(s.measures, single("query_set", "s")), append(rep.Values, q.set)
	}
	for _, which := range slices.Sorted(maps.Keys(q.longest)) {
		s.measures = append(s.measures, single(fmt.Sprintf("query_%02d", which), "s"))
		rep.Values = append(rep.Values, q.longest[which])
	}
	if len(q.byUser) > 1 || q.n > len(q.longest) {
		s.notes = append(s.notes, "a query that ran several times has the longest of its times")
	}
	s.notes = append(s.notes, "no audited result of a TPC benchmark")
	if !p.at.IsZero() {
		s.start = p.at.Add(-s.length)
	}
	s.unseen = []string{"percentiles of latency: so few queries have none",
		"the storage underneath: HammerDB counts no I/O"}
	s.reports = []workload.Report{rep}
	p.book.stretches = append(p.book.stretches, s)
	p.queries = newHammerQueries()
}

// closeCounter makes a course of the transaction counter. Its first figure comes before anything has run.
func (p *hammerParser) closeCounter() {
	s := stretch{workload: "transaction counter", measures: hammerRates()[1:]}
	var zero, before time.Time
	for i, sample := range p.samples {
		switch {
		case !sample.at.IsZero():
		case p.gap > 0:
			sample.at = p.head.Add(time.Duration(i) * p.gap)
		default:
			p.book.skipped = append([]string{"its samples have no times: say how far apart they are with " +
				"--interval, or let HammerDB write times (tcset timestamps true)"}, p.book.skipped...)
			return
		}
		if i == 0 {
			zero, before = sample.at, sample.at
			continue
		}
		if !sample.at.After(before) {
			p.book.skipped = append(p.book.skipped, fmt.Sprintf("sample %d: its time does not go on", i+1))
			continue
		}
		before = sample.at
		s.reports = append(s.reports, workload.Report{Elapsed: sample.at.Sub(zero), Values: []float64{sample.tpm}})
	}
	if len(s.reports) == 0 {
		return
	}
	s.reports[len(s.reports)-1].Final = true
	s.start, s.length = zero, before.Sub(zero)
	if p.head.IsZero() && p.gap > 0 {
		s.start = time.Time{}
	}
	s.notes = []string{"TPM of " + oneLine(p.counter) + ": the database's own transactions, with those of its ramp-up"}
	s.unseen = []string{"NOPM: the counter counts the database's transactions, not new orders",
		"latency: the time profile (xtprof) has it"}
	p.book.stretches = append(p.book.stretches, s)
}

// closeProfile makes one report of a time profile.
func (p *hammerParser) closeProfile(end time.Time) {
	s := stretch{workload: "TPROC-C profile"}
	if p.profile.Users > 0 {
		s.workload = fmt.Sprintf("TPROC-C profile %d VU", p.profile.Users)
		s.concurrency = float64(p.profile.Users)
	}
	rep := workload.Report{Final: true}
	for _, kind := range p.profile.Kinds {
		t := p.profile.Of[kind]
		s.operations = append(s.operations, result.Operation{Name: kind, Noun: kind + " calls"})
		rep.Ops = append(rep.Ops, workload.Counters{Ops: whole(t.Calls), Seconds: t.TotalMS / 1e3})
		for _, key := range slices.Sorted(maps.Keys(t.Stated)) {
			s.measures = append(s.measures, single(kind+"_"+key, "ms"))
			rep.Values = append(rep.Values, t.Stated[key])
		}
	}
	if len(p.profile.Kinds) == 0 || p.profile.LongestMS <= 0 {
		return
	}
	s.length = p.profile.Elapsed()
	rep.Elapsed = s.length
	if !end.IsZero() {
		s.start = end.Add(-s.length)
	}
	s.reports = []workload.Report{rep}
	s.notes = []string{"calls are those of the virtual users added up; percentiles are HammerDB's own of all of them"}
	if !p.profile.Summary && p.profile.Users > 1 {
		s.notes = []string{"it has no summary of all virtual users: percentiles of single users are left out, for " +
			"nothing can be made of them"}
	}
	if doubled := p.profile.Doubled(); doubled != "" {
		s.notes = append(s.notes, doubled)
	}
	s.unseen = []string{"percentiles of latency but those that HammerDB states",
		"the storage underneath: HammerDB counts no I/O"}
	p.book.stretches = append(p.book.stretches, s)
}

// object takes one member of a job's timing or of its counter.
func (p *hammerParser) object(line int, key string, of map[string]string) error {
	if database, ok := strings.CutSuffix(key, " tpm"); ok {
		if len(p.samples) > 0 {
			p.next()
		}
		for _, at := range slices.Sorted(maps.Keys(of)) {
			t, err := time.Parse(time.DateTime, at)
			v, err2 := quantity(of[at])
			if err != nil || err2 != nil {
				p.book.skip(line, "a sample of the counter that cannot be read: %.40q %.40q", at, of[at])
				continue
			}
			if p.counter = database; len(p.samples) >= mostRows {
				return fmt.Errorf("more than %d samples", mostRows)
			}
			p.samples = append(p.samples, hammerSample{at: t, tpm: v})
			p.local = true
		}
		return nil
	}
	if of["calls"] == "" || of["elapsed_ms"] == "" || len(key) > 40 {
		return nil
	}
	kind := strings.ToLower(oneLine(key))
	if p.profile.Of[kind] != nil {
		p.next()
	}
	if len(p.profile.Kinds) >= 32 {
		return errors.New("more than 32 kinds of transactions")
	}
	t := &hammer.Transaction{Calls: number(of["calls"]), TotalMS: number(of["total_ms"]), Stated: figures{},
		Summed: math.NaN()}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if stem, ok := strings.CutSuffix(name, "_ms"); ok && (strings.HasPrefix(stem, "p") ||
			stem == "min" || stem == "max" || stem == "avg") {
			if v, err := quantity(of[name]); err == nil {
				t.Stated[stem] = v
			}
		}
	}
	p.profile.Kinds = append(p.profile.Kinds, kind)
	p.profile.Of[kind] = t
	p.profile.LongestMS = max(p.profile.LongestMS, number(of["elapsed_ms"]))
	return nil
}

// closeTiming makes one report of a job's timing. It has no users, and its calls are the summary's, which some versions
// count twice: they give no rate, and times only.
func (p *hammerParser) closeTiming() {
	p.profile.Summary = true
	p.closeProfile(time.Time{})
	p.profile = hammer.Profile{Of: map[string]*hammer.Transaction{}}
	if n := len(p.book.stretches); n > 0 {
		s := &p.book.stretches[n-1]
		rep := &s.reports[0]
		s.operations, rep.Ops = nil, nil
		s.notes = []string{"percentiles are HammerDB's own; its calls are left out, for some versions count them twice"}
		s.unseen = append(s.unseen, "rates of the transactions")
	}
}
