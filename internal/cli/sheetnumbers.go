package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/exit"
	"plimsoll/internal/visible"
)

// missing reports whether a cell says that there is no value.
func missing(cell string) bool {
	switch strings.ToLower(cell) {
	case "", "nan", "na", "n/a", "null", "none":
		return true
	}
	return false
}

// withUnit is a number as people write it for people: with a decimal comma, separators of thousands, a unit.
var withUnit = regexp.MustCompile(`^[-+]?(\d+|\d{1,3}([., '_]\d{3})+)([.,]\d+)?([eE][-+]?\d+)?\s?[A-Za-zµ%/]{0,6}$`)

// likeNumber reports whether a cell is a number or was meant as one.
func likeNumber(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil || errors.Is(err, strconv.ErrRange) || withUnit.MatchString(cell)
}

// advice says what to do about a cell that is no number.
func advice(cell string) string {
	switch {
	case !withUnit.MatchString(cell):
		return ""
	case strings.ContainsAny(cell[len(cell)-1:], "0123456789"):
		return ": write a decimal point, and nothing between thousands"
	}
	return ": write the number alone; its unit belongs in the name of the column"
}

// parse reads a cell: a finite number, or NaN for a gap.
func parse(cell string) (float64, error) {
	if missing(cell) {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (math.IsInf(v, 0) || math.IsNaN(v)):
		return 0, fmt.Errorf("%s is not finite", quoted(cell))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number%s", quoted(cell), advice(cell))
	}
	return v, nil
}

// oneLine joins objections to a table, so that what names the file stands before all of them; nil when there are none.
func oneLine(objections ...error) error {
	var texts []string
	for _, o := range objections {
		if o != nil {
			texts = append(texts, o.Error())
		}
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// column finds a column by one of several names, case ignored, or by its number from 1; -1 when there is none.
func (s *sheet) column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(s.names, name); i >= 0 {
			return i
		}
		for i, have := range s.names {
			if strings.EqualFold(strings.TrimSpace(have), name) {
				return i
			}
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(s.names) {
			return n - 1
		}
	}
	return -1
}

// numbers reads a column. A missing value is NaN when gaps are allowed; anything else that is no finite number is an
// objection, of which the first five are given.
func (s *sheet) numbers(column int, gaps bool) ([]float64, error) {
	const most = 5
	out := make([]float64, len(s.rows))
	var bad []error
	more, empty := 0, true
	for i, row := range s.rows {
		v, err := parse(row[column])
		if err == nil && math.IsNaN(v) && !gaps {
			err = fmt.Errorf("a value is missing")
		}
		empty = empty && missing(row[column])
		switch {
		case err != nil && len(bad) == most:
			more++
		case err != nil:
			bad = append(bad, fmt.Errorf("%s %d: %s: %w", s.unit, s.lines[i], s.names[column], err))
		}
		out[i] = v
	}
	if more > 0 {
		bad = append(bad, fmt.Errorf("and %d more", more))
	}
	if empty && len(bad) == 0 {
		bad = append(bad, fmt.Errorf("%s: every value is missing", s.names[column]))
	}
	return out, oneLine(bad...)
}

// numeric lists the columns that hold numbers and gaps only. A column that mostly holds numbers and also something else is
// an objection, since leaving out either would be silent; so is a table without any numbers. Columns of other text are
// left out, with a warning when they look as if they were meant as numbers.
func (s *sheet) numeric() (list []int, warnings []string, err error) {
	for i, name := range s.names {
		numbers, others, like, first := 0, 0, 0, -1
		for j, row := range s.rows {
			switch _, err := parse(row[i]); {
			case missing(row[i]):
			case err == nil:
				numbers++
			default:
				if first < 0 {
					first = j
				}
				if others++; likeNumber(row[i]) {
					like++
				}
			}
		}
		switch {
		case numbers > 0 && others == 0:
			list = append(list, i)
		case numbers > others:
			_, bad := s.numbers(i, true)
			err = oneLine(err, bad)
		case others > 0 && like == others && numbers == 0:
			_, bad := parse(s.rows[first][i])
			warnings = append(warnings, fmt.Sprintf("%s is left out: %s %d: %v", name, s.unit, s.lines[first], bad))
		}
	}
	if len(list) == 0 && err == nil {
		err = fmt.Errorf("no column of numbers among %s: %s %d begins with %s", columnList(s.names), s.unit, s.lines[0], quoted(s.rows[0][0]))
		if len(warnings) > 0 {
			err = fmt.Errorf("no column of numbers: %s", strings.Join(warnings, "; "))
		}
	}
	return list, warnings, err
}

// columnList names columns, the first few when there are many.
func columnList(names []string) string {
	const most = 8
	shown := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		shown = append(shown, quoted(n))
	}
	return strings.Join(shown, ", ")
}

// picked are the columns asked for by name or number, or else all that hold numbers. Warnings are said to the user.
func (a *app) picked(phase string, s *sheet, asked []string) ([]int, error) {
	if len(asked) == 0 {
		list, warnings, err := s.numeric()
		for _, w := range warnings {
			visible.Fprintf(a.err, "warning: %s: %s: %s\n", phase, s.source, w)
		}
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "--column NAME looks at one column only", "%s: %s: %w", phase, s.source, err)
		}
		return list, nil
	}
	var list []int
	for _, name := range asked {
		i := s.column(name)
		switch {
		case i < 0:
			return nil, exit.Usagef("", "%s: %s: --column: no column %s among %s", phase, s.source, quoted(name), columnList(s.names))
		case slices.Contains(list, i):
			return nil, exit.Usagef("", "%s: %s: --column %s is given twice", phase, s.source, quoted(name))
		}
		list = append(list, i)
	}
	return list, nil
}

// values reads a column of a series or of repeats; its gaps are NaN and said to the user.
func (a *app) values(phase string, s *sheet, column int) ([]float64, error) {
	values, err := s.numbers(column, true)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %s: %w", phase, s.source, err)
	}
	gaps, first := 0, 0
	for i, v := range values {
		if math.IsNaN(v) {
			if gaps++; gaps == 1 {
				first = s.lines[i]
			}
		}
	}
	if gaps > 0 {
		visible.Fprintf(a.err, "warning: %s: %s: %s: %d of %d values missing, the first in %s %d\n",
			phase, s.source, s.names[column], gaps, len(values), s.unit, first)
	}
	return values, nil
}
