package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
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
		return ofSeveral(name, order)
	}
	return nil
}

// testNames are columns of words that say what was tested.
var testNames = []string{"test", "tests", "testname", "test_name", "workload", "benchmark", "bench", "operation", "op",
	"command", "cmd", "query", "statement", "phase", "system", "engine", "scenario", "config", "configuration",
	"variant", "case", "job", "jobname", "database", "db", "dbms", "device", "disk", "rw", "access", "pattern",
	"protocol", "suite"}

// OneTest objects to rows that are taken for repeats of one test, or for its course, and are of several: a setting, or
// the name of what was tested, differs. Names that differ by a number alone (run 1, run 2) are of repeats.
func (t *Table) OneTest() error {
	for i, name := range t.Names {
		stem, _ := SplitUnit(name)
		is := func(names []string) bool {
			return slices.Contains(names, stem) || slices.Contains(names, strings.ToLower(name))
		}
		words := is(testNames) && t.wordy(i)
		level := IsConcurrency(name) && !t.timed() && !t.CountsRows(i)
		if !words && !level && !is(settingNames) {
			continue
		}
		seen := map[string]bool{}
		var order []string
		for _, row := range t.Rows {
			key := row[i]
			if words {
				key = strings.TrimFunc(strings.ToLower(key), func(r rune) bool { return !unicode.IsLetter(r) })
			}
			if !missing(row[i]) && !seen[key] {
				seen[key] = true
				order = append(order, Quote(row[i]))
			}
		}
		switch {
		case len(order) > 1 && level:
			return fmt.Errorf("%w, or give usl the table, which fits a curve over them", ofSeveral(name, order))
		case len(order) > 1:
			return ofSeveral(name, order)
		}
	}
	return nil
}

// timed reports whether rows are moments.
func (t *Table) timed() bool {
	at, err := t.Times()
	return at != nil || err != nil
}

// CountsRows reports whether a column numbers the rows, beside which it is no measure.
func (t *Table) CountsRows(column int) bool {
	for j, row := range t.Rows {
		first, err := strconv.Atoi(t.Rows[0][column])
		n, bad := strconv.Atoi(row[column])
		if err != nil || bad != nil || n != first+j || first > 1 {
			return false
		}
	}
	return len(t.Names) > 1 && len(t.Rows) > 1
}

// Mixed says of rows that are taken together, and have words of which nothing is known, what these would tell apart;
// empty where there are none.
func (t *Table) Mixed() string {
	for i, name := range t.Names {
		stem, _ := SplitUnit(name)
		if !t.wordy(i) || slices.Contains(timeNames, stem) || slices.Contains(repeatNames, stem) {
			continue
		}
		count := map[string]int{}
		var order []string
		for _, row := range t.Rows {
			if count[row[i]]++; count[row[i]] == 1 {
				order = append(order, row[i])
			}
		}
		single := func(v string) bool { return count[v] == 1 }
		if len(order) < 2 || slices.ContainsFunc(order, single) {
			continue
		}
		return fmt.Sprintf("the rows are taken together, though %s is %s in %d of them and %s in %d; --where chooses",
			Quote(name), Quote(order[0]), count[order[0]], Quote(order[1]), count[order[1]])
	}
	return ""
}

