package series

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
)

// Limits bound what is taken from a page that others write. What is 0 has the default.
type Limits struct {
	Lines int // of a page; default 200,000
	// Series of a page; default 20,000. Over a run a source may have ten times as many different ones, so that one that
	// makes new ones all the time ends.
	Series int
}

const churn = 10

// Page is one look at a source of metrics.
type Page struct {
	Text        []byte
	ContentType string // as HTTP has it; what is unknown is read as the Prometheus text format
	Time        time.Time
}

// Source is where pages in Prometheus' text format or OpenMetrics come from again and again. It remembers the series,
// so that a page costs little after the first, and ends those that vanish: queries do not carry them on. Values are
// entered at the time of the page; times in it are not used, nor are types, exemplars and native histograms. It is
// used by one goroutine at a time.
type Source struct {
	store  *Store
	labels []Label
	limits Limits
	known  map[string]*scraped // by the series as the page writes it
	names  map[string]bool     // of metrics it has ever served
	round  uint64
}

// scraped is a series of a source.
type scraped struct {
	handle *Handle
	round  uint64 // in which it was last there
	ended  bool
}

// Source prepares a source whose series get these labels. A label of the page that has the name of one of them is kept
// with the prefix exported_, as Prometheus does.
func (s *Store) Source(ls []Label, limits Limits) *Source {
	limits.Lines, limits.Series = cmp.Or(limits.Lines, 200_000), cmp.Or(limits.Series, 20_000)
	return &Source{
		store:  s,
		labels: slices.Clone(ls),
		limits: limits,
		known:  map[string]*scraped{},
		names:  map[string]bool{},
	}
}

// Serves reports whether any page had a metric of that name.
func (s *Source) Serves(name string) bool { return s.names[name] }

// Append appends a whole page, or nothing and an error. It returns the number of series on it.
func (s *Source) Append(p Page) (int, error) {
	if n := bytes.Count(p.Text, []byte{'\n'}); n > s.limits.Lines {
		return 0, fmt.Errorf("page: %d lines: more than %d are not read", n, s.limits.Lines)
	}
	s.round++
	b := s.store.Batch()
	n, err := s.read(b, p)
	if err != nil {
		b.err = errors.Join(b.err, err) // nothing is kept
	}
	s.endOthers(b, p.Time)
	if err := b.Commit(); err != nil {
		return 0, fmt.Errorf("page: %w", err)
	}
	s.settle()
	return n, nil
}

// End ends all series: the source does not answer any more, for now.
func (s *Source) End(t time.Time) error {
	s.round++
	b := s.store.Batch()
	s.endOthers(b, t)
	if err := b.Commit(); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	s.settle()
	return nil
}

// Ended is a value that ends a series: queries do not carry it on from there.
func Ended() float64 { return math.Float64frombits(value.StaleNaN) }

// endOthers marks the series that were not in this round.
func (s *Source) endOthers(b *Batch, t time.Time) {
	for _, k := range s.known {
		if k.round != s.round && !k.ended {
			b.Append(k.handle, t, Ended())
		}
	}
}

// settle notes what has ended, once that is written.
func (s *Source) settle() {
	for _, k := range s.known {
		if k.ended && k.round == s.round {
			s.names[k.handle.name] = true
		}
		k.ended = k.round != s.round
	}
}

func (s *Source) read(b *Batch, p Page) (n int, err error) {
	defer func() { // the parser is made for programs; what comes over a network may be anything
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read: %v", r)
		}
	}()
	// Only text is read: the third format, protobuf, is not asked for.
	kind := "text/plain"
	if strings.HasPrefix(p.ContentType, "application/openmetrics-text") {
		kind = "application/openmetrics-text"
	}
	parser, err := textparse.New(p.Text, kind, nil, textparse.ParserOptions{OpenMetricsSkipSTSeries: true})
	if err != nil {
		return 0, err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("after %d series: %w", n, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		written, _, v := parser.Series()
		k := s.known[string(written)]
		if k == nil {
			if k, err = s.add(parser, written); err != nil {
				return n, err
			}
		}
		if k.round == s.round {
			continue // twice on one page: the first is it, as Prometheus has it
		}
		k.round = s.round
		if n++; n > s.limits.Series {
			return n, fmt.Errorf("more than %d series", s.limits.Series)
		}
		b.Append(k.handle, p.Time, v)
	}
}

// add makes a series of the page known.
func (s *Source) add(parser textparse.Parser, written []byte) (*scraped, error) {
	if len(s.known) >= churn*s.limits.Series {
		return nil, fmt.Errorf("more than %d different series over time: it makes new ones all the time",
			churn*s.limits.Series)
	}
	var ls labels.Labels
	parser.Labels(&ls)
	name := ls.Get(MetricName)
	b := labels.NewBuilder(ls)
	for _, own := range s.labels {
		if v := ls.Get(own.Name); v != "" {
			kept := "exported_" + own.Name
			for b.Get(kept) != "" {
				kept = "exported_" + kept
			}
			b.Set(kept, v)
		}
	}
	for _, own := range s.labels {
		b.Set(own.Name, own.Value)
	}
	// The handle outlives the page, whose bytes the labels share.
	k := &scraped{handle: &Handle{name: strings.Clone(name), labels: b.Labels().Copy()}, ended: true}
	s.known[string(written)] = k
	return k, nil
}
