package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/lazyregexp"
	"plimsoll/internal/workload"
	"plimsoll/internal/workload/fio"
	"plimsoll/result"
)

const (
	fioLog     = "fio-log"
	fioHistLog = "fio-clat-hist"
)

// The kinds of fio's logs.
const (
	kindIOPS = "iops"
	kindBW   = "bw"
	kindLat  = "lat"
	kindClat = "clat"
	kindSlat = "slat"
)

var (
	fioVersion  = lazyregexp.New(`"fio version"\s*:\s*"([^"]{1,64})"`)
	fioTerse    = lazyregexp.New(`(?m)^[2-5];fio-\d`)
	fioNormal   = lazyregexp.New(`(?m)^(Run status group \d+|fio-\d[\w.-]*$)`)
	fioLogLine  = lazyregexp.New(`^\d+, \d+, [012], (\d+)(, \d+)?(, (0x[0-9a-f]+|\d+))?(, \d+)?$`)
	fioHistLine = lazyregexp.New(`^\d+, ?[012], ?\d+(, ?\d+)+\s*$`)
	fioLogName  = lazyregexp.New(`_(bw|iops|lat|clat|slat)(\.\d+)?\.log$`)
)

func fioReaders() []reader {
	list := []reader{{
		name: "fio", holds: "fio's JSON (json, json+)",
		recognise: func(head []byte) bool { return bytes.Contains(head, []byte(`"fio version"`)) },
		prepare:   prepareFio,
	}, {
		name: fioHistLog, holds: "fio's clat_hist log",
		recognise: isHistLog, prepare: prepareFioHist,
	}, {
		name: fioLog, holds: "fio's iops, bw, lat, clat or slat log, which one by the file's name",
		recognise: isFioLog,
		prepare:   func(d *Reading, g *given) error { return prepareFioLog(d, g, "") },
	}}
	for _, kind := range []string{kindIOPS, kindBW, kindLat, kindClat, kindSlat} {
		list = append(list, reader{name: "fio-" + kind, holds: "fio's " + kind + " log, whatever the file's name",
			prepare: func(d *Reading, g *given) error { return prepareFioLog(d, g, kind) }})
	}
	return list
}

// isFioLog reports whether the first lines are those of a log: fio puts a comma and a blank between numbers, and an I/O
// has whole sectors. A table of somebody's own numbers hardly looks so.
func isFioLog(head []byte) bool {
	n := 0
	for line := range bytes.Lines(head) {
		m := fioLogLine.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			return n > 0 && len(head) == HeadBytes // the last line was cut
		}
		if block, err := strconv.ParseUint(string(m[1]), 10, 63); err != nil || block%512 != 0 {
			return false
		}
		if n++; n == 20 {
			break
		}
	}
	return n > 0
}

// firstLine is the first line of a head with its end.
func firstLine(head []byte) []byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return append(slices.Clone(line), '\n')
}

func prepareFio(d *Reading, g *given) error {
	d.Tool = "fio"
	if m := fioVersion.FindSubmatch(g.head); m != nil {
		d.Tool = string(m[1])
	}
	d.Engine, d.Declared.Operations = "fio", result.BlockOperations()
	d.Unseen = []string{
		"whether the numbers are possible for what was outstanding (Little's law): the depth is not read from the file",
		"the machine and the device underneath: the file holds none of their counters",
	}
	return nil
}

// isHistLog reports whether the first line is time, direction, block size and hundreds of bins.
func isHistLog(head []byte) bool {
	line := firstLine(head)
	if bytes.Count(line, []byte(",")) < 18 {
		return false
	}
	return fioHistLine.Match(line) && fio.HistBins(bytes.Count(line, []byte(","))-2)
}

func prepareFioHist(d *Reading, g *given) error {
	d.Tool = "fio (its logs hold no version)"
	d.Workload, d.Declared.Operations = "fio", result.BlockOperations()
	d.Declared.Format = format{Reader: fioHistLog}.json()
	d.Latency = "service time"
	d.Notes = []string{
		"latencies are of completion (clat), without the time of submission; an I/O of a log without its " +
			"end, after the last interval, is in none",
	}
	if !isHistLog(g.head) {
		return errors.New("its first line is not time, direction, block size and the bins of a histogram")
	}
	return nil
}

