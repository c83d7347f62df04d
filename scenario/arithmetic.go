package scenario

import (
	"fmt"
	"math"

	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// Checked arithmetic on int64: ok is false when the true value does not fit.

func addInt(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func subInt(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	return c, c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

// floorDivInt rounds towards minus infinity, as Python does. b is not 0.
func floorDivInt(a, b int64) (int64, bool) {
	if a == math.MinInt64 && b == -1 {
		return 0, false
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q, true
}

// powInt raises to a power that is not negative.
func powInt(a, b int64) (int64, bool) {
	result := int64(1)
	for b > 0 {
		var ok bool
		if b&1 == 1 {
			if result, ok = mulInt(result, a); !ok {
				return 0, false
			}
		}
		if b >>= 1; b > 0 {
			if a, ok = mulInt(a, a); !ok {
				return 0, false
			}
		}
	}
	return result, true
}

// arithmetic applies an operator of the template as Python does; numbers that do not fit are refused.
func arithmetic(e *nodes.BinaryExpression, op *tokens.Token, left, right any) (any, error) {
	a, aInt := asInt(left)
	b, bInt := asInt(right)
	if aInt && bInt {
		return intArithmetic(e, op, a, b)
	}
	x, xOK := asFloat(left)
	y, yOK := asFloat(right)
	if !xOK || !yOK {
		bad := left
		if xOK {
			bad = right
		}
		return nil, &templateError{at: op.Pos, what: fmt.Sprintf("template: %s needs numbers, not %s", op.Val, describe(bad))}
	}
	return floatArithmetic(e, op, x, y)
}

func intArithmetic(e *nodes.BinaryExpression, op *tokens.Token, a, b int64) (any, error) {
	var v int64
	ok := true
	switch op.Type {
	case tokens.Addition:
		v, ok = addInt(a, b)
	case tokens.Subtraction:
		v, ok = subInt(a, b)
	case tokens.Multiply:
		v, ok = mulInt(a, b)
	case tokens.FloorDivision, tokens.Modulo:
		if b == 0 {
			return nil, divisionByZero(op)
		}
		if v, ok = floorDivInt(a, b); ok && op.Type == tokens.Modulo {
			v = a - v*b
		}
	case tokens.Power:
		if b < 0 {
			return floatArithmetic(e, op, float64(a), float64(b))
		}
		v, ok = powInt(a, b)
	default:
		return floatArithmetic(e, op, float64(a), float64(b))
	}
	if !ok {
		return nil, tooLarge(e)
	}
	return v, nil
}

func floatArithmetic(e *nodes.BinaryExpression, op *tokens.Token, x, y float64) (any, error) {
	switch op.Type {
	case tokens.Addition:
		return finite(x+y, e)
	case tokens.Subtraction:
		return finite(x-y, e)
	case tokens.Multiply:
		return finite(x*y, e)
	case tokens.Division:
		if y == 0 {
			return nil, divisionByZero(op)
		}
		return finite(x/y, e)
	case tokens.FloorDivision, tokens.Modulo:
		if y == 0 {
			return nil, divisionByZero(op)
		}
		mod := math.Mod(x, y)
		quotient := (x - mod) / y
		if mod != 0 && (y < 0) != (mod < 0) {
			mod += y
			quotient--
		}
		if op.Type == tokens.Modulo {
			return finite(mod, e)
		}
		return finite(math.Round(quotient), e)
	case tokens.Power:
		if x == 0 && y < 0 {
			return nil, divisionByZero(op)
		}
		return finite(math.Pow(x, y), e)
	}
	return nil, unsupported(op.Pos, "the operator "+op.Val, "")
}

func divisionByZero(op *tokens.Token) error {
	return &templateError{at: op.Pos, what: "template: division by zero"}
}

func tooLarge(e nodes.Node) error {
	return &templateError{at: at(e), what: "template: the whole number does not fit 64 bits"}
}

func finite(v float64, e nodes.Node) (any, error) {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil, &templateError{at: at(e), what: "template: the result is not a finite number"}
	}
	return v, nil
}
