package command

import (
	"math"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// tally is a number that only grows.
type tally struct {
	value      float64       // in the moment that is open
	out        float64       // as last reported: it never falls below that
	at, before time.Duration // the moment it was last counted at, and the one before
	estimated  bool          // added up from rates
	summary    float64       // what final records say, when told
	told       bool
	more       float64 // what they add
}

// add counts v in and returns what it added.
func (k *tally) add(how string, v float64, now time.Duration, final bool) (added float64, fell bool) {
	was := k.value
	switch {
	case final && how == byDelta:
		k.more += v
		return 0, false
	case final:
		k.summary, k.told = v, true
		return 0, false
	case how == byDelta:
		k.value += v
	case how == byRate:
		if now > k.at {
			k.before, k.at = k.at, now
		}
		k.value, k.estimated = k.value+v*(k.at-k.before).Seconds(), true
	default:
		k.value, fell = max(k.value, v), v < k.value
	}
	k.value = min(k.value, maxNumber)
	return k.value - was, fell
}

// settle lowers an estimate that the program's summary is below, as far as it was not reported.
func (k *tally) settle() {
	if k.told && k.estimated {
		k.value = max(k.out, min(k.value, k.summary))
	}
}

// finish takes what final records say, and reports whether it is less than what was counted.
func (k *tally) finish() (lower bool) {
	lower = k.told && k.summary < k.value-0.5
	if k.told {
		k.value = max(k.value, k.summary)
	}
	k.value = min(k.value+k.more, maxNumber)
	return lower
}

func (k *tally) whole() uint64 {
	k.out = k.value
	return uint64(math.Round(k.value))
}

// opTally holds what is known of one operation.
type opTally struct {
	ops, bytes, seconds tally
	hist                *hist.Histogram
}

// state is all that was counted, and the moment that is open.
type state struct {
	declared workload.Declared
	warner   *workload.Warner
	sink     workload.Sink
	elapsed  time.Duration // of the moment
	began    bool          // some record had a time
	open     bool          // something was counted in the moment
	ops      []opTally
	errors   tally
	values   []float64 // of the moment
	counts   []float64 // of measures that count: the largest so far
	reports  int
	worked   bool
	sum      summary
}

// summary holds what final records say besides counters.
type summary struct {
	given   bool
	elapsed time.Duration
	values  []float64
}

func newState(declared workload.Declared, warner *workload.Warner) *state {
	s := &state{declared: declared, warner: warner, sink: warner.Sink, ops: make([]opTally, len(declared.Operations))}
	s.counts = make([]float64, len(declared.Measures))
	s.values, s.sum.values = s.noValues(), s.noValues()
	return s
}

func (s *state) noValues() []float64 {
	v := make([]float64, len(s.declared.Measures))
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// moment moves on to another moment; false when it is before the one that is open.
func (s *state) moment(at time.Duration) bool {
	if at < s.elapsed {
		return false
	}
	if at > s.elapsed && s.began && s.open {
		s.report(false)
	}
	s.elapsed, s.began = at, true
	return true
}

// value takes a measure.
func (s *state) value(i int, v float64, final bool) {
	m := s.declared.Measures[i]
	if m.Kind == result.Count {
		if v < s.counts[i] {
			s.warner.Warn("%s, which counts, fell from %g to %g; the larger is kept", m.Name, s.counts[i], v)
		}
		v = max(v, s.counts[i])
		s.counts[i] = v
	}
	s.worked = true
	if final {
		s.sum.values[i] = v
		return
	}
	s.values[i] = v
}

func (s *state) report(final bool) {
	r := workload.Report{Elapsed: s.elapsed, Final: final, Ops: make(workload.Counts, len(s.ops)), Values: s.values,
		Errors: s.errors.whole()}
	for i := range s.ops {
		o := &s.ops[i]
		o.seconds.out = o.seconds.value
		r.Ops[i] = workload.Counters{Ops: o.ops.whole(), Bytes: o.bytes.whole(), Seconds: o.seconds.value}
		if final {
			r.Ops[i].Hist = s.histogram(i, &r.Ops[i])
			o.seconds.value = r.Ops[i].Seconds
		}
	}
	s.worked = s.worked || r.Ops.Total()+r.Errors > 0
	s.reports++
	s.sink.Report(r)
	s.values, s.open = s.noValues(), false
}

// histogram is that of an operation when it counts every one.
func (s *state) histogram(i int, c *workload.Counters) *hist.Histogram {
	h := s.ops[i].hist
	if h == nil || h.Count() == 0 {
		return nil
	}
	if h.Count() != c.Ops {
		s.warner.Warn("the histogram of %s counts %d of %d operations; it is left out", s.declared.Operations[i].Name,
			h.Count(), c.Ops)
		return nil
	}
	if c.Seconds == 0 {
		c.Seconds = h.Sum() / 1e9
	}
	h.SetExact(h.Min(), h.Max(), c.Seconds*1e9) // the mean that the program says itself is better than one of its rows
	return h
}

// finish reports what is open, and what the final records said.
func (s *state) finish() {
	for i := range s.ops {
		s.ops[i].ops.settle()
		s.ops[i].bytes.settle()
		s.ops[i].seconds.settle()
	}
	s.errors.settle()
	if !s.sum.given {
		if s.began && s.open {
			s.report(false)
		}
		return
	}
	if s.sum.elapsed > s.elapsed {
		s.moment(s.sum.elapsed)
	}
	lower := func(what string, k *tally) {
		if counted := k.value; k.finish() {
			s.warner.Warn("its summary says %.0f %s, less than the %.0f before; the larger is kept", k.summary, what,
				counted)
		}
	}
	for i, o := range s.declared.Operations {
		lower(o.Noun, &s.ops[i].ops)
		lower("bytes of "+o.Noun, &s.ops[i].bytes)
		s.ops[i].seconds.finish()
	}
	lower("errors", &s.errors)
	for i, v := range s.sum.values {
		if !math.IsNaN(v) {
			s.values[i] = v
		}
	}
	s.report(true)
}
