package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
	"plimsoll/unit"
)

const (
	wrkText    = "wrk"
	ycsbText   = "ycsb"
	ycsbJSON   = "ycsb-json"
	mdtestText = "mdtest"
)

var (
	wrkBegins = lazyregexp.New(`(?m)^Running \S+ test @ (?:\w+://[^/?\s]*)?([^?\s]*)`)
	wrkAsked  = lazyregexp.New(`^ +(\d+) threads and (\d+) connections`)
	wrkMean   = lazyregexp.New(`^ +Latency +([\d.]+)(us|ms|s|m|h) +[\d.]+\w+ +([\d.]+)(us|ms|s|m|h) `)
	wrkRank   = lazyregexp.New(`^ *(\d+(?:\.\d+)?)% +([\d.]+)(us|ms|s|m|h)$`)
	wrkTotal  = lazyregexp.New(`^ +(\d+) requests in ([\d.]+)(us|ms|s|m|h), ([\d.]+)([KMGTP]?)B read`)
	wrkErrors = lazyregexp.New(`^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkRate   = lazyregexp.New(`^Requests/sec: +([\d.]+)$`)
	wrkBad    = lazyregexp.New(`^ +Non-2xx or 3xx responses: (\d+)`)

	ycsbAny     = lazyregexp.New(`(?m)^\[OVERALL\], RunTime\(ms\), [\d.]+`)
	ycsbRow     = lazyregexp.New(`^\[([A-Z][A-Z-]*)\], ([A-Za-z][^,]*|[\d.]+(?:st|nd|rd|th)?PercentileLatency\([um]s\)), *([\d.E+-]+|NaN)$`)
	ycsbRank    = lazyregexp.New(`^(\d[\d.]*)(?:st|nd|rd|th)?PercentileLatency\((us|ms)\)$`)
	ycsbCall    = lazyregexp.New(`^(?:Command line:|.*\bjava .*\bycsb\.Client|.*\bycsb(?:\.sh|\.bat)? (?:run|load)) .*`)
	ycsbJSONAny = lazyregexp.New(`"metric"\s*:\s*"[A-Z-]+"\s*,\s*"measurement"\s*:`)
	ycsbTarget  = lazyregexp.New(`(?: -target |\btarget=)(\d+)`)
	ycsbThreads = lazyregexp.New(`(?: -threads |\bthreadcount=)(\d+)`)
	ycsbAt      = lazyregexp.New(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):(\d{3}) (\d+) sec: `)

	mdtestBegins = lazyregexp.New(`(?m)^mdtest-(\S+) was launched with (\d+) total task`)
	mdtestAt     = lazyregexp.New(`^-- started at (\S+ \S+) --`)
	mdtestItems  = lazyregexp.New(`^(\d+) tasks, (\d+) (?:files|directories)`)
	mdtestOf     = lazyregexp.New(`^SUMMARY(?: (rate|time))?[^:]*: \(of (\d+) iterations\)`)
	mdtestRow    = lazyregexp.New(`^ +([A-Z][A-Za-z ]+?) *:? +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$`)
	mdtestWrong  = lazyregexp.New(`^(?:ERROR: .*|V-0: .*FAILED.*)`)
)

func requestReaders() []reader {
	return []reader{
		{name: wrkText, holds: "what wrk and wrk2 print", book: true, recognise: wrkBegins.Match},
		{name: ycsbText, holds: "YCSB's results as text", book: true, recognise: ycsbAny.Match},
		{name: ycsbJSON, holds: "YCSB's results as JSON", book: true, recognise: ycsbJSONAny.Match},
		{name: mdtestText, holds: "what mdtest prints: rates of creating, asking, reading and removing", book: true,
			recognise: mdtestBegins.Match},
	}
}

// wrkTime is a time of wrk in seconds.
func wrkTime(number, in string) float64 {
	return decimal(number, "") * unit.Seconds[in]
}

