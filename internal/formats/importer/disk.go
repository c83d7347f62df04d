package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const diskspdText = "diskspd"

var (
	diskspdAny   = lazyregexp.New(`(?mi)^(?:Results for (?:timespan|job) \d+:|Command Line: \S*diskspd)`)
	diskspdSpans = lazyregexp.New(`^Results for (?:timespan|job) (\d{1,6}):`)
	diskspdParts = lazyregexp.New(`^\s*(?:timespan|job): +(\d{1,6})\s*$`)
	diskspdStart = lazyregexp.New(`^\s*start time: (\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) UTC`)
	diskspdTime  = lazyregexp.New(`^(?:actual )?test time:\s+([\d.]+)s`)
	diskspdTree  = lazyregexp.New(`^\s*(?:<\?xml[^>]*>\s*)?<Results>\s*<System>`)
	diskspdTotal = lazyregexp.New(`^total: +(\S.*)$`)
	diskspdRank  = lazyregexp.New(`^ *(min|max|\d\d?th|\d-nines) *\|(.+)$`)
	diskspdCPU   = lazyregexp.New(`^ *avg[.:]\s*\|?\s*([\d.]+)%`)
	diskspdAsked = lazyregexp.New(`^\s+(block size|number of outstanding I/O operations|threads per file|` +
		`warm up time|total threads)(?: per thread)?: +(\d+)([KMGT]?)`)
	diskspdMix    = lazyregexp.New(`^\s+performing (.*?test.*?)\s*$`)
	diskspdPlaces = lazyregexp.New(`^\s+using (.*?(?:random|sequential).*?I/O)`)
	diskspdPath   = lazyregexp.New(`^\s*path: '(.+)'$`)
	diskspdFile   = lazyregexp.New(`^ *\d+ +\|.*\| +(\S.*?)(?: \([^()]*\))?$`) // of a thread's row
	diskspdFailed = lazyregexp.New(`(?i)^(?:error\b|there has been an error)`)
)

// diskspdFlags are what a command line says of the load, by the names of facts.
var diskspdFlags = map[string]*lazyregexp.Regexp{
	"block size": lazyregexp.New(`\s-b(\d+)([KMGTkmgt]?)\b`), "outstanding": lazyregexp.New(`\s-o(\d+)\b`),
	"threads": lazyregexp.New(`\s-[tF](\d+)\b`), "writes": lazyregexp.New(`\s-w(\d+)\b`),
}

func diskReaders() []reader {
	return []reader{{
		name: diskspdText, holds: "DISKSPD's text results, of Windows and Linux, with -L and without; any number of them",
		book: true, recognise: diskspdAny.Match,
	}, {
		name: diskspdXML, holds: "DISKSPD's results as XML, of any number of time spans", book: true,
		recognise: diskspdTree.Match,
	}}
}

// diskspdAsk is a time span as DISKSPD asks for it: the names of its facts and their values.
type diskspdAsk struct {
	facts   []result.Fact
	warmUp  time.Duration
	flight  float64 // operations at once, 0 when not known
	total   float64 // threads, where each works on all targets
	each    float64 // outstanding operations of such a thread
	targets []diskspdTarget
}

// diskspdTarget is a file or disk of a time span, with what was done to it.
type diskspdTarget struct {
	path string
	ask  []result.Fact
	did  workload.Counts
}

// target takes a fact of the newest target, and of the time span.
func (a *diskspdAsk) target(name, value string) {
	if a.add(name, value); len(a.targets) > 0 {
		t := &a.targets[len(a.targets)-1]
		t.ask = append(t.ask, asked(name, value))
	}
}

// atOnce is how many operations there are at most.
func (a *diskspdAsk) atOnce() float64 { return cmp.Or(a.flight, a.total*a.each) }

// did adds what was done to a target.
func (a *diskspdAsk) did(path string, op int, c workload.Counters) {
	i := slices.IndexFunc(a.targets, func(t diskspdTarget) bool { return t.path == path })
	if i < 0 {
		return
	}
	if a.targets[i].did == nil {
		a.targets[i].did = workload.Counts{{}, {}}
	}
	a.targets[i].did[op].Add(c)
}

