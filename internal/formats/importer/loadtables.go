package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	redisText     = "redis-benchmark"
	slapText      = "mysqlslap"
	locustStats   = "locust"
	locustHistory = "locust-history"
	memtierText   = "memtier"
	memtierJSON   = "memtier-json"
)

var (
	redisAny   = lazyregexp.New(`(?m)^ *\d+ requests completed in [\d.]+ seconds\r?$`)
	redisBegin = lazyregexp.New(`^====== (.+) ======$`)
	redisDone  = lazyregexp.New(`^ *(\d+) requests completed in ([\d.]+) seconds$`)
	redisAsked = lazyregexp.New(`^ *(?:(\d+) (parallel clients|bytes payload)|(keep alive|threads): (\d+))$`)
	redisRate  = lazyregexp.New(`^(?: *throughput summary: )?([\d.]+) requests per second$`)
	redisWrong = lazyregexp.New(`^(?:Error from server: .*|Could not connect to Redis .*|Error: .*)`)

	slapAny = lazyregexp.New(`(?m)^\tAverage number of seconds to run all queries: [\d.]+ seconds|` +
		`^[\w-]*,(?:mixed|update|write|key|read|load|query),\d+\.\d{3},\d+\.\d{3},\d+\.\d{3},\d+,\d+\r?$`)
	slapCSV   = lazyregexp.New(`^([\w-]*),[a-z]+,(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),(\d+),(\d+)$`)
	slapRow   = lazyregexp.New(`^\t([A-Z][\w ]+): ([\d.]+)(?: seconds)?$`)
	slapOf    = lazyregexp.New(`^\tRunning for engine (\S+)$`)
	slapWrong = lazyregexp.New(`^(?:mysqlslap|mariadb-slap): (?:Error|Cannot|Can't|\[ERROR\]).*`)

	locustAny        = lazyregexp.New(`^"?Type"?,"?Name"?,"?Request Count"?,"?Failure Count"?,`)
	locustHistoryAny = lazyregexp.New(`^"?Timestamp"?,"?User Count"?,"?Type"?,"?Name"?,.*Total Request Count`)
)

func loadTableReaders() []reader {
	return []reader{
		{name: redisText, holds: "what redis-benchmark prints without -q and --csv", book: true,
			recognise: redisAny.Match},
		{name: slapText, holds: "what mysqlslap and mariadb-slap print, also as CSV", book: true,
			recognise: slapAny.Match},
		{name: locustStats, holds: "locust's figures of a test (_stats.csv)", book: true, recognise: locustAny.Match},
		{name: locustHistory, holds: "locust's course (_stats_history.csv)", book: true,
			recognise: locustHistoryAny.Match},
		{name: memtierText, holds: "what memtier_benchmark prints", book: true, recognise: memtierAny.Match},
		{name: memtierJSON, holds: "memtier_benchmark --json-out-file", book: true, recognise: memtierJSONAny.Match},
	}
}

// redisTest is a test of one command on its way.
type redisTest struct {
	*tally
	n, seconds, rate, mean float64
	ended                  bool // its rate, the last of what it prints of some versions, is told
}

// readRedis reads one test after another: redis-benchmark tries a command after the other.
func readRedis(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "redis-benchmark"}
	var t *redisTest
	var heads []string // of a table of times
	end := func() {
		switch {
		case t == nil:
		case t.n == 0 || t.seconds == 0:
			b.lost = cmp.Or(b.lost, "it ends before redis-benchmark's counts: the test, or the file, is cut short")
		default:
			if t.rate > t.seconds { // both are rounded to hundredths, in which the larger number says more
				t.seconds = t.n / t.rate
			}
			if !slices.ContainsFunc(t.facts, func(f result.Fact) bool { return f.Name == "threads" }) {
				t.asked("threads", "1") // it prints them where there are more
			}
			t.length = inSeconds(t.seconds)
			t.report.Elapsed, t.unfailing = t.length, true
			t.unseen = []string{serverUnseen}
			t.did(result.Operation{Name: "request", Noun: "requests"}, t.n, 0, t.mean/1e3)
			if !t.ended {
				t.failure = "it ends before redis-benchmark's rate: the file is cut short"
			}
			b.stretches = append(b.stretches, t.done())
		}
		t, heads = nil, nil
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := strings.TrimRight(lastReturn(strings.ToValidUTF8(string(line), "?")), " \t")
		if m := redisBegin.FindStringSubmatch(text); m != nil {
			end()
			t = &redisTest{tally: newTally("redis-benchmark "+oneLine(m[1]), 0)}
			t.asked("test", oneLine(m[1]))
			return b.tooMany("tests")
		}
		if redisWrong.MatchString(text) {
			b.lost = cmp.Or(b.lost, "redis-benchmark says: "+oneLine(text))
		}
		if t == nil {
			return nil
		}
		if m := redisDone.FindStringSubmatch(text); m != nil {
			t.n, t.seconds = decimal(m[1], ""), decimal(m[2], "")
		} else if m := redisAsked.FindStringSubmatch(text); m != nil {
			switch name := m[2] + m[3]; name {
			case "parallel clients":
				t.concurrency = decimal(m[1], "")
			case "bytes payload":
				t.asked("payload", m[1]+" bytes")
			default:
				t.asked(name, m[4])
			}
		} else if m := redisRate.FindStringSubmatch(text); m != nil {
			t.rate, t.ended = decimal(m[1], ""), !strings.Contains(text, "summary")
		} else if cells := strings.Fields(text); len(cells) > 3 && cells[0] == "avg" {
			heads = cells
		} else if heads != nil && len(cells) == len(heads) {
			t.ended = true
			for i, name := range heads {
				switch {
				case name == "avg":
					t.mean = decimal(cells[i], "")
				case name != "min" && timeRank.MatchString(name):
					t.figure(single("request_"+name, "ms"), decimal(cells[i], ""))
				}
			}
			heads = nil
		}
		return nil
	})
	end()
	return b, err
}

