package judge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/steady"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/result"
	"plimsoll/unit"
)

func (sd *Sides) SteadyCommand() *cobra.Command {
	var column, rule string
	var require, rounds bool
	var tolerance float64
	c := &cobra.Command{
		Use:   "steady FILE|RUN|-",
		Short: "Say whether a series has settled, from when to when, and what it then does",
		Long: `Steady looks at a series of evenly spaced values, the oldest first: where its warm-up ends, whether it repeats itself (a
checkpoint, a flush), where its level changes, whether it stalls, drifts, swings slowly or spreads;
and gives the mean of all but the warm-up with an interval that allows for the dependence of adjacent
values. A series too short for its noise is "inconclusive", and why.

With --rounds the values are rounds of a test, and the rule of solid-state testing decides: over five rounds
they spread by no more than 20 % of their mean, and their fitted line moves by no more than 10 %.

FILE is CSV, columns separated by blanks, or JSON; "-" is standard input. From a RUN the throughput of every
workload is looked at, over the time by which the report judges it: that in which all its VMs ran. "Not steady" is a
result: the exit code is 0, and 5 only with --require, for "inconclusive" too.`,
		Example: `  plimsoll steady latest
  plimsoll steady iops.csv --column iops --require
  plimsoll steady - --rounds < rounds.txt`,
		Args:              console.Args(1, 1, "file or run"),
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.steady(given[0], column, rule, rounds, require, tolerance)
		},
	}
	sd.readingTables(c)
	c.Flags().StringVar(&column, "column", "", "look at this `column` only: its name, or its number from 1")
	c.Flags().BoolVar(&rounds, "rounds", false, "the values are rounds, not points of one long series")
	c.Flags().StringVar(&rule, "rule", "", "with --rounds, another `rule`: WINDOW,SPREAD,EXCURSION,CEILING, as in "+
		"5,0.20,0.10,25")
	c.Flags().BoolVar(&require, "require", false, "exit with 5 unless every series is steady")
	c.Flags().Float64Var(&tolerance, "tolerance", 0.05, "shifts and drifts smaller than this `share` of the mean do "+
		"not matter")
	return c
}

// settled is the verdict on one series.
type settled struct {
	Name    string            `json:"name"`
	Points  int               `json:"points"`
	Reached bool              `json:"reached"`
	Unclear bool              `json:"cannot_tell,omitempty"` // neither steady nor shown not to be
	Reason  string            `json:"reason,omitempty"`
	First   int               `json:"first"` // of the stretch or the rounds judged, from 0
	Last    int               `json:"last"`
	Mean    *float64          `json:"mean"`
	Ends    resample.Interval `json:"mean_interval"`
	WarmUp  *int              `json:"warm_up_points,omitempty"`
	Period  *float64          `json:"period_points,omitempty"`
	Drift   *float64          `json:"drift_share,omitempty"`
	Within  resample.Interval `json:"drift_interval,omitzero"` // at 90 %
	Spread  *float64          `json:"spread_share,omitempty"`
	Line    *float64          `json:"line_share,omitempty"`
	Changes []shift           `json:"changes,omitempty"`
	Note    []string          `json:"warnings,omitempty"`
	Gaps    []gap             `json:"gaps,omitempty"`
	Of      string            `json:"of,omitempty"` // the part of a workload's time that was looked at, when not all

	step float64 // seconds between points; 0 when not known
	unit string
	at   []int // of each point looked at, its place in the series with its gaps; nil when there are none
}

// gap is a row of missing points; to is where there are values again.
type gap struct {
	First int      `json:"first"` // from 0, in the series with its gaps
	Last  int      `json:"last"`
	From  *float64 `json:"from_seconds,omitempty"`
	To    *float64 `json:"to_seconds,omitempty"`
}

// String is where the gap lies, for a sentence.
func (g gap) String() string {
	if g.From == nil {
		return fmt.Sprintf("rows %d to %d", g.First+1, g.Last+1)
	}
	return fmt.Sprintf("%.6g to %.6g s", *g.From, *g.To)
}