// apart are the targets of a time span each by itself where they were asked unlike block sizes: a sum of their
// operations is the rate of nothing.
func (a *diskspdAsk) apart(s stretch) (out []stretch) {
	block := func(t diskspdTarget) string {
		i := slices.IndexFunc(t.ask, func(f result.Fact) bool { return f.Name == "block size" })
		if i < 0 {
			return ""
		}
		return t.ask[i].Value
	}
	unlike := func(t diskspdTarget) bool { return block(t) != block(a.targets[0]) }
	if !slices.ContainsFunc(a.targets, unlike) {
		return []stretch{s}
	}
	told := uint64(0)
	for _, t := range a.targets {
		told += t.did.Total()
	}
	if told != s.reports[len(s.reports)-1].Ops.Total() {
		s.notes = append(s.notes, "its targets were asked unlike block sizes, and its rates are of all of them together")
		return []stretch{s}
	}
	cpu := len(s.measures) > 0 && s.measures[len(s.measures)-1].Name == "cpu"
	for _, t := range a.targets {
		if t.did.Total() == 0 {
			continue
		}
		one := s
		one.workload, one.facts, one.concurrency = s.workload+" "+oneLine(t.path), t.ask, 0
		one.beside, one.measures = len(out) > 0, nil
		one.notes = append(slices.Clone(s.notes), "its targets were asked unlike block sizes: each stands by itself, and "+
			"percentiles of all together are left out")
		last := workload.Report{Elapsed: s.length, Final: true, Ops: t.did}
		if cpu && len(out) == 0 {
			values := s.reports[len(s.reports)-1].Values
			one.measures, last.Values = s.measures[len(s.measures)-1:], values[len(values)-1:]
		}
		one.reports = []workload.Report{last}
		out = append(out, one)
	}
	return out
}

func (a *diskspdAsk) add(name, value string) {
	i := slices.IndexFunc(a.facts, func(f result.Fact) bool { return f.Name == name })
	switch {
	case i < 0:
		a.facts = append(a.facts, asked(name, value))
	case !slices.Contains(strings.Split(a.facts[i].Value, "; "), value):
		a.facts[i].Value += "; " + value
	}
}

// diskspdParser goes through text results. A file may hold those of several calls, and each of several time spans.
type diskspdParser struct {
	book     book
	began    time.Time             // of the call
	spots    map[string]diskspdAsk // by the number of the time span
	spot     string                // whose parameters are told
	called   diskspdAsk            // the same by the command line, where no parameters are told
	flight   float64               // outstanding operations for each thread
	section  string
	columns  []string
	s        *stretch
	n        string // of the time span
	first    bool   // it is the first of its call
	total    workload.Counts
	figures  map[string]float64
	finished bool // its totals came
	ranks    bool // percentiles began, and their last one did not come
}

// readDiskspdText reads a stretch for each time span of each call.
func readDiskspdText(_ format, r io.Reader) (*book, error) {
	p := &diskspdParser{spots: map[string]diskspdAsk{}, first: true}
	p.book.tool = "DISKSPD"
	err := eachLine(r, func(n int, line []byte) error {
		p.line(n, lineText(line))
		return p.book.tooMany("results")
	})
	p.end()
	return &p.book, err
}

// diskspdBytes says a size, of which DISKSPD writes bytes or, since 2.2, KiB.
func diskspdBytes(v float64, prefix string) string {
	return fmt.Sprintf("%.0f bytes", binary(strconv.FormatFloat(v, 'f', -1, 64), strings.ToUpper(prefix)))
}

// diskspdCalled returns what a command line asks for, in the words that the parameters have.
func diskspdCalled(text string) (a diskspdAsk) {
	for name, flag := range diskspdFlags {
		m := flag.FindStringSubmatch(text)
		switch {
		case m == nil:
		case name == "block size":
			a.add(name, diskspdBytes(decimal(m[1], ""), m[2]))
		default:
			a.add(name, m[1])
		}
	}
	count := func(flag string, otherwise float64) float64 {
		if m := diskspdFlags[flag].FindStringSubmatch(text); m != nil {
			return decimal(m[1], "")
		}
		return otherwise
	}
	words, _, err := diskspd.Words(text, load.Place{})
	targets := len(slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })) - 3
	if err == nil && targets > 0 { // without "Command", "Line:", the program; each thread has its own for each
		a.flight = count("threads", 1) * count("outstanding", 2) * float64(targets)
	}
	return a
}

