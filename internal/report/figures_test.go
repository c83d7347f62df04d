package report

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// What is 0 shares a line when there is much of it, and is in no row then.
func TestZerosShareALine(t *testing.T) {
	of := func(measures ...MeasureRow) *Document {
		return &Document{Latencies: []Latency{{Workload: "Orders", Windows: []WindowTotals{{Measures: measures}}}}}
	}
	names := func(doc *Document) (out []string) {
		for _, f := range doc.Figures() {
			out = append(out, f.Operation)
		}
		return out
	}
	some := MeasureRow{Name: "NOPM", Value: 3, Unit: "NOPM"}
	few := of(some, MeasureRow{Name: "retries"}, MeasureRow{Name: "deadlocks"})
	if diff := cmp.Diff([]string{"NOPM", "retries", "deadlocks"}, names(few)); diff != "" || few.FigureZeros() != "" {
		t.Error(diff, few.FigureZeros())
	}
	many := of(MeasureRow{Name: "given_up"}, some, MeasureRow{Name: "retries"}, MeasureRow{Name: "deadlocks"})
	if diff := cmp.Diff([]string{"NOPM"}, names(many)); diff != "" {
		t.Error(diff)
	}
	if got, want := many.FigureZeros(), "0 of Orders: given_up, retries, deadlocks."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A load that was over within a second has counts and no rates; of a set of queries each has its time and none.
func TestNoRates(t *testing.T) {
	query := result.Operation{Name: "power-q01", Noun: "queries", Set: true}
	failures := result.Measure{Name: "failed_other", Unit: "failures", Kind: result.Count}
	load := result.Workload{Operations: []result.Operation{query, {Name: "read", Noun: "reads"},
		{Name: "copy", Noun: "records"}},
		Measures: []result.Measure{failures}}
	for _, c := range []struct {
		op      string
		count   uint64
		seconds float64
		bytes   uint64
		rate    string
		failed  string
	}{
		{"read", 1, 10, 0, "0.1 reads/s", "1 failures/s"},
		{"read", 1, 0.0016, 4096, "–", "10 failures"},
		{"read", 100_000, 0.9, 0, "111,111 reads/s", "11.1 failures/s"},
		{"copy", 1, 0.5, 1 << 30, "2 records/s", "20 failures/s"},
		{"power-q01", 1, 10, 0, "–", "1 failures/s"},
	} {
		totals := totalsOf(load, "", time.Time{}, c.seconds, []result.OpTotals{{Op: c.op, Count: c.count,
			Bytes: c.bytes, Seconds: 0.5 * float64(c.count)}},
			[]result.Value{{Measure: failures.Name, Value: 10}})
		rows := (&Document{Latencies: []Latency{{Workload: "Load", Windows: []WindowTotals{totals}}}}).Figures()
		if len(rows) != 2 || rows[0].Rate != c.rate || rows[0].Mean != "500 ms" || rows[1].Rate != c.failed {
			t.Errorf("%+v: %+v", c, rows)
		}
		if (totals.Rate() == nil) != (c.rate == "–") {
			t.Errorf("%+v: its total is %v", c, totals.Rate())
		}
	}
	for errors, want := range map[uint64]bool{0: true, 1: false} { // as short, and finished
		load.Ended, load.Errors = result.Finished, errors
		did := []result.OpTotals{{Op: "read", Count: 5, Seconds: 0.0736}}
		got := totalsOf(load, "", time.Time{}, 0.0736, did, nil).Rate()
		if (got != nil) != want || got != nil && math.Abs(*got-67.93) > 0.01 {
			t.Errorf("%d errors: a rate of %v", errors, got)
		}
	}
}

// A set of queries has no rate: what its tool states of the whole of it is the headline, not the mean of its queries.
func TestSetIsToldByItsTimes(t *testing.T) {
	t.Parallel()
	single := func(name string) result.Measure {
		return result.Measure{Name: name, Unit: "s", Better: result.Lower, Kind: result.Single}
	}
	load := result.Workload{Operations: []result.Operation{{Name: "query", Noun: "queries", Set: true}},
		Measures: []result.Measure{single("geometric_mean"), single("query_set"), single("query_01")}}
	totals := totalsOf(load, "", time.Time{}, 85, []result.OpTotals{{Op: "query", Count: 22, Seconds: 80}},
		[]result.Value{{Measure: "geometric_mean", Value: 1.5}, {Measure: "query_set", Value: 85},
			{Measure: "query_01", Value: 3}})
	const want = "geometric_mean 1.5 s; query_set 1 min 25 s"
	if got := didOf(Latency{Windows: []WindowTotals{totals}}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSayAnswer: a list shows what the report begins with, up to its first semicolon; of an older run its figure.
func TestSayAnswer(t *testing.T) {
	t.Parallel()
	in := runInput(reporttest.Options{VMs: 2, Length: 10 * time.Minute})
	h := HeadlineWithAnswer(in.Manifest, in.Data, in.Findings)
	if begins := New(in).InShort[0].Sentence; h == nil || h.Answer != begins || h.Workload == "" {
		t.Fatalf("%+v, the report begins with %q", h, begins)
	}
	for answer, want := range map[string]string{
		"":                                    "1,800 IOPS (OLTP read)",
		"OLTP: 4,000 IOPS alone (a; b).":      "OLTP: 4,000 IOPS alone (a; b)",
		"OLTP: 4,000 IOPS alone; p99 1 ms.":   "OLTP: 4,000 IOPS alone",
		`After "a; b": OLTP back; no errors.`: `After "a; b": OLTP back`,
		"Not to be relied on, see below: OLTP: 4,000 IOPS.": "Not to be relied on: OLTP: 4,000 IOPS",
	} {
		said := SayAnswer(result.Headline{Workload: "OLTP", Operation: "read", Value: 1800, Unit: "ops/s",
			Answer: answer})
		if said != want {
			t.Errorf("%q: %q, want %q", answer, said, want)
		}
	}
}
