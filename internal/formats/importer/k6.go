package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/untyped"
	"plimsoll/result"
)

const (
	k6Text = "k6"
	k6JSON = "k6-summary"
	k6Rows = "k6-json"
	k6CSV  = "k6-csv"
)

var (
	k6Any     = lazyregexp.New(`(?m)^\s*(?:✓ |✗ )?(?:http_reqs|iterations|grpc_req_duration|ws_sessions)\.{2,}: `)
	k6Row     = lazyregexp.New(`^\s*(?:✓ |✗ )?([a-z][\w]*(?:\{[^}]*\})?)\.{2,}: +(\S.*)$`)
	k6Ran     = lazyregexp.New(`running \((?:(\d+)h)?(?:(\d+)m)?([\d.]+)s\), (\d+)/(\d+) VUs`)
	k6Each    = lazyregexp.New(`(avg|min|med|max|p\([\d.]+\))=(\S+)`)
	k6Failed  = lazyregexp.New(`([\d.]+)% +(?:✓ |— )?(\d+)(?: out of| +✗ )`)
	k6Count   = lazyregexp.New(`^(\d+) +([\d.]+)/s`)
	k6Data    = lazyregexp.New(`^[\d.]+ [kMGT]?B +([\d.]+) ([kMGT]?)B/s`)
	k6Checks  = lazyregexp.New(`^[\d.]+% +(?:✓ +(\d+) +✗ +(\d+)|(\d+) out of (\d+))`)
	k6Crash   = lazyregexp.New(`thresholds on metrics .* have been (?:crossed|breached)|level=error|^ERRO\[\d+\] `)
	k6Limit   = lazyregexp.New(`^ *✗ (?:'(.+)' \S+=\S|([a-z_]\w*(?:\{[^}]*\})?|\{[^}]*\})\.{2,}: )`)
	k6RowsAny = lazyregexp.New(`^\s*\{"type":"(?:Metric|Point)","data":|^\s*\{"metric":"[^"\n]+","type":"(?:Metric|Point)",`)
	k6CSVAny  = lazyregexp.New(`^metric_name,timestamp,metric_value,`)
	k6Export  = lazyregexp.New(`^\s*\{[\s\S]*"metrics"\s*:\s*\{[\s\S]*"(?:http_reqs|iterations)"\s*:`)
)

func k6Readers() []reader {
	return []reader{{
		name: k6JSON, holds: "k6's --summary-export", book: true, recognise: k6Export.Match,
	}, {
		name: k6Rows, holds: "k6's samples (--out json)", book: true, recognise: k6RowsAny.Match,
	}, {
		name: k6CSV, holds: "k6's samples (--out csv)", book: true, recognise: k6CSVAny.Match,
	}, {
		name: k6Text, holds: "the summary that k6 prints in the end", book: true, recognise: k6Any.Match,
	}}
}

// k6Summary holds what k6 tells of a test, of either form. Times are in seconds.
type k6Summary struct {
	counts, rates map[string]float64            // by metric
	times         map[string]map[string]float64 // by metric: avg, min, med, max, p(90), ...
	failed        float64                       // requests
	checks, wrong float64                       // of the script's own: all, and those that did not hold
	vus           float64
	length        time.Duration
}

func newK6Summary() *k6Summary {
	return &k6Summary{counts: map[string]float64{}, rates: map[string]float64{}, times: map[string]map[string]float64{}}
}

