// Package mutants asks the tests what they see. It makes small changes to the source of the packages that data
// and other people's machines depend on, one at a time, and tells which of them no test noticed.
//
//	go test ./internal/testkit/mutants -run TestMutants -timeout 0 -v -args -mutants
//
// No file of the tree is changed: a mutant reaches the compiler as an overlay. Its tests run behind a wall (namespaces
// of their own, everything but a scratch folder read-only), since a mutant of what deletes and kills may delete and
// kill more than it should. Which mutants are tried is drawn from a seed, and an edit elsewhere does not change the
// draw. Tests only: no shipped package imports this one.
package mutants

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"math"
	"slices"
	"strings"
)

// A Kind is one way to change source.
type Kind string

// The kinds of mutants. What is removed stays in the source behind a condition that is never true, so that
// variables and imports remain used and the mutant compiles.
const (
	CallRemoved      Kind = "call removed"
	DeferRemoved     Kind = "defer removed"
	ErrorDropped     Kind = "error dropped"
	Negated          Kind = "condition negated"
	OperandDropped   Kind = "operand dropped"
	BoundaryMoved    Kind = "boundary moved"
	StatementRemoved Kind = "statement removed"
	OperatorSwapped  Kind = "operator swapped"
	ConstantChanged  Kind = "constant changed"
)

// weights say how much more often a kind is drawn than a changed constant.
var weights = map[Kind]float64{
	CallRemoved: 4, DeferRemoved: 4, ErrorDropped: 4, Negated: 2, OperandDropped: 2, StatementRemoved: 2,
}

// durable names calls that data or other processes hang on, by a part of their name. They are drawn twice as often.
var durable = []string{"sync", "close", "remove", "rename", "truncate", "flush", "kill", "signal", "unlock", "destroy",
	"teardown"}

// ID names a mutant by what it changes, not by where that stands, so that it survives edits of other lines.
type ID struct {
	File     string // slash-separated, from the top of the repository
	Function string // "name", "(T).name" or, outside of functions, "-"
	Kind     Kind
	Original string // on one line; " #2" for the second of its like in the function
}

func (id ID) String() string {
	return fmt.Sprintf("%s %s\n%s: %s", id.File, id.Function, id.Kind, id.Original)
}

// Mutant is one change of one file: the bytes from Start to End become Text.
type Mutant struct {
	ID
	Line       int // from 1
	Start, End int
	Text       string
}

// Apply returns src changed.
func (m Mutant) Apply(src []byte) []byte {
	return slices.Concat(src[:m.Start], []byte(m.Text), src[m.End:])
}

