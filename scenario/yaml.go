package scenario

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/scenario/jinja"

	"go.yaml.in/yaml/v3"
)

// The language is YAML 1.1 as Python reads it; the Go library reads YAML 1.2. So the library is used for structure
// only, and plain scalars are given their type here, from their source text.

var (
	yamlNull  = regexp.MustCompile(`^(~|null|Null|NULL|)$`)
	yamlBool  = regexp.MustCompile(`^(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	yamlInt   = regexp.MustCompile(`^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*|[1-9][0-9_]*(:[0-5]?[0-9])+)$`)
	yamlFloat = regexp.MustCompile(`^[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9_]+([eE][-+][0-9]+)?|[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// surprise names a reading of YAML 1.1 that authors rarely mean.
type surprise string

const (
	noSurprise    surprise = ""
	oldBoolean    surprise = "yaml-boolean"
	octal         surprise = "yaml-octal"
	sexagesimal   surprise = "yaml-sexagesimal"
	customTag     surprise = "yaml-tag"
	numberTooLong surprise = "yaml-number"
)

// scalar gives a scalar node its value: nil, bool, int64, float64 or string.
func scalar(n *yaml.Node) (any, surprise) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, noSurprise
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return n.Value, customTag
	}
	text := n.Value
	if text != "" && !strings.ContainsRune("-+.0123456789~nNyYtTfFoO", rune(text[0])) {
		return text, noSurprise // nothing but a text begins like this
	}
	switch {
	case yamlNull.MatchString(text):
		return nil, noSurprise
	case yamlBool.MatchString(text):
		lower := strings.ToLower(text)
		if lower == "true" || lower == "false" {
			return lower == "true", noSurprise
		}
		return lower == "yes" || lower == "on", oldBoolean
	case yamlInt.MatchString(text):
		return yamlInteger(text)
	case yamlFloat.MatchString(text):
		return yamlNumber(text)
	}
	return text, noSurprise
}

func yamlInteger(text string) (any, surprise) {
	digits := strings.ReplaceAll(text, "_", "")
	sign := int64(1)
	switch digits[0] {
	case '-':
		sign, digits = -1, digits[1:]
	case '+':
		digits = digits[1:]
	}
	odd := noSurprise
	var v int64
	var err error
	switch {
	case strings.Contains(digits, ":"):
		odd = sexagesimal
		for part := range strings.SplitSeq(digits, ":") {
			n, partErr := strconv.ParseInt(part, 10, 64)
			scaled, ok := jinja.Integer("*", v, 60)
			if partErr != nil || !ok {
				return text, numberTooLong
			}
			if v, ok = addInt(scaled, n); !ok {
				return text, numberTooLong
			}
		}
	case strings.HasPrefix(digits, "0b"), strings.HasPrefix(digits, "0x"):
		v, err = strconv.ParseInt(digits, 0, 64)
	case len(digits) > 1 && digits[0] == '0':
		odd = octal
		v, err = strconv.ParseInt(digits, 8, 64)
	default:
		v, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil {
		return text, numberTooLong
	}
	return sign * v, odd
}

func yamlNumber(text string) (any, surprise) {
	digits := strings.ToLower(strings.ReplaceAll(text, "_", ""))
	switch strings.TrimLeft(digits, "+-") {
	case ".inf":
		if digits[0] == '-' {
			return math.Inf(-1), noSurprise
		}
		return math.Inf(1), noSurprise
	case ".nan":
		return math.NaN(), noSurprise
	}
	if head, tail, found := cutLast(digits, ":"); found {
		whole, _ := yamlInteger(head)
		n, ok := whole.(int64)
		f, err := strconv.ParseFloat(tail, 64)
		if !ok || err != nil {
			return text, numberTooLong
		}
		if n < 0 {
			f = -f
		}
		return float64(n)*60 + f, sexagesimal
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return text, numberTooLong
	}
	return v, noSurprise
}

func addInt(a, b int64) (sum int64, ok bool) { return jinja.Integer("+", a, b) }

func cutLast(s, sep string) (head, tail string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// plain reports whether a scalar was written without quotes.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode &&
		n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

func isNull(n *yaml.Node) bool {
	if n == nil {
		return true
	}
	if n.Kind != yaml.ScalarNode {
		return false
	}
	v, _ := scalar(n)
	return v == nil
}

// kindName names a node in a message.
func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		v, _ := scalar(n)
		return jinja.Describe(v)
	}
	return "nothing"
}

// Limits of a document. Aliases count as often as they are used, which defuses alias bombs.
const (
	maxYAMLNodes = 500_000
	maxYAMLDepth = 50
	maxYAMLKey   = 200       // bytes; names of workloads and results are keys, and stand in every series and file name
	maxYAMLText  = 256 << 10 // bytes of any other text
)

var yamlErrorLine = regexp.MustCompile(`line (\d+):`)

// yamlError is an objection of the YAML reader at a line of the text it read; line 0 is unknown.
type yamlError struct {
	line, col int
	what      string
	hint      string
}

