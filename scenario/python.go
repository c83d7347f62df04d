package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pythonText prints a value as the language defines it, which is how Python 2 prints: at most 12 significant digits
// and always a ".0" for a whole float, True, False, None, and lists with quoted texts.
func pythonText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return withPoint(strconv.FormatFloat(v, 'g', 12, 64))
	}
	return pythonRepr(v)
}

// pythonRepr prints a value inside a list.
func pythonRepr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if abs := max(v, -v); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
			return strconv.FormatFloat(v, 'e', -1, 64)
		}
		return withPoint(strconv.FormatFloat(v, 'f', -1, 64))
	case string:
		return pythonQuote(v)
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = pythonRepr(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			items = append(items, pythonQuote(k)+": "+pythonRepr(v[k]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return fmt.Sprint(v)
}

func withPoint(s string) string {
	if strings.ContainsAny(s, ".en") { // a point, an exponent, inf or nan
		return s
	}
	return s + ".0"
}

func pythonQuote(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	escaped := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
	return quote + escaped + quote
}

// describe names a value in a message.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "the boolean " + pythonText(v)
	case int64, float64:
		return "the number " + pythonText(v)
	case string:
		return fmt.Sprintf("the text %q", shorten(v, 60))
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("%T", v)
}
