package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/scenario/jinja"
)

// Selector is a node selector as written, e.g. ":n/2". Resolve gives the node indices on a cluster of n nodes.
//
// The language: comma-separated pieces, each an index (negative counts from the end) or a Python slice, over integer
// expressions with + - * / // ** and parentheses; n is the number of nodes, all is every node, and / floors.
type Selector struct {
	Text string
}

// ErrOutOfBounds is in the chain of Resolve's error when a single index is not a node of the cluster.
var ErrOutOfBounds = errors.New("out of bounds")

// longestSelector bounds the work and the recursion of the expression reader.
const longestSelector = 1000

// ParseSelector checks the syntax of a selector without knowing the cluster. What depends on the number of nodes
// (bounds, division by zero) is reported by Resolve.
func ParseSelector(text string) (Selector, error) {
	s := Selector{Text: text}
	_, err := s.resolve(1, true)
	return s, err
}

// String returns the selector as written.
func (s Selector) String() string { return s.Text }

// MarshalText writes the selector as written.
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.Text), nil }

// UnmarshalText reads what MarshalText wrote, without checking it.
func (s *Selector) UnmarshalText(text []byte) error {
	s.Text = string(text)
	return nil
}

// Resolve returns the selected nodes of a cluster of the given size: indices from 0, in the order selected, none
// twice. A slice clips and may select nothing, which is not an error here; an index outside the cluster is one, with
// ErrOutOfBounds in its chain.
func (s Selector) Resolve(nodes int) ([]int, error) {
	if nodes < 1 {
		return nil, fmt.Errorf("selector %q: a cluster of %d nodes has nothing to select", s.Text, nodes)
	}
	return s.resolve(nodes, false)
}

func (s Selector) resolve(nodes int, syntaxOnly bool) ([]int, error) {
	if len(s.Text) > longestSelector {
		return nil, fmt.Errorf("selector %q…: longer than %d characters", s.Text[:20], longestSelector)
	}
	// The language is defined by textual replacement: "2n" on 4 nodes is 24. Load warns of it.
	text := strings.ReplaceAll(s.Text, "all", ":")
	text = strings.ReplaceAll(text, "n", strconv.Itoa(nodes))
	selected, seen := []int{}, map[int]bool{}
	for piece := range strings.SplitSeq(text, ",") {
		indices, err := resolvePiece(piece, nodes, syntaxOnly)
		if err != nil {
			return nil, fmt.Errorf("selector %q: %w", s.Text, err)
		}
		for _, i := range indices {
			if !seen[i] {
				seen[i] = true
				selected = append(selected, i)
			}
		}
	}
	return selected, nil
}

func resolvePiece(piece string, nodes int, syntaxOnly bool) ([]int, error) {
	if strings.TrimSpace(piece) == "" {
		return nil, errors.New("syntax error: an empty piece; write all for every node")
	}
	if i := strings.IndexFunc(piece, func(r rune) bool {
		return !strings.ContainsRune(" 0123456789:()+-*/", r)
	}); i >= 0 {
		return nil, fmt.Errorf("syntax error: %q is not part of a selector; known are numbers, n, all, : , ( ) + - * /",
			[]rune(piece[i:])[0])
	}
	parts := strings.Split(piece, ":")
	if len(parts) > 3 {
		return nil, fmt.Errorf("syntax error: %q has %d colons; a slice is start:stop or start:stop:step", piece,
			len(parts)-1)
	}
	var values [3]*int
	for i, part := range parts {
		if part == "" {
			continue
		}
		if strings.TrimSpace(part) == "" {
			return nil, fmt.Errorf("syntax error: %q has only blanks beside a colon; remove them", piece)
		}
		v, err := evalInteger(part, syntaxOnly)
		if err != nil {
			return nil, err
		}
		values[i] = &v
	}
	switch {
	case syntaxOnly:
		return nil, nil
	case len(parts) > 1:
		return jinja.Indices(values, nodes)
	}
	i := *values[0]
	if i < -nodes || i >= nodes {
		return nil, fmt.Errorf("node %d is %w on %d nodes (0 to %d)", i, ErrOutOfBounds, nodes, nodes-1)
	}
	return []int{(i + nodes) % nodes}, nil
}

