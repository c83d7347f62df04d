package jinja

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func define(call func(c call) any, signature ...string) *function {
	return &function{call: call, signature: signature}
}

// filters are all that are known, with their arguments as Jinja names them.
var filters = map[string]*function{
	"abs":        define(absolute),
	"capitalize": capitalized,
	"count":      define(length),
	"d":          fallback,
	"default":    fallback,
	"dictsort":   define(dictSort, "case_sensitive", "by", "reverse"),
	"first":      define(func(c call) any { return c.end(false) }),
	"float":      define(func(c call) any { return c.float() }, "default"),
	"format":     define(func(c call) any { return c.formatted() }, anyNumber, anyName),
	"int":        define(whole, "default", "base"),
	"items":      pairs,
	"join":       define(join, "d", "attribute"),
	"last":       define(func(c call) any { return c.end(true) }),
	"length":     define(length),
	"list":       define(func(c call) any { return slices.Clone(c.items()) }),
	"lower":      lowerCase,
	"map":        define(mapped, anyNumber, anyName),
	"max":        define(func(c call) any { return c.extreme(1) }, "case_sensitive", "attribute"),
	"min":        define(func(c call) any { return c.extreme(-1) }, "case_sensitive", "attribute"),
	"reject":     define(func(c call) any { return c.selected(false, false) }, anyNumber),
	"rejectattr": define(func(c call) any { return c.selected(true, false) }, anyNumber),
	"replace":    replaced,
	"reverse":    define(reverse),
	"round":      define(round, "precision", "method"),
	"select":     define(func(c call) any { return c.selected(false, true) }, anyNumber),
	"selectattr": define(func(c call) any { return c.selected(true, true) }, anyNumber),
	"sort":       define(sorted, "reverse", "case_sensitive", "attribute"),
	"string":     define(func(c call) any { return c.string() }),
	"sum":        define(sum, "attribute", "start"),
	"title":      define(title),
	"trim":       trimmed,
	"unique":     define(unique, "case_sensitive", "attribute"),
	"upper":      upperCase,
}

// Those that are methods as well.
var (
	capitalized = define(func(c call) any { return capitalize(c.string()) })
	lowerCase   = define(func(c call) any { return strings.ToLower(c.string()) })
	upperCase   = define(func(c call) any { return strings.ToUpper(c.string()) })
	trimmed     = define(func(c call) any { return strip(c, 0, true, true) }, "chars")
	replaced    = define(replace, "old!", "new!", "count")
	pairs       = define(func(c call) any { return c.mapping().pairs(c) })
)

var fallback = &function{signature: []string{"default_value", "boolean"}, lenient: true, call: func(c call) any {
	_, missing := c.value.(*undefined)
	switch {
	case !missing && (!c.yes(1) || truth(c.value)):
		return c.value
	case c.has(0):
		return c.args[0]
	}
	return ""
}}

// string is the value as text.
func (c call) string() string { return c.m.text(c.at, c.value) }

func (c call) items() []any {
	switch c.value.(type) {
	case []any, tuple, *dict, string:
		return c.m.items(c.at, c.value)
	}
	c.refuse("needs a list, not %s", Describe(c.value))
	return nil
}

func (c call) mapping() *dict {
	d, ok := c.value.(*dict)
	if !ok {
		c.refuse("needs a mapping, not %s", Describe(c.value))
	}
	return d
}

func (d *dict) pairs(c call) []any {
	c.m.spend(c.at, len(d.entries))
	pairs := make([]any, len(d.entries))
	for i, e := range d.entries {
		pairs[i] = tuple{e.key, e.value}
	}
	return pairs
}

func absolute(c call) any {
	if i, ok := asInt(c.value); ok {
		if i < 0 {
			return sign(token{kind: "-", at: c.at}, i)
		}
		return i
	}
	f, ok := c.value.(float64)
	if !ok {
		c.refuse("needs a number, not %s", Describe(c.value))
	}
	return math.Abs(f)
}

func capitalize(s string) string {
	first, width := utf8.DecodeRuneInString(s)
	if width == 0 {
		return s
	}
	return string(unicode.ToTitle(first)) + strings.ToLower(s[width:])
}

var wordBeginning = regexp.MustCompile(`[-\s({\[<]+`)

func title(c call) any {
	s := c.string()
	var b strings.Builder
	done := 0
	for _, gap := range append(wordBeginning.FindAllStringIndex(s, -1), []int{len(s), len(s)}) {
		b.WriteString(capitalize(s[done:gap[0]]) + s[gap[0]:gap[1]])
		done = gap[1]
	}
	return b.String()
}

func length(c call) any {
	switch v := c.value.(type) {
	case string:
		c.m.read(c.at, v)
		return int64(utf8.RuneCountInString(v))
	case *dict:
		return int64(len(v.entries))
	}
	list, ok := asList(c.value)
	if !ok {
		c.refuse("needs a list, a mapping or a text, not %s", Describe(c.value))
	}
	return int64(len(list))
}

