// Package tagged decodes YAML that people write into structs, strictly and by their tags, and objects in words that
// take no knowledge of Go.
package tagged

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/kit/nearest"
)

// Objection is to a line of the text; 0 is none in particular.
type Objection struct {
	Line int
	What string
}

// Error implements error.
func (o Objection) Error() string {
	if o.Line > 0 {
		return fmt.Sprintf("line %d: %s", o.Line, o.What)
	}
	return o.What
}

// Decode puts the text over what into points to. Keys that nothing reads, values of another kind, keys that are there
// twice and a second document are objections, all at once. The error is that of a text that is no YAML.
func Decode(data []byte, into any) (objections []Objection, err error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	err = d.Decode(into)
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, text := range wrong.Errors {
			objections = append(objections, plainly(text, reflect.TypeOf(into)))
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(err, io.EOF) && !errors.Is(d.Decode(new(any)), io.EOF) {
		objections = append(objections, Objection{What: "there is a second document (---): put all into the first"})
	}
	return objections, nil
}

// Join is the objections as one error; nil for none.
func Join(objections []Objection) error {
	var all []error
	for _, o := range objections {
		all = append(all, o)
	}
	return errors.Join(all...)
}

// What the decoder says, of its own types.
var (
	atLine     = regexp.MustCompile(`^line (\d+): `)
	unknownKey = regexp.MustCompile(`^field (.+) not found in type (.+)$`)
	wrongKind  = regexp.MustCompile("(?s)^cannot unmarshal !!(\\S+)(?: `(.*)`)? into (.+)$")
	twice      = regexp.MustCompile(`(?s)^mapping key (".*") already defined at line (\d+)$`)
)

// plainly is a sentence of the decoder for who wrote the text, which was for a type.
func plainly(text string, into reflect.Type) (o Objection) {
	if m := atLine.FindStringSubmatch(text); m != nil {
		o.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	o.What = twice.ReplaceAllString(text, "$1 is there twice: its first line is $2")
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		known := keys(find(into, m[2], map[reflect.Type]bool{}))
		o.What = fmt.Sprintf("unknown key %q; known are %s", m[1], strings.Join(known, ", "))
		if near := nearest.Of(m[1], known); near != "" {
			o.What = fmt.Sprintf("unknown key %q; did you mean %q?", m[1], near)
		}
	}
	if m := wrongKind.FindStringSubmatch(text); m != nil {
		is := map[string]string{"seq": "a list", "map": "keys with values"}[m[1]]
		o.What = fmt.Sprintf("%s where %s is wanted", cmp.Or(is, strconv.Quote(m[2])),
			fitting(find(into, m[3], map[reflect.Type]bool{})))
	}
	return o
}

// find is the type of a name below another one; nil for none.
func find(t reflect.Type, name string, seen map[reflect.Type]bool) (found reflect.Type) {
	if t.String() == name {
		return t
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		found = find(t.Elem(), name, seen)
	case reflect.Struct:
		for i := 0; i < t.NumField() && found == nil; i++ {
			if f := t.Field(i); f.IsExported() {
				found = find(f.Type, name, seen)
			}
		}
	}
	return found
}

// keys are the tags of a struct.
func keys(t reflect.Type) (all []string) {
	for i := 0; t != nil && t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); tag != "" && tag != "-" {
			all = append(all, tag)
		}
	}
	return all
}

// fitting says what fits a type.
func fitting(t reflect.Type) string {
	switch {
	case t == nil:
		return "another value"
	case t == reflect.TypeFor[time.Duration]():
		return "a length of time, like 90s"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fitting(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("{%s: ...}", strings.Join(append(keys(t), "NAME")[:1], ""))
	case reflect.Map:
		return fmt.Sprintf("{NAME: %s}", fitting(t.Elem()))
	case reflect.Slice:
		return "a list of " + strings.TrimPrefix(fitting(t.Elem()), "a ")
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	}
	return "a whole number"
}
