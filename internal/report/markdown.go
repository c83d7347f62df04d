package report

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/answer"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// Markdown writes the report's words and tables, without charts, for tickets and reviews.
func Markdown(w io.Writer, doc *Document) error {
	return printWords(doc, &markdown{w: bufio.NewWriter(w)})
}

// Text writes the same for a terminal: columns aligned, and nothing escaped.
func Text(w io.Writer, doc *Document) error {
	return printWords(doc, &markdown{w: bufio.NewWriter(w), text: true})
}

func printWords(doc *Document, m *markdown) error {
	doc = shown(doc)
	m.head(doc)
	m.short(doc)
	m.figures(doc)
	m.spreadOfVMs(doc)
	if sideBySide(doc.Comparisons) {
		m.side(newSide(doc.Comparisons[0]))
	} else {
		m.windows(doc)
	}
	m.found(doc)
	m.events(doc)
	m.panels(doc)
	m.latencies(doc)
	m.prepared(doc)
	m.provenance(doc)
	m.flush()
	if err := m.w.Flush(); err != nil {
		return fmt.Errorf("report: markdown: %w", err)
	}
	return nil
}

// FindingsMarkdown writes findings alone under a heading: what changes the meaning of all of them, the summary, the
// list, and what could not be looked at, where there is any.
func FindingsMarkdown(w io.Writer, title string, mind []string, findings []result.Finding, unseen ...string) error {
	m := &markdown{w: bufio.NewWriter(w)}
	m.line("## %s\n", title)
	for _, first := range mind {
		m.line("**%s**\n", first)
	}
	for _, s := range InShort(findings) {
		m.line("- %s", s.Sentence)
	}
	m.line("\n### What was found\n")
	m.list(Ranked(findings))
	if len(unseen) > 0 {
		m.line("\n### What could not be looked at\n")
	}
	for _, n := range unseen {
		m.line("- %s", n)
	}
	if err := m.w.Flush(); err != nil {
		return fmt.Errorf("report: markdown: %w", err)
	}
	return nil
}

// markdown prints; the buffered writer keeps its first error. As text it keeps the rows of a table until that ends.
type markdown struct {
	w     *bufio.Writer
	text  bool
	table *terminal.Table
}

func (m *markdown) line(format string, args ...any) {
	if !m.text {
		m.w.WriteString(escaped(format+"\n", args...))
		return
	}
	m.flush()
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = visible.Line(s)
		}
	}
	m.w.WriteString(fmt.Sprintf(strings.ReplaceAll(format, "**", "")+"\n", args...))
}

// flush prints the table that has ended.
func (m *markdown) flush() {
	if m.table != nil {
		_ = m.table.Write(m.w) // which keeps its first error
		m.table = nil
	}
}

func (m *markdown) cells(cells ...string) {
	if m.text {
		m.table.Add(cells...)
		return
	}
	plain := make([]string, len(cells)) // what was given may be a table's own heads
	for i, c := range cells {
		plain[i] = plainText(c)
	}
	fmt.Fprintf(m.w, "| %s |\n", strings.Join(plain, " | "))
}

func (m *markdown) header(cells ...string) {
	m.line("")
	if m.text {
		m.table = &terminal.Table{Head: cells}
		return
	}
	m.cells(cells...)
	m.w.WriteString("|" + strings.Repeat(" --- |", len(cells)) + "\n")
}

// escaped is fmt.Sprintf with every argument but numbers taken for text, not for markup.
func escaped(format string, args ...any) string {
	for i, a := range args {
		switch a.(type) {
		case int, float64:
		default:
			args[i] = plainText(fmt.Sprint(a))
		}
	}
	return fmt.Sprintf(format, args...)
}

var (
	markup = strings.NewReplacer("\\", `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`,
		"`", "\\`", "[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "$", `\$`,
		"@", `\@`, "://", `\://`, "www.", `www\.`) // these would become links by themselves
	// What makes a list item, a heading or a ruler of the line it begins.
	beginning = regexp.MustCompile(`^(\d{0,9})([-+=.)])( |$|-*$|=*$)`)
)

// plainText keeps text from being taken for markup, also by those who read HTML, formulas and bare addresses in it.
func plainText(s string) string {
	s = strings.TrimSpace(visible.Line(visible.Cut(s, longestText)))
	return beginning.ReplaceAllString(markup.Replace(s), `$1\$2$3`)
}

