package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method returns the method of a value that a name stands for, nil when there is none. None of them changes the value.
func method(v any, name string) *function {
	var table map[string]*function
	switch v.(type) {
	case string:
		table = textMethods
	case *dict:
		table = dictMethods
	case []any, tuple:
		table = listMethods
	}
	f, ok := table[name]
	if !ok {
		return nil
	}
	return &function{name: "." + name, signature: f.signature, call: func(c call) any {
		c.value = v
		return f.call(c)
	}}
}

var dictMethods = map[string]*function{
	"items":  pairs,
	"keys":   define(func(c call) any { return c.mapping().keys() }),
	"values": define(func(c call) any { return c.mapping().values() }),
	"get":    define(get, "key!", "default"),
}

func (d *dict) values() []any {
	values := make([]any, len(d.entries))
	for i, e := range d.entries {
		values[i] = e.value
	}
	return values
}

func get(c call) any {
	if v, ok := c.mapping().get(c.args[0]); ok {
		return v
	}
	if c.has(1) {
		return c.args[1]
	}
	return nil
}

var listMethods = map[string]*function{
	"count": define(func(c call) any {
		n := int64(0)
		for _, item := range c.items() {
			if c.m.equal(c.at, item, c.args[0]) {
				n++
			}
		}
		return n
	}, "value!"),
	"index": define(func(c call) any {
		i := slices.IndexFunc(c.items(), func(item any) bool { return c.m.equal(c.at, item, c.args[0]) })
		if i < 0 {
			c.refuse("does not find %s", Describe(c.args[0]))
		}
		return int64(i)
	}, "value!"),
}

var textMethods = map[string]*function{
	"upper":      upperCase,
	"lower":      lowerCase,
	"capitalize": capitalized,
	"strip":      trimmed,
	"lstrip":     define(func(c call) any { return strip(c, 0, true, false) }, "chars"),
	"rstrip":     define(func(c call) any { return strip(c, 0, false, true) }, "chars"),
	"replace":    replaced,
	"split":      define(split, "sep", "maxsplit"),
	"join": define(func(c call) any {
		list := c.m.items(c.at, c.args[0])
		for _, item := range list {
			if _, ok := item.(string); !ok {
				c.refuse("needs texts, not %s: use |join", Describe(item))
			}
		}
		return c.m.joined(c.at, list, c.string())
	}, "iterable!"),
	"startswith": define(func(c call) any { return strings.HasPrefix(c.string(), c.text(0, "")) }, "prefix!"),
	"endswith":   define(func(c call) any { return strings.HasSuffix(c.string(), c.text(0, "")) }, "suffix!"),
	"count":      define(func(c call) any { return int64(strings.Count(c.string(), c.text(0, ""))) }, "sub!"),
	"find": define(func(c call) any {
		s := c.string()
		i := strings.Index(s, c.text(0, ""))
		if i < 0 {
			return int64(-1)
		}
		return int64(utf8.RuneCountInString(s[:i]))
	}, "sub!"),
	"isdigit": define(func(c call) any {
		s := c.string()
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	}),
	"zfill": define(func(c call) any {
		s := c.string()
		width := c.int(0, 0)
		c.m.made(c.at, int(min(max(width, 0), MaxRendered+1)))
		missing := max(int(width)-utf8.RuneCountInString(s), 0)
		if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
			return s[:1] + strings.Repeat("0", missing) + s[1:]
		}
		return strings.Repeat("0", missing) + s
	}, "width!"),
}

func split(c call) any {
	s, most := c.string(), int(c.int(1, -1))
	var parts []string
	switch separator := c.text(0, ""); {
	case c.has(0) && c.args[0] != nil && separator == "":
		c.refuse("cannot split at nothing")
	case separator != "" && most < 0:
		parts = strings.Split(s, separator)
	case separator != "":
		parts = strings.SplitN(s, separator, most+1)
	default:
		for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
			end := strings.IndexFunc(s, isSpace)
			if end < 0 || most >= 0 && len(parts) == most {
				end = len(s)
			}
			parts = append(parts, s[:end])
			s = s[end:]
		}
	}
	c.m.spend(c.at, len(parts))
	list := make([]any, len(parts))
	for i, part := range parts {
		list[i] = part
	}
	return list
}
