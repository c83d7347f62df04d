package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// pairing is a candidate compared with the baseline within one cell.
type pairing struct {
	side, cell      string
	base, candidate []Run
	options         Options
}

// single reports whether each side has one run only, so that nothing is known of what runs differ by. One against
// several is held against what those differ by.
func (p pairing) single() bool { return max(len(p.base), len(p.candidate)) < 2 }

// quantiles compared, where enough operations lie beyond them.
var quantiles = []float64{0.5, 0.9, 0.99, 0.999}

// load is one workload in every run of a side.
type load struct {
	runs []Run
	of   []result.Workload
}

func loads(runs []Run, name string) load {
	var l load
	for _, r := range runs {
		for _, w := range merged(r.Data, false) {
			if w.Name == name {
				l.runs, l.of = append(l.runs, r), append(l.of, w)
			}
		}
	}
	return l
}

func (p pairing) workloads(d *Document) []Measure {
	var names []string
	for _, side := range [][]Run{p.base, p.candidate} {
		for _, r := range side {
			for _, w := range merged(r.Data, false) {
				if !slices.Contains(names, w.Name) {
					names = append(names, w.Name)
				}
			}
		}
	}
	var out []Measure
	for _, name := range names {
		b, c := loads(p.base, name), loads(p.candidate, name)
		if len(b.of) < len(p.base) || len(c.of) < len(p.candidate) {
			d.Missing = append(d.Missing, fmt.Sprintf("workload %s%s is in %d of %d runs of the baseline and in %d "+
				"of %d of %s",
				name, label(p.cell), len(b.of), len(p.base), len(c.of), len(p.candidate), p.side))
		}
		if len(b.of) == 0 || len(c.of) == 0 {
			continue
		}
		operations, measures, unlike := countedBy(b, c)
		for _, o := range operations {
			out = append(out, p.operation(name, o, b, c)...)
		}
		for _, m := range measures {
			if one, ok := p.declared(name, m, b, c); ok {
				out = append(out, one)
			}
		}
		for _, what := range unlike {
			d.Missing = append(d.Missing, fmt.Sprintf("%s of workload %s%s is not the same thing in all runs", what,
				name,
				label(p.cell)))
		}
	}
	return out
}

func label(cell string) string {
	if cell == "" {
		return ""
	}
	return " (" + cell + ")"
}

// ops returns the totals of one operation in every run, false when one of them has none.
func (l load) ops(op string) ([]result.OpTotals, bool) {
	var out []result.OpTotals
	for _, w := range l.of {
		i := slices.IndexFunc(w.Ops, func(o result.OpTotals) bool { return o.Op == op && o.Count > 0 })
		if i < 0 {
			return nil, false
		}
		out = append(out, w.Ops[i])
	}
	return out, true
}

