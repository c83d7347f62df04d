package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/curve"
	"plimsoll/internal/analysis/scale"
	"plimsoll/internal/analysis/stage"
	"plimsoll/internal/analysis/steady"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Table holds what a file of any tool gives: columns of numbers, row by row.
type Table struct {
	Step    float64 // seconds between rows; 0 when not known
	Columns []Column
	Sweep   *Sweep // when a row is a step of a load rather than a moment
}

// Column is a series. NaN is a gap.
type Column struct {
	Name   string
	Kind   Kind
	Values []float64
}

// Kind tells what the numbers of a column are.
type Kind string

// Kinds of columns. Percentiles are of the operations of each row; they are never averaged.
const (
	Rate       Kind = "rate" // operations per second
	Percentile Kind = "percentile"
	Other      Kind = "other"
)

// Sweep is a load sweep: throughput and, when it was measured, mean response time in seconds at each concurrency.
type Sweep struct {
	Unit                                     string // of the throughput: "ops/s", "transactions/s"; "" unknown
	Concurrency, Throughput, ResponseSeconds []float64
}

// OfTable returns what a table alone supports, the most important first, and in words what could not be looked at. A
// series is judged for steadiness, period, changes of level and, when it is a rate and the times are known, stalls; a
// sweep for how it scales and where its knee is.
func OfTable(t Table) (findings []result.Finding, unseen []string) {
	if t.Sweep != nil {
		findings, unseen = sweepFindings(*t.Sweep)
	} else {
		var still []line
		for _, c := range t.Columns {
			l := t.line(c)
			if l.still() {
				still = append(still, l)
				continue
			}
			found, not := l.judged()
			findings, unseen = append(findings, found...), append(unseen, not...)
		}
		if len(still) > 0 {
			findings = append(findings, constants(still))
		}
	}
	for i := range findings {
		findings[i] = sound(findings[i])
	}
	slices.SortStableFunc(findings,
		func(a, b result.Finding) int { return cmp.Compare(order(a.Severity), order(b.Severity)) })
	unseen = append(unseen,
		"what was offered, what failed, what the blocks held, whether the generator was the limit, and what else ran: a table does not hold it; a run folder does")
	return findings, unseen
}

// line is a column as a series to be judged.
type line struct {
	Column
	step   float64
	values []float64 // without gaps
	index  []int     // of each value in the column
}

// line is a column without its gaps.
func (t Table) line(c Column) line {
	l := line{Column: c, step: t.Step}
	for i, v := range c.Values {
		if view.IsFinite(v) {
			l.values, l.index = append(l.values, v), append(l.index, i)
		}
	}
	return l
}

// still reports whether all values of a column are the same one.
func (l line) still() bool {
	return len(l.values) >= fewestRows && slices.Min(l.values) == slices.Max(l.values)
}

// judged returns what a column supports.
func (l line) judged() (out []result.Finding, unseen []string) {
	n := len(l.Values)
	switch {
	case len(l.values) < fewestRows:
		return nil, []string{
			fmt.Sprintf("%s: it has %s, and %d are needed for any judgement", l.Name,
				view.Plural(len(l.values), "value"), fewestRows),
		}
	case float64(n-len(l.values)) > view.MostGaps*float64(n):
		return nil, []string{
			fmt.Sprintf("%s: %s of its values are missing", l.Name, view.Percent(float64(n-len(l.values))/float64(n))),
		}
	}
	if slices.Min(l.values) < 0 && l.Kind != Other {
		out = append(out, l.negative())
	}
	s, f := l.steady()
	out = append(out, f)
	switch {
	case s.Unusable:
		unseen = append(unseen, fmt.Sprintf("%s: a period and changes of level: %s", l.Name, s.Reason))
	case len(l.values) >= longEnough:
		out = append(out, l.period(s), l.changes(s))
	default:
		unseen = append(unseen, fmt.Sprintf("%s: a period, for which %d values are needed", l.Name, longEnough))
		out = append(out, l.changes(s))
	}
	switch {
	case l.Kind != Rate:
	case l.step == 0:
		unseen = append(unseen, l.Name+": stalls, since no column says how far apart in time its rows are")
	default:
		f, why := l.stalls()
		if why != "" {
			unseen = append(unseen, l.Name+": stalls, since "+why)
		} else {
			out = append(out, f)
		}
	}
	return out, unseen
}

