package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
)

// Samples are repeated measurements of one side by any tool: a column is one measure, each of its values one repeat.
type Samples struct {
	Name    string
	Columns []Column
	// StepSeconds is how far apart in time the rows are when they are moments of one run, not repeats; 0 otherwise.
	StepSeconds float64
}

// Column is one measure of a side. Sides may have unequally many repeats of it.
type Column struct {
	Name   string
	Better effect.Direction // empty: not known, so that nothing is better or worse; that of the baseline counts
	Values []float64
	// Missing are repeats that have no value of it, such as runs that crashed.
	Missing int
}

// OfSamples compares each further side with the first, column by column. Every column must be on every side. Nothing is
// known of what the numbers come from, so no facts are compared, and of their order only that of the rows of a side;
// with Options.Paired, rows of one number were measured side by side.
func OfSamples(sides []Samples, o Options) (*Document, error) {
	o, err := o.filled()
	if err = errors.Join(err, checkSamples(sides, o.Paired)); err != nil {
		return nil, err
	}
	d := &Document{Version: FormatVersion, Confidence: o.Confidence, Threshold: o.Threshold}
	for _, s := range sides {
		shown := Shown{Name: s.Name, Runs: []string{}, Moments: s.StepSeconds > 0}
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
			switch {
			case sides[0].StepSeconds > 0 || candidate.StepSeconds > 0:
				m.moments(b.Values, c.Values, o.Threshold)
			case o.Paired:
				m.pairs(b.Values, c.Values, o.Threshold)
			default:
				m.repeats(o.Threshold, nil)
			}
			m.lacks(b, c, sides[0].StepSeconds > 0 || candidate.StepSeconds > 0)
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
		return m.Scope == BetweenRuns && min(len(m.Baseline.Runs), len(m.Candidate.Runs)) < 4
	})
	if few {
		d.say("Some column has fewer than four repeats on a side: its interval is wide; one on each side gives none.")
	}
	d.sayRuns(o)
	d.sayFamilies()
	d.sayOrder(sides, o.Paired)
	return d, nil
}

// lacks makes a measure inconclusive of which repeats have no value, more of them of the candidate than chance makes of
// the baseline's: what those runs did not come to is not in the others. That it is worse without them stays.
func (m *Measure) lacks(b, c Column, moments bool) {
	share := func(c Column) float64 { return float64(c.Missing) / float64(c.Missing+len(c.Values)) }
	if moments || b.Missing+c.Missing == 0 {
		return
	}
	why := fmt.Sprintf("%d of %d repeats of the baseline and %d of %d of the candidate have no value: what is left may "+
		"flatter", b.Missing, b.Missing+len(b.Values), c.Missing, c.Missing+len(c.Values))
	m.warn(why)
	if share(c) <= share(b) {
		return
	}
	judge := m.at
	m.at = func(confidence float64) outcome {
		out := judge(confidence)
		if out.verdict != effect.Worse || m.Direction == "" {
			out.verdict = effect.Inconclusive
		}
		return out
	}
}

// moments judges a measure whose values are moments of one run on a side.
func (m *Measure) moments(b, c []float64, threshold float64) {
	m.Scope = WithinRuns
	m.Baseline.Runs, m.Candidate.Runs = nil, nil // none of them is a run
	if allZero(b) && allZero(c) {
		m.at = zeros
		return
	}
	wb, wc := both(ratioSeries{value: b}, ratioSeries{value: c})
	m.warn(wb.warning, wc.warning)
	o := effect.Options{Threshold: threshold, Direction: effect.Direction(m.Direction)}
	m.at = func(confidence float64) outcome {
		return difference(wb, wc, m.Baseline.Value, m.Candidate.Value, confidence, o)
	}
}

// pairs judges a measure whose repeats were made in pairs.
func (m *Measure) pairs(b, c []float64, threshold float64) {
	m.Scope = BetweenRuns
	o := effect.Options{Threshold: threshold, Direction: effect.Direction(m.Direction)}
	m.at = pairedAt(b, c, o)
	if r, err := effect.Paired(b, c, o); err == nil {
		m.warn(r.Warnings...)
	}
}

// manyRows is how many rows a side make one ask whether each is a run.
const manyRows = 30

// sayOrder says what the rows were taken for, and what their order leaves open.
func (d *Document) sayOrder(sides []Samples, paired bool) {
	for _, s := range sides {
		if s.StepSeconds > 0 {
			d.Sentence += " This holds for these runs only: the rows are moments of one run per side."
			d.say("Rows are %.4g s apart: they are taken as moments of one run, not as repeats. Intervals come from the variation within each run and say nothing of another run.", s.StepSeconds)
			return
		}
	}
	if paired {
		d.say("Rows of one number are taken as measured side by side: what both shared cancels.")
		return
	}
	most := 0
	for _, m := range d.Measures {
		most = max(most, len(m.Baseline.Runs), len(m.Candidate.Runs))
	}
	d.say("Each value is taken as an independent repeat. Points of one run are not: compare the means of runs.")
	if most > manyRows {
		d.say("%d rows of a side are many for repeats. If they are seconds of one run, they are one repeat: with a column of times that is seen.", most)
	}
	d.say("Nothing is known of the order in which the sides were made. When all of one side came first, %s. Mix the order, and say so with --paired when row by row one of each was made.", d.hidden())
}

// hidden says what a drift that does not show could do.
func (d *Document) hidden() string {
	worst, name := 0.0, ""
	for _, m := range d.Measures {
		if m.hidden > worst && !math.IsInf(m.hidden, 1) && !m.Absolute { // of a baseline of zero nothing is a share
			worst, name = m.hidden, m.Name
		}
	}
	if name == "" {
		return "a drift looks like a difference"
	}
	return fmt.Sprintf("a drift too small to show in these repeats can make a difference of up to %.2g %% (%s)",
		100*worst, strings.TrimSpace(name))
}

func (s Samples) column(name string) (Column, bool) {
	i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return s.Columns[i], true
}

func checkSamples(sides []Samples, paired bool) error {
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
	for _, s := range sides[min(1, len(sides)):] {
		for _, c := range s.Columns {
			if b, ok := sides[0].column(c.Name); paired && ok && len(b.Values) != len(c.Values) {
				object("%s: column %q has %d values and the baseline %d: pairs need as many of each", s.Name, c.Name,
					len(c.Values), len(b.Values))
			}
		}
	}
	return errors.Join(errs...)
}
