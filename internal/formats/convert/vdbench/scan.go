package vdbench

import (
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/formats/convert/load"
)

// Limits that keep a hostile file cheap. Real files have a few dozen lines.
const (
	maxBytes  = 1 << 20
	maxLines  = 20_000
	maxValues = 2_000 // of one parameter, ranges written out
)

// param is one "keyword=value" or "keyword=(value,...)".
type param struct {
	key   string // as the table has it
	text  string // as written
	words []word
	at    load.Place
}

// word is a value of a parameter.
type word struct {
	text   string
	number float64
	is     bool // a number
}

// line is one line of the file, with where its text begins.
type line struct {
	text string
	at   load.Place
}

// scanner turns text into parameters.
type scanner struct {
	*load.Teller
	set     map[string]string
	used    map[string]bool
	include func(name string) ([]byte, error)
	lines   []line
}

// read takes the lines of a file that are not comments, those of files that it includes in their place.
func (s *scanner) read(name string, data []byte, included bool) {
	at := load.Place{File: name, Line: 1, Col: 1}
	if len(data) > maxBytes {
		s.Object(at, "the file has %d bytes; a parameter file may have %d", len(data), maxBytes)
		return
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		s.Object(at, "the file is UTF-16; save it as UTF-8")
		return
	}
	at.Line = 0
	for raw := range strings.SplitSeq(text, "\n") {
		at.Line++
		if at.Line > maxLines || len(s.lines) > maxLines {
			s.Object(at, "more than %d lines", maxLines)
			return
		}
		text := strings.TrimLeft(raw, " \t")
		at.Col = 1 + len(raw) - len(text)
		text = strings.TrimRight(text, " \t\r")
		switch {
		case strings.HasPrefix(text, "eof"):
			return
		case text == "" || strings.ContainsAny(text[:1], "/#*"):
			continue
		}
		if word, _, _ := strings.Cut(text, " "); at.Col > 1 && !strings.Contains(word, "=") && !s.goesOn() {
			s.Note(
				load.Ask{Text: shortened(text), At: at},
				"",
				"a line that begins with a blank and is no parameter is a comment "+
					"here, as published files have it",
			)
			continue
		}
		if i := strings.IndexFunc(text, unreadable); i >= 0 {
			bad, _ := utf8.DecodeRuneInString(text[i:])
			s.Object(load.Place{File: name, Line: at.Line, Col: at.Col + i},
				"%q cannot be part of a parameter file; write plain text", bad)
			continue
		}
		text = s.substitute(text, at)
		if of, ok := strings.CutPrefix(text, "include="); ok {
			s.readIncluded(name, of, at, included)
			continue
		}
		s.lines = append(s.lines, line{text, at})
	}
}

// goesOn reports whether the last line taken has its end on the next.
func (s *scanner) goesOn() bool {
	return len(s.lines) > 0 && strings.HasSuffix(s.lines[len(s.lines)-1].text, ",")
}

// shortened is a text of a length for messages.
func shortened(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

func unreadable(r rune) bool { return r == utf8.RuneError || r != '\t' && !strconv.IsPrint(r) }

func (s *scanner) readIncluded(from, name string, at load.Place, included bool) {
	ask := load.Ask{Text: "include=" + name, At: at}
	switch {
	case included:
		s.Refuse(ask, "an included file includes no other")
	case s.include == nil:
		s.Refuse(ask, "what has no folder includes nothing; put the text here")
	default:
		beside := strings.ReplaceAll(name, "\\", "/") // of Windows
		if !filepath.IsLocal(beside) || strings.Contains(beside, ":") {
			beside = path.Base(beside) // of another host, or of another place
		}
		if !filepath.IsLocal(beside) {
			s.Refuse(ask, "it names no file")
			return
		}
		data, err := s.include(beside)
		switch {
		case err != nil && beside != name:
			s.Refuse(ask, "only files beside this one, or in folders below it, are included, and there is none: %v; copy it there",
				err)
			return
		case err != nil:
			s.Refuse(ask, "%v", err)
			return
		case beside != name:
			s.Note(ask, "include="+beside, "the file of that name beside this one is taken")
		}
		s.read(filepath.Join(filepath.Dir(from), beside), data, true)
	}
}

var variable = regexp.MustCompile(`[$!]([A-Za-z_]\w*)|#host\b`)

// substitute fills in variables, which vdbench takes from its command line.
func (s *scanner) substitute(text string, at load.Place) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		name := found[1:]
		value, ok := s.set[name]
		switch {
		case name == "host":
			s.Object(at, "%s: lines repeated for every host are not read; write the lines out", found)
		case !ok:
			s.Object(at, "%s has no value; give one with --set %s=VALUE", found, name)
		default:
			s.used[name] = true
			return value
		}
		return found
	})
}