const (
	fewestRows = 10 // for any judgement of a series
	longEnough = 50 // for the rule of long series; fewer are judged as rounds
)

// finding begins one about the line.
func (l line) finding(check, metric, unit string) result.Finding {
	basis := view.Plural(len(l.values), "value") + " of one file"
	if l.step > 0 {
		basis += ", " + view.SayDuration(l.step) + " apart"
	}
	if gaps := len(l.Values) - len(l.values); gaps > 0 {
		basis += fmt.Sprintf("; %d more missing", gaps)
	}
	return result.Finding{Check: check, Subject: l.Name, Metric: metric, Unit: unit, N: len(l.values), Basis: basis}
}

// place says where a value stands: its time when that is known, else its row.
func (l line) place(i int) string { return l.row(l.index[max(0, min(i, len(l.index)-1))]) }

func (l line) row(i int) string {
	if l.step > 0 {
		return view.ClockOf(float64(i) * l.step)
	}
	return fmt.Sprintf("row %d", i+1)
}

// stretch says how long a number of rows is.
func (l line) stretch(rows float64) string {
	if l.step > 0 {
		return view.SayDuration(rows * l.step)
	}
	return fmt.Sprintf("%.4g rows", rows)
}

func (l line) say(v float64) string {
	if math.Abs(v) >= 1000 && math.Abs(v) < 1e15 {
		return view.SayCount(v)
	}
	return fmt.Sprintf("%.4g", v)
}

func (l line) chart() *result.Chart {
	origin := time.Unix(0, 0)
	c := &view.Track{Origin: origin, Start: origin, Step: cmp.Or(l.step, 1)}
	out := &result.Chart{Title: l.Name, XUnit: "s", YUnit: l.Name, Lines: []result.ChartLine{c.Line(l.Name, l.Values)}}
	if l.step == 0 {
		out.XLabel, out.XUnit = "row, from 0", "count"
	}
	return out
}

// constants tells of the columns that never vary, together. A setting, a counter of failures of which there were none,
// a device that idled: nothing that needs anybody's care, and nothing to be judged.
func constants(still []line) result.Finding {
	f := still[0].finding("constant", "columns that never vary", "count")
	f.Severity, f.Value, f.NoInterval = result.Info, view.Ptr(float64(len(still))), "counted"
	var names []string
	for _, l := range still {
		names = append(names, fmt.Sprintf("%s (%s)", l.Name, l.say(l.values[0])))
		f.Evidence = append(f.Evidence, result.Evidence{Name: l.Name, Value: l.values[0], Unit: "as given"})
	}
	if len(still) == 1 {
		l := still[0]
		f.Sentence = fmt.Sprintf("%s is %s in every row, so it is left out.", l.Name, l.say(l.values[0]))
		if l.Kind != Other && l.values[0] != 0 {
			f.Sentence += " What is measured varies: this is a setting, a limit or a copy."
		}
		return f
	}
	f.Subject = fmt.Sprintf("%d columns", len(still))
	f.Sentence = fmt.Sprintf("%d columns never vary and are left out: %s.", len(still), view.Three(names))
	return f
}

func (l line) negative() result.Finding {
	f := l.finding("plausible", "smallest value", "as given")
	at := slices.Index(l.values, slices.Min(l.values))
	f.Severity, f.Value, f.Limit, f.NoInterval = result.Warning, view.Ptr(l.values[at]), view.Ptr(
		0), "a value of the file"
	f.Sentence = fmt.Sprintf("%s is %s at %s: neither a rate nor a time can be below zero.", l.Name,
		l.say(l.values[at]), l.place(at))
	return f
}

