package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// What one look at a Union takes in at most; beyond it is an error that says so.
const (
	mostMembers = 200
	mostSeries  = 50_000 // of all selectors together
)

// Member is one database of a Union.
type Member struct {
	Name     string    // the value of the label that tells it from the others
	From, To time.Time // between which its points lie, both included; zero: not known
	// Open gives the database until it is released, which closes it or does not: it is not closed by the Union.
	Open func(context.Context) (store *Store, release func(), err error)
}

// overlaps reports whether it may have points between two times in milliseconds.
func (s Member) overlaps(from, to int64) bool {
	low, high := milliseconds(s.From, s.To)
	return low <= to && from <= high
}

// Union asks many databases as if they were one. Each series has one label more, which names its database; a label of
// that name which it has already is called exported_ and the name, as Prometheus does. A database is opened only when
// a question can concern it: its name fits the conditions on the label, and its time that of the question. One that
// cannot be opened is a warning of the answer.
type Union struct{ Queries }

// NewUnion makes a union with a label. members is asked at every question.
func NewUnion(label string, members func() []Member, opts Options) *Union {
	return &Union{newQueries(&union{label, "exported_" + label, members}, opts)}
}

type union struct {
	label, exported string
	members         func() []Member
}

// Querier implements storage.Queryable.
func (u *union) Querier(from, to int64) (storage.Querier, error) {
	return &unionQuerier{union: u, from: from, to: to, opened: map[string]*opened{}}, nil
}

type unionQuerier struct {
	*union
	from, to int64
	mu       sync.Mutex
	list     []Member // asked for once, so that all selectors of a query see the same
	listed   bool
	opened   map[string]*opened
	taken    atomic.Int64 // series by all selectors
}

// opened is a database that was opened for this query, or why it was not.
type opened struct {
	storage.Querier
	release func()
	users   int // looks that may read it still
	err     error
}

// Close implements storage.Querier.
func (q *unionQuerier) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for name := range q.opened {
		errs = append(errs, q.closeOne(name))
	}
	return errors.Join(errs...)
}

func (q *unionQuerier) closeOne(name string) (err error) {
	if o := q.opened[name]; o.err == nil {
		err = o.Querier.Close()
		o.release()
	}
	delete(q.opened, name)
	return err
}

// giveBack ends a look at a member. It is closed before the query ends when no other one needs it.
func (q *unionQuerier) giveBack(name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o := q.opened[name]; o != nil {
		if o.users--; o.users == 0 {
			return q.closeOne(name)
		}
	}
	return nil
}

// split takes the conditions on the union's own labels out of all.
func (q *unionQuerier) split(all []*labels.Matcher) (own, exported, rest []*labels.Matcher) {
	for _, m := range all {
		switch m.Name {
		case q.label:
			own = append(own, m)
		case q.exported:
			exported = append(exported, m)
		default:
			rest = append(rest, m)
		}
	}
	return own, exported, rest
}

// concerned are the members that a question can concern.
func (q *unionQuerier) concerned(own []*labels.Matcher) ([]Member, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.listed {
		q.list, q.listed = q.members(), true
	}
	var out []Member
	for _, s := range q.list {
		if s.overlaps(q.from, q.to) && matchAll(own, func(string) string { return s.Name }) {
			out = append(out, s)
		}
	}
	if len(out) > mostMembers {
		return nil, fmt.Errorf("%d runs are concerned, more than %d: name some, as in {%s=\"...\"}, or a shorter time",
			len(out), mostMembers, q.label)
	}
	return out, nil
}

// each calls f with every member that is concerned, and gives it back when f keeps nothing of it. The warnings are of
// those that could not be opened.
func (q *unionQuerier) each(
	ctx context.Context, own []*labels.Matcher, keeps bool, f func(Member, storage.Querier) error,
) (warnings annotations.Annotations, err error) {
	list, err := q.concerned(own)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if ctx.Err() != nil {
			return warnings, context.Cause(ctx)
		}
		o := q.open(ctx, s)
		if o.err != nil {
			warnings.Add(fmt.Errorf("%s %q is left out: %w", q.label, s.Name, o.err))
			continue
		}
		err := f(s, o.Querier)
		if !keeps {
			err = errors.Join(err, q.giveBack(s.Name))
		}
		if err != nil {
			return warnings, fmt.Errorf("%s %q: %w", q.label, s.Name, err)
		}
	}
	return warnings, nil
}

