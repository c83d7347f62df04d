package table

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the columns of a tidy table: one row for each value, with what it is of and when.
var (
	tidyMetrics = []string{"metric", "measure", "variable", "counter", "metric_name", "measurement"}
	tidyValues  = []string{"value", "val"}
	tidyTimes   = append([]string{"collected"}, timeNames...)
)

// untidied makes a column of each metric of a tidy table, with a row for each time; other tables stay as they are. It
// objects to a tidy table without times, to two values of one metric at one time, and to further columns that tell
// rows apart, since leaving them out would mix what they tell apart.
func (t *Table) untidied() error {
	if !t.Named {
		return nil
	}
	metric, value := t.named(tidyMetrics), t.named(tidyValues)
	if metric < 0 || value < 0 || !t.words(metric) {
		return nil
	}
	at := t.named(tidyTimes)
	if at < 0 {
		return fmt.Errorf(
			"it is a tidy table (%s, %s) without a column of times: add one, or give each metric a column",
			Quote(t.Names[metric]), Quote(t.Names[value]))
	}
	for i, name := range t.Names {
		if i == metric || i == value || i == at {
			continue
		}
		for j, row := range t.Rows {
			if row[i] != t.Rows[0][i] {
				return fmt.Errorf("it is a tidy table, and %s is %s in %s %d and %s in %s %d: keep the rows of one",
					Quote(name), Quote(t.Rows[0][i]), t.Unit, t.Lines[0], Quote(row[i]), t.Unit, t.Lines[j])
			}
		}
	}
	return t.pivot(metric, value, at)
}

// named is the first column of one of these names, case and unit ignored; -1 when there is none.
func (t *Table) named(names []string) int {
	return slices.IndexFunc(t.Names, func(have string) bool {
		stem, _ := SplitUnit(have)
		return slices.Contains(names, stem) || slices.Contains(names, strings.ToLower(strings.TrimSpace(have)))
	})
}

// words reports whether a column holds no numbers.
func (t *Table) words(column int) bool {
	return !slices.ContainsFunc(t.Rows, func(row []string) bool { _, err := parse(row[column]); return err == nil })
}

func (t *Table) pivot(metric, value, at int) error {
	columns, moments := map[string]int{}, map[string]int{}
	out := Table{Source: t.Source, Named: true, Names: []string{t.Names[at]}, Unit: t.Unit, comma: t.comma,
		given: t.given}
	if stem, _ := SplitUnit(out.Names[0]); !slices.Contains(timeNames, stem) {
		out.Names[0] = "time"
	}
	for i, row := range t.Rows {
		c, known := columns[row[metric]]
		if !known {
			if c = len(out.Names); c >= maxColumns {
				return fmt.Errorf("more than %d metrics in a tidy table", maxColumns)
			}
			columns[row[metric]] = c
			out.Names = append(out.Names, row[metric])
		}
		m, known := moments[row[at]]
		if !known {
			m = len(out.Rows)
			moments[row[at]] = m
			out.Rows, out.Lines = append(out.Rows, []string{row[at]}), append(out.Lines, t.Lines[i])
		}
		for len(out.Rows[m]) <= c {
			out.Rows[m] = append(out.Rows[m], "")
		}
		if out.Rows[m][c] != "" {
			return fmt.Errorf("%s %d: it is a tidy table, and %s has two values at %s", t.Unit, t.Lines[i],
				Quote(row[metric]), Quote(row[at]))
		}
		out.Rows[m][c] = row[value]
	}
	if len(out.Rows)*len(out.Names) > maxCells {
		return fmt.Errorf("more than %d cells: that is raw data, not a result", maxCells)
	}
	for i, row := range out.Rows {
		out.Rows[i] = append(row, make([]string, len(out.Names)-len(row))...)
	}
	*t = out
	return nil
}