// stretch is a test: its requests, or its iterations where it makes none that k6 counts.
func (k *k6Summary) stretch() (stretch, error) {
	metric, timed, op := "http_reqs", "http_req_duration", result.Operation{Name: "request", Noun: "requests"}
	if k.counts[metric] == 0 {
		metric, timed, op = "iterations", "iteration_duration", result.Operation{Name: "iteration", Noun: "iterations"}
	}
	n, rate := k.counts[metric], k.rates[metric]
	length := k.length
	if rate > 0 { // k6's own rate is over the time that it means
		length = inSeconds(n / rate)
	}
	if n == 0 || length == 0 {
		return stretch{}, errors.New("it counts no requests and no iterations")
	}
	t := newTally("k6", length)
	t.did(op, n, 0, k.times[timed]["avg"])
	for _, f := range [][2]string{{"med", "p50"}, {"p(90)", "p90"}, {"p(95)", "p95"}, {"p(99)", "p99"},
		{"p(99.9)", "p99.9"}, {"max", "max"}} {
		if v, ok := k.times[timed][f[0]]; ok {
			t.figure(single(op.Name+"_"+f[1], "ms"), v*1e3)
		}
	}
	if op.Name == "request" && k.counts["iterations"] > 0 {
		t.figure(result.Measure{Name: "iterations", Unit: "iterations", Kind: result.Count}, k.counts["iterations"])
	}
	if dropped := k.counts["dropped_iterations"]; dropped > 0 {
		t.figure(result.Measure{Name: "dropped_iterations", Unit: "iterations", Better: result.Lower,
			Kind: result.Count}, dropped)
		t.notes = append(t.notes, fmt.Sprintf("%.0f iterations were dropped: k6 had no virtual user free when they were due, so "+
			"its target rate was missed, and what they would have waited is in no time", dropped))
	}
	if t.report.Errors = whole(k.failed); t.report.Errors > 0 && op.Name == "request" && rate > 0 {
		t.figure(result.Measure{Name: "http_reqs", Unit: "requests/s", Better: result.Higher, Kind: result.Level}, rate)
	}
	for _, name := range []string{"data_received", "data_sent"} {
		if v, ok := k.rates[name]; ok {
			t.figure(level(name, "bytes/s"), v)
		}
	}
	if k.wrong > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%.0f of %.0f checks of its script did not hold", k.wrong, k.checks))
	}
	// k6 counts a request whether or not it failed: what failed is in no rate.
	t.report.Ops[0].Ops -= min(t.report.Ops[0].Ops, t.report.Errors)
	t.report.Ops[0].Seconds = k.times[timed]["avg"] * float64(t.report.Ops[0].Ops)
	t.unfailing = op.Name != "request"
	t.concurrency = k.vus
	t.notes = append(t.notes, "times and percentiles are k6's, of all requests, those that failed among them")
	t.unseen = []string{serverUnseen}
	return t.done(), nil
}

func readK6Text(_ format, r io.Reader) (*book, error) {
	b, k := &book{tool: "k6"}, newK6Summary()
	seen, rows, ran := false, map[string]bool{}, time.Duration(0)
	end := func() {
		rows, ran = map[string]bool{}, 0
		if !seen {
			return
		}
		s, err := k.stretch()
		if err != nil {
			b.failure = err.Error()
		} else {
			b.stretches = append(b.stretches, s)
		}
		k, seen = newK6Summary(), false
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := strings.TrimRight(lastReturn(strings.ToValidUTF8(string(line), "?")), " \t")
		if m := k6Ran.FindStringSubmatch(text); m != nil {
			now := time.Duration(decimal(m[1], ""))*time.Hour + time.Duration(decimal(m[2], ""))*time.Minute +
				inSeconds(decimal(m[3], ""))
			if now < ran {
				end() // of a further test
			}
			k.length, ran = now, now
			k.vus = max(k.vus, decimal(m[4], ""))
			return nil
		}
		if k6Crash.MatchString(text) && b.failure == "" {
			b.failure = "k6 says: " + oneLine(text)
		}
		if m := k6Limit.FindStringSubmatch(text); m != nil && b.failure == "" {
			b.failure = "k6's thresholds were crossed: " + oneLine(cmp.Or(m[1], m[2]))
		}
		m := k6Row.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		name, value := m[1], m[2]
		if rows[name] {
			end() // of a further test
		}
		rows[name] = true
		seen = seen || name == "http_reqs" || name == "iterations"
		if c := k6Count.FindStringSubmatch(value); c != nil {
			k.counts[name], k.rates[name] = decimal(c[1], ""), decimal(c[2], "")
		}
		if name == "http_req_failed" {
			if f := k6Failed.FindStringSubmatch(value); f != nil {
				k.failed = decimal(f[2], "")
			}
		}
		if c := k6Data.FindStringSubmatch(value); c != nil && strings.HasPrefix(name, "data_") {
			k.rates[name] = decimal(c[1], c[2]) // its prefixes are of 1000
		}
		if c := k6Checks.FindStringSubmatch(value); c != nil && (name == "checks" || name == "checks_failed") {
			k.wrong, k.checks = decimal(c[2]+c[3], ""), decimal(c[1], "")+decimal(c[2], "")+decimal(c[4], "")
		}
		if name == "vus_max" || name == "vus" {
			k.vus = max(k.vus, decimal(firstWord(value), ""))
		}
		for _, e := range k6Each.FindAllStringSubmatch(value, 12) {
			if k.times[name] == nil {
				k.times[name] = map[string]float64{}
			}
			// k6 ends no time with minutes: a terminal's edge has cut milliseconds, or the seconds.
			if d, err := time.ParseDuration(e[2]); err == nil && !strings.HasSuffix(e[2], "m") {
				k.times[name][e[1]] = d.Seconds()
			}
		}
		return nil
	})
	end()
	return b, err
}

