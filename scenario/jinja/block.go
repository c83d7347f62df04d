package jinja

import (
	"fmt"
	"slices"
	"strings"
)

// statement is a parsed piece of a template.
type statement func(m *machine)

// refused are the tags of Jinja that scenarios cannot use, with what to do instead.
var refused = map[string]string{
	"macro": "write its text where it is needed, or loop over it", "call": "write the text out",
	"include": "write the text into this file", "import": "write the text into this file",
	"from":    "write the text into this file",
	"extends": "write the text into this file", "block": "write the text where it belongs",
	"filter": "use {% set x | upper %} … {% endset %}", "with": "use {% set %}", "do": "use {% set %}",
	"break": "put a condition behind the for", "continue": "put a condition behind the for", "autoescape": "",
	"trans": "", "debug": "",
}

var blockWords = []string{"for", "endfor", "if", "elif", "else", "endif", "set", "endset", "raw", "endraw"}

// body reads up to a tag whose word is one of ends, and returns that word; without ends, to the end of the file.
func (p *parser) body(begin token, ends []string) (body []statement, end string) {
	if p.blocks++; p.blocks > maxBlocks {
		fail(begin.at, "", "blocks nested more than %d deep", maxBlocks)
	}
	defer func() { p.blocks-- }()
	for {
		t := p.next()
		switch t.kind {
		case tokEnd:
			if ends != nil {
				fail(begin.at, fmt.Sprintf("add {%% %s %%}", ends[0]), "{%% %s %%} does not end", begin.text)
			}
			return body, ""
		case tokData:
			body = append(body, func(m *machine) { m.spend(t.at, 1); m.emit(t.text, t.at, true) })
		case tokVarBegin:
			e := p.tuple(true, false)
			p.expect(tokVarEnd, "")
			body = append(body, func(m *machine) { m.print(t.at, e) })
		case tokBlockBegin:
			word := p.expect(tokName, "a tag begins with for, if, set or raw")
			if slices.Contains(ends, word.text) {
				return body, word.text
			}
			body = append(body, p.statement(word))
			p.expect(tokBlockEnd, "")
		default:
			fail(t.at, "", "unexpected %s", found(t))
		}
	}
}

func (m *machine) print(at int, e *expression) {
	m.spend(e.at, 1)
	v := e.eval(m)
	if u, ok := v.(*undefined); ok && (u.empty || v == poison) {
		return
	} else if ok {
		m.note(u)
		return
	}
	m.emit(m.text(e.at, v), at, false)
}

func (p *parser) statement(word token) statement {
	switch word.text {
	case "for":
		return p.forLoop(word)
	case "if":
		return p.condition(word)
	case "set":
		return p.set(word)
	}
	construct := fmt.Sprintf("{%% %s %%}", word.text)
	if hint, ok := refused[word.text]; ok {
		unsupported(word.at, hint, construct)
	}
	if slices.Contains(blockWords, word.text) {
		fail(word.at, "", "%s without its beginning", construct)
	}
	unsupported(word.at, meant(word.text, blockWords), construct)
	return nil
}

func (p *parser) condition(word token) statement {
	type branch struct {
		test *expression
		body []statement
	}
	var branches []branch
	for end := word.text; end != "endif"; {
		b := branch{test: constant(word.at, true)}
		ends := []string{"endif"}
		if end != "else" {
			b.test, ends = p.tuple(false, false), []string{"endif", "elif", "else"}
		}
		p.expect(tokBlockEnd, "")
		b.body, end = p.body(word, ends)
		branches = append(branches, b)
	}
	return func(m *machine) {
		for _, b := range branches {
			if v := m.value(b.test); v == poison || truth(v) {
				m.run(b.body)
				return
			}
		}
	}
}

// target returns what a set or a for assigns to.
func (p *parser) target(ends ...string) *expression {
	var list []*expression
	at, comma := p.here().at, false
	for !slices.ContainsFunc(ends, p.is) {
		e := p.postfix(p.primary())
		list = append(list, e)
		if comma = p.accept(","); !comma {
			break
		}
		comma = true
	}
	if len(list) == 0 {
		fail(at, "", "expected a name, found %s", found(p.here()))
	}
	target := list[0]
	if len(list) > 1 || comma {
		target = &expression{at: at, kind: "tuple", list: list}
	}
	assignable(target)
	return target
}

