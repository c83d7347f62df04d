package jinja

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is one piece of a template. Its kind is one of those below, or the text of an operator.
type token struct {
	kind string
	text string // of data and names; decoded of texts
	at   int    // byte offset in the source
}

const (
	tokData       = "text"
	tokVarBegin   = "{{"
	tokVarEnd     = "}}"
	tokBlockBegin = "{%"
	tokBlockEnd   = "%}"
	tokName       = "a name"
	tokString     = "a text in quotes"
	tokInt        = "a whole number"
	tokFloat      = "a number"
	tokEnd        = "the end of the file"
)

var (
	rawBegin = regexp.MustCompile(`^\{%[-+]?\s*raw\s*(-%\}\s*|%\})`)
	rawEnd   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*(-%\}\s*|\+?%\})`)
	floats   = regexp.MustCompile(strings.ReplaceAll(`^N(?:(?:\.N)?[eE][-+]?N|\.N)`, "N", `(?:[0-9]+_)*[0-9]+`))
	integers = regexp.MustCompile(`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|` +
		`[1-9](?:_?[0-9])*|0(?:_?0)*)`)
)

// operators, longer ones first.
var operators = []string{"**", "//", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// lexer cuts a template into tokens as Jinja does: white space beside a tag with "-" is dropped, comments are, and one
// newline at the end of the file is.
type lexer struct {
	source string
	at     int
	tokens []token
}

func lex(source string) []token {
	l := &lexer{source: strings.TrimSuffix(source, "\n")}
	for l.at < len(l.source) {
		l.text()
	}
	return append(l.tokens, token{kind: tokEnd, at: len(l.source)})
}

// data adds plain text up to an offset, without the white space at its end if the tag there says so.
func (l *lexer) data(end int, strip bool) {
	text := l.source[l.at:end]
	if strip {
		text = strings.TrimRightFunc(text, isSpace)
	}
	if text != "" {
		l.tokens = append(l.tokens, token{kind: tokData, text: text, at: l.at})
	}
	l.at = end
}

// space skips white space.
func (l *lexer) space() {
	l.at = len(l.source) - len(strings.TrimLeftFunc(l.source[l.at:], isSpace))
}

// isSpace is Python's idea of white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// text reads up to the next tag, and the tag.
func (l *lexer) text() {
	begin := len(l.source)
	for i := l.at; ; i++ {
		next := strings.IndexByte(l.source[i:], '{')
		if i += max(next, 0); next < 0 || i+1 >= len(l.source) {
			break
		}
		if strings.IndexByte("{%#", l.source[i+1]) >= 0 {
			begin = i
			break
		}
	}
	rest := l.source[begin:]
	l.data(begin, len(rest) > 2 && rest[2] == '-')
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "{#"):
		l.comment()
	case rawBegin.MatchString(rest):
		l.raw(rawBegin.FindString(rest))
	default:
		l.tag(rest[:2])
	}
}

func (l *lexer) comment() {
	begin := l.at
	end := strings.Index(l.source[begin+2:], "#}")
	if end < 0 {
		fail(begin, "end it with #}", "a comment that does not end")
	}
	l.at += 2 + end + 2
	if end > 0 && l.source[l.at-3] == '-' {
		l.space()
	}
}

func (l *lexer) raw(head string) {
	begin := l.at
	l.at += len(head)
	end := rawEnd.FindStringSubmatchIndex(l.source[l.at:])
	if end == nil {
		fail(begin, "end it with {% endraw %}", "{%% raw %%} does not end")
	}
	after := l.at + end[1]
	l.data(l.at+end[0], l.source[l.at+end[2]:l.at+end[3]] == "-")
	l.at = after
}

// tag reads {{ … }} or {% … %}. Its end counts only outside of brackets.
func (l *lexer) tag(begin string) {
	start := l.at
	end := map[string]string{tokVarBegin: tokVarEnd, tokBlockBegin: tokBlockEnd}[begin]
	l.add(begin, begin)
	if l.at < len(l.source) && (l.source[l.at] == '-' || l.source[l.at] == '+') {
		l.at++
	}
	var open []string
	for first := len(l.tokens); ; {
		if l.space(); l.at >= len(l.source) {
			fail(start, "end it with "+end, "the tag %s does not end", begin)
		}
		if len(l.tokens)-first > maxTag {
			fail(start, "split it", "the expression has more than %d parts", maxTag)
		}
		rest := l.source[l.at:]
		if len(open) == 0 {
			switch {
			case strings.HasPrefix(rest, "-"+end):
				l.at++
				l.add(end, end)
				l.space()
				return
			case strings.HasPrefix(rest, "+"+end) && begin == tokBlockBegin:
				l.at++
				fallthrough
			case strings.HasPrefix(rest, end):
				l.add(end, end)
				return
			}
		}
		l.token(rest)
		switch t := l.tokens[len(l.tokens)-1]; t.kind {
		case "(", "[", "{":
			open = append(open, closing[t.kind])
		case ")", "]", "}":
			if len(open) == 0 {
				fail(t.at, "", "%s without its beginning", t.kind)
			} else if want := open[len(open)-1]; want != t.kind {
				fail(t.at, "", "expected %s, found %s", want, t.kind)
			}
			open = open[:len(open)-1]
		}
	}
}

// add appends a token that is here in the source, of the given length.
func (l *lexer) add(kind, text string) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, at: l.at})
	l.at += len(text)
}

func (l *lexer) token(rest string) {
	if text := floats.FindString(rest); text != "" && (l.at == 0 || l.source[l.at-1] != '.') {
		l.add(tokFloat, text)
		return
	}
	if text := integers.FindString(rest); text != "" {
		if after := rest[len(text):]; text[0] == '0' && after != "" && after[0] >= '0' && after[0] <= '9' {
			fail(l.at, "drop it", "a number with a leading zero")
		}
		l.add(tokInt, text)
		return
	}
	if rest[0] == '\'' || rest[0] == '"' {
		l.quoted(rest)
		return
	}
	length := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if length < 0 {
		length = len(rest)
	}
	if first, _ := utf8.DecodeRuneInString(rest); length > 0 && !unicode.IsDigit(first) {
		l.add(tokName, rest[:length])
		return
	}
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if i < 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		fail(l.at, "", "cannot read %q: it is not part of the language", r)
	}
	l.add(operators[i], operators[i])
}

func (l *lexer) quoted(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(tokString, rest[:i+1])
			l.tokens[len(l.tokens)-1].text = unescape(rest[1:i])
			return
		}
	}
	fail(l.at, "close it", "a text whose quote %c is not closed", rest[0])
}

// unescape decodes the escapes of a Python text; unknown ones stay as they are.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' || len(s) == 1 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		digits := 0
		switch c := s[1]; c {
		case '\n':
			s = s[2:]
			continue
		case '\'', '"', '\\':
			b.WriteByte(c)
			s = s[2:]
			continue
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			octal := s[1:min(len(s), 4)]
			octal = octal[:len(octal)-len(strings.TrimLeft(octal, "01234567"))]
			r, _ := strconv.ParseUint(octal, 8, 32)
			b.WriteRune(rune(r))
			s = s[1+len(octal):]
			continue
		default:
			if i := strings.IndexByte(`abfnrtv`, c); i >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[i])
				s = s[2:]
				continue
			}
		}
		if r, err := strconv.ParseUint(s[2:min(len(s), 2+digits)], 16, 31); digits > 0 && len(s) >= 2+digits &&
			err == nil {
			b.WriteRune(rune(r))
			s = s[2+digits:]
			continue
		}
		b.WriteByte('\\')
		s = s[1:]
	}
	return b.String()
}
