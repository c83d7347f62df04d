package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
)

var (
	memtierPart    = `ALL STATS|RUN #\d+ RESULTS|BEST RUN RESULTS|WORST RUN RESULTS|AGGREGATED AVERAGE RESULTS \(\d+ runs\)`
	memtierAny     = lazyregexp.New(`(?m)^(?:` + memtierPart + `)\r?\n=====`)
	memtierJSONAny = lazyregexp.New(`"(?:` + memtierPart + `)"\s*:`)
	memtierBegin   = lazyregexp.New(`^(?:` + memtierPart + `)$`)
	memtierAsked   = lazyregexp.New(`^(\d+) +(Threads|Connections per thread|Requests per client|Seconds)$`)
	memtierWrong   = lazyregexp.New(`handle error response: (.*)|` +
		`(Connection error: .*|connection dropped\.|Connection timeout after .*)$`)
)

// memtierOf are all figures of a test, or of several that memtier_benchmark put together.
type memtierOf struct {
	part                    string
	kinds                   []string // as it names them, without those that did nothing
	rate, mean, bytes, miss map[string]float64
	ranks                   map[string][]memtierRank
	ended                   bool           // its row of all is there
	stats                   untyped.Object // of JSON, which has its course; else nil
}

// memtierRank is a percentile, in milliseconds.
type memtierRank struct {
	name string
	ms   float64
}

// memtierAll is how it names the sum of all kinds.
const memtierAll = "Totals"

func newMemtier(part string) *memtierOf {
	return &memtierOf{part: part, rate: map[string]float64{}, mean: map[string]float64{}, bytes: map[string]float64{},
		miss: map[string]float64{}, ranks: map[string][]memtierRank{}}
}

// memtierWhole reports whether a part stands for itself: of several runs that are not printed singly their average
// does. The best and the worst do not: they are the same run in some versions.
func memtierWhole(part string, singly bool) bool {
	return part == "ALL STATS" || strings.HasPrefix(part, "RUN #") || !singly && strings.HasPrefix(part, "AGGREGATED")
}

// stretches are a test as a whole, by what was asked, and where it had several kinds of requests the same told apart.
func (m *memtierOf) stretches(asked figures) ([]*tally, error) {
	clients := asked.or("Threads") * asked.or("Connections per thread")
	seconds := asked.or("Seconds")
	if n := asked.or("Requests per client") * clients; n > 0 && m.rate[memtierAll] > 0 {
		seconds = n / m.rate[memtierAll]
	}
	if seconds == 0 || len(m.kinds) == 0 {
		return nil, errors.New("it counts no requests, or is cut short")
	}
	name := "memtier_benchmark"
	if strings.HasPrefix(m.part, "RUN #") {
		name += " " + strings.ToLower(strings.TrimSuffix(m.part, " RESULTS"))
	}
	first := []string{memtierAll}
	if len(m.kinds) == 1 || !m.ended {
		first = m.kinds
	}
	t := m.tally(name, first, seconds)
	if strings.HasPrefix(m.part, "AGGREGATED") {
		t.notes = append(t.notes, "it is of several runs, as memtier_benchmark puts them together "+
			strings.TrimPrefix(m.part, "AGGREGATED AVERAGE RESULTS ")+": --print-all-runs has each")
	}
	t.asked("clients", strconv.FormatFloat(clients, 'f', -1, 64))
	busy := m.rate[memtierAll] * m.mean[memtierAll] / 1e3
	switch depth := asked.or("pipeline"); {
	case depth > 0:
		t.concurrency = clients * depth
		t.asked("pipeline", strconv.FormatFloat(depth, 'f', -1, 64))
	case busy <= clients:
		t.concurrency = clients
	default:
		t.notes = append(t.notes, fmt.Sprintf("its rate and its mean time make %.3g requests in flight, and it had %g clients: "+
			"how many each sends at once (--pipeline) stands in its JSON", busy, clients))
	}
	t.notes = append(t.notes, "a get of a key that is not there counts as done; bytes are those of its connections, both ways")
	if len(first) == len(m.kinds) {
		return []*tally{t}, nil
	}
	kinds := m.tally(name+", by kind", m.kinds, seconds)
	kinds.notes = []string{"the same requests as in " + name + ", told apart by kind"}
	kinds.beside, kinds.again = true, true
	return []*tally{t, kinds}, nil
}

// tally is of the requests of some kinds.
func (m *memtierOf) tally(name string, kinds []string, seconds float64) *tally {
	t := newTally(name, inSeconds(seconds))
	t.unseen, t.unfailing = []string{serverUnseen}, true
	for _, kind := range kinds {
		noun := strings.ToLower(kind)
		if kind == memtierAll {
			noun = "requests"
		}
		op := strings.TrimSuffix(noun, "s")
		t.did(result.Operation{Name: op, Noun: noun}, math.Round(m.rate[kind]*seconds), m.bytes[kind]*seconds,
			m.mean[kind]/1e3)
		for _, r := range m.ranks[kind] {
			t.figure(single(op+"_"+r.name, "ms"), r.ms)
		}
		if m.miss[kind] > 0 {
			t.figure(result.Measure{Name: op + "_misses", Unit: "gets/s", Kind: result.Level}, m.miss[kind])
		}
	}
	return t
}

