// Package compare sets runs against runs: two sides or more, each of one run, of repeats, or of an experiment's cells.
// Columns of repeats measured by other tools are compared by the same rules (OfSamples).
//
// It first compares the facts of the sides: kernel, firmware, versions of the load generator, scenario, its variables
// and scales, prefill, content, jobs, working set to memory. Facts that differ and should not are a *Refusal naming
// each with both values, unless the caller declares what was varied on purpose, or insists, which marks the document on
// its first line. Then every workload's rates, mean latencies and percentiles of merged histograms, every measure that
// its engine declares, every result of the scenario and every series are compared: each effect with an interval, the
// intervals widened for their number, the verdict by a threshold of practical significance; with order effects, and
// rates per vCPU and per physical core.
//
// The unit of evidence is the repeat. With one run on a side the interval comes from how that run wandered in its own
// time and says how steady these runs were; the document then claims nothing about what another run would show.
// Percentiles are never averaged.
//
// Pure: no I/O, no clock, random numbers only from a fixed seed.
package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// FormatVersion is the version of the JSON form of a Document.
const FormatVersion = 2

// Run is one run of a side.
type Run struct {
	Manifest result.Manifest
	Data     *result.Data
	Cell     string           // of an experiment: runs are compared within cells of one name; empty outside one
	Findings []result.Finding // of an experiment's run, where they are known
	// Factors are variables of the experiment by which this run was picked: they differ between sides on purpose.
	Factors []string
}

// Side is a set of repeats, or the cells of an experiment with their repeats.
type Side struct {
	Name string
	Runs []Run
}

// Options of a comparison. The zero value asks for 95 %, a threshold of 5 %, and refuses unlike sides.
type Options struct {
	Confidence float64  // 0 means 0.95
	Threshold  float64  // relative difference that matters; 0 means 0.05, negative means none
	Vary       []string // names of facts that differ on purpose
	Anyway     bool     // compare unlike sides all the same, and say so first
	// Better says which way is good of measures of which the engine does not.
	Better map[string]effect.Direction
	Cores  []Cores // of the servers of each side, in order; where it is short or zero, what the runs tell
	Paired bool    // of files: rows of one number were measured side by side
	// At is the moment, by its words, at which courses are laid over each other: the beginning of a stretch or a fault
	// that all runs have; "": the beginning.
	At string
	// Gate: something is let through or held back by the verdicts, so one run a side decides nothing that is not gross.
	Gate bool
}

// DefaultThreshold is the relative difference that matters unless another is given.
const DefaultThreshold = 0.05

func (o Options) filled() (Options, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	switch {
	case o.Threshold == 0:
		o.Threshold = DefaultThreshold
	case o.Threshold < 0:
		o.Threshold = 0
	}
	var errs []error
	if !(o.Confidence > 0.5 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("compare: confidence %v: must lie between 0.5 and 1, as 0.95", o.Confidence))
	}
	if !(o.Threshold < 1) {
		errs = append(errs, fmt.Errorf("compare: threshold %v: must be below 1, as 0.05 for 5 %%", o.Threshold))
	}
	return o, errors.Join(errs...)
}