// operation are the measures of one kind of operation of a workload.
func (p pairing) operation(name string, declared result.Operation, b, c load) []Measure {
	op, called := declared.Name, calledOf(b.of[0], declared)
	bo, bok := b.ops(op)
	co, cok := c.ops(op)
	if !bok || !cok {
		return nil
	}
	kind := "service time"
	if k := b.of[0].Latency; k != "" {
		kind = k
	}
	perSecond := func(l load, ops []result.OpTotals, of func(result.OpTotals) float64) []float64 {
		out := make([]float64, len(ops))
		for i, o := range ops {
			if s := l.of[i].Seconds(); s > 0 {
				out[i] = of(o) / s
			}
		}
		return out
	}
	count := func(o result.OpTotals) float64 { return float64(o.Count) }
	size := func(o result.OpTotals) float64 { return float64(o.Bytes) }
	var out []Measure
	add := func(what, unit string, direction effect.Direction, bv, cv []float64,
		part func(result.Workload, Run) ratioSeries) {
		m := Measure{Side: p.side, Cell: p.cell, Workload: name, Name: what, Unit: unit, Direction: string(direction)}
		p.values(&m, bv, cv, b.runs, c.runs,
			func() ([]ratioSeries, []ratioSeries) { return seriesOf(b, part), seriesOf(c, part) })
		out = append(out, m)
	}
	rate := func(w result.Workload, r Run) ratioSeries { return rateSeries(w, r, op, result.Rate) }
	if !declared.Set { // how often one of a set was done says nothing
		add(rateName(b.of[0], declared), declared.RateUnit(), effect.HigherIsBetter, perSecond(b, bo, count),
			perSecond(c, co, count), rate)
	}
	if bb, cb := perSecond(b, bo, size), perSecond(c, co, size); bo[0].Bytes > 0 && bo[0].Bytes/bo[0].Count >= 64<<10 {
		add(called+" bandwidth", "bytes/s", effect.HigherIsBetter, bb, cb, rate)
	}
	if timed(bo) && timed(co) {
		mean := func(l load, ops []result.OpTotals) []float64 {
			out := make([]float64, len(ops))
			for i, o := range ops {
				out[i] = o.Seconds / float64(o.Count)
			}
			return out
		}
		add(called+" mean "+kind, "s", effect.LowerIsBetter, mean(b, bo), mean(c, co), func(w result.Workload,
			r Run) ratioSeries {
			return latencySeries(w, r, op)
		})
	}
	if declared.Set {
		return out
	}
	return append(out, p.percentiles(name, called, kind, b, c, bo, co)...)
}

func timed(ops []result.OpTotals) bool {
	return !slices.ContainsFunc(ops, func(o result.OpTotals) bool { return !(o.Seconds > 0) })
}

// values fills a measure from one number per run, with the runs and the courses they had.
func (p pairing) values(m *Measure, b, c []float64, br, cr []Run, courses func() (b, c []ratioSeries)) {
	m.numbers(b, c)
	if !p.single() {
		m.repeats(p.options.Threshold, orderOf(br, cr))
		return
	}
	m.Scope = WithinRuns
	if allZero(b) && allZero(c) {
		m.at = zeros
		return
	}
	bs, cs := courses()
	var wb, wc within
	if len(bs) == 1 && len(cs) == 1 {
		wb, wc = both(bs[0], cs[0])
	} else {
		wb, wc = joined(bs), joined(cs)
	}
	if wb.reason == "" && wc.reason == "" {
		m.warn(wb.warning, wc.warning)
	}
	o := effect.Options{Threshold: p.options.Threshold, Direction: effect.Direction(m.Direction)}
	m.at = func(confidence float64) outcome {
		return difference(wb, wc, m.Baseline.Value, m.Candidate.Value, confidence, o)
	}
}

// orderOf is the place in time of each run among those of both sides, the baseline's first.
func orderOf(b, c []Run) []int {
	all := slices.Concat(b, c)
	index := make([]int, len(all))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(i, j int) int { return inTime(all[i], all[j]) })
	out := make([]int, len(all))
	for place, i := range index {
		out[i] = place
		if place > 0 && inTime(all[index[place-1]], all[i]) == 0 {
			out[i] = out[index[place-1]] // two windows of one run
		}
	}
	return out
}

// inTime orders runs by when they were made. Simulated runs all begin at one moment, and are numbered.
func inTime(a, b Run) int {
	x, y := a.Manifest, b.Manifest
	return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.RunID, y.RunID))
}

// warn adds what is not empty and was not said before.
func (m *Measure) warn(warnings ...string) {
	for _, w := range warnings {
		if w != "" && !slices.Contains(m.Warnings, w) {
			m.Warnings = append(m.Warnings, w)
		}
	}
}

// numbers sets the values of both sides and their change, which from zero there is none of.
func (m *Measure) numbers(b, c []float64) {
	m.Baseline, m.Candidate = Values{mean(b), b}, Values{mean(c), c}
	if base := m.Baseline.Value; base != 0 {
		change := (m.Candidate.Value - base) / math.Abs(base)
		m.Change = &change
	}
}

