// Package assert judges a run by the conditions that its scenario's author set.
//
// Judge turns every condition into a finding of the check "assert": in order when it holds, a caution when it does not
// or when it cannot be judged, which fails it too. It reads the same data as the other checks; PromQL is answered by a
// function its caller gives, so that the package itself needs no metrics database.
//
// A percentile has an interval, and so has a rate or a mean whose course over time is known. Where it holds the limit,
// the verdict is inconclusive: the run's own value is on one side, and another run could come out on the other. Such a
// condition still fails when the value is outside, and else holds.
//
// Pure but for that function: no I/O, no clock, no randomness.
package assert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/kit/nearest"
	"plimsoll/result"
	"plimsoll/unit"
)

// Check is the name of the findings.
const Check = result.AssertCheck

// Query answers a PromQL query at the end of the run.
type Query func(promql string) ([]float64, error)

// Failed reports whether a finding is a condition that did not hold.
func Failed(f result.Finding) bool { return f.Check == Check && f.Severity != result.Passed }

// The verdicts on a condition.
const (
	Met          = "met"
	NotMet       = "not met"
	Inconclusive = "inconclusive"
	NotJudged    = "not judged" // nothing of the run says it, and the run fails by it
)

// Verdict returns what a finding of this check says of its condition.
func Verdict(f result.Finding) string {
	switch {
	case f.Low != nil && f.High != nil && f.Limit != nil && *f.Low <= *f.Limit && *f.Limit <= *f.High:
		return Inconclusive
	case Failed(f) && f.N == 0:
		return NotJudged
	case Failed(f):
		return NotMet
	}
	return Met
}

// Judge returns a finding per condition, in their order. findings are those of the other checks.
func Judge(asserts []result.Assert, d *result.Data, findings []result.Finding, query Query) []result.Finding {
	var out []result.Finding
	for _, a := range asserts {
		f := result.Finding{Check: Check, Subject: a.Name, Severity: result.Passed, N: 1,
			NoInterval: "the condition is about this run's own value", Basis: "the condition of the scenario's author"}
		if a.Finding != "" {
			judgeFinding(&f, a, findings)
		} else {
			judgeValue(&f, a, d, query)
		}
		if a.Description != "" {
			f.Sentence += " (" + strings.TrimSuffix(a.Description, ".") + ")"
		}
		f.Sentence += "."
		out = append(out, f)
	}
	return out
}

// weight orders severities; the worst has the least.
var weight = map[result.Severity]int{result.Invalid: 0, result.Warning: 1, result.Info: 2, result.Passed: 3}

func judgeFinding(f *result.Finding, a result.Assert, findings []result.Finding) {
	f.Metric, f.Unit, f.Basis = "findings", "count", "the findings of check "+a.Finding
	limit := weight[a.Severity]
	looked, bad := 0, []string{}
	for _, other := range findings {
		if other.Check != a.Finding {
			continue
		}
		looked++
		if weight[other.Severity] <= limit {
			bad = append(bad, other.Sentence)
		}
	}
	n, zero := float64(len(bad)), 0.0
	f.Value, f.Limit, f.N = &n, &zero, looked
	switch {
	case looked == 0:
		f.Value = nil
		fail(f, "Assert %q cannot be judged: the run has no finding of check %q", a.Name, a.Finding)
	case len(bad) > 0:
		fail(f, "Assert %q does not hold: check %s has a finding of severity %s or worse: %s", a.Name, a.Finding,
			a.Severity, strings.TrimSuffix(bad[0], "."))
	default:
		f.Sentence = fmt.Sprintf("Assert %q holds: check %s has no finding of severity %s or worse", a.Name, a.Finding,
			a.Severity)
	}
}

func fail(f *result.Finding, format string, args ...any) {
	f.Severity = result.Warning
	f.Sentence = fmt.Sprintf(format, args...)
}

