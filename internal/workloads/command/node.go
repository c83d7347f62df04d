package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/nearest"
)

// Limits of a config.
const (
	maxConfig = 256 << 10 // bytes
	maxText   = 4096      // bytes of one text; inline files are bounded by the config
	maxList   = 256       // elements of a list or mapping
)

// reader takes a YAML document apart and collects every objection with its place.
type reader struct {
	file       string
	objections []objection
}

type objection struct {
	line, column int
	what         string
	setting      bool // about one of the workload's settings
}

// err is all objections in the order of their places.
func (r *reader) err() error {
	slices.SortStableFunc(r.objections, func(a, b objection) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	errs := make([]error, len(r.objections))
	for i, o := range r.objections {
		place := r.file
		if o.line > 0 {
			place = fmt.Sprintf("%s:%d:%d", r.file, o.line, o.column)
		}
		errs[i] = fmt.Errorf("%s: %s", place, o.what)
	}
	return errors.Join(errs...)
}

func (r *reader) object(n *yaml.Node, format string, args ...any) {
	o := objection{what: fmt.Sprintf(format, args...)}
	if n != nil && n.Line > 0 {
		o.line, o.column = n.Line, n.Column
	}
	r.objections = append(r.objections, o)
}

var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// document parses the one document of a text, nil after an objection.
func (r *reader) document(text []byte) (root *yaml.Node) {
	defer func() {
		if p := recover(); p != nil { // the library's own way to fail on some broken documents
			r.object(nil, "it is no YAML: %v", p)
			root = nil
		}
	}()
	if len(text) > maxConfig {
		r.object(nil, "it has %d bytes; at most %d are read", len(text), maxConfig)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		r.object(nil, "it is empty; say what to run under command: and how to read it under output:")
		return nil
	} else if err != nil {
		m := yamlLine.FindStringSubmatch(err.Error())
		at := &yaml.Node{Column: 1}
		if m != nil {
			at.Line, _ = strconv.Atoi(m[1])
		}
		r.object(at, "it is no YAML: %s; check indentation and quotes", yamlLine.ReplaceAllString(err.Error(), ""))
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.object(&second, "a second document begins after ---; keep one")
	}
	if len(doc.Content) == 0 {
		r.object(nil, "it is empty; say what to run under command: and how to read it under output:")
		return nil
	}
	return doc.Content[0]
}

// member is a key that a mapping may have.
type member struct {
	key  string
	must bool
	read func(*yaml.Node)
}

// mapping reads the members of a mapping, in the order they stand in.
func (r *reader) mapping(n *yaml.Node, what string, members ...member) {
	keys := make([]string, len(members))
	for i, m := range members {
		keys[i] = m.key
	}
	seen := map[string]bool{}
	ok := r.pairs(n, what, func(key, value *yaml.Node) {
		i := slices.Index(keys, key.Value)
		if i < 0 {
			r.unknown(key, what+" has no", key.Value, keys)
			return
		}
		seen[key.Value] = true
		members[i].read(value)
	})
	for _, m := range members {
		if ok && m.must && !seen[m.key] {
			r.object(n, "%s lacks %q", what, m.key)
		}
	}
}

// pairs calls f for every key and value of a mapping that may be used.
func (r *reader) pairs(n *yaml.Node, what string, f func(key, value *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		r.object(n, "%s must be a mapping (key: value), not %s", what, kind(n))
		return false
	}
	if len(n.Content)/2 > maxList {
		r.object(n, "%s has %d keys; at most %d are read", what, len(n.Content)/2, maxList)
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.object(key, "a key of %s must be a name, not %s", what, kind(key))
		case key.Tag == "!!merge":
			r.object(key, "merging with << is not read; write the keys out")
		case seen[key.Value]:
			r.object(key, "%s has %q twice; remove one", what, key.Value)
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.object(value, "anchors and aliases are not read; write the value out")
		default:
			f(key, value)
		}
		if key.Kind == yaml.ScalarNode {
			seen[key.Value] = true
		}
	}
	return true
}

// list calls f for every element.
func (r *reader) list(n *yaml.Node, what string, most int, f func(*yaml.Node)) {
	switch {
	case n.Kind != yaml.SequenceNode:
		r.object(n, "%s must be a list, not %s", what, kind(n))
	case len(n.Content) > most:
		r.object(n, "%s has %d elements; at most %d are read", what, len(n.Content), most)
	default:
		for _, e := range n.Content {
			if e.Kind == yaml.AliasNode || e.Anchor != "" {
				r.object(e, "anchors and aliases are not read; write the value out")
				continue
			}
			f(e)
		}
	}
}

// text reads a scalar as it is written, numbers included.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.object(n, "%s must be a text, not %s", what, kind(n))
	case n.Tag == "!!null":
		r.object(n, "%s is empty; write a text, in quotes if it is %q", what, n.Value)
	case len(n.Value) > maxText:
		r.object(n, "%s has %d bytes; at most %d are read", what, len(n.Value), maxText)
	case strings.ContainsRune(n.Value, 0):
		r.object(n, "%s has a zero byte, which no program can be given", what)
	default:
		return n.Value, true
	}
	return "", false
}

// choice reads one of some words.
func (r *reader) choice(n *yaml.Node, what string, words ...string) string {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(words, text) {
		r.unknown(n, what+" cannot be", text, words)
		return ""
	}
	return text
}

func (r *reader) boolean(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.object(n, "%s must be true or false, not %s", what, kind(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// pattern reads a regular expression.
func (r *reader) pattern(n *yaml.Node, what string) *regexp.Regexp {
	text, ok := r.text(n, what)
	if !ok {
		return nil
	}
	re, err := compile(text)
	if err != nil {
		r.object(n, "%s: %v", what, err)
		return nil
	}
	return re
}

const maxPattern = 1000

func compile(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the expression has %d bytes; at most %d are read", len(text), maxPattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, fmt.Errorf("%q is no regular expression (RE2): %s", text, why)
	}
	return re, nil
}

// unknown objects to a word that is none of those there are, and names the nearest.
func (r *reader) unknown(n *yaml.Node, what, word string, there []string) {
	r.object(n, "%s %q; %s", what, word, suggestion(word, there))
}

func suggestion(word string, there []string) string {
	there = slices.DeleteFunc(slices.Clone(there), func(name string) bool { return name == "" }) // objected to
	if near := nearest.Of(word, there); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(there) == 0 {
		return "there is none"
	}
	return fmt.Sprintf("there are %q", there)
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return fmt.Sprintf("%q", n.Value)
}