// memtierPages are the parts of one output on its way.
type memtierPages struct {
	asked figures
	parts []*memtierOf
	wrong string // what it says of requests, by the first of them
	n     int
}

// fails makes words of what went wrong, "" where nothing did.
func (p *memtierPages) fails() string {
	more := ""
	if p.n == 0 {
		return ""
	} else if p.n > 1 {
		more = fmt.Sprintf(" (and %d more like it)", p.n-1)
	}
	return fmt.Sprintf("memtier_benchmark says: %s%s; its figures do not tell what failed from what was done", p.wrong, more)
}

// end adds what stands for itself to the book.
func (p *memtierPages) end(b *book) {
	singly := slices.ContainsFunc(p.parts, func(m *memtierOf) bool { return strings.HasPrefix(m.part, "RUN #") })
	from := len(b.stretches)
	for _, m := range p.parts {
		if !memtierWhole(m.part, singly) {
			continue
		}
		all, err := m.stretches(p.asked)
		if err != nil {
			b.lost = cmp.Or(b.lost, p.fails(), err.Error())
		}
		for _, t := range all {
			t.done()
			m.course(t)
			if t.failure = p.fails(); t.again {
				t.failure = ""
			} else if !m.ended {
				t.failure = cmp.Or(t.failure, "it ends before memtier_benchmark's row of all requests: the file is cut short")
			}
			b.stretches = append(b.stretches, t.stretch)
		}
	}
	if len(b.stretches) == from && len(p.parts) > 0 {
		b.lost = cmp.Or(b.lost, p.fails(), "it ends before memtier_benchmark's average: the file is cut short")
	}
	*p = memtierPages{asked: figures{}}
}

// readMemtier reads one output after another, each of one table or several.
func readMemtier(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "memtier_benchmark"}
	p := memtierPages{asked: figures{}}
	var m *memtierOf
	var columns []string
	err := eachLine(r, func(_ int, line []byte) error {
		text := strings.TrimRight(lastReturn(strings.ToValidUTF8(string(line), "?")), " ")
		if a := memtierAsked.FindStringSubmatch(text); a != nil {
			if len(p.parts) > 0 {
				p.end(b)
				m = nil
			}
			p.asked[a[2]] = decimal(a[1], "")
			return b.tooMany("tests")
		}
		if w := memtierWrong.FindStringSubmatch(text); w != nil {
			p.n++
			p.wrong = cmp.Or(p.wrong, oneLine(w[1]+w[2]))
		}
		if memtierBegin.MatchString(text) {
			m, columns = newMemtier(text), nil
			p.parts = append(p.parts, m)
			return b.tooMany("tests")
		}
		if m == nil || m.ended {
			return nil
		}
		if strings.HasPrefix(text, "Type ") {
			columns = strings.Fields(strings.ReplaceAll(text, " Latency", "Latency"))
			return nil
		}
		cells := strings.Fields(text)
		if len(columns) == 0 || len(cells) != len(columns) {
			return nil
		}
		kind := cells[0]
		m.ended = kind == memtierAll
		rate, err := quantity(cells[1])
		if err != nil || rate == 0 {
			return nil
		}
		if m.rate[kind] = rate; !m.ended {
			m.kinds = append(m.kinds, kind)
		}
		for i, name := range columns {
			v, err := quantity(cells[i])
			if err != nil {
				continue
			}
			what, timed := strings.CutSuffix(name, "Latency")
			switch {
			case timed && (what == "" || what == "Avg."):
				m.mean[kind] = v
			case timed && timeRank.MatchString(what):
				m.ranks[kind] = append(m.ranks[kind], memtierRank{what, v})
			case name == "KB/sec":
				m.bytes[kind] = v * 1024
			case name == "Misses/sec" && !m.ended: // that of all is its gets'
				m.miss[kind] = v
			}
		}
		return nil
	})
	p.end(b)
	return b, err
}

// readMemtierJSON reads one document after another, with the course of each kind of request by the second.
func readMemtierJSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "memtier_benchmark"}
	err := jsonValues(r, func(_ int, v json.RawMessage) error {
		var doc untyped.Object
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		p := memtierPages{asked: figures{}}
		for name, v := range doc.Object("run information") {
			if n, err := quantity(fmt.Sprint(v)); err == nil {
				p.asked[name] = n
			}
		}
		config := doc.Object("configuration")
		p.asked["pipeline"] = numberIn(config, "pipeline")
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			stats := doc.Object(name)
			if !memtierBegin.MatchString(name) || stats == nil {
				continue
			}
			m := newMemtier(name)
			m.stats, p.parts = stats, append(p.parts, m)
			for _, kind := range slices.Sorted(maps.Keys(stats)) {
				if row := stats.Object(kind); row != nil && row["Ops/sec"] != nil {
					m.takes(kind, row)
				}
			}
			m.meanOfAll()
			if n := stats.Object(memtierAll)["Connection Errors"]; n != nil && n != 0.0 {
				p.n, p.wrong = 1, fmt.Sprintf("Connection Errors %v", n)
			}
			if stats.Object("Runtime")["Interrupted"] == "true" {
				p.n, p.wrong = 1, cmp.Or(p.wrong, "Interrupted true")
			}
		}
		from := len(b.stretches)
		p.end(b)
		for _, name := range []string{"protocol", "ratio", "data_size", "key_pattern", "rate_limit"} {
			for i := range b.stretches[from:] {
				if v := config[name]; v != nil && fmt.Sprint(v) != "0" {
					s := &b.stretches[from+i]
					s.facts = append(s.facts, asked(name, oneLine(fmt.Sprint(v))))
				}
			}
		}
		return b.tooMany("tests")
	})
	return b, err
}

