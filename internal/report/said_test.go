package report

import (
	"slices"
	"testing"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/result"
)

// A sentence of one run is not said of all, nor the worst of them of all.
func TestWhatOneRunSaidIsNotSaidOfAll(t *testing.T) {
	t.Parallel()
	x := &compare.Experiment{Cells: make([]compare.CellResult, 1)}
	for _, s := range []compare.Said{
		{Severity: result.Warning, Sentence: "A drifts by 7 %."},
		{Severity: result.Warning, Sentence: "A drifts by 9 %.", Differs: true},
		{Severity: result.Invalid, Sentence: "A is memory.", Differs: true, Mixed: true},
	} {
		s.Cells = []compare.SaidOfCell{{Cell: "all", Runs: 8, Of: 8}}
		x.Said = append(x.Said, s)
	}
	want := []string{"Warning in all 8 runs: A drifts by 7 %.",
		"Warning in all 8 runs, in one of them: A drifts by 9 %.",
		"Invalid or warning in all 8 runs, in one of them: A is memory."}
	if got := saidLines(x); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A search that knows between which rates its mark is shows them.
func TestLinesSayBetween(t *testing.T) {
	t.Parallel()
	a := loadmark.Conclude(loadmark.Settings{Start: 1000}, []loadmark.Probe{{Offered: 1000, Margin: 3, Held: true},
		{Offered: 2000, Margin: 0.1}})
	g := linesOf(&compare.Experiment{Lines: []loadmark.Line{{Condition: "alone", Answer: a}}})
	if got, want := g.rows[0][1], "between 1,000 IOPS and 2,000 IOPS"; got != want {
		t.Errorf("%q, want %q: %s", got, want, a.Sentence)
	}
}