// hollow names the gaps of a series, over which no verdict says that it is steady.
func (v *settled) hollow(s named) {
	v.at = s.at
	if len(s.gaps) == 0 {
		return
	}
	var said []string
	for _, g := range s.gaps {
		h := gap{First: g.First, Last: g.Last}
		if v.step = s.step; s.step > 0 {
			from, to := float64(g.First)*s.step, float64(g.Last+1)*s.step
			h.From, h.To = &from, &to
		}
		v.Gaps = append(v.Gaps, h)
		said = append(said, h.String())
	}
	why := fmt.Sprintf("no values in %s: a stall, or rows that are lost", strings.Join(said, ", "))
	switch {
	case v.Reached:
		v.Reached, v.Unclear, v.Reason = false, true, why
	default:
		v.Reason += "; " + why
	}
}

func (sd *Sides) steady(given, column, rule string, rounds, require bool, tolerance float64) error {
	r, err := parseRule(rule)
	if err != nil {
		return exit.Usagef("as in 5,0.20,0.10,25: window, spread, excursion, ceiling", "steady: --rule: %w", err)
	}
	if !(tolerance > 0 && tolerance < 1) {
		return exit.Usagef("", "steady: --tolerance: %g is not a share above 0 and below 1", tolerance)
	}
	list, source, err := sd.evenSeries("steady", given, column)
	if err != nil {
		return err
	}
	var out []settled
	var errs []error
	for _, s := range list {
		var v settled
		if rounds {
			v, err = judgeRounds(s, r)
		} else {
			v, err = judgeStretch(s, tolerance)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("steady: %s: %s: %w", source, s.name, err))
			continue
		}
		v.hollow(s)
		v.Of = s.of
		out = append(out, v)
	}
	if len(errs) > 0 {
		return exit.Errorf(exit.Failed, "", "%w", errors.Join(errs...))
	}
	if sd.JSON {
		err = sd.PrintJSON(struct {
			Source string    `json:"source"`
			Series []settled `json:"series"`
		}{source, out})
	} else {
		visible.Fprintf(sd.Out, "Steady state, %s\n", source)
		for _, v := range out {
			v.text(sd.Out)
		}
	}
	if err != nil || !require {
		return err
	}
	var not []string
	for _, v := range out {
		if !v.Reached {
			not = append(not, v.Name)
		}
	}
	if len(not) > 0 {
		return exit.Errorf(exit.Threshold, "", "steady: --require: not steady: %s", strings.Join(not, ", "))
	}
	return nil
}

func parseRule(text string) (steady.Rule, error) {
	var r steady.Rule
	if text == "" {
		return r, nil
	}
	n, err := fmt.Sscanf(text, "%d,%g,%g,%d", &r.Window, &r.Spread, &r.Excursion, &r.Ceiling)
	if n != 4 || err != nil {
		return r, fmt.Errorf("%q: want four numbers", text)
	}
	return r, nil
}

func judgeRounds(s named, rule steady.Rule) (settled, error) {
	r, err := steady.Rounds(s.values, rule)
	if err != nil {
		return settled{}, err
	}
	return settled{Name: s.name, Points: len(s.values), Reached: r.Reached, Reason: r.Reason, First: r.First,
		Last: r.Last, Mean: number(r.Mean),
		Ends: r.Interval, Spread: number(r.Spread), Line: number(r.Excursion), Note: r.Warnings, unit: s.unit}, nil
}

func judgeStretch(s named, tolerance float64) (settled, error) {
	r, err := steady.Window(s.values, steady.Options{Tolerance: tolerance})
	if err != nil {
		return settled{}, err
	}
	v := settled{
		Name:    s.name,
		Points:  len(s.values),
		Reached: r.Reached,
		Unclear: r.CannotTell,
		Reason:  r.Reason,
		First:   r.First,
		Last:    r.Last,
		Mean:    number(r.Mean.Value),
		Ends:    r.Mean.Interval,
		WarmUp:  &r.WarmUp,
		Drift:   number(r.DriftShare),
		Within:  r.DriftWithin,
		Note:    r.Warnings,
		step:    s.step,
		unit:    s.unit,
	}
	if r.Period.Found {
		v.Period = number(r.Period.Points)
	}
	for _, p := range r.Changes {
		v.Changes = append(v.Changes, shiftOf(p))
	}
	return v, nil
}