// meanOfAll makes the mean of all requests by their kinds, and has no misses but theirs: the mean that stands in the
// JSON is of something else in some versions, and 1 ms there where each kind has 1.6.
func (m *memtierOf) meanOfAll() {
	var n, sum float64
	for _, kind := range m.kinds {
		count := numberIn(m.stats.Object(kind), "Count")
		n, sum = n+count, sum+count*m.mean[kind]
	}
	if n > 0 {
		m.mean[memtierAll], m.miss[memtierAll] = sum/n, 0
	}
}

// takes reads the object of a kind of requests.
func (m *memtierOf) takes(kind string, row untyped.Object) {
	m.ended = m.ended || kind == memtierAll
	if numberIn(row, "Count") == 0 && numberIn(row, "Ops/sec") == 0 {
		return
	}
	if m.rate[kind] = numberIn(row, "Ops/sec"); kind != memtierAll {
		m.kinds = append(m.kinds, kind)
	}
	m.mean[kind], m.bytes[kind] = numberIn(row, "Latency"), numberIn(row, "KB/sec")*1024
	m.miss[kind] = numberIn(row, "Misses/sec")
	ranks := row.Object("Percentile Latencies")
	for _, name := range slices.Sorted(maps.Keys(ranks)) {
		q, is := strings.CutPrefix(name, "p")
		v, err := quantity(fmt.Sprint(ranks[name]))
		if rank, err2 := quantity(q); is && cmp.Or(err, err2) == nil {
			m.ranks[kind] = append(m.ranks[kind], memtierRank{"p" + strconv.FormatFloat(rank, 'f', -1, 64), v})
		}
	}
	m.ranks[kind] = append(m.ranks[kind], memtierRank{"max", numberIn(row, "Max Latency")})
}

// course puts the times of a run, and what it did by the second, into its stretch: both stand in JSON alone.
func (m *memtierOf) course(t *tally) {
	clock := m.stats.Object("Runtime")
	length := inSeconds(numberIn(clock, "Total duration") / 1e3)
	if start := numberIn(clock, "Start time"); start > 0 {
		t.start = time.UnixMilli(int64(min(start, 1e13))).UTC()
	}
	if length == 0 {
		return
	}
	last := &t.reports[len(t.reports)-1]
	for i, op := range last.Ops { // its counts were by the time that was asked for
		last.Ops[i] = workload.Counters{Bytes: whole(float64(op.Bytes) * length.Seconds() / t.length.Seconds())}
	}
	last.Elapsed, t.length = length, length
	seconds, same := map[int]workload.Counts{}, true
	done := make(workload.Counts, len(last.Ops))
	for i, kind := range m.kinds {
		row := m.stats.Object(kind)
		n, i := numberIn(row, "Count"), min(i, len(done)-1) // or all kinds in one
		last.Ops[i].Ops += whole(n)
		last.Ops[i].Seconds += n * m.mean[kind] / 1e3
		course, sum := row.Object("Time-Serie"), 0.0
		for at := range course {
			k, err := strconv.Atoi(at)
			if err != nil || k < 0 || len(seconds) >= mostRows {
				break
			}
			if seconds[k] == nil {
				seconds[k] = make(workload.Counts, len(done))
			}
			n := numberIn(course.Object(at), "Count")
			seconds[k][i].Ops += whole(n)
			seconds[k][i].Seconds += n * numberIn(course.Object(at), "Average Latency") / 1e3
			sum += n
		}
		same = same && sum == n
	}
	if !same {
		return // its course is of something else
	}
	var rows []workload.Report
	for _, k := range slices.Sorted(maps.Keys(seconds)) {
		for i := range done {
			done[i].Ops += seconds[k][i].Ops
			done[i].Seconds += seconds[k][i].Seconds
			if all := last.Ops[i].Ops; all > 0 {
				done[i].Bytes = whole(float64(last.Ops[i].Bytes) * float64(done[i].Ops) / float64(all))
			}
		}
		if at := time.Duration(k+1) * time.Second; at < length {
			rows = append(rows, workload.Report{Elapsed: at, Ops: slices.Clone(done), Values: last.Values})
		}
	}
	t.reports = append(rows, *last)
}
