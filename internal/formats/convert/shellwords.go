package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
)

// loop goes through a loop over words.
func (s *script) loop(st statement, of []string) {
	if !s.within(st) {
		s.forget(st)
		return
	}
	for _, inner := range st.within {
		if word, _, _ := strings.Cut(inner.text, " "); word == "break" || word == "continue" || word == "exit" {
			s.Object(inner.at, "%q in a loop: only a shell knows when; write what it comes to, a line each", word)
			return
		}
	}
	s.at = st.at
	m := forIn.FindStringSubmatch(st.text)
	values, err := s.listed(m[2])
	if err != nil {
		s.Object(st.at, "the words of %q: %v", "for "+m[1], err)
		return
	}
	for _, v := range values {
		s.vars[m[1]] = v
		s.run(st.within, append(slices.Clone(of), v))
	}
}

// listed are the words of a loop.
func (s *script) listed(text string) ([]string, error) {
	text = lazySeq.ReplaceAllStringFunc(text, func(call string) string {
		m := sequence.FindStringSubmatch(strings.TrimSpace(strings.Trim(call, "$()`")))
		if m == nil {
			return call
		}
		return strings.Join(steps(m[1:], true), " ")
	})
	words, _, err := diskspd.Words(s.filled(text), load.Place{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, w := range words {
		if m := braces.FindStringSubmatch(w); m != nil {
			out = append(out, steps([]string{m[1], m[2], m[3]}, false)...)
			continue
		}
		if strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}") && strings.Contains(w, ",") {
			out = append(out, strings.Split(w[1:len(w)-1], ",")...)
			continue
		}
		if m := mark.FindString(w); m != "" {
			return nil, fmt.Errorf("%s", s.unknown(m))
		}
		if strings.ContainsAny(w, "*?{}()") {
			return nil, fmt.Errorf("%.40q is for a shell to fill in: write the words", w)
		}
		out = append(out, w)
	}
	switch {
	case len(out) == 0:
		return nil, fmt.Errorf("there are none that are written there")
	case len(out) > 1000:
		return nil, fmt.Errorf("there are more than a thousand")
	}
	return out, nil
}

var lazySeq = lazyregexp.New("\\$\\(\\s*seq [\\d -]+\\)|`seq [\\d -]+`")