func assignable(e *expression) {
	switch e.kind {
	case "":
		fail(e.at, "give a name", "nothing can be assigned to this")
	case "tuple":
		for _, part := range e.list {
			assignable(part)
		}
	}
}

// assign gives a value to a target. What comes of an undefined name is poison, so that it is reported once.
func (m *machine) assign(target *expression, v any) {
	switch target.kind {
	case "name":
		m.scope.vars[target.name] = v
	case "dotted":
		of := m.value(target.list[0])
		if of == poison {
			return
		}
		ns, ok := of.(*namespace)
		if !ok {
			fail(target.at, "use {% set ns = namespace() %}", "cannot assign to an attribute of %s", Describe(of))
		}
		ns.vars.set(target.name, v)
	default:
		if _, ok := v.(*undefined); ok {
			for _, part := range target.list {
				m.assign(part, v)
			}
			return
		}
		items := m.items(target.at, v)
		if len(items) != len(target.list) {
			fail(target.at, "", "%d names for %d values", len(target.list), len(items))
		}
		for i, part := range target.list {
			m.assign(part, items[i])
		}
	}
}

func (p *parser) set(word token) statement {
	target := p.target("=", "|", tokBlockEnd)
	if p.accept("=") {
		value := p.tuple(true, false)
		return func(m *machine) {
			m.spend(value.at, 1)
			m.assign(target, value.eval(m))
		}
	}
	text := ""
	value := &expression{at: word.at, eval: func(*machine) any { return text }}
	for p.accept("|") {
		value = p.filter(value)
	}
	p.expect(tokBlockEnd, "write {% set name = value %}")
	body, _ := p.body(word, []string{"endset"})
	return func(m *machine) {
		outer := m.captured
		m.captured = &strings.Builder{}
		m.nested(func() { m.run(body) })
		text, m.captured = m.captured.String(), outer
		m.assign(target, m.value(value))
	}
}

// loop is the variable of that name inside a for.
type loop struct {
	items []any
	index int
}

func (p *parser) forLoop(word token) statement {
	target := p.target("in")
	p.expect("in", "write {% for i in range(n) %}")
	over := p.tuple(false, false, "if", "recursive")
	var test *expression
	if p.accept("if") {
		test = p.expression()
	}
	if p.is("recursive") {
		unsupported(p.here().at, "write the loops out", "recursive")
	}
	p.expect(tokBlockEnd, "")
	body, end := p.body(word, []string{"endfor", "else"})
	var otherwise []statement
	if end == "else" {
		p.expect(tokBlockEnd, "")
		otherwise, _ = p.body(word, []string{"endfor"})
	}
	return func(m *machine) {
		of := m.value(over)
		items := []any{poison} // one turn, to find what else is undefined
		if of != poison {
			items = m.items(over.at, of)
		}
		if test != nil {
			var kept []any
			for _, item := range items {
				m.nested(func() {
					m.assign(target, item)
					if v := m.value(test); v == poison || truth(v) {
						kept = append(kept, item)
					}
				})
			}
			items = kept
		}
		l := &loop{items: items}
		for l.index = range items {
			m.spend(word.at, 1)
			m.nested(func() {
				m.scope.vars["loop"] = l
				m.assign(target, items[l.index])
				m.run(body)
			})
		}
		if len(items) == 0 {
			m.nested(func() { m.run(otherwise) })
		}
	}
}

// loopField is an attribute of the variable loop.
func (m *machine) loopField(name token, l *loop) (any, bool) {
	n, i := int64(len(l.items)), int64(l.index)
	switch name.text {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "length":
		return n, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "depth": // of recursive loops, which there are none of
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if i == 0 {
			return &undefined{at: name.at, what: "the first turn has no loop.previtem"}, true
		}
		return l.items[i-1], true
	case "nextitem":
		if i == n-1 {
			return &undefined{at: name.at, what: "the last turn has no loop.nextitem"}, true
		}
		return l.items[i+1], true
	case "cycle":
		return &function{name: "loop.cycle", signature: []string{anyNumber}, call: func(c call) any {
			if len(c.rest) == 0 {
				c.refuse("needs values to go through")
			}
			return c.rest[i%int64(len(c.rest))]
		}}, true
	}
	return nil, false
}
