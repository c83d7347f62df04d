package usl

import (
	"fmt"
	"math"
	"slices"
)

// warn lists every reason to doubt the model, in words fit for a report.
func (m *Model) warn(best solution) {
	say := func(format string, args ...any) { m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...)) }
	low, high := m.span()
	different := distinct(m.points)
	if different < 6 {
		say("only %d different concurrencies: below 6 the three parameters are hardly told apart", different)
	}
	if m.DegreesOfFreedom < minDof {
		say("%d degrees of freedom: the intervals are very wide", m.DegreesOfFreedom)
	}
	if !best.ok {
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
		say("the peak at %.4g lies outside the data, which end at %.4g: it is an extrapolation", m.Peak.Concurrency, high)
	case m.Peak.Exists && m.Peak.Concurrency < low:
		say("the peak at %.4g lies below the data, which begin at %.4g: throughput falls from the first point", m.Peak.Concurrency, low)
	}
	if m.Peak.Exists && m.Peak.NoPeakShare > 0.025 {
		say("%.0f %% of the resamples show no peak at all", 100*m.Peak.NoPeakShare)
	}
	if u := m.Unbounded; u != nil {
		if u.Alpha < 0 {
			say("without bounds contention would be negative (%.4g): throughput grows faster than the law allows, look for caching or warm-up", u.Alpha)
		}
		if u.Beta < 0 {
			say("without bounds crosstalk would be negative (%.4g): the data do not bend over", u.Beta)
		}
	}
	if best := m.Alternatives[0]; best.Law != Universal && !math.IsInf(best.AICc, 1) {
		say("the %s law describes the points as well with fewer parameters", best.Law)
	}
	if p, ok := m.runs(); ok && p < 0.01 {
		say("the points stray from the curve in waves (runs test, p = %.2g): the law misses something and the intervals are too narrow", p)
	}
}

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
