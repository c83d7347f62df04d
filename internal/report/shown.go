package report

import (
	"html/template"
	"reflect"

	"plimsoll/internal/kit/visible"
	"plimsoll/result"
)

// longestText is how many characters of a name, a sentence or a query a document for people shows. It keeps a page
// readable, and small, whatever a run folder holds; the JSON report has the whole.
const longestText = 2000

// Policy lets a page do nothing but show itself. Escaping is the first wall, this is the second.
const Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'"

// ForPeople is the document as people read it.
func (doc *Document) ForPeople() *Document { return shown(doc) }

// shown is a copy of v with every text on one line, visible and bounded, and machines by their plain
// names. All renderers for people begin with it, so
// that no text of an author or a tool can come around it. What holds no text is shared with v; HTML that was sanitised
// and JSON that was not decoded yet stay as they are.
func shown[T any](v T) T {
	return showing(func(text string) string { return safe(result.PlainNames(text)) }).value(reflect.ValueOf(&v).Elem()).
		Interface().(T)
}

// safelyShown is a copy of v like that of shown in which machines keep their names, for programs.
func safelyShown[T any](v T) T {
	return showing(safe).value(reflect.ValueOf(&v).Elem()).Interface().(T)
}

func safe(text string) string { return visible.Line(visible.Cut(text, longestText)) }

// showing changes every text before it is shown.
type showing func(string) string

var madeHere = reflect.TypeFor[template.HTML]()

func (s showing) value(v reflect.Value) reflect.Value {
	t := v.Type()
	if !holdsText(t, nil) || v.IsZero() {
		return v
	}
	out := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		out.SetString(s(v.String()))
	case reflect.Struct:
		out.Set(v)
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				out.Field(i).Set(s.value(v.Field(i)))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(s.value(v.Index(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(s.value(v.Index(i)))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(t, v.Len()))
		for _, k := range v.MapKeys() {
			out.SetMapIndex(s.value(k), s.value(v.MapIndex(k)))
		}
	case reflect.Pointer:
		out.Set(reflect.New(t.Elem()))
		out.Elem().Set(s.value(v.Elem()))
	case reflect.Interface:
		out.Set(s.value(v.Elem()))
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
