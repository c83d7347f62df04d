package series

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"plimsoll/hist"
)

// Batch collects points and appends them together. It is used by one goroutine.
type Batch struct {
	store *Store
	app   storage.Appender
	err   error
	late  int
	key   []byte
}

// refCache remembers the database's reference of every series written, so that a batch builds and hashes no label set twice.
type refCache struct {
	mu   sync.Mutex
	refs map[string]cachedRef
}

type cachedRef struct {
	labels labels.Labels
	ref    storage.SeriesRef
}

func newRefCache() *refCache { return &refCache{refs: map[string]cachedRef{}} }

// ErrReadOnly is returned by Commit on a Store from OpenReadOnly.
var ErrReadOnly = errors.New("metrics: the database is open for reading only")

// Batch begins a batch; it must end with Commit.
func (s *Store) Batch() *Batch {
	if s.cache == nil {
		return &Batch{store: s, err: ErrReadOnly}
	}
	return &Batch{store: s, app: s.db.Appender(context.Background())}
}

// Float adds a point to a series. The name and labels must be valid; the order of labels does not matter, but the same order
// is found faster.
func (b *Batch) Float(name string, ls []Label, t time.Time, v float64) {
	if b.err != nil {
		return
	}
	key, c := b.lookup(name, ls)
	ref, err := b.app.Append(c.ref, c.labels, t.UnixMilli(), v)
	b.done(name, key, c, ref, err)
}

// Histogram adds the state of a cumulative histogram to a series of native histograms, in seconds (h holds nanoseconds). rate and
// histogram_quantile work on it as on any counter; see Schema for its error.
func (b *Batch) Histogram(name string, ls []Label, t time.Time, h *hist.Histogram) {
	if b.err != nil || h == nil {
		return
	}
	key, c := b.lookup(name, ls)
	ref, err := b.app.AppendHistogram(c.ref, c.labels, t.UnixMilli(), native(h), nil)
	b.done(name, key, c, ref, err)
}

// lookup finds the series in the cache; the key is only made into a string when it is new there.
func (b *Batch) lookup(name string, ls []Label) (key string, c cachedRef) {
	b.key = append(b.key[:0], name...)
	for _, l := range ls {
		b.key = append(b.key, 0xff)
		b.key = append(b.key, l.Name...)
		b.key = append(b.key, 0xfe)
		b.key = append(b.key, l.Value...)
	}
	cache := b.store.cache
	cache.mu.Lock()
	c, ok := cache.refs[string(b.key)]
	cache.mu.Unlock()
	if ok {
		return "", c
	}
	lb := labels.NewScratchBuilder(len(ls) + 1)
	lb.Add(labels.MetricName, strings.Clone(name))
	for _, l := range ls {
		if l.Value != "" {
			lb.Add(l.Name, strings.ToValidUTF8(l.Value, "\uFFFD"))
		}
	}
	lb.Sort()
	return string(b.key), cachedRef{labels: lb.Labels()}
}

func (b *Batch) done(name, key string, c cachedRef, ref storage.SeriesRef, err error) {
	switch {
	case errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds),
		errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		b.late++
		return
	case err != nil:
		b.err = fmt.Errorf("metrics: append %s: %w", name, err)
		return
	}
	if key != "" || ref != c.ref {
		c.ref = ref
		if key == "" {
			key = string(b.key)
		}
		b.store.cache.mu.Lock()
		b.store.cache.refs[key] = c
		b.store.cache.mu.Unlock()
	}
}

// Commit appends everything. After an error nothing of the batch was appended.
func (b *Batch) Commit() error {
	if b.app == nil {
		return b.err
	}
	app := b.app
	b.app = nil
	if b.err != nil {
		return errors.Join(b.err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("metrics: commit: %w", err)
	}
	return nil
}

// Dropped is the number of points that were too late, or the second for their moment, and were left out.
func (b *Batch) Dropped() int { return b.late }

// Schema is the resolution of native histograms: 2^Schema buckets in every power of two, each 9.05 % wide. A quantile from
// histogram_quantile is therefore within 9.05 % of the true value, plus hist.RelativeError for values that lie closer than that to a bucket's edge. Reports
// take percentiles from the raw output's own buckets instead, never from here.
const Schema = 3
