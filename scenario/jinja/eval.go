package jinja

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"plimsoll/internal/kit/nearest"
)

// undefined is the value of what does not exist.
type undefined struct {
	at         int
	what, hint string
	empty      bool // prints as nothing
}

// poison stands for what an undefined name made: everything computed from it is poison without another objection, so
// that one rendering finds all undefined names.
var poison any = &undefined{}

// value evaluates an expression that must have a value.
func (m *machine) value(e *expression) any {
	m.spend(e.at, 1)
	v := e.eval(m)
	u, ok := v.(*undefined)
	if !ok || v == poison {
		return v
	}
	m.note(u)
	return poison
}

func (m *machine) note(u *undefined) {
	if len(m.noted) < maxNoted {
		m.noted = append(m.noted, &Error{At: u.at, What: u.what, Hint: u.hint})
	}
}

// lookup is the value of a name.
func (m *machine) lookup(t token) any {
	for s := m.scope; s != nil; s = s.outer {
		v, ok := s.vars[t.text]
		if !ok {
			continue
		}
		if s == m.given {
			m.used[t.text] = true
			if f, isFloat := v.(float64); isFloat {
				return finite(t.at, f)
			}
		}
		return v
	}
	if f, ok := globals[t.text]; ok {
		return f
	}
	var names []string
	for s := m.scope; s != nil; s = s.outer {
		names = slices.AppendSeq(names, maps.Keys(s.vars))
	}
	slices.Sort(names)
	hint := meant(t.text, names)
	if hint == "" {
		hint = "declare it under vars"
	}
	return &undefined{at: t.at, what: fmt.Sprintf("undefined name %q", t.text), hint: hint}
}

// nearestIn is the hint for a word that is not in a table.
func nearestIn[T any](word string, table map[string]T) string {
	return meant(word, slices.Sorted(maps.Keys(table)))
}

// meant is the hint for a word that is not among some: the nearest of them, else all when they are few. Long words and
// long lists are left alone, to stay cheap.
func meant(word string, names []string) string {
	if len(word) <= 64 {
		if near := nearest.Of(word, names[:min(len(names), 500)]); near != "" {
			return fmt.Sprintf("did you mean %q?", near)
		}
	}
	if len(names) == 0 || len(names) > 50 {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case tuple:
		return len(v) > 0
	case *dict:
		return len(v.entries) > 0
	case bool, int64, float64:
		f, _ := asFloat(v)
		return f != 0
	}
	return true
}

// asInt returns whole numbers, and booleans as 0 and 1.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func asFloat(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i, ok := asInt(v)
	return float64(i), ok
}

func asList(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case tuple:
		return v, true
	}
	return nil, false
}

func finite(at int, v float64) any {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		fail(at, "", "the result is not a finite number")
	}
	return v
}

// operate applies an operator as Python does; numbers that do not fit are refused. at is where the left side begins.
func (m *machine) operate(at int, op token, left, right any) any {
	if op.kind == "~" {
		text := m.text(op.at, left) + m.text(op.at, right)
		m.made(op.at, len(text))
		return text
	}
	a, aInt := asInt(left)
	b, bInt := asInt(right)
	x, xNumber := asFloat(left)
	y, yNumber := asFloat(right)
	switch format, isText := left.(string); {
	case xNumber && yNumber && (op.kind == "/" || op.kind == "//" || op.kind == "%") && y == 0,
		xNumber && yNumber && op.kind == "**" && x == 0 && y < 0:
		fail(op.at, "", "division by zero")
	case aInt && bInt && op.kind == "/":
		if quotient := float64(a) / float64(b); max(a, -a, b, -b) <= 1<<53 {
			return quotient
		}
		quotient, _ := new(big.Rat).Quo(new(big.Rat).SetInt64(a), new(big.Rat).SetInt64(b)).Float64()
		return quotient
	case aInt && bInt && (op.kind != "**" || b >= 0):
		v, ok := Integer(op.kind, a, b)
		if !ok {
			fail(at, "", "the whole number does not fit 64 bits")
		}
		return v
	case xNumber && yNumber:
		return finite(at, floatOperation(op.kind, x, y))
	case isText && op.kind == "%":
		return m.format(op.at, format, right)
	case op.kind == "*" && bInt:
		return m.repeat(op.at, left, b)
	case op.kind == "*" && aInt:
		return m.repeat(op.at, right, a)
	case op.kind == "+":
		if joined, ok := m.join(op.at, left, right); ok {
			return joined
		}
	}
	fail(op.at, "", "%s cannot take %s and %s", op.kind, Describe(left), Describe(right))
	return nil
}

