package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/lazyregexp"
	"plimsoll/internal/workload"
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
	hammerAny = lazyregexp.New(`(?m)^HammerDB CLI v|^Hammerdb Log @|System achieved \d+ |^Vuser \d+:|` +
		`^Copyright \(C\) [-\d]+ Steve Shaw`)
	hammerTcountAny  = lazyregexp.New(`^(?:\s*)Hammerdb Transaction Counter Log @ `)
	hammerProfileAny = lazyregexp.New(`(?m)^.{0,40}Hammerdb Time Profile Report @ `)
	hammerJSONAny    = lazyregexp.New(`"(?:TEST RESULT : )?System achieved |"TEST RESULT : |"[\w ]{1,30} tpm"\s*:\s*\{|` +
		`"(?:NEWORD|PAYMENT)"\s*:\s*\{`)
	hammerVersion = lazyregexp.New(`^HammerDB CLI v([\w.]{1,20})`)
	hammerPeriod  = lazyregexp.New(`Timing test period of (\d{1,6}) in minutes`)
	hammerVUs     = lazyregexp.New(`(\d{1,6}) Active Virtual Users configured`)
	hammerResult  = lazyregexp.New(`System achieved (\d{1,12}) NOPM from (\d{1,12}) (.{1,40}) TPM`)
	hammerOlder   = lazyregexp.New(`System achieved (\d{1,12}) (.{1,40}) TPM at (\d{1,12}) NOPM`)
	hammerQuery   = lazyregexp.New(`^(?:Vuser )?(\d{1,6}):query (\d{1,3}) completed in ([\d.]+) seconds`)
	hammerSet     = lazyregexp.New(`Completed (\d{1,6}) query set\(s\) in ([\d.]{1,12}) seconds`)
	hammerGeo     = lazyregexp.New(`(?i)geometric mean of query times.{0,60}?\bis "?([\d.]+)`)
	hammerFailed  = lazyregexp.New(`^Vuser \d+:FINISHED FAILED`)
	hammerBuild   = lazyregexp.New(`(?m)^BUILD RETURNED|Vuser \d+:(?:CREATING|Loading |TPCC? SCHEMA COMPLETE)`)
	hammerTest    = lazyregexp.New(`Processing \d+ transactions with(?:out)? output suppressed`)
	hammerPass    = lazyregexp.New(`(?i)_(?:super)?(?:pass|userpass|password)\b`)
	hammerStamp   = lazyregexp.New(`^Timestamp \d+ @ (.{20,40})$`)
	hammerHead    = lazyregexp.New(`^(.{0,40}?)\s*Hammerdb (?:Transaction Counter Log|Time Profile Report|Log) @ (.{20,40})$`)
	hammerTPM     = lazyregexp.New(`^(\d{1,12}) (.{1,40}) tpm(?: @ (.{20,40}))?$`)
	hammerUser    = lazyregexp.New(`^>>>>> (?:VIRTUAL USER (\d{1,6})|SUMMARY OF (\d{1,6}) ACTIVE VIRTUAL USERS) : (?:MEDIAN )?ELAPSED TIME : (\d{1,12})ms`)
	hammerProc    = lazyregexp.New(`^>>>>> PROC: (\w{1,40})$`)
	hammerFigure  = lazyregexp.New(`(CALLS|MIN|AVG|MAX|TOTAL|P\d{1,2}(?:\.\d+)?|SD|RATIO): ([\d.]+)`)
)

