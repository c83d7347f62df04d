package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/result"
	"plimsoll/unit"
)

// formats are the documents a report can be.
var formats = map[string]func(io.Writer, *report.Document) error{
	"html": report.HTML, "json": report.JSON, "csv": report.CSV, "md": report.Markdown,
	"text": report.Text, console.ParquetFormat: report.Parquet,
}

func (sd *sides) reportCommand() *cobra.Command {
	var to console.Output
	var again, redact, trust bool
	c := &cobra.Command{
		Use: "report RUN", Short: "Print the report of a run as text, HTML, JSON, CSV, Parquet or Markdown", Args: console.Args(1, 1, "run"),
		Long: "Report makes the report of a run from its folder alone; the target is not needed. It is text, and in a file\n(--output) a page, unless -o says otherwise. What was measured " +
			"but not yet\ncollected, because the run was stopped or killed, is collected first. Of a run that goes on it tells what there is\nso far, and changes nothing.\n\nWith --redact, names of hosts and users, addresses, serial numbers, the kernel's command line and paths under home are\nreplaced wherever they stand, for reports that leave the house; the run folder stays as it is.\n\nThe CSV and the Parquet of an experiment have " +
			"a row for each run and a column for each factor.\n\n" + runHelp,
		Example: `  plimsoll report latest --output report.html
  plimsoll report latest -o md
  plimsoll report plimsoll-runs/20261121-204500-db-colocation-7f3a -o csv --output run.csv`,
		ValidArgsFunction: sd.completeRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.report(given[0], to, again, redact, trust)
		},
	}
	to.RegisterByPlace(c, "csv", "json", "md", console.ParquetFormat)
	c.Flags().BoolVar(&again, "again", false, "collect and analyse anew, from the raw output and the metrics")
	c.Flags().BoolVar(&trust, "trust", false, trustHelp)
	c.Flags().BoolVar(&redact, "redact", false, "replace what names a host, an address, a disk or a user")
	return c
}

func (sd *sides) report(run string, to console.Output, again, redact, trust bool) error {
	if dir, ok := sd.findExperiment(run); ok {
		if redact {
			return exit.Usagef("make a report of each of its runs: plimsoll report RUN --redact",
				"report: --redact: the result of an experiment links to the folders of its runs, and those are as they were")
		}
		return sd.reportExperiment(dir, to, trust)
	}
	write, err := console.FormatOf(sd.Console, "report", to, formats)
	if err != nil {
		return err
	}
	folder, err := sd.openRun("report", run)
	if err != nil {
		return err
	}
	defer folder.Close()
	if _, beside := inside(folder.Dir(), to.File); redact && to.File != "" && beside {
		return exit.Usagef("write it elsewhere, and hand on that file alone",
			"report: --redact: beside %q lie raw output and logs, which are as they were", to.File)
	}
	if err := intact(sd.Console, "report", folder, trust); err != nil {
		return err
	}
	if err := sd.complete(folder, again); err != nil {
		return err
	}
	doc, err := documentOf(sd.Console, "report", folder)
	if err != nil {
		return err
	}
	if redact {
		doc = report.Redacted(doc, folder.Dir())
	}
	return sd.Print("report", "report", to, func(w io.Writer) error { return write(w, doc) })
}

const trustHelp = "go on where files of a run are not as their sums say, with a warning for each"

// intact refuses a run with documents that are not as their sums say, unless they are trusted: then it warns of them.
func intact(con *console.Console, phase string, folder *result.Folder, trust bool) error {
	bad := folder.VerifySums()
	if len(bad) == 0 {
		return nil
	}
	id := filepath.Base(folder.Dir())
	if !trust {
		return exit.Errorf(exit.Failed, "put back a copy that is whole, or go on all the same with --trust",
			"%s: %s is damaged: %s", phase, id, console.Some(bad))
	}
	for _, b := range bad {
		visible.Fprintf(con.Err, "warning: %s: %s is damaged: %s\n", phase, id, b)
	}
	return nil
}