func (m *markdown) head(doc *Document) {
	for _, first := range []string{doc.Redacted, doc.Simulated, Where(doc.Manifest.Environment), doc.Scaled} {
		if first != "" {
			m.line("**%s**\n", first)
		}
	}
	m.line("# %s\n", doc.Title)
	if doc.Summary != "" {
		m.line("%s\n", doc.Summary)
	}
	run := "Run " + doc.Manifest.RunID
	if doc.Manifest.Target != "" {
		run += " on " + doc.Manifest.Target
	}
	if doc.Manifest.ClusterName != "" {
		run += " (" + doc.Manifest.ClusterName + ")"
	}
	extent := manyOf(len(doc.VMs), "VM") + " on " + manyOf(len(doc.Manifest.Nodes), "node")
	if n := doc.ImportedFiles(); n > 0 {
		extent = unit.Plural(n, "file")
	}
	m.line("%s, %s UTC, %s. %s.\n", run, stamp(doc.Start), length(doc.Start, doc.End), extent)
	if l := doc.Labels; l != nil {
		if l.Name != "" {
			m.line("- Name: **%s**", l.Name)
		}
		if len(l.Tags) > 0 {
			m.line("- Tags: %s", strings.Join(l.Tags, ", "))
		}
		if l.Note != "" {
			m.line("- Note: %s", l.Note)
		}
	}
	for _, v := range doc.Verdicts {
		if v.Reason != "" {
			m.line("- %s: **%s** – %s", v.Question, v.Word(), v.Reason)
		} else {
			m.line("- %s: **%s**", v.Question, v.Word())
		}
	}
	if doc.Unfinished != "" {
		m.line("\n**%s**", doc.Unfinished)
	}
	for _, p := range doc.Problems {
		m.line("\n**Could not be read: %s**", p)
	}
}

func (m *markdown) short(doc *Document) {
	m.line("\n## In short\n")
	for _, s := range doc.InShort {
		switch {
		case s.Check == result.AssertCheck && len(doc.Asserts) > 0: // it stands among the conditions
		case s.Severity == result.Invalid || s.Severity == result.Warning:
			m.line("- **%s** %s", m.word(s.Severity), s.Sentence)
		default:
			m.line("- %s", s.Sentence)
		}
	}
	if len(doc.Asserts) > 0 {
		m.line("\n## Conditions\n")
	}
	for _, a := range doc.Asserts {
		m.line("- %s %s", a.Mark(), a.Sentence)
	}
	if len(doc.Findings) == 0 {
		m.line("\nThis run has not been analysed: there are no findings.")
	}
}

func (m *markdown) spreadOfVMs(doc *Document) {
	if rows, named := doc.SpreadOfVMs(); rows != nil {
		m.line("\n## From VM to VM")
		m.spread(VMSpreadHead, rows, named)
	}
}

func (m *markdown) spread(head []string, rows [][]string, worst []string) {
	m.header(head...)
	for _, r := range rows {
		m.cells(r...)
	}
	if len(worst) > 0 {
		m.line("\nThe worst of them:\n")
	}
	for _, n := range worst {
		m.line("- %s", n)
	}
}

func (m *markdown) figures(doc *Document) {
	all, left := doc.Foremost(mostFigures)
	if len(all) == 0 {
		return
	}
	m.line("\n## Figures")
	if rows, named := doc.Spread(); rows != nil {
		m.spread(SpreadHead, rows, named)
		return
	}
	m.header(FigureHead(all)...)
	for _, f := range all {
		m.cells(f.Cells()...)
	}
	if left > 0 {
		m.line("\n%d more rows among the percentiles.", left)
	}
	for _, text := range []string{doc.FigureTimes(), doc.FigureZeros()} {
		if text != "" {
			m.line("\n%s", text)
		}
	}
}

func (m *markdown) windows(doc *Document) {
	rows, left := windowTable(doc)
	if len(rows) == 0 {
		return
	}
	m.line("\n## Phases of each workload")
	m.header("Workload", "Phase", "Operation", "Rate", "Change", "Bandwidth", "Mean", "p50", "p99")
	for _, r := range rows {
		m.cells(append([]string{r.Workload, r.Window, r.Operation}, r.Values[:]...)...)
	}
	if left > 0 {
		m.line("\n%d more phases among the percentiles.", left)
	}
}

func (m *markdown) found(doc *Document) {
	rest := slices.DeleteFunc(unsaid(doc.InShort, Ranked(doc.Findings)), func(f result.Finding) bool {
		return f.Check == result.AssertCheck && len(doc.Asserts) > 0 // they stand among the conditions
	})
	if len(rest) == 0 {
		return
	}
	m.line("\n## What was found\n")
	m.list(rest)
}

func (m *markdown) events(doc *Document) {
	all := eventsOf(doc.Marks, doc.Start, doc.End.Sub(doc.Start).Seconds())
	if len(all) == 0 {
		return
	}
	m.line("\n## Events")
	m.header("No.", "At", "UTC", "What")
	for _, e := range all {
		m.cells(fmt.Sprint(e.Number), e.At, e.Clock, strings.Join(e.Texts, "; "))
	}
}

// word is a severity before a sentence: as text no weight sets it off.
func (m *markdown) word(s result.Severity) string {
	if m.text {
		return string(s) + ":"
	}
	return string(s)
}