// end is the first or the last item.
func (c call) end(last bool) any {
	list := c.items()
	switch {
	case len(list) == 0:
		return &undefined{at: c.at, what: c.name + " of nothing has no value"}
	case last:
		return list[len(list)-1]
	}
	return list[0]
}

// float makes a number of a number or a text, else the default.
func (c call) float() any {
	if f, ok := asFloat(c.value); ok {
		return f
	}
	if s, ok := c.value.(string); ok {
		if f, ok := parseFloat(s); ok {
			return finite(c.at, f)
		}
	}
	if c.has(0) {
		return c.args[0]
	}
	return 0.0
}

// parseFloat reads a number as Python does; it may be infinite or none.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

// whole makes a whole number of a number or a text, else the default.
func whole(c call) any {
	f, ok := c.value.(float64)
	if s, isText := c.value.(string); isText {
		if i, ok := parseInt(s, c.int(1, 10)); ok {
			return i
		}
		if f, ok = parseFloat(s); math.IsInf(f, 0) || math.IsNaN(f) {
			ok = false
		}
	} else if i, ok := asInt(c.value); ok {
		return i
	}
	switch f = math.Trunc(f); {
	case ok && (f < -(1<<63) || f >= 1<<63):
		c.refuse("cannot make a whole number of 64 bits of %s", Describe(c.value))
	case ok:
		return int64(f)
	case c.has(0):
		return c.args[0]
	}
	return int64(0)
}

func parseInt(s string, base int64) (int64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	digits := strings.TrimLeft(s, "+-")
	sign := s[:len(s)-len(digits)]
	if len(sign) > 1 || base < 0 || base == 1 || base > 36 {
		return 0, false
	}
	for prefix, of := range map[string]int64{"0x": 16, "0o": 8, "0b": 2} {
		if strings.HasPrefix(digits, prefix) && (base == of || base == 0) {
			digits, base = digits[2:], of
		}
	}
	if base == 0 {
		base = 10
	}
	i, err := strconv.ParseInt(sign+digits, int(base), 64)
	return i, err == nil
}

// attribute is the argument of that name: items are judged by that field of theirs, a path with points.
func (c call) attribute(path any, item any) any {
	if i, ok := path.(int64); ok {
		return c.defined(c.m.item(c.at, item, i))
	}
	for part := range strings.SplitSeq(c.m.text(c.at, path), ".") {
		if i, err := strconv.ParseInt(part, 10, 64); err == nil {
			item = c.defined(c.m.item(c.at, item, i))
		} else {
			item = c.defined(c.m.item(c.at, item, part))
		}
	}
	return item
}

func (c call) defined(v any) any {
	if u, ok := v.(*undefined); ok && v != poison {
		fail(c.at, u.hint, "%s: %s", c.name, u.what)
	}
	return v
}

// keys are what the items are compared by: themselves or an attribute of theirs, texts without their case.
func (c call) keys(list []any, caseSensitive, attribute int) []any {
	keys := slices.Clone(list)
	for i := range keys {
		if c.has(attribute) && c.args[attribute] != nil {
			keys[i] = c.attribute(c.args[attribute], keys[i])
		}
		if s, ok := keys[i].(string); ok && !c.yes(caseSensitive) {
			keys[i] = strings.ToLower(s)
		}
	}
	return keys
}

func (c call) extreme(sign int) any {
	list := c.items()
	if len(list) == 0 {
		return &undefined{at: c.at, what: c.name + " of nothing has no value"}
	}
	keys, best := c.keys(list, 0, 1), 0
	for i := range keys {
		if c.m.order(c.at, keys[i], keys[best])*sign > 0 {
			best = i
		}
	}
	return list[best]
}

// inOrder sorts items by their keys; equal ones keep their order, also when the order is turned round.
func (c call) inOrder(list, keys []any, reverse bool) []any {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	direction := 1
	if reverse {
		direction = -1
	}
	slices.SortStableFunc(order, func(a, b int) int { return direction * c.m.order(c.at, keys[a], keys[b]) })
	result := make([]any, len(list))
	for i, from := range order {
		result[i] = list[from]
	}
	return result
}

func sorted(c call) any {
	list := c.items()
	return c.inOrder(list, c.keys(list, 1, 2), c.yes(0))
}

func dictSort(c call) any {
	d := c.mapping()
	keys := d.keys()
	switch by := c.text(1, "key"); by {
	case "key":
	case "value":
		for i, e := range d.entries {
			keys[i] = e.value
		}
	default:
		c.refuse("sorts by key or by value, not by %q", by)
	}
	return c.inOrder(d.pairs(c), c.keys(keys, 0, len(c.args)), c.yes(2))
}

func unique(c call) any {
	list := c.items()
	seen := map[any]bool{}
	var kept []any
	for i, key := range c.keys(list, 0, 1) {
		c.m.spend(c.at, 1)
		h, ok := hash(key)
		if !ok {
			c.refuse("cannot hold %s", Describe(key))
		}
		if !seen[h] {
			seen[h] = true
			kept = append(kept, list[i])
		}
	}
	return kept
}

