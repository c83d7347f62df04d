package jinja

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/kit/untyped"
)

// Text prints a value as the language defines it, which is how Python 2 prints: at most 12 significant digits and
// always a ".0" for a whole float, True, False, None, and lists with quoted texts.
func Text(v any) string {
	p := printer{left: MaxRendered}
	p.text(v)
	return p.b.String()
}

// Repr prints a value as it stands inside a list.
func Repr(v any) string {
	p := printer{left: MaxRendered}
	p.repr(v, 0)
	return p.b.String()
}

// printer prints values up to a number of bytes; values may hold themselves many times over.
type printer struct {
	b    strings.Builder
	left int
	cut  bool // the text is longer, or nested deeper, than may be printed
}

func (p *printer) write(s string) {
	if p.left -= len(s); p.left < 0 {
		p.cut = true
		return
	}
	p.b.WriteString(s)
}

func (p *printer) text(v any) {
	switch v := v.(type) {
	case string:
		p.write(v)
	case float64:
		p.write(withPoint(strconv.FormatFloat(v, 'g', 12, 64)))
	default:
		p.repr(v, 0)
	}
}

func (p *printer) repr(v any, depth int) {
	if p.cut = p.cut || depth > maxNesting; p.cut {
		return
	}
	switch v := v.(type) {
	case nil:
		p.write("None")
	case bool:
		p.write(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		p.write(strconv.FormatInt(v, 10))
	case float64:
		p.write(reprFloat(v))
	case string:
		p.write(quote(v))
	case []any:
		p.items("[", v, "]", depth)
	case tuple:
		if len(v) == 1 {
			p.items("(", v, ",)", depth)
		} else {
			p.items("(", v, ")", depth)
		}
	case untyped.Object:
		p.repr(fromGo(v), depth)
	case *dict:
		p.write("{")
		for i, e := range v.entries {
			if i > 0 {
				p.write(", ")
			}
			p.repr(e.key, depth+1)
			p.write(": ")
			p.repr(e.value, depth+1)
		}
		p.write("}")
	default:
		p.write("<" + strings.TrimPrefix(Describe(v), "a ") + ">")
	}
}

func (p *printer) items(open string, list []any, end string, depth int) {
	p.write(open)
	for i, item := range list {
		if i > 0 {
			p.write(", ")
		}
		if p.repr(item, depth+1); p.cut {
			return
		}
	}
	p.write(end)
}

func reprFloat(v float64) string {
	if abs := max(v, -v); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return withPoint(strconv.FormatFloat(v, 'f', -1, 64))
}

func withPoint(s string) string {
	if strings.ContainsAny(s, ".en") { // a point, an exponent, inf or nan
		return s
	}
	return s + ".0"
}

func quote(s string) string {
	mark := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = '"'
	}
	var b strings.Builder
	b.WriteRune(mark)
	for _, r := range s {
		switch i := strings.IndexRune("\n\r\t\\", r); {
		case i >= 0:
			b.WriteString([]string{`\n`, `\r`, `\t`, `\\`}[i])
		case r == mark:
			b.WriteString(`\` + string(r))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(mark)
	return b.String()
}

// Describe names a value in a message.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "the boolean " + Text(v)
	case int64, float64:
		return "the number " + Text(v)
	case string:
		return fmt.Sprintf("the text %q", Shorten(v, 60))
	case []any:
		return "a list"
	case tuple:
		return "a tuple"
	case untyped.Object, *dict:
		return "a mapping"
	case *namespace:
		return "a namespace"
	case *loop:
		return "a loop"
	case *function:
		return "the function " + v.name
	}
	return fmt.Sprintf("%T", v)
}

// Shorten cuts text for a message.
func Shorten(s string, longest int) string {
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest]) + "…"
}

// Values of a template are string, bool, int64, float64, nil, []any and the following.
type (
	tuple []any
	// dict is a mapping in the order in which it was written.
	dict struct {
		entries []entry
		index   map[any]int
	}
	entry     struct{ key, value any }
	namespace struct{ vars *dict }
)

// fromGo brings the caller's mappings to the form they have here, sorted by name.
func fromGo(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = fromGo(item)
		}
		return list
	}
	o, ok := untyped.Of(v)
	if !ok {
		return v
	}
	d := &dict{}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		d.set(k, fromGo(o[k]))
	}
	return d
}

// hash returns what a key is found by: numbers that are equal are one key. ok is false for what cannot be a key.
func hash(v any) (key any, ok bool) {
	switch v := v.(type) {
	case nil, string, int64:
		return v, true
	case bool:
		i, _ := asInt(v)
		return i, true
	case float64:
		if i := int64(v); float64(i) == v {
			return i, true
		}
		return v, true
	case tuple:
		type tupleKey string
		p := printer{left: 1 << 10}
		p.repr(v, 0)
		return tupleKey(p.b.String()), !p.cut
	}
	return nil, false
}

func (d *dict) set(key, value any) (ok bool) {
	h, ok := hash(key)
	if !ok {
		return false
	}
	if i, known := d.index[h]; known {
		d.entries[i].value = value
		return true
	}
	if d.index == nil {
		d.index = map[any]int{}
	}
	d.index[h] = len(d.entries)
	d.entries = append(d.entries, entry{key, value})
	return true
}

func (d *dict) get(key any) (any, bool) {
	h, ok := hash(key)
	i, known := d.index[h]
	if !ok || !known {
		return nil, false
	}
	return d.entries[i].value, true
}

func (d *dict) keys() []any {
	keys := make([]any, len(d.entries))
	for i, e := range d.entries {
		keys[i] = e.key
	}
	return keys
}
