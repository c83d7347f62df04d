package scenario

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/kit/untyped"
	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// loader is one call of Load.
type loader struct {
	fsys   fs.FS
	opts   LoadOptions
	file   string // path of the scenario file in fsys
	files  []string
	source string
	starts []int // line starts of source
	offset int   // lines before the text being read, while vars and presets are read from the source
	out    *rendered
	sc     *Scenario
	diags  []Diagnostic
	redact []*yaml.Node
}

// say records an objection with the severity its code has in this mode.
func (l *loader) say(code string, at Pos, what, hint string) {
	row, ok := codeRows[code]
	for _, g := range l.opts.Generators {
		for _, c := range g.Codes() {
			if c.Name == code {
				row, ok = c, true
			}
		}
	}
	if !ok {
		row = Code{Tolerant: Error, Strict: Error}
	}
	severity := row.Tolerant
	if l.opts.Strict {
		severity = row.Strict
	}
	if severity != 0 {
		l.diags = append(l.diags, Diagnostic{Pos: at, Severity: severity, Code: code, What: what, Hint: hint})
	}
}

// sayYAML records what the YAML reader objected to; skipped is the number of lines before the text it read.
func (l *loader) sayYAML(e *yamlError, skipped int) {
	at := Pos{File: l.file}
	switch {
	case e.line == 0:
	case l.out != nil:
		at = l.textPos(e.line, max(e.col, 1))
		if e.col == 0 {
			at.Col = 0
		}
	default:
		at.Line, at.Col = e.line+skipped, e.col
	}
	l.say("yaml", at, e.what, e.hint)
}

// nodePos is the place of a node in the author's file.
func (l *loader) nodePos(n *yaml.Node) Pos {
	if n == nil || n.Line == 0 {
		return Pos{File: l.file}
	}
	if l.out == nil {
		return Pos{File: l.file, Line: n.Line + l.offset, Col: n.Column}
	}
	return l.textPos(n.Line, n.Column)
}

// textPos is the place in the author's file that a place of the rendered text comes from.
func (l *loader) textPos(line, col int) Pos {
	line, col = lineCol(l.source, l.starts, l.out.Origin(l.out.offset(line, col)))
	return Pos{File: l.file, Line: line, Col: col}
}

// entry is one key of a mapping.
type entry struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// entries returns the keys of a mapping in order; a repeated key is reported, and the last one takes the first place.
func (l *loader) entries(n *yaml.Node, of string) []entry {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	list := make([]entry, 0, len(n.Content)/2)
	index := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			l.say("wrong-type", l.nodePos(key), fmt.Sprintf("%s: a key must be a name, not %s", of, kindName(key)), "")
			continue
		}
		e := entry{name: key.Value, key: key, value: value}
		if first, repeated := index[e.name]; repeated {
			l.say("duplicate-key", l.nodePos(key), fmt.Sprintf("%s: %q is given twice; the last one counts", of,
				e.name), "remove one")
			list[first].value = value
			continue
		}
		index[e.name] = len(list)
		list = append(list, e)
	}
	return list
}

// native converts a node to a value: string, bool, int64, float64, nil, []any or untyped.Object.
func (l *loader) native(n *yaml.Node) any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := untyped.Object{}
		for _, e := range l.entries(n, "a mapping") {
			m[e.name] = l.native(e.value)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			list = append(list, l.native(c))
		}
		return list
	}
	return l.scalar(n)
}

