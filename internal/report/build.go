package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// Build reads an opened run folder and makes its document. What the folder cannot give is listed in the document's
// Problems; only an unreadable manifest, which Open refuses, prevents a report.
func Build(folder *result.Folder) (*Document, error) { return build(folder, nil, nil) }

// Collected are documents of a run folder that were read already.
type Collected struct {
	Data     *result.Data
	Findings []result.Finding
}

// BuildOf is Build with what was read already; nil reads it.
func BuildOf(folder *result.Folder, read *Collected) (*Document, error) {
	return build(folder, nil, read)
}

// BuildSoFar makes the document of a run that goes on, with data made of what there is so far (collect.SoFar).
func BuildSoFar(folder *result.Folder, soFar *result.Data) (*Document, error) {
	return build(folder, soFar, nil)
}

func build(folder *result.Folder, soFar *result.Data, read *Collected) (*Document, error) {
	in := Input{Manifest: folder.Manifest()}
	problem := func(err error) {
		if err != nil {
			in.Problems = append(in.Problems, err.Error())
		}
	}
	var err error
	in.Labels, err = result.ReadLabels(folder.Dir())
	problem(err)
	damaged := false
	if in.Data = soFar; soFar == nil {
		if read != nil {
			in.Data, in.Findings = read.Data, read.Findings
		} else {
			in.Data, err = folder.Data()
			problem(err)
			damaged = err != nil && !errors.Is(err, fs.ErrNotExist)
			in.Findings, err = folder.Findings()
			problem(err)
		}
		sums := folder.VerifySums()
		damaged = damaged || len(sums) > 0
		in.Problems = append(sums, in.Problems...)
	}
	var skipped []string
	in.Events, skipped, err = folder.Events()
	problem(err)
	if in.Manifest.Target != result.ImportTarget { // nobody planned what others measured
		in.Plan, err = folder.Plan()
		problem(err)
	}
	in.Problems = slices.Concat(folder.Problems(), in.Problems, skipped)
	doc := New(in)
	if damaged && len(doc.InShort) > 0 {
		doc.InShort[0].Severity = result.Warning
		doc.InShort[0].Sentence = "Not to be relied on, since files of this run are damaged: " + doc.InShort[0].Sentence
	}
	if soFar == nil && in.Data != nil && !damaged {
		doc.setBeside(folder, in.Data)
	}
	return doc, nil
}

// New makes the document. It changes nothing it is given.
func New(in Input) *Document {
	m := in.Manifest
	doc := &Document{
		Version: FormatVersion, Title: m.Scenario.DisplayName, Summary: m.Scenario.Summary,
		Description: sanitise(m.Scenario.Description),
		Scaled:      scaled(m), Simulated: simulated(m), Unfinished: unfinished(m), Start: m.Created, End: m.Ended,
		InShort: InShort(in.Findings), Asserts: assertions(in.Findings), Findings: in.Findings,
		Plan: in.Plan, Journal: in.Events,
		Problems: in.Problems,
		Verdicts: []Verdict{
			{"Run", m.Measured}, {"Collection", m.Collected}, {"Cleanup", m.Cleaned},
		},
	}
	m.Scenario.Description = ""
	doc.Manifest = m
	if !in.Labels.Empty() {
		doc.Labels = &in.Labels
	}
	if doc.Title == "" {
		doc.Title = m.Scenario.Name
	}
	if doc.Title == "" {
		doc.Title = m.RunID
	}
	d := in.Data
	if d == nil {
		return doc
	}
	if !d.Start.IsZero() {
		doc.Start, doc.End = d.Start, d.End
	}
	doc.Phases, doc.Marks, doc.VMs = d.Phases, d.Events, d.VMs
	doc.Preconditioned, doc.Written = d.Preconditioned, d.Written
	doc.Series = cleanSeries(d.Series)
	for _, p := range d.Panels {
		p.Series = cleanSeries(p.Series)
		p.Bands = slices.DeleteFunc(slices.Clone(p.Bands), func(b result.Band) bool {
			return !finite(b.Lower) || !finite(b.Upper)
		})
		p.Metrics = slices.DeleteFunc(slices.Clone(p.Metrics), func(m result.Metric) bool { return !finite(m.Value) })
		if p.Expected != nil && !finite(*p.Expected) {
			p.Expected = nil
		}
		doc.Panels = append(doc.Panels, p)
	}
	merged := mergedOf(d.Workloads)
	for _, w := range d.Workloads {
		doc.add(w, merged)
		doc.readBack(w)
	}
	doc.InShort = doc.inShort()
	return doc
}

// readBack notes of a workload of a simulated run that it would have held the storage to what was acknowledged.
func (doc *Document) readBack(w result.Workload) {
	verifies := slices.ContainsFunc(w.Streams, func(l result.Stream) bool { return l.Verifies }) ||
		slices.ContainsFunc(w.Measures, func(m result.Measure) bool { return m.Name == "lost" && m.Unit == "blocks" })
	if doc.Manifest.Simulated && verifies {
		var n uint64
		for _, o := range w.Ops {
			n += o.Count
		}
		doc.unread = fmt.Sprintf("whether any of the %s reads of %s met a lost write is not known, since a simulated cluster "+
			"reads nothing back", plain(float64(n)), w.Name)
	}
}

