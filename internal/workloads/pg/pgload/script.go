package pgload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of variables that every script has: the scale of the tables, the number of the client, from 0, and seeds.
const (
	scaleName   = "scale"
	clientName  = "client_id"
	defaultSeed = "default_seed"
	randomSeed  = "random_seed"
)

// tellers are the rows that a unit of scale has in each table.
const (
	branchesPerScale = 1
	tellersPerScale  = 10
	accountsPerScale = 100_000
)

const (
	setAccount = "\\set aid random(1, 100000 * :scale)\n"
	setOthers  = setAccount + "\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n" +
		"\\set delta random(-5000, 5000)\n"
	update  = "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
	query   = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
	history = "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, " +
		"CURRENT_TIMESTAMP);\n"
)

// Builtins are pgbench's own scripts: the statements that its manual lists.
var Builtins = map[string]string{
	"select-only":   setAccount + query,
	"simple-update": setOthers + "BEGIN;\n" + update + query + history + "END;\n",
	"tpcb-like": setOthers + "BEGIN;\n" + update + query +
		"UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n" +
		"UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n" + history + "END;\n",
}

// action tells what a command does.
type action byte

const (
	sendSQL action = iota
	setVariable
	sleep
	jump   // to command target
	unless // jumps when the expression is not true
	startPipeline
	endPipeline
)

// command is one line of a script, or one statement.
type command struct {
	action    action
	line      int
	evaluate  expression    // of setVariable, unless, and a sleep of so many units
	slot      int           // of setVariable
	target    int           // of jumps
	pause     time.Duration // of sleep, or its unit
	statement int           // of sendSQL: its number among all statements of the load
}

// statement is SQL with places for variables.
type statement struct {
	script int
	text   string   // as the author wrote it, in one line
	parts  []string // between the variables
	vars   []int    // slots, one less than parts
	quoted []bool   // by vars: within quotes, where one without a value stays as it is written
	sql    string   // with $1, $2, ...
	name   string   // prepared
	store  *string  // prefix of the variables that its columns go to; nil for none
	all    bool     // \aset: of every statement of a combined one
	many   bool     // combined of several by \;
}

// program is the scripts of a load, ready to be run.
type program struct {
	simple     bool // statements are sent as text
	names      names
	defined    map[string]bool // variables that something gives a value
	prefixes   []string        // of those that results give
	inQuotes   []quotedName
	scripts    []script
	statements []statement
}

// quotedName is a variable within quotes, where a mode with parameters cannot have it.
type quotedName struct {
	script, name string
	line         int
}

type script struct {
	name     string
	weight   int
	commands []command
}

const mostScript = 1 << 20 // bytes

// add parses a script. The error has a line for everything that is wrong with it.
func (p *program) add(name, text string, weight int, pipelines bool) error {
	if len(text) > mostScript {
		return fmt.Errorf("%s: it has %d bytes; a script has at most %d", name, len(text), mostScript)
	}
	s := &scriptParser{p: p, name: name, text: text, line: 1, pipelines: pipelines}
	s.parse()
	if s.open != nil {
		s.bad(s.open[len(s.open)-1].line, `\if has no \endif`)
	}
	if s.pipeline {
		s.bad(s.line, `\startpipeline has no \endpipeline`)
	}
	if len(s.errors) == 0 && !slices.ContainsFunc(s.commands, func(c command) bool { return c.action == sendSQL }) {
		s.bad(s.line, "it sends nothing to the server")
	}
	p.scripts = append(p.scripts, script{name, weight, s.commands})
	return errors.Join(s.errors...)
}

type scriptParser struct {
	p         *program
	name      string
	text      string // the rest
	line      int
	commands  []command
	open      []branch
	errors    []error
	pipelines bool
	pipeline  bool // within one
}

// branch is an \if that has no \endif yet.
type branch struct {
	line  int
	skip  int   // the command that jumps past the part that is being read, -1 after \else
	leave []int // commands that jump to the end
}

func (s *scriptParser) bad(line int, format string, args ...any) {
	if len(s.errors) < 20 {
		s.errors = append(s.errors, fmt.Errorf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...)))
	}
}

func (s *scriptParser) add(c command) int {
	s.commands = append(s.commands, c)
	return len(s.commands) - 1
}