// scalar is the value of a scalar node; readings that surprise are remarked on.
func (l *loader) scalar(n *yaml.Node) any {
	v, odd := scalar(n)
	at := l.nodePos(n)
	if isNotFinite(v) {
		l.say("wrong-type", at, n.Value+" is not a finite number", "write a number")
		return n.Value
	}
	switch odd {
	case oldBoolean:
		l.say(string(odd), at, fmt.Sprintf("%s is a boolean in YAML 1.1", n.Value),
			"write True or False, or quote it if a text is meant")
	case octal:
		l.say(string(odd), at, fmt.Sprintf("%s is octal for %v in YAML 1.1", n.Value, v),
			"drop the leading zero, or quote it if a text is meant")
	case sexagesimal:
		l.say(string(odd), at, fmt.Sprintf("%s is the number %v in YAML 1.1, which counts in sixties", n.Value,
			jinja.Text(v)), "quote it if a text is meant")
	case numberTooLong:
		l.say(string(odd), at, fmt.Sprintf("the number %s does not fit 64 bits", jinja.Shorten(n.Value, 30)), "")
	case customTag:
		l.say(string(odd), at, fmt.Sprintf("the tag %s is not part of the scenario language", n.Tag), "remove it")
	}
	return v
}

// isNotFinite reports whether v is an infinity or no number at all, which YAML can write.
func isNotFinite(v any) bool {
	f, ok := v.(float64)
	return ok && (math.IsNaN(f) || math.IsInf(f, 0))
}

func names(rows []ArgSpec) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = r.Name
	}
	return list
}

// slipThrough are keys of a VM group that published engines accept by accident.
var slipThrough = []string{"name", "scenario", "self"}

// fields is a decoded mapping with the place of each of its fields.
type fields struct {
	Args
	at  Pos // of the mapping as a whole
	pos map[string]Pos
}

func (f fields) where(name string) Pos {
	if p, ok := f.pos[name]; ok {
		return p
	}
	return f.at
}

// refused reports whether the field was given with a value that was not accepted.
func (f fields) refused(name string) bool {
	_, given := f.pos[name]
	return given && !f.Has(name)
}

// decode reads a mapping by its option table: types, bounds, required fields and defaults. of names the mapping in
// messages, unknownCode is the objection to keys that the table does not have. An absent or null mapping is empty.
func (l *loader) decode(n *yaml.Node, at Pos, of string, rows []ArgSpec, unknownCode string) (fields, bool) {
	f := fields{Args: Args{}, at: at, pos: map[string]Pos{}}
	if !isNull(n) && n.Kind != yaml.MappingNode {
		l.say("wrong-type", at, fmt.Sprintf("%s must be a mapping, not %s", of, kindName(n)),
			"indent its fields below it")
		return f, false
	}
	good := true
	for _, e := range l.entries(n, of) {
		i := slices.IndexFunc(rows, func(r ArgSpec) bool { return r.Name == e.name })
		switch {
		case i < 0:
			code := unknownCode
			if code == "unknown-field" && slices.Contains(slipThrough, e.name) {
				code = "unknown-key"
			}
			l.say(code, l.nodePos(e.key), fmt.Sprintf("%s has no %q", of, e.name), didYouMean(e.name, names(rows)))
			continue
		case isNull(e.value):
			continue // null counts as missing
		}
		f.pos[e.name] = l.nodePos(e.value)
		if rows[i].Extension {
			l.say("extension", l.nodePos(e.key), fmt.Sprintf("%s: %s is an extension of Plimsoll", of, e.name),
				"leave it out of files meant for other engines")
		}
		v, err := l.value(e.value, rows[i])
		if err != nil {
			code := "wrong-type"
			if err.bounds {
				code = "bounds"
			}
			l.say(code, f.pos[e.name], fmt.Sprintf("%s: %s %s", of, e.name, err.what), err.hint)
			good = false
			continue
		}
		f.Args[e.name] = v
	}
	for _, r := range rows {
		_, given := f.pos[r.Name]
		switch {
		case given:
		case r.Required:
			l.say("missing-key", at, fmt.Sprintf("%s lacks %s", of, r.Name), fmt.Sprintf("add %s: %s", r.Name, r.Doc))
			good = false
		case r.Default != nil:
			f.Args[r.Name] = r.Default
		}
	}
	return f, good
}

// maxEntries bounds a section; the largest published one has 300.
const maxEntries = 10_000