// document is the report of a run; of one that goes on, what there is so far, which leaves its folder as it is.
func documentOf(con *console.Console, phase string, folder *result.Folder) (*report.Document, error) {
	if folder.Manifest().Status != result.StatusExecuting {
		doc, err := report.Build(folder)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
		return doc, nil
	}
	ctx, stop := con.Interruptible()
	defer stop()
	store, problem := collect.OpenMetricsSoFar(ctx, folder)
	data, err := collect.SoFar(ctx, folder, store)
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	if ctx.Err() != nil {
		return nil, exit.Errorf(exit.Interrupted, "", "%s: %w", phase, context.Cause(ctx))
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if problem != nil { // before its first point there may be no database that can be opened
		data.Problems = append(data.Problems, problem.Error())
	}
	doc, err := report.BuildSoFar(folder, data)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	doc.Problems = append(doc.Problems, data.Problems...)
	return doc, nil
}

// complete collects and analyses a run of which that is missing, or all over again. A run that is going on is left as
// it is. What cannot be collected is said and does not prevent a report of the rest.
func (st *store) complete(folder *result.Folder, again bool) error {
	_, dataErr := folder.Data()
	_, findingsErr := folder.Findings()
	m := folder.Manifest()
	if m.Status == result.StatusExecuting {
		visible.Fprintf(st.Err, "warning: report: %s is going on: the report shows what there is so far\n", m.RunID)
		return nil
	}
	settled := m.Collected.State != "pending" && m.Status != result.StatusInterrupted
	if dataErr == nil && findingsErr == nil && settled && !again {
		return nil
	}
	switch err := folder.TryLock(); {
	case errors.Is(err, result.ErrBusy):
		visible.Fprintf(st.Err, "warning: report: another process is collecting %s: the report shows what there is "+
			"so far\n", m.RunID)
		return nil
	case errors.Is(err, fs.ErrPermission):
		visible.Fprintf(st.Err, "warning: report: %s cannot be written, so nothing is collected: %v\n", folder.Dir(),
			err)
		return nil
	case err != nil:
		return exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	ctx, stop := st.Interruptible()
	defer stop()
	if err := st.recollect(ctx, folder); err != nil {
		var gone *goneError
		switch {
		case ctx.Err() != nil:
			return exit.Errorf(exit.Interrupted, "", "report: %w", context.Cause(ctx))
		case errors.As(err, &gone):
			return exit.Errorf(exit.Failed, "leave out --again: the report is made from what was collected before",
				"report: %w", err)
		}
		visible.Fprintf(st.Err, "warning: report: %v\n", err)
	}
	return nil
}

// goneError says that a folder no longer holds the raw output from which its data were made.
type goneError struct{ what []string }

func (e *goneError) Error() string {
	return "the folder's raw output or metrics no longer hold what was collected of them before, which is kept: " +
		console.Some(e.what)
}

// lost compares what was collected before and now; nil when nothing is missing now.
func lost(before, now *result.Data) *goneError {
	var what []string
	compared := func(name string, count func(*result.Data) uint64) {
		if b, n := count(before), count(now); n < b {
			what = append(what, fmt.Sprintf("%s %s then, %s now", unit.Thousands(int64(b)), name,
				unit.Thousands(int64(n))))
		}
	}
	compared("operations", func(d *result.Data) (sum uint64) {
		for _, w := range d.Workloads {
			for _, o := range w.Ops {
				if w.VM == "" {
					sum += o.Count
				}
			}
		}
		return sum
	})
	compared("series", func(d *result.Data) uint64 { return uint64(len(d.Series)) })
	compared("results with data", func(d *result.Data) (n uint64) {
		for _, p := range d.Panels {
			if len(p.Series) > 0 {
				n++
			}
		}
		return n
	})
	compared("phases, annotations and faults", func(d *result.Data) uint64 {
		return uint64(len(d.Phases) + len(d.Events))
	})
	// The time that has values, whatever their step: a few at the edges may be placed otherwise by another version.
	if b, n := covered(before), covered(now); n < b*49/50 {
		what = append(what, fmt.Sprintf("results over %v then, %v now", b, n))
	}
	if what == nil {
		return nil
	}
	return &goneError{what}
}

// covered is for how long the results have values, all series together.
func covered(d *result.Data) (sum time.Duration) {
	for _, p := range d.Panels {
		for _, s := range p.Series {
			for _, v := range s.Values {
				if v != nil {
					sum += time.Duration(s.Step * float64(time.Second))
				}
			}
		}
	}
	return sum.Round(time.Second)
}

// collected makes data from what a run folder holds. It refuses, with a goneError, to make less than what was made of
// it before, or other than that, because the files of then are damaged; where there is nothing from before, what is
// damaged is among the data's problems.
func (st *store) collected(ctx context.Context, folder *result.Folder) (*result.Data, error) {
	damaged := folder.VerifyHashes(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	before, unread := folder.Data()
	if unread == nil && damaged != nil {
		return nil, &goneError{damaged}
	}
	data, err := collect.Collect(ctx, folder, st.Drivers.Replays(folder.Manifest().Target))
	if data == nil {
		return nil, err
	}
	data.Problems = append(damaged, data.Problems...)
	if unread == nil {
		if gone := lost(before, data); gone != nil {
			return nil, gone
		}
	}
	return data, err
}

// recollect makes data and findings from what a run folder holds. Data that were collected before are not replaced by
// less.
func (st *store) recollect(ctx context.Context, folder *result.Folder) error {
	data, err := st.collected(ctx, folder)
	if data == nil {
		return err
	}
	errs := []error{err, folder.WriteData(data)}
	errs = append(errs, judge(ctx, folder, data))
	errs = append(errs, folder.Update(func(m *result.Manifest) {
		switch verdict := run.Collected(data); {
		case err != nil:
			m.Collected = result.Verdict{State: "partly", Reason: err.Error()}
		case m.Collected.State == "pending" || m.Collected.State == "" || verdict.State != "yes":
			m.Collected = verdict
		}
	}))
	if len(folder.Manifest().Hashes) == 0 { // of a run that was killed
		errs = append(errs, folder.Hash(ctx))
	}
	return errors.Join(errs...)
}
