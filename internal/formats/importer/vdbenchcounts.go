package importer

import (
	"math"
	"slices"
	"time"

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