func (v settled) text(out io.Writer) {
	state := "steady"
	if v.Unclear {
		state = "inconclusive: " + v.Reason
	} else if !v.Reached {
		state = "not steady: " + v.Reason
	}
	visible.Fprintf(out, "\n%s: %s\n", v.Name, state)
	if v.Of != "" {
		visible.Fprintf(out, "  looked at %s\n", v.Of)
	}
	if !v.Reached && !v.Ends.Valid() && deref(v.Mean) == 0 {
		return // there is no stretch to speak of
	}
	what := "points"
	if v.WarmUp == nil {
		what = "rounds"
	}
	visible.Fprintf(out, "  %s %d to %d of %d%s, mean %.6g%s", what, v.First+1, v.Last+1, v.Points,
		v.seconds(v.First, v.Last+1), deref(v.Mean), blank(v.unit))
	if v.Ends.Valid() {
		visible.Fprintf(out, ", %s\n", v.Ends)
	} else {
		visible.Fprintf(out, "; %s\n", v.Ends)
	}
	if v.WarmUp != nil {
		visible.Fprintf(out, "  warm-up: %s left out", unit.Plural(*v.WarmUp, "point"))
		if v.Period != nil {
			visible.Fprintf(out, "; repeats every %.4g points%s", *v.Period,
				settled{step: v.step}.seconds(0, int(*v.Period+0.5)))
		}
		if v.Within.Valid() {
			visible.Fprintf(out, "; drift across it %+.1f %% (90 %%: %+.1f to %+.1f)\n", 100*deref(v.Drift),
				100*v.Within.Low, 100*v.Within.High)
		} else {
			visible.Fprintf(out, "; too few periods to judge a drift\n")
		}
	} else {
		visible.Fprintf(out, "  spread %.1f %% of the mean, the fitted line moves by %.1f %%\n",
			100*deref(v.Spread), 100*deref(v.Line))
	}
	for _, c := range v.Changes {
		visible.Fprintf(out, "  change of level at point %d: from %.5g to %.5g\n", c.Index+1, c.Before, c.After)
	}
	for _, w := range v.Note {
		visible.Fprintf(out, "  warning: %s\n", w)
	}
}

// seconds says where a stretch lies in time, when that is known.
func (v settled) seconds(first, end int) string {
	if v.step <= 0 {
		return ""
	}
	if v.at != nil && end > first {
		first, end = v.at[first], v.at[end-1]+1
	}
	return fmt.Sprintf(" (%.6g to %.6g s)", float64(first)*v.step, float64(end)*v.step)
}

func blank(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// named is one series to look at.
type named struct {
	name   string
	values []float64
	labels []string // of each value; nil when there are none
	step   float64  // seconds; 0 when not known
	at     []int    // of each value, its place among those that were to be, where some are missing
	gaps   []steady.Stall
	unit   string
	of     string // the part of a workload's time that they are of, "" for all of it
}

// namedSeries reads the series of a file, or those of a run: the throughput of every workload.
func (sd *Sides) namedSeries(phase, given, column string) ([]named, string, error) {
	if !recognise.IsTable(given) {
		return sd.runSeries(phase, given, column)
	}
	s, err := sd.openTable(phase, given)
	if err != nil {
		return nil, "", err
	}
	list, _, err := sheetSeries(sd.Console, phase, s, column)
	return list, s.Source, err
}

// fewestSorted is of how many values chance puts none out of order.
const fewestSorted = 20

// sheetSeries are the columns of a sheet as series of its rows, with its column of times, which is no series, if there
// is one.
func sheetSeries(con *console.Console, phase string, s *table.Table, column string) ([]named, *table.Times, error) {
	switch err := ofOneTest(con, phase, s); {
	case err != nil && column == "":
		return nil, nil, err
	case err != nil: // who asks for a column means its rows in their order
		visible.Fprintf(con.Err, "warning: %v\n", err)
	}
	t, err := s.Times()
	if err != nil {
		return nil, nil, exit.Errorf(exit.Failed, "", "%s: %s: %w", phase, s.Source, err)
	}
	if note := s.UnreadTimes(); t == nil && note != "" {
		visible.Fprintf(con.Err, "warning: %s: %s: %s\n", phase, s.Source, note)
	}
	var asked []string
	if column != "" {
		asked = []string{column}
	}
	columns, err := picked(con, phase, s, asked)
	if err != nil {
		return nil, nil, err
	}
	if t != nil && column == "" {
		columns = slices.DeleteFunc(columns, func(c int) bool { return c == t.Column })
	}
	if measures := slices.DeleteFunc(slices.Clone(columns), func(c int) bool {
		stem, _ := table.SplitUnit(s.Names[c])
		return slices.Contains(numberNames, stem) && s.CountsRows(c)
	}); column == "" && len(measures) > 0 {
		columns = measures
	}
	var list []named
	labels := labelsOf(s, columns, t)
	for _, c := range columns {
		values, err := columnValues(con, phase, s, c)
		if err != nil {
			return nil, nil, err
		}
		if len(values) >= fewestSorted && values[0] != values[len(values)-1] && (slices.IsSorted(values) ||
			slices.IsSortedFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })) {
			visible.Fprintf(con.Err, "warning: %s: %s: %s: no value of %d goes the other way, as of a counter, or of values "+
				"that were sorted: if so, their order is no course\n", phase, s.Source, s.Names[c], len(values))
		}
		list = append(list, named{name: s.Names[c], values: values, labels: labels})
	}
	if len(list) == 0 {
		return nil, nil, exit.Errorf(exit.Failed, "--column looks at the times themselves",
			"%s: %s: no column of numbers besides the times in %s", phase, s.Source, table.Quote(s.Names[t.Column]))
	}
	return list, t, nil
}

