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

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	abText     = "ab"
	heyText    = "hey"
	ohaJSON    = "oha-json"
	vegetaText = "vegeta"
	vegetaJSON = "vegeta-json"
)

var (
	abAny    = lazyregexp.New(`(?m)^(?:This is ApacheBench, Version |Requests per second: +[\d.]+ \[#/sec\])`)
	abField  = lazyregexp.New(`^([A-Z][\w -]+): +(\S.*)$`)
	abFailed = lazyregexp.New(`^ +\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)`)
	abTimes  = lazyregexp.New(`^\d+ +(\d+)(?: +[\d.]+ +\d+)? +(\d+)$`)
	abRank   = lazyregexp.New(`^ +(\d+)% +(\d+)`)
	abEnded  = lazyregexp.New(`^Total of \d+ requests completed|apr_\w+: .*`)

	heyAny    = lazyregexp.New(`(?m)^  Requests/sec:\s+[\d.]+`)
	heyField  = lazyregexp.New(`^  ([A-Z][\w/ ]+):\s+([\d.]+) ?(.*)$`)
	heyRank   = lazyregexp.New(`^  ([\d.]+)%%? in ([\d.]+) (.+)$`)
	heyAnswer = lazyregexp.New(`^  \[(\d+)\]\s(?:(\d+) responses|(.*))$`)
	coloured  = lazyregexp.New("\x1b\\[[\\d;]*m")

	vegetaAny = lazyregexp.New(`(?m)^Requests +\[total, rate`)
	vegetaRow = lazyregexp.New(`^([A-Z][\w ]+?) +\[([^\]]+)\] +(\S.*)$`)

	vegetaJSONAny = lazyregexp.New(`^\s*\{\s*"latencies"\s*:\s*\{\s*"total"\s*:`)
	ohaJSONAny    = lazyregexp.New(`"summary"\s*:\s*\{\s*"successRate"\s*:`)
)

// serverUnseen stands for what a client's own figures do not hold.
const serverUnseen = "the server underneath: its counters are in no such file"

func webReaders() []reader {
	return []reader{
		{name: abText, holds: "what ApacheBench (ab) prints", book: true, recognise: abAny.Match},
		{name: ohaJSON, holds: "oha's JSON", book: true, recognise: ohaJSONAny.Match},
		{name: heyText, holds: "what hey, oha and etcd's benchmark print", book: true, recognise: heyAny.Match},
		{name: vegetaJSON, holds: "vegeta's report as JSON", book: true, recognise: vegetaJSONAny.Match},
		{name: vegetaText, holds: "vegeta's report", book: true, recognise: vegetaAny.Match},
	}
}

// webTest holds what a tool tells of a test of a web server. Times are in seconds.
type webTest struct {
	tally
	answers map[string]float64 // by their code
	well    float64            // those without a code
	failed  float64            // requests without an answer
	cut     float64            // requests that the end of the test cut off
	bytes   float64
	mean    float64
	seconds float64
}

func newWebTest(tool string) *webTest {
	t := &webTest{tally: *newTally(tool, 0), answers: map[string]float64{}}
	t.unseen = []string{serverUnseen}
	return t
}

// rank takes a percentile, or the largest time, unless it is 0, as what is not known is.
func (t *webTest) rank(q string, seconds float64) {
	if q = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(q, "th"), ".00"), ".0"); q != "max" {
		if strings.Contains(q, ".") {
			q = strings.TrimRight(q, "0")
		}
		q = "p" + q
	}
	if seconds > 0 && !slices.Contains([]string{"p10", "p25", "p66", "p80"}, q) {
		t.figure(single("request_"+q, "ms"), seconds*1e3)
	}
}

// test is a stretch of what was told. Answers of 400 and above have failed.
func (t *webTest) test() stretch {
	bad := 0.0
	for code, n := range t.answers {
		if v := decimal(code, ""); v >= 100 && v < 400 {
			t.well += n
		} else {
			bad += n
		}
	}
	t.report.Errors = whole(bad + t.failed)
	t.length = inSeconds(t.seconds)
	t.report.Elapsed = t.length
	t.did(result.Operation{Name: "request", Noun: "requests"}, t.well, t.bytes, t.mean)
	if bad > 0 {
		t.notes = append(t.notes, "times are of all answers, those of 400 and above among them")
	}
	return t.done()
}