// readWrk reads one test after another. wrk2 counts from when a request was due, and says what it is by "Recorded
// Latency" or by its calibration.
func readWrk(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "wrk"}
	var t *tally
	var requests, shown, bytes, mean, bad, failed, late float64
	ranks, told := true, false
	end := func() {
		switch {
		case t == nil:
		case t.length == 0:
			b.lost = cmp.Or(b.lost, "it ends before wrk's totals: the test, or the file, is cut short")
		default:
			if !told {
				t.failure = "it ends before wrk's rates: the file is cut short"
			}
			t.notes = append(t.notes,
				"times are wrk's, of all requests, those with another answer than 2xx and 3xx among them")
			switch {
			case late > 0 && t.latency != "": // wrk2 looks at its connections every other second
				failed += late
				t.notes = append(t.notes, fmt.Sprintf("%.0f of its failures are timeouts, of which wrk2 counts one "+
					"for each connection that waits, again every 2 s", late))
			case late > 0: // they came to an end, and are among the requests
				bad = min(bad+late, requests)
				t.notes = append(t.notes, fmt.Sprintf("%.0f requests took longer than its timeout (2 s unless asked "+
					"for): they are taken as failed, and are in none of its times", late))
			}
			t.report.Elapsed, t.report.Errors = t.length, whole(bad+failed)
			t.did(result.Operation{Name: "request", Noun: "requests"}, max(requests-bad, 0), bytes, mean)
			b.stretches = append(b.stretches, t.done())
		}
		t, requests, shown, bytes, mean, bad, failed, late, ranks, told = nil, 0, 0, 0, 0, 0, 0, 0, true, false
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		if m := wrkBegins.FindStringSubmatch(text); m != nil {
			end()
			t = newTally("wrk", 0)
			t.asked("path", cmp.Or(m[1], "/"))
		}
		if t == nil {
			return nil
		}
		if m := wrkAsked.FindStringSubmatch(text); m != nil {
			t.concurrency = decimal(m[2], "")
			t.asked("threads", m[1])
		} else if m := wrkMean.FindStringSubmatch(text); m != nil && mean == 0 {
			mean = wrkTime(m[1], m[2])
			if ranks = wrkTime(m[3], m[4]) > 0; ranks { // else no request is in its times
				t.figure(single("request_max", "ms"), wrkTime(m[3], m[4])*1e3)
			}
		} else if m := wrkRank.FindStringSubmatch(text); m != nil && ranks && m[1] != "100.000" {
			q := strings.TrimSuffix(strings.TrimRight(m[1], "0"), ".")
			if !strings.Contains(m[1], ".") {
				q = m[1]
			}
			t.figure(single("request_p"+q, "ms"), wrkTime(m[2], m[3])*1e3)
		} else if m := wrkTotal.FindStringSubmatch(text); m != nil {
			requests, shown, bytes = decimal(m[1], ""), decimal(m[2], ""), binary(m[4], m[5])
			t.length = inSeconds(wrkTime(m[2], m[3]))
		} else if m := wrkErrors.FindStringSubmatch(text); m != nil {
			failed, late = decimal(m[1], "")+decimal(m[2], "")+decimal(m[3], ""), decimal(m[4], "")
		} else if m := wrkBad.FindStringSubmatch(text); m != nil {
			bad = decimal(m[1], "")
		} else if m := wrkRate.FindStringSubmatch(text); m != nil {
			told = true
			// Both are rounded to hundredths, in which the larger number says more.
			if rate := decimal(m[1], ""); rate > shown && inSeconds(requests/rate) > 0 {
				t.length = inSeconds(requests / rate)
			}
		}
		if strings.Contains(text, "Recorded Latency") || strings.Contains(text, "Thread calibration: mean lat.:") {
			t.latency, b.tool = "response time", "wrk2"
		}
		ranks = ranks && !strings.Contains(text, "Uncorrected Latency")
		return nil
	})
	end()
	return b, err
}

// ycsbSection holds what YCSB says of one kind of operation.
type ycsbSection struct {
	figures
	wrong, answers float64 // those that were neither 0 nor OK, and all
	batched        float64 // of those that were well: put into a batch only
}

