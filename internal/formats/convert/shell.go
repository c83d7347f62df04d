package convert

import (
	"maps"
	"path"
	"slices"
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
	named     []string // see Jobs
	others    []string // commands that are no call
	otherAt   load.Place
	at        load.Place // of the command that is looked at
	steps     int
	ended     bool
	beside    bool     // the call is started beside the next
	carried   []string // options of the call that stand for the programs which run it
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
			words := strings.ReplaceAll(m[2], ",", " ")
			loop := statement{text: "for " + m[1] + " in " + words, at: st.at, opens: "for"}
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

// forget drops what nobody knows any more after commands that may have run or not.
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
	if st.hasDoc && len(words) > 0 && slices.Contains([]string{"cat", "tee", "sudo"}, words[0]) && !s.isCall(st.text) {
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
		if s.program == "fio" {
			var taken []string
			s.carried, taken, found.before = carried(found.before)
			if len(taken) > 0 {
				s.Note(load.Ask{Text: cut(strings.Join(taken, " ")), At: st.at}, strings.Join(s.carried, ", "),
					"fio's own options for it; what a job says itself wins")
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
	s := &script{Teller: t, program: "fio", called: fioCall, set: set, vars: map[string]string{},
		used: map[string]bool{}, files: map[string]string{}, read: read}
	s.take = s.call
	return s
}

// taken are the names of values that the user gave and the script has.
func (s *script) taken() []string { return slices.Sorted(maps.Keys(s.used)) }
