package judge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/formats/importer"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/result"
	"plimsoll/unit"
)

// analyzeFlags are what analyze can be told.
type analyzeFlags struct {
	format string
	column string
	sheet  []string
	write  bool
	again  bool
	all    bool
}

func (sd *Sides) AnalyzeCommand() *cobra.Command {
	var f analyzeFlags
	c := &cobra.Command{
		Use: "analyze RUN|FILE|-...", Short: "Say what a finished run or a file of another tool shows, and how sure " +
			"that is", Args: console.Args(1, 50, "run or file"),
		Long: `Analyze looks at a run from its folder alone: what makes its numbers invalid or needs a warning, what co-running
workloads cost, whether it was steady, how it recovered from a fault, how it scales, and whether the figures are
plausible. Every number comes with an interval or the reason for none.

Of several runs, repeats of one test, it also says how much recovery, ingest and residency times vary, and joins
their working sets to one sweep.

A FILE of any tool is looked at as far as a table goes (CSV, columns separated by blanks, JSON; "-" is standard
input): every column of numbers for steadiness, periods, changes of level and, with a column of times, stalls;
columns of concurrency and throughput for how it scales. What could not be looked at is said.

The folder is not changed unless --write says so. The exit code is 5 when an assertion of a run failed.

` + runs.SheetHelp + "\n\n" + runs.RunHelp,
		Example: `  plimsoll analyze latest
  plimsoll analyze latest -o md
  plimsoll analyze run1 run2 run3 --json
  plimsoll analyze iostat.csv --column iops
  plimsoll analyze latest --data-sheet sequential-read=540MB/s --data-sheet random-read=98000`,
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if sd.JSON {
				f.format = "json"
			}
			return sd.analyze(given, f)
		},
	}
	c.Flags().StringVarP(&f.format, "format", "o", "text", "`format`: json, md, text")
	c.Flags().StringVar(&f.column, "column", "", "of files look at this `column` only: its name, or its number from 1")
	sd.readingTables(c)
	c.Flags().StringArrayVar(&f.sheet, "data-sheet", nil, runs.SheetUsage)
	c.Flags().BoolVar(&f.write, "write", false, "keep the findings in the run folder, for its report")
	c.Flags().BoolVar(&f.again, "again", false, "collect anew, from the raw output and the metrics")
	c.Flags().BoolVar(&f.all, "all", false, "print every finding, what passed too (text)")
	_ = c.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"json", "md", "text"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// analyzed is one run with what was found.
type analyzed struct {
	RunID    string           `json:"run_id"`
	Dir      string           `json:"dir"`
	Title    string           `json:"title"`
	Mind     []string         `json:"mind,omitempty"` // what changes the meaning of every number
	InShort  []report.Short   `json:"in_short"`
	Findings []result.Finding `json:"findings"`
	// NotLookedAt lists what the files of an import cannot show.
	NotLookedAt []string `json:"not_looked_at,omitempty"`

	repeat analysis.Repeat
	failed error // of its thresholds and assertions
}

// analyses is everything that analyze prints.
type analyses struct {
	Runs   []*analyzed      `json:"runs"`
	Files  []*analyzedFile  `json:"files,omitempty"`
	Across []result.Finding `json:"across_runs,omitempty"`
}

func (sd *Sides) analyze(given []string, f analyzeFlags) error {
	if !slices.Contains([]string{"json", "md", "text"}, f.format) {
		return exit.Usagef("there are: json, md, text", "analyze: no format %q", f.format)
	}
	sheet, err := runs.DataSheet(sd.Console, f.sheet)
	if err != nil {
		return err
	}
	if err := f.fits(given); err != nil {
		return err
	}
	out := analyses{Runs: []*analyzed{}}
	var repeats []analysis.Repeat
	var failed []error
	for _, run := range given {
		if recognise.IsTable(run) {
			one, err := sd.analyzeFile(run, f.column)
			if err != nil {
				return err
			}
			out.Files = append(out.Files, one)
			continue
		}
		one, err := sd.analyzeRun(run, sheet, f)
		if err != nil {
			return err
		}
		out.Runs = append(out.Runs, one)
		repeats = append(repeats, one.repeat)
		failed = append(failed, one.failed)
	}
	out.Across = analysis.Across(repeats)
	b := bufio.NewWriter(sd.Out)
	switch f.format {
	case "json":
		err = sd.PrintJSON(out)
	case "md":
		err = errors.Join(out.markdown(b), b.Flush())
	default:
		err = errors.Join(out.text(b, f.all), b.Flush())
	}
	if err != nil {
		return exit.Errorf(exit.Failed, "", "analyze: %w", err)
	}
	return errors.Join(failed...)
}

