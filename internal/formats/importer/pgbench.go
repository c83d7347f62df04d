package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	"plimsoll/result"
)

const (
	pgbenchText = "pgbench"
	pgbenchLog  = "pgbench-log"
)

var (
	pgbenchAny = lazyregexp.New(
		`(?m)^(number of transactions actually processed: \d|progress: [\d.]+ s, [\d.]+ tps, lat )`)
	pgbenchLogLine = lazyregexp.New(
		`^\d{1,6} \d{1,12} (\d{1,12}|skipped|failed|serialization|deadlock|other) \d{1,4} (\d{9,10}) \d{1,6}( -?\d+)*\s*$`)
	pgbenchSum = lazyregexp.New(`^\d{10} \d+ \d+ \d+ \d+ \d+( \d+)*\s*$`)
)

func pgbenchReaders() []reader {
	return []reader{{
		name: pgbenchText, holds: "what pgbench prints: progress (-P) and totals",
		recognise: func(head []byte) bool { return pgbenchAny.Match(head) }, book: true,
	}, {
		name: pgbenchLog, holds: "pgbench's log, with a line per transaction (-l) or per interval (--aggregate-interval)",
		recognise: func(head []byte) bool {
			line := firstLine(head)
			return pgbenchLogLine.Match(line) || pgbenchSum.Match(line)
		},
		prepare: preparePgbenchLog,
	}}
}

func preparePgbenchLog(d *Reading, g *given) error {
	d.Tool, d.Workload = "pgbench (its logs hold no version)", "pgbench"
	d.Declared.Operations = []result.Operation{{Name: "transaction", Noun: "transactions"}}
	line := firstLine(g.head)
	fields := len(bytes.Fields(line))
	if pgbenchSum.Match(line) && !pgbenchLogLine.Match(line) {
		kind := pgbenchIntervals
		d.Latency = "service time"
		if scheduled(g.head) {
			kind, d.Latency = pgbenchScheduled, "response time"
			d.Declared.Measures = []result.Measure{level("lag_over_time", "ms"), level("skipped", "transactions/s")}
			d.Notes = append(d.Notes, "its lags say that it kept to a schedule (--rate): times count from when a transaction was due")
		}
		d.Declared.Format = format{Reader: pgbenchLog, Kind: kind}.json()
		d.Notes = append(d.Notes,
			"an aggregated log: each interval gives the number of transactions and the sum of their times; the first, which "+
				"pgbench begins before its test, is left out where there are others, and pgbench does not write the last")
		return nil
	}
	if !pgbenchLogLine.Match(line) {
		return errors.New("its first line is none of client, transaction, time, script, epoch and microseconds")
	}
	f := format{Reader: pgbenchLog, Kind: "each", Sampled: sampled(g.head)}
	switch {
	case fields > 7 || fields == 7 && seventh(g.head) > mostRetries || bytes.Contains(g.head, []byte(" skipped ")):
		d.Latency = "response time"
		f.Kind = pgbenchEachDue
		d.Declared.Measures = []result.Measure{level("skipped", "transactions/s")}
		d.Notes = append(d.Notes,
			"its seventh column is the lag behind the schedule of --rate: times count from when a transaction was due")
	case fields == 7:
		d.Notes = append(d.Notes,
			"its seventh column is taken as the retries of --max-tries; with --rate it would be the lag, and times would be response times")
	}
	if f.Sampled {
		d.Notes = append(d.Notes, "a log of a sample (--sampling-rate): each line stands for the transactions of its client "+
			"since the line before, which their numbers tell; times are those of the sample")
	}
	d.Declared.Format = f.json()
	return nil
}

// sampled reports whether the first lines of a log leave out numbers of transactions throughout, in the order of each
// client's, as --sampling-rate does.
func sampled(head []byte) bool {
	last := map[int64]int64{}
	lines, span, back := int64(0), int64(0), int64(0)
	for line := range bytes.Lines(wholeLines(head)) {
		t, err := pgbench.ReadTransaction(bytes.TrimSpace(line), pgbench.Columns{})
		if err != nil {
			continue
		}
		if before, known := last[t.Client]; known {
			if t.Number <= before {
				back++
			} else {
				lines, span = lines+1, span+t.Number-before
			}
		}
		last[t.Client] = t.Number
	}
	// A test that was appended begins anew; clients of several at once go back all the time.
	return lines > 10*back && float64(span) > 1.02*float64(lines)
}

// numbers counts the transactions of a sample by their numbers.
type numbers struct {
	last  map[int64]int64 // of each client
	first int64           // of the first line
}

