package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	vdbench     = "vdbench"
	vdbenchFlat = "vdbench-flatfile"
	vdbenchHist = "vdbench-histogram"
)

var (
	vdbenchAny = lazyregexp.New(`(?m)^(?:<title>)?Vdbench (?:output/|distribution:|summary report)|` +
		`Starting RD=\S+|^\s*\S.*\binterval +i/o +MB/sec +bytes +read|\.ReqstdOps\.`)
	vdbenchFlatAny = lazyregexp.New(`(?m)^ +tod +(?:timestamp +)?Run +Interval +reqrate +rate `)
	vdbenchHistAny = lazyregexp.New(`(?m)^ +min\(ms\) < +max\(ms\) +count`)
	vdbenchTag     = lazyregexp.New(`(?i)</?(?:a|i|b|pre|title|html|body|head|font)\b[^>]*>`)
	vdbenchTitle   = lazyregexp.New(`Vdbench output/([\w.-]{1,60})\.html`)
	vdbenchVersion = lazyregexp.New(`^Vdbench distribution: (vdbench[\w.]{1,20})`)
	vdbenchStart   = lazyregexp.New(`^(?:(\d\d:\d\d:\d\d\.\d{3}) +)?Starting RD=([^;\s]+)(.*)$`)
	vdbenchElapsed = lazyregexp.New(`\belapsed=(\d{1,9})\b`)
	vdbenchRate    = lazyregexp.New(`I/O rate: ([^;]{1,60})`)
	vdbenchHeading = lazyregexp.New(`^(?:Only (\w+) done.*|([A-Z][\w /-]{2,40}):)$`) // above buckets
	vdbenchWarm    = lazyregexp.New(`\bwarmup=[1-9]`)
	vdbenchLoops   = lazyregexp.New(`For loops: (.+)$`)
	vdbenchThreads = lazyregexp.New(`\bthreads=(\d{1,6})\b`)
	vdbenchRow     = lazyregexp.New(`^(\d\d:\d\d:\d\d\.\d{3})(?: +(\d{1,9})| *avg_(\d{1,9})-(\d{1,9})) +(\S.*)$`)
	vdbenchDate    = lazyregexp.New(`^(\S+) (\d{1,2}), (\d{4})$`)
	vdbenchMonth   = lazyregexp.New(`^(\d{1,2})\D{1,4}$`)
	vdbenchBucket  = lazyregexp.New(`^ *([\d.,]+) < +([\d.,]+|max) +([\d,.  ]*\d) +[\d.,]+ +([\d.,]+)`)
	vdbenchSpan    = lazyregexp.New(`^avg_(\d{1,9})-(\d{1,9})$`)
	vdbenchErrno   = lazyregexp.New(`\bop: +\w+ +.*\berrno: +\S`)
	vdbenchEnd     = lazyregexp.New(`Vdbench execution completed successfully`)
	vdbenchBroken  = lazyregexp.New(`(?i)Vdbench (?:terminated|aborting)|Data Validation error|CTRL-C requested`)
)

func vdbenchReaders() []reader {
	return []reader{{
		name: vdbenchFlat, holds: "vdbench's flatfile.html, raw I/O or file systems", book: true,
		recognise: vdbenchFlatAny.Match,
	}, {
		name: vdbenchHist, holds: "vdbench's histogram.html", book: true,
		recognise: vdbenchHistAny.Match,
	}, {
		name: vdbench, holds: "vdbench's summary.html, logfile.html, totals.html, what it prints, and its reports " +
			"by host, disk or workload", book: true,
		recognise: vdbenchAny.Match,
	}}
}

// VdbenchFailed reports whether a log of vdbench's, of which this is the beginning, tells of operations that failed or
// of an end before its time.
func VdbenchFailed(head []byte) bool {
	for line := range bytes.Lines(head) {
		text := vdbenchTag.ReplaceAllString(string(line), "")
		if vdbenchErrno.MatchString(text) || vdbenchBroken.MatchString(text) {
			return true
		}
	}
	return false
}

