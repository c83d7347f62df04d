package report

import (
	"fmt"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/unit"
)

// ratedSentences say how a device stands to its data sheet.
func ratedSentences(x *compare.Experiment) []string {
	if len(x.Rated) == 0 {
		return nil
	}
	by := map[compare.RatedVerdict][]string{}
	for _, r := range x.Rated {
		by[r.Verdict] = append(by[r.Verdict], r.Workload)
	}
	var parts []string
	for _, v := range []struct {
		verdict compare.RatedVerdict
		say     string
	}{{compare.Meets, "met"}, {compare.Below, "below the sheet"},
		{compare.Above, "above what the sheet says is possible"}, {compare.Unclear, "inconclusive"},
		{compare.NothingRated, "not measured"}} {
		if names := by[v.verdict]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", v.say, few(names)))
		}
	}
	text := fmt.Sprintf("Of %s of the data sheet, within %s: %s.", unit.Plural(len(x.Rated), "line"),
		wholePercent(compare.RatedTolerance), strings.Join(parts, "; "))
	out := []string{text}
	for _, r := range x.Rated {
		if r.Measured != nil && r.Verdict == compare.Below && len(r.Reasons) > 0 && len(out) <= mostSweeps {
			out = append(out, fmt.Sprintf("%s: %s of %s. %s.", capital(r.Workload), quantity(r.Measured.Value, r.Unit),
				rated(r.Rated, r.Unit), capital(r.Reasons[0])))
		}
	}
	return out
}

// rated prints a figure as sheets do: bandwidth in powers of 1000.
func rated(v float64, u string) string {
	if u == "bytes/s" {
		return unit.Bandwidth(v).Decimal()
	}
	return quantity(v, u)
}

// ratedGrid are the lines of a data sheet beside what was measured.
func ratedGrid(x *compare.Experiment) grid {
	g := grid{title: "Against the data sheet",
		head: []string{"line", "load", "sheet", "measured", "ratio", "interval", "verdict"}}
	for _, r := range x.Rated {
		load := fmt.Sprintf("%s × %d", unit.Bytes(r.Block), r.Depth)
		row := []string{r.Workload, load, rated(r.Rated, r.Unit), none, none, none, string(r.Verdict)}
		if r.Measured != nil {
			row[3], row[4] = rated(r.Measured.Value, r.Unit), fmt.Sprintf("%.3f", r.Ratio)
			if r.Interval.Valid() {
				row[5] = fmt.Sprintf("%.3f to %.3f", r.Interval.Low, r.Interval.High)
			}
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// ratedReasons are the lines that are not met, each with what may be the reason.
func ratedReasons(x *compare.Experiment) (out []string) {
	for _, r := range x.Rated {
		for _, reason := range r.Reasons {
			out = append(out, r.Workload+": "+reason+".")
		}
	}
	return out
}
