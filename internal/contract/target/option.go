package target

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
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

// Option is one row of an option table: of a place, a power controller, an exporter, or of the config of a load
// generator. The row drives decoding, bounds, help and the reference pages.
type Option struct {
	Name    string     // as given on the command line, --target-opt NAME=VALUE, or as key of a config
	Type    OptionType // may be left out where To says it
	Default string     // as a user would write it; "" for none, or where To holds it
	Help    string
	Unit    string   // of a number, such as "percent"; in objections and help
	Range   string   // bounds as a user would write them: "1 to 100", "512 to 1MiB"; "1" is the least alone
	Choices []string // of a Choice
	// To is where the value goes: a pointer, which holds the default before; a func(string) error; or a function of
	// another kind, for who reads the config to call. nil where Values are asked.
	To any
}

// OptionType says how the text of an option is read. The zero value is Text.
type OptionType string

// The types.
const (
	Text      OptionType = ""
	Bytes     OptionType = "size"      // 512MiB
	Bandwidth OptionType = "bandwidth" // 200MB/s
	Duration  OptionType = "duration"  // 90s, 4m
	Count     OptionType = "number"    // a whole one
	Number    OptionType = "fraction"  // 0.25
	Truth     OptionType = "truth"     // true or false
	Choice    OptionType = "choice"
	Secret    OptionType = "secret" // never given as itself: env:NAME, file:PATH, command:...
	Several   OptionType = "pairs"  // a list or mapping in a config, which To reads
)

// Values are decoded options, by name.
type Values struct {
	given  Options
	values map[string]reflect.Value
}

// Decode reads the options of a target by its table, defaults filled in, and returns all objections at once.
func Decode(of string, table []Option, given Options) (Values, error) {
	return DecodeFor("target "+of, table, given)
}

// DecodeFor is Decode for whatever has options; objections begin with what that is.
func DecodeFor(whose string, table []Option, given Options) (Values, error) {
	v := Values{given: given, values: map[string]reflect.Value{}}
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
		v.values[o.Name] = reflect.ValueOf(value)
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

// kind is the type, as To says it where Type does not.
func (o Option) kind() OptionType {
	if o.Type != "" || o.To == nil {
		return o.Type
	}
	at := reflect.TypeOf(o.To)
	switch at.Kind() {
	case reflect.Func:
		if at.In(0).Kind() != reflect.String {
			return Several
		}
		at = at.In(0)
	case reflect.Pointer:
		at = at.Elem()
	}
	switch {
	case at == reflect.TypeFor[time.Duration]():
		return Duration
	case at == reflect.TypeFor[secret.Source]():
		return Secret
	case at.Kind() == reflect.Bool:
		return Truth
	case at.Kind() == reflect.Float64:
		return Number
	case at.Kind() == reflect.Int:
		return Count
	case len(o.Choices) > 0:
		return Choice
	}
	return Text
}

// Set decodes a text and puts the value where To points.
func (o Option) Set(text string) error {
	if read, ok := o.To.(func(string) error); ok {
		return read(text)
	}
	v, err := o.decode(text)
	if err == nil {
		to := reflect.ValueOf(o.To).Elem()
		to.Set(reflect.ValueOf(v).Convert(to.Type()))
	}
	return err
}

// Shown is the row as people see it: with its type, with what To holds as default, and with choices, unit and bounds in
// its help.
func (o Option) Shown() Option {
	o.Type = o.kind()
	to := reflect.ValueOf(o.To)
	if o.Default == "" && to.Kind() == reflect.Pointer && (o.Type == Truth || !to.Elem().IsZero()) {
		switch v := to.Elem(); o.Type {
		case Bytes:
			o.Default = strings.ReplaceAll(unit.Bytes(v.Int()).String(), " ", "")
		case Duration:
			o.Default = strings.ReplaceAll(unit.Duration(v.Int()).String(), " ", "")
		default:
			o.Default = fmt.Sprint(v)
		}
	}
	o.To = nil
	about := []string{strings.Join(o.Choices, ", "), o.Unit}
	if strings.Contains(o.Range, " to ") {
		about = append(about, o.Range)
	}
	about = slices.DeleteFunc(append(about, o.Help), func(part string) bool { return part == "" })
	o.Help = strings.Join(about, "; ")
	return o
}

// Check says what is wrong with the row itself: its bounds or its default are no values of its type.
func (o Option) Check() error {
	shown := o.Shown()
	var errs []error
	for text := range strings.SplitSeq(o.Range, " to ") {
		if bound := shown; text != "" {
			bound.Range = ""
			_, err := bound.decode(text)
			errs = append(errs, err)
		}
	}
	if shown.Default != "" {
		_, err := shown.decode(shown.Default)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// words are what a value of a type is called in objections.
var words = map[OptionType]string{Bytes: "size", Bandwidth: "bandwidth", Duration: "time", Count: "whole number",
	Number: "number"}

func (o Option) decode(text string) (v any, err error) {
	kind := o.kind()
	switch kind {
	case Bytes:
		v, err = unit.ParseBytes(text)
	case Bandwidth:
		v, err = unit.ParseBandwidth(text)
	case Duration:
		v, err = unit.ParseDuration(text)
	case Count:
		v, err = strconv.Atoi(text)
	case Number:
		number := text
		if strings.HasSuffix(o.Unit, " per second") {
			number = strings.TrimSuffix(text, "/s")
		}
		v, err = strconv.ParseFloat(number, 64)
	case Truth:
		if v, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("%q is neither true nor false", text)
		}
		return v, err
	case Choice:
		if !slices.Contains(o.Choices, text) {
			hint := ""
			if meant := nearest.Of(text, o.Choices); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			return nil, fmt.Errorf("%q is none of %s%s", text, strings.Join(o.Choices, ", "), hint)
		}
		return text, nil
	case Secret:
		return secret.ParseSource(text)
	default:
		return text, nil
	}
	if numeric := (*strconv.NumError)(nil); err != nil && !errors.As(err, &numeric) {
		return nil, err // it quotes the text and says how it is written
	}
	if err != nil || !o.within(v) {
		what := words[kind]
		if o.Unit != "" {
			what += " of " + o.Unit
		}
		if o.Range != "" {
			what += " from " + o.Range
			if !strings.Contains(o.Range, " to ") {
				what += " on"
			}
		}
		return nil, fmt.Errorf("%q is no %s", text, what)
	}
	return v, nil
}

// within holds a number against the bounds.
func (o Option) within(v any) bool {
	least, most, _ := strings.Cut(o.Range, " to ")
	o.Range = ""
	reach := func(bound string, sign int) bool {
		if bound == "" {
			return true
		}
		b, err := o.decode(bound)
		return err == nil && cmp.Compare(plain(v), plain(b))*sign >= 0
	}
	f := plain(v)
	return !math.IsNaN(f) && !math.IsInf(f, 0) && reach(least, 1) && reach(most, -1)
}

func plain(v any) float64 { return reflect.ValueOf(v).Convert(reflect.TypeFor[float64]()).Float() }

// Given reports whether the user named the option.
func (v Values) Given(name string) bool { _, ok := v.given[name]; return ok }

// value is a decoded option, the zero of its type when it has none.
func value[T any](v Values, name string) (t T) {
	if got := v.values[name]; got.IsValid() {
		t = got.Convert(reflect.TypeFor[T]()).Interface().(T)
	}
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
