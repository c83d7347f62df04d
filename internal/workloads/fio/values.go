package fio

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/lazyregexp"
)

// form reads the value of an option and writes it anew from what it read: nothing of the author's text passes as it is.
// It judges how a value is written. Whether fio takes a number of that size fio says itself.
type form func(text string) (string, error)

// The units fio knows, as it writes them.
const (
	byteUnits = `b|[kmgtp](?:i?b?)`
	timeUnit  = `d|h|m|s|ms|msec|us|usec`
)

var (
	size     = anyOf("a size such as 8g, 64k or 50%", quantity(byteUnits), percent)
	amount   = anyOf("a whole number, with or without a unit such as k or m", quantity(byteUnits))
	duration = anyOf("a time: a whole number, with or without d, h, m, s, ms or us", quantity(timeUnit))
	integer  = anyOf("a whole number", natural, negative)
	decimal  = anyOf("a number such as 99.5", func(text string) (string, error) {
		if !decimals.MatchString(text) {
			return "", errShape
		}
		f, err := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(f, 'f', -1, 64), err
	})
	toggle = word("0 1")

	blockSizes = list(",", 3, true, amount)
	sizeSpan   = anyOf("a size or a range of sizes such as 1g-2g", size, pair("-", amount))
	blockSpans = list(",", 3, false, anyOf("a range of block sizes such as 4k-16k", pair("-", amount),
		pair(":", amount)))
	timeSpan  = anyOf("a time or a range of times such as 1s-10s", duration, pair("-", duration))
	decimals3 = list(":", 20, false, decimal)
	split     = list(",", 3, false, list(":", 64, false, fields("/", amount, optional(share))))
	prioSplit = list(",", 3, false,
		list(":", 64, false, fields("/", amount, optional(share), integer, integer, integer)))
	cpus  = list(",", 1024, false, anyOf("a CPU or a range of CPUs such as 0-3", integer, pair("-", integer)))
	nodes = anyOf("all, or nodes such as 0,2-3", word("all"), cpus)
	share = anyOf("a whole percentage", natural)

	memoryPolicy = tagged(map[string]form{
		"default": nil, "local": nil, "prefer": integer, "bind": nodes, "interleave": nodes,
	})
)

var decimals = lazyregexp.New(`^[0-9]{1,15}(\.[0-9]{1,15})?$`)

// errShape is a form's answer to a text that anyOf has better words for.
var errShape = errors.New("it has another form")

// anyOf takes the first form that fits; what says what is wanted when none does.
func anyOf(what string, forms ...form) form {
	return func(text string) (string, error) {
		for _, f := range forms {
			if s, err := f(text); err == nil {
				return s, nil
			}
		}
		return "", fmt.Errorf("%q is not %s", text, what)
	}
}

// quantity reads a whole number, decimal or hexadecimal, and one of the units. fio would work out expressions in
// parentheses, too; here a number has to be given.
func quantity(units string) form {
	shape := regexp.MustCompile(`^(0x[0-9a-f]{1,16}|[0-9]{1,19})(` + units + `)?$`)
	return func(text string) (string, error) {
		m := shape.FindStringSubmatch(strings.ToLower(text))
		if m == nil {
			return "", errShape
		}
		digits, base := m[1], 10
		if hex, ok := strings.CutPrefix(digits, "0x"); ok {
			digits, base = hex, 16
		}
		n, err := strconv.ParseInt(digits, base, 64)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(n, 10) + m[2], nil
	}
}

var natural = quantity("")

// backwards is an amount below 0: the jump of a job that goes through its disk from the end.
func backwards(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "-")
	if !ok {
		return "", errShape
	}
	written, err := quantity(byteUnits)(rest)
	return "-" + written, err
}

func negative(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "-")
	if !ok {
		return "", errShape
	}
	n, err := natural(rest)
	return "-" + n, err
}

// percent is whole: fio takes 12.5% for 12 bytes.
func percent(text string) (string, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(number, 10, 7)
	if !ok || err != nil || n > 100 {
		return "", errShape
	}
	return strconv.FormatUint(n, 10) + "%", nil
}

// word is one of the names given, which stand in one text with blanks between.
func word(names string) form {
	known := strings.Fields(names)
	return func(text string) (string, error) {
		if i := slices.Index(known, text); i >= 0 {
			return known[i], nil
		}
		return "", fmt.Errorf("%q is none of %s", text, strings.Join(known, ", "))
	}
}

// list reads up to most parts with a separator between, each of the same form. gaps lets parts be empty, but not all.
func list(separator string, most int, gaps bool, part form) form {
	return func(text string) (string, error) {
		parts := strings.Split(text, separator)
		if len(parts) > most {
			return "", fmt.Errorf("%d values stand in it; at most %d may", len(parts), most)
		}
		for i, p := range parts {
			p = strings.TrimSpace(p)
			if parts[i] = ""; p == "" && gaps && len(parts) > 1 {
				continue
			}
			var err error
			if parts[i], err = part(p); err != nil {
				return "", err
			}
		}
		out := strings.Join(parts, separator)
		if strings.Trim(out, separator) == "" {
			return "", errors.New("no value stands in it")
		}
		return out, nil
	}
}

