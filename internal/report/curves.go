package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/unit"
)

// curvesOf are the points of every curve as tables: what was done at each, how long it took, whether throughput and
// times agree, and whether it was steady. Intervals of times stand with the combinations.
func curvesOf(x *compare.Experiment) (out []grid) {
	for _, s := range x.Sweeps {
		g := grid{title: capital(rateOf(s.Workload, s.Name)) + " over " + unit.Words(s.Factor)}
		if s.Within != "" {
			g.title += " with " + s.Within
		}
		g.head = []string{unit.Words(s.Factor), s.Name, "interval", "mean", "p50", "p99", "in flight", "steady", ""}
		for i, step := range s.Steps {
			cell := cellOf(x, s, step)
			g.rows = append(g.rows, []string{step.Level, quantity(step.Rate.Value, step.Rate.Unit),
				cellInterval(
					step.Rate,
				), timeOf(step.Time), timeOf(percentileOf(cell, s, "p50")), timeOf(percentileOf(cell, s, "p99")),
				inFlight(cell, s.Workload), steadyAt(cell, s.Workload), markOf(s, i)})
		}
		out = append(out, g)
	}
	return out
}

// cellOf is the combination of a step.
func cellOf(x *compare.Experiment, s compare.Sweep, step compare.Step) *compare.CellResult {
	f := slices.IndexFunc(x.Factors, func(f compare.Factor) bool { return f.Name == s.Factor })
	for i, c := range x.Cells {
		var rest []string
		for j, level := range c.Levels {
			if j != f {
				rest = append(rest, unit.Setting(x.Factors[j].Name, level))
			}
		}
		if c.Levels[f] == step.Level && strings.Join(rest, ", ") == s.Within {
			return &x.Cells[i]
		}
	}
	return &compare.CellResult{}
}

// percentileOf is a percentile beside the mean time of a step.
func percentileOf(c *compare.CellResult, s compare.Sweep, q string) compare.CellValue {
	operation := strings.TrimSuffix(strings.TrimSuffix(s.Name, " IOPS"), " bandwidth")
	for _, v := range c.Values {
		if v.Workload == s.Workload && v.Name == operation+" "+q+" "+s.Times {
			return v
		}
	}
	return compare.CellValue{}
}

func timeOf(v compare.CellValue) string {
	if v.Name == "" {
		return none
	}
	return quantity(v.Value, v.Unit)
}

func loadAt(c *compare.CellResult, workload string) compare.CellLoad {
	i := slices.IndexFunc(c.Loads, func(l compare.CellLoad) bool { return l.Workload == workload })
	if i < 0 {
		return compare.CellLoad{}
	}
	return c.Loads[i]
}

func inFlight(c *compare.CellResult, workload string) string {
	l := loadAt(c, workload)
	if !(l.InFlight > 0) {
		return none
	}
	if l.Asked == 0 {
		return plain(l.InFlight)
	}
	return fmt.Sprintf("%s of %d", plain(l.InFlight), l.Asked)
}

func steadyAt(c *compare.CellResult, workload string) string {
	s := loadAt(c, workload).Steady
	switch n := s.Yes + s.No + s.Unknown; {
	case n == 0 || s.Unknown == n:
		return "not judged"
	case s.Yes == n:
		return "yes"
	case s.No == n:
		return "no"
	default:
		return fmt.Sprintf("%d of %d runs", s.Yes, n)
	}
}

// markOf returns what a point is on its curve.
func markOf(s compare.Sweep, i int) string {
	var marks []string
	if s.Of != compare.WorkingSet && i == s.Most {
		marks = append(marks, "most")
	}
	if i == s.Knee {
		marks = append(marks, "knee")
	}
	if i == s.FlatFrom {
		marks = append(marks, "flat from here")
	}
	return strings.Join(marks, ", ")
}