// add puts a test into a book, or says why there is none.
func (b *book) add(t *webTest, tool string) {
	if t == nil {
		return
	}
	if inSeconds(t.seconds) == 0 || len(t.answers) == 0 && t.well+t.failed == 0 {
		b.lost = cmp.Or(b.lost, "it counts no requests, or ends before "+tool+"'s totals: the test, or the file, is "+
			"cut short")
		return
	}
	b.stretches = append(b.stretches, t.test())
}

// abTest is a test of ab on its way, and its fields.
type abTest struct {
	*webTest
	fields map[string]string
	each   string // the first time per request, in milliseconds
	total  float64
	apart  float64 // answers of another length
	gone   float64 // requests that came to no good end
	open   bool    // its percentiles have begun, and not ended
}

// readAB reads one test after another. ab calls answers failed that are of another length than the first.
func readAB(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "ab"}
	var t *abTest
	end := func() {
		if t == nil {
			return
		}
		n, bad := decimal(t.fields["Complete requests"], ""), decimal(t.fields["Non-2xx responses"], "")
		t.seconds = decimal(firstWord(t.fields["Time taken for tests"]), "")
		// The time has three decimals, and the rate two.
		if rate := decimal(firstWord(t.fields["Requests per second"]), ""); rate > 10*t.seconds {
			t.seconds = n / rate
		}
		t.bytes = decimal(firstWord(t.fields["Total transferred"]), "")
		t.concurrency = decimal(t.fields["Concurrency Level"], "")
		t.asked("path", strings.SplitN(t.fields["Document Path"], "?", 2)[0])
		if t.fields["Keep-Alive requests"] != "" {
			t.asked("connections", "kept alive")
		}
		t.failed += bad
		t.well = max(n-bad-t.gone, 0)
		const fine = 20e-3 // of whole milliseconds
		if t.mean = t.total; t.mean < fine {
			t.mean = decimal(t.each, "") / 1e3
			t.notes = append(t.notes,
				"its mean is concurrency × time / requests, as ab measures times in whole milliseconds")
		}
		t.notes = append(t.notes, "percentiles are in whole milliseconds; times are of all answers")
		if t.apart > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%.0f answers are of another length than the first, which ab calls "+
				"failed: here they are not, unless their code is none of 2xx", t.apart))
		}
		if t.open || t.fields["Total"] == "" {
			t.failure = cmp.Or(t.failure, "it ends within ab's results: the file is cut short")
		}
		if _, whole := t.fields["Requests per second"]; n > 0 && whole {
			b.add(t.webTest, "ab")
		} else {
			b.lost = cmp.Or(b.lost, t.failure, "it ends before ab's totals: the test, or the file, is cut short")
		}
		t = nil
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		m := abField.FindStringSubmatch(text)
		if strings.HasPrefix(text, "This is ApacheBench") || m != nil && m[1] == "Concurrency Level" &&
			(t == nil || t.fields[m[1]] != "") {
			end()
			t = &abTest{webTest: newWebTest("ab"), fields: map[string]string{}}
		}
		switch {
		case t == nil:
		case m != nil && m[1] == "Total":
			t.fields["Total"] = m[2]
			if v := abTimes.FindStringSubmatch(m[2]); v != nil {
				t.total = decimal(v[1], "") / 1e3
				t.rank("max", decimal(v[2], "")/1e3)
			}
		case m != nil && m[1] == "Time per request":
			t.each = cmp.Or(t.each, firstWord(m[2]))
		case m != nil && len(t.fields) < mostKinds:
			t.fields[m[1]] = m[2]
		case abEnded.MatchString(text):
			t.failure = cmp.Or(t.failure, "ab says: "+oneLine(abEnded.FindString(text)))
		case strings.HasPrefix(text, "Percentage of the requests"):
			t.open = true
		default:
			if m := abFailed.FindStringSubmatch(text); m != nil {
				t.gone = decimal(m[2], "") + decimal(m[4], "")
				t.failed, t.apart = t.gone+decimal(m[1], ""), decimal(m[3], "")
			} else if m := abRank.FindStringSubmatch(text); m != nil && m[1] == "100" {
				t.open = false
			} else if m != nil {
				t.rank(m[1], decimal(m[2], "")/1e3)
			}
		}
		return nil
	})
	end()
	return b, err
}