// mergedKey is a workload, or what prefilled for it.
type mergedKey struct {
	name    string
	prefill bool
}

// mergedOf are those workloads that have an entry for all of their VMs.
func mergedOf(all []result.Workload) map[mergedKey]bool {
	out := map[mergedKey]bool{}
	for i := range all {
		if w := &all[i]; w.Merged() {
			out[mergedKey{w.Name, w.Prefill}] = true
		}
	}
	return out
}

// add takes a workload into the tables. Latency tables and comparisons show merged entries, and single VMs only
// where there is no merged entry.
func (doc *Document) add(w result.Workload, merged map[mergedKey]bool) {
	judged := w.Judged()
	length := judged.Seconds()
	whole := totalsOf(judged, cmp.Or(w.Part(), "whole time"), judged.Start, length, judged.Ops, judged.Values)
	doc.Workloads = append(doc.Workloads, WorkloadSummary{
		Name: w.Name, VM: w.VM, Group: w.Group, Node: w.Node, Engine: w.Engine, Tool: w.Tool, Server: w.Server,
		Phase: w.Phase, Prefill: w.Prefill, Start: w.Start, End: w.End,
		Ended: w.Ended, Message: w.Message, Errors: w.Errors, Streams: cleanStreams(w.Streams),
		FailuresUnknown:     w.FailuresUnknown,
		Again:               w.Again,
		GeneratorCPUSeconds: number(w.GeneratorCPUSeconds), Notes: w.Notes, Totals: whole,
	})
	if w.Prefill || !w.Merged() && merged[mergedKey{w.Name, w.Prefill}] {
		return
	}
	name := w.Name
	if !w.Merged() {
		name += " on " + w.VM
	}
	table := Latency{Workload: name, Kind: latencyKind(w), Error: hist.RelativeError, Windows: []WindowTotals{whole},
		distributed: w.Distributed()}
	if part := w.Part(); part != "" {
		from := w.End.Sub(w.Start).Seconds()
		table.Note = fmt.Sprintf("%s: figures are of the %s %s, out of %s from its first start to its last end.", name,
			duration(length), part, duration(from))
		if w.Staggered {
			table.Windows = append(table.Windows,
				totalsOf(w, "from first start to last end", w.Start, from, w.Ops, w.Values))
		}
	}
	if w.Apart {
		table.Note = strings.TrimSpace(
			table.Note + fmt.Sprintf(
				" The VMs of %s never all ran at the same time: figures are of a changing number of them.", name),
		)
	}
	for _, win := range w.Windows {
		table.Windows = append(table.Windows, totalsOf(w, win.Name, win.Start, win.Seconds(), win.Ops, win.Values))
	}
	for _, s := range judged.Sections {
		table.Sections = append(table.Sections, totalsOf(w, s.Name, judged.Start, length, s.Ops, nil))
	}
	doc.Latencies = append(doc.Latencies, table)
	var compared []WindowTotals
	for _, win := range w.Comparable() {
		compared = append(compared, totalsOf(w, win.Name, win.Start, win.Seconds(), win.Ops, win.Values))
	}
	if len(compared) > 1 {
		doc.Comparisons = append(doc.Comparisons, Comparison{Workload: name, Latency: latencyKind(w),
			Windows: compared})
	}
	if h := w.Heat; h != nil && len(h.Counts) > 0 && len(h.EdgesNs) > 1 && h.Step > 0 {
		doc.Heat = append(doc.Heat, Heat{Workload: name, Kind: latencyKind(w), Map: h})
	}
}

func latencyKind(w result.Workload) string {
	if w.Latency == "" {
		return "service time"
	}
	return w.Latency
}

// A load that did not finish, or of which operations failed, has a rate from so many seconds on, or so many operations
// or bytes: one that failed at its start did nothing often, it only ended soon.
const (
	leastRated = 1
	manyRated  = 1000
	muchRated  = 1 << 20
)

// Rate is how often an operation occurred; nil where that says nothing.
func (r OpRow) Rate() *float64 {
	if r.NoRate {
		return nil
	}
	return &r.OpsPerSecond
}

// Rate is that of all operations; nil where the rate of one says nothing.
func (w WindowTotals) Rate() *float64 {
	if slices.ContainsFunc(w.Rows, func(r OpRow) bool { return r.NoRate }) {
		return nil
	}
	return &w.OpsPerSecond
}