// slapColumns are the names of the figures of a line of CSV.
var slapColumns = []string{"Average number of seconds to run all queries",
	"Minimum number of seconds to run all queries",
	"Maximum number of seconds to run all queries", "Number of clients running queries",
	"Average number of queries per client"}

// readSlap reads one benchmark after another: as many queries as its clients have on average, in the mean time of a
// repetition.
func readSlap(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "mysqlslap"}
	var f figures
	engine := ""
	end := func() {
		if f == nil {
			return
		}
		length, clients, each := f.or(slapColumns[0]), f.or(slapColumns[3]), f.or(slapColumns[4])
		switch {
		case length == 0 || clients == 0 || !f.has(slapColumns[4]):
			b.lost = cmp.Or(b.lost, "it ends before mysqlslap's counts, or is cut short")
		case each == 0:
			b.lost = cmp.Or(b.lost, "its clients had less than one query each, which mysqlslap counts as 0")
		default:
			t := newTally(strings.TrimSpace(fmt.Sprintf("mysqlslap %s", engine)), inSeconds(length))
			t.did(result.Operation{Name: "query", Noun: "queries"}, clients*each, 0, 0)
			t.concurrency, t.unfailing = clients, true
			t.asked("engine", engine)
			for _, name := range slapColumns[1:3] {
				if f.has(name) {
					t.figure(single("all_queries_"+strings.ToLower(name[:3]), "s"), f[name])
				}
			}
			t.notes = append(t.notes, "its rate is clients × queries of each, which mysqlslap rounds down, by the mean "+
				"time of its repetitions, of which it does not say how many")
			t.unseen = []string{"the server underneath, and how long a query took: neither is in such a file"}
			b.stretches = append(b.stretches, t.done())
		}
		f, engine = nil, ""
	}
	err := eachLine(r, func(n int, line []byte) error {
		text := lineText(line)
		switch m := slapRow.FindStringSubmatch(text); {
		case text == "Benchmark":
			end()
			f = figures{}
			return b.tooMany("benchmarks")
		case slapCSV.MatchString(text):
			end()
			row := slapCSV.FindStringSubmatch(text)
			engine, f = oneLine(row[1]), figures{}
			for i, name := range slapColumns {
				f[name] = decimal(row[i+2], "")
			}
			end()
			return b.tooMany("benchmarks")
		case slapWrong.MatchString(text):
			b.lost = cmp.Or(b.lost, oneLine(text))
		case strings.Count(text, ",") > 1 && f == nil:
			b.broke(0, fmt.Sprintf("line %d is no row of mysqlslap's: the file is cut short or damaged", n))
		case f == nil:
		case slapOf.MatchString(text):
			engine = oneLine(slapOf.FindStringSubmatch(text)[1])
		case m != nil:
			f[m[1]] = decimal(m[2], "")
		}
		return nil
	})
	end()
	return b, err
}

// locustSum is the name of locust's row of all requests together.
const locustSum = "Aggregated"

