// Package visible shows text of others (a scenario's author, a load tool, a file) so that it can only be read.
//
// What would steer a terminal, reorder a line or hide between letters is written as JSON writes it: \u001b, \u202e.
// The same notation is right inside a JSON string, where it does not change the value. Line is for a name or a
// sentence, Text for what may have several lines, Cut for a place that is not endless. A Writer is the wall at the
// edge: nothing that is not visible passes it, whoever wrote it. Fprintf also keeps every argument on its line, so
// that a name cannot forge one. The package knows no markup: HTML, Markdown and CSV escape by themselves, after it.
package visible

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Longest is how many characters of one argument Fprintf prints.
const Longest = 4000

// Line is s on one line: also line ends and tabs are written out. Bytes that are no UTF-8 become U+FFFD.
func Line(s string) string { return string(show(make([]byte, 0, len(s)), s, false)) }

// Text is s with its line ends and tabs, everything else as Line has it.
func Text(s string) string { return string(show(make([]byte, 0, len(s)), s, true)) }

// Cut shortens s to at most n characters, of which the last is an ellipsis when something is left out.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	last := 0 // where the ellipsis goes
	for i := range s {
		switch n--; n {
		case 0:
			last = i
		case -1:
			return s[:last] + "…"
		}
	}
	return s
}

// Lines is an argument of Fprintf that may have several lines, of any length.
type Lines string

// Fprintf prints as fmt.Fprintf does, but every argument stays on one line, is visible and is bounded; numbers pass.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i, a := range args {
		switch a.(type) {
		case int, int64, uint64, float64:
		default:
			args[i] = argument{a}
		}
	}
	return fmt.Fprintf(w, format, args...)
}

type argument struct{ value any }

// Format implements fmt.Formatter.
func (a argument) Format(f fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(f, verb), a.value)
	if _, several := a.value.(Lines); several {
		text = Text(text)
	} else {
		text = Line(Cut(text, Longest))
	}
	_, _ = io.WriteString(f, text) // into memory
}

// Writer passes on what is visible and writes out what is not. Line ends and tabs pass. It may be used by several
// goroutines.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // beginning of a character whose end has not come yet
	err  error  // the first that the writer behind has returned
}

// NewWriter makes a Writer in front of w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Unwrap is the writer behind the wall.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Failed is the first error of a write, nil when all came through.
func (w *Writer) Failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := p
	if len(w.rest) > 0 {
		all = append(w.rest, p...)
	}
	whole := len(all)
	for i := whole - 1; i >= max(0, whole-utf8.UTFMax); i-- {
		if utf8.RuneStart(all[i]) {
			if !utf8.FullRune(all[i:]) {
				whole = i
			}
			break
		}
	}
	out := all[:whole]
	if !clean(out) {
		out = show(make([]byte, 0, len(out)+64), out, true)
	}
	_, err := w.to.Write(out)
	w.rest = append([]byte(nil), all[whole:]...)
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return 0, err
	}
	return len(p), nil
}

// Close writes what was left of a character that never ended. It does not close the writer behind.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 {
		return nil
	}
	w.rest = nil
	_, err := io.WriteString(w.to, string(utf8.RuneError))
	return err
}

func clean(p []byte) bool {
	for i := 0; i < len(p); {
		if c := p[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if hidden(r) || r == utf8.RuneError && size == 1 {
			return false
		}
		i += size
	}
	return true
}

// hidden reports whether a character steers, reorders, separates lines, or shows nothing where it stands.
func hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

func show[T string | []byte](b []byte, s T, several bool) []byte {
	for _, r := range string(s) {
		switch {
		case !hidden(r), several && (r == '\n' || r == '\t'):
			b = utf8.AppendRune(b, r)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