// join adds two sequences of one kind.
func (m *machine) join(at int, left, right any) (any, bool) {
	switch a := left.(type) {
	case string:
		b, ok := right.(string)
		m.made(at, len(a)+len(b))
		return a + b, ok
	case []any:
		b, ok := right.([]any)
		m.spend(at, len(a)+len(b))
		return slices.Concat(a, b), ok
	case tuple:
		b, ok := right.(tuple)
		m.spend(at, len(a)+len(b))
		return slices.Concat(a, b), ok
	}
	return nil, false
}

// repeat is a sequence, so many times.
func (m *machine) repeat(at int, v any, times int64) any {
	times = min(max(times, 0), MaxRendered+1) // more than either bound allows
	switch v := v.(type) {
	case string:
		m.made(at, len(v)*int(times))
		return strings.Repeat(v, int(times))
	case []any:
		m.spend(at, len(v)*int(times))
		return slices.Repeat(v, int(times))
	case tuple:
		m.spend(at, len(v)*int(times))
		return slices.Repeat(v, int(times))
	}
	fail(at, "", "* cannot take %s", Describe(v))
	return nil
}

func sign(op token, v any) any {
	if i, ok := asInt(v); ok {
		if op.kind == "+" {
			return i
		}
		n, fits := Integer("-", 0, i)
		if !fits {
			fail(op.at, "", "the whole number does not fit 64 bits")
		}
		return n
	}
	f, ok := v.(float64)
	if !ok {
		fail(op.at, "", "a sign before %s", Describe(v))
	}
	if op.kind == "-" {
		f = -f
	}
	return f
}

// Integer applies + - * // % ** to whole numbers as Python does: quotients round down, and the rest has the sign of the
// divisor. ok is false when the true value does not fit 64 bits. A divisor of 0 and a negative power are the caller's.
func Integer(op string, a, b int64) (v int64, ok bool) {
	switch op {
	case "+":
		v = a + b
		return v, (v > a) == (b > 0)
	case "-":
		v = a - b
		return v, (v < a) == (b > 0)
	case "*":
		if a == 0 || b == 0 {
			return 0, true
		}
		v = a * b
		return v, v/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	case "%":
		v = a % b
		if v != 0 && (v < 0) != (b < 0) {
			v += b
		}
		return v, true
	case "//":
		v = a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			v--
		}
		return v, a != math.MinInt64 || b != -1
	case "**":
		for v = 1; b > 0; {
			if b&1 == 1 {
				if v, ok = Integer("*", v, a); !ok {
					return 0, false
				}
			}
			if b >>= 1; b > 0 {
				if a, ok = Integer("*", a, a); !ok {
					return 0, false
				}
			}
		}
		return v, true
	}
	return 0, false
}

func floatOperation(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "**":
		return math.Pow(x, y)
	}
	rest := math.Mod(x, y)
	quotient := (x - rest) / y
	if rest != 0 && (y < 0) != (rest < 0) {
		rest += y
		quotient--
	}
	if rest == 0 {
		rest = math.Copysign(0, y)
	}
	if op == "%" {
		return rest
	}
	if quotient == 0 {
		return math.Copysign(0, x/y)
	}
	if whole := math.Floor(quotient); quotient-whole <= 0.5 {
		return whole
	} else {
		return whole + 1
	}
}