// parseYAML reads one document. The result is its root node with aliases replaced, nil for an empty document.
func parseYAML(text string) (root *yaml.Node, objection *yamlError) {
	defer func() {
		if p := recover(); p != nil {
			root, objection = nil, &yamlError{what: fmt.Sprintf("yaml: the reader failed: %v", p)}
		}
	}()
	var doc, second yaml.Node
	reader := yaml.NewDecoder(strings.NewReader(text))
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, explainYAML(err, text)
	}
	if !errors.Is(reader.Decode(&second), io.EOF) {
		return nil, secondDocument(text, doc.Content[0])
	}
	left := maxYAMLNodes
	return expand(doc.Content[0], &left, 0)
}

func explainYAML(err error, text string) *yamlError {
	e := &yamlError{what: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlErrorLine.FindStringSubmatch(e.what); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		e.what = strings.TrimSpace(strings.Replace(e.what, m[0], "", 1))
	}
	e.what = "yaml: " + e.what
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 && (e.line == 0 || number >= e.line-1) &&
			number <= e.line+1 {
			return &yamlError{line: number, col: tab + 1, what: "yaml: a tab in the indentation",
				hint: "indent with spaces"}
		}
	}
	switch {
	case strings.Contains(e.what, "mapping values are not allowed"):
		e.hint = "quote the text if it has a colon followed by a blank, and check the indentation"
	case strings.Contains(e.what, "unexpected end of stream"):
		e.hint = "a quote or a bracket that begins here or before is not closed"
	case strings.Contains(e.what, "did not find expected"):
		e.hint = "check the indentation and the quotes here and on the lines before"
	}
	return e
}

// expand returns the node with aliases replaced by what they stand for, within a budget of nodes.
func expand(n *yaml.Node, left *int, depth int) (*yaml.Node, *yamlError) {
	if *left--; *left < 0 || depth > maxYAMLDepth {
		return nil, &yamlError{line: n.Line, col: n.Column, what: fmt.Sprintf(
			"yaml: more than %d nodes or nested deeper than %d", maxYAMLNodes, maxYAMLDepth),
			hint: "anchors that contain themselves end here too"}
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, left, depth+1)
	}
	if len(n.Value) > maxYAMLText {
		return nil, &yamlError{line: n.Line, col: n.Column, hint: "shorten it",
			what: fmt.Sprintf("yaml: a text of %d bytes; at most %d", len(n.Value), maxYAMLText)}
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && len(c.Value) > maxYAMLKey {
			return nil, &yamlError{line: c.Line, col: c.Column, hint: "shorten it", what: fmt.Sprintf(
				"yaml: a name or key of %d bytes, %q; at most %d", len(c.Value), jinja.Shorten(c.Value, 40),
				maxYAMLKey)}
		}
		e, objection := expand(c, left, depth+1)
		if objection != nil {
			return nil, objection
		}
		n.Content[i] = e
	}
	return n, merge(n, left)
}

// merge replaces the keys << of a mapping by the entries of the mappings that they name. An entry of the mapping itself
// wins over them, and in a list of mappings the earlier one does.
func merge(n *yaml.Node, left *int) *yamlError {
	var own, merged []*yaml.Node
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag != "!!merge" {
			own = append(own, key, value)
			continue
		}
		from := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			from = value.Content
		}
		var entries []*yaml.Node
		for _, m := range from {
			if m.Kind != yaml.MappingNode {
				return &yamlError{line: m.Line, col: m.Column,
					what: "yaml: the merge key << takes a mapping or a list of mappings, not " + kindName(m),
					hint: "write <<: *anchor"}
			}
			entries = united(entries, m.Content, left)
		}
		merged = united(entries, merged, left)
	}
	if merged == nil {
		return nil
	}
	n.Content = slices.Concat(united(own, merged, left)[len(own):], own)
	if *left < 0 {
		return &yamlError{line: n.Line, col: n.Column, what: fmt.Sprintf("yaml: more than %d nodes", maxYAMLNodes)}
	}
	return nil
}

// united adds to the entries of a mapping those of another whose keys it does not have.
func united(entries, others []*yaml.Node, left *int) []*yaml.Node {
	have := map[string]bool{}
	for i := 0; i < len(entries); i += 2 {
		have[entries[i].Value] = true
	}
	all := slices.Clone(entries)
	for i := 0; i+1 < len(others); i += 2 {
		if !have[others[i].Value] {
			all = append(all, others[i], others[i+1])
		}
	}
	*left -= len(all)
	return all
}

// secondDocument objects to what follows the first document of a file, whose root is given.
func secondDocument(text string, first *yaml.Node) *yamlError {
	e := &yamlError{what: "yaml: a second document begins here: a scenario is one",
		hint: "remove the line --- or what follows it"}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		if number++; number > first.Line && (line == "---" || strings.HasPrefix(line, "--- ")) {
			e.line, e.col = number, 1
			break
		}
	}
	return e
}
