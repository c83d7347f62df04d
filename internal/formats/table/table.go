// Package table reads tables of numbers as people with other tools have them: CSV with commas, semicolons or tabs,
// columns separated by blanks or drawn with bars, lists and objects in JSON. It finds the columns that hold numbers,
// the one that holds times, and the units that names of columns and cells carry.
//
// It stands before the commands that take files in the place of runs. It guesses nothing in silence: a cell that is no
// number, a row of another length, times that go back are objections that name line and value, and what is left out is
// a warning that it returns. It opens no file and prints nothing.
package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/unit"
)

// A table of numbers may be this large; more is not a result but raw data.
const (
	maxBytes   = 64 << 20
	maxRows    = 2_000_000
	maxCells   = 20_000_000
	maxColumns = 10_000  // columns
	maxLine    = 1 << 20 // bytes
)

// Table is a table as people with other tools have it: CSV, columns separated by blanks, or JSON.
type Table struct {
	Source string   // where it is from, for messages
	Named  bool     // the names are the file's own
	Names  []string // "column 1" and so on where the file has no header
	Rows   [][]string
	Lines  []int    // of each row, from 1; of an element in JSON
	Unit   string   // what Lines count: "line" or "element"
	Notes  []string // what a reader must know of how cells were read

	comma  rune           // what stands between cells of a text; 0 in JSON
	given  map[int]string // names of columns as the file has them, where a unit was added
	doubts map[int]error  // of columns whose numbers can be read in two ways
}

// Read reads a table of any of the forms. Its Source is for the caller to say. The sign before fractions is one of
// Decimals, or "" for the one that the table proves.
func Read(r io.Reader, decimal string) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxBytes:
		return nil, fmt.Errorf("more than %d MiB: that is raw data, not a result", maxBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := readable(data); err != nil {
		return nil, err
	}
	t := &Table{Unit: "line", given: map[int]string{}}
	switch text := bytes.TrimSpace(data); {
	case len(text) == 0:
		return nil, errors.New("no data")
	case bytes.HasPrefix(text, []byte("<?xml")):
		return nil, errors.New("it is XML, and no table")
	case text[0] == '[' || text[0] == '{':
		t.Unit = "element"
		err = t.readJSON(text)
	default:
		err = t.readText(data)
	}
	switch {
	case err != nil:
		return nil, err
	case len(t.Rows) == 0 && t.Named:
		return nil, fmt.Errorf("no rows below the header %s", Quote(strings.Join(t.Names, ",")))
	case len(t.Rows) == 0:
		return nil, errors.New("no rows")
	case len(t.Names) == 0:
		return nil, errors.New("no columns")
	case len(t.Names) > maxColumns:
		return nil, fmt.Errorf("%d columns are more than %d: that is raw data, not a result", len(t.Names), maxColumns)
	}
	if err := t.untidied(); err != nil {
		return nil, err
	}
	t.numerals(decimal)
	return t, t.distinct()
}

// readable objects to what is no text in UTF-8.
func readable(data []byte) error {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return errors.New("line 1: the text is in UTF-16: save it as UTF-8")
	}
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r' && r != '\f':
			return fmt.Errorf("line %d: byte %#02x is no text: a table is text in UTF-8", line, rest[0])
		}
		rest = rest[size:]
	}
	return nil
}

// distinct objects to two columns of one name, and names those that have none by their number.
func (t *Table) distinct() error {
	first := map[string]int{}
	var errs []error
	for i, name := range t.Names {
		if name == "" {
			name = fmt.Sprintf("column %d", i+1)
			t.Names[i] = name
		}
		key := strings.ToLower(name)
		if at, twice := first[key]; twice {
			errs = append(errs, fmt.Errorf("columns %d and %d are both called %s", at+1, i+1, Quote(name)))
			continue
		}
		first[key] = i
	}
	return Join(errs...)
}

// Quote is text as an error shows it, cut short.
func Quote(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}

