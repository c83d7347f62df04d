package cli

import (
	"bufio"
	"html"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/visible"
)

// table prints columns aligned by blanks. The last column is not padded.
type table struct {
	head  []string
	rows  [][]string
	right []bool // columns that are numbers
}

// widest is how many characters of a cell are printed, but of one in the last column.
const widest = 200

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	width := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			most := widest
			if i == len(t.head)-1 {
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
			if i < len(t.right) && t.right[i] {
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

// plainText is an author's HTML for a terminal: paragraphs wrapped at 96 columns, no tags.
func plainText(h string) string {
	var out []string
	for par := range strings.SplitSeq(breaks.ReplaceAllString(h, "\n\n"), "\n\n") {
		if words := strings.Fields(html.UnescapeString(tags.ReplaceAllString(par, " "))); len(words) > 0 {
			out = append(out, wrap(words, 96))
		}
	}
	return strings.Join(out, "\n\n")
}

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