// Document is a comparison.
type Document struct {
	Version    int      `json:"compare_version"`
	Title      string   `json:"title,omitempty"`  // the scenario, when all sides ran the same
	Marked     string   `json:"marked,omitempty"` // what must be read first: unlike sides were compared anyway
	Mind       []string `json:"mind,omitempty"`   // what changes the meaning of every number: simulated or scaled runs
	Sentence   string   `json:"sentence"`         // the answer
	Verdict    Verdict  `json:"verdict"`          // worse or better if anything is, else same or inconclusive
	Confidence float64  `json:"confidence"`
	Threshold  float64  `json:"threshold"`
	Sides      []Shown  `json:"sides"`
	Unlike     []Fact   `json:"differing_facts"`
	// Measures are rates, latencies and percentiles of workloads and the results of the scenario. Series are means of
	// everything recorded over time, the clearest differences first.
	Measures   []Measure    `json:"measures"`
	Series     []Measure    `json:"series"`
	Families   []Family     `json:"families"`
	Normalised []Normalised `json:"normalised"`
	Order      []Order      `json:"order_effects"`
	Notes      []string     `json:"notes"` // what can be said and what cannot
	Missing    []string     `json:"only_on_one_side,omitempty"`
	// Curves are those of experiments over each other, a line for each side.
	Curves []Chart `json:"curves,omitempty"`
	// Manifests are those of all runs, which say what names a machine or a user.
	Manifests []result.Manifest `json:"-"`
	// Searches are those whose marks are compared, for drawing.
	Searches []Search `json:"-"`
	// Overlays are the runs' courses over time, for drawing; data.json of each run has them.
	Overlays []Overlay `json:"-"`
	// Moments are what they can be aligned at, AlignedAt what they are.
	Moments   []string `json:"-"`
	AlignedAt string   `json:"-"`
	// Here is the page's own address, where it is served, without a moment; Asked is what it was asked, with it.
	Here  string `json:"-"`
	Asked string `json:"-"`
	// Links are where the reports of runs lie as seen from the page, by run.
	Links map[string]string `json:"-"`
}

// Shown is a side as the document names it.
type Shown struct {
	Name    string   `json:"name"`
	Runs    []string `json:"runs"`
	Repeats int      `json:"repeats,omitempty"` // the most values of any column, when the side is a file
	Moments bool     `json:"moments,omitempty"` // they are moments of one run
	Probes  int      `json:"probes,omitempty"`  // of a search for a mark, under all of its conditions
	// Unfinished: probes of that search are left to be made.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Verdict on a measure. Better and worse are said of measures that have a good direction, higher and lower of others.
// Inconclusive is the lack of a finding: the interval holds both a difference that matters and one that does not.
type Verdict string

// The verdicts.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Higher       Verdict = "higher"
	Lower        Verdict = "lower"
	Same         Verdict = "same"
	Inconclusive Verdict = "inconclusive"
)

// Scopes of an interval.
const (
	BetweenRuns = "between runs" // it holds what repeats differ by
	WithinRuns  = "within runs"  // it holds how unsteady one run was, and nothing about another one
)

// Measure is one thing compared between the baseline and one other side.
type Measure struct {
	Side      string `json:"side"` // the one compared with the baseline
	Cell      string `json:"cell,omitempty"`
	Workload  string `json:"workload,omitempty"`
	Name      string `json:"name"`
	Unit      string `json:"unit"`
	Direction string `json:"direction"` // "higher" or "lower" is better, or ""
	Result    bool   `json:"-"`         // a result of the scenario, whose unit alone says which way is good
	Baseline  Values `json:"baseline"`
	Candidate Values `json:"candidate"`
	// Change is the difference over the size of the baseline; absent from a baseline of zero.
	Change *float64 `json:"change"`
	// Absolute: the baseline cannot be told from zero. The intervals are then of the difference, in the unit.
	Absolute bool              `json:"absolute,omitempty"`
	Interval resample.Interval `json:"interval"` // of Change, by itself
	Adjusted resample.Interval `json:"adjusted"` // of Change, widened for the number of measures looked at
	Scope    string            `json:"scope"`
	Verdict  Verdict           `json:"verdict"` // by Adjusted
	Warnings []string          `json:"warnings,omitempty"`

	at     func(confidence float64) outcome
	beyond float64 // of a percentile, how many operations of the smaller side lie beyond it
	hidden float64 // share that a drift which does not show could make
}

// Values are a measure on one side.
type Values struct {
	Value float64   `json:"value"`
	Runs  []float64 `json:"runs,omitempty"` // of each repeat; absent for percentiles, which come from merged counts
}

// MarshalJSON writes null where there is no value, as of a search without a mark.
func (v Values) MarshalJSON() ([]byte, error) {
	type with Values
	if !math.IsNaN(v.Value) {
		return json.Marshal(with(v))
	}
	return []byte(`{"value":null}`), nil
}

