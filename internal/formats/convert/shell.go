package convert

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/diskspd"
	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/lazyregexp"
)

// Limits that keep a hostile script cheap.
const (
	mostSteps = 2000 // commands, those of loops each time they are gone through
	mostDepth = 6    // shells within shells, loops within loops
	mostText  = 1 << 16
)

// statement is one command of a script, or one that holds others.
type statement struct {
	text   string
	at     load.Place
	after  string // && or || where it depends on the one before
	opens  string // for, while, if, ...: the word that begins what holds others
	within []statement
	here   string // a here document, as it stands
	asIs   bool   // nothing is filled in in it
	hasDoc bool
	enters int // shells of its own that begin with it
	leaves int // and that end after it
}

// script goes through a text as a shell would, as far as that takes no shell: settings with plain values, loops over
// words that are written there, here documents, cd. It runs nothing. Its calls are the command lines of fio on the way.
type script struct {
	*load.Teller
	program   string             // whose command lines are looked for: fio, diskspd
	called    *lazyregexp.Regexp // a text that calls it
	take      func(st statement, args, shell, of []string)
	set, vars map[string]string
	used      map[string]bool
	files     map[string]string                 // what here documents are written to
	read      func(name string) ([]byte, error) // a job file that is named; nil: none can be had
	dir, lost string                            // where cd leads; the cd that nobody can follow
	unset     []string                          // what the marks in texts stand for
	calls     []call
	others    []string // commands that are no call
	otherAt   load.Place
	at        load.Place // of the command that is looked at
	steps     int
	ended     bool
	beside    bool // the call is started beside the next
	depth     int
}

var (
	prompt = lazyregexp.New(`^(?:(?:\([\w.-]+\)\s*)?` +
		`(?:\[[^\]\s][^\]\n]{0,60}\]|[\w.-]+@[\w.-]+(?::[^\s$#]*)?)\s*[#$%]\s+|\$\s+|` +
		`(?:PS [^>\n]{1,60}|[A-Z]:\\[^>\n]{0,60})>\s*)`)
	assigns = lazyregexp.New(`^(?:(?:export|local|readonly|declare|typeset|set)\s+(?:-\w+\s+)*)?` +
		`([A-Za-z_]\w*)(\+?)=(.*)$`)
	psAssigns  = lazyregexp.New(`^\$([A-Za-z_]\w*)\s*=\s*([^=].*)$`)
	array      = lazyregexp.New(`^"(\$\{[A-Za-z_]\w*\[@\]\})"`)
	setting    = lazyregexp.New(`^[A-Za-z_]\w*=`)
	heredoc    = lazyregexp.New(`(^|[^<])<<(-?)\s*(['"\\]?)(\w+)['"]?`)
	forIn      = lazyregexp.New(`^for\s+([A-Za-z_]\w*)(?:\s+in\s+(.*))?$`)
	forCmd     = lazyregexp.New(`(?i)^for\s+%%?([A-Za-z])\s+in\s+\(([^()]*)\)\s+do\s+(.*)$`)
	forEach    = lazyregexp.New(`(?i)^foreach\s*\(\s*\$(\w+)\s+in\s+([^()]*)\)\s*\{\s*(.*)$`)
	numbers    = lazyregexp.New(`\b(\d+)\.\.(\d+)\b`)
	opener     = lazyregexp.New(`^(for|while|until|if|case|select|function|foreach)\b|^[\w-]+\s*\(\)`)
	closer     = lazyregexp.New(`^(?:(?:done|fi|esac)\b|\})(.*)$`)
	lead       = lazyregexp.New(`^(?:(?:do|then|else)\b\s*|[{!]\s+|[{(]$|\((?:\s*))`)
	mark       = lazyregexp.New("\ue000(\\d+)\ue001")
	braces     = lazyregexp.New(`^\{(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\}$`)
	sequence   = lazyregexp.New(`^seq\s+(-?\d+)(?:\s+(-?\d+))?(?:\s+(-?\d+))?$`)
	named      = lazyregexp.New(`^(?:\$\{?([A-Za-z_]\w*)\}?|%(\w+)%)$`)
	conditions = strings.Fields("[ [[ test which command type grep if")
)