func (p *diskspdParser) line(n int, text string) {
	if strings.HasPrefix(text, "Command Line:") {
		p.end()
		p.began, p.spots, p.spot, p.first, p.called = time.Time{}, map[string]diskspdAsk{}, "", true, diskspdAsk{}
		p.called = diskspdCalled(text)
		return
	}
	if m := diskspdSpans.FindStringSubmatch(text); m != nil {
		p.end()
		p.s, p.n, p.section, p.finished, p.ranks = &stretch{workload: "diskspd"}, m[1], "", false, false
		p.total, p.figures = workload.Counts{{}, {}}, map[string]float64{}
		return
	}
	if m := diskspdStart.FindStringSubmatch(text); m != nil {
		p.began, _ = time.Parse("2006/01/02 15:04:05", m[1]) // without one the file's time counts
		return
	}
	if diskspdFailed.MatchString(text) && p.s == nil {
		p.book.lost = cmp.Or(p.book.lost, oneLine(text))
		return
	}
	if p.s == nil || strings.HasPrefix(text, "\t") {
		p.parameter(text)
		return
	}
	if diskspdFailed.MatchString(text) && p.s.failure == "" {
		p.s.failure = oneLine(text)
		return
	}
	switch {
	case text == "Total IO" || text == "Read IO" || text == "Write IO":
		p.section = text
	case strings.HasPrefix(text, "thread |"):
		p.columns = nil
		for cell := range strings.SplitSeq(text, "|") {
			name, _, _ := strings.Cut(strings.TrimSpace(cell), "(")
			p.columns = append(p.columns, name)
		}
	}
	if m := diskspdTime.FindStringSubmatch(text); m != nil {
		if v, err := quantity(m[1]); err == nil && v > 0 && v < 1e8 {
			p.s.length = time.Duration(v * float64(time.Second))
		}
	} else if m := diskspdTotal.FindStringSubmatch(text); m != nil {
		if c, op := p.row(n, m[1]); op >= 0 {
			p.total[op] = c
			p.finished = p.finished || p.section == "Write IO"
		}
	} else if m := diskspdFile.FindStringSubmatch(text); m != nil && len(p.spots[p.n].targets) > 1 {
		_, cells, _ := strings.Cut(text, "|")
		if i := strings.LastIndexByte(cells, '|'); i >= 0 {
			if c, op := p.row(n, cells[:i]); op >= 0 {
				a := p.spots[p.n]
				a.did(m[1], op, c)
			}
		}
	} else if m := diskspdRank.FindStringSubmatch(text); m != nil {
		p.rank(m[1], m[2])
	} else if m := diskspdCPU.FindStringSubmatch(text); m != nil {
		if v, err := quantity(m[1]); err == nil {
			p.figures["cpu"] = v
		}
	}
}

// parameter takes a line of what is asked.
func (p *diskspdParser) parameter(text string) {
	if m := diskspdParts.FindStringSubmatch(text); m != nil {
		p.spot, p.flight = m[1], 1
		return
	}
	a := p.spots[p.spot]
	if m := diskspdPath.FindStringSubmatch(text); m != nil {
		a.targets = append(a.targets, diskspdTarget{path: m[1]})
	} else if m := diskspdAsked.FindStringSubmatch(text); m != nil {
		v, _ := strconv.ParseFloat(m[2], 64) // digits
		switch m[1] {
		case "block size":
			a.target("block size", diskspdBytes(v, m[3]))
		case "number of outstanding I/O operations":
			a.target("outstanding", m[2])
			p.flight = v
			a.each += v
		case "threads per file":
			a.target("threads", m[2])
			a.flight += v * p.flight
		case "total threads":
			a.add("threads", m[2])
			a.total = v
		case "warm up time":
			a.warmUp = time.Duration(min(v, 1e6)) * time.Second
		}
	} else if m := diskspdMix.FindStringSubmatch(text); m != nil {
		a.target("mix", m[1])
	} else if m := diskspdPlaces.FindStringSubmatch(text); m != nil {
		a.target("places", m[1])
	} else if strings.HasSuffix(text, "cache disabled") || strings.Contains(text, "writethrough") ||
		strings.HasSuffix(text, "O_DIRECT") || strings.HasSuffix(text, "O_SYNC") {
		a.add("caches", strings.TrimSpace(text))
	} else {
		return
	}
	p.spots[p.spot] = a
}