// Family is a set of measures whose intervals were widened together.
type Family struct {
	Name       string  `json:"name"`
	Measures   int     `json:"measures"`
	Different  int     `json:"different"`  // intervals that exclude no difference, after widening
	Confidence float64 `json:"confidence"` // of the widened intervals
}

// Normalised is the throughput of a side per processor.
type Normalised struct {
	Side            string   `json:"side"`
	Cell            string   `json:"cell,omitempty"`
	Workload        string   `json:"workload"`
	Of              string   `json:"processors_of,omitempty"` // its VMs, its server's VMs, declared; "" where not known
	Unit            string   `json:"unit"`                    // of the rate
	OpsPerSecond    float64  `json:"ops_per_second"`
	VCPUs           int      `json:"vcpus"`
	VCPU            string   `json:"vcpu_is"` // "a hyper-thread", "a core", "not known"
	PerVCPU         *float64 `json:"per_vcpu,omitempty"`
	PhysicalCores   *float64 `json:"physical_cores,omitempty"`
	PerPhysicalCore *float64 `json:"per_physical_core,omitempty"`
}

// Order tells what the order of the runs did to a rate.
type Order struct {
	Name        string            `json:"name"`
	DriftPerRun *float64          `json:"drift_per_run"` // share of the mean
	Interval    resample.Interval `json:"interval"`
	P           float64           `json:"p"`
	Confounded  float64           `json:"confounded"`
	Warnings    []string          `json:"warnings,omitempty"`
}

// Of compares each further side with the first. Unlike sides give a *Refusal and the document of facts alone.
func Of(sides []Side, o Options) (*Document, error) {
	o, err := o.filled()
	if err = errors.Join(err, check(sides)); err != nil {
		return nil, err
	}
	d := &Document{Version: FormatVersion, Title: title(sides), Confidence: o.Confidence, Threshold: o.Threshold}
	for _, s := range sides {
		shown := Shown{Name: s.Name}
		for _, r := range s.Runs {
			shown.Runs = append(shown.Runs, r.Manifest.RunID)
			d.Manifests = append(d.Manifests, r.Manifest)
		}
		d.Sides = append(d.Sides, shown)
	}
	sides = paired(sides)
	d.Unlike = append(strangers(sides), unlike(sides, o.Vary)...)
	if refusal := refuse(d.Unlike, d.Sides); refusal != nil {
		if !o.Anyway {
			return d, refusal
		}
		d.Marked = "COMPARED ANYWAY: these sides differ in what should be equal, so a difference below need not come " +
			"from what was meant to be tested: " + refusal.names()
	}
	if err := unknownMeasures(sides, o.Better); err != nil {
		return nil, err
	}
	if unknown := unknownVary(sides, o.Vary); len(unknown) > 0 {
		return nil, fmt.Errorf("compare: no fact called %s: the facts are those of runs show --json, and "+
			"\"variable NAME\"", strings.Join(unknown, ", "))
	}
	for _, candidate := range sides[1:] {
		d.measure(sides[0], candidate, o)
	}
	d.Families = []Family{widen("measures of workloads and results", d.Measures, o), widen("series", d.Series, o)}
	d.Notes = append(d.Notes, askDirections(d.Measures)...)
	slices.SortStableFunc(d.Series, byClearness)
	d.normalise(sides, o.Cores)
	d.order(sides, o)
	d.conclude(sides, o)
	d.overlays(sides, o)
	return d, d.align(sides, o.At)
}

// title is the scenario that all sides ran, "" when they did not.
func title(sides []Side) string {
	first := sides[0].Runs[0].Manifest.Scenario
	for _, s := range sides {
		for _, r := range s.Runs {
			if r.Manifest.Scenario.Name != first.Name {
				return ""
			}
		}
	}
	return cmp.Or(first.DisplayName, first.Name)
}

