package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/kit/untyped"
)

// function holds what can be called: a global, a method with its value, a filter or a test.
type function struct {
	name      string
	signature []string
	call      func(c call) any
	lenient   bool // takes undefined values as well
}

func (f *function) argument(m *machine, e *expression) any {
	if f.lenient {
		return e.eval(m)
	}
	return m.value(e)
}

// attribute is v.name: a method, else an entry of a mapping.
func (m *machine) attribute(name token, v any) any {
	if v == poison {
		return v
	}
	switch v := v.(type) {
	case *loop:
		if value, ok := m.loopField(name, v); ok {
			return value
		}
	case *namespace:
		if value, ok := v.vars.get(name.text); ok {
			return value
		}
	default:
		if f := method(v, name.text); f != nil {
			return f
		}
		if d, ok := v.(*dict); ok {
			if value, ok := d.get(name.text); ok {
				return value
			}
		}
	}
	hint := ""
	if slices.Contains([]string{"append", "extend", "insert", "pop", "update", "remove", "clear"}, name.text) {
		hint = "values are never changed: write {% set x = x + [1] %}"
	}
	return &undefined{at: name.at, what: fmt.Sprintf("%s has no attribute %q", Describe(v), name.text), hint: hint}
}

// item is v[key].
func (m *machine) item(at int, v, key any) any {
	if v == poison || key == poison {
		return poison
	}
	if d, ok := v.(*dict); ok {
		if value, ok := d.get(key); ok {
			return value
		}
	}
	if name, ok := key.(string); ok {
		if f := method(v, name); f != nil {
			return f
		}
	}
	if i, ok := key.(int64); ok {
		list, isList := asList(v)
		if text, isText := v.(string); isText {
			list, isList = m.items(at, text), true
		}
		if i < 0 {
			i += int64(len(list))
		}
		if isList && i >= 0 && i < int64(len(list)) {
			return list[i]
		}
	}
	return &undefined{at: at, what: fmt.Sprintf("%s has no item %s", Describe(v), Shorten(Repr(key), 60))}
}

// slice is v[start:stop:step].
func (m *machine) slice(at int, v any, given [3]any) any {
	if v == poison {
		return v
	}
	var bounds [3]*int
	for i, b := range given {
		if b == nil {
			continue
		}
		n, ok := asInt(b)
		if !ok {
			fail(at, "", "%s cannot be an end of a slice", Describe(b))
		}
		whole := int(n)
		bounds[i] = &whole
	}
	_, isText := v.(string)
	if _, isList := asList(v); !isText && !isList {
		fail(at, "", "%s has no slices", Describe(v))
	}
	list := m.items(at, v)
	indices, err := Indices(bounds, len(list))
	if err != nil {
		fail(at, "", "%v", err)
	}
	m.spend(at, len(indices))
	part := make([]any, len(indices))
	for i, index := range indices {
		part[i] = list[index]
	}
	switch v.(type) {
	case string:
		return m.joined(at, part, "")
	case tuple:
		return tuple(part)
	}
	return part
}

// joined is the texts of a list with something between them.
func (m *machine) joined(at int, list []any, between string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = m.text(at, v)
	}
	m.made(at, len(list)*len(between))
	return strings.Join(texts, between)
}

// Indices is Python's slice start:stop:step of a sequence of n items: the indices selected, in their order.
func Indices(bounds [3]*int, n int) ([]int, error) {
	step := 1
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		return nil, errors.New("the step of a slice cannot be 0")
	}
	low, high := 0, n // where bounds are clipped to
	start, stop := 0, n
	if step < 0 {
		low, high = -1, n-1
		start, stop = n-1, -1
	}
	clip := func(given *int, absent int) int {
		if given == nil {
			return absent
		}
		i := *given
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	start, stop = clip(bounds[0], start), clip(bounds[1], stop)
	var indices []int
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		indices = append(indices, i)
		if remaining := stop - i; step > 0 && step >= remaining || step < 0 && step <= remaining {
			break // the next would pass the end; stopping here also keeps a huge step from overflowing
		}
	}
	return indices, nil
}

