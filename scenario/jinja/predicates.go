package jinja

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

func test(holds func(v any) bool) *function {
	return define(func(c call) any { return holds(c.value) })
}

func compared(op string) *function {
	return define(func(c call) any { return c.m.comparison(c.at, op, c.value, c.args[0]) }, "other!")
}

func existence(exists bool) *function {
	return &function{lenient: true, call: func(c call) any {
		_, missing := c.value.(*undefined)
		return missing != exists
	}}
}

// predicates are the tests behind "is".
var predicates = map[string]*function{
	"defined":     existence(true),
	"undefined":   existence(false),
	"none":        test(func(v any) bool { return v == nil }),
	"boolean":     test(func(v any) bool { _, ok := v.(bool); return ok }),
	"true":        test(func(v any) bool { return v == true }),
	"false":       test(func(v any) bool { return v == false }),
	"integer":     test(func(v any) bool { _, ok := v.(int64); return ok }),
	"float":       test(func(v any) bool { _, ok := v.(float64); return ok }),
	"number":      test(func(v any) bool { _, ok := asFloat(v); return ok }),
	"string":      test(func(v any) bool { _, ok := v.(string); return ok }),
	"mapping":     test(func(v any) bool { _, ok := v.(*dict); return ok }),
	"sequence":    test(isIterable),
	"iterable":    test(isIterable),
	"callable":    test(func(v any) bool { _, ok := v.(*function); return ok }),
	"odd":         define(func(c call) any { return c.rest2() == 1 }),
	"even":        define(func(c call) any { return c.rest2() == 0 }),
	"divisibleby": define(divisible, "num!"),
	"lower":       define(func(c call) any { return cased(c.string(), unicode.IsUpper, unicode.IsLower) }),
	"upper":       define(func(c call) any { return cased(c.string(), unicode.IsLower, unicode.IsUpper) }),
	"in":          define(func(c call) any { return c.m.comparison(c.at, "in", c.value, c.args[0]) }, "seq!"),
	"sameas":      define(sameAs, "other!"),
	"eq":          compared("=="), "equalto": compared("=="), "==": compared("=="),
	"ne": compared("!="), "!=": compared("!="),
	"lt": compared("<"), "lessthan": compared("<"), "<": compared("<"),
	"le": compared("<="), "<=": compared("<="),
	"gt": compared(">"), "greaterthan": compared(">"), ">": compared(">"),
	"ge": compared(">="), ">=": compared(">="),
}

// Words returns the filters, the tests and the functions that templates can use, each sorted.
func Words() (filterNames, tests, functions []string) {
	return slices.Sorted(maps.Keys(filters)), slices.Sorted(maps.Keys(predicates)), slices.Sorted(maps.Keys(globals))
}

func isIterable(v any) bool {
	_, ok := asList(v)
	switch v.(type) {
	case string, *dict:
		return true
	}
	return ok
}

// rest2 is the rest of a division by two.
func (c call) rest2() float64 {
	if i, ok := asInt(c.value); ok {
		return float64(i & 1)
	}
	f, ok := c.value.(float64)
	if !ok {
		c.refuse("needs a number, not %s", Describe(c.value))
	}
	return math.Mod(math.Mod(f, 2)+2, 2)
}

func divisible(c call) any {
	rest := c.m.operate(c.at, token{kind: "%", at: c.at}, c.value, c.args[0])
	f, ok := asFloat(rest)
	return ok && f == 0
}

// cased reports whether a text has letters of one case and none of the other.
func cased(s string, not, has func(rune) bool) bool {
	return strings.IndexFunc(s, not) < 0 && strings.IndexFunc(s, has) >= 0
}

// sameAs is identity for what has one instance, and equality of one kind of value for the rest, where Python's answer
// depends on how it stores them.
func sameAs(c call) any {
	_, isBool := c.value.(bool)
	_, otherBool := c.args[0].(bool)
	return isBool == otherBool && c.m.equal(c.at, c.value, c.args[0])
}

// globals are the functions that a template can call.
var globals = map[string]*function{
	"range": {name: "range", signature: []string{anyNumber}, call: numbers},
	"dict":  {name: "dict", signature: []string{anyName}, call: func(c call) any { return c.dict() }},
	"namespace": {name: "namespace", signature: []string{anyName}, call: func(c call) any {
		return &namespace{c.dict()}
	}},
}

func (c call) dict() *dict {
	d := &dict{}
	for _, key := range slices.Sorted(maps.Keys(c.named)) {
		d.set(key, c.named[key])
	}
	return d
}

// numbers is range(stop), range(start, stop) or range(start, stop, step).
func numbers(c call) any {
	v := []int64{0, 0, 1}
	switch len(c.rest) {
	case 1, 2, 3:
	default:
		c.refuse("takes 1 to 3 numbers, not %d", len(c.rest))
	}
	for i, arg := range c.rest {
		n, ok := asInt(arg)
		if !ok {
			fail(c.at, "use |int", "range needs whole numbers, not %s", Describe(arg))
		}
		v[i] = n
	}
	if len(c.rest) == 1 {
		v[0], v[1] = 0, v[0]
	}
	start, stop, step := v[0], v[1], v[2]
	if step == 0 {
		c.refuse("cannot have a step of 0")
	}
	list := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		c.m.spend(c.at, 1)
		list = append(list, i)
		next, ok := Integer("+", i, step)
		if !ok {
			break
		}
		i = next
	}
	return list
}
