package report

import (
	"cmp"
	"fmt"
	"math"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
)

// markPlots are the drawings of a search: the lines of all its conditions on one axis, and the probes of each.
func markPlots(x *compare.Experiment) (out []Plot) {
	if x.Mark == nil {
		return nil
	}
	if len(x.Lines) == 0 && len(x.Mark.Probes) > 1 {
		return []Plot{markPlot(x.Mark, "Limited value")}
	}
	hull := Plot{Title: "Marks under each condition, with their intervals", YLabel: cmp.Or(x.Mark.Unit, "IOPS")}
	marks := PlotSeries{Name: "mark", Marks: true}
	for i, l := range x.Lines {
		hull.Names = append(hull.Names, l.Condition)
		if l.Verdict == loadmark.Found {
			marks.Points = append(marks.Points, PlotPoint{X: float64(i), Y: *l.Rate, Low: l.Low, High: l.High})
		}
	}
	if hull.Series = []PlotSeries{marks}; len(marks.Points) > 0 {
		out = append(out, hull)
	}
	for _, l := range x.Lines {
		if len(l.Probes) > 1 {
			out = append(out, markPlot(&l.Answer, fmt.Sprintf("%s: limited value", l.Condition)))
		}
	}
	return out
}

// costOf is what a condition takes from the first mark, in a cell of a table.
func costOf(c loadmark.Cost) string {
	share := func(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }
	switch {
	case c.Share != nil:
		return fmt.Sprintf("%s (%s to %s)", share(*c.Share), share(*c.Low), share(*c.High))
	case c.Low != nil:
		return "more than " + share(*c.Low)
	case c.High != nil:
		return "at most " + share(max(*c.High, 0))
	}
	return "not known"
}

// linesOf is the table of a search under conditions, empty for any other.
func linesOf(x *compare.Experiment) grid {
	g := grid{title: "Load lines", head: []string{"condition", "mark", "interval", "limit", "what it costs"}}
	for i, l := range x.Lines {
		row := []string{l.Condition, "none", "", l.Limit, ""}
		switch {
		case l.Verdict == loadmark.Found:
			row[1], row[2] = l.Say(*l.Rate), fmt.Sprintf("%s to %s", l.Say(*l.Low), l.Say(*l.High))
		case l.Rate != nil && l.Verdict == loadmark.AtLeast || l.Verdict == loadmark.Generator:
			row[1] = "at least " + l.Say(*l.Rate)
		case l.Rate != nil && l.Verdict == loadmark.Below:
			row[1] = "below " + l.Say(*l.Rate)
		}
		if i > 0 && i <= len(x.Costs) {
			row[4] = costOf(x.Costs[i-1])
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// mostOfLimit is the highest share of its limit that a plot of a search shows.
const mostOfLimit = 3

// markPlot draws the probes of a search: the limited value over its limit by offered rate, and the mark with its
// interval.
func markPlot(a *loadmark.Answer, title string) Plot {
	held, broke := PlotSeries{Name: "held", Marks: true}, PlotSeries{Name: "broke", Marks: true}
	limit := PlotSeries{Name: "limit", Line: true}
	least, most := math.Inf(1), 0.0
	for _, p := range a.Probes {
		least, most = min(least, p.Offered), max(most, p.Offered)
		at := PlotPoint{X: p.Offered, Y: mostOfLimit}
		if p.Margin > 1./mostOfLimit {
			at.Y = 1 / p.Margin
		}
		if p.Held {
			held.Points = append(held.Points, at)
		} else {
			broke.Points = append(broke.Points, at)
		}
	}
	limit.Points = []PlotPoint{{X: least, Y: 1}, {X: most, Y: 1}}
	out := Plot{Title: fmt.Sprintf("%s by offered rate (at most %d times the limit is drawn)", title, mostOfLimit),
		XLabel: "offered, " + cmp.Or(a.Unit, "IOPS"), YLabel: "times the limit",
		Series: []PlotSeries{held, broke, limit}}
	if a.Verdict == loadmark.Found {
		out.Series = append(out.Series, PlotSeries{Name: "mark", Line: true, Points: []PlotPoint{
			{X: *a.Low, Y: 0}, {X: *a.Low, Y: 1}, {X: *a.High, Y: 1}, {X: *a.High, Y: 0}}})
	}
	return out
}
