package importer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// readElbenchoLive reads live statistics: a row for each moment and each thread, of which those of all threads count.
func readElbenchoLive(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	b.book.tool = "elbencho"
	live := &elbenchoCourse{}
	rows := newCSVRows(r)
	var at map[string]int
	for n := 0; ; {
		cells, line, err := rows.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			live.finish(&b.book)
			return b.done(err)
		}
		if at == nil {
			at = map[string]int{}
			for i, name := range cells {
				at[strings.ToLower(strings.TrimPrefix(name, "\ufeff"))] = i
			}
			continue
		}
		cell := func(name string) string {
			if i, ok := at[name]; ok && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		if cell("rank") != "Total" {
			continue
		}
		if n++; n > mostRows {
			live.finish(&b.book)
			return b.done(fmt.Errorf("more than %d rows of all threads: split the file", mostRows))
		}
		ms, err := quantity(cell("runtimems"))
		if err != nil || cell("phase") == "" {
			b.book.skip(line, "no phase, or no time since its start: %.40q %.40q", cell("phase"), cell("runtimems"))
			continue
		}
		row := elbenchoMoment{phase: oneLine(cell("phase")), label: oneLine(cell("label")),
			mix: strings.ToLower(cell("mixtype")), at: milliseconds(ms)}
		var errs [5]error
		get := func(i int, name string) (v float64) {
			if v, errs[i] = quantity(cell(name)); errs[i] != nil && cell(name) == "" {
				errs[i] = nil
			}
			return v
		}
		row.bytes, row.rate = get(0, "donebytes"), get(1, "iops")
		row.entries, row.us, row.active = get(2, "entries"), get(3, "lat io us"), get(4, "active")
		if err := errors.Join(errs[:]...); err != nil {
			b.book.skip(line, "%v", err)
			continue
		}
		if t, zoned, _ := isoDate(cell("iso date")); !t.IsZero() {
			if row.clock = t; !zoned {
				b.book.note(elbenchoLocal)
			}
		}
		if err := live.addMoment(&b.book, row); err != nil {
			return b.done(err)
		}
	}
}

// elbenchoMoment is a row of all threads.
type elbenchoMoment struct {
	phase, label, mix                string
	at                               time.Duration
	clock                            time.Time
	bytes, rate, entries, us, active float64
}

// elbenchoCourse makes stretches of moments.
type elbenchoCourse struct {
	rows []elbenchoMoment
}

func (c *elbenchoCourse) addMoment(b *book, m elbenchoMoment) error {
	if n := len(c.rows); n > 0 {
		last := c.rows[n-1]
		if last.phase != m.phase || last.label != m.label || m.at < last.at {
			if c.finish(b); len(b.stretches) >= mostStretches {
				return fmt.Errorf("more than %d phases: split the file", mostStretches)
			}
		}
	}
	c.rows = append(c.rows, m)
	return nil
}

// finish makes a stretch of the phase so far. With reads beside writes, each moment has a row of both.
func (c *elbenchoCourse) finish(b *book) {
	rows := c.rows
	c.rows = nil
	if len(rows) == 0 || rows[len(rows)-1].at <= 0 {
		return
	}
	s := stretch{workload: strings.TrimSpace("elbencho " + strings.ToLower(rows[0].phase) + " " + rows[0].label)}
	mixed := slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.mix == "write" }) &&
		slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.mix == "read" })
	blocks := slices.ContainsFunc(rows, func(r elbenchoMoment) bool { return r.rate > 0 || r.bytes > 0 })
	ops := result.BlockOperations()
	switch reads := strings.HasPrefix(rows[0].phase, "READ") || rows[0].mix == "read"; {
	case mixed:
		s.operations = ops[:2]
	case !blocks:
		s.operations = []result.Operation{{Name: "entry", Noun: "entries"}}
	case reads:
		s.operations = ops[:1]
	default:
		s.operations = ops[1:2]
	}
	counts := make(workload.Counts, len(s.operations))
	n := make([]float64, len(counts))
	seconds := make([]float64, len(counts))
	before := make([]time.Duration, len(counts))
	for i, r := range rows {
		k := 0
		if mixed && r.mix == "write" {
			k = 1
		} else if mixed && r.mix != "read" {
			continue // the sum of both
		}
		if r.at < before[k] {
			continue
		}
		if blocks {
			did := r.rate * (r.at - before[k]).Seconds()
			n[k] += did
			seconds[k] += did * r.us / 1e6
		} else {
			n[k] = max(n[k], r.entries)
		}
		before[k] = r.at
		counts[k] = workload.Counters{Ops: whole(n[k]), Bytes: max(counts[k].Bytes, whole(r.bytes)),
			Seconds: seconds[k]}
		if !s.operations[k].Bytes {
			counts[k].Bytes = 0
		}
		s.concurrency = max(s.concurrency, r.active)
		if i+1 < len(rows) && rows[i+1].at == r.at {
			continue
		}
		s.reports = append(s.reports, workload.Report{Elapsed: r.at, Ops: slices.Clone(counts)})
	}
	last := rows[len(rows)-1]
	if len(s.reports) == 0 || counts.Total() == 0 {
		return
	}
	s.reports[len(s.reports)-1].Final = true
	if s.length = last.at; !last.clock.IsZero() {
		s.start = last.clock.Add(-last.at)
	}
	s.notes = []string{"operations are the rates of the moments times the time between them"}
	s.unseen = []string{"percentiles of latency: live statistics have means",
		"what was done after the last moment: the results (--csvfile, --jsonfile) have all of it",
		"the device underneath: its counters are in no such file"}
	b.stretches = append(b.stretches, s)
}
