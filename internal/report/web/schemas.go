package web

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// schemas are JSON schemas of the types that the API answers with, by their names. They are read from the types as
// encoding/json writes them.
type schemas object

var (
	timeType    = reflect.TypeFor[time.Time]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	marshalType = reflect.TypeFor[json.Marshaler]()
	textType    = reflect.TypeFor[encoding.TextMarshaler]()
)

// of is the schema of a value's type; of a struct a reference to it.
func (s schemas) of(v any) object { return s.typed(reflect.TypeOf(v)) }

func (s schemas) typed(t reflect.Type) object {
	implements := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == rawType, t.Kind() == reflect.Interface, t.Kind() != reflect.Pointer && implements(marshalType):
		return object{}
	case t.Kind() != reflect.Pointer && implements(textType):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []object{s.typed(t.Elem()), {"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": []string{"string", "null"}}
		}
		return object{"type": []string{"array", "null"}, "items": s.typed(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.typed(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{"type": "integer"}
}

// structure names a struct by its package and type, so that types of one name stay two.
func (s schemas) structure(t reflect.Type) object {
	path := strings.Split(t.PkgPath(), "/")
	name := path[len(path)-1] + strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
	if _, known := s[name]; !known {
		s[name] = nil // types may hold themselves
		properties, required := object{}, []string{}
		s.fields(t, properties, &required)
		s[name] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// fields are those that encoding/json writes of a struct, with those of what is embedded.
func (s schemas) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			s.fields(inner, properties, required)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			properties[name] = s.typed(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}