// vdbenchRun is one run definition on its way.
type vdbenchRun struct {
	name, loops string
	rate        string        // as it was asked for
	started     time.Duration // time of day
	planned     time.Duration // its elapsed=, 0 when not given
	dated       bool
	warmedUp    bool // it has a warm-up of its own
	rows        []vdbenchInterval
	total       *vdbenchInterval // vdbench's own average, of intervals first to last
	first, last int
	buckets     []vdbenchBuckets
	share       float64 // of the operations of the last heading, in its buckets, in per cent
	failure     string
	failed      uint64 // operations since the newest interval
}

// vdbenchBuckets are those below a heading.
type vdbenchBuckets struct {
	heading string // in small letters
	hist    *hist.Histogram
}

// vdbenchInterval is a row.
type vdbenchInterval struct {
	at time.Time
	n  int
	figures
	failed uint64 // operations whose error was printed since the interval before
}

// vdbenchParser goes through any of vdbench's reports line by line.
type vdbenchParser struct {
	given    format
	book     book
	report   string // which of vdbench's reports it is
	run      *vdbenchRun
	runs     []*vdbenchRun
	head     []string // of the columns, the line above
	names    []string // of the columns of intervals
	flat     []string // of the columns of a flatfile
	section  string   // of the histogram
	date     time.Time
	dated    bool
	newest   time.Time
	rows     int
	formats  []string
	finished bool
	broken   string
	decimal  bool // 1000**2
}