func zeros(float64) outcome {
	return outcome{
		change:  effect.Estimate{Value: math.NaN(), Interval: resample.None("zero on both sides")},
		verdict: effect.Same,
	}
}

// repeats judges a measure by what its repeats differ by. The order is their place in time, nil where only that within
// the sides is known.
func (m *Measure) repeats(threshold float64, order []int) {
	m.Scope = BetweenRuns
	b, c := m.Baseline.Runs, m.Candidate.Runs
	if allZero(b) && allZero(c) && effect.Direction(m.Direction) == effect.HigherIsBetter {
		m.at = func(float64) outcome { return nothing("zero on both sides: nothing was done, or nothing was counted") }
		return
	}
	if min(len(b), len(c)) > 1 && allZero(b) && allZero(c) {
		m.at = zeros
		return
	}
	o := effect.Options{Threshold: threshold, Direction: effect.Direction(m.Direction), Order: order}
	first, err := effect.Compare(b, c, o)
	if err != nil {
		m.at = func(float64) outcome { return nothing(err.Error()) }
		return
	}
	m.Warnings, m.hidden, m.Absolute = first.Warnings, first.Sequence.Hidden, first.Absolute
	if m.Absolute {
		m.Change = nil
	}
	m.at = func(confidence float64) outcome {
		o.Confidence = confidence
		r, err := effect.Compare(b, c, o)
		if err != nil {
			return nothing(err.Error())
		}
		if r.Absolute {
			return outcome{change: r.Difference, verdict: r.Verdict, warning: r.Unsure}
		}
		return outcome{change: r.Change, verdict: r.Verdict, warning: r.Unsure}
	}
}

// relative is a ratio as a change; without a ratio the difference as a share of the baseline.
func relative(ratio, difference effect.Estimate, baseline float64) effect.Estimate {
	if ratio.Interval.Valid() || baseline == 0 {
		return effect.Estimate{Value: ratio.Value - 1, Interval: ratio.Interval.Map(func(v float64) float64 {
			return v - 1
		})}
	}
	size := math.Abs(baseline)
	return effect.Estimate{Value: difference.Value / size, Interval: difference.Interval.Map(func(v float64) float64 {
		return v / size
	})}
}

func nothing(reason string) outcome {
	return outcome{
		change:  effect.Estimate{Value: math.NaN(), Interval: resample.None(reason)},
		verdict: effect.Inconclusive,
	}
}

