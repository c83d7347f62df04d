package analysis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
)

// When points are called a standstill. The counts bound false alarms: at 20 operations expected, a quarter of them by chance
// alone has a probability below 10⁻⁴ if they come as a Poisson process, and generators that keep a depth vary less.
const (
	stalledBelow  = 0.25 // of the median of the series
	fewestPerStep = 20   // operations in a step at the median; with fewer a low point may be chance
	onAndOff      = 0.35 // of the points stalled: then it is not stalls but how the workload works
	regularGaps   = 0.25 // coefficient of variation below which stalls are called regular
)

// standstills are the points of a series at which work all but stopped.
type standstills struct {
	runs    []pointRun
	at      []bool // by point
	seconds float64
	share   float64
	left    float64 // of the median, what was still done in them
}

// verb says what happened in them.
func (s standstills) verb() string {
	if s.left < 0.05 {
		return "stood still"
	}
	return "fell below a quarter of the usual rate"
}

// pointRun is points first to last.
type pointRun struct{ first, last int }

// stalls finds standstills in values on c's grid; none in a series too sparse or too bursty to tell. What comes before it first
// worked and after it last did is a start and an end.
func (c *course) stalls(values []float64) standstills {
	s := standstills{at: make([]bool, len(values))}
	some, _ := finiteOf(values)
	median := resample.Median(some)
	if len(some) < 20 || !(median*c.step >= fewestPerStep) {
		return s
	}
	from, to := worked(values, median/2)
	n := 0
	for i := from + 1; i < to; i++ {
		if !isFinite(values[i]) || values[i] >= stalledBelow*median {
			continue
		}
		n++
		s.left += values[i] / median
		s.at[i] = true
		if k := len(s.runs); k > 0 && s.runs[k-1].last == i-1 {
			s.runs[k-1].last = i
		} else {
			s.runs = append(s.runs, pointRun{i, i})
		}
	}
	s.share, s.seconds, s.left = float64(n)/float64(len(some)), float64(n)*c.step, s.left/float64(max(n, 1))
	if s.share > onAndOff {
		return standstills{at: make([]bool, len(values)), share: s.share}
	}
	return s
}

// worked are the first and the last point at which a level was reached.
func worked(values []float64, level float64) (first, last int) {
	first, last = len(values), -1
	for i, x := range values {
		if isFinite(x) && x >= level {
			first, last = min(first, i), i
		}
	}
	return first, last
}

// longest is the length of the longest standstill in seconds.
func (s standstills) longest(step float64) (longest float64) {
	for _, r := range s.runs {
		longest = max(longest, float64(r.last-r.first+1)*step)
	}
	return longest
}

// every is the usual time between standstills; regular when the times are nearly equal.
func (s standstills) every(step float64) (seconds float64, regular bool) {
	if len(s.runs) < 4 {
		return 0, false
	}
	var apart []float64
	for i := 1; i < len(s.runs); i++ {
		apart = append(apart, float64(s.runs[i].first-s.runs[i-1].first)*step)
	}
	return resample.Median(apart), stat.StdDev(apart, nil) < regularGaps*stat.Mean(apart, nil)
}

// stalled looks for moments in which a workload's writes (or all it does, when it does not write) stood still though it went
// on: log writes starved by a checkpoint are the classic. A standstill that follows a fault is recovery's business.
func stalled(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		c := v.course(l)
		if c == nil || l.count() == 0 {
			continue
		}
		before := ""
		from, end := l.span()
		if fault, ok := v.firstFault(); ok && from.Before(fault) && fault.Before(end) {
			c, before = c.between(from, fault), " before the fault"
		}
		values, what := c.ops, "operations"
		if c.writes != nil {
			values, what = c.writes, "writes"
		}
		some, _ := finiteOf(values)
		if len(some) < 20 || !(resample.Median(some)*c.step >= fewestPerStep) {
			continue
		}
		out = append(out, v.stallFinding(l, c, values, what, before))
	}
	return out
}

func (v *view) stallFinding(l *load, c *course, values []float64, what, before string) result.Finding {
	s := c.stalls(values)
	f := result.Finding{
		Check: "stalls", Subject: l.name, Metric: "time at a standstill", Unit: "%", Value: ptr(100 * s.share), N: len(values), Limit: ptr(0),
		NoInterval: "counted over the whole window, not estimated",
		Basis:      fmt.Sprintf("%s in points of %s, below %s of their median", what, sayDuration(c.step), percent(stalledBelow)),
	}
	switch {
	case s.share > onAndOff:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("The %s of %s come and go (%s of the time there are next to none), so a standstill cannot be told from its own rhythm.", what, l.name, percent(s.share))
		return f
	case len(s.runs) == 0:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("The %s of %s never fell below a quarter of the usual rate for as long as %s%s.", what, l.name, sayDuration(c.step), before)
		return f
	}
	f.Severity = result.Caution
	f.Sentence = fmt.Sprintf("The %s of %s %s %s, for %s in all and %s at the longest", what, l.name, s.verb(), times(len(s.runs)), sayDuration(s.seconds), sayDuration(s.longest(c.step)))
	if every, regular := s.every(c.step); regular {
		f.Sentence += ", about every " + sayDuration(every)
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: "standstills", Value: float64(len(s.runs)), Unit: "count"}, result.Evidence{Name: "longest", Value: s.longest(c.step), Unit: "s"})
	f.Sentence += v.culprit(l, c, s, &f) + before + "."
	line := c.line(l.name, values)
	f.Chart = v.chart(l.name+": "+what+" per second", "ops/s", line)
	return f
}

// culprit names another workload whose bytes rise while l stands still: at least double, and more than in 95 % of all other
// alignments of the two series (a permutation by circular shifts, which keeps the dependence of both).
func (v *view) culprit(l *load, c *course, s standstills, f *result.Finding) string {
	best, who, p := 2.0, "", 1.0
	for _, o := range v.loads {
		other := v.course(o)
		if o == l || other == nil || other.step != c.step {
			continue
		}
		values := other.bytes
		if values == nil {
			values = other.ops
		}
		shift := int(math.Round(c.start.Sub(other.start).Seconds() / c.step))
		aligned := make([]float64, len(s.at))
		for i := range aligned {
			if at := i + shift; at >= 0 && at < len(values) && isFinite(values[at]) {
				aligned[i] = values[at]
			}
		}
		contrast := func(by int) float64 {
			var in, out float64
			var n, m int
			for i, stalled := range s.at {
				x := aligned[(i+by)%len(aligned)]
				if stalled {
					in, n = in+x, n+1
				} else {
					out, m = out+x, m+1
				}
			}
			if n == 0 || m == 0 || in == 0 {
				return 0
			}
			return in / float64(n) / max(out/float64(m), 1e-9)
		}
		r, more := contrast(0), 0
		for by := range aligned {
			if by > 0 && contrast(by) >= r {
				more++
			}
		}
		if chance := float64(more+1) / float64(len(aligned)); r > best && chance < 0.05 {
			best, who, p = r, o.name, chance
		}
	}
	if who == "" {
		return ""
	}
	f.Evidence = append(f.Evidence, result.Evidence{Name: who + " during them ÷ otherwise", Value: round(best), Unit: "ratio"}, result.Evidence{Name: "chance of such a coincidence", Value: round(100 * p), Unit: "%"})
	if best > 1000 {
		return ", always while " + who + " was at work"
	}
	return fmt.Sprintf(", while %s moved %s times as much as otherwise", who, sayCount(best))
}
