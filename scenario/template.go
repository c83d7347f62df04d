package scenario

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// Rendering. gonja's lexer and parser read the template; the tree is then evaluated here, not by gonja's executor.
// Its arithmetic is Go's (int ** int is a float and cannot be overridden, ints wrap, 1/0 is +Inf, -7//2 is -3), an
// undefined name in a sum prints as nothing, some expressions panic, and it does not say which piece of the template
// made which piece of the text. The language needs a small part of Jinja, so evaluating that part ourselves is less
// code than fencing gonja's in, every construct beyond it is refused by name, and each output byte keeps its origin.

// Limits that keep a template from running for ever or filling the memory.
const (
	maxSource     = 4 << 20 // bytes of a scenario file
	maxRendered   = 8 << 20 // bytes after templating
	maxTurns      = 2_000_000
	maxTagTokens  = 500
	maxParens     = 50
	maxBlockDepth = 20
)

// templateError is an objection to the template at a byte offset of the source.
type templateError struct {
	at   int
	what string
	hint string
}

func (e *templateError) Error() string { return e.what }

// rendered is the text after templating with the origin of each of its parts.
type rendered struct {
	text  string
	parts []part
	lines []int // offset of each line's start in text
}

// part says that text from offset out on comes from offset src of the source: byte by byte when verbatim, else as the
// value of the expression there.
type part struct {
	out, src int
	verbatim bool
}

// origin returns the source offset of an offset in the rendered text.
func (r *rendered) origin(out int) int {
	i := sort.Search(len(r.parts), func(i int) bool { return r.parts[i].out > out }) - 1
	if i < 0 {
		return 0
	}
	if p := r.parts[i]; p.verbatim {
		return p.src + out - p.out
	}
	return r.parts[i].src
}

// offset returns the offset of a line and a column (in characters), both from 1, as the YAML reader counts them.
func (r *rendered) offset(line, col int) int {
	line = min(max(line, 1), len(r.lines))
	at := r.lines[line-1]
	for range col - 1 {
		if at >= len(r.text) || r.text[at] == '\n' {
			break
		}
		_, width := utf8.DecodeRuneInString(r.text[at:])
		at += width
	}
	return at
}

// lineStarts returns the offset of each line's first byte.
func lineStarts(text string) []int {
	starts := make([]int, 1, 1+strings.Count(text, "\n"))
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineCol converts an offset to a line and a column in characters, both from 1.
func lineCol(text string, starts []int, offset int) (line, col int) {
	offset = min(offset, len(text))
	line = sort.SearchInts(starts, offset+1)
	return line, 1 + utf8.RuneCountInString(text[starts[line-1]:offset])
}

// render evaluates the template with exactly the given variables in scope. Undefined names are collected, so that all
// are reported; any other objection ends rendering. used receives the names that were read.
func render(source string, vars map[string]any, used map[string]bool) (out *rendered, objections []*templateError) {
	defer func() {
		if p := recover(); p != nil {
			out, objections = nil, []*templateError{{what: fmt.Sprintf("template: the template reader failed: %v", p)}}
		}
	}()
	tree, err := parseTemplate(source)
	if err != nil {
		return nil, []*templateError{asTemplateError(err, source)}
	}
	r := &renderer{vars: vars, used: used, budget: maxTurns}
	err = r.block(tree.Nodes)
	objections = r.undefined
	if err != nil {
		return nil, append(objections, asTemplateError(err, source))
	}
	if len(objections) > 0 {
		return nil, objections
	}
	text := r.out.String()
	return &rendered{text: text, parts: r.parts, lines: lineStarts(text)}, nil
}

func asTemplateError(err error, source string) *templateError {
	if own := (*templateError)(nil); errors.As(err, &own) {
		return own
	}
	if syntax := (*parser.SyntaxError)(nil); errors.As(err, &syntax) {
		if strings.HasPrefix(syntax.Message, "strconv.") {
			syntax.Message = "the number does not fit 64 bits"
		}
		at := 0
		if starts := lineStarts(source); syntax.Line >= 1 && syntax.Line <= len(starts) {
			at = starts[syntax.Line-1] + max(syntax.Column-1, 0)
		}
		return &templateError{at: at, what: "template: " + strings.TrimRight(syntax.Message, ".") + nearText(syntax.Raw)}
	}
	return &templateError{what: "template: " + err.Error()}
}

func nearText(raw string) string {
	if raw == "" {
		return ""
	}
	return fmt.Sprintf(" near %q", shorten(raw, 30))
}

// shorten cuts text for a message.
func shorten(s string, longest int) string {
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest]) + "…"
}