// since is how many transactions a line stands for. A client's first line stands for those since the first of all.
func (n *numbers) since(t pgbench.Transaction) uint64 {
	before, known := n.last[t.Client]
	switch {
	case n.last == nil:
		n.last, n.first, before = map[int64]int64{}, t.Number, t.Number-1
	case !known && t.Number-n.first < mostUnseen:
		before = n.first - 1
	case !known:
		before = t.Number - 1
	}
	n.last[t.Client] = t.Number
	if t.Number <= before {
		return 1
	}
	return uint64(t.Number - before)
}

// mostUnseen bounds what is taken for unseen before a client's first line: a log may be the end of a longer one.
const mostUnseen = 10_000

// The kinds of a log of intervals: as fast as it goes, or to a schedule; and of one of transactions to a schedule.
const (
	pgbenchIntervals = "aggregated"
	pgbenchScheduled = "scheduled"
	pgbenchEachDue   = "each, scheduled" // a line per transaction
)

// scheduled reports whether the first lines of a log of intervals tell of lags.
func scheduled(head []byte) bool {
	for line := range bytes.Lines(wholeLines(head)) {
		if a, err := pgbench.ReadAggregate(line); err == nil && a.LagMicros > 0 {
			return true
		}
	}
	return false
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
	var values []float64
	skipped := 0.0
	var of numbers
	var lines, done uint64 // since the last report, and what they stand for
	took := 0.0
	open := false
	report := func(final bool) {
		if lines > 0 {
			c.Ops += done
			c.Seconds += took * float64(done) / float64(lines)
			lines, done, took = 0, 0, 0
		}
		if f.Kind == pgbenchEachDue && at.After(out) {
			values, skipped = []float64{skipped / at.Sub(out).Seconds()}, 0
		}
		rep := workload.Report{Time: at, Elapsed: at.Sub(zero), Ops: workload.Counts{c}, Errors: errs, Values: values,
			Final: final}
		if c.Hist != nil {
			rep.Ops[0].Hist = c.Hist.Clone()
		}
		sink.Report(rep)
		open, out = false, at
	}
	var step time.Duration
	var held []pgbench.Aggregate // in the order of time; those of threads whose logs were put together are added up
	take := func(a pgbench.Aggregate, length time.Duration) {
		end := time.Unix(int64(a.Start), 0).UTC().Add(length)
		if zero.IsZero() {
			zero = end.Add(-length)
		}
		at = end
		c.Ops += a.Count
		c.Seconds += a.SumMicros / 1e6
		errs += a.Failed
		if f.Kind == pgbenchScheduled {
			values = []float64{a.LagMicros / 1e3 / max(float64(a.Count), 1), a.Skipped / length.Seconds()}
		}
		report(false)
	}
	err := eachLine(r, func(_ int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		if f.Kind == pgbenchIntervals || f.Kind == pgbenchScheduled {
			a, err := pgbench.ReadAggregate(line)
			if err != nil {
				return err
			}
			if len(held) == 1 && a.Start > held[0].Start {
				step = time.Duration(a.Start-held[0].Start) * time.Second
			}
			if seconds := step.Seconds(); seconds > 1 && a.Start > held[0].Start {
				a.Start -= math.Mod(a.Start-held[0].Start, seconds) // threads begin their intervals a little apart
			}
			i, there := slices.BinarySearchFunc(held, a.Start, func(x pgbench.Aggregate, at float64) int {
				return cmp.Compare(x.Start, at)
			})
			switch {
			case there:
				held[i].Count += a.Count
				held[i].SumMicros += a.SumMicros
				held[i].LagMicros += a.LagMicros
				held[i].Skipped += a.Skipped
				held[i].Failed += a.Failed
			case len(held) >= mostRows:
				return fmt.Errorf("more than %d intervals: split the file", mostRows)
			default:
				held = slices.Insert(held, i, a)
			}
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
		n := uint64(1)
		if f.Sampled {
			n = of.since(t)
		}
		switch {
		case t.Fate == pgbench.Skipped && f.Kind == pgbenchEachDue:
			skipped += float64(n)
			return nil
		case t.Fate != pgbench.Done:
			errs += n
			return nil
		}
		if c.Hist == nil {
			c.Hist = &hist.Histogram{}
		}
		c.Hist.Add(uint64(max(t.TookMicros*1000, 1)), 1)
		lines, done, took = lines+1, done+n, took+float64(t.TookMicros)/1e6
		return nil
	})
	for i, a := range held {
		if i == 0 && len(held) > 1 {
			continue // it begins with a second of the clock, and the test within that
		}
		if i+1 < len(held) {
			take(a, time.Duration(held[i+1].Start-a.Start)*time.Second)
		} else {
			take(a, max(step, time.Second))
		}
	}
	if open {
		report(true)
	}
	return err
}
