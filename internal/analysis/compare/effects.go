package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// Design is an experiment as it was planned and how far it came.
type Design struct {
	ID, Title, Summary string
	Factors            []Factor
	Order              string // how the runs were ordered
	Repeats, Planned   int
	Failed             []Unmade
	Made               []Made
}

// Factor is a variable with the values it took; the first is what the others are compared with.
type Factor struct {
	Name   string   `json:"name"`
	Levels []string `json:"levels"`
}

// Made is one run of an experiment.
type Made struct {
	Run
	Levels   []string // of each factor
	Repeat   int      // from 1
	Sequence int      // its place in the order
}

// Unmade is a run of an experiment that did not measure, with the reason.
type Unmade struct {
	Cell, Reason     string
	Levels           []string // of each factor
	Repeat, Sequence int
}

// Experiment is the result of an experiment: what each cell gave, what each factor does, and how sure that is.
type Experiment struct {
	// Home is the address of the experiment's page, where its report is served beside it.
	Home       string         `json:"-"`
	Version    int            `json:"experiment_version"`
	ID         string         `json:"experiment_id"`
	Title      string         `json:"title"`
	Summary    string         `json:"summary,omitempty"`
	Mind       []string       `json:"mind,omitempty"` // what changes the meaning of every number: simulated or scaled runs
	Sentence   string         `json:"sentence"`
	Confidence float64        `json:"confidence"`
	Threshold  float64        `json:"threshold"`
	Factors    []Factor       `json:"factors"`
	Repeats    int            `json:"repeats"`
	Order      string         `json:"order"`
	Planned    int            `json:"planned_runs"`
	Measured   int            `json:"measured_runs"`
	Failed     []string       `json:"failed_runs,omitempty"`
	Effects    []FactorEffect `json:"effects"`
	Cells      []CellResult   `json:"cells"`
	Charts     []Chart        `json:"charts"`
	Said       []Said         `json:"said,omitempty"` // what runs were warned of
	// Best are the combinations that do most; Sweeps are the curves over numeric factors of four values or more.
	Best   []Best  `json:"best,omitempty"`
	Sweeps []Sweep `json:"sweeps,omitempty"`
	// Rated are the lines of a data sheet, where it was made to measure one.
	Rated []Rated `json:"rated,omitempty"`
	// Runs are what each run measured, in the order in which they were made: rows of a table, for other programs.
	Runs []RunValues `json:"-"`
	// Overlays are the runs' courses over time, for drawing; data.json of each run has them.
	Overlays []Overlay `json:"-"`
	// Manifests are those of all runs, which say what names a machine or a user.
	Manifests []result.Manifest `json:"-"`
	// Beside: the page lies beside the folder of the runs, as the experiment's own does, and links to their reports.
	Beside bool `json:"-"`
	// Against are all measures of every cell against the first, percentiles among them.
	Against  []Measure `json:"against_first_cell"`
	Families []Family  `json:"families"`
	Drift    []Order   `json:"order_effects"`
	Notes    []string  `json:"notes"`
	// Mark is the answer of a search, whose probes the cells are; with conditions that under the first of them.
	Mark *mark.Answer `json:"mark,omitempty"`
	// Lines are the answers under each condition, Costs what the others take from the first.
	Lines []mark.Line `json:"lines,omitempty"`
	Costs []mark.Cost `json:"costs,omitempty"`
	// Limits are all that had to hold at every rate.
	Limits []string `json:"limits,omitempty"`
	// Recorded say where the marks stand among those of recorded systems.
	Recorded []string `json:"recorded,omitempty"`
}

// OfSearch makes of an experiment the search that it was: its probes are compared with no first, and what they found is
// the answer.
func (x *Experiment) OfSearch(found mark.Answer, lines []mark.Line, costs []mark.Cost, limits []string) {
	x.Mark, x.Lines, x.Costs, x.Limits, x.Sentence = &found, lines, costs, limits, found.Sentence
	if len(lines) > 0 {
		x.Sentence = fmt.Sprintf("Under %q: %s", lines[0].Condition, found.Sentence)
	}
	for _, c := range costs {
		x.Sentence += " " + c.Sentence
	}
	x.Effects, x.Against, x.Families, x.Drift, x.Best, x.Sweeps = nil, nil, nil, nil, nil, nil
	x.Notes = found.Warnings
	for _, l := range lines[min(1, len(lines)):] {
		for _, w := range l.Warnings {
			x.Notes = append(x.Notes, fmt.Sprintf("under %q: %s", l.Condition, w))
		}
	}
	x.Said = slices.DeleteFunc(x.Said, func(s Said) bool { // probes above the mark are meant to
		return s.Check == "offered-rate" || s.Check == "latency-kind"
	})
	x.Charts = nil
}