// statements cuts a text into commands.
func (s *script) statements(text string, at load.Place) []statement {
	var flat []statement
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		from := at
		from.Line += i
		line := strings.TrimRight(lines[i], " \t\r")
		for i+1 < len(lines) && goesOn(line) && len(line) < mostText {
			i++
			from.Line = at.Line + i
			line = line[:len(line)-1] + " " + strings.TrimRight(lines[i], " \t\r")
		}
		if len(line) >= mostText {
			s.Object(from, "a line of more than %d characters", mostText)
			return nil
		}
		bare := strings.TrimSpace(line)
		if bare == "" || strings.HasPrefix(bare, "#") || strings.HasPrefix(strings.ToLower(bare), "rem ") ||
			strings.HasPrefix(bare, "::") {
			continue
		}
		if goesOn(line) {
			s.Object(from, "the last line goes on, and there is none after it")
			continue
		}
		pieces, open := cutLine(line)
		more := fioNamed.MatchString(line) || strings.Contains(line, " -c ")
		for n := 0; open && more && n < 200 && i+1 < len(lines) && len(line) < mostText; n++ {
			i++
			line += "\n" + strings.TrimRight(lines[i], "\r")
			pieces, open = cutLine(line)
		}
		if at.Col == 0 {
			at.Col = 1
		}
		for k := range pieces {
			pieces[k].at = from
			if m := heredoc.FindStringSubmatch(pieces[k].text); m != nil && !strings.Contains(m[0], "<<<") {
				body, n, ended := document(lines[i+1:], m[4], m[2] == "-")
				if ended && len(body) > 4*mostText {
					s.Object(from, "a here document of more than %d characters", 4*mostText)
					return nil
				} else if !ended {
					s.Object(from, "the here document ends nowhere: there is no line %q", m[4])
					return nil
				}
				i += n
				st := &pieces[k]
				st.text = strings.Replace(st.text, strings.TrimPrefix(m[0], m[1]), " ", 1)
				st.here, st.asIs, st.hasDoc = body, m[3] != "", true
			}
		}
		flat = append(flat, pieces...)
	}
	return s.nest(flat)
}

// goesOn reports whether a line is continued on the next.
func goesOn(line string) bool {
	return strings.HasSuffix(line, "\\") || strings.HasSuffix(line, "^") || strings.HasSuffix(line, " `")
}

// document is the text up to a line that is its end.
func document(lines []string, end string, tabs bool) (body string, n int, ended bool) {
	var b strings.Builder
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if tabs {
			line = strings.TrimLeft(line, "\t")
		}
		if line == end {
			return b.String(), i + 1, true
		}
		b.WriteString(line + "\n")
	}
	return "", 0, false
}

// cutLine cuts a line at what stands between commands, outside of quotes; open: a quotation mark is not closed.
func cutLine(line string) (out []statement, open bool) {
	begin, within, deep, after := 0, byte(0), 0, ""
	add := func(end int, next string) {
		if text := strings.TrimSpace(line[begin:end]); text != "" {
			out = append(out, statement{text: text, after: after})
		}
		after = next
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case within != 0:
			if c == within {
				within = 0
			} else if c == '\\' && within == '"' {
				i++
			}
		case c == '\\':
			i++
		case c == '\'' || c == '"':
			within = c
		case c == '(' && i > 0 && (line[i-1] == '$' || line[i-1] == '=' || deep > 0):
			deep++
		case c == ')' && deep > 0:
			deep--
		case deep > 0:
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') && len(prompt.FindString(line)) <= i:
			add(i, "")
			return out, false
		case c == ';':
			add(i, "")
			begin = i + 1
		case (c == '&' || c == '|') && i+1 < len(line) && line[i+1] == c:
			add(i, line[i:i+2])
			begin = i + 2
			i++
		}
	}
	add(len(line), "")
	return out, within != 0
}

