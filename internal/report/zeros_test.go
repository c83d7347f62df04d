package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
)

// Measures that were 0 in every run of an experiment share a note; one that was not in a single run stays everywhere,
// and so do two that were.
func TestWithoutZeros(t *testing.T) {
	value := func(workload, name string, v float64) compare.CellValue {
		return compare.CellValue{Workload: workload, Name: name, Value: v}
	}
	chart := func(title string, y ...float64) compare.Chart {
		line := compare.ChartLine{}
		for i, v := range y {
			line.Points = append(line.Points, compare.ChartPoint{X: i, Y: v})
		}
		return compare.Chart{Title: title, Lines: []compare.ChartLine{line}}
	}
	cell := func(rate, lost float64) compare.CellResult {
		return compare.CellResult{Values: []compare.CellValue{value("Load", "rate", rate), value("Load", "lost", lost),
			value("Load", "a", 0), value("Load", "b", 0), value("Load", "c", 0), value("Other", "a", 0)}}
	}
	x := &compare.Experiment{Notes: []string{"first"}, Cells: []compare.CellResult{cell(5, 0), cell(6, 1)},
		Charts: []compare.Chart{chart("Load rate", 5, 6), chart("Load lost", 0, 1), chart("Load a", 0, 0)}}
	got := withoutZeros(x)
	kept := func(rate, lost float64) compare.CellResult {
		return compare.CellResult{Values: []compare.CellValue{value("Load", "rate", rate), value("Load", "lost", lost),
			value("Other", "a", 0)}}
	}
	want := &compare.Experiment{Notes: []string{"first", "0 of Load in every run: a, b, c."},
		Cells:  []compare.CellResult{kept(5, 0), kept(6, 1)},
		Charts: []compare.Chart{chart("Load rate", 5, 6), chart("Load lost", 0, 1)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(x.Cells[0].Values) != 6 {
		t.Error("what was given was changed")
	}
}
