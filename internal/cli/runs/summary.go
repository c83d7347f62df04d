package runs

import (
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// How much a summary shows; the report has it all.
const (
	topFindings = 6  // kinds of finding
	topRows     = 40 // rows of the table
)

// printSummary prints what a run has shown: numbers, findings, verdicts, and where the report is.
func printSummary(con *console.Console, phase string, folder *result.Folder) error {
	doc, err := DocumentOf(con, phase, folder, nil)
	if err != nil {
		return err
	}
	return Summarise(con.Out, doc, folder)
}

func Summarise(w io.Writer, doc *report.Document, folder *result.Folder) error {
	doc = doc.ForPeople()
	for _, first := range []string{doc.Simulated, report.Where(doc.Manifest.Environment), doc.Scaled} {
		if first != "" {
			visible.Fprintf(w, "%s\n\n", first)
		}
	}
	for _, short := range doc.InShort {
		if short.Check == result.AssertCheck && len(doc.Asserts) > 0 {
			continue // it stands among the conditions
		}
		if short.Severity == result.Invalid || short.Severity == result.Warning {
			visible.Fprintf(w, "%s: ", short.Severity)
		}
		visible.Fprintf(w, "%s\n", short.Sentence)
	}
	if len(doc.InShort) > 0 {
		visible.Fprintf(w, "\n")
	}
	if err := printFigures(w, doc); err != nil {
		return err
	}
	if err := PrintFindings(w, doc.Findings, doc.InShort...); err != nil {
		return err
	}
	m := folder.Manifest()
	visible.Fprintf(w, "run: %s   collection: %s   cleanup: %s   (%s)\n",
		Verdict(m.Measured), Verdict(m.Collected), Verdict(m.Cleaned), m.Status)
	if m.Error != "" {
		visible.Fprintf(w, "error: %s\n", result.PlainNames(m.Error))
	}
	for _, p := range doc.Problems {
		visible.Fprintf(w, "problem: %s\n", p)
	}
	if m.Status == result.StatusExecuting { // there is no page yet
		_, err := visible.Fprintf(w, "%s\n", doc.Unfinished)
		return err
	}
	visible.Fprintf(w, "report: %s\n", folder.ReportPath())
	return printAsserts(w, doc.Asserts)
}

// printAsserts lists the author's conditions, and says at the end whether all hold.
func printAsserts(w io.Writer, all []report.Assertion) error {
	failed, unjudged, unsure := 0, 0, ""
	for _, a := range all {
		visible.Fprintf(w, "%s %s\n", a.Mark(), a.Sentence)
		switch {
		case a.Verdict == assert.NotJudged:
			unjudged++
		case a.Failed:
			failed++
		case a.Verdict == assert.Inconclusive:
			unsure = ", by less than an interval where it says so"
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case failed+unjudged > 0:
		var parts []string
		if failed > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s not met", failed, unit.Plural(len(all), "assertion")))
		}
		if unjudged > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s not judged", unjudged, unit.Plural(len(all), "assertion")))
		}
		_, err := visible.Fprintf(w, "FAIL: %s\n", strings.Join(parts, ", "))
		return err
	}
	_, err := visible.Fprintf(w, "PASS: %s met%s\n", unit.Plural(len(all), "assertion"), unsure)
	return err
}

// printFigures prints the figures that anyone asks for, the same as on the report's first page.
func printFigures(w io.Writer, doc *report.Document) error {
	t := terminal.Table{Right: []bool{false, false, true, true, true, true, true, true, true}}
	all := doc.Figures()
	if len(all) == 0 {
		return nil
	}
	for _, h := range report.FigureHead(all) {
		t.Head = append(t.Head, strings.ToUpper(h))
	}
	last := len(all) // from here on the measures of the last workload, which say what all its operations came to
	for last > 0 && all[last-1].Mean == all[last-1].Bandwidth && len(all)-last < topRows/2 {
		last--
	}
	until := len(all)
	if until > topRows {
		until = topRows - (len(all) - last)
	}
	for i, f := range all {
		if i >= until && i < last {
			continue
		}
		if i > 0 && f.Errors == "" && (i != last || until > last || all[until-1].Workload == f.Workload) {
			f.Workload = ""
		}
		t.Add(f.Cells()...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if more := len(all) - topRows; more > 0 {
		visible.Fprintf(w, "and %s more in the report\n", unit.Plural(more, "row"))
	}
	for _, text := range []string{doc.FigureTimes(), doc.FigureZeros()} {
		if text != "" {
			visible.Fprintf(w, "%s\n", text)
		}
	}
	for _, l := range doc.Latencies {
		if l.Note != "" && len(l.Windows) > 0 {
			visible.Fprintf(w, "%s\n", l.Note)
		}
	}
	visible.Fprintf(w, "\n")
	return nil
}

// PrintFindings prints the most important findings that are not plain approval: one sentence per check and severity,
// with the number of others like it.
func PrintFindings(w io.Writer, all []result.Finding, told ...report.Short) error {
	type kind struct {
		severity result.Severity
		check    string
	}
	var kinds []kind
	first := map[kind]string{}
	count := map[kind]int{}
	fine := 0
	for _, f := range report.Ranked(all) {
		k := kind{f.Severity, f.Check}
		if f.Severity == result.Passed {
			fine++
			continue
		}
		if report.Said(told, f) {
			continue
		}
		if count[k]++; count[k] == 1 {
			kinds = append(kinds, k)
			first[k] = f.Sentence
		}
	}
	worth, shown := 0, 0
	for i, k := range kinds {
		worth += count[k]
		if i >= topFindings {
			continue
		}
		shown += count[k]
		like := ""
		if n := count[k] - 1; n > 0 {
			like = fmt.Sprintf(" (and %d more like it)", n)
		}
		visible.Fprintf(w, "%s: %s%s\n", k.severity, first[k], like)
	}
	if worth > shown {
		visible.Fprintf(w, "and %s more in the report\n", unit.Plural(worth-shown, "finding"))
	}
	if fine > 0 {
		visible.Fprintf(w, "checks passed: %d\n", fine)
	}
	if len(all) > 0 {
		visible.Fprintf(w, "\n")
	}
	return nil
}

func Verdict(v result.Verdict) string {
	if v.Reason == "" || v.State == "yes" {
		return v.Word()
	}
	return fmt.Sprintf("%s (%s)", v.Word(), result.PlainNames(v.Reason))
}
