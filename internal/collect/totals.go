package collect

import (
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/workload"
	"plimsoll/result"
)

// layout is what a vector of totals holds: errors; operations, bytes and seconds of every operation; then what can be
// added up of every measure.
type layout struct {
	operations []result.Operation
	measures   []result.Measure
}

// operation is where an operation is, -1 for nowhere.
func (l layout) operation(name string) int {
	return slices.IndexFunc(l.operations, func(o result.Operation) bool { return o.Name == name })
}

// of is where a measure is, -1 for nowhere.
func (l layout) of(measure string) int {
	return slices.IndexFunc(l.measures, func(m result.Measure) bool { return m.Name == measure })
}

// with is the layout that holds a job's, too. The first declaration of a name stands.
func (l layout) with(operations []result.Operation, measures []result.Measure) layout {
	for _, o := range operations {
		if l.operation(o.Name) < 0 {
			l.operations = append(l.operations, o)
		}
	}
	for _, m := range measures {
		if l.of(m.Name) < 0 {
			l.measures = append(l.measures, m)
		}
	}
	return l
}

func (l layout) width() int { return 1 + perOperation*len(l.operations) + len(l.measures) }

// totals are cumulative counters in a layout's order, in float64 because ticks interpolate. A Level is held times
// seconds, which adds up; a Single as 0, since it does not.
type totals []float64

const perOperation = 3

func (l layout) zero() totals { return make(totals, l.width()) }

// done are the operations of all kinds together.
func (l layout) done(t totals) (n float64) {
	for i := range l.operations {
		n += t.ops(i)
	}
	return n
}

// busy are the seconds of all of them.
func (l layout) busy(t totals) (s float64) {
	for i := range l.operations {
		s += t.seconds(i)
	}
	return s
}

func (t totals) errors() float64                 { return t[0] }
func (t totals) ops(op int) float64              { return t[1+perOperation*op] }
func (t totals) bytes(op int) float64            { return t[2+perOperation*op] }
func (t totals) seconds(op int) float64          { return t[3+perOperation*op] }
func (l layout) measure(t totals, k int) float64 { return t[1+perOperation*len(l.operations)+k] }

func (t totals) set(op int, c *workload.Counters) {
	t[1+perOperation*op], t[2+perOperation*op], t[3+perOperation*op] = float64(c.Ops), float64(c.Bytes), c.Seconds
}

func (t totals) setSeconds(op int, v float64) { t[3+perOperation*op] = v }

func (t totals) add(o totals) {
	for i, v := range o {
		t[i] += v
	}
}

// addPart adds a fraction of what happened between two states, nil for the zero.
func (t totals) addPart(from, to totals, f float64) {
	for i := range t {
		before := 0.0
		if from != nil {
			before = from[i]
		}
		t[i] += f * (to[i] - before)
	}
}

// minus is what happened from o to t.
func (t totals) minus(o totals) totals {
	out := slices.Clone(t)
	for i, v := range o {
		out[i] -= v
	}
	return out
}

// round makes what is counted in whole units whole.
func (t totals) round(l layout) {
	t[0] = math.Round(t[0])
	for op := range l.operations {
		for i := 1 + perOperation*op; i < perOperation+perOperation*op; i++ { // not the seconds
			t[i] = math.Round(t[i])
		}
	}
}

// setMix makes t the state at fraction f of the way from a to b.
func (t totals) setMix(a, b totals, f float64) {
	for i := range t {
		t[i] = a[i] + f*(b[i]-a[i])
	}
}

// mark is the state of a job at a moment.
type mark struct {
	t     time.Time
	v     totals
	hists []*hist.Histogram // by operation; nil when there are none
	// values are the measures as reported, in the order of the job.
	values []float64
}

// plus is the mark with something more done; the histograms given may be kept.
func (m mark) plus(did totals, hists []*hist.Histogram) mark {
	if m.v == nil {
		return mark{t: m.t, v: did, hists: hists}
	}
	m.v.add(did)
	if len(m.hists) < len(hists) {
		m.hists = make([]*hist.Histogram, len(hists))
	}
	for i, h := range hists {
		m.hists[i] = merged(m.hists[i], h)
	}
	return m
}

// histsOf are the histograms of a report, nil when it has none.
func histsOf(c workload.Counts) []*hist.Histogram {
	if !slices.ContainsFunc(c, func(one workload.Counters) bool { return one.Hist != nil }) {
		return nil
	}
	out := make([]*hist.Histogram, len(c))
	for i := range c {
		out[i] = c[i].Hist
	}
	return out
}