// params cuts the lines into parameters. A line that ends with a comma goes on in the next; what comes after a blank
// is a comment, as it is to vdbench.
func (s *scanner) params() []param {
	var all []param
	for i := 0; i < len(s.lines); {
		next := true
		for first := true; next && i < len(s.lines); first = false {
			found, more := s.cut(s.lines[i])
			if !first && len(found) > 0 && s.lines[i].text[0] == ',' {
				s.Object(s.lines[i].at, "two commas in a row")
			}
			all, next = append(all, found...), more
			i++
		}
	}
	return all
}

// cut cuts one line. It reports whether the line goes on.
func (s *scanner) cut(l line) (found []param, more bool) {
	text, begin, depth, quoted := l.text, 0, 0, false
	end := func(to int) {
		if part := text[begin:to]; part != "" {
			at := l.at
			at.Col += begin
			if p, ok := s.parse(part, at); ok {
				found = append(found, p)
			}
		}
		begin = to + 1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				s.Object(l.at, "a closing parenthesis too many: %.60q", text)
				return nil, false
			}
		case c == ',' && depth == 0:
			end(i)
		case c == ' ' || c == '\t':
			rest := strings.TrimSpace(text[i:])
			if before, _, is := strings.Cut(rest, "="); is && !strings.ContainsAny(before, " \t") {
				at := l.at
				at.Col += i + 1
				s.Note(load.Ask{Text: rest, At: at}, "",
					"what comes after a blank is a comment to vdbench; join it to what stands before when it is meant")
			}
			text = text[:i]
		}
	}
	switch {
	case quoted:
		s.Object(l.at, "a quotation mark that is not closed: %.60q", text)
		return nil, false
	case depth > 0:
		s.Object(l.at, "a parenthesis that is not closed on its line: %.60q", text)
		return nil, false
	}
	end(len(text))
	return found, strings.HasSuffix(text, ",")
}

// parse reads one parameter.
func (s *scanner) parse(text string, at load.Place) (param, bool) {
	key, value, ok := strings.Cut(text, "=")
	p := param{key: strings.ToLower(key), text: text, at: at}
	switch {
	case !ok:
		s.Object(at, "%.60q is no keyword=value", text)
		return p, false
	case len(key) < 2:
		s.Object(at, "%.60q: a keyword has two letters or more", text)
		return p, false
	case value == "":
		s.Object(at, "%.60q has no value", text)
		return p, false
	}
	if value[0] != '(' {
		p.words = []word{p.word(strings.ReplaceAll(value, `"`, ""))}
		return p, true
	}
	return p, s.list(&p, value)
}

// list reads "(a,b,c-d,step)": ranges are written out.
func (s *scanner) list(p *param, value string) bool {
	noRanges := p.key == "host" || p.key == "hd" || strings.HasPrefix(p.key, "misc") || p.key == "replay" ||
		strings.HasPrefix(p.key, "dedup")
	var b strings.Builder
	quoted, wasQuoted, dash := false, false, false
	add := func() bool {
		text := b.String()
		b.Reset()
		if text == "" && !wasQuoted {
			return true
		}
		w := p.word(text)
		wasQuoted = false
		if len(p.words) >= maxValues {
			s.Object(p.at, "%.60q has more than %d values", p.text, maxValues)
			return false
		}
		if !dash {
			p.words = append(p.words, w)
			return true
		}
		return s.span(p, w)
	}
	step := false // the next word is that of a range
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '"':
			quoted, wasQuoted = !quoted, true
		case quoted:
			b.WriteByte(c)
		case c == '-' && !noRanges && b.Len() > 0 && !strings.HasSuffix(strings.ToLower(b.String()), "e"):
			if dash {
				s.Object(p.at, "%.60q: a range of a range", p.text)
				return false
			}
			if !add() {
				return false
			}
			dash = true
		case c == ',' || c == ')' || c == '(':
			if step && b.Len() > 0 {
				// span has kept the end of the range for its step
				if !s.step(p, p.word(b.String())) {
					return false
				}
				b.Reset()
				step = false
				continue
			}
			wide := dash && b.Len() > 0 && p.numeric()
			if !add() {
				return false
			}
			step, dash = wide, false
		default:
			b.WriteByte(c)
		}
	}
	if step {
		s.Object(p.at, "%.60q: a range of numbers wants its step, like (1-64,d) or (100-1000,100)", p.text)
		return false
	}
	if len(p.words) == 0 {
		s.Object(p.at, "%.60q has no value", p.text)
		return false
	}
	return true
}

