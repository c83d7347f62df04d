package judge

import (
	"io"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/report"
)

// formats are the documents a report can be.
var Formats = map[string]func(io.Writer, *report.Document) error{
	"html": report.HTML, "json": report.JSON, "csv": report.CSV, "md": report.Markdown,
	"text": report.Text, console.ParquetFormat: report.Parquet,
}

func (sd *Sides) ReportCommand() *cobra.Command {
	var to console.Output
	var again, redact bool
	c := &cobra.Command{
		Use: "report RUN", Short: "Print the report of a run as text, HTML, JSON, CSV, Parquet or Markdown", Args: console.Args(1, 1, "run"),
		Long: "Report makes the report of a run from its folder alone; the target is not needed. It is text, and in a file\n(--output) a page, unless -o says otherwise. What was measured " +
			"but not yet\ncollected, because the run was stopped or killed, is collected first. Of a run that goes on it tells what there is\nso far, and changes nothing.\n\nWith --redact, names of hosts and users, addresses, serial numbers, the kernel's command line and paths under home are\nreplaced wherever they stand, and the run's name, tags and note are left out, for reports that leave the house; the run folder stays as it is.\n\nThe CSV and the Parquet of an experiment have " +
			"a row for each run and a column for each factor.\n\n" + runs.RunHelp,
		Example: `  plimsoll report latest --output report.html
  plimsoll report latest -o md
  plimsoll report plimsoll-runs/20261121-204500-db-colocation-7f3a -o csv --output run.csv`,
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.report(given[0], to, again, redact)
		},
	}
	to.RegisterByPlace(c, "csv", "json", "md", console.ParquetFormat)
	c.Flags().BoolVar(&again, "again", false, "collect and analyse anew, from the raw output and the metrics")
	sd.trusting(c)
	c.Flags().BoolVar(&redact, "redact", false, "replace what names a host, an address, a disk or a user")
	return c
}

func (sd *Sides) report(run string, to console.Output, again, redact bool) error {
	if dir, ok := sd.FindExperiment(run); ok {
		if err := apart(dir, to, redact); err != nil {
			return err
		}
		return sd.reportExperiment(dir, to, redact)
	}
	write, err := console.FormatOf(sd.Console, "report", to, Formats)
	if err != nil {
		return err
	}
	folder, err := sd.OpenRun("report", run)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := apart(folder.Dir(), to, redact); err != nil {
		return err
	}
	if err := runs.Intact(sd.Console, "report", folder, sd.trust); err != nil {
		return err
	}
	read, err := sd.Complete(folder, again)
	if err != nil {
		return err
	}
	doc, err := runs.DocumentOf(sd.Console, "report", folder, read)
	if err != nil {
		return err
	}
	if redact {
		doc = report.Redacted(doc, folder.Dir())
	}
	return sd.Print("report", "report", to, func(w io.Writer) error { return write(w, doc) })
}

// apart is an error where a redacted document would lie beside what it was made from.
func apart(dir string, to console.Output, redact bool) error {
	if _, beside := regular.Inside(dir, to.File); redact && to.File != "" && beside {
		return exit.Usagef("write it elsewhere, and hand on that file alone",
			"report: --redact: beside %q lie raw output and logs, which are as they were", to.File)
	}
	return nil
}
