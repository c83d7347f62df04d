package series

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// Queries answers PromQL over one database or several: what a Store and a Union have in common. It is safe for
// concurrent use.
type Queries struct {
	source  storage.Queryable     // the databases, as Share and Union have them seen
	engine  func() *promql.Engine // made when it is first needed: of many databases one is asked, or their union
	timeout time.Duration
	points  int // that an Answer has at most
}

func newQueries(source storage.Queryable, opts Options) Queries {
	timeout := cmp.Or(opts.QueryTimeout, 2*time.Minute)
	return Queries{
		source:  source,
		timeout: timeout,
		points:  cmp.Or(opts.MaxAnswer, mostAnswerPoints),
		engine: sync.OnceValue(func() *promql.Engine {
			return promql.NewEngine(promql.EngineOpts{
				MaxSamples:               cmp.Or(opts.MaxSamples, 20_000_000),
				Timeout:                  timeout,
				NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
				EnableAtModifier:         true,
				EnableNegativeOffset:     true,
				Parser:                   parser.NewParser(parser.Options{}),
			})
		}),
	}
}

// CheckQuery says what is wrong with a PromQL expression. It does not evaluate it.
func CheckQuery(query string) error {
	_, err := parse(query)
	return err
}

// Range evaluates a PromQL expression at start, start+step, ... up to end. A query over more samples than
// Options.MaxSamples is evaluated in slices of the time, which gives the same, unless it asks for start() or end().
// One that would look at far too much, or takes too long, is an error.
func (q Queries) Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error) {
	return q.RangeInSlices(ctx, query, start, end, step, 1)
}

// RangeInSlices is Range for a query that is known to be over very many samples: in so many slices from the outset, on
// all processors.
func (q Queries) RangeInSlices(
	ctx context.Context,
	query string,
	start, end time.Time,
	step time.Duration,
	slices int,
) ([]Series, error) {
	if err := checkSteps(start, end, step); err != nil {
		return nil, err
	}
	enough, err := slicesFor(query, int(end.Sub(start)/step)+1, end.Sub(start))
	if err != nil {
		return nil, err
	}
	ctx, cancel := q.limited(ctx)
	defer cancel()
	return q.inSlices(ctx, query, start, end, step, max(slices, enough))
}

// slicesFor is affordable for a query of the program's, which may be long: it can name every VM.
func slicesFor(query string, steps int, span time.Duration) (slices int, err error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return 0, fmt.Errorf("query: %w", err)
	}
	return affordable(expr, steps, span, mostWork)
}

func checkSteps(start, end time.Time, step time.Duration) error {
	switch {
	case step <= 0:
		return fmt.Errorf("query: step %v: it must be positive", step)
	case end.Before(start):
		return fmt.Errorf("query: the end %s is before the start %s", end.Format(time.RFC3339),
			start.Format(time.RFC3339))
	case end.Sub(start)/step+1 > MaxPoints:
		return fmt.Errorf("query: %v in steps of %v is more than %d points per series; use a longer step",
			end.Sub(start), step, MaxPoints)
	}
	return nil
}

// Instant evaluates a PromQL expression at one moment.
func (q Queries) Instant(ctx context.Context, query string, at time.Time) ([]Series, error) {
	if _, err := slicesFor(query, 1, 0); err != nil {
		return nil, err
	}
	ctx, cancel := q.limited(ctx)
	defer cancel()
	asked, err := q.engine().NewInstantQuery(ctx, q.source, nil, query, at)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return run(ctx, asked)
}

func run(ctx context.Context, q promql.Query) ([]Series, error) {
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if res.Err != nil {
		return nil, fmt.Errorf("query: %w", res.Err)
	}
	var out []Series
	switch v := res.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			points := make([]Point, 0, len(s.Floats))
			for _, p := range s.Floats {
				points = append(points, Point{time.UnixMilli(p.T).UTC(), p.F})
			}
			out = append(out, Series{fromLabels(s.Metric), points})
		}
	case promql.Vector:
		for _, s := range v {
			if s.H == nil {
				out = append(out, Series{fromLabels(s.Metric), []Point{{time.UnixMilli(s.T).UTC(), s.F}}})
			}
		}
	case promql.Scalar:
		out = append(out, Series{nil, []Point{{time.UnixMilli(v.T).UTC(), v.V}}})
	default:
		return nil, fmt.Errorf("query: the answer is a %s; numbers are needed", res.Value.Type())
	}
	slices.SortFunc(out, byLabels)
	return out, nil
}
