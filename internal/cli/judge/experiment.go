package judge

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/report"
	"plimsoll/internal/run/experiment"
)

// experimentFormats are the documents the result of an experiment can be.
var experimentFormats = map[string]func(io.Writer, *compare.Experiment) error{
	"html": report.ExperimentHTML, "json": report.ExperimentJSON, "md": report.ExperimentMarkdown,
	"csv": report.ExperimentCSV, console.ParquetFormat: report.ExperimentParquet,
	"text": report.ExperimentText,
}

// ExperimentDocument evaluates an experiment as far as it has come.
func (sd *Sides) ExperimentDocument(folder *experiment.Folder, threshold float64) (*compare.Experiment, error) {
	r := folder.Record()
	progress, err := folder.Progress()
	if err != nil {
		return nil, err
	}
	d := compare.Design{ID: r.ID, Title: r.DisplayName, Summary: r.Summary, Order: r.Order, Repeats: r.Repeats,
		Planned: len(r.Sequence)}
	for _, f := range r.Factors {
		shown := compare.Factor{Name: f.Name}
		for _, l := range f.Levels {
			shown.Levels = append(shown.Levels, fmt.Sprint(l))
		}
		d.Factors = append(d.Factors, shown)
	}
	for _, planned := range r.Sequence {
		cell := r.Cell(planned.Cell)
		var levels []string
		for _, l := range cell.Levels {
			levels = append(levels, fmt.Sprint(l.Value))
		}
		unmade := func(reason string) {
			d.Failed = append(d.Failed, compare.Unmade{Cell: cell.Title(), Reason: reason, Levels: levels,
				Repeat: planned.Repeat, Sequence: planned.Sequence})
		}
		if reason, failed := progress.Failed[planned.Sequence]; failed {
			unmade(reason)
		}
		id, done := progress.Done[planned.Sequence]
		if !done {
			continue
		}
		run, err := sd.comparedRun("experiment", filepath.Join(folder.RunsDir(), id))
		if err != nil {
			unmade(err.Error())
			if !errors.Is(err, fs.ErrNotExist) { // somebody removed it
				sd.unread = append(sd.unread, err.Error())
			}
			continue
		}
		d.Made = append(d.Made, compare.Made{Run: run, Levels: levels, Repeat: planned.Repeat,
			Sequence: planned.Sequence})
	}
	o := compare.Options{Threshold: threshold}
	if threshold == 0 {
		o.Threshold = -1
	}
	x, err := compare.OfExperiment(d, o)
	if err == nil {
		err = rate(x, d, folder)
	}
	if err == nil && r.Mark != nil {
		var found markDocument
		if found, err = sd.markAnswer(folder); err == nil {
			x.OfSearch(found.Answer, found.Lines, found.Costs, r.Mark.Limits)
			if search := searchOf(folder, found); len(d.Made) > 0 {
				search.Run = d.Made[0].Run
				x.Recorded = sd.amongRecorded(search)
			}
		}
	}
	return x, err
}

// overCurves lays the curves of the sides over each other where all of them are whole experiments.
func (sd *Sides) overCurves(d *compare.Document, given []string) error {
	var sides []*compare.Experiment
	for _, g := range given {
		dir, ok := sd.FindExperiment(g)
		if !ok {
			return nil
		}
		folder, err := experiment.Open(dir)
		if err != nil {
			return err
		}
		x, err := sd.ExperimentDocument(folder, d.Threshold)
		if err != nil {
			return err
		}
		sides = append(sides, x)
	}
	d.OverCurves(sides)
	return nil
}

// reportExperiment prints the result of an experiment.
func (sd *Sides) reportExperiment(dir string, to console.Output, redact bool) error {
	write, err := console.FormatOf(sd.Console, "report of an experiment", to, experimentFormats)
	if err != nil {
		return err
	}
	folder, err := experiment.Open(dir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	if err := runs.Intact(sd.Console, "report", folder, sd.trust); err != nil {
		return err
	}
	doc, err := sd.ExperimentDocument(folder, compare.DefaultThreshold)
	if err != nil {
		return exit.Errorf(exit.Failed, "plimsoll resume "+folder.Record().ID+" makes what is missing", "report: %w",
			err)
	}
	if redact {
		doc = report.RedactedExperiment(doc, dir)
	}
	if err := sd.Print("report", "report", to, func(w io.Writer) error { return write(w, doc) }); err != nil {
		return err
	}
	if len(sd.unread) > 0 && !sd.trust {
		return exit.Errorf(exit.Failed, "put back copies that are whole, or go on all the same with --trust",
			"report: %s is without runs that did measure: %s", folder.Record().ID, console.FirstOf(sd.unread))
	}
	return nil
}

// experimentSide reads an experiment, or cells of one, as the side of a comparison: ID or ID:factor=level,factor=level.
func (sd *Sides) experimentSide(phase, given string) (compare.Side, bool, error) {
	name, cells, picked := strings.Cut(given, ":")
	dir, ok := sd.FindExperiment(name)
	if !ok {
		return compare.Side{}, false, nil
	}
	folder, err := experiment.Open(dir)
	if err != nil {
		return compare.Side{}, true, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if err := runs.Intact(sd.Console, phase, folder, sd.trust); err != nil {
		return compare.Side{}, true, err
	}
	r := folder.Record()
	want := map[string]string{}
	if picked {
		for pair := range strings.SplitSeq(cells, ",") {
			factor, level, ok := strings.Cut(pair, "=")
			if !ok || !slices.ContainsFunc(r.Factors, func(f experiment.Factor) bool { return f.Name == factor }) {
				return compare.Side{}, true, exit.Usagef("write EXPERIMENT:factor=level,factor=level",
					"%s: %q: %q is not a factor of %s with a level", phase, given, pair, r.ID)
			}
			want[factor] = level
		}
	}
	progress, err := folder.Progress()
	if err != nil {
		return compare.Side{}, true, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	s, order := compare.Side{Name: given}, map[string]int{}
	for _, c := range r.Cells {
		if label, fits := c.Without(want); fits {
			order[label] = c.Number
		}
	}
	for _, planned := range r.Sequence {
		id, done := progress.Done[planned.Sequence]
		rest, fits := r.Cell(planned.Cell).Without(want)
		if !done || !fits {
			continue
		}
		run, err := sd.comparedRun(phase, filepath.Join(folder.RunsDir(), id))
		if err != nil {
			return s, true, err
		}
		run.Cell, run.Factors = rest, slices.Sorted(maps.Keys(want))
		s.Runs = append(s.Runs, run)
	}
	slices.SortStableFunc(s.Runs, func(x, y compare.Run) int { return order[x.Cell] - order[y.Cell] })
	if len(s.Runs) == 0 {
		return s, true, exit.Errorf(exit.Failed, "", "%s: %q: no run of it has measured", phase, given)
	}
	return s, true, nil
}
