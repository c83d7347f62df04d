// Package judge is the commands that judge what was measured: analyze, steady, usl and changes one side, compare,
// baseline and history several. A side is a run, repeats of it, an experiment, a baseline or a table of any tool.
package judge

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/unit"
)

// Sides reads what is compared and judged: runs, experiments, baselines, tables.
type Sides struct {
	*runs.Store
	trust  bool     // --trust
	unread []string // why runs of an experiment that measured are not in its document
	where  []string // --where, of what reads tables

	decimal string // --decimal, the same
}

// trusting adds the flag that goes on with damaged runs.
func (sd *Sides) trusting(c *cobra.Command) {
	c.Flags().BoolVar(&sd.trust, "trust", false, runs.TrustHelp)
}

// WriteResult writes and prints what has come out so far; whole says that no run is left.
func (sd *Sides) WriteResult(folder *experiment.Folder, whole bool, failedThresholds []string) error {
	doc, err := sd.ExperimentDocument(folder, compare.DefaultThreshold)
	if err != nil {
		if !whole {
			return nil // nothing has measured yet, and why was said
		}
		return exit.Errorf(exit.Failed, "", "%w", err)
	}
	var errs []error
	doc.Beside = true
	err = outfile.Replace(folder.ReportPath(), func(w io.Writer) error { return report.ExperimentHTML(w, doc) })
	if err != nil {
		errs = append(errs, exit.Errorf(exit.Failed, "", "report: %w", err))
	}
	if sd.JSON {
		errs = append(errs, report.ExperimentJSON(sd.Out, doc))
	} else {
		errs = append(errs, report.ExperimentText(sd.Out, doc))
		visible.Fprintf(sd.Out, "report: %s\n", folder.ReportPath())
	}
	if len(failedThresholds) > 0 {
		errs = append(errs, exit.Errorf(exit.Threshold, "", "threshold: %s", strings.Join(failedThresholds, "; ")))
	}
	if n := len(doc.Failed); n > 0 && whole {
		errs = append(errs, exit.Errorf(exit.Failed, "plimsoll resume "+folder.Record().ID+" makes them again",
			"run: %s of the experiment failed", unit.Plural(n, "run")))
	}
	return errors.Join(errs...)
}

// CompareServed compares runs and experiments by their folders, under the names that are given.
func (sd *Sides) CompareServed(chosen []web.Side, o compare.Options) (*compare.Document, error) {
	searches, err := sd.searchesAmong("compare", chosen)
	if err != nil {
		return nil, err
	}
	if len(searches) > 0 {
		return compare.OfSearches(searches, o)
	}
	var sides []compare.Side
	var dirs []string
	for _, c := range chosen {
		side, err := sd.side("compare", c.Dir)
		if err != nil {
			return nil, err
		}
		side.Name = c.Name
		sides, dirs = append(sides, side), append(dirs, c.Dir)
	}
	d, err := compare.Of(sides, o)
	if err == nil {
		err = sd.overCurves(d, dirs)
	}
	return d, err
}
