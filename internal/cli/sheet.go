package cli

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

	"plimsoll/internal/exit"
)

// A table of numbers may be this large; more is not a result but raw data.
const (
	maxSheetBytes = 64 << 20
	maxSheetRows  = 2_000_000
	maxSheetCells = 20_000_000
	maxSheetNames = 10_000  // columns
	maxSheetLine  = 1 << 20 // bytes
)

// sheet is a table as people with other tools have it: CSV, columns separated by blanks, or JSON.
type sheet struct {
	source string
	named  bool     // the names are the file's own
	names  []string // "column 1" and so on where the file has no header
	rows   [][]string
	lines  []int  // of each row, from 1; of an element in JSON
	unit   string // what lines count: "line" or "element"
}

// openSheet reads a table from a file, or from standard input for "-".
func (a *app) openSheet(phase, name string) (*sheet, error) {
	in, err := a.openGiven(name)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	defer in.Close() //nolint:errcheck // read only
	label := name
	if name == "-" {
		label = "standard input"
	}
	s, err := readSheet(in)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, `a table is CSV with a header, columns separated by blanks, or JSON like [{"n":1,"x":100}]`, "%s: %s: %w", phase, label, err)
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
		return nil, fmt.Errorf("more than %d MiB: that is raw data, not a result", maxSheetBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := readable(data); err != nil {
		return nil, err
	}
	s := &sheet{unit: "line"}
	switch text := bytes.TrimSpace(data); {
	case len(text) == 0:
		return nil, errors.New("no data")
	case text[0] == '[' || text[0] == '{':
		s.unit = "element"
		err = s.readJSON(text)
	default:
		err = s.readText(data)
	}
	switch {
	case err != nil:
		return nil, err
	case len(s.rows) == 0 && s.named:
		return nil, fmt.Errorf("no rows below the header %s", quoted(strings.Join(s.names, ",")))
	case len(s.rows) == 0:
		return nil, errors.New("no rows")
	case len(s.names) == 0:
		return nil, errors.New("no columns")
	case len(s.names) > maxSheetNames:
		return nil, fmt.Errorf("%d columns are more than %d: that is raw data, not a result", len(s.names), maxSheetNames)
	}
	return s, s.distinct()
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
func (s *sheet) distinct() error {
	first := map[string]int{}
	var errs []error
	for i, name := range s.names {
		if name == "" {
			name = fmt.Sprintf("column %d", i+1)
			s.names[i] = name
		}
		key := strings.ToLower(name)
		if at, twice := first[key]; twice {
			errs = append(errs, fmt.Errorf("columns %d and %d are both called %s", at+1, i+1, quoted(name)))
			continue
		}
		first[key] = i
	}
	return oneLine(errs...)
}

// quoted is text as an error shows it, cut short.
func quoted(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}

// readText reads CSV with commas, semicolons or tabs, or columns separated by blanks. A line that begins with # is a comment.
// The first line is a header when a cell of it is no number, and nothing that was meant as one.
func (s *sheet) readText(data []byte) error {
	scanner := bufio.NewScanner(bytes.NewReader(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))))
	scanner.Buffer(nil, maxSheetLine)
	var split func(string) []string
	number, first := 0, 0
	for scanner.Scan() {
		number++
		line := scanner.Text()
		if bare := strings.TrimSpace(line); bare == "" || bare[0] == '#' {
			continue
		}
		if split == nil {
			split = splitter(line)
		}
		cells := split(line)
		if s.names == nil && s.header(cells) {
			first = number
			continue
		}
		if len(cells) != len(s.names) {
			return fmt.Errorf("line %d has %s, the first has %d: %s", number, plural(len(cells), "cell"), len(s.names), quoted(strings.TrimSpace(line)))
		}
		if len(s.rows) == maxSheetRows || len(s.rows)*len(s.names) > maxSheetCells {
			return fmt.Errorf("line %d: more than %d rows or %d cells: that is raw data, not a result", number, maxSheetRows, maxSheetCells)
		}
		s.rows, s.lines = append(s.rows, cells), append(s.lines, number)
		if len(s.rows) == 1 && s.named {
			s.noHeader(first)
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d KiB", number+1, maxSheetLine>>10)
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

// header takes the names of the columns from the first line, or gives names to them and reports false.
func (s *sheet) header(cells []string) bool {
	s.named = slices.ContainsFunc(cells, func(c string) bool { _, err := parse(c); return err != nil })
	if s.named {
		s.names = cells
		return true
	}
	s.number(len(cells))
	return false
}

func (s *sheet) number(columns int) {
	s.names = nil
	for i := range columns {
		s.names = append(s.names, fmt.Sprintf("column %d", i+1))
	}
}

// noHeader makes the first line a row after all, when it holds nothing but numbers written badly (1,5 or 12ms) and the second
// line writes its numbers alike.
func (s *sheet) noHeader(line int) {
	second := s.rows[0]
	for i, name := range s.names {
		if !missing(name) && !likeNumber(name) {
			return
		}
		_, bad := parse(name)
		_, alike := parse(second[i])
		if bad != nil && alike == nil {
			return
		}
	}
	s.rows, s.lines, s.named = append([][]string{s.names}, s.rows...), append([]int{line}, s.lines...), false
	s.number(len(s.names))
}