// cacheSentence tells what a working-set curve says of caches.
func cacheSentence(s compare.Sweep) string {
	first, last := s.Steps[0], s.Steps[len(s.Steps)-1]
	text := fmt.Sprintf("Working set %s to %s on %s", first.Level, last.Level, s.Workload)
	if s.Within != "" {
		text += " (" + s.Within + ")"
	}
	if first.Time.Name != "" && last.Time.Name != "" {
		text += fmt.Sprintf(": mean %s %s to %s", s.Times, quantity(first.Time.Value, "s"),
			quantity(last.Time.Value, "s"))
	}
	if s.Caches == nil {
		return text + fmt.Sprintf("; caches are not read off it: %s.", s.NoCaches)
	}
	if len(s.Caches.Caches) == 0 {
		return text + ", without a step: no cache of a size in between shows."
	}
	var found []string
	for _, c := range s.Caches.Caches {
		size := func(v float64) string { return unit.Bytes(v).String() }
		one := fmt.Sprintf("a cache of %s (%.0f %% interval %s to %s), %s within and ", size(c.Bytes.Value),
			c.Bytes.Interval.Confidence*100, size(c.Bytes.Interval.Low), size(c.Bytes.Interval.High),
			quantity(c.Within.Value, "s"))
		if c.Beyond {
			one += fmt.Sprintf(
				"at least %s behind; larger working sets would tell how much",
				quantity(last.Time.Value, "s"),
			)
		} else {
			ratio := unit.Apart(c.Ratio.Value, c.Ratio.Interval.Low, c.Ratio.Interval.High)
			one += fmt.Sprintf("%s behind (×%s, ×%s to ×%s)", quantity(c.Behind.Value, "s"), ratio[0],
				ratio[1], ratio[2])
		}
		found = append(found, one)
	}
	text += "; it shows " + strings.Join(found, ", and ") + "."
	if m := s.Caches.Misfit; m > 0.1 && m > 2*s.Caches.Scatter {
		text += fmt.Sprintf(
			" The curve is not quite that of such caches (off by %s on average): take the sizes as rough.",
			wholePercent(m),
		)
	}
	return text
}

// pointSentences tell whether the points of curves can be believed: throughput and times by Little's law, and whether
// they were steady.
func pointSentences(x *compare.Experiment) (out []string) {
	if len(x.Sweeps) == 0 {
		return nil
	}
	var off, unsteady, unjudged []string
	known, steady, all := 0, 0, 0
	single, why := "", ""
	for _, c := range x.Cells {
		for _, l := range c.Loads {
			name := c.Cell
			if len(c.Loads) > 1 {
				name += " on " + l.Workload
			}
			if agrees, ok := l.Little(); ok {
				known++
				if !agrees {
					off = append(off, fmt.Sprintf("%s (%s of %d)", name, plain(l.InFlight), l.Asked))
				}
				if l.Asked == 1 && single == "" {
					single = littleSingle(c, l)
				}
			}
			all++
			switch s := l.Steady; {
			case s.No > 0:
				unsteady = append(unsteady, name)
			case s.Yes == 0:
				unjudged = append(unjudged, name)
				why = s.Why
			default:
				steady++
			}
		}
	}
	switch {
	case known > 0 && len(off) == 0:
		out = append(
			out,
			fmt.Sprintf("Throughput × mean latency is what was asked to be in flight at all %d points, within 10 %% "+
				"(Little's law).%s", known, single),
		)
	case len(off) > 0:
		out = append(
			out,
			fmt.Sprintf("By Little's law other than what was asked was in flight at %s: there the generator did not "+
				"keep up (its own time between operations counts), or a figure is wrong.%s", few(off), single),
		)
	}
	switch {
	case len(unsteady) > 0:
		out = append(out, fmt.Sprintf("Not steady in every run: %s; averages there depend on when they begin and end.",
			few(unsteady)))
	case steady == all:
		out = append(out, fmt.Sprintf("Throughput was steady at all %d points.", all))
	case len(unjudged) == all:
		out = append(out, fmt.Sprintf("Whether points were steady is not judged: %s.", why))
	default:
		out = append(out, fmt.Sprintf("Throughput was steady at %d of %d points; not judged: %s (%s).", steady, all,
			few(unjudged), why))
	}
	return out
}

