package workload

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/kit/nearest"
	"plimsoll/scenario"
)

// Pairs reads configs that are YAML, for an engine's reading of one to embed: pairs of keys and values, each known and
// there once, then the settings of a workload on top of them, and all objections with their places.
type Pairs struct {
	Bad     *ConfigError
	Example string // a pair, for who wrote something else
	Setting bool   // what is read now is a setting, which has no place in a file
}

// Object notes what is wrong at a node; nil is the file as a whole.
func (p *Pairs) Object(n *yaml.Node, format string, args ...any) {
	o := scenario.Objection{What: fmt.Sprintf(format, args...), Setting: p.Setting}
	if n != nil && !p.Setting {
		o.Line, o.Col = n.Line, n.Column
	}
	p.Bad.Objections = append(p.Bad.Objections, o)
}

// Unknown objects to a key that is none of the known ones.
func (p *Pairs) Unknown(key *yaml.Node, of string, known []string) {
	if near := nearest.Of(key.Value, known); near != "" {
		p.Object(key, "%sunknown key %q; did you mean %q?", of, key.Value, near)
		return
	}
	p.Object(key, "%sunknown key %q; known are %s", of, key.Value, strings.Join(known, ", "))
}

// Read hands on the pairs of a file and then the settings, whose values are YAML too. An empty file has none.
func (p *Pairs) Read(spec Spec, take func(key, value *yaml.Node)) {
	var root yaml.Node
	if err := yaml.Unmarshal(spec.Config, &root); err != nil {
		p.Object(&yaml.Node{Line: 1, Column: 1}, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	} else if len(root.Content) > 0 {
		p.Mapping(root.Content[0], "", take)
	}
	p.Setting = true
	defer func() { p.Setting = false }()
	for _, s := range spec.Settings {
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(s.Value), &value); err != nil || len(value.Content) != 1 {
			p.Object(nil, "%s: %q is no value", s.Key, s.Value)
			continue
		}
		take(&yaml.Node{Kind: yaml.ScalarNode, Value: s.Key}, value.Content[0])
	}
}

// Mapping hands on the pairs of a mapping; of is what it is, for messages.
func (p *Pairs) Mapping(n *yaml.Node, of string, take func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.Object(n, "%swant pairs such as %q", of, p.Example)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || value.Kind == yaml.AliasNode:
			p.Object(key, "%swant a plain key and value", of)
		case seen[key.Value]:
			p.Object(key, "%s%s is there twice", of, key.Value)
		default:
			seen[key.Value] = true
			take(key, value)
		}
	}
}
