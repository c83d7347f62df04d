package usl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// warn lists every reason to doubt the model, in words fit for a report.
func (m *Model) warn() {
	say := func(format string, args ...any) { m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...)) }
	low, high := m.span()
	different := distinct(m.original)
	if different < fewestForLaw && !m.tooFewToChoose() { // which is said below
		say("only %d different concurrencies: below %d the three parameters are poorly determined", different,
			fewestForLaw)
	}
	if m.DegreesOfFreedom < minDof {
		say("%d degrees of freedom: the intervals are very wide", m.DegreesOfFreedom)
	}
	if !m.solution.ok {
		say("the fit had not settled after its last step: treat the parameters as rough")
	}
	if high < 4*low {
		say("concurrencies span only %.3g to %.3g: a factor of 4 or more is needed to see contention", low, high)
	}
	if low > 0.1*high && low > 2 {
		say("nothing was measured near one: throughput of one is extrapolated from %.3g", low)
	}
	switch {
	case m.Peak.Exists && m.Peak.Concurrency > high:
		say("the peak at %.4g lies outside the data, which end at %.4g: it is an extrapolation", m.Peak.Concurrency,
			high)
	case m.Peak.Exists && m.Peak.Concurrency < low:
		say("the peak at %.4g lies below the data, which begin at %.4g: throughput falls from the first point",
			m.Peak.Concurrency, low)
	}
	if m.Peak.Exists && m.Peak.NoPeakShare > 0.025 {
		say("%.0f %% of the resamples show no peak at all", 100*m.Peak.NoPeakShare)
	}
	if u := m.Unbounded; u != nil && !m.Fall.Closer && m.Cap.Words() == "" {
		if u.Alpha < 0 && m.negativeP < level && different >= fewestForLaw {
			say(
				"without bounds contention would be negative (%.4g): throughput grows faster than the law allows, look for caching or warm-up",
				u.Alpha)
		}
		if u.Beta < 0 {
			say("without bounds crosstalk would be negative (%.4g): the data do not bend over", u.Beta)
		}
	}
	m.choice(say)
	if words := m.Fall.Words(); words != "" {
		say("%s", words)
	}
	if words := m.Cap.Words(); words != "" && m.Alternatives[1].P < level {
		say("%s", words)
	}
	if len(m.ErrorsAllowed) > 1 {
		byPower := func(a, b Errors) int { return cmp.Compare(a.power(), b.power()) }
		say("whether errors are %s or %s is inconclusive: the intervals hold for either",
			slices.MinFunc(m.ErrorsAllowed, byPower).Words(), slices.MaxFunc(m.ErrorsAllowed, byPower).Words())
	}
	if o := m.Outlier; o != nil {
		say(
			"one point strays from all others: %.6g at concurrency %.4g (p = %.2g). Measure it again; without it contention is %.4g and crosstalk %.4g, instead of %.4g and %.4g",
			o.Point.Throughput, o.Point.Concurrency, o.P, o.Without.Alpha, o.Without.Beta, m.Alpha, m.Beta)
	}
	if p, ok := m.runs(); ok && p < 0.01 {
		say(
			"the points stray from the curve in waves (runs test, p = %.2g): the law misses something and the intervals are too narrow",
			p)
	}
}

// level of the tests of nested laws.
const level = 0.05

// choice says which law the points ask for, or that they cannot choose. That a simpler law is not rejected does not
// make it as good: it is when no crosstalk that the interval allows bends the curve within the data.
func (m *Model) choice(say func(string, ...any)) {
	line, amdahl := m.Alternatives[0], m.Alternatives[1]
	low, high := m.span()
	switch {
	case m.Fall.Closer: // no law is asked for
		return
	case m.tooFewToChoose():
		say("%d different concurrencies are too few to tell contention, crosstalk and a cap apart: at least %d",
			distinct(m.original), fewestForLaw)
		return
	case amdahl.P < level && m.Cap.Closer:
		m.Simpler = Capped
		return
	case amdahl.P < level && m.Cap.Allowed:
		return
	case amdahl.P < level && m.climbs:
		say("throughput falls by no more than the points scatter, so crosstalk is not told from a soft limit: measure " +
			"higher concurrencies")
		return
	case amdahl.P < level:
		m.Simpler = Universal
		return
	case line.P >= level:
		if p, err := m.Predict(high); err == nil && p.Mean.Valid() && p.Mean.Low > nearlyLinear*line.At(high) {
			m.Simpler = Linear
			say("the linear law describes the points as well with fewer parameters")
			return
		}
		say("the law and a straight line fit equally well (p = %.2g): measure more concurrencies between %.4g and %.4g",
			line.P, low, high)
		return
	}
	if i := m.BetaParameter.T; i.Valid() {
		if n := (Coefficients{m.Gamma, m.Alpha, i.High}).PeakConcurrency(); n > high {
			m.Simpler = Amdahl
			say(
				"the amdahl law describes the points as well with fewer parameters: crosstalk is too small to bend the curve within them")
			return
		}
	} else if m.BetaParameter.AtBound && m.DegreesOfFreedom >= minDof {
		m.Simpler = Amdahl
		say("the amdahl law describes the points as well with fewer parameters")
		return
	}
	say(
		"crosstalk is inconclusive (p = %.2g), and so is whether throughput falls beyond a peak: measure more concurrencies",
		amdahl.P)
}

// tooFewToChoose reports whether the points ask for more than a line, and are too few to tell which.
func (m *Model) tooFewToChoose() bool {
	return !m.Fall.Closer && m.Alternatives[0].P < level && m.Few()
}

// nearlyLinear is the share of a straight line's throughput above which the law is one for all that matters.
const nearlyLinear = 0.9

// runs is the two-sided normal approximation of the test of Wald and Wolfowitz (1940) on the signs of the residuals by
// rising concurrency; ok is false below ten of them.
func (m *Model) runs() (p float64, ok bool) {
	order := make([]int, len(m.points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch d := m.points[a].Concurrency - m.points[b].Concurrency; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	var above, below, runs float64
	last := 0.0
	for _, i := range order {
		r := m.Residuals[i]
		if r == 0 {
			continue
		}
		if r > 0 {
			above++
		} else {
			below++
		}
		if last == 0 || (r > 0) != (last > 0) {
			runs++
		}
		last = r
	}
	n := above + below
	if n < 10 || above == 0 || below == 0 {
		return 1, false
	}
	mean := 2*above*below/n + 1
	variance := (mean - 1) * (mean - 2) / (n - 1)
	return math.Erfc(math.Abs(runs-mean) / math.Sqrt(variance) / math.Sqrt2), true
}