func prepareFioLog(d *Reading, g *given, kind string) error {
	if kind == "" {
		m := fioLogName.FindStringSubmatch(filepath.Base(g.name))
		if m == nil {
			return errors.New("a log of fio does not say what it holds, and neither does the file's name: " +
				"plimsoll import --as fio-iops, fio-bw, fio-lat, fio-clat or fio-slat says it")
		}
		kind = m[1]
	}
	d.As = "fio-" + kind
	d.Workload = "fio " + kind + " log"
	d.Tool = "fio (its logs hold no version)"
	d.Declared.Format = format{Reader: fioLog, Kind: kind}.json()
	averaged, each := false, false
	err := fio.EachLog(bytes.NewReader(wholeLines(g.head)), func(p fio.LogPoint) error {
		averaged, each = averaged || p.Block == 0, each || p.Block > 0
		return nil
	})
	switch {
	case err != nil:
		return err
	case averaged && each:
		return errors.New("some of its lines are averages and some single I/Os: it is two logs in one")
	}
	ops := result.BlockOperations()
	switch {
	case each:
		d.Declared.Operations = ops
		d.Notes = append(d.Notes, "one line per I/O: operations are counted by them")
		if kind == kindSlat {
			d.Notes = append(d.Notes, "times of submission are no latency of an operation and are not shown as one")
		}
	case kind == kindIOPS:
		for i := range ops {
			ops[i].Bytes = false
		}
		d.Declared.Operations = ops
	default:
		d.Latency = overTime
		unit, what := "us", "mean_"+kind
		if kind == kindBW {
			unit, what = "KiB/s", "bandwidth"
		}
		for _, o := range ops {
			d.Declared.Measures = append(d.Declared.Measures, level(o.Name+"_"+what, unit))
		}
	}
	if kind != kindIOPS && kind != kindBW {
		d.Notes = append(d.Notes,
			"latencies are taken as nanoseconds, as fio 3 writes them; fio 2 wrote microseconds, and no log says which")
	}
	if averaged && kind != kindIOPS && kind != kindBW {
		d.Notes = append(d.Notes,
			"over a phase its means are weighted by time, not by operations, whose number it does not hold")
	}
	if averaged {
		d.Notes = append(d.Notes,
			"values are averages over the log's interval (log_avg_msec), or its maxima with log_max_value; the log does not say which")
		if kind != kindIOPS && kind != kindBW {
			d.Unseen = append(d.Unseen, "percentiles of latency: averages of intervals have none")
		}
	}
	return nil
}

// wholeLines leaves out a last line that was cut, but for an only one.
func wholeLines(head []byte) []byte {
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 && len(head) == HeadBytes {
		return head[:i+1]
	}
	return head
}

// epoch is the shortest time of a log that is a clock (log_unix_epoch) rather than time since the start: the year 2001.
const epoch = 1_000_000_000_000 * time.Millisecond

// every is how far apart the reports are that are made of a log with a line per I/O.
const every = time.Second

// fioState adds up the lines of a log.
type fioState struct {
	d      workload.Declared
	sink   workload.Sink
	ops    workload.Counts
	values []float64
	at     time.Duration // of the lines taken so far
	zero   time.Duration // where the log's time begins
	out    time.Duration // of the last report
	begun  bool
	open   bool
}

func newFioState(d workload.Declared, sink workload.Sink) *fioState {
	return &fioState{d: d, sink: sink, ops: make(workload.Counts, len(d.Operations)), values: gaps(len(d.Measures))}
}

// moment takes a line's time. Times of threads that share a log may go back a little: they are then taken as the
// newest.
func (s *fioState) moment(t time.Duration, apart time.Duration) {
	if !s.begun {
		if s.begun = true; t >= epoch {
			s.zero = t
		}
		s.at, s.out = t, s.zero
	}
	if t > s.at {
		if s.open && t-s.out >= apart {
			s.report(false)
		}
		s.at = t
	}
	s.open = true
}

