package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// renderer evaluates a parsed template. Values are string, bool, int64, float64, nil, []any and map[string]any.
type renderer struct {
	vars      map[string]any
	used      map[string]bool
	out       strings.Builder
	parts     []part
	undefined []*templateError
	budget    int // nodes that may still be evaluated
}

func (r *renderer) spend(at int) error {
	if r.budget--; r.budget < 0 {
		return &templateError{at: at, what: fmt.Sprintf("template: more than %d evaluations", maxTurns), hint: "the loops are too long"}
	}
	if r.out.Len() > maxRendered {
		return &templateError{at: at, what: fmt.Sprintf("template: the result is larger than %d MiB", maxRendered>>20), hint: "the loops are too long"}
	}
	return nil
}

func (r *renderer) emit(text string, src int, verbatim bool) {
	if text != "" {
		r.parts = append(r.parts, part{out: r.out.Len(), src: src, verbatim: verbatim})
		r.out.WriteString(text)
	}
}

func (r *renderer) block(list []nodes.Node) error {
	for _, n := range list {
		if n == nil {
			continue
		}
		at := n.Position().Pos
		if err := r.spend(at); err != nil {
			return err
		}
		var err error
		switch n := n.(type) {
		case *nodes.Data:
			r.emit(n.Data.Val, at, true)
		case *nodes.Output:
			err = r.output(n)
		case *nodes.ControlStructureBlock:
			switch b := n.ControlStructure.(type) {
			case *forBlock:
				err = r.loop(b)
			case *ifBlock:
				err = r.branch(b)
			}
		default:
			err = unsupported(at, n.String(), "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) output(n *nodes.Output) error {
	expression := n.Expression
	if n.Condition != nil {
		c, err := r.eval(n.Condition)
		if err != nil {
			return err
		}
		if !truth(c) {
			if expression = n.Alternative; expression == nil {
				return nil
			}
		}
	}
	v, err := r.eval(expression)
	if err != nil {
		return err
	}
	r.emit(pythonText(v), n.Start.Pos, false)
	return nil
}

func (r *renderer) loop(b *forBlock) error {
	start, stop, step, err := r.rangeOf(b.items)
	if err != nil {
		return err
	}
	outer, shadowed := r.vars[b.name]
	defer func() {
		delete(r.vars, b.name)
		if shadowed {
			r.vars[b.name] = outer
		}
	}()
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		if err := r.spend(b.location.Pos); err != nil {
			return err
		}
		r.vars[b.name] = i
		if err := r.block(b.body); err != nil {
			return err
		}
		next, ok := addInt(i, step)
		if !ok {
			return nil
		}
		i = next
	}
	return nil
}

// rangeOf evaluates range(stop), range(start, stop) or range(start, stop, step), the only thing a loop runs over.
func (r *renderer) rangeOf(e nodes.Expression) (start, stop, step int64, err error) {
	call, ok := e.(*nodes.Call)
	if ok {
		var name *nodes.Name
		name, ok = call.Func.(*nodes.Name)
		ok = ok && name.Name.Val == "range" && len(call.Kwargs) == 0
	}
	if !ok {
		return 0, 0, 0, unsupported(at(e), "a for over something else than range(…)", "write for i in range(n)")
	}
	v := []int64{}
	for _, arg := range call.Args {
		value, err := r.eval(arg)
		if err != nil {
			return 0, 0, 0, err
		}
		i, ok := asInt(value)
		if !ok {
			return 0, 0, 0, &templateError{at: at(arg), what: fmt.Sprintf("template: range needs whole numbers, not %s", describe(value)), hint: "use |int"}
		}
		v = append(v, i)
	}
	switch len(v) {
	case 1:
		return 0, v[0], 1, nil
	case 2:
		return v[0], v[1], 1, nil
	case 3:
		if v[2] != 0 {
			return v[0], v[1], v[2], nil
		}
		return 0, 0, 0, &templateError{at: at(e), what: "template: the step of range is 0"}
	}
	return 0, 0, 0, &templateError{at: at(e), what: fmt.Sprintf("template: range takes 1 to 3 numbers, not %d", len(v))}
}

func (r *renderer) branch(b *ifBlock) error {
	for i, condition := range b.conditions {
		v, err := r.eval(condition)
		if err != nil {
			return err
		}
		if truth(v) {
			return r.block(b.bodies[i])
		}
	}
	if len(b.bodies) > len(b.conditions) {
		return r.block(b.bodies[len(b.conditions)])
	}
	return nil
}

// at is the source offset of an expression.
func at(e nodes.Node) int {
	if e == nil || e.Position() == nil {
		return 0
	}
	return e.Position().Pos
}

func (r *renderer) eval(e nodes.Node) (any, error) {
	if e == nil {
		return nil, &templateError{what: "template: an expression is missing"}
	}
	if err := r.spend(at(e)); err != nil {
		return nil, err
	}
	switch e := e.(type) {
	case *nodes.Integer:
		if lit := e.Location.Val; len(lit) > 1 && lit[0] == '0' && lit[1] >= '0' && lit[1] <= '9' {
			return nil, &templateError{at: at(e), what: fmt.Sprintf("template: the number %s has a leading zero", lit)}
		}
		return int64(e.Val), nil
	case *nodes.Float:
		return finite(e.Val, e)
	case *nodes.String:
		return e.Val, nil
	case *nodes.Bool:
		return e.Val, nil
	case *nodes.None:
		return nil, nil
	case *nodes.Name:
		return r.name(e)
	case *nodes.UnaryExpression:
		return r.unary(e)
	case *nodes.Negation:
		v, err := r.eval(e.Term)
		return !truth(v), err
	case *nodes.BinaryExpression:
		return r.binary(e)
	case *nodes.FilteredExpression:
		return r.filtered(e)
	case *nodes.List:
		return nil, unsupported(at(e), "a list in an expression", "")
	case *nodes.Tuple:
		return nil, unsupported(at(e), "a tuple in an expression", "")
	case *nodes.Dict:
		return nil, unsupported(at(e), "a mapping in an expression", "")
	case *nodes.Call:
		return nil, unsupported(at(e), fmt.Sprintf("a call of %q here", e.Func), "only range(…) in a for")
	case *nodes.GetAttribute:
		return nil, unsupported(at(e), fmt.Sprintf("the attribute .%s", e.Attribute), "")
	case *nodes.GetItem, *nodes.GetSlice:
		return nil, unsupported(at(e), "a subscript [ ]", "")
	case *nodes.TestExpression:
		return nil, unsupported(at(e), fmt.Sprintf("the test %q", e.Test.Name), "use == != < <= > >=")
	}
	return nil, unsupported(at(e), fmt.Sprintf("%T", e), "")
}

// name looks a variable up. An undefined one is noted and stands for 1 from then on, so that one pass finds all.
func (r *renderer) name(n *nodes.Name) (any, error) {
	name := n.Name.Val
	if v, ok := r.vars[name]; ok {
		r.used[name] = true
		if f, ok := v.(float64); ok {
			return finite(f, n)
		}
		return v, nil
	}
	known := make([]string, 0, len(r.vars))
	for k := range r.vars {
		known = append(known, k)
	}
	slices.Sort(known)
	hint := didYouMean(name, known)
	switch {
	case name == "loop":
		return nil, unsupported(at(n), "the name loop", "use the loop's own variable")
	case hint == "":
		hint = "declare it under vars"
	}
	if len(r.undefined) < 100 {
		r.undefined = append(r.undefined, &templateError{at: at(n), what: fmt.Sprintf("template: undefined name %q", name), hint: hint})
	}
	return int64(1), nil
}

func (r *renderer) unary(e *nodes.UnaryExpression) (any, error) {
	v, err := r.eval(e.Term)
	if err != nil {
		return nil, err
	}
	if i, ok := asInt(v); ok {
		if !e.Negative {
			return i, nil
		}
		if n, ok := subInt(0, i); ok {
			return n, nil
		}
		return nil, tooLarge(e)
	}
	if f, ok := v.(float64); ok {
		if e.Negative {
			f = -f
		}
		return f, nil
	}
	return nil, &templateError{at: at(e), what: fmt.Sprintf("template: a sign before %s", describe(v))}
}

func (r *renderer) binary(e *nodes.BinaryExpression) (any, error) {
	op := e.Operator.Token
	left, err := r.eval(e.Left)
	if err != nil {
		return nil, err
	}
	switch op.Type {
	case tokens.And:
		if !truth(left) {
			return left, nil
		}
		return r.eval(e.Right)
	case tokens.Or:
		if truth(left) {
			return left, nil
		}
		return r.eval(e.Right)
	}
	right, err := r.eval(e.Right)
	if err != nil {
		return nil, err
	}
	switch op.Type {
	case tokens.Equals, tokens.Ne, tokens.LowerThan, tokens.LowerThanOrEqual, tokens.GreaterThan, tokens.GreaterThanOrEqual:
		if inner, ok := e.Left.(*nodes.BinaryExpression); ok && isComparison(inner.Operator.Token.Type) {
			return nil, unsupported(op.Pos, "a chain of comparisons", "join two with and")
		}
		return compareOp(op, left, right)
	case tokens.Tilde:
		return nil, unsupported(op.Pos, "the operator ~", "write the expressions one after another")
	}
	return arithmetic(e, op, left, right)
}

func isComparison(t tokens.Type) bool {
	return slices.Contains([]tokens.Type{tokens.Equals, tokens.Ne, tokens.LowerThan, tokens.LowerThanOrEqual,
		tokens.GreaterThan, tokens.GreaterThanOrEqual}, t)
}

func compareOp(op *tokens.Token, left, right any) (any, error) {
	c, comparable := compareValues(left, right)
	switch op.Type {
	case tokens.Equals:
		return comparable && c == 0, nil
	case tokens.Ne:
		return !comparable || c != 0, nil
	}
	if !comparable {
		return nil, &templateError{at: op.Pos, what: fmt.Sprintf("template: cannot compare %s with %s", describe(left), describe(right))}
	}
	switch op.Type {
	case tokens.LowerThan:
		return c < 0, nil
	case tokens.LowerThanOrEqual:
		return c <= 0, nil
	case tokens.GreaterThan:
		return c > 0, nil
	}
	return c >= 0, nil
}

// compareValues orders two numbers or two texts; other pairs are only found equal or not comparable.
func compareValues(a, b any) (order int, comparable bool) {
	if x, ok := asInt(a); ok {
		if y, ok := asInt(b); ok {
			return compareOrdered(x, y), true
		}
	}
	if x, ok := asFloat(a); ok {
		if y, ok := asFloat(b); ok {
			return compareOrdered(x, y), true
		}
		return 0, false
	}
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	return 0, a == nil && b == nil
}

func compareOrdered[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// asInt returns whole numbers, and booleans as 0 and 1.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func asFloat(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i, ok := asInt(v)
	return float64(i), ok
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	f, _ := asFloat(v)
	return f != 0
}
