// Package untyped reads mappings of JSON and YAML whose keys are their author's: variables of scenarios, configs of
// load generators, outputs of other tools.
package untyped

// Object is a mapping: of texts, truths, numbers, nil, lists ([]any) and Objects. Decoders leave plain Go maps in it,
// which its methods take, too.
type Object map[string]any

// Of is a value as an Object, and whether it is a mapping.
func Of(v any) (Object, bool) {
	switch v := v.(type) {
	case Object:
		return v, true
	case map[string]any:
		return v, true
	}
	return nil, false
}

// Plain reports whether a value is neither a mapping nor a list.
func Plain(v any) bool {
	_, list := v.([]any)
	_, mapping := Of(v)
	return !list && !mapping
}

// Each is a value with what change makes of all that is plain in it; mappings are Objects in it.
func Each(v any, change func(any) any) any {
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i, one := range list {
			out[i] = Each(one, change)
		}
		return out
	}
	if o, ok := Of(v); ok {
		out := make(Object, len(o))
		for key, one := range o {
			out[key] = Each(one, change)
		}
		return out
	}
	return change(v)
}

// Object is the mapping of a key; nil for none.
func (o Object) Object(key string) Object {
	of, _ := Of(o[key])
	return of
}

// List is the list of a key; nil for none.
func (o Object) List(key string) []any {
	list, _ := o[key].([]any)
	return list
}

// Objects are the mappings in the list of a key.
func (o Object) Objects(key string) (all []Object) {
	for _, v := range o.List(key) {
		if of, ok := Of(v); ok {
			all = append(all, of)
		}
	}
	return all
}

// Text is the text of a key, "" for none.
func (o Object) Text(key string) string {
	text, _ := o[key].(string)
	return text
}

// Merge puts the values of another mapping over those that are there, mappings key by key.
func (o Object) Merge(over Object) {
	for key, value := range over {
		there, ok := Of(o[key])
		if inner, is := Of(value); is && ok {
			there.Merge(inner)
		} else {
			o[key] = value
		}
	}
}
