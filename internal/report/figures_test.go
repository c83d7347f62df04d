package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
