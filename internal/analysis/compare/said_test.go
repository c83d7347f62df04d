package compare

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// What runs were warned of is told by check, the worst first, with the combinations and how many of their runs; what is
// worth knowing and what is in order are not.
func TestSaid(t *testing.T) {
	made := func(level string, findings ...result.Finding) Made {
		return Made{Run: Run{Findings: findings}, Levels: []string{level}}
	}
	f := func(check string, severity result.Severity, sentence string) result.Finding {
		return result.Finding{Check: check, Severity: severity, Sentence: sentence}
	}
	d := Design{Factors: []Factor{{Name: "f", Levels: []string{"a", "b"}}}, Made: []Made{
		made("a", f("stalls", result.Warning, "one"), f("stalls", result.Warning, "of another workload")),
		made("a", f("law", result.Warning, "may be"), f("x", result.Info, "a word"), f("y", result.Passed, "fine")),
		made("b", f("stalls", result.Warning, "two"), f("law", result.Invalid, "cannot be")),
	}}
	x := &Experiment{Cells: []CellResult{{Cell: "f=a", Levels: []string{"a"}, Runs: []string{"1", "2"}},
		{Cell: "f=b", Levels: []string{"b"}, Runs: []string{"3"}}}}
	x.said(d)
	want := []Said{
		{Check: "law", Severity: result.Invalid, Sentence: "cannot be",
			Cells: []SaidOfCell{{"f=a", 1, 2}, {"f=b", 1, 1}}, Differs: true, Mixed: true},
		{Check: "stalls", Severity: result.Warning, Sentence: "one", Cells: []SaidOfCell{{"f=a", 1, 2}, {"f=b", 1, 1}},
			Differs: true},
	}
	if diff := cmp.Diff(want, x.Said); diff != "" {
		t.Error(diff)
	}
}

// That one side came first is said once, of however many workloads and combinations.
func TestOrderIsSaidOnce(t *testing.T) {
	d := &Document{}
	for i := range 12 {
		d.Order = append(d.Order, Order{Name: fmt.Sprintf("Reads IOPS (depth %d)", i), Confounded: 1})
	}
	d.notes([]Side{{}, {}})
	want := []string{"Reads IOPS (depth 0), Reads IOPS (depth 1), Reads IOPS (depth 2) and 9 more: runs of one side " +
		"came before those of the other: a drift looks like a difference. Mix the order."}
	if diff := cmp.Diff(want, d.Notes); diff != "" {
		t.Error(diff)
	}
}
