package judge

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
)

// openTable reads a table from a file, or from standard input for "-".
func (sd *Sides) openTable(phase, name string) (*table.Table, error) {
	in, err := sd.OpenGiven(name)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	defer in.Close()
	label := name
	if name == "-" {
		label = "standard input"
	}
	if sd.decimal != "" && !slices.Contains(table.Decimals, sd.decimal) {
		return nil, exit.Usagef("there are: comma, point", "%s: --decimal: no such %q", phase, sd.decimal)
	}
	t, err := recognise.Table(phase, label, in, sd.decimal)
	if err != nil {
		var known *exit.Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, exit.Errorf(exit.Failed, `a table is CSV with a header, columns separated by blanks, or JSON like [{"n":1,"x":100}]`, "%s: %s: %w", phase, label, err)
	}
	t.Source = label
	for _, n := range t.Notes {
		visible.Fprintf(sd.Err, "warning: %s: %s: %s\n", phase, label, n)
	}
	for _, w := range sd.where {
		column, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, exit.Usagef("", "%s: --where %q: want COLUMN=VALUE", phase, w)
		}
		column, not := strings.CutSuffix(column, "!")
		if err := t.Keep(strings.TrimSpace(column), strings.TrimSpace(value), !not); err != nil {
			return nil, exit.Usagef("", "%s: %s: --where %s: %w", phase, label, w, err)
		}
	}
	return t, ofOne(phase, label, t.Several())
}

// readingTables adds the flags that say how tables are read.
func (sd *Sides) readingTables(c *cobra.Command) {
	c.Flags().StringArrayVar(&sd.where, "where", nil, "of a table take only the rows in which a column has this value, "+
		"`COLUMN=VALUE`, or another, COLUMN!=VALUE; repeatable")
	c.Flags().StringVar(&sd.decimal, "decimal", "", "the `sign` before fractions in tables, comma or point, where "+
		"numbers like 1.234 leave it open")
}

// oneTest objects to a table whose rows are of several systems or tests, which have no curve over its concurrency.
func oneTest(phase string, t *table.Table, concurrency int) error {
	return ofOne(phase, t.Source, t.Apart(concurrency))
}

// ofOneTest objects to a table whose rows are taken as one series or as repeats, and are of several tests.
func ofOneTest(con *console.Console, phase string, t *table.Table) error {
	err := ofOne(phase, t.Source, t.OneTest())
	if note := t.Mixed(); note != "" && err == nil {
		visible.Fprintf(con.Err, "warning: %s: %s: %s\n", phase, t.Source, note)
	}
	return err
}

// ofOne says with an objection to rows of several what to do.
func ofOne(phase, label string, objection error) error {
	if objection == nil {
		return nil
	}
	return exit.Errorf(exit.Failed, "choose rows: --where COLUMN=VALUE keeps some, --where COLUMN!=VALUE leaves some out", "%s: %s: %w", phase, label,
		objection)
}

// picked are the columns asked for by name or number, or else all that hold numbers. Warnings are said to the user.
func picked(con *console.Console, phase string, t *table.Table, asked []string) ([]int, error) {
	if len(asked) == 0 {
		list, warnings, err := t.Numeric()
		for _, w := range warnings {
			visible.Fprintf(con.Err, "warning: %s: %s: %s\n", phase, t.Source, w)
		}
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "--column NAME looks at one column only", "%s: %s: %w", phase,
				t.Source, err)
		}
		return list, nil
	}
	var list []int
	for _, name := range asked {
		i := t.Column(name)
		switch {
		case i < 0:
			return nil, exit.Usagef("", "%s: %s: --column: no column %s among %s", phase, t.Source, table.Quote(name),
				table.QuoteAll(t.Names))
		case slices.Contains(list, i):
			return nil, exit.Usagef("", "%s: %s: --column %s is given twice", phase, t.Source, table.Quote(name))
		}
		list = append(list, i)
	}
	return list, nil
}

// values reads a column of a series or of repeats; its gaps are NaN and said to the user.
func columnValues(con *console.Console, phase string, t *table.Table, column int) ([]float64, error) {
	values, err := t.Numbers(column, true)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %s: %w", phase, t.Source, err)
	}
	gaps, first := 0, 0
	for i, v := range values {
		if math.IsNaN(v) {
			if gaps++; gaps == 1 {
				first = t.Lines[i]
			}
		}
	}
	if gaps > 0 {
		visible.Fprintf(con.Err, "warning: %s: %s: %s: %d of %d values missing, the first in %s %d\n",
			phase, t.Source, t.Names[column], gaps, len(values), t.Unit, first)
	}
	return values, nil
}
