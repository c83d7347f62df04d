package report

import (
	"html/template"
	"reflect"

	"plimsoll/internal/visible"
)

// longestText is how many characters of a name, a sentence or a query a document for people shows. It keeps a page
// readable, and small, whatever a run folder holds; the JSON report has the whole.
const longestText = 2000

// Policy is what a page may do: nothing but show itself. Escaping is the first wall, this is the second.
const Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'"

// shown is a copy of v with every text on one line, visible and bounded. All renderers for people begin with it, so
// that no text of an author or a tool can come around it. What holds no text is shared with v; HTML that was sanitised
// and JSON that was not decoded yet stay as they are.
func shown[T any](v T) T {
	return showValue(reflect.ValueOf(&v).Elem()).Interface().(T)
}

var madeHere = reflect.TypeFor[template.HTML]()

func showValue(v reflect.Value) reflect.Value {
	t := v.Type()
	if !holdsText(t, nil) || v.IsZero() {
		return v
	}
	out := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		out.SetString(visible.Line(visible.Cut(v.String(), longestText)))
	case reflect.Struct:
		out.Set(v)
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				out.Field(i).Set(showValue(v.Field(i)))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(showValue(v.Index(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(showValue(v.Index(i)))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(t, v.Len()))
		for _, k := range v.MapKeys() {
			out.SetMapIndex(showValue(k), showValue(v.MapIndex(k)))
		}
	case reflect.Pointer:
		out.Set(reflect.New(t.Elem()))
		out.Elem().Set(showValue(v.Elem()))
	case reflect.Interface:
		out.Set(showValue(v.Elem()))
	default:
		return v
	}
	return out
}

// holdsText reports whether values of a type can hold text to be shown. outer are the types it is asked within.
func holdsText(t reflect.Type, outer []reflect.Type) bool {
	for _, o := range outer {
		if o == t {
			return false // the rest of the outer type decides
		}
	}
	outer = append(outer, t)
	switch t.Kind() {
	case reflect.String:
		return t != madeHere
	case reflect.Interface:
		return true
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return holdsText(t.Elem(), outer)
	case reflect.Map:
		return holdsText(t.Key(), outer) || holdsText(t.Elem(), outer)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holdsText(f.Type, outer) {
				return true
			}
		}
	}
	return false
}