// readK6JSON reads exported summaries, one after another, whose times are in milliseconds.
func readK6JSON(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "k6"}
	return b, jsonValues(r, func(_ int, v json.RawMessage) error {
		var doc k6Document
		if err := json.Unmarshal(v, &doc); err != nil {
			return err
		}
		s, err := doc.stretch()
		if err != nil {
			return err
		}
		b.stretches = append(b.stretches, s)
		return b.tooMany("summaries")
	})
}

// k6Document is an exported summary, of either form.
type k6Document struct {
	Metrics map[string]untyped.Object `json:"metrics"`
	State   struct {
		Milliseconds float64 `json:"testRunDurationMs"`
	} `json:"state"`
}

// k6Values are the values of a metric, which handleSummary has in a mapping of their own.
func k6Values(metric untyped.Object) untyped.Object {
	if values := metric.Object("values"); values != nil {
		return values
	}
	return metric
}

func (doc k6Document) stretch() (stretch, error) {
	k := newK6Summary()
	for name, m := range doc.Metrics {
		for key, v := range k6Values(m) {
			f, ok := v.(float64)
			if !ok || math.IsNaN(f) || f < 0 {
				continue
			}
			switch key {
			case "count":
				k.counts[name] = f
			case "rate":
				k.rates[name] = f
			case "passes", "fails", "value":
			default:
				if k.times[name] == nil {
					k.times[name] = map[string]float64{}
				}
				k.times[name][key] = f / 1e3
			}
		}
	}
	k.failed, _ = k6Values(doc.Metrics["http_req_failed"])["passes"].(float64) // the rate is of failures
	held, _ := k6Values(doc.Metrics["checks"])["passes"].(float64)
	k.wrong, _ = k6Values(doc.Metrics["checks"])["fails"].(float64)
	k.checks = held + k.wrong
	for _, name := range []string{"vus_max", "vus"} {
		k.vus = max(k.vus, k.times[name]["max"]*1e3)
	}
	k.length = milliseconds(doc.State.Milliseconds)
	s, err := k.stretch()
	s.failure = doc.crossed()
	return s, err
}

// crossed says which thresholds were crossed: of an exported summary those that are true, of handleSummary those that
// are not ok.
func (doc k6Document) crossed() string {
	var out []string
	for name, m := range doc.Metrics {
		limits := m.Object("thresholds")
		for limit, v := range limits {
			if ok, is := limits.Object(limit)["ok"].(bool); v == true || is && !ok {
				out = append(out, name+" "+limit)
			}
		}
	}
	if slices.Sort(out); len(out) == 0 {
		return ""
	}
	return "k6's thresholds were crossed: " + oneLine(strings.Join(out, ", "))
}

// k6Samples holds what k6 writes of each request of a test, as its time and how long it took, and how many were at
// work.
type k6Samples struct {
	*requestLog
	vus   map[float64]uint64
	rows  uint64 // of vus
	other bool   // it has samples
}