// judgeValue compares every value of the subject with the limits; the one furthest outside is told.
func judgeValue(f *result.Finding, a result.Assert, d *result.Data, query Query) {
	s, err := values(a, d, query)
	f.Metric, f.Unit = s.what, s.unit
	if err == nil && len(s.values) == 0 {
		err = fmt.Errorf("%s has no value", s.what)
	}
	if err != nil {
		f.N = 0
		fail(f, "Assert %q cannot be judged: %v", a.Name, err)
		return
	}
	f.N = len(s.values)
	worst, excess := s.values[0], math.Inf(-1)
	for _, v := range s.values {
		e := math.Inf(-1)
		if a.AtLeast != nil {
			e = *a.AtLeast - v
		}
		if a.AtMost != nil {
			e = max(e, v-*a.AtMost)
		}
		if math.IsNaN(v) {
			e = math.Inf(1)
		}
		if e > excess {
			worst, excess = v, e
		}
	}
	f.Value, f.Limit = finite(worst), cmp.Or(a.AtMost, a.AtLeast)
	if a.AtLeast != nil && a.AtMost != nil && worst < *a.AtLeast {
		f.Limit = a.AtLeast
	}
	if s.high > s.low && len(s.values) == 1 {
		f.Low, f.High, f.Confidence, f.NoInterval = &s.low, &s.high, confidence, ""
	}
	holds := "holds"
	if excess > 0 {
		holds, f.Severity = "does not hold", result.Warning
	}
	f.Sentence = fmt.Sprintf("Assert %q %s: %s is %s, and must be %s", a.Name, holds, s.what, text(worst, s.unit),
		limits(a, s.unit))
	if Verdict(*f) == Inconclusive {
		f.Sentence += fmt.Sprintf("; inconclusive, since its 95 %% interval is %s to %s: another run could come out "+
			"otherwise", text(s.low, s.unit), text(s.high, s.unit))
	}
}

// confidence is that of intervals.
const confidence = 0.95

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func limits(a result.Assert, unit string) string {
	var parts []string
	if a.AtLeast != nil {
		parts = append(parts, "at least "+text(*a.AtLeast, unit))
	}
	if a.AtMost != nil {
		parts = append(parts, "at most "+text(*a.AtMost, unit))
	}
	return strings.Join(parts, " and ")
}

func text(v float64, of string) string {
	switch of {
	case "s", "us":
		if of == "us" {
			v /= 1e6
		}
		if math.Abs(v) < 9e9 {
			return unit.Duration(math.Round(v * 1e9)).String()
		}
	case "ops/s":
		return unit.Rate(v).String()
	case "bytes/s":
		return unit.Bandwidth(v).String()
	case "", "count":
		of = ""
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 6, 64) + " " + of)
}

// Value is the value of the workload or result that a condition is about, with its unit ("s" of latencies), the worst
// where there are several.
func Value(a result.Assert, d *result.Data) (v float64, unit string, err error) {
	s, err := values(a, d, nil)
	if err != nil || len(s.values) == 0 {
		return 0, s.unit, cmp.Or(err, fmt.Errorf("%s has no value", s.what))
	}
	if a.AtLeast != nil {
		return slices.Min(s.values), s.unit, nil
	}
	return slices.Max(s.values), s.unit, nil
}

// subject names what a condition is about.
type subject struct {
	what, unit string
	values     []float64
	low, high  float64 // the interval of the last of the values; equal where there is none
}

func values(a result.Assert, d *result.Data, query Query) (subject, error) {
	switch {
	case a.Query != "":
		s := subject{what: "the query's answer"}
		if query == nil {
			return s, fmt.Errorf("the run's metrics cannot be read")
		}
		v, err := query(a.Query)
		s.values = v
		return s, err
	case d == nil:
		return subject{what: "it"}, fmt.Errorf("nothing was collected")
	case a.Result != "":
		return ofResult(a, d)
	}
	return ofWorkload(a, d)
}

