package series

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// moreSlices is into how many slices a query is cut that is over too many samples.
const moreSlices = 8

// inSlices evaluates a query over n slices of the time, and joins what they give.
func (q Queries) inSlices(
	ctx context.Context,
	query string,
	start, end time.Time,
	step time.Duration,
	n int,
) ([]Series, error) {
	steps := int(end.Sub(start)/step) + 1
	if n = min(n, steps); n <= 1 || !sliceable(query) {
		return q.whole(ctx, query, start, end, step)
	}
	parts := make([][]Series, n)
	ctx, stop := context.WithCancelCause(ctx) // the first slice that fails ends the others
	defer stop(nil)
	var g sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for w := range workers {
		g.Go(func() {
			for k := w; k < n; k += workers {
				first, last := k*steps/n, (k+1)*steps/n-1
				part, err := q.whole(ctx, query, start.Add(time.Duration(first)*step),
					start.Add(time.Duration(last)*step), step)
				if err != nil {
					stop(err)
					return
				}
				parts[k] = part
			}
		})
	}
	g.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return joined(parts), nil
}

// whole evaluates a query at once, or in slices when that is too much.
func (q Queries) whole(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error) {
	asked, err := q.engine().NewRangeQuery(ctx, q.source, nil, query, start, end, step)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	out, err := run(ctx, asked)
	var tooMany promql.ErrTooManySamples
	if errors.As(err, &tooMany) && end.Sub(start) >= step && sliceable(query) {
		return q.inSlices(ctx, query, start, end, step, moreSlices)
	}
	return out, err
}

// sliceable reports whether a query gives the same in slices of the time: those that ask for its beginning or end do
// not.
func sliceable(query string) bool {
	return !strings.Contains(query, "start()") && !strings.Contains(query, "end()")
}

// joined puts the points of the same series, which come in the order of time, behind each other.
func joined(parts [][]Series) (out []Series) {
	for _, part := range parts {
		for _, one := range part {
			at, known := slices.BinarySearchFunc(out, one, byLabels)
			if known {
				out[at].Points = append(out[at].Points, one.Points...)
			} else {
				out = slices.Insert(out, at, one)
			}
		}
	}
	return out
}
