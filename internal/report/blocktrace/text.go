// Package blocktrace says what a trace of block I/O holds: as text, as a table over time and as a page with its charts.
package blocktrace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/storage/trace"
	"plimsoll/unit"
)

// table is a part of what trace prints, as text and on the page.
type table struct {
	Title string
	Table terminal.Table
	Notes []string
}

// partial stands before all else.
const partial = "PARTIAL: some of the trace could not be read, or was lost."

// textColumns is how wide sentences are printed.
const textColumns = 80

// Text prints the answer first, then the figures it rests on.
func Text(w io.Writer, r *trace.Result) error {
	if r.Partial {
		visible.Fprintf(w, "%s\n", partial)
	}
	for i, text := range []string{title(r), r.Verdict.Sentence, sureWords(r.Verdict)} {
		if i == 1 {
			visible.Fprintf(w, "\n")
		}
		for line := range strings.SplitSeq(terminal.Wrap(text, textColumns), "\n") {
			visible.Fprintf(w, "%s\n", line)
		}
	}
	for _, t := range tables(r) {
		visible.Fprintf(w, "\n")
		if t.Title != "" {
			visible.Fprintf(w, "%s\n", t.Title)
		}
		if err := t.Table.Write(w); err != nil {
			return err
		}
		for _, n := range t.Notes {
			for line := range strings.SplitSeq(terminal.Wrap(n, textColumns), "\n") {
				visible.Fprintf(w, "%s\n", line)
			}
		}
	}
	return nil
}

func title(r *trace.Result) string {
	var names []string
	for _, d := range r.Devices {
		names = append(names, d.Name)
	}
	of := "device " + unit.List(names, 3)
	if len(names) == 0 {
		of = "no device"
	}
	return fmt.Sprintf("%s (%s): %s events in %s, %s, requests %s", unit.List(r.Sources, 2), r.Format,
		unit.Thousands(int64(r.Events)), timeWords(r.Seconds), of, levelWords(r.Level))
}

func levelWords(level string) string {
	switch level {
	case "issued":
		return "as they were issued to the device"
	case "queued":
		return "as they were queued, before any were merged"
	case "whole":
		return "as the trace has them"
	}
	return "as each device has them"
}

func sureWords(v trace.Verdict) string {
	switch {
	case v.Sure == "clear":
		return "How sure: clear."
	case len(v.Because) == 0:
		return "How sure: " + v.Sure + "."
	}
	return "How sure: " + v.Sure + " (" + strings.Join(v.Because, "; ") + ")."
}

func timeWords(seconds float64) string {
	switch d := time.Duration(seconds * 1e9); {
	case seconds == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.3g s", seconds)
	}
	return unit.Duration(time.Duration(seconds) * time.Second).String()
}

func percent(share float64) string {
	switch {
	case share == 0:
		return "0 %"
	case share < 0.001:
		return "<0.1 %"
	case share < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func tables(r *trace.Result) []table {
	list := []table{operationsTable(r), orderTable(r), sizesTable(r), timesTable(r), queueTable(r),
		workingSetTable(r), burstTable(r), layerTable(r), processTable(r), hotTable(r)}
	return slices.DeleteFunc(list, func(t table) bool { return t.Table.Len() == 0 })
}

func operationsTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"OPERATION", "REQUESTS", "PER SECOND", "BANDWIDTH", "MEAN SIZE", "4K-ALIGNED",
		"FUA", "FAILED"}, Right: []bool{false, true, true, true, true, true, true, true}}
	seconds := max(r.Seconds, 1e-9)
	var notes []string
	for _, o := range r.Operations {
		placed := len(o.Kinds) > 0
		aligned, mean := "-", "-"
		if placed {
			aligned, mean = percent(o.Whole4k), unit.Bytes(o.Bytes/o.Requests).String()
		}
		t.Add(o.Op, unit.Thousands(int64(o.Requests)), short(float64(o.Requests)/seconds),
			unit.Bandwidth(float64(o.Bytes)/seconds).String(), mean, aligned, unit.Thousands(int64(o.FUA)),
			unit.Thousands(int64(o.Failed)))
		if o.Barrier > 0 {
			notes = append(notes, fmt.Sprintf("%s with a flush before: %s", o.Op, unit.Thousands(int64(o.Barrier))))
		}
	}
	return table{Table: t, Notes: notes}
}

