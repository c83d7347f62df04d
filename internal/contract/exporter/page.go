package exporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Formats of a page, as HTTP names them.
const (
	Text        = "text/plain; version=0.0.4; charset=utf-8"
	OpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// DefaultDeadline is how long collectors have when whoever asks sets no earlier one.
const DefaultDeadline = 8 * time.Second

// mostSeries bounds what one collector may emit at once, lastWords what is shown of its error, in bytes.
const (
	mostSeries = 100_000
	lastWords  = 200
)

// Names of the metrics about the page itself.
const (
	buildInfo = "plimsoll_exporter_build_info"
	success   = "plimsoll_exporter_collector_success"
	duration  = "plimsoll_exporter_collector_duration_seconds"
	lastError = "plimsoll_exporter_collector_last_error_info"
)

var own = families{
	buildInfo: {Name: buildInfo, Type: Gauge, Help: "The program that serves this page; always 1."},
	success:   {Name: success, Type: Gauge, Help: "Whether the collector gave what it has: 1, or 0."},
	duration:  {Name: duration, Type: Gauge, Unit: "seconds", Help: "How long the collector took, or was waited for."},
	lastError: {Name: lastError, Type: Gauge, Help: "Why the collector failed this time; always 1."},
}

// Exporter makes pages of what its collectors count. It is safe for concurrent use.
type Exporter struct {
	version  string
	slots    []*slot
	Deadline time.Duration // of a page; 0 is DefaultDeadline. Set before first use
}

// New makes an exporter that tells version as its build. It returns all objections to the collectors' descriptions at
// once.
func New(version string, collectors ...Collector) (*Exporter, error) {
	x := &Exporter{version: version}
	var objections []error
	seen := map[string]string{}
	for _, c := range collectors {
		d := c.Describe()
		fs, err := d.check()
		if err != nil {
			objections = append(objections, fmt.Errorf("collector %q: %w", d.Name, err))
		}
		if slices.ContainsFunc(x.slots, func(s *slot) bool { return s.name == d.Name }) {
			objections = append(objections, fmt.Errorf("collector %q: there are two of that name", d.Name))
		}
		for name := range fs {
			if other, taken := seen[name]; taken || own[name] != nil {
				objections = append(objections,
					fmt.Errorf("collector %q: family %q belongs to %q", d.Name, name, cmp.Or(other, "the page itself")))
			}
			seen[name] = d.Name
		}
		x.slots = append(x.slots, &slot{name: d.Name, collector: c, families: fs, free: make(chan struct{}, 1)})
	}
	return x, errors.Join(objections...)
}

// slot is one collector, which is asked by one page at a time.
type slot struct {
	name      string
	collector Collector
	families  families // used by who holds the token
	free      chan struct{}
}

// outcome holds what a collector gave.
type outcome struct {
	families map[string]*page
	err      error
	took     time.Duration
}

// page is the lines of one family.
type page struct {
	family *Family
	series []line
}

// line is one series: its labels as they are written, and its value.
type line struct {
	labels string
	value  float64
}

// Page asks every collector at once and writes what they gave until the deadline: the families in the order of their
// names, the series of each in that of their labels. format is Text or OpenMetrics. What failed is on the page and in
// failed; err is w's.
func (x *Exporter) Page(ctx context.Context, w io.Writer, format string) (failed, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.Deadline, DefaultDeadline))
	defer cancel()
	outcomes := make([]outcome, len(x.slots))
	var g sync.WaitGroup
	for i, s := range x.slots {
		g.Go(func() { outcomes[i] = s.ask(ctx) })
	}
	g.Wait()
	all := gathering{families: own, into: map[string]*page{}, seen: map[string]bool{}}
	var failures []error
	all.emit(buildInfo, 1, "version", x.version, "goversion", runtime.Version())
	for i, o := range outcomes {
		good := 1.0
		if o.err != nil && !errors.Is(o.err, ErrNoData) {
			good = 0
			failures = append(failures, fmt.Errorf("collector %s: %w", x.slots[i].name, o.err))
			all.emit(lastError, 1, "collector", x.slots[i].name, "error", words(o.err))
		}
		all.emit(success, good, "collector", x.slots[i].name)
		all.emit(duration, o.took.Seconds(), "collector", x.slots[i].name)
		for name, p := range o.families {
			if all.into[name] == nil { // patterns of two collectors may both cover a name: the first has it
				all.into[name] = p
			}
		}
	}
	_, err = w.Write(written(all.into, format == OpenMetrics))
	return errors.Join(failures...), err
}

// ask has the collector collect, and waits no longer than the deadline. A collector that goes on beyond it is not
// called again before it has returned.
func (s *slot) ask(ctx context.Context) outcome {
	began := time.Now()
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return outcome{err: errors.New("it is still busy with an earlier page"), took: time.Since(began)}
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-s.free }()
		done <- s.collect(ctx)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		select {
		case o = <-done: // it obeyed
		default:
			o.err = errors.New("it gave no answer before the deadline")
		}
	}
	o.took = time.Since(began)
	return o
}