// Diff shows the whole lines that the mutant changes, before and after.
func (m Mutant) Diff(src []byte) string {
	from := strings.LastIndexByte(string(src[:m.Start]), '\n') + 1
	to := len(src)
	if i := strings.IndexByte(string(src[m.End:]), '\n'); i >= 0 {
		to = m.End + i
	}
	var b strings.Builder
	for _, side := range []struct{ mark, text string }{
		{"-", string(src[from:to])}, {"+", string(src[from:m.Start]) + m.Text + string(src[m.End:to])},
	} {
		for line := range strings.Lines(side.text) {
			b.WriteString(side.mark + strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

// Draw puts mutants into the order in which they are tried: by chance from the seed and what each is, those
// that endanger data more often first.
func Draw(all []Mutant, seed int) []Mutant {
	rank := func(m Mutant) float64 {
		weight := max(weights[m.Kind], 1)
		text := strings.ToLower(m.Original)
		if slices.ContainsFunc(durable, func(d string) bool { return strings.Contains(text, d) }) {
			weight *= 2
		}
		h := fnv.New64a()
		fmt.Fprintf(h, "%d\n%s", seed, m.ID)
		// FNV leaves like texts with like high bits; a multiplication and a fold spread them.
		x := h.Sum64() * 0x9e3779b97f4a7c15
		x = (x ^ x>>32) * 0xd6e8feb86659fd93
		return math.Log((float64(x>>11)+0.5)/(1<<53)) / weight // the largest first: drawn by weight, not put back
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b Mutant) int { return cmp.Compare(rank(b), rank(a)) })
}

// Of lists the mutants of a file in the order of their places. The error is the parser's.
func Of(file string, src []byte) ([]Mutant, error) {
	v := visitor{file: file, src: src, files: token.NewFileSet(), negated: map[*ast.BinaryExpr]bool{}}
	syntax, err := parser.ParseFile(v.files, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			v.function = fn.Name.Name // methods as "(*T).name"
			if fn.Recv != nil {
				v.function = "(" + v.text(fn.Recv.List[0].Type) + ")." + v.function
			}
			v.body(fn.Type, fn.Body)
		} else {
			v.function = "-"
			ast.Inspect(d, v.visit)
		}
	}
	slices.SortStableFunc(v.found, func(a, b Mutant) int { return cmp.Compare(a.Start, b.Start) })
	seen := map[ID]int{}
	for i, m := range v.found {
		if seen[m.ID]++; seen[m.ID] > 1 {
			v.found[i].Original += fmt.Sprintf(" #%d", seen[m.ID])
		}
	}
	return v.found, nil
}

type visitor struct {
	file     string
	src      []byte
	files    *token.FileSet
	function string
	returns  bool                     // whether the function around ends its results with an error
	negated  map[*ast.BinaryExpr]bool // whose operator would be the same mutant again
	found    []Mutant
}

func (v *visitor) between(from, to token.Pos) string {
	return string(v.src[v.files.Position(from).Offset:v.files.Position(to).Offset])
}

func (v *visitor) text(n ast.Node) string { return v.between(n.Pos(), n.End()) }

// add notes that a node becomes text. named is what the mutant is known by.
func (v *visitor) add(kind Kind, n ast.Node, named, text string) {
	from, to := v.files.Position(n.Pos()), v.files.Position(n.End())
	id := ID{File: v.file, Function: v.function, Kind: kind, Original: strings.Join(strings.Fields(named), " ")}
	v.found = append(v.found, Mutant{ID: id, Line: from.Line, Start: from.Offset, End: to.Offset, Text: text})
}

func (v *visitor) replace(kind Kind, n ast.Node, text string) { v.add(kind, n, v.text(n), text) }

func (v *visitor) remove(kind Kind, n ast.Node, named string) {
	v.add(kind, n, named, "if false { "+v.text(n)+" }")
}

func (v *visitor) negate(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok {
		v.negated[b] = true
	}
	if checksError(cond) {
		v.replace(ErrorDropped, cond, "false && "+v.text(cond))
		return
	}
	v.replace(Negated, cond, "!("+v.text(cond)+")")
}

func checksError(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	x, left := b.X.(*ast.Ident)
	y, right := b.Y.(*ast.Ident)
	return left && right && strings.HasSuffix(strings.ToLower(x.Name), "err") && y.Name == "nil"
}

// body visits a function, whose results decide what its returns may drop.
func (v *visitor) body(of *ast.FuncType, body *ast.BlockStmt) {
	around := v.returns
	v.returns = false
	if of.Results != nil {
		last, ok := of.Results.List[len(of.Results.List)-1].Type.(*ast.Ident)
		v.returns = ok && last.Name == "error"
	}
	ast.Inspect(body, v.visit)
	v.returns = around
}

// visit notes what can be done to a node. What comes out of it may not compile, which is for the compiler to say.
func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		v.body(n.Type, n.Body)
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR || n.Tok == token.CONST
	case *ast.ExprStmt:
		v.remove(CallRemoved, n, v.text(n))
	case *ast.DeferStmt:
		v.remove(DeferRemoved, n, v.text(n))
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			v.remove(StatementRemoved, n, v.text(n))
		}
	case *ast.IncDecStmt, *ast.BranchStmt, *ast.SendStmt:
		v.remove(StatementRemoved, n, v.text(n))
	case *ast.IfStmt:
		if checksError(n.Cond) && n.Init != nil {
			v.remove(CallRemoved, n, v.between(n.Pos(), n.Body.Pos()))
		}
		v.negate(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, cond := range clause.(*ast.CaseClause).List {
					v.negate(cond)
				}
			}
		}
	case *ast.ReturnStmt:
		if v.returns && len(n.Results) > 0 {
			last := n.Results[len(n.Results)-1]
			if x, ok := last.(*ast.Ident); !ok || x.Name != "nil" {
				v.replace(ErrorDropped, last, "nil")
			}
		}
	case *ast.BinaryExpr:
		v.binary(n)
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			text := "(" + n.Value + " + 1)"
			if strings.HasPrefix(n.Value, "0o") { // who may read and write
				text = "0o777"
			}
			v.replace(ConstantChanged, n, text)
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			v.replace(ConstantChanged, n, "false")
		case "false":
			v.replace(ConstantChanged, n, "true")
		}
	}
	return true
}

var (
	swapped = map[token.Token]token.Token{
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
		token.EQL: token.NEQ, token.NEQ: token.EQL,
	}
	moved = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	}
	// neutral makes an operand count for nothing and leaves it in the source.
	neutral = map[token.Token]string{token.LAND: "true || ", token.LOR: "false && "}
)

func (v *visitor) binary(n *ast.BinaryExpr) {
	with := func(op token.Token) string { return v.text(n.X) + " " + op.String() + " " + v.text(n.Y) }
	switch {
	case neutral[n.Op] != "":
		for _, operand := range []ast.Expr{n.X, n.Y} {
			v.add(OperandDropped, operand, v.text(operand)+" of "+v.text(n), "("+neutral[n.Op]+v.text(operand)+")")
		}
	case moved[n.Op] != 0:
		v.replace(BoundaryMoved, n, with(moved[n.Op]))
	case swapped[n.Op] != 0 && !v.negated[n] && !isText(n.X) && !isText(n.Y):
		v.replace(OperatorSwapped, n, with(swapped[n.Op]))
	}
}

// isText says that there is nothing to calculate.
func isText(x ast.Expr) bool {
	literal, ok := x.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}
