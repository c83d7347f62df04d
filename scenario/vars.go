package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/kit/untyped"
	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// section is a top-level section cut out of the raw text, before templating.
type section struct {
	text    string
	line    int  // of its first line, from 1; 0: there is none
	last    bool // nothing follows, so that the language cuts nothing
	comment bool // a comment in column 0 ended it before its last entry
}

// cutSection finds the section of a key in column 0: from its first line up to the next line that begins with
// anything but white space. Without such a line nothing is cut, which is how a vars section at the end of a file comes
// to be ignored.
func cutSection(source, key string) section {
	lines := strings.SplitAfter(source, "\n")
	start := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, key+":") })
	if start < 0 {
		return section{}
	}
	end := start + 1
	for end < len(lines) && (lines[end] == "" || strings.ContainsRune(" \t\r\n\v\f", rune(lines[end][0]))) {
		end++
	}
	s := section{line: start + 1, text: strings.Join(lines[start:end], ""), last: end == len(lines)}
	if !s.last && lines[end][0] == '#' {
		for _, l := range lines[end:] {
			if trimmed := strings.TrimSpace(l); trimmed != "" && l[0] != '#' {
				s.comment = l[0] == ' ' || l[0] == '\t'
				break
			}
		}
	}
	return s
}

// readVars does steps 1 to 4 of reading a file: cut, parse, choose and bound the variables.
func (l *loader) readVars() untyped.Object {
	preset := l.readPresets()
	cut := cutSection(l.source, "vars")
	values := untyped.Object{}
	at := Pos{File: l.file, Line: cut.line, Col: 1}
	switch {
	case cut.line == 0:
		l.unknownOverrides(preset, at)
		return values
	case cut.last:
		l.say("vars-last", at, "the vars section stands last in the file, where the language ignores it",
			"move it up, before another section")
		return values
	case cut.comment:
		l.say("vars-cut", at, "a comment in column 0 ends the vars section; the variables after it are ignored",
			"indent the comment")
	}
	root, objection := parseYAML(cut.text)
	if objection != nil {
		l.sayYAML(objection, cut.line-1)
		return values
	}
	l.offset = cut.line - 1
	defer func() { l.offset = 0 }()
	var body *yaml.Node
	if entries := l.entries(root, "the file"); len(entries) > 0 {
		body = entries[0].value
	}
	if body == nil || body.Kind != yaml.MappingNode {
		l.say("wrong-type", at, "vars must be a mapping of variables",
			"give each variable a default, or remove the section")
		return values
	}
	for _, e := range l.entries(body, "vars") {
		v := l.readVar(e, preset)
		l.sc.Vars = append(l.sc.Vars, v)
		values[v.Name] = v.Value
	}
	l.unknownOverrides(preset, at)
	return values
}

var varFields = []ArgSpec{
	{Name: "default", Type: Any, Required: true, Doc: "value unless the caller or a preset gives another"},
	{Name: "min", Type: Any, Doc: "smallest value allowed"},
	{Name: "max", Type: Any, Doc: "largest value allowed"},
	{Name: "value", Type: Any, Doc: "written by the engine: the value in force"},
	{Name: "display_name", Type: Text, Doc: "label on screen"},
	{Name: "description", Type: Text, Doc: "help on screen"},
	{Name: "options", Type: Any, Doc: "list of allowed values"},
}

// readVar reads one variable. One that is refused keeps a value, so that the rest of the file is looked at as well.
func (l *loader) readVar(e entry, preset untyped.Object) Var {
	v := Var{Name: e.name, From: "default", Value: int64(1), Pos: l.nodePos(e.key)}
	if e.value.Kind != yaml.MappingNode {
		l.say("wrong-type", v.Pos, fmt.Sprintf("variable %q must be a mapping, not %s", e.name, kindName(e.value)),
			fmt.Sprintf("write {default: …} below %s", e.name))
		return v
	}
	defaulted := false
	for _, f := range l.entries(e.value, "variable "+e.name) {
		value := l.native(f.value)
		switch f.name {
		case "default":
			v.Default, defaulted = value, true
		case "min":
			v.Min = value
		case "max":
			v.Max = value
		case "display_name":
			v.DisplayName = jinja.Text(value)
		case "description":
			v.Description = jinja.Text(value)
		case "options":
			v.Options, _ = value.([]any)
			if v.Options == nil {
				l.say("wrong-type", l.nodePos(f.value), fmt.Sprintf("variable %q: options must be a list, not %s",
					e.name, kindName(f.value)), "")
			}
		case "value":
		default:
			l.say("unknown-key", l.nodePos(f.key), fmt.Sprintf("variable %q has no field %q", e.name, f.name),
				didYouMean(f.name, names(varFields)))
		}
	}
	if !defaulted {
		l.say("missing-default", v.Pos, fmt.Sprintf("variable %q has no default", e.name), "add default:")
		return v
	}
	v.Value = v.Default
	if p, ok := preset[e.name]; ok {
		v.Value, v.From = p, "preset "+l.opts.Preset
	}
	if s, ok := l.opts.Set[e.name]; ok {
		v.Value, v.From = nativeGo(s), "set"
	}
	l.boundVar(&v)
	return v
}

