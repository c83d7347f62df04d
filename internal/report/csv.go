package report

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/result"
)

// CSV writes one tidy table: a row for every value, with the columns panel, series, time, value and unit. After the
// results come the views of VMs and totals (panel is the measure's name), then the totals of every workload (panel
// "workload NAME", series "MACHINE, WINDOW, MEASURE", time the start of the window; of sections "all, section, NAME,
// MEASURE"). Gaps have no row.
func CSV(w io.Writer, doc *Document) error {
	doc = safelyShown(doc)
	t := &table{w: bufio.NewWriter(w)}
	t.row("panel", "series", "time", "value", "unit")
	samples(doc, t.value)
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("report: csv: %w", err)
	}
	return nil
}

// samples hands on every value of a run's table.
func samples(doc *Document, take func(panel, series string, at time.Time, v float64, unit string)) {
	t := taker{take}
	for _, p := range doc.Panels {
		for _, s := range p.Series {
			t.series(p.Title, s, p.Unit)
		}
	}
	for _, s := range doc.Series {
		t.series(s.Metric(), s, s.Unit)
	}
	for _, s := range doc.Workloads {
		panel, machine := "workload "+s.Name, s.VM
		if s.Prefill {
			panel = "prefill " + s.Name
		}
		if machine == "" {
			machine = "all of " + s.Group
		}
		t.totals(panel, machine, s.Totals)
		t.value(panel, machine+", "+s.Totals.Name+", errors", s.Start, float64(s.Errors), "count")
	}
	for _, l := range doc.Latencies {
		for _, win := range l.Windows[1:] {
			t.totals("workload "+l.Workload, "all", win)
		}
		for _, s := range l.Sections {
			t.totals("workload "+l.Workload, "all, section", s)
		}
	}
}

// taker takes values.
type taker struct {
	value func(panel, series string, at time.Time, v float64, unit string)
}

// table writes rows; the buffered writer keeps its first error.
type table struct{ w *bufio.Writer }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		if i > 0 {
			t.w.WriteByte(',')
		}
		t.w.WriteString(Cell(c))
	}
	t.w.WriteByte('\n')
}

func (t *table) value(panel, series string, at time.Time, v float64, unit string) {
	t.row(panel, series, at.UTC().Format(time.RFC3339Nano), strconv.FormatFloat(v, 'g', -1, 64), unit)
}

func (t taker) series(panel string, s result.Series, unit string) {
	for i, v := range s.Values {
		if v != nil {
			t.value(panel, s.Name, s.Start.Add(time.Duration(float64(i)*s.Step*float64(time.Second))), *v, unit)
		}
	}
}

func (t taker) totals(panel, machine string, w WindowTotals) {
	const few = " (fewer than ten operations beyond it)"
	for _, m := range w.Measures {
		if m.TooFew {
			m.Name += few
		}
		t.value(panel, machine+", "+w.Name+", "+m.Name, w.Start, m.Value, m.Unit)
	}
	for _, r := range w.Rows {
		name := machine + ", " + w.Name + ", " + r.Op + " "
		t.value(panel, name+"count", w.Start, float64(r.Count), "count")
		if rate := r.Rate(); rate != nil {
			t.value(panel, name+"rate", w.Start, *rate, r.Unit)
		}
		if r.BytesPerSecond != nil {
			t.value(panel, name+"bandwidth", w.Start, *r.BytesPerSecond, "bytes/s")
		}
		for _, m := range []struct {
			name string
			v    *float64
		}{{"mean", r.Mean}, {"p50", r.P50}, {"p90", r.P90}, {"p99", r.P99}, {"p99.9", r.P999}, {"max", r.Max}} {
			if m.v != nil {
				if slices.Contains(r.TooFew, m.name) {
					m.name += few
				}
				t.value(panel, name+m.name, w.Start, *m.v, "s")
			}
		}
	}
}

// formulas are the signs that begin one.
const formulas = "=+-@＝＋－＠"

// numeric matches what a spreadsheet may take for a number; also a text that is nothing else.
var numeric = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$`)

// Cell is a field of the file. Text that a spreadsheet would take for a formula, also after blanks and in the wide
// forms that some take for the same signs, gets an apostrophe in front. A field is also quoted for separators that are
// not ours: where a program splits at semicolons, each part would be a cell.
func Cell(s string) string {
	if first, _ := utf8.DecodeRuneInString(strings.TrimSpace(s)); strings.ContainsRune(formulas, first) &&
		!numeric.MatchString(s) {
		s = "'" + s
	}
	if strings.ContainsAny(s, "\",;") || strings.TrimSpace(s) != s {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