// ofSeveral says of a column that it tells tests apart, and into what.
func ofSeveral(name string, values []string) error {
	const most = 5
	if n := len(values); n > most {
		values = append(values[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return fmt.Errorf("its rows are of several tests: %s is %s; keep the rows of one", Quote(name),
		strings.Join(values, ", "))
}

// sumNames are what a row is called that says of all others together what they say.
var sumNames = []string{"aggregated", "total", "totals", "sum", "overall", "all", "average", "avg", "mean", "median",
	"min", "max", "minimum", "maximum", "stddev", "stdev", "std", "std dev", "std. dev.", "standard deviation", "sd",
	"cv", "grand total", "gesamt", "summe", "mittelwert", "mittel", "durchschnitt", "moyenne", "somme", "média",
	"media", "promedio", "suma"}

// Several objects to rows that are of several things at the same times, such as devices or requests: in their order
// they are the course of none. What tells them apart is a column, or those of words together, each value of which comes
// with times that rise; a column of numbers tells apart what has the same times. So it does to a row that is the sum of
// the others.
func (t *Table) Several() error {
	for j, name := range t.Names {
		of := func(row []string) bool {
			return slices.Contains(sumNames, strings.ToLower(strings.TrimRight(row[j], ": ")))
		}
		at := slices.IndexFunc(t.Rows, of)
		other := slices.ContainsFunc(t.Rows, func(row []string) bool { return !missing(row[j]) && !of(row) })
		if at >= 0 && other {
			return fmt.Errorf("%s is %s in %s %d, which is of the other rows together; keep the rows of one", Quote(name),
				Quote(t.Rows[at][j]), t.Unit, t.Lines[at])
		}
	}
	for i, name := range t.Names {
		stem, in := SplitUnit(name)
		if !slices.Contains(timeNames, stem) {
			continue
		}
		at, err := t.times(i, cmp.Or(in, stem))
		if err != nil || at == nil || rising(at) {
			continue
		}
		var words []int
		for j, name := range t.Names {
			if j == i || slices.Contains(timeNames, strings.ToLower(name)) {
				continue
			}
			if t.wordy(j) {
				words = append(words, j)
			}
			if why := t.divided(at, !t.wordy(j), j); why != nil {
				return why
			}
		}
		if why := t.divided(at, false, words...); why != nil {
			return why
		}
	}
	return nil
}

func rising(at []float64) bool {
	return slices.IsSorted(at) && len(slices.Compact(slices.Clone(at))) == len(at)
}

// wordy reports whether a column holds words, and no number.
func (t *Table) wordy(column int) bool {
	words := false
	for _, row := range t.Rows {
		if cell := row[column]; !missing(cell) {
			if words = true; likeNumber(cell) {
				return false
			}
		}
	}
	return words
}

// divided objects when columns divide the rows into courses: the times of each rise, and are alike where they must be.
func (t *Table) divided(at []float64, alike bool, columns ...int) error {
	times, order := map[string][]float64{}, []string(nil)
	for j, row := range t.Rows {
		var cells, names []string
		for _, c := range columns {
			cells, names = append(cells, row[c]), append(names, t.Names[c])
		}
		key := QuoteAll(names) + " is " + QuoteAll(cells)
		if of := times[key]; of == nil {
			order = append(order, key)
		} else if at[j] <= of[len(of)-1] {
			return nil
		}
		times[key] = append(times[key], at[j])
	}
	const fewest = 3 // of which chance makes no course
	if len(order) < 2 || 2*len(order) > len(t.Rows) || alike && (len(times[order[0]]) < fewest ||
		slices.ContainsFunc(order, func(k string) bool { return !slices.Equal(times[k], times[order[0]]) })) {
		return nil
	}
	return fmt.Errorf("its rows are of several at the same times: %s in some, and %s in others; keep the rows of one",
		order[0], order[1])
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

// Keep leaves the rows in which a column holds a value, or those in which it does not. It objects when there is no such
// column, and when no row is left.
func (t *Table) Keep(column, value string, holds bool) error {
	i := t.Column(column)
	if i < 0 {
		return fmt.Errorf("no column %s among %s", Quote(column), QuoteAll(t.Names))
	}
	var rows [][]string
	var lines []int
	var there []string
	for j, row := range t.Rows {
		if strings.EqualFold(row[i], value) == holds {
			rows, lines = append(rows, row), append(lines, t.Lines[j])
		}
		if !slices.Contains(there, row[i]) {
			there = append(there, row[i])
		}
	}
	if rows == nil {
		is := map[bool]string{true: "is", false: "is not"}[holds]
		return fmt.Errorf("no row in which %s %s %s; there are %s", Quote(t.Names[i]), is, Quote(value),
			QuoteAll(there))
	}
	t.Rows, t.Lines = rows, lines
	return nil
}
