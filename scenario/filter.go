package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nikolalohinski/gonja/v2/nodes"
)

func (r *renderer) filtered(e *nodes.FilteredExpression) (any, error) {
	v, err := r.eval(e.Expression)
	for _, f := range e.Filters {
		if err != nil {
			return nil, err
		}
		v, err = r.filter(f, v)
	}
	return v, err
}

func (r *renderer) filter(f *nodes.FilterCall, v any) (any, error) {
	pos := f.Token.Pos
	if f.Name != "int" && f.Name != "round" {
		return nil, unsupported(pos, "the filter |"+f.Name, "known are |int and |round")
	}
	var given []any
	for _, a := range f.Args {
		value, err := r.eval(a)
		if err != nil {
			return nil, err
		}
		given = append(given, value)
	}
	if len(f.Kwargs) > 0 || len(given) > 2 || f.Name == "int" && len(given) > 0 {
		return nil, unsupported(pos, "these arguments of |"+f.Name, "known are |int, |round(digits), |round(digits, \"floor\")")
	}
	if f.Name == "int" {
		return toInt(pos, v)
	}
	digits, method := int64(0), "common"
	if len(given) > 0 {
		var ok bool
		if digits, ok = asInt(given[0]); !ok || digits < -15 || digits > 15 {
			return nil, &templateError{at: pos, what: "template: |round takes a number of digits from -15 to 15"}
		}
	}
	if len(given) > 1 {
		method, _ = given[1].(string)
	}
	return roundTo(pos, v, int(digits), method)
}

func toInt(pos int, v any) (any, error) {
	switch v := v.(type) {
	case float64:
		if t := math.Trunc(v); t >= -(1<<63) && t < 1<<63 {
			return int64(t), nil
		}
	case string:
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return i, nil
		}
	default:
		if i, ok := asInt(v); ok {
			return i, nil
		}
	}
	return nil, &templateError{at: pos, what: fmt.Sprintf("template: |int cannot make a whole number of %s", describe(v))}
}

// roundTo rounds half to even, as today's Jinja does; a whole number stays one.
func roundTo(pos int, v any, digits int, method string) (any, error) {
	if i, ok := asInt(v); ok && method == "common" && digits >= 0 {
		return i, nil
	}
	x, ok := asFloat(v)
	if !ok {
		return nil, &templateError{at: pos, what: fmt.Sprintf("template: |round needs a number, not %s", describe(v))}
	}
	scale := math.Pow(10, float64(digits))
	switch {
	case method == "floor":
		x = math.Floor(x*scale) / scale
	case method == "ceil":
		x = math.Ceil(x*scale) / scale
	case method != "common":
		return nil, &templateError{at: pos, what: fmt.Sprintf("template: |round knows no method %q", method), hint: "known are common, ceil, floor"}
	case digits < 0:
		x = math.RoundToEven(x*scale) / scale
	default:
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
	}
	if _, wasInt := asInt(v); wasInt && method == "common" {
		return int64(x), nil
	}
	return x, nil
}