// readText reads CSV with commas, semicolons, tabs or bars, or columns separated by blanks. A line that begins with #
// is a comment. The first line is a header when a cell of it is no number, and nothing that was meant as one.
func (t *Table) readText(data []byte) error {
	data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	data, err := drawn(data)
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, maxLine)
	var split func(string) []string
	number, first, comment := 0, 0, ""
	for scanner.Scan() {
		number++
		line := scanner.Text()
		if sep := sepLine.FindStringSubmatch(line); sep != nil && split == nil {
			split = t.splitter(sep[1])
			continue
		}
		if bare := strings.TrimSpace(line); bare == "" || bare[0] == '#' || rowCount.MatchString(bare) {
			if bare != "" {
				comment = strings.TrimSpace(strings.TrimLeft(bare, "#"))
			}
			continue
		}
		if split == nil {
			split = t.splitter(line)
		}
		cells := split(line)
		if t.Names == nil && comment != "" && t.titled(split(comment), cells) {
			first = number
		}
		if t.Names == nil && t.header(cells) {
			first = number
			continue
		}
		if len(cells) != len(t.Names) {
			return fmt.Errorf("line %d has %s, the first has %d: %s", number, unit.Plural(len(cells), "cell"),
				len(t.Names), Quote(strings.TrimSpace(line)))
		}
		if len(t.Rows) == maxRows || len(t.Rows)*len(t.Names) > maxCells {
			return fmt.Errorf("line %d: more than %d rows or %d cells: that is raw data, not a result", number, maxRows,
				maxCells)
		}
		t.Rows, t.Lines = append(t.Rows, cells), append(t.Lines, number)
		if len(t.Rows) == 1 && t.Named {
			t.noHeader(first)
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d KiB", number+1, maxLine>>10)
	}
	t.secondHeader()
	return scanner.Err()
}

// splitter chooses how lines are cut by what the first one holds.
func (t *Table) splitter(line string) func(string) []string {
	t.comma = ' '
	if strings.HasPrefix(strings.TrimSpace(line), "|") {
		t.comma = '|'
		return bars
	}
	for _, comma := range []rune{'\t', ';', ',', '|'} {
		if !strings.ContainsRune(line, comma) {
			continue
		}
		t.comma = comma
		return func(line string) []string {
			if comma != '\t' {
				line = strings.TrimSpace(line)
			}
			r := csv.NewReader(strings.NewReader(line))
			r.Comma, r.TrimLeadingSpace, r.LazyQuotes = comma, comma != '\t', true
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

// titled takes the names of the columns from a comment right above the first row, as programs that plot have them: as
// many words as the row has numbers, and none of them a number.
func (t *Table) titled(names, row []string) bool {
	number := func(c string) bool { _, err := parse(c); return err == nil }
	if len(names) < 2 || len(names) != len(row) || slices.ContainsFunc(names, number) ||
		slices.ContainsFunc(row, func(c string) bool { return !number(c) }) {
		return false
	}
	t.Names, t.Named = names, true
	return true
}

// header takes the names of the columns from the first line, or gives names to them and reports false.
func (t *Table) header(cells []string) bool {
	t.Named = slices.ContainsFunc(cells, func(c string) bool { _, err := parse(c); return err != nil })
	if t.Named {
		t.Names = cells
		return true
	}
	t.number(len(cells))
	return false
}

func (t *Table) number(columns int) {
	t.Names = nil
	for i := range columns {
		t.Names = append(t.Names, fmt.Sprintf("column %d", i+1))
	}
}

// noHeader makes the first line a row after all, when it holds nothing but numbers written badly (1,5 or 12ms) and the
// second line writes its numbers alike.
func (t *Table) noHeader(line int) {
	second := t.Rows[0]
	for i, name := range t.Names {
		if !missing(name) && !likeNumber(name) {
			return
		}
		_, bad := parse(name)
		_, alike := parse(second[i])
		if bad != nil && alike == nil {
			return
		}
	}
	t.Rows, t.Lines, t.Named = append([][]string{t.Names}, t.Rows...), append([]int{line}, t.Lines...), false
	t.number(len(t.Names))
}
