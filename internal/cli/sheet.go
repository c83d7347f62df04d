package cli

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A table of numbers may be this large; more is not a result but raw data.
const (
	maxSheetBytes = 64 << 20
	maxSheetRows  = 2_000_000
)

// sheet is a table as people with other tools have it: CSV, columns separated by blanks, or JSON.
type sheet struct {
	source string
	named  bool     // the names are the file's own
	names  []string // "column 1" and so on where the file has no header
	rows   [][]string
	lines  []int // of each row, from 1; of an element in JSON
}

// openSheet reads a table from a file, or from standard input for "-".
func (a *app) openSheet(phase, name string) (*sheet, error) {
	in, label := a.in, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fail(exitFailed, "", "%s: %w", phase, err)
		}
		defer f.Close()
		in, label = f, strconv.Quote(name)
	}
	s, err := readSheet(in)
	if err != nil {
		return nil, fail(exitFailed, `a table is CSV with a header, columns separated by blanks, or JSON like [{"n":1,"x":100}]`, "%s: %s: %w", phase, label, err)
	}
	s.source = label
	return s, nil
}

func readSheet(r io.Reader) (*sheet, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSheetBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSheetBytes:
		return nil, fmt.Errorf("more than %d MiB", maxSheetBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := &sheet{}
	switch text := bytes.TrimSpace(data); {
	case len(text) == 0:
		return nil, errors.New("no data")
	case text[0] == '[' || text[0] == '{':
		err = s.readJSON(text)
	default:
		err = s.readText(data)
	}
	switch {
	case err != nil:
		return nil, err
	case len(s.rows) == 0:
		return nil, errors.New("no rows")
	}
	return s, nil
}

// readText reads CSV with commas, semicolons or tabs, or columns separated by blanks. A line that begins with # is a comment.
// The first line is a header when a cell of it is no number.
func (s *sheet) readText(data []byte) error {
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	split := strings.Fields
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if len(s.rows) == 0 && s.names == nil {
			split = splitter(line)
		}
		cells := split(line)
		if s.names == nil {
			if s.header(cells) {
				continue
			}
		}
		if len(cells) != len(s.names) {
			return fmt.Errorf("line %d has %d cells, the first has %d", number, len(cells), len(s.names))
		}
		if len(s.rows) == maxSheetRows {
			return fmt.Errorf("more than %d rows", maxSheetRows)
		}
		s.rows, s.lines = append(s.rows, cells), append(s.lines, number)
	}
	return scanner.Err()
}

// splitter chooses how lines are cut by what the first one holds.
func splitter(line string) func(string) []string {
	for _, comma := range []rune{'\t', ';', ','} {
		if !strings.ContainsRune(line, comma) {
			continue
		}
		return func(line string) []string {
			r := csv.NewReader(strings.NewReader(line))
			r.Comma, r.TrimLeadingSpace, r.LazyQuotes = comma, true, true
			cells, err := r.Read()
			if err != nil {
				return nil
			}
			for i, c := range cells {
				cells[i] = strings.TrimSpace(c)
			}
			return cells
		}
	}
	return strings.Fields
}

// header takes the names of the columns from the first line, or gives names to them and reports false.
func (s *sheet) header(cells []string) bool {
	s.named = slices.ContainsFunc(cells, func(c string) bool { _, err := strconv.ParseFloat(c, 64); return err != nil && c != "" })
	if s.named {
		s.names = cells
		return true
	}
	for i := range cells {
		s.names = append(s.names, fmt.Sprintf("column %d", i+1))
	}
	return false
}

// readJSON reads a list of numbers, of lists or of objects, or an object of equally long lists.
func (s *sheet) readJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	if columns, ok := v.(map[string]any); ok {
		return s.fromColumns(columns)
	}
	list, _ := v.([]any)
	for i, item := range list {
		var cells []string
		switch item := item.(type) {
		case map[string]any:
			for name := range item {
				if !slices.Contains(s.names, name) {
					if i > 0 {
						return fmt.Errorf("element %d has a field %q that those before it lack", i+1, name)
					}
					s.names = append(s.names, name)
				}
			}
			slices.Sort(s.names)
			s.named = true
			for _, name := range s.names {
				cells = append(cells, cell(item[name]))
			}
		case []any:
			for _, c := range item {
				cells = append(cells, cell(c))
			}
		default:
			cells = []string{cell(item)}
		}
		if !s.named && s.names == nil {
			for j := range cells {
				s.names = append(s.names, fmt.Sprintf("column %d", j+1))
			}
		}
		if len(cells) != len(s.names) {
			return fmt.Errorf("element %d has %d values, the first has %d", i+1, len(cells), len(s.names))
		}
		s.rows, s.lines = append(s.rows, cells), append(s.lines, i+1)
	}
	return nil
}

func (s *sheet) fromColumns(columns map[string]any) error {
	s.named = true
	for name := range columns {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	for j, name := range s.names {
		list, ok := columns[name].([]any)
		if !ok {
			return fmt.Errorf("%q is not a list of numbers", name)
		}
		if j == 0 {
			s.rows, s.lines = make([][]string, len(list)), make([]int, len(list))
		}
		if len(list) != len(s.rows) {
			return fmt.Errorf("%q has %d values, %q has %d", name, len(list), s.names[0], len(s.rows))
		}
		for i, c := range list {
			s.rows[i], s.lines[i] = append(s.rows[i], cell(c)), i+1
		}
	}
	return nil
}

// cell prints a JSON value as a cell; null is an empty one.
func cell(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// column finds a column by one of several names, case ignored, or by its number from 1; -1 when there is none.
func (s *sheet) column(names ...string) int {
	for _, name := range names {
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

// numbers reads a column. An empty cell is NaN when gaps are allowed; anything else that is no finite number is an
// objection, of which the first five are given.
func (s *sheet) numbers(column int, gaps bool) ([]float64, error) {
	out := make([]float64, len(s.rows))
	var bad []error
	for i, row := range s.rows {
		v, err := strconv.ParseFloat(row[column], 64)
		empty := row[column] == "" || math.IsNaN(v)
		switch {
		case empty && gaps:
			v = math.NaN()
		case err != nil || empty || math.IsInf(v, 0):
			bad = append(bad, fmt.Errorf("line %d: %s: %q is not a number", s.lines[i], s.names[column], row[column]))
		}
		out[i] = v
	}
	const most = 5
	if len(bad) > most {
		bad = append(bad[:most], fmt.Errorf("and %d more", len(bad)-most))
	}
	return out, errors.Join(bad...)
}

// numeric lists the columns that hold numbers and gaps only.
func (s *sheet) numeric() []int {
	var list []int
	for i := range s.names {
		if _, err := s.numbers(i, true); err == nil && slices.ContainsFunc(s.rows, func(r []string) bool { return r[i] != "" }) {
			list = append(list, i)
		}
	}
	return list
}