// FactorEffect tells what one level of a factor does against the first, averaged over the levels of the other factors.
type FactorEffect struct {
	Factor  string `json:"factor"`
	Level   string `json:"level"`
	Against string `json:"against"`
	Measure
}

// CellResult holds what one combination gave.
type CellResult struct {
	Cell   string      `json:"cell"`
	Levels []string    `json:"levels"`
	Runs   []string    `json:"runs"`
	Values []CellValue `json:"values"`
	Loads  []CellLoad  `json:"loads,omitempty"`
}

// CellValue is a measure of a cell over its repeats. A percentile is read from merged histograms; its interval is from
// leaving out one run at a time.
type CellValue struct {
	Workload string            `json:"workload"`
	Name     string            `json:"name"`
	Unit     string            `json:"unit"`
	Value    float64           `json:"value"`
	Interval resample.Interval `json:"interval"`
	Repeats  []float64         `json:"repeats,omitempty"`
}

// RunValues are what one run of an experiment measured. One that failed has the reason instead, and no identity.
type RunValues struct {
	RunID            string
	Started          time.Time
	Repeat, Sequence int
	Levels           []string // of each factor
	Values           []CellValue
	Failed           string
}

// OfExperiment evaluates an experiment. Runs that are missing are said; cells without a run are left out.
func OfExperiment(d Design, o Options) (*Experiment, error) {
	o, err := o.filled()
	if err == nil && len(d.Made) == 0 {
		err = fmt.Errorf("compare: experiment %s: no run has measured anything", d.ID)
	}
	for _, m := range d.Made {
		if m.Data == nil || len(m.Levels) != len(d.Factors) {
			err = errors.Join(err, fmt.Errorf("compare: experiment %s: run %s: nothing was collected of it, or it is "+
				"not of this experiment", d.ID, m.Manifest.RunID))
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.Made, func(a, b Made) int { return a.Sequence - b.Sequence })
	x := &Experiment{Version: FormatVersion, ID: d.ID, Title: d.Title, Summary: d.Summary, Confidence: o.Confidence,
		Threshold: o.Threshold, Factors: d.Factors,
		Repeats: d.Repeats, Order: d.Order, Planned: d.Planned, Measured: len(d.Made)}
	all := append(d.mixes(), kinds(d.Made, o)...)
	for _, levels := range combinations(d.Factors) {
		if runs := d.at(levels); len(runs) > 0 {
			x.Cells = append(x.Cells, cellResult(labelOf(d.Factors, levels), levels, all, runs, o.Confidence))
		}
	}
	for _, m := range d.Made {
		x.Manifests = append(x.Manifests, m.Manifest)
		x.Runs = append(x.Runs, RunValues{RunID: m.Manifest.RunID, Started: m.Manifest.Created, Repeat: m.Repeat,
			Sequence: m.Sequence, Levels: m.Levels,
			Values: cellResult("", m.Levels, all, []Made{m}, o.Confidence).Values})
	}
	for _, u := range d.Failed {
		x.Failed = append(x.Failed, fmt.Sprintf("%s, repeat %d: %s", u.Cell, u.Repeat, u.Reason))
		x.Runs = append(x.Runs, RunValues{Repeat: u.Repeat, Sequence: u.Sequence, Levels: u.Levels, Failed: u.Reason})
	}
	slices.SortStableFunc(x.Runs, func(a, b RunValues) int { return a.Sequence - b.Sequence })
	x.said(d)
	x.charts(d, all)
	x.best(d, all)
	x.overlays(d, all)
	x.effects(d, all, o)
	x.against(d, o)
	x.drift(d, all, o)
	x.conclude(d)
	return x, nil
}

// combinations of all levels, the last factor turning fastest.
func combinations(factors []Factor) [][]string {
	out := [][]string{nil}
	for _, f := range factors {
		var next [][]string
		for _, c := range out {
			for _, l := range f.Levels {
				next = append(next, append(slices.Clone(c), l))
			}
		}
		out = next
	}
	return out
}

func labelOf(factors []Factor, levels []string) string {
	parts := make([]string, len(factors))
	for i, f := range factors {
		parts[i] = unit.Setting(f.Name, levels[i])
	}
	return strings.Join(parts, ", ")
}

// at are the runs of a combination.
func (d Design) at(levels []string) []Made {
	var out []Made
	for _, m := range d.Made {
		if slices.Equal(m.Levels, levels) {
			out = append(out, m)
		}
	}
	return out
}

// kind is one thing measured of a workload in every run as one number: of an operation, or of a declared measure.
type kind struct {
	workload, op, name, unit string
	direction                effect.Direction
	throughput               bool
	times                    string // which ones, where the kind is a mean of times
	measure                  result.Measure
	value                    func(w result.Workload, o result.OpTotals) float64
}

// kinds lists what the runs measured.
func kinds(runs []Made, o Options) []kind {
	var out []kind
	seen := map[[3]string]bool{}
	first := func(workload, op, measure string) bool {
		key := [3]string{workload, op, measure}
		known := seen[key]
		seen[key] = true
		return !known
	}
	for _, r := range runs {
		for _, w := range merged(r.Data, false) {
			for _, t := range w.Ops {
				if t.Count == 0 || !first(w.Name, t.Op, "") {
					continue
				}
				declared := operationOf(w, t.Op)
				called := calledOf(w, declared)
				if !declared.Set { // how often one of a set was done says nothing
					out = append(out, kind{workload: w.Name, op: t.Op, name: rateName(w, declared),
						unit:       declared.RateUnit(),
						direction:  effect.HigherIsBetter,
						throughput: true, value: func(w result.Workload, o result.OpTotals) float64 {
							return float64(o.Count) / w.Seconds()
						}})
				}
				if sizesMatter(runs, w.Name, t.Op) {
					out = append(out, kind{workload: w.Name, op: t.Op, name: called + " bandwidth", unit: "bytes/s",
						direction: effect.HigherIsBetter,
						value: func(w result.Workload, o result.OpTotals) float64 {
							return float64(o.Bytes) / w.Seconds()
						}})
				}
				if t.Seconds > 0 {
					times := cmp.Or(w.Latency, "service time")
					mean := called + " mean " + times
					if declared.Set {
						times = "" // nor do its percentiles
					}
					out = append(out, kind{workload: w.Name, op: t.Op, name: mean, unit: "s",
						direction: effect.LowerIsBetter, times: times,
						value: func(_ result.Workload, o result.OpTotals) float64 {
							return o.Seconds / float64(o.Count)
						}})
				}
			}
			for _, m := range w.Measures {
				if _, ok := m.Over(w.Values, w.Seconds()); ok && !m.Aside && first(w.Name, "", m.Name) {
					out = append(
						out,
						kind{workload: w.Name, name: m.Name, unit: m.SeriesUnit(), direction: o.directionOf(m),
							measure:    m,
							throughput: m.Kind != result.Single && m.Better == result.Higher},
					)
				}
			}
		}
	}
	return out
}

// sizesMatter reports whether bandwidth says more than the rate: operations are large, or not of one size in all runs.
func sizesMatter(runs []Made, workload, op string) bool {
	const large = 64 << 10
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		for _, w := range merged(r.Data, false) {
			for _, o := range w.Ops {
				if w.Name == workload && o.Op == op && o.Count > 0 {
					size := float64(o.Bytes) / float64(o.Count)
					low, high = min(low, size), max(high, size)
				}
			}
		}
	}
	return low > 0 && (high >= large || high > 1.01*low)
}