// ofResult is the statistic of each series of a result in the run phase.
func ofResult(a result.Assert, d *result.Data) (subject, error) {
	s := subject{what: fmt.Sprintf("the %s of result %q", a.Statistic, a.Result)}
	i := slices.IndexFunc(d.Panels, func(p result.Panel) bool { return p.Name == a.Result })
	if i < 0 {
		return s, fmt.Errorf("result %q was not collected", a.Result)
	}
	p := d.Panels[i]
	if s.unit = p.Unit; p.Problem != "" {
		return s, fmt.Errorf("result %q has no data: %s", a.Result, p.Problem)
	}
	for _, series := range p.Series {
		var points []float64
		for j, v := range series.Values {
			at := series.Start.Add(time.Duration(float64(j) * series.Step * float64(time.Second)))
			if v != nil && !at.Before(d.Start) && !at.After(d.End) {
				points = append(points, *v)
			}
		}
		if len(points) > 0 {
			s.values = append(s.values, statistic(a.Statistic, points))
		}
	}
	return s, nil
}

func statistic(name string, points []float64) float64 {
	switch name {
	case "min":
		return slices.Min(points)
	case "max":
		return slices.Max(points)
	case "last":
		return points[len(points)-1]
	case "median":
		return resample.Median(points)
	}
	sum := 0.0
	for _, v := range points {
		sum += v
	}
	return sum / float64(len(points))
}

// ofWorkload is a measure of every start of a workload, over all its VMs.
func ofWorkload(a result.Assert, d *result.Data) (subject, error) {
	which := a.Operation + " "
	if a.Operation == "all" {
		which = ""
	}
	s := subject{what: fmt.Sprintf("%s%s of workload %q", which, a.Measure, a.Workload)}
	if m, ok := declared(a, d); ok && m.Kind == result.Single {
		return figures(a, m, d, s)
	}
	for _, w := range d.Workloads {
		alone := !w.Merged() &&
			!slices.ContainsFunc(d.Workloads, func(o result.Workload) bool { return o.Name == w.Name && o.VM != w.VM })
		if w.Name != a.Workload || w.Prefill || !w.Merged() && !alone {
			continue
		}
		v, unit, err := measure(w, a)
		if s.unit = unit; err != nil {
			return s, err
		}
		s.values = append(s.values, v)
		if s.low, s.high = within(w, a); s.low == s.high {
			s.low, s.high = overTime(d, a, v)
		}
	}
	if len(s.values) == 0 {
		return s, fmt.Errorf("workload %q did not run", a.Workload)
	}
	return s, nil
}

// declared is the measure of an assert as the engine of its workload declares it.
func declared(a result.Assert, d *result.Data) (result.Measure, bool) {
	for _, w := range d.Workloads {
		if w.Name != a.Workload || w.Prefill {
			continue
		}
		if i := slices.IndexFunc(w.Measures, func(m result.Measure) bool { return m.Name == a.Measure }); i >= 0 {
			return w.Measures[i], true
		}
	}
	return result.Measure{}, false
}

// figures are those of a tool's own, machine by machine: they are combined with nothing.
func figures(a result.Assert, m result.Measure, d *result.Data, s subject) (subject, error) {
	s.unit = m.Unit
	single := slices.ContainsFunc(d.Workloads, func(w result.Workload) bool {
		return w.Name == a.Workload && !w.Prefill && !w.Merged()
	})
	for _, w := range d.Workloads {
		if w.Name != a.Workload || w.Prefill || w.Merged() == single {
			continue
		}
		v, unit, err := measure(w, a)
		if s.unit = unit; err != nil {
			return s, err
		}
		s.values = append(s.values, v)
	}
	return s, nil
}

// meant says of a name that is not declared which there are.
func meant(name string, known []string) string {
	if like := nearest.Of(name, known); like != "" {
		return fmt.Sprintf("did you mean %q", like)
	}
	return "it has " + strings.Join(known, ", ")
}

// within is the interval of a percentile; its ends are equal where there is none.
func within(w result.Workload, a result.Assert) (low, high float64) {
	q, err := strconv.ParseFloat(strings.TrimPrefix(a.Measure, "p"), 64)
	if err != nil || a.Measure[0] != 'p' {
		return 0, 0
	}
	if _, low, high, ok := view.Quantile(times(w.Judged(), a.Operation), q/100); ok {
		return low, high
	}
	return 0, 0
}