// collect calls the collector; a panic is its failure.
func (s *slot) collect(ctx context.Context) outcome {
	g := gathering{families: s.families, into: map[string]*page{}, seen: map[string]bool{}}
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("internal error: %v", p)
			}
		}()
		return s.collector.Collect(ctx, g.emit)
	}()
	return outcome{families: g.into, err: cmp.Or(g.err, err)}
}

// gathering takes what a collector emits. What would break the page is left out and becomes the collector's error.
type gathering struct {
	families families
	into     map[string]*page
	seen     map[string]bool // series
	key      []byte
	err      error // the first
}

func (g *gathering) object(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

// emit is the Emit of collectors.
func (g *gathering) emit(name string, value float64, labels ...string) {
	f := g.families.of(name)
	switch {
	case f == nil:
		g.object("metric %q was not described", name)
		return
	case !nameOf(name, true):
		g.object("metric %q: the name must be letters, digits, _ and :", name)
		return
	case len(labels)%2 != 0:
		g.object("metric %q: label %q has no value", name, labels[len(labels)-1])
		return
	case len(g.seen) >= mostSeries:
		g.object("more than %d series", mostSeries)
		return
	}
	written, err := g.labels(labels)
	if err != nil {
		g.object("metric %q: %w", name, err)
		return
	}
	series := name + written
	if g.seen[series] {
		g.object("series %s twice", series)
		return
	}
	g.seen[series] = true
	p := g.into[name]
	if p == nil {
		p = &page{family: f}
		g.into[name] = p
	}
	p.series = append(p.series, line{written, value})
}

// labels writes labels in the order of their names; those without a value do not exist.
func (g *gathering) labels(labels []string) (string, error) {
	var pairs [][2]string
	for i := 0; i < len(labels); i += 2 {
		name, value := labels[i], labels[i+1]
		if !nameOf(name, false) || strings.HasPrefix(name, "__") {
			return "", fmt.Errorf("label %q: the name must be letters, digits and _, and not begin with __", name)
		}
		if slices.ContainsFunc(pairs, func(p [2]string) bool { return p[0] == name }) {
			return "", fmt.Errorf("label %q twice", name)
		}
		if value != "" {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	if len(pairs) == 0 {
		return "", nil
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	b := g.key[:0]
	for i, p := range pairs {
		b = append(b, "{,"[min(i, 1)])
		b = append(b, p[0]...)
		b = append(b, '=', '"')
		b = escaped(b, p[1], true)
		b = append(b, '"')
	}
	g.key = append(b, '}')
	return string(g.key), nil
}

// escaped appends a text as the format wants it: backslashes and line ends, and quotes in the values of labels. What is
// not UTF-8 is replaced, since it would make the whole page unreadable.
func escaped(b []byte, s string, quotes bool) []byte {
	for _, r := range s {
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '"' && quotes:
			b = append(b, `\"`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// words is an error on one line, of bounded length.
func words(err error) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "\uFFFD")
	if len(text) > lastWords {
		text = strings.ToValidUTF8(text[:lastWords], "") + "…"
	}
	return text
}

// written is the page in the text format of Prometheus, or in OpenMetrics, where the family of a counter has no _total
// and the type nobody knows is called unknown.
func written(all map[string]*page, open bool) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		family, kind := name, string(p.family.Type)
		if open {
			if p.family.Type == Counter {
				family = strings.TrimSuffix(name, "_total")
				if family == name {
					kind = "unknown" // a counter of that format ends with _total
				}
			}
			if p.family.Type == Untyped {
				kind = "unknown"
			}
		}
		b = append(b, "# HELP "+family+" "...)
		b = append(escaped(b, p.family.Help, open), '\n')
		b = append(b, "# TYPE "+family+" "+kind+"\n"...)
		if open && p.family.Unit != "" && strings.HasSuffix(family, "_"+p.family.Unit) {
			b = append(b, "# UNIT "+family+" "+p.family.Unit+"\n"...)
		}
		slices.SortFunc(p.series, func(a, b line) int { return strings.Compare(a.labels, b.labels) })
		for _, s := range p.series {
			b = append(append(append(b, name...), s.labels...), ' ')
			b = append(number(b, s.value), '\n')
		}
	}
	if open {
		b = append(b, "# EOF\n"...)
	}
	return b
}

// number appends a value as the format writes it, exactly.
func number(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Get makes a page for a reader in this process; it has the form of target.Get.
func (x *Exporter) Get(ctx context.Context) (io.ReadCloser, string, error) {
	var b bytes.Buffer
	if _, err := x.Page(ctx, &b, Text); err != nil {
		return nil, "", err
	}
	return io.NopCloser(&b), Text, nil
}