// nest puts the commands of loops and conditions into what begins them.
func (s *script) nest(flat []statement) []statement {
	root := statement{}
	stack := []*statement{&root}
	for _, st := range flat {
		if m := prompt.FindString(st.text); m != "" {
			st.text = st.text[len(m):]
		}
		for {
			m := lead.FindString(st.text)
			if m == "" || strings.HasPrefix(st.text, "((") {
				break
			}
			st.text = st.text[len(m):]
			st.enters += strings.Count(m, "(")
		}
		for strings.HasSuffix(st.text, ")") && strings.Count(st.text, ")") > strings.Count(st.text, "(") {
			st.text = strings.TrimSpace(strings.TrimSuffix(st.text, ")"))
			st.leaves++
		}
		top := stack[len(stack)-1]
		if m := forCmd.FindStringSubmatch(st.text); m != nil {
			loop := statement{text: "for " + m[1] + " in " + strings.ReplaceAll(m[2], ",", " "), at: st.at, opens: "for"}
			st.text = strings.NewReplacer("%%"+m[1], "${"+m[1]+"}", "%"+m[1], "${"+m[1]+"}").Replace(m[3])
			loop.within = []statement{st}
			top.within = append(top.within, loop)
			continue
		}
		if m := forEach.FindStringSubmatch(st.text); m != nil { // of PowerShell
			list := numbers.ReplaceAllString(strings.NewReplacer(",", " ", "@", " ").Replace(m[2]), "{$1..$2}")
			top.within = append(top.within, statement{text: "for " + m[1] + " in " + list, at: st.at, opens: "for"})
			top = &top.within[len(top.within)-1]
			stack = append(stack, top)
			st.text = m[3]
		}
		if rest, ok := strings.CutSuffix(st.text, " }"); ok && len(stack) > 1 && top.opens == "for" &&
			!strings.Contains(rest, "{") {
			if st.text = strings.TrimSpace(rest); st.text != "" {
				top.within = append(top.within, st)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		if closer.MatchString(st.text) {
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			continue
		}
		if m := opener.FindStringSubmatch(st.text); m != nil {
			st.opens = m[1]
			if st.opens == "" {
				st.opens = "function"
			}
			closed := st.opens != "for" && strings.HasSuffix(st.text, "}") && strings.Contains(st.text, "{")
			top.within = append(top.within, st)
			if !closed && len(stack) < 1000 {
				stack = append(stack, &top.within[len(top.within)-1])
			}
			continue
		}
		if st.text != "" {
			top.within = append(top.within, st)
		}
	}
	if len(stack) > 1 {
		s.Object(stack[len(stack)-1].at, "%q has no end", stack[len(stack)-1].opens)
	}
	return root.within
}

// run goes through commands. of are the values of the loops that they stand in.
func (s *script) run(all []statement, of []string) {
	if len(all) == 0 {
		return
	}
	if s.depth++; s.depth > mostDepth {
		s.Object(all[0].at, "loops and shells within each other, more than %d deep", mostDepth)
	}
	defer func() { s.depth-- }()
	var outer []string // where cd had led before a shell of its own
	for i, st := range all {
		for range st.enters {
			outer = append(outer, s.dir)
		}
		if s.steps++; s.steps > mostSteps {
			s.Object(st.at, "more than %d commands, those of loops each time counted", mostSteps)
		}
		if s.ended || s.steps > mostSteps || s.depth > mostDepth {
			return
		}
		switch {
		case st.opens == "":
			before := ""
			if st.after != "" && i > 0 {
				before, _, _ = strings.Cut(all[i-1].text, " ")
			}
			s.command(st, before, of)
		case st.opens == "for" && forIn.MatchString(st.text):
			s.loop(st, of)
		default:
			if s.within(st) {
				s.Object(st.at, "a command line within %q, which only a shell can go through: write what it comes to, a line each",
					st.opens)
			}
			s.forget(st)
		}
		for n := len(outer); st.leaves > 0 && n > 0; st.leaves, n = st.leaves-1, n-1 {
			s.dir, outer = outer[n-1], outer[:n-1]
		}
	}
}

func (s *script) isCall(text string) bool { return s.called.MatchString(text) }

// within reports whether the program is called in a command or in what it holds.
func (s *script) within(st statement) bool {
	return s.isCall(st.text) || slices.ContainsFunc(st.within, s.within)
}

// forget is what nobody knows any more after commands that may have run or not.
func (s *script) forget(st statement) {
	if m := assigns.FindStringSubmatch(st.text); m != nil && st.opens == "" {
		delete(s.vars, m[1])
	}
	if word, _, _ := strings.Cut(st.text, " "); word == "cd" || word == "pushd" || word == "popd" {
		s.lost = st.text
	}
	for _, inner := range st.within {
		s.forget(inner)
	}
}

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

// command takes one command: a setting, cd, a call of fio, or what is none of its business.
func (s *script) command(st statement, before string, of []string) {
	s.at = st.at
	word, rest, _ := strings.Cut(st.text, " ")
	st.text = strings.TrimPrefix(st.text, "& ") // PowerShell's call
	if m := psAssigns.FindStringSubmatch(st.text); m != nil && s.assign(m[1], false, m[2]) {
		return
	}
	if m := assigns.FindStringSubmatch(st.text); m != nil {
		if inner, ok := substituted(m[3]); ok && s.isCall(inner) {
			delete(s.vars, m[1])
			s.inner(inner, st.at, of)
			return
		}
		if s.assign(m[1], m[2] == "+", m[3]) {
			return
		}
	}
	switch word {
	case "cd", "pushd", "popd":
		s.follow(word, rest, st)
		return
	case "exit", "return":
		s.ended = true
		return
	case "read", "unset":
		for name := range strings.FieldsSeq(rest) {
			delete(s.vars, name)
		}
		return
	case "echo", "printf":
		if !piped.MatchString(st.text) {
			s.other(st)
			return
		}
	}
	if piped.MatchString(st.text) {
		s.Object(st.at, "%.60q: fio reads what another command prints: save that as a job file, such as my.fio, and give it",
			st.text)
		return
	}
	words, shell, err := diskspd.Words(s.filled(st.text), st.at)
	if err != nil && !s.isCall(st.text) {
		s.other(st)
		return
	}
	if err != nil {
		s.Object(st.at, "%v", err)
		return
	}
	if st.hasDoc && len(words) > 0 && (words[0] == "cat" || words[0] == "tee" || words[0] == "sudo") {
		to := words[len(words)-1]
		for _, w := range shell {
			if name, ok := strings.CutPrefix(w, ">"); ok && words[0] == "cat" {
				to = strings.TrimSpace(strings.TrimPrefix(name, ">"))
			}
		}
		s.files[to] = s.body(st)
		return
	}
	found := found{program: s.program}
	found.look(words)
	switch {
	case found.shell != "":
		dir, lost := s.dir, s.lost
		s.inner(found.shell, st.at, of)
		s.dir, s.lost, s.ended = dir, lost, false
	case found.elsewhere != "" && s.isCall(st.text):
		s.Object(st.at, "%.60q has %s run elsewhere (%s): give its command line alone, as  plimsoll run '%s'  on the "+
			"machine that is to be measured", st.text, s.program, found.elsewhere, cut(s.shown(alone(words))))
	case found.again && s.isCall(st.text):
		s.Object(st.at, "%s has %s run again and again: give its command line alone, and --repeat N for N runs",
			words[0], s.program)
	case found.open != "" && s.isCall(st.text):
		s.Object(st.at, "%s", s.unknown(mark.FindString(found.open)))
	case found.args == nil && s.isCall(st.text):
		s.Object(st.at, "%.60q does something else before it calls %s: write its command line on a line of its own",
			st.text, s.program)
	case found.args == nil:
		s.other(st)
	case st.after == "||" || st.after == "&&" && slices.Contains(conditions, before):
		s.Object(st.at, "%.60q is called on a condition that only a shell can test: give it alone", s.shown(st.text))
	default:
		for _, w := range shell {
			if !strings.HasPrefix(w, "< ") {
				s.Note(load.Ask{Text: s.shown(w), At: st.at}, "",
					"where the output goes is the shell's to say, and no part of the load")
			}
		}
		if before := s.shown(strings.Join(found.before, " ")); before != "" {
			s.Note(load.Ask{Text: cut(before), At: st.at}, "", "%s", found.note())
		}
		if s.beside = found.beside; s.beside && s.program == "fio" {
			s.Object(st.at, "with start it runs beside what follows: what runs together is given in one call")
		}
		s.take(st, found.args, shell, of)
	}
}

// piped is a command whose output fio reads.
var piped = lazyregexp.New(`[^|]\|\s*(?:sudo\s+)?(?:xargs\b.*\s|parallel\b.*\s)?fio\b`)

// other is a command that is nothing to the load.
func (s *script) other(st statement) {
	if len(s.others) == 0 {
		s.otherAt = st.at
	}
	if !slices.Contains(s.others, st.text) {
		s.others = append(s.others, st.text)
	}
}

// inner goes through a text that another shell would.
func (s *script) inner(text string, at load.Place, of []string) {
	if list := s.statements(text, at); len(list) > 0 {
		s.run(list, of)
	}
}

// substituted is the command whose output a setting takes.
func substituted(value string) (string, bool) {
	value = strings.Trim(value, `"`)
	switch {
	case strings.HasPrefix(value, "$(") && closing(value[1:], '(', ')') == len(value)-1:
		return value[2 : len(value)-1], true
	case len(value) > 1 && value[0] == '`' && value[len(value)-1] == '`':
		return value[1 : len(value)-1], true
	}
	return "", false
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

// follow takes cd.
func (s *script) follow(word, rest string, st statement) {
	words, _, err := diskspd.Words(s.filled(rest), st.at)
	switch {
	case err != nil || len(words) != 1 || word == "popd" || words[0] == "-" || mark.MatchString(words[0]) ||
		strings.HasPrefix(words[0], "~"):
		s.lost = st.text
	case path.IsAbs(words[0]) || s.dir == "":
		s.dir, s.lost = words[0], ""
	default:
		s.dir = path.Join(s.dir, words[0])
	}
}

// body is the text of a here document, filled in as far as its author lets that be done.
func (s *script) body(st statement) string {
	if st.asIs {
		return st.here
	}
	return s.shown(s.filled(st.here))
}

// newScript is one of which nothing is known yet.
func newScript(t *load.Teller, set map[string]string, read func(string) ([]byte, error)) *script {
	s := &script{Teller: t, program: "fio", called: fioCall, set: set, vars: map[string]string{}, used: map[string]bool{},
		files: map[string]string{}, read: read}
	s.take = s.call
	return s
}

// taken are the names of values that the user gave and the script has.
func (s *script) taken() []string { return slices.Sorted(maps.Keys(s.used)) }
