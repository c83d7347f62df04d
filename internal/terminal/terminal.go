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
	"strings"
	"unicode/utf8"

	"plimsoll/internal/visible"
)

// Table prints columns aligned by blanks. The last column is not padded.
type Table struct {
	Head  []string
	Right []bool // columns that are numbers
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

// Keep leaves the first n rows and drops the others.
func (t *Table) Keep(n int) { t.rows = t.rows[:min(n, len(t.rows))] }

// Write prints the head and all rows.
func (t *Table) Write(w io.Writer) error {
	width := make([]int, len(t.Head))
	all := append([][]string{t.Head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			most := widest
			if i == len(t.Head)-1 {
				most = visible.Longest
			}
			row[i] = visible.Line(visible.Cut(cell, most))
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	b := bufio.NewWriter(w)
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < len(t.Right) && t.Right[i] {
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
