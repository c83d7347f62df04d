package jinja

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var conversion = regexp.MustCompile(`^%(?:\(([^)]*)\))?([-+ 0#]*)(\*|[0-9]+)?(?:\.(\*|[0-9]*))?[hlL]?(.?)`)

// maxWidth bounds the width and the digits of a conversion.
const maxWidth = 1000

// formatted is the filter |format.
func (c call) formatted() any {
	if len(c.named) > 0 {
		return c.m.format(c.at, c.string(), c.dict())
	}
	return c.m.format(c.at, c.string(), tuple(c.rest))
}

// format is Python's format % values.
func (m *machine) format(at int, format string, values any) any {
	given, isTuple := values.(tuple)
	if !isTuple {
		given = tuple{values}
	}
	var b strings.Builder
	used := 0
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			i = len(format)
		}
		b.WriteString(format[:i])
		if format = format[i:]; format == "" {
			break
		}
		parts := conversion.FindStringSubmatch(format)
		format = format[len(parts[0]):]
		key, flags, width, digits, verb := parts[1], parts[2], parts[3], parts[4], parts[5]
		named := strings.HasPrefix(parts[0], "%(")
		if verb == "%" {
			b.WriteByte('%')
			continue
		}
		w, wErr := strconv.Atoi("0" + width)
		d, dErr := strconv.Atoi("0" + digits)
		if wErr != nil || dErr != nil || w > maxWidth || d > maxWidth {
			fail(at, "write the width out", "the format %q has a width that is no number up to %d", parts[0], maxWidth)
		}
		if digits == "" && !strings.Contains(parts[0], ".") {
			d = -1
		}
		var v any
		if d, isDict := values.(*dict); named {
			value, ok := any(nil), false
			if isDict {
				value, ok = d.get(key)
			}
			if !ok {
				fail(at, "", "the format %q finds no value %q", parts[0], key)
			}
			v = value
		} else if used < len(given) {
			v = given[used]
			used++
		} else {
			fail(at, "", "the format %q has no value left", parts[0])
		}
		b.WriteString(pad(m.converted(at, parts[0], verb, flags, d, v), flags, w, verb))
		m.made(at, w+len(parts[0]))
	}
	if _, isDict := values.(*dict); used < len(given) && !isDict {
		fail(at, "", "%d values are more than the format takes", len(given))
	}
	m.made(at, b.Len())
	return b.String()
}

// converted is one value as a conversion prints it, without its width.
func (m *machine) converted(at int, whole, verb, flags string, digits int, v any) string {
	sign := ""
	for _, flag := range []string{" ", "+"} {
		if strings.Contains(flags, flag) {
			sign = flag
		}
	}
	number, isNumber := asFloat(v)
	switch verb {
	case "s", "r":
		text := ""
		if verb == "s" {
			text = m.text(at, v)
		} else {
			text = m.text(at, []any{v})
			text = text[1 : len(text)-1]
		}
		if digits >= 0 && utf8.RuneCountInString(text) > digits {
			text = string([]rune(text)[:digits])
		}
		return text
	case "d", "i", "u", "x", "X", "o":
		i, ok := asInt(v)
		if f, isFloat := v.(float64); isFloat && f > -(1<<63) && f < 1<<63 {
			i, ok = int64(f), true
		}
		if !ok {
			fail(at, "", "the format %q needs a number, not %s", whole, Describe(v))
		}
		base := map[string]int{"x": 16, "X": 16, "o": 8}[verb]
		if base == 0 {
			base = 10
		}
		text := strings.TrimPrefix(strconv.FormatInt(i, base), "-")
		text = strings.Repeat("0", max(digits-len(text), 0)) + text
		if strings.Contains(flags, "#") && base != 10 {
			text = map[string]string{"x": "0x", "X": "0x", "o": "0"}[verb] + text
		}
		if verb == "X" {
			text = strings.ToUpper(text)
		}
		if i < 0 {
			sign = "-"
		}
		return sign + text
	case "f", "F", "e", "E", "g", "G":
		if !isNumber {
			fail(at, "", "the format %q needs a number, not %s", whole, Describe(v))
		}
		if digits < 0 {
			digits = 6
		}
		text := fmt.Sprintf("%."+strconv.Itoa(digits)+strings.ToLower(verb), number)
		if verb == strings.ToUpper(verb) {
			text = strings.ToUpper(text)
		}
		if !strings.HasPrefix(text, "-") {
			text = sign + text
		}
		return text
	}
	unsupported(at, "known are %s %d %f %e %g %x %o %%", fmt.Sprintf("the format %q", whole))
	return ""
}

// pad brings a conversion to its width.
func pad(text, flags string, width int, verb string) string {
	missing := max(width-utf8.RuneCountInString(text), 0)
	switch {
	case strings.Contains(flags, "-"):
		return text + strings.Repeat(" ", missing)
	case strings.Contains(flags, "0") && verb != "s" && verb != "r":
		head := len(text) - len(strings.TrimLeft(text, "+- "))
		if strings.HasPrefix(strings.ToLower(text[head:]), "0x") {
			head += 2
		}
		return text[:head] + strings.Repeat("0", missing) + text[head:]
	}
	return strings.Repeat(" ", missing) + text
}
