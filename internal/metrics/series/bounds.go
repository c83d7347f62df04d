package series

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// What an expression may be: far more than people and dashboards write, and little enough that it is parsed at once.
const (
	longestQuery  = 64 << 10 // bytes of it
	mostTokens    = 5000     // an operator on top of another is a level of the tree, without any parenthesis
	deepest       = 100      // parentheses, braces and brackets within each other
	mostSelectors = 100      // of series, each of which is looked for in every database
	longestText   = 32 << 10 // bytes of all its strings
	mostClasses   = 32       // \p{...} in its regular expressions, each a table of hundreds of ranges
	mostStates    = 50_000   // of its regular expressions, repeats written out: .{1000} are a thousand
	// mostSwelling is the most bytes of labels that functions may make of usualLabels: label_replace within another
	// with $1$1$1 in both makes nine of one.
	mostSwelling, usualLabels = 2 << 10, 100
)

// parse reads an expression of others. It is measured before it is parsed, in one pass over its tokens: the parser and
// all that follows go down the tree by recursion, and take time with the square of its depth.
func parse(query string) (parser.Expr, error) {
	if err := bounded(query); err != nil {
		return nil, err
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	text, factor := swelling(expr)
	if by := (text + usualLabels) * factor; by > mostSwelling {
		const say = "query: its functions make labels of up to %.3g bytes for every series, more than %d: " +
			"use fewer label_replace and label_join within each other, with shorter texts"
		return nil, fmt.Errorf(say, by, mostSwelling)
	}
	selectors := 0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if _, ok := node.(*parser.VectorSelector); ok {
			selectors++
		}
		return nil
	})
	if selectors > mostSelectors {
		return nil, fmt.Errorf("query: it selects series %d times, more than %d", selectors, mostSelectors)
	}
	return expr, nil
}

// bounded refuses expressions that are together longer, deeper or heavier than anything that is meant.
func bounded(queries ...string) error {
	var m measure
	for _, query := range queries {
		if m.bytes += len(query); m.bytes > longestQuery {
			return fmt.Errorf("query: it has more than %d bytes", longestQuery)
		}
		lexer, item, before := parser.Lex(query), parser.Item{}, parser.ItemType(0)
		replaces := strings.Contains(query, "label_replace")
		for m.depth = 0; item.Typ != parser.EOF && item.Typ != parser.ERROR; before = item.Typ {
			lexer.NextItem(&item) // what is wrong with it the parser says
			m.count(item, replaces || before == parser.EQL_REGEX || before == parser.NEQ_REGEX)
			if err := m.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure is how large expressions are as far as they were looked at.
type measure struct{ bytes, tokens, depth, text, states, classes int }

func (m *measure) count(item parser.Item, pattern bool) {
	m.tokens++
	switch item.Typ {
	case parser.LEFT_PAREN, parser.LEFT_BRACE, parser.LEFT_BRACKET:
		m.depth++
	case parser.RIGHT_PAREN, parser.RIGHT_BRACE, parser.RIGHT_BRACKET:
		m.depth--
	case parser.STRING:
		m.text += len(item.Val)
		if pattern {
			classes, states := weigh(item.Val)
			m.classes, m.states = m.classes+classes, m.states+states
		}
	}
}

func (m *measure) check() error {
	switch {
	case m.tokens > mostTokens:
		return fmt.Errorf("query: it has more than %d parts: ask for less at a time", mostTokens)
	case m.depth > deepest:
		return fmt.Errorf("query: it is nested more than %d deep", deepest)
	case m.text > longestText:
		return fmt.Errorf("query: its texts have more than %d bytes", longestText)
	case m.classes > mostClasses:
		return fmt.Errorf("query: its regular expressions name more than %d classes of characters", mostClasses)
	case m.states > mostStates:
		return errors.New("query: its regular expressions are too large: use shorter ones, and fewer repeats")
	}
	return nil
}

// weigh says how many classes a regular expression in quotes names, and, where these are few, how many states it has.
func weigh(quoted string) (classes, states int) {
	pattern, err := strutil.Unquote(quoted)
	if err != nil {
		return 0, 0 // the parser says what is wrong
	}
	classes = strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`)
	if classes > mostClasses || len(pattern) > longestText {
		return classes, 0
	}
	re, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return classes, 0
	}
	return classes, statesOf(re)
}

func statesOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+statesOf(sub), mostStates+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, mostStates+1)
}

// swelling is how many bytes of the query's own text come into labels of a series, and how many times what a label
// holds may be in another one at the end.
func swelling(node parser.Node) (text, factor float64) {
	factor = 1
	for child := range parser.ChildrenIter(node) {
		t, f := swelling(child)
		text, factor = text+t, max(factor, f)
	}
	switch n := node.(type) {
	case *parser.Call:
		switch n.Func.Name {
		case "label_replace":
			factor *= float64(max(1, strings.Count(literal(n.Args[2]), "$")))
			text += float64(len(literal(n.Args[1])) + len(literal(n.Args[2])))
		case "label_join":
			from := max(1, len(n.Args)-3)
			factor *= float64(from)
			text += float64(len(literal(n.Args[1])) + from*len(literal(n.Args[2])))
		}
	case *parser.AggregateExpr:
		if n.Param != nil {
			text += float64(len(literal(n.Param)))
		}
	}
	return text, factor
}

// literal is a text that is written in a query; "" when the expression is none.
func literal(e parser.Expr) string {
	for {
		switch n := e.(type) {
		case *parser.ParenExpr:
			e = n.Expr
		case *parser.StringLiteral:
			return n.Val
		default:
			return ""
		}
	}
}
