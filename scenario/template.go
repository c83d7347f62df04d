package scenario

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/kit/untyped"
	"plimsoll/scenario/jinja"
)

// maxSource is the largest scenario file, in bytes.
const maxSource = 4 << 20

// rendered is the text after templating, with the offset of each line's start.
type rendered struct {
	*jinja.Output
	lines []int
}

// offset returns the offset of a line and a column (in characters), both from 1, as the YAML reader counts them.
func (r *rendered) offset(line, col int) int {
	line = min(max(line, 1), len(r.lines))
	at := r.lines[line-1]
	for range col - 1 {
		if at >= len(r.Text) || r.Text[at] == '\n' {
			break
		}
		_, width := utf8.DecodeRuneInString(r.Text[at:])
		at += width
	}
	return at
}

// lineStarts returns the offset of each line's first byte.
func lineStarts(text string) []int {
	starts := make([]int, 1, 1+strings.Count(text, "\n"))
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineCol converts an offset to a line and a column in characters, both from 1.
func lineCol(text string, starts []int, offset int) (line, col int) {
	offset = min(offset, len(text))
	line = sort.SearchInts(starts, offset+1)
	return line, 1 + utf8.RuneCountInString(text[starts[line-1]:offset])
}

// render evaluates the template of the file with exactly the given variables in scope.
func (l *loader) render(values untyped.Object) bool {
	if l.opts.Rendered {
		l.out = &rendered{Output: jinja.Verbatim(l.source), lines: l.starts}
		return true
	}
	out, objections := jinja.Render(l.source, values)
	for _, o := range objections {
		line, col := lineCol(l.source, l.starts, o.At)
		l.say("template", Pos{File: l.file, Line: line, Col: col}, "template: "+o.What, o.Hint)
	}
	if out == nil {
		return false
	}
	for _, v := range l.sc.Vars {
		if !out.Used[v.Name] {
			l.say("unused-variable", v.Pos, fmt.Sprintf("variable %q is never used", v.Name), "remove it")
		}
	}
	l.out = &rendered{Output: out, lines: lineStarts(out.Text)}
	return true
}
