package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/result"
	"plimsoll/unit"
)

// ExperimentDocument is the result of an experiment with the sentences that its page begins with.
type ExperimentDocument struct {
	InShort []string `json:"in_short"`
	*compare.Experiment
}

// ExperimentJSON writes the result of an experiment as JSON.
func ExperimentJSON(w io.Writer, x *compare.Experiment) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(ExperimentDocument{append(ExperimentShort(x), x.Sentence), x})
}

// ExperimentText writes the result of an experiment for a terminal.
func ExperimentText(w io.Writer, x *compare.Experiment) error { return experimentLines(w, x, false) }

// ExperimentMarkdown writes the result of an experiment for a ticket.
func ExperimentMarkdown(w io.Writer, x *compare.Experiment) error { return experimentLines(w, x, true) }

func experimentLines(w io.Writer, x *compare.Experiment, markdown bool) error {
	x = withoutZeros(shown(x))
	var b strings.Builder
	sprintf, bold := formats(markdown)
	for _, first := range x.Mind {
		b.WriteString(sprintf(bold, first))
	}
	if markdown {
		b.WriteString("# ")
	}
	b.WriteString(sprintf("%s\n\n", x.Title))
	for _, sentence := range ExperimentShort(x) {
		b.WriteString(sprintf("%s\n\n", sentence))
	}
	b.WriteString(sprintf("%s\n", x.Sentence))
	for _, sentence := range besides(x) {
		b.WriteString(sprintf("\n%s\n", sentence))
	}
	lines := linesOf(x)
	lines.write(&b, markdown)
	for _, g := range probesOf(x) {
		g.write(&b, markdown)
	}
	for i, line := range saidLines(x) {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(sprintf("- %s\n", line))
	}
	if len(x.Rated) > 0 {
		rated := ratedGrid(x)
		rated.write(&b, markdown)
		for i, reason := range ratedReasons(x) {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString(sprintf("- %s\n", reason))
		}
	}
	for _, g := range curvesOf(x) {
		g.write(&b, markdown)
	}
	effects := grid{title: "Effects", head: []string{"factor", "measure", "change", "interval", "verdict"}}
	for _, e := range x.Effects {
		effects.rows = append(effects.rows, []string{
			fmt.Sprintf("%s, not %s", unit.Setting(e.Factor, e.Level), e.Against),
			measureName("", e.Workload, e.Name), percent(e.Change), effects.interval(e.Measure), string(e.Verdict)})
	}
	effects.write(&b, markdown)
	cells := grid{title: "Combinations", head: []string{"combination", "repeats", "measure", "mean", "interval"}}
	for _, c := range x.Cells {
		for i, v := range c.Values {
			name, n := "", ""
			if i == 0 || markdown {
				name, n = c.Cell, fmt.Sprint(len(c.Runs))
			}
			cells.rows = append(cells.rows, []string{name, n, measureName("", v.Workload, v.Name),
				quantity(v.Value, v.Unit), cellInterval(v)})
		}
	}
	cells.write(&b, markdown)
	if len(x.Notes)+len(x.Failed) > 0 {
		b.WriteString("\n")
	}
	for _, n := range x.Notes {
		b.WriteString(sprintf("- %s\n", n))
	}
	for _, f := range x.Failed {
		b.WriteString(sprintf("- failed: %s\n", f))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// besides are sentences that stand below the answer of a search.
func besides(x *compare.Experiment) []string {
	if len(x.Limits) == 0 {
		return x.Recorded
	}
	return append([]string{SayLimits(x.Limits, x.Mark, x.Lines)}, x.Recorded...)
}

// SayLimits tells what had to hold at every rate of a search, and how long probes lasted, which a credit may outlast.
func SayLimits(limits []string, found *loadmark.Answer, lines []loadmark.Line) string {
	text := "Limits: " + strings.Join(limits, "; ") + "."
	if len(lines) == 0 && found != nil {
		lines = []loadmark.Line{{Answer: *found}}
	}
	least, most := math.Inf(1), 0.0
	for _, l := range lines {
		for _, p := range l.Probes {
			least, most = min(least, p.Seconds), max(most, p.Seconds)
		}
	}
	span := func(seconds float64) string {
		return unit.Duration(time.Duration(math.Round(seconds)) * time.Second).String()
	}
	lasted := fmt.Sprintf(" Probes lasted %s to %s", span(least), span(most))
	switch {
	case most < 1:
		return text
	case span(least) == span(most):
		lasted = " Each probe lasted " + span(most)
	}
	return text + lasted + ": a burst credit or cache that lasts longer is not seen."
}

// mostSaid is how many warnings of runs an experiment's page says; each run's own page has them all.
const mostSaid = 6

// InvalidLines say by what runs' figures are none of what was to be measured.
func InvalidLines(x *compare.Experiment) []string {
	of := *shown(x)
	of.Said = slices.DeleteFunc(slices.Clone(of.Said), func(s compare.Said) bool {
		return s.Severity != result.Invalid
	})
	return saidLines(&of)
}

// saidLines say what runs were warned of.
func saidLines(x *compare.Experiment) (lines []string) {
	for _, s := range x.Said {
		if len(lines) == mostSaid {
			return append(lines, fmt.Sprintf("and %d more, which the runs' own reports have", len(x.Said)-mostSaid))
		}
		var cells []string
		runs, whole := 0, len(s.Cells) == len(x.Cells)
		for _, c := range s.Cells {
			runs, whole = runs+c.Runs, whole && c.Runs == c.Of
			runsOf := "its run"
			if c.Of > 1 {
				runsOf = fmt.Sprintf("%d of %d runs", c.Runs, c.Of)
			}
			cells = append(cells, c.Cell+" ("+runsOf+")")
		}
		switch {
		case whole && runs > 1:
			cells = []string{fmt.Sprintf("all %d runs", runs)}
		case len(x.Factors) == 0:
			cells = []string{fmt.Sprintf("%d of %d runs", s.Cells[0].Runs, s.Cells[0].Of)}
		}
		word, of := string(s.Severity), ": "
		if s.Mixed {
			word = "invalid or warning"
		}
		if s.Differs && runs > 1 { // figures are those of one run
			of = ", in one of them: "
		}
		lines = append(lines, capital(word)+" in "+unit.List(cells, 6)+of+s.Sentence)
	}
	return lines
}

// withoutZeros is an experiment whose measures that were 0 in every run share a note, when there are several of a
// workload.
func withoutZeros(x *compare.Experiment) *compare.Experiment {
	type measure struct{ workload, name string }
	counted := map[measure]bool{} // whether it was anything but 0
	var order []measure
	for _, c := range x.Cells {
		for _, v := range c.Values {
			m := measure{v.Workload, v.Name}
			if _, met := counted[m]; !met {
				order = append(order, m)
			}
			zeros := v.Value == 0 && v.Interval.Low == 0 && v.Interval.High == 0
			counted[m] = counted[m] || !zeros
		}
	}
	var workloads []string
	zeros := map[string][]string{}
	for _, m := range order {
		if !counted[m] {
			if zeros[m.workload] == nil {
				workloads = append(workloads, m.workload)
			}
			zeros[m.workload] = append(zeros[m.workload], m.name)
		}
	}
	out := *x
	out.Cells = slices.Clone(x.Cells)
	for i := range out.Cells {
		out.Cells[i].Values = slices.DeleteFunc(slices.Clone(out.Cells[i].Values), func(v compare.CellValue) bool {
			return len(zeros[v.Workload]) >= severalZeros && slices.Contains(zeros[v.Workload], v.Name)
		})
	}
	var notes []string
	for _, w := range workloads {
		if len(zeros[w]) >= severalZeros {
			notes = append(notes, fmt.Sprintf("0 of %s in every run: %s.", w, strings.Join(zeros[w], ", ")))
		}
	}
	out.Notes = append(slices.Clip(x.Notes), notes...)
	if len(notes) > 0 {
		flat := func(l compare.ChartLine) bool {
			return !slices.ContainsFunc(l.Points, func(p compare.ChartPoint) bool { return p.Y != 0 })
		}
		out.Charts = slices.DeleteFunc(slices.Clone(x.Charts), func(c compare.Chart) bool {
			return !slices.ContainsFunc(c.Lines, func(l compare.ChartLine) bool { return !flat(l) })
		})
		out.Against = slices.DeleteFunc(slices.Clone(x.Against), func(m compare.Measure) bool {
			return len(zeros[m.Workload]) >= severalZeros && slices.Contains(zeros[m.Workload], m.Name)
		})
	}
	return &out
}

func cellInterval(v compare.CellValue) string {
	switch {
	case v.Interval.Reason == compare.TooFew:
		return tooFew
	case !v.Interval.Valid():
		return none
	}
	return quantity(v.Interval.Low, v.Unit) + " to " + quantity(v.Interval.High, v.Unit)
}

// experimentView is the result of an experiment arranged for the page.
type experimentView struct {
	*compare.Experiment
	Policy   string
	Style    template.CSS
	Short    []string
	Warned   []string // what runs were warned of
	Besides  []string
	Charts   []*overlayView
	Curves   []curveTable
	Lines    []curveTable // of a search under conditions
	Probes   []curveTable // of a search
	Sheet    []curveTable // at most one
	Reasons  []string
	Overlays []*overlayView
	Groups   []experimentGroup // effects by factor
	Against  []compareGroup
}

// curveTable are the points of a curve.
type curveTable struct {
	Title string
	Said  string
	Head  []string
	Rows  [][]string
}

func tableOf(g grid) curveTable { return curveTable{g.title, g.said, g.head, g.rows} }

type experimentGroup struct {
	Factor string
	Rows   []compareRow
}

// ExperimentHTML writes the result of an experiment as one self-contained page without a script.
func ExperimentHTML(w io.Writer, x *compare.Experiment) error {
	x = withoutZeros(shown(x))
	v := experimentView{Experiment: x, Policy: Policy, Short: ExperimentShort(x), Warned: saidLines(x),
		Besides: besides(x)}
	for _, name := range []string{"report.css", "compare.css"} {
		b, err := fs.ReadFile(embedded, "assets/"+name)
		if err != nil {
			return fmt.Errorf("report: experiment: asset %q: %w", name, err)
		}
		v.Style += template.CSS(b)
	}
	for _, p := range markPlots(x) {
		v.Charts = append(v.Charts, plotView(p))
	}
	if g := linesOf(x); len(g.rows) > 0 {
		v.Lines = []curveTable{tableOf(g)}
	}
	for _, g := range probesOf(x) {
		v.Probes = append(v.Probes, tableOf(g))
	}
	for _, c := range x.Charts {
		for _, one := range byQuantile(c) {
			v.Charts = append(v.Charts, plotView(chartPlot(one)))
		}
	}
	if len(x.Rated) > 0 {
		g := ratedGrid(x)
		v.Sheet, v.Reasons = []curveTable{tableOf(g)}, ratedReasons(x)
	}
	for _, g := range curvesOf(x) {
		v.Curves = append(v.Curves, tableOf(g))
	}
	v.Overlays = newOverlays(x.Overlays)
	var all []compare.Measure
	for _, e := range x.Effects {
		all = append(all, e.Measure)
	}
	widest := widestChange(all, x.Threshold)
	for _, e := range x.Effects {
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Factor != unit.Words(e.Factor) {
			v.Groups = append(v.Groups, experimentGroup{Factor: unit.Words(e.Factor)})
		}
		g := &v.Groups[len(v.Groups)-1]
		g.Rows = append(g.Rows, newCompareRow(e.Measure, fmt.Sprintf("%s, not %s: %s", e.Level, e.Against,
			measureName("", e.Workload, e.Name)), widest, x.Threshold))
	}
	widest = widestChange(x.Against, x.Threshold)
	for _, m := range x.Against {
		if n := len(v.Against); n == 0 || v.Against[n-1].Title != m.Side {
			v.Against = append(v.Against, compareGroup{Title: m.Side})
		}
		g := &v.Against[len(v.Against)-1]
		g.Rows = append(g.Rows, newCompareRow(m, measureName("", m.Workload, m.Name), widest, x.Threshold))
	}
	return comparePage(w, "experiment.html.tmpl", v)
}

// isRun is the form of a run's identity. Only what has it becomes part of a link.
var isRun = regexp.MustCompile(`^\d{8}-\d{6}-[A-Za-z0-9-]+$`)

// comparePage executes a template that shares the table of compared measures.
func comparePage(w io.Writer, name string, v any) error {
	page := template.New(name).Funcs(functions).Funcs(template.FuncMap{
		"percent": percent, "weight": factWeight, "told": compare.Told,
		"sideSize": sideSize, "cellInterval": cellInterval,
		"measureName": measureName, "swatch": func(i int) int { return i % paletteSize },
		"isRun": isRun.MatchString,
		"files": func() [][2]string { return [][2]string{{"html", "page"}, {"md", "Markdown"}, {"json", "JSON"}} },
		"file": func(as [2]string, asked, more string) string {
			return "/compare/files/comparison." + as[0] + "?" + asked + more
		},
	})
	for _, file := range []string{"measures.html.tmpl", name} {
		text, err := fs.ReadFile(embedded, "assets/"+file)
		if err == nil {
			page, err = page.Parse(string(text))
		}
		if err != nil {
			return fmt.Errorf("report: %s: %w", name, err)
		}
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("report: %s: %w", name, err)
	}
	return nil
}

// byQuantile is a chart, or where it has more lines than there are colours and each is of one of two percentiles, a
// chart of each of these.
func byQuantile(c compare.Chart) []compare.Chart {
	if len(c.Lines) <= paletteSize {
		return []compare.Chart{c}
	}
	title, both := strings.CutSuffix(c.Title, " p50 and p99")
	if !both {
		return []compare.Chart{c}
	}
	of := func(q string) compare.Chart {
		one := c
		one.Title, one.Lines = title+" "+q, nil
		for _, l := range c.Lines {
			if name, its := strings.CutSuffix(l.Name, " "+q); its {
				l.Name = name
				one.Lines = append(one.Lines, l)
			}
		}
		return one
	}
	return []compare.Chart{of("p50"), of("p99")}
}

// openFrom is how far an interval may reach above the highest point of a chart before it is drawn as open.
const openFrom = 1.6

func chartPlot(c compare.Chart) Plot {
	p := Plot{Title: c.Title, XLabel: unit.Words(c.XLabel), YLabel: c.Title, Unit: c.Unit, Names: c.Names}
	highest := 0.0
	for _, line := range c.Lines {
		for _, q := range line.Points {
			highest = max(highest, q.Y)
		}
	}
	for i, line := range c.Lines {
		s := PlotSeries{Name: line.Name, Line: true, Marks: true}
		for _, q := range line.Points {
			point := PlotPoint{X: float64(q.X) + besideOther(i, len(c.Lines)), Y: q.Y}
			if q.Interval.Valid() {
				point.Low, point.High = &q.Interval.Low, &q.Interval.High
				if q.Interval.High > openFrom*highest {
					point.High = nil // it would press the curves flat: its whisker leaves the chart
				}
			}
			s.Points = append(s.Points, point)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// Peek holds what a list shows of an experiment: its first figure, and what its row opens into.
type Peek struct {
	Figure   string
	Sentence string // the best point, or the mark
	Cells    []PeekCell
	More     int           // cells that are not among them
	Chart    template.HTML // the curve; "" where there is none
	Caption  string        // of the chart
}

// PeekCell is a combination with its first measure.
type PeekCell struct{ Name, Value, Interval, Runs string }

// mostPeeked is how many combinations a list shows of one experiment; its page has all.
const mostPeeked = 12

// PeekOf returns what a list shows of an experiment, with texts made visible.
func PeekOf(x *compare.Experiment) Peek {
	x = shown(x)
	p := Peek{Figure: experimentFigure(x), Sentence: x.Sentence}
	if short := ExperimentShort(x); len(short) > 0 {
		p.Sentence = short[0]
	}
	for i, c := range x.Cells {
		if i == mostPeeked {
			p.More = len(x.Cells) - i
			break
		}
		if len(c.Values) > 0 {
			v := c.Values[0]
			p.Cells = append(p.Cells, PeekCell{c.Cell, quantity(v.Value, v.Unit) + " " + measureName("", v.Workload,
				v.Name), cellInterval(v), unit.Plural(len(c.Runs), "run")})
		}
	}
	plots := markPlots(x)
	for _, c := range x.Charts {
		plots = append(plots, chartPlot(c))
	}
	if len(plots) > 0 {
		p.Chart, p.Caption = plots[0].svg(), plots[0].Title
	}
	return p
}

// experimentFigure names what an experiment's answer is about: the mark of a search, the effect of its only factor,
// else the most that a combination did.
func experimentFigure(x *compare.Experiment) string {
	if x.Mark != nil {
		return markFigure(x.Mark)
	}
	at := func(v compare.CellValue, cell string) string {
		name := measureName("", v.Workload, v.Name)
		if len(x.Cells) > 1 {
			name = strings.TrimSpace(name + " at " + cell)
		}
		return fmt.Sprintf("%s (%s)", quantity(v.Value, v.Unit), name)
	}
	if told := effectSentences(x); len(told) > 0 {
		return strings.TrimSuffix(told[0], ".")
	}
	if len(x.Best) > 0 {
		return at(x.Best[0].Rate, x.Best[0].Cell)
	}
	for _, c := range x.Cells {
		if len(c.Values) > 0 {
			return at(c.Values[0], c.Cell)
		}
	}
	return ""
}

// markFigure is a mark as a figure, and whether its search is unfinished.
func markFigure(a *loadmark.Answer) string {
	if a.Unfinished {
		return "unfinished: " + knownOf(a)
	}
	return knownOf(a)
}

// knownOf is a number with its interval, or the bound that is known of a mark.
func knownOf(a *loadmark.Answer) string {
	if a.Rate == nil {
		return "no mark: " + string(a.Verdict)
	}
	switch a.Verdict { // in the digits of its sentence
	case loadmark.Found:
		rate, low := a.Say(*a.Rate), a.Say(*a.Low)
		if _, u, ok := strings.Cut(rate, " "); ok { // the unit once
			low = strings.TrimSuffix(low, " "+u)
		}
		if a.Limit != "" && a.Limit != loadmark.RateMet {
			rate += " at " + a.Limit
		}
		if a.Confidence > 0 {
			return fmt.Sprintf("mark %s (%.0f %%: %s to %s)", rate, 100*a.Confidence, low, a.Say(*a.High))
		}
		return fmt.Sprintf("mark %s (between %s and %s)", rate, low, a.Say(*a.High))
	case loadmark.AtLeast, loadmark.Generator:
		return "mark at least " + a.Say(*a.Rate)
	case loadmark.Below:
		return "mark below " + a.Say(*a.Rate)
	}
	return fmt.Sprintf("no mark: %s", a.Verdict)
}
