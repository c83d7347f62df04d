package table

import (
	"fmt"
	"slices"
	"strings"
)

// settingNames are columns of numbers that say what was tested rather than what came of it. Rows that differ in one are
// of different tests.
var settingNames = []string{"bs", "blocksize", "block_size", "block", "xfersize", "transfer_size", "io_size", "iosize",
	"request_size", "rdpct", "read_pct", "readpct", "rwmix", "rwmixread", "read_percent", "mix", "scale",
	"scale_factor", "warehouses", "filesize", "file_size", "working_set"}

// Apart objects to rows that are of several systems or tests, over which no one curve goes: a column of words, or of a
// setting, whose values tell groups of rows apart. A name for each row, and one for each value of the column by which
// the rows are ordered, tell none apart.
func (t *Table) Apart(by int) error {
	for i, name := range t.Names {
		stem, _ := SplitUnit(name)
		setting := slices.Contains(settingNames, stem) || slices.Contains(settingNames, strings.ToLower(name))
		words := slices.ContainsFunc(t.Rows, func(row []string) bool { return !missing(row[i]) && !likeNumber(row[i]) })
		setting = setting || IsConcurrency(name)
		if i == by || slices.Contains(timeNames, stem) || !setting && !words && !t.crossed(i, by) {
			continue
		}
		levels, values := map[string]string{}, map[string]string{}
		var order []string
		same := true // one value for each level, and the other way round
		for _, row := range t.Rows {
			level, v := row[by], row[i]
			if _, ok := values[v]; !ok {
				values[v] = level
				order = append(order, Quote(v))
			}
			if _, ok := levels[level]; !ok {
				levels[level] = v
			}
			same = same && values[v] == level && levels[level] == v
		}
		if len(values) == 1 || len(values) == len(t.Rows) || same {
			continue
		}
		const most = 5
		if n := len(order); n > most {
			order = append(order[:most:most], fmt.Sprintf("%d more", n-most))
		}
		return fmt.Errorf("its rows are of several tests: %s is %s; keep the rows of one", Quote(name),
			strings.Join(order, ", "))
	}
	return nil
}

// repeatNames are columns of numbers that count what was done again, which makes no other test of it.
var repeatNames = []string{"run", "runs", "rep", "reps", "repeat", "repetition", "replicate", "iteration", "iter",
	"trial", "round", "sample", "attempt", "pass", "try", "seed", "index", "id", "no", "nr", "row", "line", "#"}

// crossed reports whether a column of numbers, whatever its name, is a second thing that was varied: it has a few
// values, and every one of them comes with the same three levels or more of the other column.
func (t *Table) crossed(i, by int) bool {
	stem, _ := SplitUnit(t.Names[i])
	const fewest = 3
	if slices.Contains(repeatNames, strings.Trim(stem, " _.")) {
		return false
	}
	levels := map[string][]string{}
	for _, row := range t.Rows {
		if v := row[i]; !slices.Contains(levels[v], row[by]) {
			levels[v] = append(levels[v], row[by])
		}
	}
	var first []string
	for _, of := range levels {
		slices.Sort(of)
		if first == nil {
			first = of
		}
		if len(of) < fewest || !slices.Equal(of, first) {
			return false
		}
	}
	return len(levels) > 1
}

// Keep leaves the rows in which a column holds a value. It objects when there is no such column or row.
func (t *Table) Keep(column, value string) error {
	i := t.Column(column)
	if i < 0 {
		return fmt.Errorf("no column %s among %s", Quote(column), QuoteAll(t.Names))
	}
	var rows [][]string
	var lines []int
	var there []string
	for j, row := range t.Rows {
		if strings.EqualFold(row[i], value) {
			rows, lines = append(rows, row), append(lines, t.Lines[j])
		}
		if !slices.Contains(there, row[i]) {
			there = append(there, row[i])
		}
	}
	if rows == nil {
		return fmt.Errorf("no row in which %s is %s; there are %s", Quote(t.Names[i]), Quote(value), QuoteAll(there))
	}
	t.Rows, t.Lines = rows, lines
	return nil
}