func (s *scriptParser) parse() {
	if i := strings.IndexByte(s.text, 0); i >= 0 {
		s.bad(1+strings.Count(s.text[:i], "\n"), "it has a zero byte")
		return
	}
	for {
		trimmed := strings.TrimLeft(s.text, " \t\r\n")
		s.line += strings.Count(s.text[:len(s.text)-len(trimmed)], "\n")
		s.text = trimmed
		switch {
		case s.text == "":
			return
		case strings.HasPrefix(s.text, "--"):
			_, s.text, _ = strings.Cut(s.text, "\n")
			s.line++
		case s.text[0] == '\\':
			line := s.line
			text := s.cutLine()
			s.meta(text, line)
		default:
			s.sql()
		}
	}
}

// cutLine takes the rest of the line, and those after it while they end with a backslash.
func (s *scriptParser) cutLine() string {
	var whole strings.Builder
	for {
		line, rest, _ := strings.Cut(s.text, "\n")
		s.text = rest
		s.line++
		line = strings.TrimRight(line, "\r")
		if before, more := strings.CutSuffix(line, "\\"); more && rest != "" {
			whole.WriteString(before + " ")
			continue
		}
		whole.WriteString(line)
		return whole.String()
	}
}

func (s *scriptParser) meta(text string, line int) {
	word, rest, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(text[1:]), "\t", " "), " ")
	rest = strings.TrimSpace(rest)
	bare := func() {
		if rest != "" {
			s.bad(line, `\%s: %q is not expected there`, word, rest)
		}
	}
	switch word = strings.ToLower(word); word {
	case "set":
		s.set(rest, line)
	case "setrandom":
		s.bad(line, `\setrandom is of old releases: write \set NAME random(LOW, HIGH)`)
	case "sleep":
		s.sleep(rest, line)
	case "if", "elif", "else", "endif":
		s.condition(word, rest, line)
	case "gset", "aset":
		s.store(word, rest, line)
	case "startpipeline", "endpipeline":
		bare()
		if !s.pipelines {
			s.bad(line, `\%s: pipelining changes what is measured; say "pipelining: true"`, word)
		}
		if s.pipeline == (word == "startpipeline") || len(s.open) > 0 {
			s.bad(line, `\%s is not expected there: pipelines hold no others, and begin and end outside of \if`, word)
		}
		c := command{action: endPipeline, line: line}
		if s.pipeline = word == "startpipeline"; s.pipeline {
			c.action = startPipeline
		}
		s.add(c)
	case "shell", "setshell":
		s.bad(line, `\%s runs programs, which this driver does not; package "command" runs any program`, word)
	default:
		s.bad(line, `\%.40s is no command; known are \set \sleep \if \elif \else \endif \gset \aset \startpipeline `+
			`\endpipeline`, word)
	}
}

func (s *scriptParser) set(rest string, line int) {
	name, text, _ := strings.Cut(rest, " ")
	if !validName(name) {
		s.bad(line, `\set: want a name of letters, digits and _, then an expression`)
		return
	}
	e, err := parseExpression(text, &s.p.names)
	if err != nil {
		s.bad(line, `\set %s: %v`, name, err)
		return
	}
	s.p.defines(name)
	s.add(command{action: setVariable, line: line, evaluate: e, slot: s.p.names.slot(name)})
}

func validName(name string) bool {
	return name != "" && len(name) < 64 && isLetter(name[0]) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < 0x80 && !isName(byte(r)) })
}

func (s *scriptParser) sleep(rest string, line int) {
	fields := strings.Fields(rest)
	units := map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}
	if len(fields) == 1 { // 10ms as well as 10 ms
		if unit := strings.TrimLeft(rest, "0123456789"); unit != "" && unit != rest {
			fields = []string{strings.TrimSuffix(rest, unit), unit}
		}
	}
	if s.pipeline {
		s.bad(line, `\sleep has no place in a pipeline`)
	}
	c := command{action: sleep, line: line, pause: time.Second}
	if len(fields) == 2 {
		c.pause = units[strings.ToLower(fields[1])]
	}
	if len(fields) < 1 || len(fields) > 2 || c.pause == 0 {
		s.bad(line, `\sleep: want a whole number or :VARIABLE, then us, ms or s`)
		return
	}
	if name, ok := strings.CutPrefix(fields[0], ":"); ok && validName(name) {
		c.evaluate = s.p.names.variable(name)
	} else if n, err := strconv.ParseInt(fields[0], 10, 32); err != nil || n < 0 {
		s.bad(line, `\sleep: %q is neither a whole number nor a variable`, fields[0])
	} else {
		c.pause *= time.Duration(n)
	}
	s.add(c)
}

