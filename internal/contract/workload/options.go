package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/nearest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Option is a row of an engine's table: a key of its config.
type Option = target.Option

// Reading reads a config that is YAML by the table of its engine, for the config's type to embed: pairs of keys and
// values, each known and there once, then the settings of a workload on top of them, and all objections with their
// places.
type Reading struct {
	Spec  Spec
	Given map[string]*yaml.Node // values of the keys that are there
	bad   []scenario.Objection
}

// ofSetting is the line of a node that is of a setting, which has no place in a file.
const ofSetting = -1

// Object notes what is wrong at a node; nil is the file as a whole.
func (r *Reading) Object(n *yaml.Node, format string, args ...any) {
	o := scenario.Objection{What: fmt.Sprintf(format, args...)}
	if n != nil {
		o.Line, o.Col = n.Line, n.Column
	}
	r.Add([]scenario.Objection{o})
}

// Add notes objections at lines of nodes.
func (r *Reading) Add(objections []scenario.Objection) {
	for _, o := range objections {
		if o.Line == ofSetting {
			o = scenario.Objection{Setting: true, What: o.What}
		}
		r.bad = append(r.bad, o)
	}
}

// Judge objects to what is wrong with the whole, in the lines of an error, where nothing else is wrong.
func (r *Reading) Judge(check func() error) {
	if len(r.bad) > 0 {
		return
	}
	if err := check(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.Object(nil, "%s", line)
		}
	}
}

// Joined are objections as one error, each a line of its own; nil for none.
func Joined(objections []string) error {
	if len(objections) == 0 {
		return nil
	}
	return errors.New(strings.Join(objections, "\n"))
}

// Settle is Config.Settle of an engine whose keys do not depend on each other.
func (*Reading) Settle() {}

// Facts is Config.Facts of an engine that states none.
func (*Reading) Facts() []result.Fact { return nil }

// Err is a ConfigError of all objections; nil for none.
func (r *Reading) Err() error {
	if len(r.bad) == 0 {
		return nil
	}
	return &ConfigError{File: r.Spec.ConfigFile, Objections: r.bad}
}

// Read reads the file of the Spec, and then its settings, whose values are YAML too. An empty file has no pairs.
func (r *Reading) Read(table []Option) {
	r.Given = map[string]*yaml.Node{}
	var root yaml.Node
	if err := yaml.Unmarshal(r.Spec.Config, &root); err != nil {
		r.Object(&yaml.Node{Line: 1, Column: 1}, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	} else if len(root.Content) > 0 {
		r.Table(root.Content[0], "", table)
	}
	for _, s := range r.Spec.Settings {
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(s.Value), &value); err != nil || len(value.Content) != 1 {
			r.Object(&yaml.Node{Line: ofSetting}, "%s: %q is no value", s.Key, s.Value)
			continue
		}
		unplaced(&value)
		r.pair("", table, &yaml.Node{Kind: yaml.ScalarNode, Value: s.Key, Line: ofSetting}, value.Content[0])
	}
}

func unplaced(n *yaml.Node) {
	n.Line = ofSetting
	for _, part := range n.Content {
		unplaced(part)
	}
}

// Table reads a mapping by a table; of is what it is, for messages.
func (r *Reading) Table(n *yaml.Node, of string, table []Option) {
	example := "NAME: VALUE"
	if i := slices.IndexFunc(table, func(o Option) bool { return o.Shown().Default != "" }); i >= 0 {
		example = table[i].Name + ": " + table[i].Shown().Default
	}
	r.mapping(n, of, example, func(key, value *yaml.Node) { r.pair(of, table, key, value) })
}

// pair reads one pair.
func (r *Reading) pair(of string, table []Option, key, value *yaml.Node) {
	i := slices.IndexFunc(table, func(o Option) bool { return o.Name == key.Value })
	if i < 0 {
		var known []string
		for _, o := range table {
			known = append(known, o.Name)
		}
		slices.Sort(known)
		r.Unknown(key, of, known)
		return
	}
	if of == "" {
		r.Given[key.Value] = value
	}
	r.Set(value, of+key.Value, table[i])
}

// Set puts the value of a node where a row says; what it is is for messages.
func (r *Reading) Set(n *yaml.Node, what string, o Option) {
	if read, ok := o.To.(func(*yaml.Node)); ok {
		read(n)
		return
	}
	if n.Kind != yaml.ScalarNode {
		r.Object(n, "%s: want one value", what)
		return
	}
	text := n.Value
	if n.Tag == "!!null" {
		text = ""
	}
	if err := o.Set(text); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.Object(n, "%s: %s", what, line)
		}
	}
}

// Unknown objects to a key that is none of the known ones.
func (r *Reading) Unknown(key *yaml.Node, of string, known []string) {
	if near := nearest.Of(key.Value, known); near != "" {
		r.Object(key, "%sunknown key %q; did you mean %q?", of, key.Value, near)
		return
	}
	r.Object(key, "%sunknown key %q; known are %s", of, key.Value, strings.Join(known, ", "))
}

// Mapping hands on the pairs of a mapping; of is what it is, for messages.
func (r *Reading) Mapping(n *yaml.Node, of string, take func(key, value *yaml.Node)) {
	r.mapping(n, of, "NAME: VALUE", take)
}

func (r *Reading) mapping(n *yaml.Node, of, example string, take func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.Object(n, "%swant pairs such as %q", of, example)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || value.Kind == yaml.AliasNode:
			r.Object(key, "%swant a plain key and value", of)
		case seen[key.Value]:
			r.Object(key, "%s%s is there twice", of, key.Value)
		default:
			seen[key.Value] = true
			take(key, value)
		}
	}
}

// Disk is a row for the disk that a load is of, the first one by default. Without disks in the Spec any is right.
func (r *Reading) Disk(to *target.Disk) Option {
	of := r.Spec.Disks
	if len(of) > 0 && *to == (target.Disk{}) {
		*to = of[0]
	}
	return Option{Name: "disk", Help: "such as /dev/sdb; without it the first data disk", To: func(n *yaml.Node) {
		i := slices.IndexFunc(of, func(d target.Disk) bool { return d.Device == n.Value })
		if i >= 0 {
			*to = of[i]
		} else if len(of) > 0 || n.Kind != yaml.ScalarNode {
			r.Object(n, "disk: the VM has no %q", n.Value)
		}
	}}
}