// evalInteger evaluates an integer expression by recursive descent. With syntaxOnly, values are not computed.
func evalInteger(text string, syntaxOnly bool) (int, error) {
	e := integerExpr{text: text, syntaxOnly: syntaxOnly}
	v, err := e.sum()
	if err != nil {
		return 0, err
	}
	if e.skip(); e.at < len(text) {
		return 0, fmt.Errorf("syntax error: unexpected %q in %q", text[e.at:], text)
	}
	if v != int64(int(v)) {
		return 0, fmt.Errorf("the value of %q is too large", text)
	}
	return int(v), nil
}

type integerExpr struct {
	text       string
	at         int
	syntaxOnly bool
}

func (e *integerExpr) skip() {
	for e.at < len(e.text) && e.text[e.at] == ' ' {
		e.at++
	}
}

// accept consumes the first of the given operators found here; longer ones come first in the list.
func (e *integerExpr) accept(operators ...string) string {
	e.skip()
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(e.text[e.at:], op) })
	if i < 0 {
		return ""
	}
	e.at += len(operators[i])
	return operators[i]
}

func (e *integerExpr) sum() (int64, error) {
	left, err := e.product()
	for err == nil {
		op := e.accept("+", "-")
		if op == "" {
			return left, nil
		}
		var right int64
		if right, err = e.product(); err == nil {
			left, err = e.apply(op, left, right)
		}
	}
	return 0, err
}

func (e *integerExpr) product() (int64, error) {
	left, err := e.unary()
	for err == nil {
		op := e.accept("//", "/", "*")
		if op == "" {
			return left, nil
		}
		var right int64
		if right, err = e.unary(); err == nil {
			left, err = e.apply(op, left, right)
		}
	}
	return 0, err
}

func (e *integerExpr) unary() (int64, error) {
	op := e.accept("+", "-")
	if op == "" {
		return e.power()
	}
	v, err := e.unary()
	if err != nil {
		return 0, err
	}
	if op == "-" {
		return e.apply("-", 0, v)
	}
	return v, nil
}

// power binds tighter than the sign on its left and groups to the right, as in Python.
func (e *integerExpr) power() (int64, error) {
	base, err := e.atom()
	if err != nil || e.accept("**") == "" {
		return base, err
	}
	exponent, err := e.unary()
	if err != nil {
		return 0, err
	}
	return e.apply("**", base, exponent)
}

func (e *integerExpr) atom() (int64, error) {
	if e.accept("(") != "" {
		v, err := e.sum()
		if err != nil {
			return 0, err
		}
		if e.accept(")") == "" {
			return 0, fmt.Errorf("syntax error: %q lacks a closing parenthesis", e.text)
		}
		return v, nil
	}
	start := e.at
	for e.at < len(e.text) && e.text[e.at] >= '0' && e.text[e.at] <= '9' {
		e.at++
	}
	digits := e.text[start:e.at]
	switch {
	case digits == "":
		return 0, fmt.Errorf("syntax error: %q lacks a number at character %d", e.text, start+1)
	case digits[0] == '0' && strings.Trim(digits, "0") != "":
		return 0, fmt.Errorf("syntax error: %q has a leading zero; write %q", digits, strings.TrimLeft(digits, "0"))
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the number %s is too large", digits)
	}
	return v, nil
}

func (e *integerExpr) apply(op string, a, b int64) (int64, error) {
	if e.syntaxOnly {
		return 1, nil
	}
	switch {
	case op == "/":
		op = "//"
		fallthrough
	case op == "//":
		if b == 0 {
			return 0, fmt.Errorf("%q divides by zero", e.text)
		}
	case op == "**" && b < 0:
		return 0, fmt.Errorf("%q has a negative power, which is not a whole number", e.text)
	}
	v, ok := jinja.Integer(op, a, b)
	if !ok {
		return 0, fmt.Errorf("the value of %q is too large", e.text)
	}
	return v, nil
}
