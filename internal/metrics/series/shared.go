package series

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Shared says that many have no series of their own but those of one source that they share, as sandboxes on one
// machine do. The series are there once, with the labels Of. A selector with conditions on labels of As that fit an
// entry of it is answered as if each such entry had series of its own: with the labels of the entry in the place of
// the source's, and without the source itself. Any other selector finds the source's, once.
type Shared struct {
	Of []Label   // what tells the source's series from all others
	As [][]Label // those who share them, each with the same names of labels
}

// Sharing makes a context in which queries tell whether they were answered by series that are shared.
func Sharing(ctx context.Context) (context.Context, func() bool) {
	used := new(atomic.Bool)
	return context.WithValue(ctx, sharing{}, used), used.Load
}

type sharing struct{}

// shared is a database in which selectors are answered as Shared says.
type shared struct {
	storage.Queryable
	of []*labels.Matcher
	as []labels.Labels
	on map[string]bool // names of the labels in as
}

// Share has queries see series that are shared. It changes nothing that is stored. Call it before the queries.
func (s *Store) Share(sh Shared) { s.source = sh.over(s.db) }

func (sh Shared) over(db storage.Queryable) storage.Queryable {
	s := &shared{Queryable: db, on: map[string]bool{}}
	for _, l := range sh.Of {
		s.of = append(s.of, labels.MustNewMatcher(labels.MatchEqual, l.Name, l.Value))
	}
	for _, as := range sh.As {
		b := labels.NewBuilder(labels.EmptyLabels())
		for _, l := range as {
			b.Set(l.Name, l.Value)
			s.on[l.Name] = true
		}
		s.as = append(s.as, b.Labels())
	}
	return s
}

// Querier implements storage.Queryable.
func (s *shared) Querier(from, to int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(from, to)
	if err != nil {
		return nil, err
	}
	return &sharedQuerier{q, s}, nil
}

type sharedQuerier struct {
	storage.Querier
	*shared
}

// Select implements storage.Querier.
func (q *sharedQuerier) Select(
	ctx context.Context,
	sorted bool,
	hints *storage.SelectHints,
	all ...*labels.Matcher,
) storage.SeriesSet {
	var asked, others []*labels.Matcher
	for _, m := range all {
		if q.on[m.Name] {
			asked = append(asked, m)
		} else {
			others = append(others, m)
		}
	}
	var as []labels.Labels
	for _, a := range q.as {
		if len(asked) > 0 && matchAll(asked, a.Get) {
			as = append(as, a)
		}
	}
	if len(as) == 0 {
		return q.Querier.Select(ctx, sorted, hints, all...)
	}
	out := &list{}
	for found := q.Querier.Select(ctx, false, hints, all...); out.next(found); {
		if ls := found.At().Labels(); !matchAll(q.of, ls.Get) {
			out.series = append(out.series, found.At())
		}
	}
	for found := q.Querier.Select(ctx, false, hints, append(others, q.of...)...); out.next(found); {
		one := found.At()
		for _, a := range as {
			b := labels.NewBuilder(one.Labels())
			a.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
			out.series = append(out.series, &storage.SeriesEntry{Lset: b.Labels(), SampleIteratorFn: one.Iterator})
		}
		if used, ok := ctx.Value(sharing{}).(*atomic.Bool); ok {
			used.Store(true)
		}
	}
	slices.SortFunc(out.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return out
}

func matchAll(ms []*labels.Matcher, value func(string) string) bool {
	return !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(value(m.Name)) })
}

// list is a set of series that were found.
type list struct {
	series   []storage.Series
	at       int
	warnings annotations.Annotations
	err      error
}

// next goes to the next series of a set; at its end it keeps what went wrong.
func (l *list) next(from storage.SeriesSet) bool {
	if l.err != nil {
		return false
	}
	if from.Next() {
		return true
	}
	l.err = from.Err()
	l.warnings.Merge(from.Warnings())
	return false
}

// Next implements storage.SeriesSet.
func (l *list) Next() bool {
	l.at++
	return l.err == nil && l.at <= len(l.series)
}

// At implements storage.SeriesSet.
func (l *list) At() storage.Series { return l.series[l.at-1] }

// Err implements storage.SeriesSet.
func (l *list) Err() error { return l.err }

// Warnings implements storage.SeriesSet.
func (l *list) Warnings() annotations.Annotations { return l.warnings }