func newK6Samples() *k6Samples {
	l := newRequestLog("k6", true)
	l.unseen = []string{"thresholds: they are in none of its samples"}
	return &k6Samples{requestLog: l, vus: map[float64]uint64{}}
}

// sample takes a value of a metric at a time: of a request, when it ended.
func (k *k6Samples) sample(metric string, at time.Time, value float64, expected, name string) {
	k.other = true
	switch metric {
	case "http_req_duration":
		took := int64(value * 1e6)
		if name = oneLine(name); name != "" && len(k.labels) < mostKinds {
			k.labels[name] = true
		}
		k.request(at.UnixNano()-took, took, expected != "false", 0)
	case "vus":
		k.vus[value]++
		k.rows++
	}
}

func (k *k6Samples) end(b *book) {
	n := len(b.stretches)
	if k.add(b); len(b.stretches) > n {
		b.stretches[n].concurrency = steadily(k.vus, k.rows)
	} else if k.other {
		b.lost = cmp.Or(b.lost, "it holds no request of HTTP: give the summary that k6 prints in the end")
	}
}

// readK6Rows reads samples, each an object on a line of its own. A further test tells its metrics anew.
func readK6Rows(_ format, r io.Reader) (*book, error) {
	b, k, torn := &book{tool: "k6"}, newK6Samples(), 0
	end := func() {
		n := len(b.stretches)
		if k.end(b); torn > 0 {
			b.broke(n, fmt.Sprintf("line %d is no sample of k6: the file is cut short or damaged", torn))
		}
		k, torn = newK6Samples(), 0
	}
	told := map[string]bool{}
	err := eachLine(r, func(n int, line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		var row struct {
			Metric, Type string
			Data         struct {
				Time  time.Time
				Value float64
				Tags  map[string]string
			}
		}
		if err := json.Unmarshal(line, &row); err != nil || row.Metric == "" {
			torn = n
			b.skip(n, "it is no sample of k6")
			return nil
		}
		if row.Type == "Metric" {
			if told[row.Metric] {
				end()
				clear(told)
			}
			told[row.Metric] = true
		} else if row.Data.Time.IsZero() || row.Data.Value < 0 {
			torn = n
		} else {
			tags := row.Data.Tags
			k.sample(row.Metric, row.Data.Time, row.Data.Value, tags["expected_response"], tags["name"])
		}
		return b.tooMany("tests")
	})
	end()
	return b, err
}

// readK6CSV reads samples, one test after another. Their times are whole seconds unless k6 was asked for others.
func readK6CSV(_ format, r io.Reader) (*book, error) {
	b, k, torn := &book{tool: "k6"}, newK6Samples(), 0
	var columns []string
	end := func() {
		n := len(b.stretches)
		if k.end(b); torn > 0 {
			b.broke(n, fmt.Sprintf(tornRow, torn))
		}
		k, torn = newK6Samples(), 0
	}
	err := eachRow(r, byComma, func(n int, cells []string) error {
		if cells[0] == "metric_name" {
			end()
			columns = cells
			return b.tooMany("tests")
		}
		if len(cells) != len(columns) {
			torn = n
			return nil
		}
		row := named(columns, cells)
		at, err := time.Parse(time.RFC3339Nano, row["timestamp"])
		if len(row["timestamp"]) == len("1700000000") {
			b.note("its times are in whole seconds, and so is how long it was")
		}
		if number, bad := quantity(row["timestamp"]); bad == nil { // seconds, or thousandths or millionths of them
			for err = nil; number >= 1e11; number /= 1e3 {
			}
			at = time.Unix(0, int64(number*1e9))
		}
		value, err2 := quantity(row["metric_value"])
		if err = cmp.Or(err, err2); err != nil {
			torn = n
			b.skip(n, "%s", err)
			return nil
		}
		k.sample(row["metric_name"], at, value, row["expected_response"], row["name"])
		return nil
	})
	end()
	return b, err
}
