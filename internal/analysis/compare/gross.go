package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/resample"
	"plimsoll/unit"
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
	m.appeared()
	if m.Verdict == Better && len(m.Candidate.Runs) > 0 && allZero(m.Candidate.Runs) && ofTime(m.Name, m.Unit) {
		m.Verdict = Inconclusive
		m.warn("times of 0 in every repeat of the candidate: nothing was done, or nothing was timed")
	}
	single := m.Scope == WithinRuns || min(len(m.Baseline.Runs), len(m.Candidate.Runs)) == 1
	if m.Verdict != Inconclusive || !single {
		return
	}
	up, what := m.grossly()
	if what == "" {
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

// grossly says how it changed grossly, "" when it did not.
func (m *Measure) grossly() (up bool, what string) {
	b, c := m.Baseline.Value, m.Candidate.Value
	switch factor := c / b; {
	case b == 0 && c >= grossCount && c == math.Trunc(c):
		return true, fmt.Sprintf("%g instead of none", c)
	case !(b > 0 && c >= 0):
	case factor >= m.grossAt() && m.enough():
		return true, fmt.Sprintf("×%.3g", factor)
	case factor <= 1/m.grossAt() && m.enough():
		return false, fmt.Sprintf("%.3g %% less", 100*(1-factor))
	}
	return false, ""
}

// OneEach reports whether one run a side is all that is known of it.
func (m *Measure) OneEach() bool {
	return m.Scope == WithinRuns || len(m.Baseline.Runs) == 1 && len(m.Candidate.Runs) == 1
}

// oneEach makes inconclusive what one run a side decides, unless it is gross: what another run of each would show is
// not known.
func (m *Measure) oneEach() {
	if _, gross := m.grossly(); !m.OneEach() || gross != "" || m.Verdict == Inconclusive {
		return
	}
	m.Verdict = Inconclusive
	m.warn("one run a side: what a further run of each would show is not known, so nothing is decided by it")
}

// wouldDo is how many runs a side tell a change from the threshold, or that it is within, in nine of ten gates, when
// runs spread by so much; 0 for more than thirty. One more is asked for than Student's t says, for what the order of
// the runs costs.
func wouldDo(change, threshold, spread float64) int {
	const most, power = 30, 1.2816
	apart := math.Abs(math.Abs(math.Log1p(change)) - math.Log1p(threshold))
	for n := 3; n < most; n++ {
		if (resample.StudentT(0.95, float64(2*n-2))+power)*spread*math.Sqrt(2/float64(n)) <= apart {
			return n + 1
		}
	}
	return 0
}

// sayRuns says how many runs would do where a gate has one a side.
func (d *Document) sayRuns(o Options) {
	worst := -1
	for i, m := range d.Measures {
		if m.OneEach() && m.Verdict == Inconclusive && m.Change != nil && *m.Change > -1 &&
			(worst < 0 || math.Abs(*m.Change) > math.Abs(*d.Measures[worst].Change)) {
			worst = i
		}
	}
	if !o.Gate || worst < 0 {
		return
	}
	m := d.Measures[worst]
	runs := func(spread float64) string {
		if n := wouldDo(*m.Change, o.Threshold, spread); n > 0 {
			return fmt.Sprintf("%d", n)
		}
		return "more than 30"
	}
	d.say("One run a side decides nothing that is not gross. A change like that of %s (%s) is told from the "+
		"threshold of %.3g %% by %s runs a side when runs spread by 3 %%, and by %s when by 5 %%.", m.called(),
		unit.Change(*m.Change), 100*o.Threshold, runs(0.03), runs(0.05))
}

// appeared judges failures of which no run of the baseline had any, and some run of the candidate has.
func (m *Measure) appeared() {
	none := m.Baseline.Runs
	if len(none) == 0 || !allZero(none) || allZero(m.Candidate.Runs) || m.Verdict == Worse ||
		effect.Direction(m.Direction) != effect.LowerIsBetter {
		return
	}
	most := slices.Max(m.Candidate.Runs)
	in := 0
	for _, v := range m.Candidate.Runs {
		if v > 0 {
			in++
		}
	}
	if m.Verdict = Inconclusive; most >= grossCount && most == math.Trunc(most) {
		m.Verdict = Worse
	}
	m.warn(fmt.Sprintf("none in %d of the baseline; %d of %d of the candidate have some, up to %g", len(none), in,
		len(m.Candidate.Runs), most))
}

func (m *Measure) grossAt() float64 {
	if m.beyond > 0 && m.beyond < manyBeyond {
		return grossPercentile
	}
	return grossFactor
}

// enough reports whether a percentile, if it is one, rests on enough operations.
func (m *Measure) enough() bool { return m.beyond == 0 || m.beyond >= grossBeyond }

// TooFew reports whether it is a percentile that can hardly be told: a largest value is what it is.
func (m *Measure) TooFew() bool { return !m.enough() && !strings.HasSuffix(m.Name, "_max") }

// warnOfFew says so.
func (m *Measure) warnOfFew() {
	if m.TooFew() {
		m.warn("fewer than ten operations of a side lie beyond it: too few to tell it")
	}
}
