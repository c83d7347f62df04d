package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/result"
)

// Percentiles of its own that a tool states stand in their columns, or in rows where there are none for them; those
// that are seldom asked for are left out.
func TestForemost(t *testing.T) {
	t.Parallel()
	doc := &Document{}
	for _, name := range []string{"a", "b", "c"} {
		w := WindowTotals{Rows: []OpRow{{Op: "write"}}}
		for _, p := range strings.Fields("p1 p20 p50 p60 p90 p95 p99 p99.5 p99.9 p99.95 max") {
			value := float64(1 + slices.Index([]string{"p50", "p99", "p99.9"}, p))
			w.Measures = append(w.Measures, MeasureRow{Name: "write_" + p, Unit: "us", Value: max(value, 0.5)})
		}
		doc.Latencies = append(doc.Latencies, Latency{Workload: name, Windows: []WindowTotals{w}})
	}
	each := " write 1 µs 2 µs 3 µs write_p90 write_p95 write_max"
	for most, want := range map[int]string{
		36: strings.Repeat(each, 3) + ", 15 left",
		12: strings.Repeat(each, 3) + ", 15 left",
		9:  strings.Repeat(each, 2) + " write 1 µs 2 µs 3 µs, 18 left",
		4:  " write 1 µs 2 µs 3 µs write_p90" + strings.Repeat(" write 1 µs 2 µs 3 µs", 2) + ", 23 left",
		2:  strings.Repeat(" write 1 µs 2 µs 3 µs", 2) + ", 25 left",
	} {
		rows, left := doc.Foremost(most)
		got := ""
		for _, r := range rows {
			got += " " + r.Operation
			if !r.measure {
				got += fmt.Sprintf(" %s %s %s", r.P50, r.P99, r.P999)
			}
		}
		if got = fmt.Sprintf("%s, %d left", got, left); got != want {
			t.Errorf("at most %d:\n got %s\nwant %s", most, got, want)
		}
	}
}

// Times of flushes, which a log of commits waits for, stay longer than percentiles of what is written before them.
func TestForemostFlushes(t *testing.T) {
	t.Parallel()
	w := WindowTotals{Rows: []OpRow{{Op: "write"}}}
	for _, name := range strings.Fields("write_p50 write_p99 write_max sync_mean sync_p1 sync_p99 sync_max") {
		w.Measures = append(w.Measures, MeasureRow{Name: name, Unit: "us", Value: 1})
	}
	rows, left := (&Document{Latencies: []Latency{{Workload: "a", Windows: []WindowTotals{w}}}}).Foremost(5)
	got := ""
	for _, r := range rows {
		got += " " + r.Operation
	}
	if want := " write write_max sync_mean sync_p99 sync_max"; got != want || left != 1 {
		t.Errorf("got %s, %d left; want %s", got, left, want)
	}
}

// The answer of a load that flushes has what it waits for each time.
func TestFlushed(t *testing.T) {
	t.Parallel()
	median := 0.002
	doc := &Document{Findings: []result.Finding{{Check: "flushes", Subject: "a", Value: &median,
		Evidence: []result.Evidence{{Name: "p99 of flushes", Value: 0.012, Unit: "s"}}},
		{Check: "flushes", Subject: "b", Value: &median}}}
	for name, want := range map[string]string{"a": ", flushes p99 12 ms", "b": ", flushes p50 2 ms", "c": ""} {
		if got := doc.flushed(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// A column that holds values beside rates is not headed as rates.
func TestRateHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ unit, want string }{
		{"us", "Rate or value"}, {"", "Rate or value"}, {"IOPS", "Rate"}, {"retries/s", "Rate"},
	} {
		l := Latency{Workload: "a", Windows: []WindowTotals{{Rows: []OpRow{{Op: "read"}},
			Measures: []MeasureRow{{Name: "m", Unit: c.unit, Value: 1}}}}}
		if got := l.RateHead(); got != c.want {
			t.Errorf("percentiles, in %q: %s, want %s", c.unit, got, c.want)
		}
		if got := FigureHead((&Document{Latencies: []Latency{l}}).Figures())[2]; got != c.want {
			t.Errorf("figures, in %q: %s, want %s", c.unit, got, c.want)
		}
	}
}