// steady judges the line as one long series, or as rounds when it is short.
func (l line) steady() (steady.Stretch, result.Finding) {
	f := l.finding("steady-state", "mean of the steady phase", "as given")
	f.Chart = l.chart()
	s := view.Stretch{Track: &view.Track{Ops: l.values, Step: cmp.Or(l.step, 1)}, Index: l.index}
	if len(l.values) < longEnough {
		s.Rounds(l.values)
	} else {
		var err error
		if s.Stretch, err = steady.Window(l.values, steady.Options{}); err != nil {
			s.Why = err.Error()
		}
		s.Unclear()
	}
	f.Warnings = s.Warnings
	if holes := l.holes(); holes != "" && s.Reached {
		s.Why = holes
	}
	switch {
	case s.Why != "":
		f.Severity, f.NoInterval = result.Info, s.Why
		f.Sentence = fmt.Sprintf("Whether %s was steady is inconclusive: %s.", l.Name, s.Why)
	case !s.Reached:
		f.Severity, f.NoInterval = result.Warning, "no steady state was reached"
		f.Sentence = fmt.Sprintf("%s was not steady: %s. A mean over all rows depends on where they begin and end.",
			l.Name, l.unsteady(s.Stretch))
	default:
		f.Severity = result.Passed
		f.Sentence = l.Name + " was steady"
		if s.WarmUp > 0 {
			f.Sentence += fmt.Sprintf(" from %s on, after a warm-up of %s", l.place(s.WarmUp),
				l.stretch(float64(s.WarmUp)))
		}
		if l.Kind == Percentile {
			f.Metric, f.NoInterval = "largest value of the steady phase",
				"percentiles of single rows are not averaged"
			most := slices.Max(l.values[s.First : s.Last+1])
			f.Value = view.Ptr(most)
			f.Sentence += fmt.Sprintf(
				", at most %s in a row. A percentile of all of it needs the histograms: percentiles cannot be averaged.",
				l.say(most))
			return s.Stretch, f
		}
		f.Value = view.Ptr(s.Mean.Value)
		view.SetInterval(&f, s.Mean.Interval)
		f.Sentence += ", with a mean of " + l.say(s.Mean.Value)
		if f.Low != nil {
			f.Sentence += fmt.Sprintf(" (95 %%: %s to %s)", l.say(*f.Low), l.say(*f.High))
		}
		f.Sentence += "." + l.strays(s.Stretch)
		if len(s.Strays) > 0 {
			f.Severity = result.Info
		}
	}
	return s.Stretch, f
}

// strays names values of a steady line that stand alone far off.
func (l line) strays(s steady.Stretch) string {
	var said []string
	for _, i := range s.Strays {
		said = append(said, l.say(l.values[i])+" at "+l.place(i))
	}
	if said == nil {
		return ""
	}
	return fmt.Sprintf(" Far from all others: %s.", view.Listed(said))
}

// unsteady is the reason in rows rather than in points of a series without gaps.
func (l line) unsteady(s steady.Stretch) string {
	if n := len(s.Changes); n > 0 {
		return fmt.Sprintf("its level changed %s, first at %s", view.Times(n), l.place(s.Changes[0].Index))
	}
	if len(s.Still) > 0 {
		return fmt.Sprintf("it stalled %s, first at %s", view.Times(len(s.Still)), l.place(s.Still[0].First))
	}
	return s.Reason
}

func (l line) period(s steady.Stretch) result.Finding {
	f := l.finding("period", "period", "s")
	f.Severity, f.NoInterval = result.Passed, s.Period.Reason
	if l.step == 0 {
		f.Unit = "rows"
	}
	if !s.Period.Found {
		f.Sentence = fmt.Sprintf("%s has no period: %s.", l.Name, cmp.Or(s.Period.Reason, "no period was found"))
		return f
	}
	step := cmp.Or(l.step, 1)
	f.Severity, f.Value = result.Info, view.Ptr(s.Period.Points*step)
	view.SetInterval(&f, s.Period.Interval.Map(func(x float64) float64 { return x * step }))
	f.Sentence = fmt.Sprintf(
		"%s repeats every %s, as checkpoints and flushes do; an interval shorter than three of them says little.",
		l.Name, l.stretch(s.Period.Points))
	f.Evidence = []result.Evidence{
		{Name: "correlation one period later", Value: view.Round(s.Period.Strength), Unit: "ratio"},
	}
	return f
}