// littleSingle says of a point with one operation outstanding that its rate is one over its time.
func littleSingle(c compare.CellResult, l compare.CellLoad) string {
	for i, v := range c.Values {
		if v.Workload != l.Workload || v.Unit != "ops/s" {
			continue
		}
		for _, t := range c.Values[i:] {
			// where repeats are far apart, means of rates and of times have other products than each repeat
			alike := math.Abs(v.Value*t.Value-1) <= 0.1
			if t.Workload == l.Workload && strings.Contains(t.Name, " mean ") && alike {
				return fmt.Sprintf(
					" With one outstanding throughput is 1 / latency: 1 / %[2]s = %[3]s at %[1]s, measured %[4]s.",
					c.Cell,
					quantity(t.Value, "s"),
					quantity(1/t.Value, v.Unit),
					quantity(v.Value, v.Unit),
				)
			}
		}
	}
	return ""
}

// markPlots are the drawings of a search: the lines of all its conditions on one axis, and the probes of each.
func markPlots(x *compare.Experiment) (out []Plot) {
	if x.Mark == nil {
		return nil
	}
	if len(x.Lines) == 0 && len(x.Mark.Probes) > 1 {
		return []Plot{markPlot(x.Mark, "Every probe")}
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
			out = append(out, markPlot(&l.Answer, l.Condition+": every probe"))
		}
	}
	return out
}

// comparedMarks are the drawings of searches that are compared: their marks with intervals under each condition, and
// under each of them all their probes.
func comparedMarks(searches []compare.Search) (out []Plot) {
	if len(searches) == 0 {
		return nil
	}
	hull := Plot{Title: "Marks with their intervals"}
	probes := map[string]*Plot{}
	for n, s := range searches {
		side := PlotSeries{Name: s.Name, Marks: true}
		for _, l := range s.Lines {
			of := probes[l.Condition]
			if of == nil {
				title := "Limited value by offered rate"
				if l.Condition != "" {
					title = l.Condition + ": limited value by offered rate"
				}
				of = &Plot{Title: title, YLabel: "times the limit", XLabel: "offered, " + cmp.Or(l.Unit, "IOPS")}
				probes[l.Condition], hull.Names = of, append(hull.Names, l.Condition)
			}
			one := PlotSeries{Name: s.Name, Marks: true}
			for _, p := range l.Probes {
				one.Points = append(one.Points, PlotPoint{X: p.Offered, Y: timesLimit(p)})
			}
			of.Series = append(of.Series, one)
			if l.Verdict == loadmark.Found {
				at := float64(slices.Index(hull.Names, l.Condition)) + besideOther(n, len(searches))
				side.Points = append(side.Points, PlotPoint{X: at, Y: *l.Rate, Low: l.Low, High: l.High})
			}
			hull.YLabel = cmp.Or(l.Unit, "IOPS")
		}
		hull.Series = append(hull.Series, side)
	}
	for _, condition := range hull.Names {
		p := probes[condition]
		_, most, _, _ := p.bounds()
		p.Series = append(p.Series, PlotSeries{Name: "limit", Line: true, Points: []PlotPoint{{Y: 1}, {X: most, Y: 1}}})
		out = append(out, *p)
	}
	return append([]Plot{hull}, out...)
}

// besideOther is how far line i of n stands beside its place, so that intervals can be told apart.
func besideOther(i, n int) float64 { return 0.05 * (float64(i) - float64(n-1)/2) }

