package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// expression is a parsed expression. eval may give undefined, which everything but the test "is defined" and the filter
// default refuses: see machine.value.
type expression struct {
	at   int
	eval func(m *machine) any
	kind string // "name", "tuple" or "dotted": what can be assigned to, with
	name string
	list []*expression // of a tuple; what stands before the point
}

// parser reads tokens by recursive descent; its methods are named after the rules of Jinja's own grammar, which binds
// powers to the left and signs tighter than powers.
type parser struct {
	tokens  []token
	i       int
	nesting int
	blocks  int
}

func parse(source string) []statement {
	p := &parser{tokens: lex(source)}
	body, _ := p.body(token{}, nil)
	return body
}

func (p *parser) here() token { return p.tokens[p.i] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	p.i = min(p.i+1, len(p.tokens)-1)
	return t
}

// is reports whether the token here is the operator or the keyword given.
func (p *parser) is(what string) bool {
	t := p.here()
	return t.kind == what || t.kind == tokName && t.text == what
}

func (p *parser) accept(what string) bool {
	if !p.is(what) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(what, hint string) token {
	if !p.is(what) {
		fail(p.here().at, hint, "expected %s, found %s", what, found(p.here()))
	}
	return p.next()
}

func found(t token) string {
	switch t.kind {
	case tokName, tokInt, tokFloat, tokString:
		return strconv.Quote(Shorten(t.text, 30))
	}
	return t.kind
}

// deeper guards the recursion.
func (p *parser) deeper() func() {
	if p.nesting++; p.nesting > maxNesting {
		fail(p.here().at, "split it", "expressions nested more than %d deep", maxNesting)
	}
	return func() { p.nesting-- }
}

// expression reads a conditional expression: a if condition else b.
func (p *parser) expression() *expression {
	defer p.deeper()()
	value := p.or()
	for p.is("if") {
		at := p.next().at
		then, condition := value, p.or()
		var otherwise *expression
		if p.accept("else") {
			otherwise = p.expression()
		}
		value = &expression{at: then.at, eval: func(m *machine) any {
			switch c := m.value(condition); {
			case c == poison, truth(c):
				return then.eval(m)
			case otherwise != nil:
				return otherwise.eval(m)
			}
			return &undefined{at: at, what: "an if without else whose condition is false has no value", empty: true}
		}}
	}
	return value
}

func (p *parser) or() *expression { return p.logical("or", p.and, true) }

func (p *parser) and() *expression { return p.logical("and", p.not, false) }

// logical reads a chain of or, or of and: the first value that decides, or the last.
func (p *parser) logical(word string, operand func() *expression, decides bool) *expression {
	left := operand()
	for p.accept(word) {
		a, b := left, operand()
		left = &expression{at: a.at, eval: func(m *machine) any {
			if v := m.value(a); v != poison && truth(v) == decides {
				return v
			}
			return m.value(b)
		}}
	}
	return left
}

func (p *parser) not() *expression {
	if !p.is("not") {
		return p.compare()
	}
	defer p.deeper()()
	at := p.next().at
	term := p.not()
	return &expression{at: at, eval: func(m *machine) any { return m.negated(term) }}
}

func (m *machine) negated(e *expression) any {
	v := m.value(e)
	if v == poison {
		return v
	}
	return !truth(v)
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// compare reads a chain of comparisons: a < b <= c is a < b and b <= c.
func (p *parser) compare() *expression {
	first := p.sum()
	type link struct {
		op      string
		at      int
		operand *expression
	}
	var links []link
	for {
		t := p.here()
		switch {
		case slices.Contains(comparisons, t.kind), p.is("in"):
			p.next()
		case p.is("not") && p.tokens[p.i+1].text == "in" && p.tokens[p.i+1].kind == tokName:
			p.i += 2
			t.text = "not in"
		default:
			if links == nil {
				return first
			}
			return &expression{at: first.at, eval: func(m *machine) any {
				left := m.value(first)
				var result any
				for _, l := range links {
					right := m.value(l.operand)
					result = m.comparison(l.at, l.op, left, right)
					if result == poison || result == false {
						return result
					}
					left = right
				}
				return result
			}}
		}
		links = append(links, link{op: t.text, at: t.at, operand: p.sum()})
	}
}

func (p *parser) sum() *expression { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() *expression { return p.binary(p.product, "~") }

func (p *parser) product() *expression { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() *expression { return p.binary(p.signed, "**") }

// binary reads a chain of operators of one rank, which group to the left.
func (p *parser) binary(operand func() *expression, ops ...string) *expression {
	left := operand()
	for slices.Contains(ops, p.here().kind) {
		op, a := p.next(), left
		b := operand()
		left = &expression{at: a.at, eval: func(m *machine) any {
			x, y := m.value(a), m.value(b)
			if x == poison || y == poison {
				return poison
			}
			return m.operate(a.at, op, x, y)
		}}
	}
	return left
}

func (p *parser) signed() *expression { return p.filtered(p.unary()) }

// unary reads a sign, which binds tighter than a filter and looser than a subscript.
func (p *parser) unary() *expression {
	op := p.here()
	if op.kind != "+" && op.kind != "-" {
		return p.postfix(p.primary())
	}
	p.next()
	defer p.deeper()()
	term := p.unary()
	return p.postfix(&expression{at: op.at, eval: func(m *machine) any {
		v := m.value(term)
		if v == poison {
			return v
		}
		return sign(op, v)
	}})
}

func constant(at int, v any) *expression {
	return &expression{at: at, eval: func(*machine) any { return v }}
}

func (p *parser) primary() *expression {
	t := p.next()
	switch t.kind {
	case tokName:
		return p.name(t)
	case tokString:
		for p.here().kind == tokString {
			t.text += p.next().text
		}
		return constant(t.at, t.text)
	case tokInt:
		text := strings.ReplaceAll(t.text, "_", "")
		if strings.Trim(text, "0") == "" {
			text = "0"
		}
		v, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			fail(t.at, "", "the number %s does not fit 64 bits", Shorten(t.text, 30))
		}
		return constant(t.at, v)
	case tokFloat:
		v, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil {
			fail(t.at, "", "the number %s does not fit 64 bits", Shorten(t.text, 30))
		}
		return constant(t.at, v)
	case "(":
		e := p.tuple(true, true, ")")
		p.expect(")", "")
		return &expression{at: t.at, eval: e.eval, kind: e.kind, list: e.list, name: e.name}
	case "[":
		items := p.items("]", p.expression)
		return &expression{at: t.at, eval: func(m *machine) any {
			if list, ok := m.sequence(t.at, items); ok {
				return list
			}
			return poison
		}}
	case "{":
		return p.mapping(t)
	}
	fail(t.at, "", "expected an expression, found %s", found(t))
	return nil
}

func (p *parser) name(t token) *expression {
	switch t.text {
	case "true", "True":
		return constant(t.at, true)
	case "false", "False":
		return constant(t.at, false)
	case "none", "None":
		return constant(t.at, nil)
	case "and", "or", "not", "if", "elif", "else", "in", "is", "for":
		fail(t.at, "", "expected an expression, found %q", t.text)
	}
	return &expression{at: t.at, kind: "name", name: t.text, eval: func(m *machine) any { return m.lookup(t) }}
}

// items reads what stands between commas up to a closing bracket, which may follow a comma.
func (p *parser) items(end string, item func() *expression) []*expression {
	var list []*expression
	for !p.is(end) {
		if list != nil {
			if p.expect(",", ""); p.is(end) {
				break
			}
		}
		list = append(list, item())
	}
	p.next()
	return list
}

func (p *parser) mapping(t token) *expression {
	var values []*expression
	keys := p.items("}", func() *expression {
		key := p.expression()
		p.expect(":", "")
		values = append(values, p.expression())
		return key
	})
	return &expression{at: t.at, eval: func(m *machine) any {
		k, kOK := m.sequence(t.at, keys)
		v, vOK := m.sequence(t.at, values)
		if !kOK || !vOK {
			return poison
		}
		d := &dict{}
		for i := range k {
			if !d.set(k[i], v[i]) {
				fail(keys[i].at, "", "%s cannot be a key", Describe(k[i]))
			}
		}
		return d
	}}
}

// tuple reads one expression, or several with commas between them, which make a tuple. ends are the tokens besides the
// end of a tag that end it.
func (p *parser) tuple(conditional, emptyAllowed bool, ends ...string) *expression {
	at := p.here().at
	var list []*expression
	comma := false
	for {
		if p.is(tokVarEnd) || p.is(tokBlockEnd) || p.is(")") || slices.ContainsFunc(ends, p.is) {
			break
		}
		if conditional {
			list = append(list, p.expression())
		} else {
			list = append(list, p.or())
		}
		if !p.accept(",") {
			break
		}
		comma = true
	}
	switch {
	case len(list) == 1 && !comma:
		return list[0]
	case len(list) == 0 && !emptyAllowed:
		fail(p.here().at, "", "expected an expression, found %s", found(p.here()))
	}
	return &expression{at: at, kind: "tuple", list: list, eval: func(m *machine) any {
		if values, ok := m.sequence(at, list); ok {
			return tuple(values)
		}
		return poison
	}}
}

// sequence evaluates the items of a list; ok is false when one of them is poison.
func (m *machine) sequence(at int, list []*expression) (values []any, ok bool) {
	m.spend(at, len(list))
	values, ok = make([]any, len(list)), true
	for i, e := range list {
		values[i] = m.value(e)
		ok = ok && values[i] != poison
	}
	return values, ok
}

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(e *expression) *expression {
	for {
		of, t := e, p.here()
		switch t.kind {
		case ".":
			p.next()
			name := p.next()
			switch name.kind {
			case tokName:
				e = &expression{at: name.at, kind: "dotted", list: []*expression{of}, name: name.text,
					eval: func(m *machine) any { return m.attribute(name, m.value(of)) }}
			case tokInt:
				index := constant(name.at, mustInt(name))
				e = &expression{at: name.at, eval: func(m *machine) any {
					return m.item(name.at, m.value(of), index.eval(m))
				}}
			default:
				fail(name.at, "", "expected a name or a number after the point, found %s", found(name))
			}
		case "[":
			e = p.subscript(of)
		case "(":
			e = p.call(of)
		default:
			return e
		}
	}
}

func mustInt(t token) int64 {
	v, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		fail(t.at, "", "the number %s cannot be an index", t.text)
	}
	return v
}

func (p *parser) subscript(of *expression) *expression {
	t := p.next()
	var parts [3]*expression
	colons := 0
	for ; !p.is("]"); colons++ {
		if !p.is(":") {
			parts[colons] = p.expression()
		}
		if colons == 2 || !p.accept(":") {
			break
		}
	}
	p.expect("]", "")
	if colons == 0 && parts[0] == nil {
		fail(t.at, "", "a subscript without an index")
	}
	if colons == 0 {
		return &expression{at: t.at, eval: func(m *machine) any { return m.item(t.at, m.value(of), m.value(parts[0])) }}
	}
	return &expression{at: t.at, eval: func(m *machine) any {
		var bounds [3]any
		for i, e := range parts {
			if e != nil {
				if bounds[i] = m.value(e); bounds[i] == poison {
					return poison
				}
			}
		}
		return m.slice(t.at, m.value(of), bounds)
	}}
}

// arguments are those of a call, a filter or a test.
type arguments struct {
	given []*expression
	named map[string]*expression
}

func (p *parser) arguments() arguments {
	a := arguments{named: map[string]*expression{}}
	p.expect("(", "")
	p.items(")", func() *expression {
		if p.is("*") || p.is("**") {
			unsupported(p.here().at, "write the arguments out", "arguments with "+p.here().kind)
		}
		if t := p.here(); t.kind == tokName && p.tokens[p.i+1].kind == "=" {
			p.i += 2
			if a.named[t.text] != nil {
				fail(t.at, "", "the argument %s is given twice", t.text)
			}
			e := p.expression()
			a.named[t.text] = e
			return e
		}
		if len(a.named) > 0 {
			fail(p.here().at, "", "an argument without a name after one with a name")
		}
		e := p.expression()
		a.given = append(a.given, e)
		return e
	})
	return a
}

func (p *parser) call(of *expression) *expression {
	at := p.here().at
	a := p.arguments()
	return &expression{at: of.at, eval: func(m *machine) any { return m.call(at, m.value(of), a) }}
}

// filtered reads filters and tests behind an expression.
func (p *parser) filtered(e *expression) *expression {
	for {
		switch {
		case p.accept("|"):
			e = p.filter(e)
		case p.is("is"):
			e = p.test(e)
		case p.is("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

// filter reads one filter; of is nil for the text of a block.
func (p *parser) filter(of *expression) *expression {
	name := p.expect(tokName, "a filter's name follows |")
	f, ok := filters[name.text]
	if !ok {
		unsupported(name.at, nearestIn(name.text, filters), "the filter |"+name.text)
	}
	var a arguments
	if p.is("(") {
		a = p.arguments()
	}
	bound := bind(name, "|", f.signature, a)
	return &expression{at: name.at, eval: func(m *machine) any { return m.apply("|"+name.text, name.at, f, of, bound) }}
}

func (p *parser) test(of *expression) *expression {
	at := p.next().at
	negate := p.accept("not")
	name := p.expect(tokName, "a test's name follows is")
	f, ok := predicates[name.text]
	if !ok {
		unsupported(name.at, nearestIn(name.text, predicates), "the test "+name.text)
	}
	var a arguments
	switch t := p.here(); {
	case t.kind == "(":
		a = p.arguments()
	case p.is("is"):
		unsupported(t.at, "join two with and", "a test of a test")
	case t.kind == tokName && !slices.Contains([]string{"else", "or", "and", "if", "in", "not", "is"}, t.text),
		slices.Contains([]string{tokString, tokInt, tokFloat, "[", "{"}, t.kind):
		a.given = []*expression{p.postfix(p.primary())}
	}
	bound := bind(name, "is ", f.signature, a)
	result := &expression{at: at, eval: func(m *machine) any { return m.apply("is "+name.text, name.at, f, of, bound) }}
	if negate {
		return &expression{at: at, eval: func(m *machine) any { return m.negated(result) }}
	}
	return result
}
