package judge

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/catalogue"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// CatalogueCommand keeps and shows what systems gave for a load.
func (sd *Sides) CatalogueCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "catalogue", Short: "Set runs and marks beside recorded systems that did the same", Args: console.NeedVerb,
		Long: `Reports set a load beside recorded systems that did the same: published figures, which come with the program, and
what you add. Alike is a load only when every condition of its kind is known of both and equal: of a mark its scenario,
workload, limits and condition.

Records of your own lie in .catalogue in the folder of run folders, a file each. It may be a link to a folder of a
team's, or a clone of a git repository.`,
		RunE: console.Help,
	}
	c.AddCommand(sd.catalogueAdd(), sd.catalogueList(), sd.catalogueShow())
	return c
}

func (sd *Sides) catalogueAdd() *cobra.Command {
	var system, note, to string
	var replace bool
	c := &cobra.Command{
		Use: "add RUN", Short: "Record what a run gave", Args: console.Args(1, 1, "run"),
		Example: `  plimsoll catalogue add latest --system "rack 7, new firmware"
  plimsoll catalogue add latest --to /team/plimsoll-catalogue`,
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			into := cmp.Or(to, sd.catalogueDir())
			if err := catalogue.Fits(into, system, note); err != nil {
				return exit.Errorf(exit.Usage, "", "catalogue add: %w", err)
			}
			r, _, err := sd.recordOf("catalogue add", given[0])
			if err != nil {
				return err
			}
			if len(r.Done) == 0 {
				return exit.Errorf(exit.Failed, "", "catalogue add: %s: nothing in it can be set beside others: it has no mark, "+
					"and no load was measured whose conditions are all known", given[0])
			}
			r.System, r.Note = cmp.Or(system, r.System), note
			path, err := catalogue.Add(into, r, replace)
			if err != nil {
				return exit.Errorf(exit.Failed, "", "catalogue add: %w", err)
			}
			if sd.JSON {
				return sd.PrintJSON(r)
			}
			_, err = visible.Fprintf(sd.Out, "%s\n", recorded(r, path))
			return err
		},
	}
	sd.trusting(c)
	c.Flags().StringVar(&system, "system", "", "the `name` of what was measured (default: that of the cluster)")
	c.Flags().StringVar(&note, "note", "", "a `text` about it")
	c.Flags().StringVar(&to, "to", "", "the `folder` of records (default: .catalogue beside the runs)")
	c.Flags().BoolVar(&replace, "replace", false, "write it in place of another record of the same run")
	return c
}

// recorded says what was added, and where it lies.
func recorded(r catalogue.Record, path string) string {
	of := ""
	if slices.ContainsFunc(r.Done, func(d catalogue.Done) bool {
		return slices.ContainsFunc(d.Figures, func(f catalogue.Figure) bool { return f.Unfinished })
	}) {
		of = ", of an unfinished search, whose mark may change"
	}
	return fmt.Sprintf("%s of %s%s: %s", unit.Plural(len(r.Done), "load"), r.System, of, path)
}

// recordOf is the record of a run, or of a search for a mark.
func (sd *Sides) recordOf(phase, given string) (r catalogue.Record, names []string, err error) {
	search, found, err := sd.searchSide(phase, given)
	if err != nil {
		return r, nil, err
	}
	if found {
		r, names = report.RecordOfSearch(search)
		return r, names, nil
	}
	folder, err := sd.OpenRun(phase, given)
	if err != nil {
		return r, nil, err
	}
	if err := runs.Intact(sd.Console, phase, folder, sd.trust); err != nil {
		return r, nil, err
	}
	if _, err = sd.DataOf(folder, false); err == nil {
		r, names, err = report.RecordOf(folder)
	}
	if err != nil {
		err = exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return r, names, err
}

// amongRecorded say where the marks of a search stand.
func (sd *Sides) amongRecorded(s compare.Search) (said []string) {
	own, names := report.RecordOfSearch(s)
	if len(own.Done) == 0 {
		return nil
	}
	for _, b := range catalogue.Set(own, names, sd.records()) {
		said = append(said, report.SayBeside(b))
	}
	return said
}

func (sd *Sides) catalogueDir() string { return filepath.Join(sd.RunsDir, result.CatalogueDir) }

// records are all there are, and what could not be read is said.
func (sd *Sides) records() []catalogue.Record {
	list, problems := catalogue.All(sd.catalogueDir())
	for _, p := range problems {
		visible.Fprintf(sd.Err, "warning: %v\n", p)
	}
	return list
}

func (sd *Sides) catalogueList() *cobra.Command {
	return &cobra.Command{
		Use: "list [WORD...]", Short: "List the records, or those with all words", Args: console.Args(0, 20, "words"),
		Example: "  plimsoll catalogue list\n  plimsoll catalogue list iozone eMMC --json",
		RunE: func(_ *cobra.Command, words []string) error {
			list := sd.records()
			list = slices.DeleteFunc(list, func(r catalogue.Record) bool { return !r.Has(words) })
			if sd.JSON {
				return sd.PrintJSON(list)
			}
			t := terminal.Table{Head: []string{"SYSTEM", "LOADS", "DATE", "SOURCE"}}
			for _, r := range list {
				date := "–"
				if !r.Date.IsZero() {
					date = r.Date.Format("2006-01-02")
				}
				t.Add(r.System, strconv.Itoa(len(r.Done)), date, r.Source)
			}
			return t.Write(sd.Out)
		},
	}
}

func (sd *Sides) catalogueShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show RUN", Short: "Show where a run stands among recorded systems", Args: console.Args(1, 1, "run"),
		Example:           "  plimsoll catalogue show latest",
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			own, names, err := sd.recordOf("catalogue show", given[0])
			if err != nil {
				return err
			}
			all := sd.records()
			beside := catalogue.Set(own, names, all)
			if sd.JSON {
				return sd.PrintJSON(beside)
			}
			if len(beside) == 0 {
				_, err := visible.Fprintf(sd.Out, "Of %s none is of a load like one of these.\n",
					unit.Plural(len(all), "record"))
				return err
			}
			for _, b := range beside {
				visible.Fprintf(sd.Out, "%s\nAlike: %s.\n\n", report.SayBeside(b), b.Alike)
			}
			return nil
		},
	}
	sd.trusting(c)
	return c
}