func allZero(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// percentiles come from the merged histograms of each side.
func (p pairing) percentiles(name, called, kind string, b, c load, bo, co []result.OpTotals) []Measure {
	bh, ch := histograms(bo), histograms(co)
	if len(bh) < len(bo) || len(ch) < len(co) {
		return nil
	}
	var least uint64 = math.MaxUint64
	for _, side := range [][]*hist.Histogram{bh, ch} {
		var n uint64
		for _, h := range side {
			n += h.Count()
		}
		least = min(least, n)
	}
	var out []Measure
	for _, q := range quantiles {
		if least < hist.Fewest(q) {
			break
		}
		m := Measure{Side: p.side, Cell: p.cell, Workload: name, Unit: "s", Name: fmt.Sprintf("%s p%s %s", called,
			strconv.FormatFloat(q*100, 'f', -1, 64), kind),
			Direction: string(effect.LowerIsBetter), Scope: BetweenRuns}
		o := effect.Options{Threshold: p.options.Threshold}
		m.beyond = float64(least) * (1 - q)
		m.warnOfFew()
		if !p.single() && min(len(bh), len(ch)) == 1 {
			m.oneMore(q, bh, ch, p.options.Threshold)
			out = append(out, m)
			continue
		}
		at, reason := p.atQuantile(&m, q, b, c, bo, co)
		first, err := at(o)
		if err != nil {
			continue
		}
		m.at = func(confidence float64) outcome {
			if reason != "" {
				return nothing(reason)
			}
			o.Confidence = confidence
			r, err := at(o)
			if err != nil {
				return nothing(err.Error())
			}
			return outcome{change: relative(r.Ratio, r.Difference, r.Baseline.Value), verdict: r.Verdict}
		}
		m.Baseline.Value, m.Candidate.Value = first.Baseline.Value/1e9, first.Candidate.Value/1e9
		if change := first.Ratio.Value - 1; !math.IsNaN(change) {
			m.Change = &change
		}
		if reason == "" {
			m.warn(first.Warnings...)
		}
		out = append(out, m)
	}
	return out
}

// oneMore judges a percentile of one run against those of several: where that of a further one of them is expected.
func (m *Measure) oneMore(q float64, b, c []*hist.Histogram, threshold float64) {
	of := func(runs []*hist.Histogram) (each []float64, all float64) {
		merged := &hist.Histogram{}
		for _, h := range runs {
			merged.Merge(h)
			v, _ := h.Quantile(q)
			each = append(each, float64(v)/1e9)
		}
		v, _ := merged.Quantile(q)
		return each, float64(v) / 1e9
	}
	bv, ball := of(b)
	cv, call := of(c)
	m.numbers(bv, cv)
	m.repeats(threshold, nil)
	m.Baseline, m.Candidate = Values{Value: ball}, Values{Value: call} // percentiles of runs are shown of none
	if ball > 0 {
		change := call/ball - 1
		m.Change = &change
	}
}

// atQuantile is how a percentile is compared: between runs, or within them where a side has one only. The reason is why
// there is then no interval.
func (p pairing) atQuantile(m *Measure, q float64, b, c load, bo,
	co []result.OpTotals) (at func(effect.Options) (effect.QuantileComparison, error), reason string) {
	if !p.single() {
		return func(o effect.Options) (effect.QuantileComparison, error) {
			r, err := effect.Histograms(histograms(bo), histograms(co), []float64{q}, o)
			if err != nil {
				return effect.QuantileComparison{}, err
			}
			return r[0], nil
		}, ""
	}
	m.Scope = WithinRuns
	sides, reason, warnings := sidesOf(b, c, bo, co, q)
	m.warn(warnings...)
	return func(o effect.Options) (effect.QuantileComparison, error) {
		return effect.Within(sides[0], sides[1], q, o)
	}, reason
}

func histograms(ops []result.OpTotals) []*hist.Histogram {
	var out []*hist.Histogram
	for _, o := range ops {
		if o.Hist != nil && o.Hist.Count() > 0 {
			out = append(out, o.Hist)
		}
	}
	return out
}

// panels are the results of the scenario: means over the run phase of those that are one series in every run.
func (p pairing) panels() []Measure {
	var out []Measure
	for _, panel := range p.base[0].Data.Panels {
		b, bs, ok := panelOf(p.base, panel.Name)
		c, cs, okc := panelOf(p.candidate, panel.Name)
		if !ok || !okc {
			continue
		}
		title := panel.Title
		if title == "" {
			title = panel.Name
		}
		m := Measure{Side: p.side, Cell: p.cell, Result: true, Name: "result: " + title, Unit: panel.Unit,
			Direction: string(direction(panel.Name+" "+title, panel.Unit, p.base[0].Data, p.options))}
		p.values(&m, b, c, p.base, p.candidate, func() ([]ratioSeries, []ratioSeries) { return bs, cs })
		out = append(out, m)
	}
	return out
}

func panelOf(runs []Run, name string) (means []float64, points []ratioSeries, ok bool) {
	for _, r := range runs {
		i := slices.IndexFunc(r.Data.Panels, func(p result.Panel) bool { return p.Name == name && len(p.Series) == 1 })
		if i < 0 {
			return nil, nil, false
		}
		s := plainSeries(ofItsWorkloads(r.Data.Panels[i].Series[0], r.Data), r.Data)
		if len(s.value) == 0 {
			return nil, nil, false
		}
		means, points = append(means, mean(s.value)), append(points, s)
	}
	return means, points, true
}

// ofItsWorkloads leaves out of a rate, a bandwidth or a latency of a VM group what lies before the first start of the
// group's workloads and after their last end: those zeros are of no workload.
func ofItsWorkloads(s result.Series, d *result.Data) result.Series {
	if s.Group == "" || !slices.Contains([]string{"ops/s", "bytes/s", "us"}, s.Unit) {
		return s
	}
	from, to := d.WorkloadsOf(s.Group)
	if from.IsZero() {
		return s
	}
	s.Values = slices.Clone(s.Values)
	for i := range s.Values {
		if at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second))); at.Before(from) ||
			at.After(to) {
			s.Values[i] = nil
		}
	}
	return s
}