// evenSeries are evenly spaced series of a file or a run without their gaps, which may be a fifth of them.
func (sd *Sides) evenSeries(phase, given, column string) ([]named, string, error) {
	if !recognise.IsTable(given) {
		return sd.runSeries(phase, given, column)
	}
	s, err := sd.openTable(phase, given)
	if err != nil {
		return nil, "", err
	}
	list, _, err := evenly(sd.Console, phase, s, column)
	if err != nil {
		return nil, "", err
	}
	const mostGaps = 0.2
	for i, n := range list {
		have := slices.DeleteFunc(slices.Clone(n.values), math.IsNaN)
		if gaps := len(n.values) - len(have); float64(gaps) > mostGaps*float64(len(n.values)) {
			return nil, "", exit.Errorf(exit.Failed, "", "%s: %s: %s: %d of %d values are missing, at most a "+
				"fifth may be", phase, s.Source, n.name, gaps, len(n.values))
		}
		if len(have) < len(n.values) {
			list[i].gaps = steady.Gaps(n.values)
			for j, x := range n.values {
				if !math.IsNaN(x) {
					list[i].at = append(list[i].at, j)
				}
			}
		}
		list[i].values = have
	}
	return list, s.Source, nil
}

// evenly are the series of a sheet in evenly spaced points, with the column of times if there is one: gaps in the times
// are NaN.
func evenly(con *console.Console, phase string, s *table.Table, column string) ([]named, *table.Times, error) {
	list, t, err := sheetSeries(con, phase, s, column)
	if err != nil || t == nil {
		return list, nil, err
	}
	for _, note := range t.Notes {
		visible.Fprintf(con.Err, "warning: %s: %s: %s\n", phase, s.Source, note)
	}
	for i := range list {
		list[i].values, list[i].step, list[i].labels = t.Grid(list[i].values), t.Step, nil
	}
	return list, t, nil
}

// labelsOf are the cells of the last column that does not hold numbers, such as a commit, or else the times; nil when
// there are neither.
func labelsOf(s *table.Table, numeric []int, t *table.Times) []string {
	cells := func(i int) []string {
		out := make([]string, len(s.Rows))
		for j, row := range s.Rows {
			out[j] = row[i]
		}
		return out
	}
	for i := len(s.Names) - 1; i >= 0; i-- {
		isNumber := false
		for _, n := range numeric {
			isNumber = isNumber || n == i
		}
		if isNumber {
			continue
		}
		if _, err := s.Numbers(i, true); err != nil && (t == nil || i != t.Column) {
			return cells(i)
		}
	}
	if t != nil {
		return cells(t.Column)
	}
	return nil
}