// heySeconds is a time of hey and oha in seconds; oha has units of several.
func heySeconds(number, in string) float64 {
	return decimal(number, "") * map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1, "secs": 1,
		"10 sec": 10, "min": 60, "10 min": 600, "hr": 3600}[strings.TrimSuffix(in, ".")]
}

const (
	etcdBench = "etcd's benchmark"
	ohaDue    = "called with --latency-correction, oha counts times from when a request was due"
)

// mostOfHey is how many requests hey keeps times and codes of.
const mostOfHey = 1_000_000

// readHey reads what hey, oha and etcd's benchmark print, one test after another.
func readHey(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "hey"}
	var t *webTest
	rate, told := 0.0, false
	end := func() {
		if t != nil && rate > 0 {
			codes := 0.0
			for _, n := range t.answers {
				codes += n
			}
			all := math.Round(rate*t.seconds) - t.failed
			switch {
			case t.workload == etcdBench: // it has no codes, and its rate is of what went well
				t.well, told = math.Round(rate*t.seconds), len(t.measures) > 1
			case codes == mostOfHey && all > codes:
				for code := range t.answers {
					t.answers[code] *= all / codes
				}
				t.mean, codes = t.mean*codes/all, all
				t.notes = append(t.notes, "hey keeps codes and times of its first million requests: percentiles are "+
					"of those, and codes of the others are taken to be alike")
			case math.Abs(all-t.cut-codes) > 0.5+all*(1e-4/t.seconds+1e-4/rate):
				told = false
			}
			if told && rate > t.seconds && t.workload != etcdBench {
				t.seconds = (codes + t.failed + t.cut) / rate // both have four decimals
			}
			if !told {
				t.failure = "it ends before all that it counts is told: the file is cut short"
			}
		}
		b.add(t, b.tool)
		t, rate, told = nil, 0, false
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := coloured.ReplaceAllString(strings.ToValidUTF8(string(line), "?"), "")
		text = strings.TrimRight(text, " \t\r")
		if text == "Summary:" {
			end()
			t = newWebTest("hey")
		}
		if t == nil {
			return nil
		}
		if m := heyField.FindStringSubmatch(text); m != nil {
			switch m[1] {
			case "Success rate":
				t.workload, b.tool = "oha", "oha"
				t.notes = append(t.notes, ohaDue)
			case "Stddev":
				t.workload, b.tool = etcdBench, etcdBench
			case "Total":
				t.seconds = heySeconds(m[2], m[3])
			case "Slowest":
				t.rank("max", heySeconds(m[2], m[3]))
			case "Average":
				t.mean = heySeconds(m[2], m[3])
			case "Requests/sec":
				rate = decimal(m[2], "")
			case "Total data":
				if prefix, _, ok := strings.Cut(m[3], "iB"); ok || m[3] == "B" {
					t.bytes = binary(m[2], strings.TrimSuffix(prefix, "B"))
				} else {
					t.bytes = decimal(m[2], "")
				}
			}
		} else if m := heyRank.FindStringSubmatch(text); m != nil && !told {
			t.rank(m[1], heySeconds(m[2], m[3]))
		} else if m := heyAnswer.FindStringSubmatch(text); m != nil && m[2] != "" {
			t.answers[m[1]] += decimal(m[2], "")
		} else if m != nil && !strings.HasPrefix(m[3], "|") {
			t.unanswered(m[3], decimal(m[1], ""))
		}
		told = told || strings.HasPrefix(text, "Status code dist") || strings.HasPrefix(text, "Error dist") ||
			strings.HasSuffix(text, " only):")
		return nil
	})
	end()
	return b, err
}

