package scenario

import (
	"time"

	"plimsoll/internal/kit/untyped"
)

// Args are a step's arguments after decoding: string, bool, int64, float64, []string, untyped.Object, Selector or
// Password, as the option table says. Optional arguments without a default are absent when not given.
type Args map[string]any

// String returns a text argument, "" when absent.
func (a Args) String(name string) string { s, _ := a[name].(string); return s }

// Bool returns a boolean argument, false when absent.
func (a Args) Bool(name string) bool { b, _ := a[name].(bool); return b }

// Has reports whether the argument was given or has a default.
func (a Args) Has(name string) bool { _, ok := a[name]; return ok }

// Int returns a whole-number argument, 0 when absent.
func (a Args) Int(name string) int { return int(a.Float(name)) }

// Float returns a number argument, 0 when absent.
func (a Args) Float(name string) float64 {
	switch v := a[name].(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// Seconds returns a number argument as a duration in seconds, 0 when absent.
func (a Args) Seconds(name string) time.Duration {
	return time.Duration(a.Float(name) * float64(time.Second))
}

// Selector returns a node selector argument.
func (a Args) Selector(name string) Selector { s, _ := a[name].(Selector); return s }

// Strings returns a list argument.
func (a Args) Strings(name string) []string { s, _ := a[name].([]string); return s }

// Secret returns the text of a secret argument, for the one place that needs it.
func (a Args) Secret(name string) string { s, _ := a[name].(Password); return string(s) }

// Map returns a mapping argument.
func (a Args) Map(name string) untyped.Object { return untyped.Object(a).Object(name) }

// Password is a text that no printing form shows.
type Password string

// String hides the text.
func (Password) String() string { return mask }

// GoString hides the text.
func (p Password) GoString() string { return p.String() }

// MarshalText hides the text.
func (p Password) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