func sum(c call) any {
	total := any(int64(0))
	if c.has(1) {
		total = c.args[1]
	}
	for _, item := range c.items() {
		if c.has(0) && c.args[0] != nil {
			item = c.attribute(c.args[0], item)
		}
		if _, isText := total.(string); isText {
			c.refuse("cannot add texts: use join")
		}
		total = c.m.operate(c.at, token{kind: "+", at: c.at}, total, item)
	}
	return total
}

func join(c call) any {
	list := slices.Clone(c.items())
	if c.has(1) && c.args[1] != nil {
		for i := range list {
			list[i] = c.attribute(c.args[1], list[i])
		}
	}
	return c.m.joined(c.at, list, c.text(0, ""))
}

func replace(c call) any {
	s, old, with := c.string(), c.text(0, "None"), c.text(1, "None")
	times := -1
	if c.has(2) && c.args[2] != nil {
		times = int(c.int(2, -1))
	}
	most := strings.Count(s, old)
	if times >= 0 {
		most = min(most, times)
	}
	c.m.made(c.at, len(s)+most*len(with))
	return strings.Replace(s, old, with, times)
}

func reverse(c call) any {
	list := slices.Clone(c.items())
	slices.Reverse(list)
	if _, isText := c.value.(string); isText {
		return c.m.joined(c.at, list, "")
	}
	return list
}

// strip removes white space, or the characters of an argument, from the ends of a text.
func strip(c call, chars int, left, right bool) any {
	drop := isSpace
	if c.has(chars) && c.args[chars] != nil {
		set := c.text(chars, "")
		drop = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	s := c.string()
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

// maxDigits bounds the digits of |round.
const maxDigits = 300

// round gives a float always. The method common rounds half away from zero, in exact arithmetic; floor and ceil
// multiply and divide as Jinja does, with what that loses.
func round(c call) any {
	x, ok := asFloat(c.value)
	if !ok {
		c.refuse("needs a number, not %s", Describe(c.value))
	}
	digits, method := c.int(0, 0), c.text(1, "common")
	if digits < -maxDigits || digits > maxDigits {
		c.refuse("takes a number of digits from -%d to %d", maxDigits, maxDigits)
	}
	scale := math.Pow(10, float64(digits))
	switch method {
	case "floor":
		return finite(c.at, math.Floor(x*scale)/scale)
	case "ceil":
		return finite(c.at, math.Ceil(x*scale)/scale)
	case "common":
	default:
		fail(c.at, "known are common, ceil, floor", "%s has no method %q", c.name, method)
	}
	exact := new(big.Rat).SetFloat64(math.Abs(x))
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(digits, -digits)), nil))
	if digits < 0 {
		power.Inv(power)
	}
	exact.Mul(exact, power).Add(exact, big.NewRat(1, 2))
	exact.SetInt(new(big.Int).Quo(exact.Num(), exact.Denom())).Quo(exact, power)
	rounded, _ := exact.Float64()
	return finite(c.at, math.Copysign(rounded, x))
}

// mapped is a filter applied to every item, or an attribute of every item.
func mapped(c call) any {
	result := slices.Clone(c.items())
	path, byAttribute := c.named["attribute"]
	for i, item := range result {
		if byAttribute {
			v := c.m.item(c.at, item, path)
			if otherwise, ok := c.named["default"]; ok {
				if _, missing := v.(*undefined); missing {
					result[i] = otherwise
					continue
				}
			}
			result[i] = c.attribute(path, item)
			continue
		}
		if len(c.rest) == 0 {
			c.refuse("needs the name of a filter, or attribute=")
		}
		result[i] = c.through(c.m.filters, "|", c.rest, item)
	}
	return result
}

// through applies the filter or test that rest names, with the arguments behind the name, to a value.
func (c call) through(table map[string]*function, kind string, rest []any, v any) any {
	name, _ := rest[0].(string)
	f, ok := table[name]
	if !ok {
		fail(c.at, nearestIn(name, table), "%s: %s%s is not known", c.name, kind, Shorten(name, 30))
	}
	var a arguments
	for _, arg := range rest[1:] {
		a.given = append(a.given, constant(c.at, arg))
	}
	for key, arg := range c.named {
		if a.named == nil {
			a.named = map[string]*expression{}
		}
		a.named[key] = constant(c.at, arg)
	}
	bound := bind(token{text: name, at: c.at}, kind, f.signature, a)
	return c.defined(c.m.apply(kind+name, c.at, f, constant(c.at, v), bound))
}

// selected keeps the items, or drops those, for which a test holds, of themselves or of an attribute.
func (c call) selected(byAttribute, keep bool) any {
	rest := c.rest
	if byAttribute {
		if len(rest) == 0 {
			c.refuse("needs the name of an attribute")
		}
		rest = rest[1:]
	}
	var kept []any
	for _, item := range c.items() {
		v := item
		if byAttribute {
			v = c.attribute(c.rest[0], item)
		}
		if len(rest) > 0 {
			v = c.through(c.m.predicates, "is ", rest, v)
		}
		if truth(v) == keep {
			kept = append(kept, item)
		}
	}
	return kept
}
