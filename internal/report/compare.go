package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	loadmark "plimsoll/internal/analysis/mark"
	"plimsoll/internal/report/catalogue"
	"plimsoll/result"
	"plimsoll/unit"
)

// mostSeries is how many series a comparison shows; its JSON form has all.
const mostSeries = 40

// mostOverlays is how many charts a comparison shows at once; the others are opened.
const mostOverlays = 6

// mostWarnings is how many warnings of its measures a table shows; the JSON form has all.
const mostWarnings = 12

// CompareJSON writes a comparison as JSON.
func CompareJSON(w io.Writer, d *compare.Document) error {
	whole := *d // a list of nothing is an empty list
	whole.Unlike, whole.Measures, whole.Series = list(d.Unlike), list(d.Measures), list(d.Series)
	whole.Families, whole.Normalised, whole.Order, whole.Notes = list(d.Families), list(d.Normalised), list(d.Order),
		list(d.Notes)
	d = &whole
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// CompareText writes a comparison for a terminal. What must be read first is the first line.
func CompareText(w io.Writer, d *compare.Document) error { return compareLines(w, d, false) }

// CompareMarkdown writes a comparison for a ticket.
func CompareMarkdown(w io.Writer, d *compare.Document) error { return compareLines(w, d, true) }

// grid is a table of a comparison. Why intervals are absent stands below it, once each.
type grid struct {
	title   string
	said    string // of the whole of it, before the rows
	head    []string
	rows    [][]string
	reasons []string

	threshold float64
	warnings  []string
}

// interval prints the interval of a measure, or refers to the reason why there is none.
func (g *grid) interval(m compare.Measure) string {
	if m.Adjusted.Valid() {
		return compareInterval(m)
	}
	i := slices.Index(g.reasons, m.Adjusted.Reason)
	if i < 0 {
		i = len(g.reasons)
		g.reasons = append(g.reasons, m.Adjusted.Reason)
	}
	return fmt.Sprintf("none (%d)", i+1)
}

func (g grid) write(b *strings.Builder, markdown bool) {
	if len(g.rows) == 0 {
		return
	}
	if markdown {
		b.WriteString(escaped("\n## %s\n\n", g.title))
		if g.said != "" {
			b.WriteString(escaped("%s\n\n", g.said))
		}
		row := func(cells []string) {
			b.WriteString("|")
			for _, c := range cells {
				b.WriteString(escaped(" %s |", c))
			}
			b.WriteString("\n")
		}
		row(g.head)
		b.WriteString("|" + strings.Repeat("---|", len(g.head)) + "\n")
		for _, r := range g.rows {
			row(r)
		}
		g.footnotes(b, escaped)
		return
	}
	fmt.Fprintf(b, "\n%s\n", g.title)
	if g.said != "" {
		fmt.Fprintf(b, "  %s\n", g.said)
	}
	width := make([]int, len(g.head))
	all := append([][]string{g.head}, g.rows...)
	for _, r := range all {
		for i, c := range r {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	for _, r := range all {
		line := ""
		for i, c := range r {
			line += c + strings.Repeat(" ", width[i]-len([]rune(c))+2)
		}
		b.WriteString("  " + strings.TrimRight(line, " ") + "\n")
	}
	g.footnotes(b, fmt.Sprintf)
}

func (g grid) footnotes(b *strings.Builder, sprintf func(string, ...any) string) {
	for i, r := range g.reasons {
		b.WriteString(sprintf("\n  (%d) %s\n", i+1, r))
	}
	for i, w := range g.warnings {
		if i == 0 {
			b.WriteString("\n")
		}
		if i == mostWarnings {
			b.WriteString(sprintf("  ! and %d more, in the JSON form\n", len(g.warnings)-i))
			break
		}
		b.WriteString(sprintf("  ! %s\n", w))
	}
}

func compareLines(w io.Writer, d *compare.Document, markdown bool) error {
	d = shown(d)
	var b strings.Builder
	sprintf, bold := formats(markdown)
	if d.Marked != "" {
		b.WriteString(sprintf(bold, d.Marked))
	}
	for _, first := range d.Mind {
		b.WriteString(sprintf(bold, first))
	}
	if markdown {
		b.WriteString(sprintf("# %s\n\n", compareTitle(d)))
	}
	b.WriteString(sprintf("%s\n\n", d.Sentence))
	for i, s := range d.Sides {
		role := "baseline"
		if i > 0 {
			role = strings.TrimSpace("candidate " + sideNumbers(d)[s.Name])
		}
		if markdown {
			b.WriteString("- ")
		}
		b.WriteString(sprintf("%s: %s (%s)\n", role, s.Name, sideSize(s)))
	}
	for _, g := range compareGrids(d) {
		g.write(&b, markdown)
	}
	if len(d.Notes)+len(d.Missing) > 0 {
		b.WriteString("\n")
	}
	for _, n := range append(append([]string{}, d.Notes...), d.Missing...) {
		b.WriteString(sprintf("- %s\n", n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// formats are how a document's lines are printed, and the format of what must be read first.
func formats(markdown bool) (sprintf func(string, ...any) string, bold string) {
	if markdown {
		return escaped, "**%s**\n\n"
	}
	return fmt.Sprintf, "%s\n\n"
}

func sideSize(s compare.Shown) string {
	n, what := len(s.Runs), "run"
	switch {
	case s.Moments:
		n, what = max(n, s.Repeats), "row"
	case s.Repeats > 0:
		n, what = s.Repeats, "repeat"
	case s.Probes > 0:
		n, what = s.Probes, "probe"
	}
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// ofFiles reports whether the sides are columns of numbers, of which nothing else is known.
func ofFiles(d *compare.Document) bool { return d.Sides[0].Repeats > 0 }

func compareTitle(d *compare.Document) string {
	if d.Title == "" {
		return "Comparison"
	}
	return d.Title + ", compared"
}

func compareGrids(d *compare.Document) []grid {
	several := sideNumbers(d)
	measures := grid{
		title:     "Workloads and results",
		head:      []string{"measure", "baseline", "candidate", "change", "interval", "verdict"},
		threshold: d.Threshold,
	}
	for _, m := range d.Measures {
		measures.add(m, several)
	}
	if ofFiles(d) {
		measures.title = "Columns"
	}
	series := grid{title: "Means over time of what was recorded", head: measures.head, threshold: d.Threshold}
	means := meansOverTime(d)
	for i, m := range means {
		if i == mostSeries {
			series.title += fmt.Sprintf(" (the %d clearest of %d; JSON has all)", mostSeries, len(means))
			break
		}
		series.add(m, several)
	}
	facts := grid{title: "Facts that differ", head: []string{"fact"}}
	for _, s := range d.Sides {
		facts.head = append(facts.head, s.Name)
	}
	facts.head = append(facts.head, "weight")
	for _, f := range compare.Told(d.Unlike) {
		facts.rows = append(facts.rows, append(append([]string{f.Name}, f.Values...), factWeight(f)))
	}
	cores := grid{title: "Throughput per processor", head: []string{"side", "workload", "operations", "processors",
		"vCPUs", "a vCPU is", "physical cores", "per vCPU", "per physical core"}}
	for _, n := range d.Normalised {
		cores.rows = append(cores.rows, []string{n.Side, measureName(n.Cell, n.Workload, ""), quantity(n.OpsPerSecond,
			n.Unit), cmp.Or(n.Of, "not known"), plain(float64(n.VCPUs)), n.VCPU, optional(n.PhysicalCores, "count"),
			optional(n.PerVCPU, n.Unit), optional(n.PerPhysicalCore, n.Unit)})
	}
	order := grid{title: "Order of the runs", head: []string{"rate", "drift per run", "interval", "p",
		"confounded with the sides"}}
	for _, e := range d.Order {
		order.rows = append(order.rows, []string{e.Name, percent(e.DriftPerRun),
			span(e.Interval.Low, e.Interval.High, e.Interval.Valid()), fmt.Sprintf("%.2g", e.P),
			fmt.Sprintf("%.0f %%", e.Confounded*100)})
	}
	return []grid{measures, facts, cores, order, series}
}

// meansOverTime are the series compared by their mean over time, without times of operations: such a mean weighs a
// second with one operation like one with a million, and would stand beside the mean over operations as another number
// of the same name. JSON has them.
func meansOverTime(d *compare.Document) []compare.Measure {
	out := slices.DeleteFunc(slices.Clone(d.Series),
		func(m compare.Measure) bool { return m.Unit == "us" || m.Unit == "s" })
	for i := range out { // "read_iops VM": the metric comes first
		metric, of, _ := strings.Cut(out[i].Name, " ")
		out[i].Name = strings.TrimSpace(result.SayMetric(metric) + " " + of)
	}
	return out
}

func factWeight(f compare.Fact) string {
	switch {
	case f.Refuses:
		return "should be equal"
	case f.Varied:
		return "varied on purpose"
	}
	return "noted"
}

// sideNumbers tell candidates apart by short names where there are several; with one there is nothing to tell apart.
func sideNumbers(d *compare.Document) map[string]string {
	out := map[string]string{}
	if len(d.Sides) > 2 {
		for i, s := range d.Sides[1:] {
			out[s.Name] = fmt.Sprintf("(%d)", i+1)
		}
	}
	return out
}

func (g *grid) add(m compare.Measure, several map[string]string) {
	g.rows = append(
		g.rows,
		[]string{
			fullName(m, several),
			valueText(m, m.Baseline),
			valueText(m, m.Candidate),
			changeText(m),
			g.interval(m),
			verdictText(m, g.threshold),
		},
	)
	for _, w := range m.Warnings {
		if text := fullName(m, several) + ": " + w; !slices.Contains(g.warnings, text) {
			g.warnings = append(g.warnings, text)
		}
	}
}

// valueText is a value of a measure, a mark in the digits of its search.
func valueText(m compare.Measure, v compare.Values) string {
	if m.Name == catalogue.Mark && m.Workload != "" && finite(v.Value) && v.Value > 0 {
		return loadmark.Say(v.Value, m.Unit)
	}
	text := quantity(v.Value, m.Unit)
	if m.TooFew() && text != none {
		text += " ?"
	}
	return text
}

// verdictText is a verdict in words; what is the same is so within the threshold. A gross change of single runs is one
// of these runs, and not what an interval says of others.
func verdictText(m compare.Measure, threshold float64) string {
	told := m.Verdict != compare.Same && m.Verdict != compare.Inconclusive
	if told && !(m.Adjusted.Valid() && (m.Adjusted.Low > 0 || m.Adjusted.High < 0)) {
		return string(m.Verdict) + " in these runs"
	}
	if m.Verdict == compare.Same && threshold > 0 {
		return fmt.Sprintf("same within %.3g %%", threshold*100)
	}
	return string(m.Verdict)
}

// changeText is a change, from zero the difference itself.
func changeText(m compare.Measure) string {
	if m.Absolute {
		return signed(m.Candidate.Value-m.Baseline.Value, m.Unit)
	}
	if m.Change != nil && m.Adjusted.Valid() && m.Adjusted.High >= unit.TimesFrom {
		return times(*m.Change) // as its interval is written
	}
	return percent(m.Change)
}

// signed prints a difference in its unit.
func signed(v float64, unit string) string {
	text := quantity(math.Abs(v), unit)
	switch {
	case v < 0:
		return "−" + text
	case v > 0:
		return "+" + text
	}
	return text
}

func fullName(m compare.Measure, several map[string]string) string {
	return strings.TrimSpace(several[m.Side] + " " + measureName(m.Cell, m.Workload, m.Name))
}

func measureName(cell, workload, name string) string {
	if workload != "" { // else it may be a column of a file
		name = sayMeasure(name)
	}
	if workload != "" && !strings.HasSuffix(name, workload) {
		name = strings.TrimSpace(workload + " " + name)
	}
	if cell != "" {
		name = cell + ": " + name
	}
	return name
}

// times prints a relative change as a factor.
func times(change float64) string { return "×" + plain(1+change) }

// percent prints a relative change.
func percent(v *float64) string {
	if v == nil || !finite(*v) {
		return none
	}
	if *v >= 1e6 {
		return "over ×1,000,000"
	}
	return unit.Change(*v)
}

// tooFew is said of intervals that bound nothing.
const tooFew = "too few repeats"

func span(low, high float64, valid bool) string {
	switch {
	case !valid:
		return none
	case low < -0.9995 && high >= 1e6: // from nothing to a million times
		return tooFew
	case finite(low) && high < 1e6:
		return unit.Changes(low, high)
	}
	end := func(v float64) string {
		switch {
		case math.IsInf(v, 1):
			return "no upper end"
		case math.IsInf(v, -1):
			return "no lower end"
		}
		return percent(&v)
	}
	return end(low) + " to " + end(high)
}

func compareInterval(m compare.Measure) string {
	if !m.Adjusted.Valid() {
		return "none: " + m.Adjusted.Reason
	}
	if m.Absolute {
		return signed(m.Adjusted.Low, m.Unit) + " to " + signed(m.Adjusted.High, m.Unit)
	}
	return span(m.Adjusted.Low, m.Adjusted.High, true)
}

// compareView is a comparison arranged for the page.
type compareView struct {
	*compare.Document
	Title    string
	Policy   string
	Style    template.CSS
	Groups   []compareGroup
	Curves   []*overlayView // of experiments or searches
	Further  []*overlayView // on demand
	Overlays []*overlayView
	Others   []*overlayView // on demand
	Top      []compareRow   // series
	More     int
	Common   []string // warnings that several measures share
	Folded   bool     // each group is opened
	Single   bool
	Files    bool // the sides are files
	// Percentiles: some measure is one that was read from histograms.
	Percentiles bool
}

type compareGroup struct {
	Title string
	Rows  []compareRow
}

// mostGroups is how many tables a comparison shows at once; of more each is opened.
const mostGroups = 6

// Count is how many measures of a group have which verdict.
func (g compareGroup) Count() string {
	var said []string
	for _, v := range []compare.Verdict{compare.Worse, compare.Better, compare.Higher, compare.Lower, compare.Same,
		compare.Inconclusive} {
		n := 0
		for _, r := range g.Rows {
			if r.Verdict == v {
				n++
			}
		}
		if n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(said, ", ")
}

// sayOnce takes warnings that several measures share out of their rows, and gives each with their number.
func sayOnce(groups ...compareGroup) (common []string) {
	const several = 4
	of := map[string]int{}
	for _, g := range groups {
		for _, r := range g.Rows {
			for _, w := range r.Warnings {
				if of[w]++; of[w] == several {
					common = append(common, w)
				}
			}
		}
	}
	for _, g := range groups {
		for i := range g.Rows {
			g.Rows[i].Warnings = slices.DeleteFunc(slices.Clone(g.Rows[i].Warnings), func(w string) bool {
				return of[w] >= several
			})
		}
	}
	for i, w := range common {
		common[i] = fmt.Sprintf("Of %d measures: %s.", of[w], strings.TrimSuffix(w, "."))
	}
	return common
}

type compareRow struct {
	compare.Measure
	Label  string
	Class  string // of the verdict
	Forest template.HTML
	Ends   string
	Reason string
	Moved  string // the change
	Said   string // the verdict
}

// CompareHTML writes a comparison as one self-contained page without a script.
func CompareHTML(w io.Writer, d *compare.Document) error {
	d = shown(d)
	v := compareView{Document: d, Title: compareTitle(d), Policy: Policy}
	for _, name := range []string{"report.css", "compare.css"} {
		b, err := fs.ReadFile(embedded, "assets/"+name)
		if err != nil {
			return fmt.Errorf("report: compare: asset %q: %w", name, err)
		}
		v.Style += template.CSS(b)
	}
	v.Files = ofFiles(d)
	v.Percentiles = !v.Files && slices.ContainsFunc(d.Measures, func(m compare.Measure) bool {
		return strings.Contains(m.Name, "latency_p") || strings.Contains(m.Name, " p")
	})
	widest := widestChange(d.Measures, d.Threshold)
	several := sideNumbers(d)
	for _, m := range d.Measures {
		title := m.Workload
		if title == "" && !v.Files {
			title = "Results of the scenario"
		}
		if m.Cell != "" {
			title = m.Cell + ": " + title
		}
		if len(several) > 0 {
			title = m.Side + ": " + title
		}
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Title != title {
			v.Groups = append(v.Groups, compareGroup{Title: title})
		}
		g := &v.Groups[len(v.Groups)-1]
		g.Rows = append(g.Rows, newCompareRow(m, strings.TrimPrefix(m.Name, "result: "), widest, d.Threshold))
		v.Single = v.Single || m.Scope == compare.WithinRuns
	}
	v.Overlays, v.Others = firstOf(newOverlays(d.Overlays))
	v.Curves, v.Further = firstOf(comparedCurves(d))
	means := meansOverTime(d)
	for i, m := range means {
		if i == mostSeries {
			v.More = len(means) - mostSeries
			break
		}
		v.Top = append(v.Top, newCompareRow(m, fullName(m, several), widest, d.Threshold))
	}
	v.Folded = len(v.Groups) > mostGroups
	v.Common = sayOnce(append(slices.Clone(v.Groups), compareGroup{Rows: v.Top})...)
	return comparePage(w, "compare.html.tmpl", v)
}

// firstOf are the charts that are shown at once, and those that are opened.
func firstOf(all []*overlayView) (first, others []*overlayView) {
	n := min(len(all), mostOverlays)
	return all[:n], all[n:]
}

// comparedCurves are the curves of experiments, or the marks and the probes of searches, a colour for every side.
func comparedCurves(d *compare.Document) (out []*overlayView) {
	if len(d.Sides) > paletteSize {
		return nil
	}
	plots := comparedMarks(d.Searches)
	for _, c := range d.Curves {
		plots = append(plots, chartPlot(c))
	}
	for _, p := range plots {
		out = append(out, plotView(p))
	}
	return out
}

func newCompareRow(m compare.Measure, label string, widest, threshold float64) compareRow {
	r := compareRow{
		Measure: m,
		Label:   label,
		Class:   string(m.Verdict),
		Forest:  forest(m, widest, threshold),
		Ends:    compareInterval(m),
		Moved:   changeText(m),
		Said:    verdictText(m, threshold),
	}
	if !m.Adjusted.Valid() {
		r.Ends, r.Reason = none, m.Adjusted.Reason
	}
	return r
}

// widestChange is where the drawings of intervals end: room for most of them, and at least twice the threshold.
func widestChange(list []compare.Measure, threshold float64) float64 {
	const most = 19 // twenty times as much
	widest := max(2*threshold, 0.1)
	for _, m := range list {
		for _, e := range []float64{m.Adjusted.Low, m.Adjusted.High} {
			if m.Adjusted.Valid() && !m.Absolute && finite(e) && e > -1 {
				widest = max(widest, min(math.Exp(math.Abs(math.Log1p(e)))-1, most))
			}
		}
	}
	return widest
}

// forest draws a change with its interval on a logarithmic line that ends at a change of widest; the band is what does
// not matter.
func forest(m compare.Measure, widest, threshold float64) template.HTML {
	const width, height, edge = 220, 22, 6
	at := func(v float64) int {
		x := math.Log1p(max(v, -1+1e-9)) / math.Log1p(widest) // a doubling and a halving are as far from the middle
		return int(math.Round(edge + (max(-1, min(1, x))+1)/2*(width-2*edge)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="forest" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height,
		template.HTMLEscapeString("change "+changeText(m)+", interval "+compareInterval(m)))
	fmt.Fprintf(&b, `<rect class="same" x="%d" y="0" width="%d" height="%d"/><path class="zero" d="M%d 0V%d"/>`,
		at(-threshold), at(threshold)-at(-threshold), height, at(0), height)
	switch {
	case !m.Adjusted.Valid() || m.Absolute:
	case m.Adjusted.Low > widest: // all of it beyond the drawing: an arrow that says on which side
		fmt.Fprintf(&b, `<path class="ends" d="M%d 11H%dm-5 -4l5 4l-5 4"/>`, width-edge-16, width-edge)
	case m.Adjusted.High < 1/(1+widest)-1:
		fmt.Fprintf(&b, `<path class="ends" d="M%d 11H%dm5 -4l-5 4l5 4"/>`, edge+16, edge)
	default:
		low, high := at(m.Adjusted.Low), at(m.Adjusted.High)
		fmt.Fprintf(&b, `<path class="ends" d="M%d 11H%d`, low, max(high, low+1))
		if m.Adjusted.Low >= 1/(1+widest)-1 {
			fmt.Fprintf(&b, `M%d 6V16`, low)
		} else {
			fmt.Fprintf(&b, `m0 0M%d 11l5 -4m-5 4l5 4`, low)
		}
		if m.Adjusted.High <= widest {
			fmt.Fprintf(&b, `M%d 6V16`, high)
		} else {
			fmt.Fprintf(&b, `M%d 11l-5 -4m5 4l-5 4`, high)
		}
		b.WriteString(`"/>`)
	}
	if m.Change != nil && *m.Change <= widest && *m.Change >= 1/(1+widest)-1 {
		fmt.Fprintf(&b, `<circle class="at" cx="%d" cy="11" r="4"/>`, at(*m.Change))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}
