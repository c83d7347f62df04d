package target

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/secret"
	"plimsoll/unit"
)

// Options is how a user configures a target: free text pairs, decoded by the provider's own table.
type Options map[string]string

// Option is one row of a provider's option table; it drives decoding, bounds, help and the reference page.
type Option struct {
	Name    string // as given on the command line: --target-opt NAME=VALUE
	Type    OptionType
	Default string // as a user would write it; "" for none
	Help    string
	// Least and Most bound a Bytes, Duration (in seconds), Count or Number; nil for no bound.
	Least, Most *float64
	Choices     []string // of a Choice
}

// OptionType says how the text of an option is read. The zero value is Text.
type OptionType string

// The types.
const (
	Text     OptionType = ""
	Bytes    OptionType = "size"     // 512MiB
	Duration OptionType = "duration" // 90s, 4m
	Count    OptionType = "number"   // a whole one
	Number   OptionType = "fraction" // 0.25
	Choice   OptionType = "choice"
	Secret   OptionType = "secret" // never given as itself: env:NAME, file:PATH, command:...
)

// Bound is a bound of an option.
func Bound(v float64) *float64 { return &v }

// Values are decoded options, by name.
type Values struct {
	given  Options
	values map[string]any
}

// Decode reads the options of a target by its table, defaults filled in, and returns all objections at once.
func Decode(of string, table []Option, given Options) (Values, error) {
	return DecodeFor("target "+of, table, given)
}

// DecodeFor is Decode for whatever has options; objections begin with what that is.
func DecodeFor(whose string, table []Option, given Options) (Values, error) {
	v := Values{given: given, values: map[string]any{}}
	var names []string
	var objections []error
	for _, o := range table {
		names = append(names, o.Name)
		text, ok := given[o.Name]
		if !ok {
			text = o.Default
		}
		if text == "" {
			continue
		}
		value, err := o.decode(text)
		if err != nil {
			objections = append(objections, fmt.Errorf("%s: option %q: %w", whose, o.Name, err))
			continue
		}
		v.values[o.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(names, name) {
			continue
		}
		hint := "known are " + strings.Join(names, ", ")
		if meant := nearest.Of(name, names); meant != "" {
			hint = fmt.Sprintf("did you mean %q? %s", meant, hint)
		}
		objections = append(objections, fmt.Errorf("%s: option %q: unknown; %s", whose, name, hint))
	}
	return v, errors.Join(objections...)
}

func (o Option) decode(text string) (any, error) {
	switch o.Type {
	case Bytes:
		n, err := unit.ParseBytes(text)
		return int64(n), errors.Join(err, o.within(float64(n), text))
	case Duration:
		d, err := unit.ParseDuration(text)
		return time.Duration(d), errors.Join(err, o.within(time.Duration(d).Seconds(), text))
	case Count:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", text)
		}
		return n, o.within(float64(n), text)
	case Number:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return f, o.within(f, text)
	case Choice:
		if !slices.Contains(o.Choices, text) {
			return nil, fmt.Errorf("%q is none of %s", text, strings.Join(o.Choices, ", "))
		}
		return text, nil
	case Secret:
		return secret.ParseSource(text)
	}
	return text, nil
}

// within holds a value against the bounds.
func (o Option) within(v float64, text string) error {
	bound := func(v float64) string {
		switch o.Type {
		case Bytes:
			return unit.Bytes(v).String()
		case Duration:
			return unit.Duration(time.Duration(v * float64(time.Second))).String()
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	switch {
	case o.Least != nil && v < *o.Least:
		return fmt.Errorf("%q is less than %s", text, bound(*o.Least))
	case o.Most != nil && v > *o.Most:
		return fmt.Errorf("%q is more than %s", text, bound(*o.Most))
	}
	return nil
}

// Given reports whether the user named the option.
func (v Values) Given(name string) bool { _, ok := v.given[name]; return ok }

// value is a decoded option, the zero of its type when it has none.
func value[T any](v Values, name string) (t T) {
	t, _ = v.values[name].(T)
	return t
}

// Text is the value of a Text or Choice, "" when it has none.
func (v Values) Text(name string) string { return value[string](v, name) }

// Bytes is the value of a Bytes.
func (v Values) Bytes(name string) int64 { return value[int64](v, name) }

// Duration is the value of a Duration.
func (v Values) Duration(name string) time.Duration { return value[time.Duration](v, name) }

// Count is the value of a Count.
func (v Values) Count(name string) int { return value[int](v, name) }

// Number is the value of a Number.
func (v Values) Number(name string) float64 { return value[float64](v, name) }

// Secret is where the value of a Secret is kept.
func (v Values) Secret(name string) secret.Source { return value[secret.Source](v, name) }