// row takes a row of a table without its first cell, by the names of its columns.
func (p *diskspdParser) row(n int, text string) (c workload.Counters, op int) {
	op = slices.Index([]string{"Read IO", "Write IO"}, p.section)
	if op < 0 {
		return c, op
	}
	row := figures{}
	for at, cell := range strings.Split(text, "|") {
		if cell = strings.TrimSpace(cell); at+1 < len(p.columns) && cell != "N/A" {
			v, err := quantity(cell)
			if err != nil {
				p.book.skip(n, "%v, in the column %q", err, p.columns[at+1])
				return c, -1
			}
			row[p.columns[at+1]] = v
		}
	}
	return workload.Counters{Ops: whole(row.or("I/Os")), Bytes: whole(row.or("bytes")),
		Seconds: row.or("AvgLat") / 1e3 * row.or("I/Os")}, op
}

// rank takes a row of percentiles.
func (p *diskspdParser) rank(name, cells string) {
	p.ranks = name != "max"
	known := map[string]string{"50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99", "3-nines": "p99.9",
		"4-nines": "p99.99", "max": "max"}
	if known[name] == "" {
		return
	}
	for i, cell := range strings.Split(cells, "|") {
		v, err := quantity(strings.TrimSpace(cell))
		if err == nil && i < 2 {
			p.figures[[]string{"read_", "write_"}[i]+known[name]] = v
		}
	}
}

// end makes a stretch of what was found since its begin.
func (p *diskspdParser) end() {
	s := p.s
	if p.s = nil; s == nil {
		return
	}
	a, told := p.spots[p.n]
	if !told {
		a = p.called
	}
	if !p.began.IsZero() && p.first {
		s.start = p.began.Add(a.warmUp)
		p.book.dated = "DISKSPD's own start time, after its warm-up"
	}
	p.first = false
	switch {
	case s.length == 0 || p.total.Total() == 0 && !p.finished:
		p.book.lost = cmp.Or(p.book.lost, s.failure, "results that end before their totals are left out")
		return
	case (!p.finished || p.ranks) && s.failure == "":
		s.failure = "the file ends within the results of DISKSPD"
	}
	s.operations = diskspdOperations()
	s.facts, s.concurrency, s.unfailing = a.facts, a.atOnce(), true
	rep := workload.Report{Elapsed: s.length, Final: true, Ops: p.total}
	ranks := false
	for _, op := range s.operations {
		for _, q := range []string{"p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"} {
			if v, ok := p.figures[op.Name+"_"+q]; ok {
				s.measures, rep.Values, ranks = append(s.measures, single(op.Name+"_"+q, "ms")),
					append(rep.Values, v), true
			}
		}
	}
	if v, ok := p.figures["cpu"]; ok {
		s.measures, rep.Values = append(s.measures, level("cpu", "%")), append(rep.Values, v)
	}
	s.unseen = []string{diskspdRanks, "the device underneath: its counters are in no such file"}
	if !ranks && p.total[0].Seconds+p.total[1].Seconds == 0 {
		s.unseen[0] = "latency, percentiles among it: DISKSPD measures it with -L only"
	}
	s.reports = []workload.Report{rep}
	p.book.stretches = append(p.book.stretches, a.apart(*s)...)
}

const diskspdRanks = "percentiles and means of latency but those that DISKSPD printed"

func diskspdOperations() []result.Operation {
	return []result.Operation{{Name: "read", Noun: "reads", Bytes: true, Block: result.BlockRead},
		{Name: "write", Noun: "writes", Bytes: true, Block: result.BlockWrite}}
}
