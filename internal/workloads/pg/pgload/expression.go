package pgload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"plimsoll/unit"
)

// scope holds what an expression is evaluated in: a client's variables and random numbers.
type scope struct {
	vars   []value
	random *rand.Rand
	stack  []value // arguments of the functions under way
}

// expression gives its value.
type expression func(*scope) (value, error)

// names are the variables of all scripts of a load: each has a place among a client's.
type names struct {
	at    map[string]int
	order []string
}

func (n *names) slot(name string) int {
	if i, ok := n.at[name]; ok {
		return i
	}
	if n.at == nil {
		n.at = map[string]int{}
	}
	n.at[name] = len(n.order)
	n.order = append(n.order, name)
	return len(n.order) - 1
}

// variable is the value of one.
func (n *names) variable(name string) expression {
	i := n.slot(name)
	return func(s *scope) (value, error) {
		v := s.vars[i]
		if v.kind == unset {
			return v, fmt.Errorf("variable %q has no value", name)
		}
		return v.plain()
	}
}

// parseExpression reads an expression of pgbench's language.
func parseExpression(text string, vars *names) (e expression, err error) {
	p := &expressionParser{vars: vars}
	if p.tokens, err = tokens(text); err != nil {
		return nil, err
	}
	if e, err = p.binary(0); err != nil {
		return nil, err
	}
	if t := p.peek(); t != "" {
		return nil, fmt.Errorf("%q is not expected there", t)
	}
	return e, nil
}

const (
	mostTokens = 10_000
	deepest    = 200 // nested expressions
)

// tokens cuts an expression into words, numbers, variables with their colon, and operators.
func tokens(text string) (all []string, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := 1
		switch c := text[0]; {
		case c == ':' || isLetter(c):
			for n < len(text) && isName(text[n]) {
				n++
			}
			if c == ':' && (n == 1 || !isLetter(text[1])) {
				return nil, errors.New("a name is missing after \":\"")
			}
		case isDigit(c) || c == '.' && len(text) > 1 && isDigit(text[1]):
			for n < len(text) && (isName(text[n]) || text[n] == '.' ||
				(text[n] == '+' || text[n] == '-') && (text[n-1] == 'e' || text[n-1] == 'E')) {
				n++
			}
		case strings.HasPrefix(text, "<=") || strings.HasPrefix(text, ">=") || strings.HasPrefix(text, "<>") ||
			strings.HasPrefix(text, "!=") || strings.HasPrefix(text, "<<") || strings.HasPrefix(text, ">>"):
			n = 2
		case !strings.ContainsRune("+-*/%()=<>,&|#~", rune(c)):
			return nil, fmt.Errorf("%.20q is not expected in an expression", text)
		}
		all, text = append(all, text[:n]), text[n:]
		if len(all) > mostTokens {
			return nil, fmt.Errorf("an expression has at most %d parts", mostTokens)
		}
	}
	return all, nil
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isName(c byte) bool  { return isLetter(c) || isDigit(c) }

type expressionParser struct {
	tokens []string
	depth  int
	vars   *names
}

