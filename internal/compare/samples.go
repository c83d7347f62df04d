package compare

import (
	"errors"
	"fmt"
	"slices"

	"plimsoll/internal/analysis/effect"
)

// Samples are repeated measurements of one side by any tool: a column is one measure, each of its values one repeat.
type Samples struct {
	Name    string
	Columns []Column
}

// Column is one measure of a side. Sides may have unequally many repeats of it.
type Column struct {
	Name   string
	Better effect.Direction // empty: not known, so that nothing is better or worse; that of the baseline counts
	Values []float64
}

// OfSamples compares each further side with the first, column by column. Every column must be on every side. Nothing is
// known of what the numbers come from, so no facts are compared.
func OfSamples(sides []Samples, o Options) (*Document, error) {
	o, err := o.filled()
	if err = errors.Join(err, checkSamples(sides)); err != nil {
		return nil, err
	}
	d := &Document{Version: FormatVersion, Confidence: o.Confidence, Threshold: o.Threshold}
	for _, s := range sides {
		shown := Shown{Name: s.Name, Runs: []string{}}
		for _, c := range s.Columns {
			shown.Repeats = max(shown.Repeats, len(c.Values))
		}
		d.Sides = append(d.Sides, shown)
	}
	for _, candidate := range sides[1:] {
		for _, b := range sides[0].Columns {
			c, _ := candidate.column(b.Name)
			m := Measure{Side: candidate.Name, Name: b.Name, Direction: string(b.Better)}
			m.numbers(b.Values, c.Values)
			m.repeats(o.Threshold)
			d.Measures = append(d.Measures, m)
		}
	}
	d.Families = []Family{widen("columns", d.Measures, o)}
	d.Notes = append(d.Notes, askDirections(d.Measures)...)
	what := "columns"
	if len(d.Measures) == 1 {
		what = "column"
	}
	d.answer(what)
	few := slices.ContainsFunc(d.Measures, func(m Measure) bool {
		return min(len(m.Baseline.Runs), len(m.Candidate.Runs)) < 4
	})
	if few {
		d.say("Some column has fewer than four repeats on a side: its interval is wide, and one repeat gives none.")
	}
	d.sayFamilies()
	d.say("Each value is taken as an independent repeat. Points of one run are not: compare the means of runs.")
	d.say("Nothing is known of the order in which the repeats were made. When all of one side came first, a drift " +
		"looks like a difference.")
	return d, nil
}

func (s Samples) column(name string) (Column, bool) {
	i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return s.Columns[i], true
}

func checkSamples(sides []Samples) error {
	var errs []error
	object := func(format string, args ...any) { errs = append(errs, fmt.Errorf("compare: "+format, args...)) }
	if len(sides) < 2 {
		object("two sides are needed")
	}
	names, columns := map[string]bool{}, map[string]bool{}
	var all []string // in the order of the sides
	for _, s := range sides {
		if names[s.Name] {
			object("two sides are called %q", s.Name)
		}
		names[s.Name] = true
		if len(s.Columns) == 0 {
			object("%s: no columns", s.Name)
		}
		own := map[string]bool{}
		for _, c := range s.Columns {
			if own[c.Name] {
				object("%s: two columns are called %q", s.Name, c.Name)
			}
			own[c.Name] = true
			if !columns[c.Name] {
				columns[c.Name], all = true, append(all, c.Name)
			}
			if len(c.Values) == 0 {
				object("%s: column %q has no values", s.Name, c.Name)
			}
		}
	}
	for _, name := range all {
		for _, s := range sides {
			if _, ok := s.column(name); !ok {
				object("%s: no column of numbers called %q, which another side has", s.Name, name)
			}
		}
	}
	return errors.Join(errs...)
}