// steps are the numbers from one to another: of seq FIRST STEP LAST, of braces FIRST LAST STEP.
func steps(of []string, seq bool) []string {
	n := func(text string, or int) int {
		if v, err := strconv.Atoi(text); err == nil {
			return v
		}
		return or
	}
	from, to, by := n(of[0], 1), n(of[1], 1), n(of[2], 1)
	if seq && of[1] == "" {
		from, to = 1, from
	} else if seq && of[2] != "" {
		to, by = by, to
	}
	if !seq && from > to {
		by = -max(by, -by)
	}
	var out []string
	for i := from; by != 0 && (by > 0 && i <= to || by < 0 && i >= to) && len(out) <= 1001; i += by {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

// filled is a text in which variables have their values. What has none becomes a mark, which matters where it is used.
func (s *script) filled(text string) string {
	var b strings.Builder
	within := byte(0)
	open := func(what string) {
		s.unset = append(s.unset, what)
		fmt.Fprintf(&b, "\ue000%d\ue001", len(s.unset)-1)
	}
	put := func(what, value string, known bool) {
		switch quoted := within == '"'; {
		case !known || strings.Contains(value, `"`) || b.Len()+len(value) > mostText:
			open(what)
		case !quoted && strings.ContainsAny(value, `'<>|&;\`):
			b.WriteString(`"` + value + `"`)
		default:
			b.WriteString(value)
		}
	}
	for i := 0; i < len(text); i++ {
		c, rest := text[i], text[i:]
		if m := array.FindStringSubmatch(rest); m != nil && within == 0 {
			if v, known := s.value(m[1]); known {
				b.WriteString(v)
				i += len(m[0]) - 1
				continue
			}
		}
		switch {
		case c == within && within != 0:
			within = 0
		case within == 0 && (c == '"' || c == '\''):
			within = c
		}
		n := 0
		if within != '\'' && strings.IndexByte("$%`", c) >= 0 {
			n = len(variable.FindString(rest))
		}
		if n > 0 {
			what := rest[:n]
			switch {
			case strings.HasPrefix(what, "$("):
				n = closing(rest, '(', ')')
				what = rest[:n]
				open(what)
			case c == '`':
				if end := strings.IndexByte(rest[1:], '`'); end >= 0 {
					n = end + 2
				}
				open(rest[:n])
			default:
				value, known := s.value(what)
				put(what, value, known)
			}
			i += n - 1
			continue
		}
		if c == '\\' && within != '\'' && i+1 < len(text) && text[i+1] == '$' {
			i++
			c = '$'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// closing is how long what begins with a bracket is, up to its end.
func closing(text string, open, shut byte) int {
	deep := 0
	for i := range len(text) {
		switch text[i] {
		case open:
			deep++
		case shut:
			if deep--; deep == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// value is that of a variable: as the user gave it, else as the script set it.
func (s *script) value(text string) (string, bool) {
	name := strings.Trim(text, "${}%")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "[@]"), "[*]")
	name, otherwise, has := strings.Cut(name, ":-")
	if !has {
		name, otherwise, has = strings.Cut(name, ":=")
	}
	if v, ok := s.set[name]; ok {
		s.used[name] = true
		return v, true
	}
	if v, ok := s.vars[name]; ok {
		return v, true
	}
	if has = has && !strings.ContainsAny(otherwise, "$`"); has {
		s.Note(load.Ask{Text: text, At: s.at}, otherwise, "its default, for the text sets nothing else")
	}
	return otherwise, has
}

// unknown says what to do about a mark.
func (s *script) unknown(text string) string {
	m := mark.FindStringSubmatch(text)
	n, err := strconv.Atoi(m[1])
	if err != nil || n >= len(s.unset) {
		return "a character that no text has"
	}
	what := s.unset[n]
	if name := named.FindStringSubmatch(what); name != nil {
		return fmt.Sprintf("%.40q is for a shell to fill in: write its value, or give it with --set %s%s=VALUE", what,
			name[1], name[2])
	}
	return fmt.Sprintf("%.40q is for a shell to fill in: write its value", what)
}

// shown is a text with what its marks stand for.
func (s *script) shown(text string) string {
	return mark.ReplaceAllStringFunc(text, func(m string) string {
		if n, err := strconv.Atoi(mark.FindStringSubmatch(m)[1]); err == nil && n < len(s.unset) {
			return s.unset[n]
		}
		return m
	})
}

// assign sets variables; not where the text is a command with settings before it.
func (s *script) assign(name string, more bool, text string) bool {
	if list, ok := strings.CutPrefix(text, "("); ok && strings.HasSuffix(list, ")") {
		if strings.ContainsAny(list, `'"`) { // words that may hold blanks
			delete(s.vars, name)
			return true
		}
		text = `"` + strings.TrimSpace(list[:len(list)-1]) + `"`
	}
	words, _, err := diskspd.Words(s.filled(text), load.Place{})
	if err != nil {
		delete(s.vars, name)
		return true
	}
	if len(words) == 0 {
		words = []string{""}
	}
	if slices.ContainsFunc(words[1:], func(w string) bool { return !setting.MatchString(w) }) {
		return false
	}
	words[0] = name + "=" + words[0]
	for i, w := range words {
		key, v, _ := strings.Cut(w, "=")
		switch {
		case mark.MatchString(v) || len(v) > mostText:
			delete(s.vars, key)
		case more && i == 0:
			s.vars[key] += v
		default:
			s.vars[key] = v
		}
	}
	return true
}