// times are those of an operation of a workload, or of all.
func times(w result.Workload, operation string) *hist.Histogram {
	all := &hist.Histogram{}
	for _, o := range w.Ops {
		if o.Hist != nil && (operation == "all" || o.Op == operation) {
			all.Merge(o.Hist)
		}
	}
	return all
}

func measure(w result.Workload, a result.Assert) (v float64, unit string, err error) {
	if what, name, known := a.Unknown(w.Operations, w.Measures); what != "" {
		return 0, "", fmt.Errorf("the generator of workload %q has no %s %q: %s", w.Name, what, name,
			meant(name, known))
	}
	w = w.Judged()
	length := w.Seconds()
	if i := slices.IndexFunc(w.Measures, func(m result.Measure) bool { return m.Name == a.Measure }); i >= 0 {
		return ofDeclared(w, w.Measures[i], a, length)
	}
	var count, bytes uint64
	var seconds float64
	all := times(w, a.Operation)
	for _, o := range w.Ops {
		if a.Operation == "all" || o.Op == a.Operation {
			count, bytes, seconds = count+o.Count, bytes+o.Bytes, seconds+o.Seconds
		}
	}
	switch a.Measure {
	case "errors":
		return float64(w.Errors), "count", nil
	case "operations", "bandwidth":
		if length <= 0 {
			return 0, "", fmt.Errorf("workload %q has no length of time", w.Name)
		}
		moved := slices.ContainsFunc(w.Operations, func(o result.Operation) bool {
			return o.Bytes && (a.Operation == "all" || o.Name == a.Operation)
		})
		if a.Measure == "bandwidth" && !moved {
			return 0, "bytes/s", fmt.Errorf("the generator of workload %q counts no bytes of it", w.Name)
		}
		if a.Measure == "bandwidth" {
			return float64(bytes) / length, "bytes/s", nil
		}
		if o, ok := w.Operation(a.Operation); ok {
			return float64(count) / length, o.RateUnit(), nil
		}
		if len(w.Operations) == 0 {
			return 0, "", fmt.Errorf("the generator of workload %q counts no operations", w.Name)
		}
		return float64(count) / length, result.RateUnit(w.Occurred()), nil
	}
	if count == 0 || a.Measure != "mean" && all.Count() == 0 {
		return 0, "s", fmt.Errorf("workload %q has no %s with a latency", w.Name,
			strings.TrimPrefix(a.Operation+" operation", "all "))
	}
	switch a.Measure {
	case "mean":
		return seconds / float64(count), "s", nil
	case "max":
		return float64(all.Max()) / 1e9, "s", nil
	}
	q, err := strconv.ParseFloat(strings.TrimPrefix(a.Measure, "p"), 64)
	if err != nil {
		return 0, "s", fmt.Errorf("no measure %q", a.Measure)
	}
	ns, ok := all.Percentile(q / 100)
	if !ok {
		return 0, "s", fmt.Errorf("workload %q has %d operations, too few for %s", w.Name, all.Count(), a.Measure)
	}
	return float64(ns) / 1e9, "s", nil
}

// ofDeclared is a declared measure of a workload, a Count per second.
func ofDeclared(w result.Workload, m result.Measure, a result.Assert, seconds float64) (float64, string, error) {
	if a.Operation != "all" && a.Operation != "" {
		return 0, "", fmt.Errorf("measure %q is of the whole workload: leave out operation", m.Name)
	}
	v, ok := m.Over(w.Values, seconds)
	if !ok {
		return 0, m.SeriesUnit(), fmt.Errorf("workload %q reported no %s", w.Name, m.Name)
	}
	if of, isTime := unit.Seconds[m.Unit]; isTime && m.Kind == result.Single && result.Timed(m.Name) {
		return v * of, "s", nil // as limits on what is called so are
	}
	return v, m.SeriesUnit(), nil
}
