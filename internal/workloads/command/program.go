package command

import (
	"slices"
	"strings"

	"plimsoll/internal/kit/lazyregexp"

	"go.yaml.in/yaml/v3"
)

// program is a program and what it is given.
type program struct {
	command []text
	env     []variable
	files   map[string]string
}

type variable struct {
	name  string
	value text
}

var (
	envName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	fileName  = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	plainWord = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.%-]{0,62}$`)
)

func (c *config) readCommand(n *yaml.Node, what string, into *program) {
	c.list(n, what, maxArguments, func(e *yaml.Node) {
		if t, ok := c.text(e, "an argument"); ok {
			into.command = append(into.command, text{t, e})
		}
	})
	switch command := into.command; {
	case n.Kind != yaml.SequenceNode:
	case len(n.Content) == 0:
		c.object(n, "%s is empty; write [program, argument, ...]", what)
	case len(command) > 0 && (command[0].of == "" || strings.ContainsAny(command[0].of, "{}")):
		c.object(n.Content[0], "the program must be a name or a path without placeholders, not %q", command[0].of)
	}
}

func (c *config) readEnv(n *yaml.Node, what string, into *program) {
	c.pairs(n, what, func(key, value *yaml.Node) {
		if !envName.MatchString(key.Value) {
			c.object(key, "%s: %q is no name of a variable; use letters, digits and _", what, key.Value)
		}
		if t, ok := c.text(value, what+": "+key.Value); ok {
			into.env = append(into.env, variable{key.Value, text{t, value}})
		}
	})
}

func (c *config) readFiles(n *yaml.Node, what string, into *program) {
	c.pairs(n, what, func(key, value *yaml.Node) {
		switch {
		case !fileName.MatchString(key.Value):
			c.object(key, "%s: %q must be a plain name: letters, digits, _ . - and at most 64 of them", what, key.Value)
		case slices.Contains(ownFiles, key.Value):
			c.object(key, "%s: %q is a file of plimsoll's own; take another name", what, key.Value)
		case value.Kind != yaml.ScalarNode:
			c.object(value, "%s: %s must be a text, not %s", what, key.Value, kind(value))
		default:
			into.files[key.Value] = value.Value
		}
	})
}