// readYCSB reads one test after another. Those of a read-modify-write are counted as a read and an update too.
func readYCSB(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "YCSB"}
	var order []string
	sections := map[string]*ycsbSection{}
	threads, target, began := 0.0, "", time.Time{}
	end := func() error {
		all := sections["OVERALL"]
		if all == nil {
			return nil
		}
		t := newTally("ycsb", inSeconds(all.or("RunTime(ms)")/1e3))
		t.concurrency, t.start, began = threads, began, time.Time{}
		t.asked("target", target)
		missing := all.or("Throughput(ops/sec)") * all.or("RunTime(ms)") / 1e3 // operations of any answer
		short, buckets := !all.has("Throughput(ops/sec)"), false
		for _, name := range order {
			s := sections[name]
			n := s.or("Operations")
			lower := strings.ReplaceAll(strings.ToLower(name), "-", "_")
			switch failed := sections[name+"-FAILED"]; {
			case n == 0 && failed == nil || name == "CLEANUP" || strings.HasSuffix(name, "-FAILED") ||
				strings.HasPrefix(name, "INTENDED"):
				continue
			case failed != nil:
				t.report.Errors += whole(failed.or("Operations"))
				missing -= failed.or("Operations") + n
			default:
				missing -= n
				t.report.Errors += whole(s.wrong)
				n -= s.wrong
			}
			short = short || n > 0 && !s.has("AverageLatency(us)") || s.answers < s.or("Operations")
			if s.batched > 0 {
				t.notes = append(t.notes, fmt.Sprintf(
					"%.0f of its %ss were put into a batch, and their times are of that", s.batched, strings.ToLower(name)))
			}
			if name == "READ-MODIFY-WRITE" {
				missing += 2 * s.or("Operations")
				t.figure(single(lower+"_mean", "ms"), s.or("AverageLatency(us)")/1e3)
				t.notes = append(t.notes, "the reads and updates of read-modify-writes are among its reads and updates")
			} else {
				t.did(result.Operation{Name: lower, Noun: lower + "s"}, max(n, 0), 0, s.or("AverageLatency(us)")/1e6)
			}
			if s.or("Operations") == 0 { // all failed, and the figures are of nothing
				continue
			}
			for _, what := range slices.Sorted(maps.Keys(s.figures)) {
				if m := ycsbRank.FindStringSubmatch(what); m != nil {
					ms := s.figures[what] / 1e3
					if m[2] == "ms" { // the lower end of a bucket of its histogram
						ms, buckets = s.figures[what]+1, true
					}
					t.figure(single(lower+"_p"+m[1], "ms"), ms)
				}
			}
			if s.has("MaxLatency(us)") {
				t.figure(single(lower+"_max", "ms"), s.figures["MaxLatency(us)"]/1e3)
			}
		}
		if buckets {
			t.notes = append(t.notes,
				"its percentiles are in whole milliseconds, of which it prints the lower end: here the upper")
		}
		if len(t.operations) == 0 || t.length == 0 {
			b.lost = cmp.Or(b.lost, "it ends before YCSB's counts: the test, or the file, is cut short")
		} else {
			if short || math.Abs(missing) > 1 {
				t.failure = "the operations that it tells are not all that its throughput counts: the file is cut short"
			}
			b.stretches = append(b.stretches, t.done())
		}
		order, sections = nil, map[string]*ycsbSection{}
		return b.tooMany("tests")
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		if call := ycsbCall.FindString(text); call != "" {
			err := end()
			if target = ""; ycsbTarget.MatchString(call) {
				target = ycsbTarget.FindStringSubmatch(call)[1] + " operations/s"
			}
			threads = 1 // what it is where a call does not say
			if m := ycsbThreads.FindStringSubmatch(call); m != nil {
				threads = decimal(m[1], "")
			}
			return err
		}
		if m := ycsbAt.FindStringSubmatch(text); m != nil {
			var err error
			if sections["OVERALL"] != nil {
				err = end()
			}
			at, bad := time.Parse("2006-01-02 15:04:05.000", m[1]+"."+m[2])
			if bad == nil && began.IsZero() {
				began = at.Add(-inSeconds(decimal(m[3], "")))
				b.note(noZone)
			}
			return err
		}
		m := ycsbRow.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		if ycsbAny.MatchString(text) {
			if err := end(); err != nil {
				return err
			}
		}
		s := sections[m[1]]
		if s == nil {
			if len(order) >= mostKinds {
				return fmt.Errorf("more than %d kinds of operations", mostKinds)
			}
			s = &ycsbSection{figures: figures{}}
			order, sections[m[1]] = append(order, m[1]), s
		}
		v, err := quantity(m[3])
		switch answer, is := strings.CutPrefix(m[2], "Return="); {
		case err != nil:
		case is:
			s.answers += v
			if answer == "BATCHED_OK" {
				s.batched += v
			} else if !slices.Contains([]string{"0", "OK", ""}, answer) { // some ports leave out the answer
				s.wrong += v
			}
		case len(s.figures) < mostKinds:
			s.figures[m[2]] = v
		}
		return nil
	})
	if err2 := end(); err == nil {
		err = err2
	}
	return b, err
}

