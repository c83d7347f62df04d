package terminal

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Fold has sentences that are wider than the terminal to which w is written go on below, between words, and those of a
// list within it. Rows of tables stay as they are, and so does all that goes elsewhere. Close writes the last line.
func Fold(w io.Writer) io.WriteCloser { return &folder{w: w, columns: Width(w)} }

type folder struct {
	w       io.Writer
	columns int // 0 for no bound
	line    []byte
}

// Write implements io.Writer.
func (f *folder) Write(b []byte) (int, error) {
	if f.columns == 0 {
		return f.w.Write(b)
	}
	f.line = append(f.line, b...)
	end := bytes.LastIndexByte(f.line, '\n') + 1
	var out strings.Builder
	for line := range strings.Lines(string(f.line[:end])) {
		out.WriteString(folded(strings.TrimSuffix(line, "\n"), f.columns) + "\n")
	}
	f.line = append(f.line[:0], f.line[end:]...)
	if _, err := f.w.Write([]byte(out.String())); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements io.Closer.
func (f *folder) Close() error {
	if len(f.line) == 0 {
		return nil
	}
	_, err := f.w.Write([]byte(folded(string(f.line), f.columns)))
	f.line = nil
	return err
}

// folded is a line in lines of at most so many columns.
func folded(line string, columns int) string {
	text, listed := strings.CutPrefix(line, "- ")
	if utf8.RuneCountInString(line) <= columns || strings.Contains(text, "  ") {
		return line
	}
	if !listed {
		return Wrap(text, columns)
	}
	return "- " + strings.ReplaceAll(Wrap(text, max(columns-2, 1)), "\n", "\n  ")
}
