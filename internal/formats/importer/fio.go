package importer

import (
	"bytes"
	"encoding/json"
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
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
	"plimsoll/unit"
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
	fioNormal   = lazyregexp.New(`(?m)^(?:Run status group \d+|.+: \(groupid=\d+, jobs=\d+\): err= *\d+)`)
	fioLogLine  = lazyregexp.New(`^\d+, \d+, [012], (\d+)(, \d+)?(, (0x[0-9a-f]+|\d+))?(, \d+)?$`)
	fioBothLine = lazyregexp.New(`^\d+, \d+, \d+, [012], (\d+)(, \d+)?, (0x[0-9a-f]+|\d+)(, \d+)?$`)
	fioHistLine = lazyregexp.New(`^\d+, ?[012], ?\d+(, ?\d+)+\s*$`)
	// fioPreamble matches what --output-format=json,normal adds, of which nothing is a complaint.
	fioPreamble = lazyregexp.New(`(?m)^(?:.+: \(g=\d+\): rw=.*|\.\.\.|fio-\d\S*|Starting \d+ (?:process|thread)\S*)$` +
		`|^.+: \(groupid=\d+, jobs=\d+\): err= 0[\s\S]*`)
	fioLogName = lazyregexp.New(`_(bw|iops|lat|clat|slat)(\.\d+)?\.log$`)
)

func fioReaders() []reader {
	list := []reader{{
		name: fioText, holds: "fio's text for people", book: true,
		recognise: func(head []byte) bool {
			return fioNormal.Match(head) && !bytes.Contains(head, []byte(`"fio version"`))
		},
	}, {
		name: fioTerse, holds: "fio's terse form, versions 3 to 5", book: true, recognise: fioTerseAlone,
	}, {
		name: "fio", holds: "fio's JSON (json, json+)",
		recognise: func(head []byte) bool { return bytes.Contains(head, []byte(`"fio version"`)) },
		prepare:   prepareFio, parts: prepareFioParts,
	}, {
		name: fioHistLog, holds: "fio's clat_hist log",
		recognise: isHistLog, prepare: prepareFioHist, parts: prepareFioLogs,
	}, {
		name: fioLog, holds: "fio's iops, bw, lat, clat or slat log, which one by the file's name",
		recognise: isFioLog,
		prepare:   func(d *Reading, g *given) error { return prepareFioLog(d, g, "") }, parts: prepareFioLogs,
	}}
	for _, kind := range []string{kindIOPS, kindBW, kindLat, kindClat, kindSlat} {
		list = append(list, reader{name: "fio-" + kind, holds: "fio's " + kind + " log, whatever the file's name",
			prepare: func(d *Reading, g *given) error { return prepareFioLog(d, g, kind) }, parts: prepareFioLogs})
	}
	return list
}