func (q *unionQuerier) open(ctx context.Context, s Member) *opened {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o := q.opened[s.Name]; o != nil {
		o.users++
		return o
	}
	o := &opened{users: 1}
	q.opened[s.Name] = o
	store, release, err := s.Open(ctx)
	if err != nil {
		o.err = err
		return o
	}
	o.release = release
	if o.err = guarded(func() (err error) {
		o.Querier, err = store.source.Querier(q.from, q.to)
		return err
	}); o.err != nil {
		release()
	}
	return o
}

// Select implements storage.Querier.
func (q *unionQuerier) Select(
	ctx context.Context, _ bool, hints *storage.SelectHints, all ...*labels.Matcher,
) storage.SeriesSet {
	own, exported, rest := q.split(all)
	out := &list{}
	var err error
	points := hints == nil || hints.Func != "series" // else labels are enough, which are copies
	out.warnings, err = q.each(ctx, own, points, func(s Member, from storage.Querier) error {
		b := labels.NewBuilder(labels.EmptyLabels())
		one := &list{}
		for found := from.Select(ctx, false, hints, rest...); one.next(found); {
			here := found.At()
			b.Reset(here.Labels())
			if was := here.Labels().Get(q.label); was != "" {
				b.Set(q.exported, was)
			}
			b.Set(q.label, s.Name)
			if ls := b.Labels(); matchAll(exported, ls.Get) {
				entry := &storage.SeriesEntry{Lset: ls}
				if points {
					entry.SampleIteratorFn = here.Iterator
				}
				out.series = append(out.series, entry)
			}
			if q.taken.Add(1) > mostSeries {
				return fmt.Errorf("more than %d series are concerned: ask for fewer", mostSeries)
			}
		}
		out.warnings.Merge(one.warnings)
		return one.err
	})
	out.err = err
	slices.SortFunc(out.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return out
}

// LabelNames implements storage.Querier.
func (q *unionQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, all ...*labels.Matcher) (
	[]string, annotations.Annotations, error,
) {
	own, exported, rest := q.split(all)
	if len(exported) > 0 {
		return nil, nil, fmt.Errorf("a condition on %s is not possible here", q.exported)
	}
	names := map[string]bool{}
	warnings, err := q.each(ctx, own, false, func(_ Member, from storage.Querier) error {
		found, _, err := from.LabelNames(ctx, hints, rest...)
		for _, name := range found {
			if name == q.label {
				names[q.exported] = true
			}
			names[string([]byte(name))] = true
		}
		if len(found) > 0 {
			names[q.label] = true
		}
		return err
	})
	return sorted(names), warnings, err
}

// LabelValues implements storage.Querier.
func (q *unionQuerier) LabelValues(
	ctx context.Context, name string, hints *storage.LabelHints, all ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	own, exported, rest := q.split(all)
	if len(exported) > 0 {
		return nil, nil, fmt.Errorf("a condition on %s is not possible here", q.exported)
	}
	values := map[string]bool{}
	if name == q.label && len(rest) == 0 { // no database needs to be opened
		list, err := q.concerned(own)
		for _, s := range list {
			values[s.Name] = true
		}
		return sorted(values), nil, err
	}
	inside := name
	if name == q.exported {
		inside = q.label
	}
	warnings, err := q.each(ctx, own, false, func(s Member, from storage.Querier) error {
		if name == q.label {
			found, _, err := from.LabelValues(ctx, MetricName, &storage.LabelHints{Limit: 1}, rest...)
			if len(found) > 0 {
				values[s.Name] = true
			}
			return err
		}
		found, _, err := from.LabelValues(ctx, inside, hints, rest...)
		for _, v := range found {
			values[string([]byte(v))] = true
		}
		return err
	})
	return sorted(values), warnings, err
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for word := range set {
		out = append(out, word)
	}
	slices.Sort(out)
	return out
}
