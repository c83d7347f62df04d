package compare

import (
	"fmt"
	"math"

	"plimsoll/internal/analysis/effect"
)

// A change of these factors between two single runs, or two single values, is told whatever its interval says: that
// runs were short for their own dependence, or that there is one of each, is no reason to be silent about it. What such
// a pair leaves open is what another pair would show.
const (
	grossFactor     = 2   // of rates, means, figures, and of percentiles with manyBeyond
	grossPercentile = 3   // of percentiles with fewer, which differ more between like runs
	manyBeyond      = 100 // operations beyond a percentile, on the smaller side
	grossBeyond     = 10  // with fewer it is not told
	grossCount      = 6   // of what is counted, from none: 0 against 6 is chance once in 64
)

// gross judges what is inconclusive, though it changed grossly, where a side has one run only.
func (m *Measure) gross() {
	single := m.Scope == WithinRuns || min(len(m.Baseline.Runs), len(m.Candidate.Runs)) == 1
	if m.Verdict != Inconclusive || !single {
		return
	}
	b, c := m.Baseline.Value, m.Candidate.Value
	up, what := false, ""
	switch factor := c / b; {
	case b == 0 && c >= grossCount && c == math.Trunc(c):
		up, what = true, fmt.Sprintf("%g instead of none", c)
	case !(b > 0 && c >= 0):
		return
	case factor >= m.grossAt() && m.enough():
		up, what = true, fmt.Sprintf("×%.3g", factor)
	case factor <= 1/m.grossAt() && m.enough():
		what = fmt.Sprintf("%.3g %% less", 100*(1-factor))
	default:
		return
	}
	verdict := effect.Better
	if up == (effect.Direction(m.Direction) == effect.LowerIsBetter) {
		verdict = effect.Worse
	}
	m.Verdict = m.say(verdict)
	why := "the interval holds no change too"
	if !m.Adjusted.Valid() {
		why = "there is no interval"
	}
	m.warn(
		fmt.Sprintf("certain: the candidate measured %s. Not certain: how much of that another pair would show; %s",
			what, why),
	)
}

func (m *Measure) grossAt() float64 {
	if m.beyond > 0 && m.beyond < manyBeyond {
		return grossPercentile
	}
	return grossFactor
}

// enough reports whether a percentile, if it is one, rests on enough operations.
func (m *Measure) enough() bool { return m.beyond == 0 || m.beyond >= grossBeyond }