// fits objects to flags that say nothing about what was given.
func (f analyzeFlags) fits(given []string) error {
	for i, g := range given {
		if slices.Contains(given[:i], g) {
			return exit.Usagef("", "analyze: %q is given twice", g)
		}
		switch {
		case recognise.IsTable(g) && (len(f.sheet) > 0 || f.write || f.again):
			return exit.Usagef("", "analyze: %q is a file: --data-sheet, --write and --again are for runs", g)
		case !recognise.IsTable(g) && f.column != "":
			return exit.Usagef("", "analyze: %q is no file: --column is for files", g)
		}
	}
	return nil
}

func (sd *Sides) analyzeRun(given string, sheet []result.Fact, f analyzeFlags) (*analyzed, error) {
	folder, err := sd.OpenRun("analyze", given)
	if err != nil {
		return nil, err
	}
	_ = runs.Intact(sd.Console, "analyze", folder, true) // warns
	defer folder.Close()
	data, err := sd.DataOf(folder, f.again)
	if err != nil {
		return nil, err
	}
	ctx, stop := sd.Interruptible()
	defer stop()
	m := folder.Manifest()
	m.Environment = runs.WithSheet(m.Environment, sheet)
	list := runs.Findings(ctx, folder, data)
	if len(sheet) > 0 {
		// of a sheet given to the run
		list = slices.DeleteFunc(list, func(f result.Finding) bool { return f.Check == "data-sheet" })
		list = bySeverity(append(list, analysis.AgainstSheet(m, data)...))
	}
	if f.write {
		if err := keepFindings(folder, data, list, f.again); err != nil {
			return nil, err
		}
	}
	title := m.Scenario.DisplayName
	if title == "" {
		title = m.Scenario.Name
	}
	one := &analyzed{
		RunID:    m.RunID,
		Dir:      folder.Dir(),
		Title:    title,
		Mind:     report.Mind(m),
		InShort:  report.InShort(list),
		Findings: list,
		repeat:   analysis.Repeat{Manifest: m, Data: data},
	}
	_, one.NotLookedAt = importer.Told(m.Imported)
	one.failed = Thresholds(report.New(report.Input{Manifest: m, Data: data, Findings: list}))
	return one, nil
}

// bySeverity puts the most important findings first and changes nothing else of their order.
func bySeverity(list []result.Finding) []result.Finding {
	order := []result.Severity{result.Invalid, result.Warning, result.Info, result.Passed}
	slices.SortStableFunc(list, func(x, y result.Finding) int {
		return slices.Index(order, x.Severity) - slices.Index(order, y.Severity)
	})
	return list
}

// keep writes findings, and data that were collected anew, into the folder of a run that is not going on.
func keepFindings(folder *result.Folder, data *result.Data, findings []result.Finding, again bool) error {
	switch err := folder.TryLock(); {
	case errors.Is(err, result.ErrBusy):
		return exit.Errorf(exit.Failed, "wait for its end, or leave out --write", "analyze: %s is going on",
			folder.Manifest().RunID)
	case errors.Is(err, fs.ErrPermission):
		return exit.Errorf(exit.Failed, "leave out --write", "analyze: %s cannot be written: %w", folder.Dir(), err)
	case err != nil:
		return exit.Errorf(exit.Failed, "", "analyze: %w", err)
	}
	var errs []error
	if _, err := folder.Data(); again || err != nil {
		errs = append(errs, folder.WriteData(data))
	}
	if err := errors.Join(append(errs, folder.WriteFindings(findings))...); err != nil {
		return exit.Errorf(exit.Failed, "", "analyze: %w", err)
	}
	return nil
}