// numeric reports whether the last word is a number.
func (p *param) numeric() bool { return len(p.words) > 0 && p.words[len(p.words)-1].is }

var endsInNumber = regexp.MustCompile(`^(.*?)(\d{1,6})$`)

// span adds the end of a range: names are written out, a number waits for its step.
func (s *scanner) span(p *param, to word) bool {
	from := p.words[len(p.words)-1]
	if from.is {
		if !to.is {
			s.Object(p.at, "%.60q: a range from a number to %q", p.text, to.text)
			return false
		}
		p.words = append(p.words, to)
		return true
	}
	a, b := endsInNumber.FindStringSubmatch(from.text), endsInNumber.FindStringSubmatch(to.text)
	if a == nil || b == nil || a[1] != b[1] {
		s.Object(
			p.at,
			"%.60q: a range goes from a name to one that differs in the number at its end; put the name into "+
				"double quotes if it is none",
			p.text,
		)
		return false
	}
	low, _ := strconv.Atoi(a[2])
	high, _ := strconv.Atoi(b[2])
	if low >= high || high-low > maxValues {
		s.Object(p.at, "%.60q: a range goes upwards, over %d names at most", p.text, maxValues)
		return false
	}
	for n := low + 1; n <= high; n++ {
		p.words = append(p.words, p.word(a[1]+strconv.Itoa(n)))
	}
	return true
}

// step writes out a range of numbers whose two ends are the last words: "d" doubles or halves.
func (s *scanner) step(p *param, by word) bool {
	from, to := p.words[len(p.words)-2].number, p.words[len(p.words)-1].number
	p.words = p.words[:len(p.words)-1]
	next := func(v float64) float64 { return v + by.number }
	switch {
	case by.text == "d" && to < from:
		next = func(v float64) float64 { return v / 2 }
	case by.text == "d":
		next = func(v float64) float64 { return v * 2 }
	case !by.is || by.number <= 0:
		s.Object(p.at, "%.60q: the step of a range is a number above 0, or d to double", p.text)
		return false
	}
	within := func(v float64) bool { return v <= to && v > from || by.text == "d" && to < from && v >= to && v > 0 }
	for v := next(from); within(v); v = next(v) {
		if len(p.words) >= maxValues {
			s.Object(p.at, "%.60q has more than %d values", p.text, maxValues)
			return false
		}
		p.words = append(p.words, word{load.Number(v), v, true})
	}
	return true
}

// word reads one value: numbers may end with k, m, g, t (powers of 1024; m is minutes and h hours in times), and %
// makes them negative, which stands for a share of something.
func (p *param) word(text string) word {
	w := word{text: text}
	switch p.key {
	case "hd", "host", "system", "histogram", "replay", "lun", "sd", "wd", "rd", "fsd", "fwd", "anchor":
		return w
	}
	digits, factor := strings.ToLower(text), 1.0
	if n := len(digits); n > 2 && strings.HasSuffix(digits, "b") {
		digits = digits[:n-1]
	}
	if n := len(digits); n > 1 {
		known := map[byte]float64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40, 'h': 3600, '%': -1}
		if f, ok := known[digits[n-1]]; ok {
			digits, factor = digits[:n-1], f
		}
		if factor == 1<<20 && p.time() {
			factor = 60
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err == nil && v-v == 0 && strings.Trim(digits, "0123456789.-+e") == "" {
		w.number, w.is = v*factor, true
	}
	return w
}

// time reports whether the values are seconds.
func (p *param) time() bool {
	for _, begins := range []string{"el", "in", "pa", "wa", "reset"} {
		if strings.HasPrefix(p.key, begins) {
			return true
		}
	}
	return false
}
