package untyped_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"plimsoll/internal/kit/untyped"
)

// TestMappings reads what a decoder left, puts another mapping over it and changes what is plain.
func TestMappings(t *testing.T) {
	var o untyped.Object
	if err := json.Unmarshal([]byte(`{"a": {"b": {"c": "text", "d": 1}}, "l": [{"n": 1}, 2, {"n": 3}], "x": null}`),
		&o); err != nil {
		t.Fatal(err)
	}
	b := o.Object("a").Object("b")
	if b.Text("c") != "text" || b.Text("d") != "" || o.Object("x") != nil || o.Object("none").Object("deep") != nil {
		t.Errorf("read %v", b)
	}
	if all := o.Objects("l"); !reflect.DeepEqual(all, []untyped.Object{{"n": 1.0}, {"n": 3.0}}) {
		t.Errorf("of the list %v", all)
	}
	if untyped.Plain(o["l"]) || untyped.Plain(o["a"]) || !untyped.Plain(o["x"]) || !untyped.Plain("") {
		t.Error("a list or a mapping is plain, or a text is not")
	}
	o.Merge(untyped.Object{"a": map[string]any{"b": untyped.Object{"d": true}}, "x": untyped.Object{"y": 2.0}})
	o["l"] = untyped.Each(o["l"], func(v any) any { return v.(float64) + 0.5 })
	want := untyped.Object{"a": map[string]any{"b": map[string]any{"c": "text", "d": true}},
		"l": []any{untyped.Object{"n": 1.5}, 2.5, untyped.Object{"n": 3.5}}, "x": untyped.Object{"y": 2.0}}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %v, want %v", o, want)
	}
}
