// Package exportertest is the conformance suite that every collector joins: one call of Run in its tests. It asks for
// pages and reads them as Prometheus does: names and units as its conventions want them, the same series each time,
// counters that do not fall, no series twice, nothing to count is no failure, an end when the context ends.
//
// It knows nothing of what is counted. For tests only.
package exportertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/metrics/series"
)

// Subject is a collector under test.
type Subject struct {
	// New makes a collector of something that stays as it is while it is looked at, but that its counters may rise.
	New func(t *testing.T) exporter.Collector
	// Empty makes one that finds nothing to count; nil when there is always something.
	Empty func(t *testing.T) exporter.Collector
	// Given are names that are another exporter's, kept for the queries made for it though they break the conventions.
	Given []string
}

// hang is how long a call may take before it counts as one that never ends. It decides nothing else.
const hang = 30 * time.Second

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Run("description", func(t *testing.T) {
		d := s.New(t).Describe()
		ours, theirs := d, d
		ours.Families = slices.Clone(d.Families)
		ours.Families = slices.DeleteFunc(ours.Families,
			func(f exporter.Family) bool { return slices.Contains(s.Given, f.Name) })
		for _, objection := range Objections(ours) {
			t.Error(objection)
		}
		for _, name := range s.Given {
			theirs.Families = slices.DeleteFunc(slices.Clone(d.Families),
				func(f exporter.Family) bool { return f.Name != name })
			if len(Objections(theirs)) == 0 || len(theirs.Families) == 0 {
				t.Errorf("%s: there is nothing against it, or it is gone: it need not be in Given", name)
			}
		}
	})
	t.Run("two pages", func(t *testing.T) { twoPages(t, s.New(t)) })
	t.Run("page is read by Prometheus", func(t *testing.T) { isRead(t, s.New(t)) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, s.New(t)) })
	t.Run("no data", func(t *testing.T) {
		if s.Empty == nil {
			t.Skip("there is always something to count")
		}
		err := s.Empty(t).Collect(t.Context(), func(name string, _ float64, _ ...string) {
			t.Errorf("%s was emitted where there is nothing to count", name)
		})
		if !errors.Is(err, exporter.ErrNoData) {
			t.Errorf("error %v, want exporter.ErrNoData", err)
		}
	})
}

// other units than the base ones that Prometheus wants, as ends of names.
var unwanted = regexp.MustCompile(
	`_(milliseconds|microseconds|nanoseconds|ms|us|ns|minutes|hours|days|[kmg]i?bytes|[kmg]i?b|` +
		`kilobytes|megabytes|gigabytes|bits|percent|pct)(_total)?$`,
)

// Objections are what is against a description.
func Objections(d exporter.Description) (list []error) {
	object := func(format string, args ...any) { list = append(list, fmt.Errorf(format, args...)) }
	if strings.TrimSpace(d.Help) == "" || strings.Contains(d.Help, "\n") {
		object("help of the collector: %q: want one line", d.Help)
	}
	for _, f := range d.Families {
		base := strings.TrimSuffix(f.Name, "_total")
		if strings.TrimSpace(f.Help) == "" || strings.Contains(f.Help, "\n") {
			object("%s: help %q: want one line", f.Name, f.Help)
		}
		if f.Type == exporter.Counter != strings.HasSuffix(f.Name, "_total") && !strings.HasSuffix(f.Name, "*") {
			object("%s: it is a %s: names of counters, and no others, end with _total", f.Name, f.Type)
		}
		if bad := unwanted.FindString(f.Name); bad != "" {
			object("%s: want the base unit (seconds, bytes, ratio) in the place of %s", f.Name, bad)
		}
		if f.Unit != "" && !strings.HasSuffix(base, "_"+f.Unit) {
			object("%s: its unit is %s: the name must end with it, before _total", f.Name, f.Unit)
		}
		for _, known := range []string{"seconds", "bytes"} {
			if f.Unit == "" && strings.HasSuffix(base, "_"+known) {
				object("%s: the name ends with %s, and the unit is not given", f.Name, known)
			}
		}
		for _, reserved := range []string{"_bucket", "_count", "_sum", "_created", "_info_total"} {
			if strings.HasSuffix(f.Name, reserved) {
				object("%s: %s is for histograms, summaries and their like", f.Name, reserved)
			}
		}
	}
	if _, err := exporter.New("test", describes(d)); err != nil {
		list = append(list, err)
	}
	return list
}

// describes is a collector that only describes itself.
type describes exporter.Description

func (d describes) Describe() exporter.Description { return exporter.Description(d) }

func (d describes) Collect(context.Context, exporter.Emit) error { return exporter.ErrNoData }

// page makes a page of a collector.
func page(t *testing.T, x *exporter.Exporter, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	failed, err := x.Page(t.Context(), &b, format)
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t *testing.T, c exporter.Collector) *exporter.Exporter {
	t.Helper()
	x, err := exporter.New("test", c)
	if err != nil {
		t.Fatal(err)
	}
	x.Deadline = hang
	return x
}

// twoPages compares what two pages hold. What the page says of itself may change.
func twoPages(t *testing.T, c exporter.Collector) {
	x, kinds := open(t, c), map[string]bool{}
	var before map[string]float64
	for range 2 {
		now := map[string]float64{}
		var names []string
		for line := range strings.Lines(string(page(t, x, exporter.Text))) {
			line = strings.TrimSpace(line)
			if f := strings.Fields(line); f[0] == "#" {
				if f[1] == "TYPE" && f[3] == string(exporter.Counter) {
					kinds[f[2]] = true
				}
				continue
			}
			at := strings.LastIndex(line, " ")
			v, err := strconv.ParseFloat(line[at+1:], 64)
			if err != nil {
				t.Errorf("value of %q: %v", line, err)
			}
			if strings.HasPrefix(line, "plimsoll_exporter_") {
				continue
			}
			now[line[:at]] = v
			names = append(names, line[:at])
		}
		if len(names) == 0 {
			t.Fatal("the page holds nothing")
		}
		for series, v := range before {
			name, _, _ := strings.Cut(series, "{")
			after, there := now[series]
			if !there {
				t.Errorf("%s is gone from the second page", series)
			} else if kinds[name] && after < v {
				t.Errorf("%s is a counter and fell from %v to %v", series, v, after)
			}
		}
		if before != nil {
			for _, series := range names {
				if _, there := before[series]; !there {
					t.Errorf("%s is new on the second page", series)
				}
			}
		}
		before = now
	}
}

// isRead has both formats read by Prometheus' parsers, all series of them.
func isRead(t *testing.T, c exporter.Collector) {
	x := open(t, c)
	store, err := series.Open(t.TempDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := time.Unix(1_700_000_000, 0)
	for i, format := range []string{exporter.Text, exporter.OpenMetrics} {
		text := page(t, x, format)
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"),
			func(l string) bool { return strings.HasPrefix(l, "#") })
		n, err := store.Source(
			nil,
			series.Limits{},
		).Append(series.Page{Text: text, ContentType: format, Time: at.Add(time.Duration(i) * time.Second)})
		if err != nil || n != len(lines) {
			t.Errorf("%s: %d series were read of %d lines, error %v, in\n%s", format, n, len(lines), err, text)
		}
	}
}

// cancelled expects an end soon after the context's, with or without an error.
func cancelled(t *testing.T, c exporter.Collector) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Collect(ctx, func(string, float64, ...string) {}) // whether it says so does not matter
	}()
	select {
	case <-done:
	case <-time.After(hang):
		t.Fatal("it goes on although its context has ended")
	}
}