// unanswered takes requests without an answer. Those that oha's end cut off have not failed.
func (t *webTest) unanswered(why string, n float64) {
	if why == "aborted due to deadline" {
		t.notes = append(t.notes, fmt.Sprintf("%.0f requests were on their way when oha ended, and are not counted", n))
		t.cut = n
		return
	}
	t.failed += n
}

// readOhaJSON reads documents of oha, one after another.
func readOhaJSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "oha"}
	return b, jsonValues(r, func(_ int, v json.RawMessage) error {
		var doc struct {
			Summary struct {
				Total, Slowest, Average float64
				TotalData               float64
			}
			LatencyPercentiles     map[string]*float64
			StatusCodeDistribution map[string]float64
			ErrorDistribution      map[string]float64
		}
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		t := newWebTest("oha")
		t.notes = append(t.notes, ohaDue)
		t.answers, t.bytes, t.mean = doc.StatusCodeDistribution, doc.Summary.TotalData, doc.Summary.Average
		t.seconds = doc.Summary.Total
		for _, why := range slices.Sorted(maps.Keys(doc.ErrorDistribution)) {
			t.unanswered(why, doc.ErrorDistribution[why])
		}
		for _, q := range slices.Sorted(maps.Keys(doc.LatencyPercentiles)) {
			if v := doc.LatencyPercentiles[q]; v != nil {
				t.rank(strings.TrimPrefix(q, "p"), *v)
			}
		}
		t.rank("max", doc.Summary.Slowest)
		b.add(t, "oha")
		return b.tooMany("tests")
	})
}

// readVegetaJSON reads reports of vegeta, one after another.
func readVegetaJSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "vegeta"}
	return b, jsonValues(r, func(_ int, v json.RawMessage) error {
		var doc struct {
			Latencies      map[string]float64 // in nanoseconds
			Earliest       time.Time
			Duration, Wait float64
			BytesIn        struct{ Total float64 } `json:"bytes_in"`
			StatusCodes    map[string]float64      `json:"status_codes"`
		}
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		t := newWebTest("vegeta")
		t.start, t.answers, t.bytes = doc.Earliest, doc.StatusCodes, doc.BytesIn.Total
		t.seconds, t.mean = (doc.Duration+doc.Wait)/1e9, doc.Latencies["mean"]/1e9
		for _, q := range []string{"50th", "90th", "95th", "99th", "max"} {
			t.rank(q, doc.Latencies[q]/1e9)
		}
		b.add(t, "vegeta")
		return b.tooMany("tests")
	})
}

// readVegeta reads reports of vegeta as text, one after another.
func readVegeta(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "vegeta"}
	var t *webTest
	asked := 0.0
	end := func() {
		if t != nil {
			for _, n := range t.answers {
				asked -= n
			}
			if asked != 0 {
				t.failure = "its codes are not those of all requests: the file is cut short"
			}
		}
		b.add(t, "vegeta")
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		m := vegetaRow.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		if m[1] == "Requests" {
			end()
			t, asked = newWebTest("vegeta"), decimal(strings.Split(m[3], ",")[0], "")
		}
		if t == nil {
			return nil
		}
		names, values := strings.Split(m[2], ", "), strings.Split(m[3], ", ")
		if m[1] == "Status Codes" {
			for _, each := range strings.Fields(m[3]) {
				code, count, _ := strings.Cut(each, ":")
				t.answers[code] += decimal(count, "")
			}
			return nil
		}
		if len(names) != len(values) {
			return errors.New(strconv.Quote(oneLine(text)) + " has other than the values that it names")
		}
		for i, name := range names {
			d, err := time.ParseDuration(values[i])
			switch {
			case m[1] == "Bytes In" && name == "total":
				t.bytes = decimal(values[i], "")
			case m[1] != "Duration" && m[1] != "Latencies":
			case err != nil:
				return fmt.Errorf("%.40q is no time", values[i])
			case m[1] == "Duration" && name == "total":
				t.seconds = d.Seconds()
			case name == "mean":
				t.mean = d.Seconds()
			case m[1] == "Latencies" && name != "min":
				t.rank(name, d.Seconds())
			}
		}
		return b.tooMany("tests")
	})
	end()
	return b, err
}