// costOf returns what a condition takes from the first mark, in a cell of a table.
func costOf(c loadmark.Cost) string {
	share := func(v float64) string { return strings.TrimLeft(unit.Change(v), "+±") }
	switch {
	case c.Share != nil && *c.Low <= 0 && *c.High >= 0:
		return "not told from nothing (" + unit.Changes(*c.Low, *c.High) + ")"
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
	g := grid{title: "Load lines", head: []string{"Condition", "Mark", "Interval", "What it costs", "Limit"}}
	for i, l := range x.Lines {
		row := []string{l.Condition, "none", "", "", l.Limit}
		switch between, high, ok := l.Between(); {
		case ok:
			row[1] = "between " + l.Say(between) + " and " + l.Say(high)
		case l.Verdict == loadmark.Found:
			low, _, _ := strings.Cut(l.Say(*l.Low), " ")
			row[1], row[2] = l.Say(*l.Rate), low+" to "+l.Say(*l.High)
		case l.Rate != nil && l.Verdict == loadmark.AtLeast || l.Verdict == loadmark.Generator:
			row[1] = "at least " + l.Say(*l.Rate)
		case l.Rate != nil && l.Verdict == loadmark.Below:
			row[1] = "below " + l.Say(*l.Rate)
		}
		if i > 0 && i <= len(x.Costs) {
			row[3] = costOf(x.Costs[i-1])
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// probesOf are the tables of what a search offered and how each probe came out; with conditions one for each, under
// what was found there.
func probesOf(x *compare.Experiment) (out []grid) {
	if x.Mark == nil {
		return nil
	}
	lines := x.Lines
	if len(lines) == 0 {
		lines = []loadmark.Line{{Answer: *x.Mark}}
	}
	for _, l := range lines {
		g := grid{title: "Probes", head: []string{"Offered", "Achieved", "Outcome"}}
		if l.Condition != "" {
			g.title, g.said = fmt.Sprintf("Probes under %q", l.Condition), l.Sentence
		}
		for _, p := range l.Probes {
			g.rows = append(g.rows, []string{loadmark.InUnit(p.Offered, l.Unit), loadmark.InUnit(p.Achieved, l.Unit),
				p.Outcome(l.Unit)})
		}
		out = append(out, g)
		if u := usedOf(l); len(u.rows) > 0 {
			out = append(out, u)
		}
	}
	return out
}

// usedOf is the table of how much was used, and had to wait, below the load at each rate.
func usedOf(l loadmark.Line) grid {
	g := grid{title: "What was used and waited", head: []string{"%"},
		said: "At the rates that were offered, in " + cmp.Or(l.Unit, "IOPS") + ", the lowest first."}
	if l.Condition != "" {
		g.title += fmt.Sprintf(" under %q", l.Condition)
	}
	probes := slices.SortedStableFunc(slices.Values(l.Probes), func(p, q loadmark.Probe) int {
		return cmp.Compare(p.Offered, q.Offered)
	})
	row := map[string]int{}
	for i, p := range probes {
		rate, _, _ := strings.Cut(l.Say(p.Offered), " ")
		g.head = append(g.head, rate)
		for _, u := range p.Used {
			at, ok := row[u.What()]
			if !ok {
				at = len(g.rows)
				row[u.What()] = at
				g.rows = append(g.rows, append([]string{u.What()}, slices.Repeat([]string{"–"}, len(probes))...))
			}
			g.rows[at][1+i] = fmt.Sprintf("%.0f", u.Percent)
		}
	}
	return g
}

// mostOfLimit is the highest share of its limit that a plot of a search shows.
const mostOfLimit = 3

// timesLimit is the limited value of a probe over its limit, as far as it is drawn.
func timesLimit(p loadmark.Probe) float64 {
	if p.Margin > 1./mostOfLimit {
		return 1 / p.Margin
	}
	return mostOfLimit
}

// markPlot draws the probes of a search: the limited value over its limit by offered rate, and the mark with its
// interval.
func markPlot(a *loadmark.Answer, title string) Plot {
	held, broke := PlotSeries{Name: "held", Marks: true}, PlotSeries{Name: "broke", Marks: true}
	limit, generator := PlotSeries{Name: "limit", Line: true}, PlotSeries{Name: "generator gave way", Marks: true}
	least, most := math.Inf(1), 0.0
	for _, p := range a.Probes {
		least, most = min(least, p.Offered), max(most, p.Offered)
		at := PlotPoint{X: p.Offered, Y: timesLimit(p)}
		switch {
		case p.Held:
			held.Points = append(held.Points, at)
		case p.Generator != "":
			generator.Points = append(generator.Points, at)
		default:
			broke.Points = append(broke.Points, at)
		}
	}
	limit.Points = []PlotPoint{{X: least, Y: 1}, {X: most, Y: 1}}
	out := Plot{Title: title,
		XLabel: "offered, " + cmp.Or(a.Unit, "IOPS"), YLabel: "times the limit",
		Series: []PlotSeries{held, broke, limit}}
	if len(generator.Points) > 0 {
		out.Series = append(out.Series, generator)
	}
	if a.Verdict == loadmark.Found {
		out.Series = append(out.Series, PlotSeries{Name: "mark", Line: true, Points: []PlotPoint{
			{X: *a.Low, Y: 0}, {X: *a.Low, Y: 1}, {X: *a.High, Y: 1}, {X: *a.High, Y: 0}}})
	}
	return out
}
