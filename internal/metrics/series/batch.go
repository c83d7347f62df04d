package series

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
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
	parts []*Batch
	// Of a Timeless store:
	span    span
	encoder chunkEncoder
	kept    []keptHistogram // in a part: appended by Commit
}

type keptHistogram struct {
	to *Handle
	t  int64
	h  *histogram.Histogram
}

// Handle is a series to append to, with its labels sorted and checked once: what a caller keeps that writes the same
// series again and again. It is used by one goroutine at a time and with one Store.
type Handle struct {
	name   string
	labels labels.Labels
	ref    storage.SeriesRef
	alone  *Row // in a Timeless store
}

// Row is series that always get their points together, at one moment. In a Timeless store that costs a fraction of
// points for each of them. It is used as a Handle is; a series is either written by itself or in one row.
type Row struct {
	handles []*Handle
	buffer  *buffer // in a Timeless store
}

// NewRow prepares a row of at least one series.
func NewRow(handles ...*Handle) *Row { return &Row{handles: handles} }

// NewHandle prepares a series. The name and labels must be valid; empty labels are left out, as Prometheus does.
func NewHandle(name string, ls []Label) *Handle {
	lb := labels.NewScratchBuilder(len(ls) + 1)
	lb.Add(MetricName, strings.Clone(name))
	for _, l := range ls {
		if l.Value != "" {
			lb.Add(l.Name, strings.ToValidUTF8(l.Value, "\uFFFD"))
		}
	}
	lb.Sort()
	return &Handle{name: name, labels: lb.Labels()}
}

// handles remembers a Handle for every series written by name.
type handles struct {
	mu    sync.Mutex
	byKey map[string]*Handle
}

// ErrReadOnly is returned by Commit on a Store from OpenReadOnly.
var ErrReadOnly = errors.New("metrics: the database is open for reading only")

// Batch begins a batch; it must end with Commit.
func (s *Store) Batch() *Batch {
	if s.known == nil {
		return &Batch{store: s, err: ErrReadOnly}
	}
	if err := s.intact(); err != nil {
		return &Batch{store: s, err: err}
	}
	return &Batch{store: s, app: s.db.Appender(context.Background())}
}

// Split returns parts of the batch, at most n, each to be used by one goroutine; Commit of the whole appends them in
// their order. Only a Timeless store can be written to by several.
func (b *Batch) Split(n int) []*Batch {
	if b.store.blocks == nil || b.err != nil {
		return []*Batch{b}
	}
	for range max(n, 1) {
		b.parts = append(b.parts, &Batch{store: b.store})
	}
	return b.parts
}

// Float adds a point to a series given by name and labels, which is looked up each time; see Append.
func (b *Batch) Float(name string, ls []Label, t time.Time, v float64) {
	if b.err == nil {
		b.Append(b.handle(name, ls), t, v)
	}
}

// Histogram is AppendHistogram to a series given by name and labels.
func (b *Batch) Histogram(name string, ls []Label, t time.Time, h *hist.Histogram) {
	if b.err == nil {
		b.AppendHistogram(b.handle(name, ls), t, h)
	}
}

// Append adds a point to a series.
func (b *Batch) Append(to *Handle, t time.Time, v float64) {
	if b.err != nil {
		return
	}
	if b.store.blocks != nil {
		if to.alone == nil {
			to.alone = NewRow(to)
		}
		b.AppendRow(to.alone, t, v)
		return
	}
	ref, err := b.app.Append(to.ref, to.labels, t.UnixMilli(), v)
	b.done(to, ref, err)
}

// AppendRow adds a point to each series of a row, in their order.
func (b *Batch) AppendRow(to *Row, t time.Time, values ...float64) {
	if b.err != nil {
		return
	}
	if len(values) != len(to.handles) {
		b.err = fmt.Errorf("metrics: append %s: %d values for %d series", to.handles[0].name, len(values),
			len(to.handles))
		return
	}
	w := b.store.blocks
	if w == nil {
		for i, v := range values {
			b.Append(to.handles[i], t, v)
		}
		return
	}
	if to.buffer == nil {
		var err error
		if to.buffer, err = w.buffer(to.handles); err != nil {
			b.err = fmt.Errorf("metrics: append: %w", err)
			return
		}
	}
	at := t.UnixMilli()
	if !to.buffer.add(at, values) {
		b.late += len(values)
		return
	}
	b.span.add(span{true, at, at})
	if to.buffer.full() {
		if err := b.encoder.flush(to.buffer); err != nil {
			b.err = fmt.Errorf("metrics: append %s: %w", to.handles[0].name, err)
		}
	}
}

// AppendHistogram adds the state of a cumulative histogram to a series of native histograms, in seconds (h holds
// nanoseconds; nil adds nothing). rate and histogram_quantile work on it as on any counter; see Schema for its error.
func (b *Batch) AppendHistogram(to *Handle, t time.Time, h *hist.Histogram) {
	if b.err != nil || h == nil {
		return
	}
	k := keptHistogram{to, t.UnixMilli(), native(h)}
	if b.app == nil {
		b.kept = append(b.kept, k)
		return
	}
	b.histogram(k)
}

func (b *Batch) histogram(k keptHistogram) {
	ref, err := b.app.AppendHistogram(k.to.ref, k.to.labels, k.t, k.h, nil)
	b.done(k.to, ref, err)
}

// handle finds the series among those written before; the key is only made into a string when it is new.
func (b *Batch) handle(name string, ls []Label) *Handle {
	b.key = append(b.key[:0], name...)
	for _, l := range ls {
		b.key = append(b.key, 0xff)
		b.key = append(b.key, l.Name...)
		b.key = append(b.key, 0xfe)
		b.key = append(b.key, l.Value...)
	}
	known := b.store.known
	known.mu.Lock()
	defer known.mu.Unlock()
	h, ok := known.byKey[string(b.key)]
	if !ok {
		h = NewHandle(name, ls)
		known.byKey[string(b.key)] = h
	}
	return h
}

func (b *Batch) done(to *Handle, ref storage.SeriesRef, err error) {
	switch {
	case errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, storage.ErrTooOldSample),
		errors.Is(err, storage.ErrOutOfBounds),
		errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		b.late++
	case err != nil:
		b.err = fmt.Errorf("metrics: append %s: %w", to.name, err)
	default:
		to.ref = ref
	}
}

// Commit appends everything. After an error nothing of the batch was appended, but for floats in a Timeless store.
func (b *Batch) Commit() error {
	if b.app == nil {
		return b.err
	}
	for _, p := range b.parts {
		b.err = errors.Join(b.err, p.err)
		b.late += p.late
		b.span.add(p.span)
		for _, k := range p.kept {
			if b.err == nil {
				b.histogram(k)
			}
		}
	}
	app := b.app
	b.app = nil
	if b.err != nil {
		return errors.Join(b.err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("metrics: commit: %w", err)
	}
	if b.store.blocks != nil {
		if err := b.store.blocks.commit(b.span); err != nil {
			return fmt.Errorf("metrics: commit: %w", err)
		}
	}
	return nil
}

// Dropped is the number of points that were too late, or the second for their moment, and were left out.
func (b *Batch) Dropped() int { return b.late }

// Schema is the resolution of native histograms: 2^Schema buckets in every power of two, each 9.05 % wide. A quantile
// from histogram_quantile is therefore within 9.05 % of the true value, plus hist.RelativeError for values that lie
// closer than that to a bucket's edge. Reports take percentiles from the raw output's own buckets instead, never from
// here.
const Schema = 3