// meter turns the reports of one job into totals of a layout.
type meter struct {
	layout  layout
	ops     []int // where the job's operations are in the layout
	values  []int // the same of its measures
	kinds   []result.Kind
	sums    []float64 // of its measures
	mute    []bool    // by operation of the job: some were done, and how long they took was not said
	elapsed time.Duration
	array   []float64 // in which reuse puts vectors together
	free    []float64
	made    int // vectors since the last reuse
}

// newMeter takes a job's declaration into a layout that has at least its operations and measures.
func newMeter(l layout, operations []result.Operation, measures []result.Measure) *meter {
	m := &meter{layout: l, sums: make([]float64, len(measures)), mute: make([]bool, len(operations))}
	for _, o := range operations {
		m.ops = append(m.ops, l.operation(o.Name))
	}
	for _, v := range measures {
		m.values = append(m.values, l.of(v.Name))
		m.kinds = append(m.kinds, v.Kind)
	}
	return m
}

// vector is a zero, made many at once.
func (m *meter) vector() totals {
	const many = 64
	w := m.layout.width()
	if len(m.free) < w {
		m.free = make([]float64, many*w)
	}
	v := m.free[:w:w]
	m.free = m.free[w:]
	clear(v)
	m.made++
	return v
}

// reuse moves the vectors of the marks still needed, which are in the order they were made, to the beginning of an
// array; all others are given up.
func (m *meter) reuse(needed []mark) {
	w := m.layout.width()
	to := m.array
	if m.made*w > len(to) {
		to = make([]float64, m.made*w)
	}
	m.array, m.made = to, len(needed)
	for i := range needed {
		copy(to[:w], needed[i].v)
		needed[i].v, to = to[:w:w], to[w:]
	}
	m.free = to
}

// counts is the state that some counters say.
func (m *meter) counts(t time.Time, c workload.Counts) mark {
	k := mark{t: t, v: m.vector()}
	if hists := histsOf(c); hists != nil {
		k.hists = make([]*hist.Histogram, len(m.layout.operations))
		for i := range hists {
			k.hists[m.ops[i]] = hists[i]
		}
	}
	for i := range c {
		k.v.set(m.ops[i], &c[i])
	}
	return k
}

// report is the state at a report. Reports come in order: a Level holds for the time since the one before. Latency that
// a tool tells at its end only is of the job as a whole, so that no part of the job has it; see whole.
func (m *meter) report(t time.Time, r workload.Report) mark {
	k := m.counts(t, r.Ops)
	k.v[0], k.values = float64(r.Errors), r.Values
	for i, c := range r.Ops {
		if m.mute[i] = m.mute[i] || c.Ops > 0 && c.Seconds == 0; m.mute[i] {
			k.v.setSeconds(m.ops[i], 0)
		}
	}
	for i, v := range r.Values {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0) || m.kinds[i] == result.Single:
		case m.kinds[i] == result.Level:
			m.sums[i] += v * max(0, (r.Elapsed-m.elapsed).Seconds())
		default:
			m.sums[i] = v
		}
		k.v[1+perOperation*len(m.layout.operations)+m.values[i]] = m.sums[i]
	}
	m.elapsed = r.Elapsed
	return k
}

// whole is a state with the latency of the job as a whole, which its last report tells.
func (m *meter) whole(k mark, last workload.Counts) mark {
	k.v = slices.Clone(k.v)
	for i, c := range last {
		k.v.setSeconds(m.ops[i], c.Seconds)
	}
	return k
}

// fits reports whether a report has what the job declared; a damaged folder's may not.
func (m *meter) fits(r workload.Report) bool {
	return !slices.Contains(m.ops, -1) && !slices.Contains(m.values, -1) && len(r.Ops) == len(m.ops) &&
		len(r.Values) == len(m.values) &&
		!slices.ContainsFunc(r.Sections, func(s workload.Counts) bool { return len(s) != len(m.ops) })
}

// untimed is when a report of a tool without a clock was made: as long after the start of the job as it says, or at the
// end when it is the last and says nothing. end is the end of the job or, while it goes on, now; zero when not known.
func untimed(r workload.Report, start, end time.Time) time.Time {
	at := start.Add(r.Elapsed)
	if end.IsZero() || (r.Elapsed > 0 || !r.Final) && !at.After(end) {
		return at
	}
	return maxTime(start, end)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func merged(a, b *hist.Histogram) *hist.Histogram {
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

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
