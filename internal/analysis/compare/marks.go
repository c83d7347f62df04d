package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// Search is a search for a mark as a side of a comparison.
type Search struct {
	Name     string // of the side
	ID       string
	Workload string
	Variable string // of the scenario, that sets the rate; the sides differ in it from probe to probe
	Limits   []string
	Lines    []mark.Line // Condition is "" for a search without conditions
	Scenario string      // the folder of its scenario
	Run      Run         // one of its probes, whose facts are held against those of the others
}

// OfSearches compares the mark of each further search with that of the first, under each condition that both have.
// Unlike sides give a *Refusal and the document of facts alone; other limits or another workload are unlike, too.
func OfSearches(searches []Search, o Options) (*Document, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	var sides []Side
	for _, s := range searches {
		sides = append(sides, Side{Name: s.Name, Runs: []Run{s.WithoutRate()}})
	}
	if err := check(sides); err != nil {
		return nil, err
	}
	if err := withoutMoments(o.At, "searches"); err != nil {
		return nil, err
	}
	d := &Document{Version: FormatVersion, Title: title(sides), Confidence: mark.Confidence, Threshold: o.Threshold,
		Searches: searches}
	for _, s := range searches {
		side := Shown{Name: s.Name, Runs: []string{s.ID}}
		for _, l := range s.Lines {
			side.Probes += len(l.Probes)
			side.Unfinished = side.Unfinished || l.Unfinished
		}
		d.Sides = append(d.Sides, side)
		d.Manifests = append(d.Manifests, s.Run.Manifest)
	}
	for _, f := range []struct {
		name string
		of   func(Search) string
	}{
		{"workload of the mark", func(s Search) string { return s.Workload }},
		{"limits", func(s Search) string { return strings.Join(slices.Sorted(slices.Values(s.Limits)), "; ") }},
		{"unit of the mark", func(s Search) string { return s.Unit() }},
	} {
		fact := Fact{Name: f.name, Varied: slices.Contains(o.Vary, f.name)}
		for _, s := range searches {
			fact.Values = append(fact.Values, f.of(s))
		}
		if fact.Refuses = !fact.Varied; len(slices.Compact(slices.Clone(fact.Values))) > 1 {
			d.Unlike = append(d.Unlike, fact)
		}
	}
	d.Unlike = append(d.Unlike, unlike(sides, o.Vary)...)
	if refusal := refuse(d.Unlike, d.Sides); refusal != nil {
		if !o.Anyway {
			return d, refusal
		}
		d.Marked = "COMPARED ANYWAY: these searches differ in what should be equal: " + refusal.names()
	}
	for _, s := range searches[1:] {
		if err := d.marks(searches[0], s, o.Threshold); err != nil {
			return nil, err
		}
	}
	d.answer("marks")
	if m := d.Measures[0]; len(d.Measures) == 1 && m.Change != nil && m.Adjusted.Valid() {
		d.Sentence += fmt.Sprintf(" The mark is %s instead of %s, %s (%.3g %% interval %s).",
			mark.Say(m.Candidate.Value, m.Unit), mark.Say(m.Baseline.Value, m.Unit), unit.Change(*m.Change),
			100*m.Adjusted.Confidence, unit.Changes(m.Adjusted.Low, m.Adjusted.High))
	}
	var runs []Run
	for _, s := range searches {
		runs = append(runs, s.Run)
	}
	d.Mind = mind(runs)
	for _, s := range d.Sides {
		if s.Unfinished {
			d.Mind = append(d.Mind, fmt.Sprintf("The search %s is unfinished after %s: its mark may change.", s.Name,
				unit.Plural(s.Probes, "probe")))
		}
	}
	return d, nil
}

// Unit is that of its rates.
func (s Search) Unit() string {
	for _, l := range s.Lines {
		if l.Unit != "" {
			return l.Unit
		}
	}
	return "IOPS"
}

