package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// statedBy is a workload of one operation whose tool states times, in µs: that of p50 is 1, of p99 2, of p99.9 3, of
// others 4.
func statedBy(workload, op string, names ...string) Latency {
	w := WindowTotals{Name: "whole time", Rows: []OpRow{{Op: op}}}
	for _, name := range names {
		value := 4.0
		if i := slices.Index([]string{"p50", "p99", "p99.9"}, name[strings.LastIndexAny(name, "_ ")+1:]); i >= 0 {
			value = float64(1 + i)
		}
		w.Measures = append(w.Measures, MeasureRow{Name: name, Unit: "us", Value: value})
	}
	return Latency{Workload: workload, Windows: []WindowTotals{w}}
}

// operations are those of figures, with the times that stand in columns, or the value.
func operations(rows []Figure) (out []string) {
	for _, r := range rows {
		out = append(out, strings.Join([]string{r.Operation, r.Rate, r.P50, r.P99, r.P999}, " "))
	}
	return out
}

// Times of its own that a tool states stand in the columns, an operation a row; the upper ones in rows where there is
// no p99. Where rows are too many those of operations stay, then those of flushes.
func TestForemost(t *testing.T) {
	t.Parallel()
	var doc Document
	for _, name := range []string{"a", "b"} {
		doc.Latencies = append(doc.Latencies, statedBy(name, "write", "write_p1", "write_p50", "write_p90", "write_p99",
			"write_p99.9", "write_max", "sync_mean", "sync_p99", "job 1 read_p50", "job 1 read_p90", "retries_left"))
	}
	const write, sync, job, job90, left = "write 0 1 µs 2 µs 3 µs", "sync – – 2 µs –", "job 1 read – 1 µs – –",
		"job 1 read p90 4 µs – – –", "retries_left 4 µs – – –"
	each := []string{write, sync, job, job90, left}
	for most, want := range map[int][]string{
		40: slices.Concat(each, each),
		8:  slices.Concat(each, []string{write, sync, job}),
		4:  {write, sync, write, sync},
		2:  {write, write},
		1:  {write},
	} {
		rows, left := doc.Foremost(most)
		if diff := cmp.Diff(want, operations(rows)); diff != "" || left != 10-len(want) {
			t.Errorf("at most %d: %d left\n%s", most, left, diff)
		}
	}
	rows, _ := (&Document{Latencies: []Latency{statedBy("a", "request", "request_p75", "request_p95")}}).Foremost(9)
	if diff := cmp.Diff([]string{"request 0 – – –", "request p75 4 µs – – –", "request p95 4 µs – – –"},
		operations(rows)); diff != "" {
		t.Error(diff)
	}
}

// A table of percentiles has a row for each operation, whatever percentiles a tool states of it, and those that have no
// column stand in a table of their own.
func TestStatedPercentiles(t *testing.T) {
	t.Parallel()
	l := statedBy("a", "read", "read_p1", "read_p50", "read_p99.95", "read_p99", "read_max", "sync_mean", "sync_p99.9")
	var rows []string
	for _, r := range l.Table() {
		rows = append(rows, strings.Join(append([]string{r.Operation}, r.Cells...), " "))
	}
	if diff := cmp.Diff([]string{"read 0 0 – – 1 µs – 2 µs – 4 µs", "sync – – – 4 µs – – – 3 µs –"},
		rows); diff != "" {
		t.Error(diff)
	}
	want := &StatedTable{Head: strings.Fields("Operation mean p1 p50 p99 p99.9 p99.95 max"),
		Rows: [][]string{strings.Fields("read – 4µs 1µs 2µs – 4µs 4µs"), strings.Fields("sync 4µs – – – 3µs – –")}}
	for _, r := range want.Rows {
		for i := range r {
			r[i] = strings.Replace(r[i], "µs", " µs", 1)
		}
	}
	if diff := cmp.Diff(want, l.Stated()); diff != "" {
		t.Error(diff)
	}
	if got := statedBy("a", "read", "read_p50", "read_max").Stated(); got != nil {
		t.Errorf("all of them have columns: %v", got)
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

// Measures are called in words where they are of a workload; columns of a file keep their names, and so do operations.
func TestMeasureName(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"read_p90", "Load read p90"}, {"job 1 write_max", "Load job 1 write_max"},
		{"given_up", "Load given_up"}, {"new_order p99 response time", "Load new_order p99 response time"}} {
		if got := measureName("", "Load", c[0]); got != c[1] {
			t.Errorf("%s: %q, want %q", c[0], got, c[1])
		}
	}
	if got := measureName("", "", "read_p90"); got != "read_p90" {
		t.Errorf("a column is called %q", got)
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