// boundVar applies options and bounds to the value in force.
func (l *loader) boundVar(v *Var) {
	if list, ok := v.Value.([]any); ok && v.Options != nil {
		if len(list) == 0 {
			l.say("bounds", v.Pos, fmt.Sprintf("variable %q: the list of its default is empty", v.Name), "")
			return
		}
		v.Value = list[0]
	}
	chosen := func(o any) bool { return jinja.Repr(o) == jinja.Repr(v.Value) }
	if v.Options != nil && !slices.ContainsFunc(v.Options, chosen) {
		l.say("bounds", v.Pos, fmt.Sprintf("variable %q: %s is not among its options", v.Name, jinja.Describe(v.Value)),
			"allowed: "+jinja.Text(v.Options))
		return
	}
	below, minOK := pythonCompare(v.Value, v.Min)
	above, maxOK := pythonCompare(v.Value, v.Max)
	switch {
	case v.Min != nil && (!minOK || below < 0):
		l.say("bounds", v.Pos, fmt.Sprintf("variable %q: %s is below its minimum %s", v.Name, jinja.Describe(v.Value),
			jinja.Text(v.Min)), textForNumber(v.Value))
	case v.Max != nil && (!maxOK || above > 0):
		l.say("bounds", v.Pos, fmt.Sprintf("variable %q: %s is above its maximum %s", v.Name, jinja.Describe(v.Value),
			jinja.Text(v.Max)), textForNumber(v.Value))
	}
}

func textForNumber(v any) string {
	if _, ok := v.(string); ok {
		return "a text is above every number"
	}
	return ""
}

// pythonCompare orders values as Python 2 does where the types differ: nothing, then numbers, then the rest, of which
// text is the last we meet.
func pythonCompare(a, b any) (int, bool) {
	if order, ok := jinja.Compare(a, b); ok {
		return order, true
	}
	rank := func(v any) int {
		switch v.(type) {
		case nil:
			return 0
		case bool, int64, float64:
			return 1
		case untyped.Object:
			return 2
		case []any:
			return 3
		}
		return 4
	}
	return cmp.Compare(rank(a), rank(b)), rank(a) != rank(b)
}

// readPresets reads the presets section and returns the values of the preset asked for.
func (l *loader) readPresets() untyped.Object {
	cut := cutSection(l.source, "presets")
	at := Pos{File: l.file, Line: max(cut.line, 1), Col: 1}
	presets := map[string]untyped.Object{}
	if cut.line != 0 {
		root, objection := parseYAML(cut.text)
		if objection == nil {
			l.offset = cut.line - 1
			presets = l.readPresetValues(root)
			l.offset = 0
		} else if l.opts.Preset != "" {
			l.sayYAML(objection, cut.line-1)
			return nil
		}
	}
	l.sc.Presets = slices.Sorted(maps.Keys(presets))
	if l.opts.Preset == "" {
		return nil
	}
	values, ok := presets[l.opts.Preset]
	if !ok {
		hint := didYouMean(l.opts.Preset, l.sc.Presets)
		if len(presets) == 0 {
			hint = "the file has no presets"
		}
		l.say("unknown-preset", at, fmt.Sprintf("unknown preset %q", l.opts.Preset), hint)
	}
	return values
}

func (l *loader) readPresetValues(root *yaml.Node) map[string]untyped.Object {
	presets := map[string]untyped.Object{}
	for _, section := range l.entries(root, "the file") {
		for _, preset := range l.entries(section.value, "presets") {
			presets[preset.name] = nil
			for _, f := range l.entries(preset.value, "preset "+preset.name) {
				if f.name == "vars" {
					presets[preset.name], _ = l.native(f.value).(untyped.Object)
					continue
				}
				l.say("unknown-key", l.nodePos(f.key), fmt.Sprintf("preset %q has no field %q", preset.name, f.name),
					didYouMean(f.name, []string{"vars"}))
			}
		}
	}
	return presets
}

// unknownOverrides remarks on values given for variables that the file does not have.
func (l *loader) unknownOverrides(preset untyped.Object, at Pos) {
	var known []string
	for _, v := range l.sc.Vars {
		known = append(known, v.Name)
	}
	at.Line = max(at.Line, 1)
	for _, name := range slices.Sorted(maps.Keys(l.opts.Set)) {
		if !slices.Contains(known, name) {
			l.say("unknown-set", at, fmt.Sprintf("a value is set for %q, which the scenario does not declare", name),
				didYouMean(name, known))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(preset)) {
		if !slices.Contains(known, name) {
			l.say("unknown-variable", at, fmt.Sprintf("preset %q sets %q, which the scenario does not declare",
				l.opts.Preset, name), didYouMean(name, known))
		}
	}
}

// nativeGo brings a caller's value to the types of the language.
func nativeGo(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case float32:
		return float64(v)
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = nativeGo(item)
		}
		return list
	case untyped.Object:
		m := make(untyped.Object, len(v))
		for k, item := range v {
			m[k] = nativeGo(item)
		}
		return m
	}
	return v
}
