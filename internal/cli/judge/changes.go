package judge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/result"
	"plimsoll/unit"
)

func (sd *Sides) ChangesCommand() *cobra.Command {
	var column string
	var independent bool
	var significance float64
	c := &cobra.Command{
		Use:   "changes FILE|-|RUN...",
		Short: "Find where a history of results changes",
		Long: `Changes looks for the places where a series of values changes level, each with its significance by
permutation. A FILE (CSV, columns separated by blanks, JSON; "-" is standard input) holds one value per
row, the oldest first; every column of numbers is looked at by itself.

Two RUNs or more are a history too: the throughput and the percentiles of every workload are followed from
run to run in the order they were made. "all" stands for every run in --dir that has measured.

Separate runs are taken as independent of each other. Rows of a file may depend on the rows before, as the
points of one run do, and dependence looks like change: it is estimated and taken out, and where the two
cannot be separated the result is inconclusive. --independent says that there is none, as when every row is a run.`,
		Example: `  plimsoll changes history.csv --column p99
  plimsoll changes all --json
  plimsoll changes nightly.csv --independent`,
		Args:              console.Args(1, 1000, "file or runs"),
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.changes(given, column, change.Options{Independent: independent, Significance: significance})
		},
	}
	sd.readingTables(c)
	c.Flags().StringVar(&column, "column", "", "look at this `column` only: its name, or its number from 1")
	c.Flags().
		BoolVar(&independent, "independent", false, "rows do not depend on the rows before: each is a run of its own")
	c.Flags().Float64Var(&significance, "significance", 0.01, "`chance` of finding a change in a series without one")
	return c
}

// changed is the outcome for one series.
type changed struct {
	Name     string   `json:"name"`
	Values   int      `json:"values"`
	Changes  []shift  `json:"changes"`
	Unclear  int      `json:"cannot_tell,omitempty"` // places that look like changes and that dependence may have made
	Method   string   `json:"method"`
	Warnings []string `json:"warnings,omitempty"`
}

func (sd *Sides) changes(given []string, column string, o change.Options) error {
	var list []named
	var source string
	var err error
	if len(given) > 1 || given[0] == "all" {
		list, source, err = sd.history(given, column)
		o.Independent = true
	} else {
		list, source, err = sd.namedSeries("changes", given[0], column)
	}
	if err != nil {
		return err
	}
	out := []changed{}
	var errs []error
	for _, s := range list {
		r, err := change.Detect(s.values, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("changes: %s: %s: %w", source, s.name, err))
			continue
		}
		c := changed{
			Name:     s.name,
			Values:   len(s.values),
			Changes:  []shift{},
			Unclear:  r.Wanders,
			Method:   r.Method,
			Warnings: r.Warnings,
		}
		for _, p := range r.Points {
			v := shiftOf(p)
			if s.labels != nil {
				v.Label = s.labels[p.Index]
			}
			c.Changes = append(c.Changes, v)
		}
		out = append(out, c)
	}
	if len(errs) > 0 {
		return exit.Errorf(exit.Failed, "", "%w", errors.Join(errs...))
	}
	if sd.JSON {
		return sd.PrintJSON(struct {
			Source string    `json:"source"`
			Series []changed `json:"series"`
		}{source, out})
	}
	visible.Fprintf(sd.Out, "Changes, %s\n", source)
	for _, c := range out {
		c.text(sd.Out)
	}
	return nil
}

func (c changed) text(out io.Writer) {
	if c.Unclear > 0 {
		visible.Fprintf(out, "\n%s: inconclusive: %s among %s may be change or dependence\n", c.Name,
			unit.Plural(c.Unclear, "place"), unit.Plural(c.Values, "value"))
	} else if len(c.Changes) == 0 {
		visible.Fprintf(out, "\n%s: no change in %s\n", c.Name, unit.Plural(c.Values, "value"))
	} else {
		visible.Fprintf(out, "\n%s: %s in %s\n", c.Name, unit.Plural(len(c.Changes), "change"),
			unit.Plural(c.Values, "value"))
	}
	for _, s := range c.Changes {
		where := fmt.Sprintf("value %d", s.Index+1)
		if s.Label != "" {
			where += " (" + s.Label + ")"
		}
		if s.Low != s.High {
			where += fmt.Sprintf(", somewhere from %d to %d", s.Low+1, s.High+1)
		}
		relative := ""
		if s.Before != 0 {
			relative = " (" + unit.Change(s.After/s.Before-1) + ")"
		}
		visible.Fprintf(out, "  at %s: from %.6g to %.6g%s, p = %.3g\n", where, s.Before, s.After, relative, s.P)
	}
	for _, w := range c.Warnings {
		visible.Fprintf(out, "  warning: %s\n", w)
	}
}

// history follows the headline numbers of runs from the oldest to the newest.
func (sd *Sides) history(given []string, column string) ([]named, string, error) {
	folders, err := sd.HistoryRuns("changes", given, true)
	if err != nil {
		return nil, "", err
	}
	var made []result.Manifest
	for _, f := range folders {
		made = append(made, f.Manifest())
	}
	runs.Mind(sd.Console, "changes", made...)
	index := map[string]int{}
	var list []named
	for _, f := range folders {
		doc, err := report.Build(f)
		if err != nil {
			return nil, "", exit.Errorf(exit.Failed, "", "changes: %s: %w", f.Dir(), err)
		}
		m := f.Manifest()
		for name, h := range headline(doc) {
			name, v := m.Scenario.Name+": "+name, h.value
			if column != "" && !strings.Contains(name, column) && h.metric != column {
				continue
			}
			if _, ok := index[name]; !ok {
				index[name] = len(list)
				list = append(list, named{name: name})
			}
			s := &list[index[name]]
			s.values, s.labels = append(s.values, v), append(s.labels, m.RunID)
		}
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	const fewest = 6
	enough := slices.DeleteFunc(list, func(s named) bool { return len(s.values) < fewest })
	if len(enough) == 0 {
		return nil, "", exit.Errorf(exit.Failed, "", "changes: %s: no number is in %d of them, which a history needs",
			unit.Plural(len(folders), "run"), fewest)
	}
	return enough, unit.Plural(len(folders), "run"), nil
}

// headlineNumber is a number that a history follows, with the name of its metric.
type headlineNumber struct {
	value  float64
	metric string // as Series.Metric has it
	unit   string
}

// headline are the numbers of a report that a history follows.
func headline(doc *report.Document) map[string]headlineNumber {
	out := map[string]headlineNumber{}
	for _, l := range doc.Latencies {
		if len(l.Windows) == 0 {
			continue
		}
		for _, r := range l.Windows[0].Rows {
			name, head := l.Workload+" "+r.Op, result.Series{Op: r.Op, Measure: result.Rate, Unit: r.Unit}
			out[name+" per second"] = headlineNumber{r.OpsPerSecond, head.Metric(), r.Unit}
			for q, v := range map[string]*float64{"p50": r.P50, "p99": r.P99, "p99.9": r.P999} {
				if head.Measure = "latency_" + q; v != nil {
					out[name+" "+q+" "+l.Kind+" (s)"] = headlineNumber{*v, head.Metric(), "s"}
				}
			}
		}
		for _, m := range l.Windows[0].Measures {
			out[l.Workload+" "+m.Name+" ("+m.Unit+")"] = headlineNumber{m.Value, m.Name, m.Unit}
		}
	}
	return out
}
