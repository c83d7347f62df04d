// Package history keeps results of runs in the order they were made, and what is known of the changes in them: one that
// was told is not news a second time, and one that was explained keeps its note. Changes are found as package change
// finds them, points being runs and so independent of each other.
//
// Pure: no I/O and no clock. History is what callers store.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/effect"
	"plimsoll/unit"
)

// Version of History as it is stored.
const Version = 1

// History is a series of results with what is known of it.
type History struct {
	Version int     `json:"version"`
	Name    string  `json:"name"`
	Points  []Point `json:"points"`
	Known   []Known `json:"known"`
	// Better is which way of a measure is good, where that is known.
	Better map[string]effect.Direction `json:"better,omitempty"`
}

// Point is one result: the measures that it has. One that it lacks is a gap, which is no change.
type Point struct {
	Label  string             `json:"label"`
	Values map[string]float64 `json:"values"`
}

// Known is a change that was told.
type Known struct {
	Measure string    `json:"measure"`
	At      string    `json:"at"` // label of the first point after it
	Before  float64   `json:"before"`
	After   float64   `json:"after"`
	P       float64   `json:"p"` // by permutation
	Told    time.Time `json:"told,omitzero"`
	Note    string    `json:"note,omitempty"` // of who acknowledged it
	By      string    `json:"by,omitempty"`
}

// Verdicts of a change.
const (
	Worse   = "worse"
	Better  = "better"
	Unknown = "direction unknown"
)

// Change is one that is in the series now.
type Change struct {
	Known
	New     bool   `json:"new"`
	Verdict string `json:"verdict"`
	Points  int    `json:"points"` // that have the measure
}

// Significance is the chance of finding a change in a measure without one, where nobody says another.
const Significance = 0.01

// By is the change relative to what was before, "" where that says nothing.
func (c Change) By() string {
	if c.Before == 0 {
		return ""
	}
	return unit.Change(c.After/c.Before - 1)
}

// Standing tells what is known of a change.
func (c Change) Standing() string {
	switch {
	case c.New:
		return "new, " + c.Verdict
	case c.Note != "":
		return "acknowledged, " + c.Verdict + ": " + c.Note
	}
	return "known since " + c.Told.Format(time.DateOnly) + ", " + c.Verdict
}

// Document holds what is told of a history.
type Document struct {
	History string   `json:"history"`
	Points  int      `json:"points"`
	Changes []Change `json:"changes"`
}

// Document finds the changes of a history.
func (h *History) Document(significance float64) (Document, error) {
	changes, err := h.Changes(significance)
	return Document{h.Name, len(h.Points), append([]Change{}, changes...)}, err
}

// Say is how many changes there are.
func (d Document) Say() string {
	fresh := 0
	for _, c := range d.Changes {
		if c.New {
			fresh++
		}
	}
	return fmt.Sprintf("%s in %s, %d new", unit.Plural(len(d.Changes), "change"),
		unit.Plural(d.Points, "result"), fresh)
}

// Add appends points; one whose label is there already takes its place. It returns how many were new.
func (h *History) Add(points ...Point) (added int) {
	for _, p := range points {
		at := slices.IndexFunc(h.Points, func(o Point) bool { return o.Label == p.Label })
		if at >= 0 {
			h.Points[at] = p
			continue
		}
		h.Points, added = append(h.Points, p), added+1
	}
	return added
}

// Measures are the names of all that points have, in order.
func (h *History) Measures() []string {
	names := map[string]bool{}
	for _, p := range h.Points {
		for name := range p.Values {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Rename has a measure go on under another name: its points, what is known of it, and which way is good.
func (h *History) Rename(old, name string) error {
	if old == name || !slices.Contains(h.Measures(), old) {
		return fmt.Errorf("no measure %q to rename", old)
	}
	for _, p := range h.Points {
		_, both := p.Values[name]
		if _, has := p.Values[old]; has && both {
			return fmt.Errorf("%s has both %q and %q: they are two measures", p.Label, old, name)
		}
	}
	for _, p := range h.Points {
		if v, has := p.Values[old]; has {
			p.Values[name] = v
			delete(p.Values, old)
		}
	}
	for i := range h.Known {
		if h.Known[i].Measure == old {
			h.Known[i].Measure = name
		}
	}
	if way, ok := h.Better[old]; ok {
		h.Better[name] = cmp.Or(h.Better[name], way)
		delete(h.Better, old)
	}
	return nil
}

// Changes finds what changes there are, by measure and place, and marks those that were never told. Where an estimate
// of a known place has moved with the points since, what is known moves along.
func (h *History) Changes(significance float64) ([]Change, error) {
	var out []Change
	var errs []error
	for _, name := range h.Measures() {
		var values []float64
		var labels []string
		for _, p := range h.Points {
			if v, ok := p.Values[name]; ok {
				values, labels = append(values, v), append(labels, p.Label)
			}
		}
		r, err := change.Detect(values, change.Options{Independent: true, Significance: significance})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		taken := map[int]bool{}
		for _, p := range r.Points {
			c := Change{New: true, Points: len(values), Verdict: h.verdict(name, p),
				Known: Known{Measure: name, At: labels[p.Index], Before: p.Before, After: p.After, P: p.P}}
			if k := h.knows(name, labels, p, taken); k >= 0 {
				taken[k], c.New = true, false
				was := &h.Known[k]
				was.At, was.Before, was.After, was.P = c.At, c.Before, c.After, c.P
				c.Known = *was
			}
			out = append(out, c)
		}
	}
	return out, errors.Join(errs...)
}

// slack is how many points beside the interval of its place a known change may be: later points move the interval.
const slack = 2

// knows is the index of the known change that a found one is, the nearest that goes the same way; -1 of none.
func (h *History) knows(name string, labels []string, p change.Point, taken map[int]bool) int {
	best, distance := -1, 0
	for i, k := range h.Known {
		at := slices.Index(labels, k.At)
		if k.Measure != name || taken[i] || at < p.Low-slack || at > p.High+slack || at < 0 ||
			(k.After > k.Before) != (p.After > p.Before) {
			continue
		}
		if d := max(at-p.Index, p.Index-at); best < 0 || d < distance {
			best, distance = i, d
		}
	}
	return best
}

func (h *History) verdict(name string, p change.Point) string {
	switch way := h.Better[name]; {
	case way == "":
		return Unknown
	case (way == effect.HigherIsBetter) == (p.After > p.Before):
		return Better
	}
	return Worse
}

// Tell notes that changes were told, which makes them known.
func (h *History) Tell(changes []Change, now time.Time) {
	for _, c := range changes {
		if c.New {
			c.Told = now
			h.Known = append(h.Known, c.Known)
		}
	}
}

// Acknowledge puts a note on the known change of a measure at one place or, with "", on the last. It returns that one.
func (h *History) Acknowledge(measure, at, note, by string) (Known, error) {
	for i := len(h.Known) - 1; i >= 0; i-- {
		if k := &h.Known[i]; k.Measure == measure && (at == "" || k.At == at) {
			k.Note, k.By = note, by
			return *k, nil
		}
	}
	if at != "" {
		return Known{}, fmt.Errorf("no known change of %q at %q", measure, at)
	}
	return Known{}, fmt.Errorf("no known change of %q", measure)
}