// totalsOf sums a stretch of a workload up. Little work in less than a second has no rate unless it finished well, and
// measures are counts; nor has an operation that is one of a set, which is done once and over: its time is all that
// there is to know.
func totalsOf(
	w result.Workload,
	name string,
	start time.Time,
	seconds float64,
	ops []result.OpTotals,
	values []result.Value,
) WindowTotals {
	t := WindowTotals{Name: name, Start: start, Seconds: max(0, seconds), Unit: result.RateUnit(w.Occurred())}
	short := t.Seconds > 0 && t.Seconds < leastRated && (w.Ended != result.Finished || w.Errors > 0)
	for _, o := range ops {
		short = short && o.Count < manyRated && o.Bytes < muchRated
	}
	for _, o := range ops {
		declared, known := w.Operation(o.Op)
		row := OpRow{Op: o.Op, Count: o.Count, Unit: "operations/s"}
		if known {
			row.Unit = declared.RateUnit()
		}
		if t.Seconds > 0 {
			row.OpsPerSecond = float64(o.Count) / t.Seconds
		}
		row.NoRate = short || declared.Set
		if t.Seconds > 0 && declared.Bytes && !short {
			bytes := float64(o.Bytes) / t.Seconds
			row.BytesPerSecond = &bytes
			sum := bytes
			if t.BytesPerSecond != nil {
				sum += *t.BytesPerSecond
			}
			t.BytesPerSecond = &sum
		}
		if mean := o.Seconds / float64(o.Count); o.Count > 0 && o.Seconds > 0 && finite(mean) {
			row.Mean = &mean
		}
		if o.Hist != nil && o.Hist.Count() > 0 {
			row.P50, row.P90, row.P99, row.P999 = percentile(o.Hist, 0.5), percentile(o.Hist, 0.9), percentile(o.Hist,
				0.99), percentile(o.Hist, 0.999)
			longest := float64(o.Hist.Max()) / 1e9
			row.Max, row.Saturated = &longest, o.Hist.Saturated()
		}
		t.OpsPerSecond += row.OpsPerSecond
		t.Rows = append(t.Rows, row)
	}
	// A set of operations is told by the figures that are declared first: its times, where it has no rate of its own.
	sets := len(w.Operations) > 0 &&
		!slices.ContainsFunc(w.Operations, func(o result.Operation) bool { return !o.Set }) &&
		!slices.ContainsFunc(w.Measures, func(m result.Measure) bool { return m.Better == result.Higher })
	for i, m := range w.Measures {
		over, in := t.Seconds, m.SeriesUnit()
		if short && m.Kind == result.Count {
			over, in = 1, m.Unit
		}
		if v, ok := m.Over(values, over); ok && finite(v) {
			wanted := m.Better == result.Higher && !m.Aside || sets && i < 2
			t.Measures = append(t.Measures, MeasureRow{Name: m.Name, Value: v, Unit: in, wanted: wanted})
		}
	}
	t.markFew()
	return t
}

// percentile is in seconds; nil where too few operations lie beyond it.
func percentile(h *hist.Histogram, q float64) *float64 {
	v, ok := h.Percentile(q)
	if !ok {
		return nil
	}
	s := float64(v) / 1e9
	return &s
}

// scaled is the report's first line when the run was not at full time and size.
func scaled(m result.Manifest) string {
	t, s := m.TimeScale, m.SizeScale
	one := func(v float64) bool { return v == 1 || v == 0 }
	if one(t) && one(s) {
		return ""
	}
	show := func(v float64) string {
		if v == 0 {
			v = 1
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprintf("Scaled: time ×%s, sizes ×%s. Rates and depths are as written; a scaled run shows the shape "+
		"of a result, not its size.", show(t), show(s))
}

// simulated is the report's first line when the numbers come from a model.
func simulated(m result.Manifest) string {
	if !m.Simulated {
		return ""
	}
	return "Simulated: time is virtual and every number comes from a model. It says nothing about any real storage."
}

// Mind lists what changes the meaning of every number of a run, in the order of its weight; empty for most runs.
func Mind(m result.Manifest) []string {
	return slices.DeleteFunc([]string{simulated(m), scaled(m), unfinished(m)}, func(s string) bool { return s == "" })
}

// unfinished says how a run that did not succeed came to an end.
func unfinished(m result.Manifest) string {
	s := map[string]string{
		result.StatusExecuting:   "This run is still going on; this is what there was of it so far.",
		result.StatusStopped:     "This run was stopped before its end.",
		result.StatusInterrupted: "This run was interrupted: its process died before its end.",
		result.StatusFailed:      "This run failed.",
	}[m.Status]
	if m.Error != "" {
		s = strings.TrimSpace(s + " Error: " + m.Error)
	}
	return s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number is v, or 0 where v is none.
func number(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return v
}

// cleanSeries turns values that are no numbers into gaps and drops series without a grid.
func cleanSeries(in []result.Series) []result.Series {
	out := make([]result.Series, 0, len(in))
	for _, s := range in {
		if !(s.Step > 0) || !finite(s.Step) {
			continue
		}
		if slices.ContainsFunc(s.Values, func(v *float64) bool { return v != nil && !finite(*v) }) {
			s.Values = slices.Clone(s.Values)
			for i, v := range s.Values {
				if v != nil && !finite(*v) {
					s.Values[i] = nil
				}
			}
		}
		out = append(out, s)
	}
	return out
}

func cleanStreams(in []result.Stream) []result.Stream {
	out := slices.Clone(in)
	for i := range out {
		out[i].Rate, out[i].Submitting = number(out[i].Rate), number(out[i].Submitting)
	}
	return out
}
