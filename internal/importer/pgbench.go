package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/lazyregexp"
	"plimsoll/internal/workload"
	"plimsoll/result"
)

const pgbenchLog = "pgbench-log"

var (
	pgbenchHead = lazyregexp.New(`(?m)^pgbench \(([\w.]+)`)
	pgbenchAny  = lazyregexp.New(
		`(?m)^(number of transactions actually processed: \d|progress: [\d.]+ s, [\d.]+ tps, lat )`)
	pgbenchRate     = lazyregexp.New(`(?m)^(?:rate limit schedule lag|progress: .*\blag [\d.]+ ms)`)
	pgbenchEpoch    = lazyregexp.New(`(?m)^progress: \d{10}\.\d+ s, `)
	pgbenchDuration = lazyregexp.New(`(?m)^duration: (\d+) s`)
	pgbenchProgress = lazyregexp.New(`(?m)^progress: ([\d.]+) s`)
	pgbenchTPS      = lazyregexp.New(`(?m)^tps = ([\d.]+) \((?:excluding|without)`)
	pgbenchCount    = lazyregexp.New(`(?m)^number of transactions actually processed: (\d+)`)
	pgbenchLogLine  = lazyregexp.New(
		`^\d{1,6} \d{1,12} (\d{1,12}|skipped|failed|serialization|deadlock) \d{1,4} (\d{9,10}) \d{1,6}( -?\d+)*\s*$`)
	pgbenchSum = lazyregexp.New(`^\d{10} \d+ \d+ \d+ \d+ \d+( \d+)*\s*$`)
)

func pgbenchReaders() []reader {
	return []reader{{
		name: "pgbench", holds: "what pgbench prints: progress (-P) and totals",
		recognise: func(head []byte) bool { return pgbenchAny.Match(head) },
		prepare:   preparePgbench,
	}, {
		name: pgbenchLog, holds: "pgbench's log, with a line per transaction (-l) or per interval (--aggregate-interval)",
		recognise: func(head []byte) bool {
			line := firstLine(head)
			return pgbenchLogLine.Match(line) || pgbenchSum.Match(line)
		},
		prepare: preparePgbenchLog,
	}}
}

const pgbenchLayout = `command: [pgbench]
latency: {{.Latency}}
operations:
  - {name: transaction, noun: transactions}
measures:
  - {name: tps, unit: transactions/s, better: higher, kind: single}
  - {name: initial_connection, unit: ms, better: lower, kind: single}
output:
  format: lines
  records:
    - match: '^progress: (?P<t>[0-9.]+) s, (?P<tps>[0-9.]+) tps, lat (?P<lat>[0-9.]+|NaN) ms'
      elapsed: {field: t, unit: s}
      operations: {transaction: {rate: tps, mean: {field: lat, unit: ms}}}
    - match: '^duration: (?P<t>\d+) s'
      final: true
      elapsed: {field: t, unit: s}
    - match: '^number of transactions actually processed: (?P<n>\d+)'
      final: true
      operations: {transaction: {count: n}}
    - match: '^number of failed transactions: (?P<n>\d+)'
      final: true
      errors: {count: n}
    - match: '^initial connection time = (?P<ms>[0-9.]+) ms'
      final: true
      measures: {initial_connection: ms}
    - match: '^tps = (?P<tps>[0-9.]+) \((?:excluding|without)'
      final: true
      measures: {tps: tps}
{{if .Mean}}    - match: '^latency average(?: =|:) (?P<ms>[0-9.]+) ms'
      final: true
      operations: {transaction: {sum: {field: ms, unit: ms, scale: {{.Mean}}}}}
{{end}}`

func preparePgbench(d *Reading, g *given) error {
	d.Tool = "pgbench"
	if v := found(pgbenchHead, g.head); v != "" {
		d.Tool += " " + v
	}
	if pgbenchEpoch.Match(g.head) {
		return errors.New(
			"its progress lines have times of day (--progress-timestamp), which are not read: leave that option out")
	}
	values := map[string]string{"Latency": "service time", "Mean": ""}
	if pgbenchRate.Match(g.head) {
		// With --rate a transaction's time counts from when it was due.
		values["Latency"], d.Latency = "response time", "response time"
	}
	if !pgbenchProgress.Match(g.head) {
		values["Mean"] = found(pgbenchCount, g.head) // the sum of all, from their mean
		if found(pgbenchDuration, g.head) == "" {
			return errors.New("neither -T nor -P was used, so it does not say over what time it was measured")
		}
	}
	d.Unseen = []string{
		"percentiles of latency: pgbench prints means; its log (-l) holds every transaction",
		"the storage underneath: pgbench counts no I/O of devices",
	}
	return d.declare(pgbenchLayout, values)
}

