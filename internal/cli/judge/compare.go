package judge

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/web"
	"plimsoll/result"
)

// compareFormats are the documents a comparison can be.
var compareFormats = map[string]func(io.Writer, *compare.Document) error{
	"html": report.CompareHTML, "json": report.CompareJSON, "md": report.CompareMarkdown, "text": report.CompareText,
}

// compareFlags say how runs are compared.
type compareFlags struct {
	gate bool // something is let through or held back by the verdicts
	console.Output
	threshold  float64
	confidence float64
	vary       []string
	anyway     bool
	trust      bool
	better     []string // of columns of files
	columns    []string
	windows    []string // of runs, as sides
	paired     bool     // rows of files
	cores      []string // of the servers of sides
	at         string   // where courses are laid over each other
	redact     bool
}

func (f *compareFlags) register(c *cobra.Command) {
	f.Output.Register(c, "text", "html", "json", "md")
	flags := c.Flags()
	flags.Float64Var(&f.threshold, "threshold", compare.DefaultThreshold,
		"relative `difference` that matters, 0.05 for 5 %")
	flags.Float64Var(&f.confidence, "confidence", 0.95, "`level` of the intervals")
	flags.StringArrayVar(&f.vary, "vary", nil, "the `fact` that differs on purpose, like kernel or \"variable "+
		"block_size\"; repeatable")
	flags.BoolVar(&f.trust, "trust", false, runs.TrustHelp)
	flags.BoolVar(&f.anyway, "anyway", false, "compare sides that differ in what should be equal; the first line "+
		"says so")
}

// registerFiles adds the flags that say what the columns of files are.
func (f *compareFlags) registerFiles(c *cobra.Command) {
	f.registerBetter(c)
	c.Flags().
		StringArrayVar(&f.columns, "column", nil, "of files take this `column` only: its name, or its number from 1; repeatable")
	f.registerPaired(c)
}

func (f *compareFlags) registerPaired(c *cobra.Command) {
	c.Flags().
		BoolVar(&f.paired, "paired", false, "rows of one number in files were measured side by side, one of each side")
}

func (f *compareFlags) registerBetter(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.better, "better", nil,
		"which `way` is good: of columns of files higher, lower or COLUMN=lower, of measures of runs MEASURE=lower; "+
			"repeatable")
}

func (f *compareFlags) options() compare.Options {
	o := compare.Options{
		Confidence: f.confidence,
		Threshold:  f.threshold,
		Vary:       f.vary,
		Anyway:     f.anyway,
		Paired:     f.paired,
		Gate:       f.gate && len(f.windows) == 0,
		At:         f.at,
	}
	if o.Threshold == 0 {
		o.Threshold = -1
	}
	return o
}

const sideHelp = `A side is a RUN; repeats, RUN,RUN,...; an experiment, whose cells are compared one by one; cells of one, as
EXPERIMENT:block_size=4k; or a baseline, @NAME.`