func (s *fioState) report(final bool) {
	r := workload.Report{Elapsed: s.at - s.zero, Ops: slices.Clone(s.ops), Values: s.values, Final: final}
	if s.zero > 0 {
		r.Time = time.UnixMilli(s.at.Milliseconds()).UTC()
	}
	for i := range r.Ops {
		if h := r.Ops[i].Hist; h != nil {
			r.Ops[i].Hist = h.Clone()
		}
	}
	s.sink.Report(r)
	s.values, s.open, s.out = gaps(len(s.d.Measures)), false, s.at
}

func (s *fioState) finish() {
	if s.open {
		s.report(true)
	}
}

// took counts operations of one latency.
func (s *fioState) took(i int, bytes, n uint64, ns uint64) {
	c := &s.ops[i]
	c.Ops += n
	c.Bytes += bytes * n
	if ns == 0 {
		return
	}
	if c.Hist == nil {
		c.Hist = &hist.Histogram{}
	}
	c.Hist.Add(ns, n)
	c.Seconds += float64(ns) / 1e9 * float64(n)
}

// parseFioLog reads a log of one kind.
func parseFioLog(f format, d workload.Declared, r io.Reader, sink workload.Sink) error {
	s := newFioState(d, sink)
	var before [3]time.Duration
	var owed [3]float64 // operations of averages that are not whole yet
	apart := time.Duration(0)
	averaged := len(d.Measures) > 0
	if len(d.Operations) > 0 && d.Operations[0].Bytes {
		apart = every
	}
	err := fio.EachLog(r, func(p fio.LogPoint) error {
		dir := int(p.Direction)
		if (p.Block == 0) != (averaged || apart == 0) {
			return errors.New("some of its lines are averages and some single I/Os: it is two logs in one")
		}
		s.moment(p.Elapsed, apart)
		switch {
		case averaged && f.Kind == kindBW:
			s.values[dir] = float64(p.Value)
		case averaged:
			s.values[dir] = float64(p.Value) / 1e3
		case apart == 0: // averages of operations per second
			from := max(before[dir], s.zero)
			owed[dir] += float64(p.Value) * max(0, p.Elapsed-from).Seconds()
			before[dir] = max(p.Elapsed, before[dir])
			n := math.Floor(owed[dir])
			if owed[dir] -= n; n > maxOperations {
				return fmt.Errorf("%.3g operations in one interval are no count but damage", n)
			}
			s.ops[dir].Ops += uint64(n)
		case f.Kind == kindLat || f.Kind == kindClat:
			s.took(dir, uint64(p.Block), 1, uint64(max(p.Value, 1)))
		default:
			s.took(dir, uint64(p.Block), 1, 0)
		}
		return nil
	})
	s.finish()
	return err
}

const maxOperations = 1 << 50

// parseFioHist reads a clat_hist log, whose bins say by their number whether fio 2 or 3 wrote it.
func parseFioHist(d workload.Declared, r io.Reader, sink workload.Sink) error {
	s := newFioState(d, sink)
	err := eachLine(r, func(_ int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		unit := fio.Nanoseconds
		if bins := bytes.Count(line, []byte(",")) - 2; bins > 0 && fio.MicrosecondBins(bins) {
			unit = fio.Microseconds
		}
		points, err := fio.ParseHistLog(bytes.NewReader(line), unit)
		if err != nil {
			return fmt.Errorf("the log is damaged: %s", strings.TrimPrefix(err.Error(), "parse: fio log: line 1: "))
		}
		for _, p := range points {
			s.moment(p.Elapsed, 0)
			c := &s.ops[int(p.Direction)]
			if n := p.Hist.Count(); n > 0 {
				if c.Hist == nil {
					c.Hist = &hist.Histogram{}
				}
				c.Hist.Merge(p.Hist)
				c.Ops += n
				c.Bytes += n * uint64(max(p.Block, 0))
				c.Seconds += p.Hist.Sum() / 1e9
			}
		}
		return nil
	})
	s.finish()
	if err == nil && !s.begun {
		err = errors.New("it is empty")
	}
	return err
}