// readLocust reads the figures of one test after another: of all requests together.
func readLocust(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "locust"}
	var columns, requests []string
	open := false
	cut := func() {
		if open {
			b.broke(len(b.stretches), "it ends before locust's row of all requests: the file is cut short")
		}
		requests, open = nil, false
	}
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if cells[0] == "Type" {
			cut()
			columns, open = cells, true
			return b.tooMany("tests")
		}
		if len(cells) != len(columns) || !open {
			return nil
		}
		row := named(columns, cells)
		if row["Name"] != locustSum {
			requests = append(requests, locustName(row))
			return nil
		}
		all, rate := decimal(row["Request Count"], ""), decimal(row["Requests/s"], "")
		failed := decimal(row["Failure Count"], "")
		if all == 0 || rate == 0 {
			return errors.New("it counts no requests")
		}
		t := newTally("locust", inSeconds(all/rate))
		t.report.Errors = whole(failed)
		well := max(all-failed, 0)
		t.did(result.Operation{Name: "request", Noun: "requests"}, well, well*decimal(row["Average Content Size"], ""),
			decimal(row["Average Response Time"], "")/1e3)
		for _, name := range columns {
			if q, is := strings.CutSuffix(name, "%"); is && !slices.Contains([]string{"66", "75", "80", "100"}, q) {
				if v, err := quantity(row[name]); err == nil && v > 0 {
					t.figure(single("request_p"+q, "ms"), v)
				}
			}
		}
		if v, err := quantity(row["Max Response Time"]); err == nil && v > 0 {
			t.figure(single("request_max", "ms"), v)
		}
		locustSays(t, requests)
		t.notes = append(t.notes, "it ran for as long as its count and its rate say; locust rounds percentiles to two "+
			"digits")
		b.stretches = append(b.stretches, t.done())
		requests, open = nil, false
		return nil
	})
	cut()
	return b, err
}

// locustName is how a row names its requests.
func locustName(row map[string]string) string {
	return oneLine(strings.TrimSpace(row["Type"] + " " + row["Name"]))
}

func locustSays(t *tally, requests []string) {
	if slices.Sort(requests); len(requests) < mostKinds {
		t.asked("requests", strings.Join(slices.Compact(requests), "; "))
	}
	t.notes = append(t.notes, "times are of all requests, those that failed among them")
	t.unseen = []string{serverUnseen}
}

// locustTest is a course on its way.
type locustTest struct {
	*tally
	from     int64
	users    map[float64]uint64
	requests []string
	last     workload.Report
}

// readLocustHistory reads one course after another: counts of all requests together, and their mean, grow.
func readLocustHistory(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "locust"}
	var columns []string
	var t *locustTest
	torn := 0
	end := func() {
		switch {
		case t != nil && len(t.reports) > 0:
			last := &t.reports[len(t.reports)-1]
			last.Final = true
			t.length = last.Elapsed
			t.operations = []result.Operation{{Name: "request", Noun: "requests", Bytes: last.Ops[0].Bytes > 0}}
			if t.concurrency = steadily(t.users, uint64(len(t.reports))); t.concurrency == 0 {
				t.notes = append(t.notes, "its users vary: no one number was at work")
			}
			locustSays(t.tally, t.requests)
			if torn > 0 {
				t.failure = fmt.Sprintf(tornRow, torn)
			}
			b.stretches = append(b.stretches, t.stretch)
		case t != nil:
			b.lost = cmp.Or(b.lost, "it counts no requests, or is cut short")
		}
		t, torn = nil, 0
	}
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if cells[0] == "Timestamp" {
			end()
			columns, t = cells, &locustTest{tally: newTally("locust", 0), users: map[float64]uint64{}}
			return b.tooMany("tests")
		}
		if t == nil {
			return nil
		}
		if len(cells) != len(columns) {
			torn = n
			return nil
		}
		row := named(columns, cells)
		if row["Name"] != locustSum {
			if name := locustName(row); !slices.Contains(t.requests, name) && len(t.requests) < mostKinds {
				t.requests = append(t.requests, name)
			}
			return nil
		}
		at, err := strconv.ParseInt(row["Timestamp"], 10, 64)
		all, err2 := quantity(row["Total Request Count"])
		failed, err3 := quantity(row["Total Failure Count"])
		if err = cmp.Or(err, err2, err3); err != nil {
			b.skip(n, "%s", err)
			return nil
		}
		if t.from == 0 {
			t.from, t.start = at, time.Unix(at, 0).UTC()
		}
		well := max(all-failed, 0)
		rep := workload.Report{Time: time.Unix(at, 0).UTC(), Elapsed: time.Duration(at-t.from) * time.Second,
			Errors: whole(failed), Ops: workload.Counts{{Ops: whole(well),
				Bytes:   whole(well * decimal(row["Total Average Content Size"], "")),
				Seconds: well * decimal(row["Total Average Response Time"], "") / 1e3}}}
		if k := len(t.reports); all == 0 || rep.Elapsed <= t.last.Elapsed ||
			k > 0 && rep.Ops[0].Ops < t.last.Ops[0].Ops {
			return nil
		}
		if len(t.reports) >= mostRows {
			return fmt.Errorf("more than %d rows: split the file", mostRows)
		}
		t.reports, t.last = append(t.reports, rep), rep
		if users, err := quantity(row["User Count"]); err == nil && users > 0 {
			t.users[users]++
		}
		return nil
	})
	end()
	return b, err
}
