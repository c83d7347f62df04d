package terminal

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
)

// Paint is w with colours for verdicts and warnings where w is a terminal; elsewhere, with NO_COLOR set, and on a
// terminal that is dumb, it is w itself. It stands below visible: what it sees holds no control characters any more.
func Paint(w io.Writer) io.Writer {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !Is(w) {
		return w
	}
	return &painter{w: w, begins: true}
}

type painter struct {
	w      io.Writer
	begins bool // what comes next begins a line
}

// Unwrap returns what the colours are written to.
func (p *painter) Unwrap() io.Writer { return p.w }

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

var (
	heads = []struct {
		colour string
		head   *regexp.Regexp
	}{
		{red, regexp.MustCompile(`^(?:- )?(invalid:|error:|problem:|plimsoll:|FAIL:|✗)`)},
		{yellow, regexp.MustCompile(`^(?:- )?(warning:|inconclusive:|\?)( |$)`)},
		{green, regexp.MustCompile(`^(?:- )?(passed:|PASS:|✓)`)},
	}
	// cells are verdicts that stand alone in a table, and the status at the end of a summary.
	cells = []struct {
		colour string
		cell   *regexp.Regexp
	}{
		{red, regexp.MustCompile(`(  |\()(worse|failed|interrupted|unreadable|not met)(  |\)|$|,)`)},
		{yellow, regexp.MustCompile(`(  |\()(inconclusive|stopped)(  |\)|$|,)`)},
		{green, regexp.MustCompile(`(  |\()(better|succeeded|met)(  |\)|$|,)`)},
	}
)

// Write implements io.Writer.
func (p *painter) Write(b []byte) (int, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		text, ends := bytes.CutSuffix(line, []byte("\n"))
		if p.begins {
			for _, h := range heads {
				if at := h.head.FindSubmatchIndex(text); at != nil {
					word := h.colour + string(text[at[2]:at[3]]) + plain
					text = slices.Concat(text[:at[2]], []byte(word), text[at[3]:])
					break
				}
			}
		}
		for _, c := range cells {
			text = c.cell.ReplaceAll(text, []byte("${1}"+c.colour+"${2}"+plain+"${3}"))
		}
		out.Write(text)
		if p.begins = ends; ends {
			out.WriteByte('\n')
		}
	}
	if _, err := p.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}
