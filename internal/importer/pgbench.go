package importer

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/lazyregexp"
	"plimsoll/internal/pgbench"
	"plimsoll/internal/workload"
	pgbenchload "plimsoll/internal/workload/pgbench"
	"plimsoll/result"
)

const pgbenchLog = "pgbench-log"

var (
	pgbenchAny = lazyregexp.New(
		`(?m)^(number of transactions actually processed: \d|progress: [\d.]+ s, [\d.]+ tps, lat )`)
	pgbenchRate    = lazyregexp.New(`(?m)^(?:rate limit schedule lag|progress: .*\blag [\d.]+ ms)`)
	pgbenchLogLine = lazyregexp.New(
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

func preparePgbench(d *Reading, g *given) error {
	var text pgbench.Text
	var progress []pgbench.Progress
	for line := range bytes.Lines(g.head) {
		if p, ok := text.Line(strings.TrimRight(string(line), "\r\n")); ok {
			progress = append(progress, p)
		}
	}
	totals := text.Totals()
	d.Tool = "pgbench"
	if totals.Version != "" {
		d.Tool += " " + totals.Version
	}
	var o pgbenchload.TextOf
	o.Rate = pgbenchRate.Match(g.head)
	if len(progress) == 0 && math.IsNaN(totals.Seconds) {
		return errors.New("neither -T nor -P was used, so it does not say over what time it was measured")
	}
	if len(progress) > 0 {
		if o.Clocks = !progress[0].Time.IsZero(); o.Clocks {
			if len(progress) > 1 {
				o.Interval = progress[1].Time.Sub(progress[0].Time)
			} else {
				d.Notes = append(d.Notes, "its one line of progress is taken as being of one second")
			}
		}
	}
	d.Engine, d.Declared = pgbenchload.Name, pgbenchload.DeclareText(o)
	if o.Rate {
		// With --rate a transaction's time counts from when it was due.
		d.Latency = d.Declared.Latency
	}
	d.Unseen = []string{
		"percentiles of latency: pgbench prints means; its log (-l) holds every transaction",
		"the storage underneath: pgbench counts no I/O of devices",
	}
	return nil
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
	var held []pgbench.Aggregate
	take := func(a pgbench.Aggregate, length time.Duration) {
		end := time.Unix(int64(a.Start), 0).UTC().Add(length)
		if zero.IsZero() {
			zero = end.Add(-length)
		}
		at = end
		c.Ops += a.Count
		c.Seconds += a.SumMicros / 1e6
		report(false)
	}
	err := eachLine(r, func(_ int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		if f.Kind == "aggregated" {
			a, err := pgbench.ReadAggregate(line)
			if err != nil {
				return err
			}
			if n := len(held); n > 0 {
				if a.Start <= held[n-1].Start {
					return errors.New("its times go back")
				}
				step = time.Duration(a.Start-held[n-1].Start) * time.Second
				take(held[0], step)
				held = held[:0]
			}
			held = append(held, a)
			return nil
		}
		t, err := pgbench.ReadTransaction(line, pgbench.Columns{})
		if err != nil {
			return err
		}
		now := time.UnixMicro(t.EndedMicros).UTC()
		if zero.IsZero() {
			zero = now.Add(-time.Duration(min(t.TookMicros, 1e15)) * time.Microsecond)
			at, out = now, zero
		}
		if now.After(at) {
			if open && now.Sub(out) >= every {
				report(false)
			}
			at = now
		}
		open = true
		if t.Fate != pgbench.Done {
			errs++
			return nil
		}
		if c.Hist == nil {
			c.Hist = &hist.Histogram{}
		}
		c.Hist.Add(uint64(max(t.TookMicros*1000, 1)), 1)
		c.Ops++
		c.Seconds += float64(t.TookMicros) / 1e6
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