// series compares everything recorded over time by its mean. Percentiles of intervals are left out: they must not be
// averaged.
func (p pairing) series() []Measure {
	index := func(runs []Run) []map[string]result.Series {
		out := make([]map[string]result.Series, len(runs))
		for i, r := range runs {
			out[i] = map[string]result.Series{}
			for _, s := range r.Data.Series {
				out[i][seriesName(s, r.Manifest)] = s
			}
		}
		return out
	}
	bi, ci := index(p.base), index(p.candidate)
	var out []Measure
	for _, s := range p.base[0].Data.Series {
		name := seriesName(s, p.base[0].Manifest)
		own := measuresOf(s, p.base[0].Data)
		figure := slices.ContainsFunc(own, func(m result.Measure) bool { return m.Kind == result.Single })
		// sections are parts of what their workload's measures hold
		if figure || isPercentile(s.Measure) || underneath(s.Measure) || s.Section != "" {
			continue
		}
		collect := func(runs []Run, of []map[string]result.Series) (means []float64, points []ratioSeries) {
			for i, r := range runs {
				if s, ok := of[i][name]; ok {
					if v := plainSeries(s, r.Data); len(v.value) > 0 {
						means, points = append(means, mean(v.value)), append(points, v)
					}
				}
			}
			return means, points
		}
		b, bs := collect(p.base, bi)
		c, cs := collect(p.candidate, ci)
		if len(b) < len(p.base) || len(c) < len(p.candidate) {
			continue
		}
		m := Measure{Side: p.side, Cell: p.cell, Workload: s.Workload, Name: name, Unit: s.Unit,
			Direction: string(direction(s.Metric(), s.Unit, p.base[0].Data, p.options))}
		if len(own) > 0 {
			m.Direction = string(p.options.directionOf(own...))
		}
		p.values(&m, b, c, p.base, p.candidate, func() ([]ratioSeries, []ratioSeries) { return bs, cs })
		out = append(out, m)
	}
	return out
}

// underneath reports whether a series is of the machine below the VMs, which counts what everybody on it does.
func underneath(measure string) bool {
	return slices.Contains(result.MachineMeasures, measure)
}

func isPercentile(measure string) bool {
	return slices.Contains([]string{result.LatencyP50, result.LatencyP99, result.LatencyP999}, measure)
}

// seriesName names a series without the identity of its run, which is part of VM names.
func seriesName(s result.Series, m result.Manifest) string {
	who := s.VM
	if who == "" {
		who = s.Name
	}
	if id := strconv.FormatInt(m.Scenario.ID, 10); m.Scenario.ID != 0 {
		who = strings.TrimPrefix(who, "__curie_test_"+id+"_")
	}
	parts := []string{s.Metric()}
	for _, part := range []string{who, s.Workload} {
		if part != "" && part != s.Metric() {
			parts = append(parts, part)
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// plainSeries are the points of a series within the run phase.
func plainSeries(s result.Series, d *result.Data) ratioSeries {
	var out ratioSeries
	var times []int64
	for i, v := range s.Values {
		at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
		if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) && !at.Before(d.Start) && !at.After(d.End) {
			out.value, times = append(out.value, *v), append(times, at.UnixMilli())
		}
	}
	out.cuts = cutsOf(times, windowStarts(d.Workloads))
	return out
}