// of is the number of a run; NaN when it has none.
func (k kind) of(r Made) float64 {
	for _, w := range merged(r.Data, false) {
		if w.Name != k.workload || !w.End.After(w.Start) {
			continue
		}
		if v, ok := k.measure.Over(w.Values, w.Seconds()); ok && k.op == "" {
			return v
		}
		if o, ok := k.ops(w); ok && k.op != "" {
			return k.value(w, o)
		}
	}
	return math.NaN()
}

func cellResult(name string, levels []string, all []kind, runs []Made, confidence float64) CellResult {
	c := CellResult{Cell: name, Levels: levels}
	plain := make([]Run, len(runs))
	for i, r := range runs {
		c.Runs, plain[i] = append(c.Runs, r.Manifest.RunID), r.Run
	}
	for _, k := range all {
		v := CellValue{Workload: k.workload, Name: k.name, Unit: k.unit}
		for _, r := range runs {
			if x := k.of(r); !math.IsNaN(x) {
				v.Repeats = append(v.Repeats, x)
			}
		}
		if len(v.Repeats) == 0 {
			continue
		}
		v.Value = mean(v.Repeats)
		v.Interval = telling(v.Value, repeatsInterval(v.Repeats, confidence))
		c.Values = append(c.Values, v)
		if k.times == "" {
			continue
		}
		var ops []result.OpTotals
		for _, w := range loads(plain, k.workload).of {
			if o, ok := k.ops(w); ok {
				ops = append(ops, o)
			}
		}
		for _, q := range shownQuantiles {
			if p, in, ok := percentile(ops, q, confidence); ok {
				c.Values = append(c.Values, CellValue{Workload: k.workload, Name: k.percentile(q), Unit: "s", Value: p,
					Interval: telling(p, in)})
			}
		}
	}
	c.Loads = loadsOf(runs)
	return c
}

