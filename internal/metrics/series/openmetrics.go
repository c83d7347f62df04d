package series

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Description holds what is known of a metric beyond its name.
type Description struct {
	Type string // counter, gauge, histogram or unknown
	Help string // one line; may be ""
}

// TypeOf guesses the type of a metric that nothing else is known of: by convention only counters end in _total.
func TypeOf(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "unknown"
}

// OpenMetrics writes every point of a selection's series as OpenMetrics text with timestamps, in the order of names,
// labels and time. Native histograms are written as classic ones: OpenMetrics 1.0 has no others. Their buckets are
// those that any point of the series has something in, with the bounds as they are, so that nothing is rounded.
// Markers of staleness, which the text cannot express, are left out. describe tells of metrics by name; the zero
// Description says that nothing is known. The limit of the selection is not looked at.
//
// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
func (q Queries) OpenMetrics(
	ctx context.Context, w io.Writer, sel Selection, describe func(name string) Description,
) error {
	sets, err := sel.matchers()
	if err != nil {
		return err
	}
	names, warnings, err := q.LabelValues(ctx, MetricName, Selection{Match: sel.Match, From: sel.From, To: sel.To})
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("metrics: %s", strings.Join(warnings, "; "))
	}
	low, high := milliseconds(sel.From, sel.To)
	from, err := q.source.Querier(low, high)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	text := &openMetrics{w: b, taken: map[string]bool{}, describe: describe}
	for _, name := range names {
		text.taken[name] = true
	}
	err = guarded(func() error {
		for _, name := range names {
			hints := &storage.SelectHints{Start: low, End: high}
			if err := text.family(ctx, name, selectAny(ctx, from, hints, named(sets, name)), low, high); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		_, err := b.WriteString("# EOF\n")
		return err
	})
	if err = errors.Join(err, b.Flush(), from.Close()); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// named are the sets of matchers with one for a metric's name in each.
func named(sets [][]*labels.Matcher, name string) [][]*labels.Matcher {
	var out [][]*labels.Matcher
	for _, set := range sets {
		out = append(out,
			append(slices.Clip(slices.Clone(set)), labels.MustNewMatcher(labels.MatchEqual, MetricName, name)))
	}
	return out
}

// openMetrics writes families. Errors of the writer come out of its Flush.
type openMetrics struct {
	w        *bufio.Writer
	taken    map[string]bool // names of metrics
	describe func(string) Description
	line     []byte
}

// family writes all series of a metric.
func (o *openMetrics) family(ctx context.Context, name string, found storage.SeriesSet, low, high int64) error {
	begun := false
	for found.Next() {
		one := found.At()
		bounds, kind, err := boundsOf(one, low, high)
		if err != nil {
			return err
		}
		if kind == chunkenc.ValNone {
			continue
		}
		if !begun {
			o.head(name, kind)
			begun = true
		}
		if err := o.series(ctx, name, one, bounds, low, high); err != nil {
			return err
		}
	}
	return found.Err()
}

// head writes what stands before a family's points.
func (o *openMetrics) head(name string, kind chunkenc.ValueType) {
	d := o.describe(name)
	if d.Type == "" {
		d.Type = TypeOf(name)
	}
	family := name
	switch short, counts := strings.CutSuffix(name, "_total"); {
	case kind != chunkenc.ValFloat:
		d.Type = "histogram"
	case d.Type == "counter" && counts && !o.taken[short]:
		family = short
	case d.Type == "counter", d.Type == "histogram":
		d.Type = "unknown" // a counter's points end in _total, and two families cannot have one name
	}
	family = quotedName(family)
	fmt.Fprintf(o.w, "# TYPE %s %s\n", family, d.Type)
	if d.Help != "" {
		fmt.Fprintf(o.w, "# HELP %s %s\n", family, escaped.Replace(d.Help))
	}
}

// escaped writes what stands between quotes, and help.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// plainName reports whether a name needs no quotes.
func plainName(name string, colon bool) bool {
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', colon && r == ':', i > 0 && r >= '0' && r <= '9':
		default:
			return false
		}
	}
	return name != ""
}

