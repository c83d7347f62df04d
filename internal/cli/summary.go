package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/exit"
	"plimsoll/internal/report"
	"plimsoll/internal/terminal"
	"plimsoll/internal/visible"
	"plimsoll/result"
	"plimsoll/unit"
)

// How much a summary shows; the report has it all.
const (
	topFindings = 6  // kinds of finding
	topRows     = 24 // rows of the table
)

// printSummary prints what a run has shown: numbers, findings, verdicts, and where the report is.
func (a *app) printSummary(folder *result.Folder) error {
	doc, err := report.Build(folder)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	return summarise(a.out, doc, folder)
}

func summarise(w io.Writer, doc *report.Document, folder *result.Folder) error {
	for _, first := range []string{doc.Simulated, doc.Scaled} {
		if first != "" {
			visible.Fprintf(w, "%s\n\n", first)
		}
	}
	t := terminal.Table{
		Head:  []string{"WORKLOAD", "OPERATION", "RATE", "BANDWIDTH", "MEAN", "P50", "P99", "TIME OF", "ERRORS"},
		Right: []bool{false, false, true, true, true, true, true, false, true},
	}
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 {
			continue
		}
		errors := "0"
		if n := failed(doc, l.Workload); n > 0 {
			errors = unit.Thousands(int64(n))
		}
		for _, r := range l.Windows[0].Rows {
			moved := "-"
			if r.BytesPerSecond != nil {
				moved = unit.Bandwidth(*r.BytesPerSecond).String()
			}
			t.Add(l.Workload, r.Op, rateIn(r.OpsPerSecond, r.Unit), moved, seconds(r.Mean), seconds(r.P50),
				seconds(r.P99),
				strings.TrimSuffix(l.Kind, " time"), errors)
			errors = ""
		}
		for _, m := range l.Windows[0].Measures {
			t.Add(l.Workload, m.Name, rateIn(m.Value, m.Unit), "-", "-", "-", "-", "", errors)
			errors = ""
		}
	}
	more := t.Len() - topRows
	if more > 0 {
		t.Keep(topRows)
	}
	if t.Len() > 0 {
		if err := t.Write(w); err != nil {
			return err
		}
		if more > 0 {
			visible.Fprintf(w, "and %s more in the report\n", unit.Plural(more, "row"))
		}
		visible.Fprintf(w, "\n")
	}
	if err := printFindings(w, doc.Findings); err != nil {
		return err
	}
	m := folder.Manifest()
	visible.Fprintf(w, "measured: %s   collected: %s   cleaned: %s   (%s)\n",
		verdict(m.Measured), verdict(m.Collected), verdict(m.Cleaned), m.Status)
	if m.Error != "" {
		visible.Fprintf(w, "error: %s\n", m.Error)
	}
	for _, p := range doc.Problems {
		visible.Fprintf(w, "problem: %s\n", p)
	}
	_, err := visible.Fprintf(w, "report: %s\n", folder.ReportPath())
	return err
}

// rateIn is a number in a unit of rates or of a declared measure.
func rateIn(v float64, of string) string {
	text := unit.Rate(v).String()
	if of == result.OperationsUnit {
		return text
	}
	return strings.TrimSuffix(text, " IOPS") + " " + of
}

// failed is the number of failed operations of a workload as a latency table names it.
func failed(doc *report.Document, name string) uint64 {
	for _, s := range doc.Workloads {
		if !s.Prefill && (s.VM == "" && s.Name == name || s.VM != "" && s.Name+" on "+s.VM == name) {
			return s.Errors
		}
	}
	return 0
}

// printFindings prints the most important findings that are not plain approval: one sentence per check and severity,
// with the number of others like it.
func printFindings(w io.Writer, all []result.Finding) error {
	type kind struct {
		severity result.Severity
		check    string
	}
	var kinds []kind
	first := map[kind]string{}
	count := map[kind]int{}
	for _, s := range []result.Severity{result.Blocker, result.Caution, result.Notice} {
		for _, f := range all {
			k := kind{s, f.Check}
			if f.Severity != s {
				continue
			}
			if count[k]++; count[k] == 1 {
				kinds = append(kinds, k)
				first[k] = f.Sentence
			}
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
	if fine := len(all) - worth; fine > 0 {
		visible.Fprintf(w, "checked and in order: %d\n", fine)
	}
	if len(all) > 0 {
		visible.Fprintf(w, "\n")
	}
	return nil
}

func verdict(v result.Verdict) string {
	if v.Reason == "" || v.State == "yes" {
		return v.State
	}
	return fmt.Sprintf("%s (%s)", v.State, v.Reason)
}

// seconds prints a time that may be absent.
func seconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return unit.Duration(*v * float64(time.Second)).String()
}