// changes tells where the level moved. A period is taken out by the search for a steady stretch, whose changes these
// are; short series are searched here.
func (l line) changes(s steady.Stretch) result.Finding {
	f := l.finding("changes", "changes of level", "count")
	f.NoInterval = "each place has one of its own"
	points := s.Changes
	if len(l.values) < longEnough {
		r, err := change.Detect(l.values, change.Options{})
		if err != nil {
			f.Severity, f.NoInterval, f.Sentence = result.Info, err.Error(), fmt.Sprintf(
				"Whether %s changed level is inconclusive: %v.", l.Name, err)
			return f
		}
		points = r.Points
		f.Warnings = r.Warnings
	}
	f.Value = view.Ptr(float64(len(points)))
	if len(points) == 0 {
		f.Severity, f.Sentence = result.Passed, l.Name+" has no change of level above 5 % of its mean."
		if len(l.values) >= longEnough && s.Reason != "" && !s.CannotTell {
			f.Severity, f.Sentence = result.Info, l.Name+" has no change of level, but was not steady."
		}
		if len(l.values) < longEnough {
			f.Sentence = l.Name + " has no change of level."
		}
		return f
	}
	f.Severity = result.Info
	const most = 3
	var said []string
	for i, p := range points {
		f.Evidence = append(f.Evidence,
			result.Evidence{Name: "level before " + l.place(p.Index), Value: view.Round(p.Before), Unit: "as given"},
			result.Evidence{Name: "level from " + l.place(p.Index), Value: view.Round(p.After), Unit: "as given"})
		if i < most {
			where := "at " + l.place(p.Index)
			if p.Low != p.High {
				where += fmt.Sprintf(", somewhere from %s to %s", l.place(p.Low), l.place(p.High))
			}
			said = append(said, fmt.Sprintf("from %s to %s %s", l.say(p.Before), l.say(p.After), where))
		}
	}
	if n := len(points) - most; n > 0 {
		said = append(said, view.Plural(n, "more change")+" in the evidence")
	}
	f.Sentence = fmt.Sprintf("%s changed level: %s.", l.Name, strings.Join(said, "; "))
	f.Chart = l.chart()
	for i, p := range points {
		if i < 6 {
			f.Chart.Marks = append(f.Chart.Marks,
				result.ChartPlace{At: view.Round(float64(l.index[p.Index]) * cmp.Or(l.step, 1)), Text: "changes"})
		}
	}
	return f
}

// holes says where rows are missing for so long that it may be a stall; "" where they are not.
func (l line) holes() string {
	gaps := steady.Gaps(l.Values)
	if len(gaps) == 0 {
		return ""
	}
	const most = 3
	var said []string
	for i, g := range gaps {
		if i == most {
			said = append(said, view.Plural(len(gaps)-most, "more gap"))
			break
		}
		said = append(said, fmt.Sprintf("from %s to %s", l.row(g.First), l.row(g.Last+1)))
	}
	return fmt.Sprintf("it has no values %s: a stall, or rows that are lost", view.Listed(said))
}