func quotedName(name string) string {
	if plainName(name, true) {
		return name
	}
	return `"` + escaped.Replace(name) + `"`
}

// boundsOf goes through a series once: the upper bounds of all buckets that ever had something in them, ascending, and
// what kind its first point is.
func boundsOf(s storage.Series, low, high int64) (bounds []float64, first chunkenc.ValueType, err error) {
	it := s.Iterator(nil)
	known := map[float64]bool{}
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if t := it.AtT(); t < low || t > high {
			continue
		}
		if first == chunkenc.ValNone {
			first = kind
		}
		if kind == chunkenc.ValFloat {
			if first == chunkenc.ValFloat {
				break // numbers have no bounds
			}
			continue
		}
		_, h := it.AtFloatHistogram(nil)
		for buckets := h.AllBucketIterator(); buckets.Next(); {
			if b := buckets.At(); b.Count != 0 && !math.IsInf(b.Upper, 0) {
				known[b.Upper] = true
			}
		}
	}
	for b := range known {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	return bounds, first, it.Err()
}

// mostUnlooked is after how many points the context is looked at.
const mostUnlooked = 4096

func (o *openMetrics) series(
	ctx context.Context, name string, s storage.Series, bounds []float64, low, high int64,
) error {
	var pairs []string // of labels, but the name
	s.Labels().Range(func(l labels.Label) {
		if l.Name == MetricName {
			return
		}
		key := l.Name
		if !plainName(key, false) {
			key = `"` + escaped.Replace(key) + `"`
		}
		pairs = append(pairs, key+`="`+escaped.Replace(l.Value)+`"`)
	})
	it := s.Iterator(nil)
	for n, kind := 1, it.Next(); kind != chunkenc.ValNone; n, kind = n+1, it.Next() {
		t := it.AtT()
		if n%mostUnlooked == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if t < low || t > high {
			continue
		}
		if kind == chunkenc.ValFloat {
			if _, v := it.At(); !value.IsStaleNaN(v) {
				o.point(name, pairs, "", v, t)
			}
			continue
		}
		if _, h := it.AtFloatHistogram(nil); !value.IsStaleNaN(h.Sum) {
			o.histogram(name, pairs, h, bounds, t)
		}
	}
	return it.Err()
}

// histogram writes a native histogram as a classic one.
func (o *openMetrics) histogram(name string, pairs []string, h *histogram.FloatHistogram, bounds []float64, t int64) {
	sum := 0.0
	buckets := h.AllBucketIterator()
	more := buckets.Next()
	for _, bound := range bounds {
		for more && buckets.At().Upper <= bound {
			sum += buckets.At().Count
			more = buckets.Next()
		}
		o.point(name+"_bucket", pairs, bucketBound(bound), sum, t)
	}
	o.point(name+"_bucket", pairs, "+Inf", h.Count, t)
	o.point(name+"_count", pairs, "", h.Count, t)
	o.point(name+"_sum", pairs, "", h.Sum, t)
}

// point writes one line. le is the bound of a bucket.
func (o *openMetrics) point(name string, pairs []string, le string, v float64, t int64) {
	b := o.line[:0]
	plain := plainName(name, true)
	if plain {
		b = append(b, name...)
	}
	open := byte('{')
	sep := func() {
		b = append(b, open)
		open = ','
	}
	if !plain {
		sep()
		b = append(b, quotedName(name)...)
	}
	for _, p := range pairs {
		sep()
		b = append(b, p...)
	}
	if le != "" {
		sep()
		b = append(append(append(b, `le="`...), le...), '"')
	}
	if open == ',' {
		b = append(b, '}')
	}
	b = append(append(b, ' '), number(v)...)
	b = strconv.AppendFloat(append(b, ' '), float64(t)/1000, 'f', -1, 64)
	o.line = append(b, '\n')
	_, _ = o.w.Write(o.line) // Flush tells
}

// bucketBound is the bound of a bucket, which OpenMetrics has always as a number with a point.
func bucketBound(v float64) string {
	s := number(v)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// number is a value as the text has it.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