func parseTemplate(source string) (*nodes.Template, error) {
	cfg := config.New()
	stream := tokens.LexAll(source, cfg)
	all, err := checkTokens(stream)
	if err != nil {
		return nil, err
	}
	blocks := &blockParsers{}
	tree, err := parser.NewParser("scenario", tokens.NewStream(all), cfg, nil, blocks).Parse()
	if syntax := (*parser.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Line == 0 {
		return nil, &templateError{at: blocks.at, what: "template: " + syntax.Message} // at the end of a tag's arguments
	}
	return tree, err
}

// checkTokens drains the lexer and refuses what the parser would take silently or recurse too deeply on.
func checkTokens(stream *tokens.Stream) ([]*tokens.Token, error) {
	var all []*tokens.Token
	inTag, parens, looping := 0, 0, false
	for {
		t := stream.Current()
		all = append(all, t)
		switch t.Type {
		case tokens.EOF:
			return all, nil
		case tokens.Error:
			return nil, &templateError{at: t.Pos, what: fmt.Sprintf("template: cannot read %q", shorten(t.Val, 40)), hint: "a quote or a bracket is not closed, or a character is not part of the language"}
		case tokens.CommentBegin:
			return nil, unsupported(t.Pos, "comments {# #}", "use # of YAML")
		case tokens.VariableBegin, tokens.BlockBegin:
			inTag, parens = 0, 0
			if len(t.Val) > 2 {
				return nil, unsupported(t.Pos, "white-space control "+t.Val, "write "+t.Val[:2])
			}
			looping = false
			if name := stream.Peek(); t.Type == tokens.BlockBegin && name != nil && !slices.Contains(blockWords, name.Val) {
				return nil, unsupported(t.Pos, fmt.Sprintf("{%% %s %%}", name.Val), "known are for … endfor and if … elif … else … endif")
			}
		case tokens.VariableEnd, tokens.BlockEnd:
			if len(t.Val) > 2 {
				return nil, unsupported(t.Pos, "white-space control "+t.Val, "write "+t.Val[len(t.Val)-2:])
			}
		case tokens.Name:
			looping = looping || inTag == 1 && t.Val == "for"
		case tokens.In:
			if !looping {
				return nil, unsupported(t.Pos, "the test in", "use == != < <= > >=")
			}
		case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
			parens++
		}
		if inTag++; inTag > maxTagTokens || parens > maxParens {
			return nil, &templateError{at: t.Pos, what: "template: the expression is too long", hint: "split it"}
		}
		stream.Next()
	}
}

func unsupported(at int, construct, hint string) *templateError {
	return &templateError{at: at, what: fmt.Sprintf("template: %s: not part of the scenario language", construct), hint: hint}
}

// blockParsers gives gonja's parser the two block constructs of the language.
type blockParsers struct {
	depth int
	at    int // end of the last block tag
}

// Get implements parser.ControlStructureGetter.
func (b *blockParsers) Get(name string) (parser.ControlStructureParser, bool) {
	switch name {
	case "for":
		return b.nested(parseFor), true
	case "if":
		return b.nested(parseIf), true
	}
	return func(p, _ *parser.Parser) (nodes.ControlStructure, error) {
		return nil, &templateError{at: max(position(p)-1, 0), what: fmt.Sprintf("template: {%% %s %%} without its beginning", name)}
	}, true
}

var blockWords = []string{"for", "endfor", "if", "elif", "else", "endif"}

func (b *blockParsers) nested(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		b.at = max(position(p)-1, 0)
		if b.depth++; b.depth > maxBlockDepth {
			return nil, &templateError{at: position(args), what: fmt.Sprintf("template: blocks nested more than %d deep", maxBlockDepth)}
		}
		defer func() { b.depth-- }()
		return parse(p, args)
	}
}

func position(p *parser.Parser) int {
	if t := p.Current(); t != nil {
		return t.Pos
	}
	return 0
}

// forBlock is {% for name in range(...) %}.
type forBlock struct {
	location *tokens.Token
	name     string
	items    nodes.Expression
	body     []nodes.Node
}

func (f *forBlock) Position() *tokens.Token { return f.location }
func (f *forBlock) String() string          { return "for " + f.name }

func parseFor(p, args *parser.Parser) (nodes.ControlStructure, error) {
	f := &forBlock{location: args.Current()}
	name := args.Match(tokens.Name)
	if name == nil {
		return nil, args.Error("for needs a variable: for i in range(n)", args.Current())
	}
	f.name = name.Val
	if args.Match(tokens.In) == nil {
		return nil, args.Error("for needs the form: for i in range(n)", name)
	}
	var err error
	if f.items, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, unsupported(position(args), fmt.Sprintf("%q after the range of a for", args.Current().Val), "use if inside the loop")
	}
	body, rest, err := p.WrapUntil("endfor")
	if err != nil {
		return nil, err
	}
	if !rest.End() {
		return nil, rest.Error("endfor takes no arguments", rest.Current())
	}
	f.body = body.Nodes
	return f, nil
}

// ifBlock is {% if %}, with one body more than conditions when there is an else.
type ifBlock struct {
	location   *tokens.Token
	conditions []nodes.Expression
	bodies     [][]nodes.Node
}

func (i *ifBlock) Position() *tokens.Token { return i.location }
func (i *ifBlock) String() string          { return "if" }

func parseIf(p, args *parser.Parser) (nodes.ControlStructure, error) {
	b := &ifBlock{location: args.Current()}
	endTags := []string{"elif", "else", "endif"}
	for tag := "if"; ; {
		if tag == "else" {
			endTags = []string{"endif"}
		} else {
			condition, err := args.ParseExpression()
			if err != nil {
				return nil, err
			}
			b.conditions = append(b.conditions, condition)
		}
		if !args.End() {
			return nil, args.Error(fmt.Sprintf("%s is malformed", tag), args.Current())
		}
		body, rest, err := p.WrapUntil(endTags...)
		if err != nil {
			return nil, err
		}
		b.bodies = append(b.bodies, body.Nodes)
		if tag = body.EndTag; tag == "endif" {
			return b, nil
		}
		args = rest
	}
}
