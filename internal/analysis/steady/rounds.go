// Package steady says whether a system has settled, from when to when, and what it then does.
//
// Rounds applies the rule of solid-state testing to one value per round: over a window of five rounds the values spread
// no more than 20 % of their mean and the line fitted through them moves by no more than 10 %. Window works on a long
// series of evenly spaced points: it finds the warm-up, periods such as checkpoints, changes of level and drift, and
// returns the longest stretch free of them, with the mean and an interval that allows for dependence. "Not reached" is
// a result of both, with the reason; neither ever trims data until they look steady.
//
// The rule for rounds is written from its public description in the SNIA Solid State Storage Performance Test
// Specification (window of 5, at most 25 rounds, 20 % and 10 %); conformance is not claimed. Percent are of the
// absolute mean.
//
// Pure: no I/O, no clock, random numbers only from the seed given.
package steady

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Rule for rounds. The zero value is the one of the package comment.
type Rule struct {
	Window    int     // rounds looked at together; 0 means 5; at least 3
	Spread    float64 // most (max − min) ÷ mean; 0 means 0.20
	Excursion float64 // most movement of the fitted line across the window ÷ mean; 0 means 0.10
	Ceiling   int     // rounds after which to give up; 0 means 25
}

func (r Rule) filled() (Rule, error) {
	if r.Window == 0 {
		r.Window = 5
	}
	if r.Spread == 0 {
		r.Spread = 0.20
	}
	if r.Excursion == 0 {
		r.Excursion = 0.10
	}
	if r.Ceiling == 0 {
		r.Ceiling = 25
	}
	var bad []error
	if r.Window < 3 {
		bad = append(bad, fmt.Errorf("steady: window of %d rounds: at least 3 are needed for a line", r.Window))
	}
	if !(r.Spread > 0) {
		bad = append(bad, fmt.Errorf("steady: spread %v: must be above 0, as 0.2 for 20 %%", r.Spread))
	}
	if !(r.Excursion > 0) {
		bad = append(bad, fmt.Errorf("steady: excursion %v: must be above 0, as 0.1 for 10 %%", r.Excursion))
	}
	if r.Ceiling < r.Window {
		bad = append(bad, fmt.Errorf("steady: ceiling of %d rounds: must hold a window of %d", r.Ceiling, r.Window))
	}
	return r, errors.Join(bad...)
}

// Settled is the verdict on rounds.
type Settled struct {
	Reached     bool
	First, Last int     // rounds of the window judged, from 0: the steady one, or the last one looked at
	Mean        float64 // over that window
	// Interval is Student's t over the rounds of the window. Being the first window to pass, it varies less than others
	// would, so the interval is a lower bound of the doubt.
	Interval  resample.Interval
	Spread    float64 // (max − min) ÷ |mean| of the window
	Excursion float64 // movement of the fitted line ÷ |mean| of the window
	Reason    string  // why not reached; empty when it was
	Warnings  []string
}

// Rounds judges a measure, one value per round in the order of the rounds, and returns the first window that holds the
// rule, which must be reached by the ceiling. All rounds after it are looked at: one that lies further from the
// window's mean than its rounds may lie from each other has left the state.
func Rounds(values []float64, rule Rule) (Settled, error) {
	rule, err := rule.filled()
	if err = errors.Join(err, serial.Finite("steady", values)); err != nil {
		return Settled{}, err
	}
	n := min(len(values), rule.Ceiling)
	if n < rule.Window {
		return Settled{
			Last:     n - 1,
			Reason:   fmt.Sprintf("%d rounds: the rule needs a window of %d", n, rule.Window),
			Interval: resample.None("no window"),
		}, nil
	}
	if why := unusable(values[:n], math.Inf(1)); why != "" {
		return Settled{Last: n - 1, Reason: why, Interval: resample.None("no window")}, nil
	}
	var s Settled
	for first := 0; first+rule.Window <= n; first++ {
		if s = judge(values[first:first+rule.Window], first, rule); s.Reached {
			break
		}
	}
	if left := s.leaves(values, rule); left != "" {
		s.Reached, s.Reason = false, left
		s.Interval = resample.None("it was not steady")
		return s, nil
	}
	if !s.Reached && n == rule.Ceiling {
		s.Reason += fmt.Sprintf("; the ceiling of %d rounds was reached", rule.Ceiling)
	}
	if !s.Reached && len(values) > rule.Ceiling {
		s.Reason += furthest(values)
	}
	return s, nil
}

// furthest says which of all rounds lies furthest from their median: that a rule was not held by its ceiling is no
// reason to leave out what came after it.
func furthest(values []float64) string {
	median, worst := resample.Median(values), 0
	for i, v := range values {
		if math.Abs(v-median) > math.Abs(values[worst]-median) {
			worst = i
		}
	}
	return fmt.Sprintf("; of all %d rounds, round %d lies furthest from their median: %.4g, where that is %.4g",
		len(values), worst+1, values[worst], median)
}

// leaves says which rounds after a window that holds the rule lie further from its mean than it allows; "" when none.
func (s Settled) leaves(values []float64, rule Rule) string {
	worst, many := -1, 0
	for i := s.Last + 1; s.Reached && i < len(values); i++ {
		if relative(values[i]-s.Mean, s.Mean) <= rule.Spread {
			continue
		}
		if many++; worst < 0 || math.Abs(values[i]-s.Mean) > math.Abs(values[worst]-s.Mean) {
			worst = i
		}
	}
	if worst < 0 {
		return ""
	}
	more := ""
	if many > 1 {
		more = fmt.Sprintf(", the furthest of %d such", many)
	}
	return fmt.Sprintf("rounds %d to %d were steady, and it was left again: round %d lies %+.1f %% from their mean%s, "+
		"%.1f %% are allowed", s.First+1, s.Last+1, worst+1, 100*(values[worst]-s.Mean)/math.Abs(s.Mean), more,
		100*rule.Spread)
}

func judge(window []float64, first int, rule Rule) Settled {
	n := float64(len(window))
	low, high := window[0], window[0]
	at := make([]float64, len(window))
	for i, v := range window {
		low, high, at[i] = min(low, v), max(high, v), float64(i)
	}
	_, slope := stat.LinearRegression(at, window, nil, false)
	s := Settled{First: first, Last: first + len(window) - 1, Mean: stat.Mean(window, nil)}
	s.Spread, s.Excursion = relative(high-low, s.Mean), relative(slope*(n-1), s.Mean)
	half := resample.StudentT(0.95, n-1) * stat.StdDev(window, nil) / math.Sqrt(n)
	s.Interval = resample.Interval{
		Low:        s.Mean - half,
		High:       s.Mean + half,
		Confidence: 0.95,
		Method:     "Student's t over the rounds of the window",
	}
	switch {
	case s.Spread > rule.Spread:
		s.Reason = fmt.Sprintf("rounds %d to %d spread over %.1f %% of their mean, %.1f %% are allowed", first+1,
			s.Last+1, 100*s.Spread, 100*rule.Spread)
	case s.Excursion > rule.Excursion:
		s.Reason = fmt.Sprintf("the line through rounds %d to %d moves by %.1f %% of their mean, %.1f %% are allowed",
			first+1, s.Last+1, 100*s.Excursion, 100*rule.Excursion)
	default:
		s.Reached = true
	}
	return s
}

// relative is |v ÷ mean|, 0 for 0 ÷ 0.
func relative(v, mean float64) float64 {
	if v == 0 {
		return 0
	}
	return math.Abs(v / mean)
}