// call is one use of a function, a filter or a test with its arguments in the order of its signature.
type call struct {
	m     *machine
	at    int
	name  string // as messages call it
	value any    // what a filter or a test is applied to, or whose method this is
	args  []any
	rest  []any          // of functions that take any number
	named untyped.Object // of functions that take any name
}

// absent is an argument that was not given.
type absent struct{}

func (c call) has(i int) bool { return i < len(c.args) && c.args[i] != absent{} }

func (c call) refuse(format string, args ...any) {
	fail(c.at, "", "%s %s", c.name, fmt.Sprintf(format, args...))
}

func (c call) int(i int, otherwise int64) int64 {
	if !c.has(i) {
		return otherwise
	}
	v, ok := asInt(c.args[i])
	if !ok {
		c.refuse("needs a whole number, not %s", Describe(c.args[i]))
	}
	return v
}

func (c call) text(i int, otherwise string) string {
	if !c.has(i) || c.args[i] == nil {
		return otherwise
	}
	return c.m.text(c.at, c.args[i])
}

func (c call) yes(i int) bool { return c.has(i) && truth(c.args[i]) }

// anyNumber and anyName at the end of a signature take what is left.
const (
	anyNumber = "*"
	anyName   = "**"
)

// bind puts arguments in the order of a signature. Names in it that end in "!" must be given.
func bind(name token, kind string, signature []string, a arguments) arguments {
	open := slices.Contains(signature, anyNumber)
	openNames := slices.Contains(signature, anyName)
	var params []string
	for _, s := range signature {
		if s != anyNumber && s != anyName {
			params = append(params, s)
		}
	}
	if len(a.given) > len(params) && !open {
		fail(a.given[len(params)].at, "", "%s%s takes %d arguments at most", kind, name.text, len(params))
	}
	bound := arguments{given: make([]*expression, max(len(params), len(a.given))), named: map[string]*expression{}}
	copy(bound.given, a.given)
	for key, e := range a.named {
		i := slices.IndexFunc(params, func(p string) bool { return strings.TrimSuffix(p, "!") == key })
		switch {
		case i >= 0 && bound.given[i] != nil:
			fail(e.at, "", "%s%s: the argument %s is given twice", kind, name.text, key)
		case i >= 0:
			bound.given[i] = e
		case openNames:
			bound.named[key] = e
		default:
			hint := "it takes none"
			if len(params) > 0 {
				hint = "known are " + strings.ReplaceAll(strings.Join(params, ", "), "!", "")
			}
			fail(e.at, hint, "%s%s has no argument %q", kind, name.text, key)
		}
	}
	for i, param := range params {
		if strings.HasSuffix(param, "!") && bound.given[i] == nil {
			fail(name.at, "", "%s%s lacks its argument %s", kind, name.text, strings.TrimSuffix(param, "!"))
		}
	}
	return bound
}

// arguments evaluates bound arguments; ok is false when one of them is poison.
func (m *machine) arguments(c *call, f *function, a arguments) (ok bool) {
	ok = true
	params := len(slices.DeleteFunc(slices.Clone(f.signature), func(s string) bool { return s[0] == '*' }))
	for i, e := range a.given {
		v := any(absent{})
		if e != nil {
			v = f.argument(m, e)
		}
		ok = ok && v != poison
		if i < params {
			c.args = append(c.args, v)
		} else {
			c.rest = append(c.rest, v)
		}
	}
	c.named = untyped.Object{}
	for key, e := range a.named {
		c.named[key] = m.value(e)
		ok = ok && c.named[key] != poison
	}
	return ok
}

// call is f(arguments).
func (m *machine) call(at int, f any, a arguments) any {
	if f == poison {
		return f
	}
	fn, ok := f.(*function)
	if !ok {
		fail(at, "", "%s cannot be called", Describe(f))
	}
	name := token{text: fn.name, at: at}
	c := call{m: m, at: at, name: fn.name}
	if !m.arguments(&c, fn, bind(name, "", fn.signature, a)) {
		return poison
	}
	return fn.call(c)
}

// apply is a filter or a test.
func (m *machine) apply(name string, at int, f *function, of *expression, a arguments) any {
	c := call{m: m, at: at, name: name, value: f.argument(m, of)}
	if !m.arguments(&c, f, a) || c.value == poison {
		return poison
	}
	return f.call(c)
}