// fields reads parts of different forms; those at the end may be missing, not the first.
func fields(separator string, forms ...form) form {
	return func(text string) (string, error) {
		parts := strings.Split(text, separator)
		if len(parts) > len(forms) {
			return "", fmt.Errorf("%q has more than %d parts", text, len(forms))
		}
		for i, p := range parts {
			var err error
			if parts[i], err = forms[i](p); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, separator), nil
	}
}

// optional lets a part be empty.
func optional(f form) form {
	return func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return f(text)
	}
}

// pair reads two parts of one form, written as "a-b".
func pair(separator string, part form) form {
	return func(text string) (string, error) {
		from, to, found := strings.Cut(text, separator)
		if !found {
			return "", errShape
		}
		from, err := part(strings.TrimSpace(from))
		to, toErr := part(strings.TrimSpace(to))
		return from + "-" + to, errors.Join(err, toErr)
	}
}

// tagged reads a name and what that name takes after a colon.
func tagged(forms map[string]form) form {
	known := make([]string, 0, len(forms))
	for name := range forms {
		known = append(known, name)
	}
	slices.Sort(known)
	name := word(strings.Join(known, " "))
	return func(text string) (string, error) {
		tag, rest, more := strings.Cut(text, ":")
		tag, err := name(tag)
		if err != nil || !more {
			return tag, err
		}
		f := forms[tag]
		if f == nil {
			return "", fmt.Errorf("%q takes no value", tag)
		}
		rest, err = f(rest)
		return tag + ":" + rest, err
	}
}

// all gives several names the same form after the colon.
func all(names string, f form) map[string]form {
	forms := make(map[string]form)
	for name := range strings.FieldsSeq(names) {
		forms[name] = f
	}
	return forms
}

var distribution = func() form {
	two := fields(":", decimal, decimal)
	forms := all("zipf pareto normal", two)
	forms["random"] = nil
	zones := func(extent form) form {
		return list(",", 3, false, list(":", 256, false, fields("/", decimal, optional(extent))))
	}
	forms["zoned"] = zones(anyOf("a percentage", share, percent))
	forms["zoned_abs"] = zones(size)
	return tagged(forms)
}()

var errno = lazyregexp.New(`^E[A-Z0-9]{1,20}$`)

// errorNames is a list of errors by name or number, for reads, writes and checks apart.
var errorNames = list(",", 3, true, list(":", 64, false, anyOf("an error such as EIO or 5", natural, errorName)))

func errorName(text string) (string, error) {
	if !errno.MatchString(text) {
		return "", errShape
	}
	return text, nil
}

// deviation is how far a measure may be from steady: a number or a percentage.
func deviation(text string) (string, error) {
	number, relative := strings.CutSuffix(text, "%")
	number, err := decimal(number)
	if relative {
		number += "%"
	}
	return number, err
}

// patternPart is one piece of a pattern: a text in quotes, a hexadecimal or decimal number, or the offset. Patterns
// from a file, in single quotes, are none of them.
var patternPart = lazyregexp.New(`^(?:"[0-9A-Za-z !&()*+,./:<=>?@^_{|}~-]*"|0[xX][0-9A-Fa-f]+|-?[0-9]+|%o)`)

// maxPattern is the longest pattern fio keeps, in bytes.
const maxPattern = 512

func pattern(text string) (string, error) {
	bad := fmt.Errorf("%.40q is not a pattern; write plain text in double quotes, or a number such as 0xdeadbeef", text)
	var b strings.Builder
	for rest := text; rest != "" || b.Len() == 0; {
		part := patternPart.FindString(rest)
		if cut := strings.TrimSuffix(part, "0"); strings.HasPrefix(strings.ToLower(rest[len(part):]), "x") &&
			strings.Trim(cut, "-") != "" {
			part = cut // of "120xff" the 0 begins a hexadecimal number
		}
		if part == "" || b.Len()+len(part) > 2*maxPattern+2 {
			return "", bad
		}
		rest = rest[len(part):]
		if part[0] == '-' || part[0] >= '0' && part[0] <= '9' {
			var err error
			if part, err = patternNumber(part); err != nil {
				return "", bad
			}
		}
		b.WriteString(part)
	}
	return b.String(), nil
}

// patternNumber keeps the zeros that lead a hexadecimal number: each two digits of it are a byte.
func patternNumber(text string) (string, error) {
	if hex := strings.ToLower(text); strings.HasPrefix(hex, "0x") {
		return hex, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return strconv.FormatInt(n, 10), err
}