func (sd *Sides) CompareCommand() *cobra.Command {
	var f compareFlags
	var g gate
	c := &cobra.Command{
		Use:   "compare BASELINE CANDIDATE...",
		Short: "Compare runs or files of repeats: what changed, by how much, and how sure that is",
		Long: `Compare compares each further side with the first. ` + sideHelp + `

It refuses sides that differ in what should be equal (kernel, firmware, fio, scenario, variables, scales, prefill,
content, jobs, working set to memory), names each fact with its values, and exits with 4. Say what differs on
purpose with --vary, or insist with --anyway.

With two runs or more on a side the intervals cover the variation between repeats, a single one against several that
of a further one of them; with one on each side, only that within the run: a gate then exits with 7 unless
the change is gross, and says how many runs would do. They are widened for the number of measures. A verdict is better or worse when the whole
interval lies beyond the threshold, same when all of it lies within, else inconclusive. A gross change between two
single runs (a factor of 2, of percentiles of few operations 3) is reported all the same, with what is certain of it and what is not. With
--fail-on worse,inconclusive the exit code is 5 when a verdict is among these.

Repeats that drift, or depend on the ones before, are seen by the order of the runs, or of the rows of a file:
intervals then allow for it, or are refused, and say so with the number.

With --phase the sides are phases of one RUN, or of repeats of it, as the report names them: before a co-running
workload or an annotated moment, with it, and after it.

Searches of "plimsoll mark" are compared by their marks, each with its interval, under every condition that both have.

All sides can instead be files of repeats measured by any tool: CSV, columns separated by blanks, JSON; "-" is
standard input. A column is a measure, a row is a repeat, and sides may have unequally many. Columns of times and of
numbers of runs are no measures; with times a minute apart or less the rows are moments of one run, and taken as such.
With --paired rows of one number were measured side by side.

Better and worse are said where it is known which way is good: of what a load generator declares so, and of rates,
times, percentiles and failures by names and units of known words (iops, read_MB/s; p99_ms, mean latency; errors,
retries). Of other names, as rejected_qps, a guess is shown and nothing is judged by it: say it, --better
rejected_qps=lower.`,
		Example: `  plimsoll compare 20261121-2045 latest
  plimsoll compare run1,run2,run3 run4,run5,run6 --vary kernel --threshold 0.03
  plimsoll compare @release latest -o html --output compare.html
  plimsoll compare latest --phase alone --phase "with DSS"
  plimsoll compare before.csv after.csv --better p99=lower`,
		Args: func(c *cobra.Command, given []string) error {
			if len(f.windows) > 0 {
				if len(f.windows) < 2 || len(given) > 1 {
					return exit.Usagef(`as in: plimsoll compare latest --phase alone --phase "with DSS"`,
						"compare: --phase wants one side and two phases of it or more")
				}
				return console.Args(1, 1, "run")(c, given)
			}
			return console.Args(2, 50, "baseline and candidate")(c, given)
		},
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if err := g.check("compare"); err != nil {
				return err
			}
			f.gate = slices.Contains(g.failOn, failWorse) || slices.Contains(g.failOn, failInconclusive)
			d, err := sd.compareSides("compare", given, f)
			if err != nil {
				return err
			}
			if f.redact {
				d = report.RedactedComparison(d, sd.RunsDir)
			}
			return sd.judge("compare", d, f, g)
		},
	}
	f.register(c)
	sd.readingTables(c)
	f.registerFiles(c)
	g.register(c)
	c.Flags().StringSliceVar(&f.cores, "cores", nil, "physical `cores` of a side's servers, where the runs do not know: "+
		"A=8,B=8/16 for 8 cores of the baseline, and 8 with 16 hyper-threads of the first candidate; /16: vCPUs, cores unknown")
	c.Flags().StringArrayVar(&f.windows, "phase", nil,
		"compare this `phase` of one side, like alone, with the other phases given; repeatable")
	c.Flags().StringArrayVar(&f.windows, "window", nil, "phases, by their former name")
	_ = c.Flags().MarkHidden("window")
	c.Flags().BoolVar(&f.redact, "redact", false, "replace what names a host, an address, a disk or a user, and "+
		"call sides by their part")
	c.Flags().StringVar(&f.at, "at", "", "in the page lay the runs' courses over each other at this `moment` that all "+
		"have: the words of a stretch or a fault, or fault for the first (default: the beginning)")
	return c
}

