package pgload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/kit/pgwire"
)

// value holds a variable's or an expression's: nothing yet, null, a boolean, a whole number, a float, or a text that
// came from the server and is read as one of the others when an expression needs it.
type value struct {
	text string
	n    int64 // 0 or 1 of a boolean
	f    float64
	kind kind
}

type kind byte

const (
	unset kind = iota
	null
	boolean
	integer
	float
	words
)

func intOf(n int64) value     { return value{kind: integer, n: n} }
func floatOf(f float64) value { return value{kind: float, f: f} }

func boolOf(b bool) value {
	if b {
		return value{kind: boolean, n: 1}
	}
	return value{kind: boolean}
}

// said is a text as a variable holds it: the number that it is where a number is written so, else as it was given.
func said(text string) value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return intOf(n)
	}
	return value{kind: words, text: text}
}

// String is the value as SQL has it, with as many digits as pgbench sends.
func (v value) String() string {
	switch v.kind {
	case boolean:
		return strconv.FormatBool(v.n == 1)
	case integer:
		return strconv.FormatInt(v.n, 10)
	case float:
		switch {
		case math.IsInf(v.f, 1):
			return "Infinity"
		case math.IsInf(v.f, -1):
			return "-Infinity"
		}
		return strconv.FormatFloat(v.f, 'g', 15, 64)
	case words:
		return v.text
	}
	return "NULL"
}

// append adds it to a simple query.
func (v value) append(dst []byte) []byte {
	if v.kind == integer {
		return strconv.AppendInt(dst, v.n, 10)
	}
	return append(dst, v.String()...)
}

// arg is the value as a parameter.
func (v value) arg() pgwire.Arg {
	switch v.kind {
	case integer:
		return pgwire.Int(v.n)
	case null, unset:
		return pgwire.Null()
	}
	return pgwire.Text(v.String())
}

// plain reads a text as what it looks like; everything else stays as it is.
func (v value) plain() (value, error) {
	if v.kind != words {
		return v, nil
	}
	text := strings.TrimSpace(v.text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return intOf(n), nil
	}
	switch low := strings.ToLower(text); {
	case low == "":
	case low == "null":
		return value{kind: null}, nil
	case low == "on" || strings.HasPrefix("true", low) || strings.HasPrefix("yes", low):
		return boolOf(true), nil
	case low == "off" || strings.HasPrefix("false", low) || strings.HasPrefix("no", low):
		return boolOf(false), nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return floatOf(f), nil
	}
	return v, fmt.Errorf("%.60q is neither a number nor a boolean", v.text)
}

func (v value) float() (float64, error) {
	switch v.kind {
	case integer:
		return float64(v.n), nil
	case float:
		return v.f, nil
	}
	return 0, fmt.Errorf("%s is no number", v)
}

// int is a whole number, of a float the nearest one.
func (v value) int() (int64, error) {
	if v.kind == integer {
		return v.n, nil
	}
	f, err := v.float()
	if err != nil {
		return 0, err
	}
	if f = math.RoundToEven(f); !(f >= -1<<63 && f < 1<<63) {
		return 0, fmt.Errorf("%s is out of range of whole numbers", v)
	}
	return int64(f), nil
}

func (v value) bool() (bool, error) {
	if v.kind != boolean {
		return false, fmt.Errorf("%s is no boolean", v)
	}
	return v.n == 1, nil
}

// truth returns what \if takes it for: null is false, a number is true unless it is 0.
func (v value) truth() (bool, error) {
	v, err := v.plain()
	return v.n != 0 || v.kind == float && v.f != 0, err
}

var (
	errRange  = errors.New("the result is out of range of whole numbers")
	errDivide = errors.New("division by zero")
)

// arithmetic is an operator of two values that are not null: whole numbers make whole numbers, floats floats.
func arithmetic(op string, a, b value) (value, error) {
	switch op {
	case "%", "&", "|", "#", "<<", ">>":
		return whole(op, a, b)
	}
	if a.kind == integer && b.kind == integer {
		return whole(op, a, b)
	}
	x, err := a.float()
	y, err2 := b.float()
	if err := errors.Join(err, err2); err != nil {
		return value{}, err
	}
	switch op {
	case "+":
		return floatOf(x + y), nil
	case "-":
		return floatOf(x - y), nil
	case "*":
		return floatOf(x * y), nil
	case "/":
		return floatOf(x / y), nil
	case "=":
		return boolOf(x == y), nil
	case "<>":
		return boolOf(x != y), nil
	case "<":
		return boolOf(x < y), nil
	}
	return boolOf(x <= y), nil // >= and > come as <= and < with their sides changed
}

func whole(op string, a, b value) (value, error) {
	x, err := a.int()
	y, err2 := b.int()
	if err := errors.Join(err, err2); err != nil {
		return value{}, err
	}
	z := int64(0)
	switch op {
	case "+":
		z = x + y
		if (z > x) != (y > 0) {
			return value{}, errRange
		}
	case "-":
		z = x - y
		if (z < x) != (y > 0) {
			return value{}, errRange
		}
	case "*":
		if z = x * y; x != 0 && (z/x != y || x == -1 && y == math.MinInt64) {
			return value{}, errRange
		}
	case "/", "%":
		switch {
		case y == 0:
			return value{}, errDivide
		case op == "%" && y == -1:
		case op == "%":
			z = x % y
		case x == math.MinInt64 && y == -1:
			return value{}, errRange
		default:
			z = x / y
		}
	case "&":
		z = x & y
	case "|":
		z = x | y
	case "#":
		z = x ^ y
	case "<<", ">>":
		if z = x >> (y & 63); op == "<<" { // as processors shift, and pgbench with them
			z = x << (y & 63)
		}
	case "=":
		return boolOf(x == y), nil
	case "<>":
		return boolOf(x != y), nil
	case "<":
		return boolOf(x < y), nil
	case "<=":
		return boolOf(x <= y), nil
	}
	return intOf(z), nil
}