// condition makes jumps of \if and what belongs to it.
func (s *scriptParser) condition(word, rest string, line int) {
	if word == "if" {
		s.open = append(s.open, branch{line: line, skip: s.unless(word, rest, line)})
		return
	}
	if len(s.open) == 0 {
		s.bad(line, `\%s has no \if`, word)
		return
	}
	b := &s.open[len(s.open)-1]
	if word != "endif" {
		if b.skip < 0 {
			s.bad(line, `\%s comes after \else`, word)
			return
		}
		b.leave = append(b.leave, s.add(command{action: jump, line: line}))
	}
	if b.skip >= 0 {
		s.commands[b.skip].target = len(s.commands)
	}
	b.skip = -1
	switch {
	case word == "elif":
		b.skip = s.unless(word, rest, line)
	case rest != "":
		s.bad(line, `\%s: %q is not expected there`, word, rest)
	}
	if word == "endif" {
		for _, i := range b.leave {
			s.commands[i].target = len(s.commands)
		}
		if s.open = s.open[:len(s.open)-1]; len(s.open) == 0 {
			s.open = nil
		}
	}
}

func (s *scriptParser) unless(word, rest string, line int) int {
	e, err := parseExpression(rest, &s.p.names)
	if err != nil {
		s.bad(line, `\%s: %v`, word, err)
	}
	return s.add(command{action: unless, line: line, evaluate: e})
}

// store has the statement before it keep what it returns.
func (s *scriptParser) store(word, rest string, line int) {
	i := len(s.commands) - 1
	if i < 0 || s.commands[i].action != sendSQL || s.p.statements[s.commands[i].statement].store != nil {
		s.bad(line, `\%s has no statement before it`, word)
		return
	}
	if rest != "" && !validName(rest) {
		s.bad(line, `\%s: %q is no beginning of a name`, word, rest)
	}
	if s.pipeline {
		s.bad(line, `\%s has no place in a pipeline`, word)
	}
	st := &s.p.statements[s.commands[i].statement]
	st.store, st.all = &rest, word == "aset"
	s.p.prefixes = append(s.p.prefixes, rest)
}

// sql takes a statement up to its semicolon, to a meta-command, or to the end.
func (s *scriptParser) sql() {
	st := statement{script: len(s.p.scripts), parts: []string{""}}
	line := s.line
	var part, text, sql strings.Builder
	both := func(piece, shown string) {
		part.WriteString(piece)
		sql.WriteString(piece)
		text.WriteString(shown)
		s.line += strings.Count(piece, "\n")
		s.text = s.text[len(piece):]
	}
	variable := func(name, piece string, quoted bool) {
		st.parts[len(st.parts)-1] = part.String()
		part.Reset()
		st.vars, st.parts = append(st.vars, s.p.names.slot(name)), append(st.parts, "")
		st.quoted = append(st.quoted, quoted)
		fmt.Fprintf(&sql, "$%d", len(st.vars))
		text.WriteString(piece)
		s.text = s.text[len(piece):]
	}
	// literal takes what is quoted. pgbench puts values there, too, where it sends text; elsewhere it makes parameters
	// of them, which a server does not find in quotes.
	literal := func(piece string) {
		for piece != "" {
			before, name := quotedVariable(piece)
			if name != "" && !s.p.simple {
				line := s.line + strings.Count(piece[:before], "\n")
				s.p.inQuotes = append(s.p.inQuotes, quotedName{s.name, name, line})
				name, before = "", before+len(name)+1
			}
			both(piece[:before], piece[:before])
			if piece = piece[before:]; name != "" {
				variable(name, piece[:len(name)+1], true)
				piece = piece[len(name)+1:]
			}
		}
	}
	parens := 0
scan:
	for s.text != "" {
		n, name := sqlPiece(s.text)
		if n < 0 {
			s.bad(s.line, "%.20q has no end", s.text)
			s.text = ""
			return
		}
		piece := s.text[:n]
		switch {
		case name != "":
			variable(name, piece, false)
		case n > 1 && (strings.HasSuffix(piece, "'") || strings.HasSuffix(piece, `"`) || strings.HasSuffix(piece, "$")):
			literal(piece)
		case piece == "(":
			parens++
			both(piece, piece)
		case piece == ")":
			parens--
			both(piece, piece)
		case piece == `\;`:
			st.many = true
			part.WriteByte(';')
			sql.WriteByte(';')
			text.WriteByte(';')
			s.text = s.text[n:]
		case piece == "\\":
			break scan // \gset and others end a statement as a semicolon does
		case piece == ";" && parens <= 0:
			s.text = s.text[n:]
			break scan
		case strings.HasPrefix(piece, "--"), strings.HasPrefix(piece, "/*"):
			both(piece, " ")
		default:
			both(piece, piece)
		}
	}
	st.parts[len(st.parts)-1] = part.String()
	st.sql, st.text = strings.TrimSpace(sql.String()), strings.Join(strings.Fields(text.String()), " ")
	if st.text == "" {
		return
	}
	if len(st.vars) > 1000 {
		s.bad(line, "the statement has %d variables; 1000 is the most", len(st.vars))
	}
	for one := range strings.SplitSeq(strings.ToUpper(st.text), ";") {
		one = strings.TrimSpace(one) + " "
		if strings.HasPrefix(one, "COPY ") && (strings.Contains(one, " STDIN ") || strings.Contains(one, " STDOUT ")) {
			s.bad(line, "COPY FROM STDIN and TO STDOUT: scripts send and take no such data; insert or select the rows")
		}
	}
	st.name = fmt.Sprintf("plimsoll_%d", len(s.p.statements))
	s.p.statements = append(s.p.statements, st)
	s.add(command{action: sendSQL, line: line, statement: len(s.p.statements) - 1})
}

