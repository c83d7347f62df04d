// Package exporter is the contract between Plimsoll and whatever can be counted, and the one server of all that is: a
// Collector says which families of metrics it has and gives their values when asked; an Exporter makes a page of
// them in Prometheus' text format (or OpenMetrics), and serves it over HTTP or hands it to a run in this process.
//
// A Kind is named in one line of package drivers. Collectors know nothing of pages, HTTP or runs. A slow, failing or
// panicking one neither delays nor breaks the page: it has until the deadline of the scrape, and what it said last is
// a metric. The conformance suite is package exportertest.
//
// What is not there: histograms and summaries (publish a counter of the sum and one of the events), timestamps, and
// encryption of what is served; see Serve.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"plimsoll/internal/contract/target"
)

// Type tells what a metric is, as Prometheus' text format writes it.
type Type string

// The types.
const (
	Counter Type = "counter" // only rises, until what counts starts anew
	Gauge   Type = "gauge"
	Untyped Type = "untyped" // whoever gives the number does not say which
)

// Family is all series of one name.
type Family struct {
	// Name is the metric's. It may hold one `*` where the names come from what is looked at, as those of the lines of
	// /proc/meminfo do; the part that stands for it replaces a `*` in Help, too.
	Name string
	Type Type
	Unit string // "seconds", "bytes", ...; "" where it has none. It is then the end of the name, before _total
	Help string // one line
}

// Description holds what a collector says of itself, without looking at anything.
type Description struct {
	Name     string // of the collector: lower case letters, digits and _
	Help     string // one line
	Families []Family
}

// Emit takes one value of a family of the description; labels are names and values in turn.
type Emit func(name string, value float64, labels ...string)

// Collector counts one kind of thing. Collect is called by one goroutine at a time.
type Collector interface {
	Describe() Description
	// Collect emits every series there is now, and returns soon after ctx is done. ErrNoData (or an error that wraps
	// it) says that there is nothing to count here, which is no failure. What was emitted before any other error is
	// served all the same. The error's text is served, too: no secrets in it.
	Collect(ctx context.Context, emit Emit) error
}

// ErrNoData is returned by a collector when what it counts does not exist on this machine.
var ErrNoData = errors.New("there is nothing to count here")

// Kind is one exporter that the program can be.
type Kind struct {
	Name    string // the word after `plimsoll exporter`
	Summary string // one line for `plimsoll exporter list`
	Options []target.Option
	// New makes the collector from decoded options, or says what is wrong with them. It opens nothing.
	New func(target.Values) (Collector, error)
}

// Open makes the collector of a kind, and returns all objections to the options at once.
func (k Kind) Open(given target.Options) (Collector, error) {
	values, err := target.DecodeFor("exporter "+k.Name, k.Options, given)
	if err != nil {
		return nil, err
	}
	c, err := k.New(values)
	if err != nil {
		return nil, fmt.Errorf("exporter %s: %w", k.Name, err)
	}
	return c, nil
}

// families finds the family of a metric, and makes those of patterns when they are first asked for.
type families map[string]*Family

// check returns everything that is wrong with a description, and the families by name.
func (d Description) check() (families, error) {
	out := families{}
	var objections []error
	if !nameOf(d.Name, false) || strings.ToLower(d.Name) != d.Name {
		objections = append(objections, fmt.Errorf("name %q: want lower case letters, digits and _", d.Name))
	}
	for _, f := range d.Families {
		switch {
		case !nameOf(strings.Replace(f.Name, "*", "x", 1), true):
			objections = append(objections, fmt.Errorf("family %q: the name must be letters, digits, _ and :", f.Name))
		case f.Type != Counter && f.Type != Gauge && f.Type != Untyped:
			objections = append(objections, fmt.Errorf("family %q: no type is called %q", f.Name, f.Type))
		case out[f.Name] != nil:
			objections = append(objections, fmt.Errorf("family %q is described twice", f.Name))
		}
		out[f.Name] = &f
	}
	return out, errors.Join(objections...)
}

// of is the family of a metric; nil when it was not described.
func (fs families) of(name string) *Family {
	if f := fs[name]; f != nil {
		return f
	}
	best, stem := (*Family)(nil), ""
	for pattern, f := range fs {
		before, after, ok := strings.Cut(pattern, "*")
		if !ok || len(name) <= len(before)+len(after) || !strings.HasPrefix(name, before) ||
			!strings.HasSuffix(name, after) {
			continue
		}
		if best == nil || len(f.Name) > len(best.Name) || len(f.Name) == len(best.Name) && f.Name < best.Name {
			best, stem = f, name[len(before):len(name)-len(after)] // the closest pattern
		}
	}
	if best != nil {
		one := *best
		one.Name, one.Help = name, strings.Replace(best.Help, "*", stem, 1)
		fs[name] = &one
		return &one
	}
	return nil
}

// nameOf reports whether a text is a name as Prometheus' text format has always known them; colons are for metrics.
func nameOf(s string, colons bool) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || colons && r == ':'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
