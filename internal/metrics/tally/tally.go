// Package tally turns the reports of load generators into states that can be added, subtracted and interpolated: what a
// job has done so far, as one vector of counters by declared operation and measure, with its histograms.
//
// The recorder of a run (package record) and the later collector (package collect) share it, so that both
// understand a report in one way: a Level counts as its value times the seconds it held, beside the seconds of which no
// report told it (its mean is over the others), a Single not at all, latency that a tool tells only at its end belongs
// to no part of the job. It refuses reports that do not fit what the job declared (Fits), knows no clock and no folder.
package tally

import (
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// Layout says what a vector of totals holds: errors; operations, bytes and seconds of every operation; then what can
// be added up of every measure, and the seconds for which each was not told.
type Layout struct {
	Operations []result.Operation
	Measures   []result.Measure
}

// Operation is where an operation is, -1 for nowhere.
func (l Layout) Operation(name string) int {
	return slices.IndexFunc(l.Operations, func(o result.Operation) bool { return o.Name == name })
}

// Of is where a measure is, -1 for nowhere.
func (l Layout) Of(measure string) int {
	return slices.IndexFunc(l.Measures, func(m result.Measure) bool { return m.Name == measure })
}

// With is the layout that holds a job's, too. The first declaration of a name stands.
func (l Layout) With(operations []result.Operation, measures []result.Measure) Layout {
	for _, o := range operations {
		if l.Operation(o.Name) < 0 {
			l.Operations = append(l.Operations, o)
		}
	}
	for _, m := range measures {
		if l.Of(m.Name) < 0 {
			l.Measures = append(l.Measures, m)
		}
	}
	return l
}

func (l Layout) width() int { return 1 + perOperation*len(l.Operations) + 2*len(l.Measures) }

// Totals are cumulative counters in a layout's order, in float64 because ticks interpolate. A Level is held times
// seconds, which adds up; a Single as 0, since it does not.
type Totals []float64

const perOperation = 3

func (l Layout) Zero() Totals { return make(Totals, l.width()) }

// Done are the operations of all kinds together.
func (l Layout) Done(t Totals) (n float64) {
	for i := range l.Operations {
		n += t.Ops(i)
	}
	return n
}

// Busy are the seconds of all of them.
func (l Layout) Busy(t Totals) (s float64) {
	for i := range l.Operations {
		s += t.Seconds(i)
	}
	return s
}

func (t Totals) Errors() float64                 { return t[0] }
func (t Totals) Ops(op int) float64              { return t[1+perOperation*op] }
func (t Totals) Bytes(op int) float64            { return t[2+perOperation*op] }
func (t Totals) Seconds(op int) float64          { return t[3+perOperation*op] }
func (l Layout) Measure(t Totals, k int) float64 { return t[1+perOperation*len(l.Operations)+k] }

// Untold are the seconds for which no report told a Level.
func (l Layout) Untold(t Totals, k int) float64 { return l.Measure(t, len(l.Measures)+k) }

func (t Totals) Set(op int, c *workload.Counters) {
	t[1+perOperation*op], t[2+perOperation*op], t[3+perOperation*op] = float64(c.Ops), float64(c.Bytes), c.Seconds
}

func (t Totals) setSeconds(op int, v float64) { t[3+perOperation*op] = v }

func (t Totals) Add(o Totals) {
	for i, v := range o {
		t[i] += v
	}
}

// AddPart adds a fraction of what happened between two states, nil for the zero.
func (t Totals) AddPart(from, to Totals, f float64) {
	for i := range t {
		before := 0.0
		if from != nil {
			before = from[i]
		}
		t[i] += f * (to[i] - before)
	}
}

// Minus returns what happened from o to t.
func (t Totals) Minus(o Totals) Totals {
	out := slices.Clone(t)
	for i, v := range o {
		out[i] -= v
	}
	return out
}

// Round makes what is counted in whole units whole.
func (t Totals) Round(l Layout) {
	t[0] = math.Round(t[0])
	for op := range l.Operations {
		for i := 1 + perOperation*op; i < perOperation+perOperation*op; i++ { // not the seconds
			t[i] = math.Round(t[i])
		}
	}
}

// SetMix makes t the state at fraction f of the way from a to b.
func (t Totals) SetMix(a, b Totals, f float64) {
	for i := range t {
		t[i] = a[i] + f*(b[i]-a[i])
	}
}

// Mark is the state of a job at a moment.
type Mark struct {
	At     time.Time
	Totals Totals
	Hists  []*hist.Histogram // by operation; nil when there are none
	// values are the measures as reported, in the order of the job.
	Values []float64
}

// Plus is the mark with something more done; the histograms given may be kept.
func (m Mark) Plus(did Totals, hists []*hist.Histogram) Mark {
	if m.Totals == nil {
		return Mark{At: m.At, Totals: did, Hists: hists}
	}
	m.Totals.Add(did)
	if len(m.Hists) < len(hists) {
		m.Hists = make([]*hist.Histogram, len(hists))
	}
	for i, h := range hists {
		m.Hists[i] = Merged(m.Hists[i], h)
	}
	return m
}

// HistsOf are the histograms of a report, nil when it has none.
func HistsOf(c workload.Counts) []*hist.Histogram {
	if !slices.ContainsFunc(c, func(one workload.Counters) bool { return one.Hist != nil }) {
		return nil
	}
	out := make([]*hist.Histogram, len(c))
	for i := range c {
		out[i] = c[i].Hist
	}
	return out
}

// Meter turns the reports of one job into totals of a layout.
type Meter struct {
	Layout  Layout
	ops     []int // where the job's operations are in the layout
	Values  []int // the same of its measures
	Kinds   []result.Kind
	sums    []float64 // of its measures
	untold  []float64 // seconds
	mute    []bool    // by operation of the job: some were done, and how long they took was not said
	elapsed time.Duration
	array   []float64 // in which reuse puts vectors together
	free    []float64
	made    int  // vectors since the last reuse
	placed  bool // the layout has all that the job declared
}

// NewMeter takes a job's declaration into a layout that has at least its operations and measures.
func NewMeter(l Layout, operations []result.Operation, measures []result.Measure) *Meter {
	m := &Meter{Layout: l, sums: make([]float64, len(measures)), untold: make([]float64, len(measures)),
		mute: make([]bool, len(operations))}
	for _, o := range operations {
		m.ops = append(m.ops, l.Operation(o.Name))
	}
	for _, v := range measures {
		m.Values = append(m.Values, l.Of(v.Name))
		m.Kinds = append(m.Kinds, v.Kind)
	}
	m.placed = !slices.Contains(m.ops, -1) && !slices.Contains(m.Values, -1)
	return m
}

// Vector is a zero, made many at once.
func (m *Meter) Vector() Totals {
	const many = 64
	w := m.Layout.width()
	if len(m.free) < w {
		m.free = make([]float64, many*w)
	}
	v := m.free[:w:w]
	m.free = m.free[w:]
	clear(v)
	m.made++
	return v
}

// Reuse moves the vectors of the marks still needed, which are in the order they were made, to the beginning of an
// array; all others are given up.
func (m *Meter) Reuse(needed []Mark) {
	w := m.Layout.width()
	to := m.array
	if m.made*w > len(to) {
		to = make([]float64, m.made*w)
	}
	m.array, m.made = to, len(needed)
	for i := range needed {
		copy(to[:w], needed[i].Totals)
		needed[i].Totals, to = to[:w:w], to[w:]
	}
	m.free = to
}

// Counts is the state that some counters say.
func (m *Meter) Counts(t time.Time, c workload.Counts) Mark {
	k := Mark{At: t, Totals: m.Vector()}
	if hists := HistsOf(c); hists != nil {
		k.Hists = make([]*hist.Histogram, len(m.Layout.Operations))
		for i := range hists {
			k.Hists[m.ops[i]] = hists[i]
		}
	}
	for i := range c {
		k.Totals.Set(m.ops[i], &c[i])
	}
	return k
}

// Report is the state at a report, which came after the mark at since. Reports come in order: a Level holds for the
// time since the one before, by the tool's clock where it has one. Latency that a tool tells at its end only is of the
// job as a whole, so that no part of the job has it; see whole.
func (m *Meter) Report(since, t time.Time, r workload.Report) Mark {
	held := r.Elapsed - m.elapsed
	if r.Final && r.Elapsed == 0 {
		held = t.Sub(since)
	}
	k := m.Counts(t, r.Ops)
	k.Totals[0], k.Values = float64(r.Errors), r.Values
	for i, c := range r.Ops {
		if m.mute[i] = m.mute[i] || c.Ops > 0 && c.Seconds == 0; m.mute[i] {
			k.Totals.setSeconds(m.ops[i], 0)
		}
	}
	for i, v := range r.Values {
		at := 1 + perOperation*len(m.Layout.Operations) + m.Values[i]
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			if m.Kinds[i] == result.Level {
				m.untold[i] += max(0, held.Seconds())
			}
		case m.Kinds[i] == result.Single:
		case m.Kinds[i] == result.Level:
			m.sums[i] += v * max(0, held.Seconds())
		default:
			m.sums[i] = v
		}
		k.Totals[at], k.Totals[at+len(m.Layout.Measures)] = m.sums[i], m.untold[i]
	}
	m.elapsed = r.Elapsed
	return k
}

// Whole is a state with the latency of the job as a whole, which its last report tells.
func (m *Meter) Whole(k Mark, last workload.Counts) Mark {
	k.Totals = slices.Clone(k.Totals)
	for i, c := range last {
		k.Totals.setSeconds(m.ops[i], c.Seconds)
	}
	return k
}

// Fits reports whether a report has what the job declared; a damaged folder's may not.
func (m *Meter) Fits(r workload.Report) bool {
	return m.placed && len(r.Ops) == len(m.ops) && len(r.Values) == len(m.Values) &&
		!slices.ContainsFunc(r.Sections, func(s workload.Counts) bool { return len(s) != len(m.ops) })
}

// Untimed is when a report of a tool without a clock was made: as long after the start of the job as it says, or at the
// end when it is the last and says nothing. end is the end of the job or, while it goes on, now; zero when not known.
func Untimed(r workload.Report, start, end time.Time) time.Time {
	at := start.Add(r.Elapsed)
	if end.IsZero() || (r.Elapsed > 0 || !r.Final) && !at.After(end) {
		return at
	}
	return Later(start, end)
}

func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func Merged(a, b *hist.Histogram) *hist.Histogram {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := a.Clone()
	sum.Merge(b)
	return sum
}

func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
