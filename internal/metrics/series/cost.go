package series

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// mostWork is the most values that one query may look at for each of its series. It takes some seconds; a subquery
	// in steps of a millisecond asks for thousands of times as much.
	mostWork = 1_000_000_000
	// mostAsked is the same of a question of others, which must end soon after whoever asked has gone.
	mostAsked = 100_000_000
	// sorting is how many times as long functions take that sort each window.
	sorting = 10
	// workPerSlice bounds the work between two looks at the context: the engine has none while it goes through
	// the windows of one series.
	workPerSlice = 50_000_000
	// subqueryStep is the step of a subquery that names none, as Prometheus has it.
	subqueryStep = time.Minute
	// densest is how close the values of a series are.
	densest = time.Second
)

// work is how many values an expression looks at for one series when it is evaluated so many times over a span of time.
func work(node parser.Node, times float64, span time.Duration) float64 {
	sum := times
	if sub, ok := node.(*parser.SubqueryExpr); ok {
		// Evaluated once over all windows, each of which is then gone through.
		step := stepOf(sub)
		return times*ratio(sub.Range, step) + work(sub.Expr, 1+ratio(span+sub.Range, step), span+sub.Range)
	}
	if m, ok := node.(*parser.MatrixSelector); ok {
		return times * (1 + ratio(m.Range, densest))
	}
	for child := range parser.ChildrenIter(node) {
		sum += work(child, times, span)
	}
	if call, ok := node.(*parser.Call); ok && (call.Func.Name == "quantile_over_time" ||
		call.Func.Name == "mad_over_time") {
		return sorting * sum
	}
	return sum
}

func stepOf(s *parser.SubqueryExpr) time.Duration {
	if s.Step > 0 {
		return s.Step
	}
	return subqueryStep
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// affordable refuses a query that would look at more than most values for every series, and says into how many slices
// it is to be cut so that it can be stopped between them.
func affordable(expr parser.Expr, steps int, span time.Duration, most float64) (slices int, err error) {
	whole := work(expr, float64(steps), span)
	if whole > most {
		const say = "query: it looks at %.2g values for every series, more than %.2g: " +
			"use longer steps in subqueries, or shorter windows"
		return 0, fmt.Errorf(say, whole, most)
	}
	n := min(steps, 1+int(whole/workPerSlice))
	if parts := float64(n) * work(expr, float64(steps)/float64(n), span/time.Duration(n)); parts > 2*whole {
		return 1, nil // slices would do much of it again and again
	}
	return n, nil
}

// ErrTimeout is in the error of a query that took longer than Options.QueryTimeout.
var ErrTimeout = errors.New("ask for less, or in longer steps")

// limited bounds the time of a query, all its slices together.
func (q Queries) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	why := fmt.Errorf("query: it takes more than %v: %w", q.timeout, ErrTimeout)
	return context.WithTimeoutCause(ctx, q.timeout, why)
}