func check(sides []Side) error {
	var errs []error
	if len(sides) < 2 {
		errs = append(errs, errors.New("compare: two sides are needed"))
	}
	names := map[string]bool{}
	for _, s := range sides {
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("compare: two sides are called %q", s.Name))
		}
		names[s.Name] = true
		if len(s.Runs) == 0 {
			errs = append(errs, fmt.Errorf("compare: %s: no runs", s.Name))
		}
		for _, r := range s.Runs {
			if r.Data == nil {
				errs = append(errs, fmt.Errorf("compare: %s: run %s: nothing was collected of it", s.Name,
					r.Manifest.RunID))
			}
		}
	}
	return errors.Join(errs...)
}

// cells lists the cells that both sides have, in the baseline's order.
func cells(a, b Side) []string {
	var both []string
	for _, r := range a.Runs {
		if !slices.Contains(both, r.Cell) && slices.ContainsFunc(b.Runs, func(o Run) bool { return o.Cell == r.Cell }) {
			both = append(both, r.Cell)
		}
	}
	return both
}

// in are the runs of a cell.
func (s Side) in(cell string) []Run {
	var out []Run
	for _, r := range s.Runs {
		if r.Cell == cell {
			out = append(out, r)
		}
	}
	return out
}

// measure adds the measures of a candidate.
func (d *Document) measure(base, candidate Side, o Options) {
	common := cells(base, candidate)
	if len(common) == 0 {
		d.Missing = append(d.Missing, fmt.Sprintf("%s has no cell that %s has", candidate.Name, base.Name))
	}
	for _, cell := range common {
		p := pairing{side: candidate.Name, cell: cell, base: base.in(cell), candidate: candidate.in(cell), options: o}
		d.Measures = append(d.Measures, p.workloads(d)...)
		d.Measures = append(d.Measures, p.panels()...)
		d.Series = append(d.Series, p.series()...)
	}
}

// outcome is a measure at one confidence.
type outcome struct {
	change  effect.Estimate // candidate ÷ baseline − 1
	verdict effect.Verdict
	warning string
}

// widen controls the share of false discoveries: of the R intervals that exclude no difference among m, each is read at
// confidence 1 − R·α/m (Benjamini and Yekutieli 2005, false coverage-statement rate). R is found as Benjamini and
// Hochberg's step-up does, from R = m downwards.
func widen(name string, list []Measure, o Options) Family {
	f := Family{Name: name, Measures: len(list), Confidence: o.Confidence}
	if len(list) == 0 {
		return f
	}
	alpha := 1 - o.Confidence
	selected := len(list) // of which the intervals exclude no difference
	for selected > 0 {
		n := 0
		for i := range list {
			if excludesZero(list[i].at(1 - alpha*float64(selected)/float64(len(list))).change.Interval) {
				n++
			}
		}
		if n >= selected {
			break
		}
		selected = n
	}
	f.Different = selected
	f.Confidence = 1 - alpha*float64(max(selected, 1))/float64(len(list))
	for i := range list {
		m := &list[i]
		plain, wide := m.at(o.Confidence), m.at(f.Confidence)
		m.Interval, m.Adjusted = plain.change.Interval, wide.change.Interval
		m.Verdict = m.say(wide.verdict)
		m.warn(wide.warning)
		m.gross()
		if o.Gate {
			m.oneEach()
		}
	}
	return f
}

func excludesZero(i resample.Interval) bool { return i.Valid() && (i.Low > 0 || i.High < 0) }

// say puts a verdict of effect, which knows directions only, into words for a measure.
func (m *Measure) say(v effect.Verdict) Verdict {
	if m.Direction == "" && v == effect.Better {
		return Higher
	}
	if m.Direction == "" && v == effect.Worse {
		return Lower
	}
	return Verdict(v)
}

// byClearness puts the measures first whose interval is furthest from no difference, and inconclusive ones last.
func byClearness(a, b Measure) int {
	clearness := func(m Measure) float64 {
		switch i := m.Adjusted; {
		case !i.Valid():
			return -1
		case i.Low > 0:
			return i.Low
		case i.High < 0:
			return -i.High
		}
		return 0
	}
	switch x, y := clearness(a), clearness(b); {
	case x > y:
		return -1
	case x < y:
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}