// shownQuantiles are the percentiles of a cell.
var shownQuantiles = []float64{0.5, 0.99}

// percentile is the name of one of a kind of times.
func (k kind) percentile(q float64) string {
	return fmt.Sprintf("%s p%g %s", strings.TrimSuffix(k.name, " mean "+k.times), q*100, k.times)
}

// telling is an interval that says something of a value: one of two repeats that differ much may reach from nothing to
// days.
func telling(v float64, in resample.Interval) resample.Interval {
	const most = 5
	if in.Valid() && in.High > most*v {
		return resample.None(TooFew)
	}
	return in
}

// TooFew is the reason of an interval that is left out because it says nothing.
const TooFew = "too few repeats: they bound it no closer than five times its value"

// repeatsInterval is Student's t over repeats.
func repeatsInterval(x []float64, confidence float64) resample.Interval {
	n := len(x)
	if n < 2 {
		return resample.None("one run says nothing of what another would give")
	}
	m, half := mean(x), resample.StudentT(confidence, float64(n-1))*stat.StdDev(x, nil)/math.Sqrt(float64(n))
	return resample.Interval{Low: max(m-half, 0), High: m + half, Confidence: confidence,
		Method: fmt.Sprintf("Student's t over %d repeats", n)}
}

// effects are the main effects. Within each repeat a level is compared with the first at every combination of the other
// factors, and the geometric means over those are one pair: what both runs of a repeat share cancels.
func (x *Experiment) effects(d Design, all []kind, o Options) {
	var list []Measure
	for f, factor := range d.Factors {
		for _, level := range factor.Levels[1:] {
			for _, k := range all {
				base, candidate := d.pairs(k, f, factor.Levels[0], level)
				if len(base) == 0 {
					continue
				}
				m := Measure{Workload: k.workload, Name: k.name, Unit: k.unit, Direction: string(k.direction),
					Scope:    BetweenRuns,
					Baseline: Values{mean(base), base}, Candidate: Values{mean(candidate), candidate}}
				m.at = pairedAt(base, candidate, effect.Options{Threshold: o.Threshold, Direction: k.direction})
				if first := m.at(o.Confidence); !math.IsNaN(first.change.Value) {
					m.Change = &first.change.Value
				}
				list = append(list, m)
				x.Effects = append(x.Effects, FactorEffect{Factor: factor.Name, Level: level,
					Against: factor.Levels[0]})
			}
		}
	}
	x.Families = append(x.Families, widen("effects of factors", list, o))
	for i := range x.Effects {
		x.Effects[i].Measure = list[i]
	}
}

func pairedAt(base, candidate []float64, o effect.Options) func(float64) outcome {
	return func(confidence float64) outcome {
		o.Confidence = confidence
		r, err := effect.Paired(base, candidate, o)
		if err != nil {
			return nothing(err.Error())
		}
		return outcome{change: relative(r.Ratio, r.Difference, mean(base)), verdict: r.Verdict}
	}
}

// pairs are the values of two levels of a factor, one per repeat. With a single repeat they are one per combination of
// the other factors, of which the spread then holds interactions as well.
func (d Design) pairs(k kind, factor int, against, level string) (base, candidate []float64) {
	rest := slices.Clone(d.Factors)
	rest[factor].Levels = []string{against}
	type pair struct{ base, candidate []float64 }
	byRepeat := map[int]*pair{}
	var order []int
	for _, levels := range combinations(rest) {
		other := slices.Clone(levels)
		other[factor] = level
		for _, b := range d.at(levels) {
			for _, c := range d.at(other) {
				vb, vc := k.of(b), k.of(c)
				if b.Repeat != c.Repeat || !(vb > 0 && vc > 0) {
					continue
				}
				if byRepeat[b.Repeat] == nil {
					byRepeat[b.Repeat] = &pair{}
					order = append(order, b.Repeat)
				}
				p := byRepeat[b.Repeat]
				p.base, p.candidate = append(p.base, math.Log(vb)), append(p.candidate, math.Log(vc))
			}
		}
	}
	slices.Sort(order)
	for _, r := range order {
		p := byRepeat[r]
		if len(order) == 1 {
			for i := range p.base {
				base, candidate = append(base, math.Exp(p.base[i])), append(candidate, math.Exp(p.candidate[i]))
			}
			break
		}
		base, candidate = append(base, math.Exp(mean(p.base))), append(candidate, math.Exp(mean(p.candidate)))
	}
	return base, candidate
}