// unsaid are the findings that a summary has not said, and what those that it has say after that.
func unsaid(summary []Short, all []result.Finding) (out []result.Finding) {
	for _, f := range all {
		if Said(summary, f) {
			rest := strings.TrimSpace(strings.TrimPrefix(f.Sentence, answer.First(f)))
			if rest == "" {
				continue
			}
			f.Sentence = rest
			if f.Subject != "" && f.Subject != "run" && !strings.HasPrefix(rest, f.Subject) {
				f.Sentence = f.Subject + ": " + rest
			}
		}
		out = append(out, f)
	}
	return out
}

// list prints one finding per line. Of more than a few of one check and severity it prints the first and names the
// subjects of the others; answers to what the run was made to find out are all printed.
func (m *markdown) list(findings []result.Finding) {
	type kind struct {
		severity result.Severity
		check    string
	}
	like := map[kind][]string{} // subjects
	for _, f := range findings {
		k := kind{f.Severity, f.Check}
		like[k] = append(like[k], f.Subject)
	}
	const few = 4
	told := map[kind]bool{}
	for _, f := range findings {
		k := kind{f.Severity, f.Check}
		many := len(like[k]) > few && (f.Severity == result.Passed || !f.Answers())
		if many && told[k] {
			continue
		}
		m.line("- **%s** %s", m.word(f.Severity), f.Sentence)
		if many {
			told[k] = true
			m.line("  - and %s more like it: %s", plain(float64(len(like[k])-1)), strings.Join(like[k][1:], ", "))
		}
	}
}

func (m *markdown) side(s side) {
	m.line("\n%s side by side; p50 and p99 are %ss.", s.Workload, s.Kind)
	m.header(append(append([]string{""}, s.Windows...), s.Change)...)
	for _, r := range s.Rows {
		m.cells(append(append([]string{r.Name}, r.Values...), r.Change)...)
	}
}

func (m *markdown) panels(doc *Document) {
	if len(doc.Panels) == 0 {
		return
	}
	m.line("\n## Results")
	m.header("Result", "Series", "Smallest", "Largest", "Expected", "Metrics")
	for _, p := range doc.Panels {
		if p.Problem != "" {
			m.cells(p.Title, none, none, none, optional(p.Expected, p.Unit), "no data: "+p.Problem)
			continue
		}
		var words []string
		for _, x := range p.Metrics {
			if said := sayValue(x); !slices.Contains(words, said) {
				words = append(words, said)
			}
		}
		low, high := newChart("", p.Title, p.Unit, doc.Start, p.Series).ends(p.Unit)
		m.cells(p.Title, fmt.Sprint(len(p.Series)), low, high, optional(p.Expected, p.Unit), strings.Join(words, ", "))
	}
	for _, p := range doc.Panels {
		for _, n := range p.Notes {
			m.line("\n%s: %s.", p.Title, n)
		}
	}
}

// prepared writes what was done to the disks before the load.
func (m *markdown) prepared(doc *Document) {
	if len(doc.Preconditioned)+len(doc.Written) == 0 {
		return
	}
	m.line("\n## Preparation")
	for _, t := range doc.Preparations() {
		m.line("\n### %s\n\n%s", t.Title, t.Note)
		m.header("Part", "Written", "Took", "Rate", "Errors")
		for _, r := range t.Rows {
			m.cells(r.Part, r.Written, r.Took, r.Rate, r.Errors)
		}
	}
	if looks := doc.Looks(); len(looks) > 0 {
		m.line("\n### What the disks hold\n")
		for _, text := range looks {
			m.line("- %s", text)
		}
	}
}

func (m *markdown) latencies(doc *Document) {
	if len(doc.Latencies) == 0 {
		return
	}
	m.line("\n## Percentiles\n\n%s", doc.PercentilesLegend())
	for _, l := range doc.Latencies {
		m.line("\n### %s", l.Title())
		if l.Note != "" {
			m.line("\n%s", l.Note)
		}
		m.header("Phase", "Operation", "Count", l.RateHead(), "Bandwidth", "Mean", "p50", "p90", "p99", "p99.9", "Max")
		for _, r := range l.Table() {
			m.cells(append([]string{r.Window + " (" + r.Length + ")", r.Operation}, r.Cells...)...)
		}
		if t := l.Stated(); t != nil {
			m.line("\nAll times that the tool states:")
			m.header(t.Head...)
			for _, cells := range t.Rows {
				m.cells(cells...)
			}
		}
	}
}

func (m *markdown) provenance(doc *Document) {
	m.line("\n## Environment")
	m.header("Group", "Fact", "Value")
	for _, f := range environment(doc) {
		value := f.Value
		if f.Missing != "" {
			value = "not known: " + f.Missing
		}
		m.cells(f.Group, f.Name, value)
	}
	for _, n := range doc.Manifest.Notes {
		m.line("\n%s", n)
	}
	if len(doc.Manifest.Imported) > 0 {
		m.line("\n%s.", doc.Manifest.Program)
		return
	}
	m.line("\nScenario %s from %s; %s.", doc.Manifest.Scenario.Name, doc.Manifest.Scenario.Source, doc.Manifest.Program)
}