func (p *expressionParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// accept goes past a word or an operator when it is next.
func (p *expressionParser) accept(want string) bool {
	if !strings.EqualFold(p.peek(), want) {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *expressionParser) want(what string) error {
	if p.accept(what) {
		return nil
	}
	if p.peek() == "" {
		return fmt.Errorf("%q is missing at the end", what)
	}
	return fmt.Errorf("want %q, not %q", what, p.peek())
}

// levels are the binary operators, those that bind least first.
var levels = [][]string{{"OR"}, {"AND"}, {"NOT"}, {"IS", "ISNULL", "NOTNULL"}, {"<", ">", "=", "<=", ">=", "<>", "!="},
	{"|", "#", "&", "<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

// binary reads operators of a level and of those above.
func (p *expressionParser) binary(level int) (expression, error) {
	if p.depth++; p.depth > deepest*len(levels) {
		return nil, fmt.Errorf("expressions are nested more than %d deep", deepest)
	}
	defer func() { p.depth-- }()
	if level == len(levels) {
		return p.unary()
	}
	if levels[level][0] == "NOT" && p.accept("NOT") {
		e, err := p.binary(level)
		return not(e), err
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op := p.operator(level)
		switch op {
		case "":
			return left, nil
		case "IS", "ISNULL", "NOTNULL":
			left, err = p.is(left, op)
			continue
		}
		var right expression
		if right, err = p.binary(level + 1); err != nil {
			break
		}
		switch op {
		case "OR", "AND":
			left = logical(left, right, op == "OR")
		case ">", ">=":
			left = operation(strings.Replace(op, ">", "<", 1), right, left)
		case "!=":
			left = operation("<>", left, right)
		default:
			left = operation(op, left, right)
		}
	}
	return nil, err
}

func (p *expressionParser) operator(level int) string {
	for _, op := range levels[level] {
		if op != "NOT" && p.accept(op) {
			return op
		}
	}
	return ""
}

func (p *expressionParser) is(of expression, op string) (expression, error) {
	want, inverted := value{kind: null}, op == "NOTNULL"
	if op == "IS" {
		inverted = p.accept("NOT")
		switch {
		case p.accept("NULL"):
		case p.accept("TRUE"):
			want = boolOf(true)
		case p.accept("FALSE"):
			want = boolOf(false)
		default:
			return nil, fmt.Errorf("want NULL, TRUE or FALSE after IS, not %q", p.peek())
		}
	}
	return func(s *scope) (value, error) {
		v, err := of(s)
		return boolOf((v.kind == want.kind && v.n == want.n) != inverted), err
	}, nil
}

func not(of expression) expression {
	return func(s *scope) (value, error) {
		v, err := of(s)
		if err != nil || v.kind == null {
			return v, err
		}
		b, err := v.bool()
		return boolOf(!b), err
	}
}

// logical is AND or OR, which do not look at the right side when the left one decides. Unlike SQL's they are null when
// a side that they look at is.
func logical(left, right expression, decides bool) expression {
	return func(s *scope) (value, error) {
		a, err := left(s)
		if err != nil || a.kind == null {
			return a, err
		}
		if b, err := a.bool(); err != nil || b == decides {
			return a, err
		}
		b, err := right(s)
		if err == nil && b.kind != null {
			_, err = b.bool()
		}
		return b, err
	}
}

func operation(op string, left, right expression) expression {
	return func(s *scope) (value, error) {
		a, err := left(s)
		if err != nil {
			return a, err
		}
		b, err := right(s)
		if err != nil || b.kind == null {
			return b, err
		}
		if a.kind == null {
			return a, nil
		}
		if op == "*" && a.kind == integer && b.kind == integer { // the most frequent one
			if z := a.n * b.n; int64(int32(a.n)) == a.n && int64(int32(b.n)) == b.n {
				return intOf(z), nil
			}
		}
		return arithmetic(op, a, b)
	}
}

func constant(v value) expression { return func(*scope) (value, error) { return v, nil } }

func (p *expressionParser) unary() (expression, error) {
	switch {
	case p.accept("+"):
		return p.binary(len(levels))
	case p.accept("-"):
		if p.accept("9223372036854775808") { // which is too much without its sign
			return constant(intOf(math.MinInt64)), nil
		}
		e, err := p.binary(len(levels))
		return operation("-", constant(intOf(0)), e), err
	case p.accept("~"):
		e, err := p.binary(len(levels) - 2) // binds less than + and -
		return operation("#", constant(intOf(-1)), e), err
	case p.accept("("):
		e, err := p.binary(0)
		if err == nil {
			err = p.want(")")
		}
		return e, err
	case p.accept("CASE"):
		return p.cases()
	}
	t := p.peek()
	if t == "" {
		return nil, errors.New("an expression is missing at the end")
	}
	p.tokens = p.tokens[1:]
	switch c := t[0]; {
	case c == ':':
		return p.vars.variable(t[1:]), nil
	case isDigit(c) || c == '.':
		return number(t)
	case isLetter(c):
		return p.word(t)
	}
	return nil, fmt.Errorf("%q is not expected there", t)
}

func number(t string) (expression, error) {
	n, err := strconv.ParseInt(t, 10, 64)
	switch {
	case err == nil:
		return constant(intOf(n)), nil
	case errors.Is(err, strconv.ErrRange):
		return nil, fmt.Errorf("%.40s is out of range of whole numbers; a float has a point or an exponent", t)
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil || strings.ContainsAny(t, "xX_pP") {
		return nil, fmt.Errorf("%.40q is no number", t)
	}
	return constant(floatOf(f)), nil
}

// word is a constant or a function.
func (p *expressionParser) word(name string) (expression, error) {
	switch strings.ToLower(name) {
	case "null":
		return constant(value{kind: null}), nil
	case "true", "false":
		return constant(boolOf(strings.EqualFold(name, "true"))), nil
	}
	f, ok := functions[strings.ToLower(name)]
	if !ok {
		return nil, fmt.Errorf("%q is no function; a variable is written :%s", name, name)
	}
	if err := p.want("("); err != nil {
		return nil, err
	}
	var args []expression
	for !p.accept(")") {
		if len(args) > 0 {
			if err := p.want(","); err != nil {
				return nil, err
			}
		}
		e, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	if len(args) < f.least || len(args) > f.most {
		want := strconv.Itoa(f.least)
		if f.most > f.least {
			want += " to " + strconv.Itoa(f.most)
		}
		return nil, fmt.Errorf("%s: it has %s; want %s", name, unit.Plural(len(args), "argument"), want)
	}
	if f.seeded && len(args) == f.least { // the seed that hashes have in common
		args = append(args, p.vars.variable(defaultSeed))
	}
	return func(s *scope) (value, error) {
		base := len(s.stack)
		defer func() { s.stack = s.stack[:base] }()
		for _, a := range args {
			v, err := a(s)
			if err != nil || v.kind == null {
				return v, err
			}
			s.stack = append(s.stack, v)
		}
		v, err := f.call(s.random, s.stack[base:])
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return v, err
	}, nil
}

func (p *expressionParser) cases() (expression, error) {
	var when, then []expression
	otherwise := constant(value{kind: null})
	for p.accept("WHEN") {
		w, err := p.binary(0)
		if err == nil {
			err = p.want("THEN")
		}
		if err != nil {
			return nil, err
		}
		t, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		when, then = append(when, w), append(then, t)
	}
	if len(when) == 0 {
		return nil, p.want("WHEN")
	}
	if p.accept("ELSE") {
		var err error
		if otherwise, err = p.binary(0); err != nil {
			return nil, err
		}
	}
	return func(s *scope) (value, error) {
		for i, w := range when {
			v, err := w(s)
			if err != nil {
				return v, err
			}
			if yes, err := v.truth(); err != nil || yes {
				if err != nil {
					return v, err
				}
				return then[i](s)
			}
		}
		return otherwise(s)
	}, p.want("END")
}

// function is one of the language. Arguments are not null.
type function struct {
	least, most int
	seeded      bool // the last argument is a seed that may be left out
	call        func(*rand.Rand, []value) (value, error)
}

func floats(f func(float64) float64) function {
	return function{1, 1, false, func(_ *rand.Rand, a []value) (value, error) {
		x, err := a[0].float()
		return floatOf(f(x)), err
	}}
}

// hashed is of whole numbers.
func hashed(least int, f func(a []int64) (int64, error)) function {
	return function{least, least + 1, true, func(_ *rand.Rand, a []value) (value, error) {
		var n [3]int64
		for i := range a {
			var err error
			if n[i], err = a[i].int(); err != nil {
				return value{}, err
			}
		}
		z, err := f(n[:])
		return intOf(z), err
	}}
}

// drawn is a random number between the first two arguments.
func drawn(f func(r *rand.Rand, low, high int64, parameter float64) (int64, error)) function {
	return function{3, 3, false, func(r *rand.Rand, a []value) (value, error) {
		low, err := a[0].int()
		high, err2 := a[1].int()
		parameter, err3 := a[2].float()
		if err := errors.Join(err, err2, err3); err != nil {
			return value{}, err
		}
		if low > high {
			return value{}, fmt.Errorf("from %d to %d: there is no number", low, high)
		}
		n, err := f(r, low, high, parameter)
		return intOf(n), err
	}}
}

// extreme is the greatest or the least of its arguments; one float makes floats of all.
func extreme(least bool) function {
	return function{1, 100, false, func(_ *rand.Rand, a []value) (best value, err error) {
		floats := slices.ContainsFunc(a, func(v value) bool { return v.kind != integer })
		for i, v := range a {
			if floats {
				f, err := v.float()
				if err != nil {
					return v, err
				}
				v = floatOf(f)
			}
			less := v.n < best.n || v.f < best.f
			if i == 0 || less && least || !less && !least {
				best = v
			}
		}
		return best, nil
	}}
}

var functions = map[string]function{
	"abs": {1, 1, false, func(_ *rand.Rand, a []value) (value, error) {
		if a[0].kind == integer {
			return intOf(max(a[0].n, -a[0].n)), nil
		}
		x, err := a[0].float()
		return floatOf(math.Abs(x)), err
	}},
	"debug":  {1, 1, false, func(_ *rand.Rand, a []value) (value, error) { return a[0], nil }},
	"double": floats(func(x float64) float64 { return x }),
	"exp":    floats(math.Exp),
	"ln":     floats(math.Log),
	"sqrt":   floats(math.Sqrt),
	"int": {1, 1, false, func(_ *rand.Rand, a []value) (value, error) {
		n, err := a[0].int()
		return intOf(n), err
	}},
	"mod":      {2, 2, false, func(_ *rand.Rand, a []value) (value, error) { return arithmetic("%", a[0], a[1]) }},
	"pi":       {0, 0, false, func(*rand.Rand, []value) (value, error) { return floatOf(math.Pi), nil }},
	"pow":      power,
	"power":    power,
	"greatest": extreme(false),
	"least":    extreme(true),
	"hash":     hashed(1, func(a []int64) (int64, error) { return murmur2(a[0], a[1]), nil }),

	"hash_murmur2": hashed(1, func(a []int64) (int64, error) { return murmur2(a[0], a[1]), nil }),
	"hash_fnv1a":   hashed(1, func(a []int64) (int64, error) { return fnv1a(a[0], a[1]), nil }),
	"permute": hashed(2, func(a []int64) (int64, error) {
		if a[1] < 1 {
			return 0, fmt.Errorf("its size is %d; want at least 1", a[1])
		}
		return permute(a[0], a[1], a[2]), nil
	}),
	"random": {2, 2, false, func(r *rand.Rand, a []value) (value, error) {
		low, err := a[0].int()
		high, err2 := a[1].int()
		if err != nil || err2 != nil {
			return value{}, errors.Join(err, err2)
		}
		if low > high {
			return value{}, fmt.Errorf("from %d to %d: there is no number", low, high)
		}
		return intOf(uniform(r, low, high)), nil
	}},
	"random_gaussian":    drawn(gaussian),
	"random_exponential": drawn(exponential),
	"random_zipfian":     drawn(zipfian),
}

var power = function{2, 2, false, func(_ *rand.Rand, a []value) (value, error) {
	x, err := a[0].float()
	y, err2 := a[1].float()
	return floatOf(math.Pow(x, y)), errors.Join(err, err2)
}}
