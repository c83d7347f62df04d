package importer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// vdbenchCounts adds up intervals.
type vdbenchCounts struct {
	operations []result.Operation
	measures   []result.Measure
	keys       []string // of the operations, in the names of columns
	values     []string // of the measures
	files      bool
	apart      bool // reads and writes have response times of their own
	counts     []float64
	bytes      [2]float64 // of file systems, read and written
	perMB      float64
	seconds    []float64
	largest    figures
	failed     uint64
}

// fileOperations are those of file systems, as the columns are named.
var fileOperations = []string{"mkdir", "rmdir", "create", "open", "close", "delete", "getattr", "setattr", "access",
	"copy", "move"}

func newVdbenchCounts(rows []vdbenchInterval, decimal bool) *vdbenchCounts {
	ever := func(name string) bool {
		return slices.ContainsFunc(rows, func(r vdbenchInterval) bool { return r.or(name) > 0 })
	}
	c := &vdbenchCounts{files: rows[0].has("read rate"), apart: rows[0].has("read resp"), largest: figures{}}
	switch {
	case c.files:
		c.operations, c.keys = result.BlockOperations()[:2], []string{"read", "write"}
		for _, op := range fileOperations {
			if ever(op + " rate") {
				c.operations = append(c.operations, result.Operation{Name: op, Noun: op + "s"})
				c.keys = append(c.keys, op)
			}
		}
	case c.apart:
		c.operations, c.keys = plainBlocks()[:2], []string{"read", "write"}
	default:
		c.operations, c.keys = []result.Operation{{Name: "io", Noun: "I/Os"}}, []string{"io"}
	}
	levels := []struct{ column, name, unit string }{
		{"MB/sec 1024**2", "bandwidth", "MiB/s"}, {"MB/sec 1000**2", "bandwidth", "MB/s"},
		{"queue depth", "queue_depth", "I/Os"}, {"cpu% sys+u", "cpu", "%"}, {"cpu% sys+usr", "cpu", "%"},
		{"cpu% total", "cpu", "%"},
	}
	if !c.apart && !c.files {
		levels = append(levels, struct{ column, name, unit string }{"read pct", "reads", "%"})
	}
	for _, l := range levels {
		if ever(l.column) {
			c.measures, c.values = append(c.measures, level(l.name, l.unit)), append(c.values, l.column)
		}
	}
	for _, m := range []struct{ column, name string }{{"resp max", "max"}, {"read max", "read_max"},
		{"write max", "write_max"}} {
		if !ever(m.column) {
			continue
		}
		c.measures, c.values = append(c.measures, single(m.name, "ms")), append(c.values, m.column)
		for _, r := range rows {
			c.largest[m.column] = max(c.largest[m.column], r.or(m.column))
		}
	}
	if c.perMB = 1 << 20; decimal {
		c.perMB = 1e6
	}
	c.counts, c.seconds = make([]float64, len(c.operations)), make([]float64, len(c.operations))
	return c
}

// report is the state after a row that covers some time.
func (c *vdbenchCounts) report(row vdbenchInterval, at, covers time.Duration, final bool) workload.Report {
	add := func(i int, rate, ms float64) {
		n := rate * covers.Seconds()
		c.counts[i] += n
		c.seconds[i] += n * ms / 1e3
	}
	switch {
	case c.files:
		for i, key := range c.keys {
			add(i, row.or(key+" rate"), row.or(key+" resp"))
		}
		c.bytes[0] += row.or("mb/sec read") * c.perMB * covers.Seconds()
		c.bytes[1] += row.or("mb/sec write") * c.perMB * covers.Seconds()
	case c.apart:
		rate, share := row.or("i/o rate"), min(row.or("read pct"), 100)/100
		add(0, rate*share, row.or("read resp"))
		add(1, rate*(1-share), row.or("write resp"))
	default:
		add(0, row.or("i/o rate"), row.or("resp time"))
	}
	c.failed += row.failed
	rep := workload.Report{Elapsed: at, Ops: make(workload.Counts, len(c.operations)), Final: final, Errors: c.failed,
		Values: gaps(len(c.measures))}
	for i := range rep.Ops {
		rep.Ops[i] = workload.Counters{Ops: whole(c.counts[i]), Seconds: c.seconds[i]}
		if c.files && i < 2 {
			rep.Ops[i].Bytes = whole(c.bytes[i])
		}
	}
	for i, column := range c.values {
		switch v, isMax := c.largest[column]; {
		case isMax && final:
			rep.Values[i] = v
		case !isMax && row.has(column):
			rep.Values[i] = row.figures[column]
		default:
			rep.Values[i] = math.NaN()
		}
	}
	return rep
}