// isFioLog reports whether the first lines are those of a log: fio puts a comma and a blank between numbers, and an I/O
// has whole sectors. A table of somebody's own numbers hardly looks so.
func isFioLog(head []byte) bool {
	n := 0
	for line := range bytes.Lines(head) {
		whole, matches := false, false
		for _, form := range []*lazyregexp.Regexp{fioLogLine, fioBothLine} {
			if m := form.FindSubmatch(bytes.TrimSpace(line)); m != nil {
				block, err := strconv.ParseUint(string(m[1]), 10, 63)
				matches, whole = true, whole || err == nil && block%512 == 0
			}
		}
		if !matches {
			return n > 0 && len(head) == HeadBytes // the last line was cut
		}
		if !whole {
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

// IsFioLog reports whether a file is called as fio calls its logs.
func IsFioLog(name string) bool { return fioLogName.MatchString(name) }

// prepareFioParts says how each part of fio's JSON is read: what ran together is a workload, with its jobs as sections.
func prepareFioParts(_ reader, g *given) ([]*Reading, error) {
	in, err := g.rewound()
	if err != nil {
		return nil, err
	}
	parts, cut, err := fio.Parts(in)
	if err != nil {
		return nil, errors.New(unparsed(err))
	}
	if len(parts) == 0 {
		return nil, errors.New("no job stands in it")
	}
	if len(parts) > mostStretches {
		return nil, fmt.Errorf("it holds %d runs, more than %d: split it", len(parts), mostStretches)
	}
	used := map[string]int{}
	var out []*Reading
	var failed error
	for _, p := range parts {
		d := &Reading{As: "fio", Workload: "fio", Latency: "service time"}
		if err := prepareFio(d, g); err != nil {
			return nil, err
		}
		if len(parts) > 1 {
			d.Workload = oneLine(p.Name())
			if used[d.Workload]++; used[d.Workload] > 1 {
				d.Workload = fmt.Sprintf("%s (%d)", d.Workload, used[d.Workload])
			}
			note := "it ran apart from the other jobs of the file, or was a group of its own, and is added to none of " +
				"them"
			switch {
			case p.Only != "":
				note = unlikeLengths
			case len(p.Beside) > 0:
				note = "it ran at the same time as " + oneLine(strings.Join(p.Beside, ", ")) +
					", which had another pattern or block size: it is added to none of them"
			}
			d.Notes = append(d.Notes, note)
		}
		d.Declared.Measures, d.Declared.Format, d.Streams = p.Measures, p.Format, p.Streams
		if p.Disks {
			d.Unseen = []string{"the machine, and the device underneath but for fio's own counts of all its jobs (disk_util)"}
		}
		if p.Unseen != "" {
			d.Notes = append(d.Notes, p.Unseen)
		}
		for _, a := range p.Asked {
			f := asked(a.Name, a.Value)
			if a.Noted {
				f.Across = result.Noted
			}
			d.Facts = append(d.Facts, f)
		}
		if p.Mixed {
			d.Declared.Operations = []result.Operation{
				{Name: "io", Noun: "I/Os", Bytes: true, Block: result.BlockMixed}}
			d.Notes = append(d.Notes, "reads and writes stand together in it (unified_rw_reporting) and cannot be told apart")
		}
		if p.Merged {
			d.Notes = append(d.Notes, "fio added several jobs up in it (group_reporting) and tells the options of one: depth, "+
				"rates and sizes of the others are not known, nor is it told whether all worked as long")
		}
		for _, note := range []string{p.Uneven, p.Steady, p.Tried} {
			if note != "" {
				d.Notes = append(d.Notes, note)
			}
		}
		if p.Uncounted {
			d.Notes = append(d.Notes, fioUncounted)
		}
		for _, l := range p.Streams {
			d.Concurrency += float64(l.Depth)
		}
		if n := len(p.Streams); n > 1 {
			d.Apart = n <= workload.MostSections
			d.Notes = append(d.Notes, fmt.Sprintf("its %d jobs ran at the same time: figures of the whole are sums over %s",
				n, oneLine(p.Name())))
			if p.Staggered > 0 {
				d.Notes = append(d.Notes, fmt.Sprintf("its jobs did not begin together, the last %s after the first: sums are of each "+
					"job's rate over its own time, so all of it was offered only while all ran", unit.Duration(p.Staggered)))
			}
		}
		if len(p.Measures) > 0 {
			d.Notes = append(d.Notes, "percentiles and largest times of its own are fio's figures, one for each job, and "+
				"combined with nothing")
		}
		if p.Left > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("of %d more operations of its jobs such times are left out: there are "+
				"too many", p.Left))
		}
		d.Notes = append(d.Notes, "service times are of completion (clat) where fio measured it, else of the whole (lat); "+
			"with lat_percentiles they are of the whole")
		if err := d.date(g); err != nil {
			failed = fmt.Errorf("%s: %w", p.Name(), err)
			continue
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, failed
	}
	if cut > 0 {
		out[len(out)-1].loses(unit.Plural(cut, "report") + " of fio in it cut short")
	}
	if failed != nil {
		out[0].Notes = append(out[0].Notes, "left out: "+failed.Error())
	}
	return out, nil
}

const fioUncounted = "a job ended with an error that fio did not count: one failed operation stands for it, however many failed"

// unlikeLengths is said of the operations of a job that are apart.
const unlikeLengths = "reads and writes of its job lasted unlike times, as where what was written is read back " +
	"(verify), which is in the reads then: each stand by themselves, with the rate over their own time"

// fioRestarts tells the jobs apart whose logs stand one after another in a file: with per_job_logs=0 fio appends them,
// and the times of each begin anew. Times of threads that share a log go back a little, and do not.
type fioRestarts struct {
	at, zero time.Duration
	begun    bool
	part     int
}

// of is the part, from 0, to which a line of that time belongs.
func (s *fioRestarts) of(t time.Duration) int {
	const jitter = 100 * time.Millisecond
	if !s.begun {
		s.begun, s.zero = true, 0
		if t >= epoch {
			s.zero = t
		}
		s.at = t
		return s.part
	}
	if back := s.at - t; back > jitter && back > (s.at-s.zero)/2 {
		s.part, s.at = s.part+1, t
		if s.zero > 0 {
			s.zero = t
		}
	}
	s.at = max(s.at, t)
	return s.part
}

// prepareFioLogs says how a log is read: as one, or, where jobs share it, as one for each of them.
func prepareFioLogs(r reader, g *given) ([]*Reading, error) {
	in, err := g.rewound()
	if err != nil {
		return nil, err
	}
	times := fioRestarts{}
	_ = eachLine(in, func(_ int, line []byte) error { // what is wrong with it is said by the one who reads it
		if at, _, ok := bytes.Cut(line, []byte(",")); ok {
			if ms, err := strconv.ParseInt(string(bytes.TrimSpace(at)), 10, 52); err == nil {
				times.of(time.Duration(ms) * time.Millisecond)
			}
		}
		return nil
	})
	if times.part >= mostStretches {
		return nil, fmt.Errorf("its times begin anew more than %d times: give the logs one by one", mostStretches)
	}
	var out []*Reading
	for part := range times.part + 1 {
		d := &Reading{As: r.name, Workload: r.name, Latency: "service time", Engine: Name}
		if err := r.prepare(d, g); err != nil {
			return nil, err
		}
		if times.part > 0 {
			var f format
			if err := json.Unmarshal(d.Declared.Format, &f); err != nil {
				return nil, err
			}
			f.Part = part
			d.Declared.Format = f.json()
			d.Notes = append(d.Notes, fmt.Sprintf("its times begin anew %s: jobs that share a log (per_job_logs=0), or logs put "+
				"together; each stands by itself, for nothing says whether they ran at once", unit.Plural(times.part, "time")))
			if part > 0 {
				d.Workload = fmt.Sprintf("%s (%d)", d.Workload, part+1)
			}
		}
		if err := d.date(g); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func prepareFio(d *Reading, g *given) error {
	d.Tool = "fio"
	if m := fioVersion.FindSubmatch(g.head); m != nil {
		d.Tool = string(m[1])
	}
	d.Engine, d.Declared.Operations = "fio", result.BlockOperations()
	d.Unseen = []string{
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
	d.Workload, d.Declared.Operations, d.Unfailing = "fio", result.BlockOperations(), true
	d.Declared.Format = format{Reader: fioHistLog}.json()
	d.Latency = "service time"
	d.Notes = []string{
		"latencies are of completion (clat), without the time of submission; an I/O of a log without its " +
			"end, after the last interval, is in none; an interval at the end that lacks a direction is not counted",
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
	d.Workload, d.Unfailing = "fio "+kind+" log", true
	d.Tool = "fio (its logs hold no version)"
	d.Declared.Format = format{Reader: fioLog, Kind: kind}.json()
	averaged, each, both, three, rates := false, false, false, false, false
	err := fio.EachLog(bytes.NewReader(wholeLines(g.head)), func(p fio.LogPoint) error {
		averaged, each, both = averaged || p.Block == 0, each || p.Block > 0, both || p.Both
		rates = rates || kind == kindIOPS && p.Block > 0 && p.Value != 1 // of a single I/O it is 1
		// As microseconds it began before its job.
		three = three || p.Both || p.Elapsed < epoch && float64(p.Value)/1e3 > float64(p.Elapsed.Milliseconds()+2)
		return nil
	})
	switch {
	case err != nil:
		return err
	case rates:
		return errors.New("some of its lines have the size of a single I/O and a rate: what they count is not known")
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
		unit, what := "us", kind+"_over_time" // no mean over operations, and with log_max_value none at all
		if kind == kindBW {
			unit, what = "KiB/s", "bandwidth"
		}
		for _, o := range ops {
			m := level(o.Name+"_"+what, unit)
			if m.Better = result.Lower; kind == kindBW {
				m.Better = result.Higher
			}
			d.Declared.Measures = append(d.Declared.Measures, m)
		}
	}
	if kind != kindIOPS && kind != kindBW {
		// A column more, of priorities, is of 3.24 and later; of single I/Os it may be that of offsets.
		if columns := bytes.Count(firstLine(g.head), []byte(",")); !three && (columns < 4 || each && columns < 5) {
			d.Workload += " if of fio 3"
			d.Notes = append(d.Notes, "latencies are taken as nanoseconds, as fio 3 writes them; fio 2 wrote microseconds, and "+
				"nothing in the log says which: of fio 2 they are a thousandfold")
		}
	}
	if averaged && kind != kindIOPS && kind != kindBW {
		d.Notes = append(d.Notes,
			"over a phase its means are weighted by time, not by operations, whose number it does not hold")
	}
	if both && averaged {
		d.Declared.Measures = append(d.Declared.Measures, logMaxima(kind)...)
		d.Notes = append(d.Notes, "values are the averages over the log's interval; of its maxima beside them "+
			"(log_window_value=both) the largest of all is told")
	} else if averaged {
		d.Notes = append(d.Notes,
			"values are averages over the log's interval (log_avg_msec), or its maxima with log_max_value; the log does not say which")
	}
	if averaged {
		if kind != kindIOPS && kind != kindBW {
			d.Unseen = append(d.Unseen, "percentiles of latency: averages of intervals have none")
		}
	}
	return nil
}

// logMaxima declares the largest values of a log that has them beside its averages, of reads, writes and trims.
func logMaxima(kind string) (out []result.Measure) {
	unit, better := "us", result.Lower
	switch kind {
	case kindBW:
		unit, better = "KiB/s", result.Higher
	case kindIOPS:
		unit, better = "ops/s", result.Higher
	}
	for _, o := range result.BlockOperations() {
		name := o.Name + "_" + kind + "_max"
		out = append(out, result.Measure{Name: name, Unit: unit, Better: better, Kind: result.Single})
	}
	return out
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
	maxima []float64     // the last of the measures, told at the end
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
	if final {
		copy(s.values[len(s.values)-len(s.maxima):], s.maxima)
	}
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
	averaged, scale := f.Kind != kindIOPS && len(d.Measures) > 0, 1e3
	if f.Kind == kindBW || f.Kind == kindIOPS {
		scale = 1
	}
	if n := len(before); averaged && len(d.Measures) > n || f.Kind == kindIOPS && len(d.Measures) == n {
		s.maxima = gaps(n)
	}
	times := fioRestarts{}
	if len(d.Operations) > 0 && d.Operations[0].Bytes {
		apart = every
	}
	err := fio.EachLog(r, func(p fio.LogPoint) error {
		if times.of(p.Elapsed) != f.Part {
			return nil
		}
		dir := int(p.Direction)
		if (p.Block == 0) != (averaged || apart == 0) {
			return errors.New("some of its lines are averages and some single I/Os: it is two logs in one")
		}
		s.moment(p.Elapsed, apart)
		if p.Both && s.maxima != nil && !(s.maxima[dir] > float64(p.Most)/scale) {
			s.maxima[dir] = float64(p.Most) / scale
		}
		switch {
		case averaged:
			s.values[dir] = float64(p.Value) / scale
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
func parseFioHist(f format, d workload.Declared, r io.Reader, sink workload.Sink) error {
	s := newFioState(d, sink)
	times := fioRestarts{}
	var round []fio.HistPoint // of one interval, a point for each direction
	var before time.Duration  // when the round before was
	whole := 0                // how many directions it had
	count := func() {
		for _, p := range round {
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
		before, whole, round = round[0].Elapsed, len(round), round[:0]
	}
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
			if times.of(p.Elapsed) != f.Part {
				return nil
			}
			if len(round) > 0 && (p.Elapsed-round[0].Elapsed > (round[0].Elapsed-before)/2 ||
				slices.ContainsFunc(round, func(o fio.HistPoint) bool { return o.Direction == p.Direction })) {
				count()
			}
			round = append(round, p)
		}
		return nil
	})
	if len(round) > 0 && len(round) >= whole { // at the end fio leaves directions out
		count()
	}
	s.finish()
	if err == nil && !s.begun {
		err = errors.New("it is empty")
	}
	return err
}