// stalls looks for stalls; why says what prevents it.
func (l line) stalls() (f result.Finding, why string) {
	c := &view.Track{Ops: l.Values, Step: l.step}
	s := c.Stalls(l.Values)
	some := slices.Sorted(slices.Values(l.values))
	switch median := some[len(some)/2]; {
	case len(some) < 20:
		return f, view.Plural(len(some), "row") + " are too few"
	case !(median*l.step >= view.FewestPerStep):
		return f, fmt.Sprintf("a row stands for %s operations, and below %d a low one may be chance",
			l.say(median*l.step), view.FewestPerStep)
	}
	f = l.finding("stalls", "time stalled", "%")
	f.Value, f.Limit, f.NoInterval = view.Ptr(100*s.Share), view.Ptr(0), "counted over all rows, not estimated"
	switch {
	case s.Share > view.OnAndOff:
		f.Sentence = fmt.Sprintf(
			"Stalls of %s cannot be judged: it comes and goes (%s of the rows are almost nothing).", l.Name,
			view.Percent(s.Share))
		f.Severity = result.Passed
	case len(s.Runs) == 0 && l.holes() != "":
		f.Severity, f.NoInterval, f.Value = result.Warning, "what is missing is not counted", nil
		f.Sentence = fmt.Sprintf("Whether %s stalled is inconclusive: %s.", l.Name, l.holes())
		f.Chart = l.chart()
	case len(s.Runs) == 0:
		f.Severity, f.Sentence = result.Passed, fmt.Sprintf(
			"No stall of %s: never below a quarter of its usual level for %s.", l.Name, view.SayDuration(l.step))
	default:
		f.Severity, f.Chart = result.Warning, l.chart()
		longest := 0.0
		for _, r := range s.Runs {
			longest = max(longest, float64(r.Last-r.First+1)*l.step)
		}
		f.Sentence = fmt.Sprintf("%s %s %s, %s in all, longest %s, first at %s", l.Name, s.Verb(),
			view.Times(len(s.Runs)), view.SayDuration(s.Seconds), view.SayDuration(longest), l.row(s.Runs[0].First))
		if every, regular := s.Every(l.step); regular {
			f.Sentence += ", about every " + view.SayDuration(every)
		}
		if holes := l.holes(); holes != "" {
			f.Sentence += "; besides, " + holes
		}
		f.Sentence += "."
	}
	return f, ""
}

// sweepFindings reads a load sweep of a table.
func sweepFindings(s Sweep) ([]result.Finding, []string) {
	out, unseen := s.findings("row", "of one file ", view.Quantity{
		Name:   "rate",
		Unit:   cmp.Or(s.Unit, "as given"),
		Per:    s.Unit,
		Kind:   result.Count,
		Better: result.Higher,
	})
	if s.ResponseSeconds == nil {
		unseen = append(unseen,
			"Little's law: no column of mean response times with its unit, such as latency_ms; concurrency ÷ throughput stands in for them")
	}
	return out, append([]string{
		"steadiness, period, changes and stalls: each row is a step of the load, and says nothing of its own time",
	}, unseen...)
}

// findings are the law and the knee of a load sweep. Points of one concurrency are repeats; their means are its point.
func (s Sweep) findings(point, where string, q view.Quantity) (out []result.Finding, unseen []string) {
	var steps []view.Step
	var points []usl.Point
	var load []curve.Point
	at := map[float64][]int{}
	for i, n := range s.Concurrency {
		at[n] = append(at[n], i)
		points = append(points, usl.Point{Concurrency: n, Throughput: s.Throughput[i]})
	}
	var levels []float64
	for n := range at {
		levels = append(levels, n)
	}
	slices.Sort(levels)
	for _, n := range levels {
		var x, r []float64
		for _, i := range at[n] {
			x = append(x, s.Throughput[i])
			if s.ResponseSeconds != nil {
				r = append(r, s.Throughput[i]*s.ResponseSeconds[i])
			}
		}
		p := curve.Point{Concurrency: n, Throughput: view.Total(x) / float64(len(x))}
		if r != nil {
			p.ResponseSeconds = view.Total(r) / view.Total(x) // a mean over operations, not over rows
		}
		load = append(load, p)
		one := view.Step{Stage: stage.Stage{Concurrency: n}, Response: p.ResponseSeconds}
		one.Throughput.Value = p.Throughput
		steps = append(steps, one)
	}
	basis := fmt.Sprintf("%s %sat %s", view.Plural(len(points), point), where,
		view.Plural(len(levels), "concurrency value"))
	m, err := usl.Fit(points, usl.Options{})
	if err != nil {
		unseen = append(unseen, "the Universal Scalability Law: "+err.Error())
	} else {
		out = append(out, scale.Fitted(steps, points, m, q, basis, false))
	}
	found, err := scale.LoadCurve(load, q, basis)
	if err != nil {
		unseen = append(unseen, "the knee: "+err.Error())
	}
	if s.ResponseSeconds == nil {
		for i := range found {
			found[i].Warnings = append(found[i].Warnings, "no times were measured: they are concurrency ÷ throughput")
		}
	}
	out = append(out, found...)
	for i := range out {
		out[i].Rank = scale.Scalability.Rank
	}
	return out, unseen
}