// valueError is an objection to one value, to be completed with the name of the field.
type valueError struct {
	what   string
	hint   string
	bounds bool
}

func tooMany(n *yaml.Node) *valueError {
	return &valueError{bounds: true, what: fmt.Sprintf("has %d entries", len(n.Content)),
		hint: fmt.Sprintf("the most is %d", maxEntries)}
}

// value decodes one node as the row's type.
func (l *loader) value(n *yaml.Node, row ArgSpec) (any, *valueError) {
	switch row.Type {
	case Any:
		return l.native(n), nil
	case sectionList:
		if n.Kind != yaml.SequenceNode {
			return nil, &valueError{what: "must be a list, not " + kindName(n),
				hint: "write each entry after a dash; [] is an empty list"}
		}
		if len(n.Content) > maxEntries {
			return nil, tooMany(n)
		}
		return n, nil
	case Mapping:
		if n.Kind != yaml.MappingNode {
			return nil, &valueError{what: "must be a mapping, not " + kindName(n)}
		}
		return l.native(n), nil
	case TextList, IntList:
		return l.list(n, row)
	}
	if n.Kind != yaml.ScalarNode {
		return nil, &valueError{what: fmt.Sprintf("must be %s, not %s", article(row.Type), kindName(n))}
	}
	switch row.Type {
	case Nodes:
		return l.selector(n)
	case TextOnly:
		if text, ok := l.scalar(n).(string); ok {
			return text, nil
		}
		return nil, &valueError{what: "must be a text, not " + kindName(n), hint: fmt.Sprintf("write %q", n.Value)}
	case Text, File, GroupName, WorkloadRef, Secret:
		return l.text(n, row)
	case Bool:
		if b, ok := l.scalar(n).(bool); ok {
			return b, nil
		}
		return nil, &valueError{what: "must be True or False, not " + kindName(n)}
	}
	return l.number(n, row)
}

func (l *loader) list(n *yaml.Node, row ArgSpec) (any, *valueError) {
	if n.Kind != yaml.SequenceNode {
		return nil, &valueError{what: fmt.Sprintf("must be a list, not %s", kindName(n)),
			hint: "write each entry on its own line after a dash"}
	}
	if len(n.Content) > maxEntries {
		return nil, tooMany(n)
	}
	texts, ints := []string{}, []int64{}
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return nil, &valueError{what: "has an entry that is " + kindName(c)}
		}
		if row.Type == TextList {
			texts = append(texts, c.Value)
			continue
		}
		v, err := l.number(c, ArgSpec{Type: Int, Min: row.Min, Max: row.Max})
		if err != nil {
			return nil, err
		}
		ints = append(ints, v.(int64))
	}
	if row.Type == TextList {
		return texts, nil
	}
	return ints, nil
}

func (l *loader) selector(n *yaml.Node) (any, *valueError) {
	at := l.nodePos(n)
	if v, odd := scalar(n); odd == sexagesimal {
		l.say(string(odd), at, fmt.Sprintf("node selector %s is the number %s in YAML 1.1; here it is read as written",
			n.Value, jinja.Text(v)), fmt.Sprintf("write %q", n.Value))
	} else if plain(n) && strings.Contains(n.Value, ":") {
		l.say("selector-unquoted", at, fmt.Sprintf("node selector %s has a colon and no quotes; YAML may read such "+
			"text as a number", n.Value),
			fmt.Sprintf("write %q", n.Value))
	}
	s, err := ParseSelector(n.Value)
	if err != nil {
		return nil, &valueError{what: "is not a node selector: " + strings.TrimPrefix(err.Error(), "selector "),
			hint: `write an index, a list "0,1", a slice ":n/2" or all`}
	}
	if digitBesideN.MatchString(n.Value) {
		l.say("selector-digits", at, fmt.Sprintf("node selector %q has a digit beside n, which becomes one number",
			n.Value), "write 2*n if a product is meant")
	}
	return s, nil
}