// quotedVariable finds the first variable of what is quoted, as pgbench does: after a colon that stands alone. name is
// "" for none, with all the text before it.
func quotedVariable(text string) (before int, name string) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != ':':
		case i+1 < len(text) && isLetter(text[i+1]):
			end := i + 2
			for end < len(text) && isName(text[end]) {
				end++
			}
			return i, text[i+1 : end]
		default:
			for i+1 < len(text) && text[i+1] == ':' {
				i++
			}
		}
	}
	return len(text), ""
}

// defines notes that something gives a variable a value.
func (p *program) defines(name string) {
	if p.defined == nil {
		p.defined = map[string]bool{}
	}
	p.defined[name] = true
}

// inParameters says which variables stand in quotes, in a mode whose parameters a server does not find there. A name
// that nothing gives a value is none.
func (p *program) inParameters(mode string) (bad []error) {
	for _, q := range p.inQuotes {
		given := p.defined[q.name] || slices.ContainsFunc(p.prefixes, func(prefix string) bool {
			return strings.HasPrefix(q.name, prefix)
		})
		if given {
			bad = append(bad, fmt.Errorf("%s:%d: :%s stands in quotes, where mode %s has no parameters, and pgbench fails: "+
				"write it without quotes, as in 'a' || :%[3]s, or take mode: simple", q.script, q.line, q.name, mode))
		}
	}
	return bad
}

// sqlPiece is the length of what SQL begins with and is not to be looked into, less than 0 for something without an
// end; name is set for a variable.
func sqlPiece(text string) (n int, name string) {
	until := func(from int, end string) int {
		i := strings.Index(text[from:], end)
		if i < 0 {
			return -1
		}
		return from + i + len(end)
	}
	switch c := text[0]; {
	case strings.HasPrefix(text, "--"):
		return cmp.Or(max(until(2, "\n"), 0), len(text)), ""
	case strings.HasPrefix(text, "/*"):
		return comment(text), ""
	case c == '\'' || c == '"':
		return until(1, string(c)), "" // a doubled one begins the next piece
	case (c == 'e' || c == 'E') && strings.HasPrefix(text[1:], "'"):
		for i := 2; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '\'':
				return i + 1, ""
			}
		}
		return -1, ""
	case c == '$':
		i := 1
		for i < len(text) && isName(text[i]) && (i > 1 || isLetter(text[i])) {
			i++
		}
		if i < len(text) && text[i] == '$' {
			return until(i+1, text[:i+1]), ""
		}
		return i, ""
	case strings.HasPrefix(text, "::"), strings.HasPrefix(text, ":="), strings.HasPrefix(text, `\;`):
		return 2, ""
	case c == ':' && len(text) > 1 && isLetter(text[1]):
		i := 2
		for i < len(text) && isName(text[i]) {
			i++
		}
		return i, text[1:i]
	case isName(c): // a whole word, so that the e of name' is no E'
		i := 1
		for i < len(text) && (isName(text[i]) || text[i] == '$') {
			i++
		}
		return i, ""
	}
	return 1, ""
}

// comment is the length of a comment with those that it holds.
func comment(text string) int {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			if i++; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