func short(v float64) string {
	if v >= 100 {
		return unit.Thousands(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

func orderTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"ORDER"}, Right: []bool{false}}
	for k := range trace.Kinds {
		t.Head, t.Right = append(t.Head, strings.ToUpper(k.String())), append(t.Right, true)
	}
	for _, o := range r.Operations {
		if len(o.Kinds) == 0 {
			continue
		}
		row := []string{o.Op}
		for k := range trace.Kinds {
			i := slices.IndexFunc(o.Kinds, func(c trace.KindCount) bool { return c.Kind == k.String() })
			if i < 0 {
				row = append(row, "0 %")
				continue
			}
			row = append(row, percent(o.Kinds[i].Share))
		}
		t.Add(row...)
	}
	var notes []string
	if s := r.Streams; s.Opened > 0 {
		notes = append(notes, fmt.Sprintf("%s: %.3g at once on average, %d at most; the longest %s",
			unit.Plural(int(s.Opened), "sequential stream"), s.AtOnce, s.Most, unit.Bytes(s.Longest)))
	}
	return table{Table: t, Notes: notes}
}

// mostRows bounds rows of sizes that are printed; JSON has all.
const mostRows = 8

func sizesTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"SIZE", "READS", "WRITES", "OTHER"}, Right: []bool{true, true, true, true}}
	type row struct {
		from, bytes uint64
		n           map[string]uint64
		sum         uint64
	}
	by := map[uint64]*row{}
	var rows []*row
	for _, o := range r.Operations {
		for _, s := range o.Sizes {
			if by[s.Bytes] == nil {
				by[s.Bytes] = &row{from: s.FromBytes, bytes: s.Bytes, n: map[string]uint64{}}
				rows = append(rows, by[s.Bytes])
			}
			by[s.Bytes].n[o.Op] += s.Requests
			by[s.Bytes].sum += s.Requests
		}
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(b.sum, a.sum) })
	shown := rows[:min(mostRows, len(rows))]
	slices.SortFunc(shown, func(a, b *row) int { return cmp.Compare(a.bytes, b.bytes) })
	for _, s := range shown {
		size := unit.Bytes(s.bytes).String()
		if s.from > 0 {
			size = unit.Bytes(s.from).String() + " to " + size
		}
		other := s.sum - s.n["read"] - s.n["write"]
		t.Add(size, unit.Thousands(int64(s.n["read"])), unit.Thousands(int64(s.n["write"])),
			unit.Thousands(int64(other)))
	}
	var notes []string
	if len(rows) > mostRows {
		rest := uint64(0)
		for _, s := range rows[mostRows:] {
			rest += s.sum
		}
		notes = append(notes, fmt.Sprintf("and %s of %s more", unit.Plural(int(rest), "request"),
			unit.Plural(len(rows)-mostRows, "size")))
	}
	return table{Table: t, Notes: notes}
}

func timesTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"TIME", "COUNT", "MEAN", "P50", "P99", "P99.9", "MAX"},
		Right: []bool{false, true, true, true, true, true, true}}
	add := func(name string, s *trace.Times) {
		if s == nil {
			return
		}
		row := []string{name, unit.Thousands(int64(s.Count)), timeWords(s.Mean)}
		for _, v := range []float64{s.P50, s.P99, s.P999} {
			text := "-"
			if v > 0 {
				text = timeWords(v)
			}
			row = append(row, text)
		}
		t.Add(append(row, timeWords(s.Max))...)
	}
	for _, o := range r.Operations {
		add(o.Op+" service time", o.Service)
		add(o.Op+" response time", o.Response)
	}
	var notes []string
	if t.Len() > 0 {
		notes = append(notes,
			"service time: from issue to completion; response time: from queueing to completion, or as a "+
				"table has it")
	}
	return table{Table: t, Notes: notes}
}

func queueTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"QUEUE DEPTH", "WHILE BUSY", "P50", "P99", "MAX", "IDLE"},
		Right: []bool{true, true, true, true, true, true}}
	if q := r.Queue; q != nil {
		t.Add(fmt.Sprintf("%.3g", q.Mean), fmt.Sprintf("%.3g", q.Busy), fmt.Sprint(q.P50), fmt.Sprint(q.P99),
			fmt.Sprint(q.Max), percent(q.Idle))
	}
	return table{Table: t}
}

func workingSetTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"LRU CACHE", "MISSES", "OF READS"}, Right: []bool{true, true, true}}
	s := r.WorkingSet
	if s == nil {
		return table{Table: t}
	}
	var last float64 = 2
	for i, p := range s.Curve {
		power := p.Blocks&(p.Blocks-1) == 0
		if end := i == len(s.Curve)-1; !end && (!power || last-p.Miss < 0.01) {
			continue
		}
		last = p.Miss
		size, misses, reads := unit.Bytes(p.Blocks*s.BlockBytes).String(), percent(p.Miss), percent(p.ReadMiss)
		if !s.Exact {
			size += fmt.Sprintf(" ±%.0f %%", 100*p.SizeError)
			misses += fmt.Sprintf(" ±%.1f", 100*p.MissError)
			reads += fmt.Sprintf(" ±%.1f", 100*p.ReadError)
		}
		t.Add(size, misses, reads)
	}
	plus := ""
	if !s.Exact {
		plus = fmt.Sprintf(" (±%.1f %%)", 100*s.BytesError)
	}
	notes := []string{fmt.Sprintf("touched: %s%s, read %s, written %s; overwrites %s of writes, reads after a write %s",
		unit.Bytes(s.Bytes), plus, unit.Bytes(s.ReadBytes), unit.Bytes(s.WrittenBytes), percent(s.Overwrites),
		percent(s.ReadsOfWrites))}
	for _, h := range s.Hottest {
		if h.Blocks == 0.1 {
			notes = append(notes, fmt.Sprintf("the hottest tenth of the blocks takes %s of the accesses",
				percent(h.Accesses)))
		}
	}
	if s.Exact {
		notes = append(notes, "every block was looked at")
	} else {
		notes = append(notes, fmt.Sprintf("told from %s blocks, %.3g %% of all; ± is 95 %%",
			unit.Thousands(int64(s.SampledBlocks)), 100*s.SampledShare))
	}
	return table{Title: fmt.Sprintf("Working set, in blocks of %s", unit.Bytes(s.BlockBytes)), Table: t,
		Notes: notes}
}

func burstTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"IN WINDOWS OF", "MEAN", "PEAK", "PEAK TO MEAN", "DISPERSION", "EMPTY"},
		Right: []bool{true, true, true, true, true, true}}
	for _, b := range r.Bursts {
		t.Add(timeWords(b.WindowSeconds), short(b.Mean), unit.Thousands(int64(b.Peak)), short(b.PeakToMean),
			short(b.Dispersion), percent(b.Empty))
	}
	var notes []string
	if t.Len() > 0 {
		notes = append(notes, "dispersion is variance over mean: 1 when arrivals are at random, more in bursts")
	}
	return table{Table: t, Notes: notes}
}

func layerTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"BLOCK LAYER", "EVENTS"}, Right: []bool{false, true}}
	l := r.Layer
	for _, row := range []struct {
		name string
		n    uint64
	}{{"queued", l.Queued}, {"merged", l.Merged}, {"split", l.Split}, {"remapped", l.Remapped}, {"issued", l.Issued},
		{"requeued", l.Requeued}, {"completed", l.Completed}, {"completed, issue not seen", l.NotIssued},
		{"issued, completion not seen", l.Pending}, {"commands of drivers", l.Packets}} {
		if row.n > 0 {
			t.Add(row.name, unit.Thousands(int64(row.n)))
		}
	}
	return table{Table: t}
}

func processTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"PID", "READS", "READ", "WRITES", "WRITTEN", "PROCESS"},
		Right: []bool{true, true, true, true, true}}
	for _, p := range r.Processes[:min(mostRows, len(r.Processes))] {
		t.Add(fmt.Sprint(p.PID), unit.Thousands(int64(p.Reads)), unit.Bytes(p.ReadBytes).String(),
			unit.Thousands(int64(p.Writes)), unit.Bytes(p.WriteBytes).String(), p.Name)
	}
	return table{Table: t}
}

func hotTable(r *trace.Result) table {
	t := terminal.Table{Head: []string{"REGION AT", "REQUESTS", "READS", "WRITES", "DEVICE"},
		Right: []bool{true, true, true, true}}
	h := r.Hot
	for _, g := range h.Regions[:min(5, len(h.Regions))] {
		t.Add(unit.Bytes(g.Offset).String(), percent(g.Share), unit.Thousands(int64(g.Reads)),
			unit.Thousands(int64(g.Writes)), g.Device)
	}
	var notes []string
	if h.Touched > 0 {
		notes = append(notes, fmt.Sprintf("regions of %s: %s touched, half of the requests in %d, 90 %% in %d",
			unit.Bytes(h.RegionBytes), unit.Thousands(int64(h.Touched)), h.Half, h.Ninety))
	}
	return table{Table: t, Notes: notes}
}