func (l *loader) text(n *yaml.Node, row ArgSpec) (any, *valueError) {
	v, _ := scalar(n)
	if _, ok := v.(string); !ok {
		l.say("not-text", l.nodePos(n), fmt.Sprintf("%s should be a text, not %s", row.Name, jinja.Describe(v)),
			fmt.Sprintf("write %q", n.Value))
	}
	text := n.Value
	if row.Type == Secret {
		l.redact = append(l.redact, n)
		return Password(text), nil
	}
	if len(row.Enum) > 0 {
		i := slices.IndexFunc(row.Enum, func(allowed string) bool {
			return strings.EqualFold(allowed, strings.TrimSpace(text))
		})
		if i < 0 {
			i = slices.Index(row.Former, strings.ToLower(strings.TrimSpace(text)))
		}
		if i < 0 {
			return nil, &valueError{what: fmt.Sprintf("is %q", text), hint: didYouMean(text, row.Enum)}
		}
		text = row.Enum[i]
	}
	return text, nil
}

func (l *loader) number(n *yaml.Node, row ArgSpec) (any, *valueError) {
	if v, _ := scalar(n); isNotFinite(v) {
		return nil, &valueError{what: fmt.Sprintf("must be %s, not %s", article(row.Type), n.Value)}
	}
	v := l.scalar(n)
	hint := ""
	if text, ok := v.(string); ok {
		parsed, isNumber := parseNumber(text)
		switch {
		case isNumber && (row.Type == IntText || row.Type == NumberText):
			v = parsed
		case isNumber:
			hint = "write it without quotes, and with a point if it has an exponent"
		}
	}
	x, ok := v.(float64)
	if i, isInt := v.(int64); isInt {
		x, ok = float64(i), true
	}
	if !ok {
		return nil, &valueError{what: fmt.Sprintf("must be %s, not %s", article(row.Type), kindName(n)), hint: hint}
	}
	if err := inBounds(x, row); err != nil {
		return nil, err
	}
	if row.Type != Int && row.Type != IntText {
		return x, nil
	}
	if i, isInt := v.(int64); isInt {
		return i, nil
	}
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return nil, &valueError{what: fmt.Sprintf("must be a whole number, not %s", jinja.Text(x))}
	}
	return int64(x), nil
}

func inBounds(x float64, row ArgSpec) *valueError {
	switch {
	case row.Min != nil && x < *row.Min:
		return &valueError{bounds: true, what: fmt.Sprintf("is %s", plainNumber(x)),
			hint: fmt.Sprintf("the least is %s", plainNumber(*row.Min))}
	case row.Max != nil && x > *row.Max:
		return &valueError{bounds: true, what: fmt.Sprintf("is %s", plainNumber(x)),
			hint: fmt.Sprintf("the most is %s", plainNumber(*row.Max))}
	case row.Above != nil && x <= *row.Above:
		return &valueError{bounds: true, what: fmt.Sprintf("is %s", plainNumber(x)),
			hint: fmt.Sprintf("it must be above %s", plainNumber(*row.Above))}
	case row.Type == Seconds && math.Abs(x) > maxSeconds:
		return &valueError{bounds: true, what: fmt.Sprintf("is %s", plainNumber(x)),
			hint: "that is more than a hundred years"}
	}
	return nil
}

// maxSeconds keeps every duration inside time.Duration.
const maxSeconds = 100 * 365.25 * 24 * 3600

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// parseNumber reads a number in quotes.
func parseNumber(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && !strings.ContainsAny(text, "xXpP_")
}

func article(t ArgType) string {
	switch t {
	case Int, IntText:
		return "a whole number"
	case Number, NumberText:
		return "a number"
	case Seconds:
		return "a number of seconds"
	case Nodes:
		return "a node selector"
	case GroupName, WorkloadRef:
		return "the name of a " + string(t)
	}
	return "a text"
}