// under is the condition of a line: of a search without any it is "alone" where no other workload ran.
func (s Search) under(l mark.Line) string {
	if l.Condition == "" && s.Run.Data != nil && !slices.ContainsFunc(s.Run.Data.Workloads,
		func(w result.Workload) bool { return !w.Prefill && w.Name != s.Workload }) {
		return alone
	}
	return l.Condition
}

// alone is the condition under which no other workload runs.
const alone = "alone"

// WithoutRate is the run of a search without what makes it one of several: the rate that it offered.
func (s Search) WithoutRate() Run {
	r := s.Run
	r.Cell = ""
	r.Manifest.Scenario.Vars = slices.DeleteFunc(slices.Clone(r.Manifest.Scenario.Vars), func(v result.Var) bool {
		return v.Name == s.Variable || v.Name == "runtime_secs"
	})
	r.Manifest.Environment = slices.DeleteFunc(slices.Clone(r.Manifest.Environment), func(f result.Fact) bool {
		return strings.HasPrefix(f.Group+" ", result.LoadGroup) && strings.HasPrefix(f.Name, "rate")
	})
	if r.Data == nil {
		return r
	}
	data := *r.Data
	data.Workloads = slices.Clone(data.Workloads)
	for i := range data.Workloads {
		w := &data.Workloads[i]
		w.Streams = slices.Clone(w.Streams)
		for k := range w.Streams {
			if w.Name == s.Workload {
				w.Streams[k].Rate, w.Streams[k].OpenLoop = 0, false
			}
		}
	}
	r.Data = &data
	return r
}

// marks adds the marks of a candidate.
func (d *Document) marks(base, candidate Search, threshold float64) error {
	found := false
	for _, first := range base.Lines {
		i := slices.IndexFunc(candidate.Lines, func(l mark.Line) bool {
			return candidate.under(l) == base.under(first)
		})
		if i < 0 {
			d.Missing = append(d.Missing, fmt.Sprintf("%s has no line under %q", candidate.Name, first.Condition))
			continue
		}
		found = true
		second := candidate.Lines[i]
		first.Condition, second.Condition = base.Name, candidate.Name
		cost := mark.Costs([]mark.Line{first, second})[0]
		m := Measure{Side: candidate.Name, Cell: candidate.Lines[i].Condition, Workload: base.Workload, Name: "mark",
			Unit: base.Unit(), Direction: string(effect.HigherIsBetter), Scope: BetweenRuns,
			Baseline: Values{Value: math.NaN()}, Candidate: Values{Value: math.NaN()},
			Interval: resample.None(cost.Sentence)}
		if first.Rate != nil && first.Verdict == mark.Found {
			m.Baseline.Value = *first.Rate
		}
		if second.Rate != nil && second.Verdict == mark.Found {
			m.Candidate.Value = *second.Rate
		}
		if cost.Share != nil {
			change := 0 - *cost.Share // and never -0
			m.Change = &change
		}
		switch {
		case cost.Share != nil && cost.Confidence > 0:
			m.Interval = resample.Interval{Low: -*cost.High, High: -*cost.Low, Confidence: cost.Confidence,
				Method: "of the ratio of two marks, from the intervals of both"}
			m.Verdict = m.say(effect.Decide(m.Interval, threshold, effect.HigherIsBetter))
		case cost.Low != nil && *cost.Low > threshold:
			m.Verdict = Worse
		case cost.High != nil && *cost.High < -threshold:
			m.Verdict = Better
		default:
			m.Verdict = Inconclusive
		}
		m.Adjusted = m.Interval
		d.Measures = append(d.Measures, m)
		if !m.Interval.Valid() { // bounds, or why there are none
			d.Notes = append(d.Notes, strings.TrimSpace(m.Cell+" "+cost.Sentence))
		}
	}
	if !found {
		return errors.New("compare: the searches have no condition in common")
	}
	return nil
}