// compareSides reads the sides and compares them.
func (sd *Sides) compareSides(phase string, given []string, f compareFlags) (*compare.Document, error) {
	if _, err := console.FormatOf(sd.Console, phase, f.Output, compareFormats); err != nil {
		return nil, err
	}
	if !(f.threshold >= 0 && f.threshold < 1) {
		return nil, exit.Usagef("", "%s: --threshold: %g is not a share of at least 0 and below 1", phase, f.threshold)
	}
	if !(f.confidence > 0.5 && f.confidence < 1) {
		return nil, exit.Usagef("", "%s: --confidence: %g does not lie between 0.5 and 1", phase, f.confidence)
	}
	sd.trust = f.trust
	files, err := sd.ofTables(phase, given, f)
	if err != nil {
		return nil, err
	}
	if files && (len(f.windows) > 0 || f.at != "" || f.redact) {
		return nil, exit.Usagef("", "%s: %q is a file: --phase, --at and --redact are for runs", phase, given[0])
	}
	if files {
		return sd.compareTables(phase, given, f)
	}
	if d, found, err := sd.compareSearches(phase, given, f); found || err != nil {
		return d, err
	}
	var sides []compare.Side
	for _, g := range given {
		s, err := sd.side(phase, g)
		if err != nil {
			return nil, err
		}
		if f.redact {
			s.Name = web.PartOf(len(sides))
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
	if o.Cores, err = coresOf(phase, f.cores, len(sides)); err != nil {
		return nil, err
	}
	d, err := compare.Of(sides, o)
	if err == nil {
		err = sd.overCurves(d, given)
	}
	if err != nil {
		return nil, unlikeSides(err)
	}
	if len(f.windows) > 0 {
		d.Order = nil // every run holds both, in one order
		d.Notes = append(d.Notes, "The sides are phases of the same runs, one after the other: a drift, a cache "+
			"that fills or a device that ages looks like a difference between them.")
	}
	return d, nil
}

// unlikeSides gives an error of a comparison its exit code.
func unlikeSides(err error) error {
	var refusal *compare.Refusal
	if errors.As(err, &refusal) {
		return exit.Errorf(exit.Refused, "say what differs on purpose with --vary NAME, or insist with --anyway", "%w",
			err)
	}
	return exit.Errorf(exit.Failed, "", "%w", err)
}

// coresOf reads --cores: the sides are A, B, ... in their order.
func coresOf(phase string, given []string, sides int) ([]compare.Cores, error) {
	out := make([]compare.Cores, sides)
	var errs []error
	for _, g := range given {
		side, text, _ := strings.Cut(g, "=")
		i := -1
		if len(side) == 1 {
			i = int(strings.ToUpper(side)[0]) - 'A'
		}
		if i < 0 || i >= sides {
			errs = append(errs, exit.Usagef("", "%s: --cores %s: want a side from A to %c, as in A=8,B=8/16", phase, g,
				'A'+min(sides, 26)-1))
			continue
		}
		c, err := compare.ReadCores(text)
		if err != nil {
			errs = append(errs, exit.Usagef("", "%s: --cores %s: %w", phase, g, err))
		}
		out[i] = c
	}
	return out, errors.Join(errs...)
}

// windowSides makes the windows of a side's runs the sides.
func windowSides(phase string, s compare.Side, names []string) ([]compare.Side, error) {
	var out []compare.Side
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, exit.Usagef("", "%s: --phase %q is given twice", phase, name)
		}
		side := compare.Side{Name: name}
		for _, r := range s.Runs {
			part, err := r.Window(name)
			if err != nil {
				return nil, exit.Errorf(exit.Failed, "the report shows the phases of each workload side by side", "%w",
					err)
			}
			side.Runs = append(side.Runs, part)
		}
		out = append(out, side)
	}
	return out, nil
}

func (sd *Sides) writeComparison(d *compare.Document, f compareFlags) error {
	write, err := console.FormatOf(sd.Console, "compare", f.Output, compareFormats)
	if err != nil {
		return err
	}
	if f.File != "" && f.File != "-" && d.Marked != "" {
		visible.Fprintf(sd.Err, "%s\n", d.Marked)
	}
	if !f.redact {
		d.Links = sd.links(d, f.File)
	}
	return sd.Print("compare", "comparison", f.Output, func(w io.Writer) error { return write(w, d) })
}

// links are where the reports of the compared runs lie, as seen from the file that the comparison is written to. Runs
// that are not in the folder of run folders, such as those of experiments, have none.
func (sd *Sides) links(d *compare.Document, file string) map[string]string {
	if file == "" || file == "-" {
		return nil
	}
	out := map[string]string{}
	for _, s := range d.Sides {
		for _, id := range s.Runs {
			f, err := result.Open(filepath.Join(sd.RunsDir, id))
			if err != nil {
				continue
			}
			from, err := filepath.Abs(filepath.Dir(file))
			if err != nil {
				continue
			}
			to, err := filepath.Abs(f.ReportPath())
			if err != nil {
				continue
			}
			if rel, err := filepath.Rel(from, to); err == nil {
				out[id] = filepath.ToSlash(rel)
			}
		}
	}
	return out
}

// side reads the runs of one side.
func (sd *Sides) side(phase, given string) (compare.Side, error) {
	if name, ok := strings.CutPrefix(given, "@"); ok {
		b, err := sd.readBaseline(phase, name)
		if err != nil {
			return compare.Side{}, err
		}
		s, err := sd.side(phase, strings.Join(b.Runs, ","))
		s.Name = given
		return s, err
	}
	if s, ok, err := sd.experimentSide(phase, given); ok || err != nil {
		return s, err
	}
	s := compare.Side{Name: given}
	for name := range strings.SplitSeq(given, ",") {
		r, err := sd.comparedRun(phase, strings.TrimSpace(name))
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
func (sd *Sides) comparedRun(phase, name string) (compare.Run, error) {
	folder, data, err := sd.RunData(phase, name)
	if err != nil {
		return compare.Run{}, err
	}
	if err := runs.Intact(sd.Console, phase, folder, sd.trust); err != nil {
		return compare.Run{}, err
	}
	m := folder.Manifest()
	if m.RunID == "" {
		m.RunID = filepath.Base(folder.Dir())
	}
	found, err := folder.Findings()
	if err != nil {
		found = nil // its points are then not judged, which is said
	}
	return compare.Run{Manifest: m, Data: data, Findings: found}, nil
}
