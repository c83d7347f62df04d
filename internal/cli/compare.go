package cli

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/compare"
	"plimsoll/internal/exit"
	"plimsoll/internal/report"
	"plimsoll/internal/visible"
)

// compareFormats are the documents a comparison can be.
var compareFormats = map[string]func(io.Writer, *compare.Document) error{
	"html": report.CompareHTML, "json": report.CompareJSON, "md": report.CompareMarkdown, "text": report.CompareText,
}

// compareFlags say how runs are compared.
type compareFlags struct {
	output
	threshold  float64
	confidence float64
	vary       []string
	anyway     bool
	better     []string // of columns of files
	columns    []string
	windows    []string // of runs, as sides
}

func (f *compareFlags) register(c *cobra.Command) {
	f.output.register(c, "text", "html", "json", "md")
	flags := c.Flags()
	flags.Float64Var(&f.threshold, "threshold", compare.DefaultThreshold,
		"relative `difference` that matters, 0.05 for 5 %")
	flags.Float64Var(&f.confidence, "confidence", 0.95, "`level` of the intervals")
	flags.StringArrayVar(&f.vary, "vary", nil, "the `fact` that differs on purpose, like kernel or \"variable "+
		"block_size\"; repeatable")
	flags.BoolVar(&f.anyway, "anyway", false, "compare sides that differ in what should be equal; the first line "+
		"says so")
}

// registerFiles adds the flags that say what the columns of files are.
func (f *compareFlags) registerFiles(c *cobra.Command) {
	f.registerBetter(c)
	c.Flags().StringArrayVar(&f.columns, "column", nil, "of files take this `column` only: its name, or its number "+
		"from 1; repeatable")
}

func (f *compareFlags) registerBetter(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.better, "better", nil,
		"which `way` is good: of columns of files higher, lower or COLUMN=lower, of measures of runs MEASURE=lower; "+
			"repeatable")
}

func (f *compareFlags) options() compare.Options {
	o := compare.Options{Confidence: f.confidence, Threshold: f.threshold, Vary: f.vary, Anyway: f.anyway}
	if o.Threshold == 0 {
		o.Threshold = -1
	}
	return o
}

const sideHelp = `A side is a RUN; repeats, RUN,RUN,...; an experiment, whose cells are compared one by one; cells of one, as
EXPERIMENT:block_size=4k; or a baseline, @NAME.`

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare BASELINE CANDIDATE...",
		Short: "Compare runs or files of repeats: what changed, by how much, and how sure that is",
		Long: `Compare compares each further side with the first. ` + sideHelp + `

It refuses sides that differ in what should be equal (kernel, firmware, fio, scenario, variables, scales, prefill,
content, jobs, working set to memory), names each fact with its values, and exits with 4. Say what differs on
purpose with --vary, or insist with --anyway.

With three runs or more on each side the intervals hold what repeats differ by. With one they hold only how
steady that run was. They are widened for the number of measures. A verdict is better or worse when the whole
interval lies beyond the threshold, same when all of it lies within, else undecided.

With --window the sides are windows of one RUN, or of repeats of it: what was before a neighbour or an annotated
moment with what came with or after it, as the report names them.

All sides can instead be files of repeats measured by any tool: CSV, columns separated by blanks, JSON; "-" is
standard input. A column is a measure, a row is a repeat, and sides may have unequally many.

Better and worse are said where it is known which way is good: of rates, times and percentiles, and of what a load
generator declares so. Of others say it: --better spills=lower.`,
		Example: `  plimsoll compare 20261121-2045 latest
  plimsoll compare run1,run2,run3 run4,run5,run6 --vary kernel --threshold 0.03
  plimsoll compare @release latest -o html --output compare.html
  plimsoll compare latest --window alone --window "with DSS"
  plimsoll compare before.csv after.csv --better p99=lower`,
		Args: func(c *cobra.Command, given []string) error {
			if len(f.windows) > 0 {
				if len(f.windows) < 2 || len(given) > 1 {
					return exit.Usagef(`as in: plimsoll compare latest --window alone --window "with DSS"`,
						"compare: --window wants one side and two windows of it or more")
				}
				return args(1, 1, "run")(c, given)
			}
			return args(2, 50, "baseline and candidate")(c, given)
		},
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, given []string) error {
			d, err := a.compareSides("compare", given, f)
			if err != nil {
				return err
			}
			return a.writeComparison(d, f)
		},
	}
	f.register(c)
	f.registerFiles(c)
	c.Flags().StringArrayVar(&f.windows, "window", nil,
		"compare this `window` of one side, like alone, with the other windows given; repeatable")
	return c
}