func preparePgbenchLog(d *Reading, g *given) error {
	d.Tool, d.Workload = "pgbench (its logs hold no version)", "pgbench"
	d.Declared.Operations = []result.Operation{{Name: "transaction", Noun: "transactions"}}
	line := firstLine(g.head)
	fields := len(bytes.Fields(line))
	if pgbenchSum.Match(line) && !pgbenchLogLine.Match(line) {
		d.Declared.Format = format{Reader: pgbenchLog, Kind: "aggregated"}.json()
		d.Latency = "service time"
		d.Notes = append(d.Notes,
			"an aggregated log: each interval gives the number of transactions and the sum of their times. With --rate, times are response times, which such a log does not say")
		return nil
	}
	if !pgbenchLogLine.Match(line) {
		return errors.New("its first line is none of client, transaction, time, script, epoch and microseconds")
	}
	d.Declared.Format = format{Reader: pgbenchLog, Kind: "each"}.json()
	switch {
	case fields > 7 || fields == 7 && seventh(g.head) > mostRetries:
		d.Latency = "response time"
		d.Notes = append(d.Notes,
			"its seventh column is the lag behind the schedule of --rate: times count from when a transaction was due")
	case fields == 7:
		d.Notes = append(d.Notes,
			"its seventh column is taken as the retries of --max-tries; with --rate it would be the lag, and times would be response times")
	}
	return nil
}

// mostRetries is more than anybody has a transaction tried; a lag in microseconds soon exceeds it.
const mostRetries = 1000

// seventh is the largest value in the seventh column of the first lines.
func seventh(head []byte) (most int64) {
	for line := range bytes.Lines(head) {
		if f := bytes.Fields(line); len(f) > 6 {
			v, _ := strconv.ParseInt(string(f[6]), 10, 64)
			most = max(most, v)
		}
	}
	return most
}

// parsePgbenchLog reads a log of transactions or of intervals. Transactions are logged when they end, so their times
// may go back a little between clients; those are counted in the newest second.
func parsePgbenchLog(f format, r io.Reader, sink workload.Sink) error {
	var zero, at, out time.Time
	var c workload.Counters
	var errs uint64
	open := false
	report := func(final bool) {
		rep := workload.Report{Time: at, Elapsed: at.Sub(zero), Ops: workload.Counts{c}, Errors: errs, Final: final}
		if c.Hist != nil {
			rep.Ops[0].Hist = c.Hist.Clone()
		}
		sink.Report(rep)
		open, out = false, at
	}
	var step time.Duration
	var held [][]float64
	take := func(v []float64, length time.Duration) {
		end := time.Unix(int64(v[0]), 0).UTC().Add(length)
		if zero.IsZero() {
			zero = end.Add(-length)
		}
		at = end
		c.Ops += uint64(v[1])
		c.Seconds += v[2] / 1e6
		report(false)
	}
	err := eachLine(r, func(_ int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		cells := bytes.Fields(line)
		if len(cells) < 6 {
			return fmt.Errorf("%d columns; a line has at least six", len(cells))
		}
		number := func(i int) (float64, error) {
			v, err := strconv.ParseFloat(string(cells[i]), 64)
			if err != nil || !(v >= 0 && v < 1<<53) {
				return 0, fmt.Errorf("%.40q is not a number", cells[i])
			}
			return v, nil
		}
		if f.Kind == "aggregated" {
			v := make([]float64, 6)
			for i := range v {
				var err error
				if v[i], err = number(i); err != nil {
					return err
				}
			}
			if v[0] > 1<<33 {
				return fmt.Errorf("%.40q is no time", cells[0])
			}
			if n := len(held); n > 0 {
				if v[0] <= held[n-1][0] {
					return errors.New("its times go back")
				}
				step = time.Duration(v[0]-held[n-1][0]) * time.Second
				take(held[0], step)
				held = held[:0]
			}
			held = append(held, v)
			return nil
		}
		sec, err := number(4)
		us, err2 := number(5)
		if err := errors.Join(err, err2); err != nil || sec > 1<<33 || us >= 1e6 {
			return fmt.Errorf("%.40q %.40q is no time", cells[4], cells[5])
		}
		now := time.Unix(int64(sec), int64(us)*1000).UTC()
		took, err := number(2)
		if zero.IsZero() {
			zero = now.Add(-time.Duration(min(took, 1e15)) * time.Microsecond)
			at, out = now, zero
		}
		if now.After(at) {
			if open && now.Sub(out) >= every {
				report(false)
			}
			at = now
		}
		open = true
		if err != nil {
			switch string(cells[2]) {
			case "skipped", "failed", "serialization", "deadlock":
				errs++
				return nil
			}
			return err
		}
		if c.Hist == nil {
			c.Hist = &hist.Histogram{}
		}
		c.Hist.Add(uint64(max(took*1000, 1)), 1)
		c.Ops++
		c.Seconds += took / 1e6
		return nil
	})
	if len(held) > 0 {
		if step == 0 {
			step = time.Second
		}
		take(held[0], step)
	}
	if open {
		report(true)
	}
	return err
}