func readVdbench(f format, r io.Reader) (*book, error) {
	p := &vdbenchParser{given: f, date: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.book.tool = "vdbench"
	err := eachLine(r, p.line)
	p.close()
	return &p.book, err
}

// line takes a line, with or without its marks of HTML.
func (p *vdbenchParser) line(n int, raw []byte) error {
	text := string(bytes.ToValidUTF8(raw, []byte("?")))
	if m := vdbenchTitle.FindStringSubmatch(text); m != nil {
		p.report = m[1]
	}
	text = strings.TrimRight(vdbenchTag.ReplaceAllString(text, ""), " \t\r")
	p.finished = p.finished || vdbenchEnd.MatchString(text)
	if p.broken == "" && vdbenchBroken.MatchString(text) {
		p.broken = oneLine(text)
	}
	switch {
	case strings.HasPrefix(text, "*"): // what the columns of a flatfile mean
		return nil
	case vdbenchFlatAny.MatchString(text):
		p.flat = strings.Fields(text)
		return nil
	}
	if m := vdbenchVersion.FindStringSubmatch(text); m != nil {
		p.book.tool = "vdbench " + strings.TrimPrefix(m[1], "vdbench")
		return nil
	}
	if m := vdbenchStart.FindStringSubmatch(text); m != nil {
		return p.start(m)
	}
	if vdbenchErrno.MatchString(text) && p.run != nil {
		p.run.failed++
		return nil
	}
	if p.flat != nil {
		return p.flatRow(n, text)
	}
	if m := vdbenchRow.FindStringSubmatch(text); m != nil && p.names != nil {
		return p.row(n, m)
	}
	if m := vdbenchBucket.FindStringSubmatch(text); m != nil && p.section != "" {
		return p.bucket(n, m)
	}
	switch {
	case strings.Contains(text, "interval ") || strings.Contains(text, ".Interval."):
		p.head = []string{text}
	case len(p.head) > 0 && text != "":
		p.columns(p.head[0], text)
		p.head = nil
	default:
		if m := vdbenchHeading.FindStringSubmatch(text); m != nil {
			p.section = strings.ToLower(cmp.Or(m[1], m[2]))
		}
	}
	return nil
}

// start begins a run definition. The log says it twice.
func (p *vdbenchParser) start(m []string) error {
	run := &vdbenchRun{name: oneLine(m[2])}
	p.finished = false // of a call before it, whose output this one was appended to
	if l := vdbenchLoops.FindStringSubmatch(m[3]); l != nil && strings.TrimSpace(l[1]) != "None" {
		run.loops = oneLine(l[1])
	}
	if e := vdbenchElapsed.FindStringSubmatch(m[3]); e != nil {
		s, _ := strconv.Atoi(e[1])
		run.planned = time.Duration(s) * time.Second
	}
	run.rate = found(vdbenchRate, []byte(m[3]))
	run.warmedUp = vdbenchWarm.MatchString(m[3])
	if m[1] != "" {
		at, err := clockTime(m[1])
		if err != nil {
			return err
		}
		run.started = at
	}
	p.section = ""
	if p.run != nil && p.run.empty() && p.run.name == run.name && p.run.loops == run.loops {
		run.started, run.planned = cmp2(run.started, p.run.started), cmp2(run.planned, p.run.planned)
		*p.run = *run
		return nil
	}
	p.begin(run)
	return nil
}

func cmp2(a, b time.Duration) time.Duration {
	if a != 0 {
		return a
	}
	return b
}

func (p *vdbenchParser) begin(run *vdbenchRun) {
	p.run = run
	p.runs = append(p.runs, run)
}

func (r *vdbenchRun) empty() bool {
	return len(r.rows) == 0 && r.total == nil && r.buckets == nil
}

// columns reads the two lines of a head. Those of raw I/O stand one above the other; those of file systems are groups
// above a rate and a response time each.
func (p *vdbenchParser) columns(above, below string) {
	cut := strings.Index(above, "interval ")
	if cut < 0 {
		cut = strings.Index(above, "Interval")
		cut = strings.LastIndexByte(above[:max(cut, 0)], ' ') + 1
	}
	p.day(strings.TrimSpace(above[:max(cut, 0)]))
	first, second := strings.Fields(above[max(cut, 0):])[1:], strings.Fields(below)
	p.decimal = p.decimal || slices.Contains(second, "1000**2")
	var names []string
	if len(first) == len(second) {
		for i := range first {
			names = append(names, first[i]+" "+second[i])
		}
		p.names = names
		return
	}
	for _, group := range first {
		group = strings.ToLower(strings.Trim(group, "."))
		take := 1
		if len(second) > 1 && (second[0] == "rate" || second[0] == "read" ||
			second[0] == "total" && second[1] == "sys") {
			take = 2
		}
		if len(second) < take {
			return
		}
		for _, what := range second[:take] {
			names = append(names, group+" "+what)
		}
		second = second[take:]
	}
	if len(second) == 0 {
		p.names = names
	}
}

// day takes the date in front of a head, which vdbench writes in the machine's language.
func (p *vdbenchParser) day(text string) {
	m := vdbenchDate.FindStringSubmatch(text)
	if m == nil {
		return
	}
	day, err := time.Parse("Jan 2, 2006", text)
	if n := vdbenchMonth.FindStringSubmatch(m[1]); err != nil && n != nil {
		day, err = time.Parse("1 2, 2006", n[1]+" "+m[2]+", "+m[3])
	}
	if err == nil {
		p.date, p.dated = day, true
	}
}

// moment puts a time of day on the day it belongs to.
func (p *vdbenchParser) moment(text string) (time.Time, error) {
	of, err := clockTime(text)
	if err != nil {
		return time.Time{}, err
	}
	at := p.date.Add(of)
	if at.Before(p.newest.Add(-12 * time.Hour)) {
		p.date = p.date.AddDate(0, 0, 1)
		at = p.date.Add(of)
	}
	if at.After(p.newest) {
		p.newest = at
	}
	return at, nil
}

// row takes an interval, or the average of some.
func (p *vdbenchParser) row(n int, m []string) error {
	cells := strings.Fields(m[5])
	if len(cells) != len(p.names) {
		p.book.skip(n, "%d figures below a head of %d", len(cells), len(p.names))
		return nil
	}
	row := vdbenchInterval{figures: figures{}}
	for i, name := range p.names {
		v, err := quantity(localNumber(cells[i]))
		if err != nil {
			p.book.skip(n, "%v, in the column %q", err, name)
			return nil
		}
		row.figures[name] = v
	}
	at, err := p.moment(m[1])
	if err != nil {
		p.book.skip(n, "%v", err)
		return nil
	}
	row.at = at
	return p.addRow(n, row, m[2], m[3], m[4])
}

// addRow gives a row to its run.
func (p *vdbenchParser) addRow(n int, row vdbenchInterval, interval, from, to string) error {
	if p.run == nil {
		p.begin(&vdbenchRun{})
	}
	run := p.run
	run.dated = run.dated || p.dated
	if interval == "" {
		run.total = &row
		run.first, _ = strconv.Atoi(from)
		run.last, _ = strconv.Atoi(to)
		if run.first < 1 || run.last < run.first {
			run.total = nil // of a run of one interval, which vdbench leaves out
		}
		return nil
	}
	row.n, _ = strconv.Atoi(interval)
	if k := len(run.rows); k > 0 && row.n <= run.rows[k-1].n {
		p.book.skip(n, "interval %d after interval %d", row.n, run.rows[k-1].n)
		return nil
	}
	if p.rows++; p.rows > mostRows {
		return fmt.Errorf("more than %d intervals: split the file", mostRows)
	}
	row.failed, run.failed = run.failed, 0
	run.rows = append(run.rows, row)
	return nil
}

// flatNames are the columns of a flatfile under the names that the other reports have for them.
var flatNames = map[string]string{
	"rate": "i/o rate", "mb/sec": "MB/sec 1024**2", "read%": "read pct", "resp": "resp time",
	"read_resp": "read resp", "write_resp": "write resp", "resp_max": "resp max", "read_max": "read max",
	"write_max": "write max", "queue_depth": "queue depth", "threads": "threads", "cpu_used": "cpu% sys+u",
	"read_rate": "read rate", "write_rate": "write rate", "mb_read": "mb/sec read", "mb_write": "mb/sec write",
}

// flatRow takes a row of a flatfile: one word for each column.
func (p *vdbenchParser) flatRow(n int, text string) error {
	cells := strings.Fields(text)
	if len(cells) == 0 {
		return nil
	}
	if len(cells) != len(p.flat) {
		p.book.skip(n, "%d columns below a head of %d", len(cells), len(p.flat))
		return nil
	}
	row, name, interval := vdbenchInterval{figures: figures{}}, "", ""
	var tod string
	files := slices.Contains(p.flat, "Read_rate")
	for i, column := range p.flat {
		switch cell := cells[i]; column {
		case "tod":
			tod = cell
		case "timestamp":
			if day, err := time.Parse("01/02/2006", cell[:min(10, len(cell))]); err == nil {
				p.date, p.dated = day, true
			}
		case "Run":
			name = oneLine(cell)
		case "Interval":
			interval = cell
		default:
			v, err := quantity(localNumber(cell))
			if err != nil {
				continue // n/a, or several
			}
			key := strings.ToLower(column)
			if op, what, ok := strings.Cut(key, "_"); files && ok && (what == "rate" || what == "resp") {
				key = op + " " + what
			} else if known := flatNames[key]; known != "" {
				key = known
			}
			row.figures[key] = v
		}
	}
	at, err := p.moment(tod)
	if err != nil {
		p.book.skip(n, "%v", err)
		return nil
	}
	row.at = at
	from, to := "", ""
	if m := vdbenchSpan.FindStringSubmatch(interval); m != nil {
		interval, from, to = "", m[1], m[2]
	} else if _, err := strconv.ParseUint(interval, 10, 31); err != nil {
		p.book.skip(n, "%.40q is no interval", interval)
		return nil
	}
	// A run definition with loops keeps its name: intervals that begin anew tell.
	if k := p.run; k == nil || k.name != name || k.total != nil || k.beforeAgain(interval) {
		p.begin(&vdbenchRun{name: name})
	}
	return p.addRow(n, row, interval, from, to)
}

// beforeAgain reports whether an interval comes before one that the run has already.
func (r *vdbenchRun) beforeAgain(interval string) bool {
	n, err := strconv.Atoi(interval)
	return err == nil && len(r.rows) > 0 && n <= r.rows[len(r.rows)-1].n
}

// localNumber is a number of any language with a decimal point, and nothing between thousands: of two signs the last is
// the decimal one.
func localNumber(text string) string {
	point, comma := strings.LastIndexByte(text, '.'), strings.LastIndexByte(text, ',')
	if comma < 0 {
		return text
	}
	if point > comma {
		return strings.ReplaceAll(text, ",", "")
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
}

// close makes stretches of what was found.
func (p *vdbenchParser) close() {
	const nearly = 99.99
	for i, run := range p.runs {
		switch again := i+1 < len(p.runs); {
		case again && run.buckets == nil && len(run.rows) > 0 && run.total == nil:
			run.failure = "it has no row of averages, and another run follows: it was cut short"
		case again && run.buckets != nil && run.share < nearly:
			run.failure = fmt.Sprintf("its last heading ends at %g %% of its operations: it was cut short", run.share)
		}
		if strings.HasPrefix(run.name, "format_for_") || run.name == "SD_format" {
			if !run.empty() {
				p.formats = append(p.formats, run.name)
			}
			continue
		}
		p.book.stretches = append(p.book.stretches, p.stretches(run)...)
	}
	if n := len(p.runs); n > 0 && p.flat != nil && p.runs[n-1].total == nil {
		p.book.failure = "its last run has no row of averages: the run, or the file, is cut short"
	}
	if n := len(p.runs); n > 0 && p.runs[n-1].buckets != nil && p.runs[n-1].share < nearly {
		p.book.failure = fmt.Sprintf("its last heading ends at %g %% of its operations: the file is cut short",
			p.runs[n-1].share)
	}
	if len(p.formats) > 0 {
		p.book.notes = append(p.book.notes, "left out, for it prepares: "+strings.Join(p.formats, ", "))
		if len(p.book.stretches) == 0 {
			p.book.skipped = append([]string{"all of it is vdbench's formatting (" + strings.Join(p.formats, ", ") +
				"), which prepares and measures nothing"}, p.book.skipped...)
		}
	}
	if p.dated {
		p.book.notes = append(p.book.notes, "its times have no time zone and are read as UTC")
	}
	if p.broken != "" {
		p.book.failure = "vdbench says: " + p.broken
	}
	if says := p.report == "" || p.report == "logfile" || p.report == "summary"; says && !p.finished && p.flat == nil &&
		!slices.ContainsFunc(p.runs, func(r *vdbenchRun) bool { return r.buckets != nil }) {
		p.book.failure = cmp.Or(p.book.failure,
			"it does not say that vdbench came to its end: the run, or the file, is cut short")
	}
}

// step is how far apart the intervals are: whole seconds.
func (r *vdbenchRun) step() time.Duration {
	var apart time.Duration
	switch k := len(r.rows); {
	case k > 1:
		apart = r.rows[k-1].at.Sub(r.rows[0].at) / time.Duration(r.rows[k-1].n-r.rows[0].n)
	case r.planned > 0 && r.last > 0:
		apart = r.planned / time.Duration(r.last)
	case r.total != nil:
		apart = ofDay(r.total.at, r.started) / time.Duration(r.last)
	case k == 1 && r.started > 0:
		apart = ofDay(r.rows[0].at, r.started) / time.Duration(max(r.rows[0].n, 1))
	}
	return max(apart.Round(time.Second), time.Second)
}

// ofDay is the time from a time of day to the moment.
func ofDay(at time.Time, from time.Duration) time.Duration {
	d := at.Sub(at.Truncate(24*time.Hour)) - from
	if d < 0 {
		d += 24 * time.Hour
	}
	return d
}

// stretches are what a run definition measured: one, or one for each of the parts between which intervals are missing,
// for what went on there nobody knows.
func (p *vdbenchParser) stretches(run *vdbenchRun) []stretch {
	s := stretch{workload: strings.TrimSpace("vdbench " + run.name + " " + run.loops), failure: run.failure,
		unfailing: p.report != "" && p.report != "logfile" || p.flat != nil || run.buckets != nil}
	if r := p.report; !slices.Contains([]string{"", "logfile", "summary", "totals", "flatfile", "histogram"}, r) {
		s.workload += " of " + r
	}
	if m := vdbenchThreads.FindStringSubmatch(run.loops); m != nil {
		s.concurrency, _ = strconv.ParseFloat(m[1], 64)
	}
	if run.buckets != nil {
		s.concurrency = 0 // threads are of each SD, and no histogram says how many these are
		run.histograms(&s, p.given)
		return []stretch{s}
	}
	rows, first := run.rows, 1
	switch {
	case run.total != nil:
		first = run.first
	case len(rows) > 1:
		first = 2
	}
	if len(rows) > 0 && rows[len(rows)-1].n < first {
		first = rows[0].n // its only interval
	}
	step, dropped := run.step(), 0
	if len(rows) == 1 && run.total == nil && run.planned == 0 && run.started == 0 {
		p.book.skipped = append(p.book.skipped, run.name+" is left out: of its one interval nothing says how long it was")
		return nil
	}
	if len(rows) > 0 {
		rows = slices.Clone(rows)
		rows[len(rows)-1].failed += run.failed
	}
	for len(rows) > 0 && rows[0].n < first {
		if len(rows) > 1 {
			rows[1].failed += rows[0].failed // an error counts, also of a warm-up
		}
		rows = rows[1:]
		dropped++
	}
	if len(rows) == 0 && run.total != nil {
		whole := *run.total
		whole.n, whole.failed = run.last, run.failed
		return []stretch{run.stretch(s, []vdbenchInterval{whole}, max(first, 1), step, p.decimal)}
	}
	if dropped > 0 {
		s.notes = append(s.notes, "left out, as vdbench's own averages do: what comes before interval "+
			strconv.Itoa(rows[0].n))
	}
	var out []stretch
	for from, i := 0, 1; i <= len(rows); i++ {
		if i < len(rows) && rows[i].n == rows[i-1].n+1 {
			continue
		}
		out = append(out, run.stretch(s, rows[from:i], rows[from].n, step, p.decimal))
		if i < len(rows) {
			s.notes = []string{fmt.Sprintf("the intervals %d to %d are not in the file", rows[i-1].n+1, rows[i].n-1)}
		}
		from = i
	}
	return out
}

// stretch returns what rows say that follow one another from an interval on.
func (r *vdbenchRun) stretch(s stretch, rows []vdbenchInterval, first int, step time.Duration, decimal bool) stretch {
	if last := rows[len(rows)-1]; r.dated {
		s.start = last.at.Add(-time.Duration(last.n-first+1) * step).Round(time.Second)
	}
	c := newVdbenchCounts(rows, decimal)
	s.operations, s.measures = c.operations, c.measures
	before := first - 1
	for i, row := range rows {
		at := time.Duration(row.n-first+1) * step
		s.reports = append(s.reports, c.report(row, at, time.Duration(row.n-before)*step, i == len(rows)-1))
		before, s.length = row.n, at
	}
	s.facts = r.asked(rows)
	if rate, err := quantity(r.rate); err == nil && rate > 0 && !c.files {
		s.streams = []result.Stream{{Name: "SDs", Noun: "set of SDs", Rate: rate}}
	}
	if v := rows[0].or("threads"); s.concurrency == 0 && v > 0 {
		s.concurrency = v
	}
	if threads := s.concurrency; !c.files && threads > 0 {
		s.facts = append(s.facts, asked("threads of each SD", strconv.FormatFloat(threads, 'g', -1, 64)))
		const chance = 1.05
		if depth := inFlight(rows); depth > threads*chance { // vdbench's threads are of each SD
			s.concurrency = math.Round(depth*10) / 10
			s.notes = append(slices.Clone(s.notes), fmt.Sprintf("threads=%g is of each SD: how many were at work at once is taken "+
				"from its rates and times, %.1f on average", threads, depth))
		}
	}
	s.unseen = []string{"percentiles of latency: vdbench's intervals have means; its histogram.html has buckets",
		"the device underneath: its counters are in no such file"}
	if !c.files {
		s.unseen = append(s.unseen, "bytes read and bytes written apart: vdbench prints their sum")
	}
	return s
}

// inFlight is how many operations were outstanding on average: vdbench's own queue depth, with more digits.
func inFlight(rows []vdbenchInterval) (depth float64) {
	for _, row := range rows {
		depth += row.or("i/o rate") * row.or("resp time") / 1e3 / float64(len(rows))
	}
	return depth
}

// asked returns what was asked of a run, as far as its intervals tell it: a block size that is the same in all of them,
// and of the share of reads what chance does not move.
func (r *vdbenchRun) asked(rows []vdbenchInterval) (facts []result.Fact) {
	if r.rate != "" {
		facts = append(facts, asked("rate", r.rate))
	}
	if block := rows[len(rows)-1].or("bytes i/o"); block > 0 && math.Mod(block, 512) == 0 {
		facts = append(facts, asked("block size", fmt.Sprintf("%.0f bytes", block)))
	}
	if rows[0].has("read pct") {
		sum := 0.0
		for _, row := range rows {
			sum += row.or("read pct")
		}
		facts = append(facts, asked("reads", fmt.Sprintf("about %g %%", 5*math.Round(sum/float64(len(rows))/5))))
	}
	return facts
}

// plainBlocks are reads, writes, trims of which no bytes are known.
func plainBlocks() []result.Operation {
	ops := result.BlockOperations()
	for i := range ops {
		ops[i].Bytes = false
	}
	return ops
}
