package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// fewReads is a run of so many reads with a histogram, or with percentiles that the tool stated.
func fewReads(n uint64, stated bool) *Document {
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	w := result.Workload{Name: "reads", Group: "Load", Engine: "fio", Start: start, End: start.Add(90 * time.Second),
		Ended: result.Finished, Operations: result.BlockOperations()[:1],
		Ops: []result.OpTotals{{Op: "read", Count: n, Seconds: float64(n) * 5e-3}}}
	if stated {
		w.Measures = []result.Measure{{Name: "read_p99", Unit: "ms", Kind: result.Single},
			{Name: "read_p99.99", Unit: "ms", Kind: result.Single},
			{Name: "sync_count", Unit: "count", Kind: result.Single},
			{Name: "sync_p97.5", Unit: "ms", Kind: result.Single}}
		w.Values = []result.Value{{Measure: "read_p99", Value: 12}, {Measure: "read_p99.99", Value: 31},
			{Measure: "sync_count", Value: 0.4 * float64(n)}, {Measure: "sync_p97.5", Value: 3}}
	} else {
		w.Ops[0].Hist = &hist.Histogram{}
		w.Ops[0].Hist.Add(5e6, n)
	}
	end := start.Add(2 * time.Minute)
	return New(Input{Manifest: result.Manifest{Target: "local", Created: start, Ended: end},
		Data: &result.Data{Start: start, End: end, Workloads: []result.Workload{w}}})
}

// A percentile beyond which fewer than ten operations lie stands nowhere without a mark: at 999 operations the 99th
// (9.99), at 1,000 no longer. JSON has the figure and says so.
func TestPercentileOfTooFew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n      uint64
		stated bool
		few    []string
	}{
		"999":            {999, false, []string{"p99"}},
		"1,000":          {1000, false, []string{"p99.9"}},
		"10,000":         {10_000, false, nil},
		"999 stated":     {999, true, []string{"p99", "p99.99"}},
		"1,000 stated":   {1000, true, []string{"p99.99"}},
		"100,000 stated": {100_000, true, nil},
	} {
		doc := fewReads(c.n, c.stated)
		row := doc.Latencies[0].Windows[0].Rows[0]
		if !slices.Equal(row.TooFew, c.few) {
			t.Errorf("%s: too few for %v, want %v", name, row.TooFew, c.few)
		}
		all := doc.Figures()
		if got, want := strings.HasSuffix(all[0].P99, " ?"), slices.Contains(c.few, "p99"); got != want {
			t.Errorf("%s: p99 %q in the figures", name, all[0].P99)
		}
		if of := doc.Latencies[0].Stated(); c.stated &&
			strings.HasSuffix(of.Rows[0][len(of.Head)-1], " ?") != slices.Contains(c.few, "p99.99") {
			t.Errorf("%s: %v %v", name, of.Head, of.Rows)
		}
		if flushed := doc.Latencies[0].Stated(); c.stated &&
			strings.HasSuffix(flushed.Rows[1][1], " ?") != (0.4*float64(c.n) < 400) {
			t.Errorf("%s: p97.5 of flushes is %v", name, flushed)
		}
		var page, text, table, data bytes.Buffer
		for _, err := range []error{HTML(&page, doc), Markdown(&text, doc), CSV(&table, doc), JSON(&data, doc)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for face, said := range map[string]string{page.String(): hardlyTold, text.String(): hardlyTold,
			table.String(): "(fewer than ten operations beyond it)", data.String(): `"too_few"`} {
			if strings.Contains(face, said) != (c.few != nil) {
				t.Errorf("%s: %q is said: %v", name, said, c.few == nil)
			}
		}
		if s := row.told("p99"); !c.stated && (s == nil) != slices.Contains(c.few, "p99") {
			t.Errorf("%s: a sentence has the p99 %v", name, s)
		}
	}
}