func (s *analyses) markdown(w io.Writer) error {
	for i, r := range s.Runs {
		if i > 0 {
			visible.Fprintf(w, "\n")
		}
		if err := report.FindingsMarkdown(w, r.Title+", run "+r.RunID, r.Mind, r.Findings,
			r.NotLookedAt...); err != nil {
			return err
		}
	}
	for i, f := range s.Files {
		if i+len(s.Runs) > 0 {
			visible.Fprintf(w, "\n")
		}
		if err := report.FindingsMarkdown(w, f.Source, nil, f.Findings, f.NotLookedAt...); err != nil {
			return err
		}
	}
	if len(s.Across) > 0 {
		visible.Fprintf(w, "\n")
		return report.FindingsMarkdown(w, "Across "+unit.Plural(len(s.Runs), "run"), nil, s.Across)
	}
	return nil
}

// text prints what was found for a terminal, the summary first.
func (s *analyses) text(w io.Writer, all bool) error {
	for i, r := range s.Runs {
		if i > 0 {
			visible.Fprintf(w, "\n")
		}
		visible.Fprintf(w, "%s, run %s\n\n", r.Title, r.RunID)
		for _, first := range r.Mind {
			visible.Fprintf(w, "  %s\n", first)
		}
		for _, short := range r.InShort {
			visible.Fprintf(w, "  %s\n", short.Sentence)
		}
		visible.Fprintf(w, "\n")
		listFindings(w, r.Findings, all)
		for _, n := range r.NotLookedAt {
			visible.Fprintf(w, "not looked at: %s\n", n)
		}
	}
	for i, f := range s.Files {
		if i+len(s.Runs) > 0 {
			visible.Fprintf(w, "\n")
		}
		visible.Fprintf(w, "%s\n\n", f.Source)
		for _, short := range f.InShort {
			visible.Fprintf(w, "  %s\n", short.Sentence)
		}
		if len(f.InShort) > 0 {
			visible.Fprintf(w, "\n")
		}
		listFindings(w, f.Findings, all)
		for _, n := range f.NotLookedAt {
			visible.Fprintf(w, "not looked at: %s\n", n)
		}
	}
	if len(s.Across) > 0 {
		visible.Fprintf(w, "\nAcross %s\n\n", unit.Plural(len(s.Runs), "run"))
		listFindings(w, s.Across, true)
	}
	return nil
}

// listFindings prints each finding with the number it rests on.
func listFindings(w io.Writer, findings []result.Finding, all bool) {
	fine := 0
	like := map[string]int{} // of a check and severity
	for _, f := range findings {
		if f.Severity == result.Passed {
			if fine++; !all {
				continue
			}
		}
		like[string(f.Severity)+f.Check]++
	}
	shown := map[string]bool{}
	for _, f := range report.Ranked(findings) {
		kind := string(f.Severity) + f.Check
		if !all && (f.Severity == result.Passed || shown[kind]) {
			continue
		}
		shown[kind] = true
		more := ""
		if n := like[kind] - 1; n > 0 && !all {
			more = fmt.Sprintf(" (and %d more like it)", n)
		}
		visible.Fprintf(w, "%s (%s): %s%s\n    %s\n", f.Severity, f.Check, f.Sentence, more, figure(f))
		for _, warning := range f.Warnings {
			visible.Fprintf(w, "    note: %s\n", warning)
		}
	}
	if fine > 0 && !all {
		visible.Fprintf(w, "passed: %s (--all prints them)\n", unit.Plural(fine, "check"))
	}
}

// figure is the number of a finding with its interval and basis.
func figure(f result.Finding) string {
	if f.Value == nil {
		return f.Metric + ": not known (" + f.NoInterval + "); " + f.Basis
	}
	number := func(p *float64) string { return strconv.FormatFloat(*p, 'g', 5, 64) }
	s := f.Metric + ": " + number(f.Value) + " " + f.Unit
	if f.Low != nil && f.High != nil {
		s += fmt.Sprintf(" (%.0f %%: %s to %s)", f.Confidence*100, number(f.Low), number(f.High))
	} else {
		s += " (no interval: " + f.NoInterval + ")"
	}
	return s + "; " + f.Basis
}
