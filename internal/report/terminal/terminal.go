// Package terminal lays out what commands print for people: columns aligned by blanks, and an author's HTML as wrapped
// text.
//
// It stands between the commands and visible: every cell and word it prints is made visible and cut to a length, so
// that nothing that an author, a tool or a file says steers the terminal or tears a row. It knows no document and no
// run.
package terminal

import (
	"bufio"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/kit/visible"
)

// Table prints columns aligned by blanks. The last column is not padded.
type Table struct {
	Head  []string
	Right []bool // columns that are numbers
	// Fits is how many columns of characters the table is to take at most, wherever it is written; 0 is those of the
	// terminal, and of anything else no bound.
	Fits int
	// Spare are columns, by their heads, that may be left out for that, the first one first. Others are cut, never the
	// first one; the last one goes on below where there is room enough.
	Spare []string
	rows  [][]string
}

// widest is how many characters of a cell are printed, but of one in the last column.
const widest = 200

// Add adds a row of as many cells as the head has.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Rows are the rows that were added.
func (t *Table) Rows() [][]string { return t.rows }

// Write prints the head and all rows.
func (t *Table) Write(w io.Writer) error {
	all := append([][]string{t.Head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			most := widest
			if i == len(t.Head)-1 {
				most = visible.Longest
			}
			row[i] = visible.Line(visible.Cut(cell, most))
		}
	}
	limit := t.Fits
	if limit == 0 {
		limit = Width(w)
	}
	right := slices.Clone(t.Right)
	if limit > 0 {
		all, right = t.fitted(all, right, limit)
	}
	width := widths(all)
	b := bufio.NewWriter(w)
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < len(right) && right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			if i < len(row)-1 {
				line.WriteString("  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.Flush()
}

func widths(rows [][]string) []int {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	return width
}

const (
	narrowest = 8  // a cut column keeps so many characters
	wraps     = 16 // the last column goes on below where it has so many
)

// fitted are the rows with columns left out, cut or wrapped until they take no more than limit characters.
func (t *Table) fitted(rows [][]string, right []bool, limit int) ([][]string, []bool) {
	over := func() int {
		sum := 2 * (len(rows[0]) - 1)
		for _, n := range widths(rows) {
			sum += n
		}
		return sum - limit
	}
	for _, name := range t.Spare {
		if i := slices.Index(rows[0], name); i > 0 && over() > 0 {
			for k := range rows {
				rows[k] = slices.Delete(slices.Clone(rows[k]), i, i+1)
			}
			if i < len(right) {
				right = slices.Delete(right, i, i+1)
			}
		}
	}
	width := widths(rows)
	last := len(width) - 1
	if n := width[last] - over(); over() > 0 && n >= wraps && !(last < len(right) && right[last]) {
		var out [][]string
		for _, row := range rows {
			for k, line := range strings.Split(wrap(strings.Fields(row[last]), n), "\n") {
				next := make([]string, len(row))
				if k == 0 {
					copy(next, row)
				}
				next[last] = visible.Cut(line, n)
				out = append(out, next)
			}
		}
		return out, right
	}
	for by := over(); by > 0; by = over() {
		at := 0
		for i := 1; i < len(width); i++ {
			if number := i < len(right) && right[i]; !number && width[i] > max(narrowest, width[at]*min(at, 1)) {
				at = i
			}
		}
		if at == 0 {
			break // what is left is not cut
		}
		n := max(narrowest, width[at]-by)
		for k := range rows {
			rows[k] = slices.Clone(rows[k])
			if cell := []rune(rows[k][at]); len(cell) > n {
				rows[k][at] = string(cell[:n-1]) + "…"
			}
		}
		width = widths(rows)
	}
	return rows, right
}

var (
	tags   = regexp.MustCompile(`(?s)<!--.*?-->|<[^>]*>`)
	breaks = regexp.MustCompile(`(?i)<(/p|br ?/?|/li|/h[1-6]|/tr)>`)
)

// PlainText is an author's HTML for a terminal: paragraphs wrapped at 96 columns, no tags.
func PlainText(h string) string {
	var out []string
	for par := range strings.SplitSeq(breaks.ReplaceAllString(h, "\n\n"), "\n\n") {
		if words := strings.Fields(html.UnescapeString(tags.ReplaceAllString(par, " "))); len(words) > 0 {
			out = append(out, wrap(words, 96))
		}
	}
	return strings.Join(out, "\n\n")
}

// Wrap breaks a text into lines of at most so many columns, between words.
func Wrap(text string, columns int) string { return wrap(strings.Fields(text), columns) }

func wrap(words []string, width int) string {
	var b strings.Builder
	column := 0
	for _, w := range words {
		w = visible.Line(w)
		n := utf8.RuneCountInString(w)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += n
	}
	return b.String()
}
