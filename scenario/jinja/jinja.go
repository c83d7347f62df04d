// Package jinja renders the templates of scenario files: the expressions, loops, conditions and assignments of Jinja2,
// with the meaning that they have in the published engine, which is Jinja2 on Python 2 (true division, twelve digits,
// rounding half away from zero). What a template cannot do here (macros, inclusion, inheritance) is refused by name.
//
// Every objection and every byte of the result has its place in the source, a name that is not defined is an error, and
// time, memory and nesting are bounded, since templates come from anybody.
// docs/decisions/0008-own-templates.md says why this is not a library.
package jinja

import (
	"fmt"
	"sort"
	"strings"

	"plimsoll/internal/kit/untyped"
)

// MaxRendered is the most bytes that a rendered text has.
const MaxRendered = 8 << 20

// Limits that keep a template from running for ever or filling the memory.
const (
	maxTurns   = 2_000_000 // evaluations, and items of sequences made
	maxMade    = 64 << 20  // bytes of all texts made on the way
	maxNesting = 60        // of expressions in each other, and of values printed
	maxBlocks  = 20        // of blocks in each other
	maxTag     = 20_000    // tokens of one tag
	maxNoted   = 100       // undefined names reported
)

// Error is an objection to a template at a byte offset of its source.
type Error struct {
	At   int
	What string
	Hint string
}

func (e *Error) Error() string { return e.What }

// Output is a rendered template.
type Output struct {
	Text  string
	Used  map[string]bool // variables that were read
	parts []part
}

// part says that text from offset out on comes from offset src of the source: byte by byte when verbatim, else as the
// value of the expression there.
type part struct {
	out, src int
	verbatim bool
}

// Origin returns the source offset of an offset in the text.
func (o *Output) Origin(offset int) int {
	i := sort.Search(len(o.parts), func(i int) bool { return o.parts[i].out > offset }) - 1
	if i < 0 {
		return 0
	}
	if p := o.parts[i]; p.verbatim {
		return p.src + offset - p.out
	}
	return o.parts[i].src
}

// Verbatim is a text that is no template: every offset comes from the same one of the source.
func Verbatim(text string) *Output {
	return &Output{Text: text, Used: map[string]bool{}, parts: []part{{verbatim: true}}}
}

// Render evaluates a template, whose lines end in "\n", with exactly the given variables in scope: string, bool, int64,
// float64, nil, []any and untyped.Object. Undefined names are collected, so that all are reported; any other objection
// ends rendering. The output is nil when there is an objection.
func Render(source string, vars untyped.Object) (out *Output, objections []*Error) {
	m := &machine{turns: maxTurns, bytes: maxMade, used: map[string]bool{}, scope: &scope{vars: untyped.Object{}},
		filters: filters, predicates: predicates}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			out, objections = nil, append(m.noted, p)
		default:
			out, objections = nil, []*Error{{What: fmt.Sprintf("the template reader failed: %v", p)}}
		}
	}()
	for name, v := range vars {
		m.scope.vars[name] = fromGo(v)
	}
	m.given = m.scope
	m.scope = &scope{vars: untyped.Object{}, outer: m.given}
	m.run(parse(source))
	if len(m.noted) > 0 {
		return nil, m.noted
	}
	return &Output{Text: m.out.String(), Used: m.used, parts: m.parts}, nil
}

// fail ends parsing or rendering; Render returns the objection. The recursive descent through an expression stays
// readable this way, as in text/template.
func fail(at int, hint, format string, args ...any) {
	panic(&Error{At: at, What: fmt.Sprintf(format, args...), Hint: hint})
}

func unsupported(at int, hint, construct string) {
	fail(at, hint, "%s: not part of the scenario language", construct)
}

// machine is one rendering.
type machine struct {
	scope, given *scope // given holds the caller's variables
	used         map[string]bool
	out          strings.Builder
	parts        []part
	captured     *strings.Builder // where a block of set writes
	noted        []*Error         // undefined names
	turns, bytes int              // that are left
	comparing    int              // values within each other
	// The tables stand here since some filters apply others.
	filters, predicates map[string]*function
}

// scope holds the variables of a block.
type scope struct {
	vars  untyped.Object
	outer *scope
}

func (m *machine) spend(at, turns int) {
	if m.turns -= turns; m.turns < 0 {
		fail(at, "the loops are too long", "more than %d evaluations", maxTurns)
	}
}

// made accounts for text that an expression has made or is about to make.
func (m *machine) made(at, bytes int) {
	switch m.bytes -= bytes; {
	case bytes > MaxRendered:
		fail(at, "", "a text is larger than %d MiB", MaxRendered>>20)
	case m.bytes < 0:
		fail(at, "the texts or the loops are too long", "the texts together are larger than %d MiB", maxMade>>20)
	}
}

// emit writes text that comes from offset src.
func (m *machine) emit(text string, src int, verbatim bool) {
	if text == "" {
		return
	}
	if m.captured != nil {
		m.made(src, len(text))
		m.captured.WriteString(text)
		return
	}
	if m.out.Len()+len(text) > MaxRendered {
		fail(src, "the loops are too long", "the result is larger than %d MiB", MaxRendered>>20)
	}
	m.parts = append(m.parts, part{out: m.out.Len(), src: src, verbatim: verbatim})
	m.out.WriteString(text)
}

// nested runs something in a scope of its own.
func (m *machine) nested(body func()) {
	m.scope = &scope{vars: untyped.Object{}, outer: m.scope}
	body()
	m.scope = m.scope.outer
}

func (m *machine) run(body []statement) {
	for _, s := range body {
		s(m)
	}
}