// bucket takes a row of a histogram. What lies in a bucket is taken as its upper end; of the last, which has none, as
// its lower.
func (p *vdbenchParser) bucket(n int, m []string) error {
	if p.run == nil {
		p.begin(&vdbenchRun{})
	}
	low, err := quantity(localNumber(m[1]))
	high := low
	if m[2] != "max" && err == nil {
		high, err = quantity(localNumber(m[2]))
	}
	digits := strings.NewReplacer(",", "", ".", "", " ", "", "\u00a0", "").Replace(m[3])
	count, err2 := strconv.ParseUint(digits, 10, 50)
	if err := errors.Join(err, err2); err != nil {
		p.book.skip(n, "a bucket that cannot be read: %.60q", m[0])
		return nil
	}
	if p.run.share, err = quantity(localNumber(m[4])); err != nil || count == 0 {
		return nil // a share is only looked at to tell whether the file is cut
	}
	all := &p.run.buckets
	i := slices.IndexFunc(*all, func(b vdbenchBuckets) bool { return b.heading == p.section })
	if i < 0 {
		i = len(*all)
		*all = append(*all, vdbenchBuckets{p.section, &hist.Histogram{}})
	}
	(*all)[i].hist.Add(uint64(max(high*1e6, 1)), count)
	return nil
}

// togetherHeading stands above what the headings after it divide.
const togetherHeading = "reads and writes"

// histogramSuffix ends the name of a run's histogram.
const histogramSuffix = " histogram"

// histograms makes a stretch of the buckets of a run. They hold what vdbench's averages do: all but the warm-up, or the
// first interval, whose length the file does not say. Unless it is given it is vdbench's usual one.
func (r *vdbenchRun) histograms(s *stretch, given format) {
	interval := max((r.planned / 60).Truncate(time.Second), time.Second)
	if given.Seconds > 0 {
		interval = time.Duration(given.Seconds * float64(time.Second))
	}
	length := r.planned
	if !r.warmedUp && length > interval {
		length -= interval
		s.notes = []string{fmt.Sprintf("a histogram does not say its time: rates are over elapsed= without the first "+
			"interval, taken as %v", interval)}
	}
	rep := workload.Report{Final: true}
	add := func(op result.Operation, h *hist.Histogram) {
		s.operations = append(s.operations, op)
		rep.Ops = append(rep.Ops, workload.Counters{Ops: h.Count(), Hist: h})
	}
	for _, b := range r.buckets {
		switch b.heading {
		case togetherHeading, "total", "all operations":
		case "reads":
			add(plainBlocks()[0], b.hist)
		case "writes":
			add(plainBlocks()[1], b.hist)
		default:
			add(result.Operation{Name: strings.ReplaceAll(strings.TrimSuffix(b.heading, "s"), " ", "_"),
				Noun: b.heading},
				b.hist)
		}
	}
	if len(s.operations) == 0 { // of both together alone
		add(result.Operation{Name: "io", Noun: "I/Os"}, r.buckets[0].hist)
	}
	s.workload += histogramSuffix
	s.length, rep.Elapsed = length, length
	s.reports = []workload.Report{rep}
	s.notes = append(s.notes, "percentiles are the upper ends of vdbench's buckets, the largest the lower end of the "+
		"last: the true ones lie within that bucket")
	if given.Length > 0 {
		s.lasted(time.Duration(given.Length * float64(time.Second)))
	}
	s.unseen = []string{"bytes and means: a histogram holds counts"}
}

// lasted says how long a histogram's run was measured, which is then no guess.
func (s *stretch) lasted(length time.Duration) {
	s.length, s.reports[0].Elapsed = length, length
	s.notes = s.notes[len(s.notes)-1:]
}