func hammerReaders() []reader {
	return []reader{{
		name: hammerdbTcount, holds: "HammerDB's transaction counter log (hdbtcount.log)", book: true,
		recognise: hammerTcountAny.Match,
	}, {
		name: hammerdbProfile, holds: "HammerDB's time profile (hdbxtprofile.log), a time per transaction", book: true,
		recognise: hammerProfileAny.Match,
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
	longest   map[int]float64
	set       float64 // how long a set of queries took at most
	geometric float64
}

// hammerTransaction is what a time profile says of one kind of transaction.
type hammerTransaction struct {
	calls, totalMS float64
	stated         figures
}

type hammerParser struct {
	book    book
	head    time.Time // of a log
	at      time.Time // of the line before, where it is stamped
	test    hammerRun
	queries hammerQueries
	failed  int
	build   bool
	driver  bool
	secret  bool
	zone    string
	local   bool // times without a zone
	samples []hammerSample
	counter string // what the database is, by the counter
	gap     time.Duration
	users   int // of a time profile
	summary bool
	within  bool // the summary
	proc    string
	longest float64
	kinds   []string
	profile map[string]*hammerTransaction
}

// hammerSample is one figure of the transaction counter.
type hammerSample struct {
	at  time.Time
	tpm float64
}

func newHammerParser(f format) *hammerParser {
	return &hammerParser{book: book{tool: "HammerDB"}, gap: time.Duration(f.Seconds * float64(time.Second)),
		profile: map[string]*hammerTransaction{},
		queries: hammerQueries{byUser: map[string]float64{}, longest: map[int]float64{}}}
}

func readHammerText(f format, r io.Reader) (*book, error) {
	p := newHammerParser(f)
	err := eachLine(r, func(n int, line []byte) error {
		return p.line(n, strings.Trim(string(bytes.ToValidUTF8(line, []byte("?"))), " \t\r"), f.Reader)
	})
	return &p.book, errors.Join(err, p.close(f))
}

// date reads a date as Tcl writes it. Zones other than UTC are names that mean several things.
func (p *hammerParser) date(text string) (time.Time, bool) {
	at, err := time.Parse("Mon Jan _2 15:04:05 MST 2006", strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, false
	}
	if zone, _ := at.Zone(); zone != "UTC" && zone != "GMT" {
		p.zone = zone
	}
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC), true
}

// line takes a line of a text that a reader reads.
func (p *hammerParser) line(n int, text, reader string) error {
	p.secret = p.secret || hammerPass.MatchString(text)
	if m := hammerHead.FindStringSubmatch(text); m != nil {
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
		return p.profileLine(n, text)
	}
	p.driver = p.driver || hammerTest.MatchString(text)
	p.build = p.build || hammerBuild.MatchString(text)
	if m := hammerVersion.FindStringSubmatch(text); m != nil {
		p.book.tool = "HammerDB " + m[1]
	}
	if m := hammerPeriod.FindStringSubmatch(text); m != nil {
		p.test = hammerRun{minutes: number(m[1])}
	}
	if m := hammerVUs.FindStringSubmatch(text); m != nil {
		p.test.users = number(m[1])
	}
	if hammerFailed.MatchString(text) {
		p.failed++
	}
	if nopm, tpm, database, ok := hammerAchieved(text); ok {
		return p.achieved(n, nopm, tpm, database)
	}
	if m := hammerQuery.FindStringSubmatch(text); m != nil {
		v, err := quantity(m[3])
		if err != nil {
			p.book.skip(n, "%v", err)
			return nil
		}
		q := &p.queries
		which, _ := strconv.Atoi(m[2])
		if len(q.byUser) >= mostColumns || len(q.longest) >= mostColumns {
			return errors.New("more virtual users than can be told apart")
		}
		q.n++
		q.seconds += v
		q.byUser[m[1]] += v
		q.longest[which] = max(q.longest[which], v)
	}
	if m := hammerSet.FindStringSubmatch(text); m != nil {
		p.queries.set = max(p.queries.set, number(m[2]))
	}
	if m := hammerGeo.FindStringSubmatch(text); m != nil {
		p.queries.geometric = number(m[1])
		p.queries.users++
	}
	if m := hammerTPM.FindStringSubmatch(text); m != nil {
		p.counter = m[2]
		p.users++
	}
	return nil
}

// number is a figure of digits that a pattern has found.
func number(text string) float64 {
	v, err := quantity(text)
	if err != nil {
		return 0
	}
	return v
}

// hammerAchieved reads the line of the result, which older versions wrote the other way round.
func hammerAchieved(text string) (nopm, tpm float64, database string, ok bool) {
	if m := hammerResult.FindStringSubmatch(text); m != nil {
		return number(m[1]), number(m[2]), m[3], true
	}
	if m := hammerOlder.FindStringSubmatch(text); m != nil {
		return number(m[3]), number(m[1]), m[2], true
	}
	return 0, 0, "", false
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

// achieved makes a test of a result line.
func (p *hammerParser) achieved(n int, nopm, tpm float64, database string) error {
	if p.test.minutes <= 0 {
		p.book.skip(n, "a result without the line that says how long the test was")
		return nil
	}
	s := stretch{workload: "TPROC-C", concurrency: p.test.users, measures: hammerRates()}
	if p.test.users > 0 {
		s.workload += fmt.Sprintf(" %g VU", p.test.users)
	}
	s.length = time.Duration(p.test.minutes * float64(time.Minute))
	s.reports = []workload.Report{{Elapsed: s.length, Values: []float64{nopm, tpm}, Final: true}}
	if !p.at.IsZero() {
		s.start = p.at.Add(-s.length)
	}
	s.notes = []string{hammerTPMNote, "database: " + oneLine(database)}
	s.unseen = []string{"latency: the result has none; the time profile (xtprof) has",
		"the storage underneath: HammerDB counts no I/O"}
	p.book.stretches = append(p.book.stretches, s)
	p.test = hammerRun{}
	return nil
}

// count takes a line of the transaction counter.
func (p *hammerParser) count(n int, text string) error {
	m := hammerTPM.FindStringSubmatch(text)
	if m == nil {
		if text != "" && !strings.HasPrefix(text, "+-") {
			p.book.skip(n, "no figure of the counter: %.60q", text)
		}
		return nil
	}
	if len(p.samples) >= mostRows {
		return fmt.Errorf("more than %d samples: split the file", mostRows)
	}
	p.counter = m[2]
	s := hammerSample{tpm: number(m[1])}
	if m[3] != "" {
		if at, ok := p.date(m[3]); ok {
			s.at = at
		}
	}
	p.samples = append(p.samples, s)
	return nil
}

// profileLine takes a line of a time profile.
func (p *hammerParser) profileLine(n int, text string) error {
	if m := hammerUser.FindStringSubmatch(text); m != nil {
		p.within, p.proc = m[1] == "", ""
		p.summary = p.summary || p.within
		if !p.within {
			p.users++
			p.longest = max(p.longest, number(m[3]))
		}
		return nil
	}
	if m := hammerProc.FindStringSubmatch(text); m != nil {
		if p.proc = strings.ToLower(m[1]); p.profile[p.proc] == nil {
			if len(p.kinds) >= 32 {
				return errors.New("more than 32 kinds of transactions")
			}
			p.kinds = append(p.kinds, p.proc)
			p.profile[p.proc] = &hammerTransaction{stated: figures{}}
		}
		return nil
	}
	found := hammerFigure.FindAllStringSubmatch(text, -1)
	if len(found) == 0 || p.proc == "" {
		return nil
	}
	t := p.profile[p.proc]
	for _, m := range found {
		v, err := quantity(m[2])
		switch {
		case err != nil:
			p.book.skip(n, "%v", err)
		case p.within: // the program's own figures of all users together
			if key := strings.ToLower(m[1]); key[0] == 'p' || key == "min" || key == "max" {
				t.stated[key] = v
			}
		case m[1] == "CALLS":
			t.calls += v
		case m[1] == "TOTAL":
			t.totalMS += v
		case p.users == 1: // of one user its figures are those of all
			if key := strings.ToLower(m[1]); key[0] == 'p' || key == "min" || key == "max" {
				t.stated[key] = v
			}
		case !p.summary:
			clear(t.stated)
		}
	}
	return nil
}

// close makes stretches of what was found.
func (p *hammerParser) close(f format) error {
	b := &p.book
	switch f.Reader {
	case hammerdbTcount:
		p.closeCounter()
	case hammerdbProfile:
		p.closeProfile(p.head)
	default:
		p.closeQueries()
		if p.users > 0 && f.Reader == hammerdb {
			b.notes = append(b.notes, fmt.Sprintf("%s of the transaction counter in it have no times and are left out: "+
				"its log (hdbtcount.log) has them", unit.Plural(p.users, "figure")))
		}
	}
	if p.failed > 0 {
		b.notes = append(b.notes, fmt.Sprintf("%s ended with FINISHED FAILED", unit.Plural(p.failed, "virtual user")))
	}
	if p.secret {
		b.notes = append(b.notes, "HammerDB prints passwords of the database, and a run folder keeps the file as it is: "+
			"think of that before it is passed on")
	}
	if p.zone != "" {
		b.notes = append(b.notes, fmt.Sprintf("its times are in zone %q, a name that means several, and are read as UTC", oneLine(p.zone)))
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
	if q.n == 0 {
		return
	}
	s := stretch{workload: "TPROC-H", operations: []result.Operation{{Name: "query", Noun: "queries"}},
		concurrency: float64(len(q.byUser))}
	longest := slices.Max(slices.Collect(maps.Values(q.byUser)))
	s.length = time.Duration(max(longest, q.set) * float64(time.Second))
	rep := workload.Report{Elapsed: s.length, Final: true,
		Ops: workload.Counts{{Ops: uint64(q.n), Seconds: q.seconds}}}
	if q.set > 0 {
		s.measures, rep.Values = append(s.measures, single("query_set", "s")), append(rep.Values, q.set)
	}
	if q.geometric > 0 && q.users == 1 {
		s.measures = append(s.measures, single("geometric_mean", "s"))
		rep.Values = append(rep.Values, q.geometric)
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

// closeProfile makes one report of a time profile. Calls and times of the users are added up, for the program's own
// summary counts them twice in some versions; percentiles are the summary's own.
func (p *hammerParser) closeProfile(end time.Time) {
	s := stretch{workload: "TPROC-C profile"}
	if p.users > 0 {
		s.workload = fmt.Sprintf("TPROC-C profile %d VU", p.users)
		s.concurrency = float64(p.users)
	}
	rep := workload.Report{Final: true}
	for _, kind := range p.kinds {
		t := p.profile[kind]
		s.operations = append(s.operations, result.Operation{Name: kind, Noun: kind + " calls"})
		rep.Ops = append(rep.Ops, workload.Counters{Ops: whole(t.calls), Seconds: t.totalMS / 1e3})
		for _, key := range slices.Sorted(maps.Keys(t.stated)) {
			s.measures = append(s.measures, single(kind+"_"+key, "ms"))
			rep.Values = append(rep.Values, t.stated[key])
		}
	}
	if len(p.kinds) == 0 || p.longest <= 0 {
		return
	}
	s.length = time.Duration(p.longest * float64(time.Millisecond))
	rep.Elapsed = s.length
	if !end.IsZero() {
		s.start = end.Add(-s.length)
	}
	s.reports = []workload.Report{rep}
	s.notes = []string{"calls are those of the virtual users added up; percentiles are HammerDB's own of all of them"}
	if !p.summary && p.users > 1 {
		s.notes = []string{"it has no summary of all virtual users: percentiles of single users are left out, for " +
			"nothing can be made of them"}
	}
	s.unseen = []string{"percentiles of latency but those that HammerDB states",
		"the storage underneath: HammerDB counts no I/O"}
	p.book.stretches = append(p.book.stretches, s)
}

// mostJSON bounds a file of JSON, which is read as a whole.
const mostJSON = 64 << 20

// allJSON is a file of JSON as a whole; advice says what to do with one that is too large.
func allJSON(r io.Reader, advice string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostJSON+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > mostJSON:
		return nil, fmt.Errorf("more than %d MiB of JSON: %s", mostJSON>>20, advice)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// jsonValues are the values in a file, each from the beginning of a line; lines between them are none.
func jsonValues(r io.Reader, take func(line int, v json.RawMessage) error) error {
	data, err := allJSON(r, "split the file")
	if err != nil {
		return err
	}
	line := 1
	for len(data) > 0 {
		if c := data[0]; c != '{' && c != '[' {
			_, rest, _ := bytes.Cut(data, []byte("\n"))
			data = rest
			line++
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			at := line + bytes.Count(data[:min(int(dec.InputOffset()), len(data))], []byte("\n"))
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				at = line + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
			}
			return fmt.Errorf("line %d: %w", at, err)
		}
		if err := take(line, v); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		line += bytes.Count(data[:dec.InputOffset()], []byte("\n"))
		data = data[dec.InputOffset():]
	}
	return nil
}

// readHammerJSON reads what HammerDB's job commands and its web service give: a job's lines or its result as a list,
// its timing and its transaction counter as objects.
func readHammerJSON(f format, r io.Reader) (*book, error) {
	p := newHammerParser(f)
	text := newHammerParser(f)
	done := false
	var began time.Time
	err := jsonValues(r, func(line int, v json.RawMessage) error {
		var words []string
		if json.Unmarshal(v, &words) == nil {
			again := done // the result says once more what the job's lines said
			for i, w := range words {
				if at, err := time.Parse(time.DateTime, w); err == nil {
					began, p.local = at, true
				}
				if i > 0 && strings.Trim(words[i-1], "0123456789") == "" && !strings.HasPrefix(w, "Vuser ") {
					w = "Vuser " + words[i-1] + ":" + w
				}
				if again {
					continue
				}
				if err := text.line(line, w, hammerdb); err != nil {
					return err
				}
			}
			done = len(text.book.stretches) > 0
			return nil
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(v, &object); err != nil {
			return nil //nolint:nilerr // of no interest
		}
		p.secret = p.secret || hammerPass.Match(v)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			var of map[string]string
			if json.Unmarshal(object[key], &of) != nil {
				continue
			}
			if err := p.object(line, key, of); err != nil {
				return err
			}
		}
		return nil
	})
	text.closeQueries()
	p.book.stretches = append(p.book.stretches, text.book.stretches...)
	p.book.skipped = append(p.book.skipped, text.book.skipped...)
	if len(p.kinds) > 0 {
		p.closeTiming()
	}
	if len(p.samples) > 0 {
		p.closeCounter()
	}
	for _, s := range p.book.stretches {
		if began.IsZero() {
			began = s.start
		}
	}
	for i := range p.book.stretches { // all of one job
		if s := &p.book.stretches[i]; s.start.IsZero() {
			s.start = began
		}
	}
	return &p.book, errors.Join(err, p.close(f))
}

// object takes one member of a job's timing or of its counter.
func (p *hammerParser) object(line int, key string, of map[string]string) error {
	if database, ok := strings.CutSuffix(key, " tpm"); ok {
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
	if len(p.kinds) >= 32 {
		return errors.New("more than 32 kinds of transactions")
	}
	t := &hammerTransaction{calls: number(of["calls"]), totalMS: number(of["total_ms"]), stated: figures{}}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if stem, ok := strings.CutSuffix(name, "_ms"); ok && (strings.HasPrefix(stem, "p") ||
			stem == "min" || stem == "max" || stem == "avg") {
			if v, err := quantity(of[name]); err == nil {
				t.stated[stem] = v
			}
		}
	}
	p.kinds = append(p.kinds, kind)
	p.profile[kind] = t
	p.longest = max(p.longest, number(of["elapsed_ms"]))
	return nil
}

// closeTiming makes one report of a job's timing. It has no users, and its calls are the summary's, which some versions
// count twice: they give no rate, and times only.
func (p *hammerParser) closeTiming() {
	p.summary = true
	p.closeProfile(time.Time{})
	if n := len(p.book.stretches); n > 0 {
		s := &p.book.stretches[n-1]
		rep := &s.reports[0]
		s.operations, rep.Ops = nil, nil
		s.notes = []string{"percentiles are HammerDB's own; its calls are left out, for some versions count them twice"}
		s.unseen = append(s.unseen, "rates of the transactions")
	}
}
