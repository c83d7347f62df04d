package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Selection says which series are meant.
type Selection struct {
	Match    []string  // series selectors, like up{instance="a"}; a series that fits one is meant; none: all
	From, To time.Time // those with points then; zero: any time
	Limit    int       // at most so many results; 0: as many as an Answer may hold
}

// MetricName is the label that holds a series' name.
const MetricName = model.MetricNameLabel

// matchers parses the selectors; without any there is one that fits everything.
func (s Selection) matchers() ([][]*labels.Matcher, error) {
	var sets [][]*labels.Matcher
	if len(s.Match) > mostSelectors {
		return nil, bad{fmt.Errorf("%d selectors are more than %d", len(s.Match), mostSelectors)}
	}
	if err := bounded(s.Match...); err != nil {
		return nil, bad{err}
	}
	for _, m := range s.Match {
		set, err := parser.NewParser(parser.Options{}).ParseMetricSelector(m)
		if err == nil && !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			err = errors.New("it must have a condition that an absent label does not meet")
		}
		if err != nil {
			return nil, bad{fmt.Errorf("selector %.200q: %w", m, err)}
		}
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchNotEqual, MetricName, "")}}
	}
	return sets, nil
}

// all returns the selectors, or one empty one: what questions about labels are asked with, which an index answers.
func (s Selection) all() ([][]*labels.Matcher, error) {
	if len(s.Match) == 0 {
		return [][]*labels.Matcher{nil}, nil
	}
	return s.matchers()
}

func (s Selection) limit() int {
	if s.Limit > 0 && s.Limit < mostAnswerSeries {
		return s.Limit
	}
	return mostAnswerSeries
}

// cut leaves out what is beyond the limit, and says so.
func cut[T any](s Selection, list []T, warnings []string) ([]T, []string) {
	if most := s.limit(); len(list) > most {
		return list[:most], append(warnings, fmt.Sprintf("only the first %d results are shown", most))
	}
	return list, warnings
}

// LabelNames returns the sorted names of the labels of a selection's series, and warnings.
func (q Queries) LabelNames(ctx context.Context, sel Selection) ([]string, []string, error) {
	return q.words(
		ctx,
		sel,
		func(ctx context.Context, from storage.Querier, h *storage.LabelHints, ms []*labels.Matcher) (
			[]string, annotations.Annotations, error,
		) {
			return from.LabelNames(ctx, h, ms...)
		},
	)
}

// LabelValues returns the sorted values that a label has in a selection's series, and warnings.
func (q Queries) LabelValues(ctx context.Context, name string, sel Selection) ([]string, []string, error) {
	return q.words(
		ctx,
		sel,
		func(ctx context.Context, from storage.Querier, h *storage.LabelHints, ms []*labels.Matcher) (
			[]string, annotations.Annotations, error,
		) {
			return from.LabelValues(ctx, name, h, ms...)
		},
	)
}

type ask func(context.Context, storage.Querier, *storage.LabelHints, []*labels.Matcher) (
	[]string, annotations.Annotations, error)

func (q Queries) words(ctx context.Context, sel Selection, of ask) (out, warnings []string, err error) {
	sets, err := sel.all()
	if err != nil {
		return nil, nil, err
	}
	err = q.looking(ctx, sel, func(ctx context.Context, from storage.Querier) error {
		var all annotations.Annotations
		for _, set := range sets {
			found, said, err := of(ctx, from, &storage.LabelHints{Limit: sel.limit() + 1}, set)
			if err != nil {
				return err
			}
			all.Merge(said)
			for _, word := range found {
				out = append(out, string([]byte(word))) // it ends with the querier
			}
		}
		warnings, _ = notes(all, "")
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(out)
	out, warnings = cut(sel, slices.Compact(out), warnings)
	return out, warnings, nil
}

// Labels returns the labels of every series of a selection, sorted, and warnings. Without a selector it is an error.
func (q Queries) Labels(ctx context.Context, sel Selection) (out [][]Label, warnings []string, err error) {
	if len(sel.Match) == 0 {
		return nil, nil, bad{errors.New("no selector of series is given")}
	}
	sets, err := sel.matchers()
	if err != nil {
		return nil, nil, err
	}
	err = q.looking(ctx, sel, func(ctx context.Context, from storage.Querier) error {
		low, high := milliseconds(sel.From, sel.To)
		hints := &storage.SelectHints{Start: low, End: high, Func: "series", Limit: sel.limit() + 1}
		merged := selectAny(ctx, from, hints, sets)
		for merged.Next() && len(out) <= sel.limit() {
			if err := ctx.Err(); err != nil {
				return err
			}
			out = append(out, fromLabels(merged.At().Labels()))
		}
		warnings, _ = notes(merged.Warnings(), "")
		return merged.Err()
	})
	if err != nil {
		return nil, nil, err
	}
	out, warnings = cut(sel, out, warnings)
	return out, warnings, nil
}

// selectAny are the series that fit any of the sets of matchers, each once, in the order of their labels.
func selectAny(
	ctx context.Context, from storage.Querier, hints *storage.SelectHints, sets [][]*labels.Matcher,
) storage.SeriesSet {
	var found []storage.SeriesSet
	for _, set := range sets {
		found = append(found, from.Select(ctx, true, hints, set...))
	}
	return storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)
}

// looking opens a querier over the time of a selection for as long as f runs. What f panics with, in a database that
// is damaged, is an error.
func (q Queries) looking(ctx context.Context, sel Selection, f func(context.Context, storage.Querier) error) error {
	ctx, cancel := q.limited(ctx)
	defer cancel()
	low, high := milliseconds(sel.From, sel.To)
	from, err := q.source.Querier(low, high)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	err = guarded(func() error { return f(ctx, from) })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err = errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return nil
}