// comparison applies one of the comparing operators, of which "in" and "not in" are two.
func (m *machine) comparison(at int, op string, left, right any) any {
	if left == poison || right == poison {
		return poison
	}
	switch op {
	case "in":
		return m.contains(at, right, left)
	case "not in":
		return !m.contains(at, right, left)
	case "==":
		return m.equal(at, left, right)
	case "!=":
		return !m.equal(at, left, right)
	}
	c := m.order(at, left, right)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// Compare orders two numbers or two texts; other pairs are only found equal or not comparable.
func Compare(a, b any) (order int, comparable bool) {
	i, aInt := asInt(a)
	j, bInt := asInt(b)
	x, aNumber := asFloat(a)
	y, bNumber := asFloat(b)
	s, aText := a.(string)
	t, bText := b.(string)
	switch {
	case aInt && bInt:
		return cmp.Compare(i, j), true
	case aNumber && bNumber && x != y:
		return cmp.Compare(x, y), true
	case aInt && bNumber: // rounded to the same float
		return new(big.Float).SetInt64(i).Cmp(big.NewFloat(y)), true
	case aNumber && bInt:
		return big.NewFloat(x).Cmp(new(big.Float).SetInt64(j)), true
	case aNumber && bNumber:
		return 0, true
	case aText && bText:
		return strings.Compare(s, t), true
	}
	return 0, a == nil && b == nil
}

// read accounts for going through a text, which in a loop costs more than its turns.
func (m *machine) read(at int, text string) { m.spend(at, len(text)/64) }

func (m *machine) equal(at int, a, b any) bool {
	m.spend(at, 1)
	if s, ok := a.(string); ok {
		m.read(at, s)
	}
	if c, ok := Compare(a, b); ok {
		return c == 0
	}
	if m.comparing++; m.comparing > maxNesting {
		fail(at, "", "values nested more than %d deep", maxNesting)
	}
	defer func() { m.comparing-- }()
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && m.equalItems(at, a, b)
	case tuple:
		b, ok := b.(tuple)
		return ok && m.equalItems(at, a, b)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.entries) != len(b.entries) {
			return false
		}
		for _, e := range a.entries {
			if v, ok := b.get(e.key); !ok || !m.equal(at, e.value, v) {
				return false
			}
		}
		return true
	case *namespace, *loop, *function:
		return a == b
	}
	return false
}

func (m *machine) equalItems(at int, a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !m.equal(at, a[i], b[i]) {
			return false
		}
	}
	return true
}

// order compares two values that have an order.
func (m *machine) order(at int, a, b any) int {
	m.spend(at, 1)
	if s, ok := a.(string); ok {
		m.read(at, s)
	}
	if c, ok := Compare(a, b); ok && a != nil {
		return c
	}
	x, xOK := asList(a)
	y, yOK := asList(b)
	_, xTuple := a.(tuple)
	_, yTuple := b.(tuple)
	if !xOK || !yOK || xTuple != yTuple {
		fail(at, "", "cannot compare %s with %s", Describe(a), Describe(b))
	}
	for i := range min(len(x), len(y)) {
		if !m.equal(at, x[i], y[i]) { // which also bounds how deep this goes
			return m.order(at, x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y))
}

// contains is the test "in": an item of a list, a key of a mapping, a part of a text.
func (m *machine) contains(at int, in, what any) bool {
	switch in := in.(type) {
	case string:
		part, ok := what.(string)
		if !ok {
			fail(at, "", "%s cannot be part of a text", Describe(what))
		}
		m.read(at, in)
		return strings.Contains(in, part)
	case *dict:
		_, ok := in.get(what)
		return ok
	}
	list, ok := asList(in)
	if !ok {
		fail(at, "", "nothing can be in %s", Describe(in))
	}
	return slices.ContainsFunc(list, func(item any) bool { return m.equal(at, item, what) })
}

// text is how a value prints.
func (m *machine) text(at int, v any) string {
	p := printer{left: min(MaxRendered, m.bytes)}
	if p.text(v); p.cut {
		fail(at, "", "a value that prints as more than %d MiB or is nested more than %d deep", MaxRendered>>20,
			maxNesting)
	}
	m.made(at, p.b.Len())
	return p.b.String()
}

// items are what a loop over a value meets.
func (m *machine) items(at int, v any) []any {
	if list, ok := asList(v); ok {
		m.spend(at, len(list))
		return list
	}
	switch v := v.(type) {
	case *dict:
		m.spend(at, len(v.entries))
		return v.keys()
	case string:
		m.spend(at, len(v))
		list := make([]any, 0, len(v))
		for _, r := range v {
			list = append(list, string(r))
		}
		return list
	}
	fail(at, "", "cannot go through %s", Describe(v))
	return nil
}
