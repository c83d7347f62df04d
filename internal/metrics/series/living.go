package series

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// AnyEnded reports whether any series of a selection ended within its time, and be it to begin again. Where none did,
// Off selects nothing at any moment of that time; of many series over hours this is far quicker than Off.
func (q Queries) AnyEnded(ctx context.Context, sel Selection) (ended bool, err error) {
	sets, err := sel.matchers()
	if err != nil {
		return false, err
	}
	err = q.looking(ctx, sel, func(ctx context.Context, from storage.Querier) error {
		low, high := milliseconds(sel.From, sel.To)
		found := selectAny(ctx, from, &storage.SelectHints{Start: low, End: high}, sets)
		var it chunkenc.Iterator
		for !ended && ctx.Err() == nil && found.Next() {
			it = found.At().Iterator(it)
			for !ended && it.Next() == chunkenc.ValFloat {
				t, v := it.At()
				ended = low <= t && t <= high && value.IsStaleNaN(v)
			}
			if it.Err() != nil {
				return it.Err()
			}
		}
		return found.Err()
	})
	return ended, err
}

// Off selects the machines that were on within a stretch of time and are not any more. on selects a series for each
// that is; such series end when the machine goes off.
func Off(on, within string) string {
	return fmt.Sprintf("(last_over_time(%s[%s]) unless %[1]s)", on, within)
}

// Living is a query whose rates leave out the machines that are off: rates go on with the last points in their range.
// It tells machines by the label instance, and on as Off does.
func Living(query, on string) (string, error) {
	expr, err := parse(query)
	if err != nil {
		return "", err
	}
	expr, err = living(expr, on)
	if err != nil {
		return "", err
	}
	return expr.String(), nil
}

// ratesOf are the functions that tell what goes on now.
var ratesOf = []string{"rate", "irate", "increase", "delta", "idelta", "deriv"}

func living(expr parser.Expr, on string) (out parser.Expr, err error) {
	into := func(sub *parser.Expr) {
		if err == nil && *sub != nil {
			*sub, err = living(*sub, on)
		}
	}
	switch e := expr.(type) {
	case *parser.ParenExpr:
		into(&e.Expr)
	case *parser.UnaryExpr:
		into(&e.Expr)
	case *parser.SubqueryExpr:
		into(&e.Expr)
	case *parser.AggregateExpr:
		into(&e.Expr)
	case *parser.BinaryExpr:
		into(&e.LHS)
		into(&e.RHS)
	case *parser.Call:
		for i := range e.Args {
			into(&e.Args[i])
		}
		if !slices.Contains(ratesOf, e.Func.Name) {
			break
		}
		within := ""
		switch a := e.Args[0].(type) {
		case *parser.MatrixSelector:
			within = model.Duration(a.Range).String()
		case *parser.SubqueryExpr:
			within = model.Duration(a.Range).String()
		default:
			return e, nil
		}
		return parser.NewParser(parser.Options{}).ParseExpr(
			fmt.Sprintf("(%s unless on (instance) %s)", e, Off(on, within)))
	}
	return expr, err
}