// readYCSBJSON reads the same figures, each an object of JSON, with or without a list around them.
func readYCSBJSON(f format, r io.Reader) (*book, error) {
	data, err := allJSON(r, "split the file")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for {
		at := bytes.IndexAny(data, "{")
		if at < 0 {
			break
		}
		text.Write(data[:at]) // how YCSB was called
		in := json.NewDecoder(bytes.NewReader(data[at:]))
		in.UseNumber()
		var row struct {
			Metric, Measurement string
			Value               json.Number
		}
		if bad := in.Decode(&row); bad != nil { // what follows one that was cut is read, too
			err = fmt.Errorf("its JSON ends early: %w", bad)
			data = data[at+1:]
			continue
		}
		fmt.Fprintf(&text, "\n[%s], %s, %s\n", row.Metric, row.Measurement, row.Value)
		data = data[at+int(in.InputOffset()):]
	}
	b, err2 := readYCSB(f, &text)
	return b, errors.Join(err, err2)
}

// mostKinds bounds the kinds of operations, and what is said of each.
const mostKinds = 200

// readMdtest reads a stretch for each kind of operation: mdtest does them one after another.
func readMdtest(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "mdtest"}
	var order []string
	rates, times := figures{}, figures{}
	var began time.Time
	table, iterations := "", "1"
	tasks, items, from, open := 0.0, 0.0, 0, false
	end := func() {
		var trees []string // of which the number is not told
		for _, name := range order {
			rate := rates.or(name)
			n := items
			if strings.HasPrefix(name, "Tree") {
				if n = 0; times.or(name) == 0 && rate > 0 {
					trees = append(trees, fmt.Sprintf("%s at %g a second", strings.ToLower(name), rate))
				}
			}
			length := times.or(name)
			if length == 0 && rate > 0 {
				length = n / rate
			}
			if rate <= 0 || inSeconds(length) == 0 || len(b.stretches) >= mostStretches {
				continue
			}
			t := newTally("mdtest "+strings.ToLower(name), inSeconds(length))
			t.did(result.Operation{Name: "entry", Noun: "entries"}, math.Round(rate*length), 0, 0)
			t.concurrency, t.unfailing = tasks, true
			t.asked("test", strings.ToLower(name))
			if len(b.stretches) == from && !began.IsZero() {
				t.start = began
			}
			if iterations != "1" {
				t.notes = append(t.notes, "rates are means over "+iterations+" iterations")
			}
			if times.or(name) == 0 {
				t.notes = append(t.notes, "how long it took is worked out from the rate and the number that was asked for")
			}
			b.stretches = append(b.stretches, t.done())
		}
		if n := len(b.stretches); n > from && trees != nil {
			b.stretches[n-1].notes = append(b.stretches[n-1].notes, "mdtest also says, without how many: "+
				strings.Join(trees[:min(len(trees), 4)], ", "))
		}
		if open {
			b.broke(from, "it does not say that mdtest came to its end: the test, or the file, is cut short")
		}
		order, rates, times, table, iterations, items, from, open = nil, figures{}, figures{}, "", "1", 0,
			len(b.stretches), false
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		if m := mdtestAt.FindStringSubmatch(text); m != nil {
			end()
			if at, err := time.Parse("01/02/2006 15:04:05", m[1]); err == nil {
				began = at
				b.note(noZone)
			}
		} else if m := mdtestBegins.FindStringSubmatch(text); m != nil {
			b.tool, tasks, open = "mdtest "+oneLine(m[1]), decimal(m[2], ""), true
		} else if m := mdtestItems.FindStringSubmatch(text); m != nil {
			items = decimal(m[2], "")
		} else if m := mdtestOf.FindStringSubmatch(text); m != nil {
			table, iterations = cmp.Or(m[1], "rate"), m[2]
		} else if m := mdtestRow.FindStringSubmatch(text); m != nil && table != "" && len(order) < mostKinds {
			if table == "time" {
				times[m[1]] = decimal(m[4], "")
			} else {
				order, rates[m[1]] = append(order, m[1]), decimal(m[4], "")
			}
		} else if mdtestWrong.MatchString(text) {
			b.lost = cmp.Or(b.lost, "mdtest says: "+oneLine(text))
		} else if strings.HasPrefix(text, "-- finished at") {
			open = false
		}
		return nil
	})
	end()
	return b, err
}