// against compares every cell with the first.
func (x *Experiment) against(d Design, o Options) {
	all := combinations(d.Factors)
	base := d.at(all[0])
	if len(base) == 0 {
		return
	}
	var notes Document
	for _, levels := range all[1:] {
		if runs := d.at(levels); len(runs) > 0 {
			p := pairing{side: labelOf(d.Factors, levels), base: runsOf(base), candidate: runsOf(runs), options: o}
			x.Against = append(x.Against, p.workloads(&notes)...)
		}
	}
	x.Families = append(x.Families, widen("measures of cells against the first", x.Against, o))
	x.Notes = append(append(x.Notes, notes.Missing...), askDirections(x.Against)...)
}

func runsOf(made []Made) []Run {
	out := make([]Run, len(made))
	for i, m := range made {
		out[i] = m.Run
	}
	return out
}

// drift looks for a trend along the order of the runs that the cells do not explain.
func (x *Experiment) drift(d Design, all []kind, o Options) {
	index := map[string]int{}
	for i, c := range x.Cells {
		index[c.Cell] = i
	}
	for _, k := range all {
		if !k.throughput {
			continue
		}
		var runs []effect.Run
		for _, m := range d.Made {
			if v := k.of(m); !math.IsNaN(v) {
				runs = append(runs, effect.Run{Group: index[labelOf(d.Factors, m.Levels)], Value: v})
			}
		}
		r, err := effect.Drift(runs, effect.Options{Confidence: o.Confidence})
		if err != nil {
			continue // too few repeats, which the notes say
		}
		e := Order{Name: k.workload + " " + k.name, Interval: r.DriftPerRun.Interval, P: r.P, Confounded: r.Confounded,
			Warnings: r.Warnings}
		if v := r.DriftPerRun.Value; !math.IsNaN(v) {
			e.DriftPerRun = &v
		}
		x.Drift = append(x.Drift, e)
	}
}

func (x *Experiment) conclude(d Design) {
	say := func(format string, args ...any) { x.Notes = append(x.Notes, fmt.Sprintf(format, args...)) }
	decided, matters := 0, 0
	for _, e := range x.Effects {
		if e.Verdict != Inconclusive {
			decided++
		}
		if e.Verdict != Inconclusive && e.Verdict != Same {
			matters++
		}
	}
	x.Mind = mind(runsOf(d.Made))
	if len(d.Factors) == 0 {
		x.Sentence = fmt.Sprintf("%d of %d runs measured, all alike: the intervals say what another run would give.",
			x.Measured, x.Planned)
	} else {
		x.Sentence = fmt.Sprintf("%d of %d runs measured, in %d combinations; %d effects: %d above %.3g %%, %d not, %d inconclusive.",
			x.Measured, x.Planned, len(x.Cells), len(x.Effects), matters, x.Threshold*100, decided-matters,
			len(x.Effects)-decided)
		var all []Measure
		for _, e := range x.Effects {
			all = append(all, e.Measure)
		}
		x.Sentence += mostOf(all, func(i int) string {
			e := x.Effects[i]
			return fmt.Sprintf("%s, not %s: %s", unit.Setting(e.Factor, e.Level), e.Against, all[i].called())
		})
	}
	if x.Measured < x.Planned {
		missing := "1 run is missing"
		if n := x.Planned - x.Measured; n > 1 {
			missing = fmt.Sprintf("%d runs are missing", n)
		}
		say("%s; plimsoll resume %s makes what is left.", missing, x.ID)
	}
	switch {
	case d.Repeats < 2 && len(d.Factors) > 0:
		say(
			"Every combination ran once, so the variation between repeats is not known. Effects are judged by how alike they are over the levels of the other factors.")
	case d.Repeats < 4:
		say("With %d repeats intervals are wide; each further repeat narrows them.", d.Repeats)
	}
	if len(d.Factors) > 1 {
		say("An effect is an average over the levels of the other factors. Where the lines of a chart are not " +
			"parallel, the factors depend on each other: read the combinations instead.")
	}
	for _, f := range x.Families {
		if f.Measures > 1 {
			say("%s", f.sentence(x.Confidence))
		}
	}
	for _, e := range x.Drift {
		if e.P < 0.05 {
			say("%s drifts from run to run (p = %.2g), apart from the combinations; their order was %s, so it adds "+
				"noise and does not favour one.", e.Name, e.P, x.Order)
		}
	}
}