// runSeries are the throughputs of a run's workloads over the time by which they are judged, or the one panel or metric
// named.
func (sd *Sides) runSeries(phase, given, column string) ([]named, string, error) {
	folder, data, err := sd.RunData(phase, given)
	if err != nil {
		return nil, "", err
	}
	_ = runs.Intact(sd.Console, phase, folder, true) // warns
	runs.Mind(sd.Console, phase, folder.Manifest())
	var list []named
	add := func(name, group string, s result.Series) {
		times, of := judgedTimes(s, group, data)
		if v := values(s, times); len(v) > 0 {
			list = append(list, named{name: name, values: v, step: s.Step, unit: s.Unit, of: of})
		}
	}
	for _, p := range data.Panels {
		if column == "" && p.Type != "iops" && p.Type != "bandwidth" || column != "" && column != p.Name &&
			column != p.Title {
			continue
		}
		for _, s := range p.Series {
			title := cmp.Or(p.Title, p.Name)
			if s.Name != title {
				title = strings.TrimSpace(title + " " + s.Name)
			}
			add(title, p.VMGroup, s)
		}
	}
	unasked := column == "" && len(list) == 0 // no result shows a rate: all that was recorded of groups and workloads
	for _, s := range data.Series {
		if column != "" && s.Metric() == column || unasked && s.VM == "" {
			add(strings.TrimSpace(s.Metric()+" "+s.Name), "", s)
		}
	}
	id := folder.Manifest().RunID
	if len(list) == 0 {
		return nil, "", exit.Errorf(exit.Failed, "--column names a result of the scenario, or a metric like "+
			"read_iops or NOPM",
			"%s: run %s: no such series; %s", phase, id, meant(column, seriesNames(data)))
	}
	return list, "run " + id, nil
}

// seriesNames are the results of a run and the metrics of its series.
func seriesNames(data *result.Data) []string {
	var out []string
	for _, p := range data.Panels {
		out = append(out, p.Name)
	}
	for _, s := range data.Series {
		if !slices.Contains(out, s.Metric()) {
			out = append(out, s.Metric())
		}
	}
	return out
}

// judgedTimes are the times over which a series is looked at, and in words what they leave out: those by which the
// workload is judged whose series it is, or else the workloads of its group of VMs; the run phase where there is none.
func judgedTimes(s result.Series, group string, data *result.Data) (times []result.Span, of string) {
	group = cmp.Or(s.Group, group)
	for _, vm := range data.VMs {
		if group == "" && vm.Name == s.VM {
			group = vm.Group
		}
	}
	for _, w := range data.Workloads {
		if w.Prefill || !w.Merged() || s.Workload != "" && w.Name != s.Workload || s.Workload == "" &&
			(group == "" || w.Group != group) {
			continue
		}
		if of = cmp.Or(of, w.Part()); len(w.Spans) > 0 {
			times = append(times, w.Spans...)
			continue
		}
		// Nothing is cut off at its beginning, which need not lie on the grid of the points.
		step := time.Duration(s.Step * float64(time.Second))
		times = append(times, result.Span{Start: w.Start.Add(1 - step), End: w.End})
	}
	if times == nil {
		return []result.Span{{Start: data.Start, End: data.End}}, ""
	}
	return times, of
}

// values are the points of a series whose step, which ends at the point, lies in one of these times; gaps are left out.
func values(s result.Series, times []result.Span) []float64 {
	var out []float64
	step := time.Duration(s.Step * float64(time.Second))
	for i, v := range s.Values {
		at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
		whole := func(t result.Span) bool { return !at.Add(-step).Before(t.Start) && !at.After(t.End) }
		if v != nil && slices.ContainsFunc(times, whole) {
			out = append(out, *v)
		}
	}
	return out
}

// shift is one change point.
type shift struct {
	Index  int               `json:"index"` // first value of the new level, from 0
	Low    int               `json:"low"`   // the change lies between these
	High   int               `json:"high"`
	Label  string            `json:"label,omitempty"` // of the first value of the new level
	Before float64           `json:"before"`
	After  float64           `json:"after"`
	Shift  resample.Interval `json:"shift_interval"`
	P      float64           `json:"p"`
}

func shiftOf(p change.Point) shift {
	return shift{Index: p.Index, Low: p.Low, High: p.High, Before: p.Before, After: p.After, Shift: p.Shift, P: p.P}
}
