package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// missing reports whether a cell says that there is no value.
func missing(cell string) bool {
	switch strings.ToLower(cell) {
	case "", "nan", "na", "n/a", "#n/a", "null", "none", "-", "--", "–", "—":
		return true
	}
	return false
}

// likeNumber reports whether a cell is a number or was meant as one.
func likeNumber(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil || errors.Is(err, strconv.ErrRange) || numeral.MatchString(cell)
}

// advice says what to do about a cell that is no number.
func advice(cell string) string {
	switch {
	case !numeral.MatchString(cell):
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
		return 0, fmt.Errorf("%s is not finite", Quote(cell))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number%s", Quote(cell), advice(cell))
	}
	return v, nil
}

// Join joins objections to a table, so that what names the file stands before all of them; nil when there are none.
func Join(objections ...error) error {
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

// Column finds a column by one of several names, case ignored, or by its number from 1; -1 when there is none.
func (t *Table) Column(names ...string) int {
	for _, name := range names {
		if i := slices.Index(t.Names, name); i >= 0 {
			return i
		}
		for i, have := range t.Names {
			if strings.EqualFold(strings.TrimSpace(have), name) || strings.EqualFold(t.given[i], name) {
				return i
			}
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(t.Names) {
			return n - 1
		}
	}
	return -1
}

// Numbers reads a column. A missing value is NaN when gaps are allowed; anything else that is no finite number is an
// objection, of which the first five are given.
func (t *Table) Numbers(column int, gaps bool) ([]float64, error) {
	const most = 5
	if err := t.doubts[column]; err != nil {
		return nil, err
	}
	out := make([]float64, len(t.Rows))
	var bad []error
	more, empty := 0, true
	for i, row := range t.Rows {
		v, err := parse(row[column])
		if err == nil && math.IsNaN(v) && !gaps {
			err = fmt.Errorf("a value is missing")
		}
		empty = empty && missing(row[column])
		switch {
		case err != nil && len(bad) == most:
			more++
		case err != nil:
			bad = append(bad, fmt.Errorf("%s %d: %s: %w", t.Unit, t.Lines[i], t.Names[column], err))
		}
		out[i] = v
	}
	if more > 0 {
		bad = append(bad, fmt.Errorf("and %d more", more))
	}
	if empty && len(bad) == 0 {
		bad = append(bad, fmt.Errorf("%s: every value is missing", t.Names[column]))
	}
	return out, Join(bad...)
}

// codeNames are columns of numbers that stand for something, without what is no letter.
var codeNames = []string{"code", "statuscode", "responsecode", "httpcode", "httpstatus", "httpstatuscode", "returncode",
	"exitcode", "errno", "pid"}

// Numeric lists the columns that hold numbers and gaps only. A column that mostly holds numbers and also something else
// is an objection, since leaving out either would be silent; so is a table without any numbers. Columns of other text
// are left out, with a warning when they look as if they were meant as numbers, and so are codes.
func (t *Table) Numeric() (list []int, warnings []string, err error) {
	for i, name := range t.Names {
		numbers, others, like, first := 0, 0, 0, -1
		if doubt := t.doubts[i]; doubt != nil {
			err = Join(err, doubt)
			continue
		}
		for j, row := range t.Rows {
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
		case numbers > 0 && slices.Contains(codeNames, notAWord.ReplaceAllString(strings.ToLower(name), "")):
			warnings = append(warnings, name+" is left out: its numbers are codes, which have no mean")
		case numbers > 0 && others == 0:
			list = append(list, i)
		case numbers > others:
			_, bad := t.Numbers(i, true)
			err = Join(err, bad)
		case others > 0 && like == others && numbers == 0:
			_, bad := parse(t.Rows[first][i])
			warnings = append(warnings, fmt.Sprintf("%s is left out: %s %d: %v", name, t.Unit, t.Lines[first], bad))
		}
	}
	if len(list) == 0 && err == nil {
		err = fmt.Errorf("no column of numbers among %s: %s %d begins with %s", QuoteAll(t.Names), t.Unit, t.Lines[0],
			Quote(t.Rows[0][0]))
		if len(warnings) > 0 {
			err = fmt.Errorf("no column of numbers: %s", strings.Join(warnings, "; "))
		}
	}
	return list, warnings, err
}

// QuoteAll names columns, the first few when there are many.
func QuoteAll(names []string) string {
	const most = 8
	shown := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		shown = append(shown, Quote(n))
	}
	return strings.Join(shown, ", ")
}