// compareSides reads the sides and compares them.
func (a *app) compareSides(phase string, given []string, f compareFlags) (*compare.Document, error) {
	if _, err := formatOf(a, phase, f.output, compareFormats); err != nil {
		return nil, err
	}
	if !(f.threshold >= 0 && f.threshold < 1) {
		return nil, exit.Usagef("", "%s: --threshold: %g is not a share of at least 0 and below 1", phase, f.threshold)
	}
	if !(f.confidence > 0.5 && f.confidence < 1) {
		return nil, exit.Usagef("", "%s: --confidence: %g does not lie between 0.5 and 1", phase, f.confidence)
	}
	files, err := a.ofTables(phase, given, f)
	if err != nil {
		return nil, err
	}
	if files && len(f.windows) > 0 {
		return nil, exit.Usagef("", "%s: %q is a file: --window is for runs", phase, given[0])
	}
	if files {
		return a.compareTables(phase, given, f)
	}
	var sides []compare.Side
	for _, g := range given {
		s, err := a.side(phase, g)
		if err != nil {
			return nil, err
		}
		sides = append(sides, s)
	}
	if len(f.windows) > 0 {
		if sides, err = windowSides(phase, sides[0], f.windows); err != nil {
			return nil, err
		}
	}
	better, err := betterOf(phase, f.better)
	if err != nil {
		return nil, err
	}
	o := f.options()
	if o.Better, err = better.ofRuns(phase); err != nil {
		return nil, err
	}
	d, err := compare.Of(sides, o)
	var refusal *compare.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, exit.Errorf(exit.Refused, "say what differs on purpose with --vary NAME, or insist with --anyway",
			"%w", err)
	case err != nil:
		return nil, exit.Errorf(exit.Failed, "", "%w", err)
	}
	if len(f.windows) > 0 {
		d.Order = nil // every run holds both, in one order
		d.Notes = append(d.Notes, "The sides are windows of the same runs, one after the other: a drift, a cache "+
			"that fills or a device that ages looks like a difference between them.")
	}
	return d, nil
}

// windowSides makes the windows of a side's runs the sides.
func windowSides(phase string, s compare.Side, names []string) ([]compare.Side, error) {
	var out []compare.Side
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, exit.Usagef("", "%s: --window %q is given twice", phase, name)
		}
		side := compare.Side{Name: name}
		for _, r := range s.Runs {
			part, err := r.Window(name)
			if err != nil {
				return nil, exit.Errorf(exit.Failed, "the report shows the windows of each workload side by side", "%w",
					err)
			}
			side.Runs = append(side.Runs, part)
		}
		out = append(out, side)
	}
	return out, nil
}

func (a *app) writeComparison(d *compare.Document, f compareFlags) error {
	write, err := formatOf(a, "compare", f.output, compareFormats)
	if err != nil {
		return err
	}
	if f.file != "" && f.file != "-" && d.Marked != "" {
		visible.Fprintf(a.err, "%s\n", d.Marked)
	}
	return a.print("compare", "comparison", f.output, func(w io.Writer) error { return write(w, d) })
}

// side reads the runs of one side.
func (a *app) side(phase, given string) (compare.Side, error) {
	if name, ok := strings.CutPrefix(given, "@"); ok {
		b, err := a.readBaseline(phase, name)
		if err != nil {
			return compare.Side{}, err
		}
		s, err := a.side(phase, strings.Join(b.Runs, ","))
		s.Name = given
		return s, err
	}
	if s, ok, err := a.experimentSide(phase, given); ok || err != nil {
		return s, err
	}
	s := compare.Side{Name: given}
	for name := range strings.SplitSeq(given, ",") {
		r, err := a.comparedRun(phase, strings.TrimSpace(name))
		if err != nil {
			return s, err
		}
		s.Runs = append(s.Runs, r)
	}
	if len(s.Runs) == 1 {
		s.Name = s.Runs[0].Manifest.RunID
	}
	return s, nil
}

// comparedRun reads what is compared of one run.
func (a *app) comparedRun(phase, name string) (compare.Run, error) {
	folder, data, err := a.runData(phase, name)
	if err != nil {
		return compare.Run{}, err
	}
	m := folder.Manifest()
	if m.RunID == "" {
		m.RunID = filepath.Base(folder.Dir())
	}
	return compare.Run{Manifest: m, Data: data}, nil
}
