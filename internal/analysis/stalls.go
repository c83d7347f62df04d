package analysis

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// When points are called a stall. The counts bound false alarms: at 20 operations expected, a quarter of them by chance
// alone has a probability below 10⁻⁴ if they come as a Poisson process, and generators that keep a depth vary less.
const (
	stalledBelow  = 0.25 // of the median of the series
	fewestPerStep = 20   // operations in a step at the median; with fewer a low point may be chance
	onAndOff      = 0.35 // of the points stalled: then it is not stalls but how the workload works
	regularGaps   = 0.25 // coefficient of variation below which stalls are called regular
	mostJoined    = 5    // points made one to hold enough operations
	endsFrom      = 2    // points of a standstill at the end of a series, unless it has shorter ones before
	wentOn        = 0.5  // of the median, from which work is called going on
)

// stallSet is the points of a series at which work all but stopped.
type stallSet struct {
	runs    []pointRun
	at      []bool // by point
	seconds float64
	share   float64
	left    float64 // of the median, what was still done in them
}

// verb says what happened in them.
func (s stallSet) verb() string {
	if s.left < 0.05 {
		return "stood still"
	}
	return "fell below a quarter of the usual rate"
}

// pointRun is points first to last, and how long the stall was.
type pointRun struct {
	first, last int
	seconds     float64
}

// stalls finds stalls in values on c's grid; none in a series too sparse or too bursty to tell. What comes before it
// first worked is a start; a standstill that reaches the end is one.
func (c *track) stalls(values []float64) stallSet {
	s := stallSet{at: make([]bool, len(values))}
	some, _ := finiteOf(values)
	median := resample.Median(some)
	if len(some) < 20 || !(median*c.step >= fewestPerStep) {
		return s
	}
	from, to := worked(values, median/2)
	n, shortest, length := 0, endsFrom, 0
	low := func(i int) bool { return isFinite(values[i]) && values[i] < stalledBelow*median }
	for i := from + 1; i < to; i++ {
		if !low(i) {
			if length > 0 {
				shortest = min(shortest, length)
			}
			length = 0
			continue
		}
		n, length = n+1, length+1
		s.at[i] = true
	}
	// A standstill may reach the end; but where a series ends, its last point may hold only a part of a step.
	if to >= 0 && len(values)-1-to >= shortest {
		for i := to + 1; i < len(values); i++ {
			if low(i) {
				n++
				s.at[i] = true
			}
		}
	}
	if s.share = float64(n) / float64(len(some)); s.share > onAndOff {
		return stallSet{at: make([]bool, len(values)), share: s.share}
	}
	return c.measured(values, s.at)
}

// measured makes runs of the points at which a series stood still. A run is as long as the work missing in it and in the points beside it
// would have taken at the median rate: its ends seldom fall on the grid.
func (c *track) measured(values []float64, at []bool) stallSet {
	s := stallSet{at: at}
	some, _ := finiteOf(values)
	median := resample.Median(some)
	beside := func(i int) float64 { // 0 for what is no more than noise
		if i < 0 || i >= len(values) || !(values[i] < 0.9*median) {
			return 0
		}
		return 1 - values[i]/median
	}
	var left []float64
	for i := 0; i < len(at); i++ {
		if !at[i] {
			continue
		}
		r := pointRun{first: i, last: i, seconds: beside(i-1) * c.step}
		for ; i < len(at) && at[i]; i++ {
			r.last = i
			r.seconds += (1 - values[i]/median) * c.step
			left = append(left, values[i]/median)
		}
		r.seconds += beside(r.last+1) * c.step
		r.seconds = math.Round(10*r.seconds/c.step) * c.step / 10 // to what it can be known
		s.runs = append(s.runs, r)
		s.seconds += r.seconds
	}
	if len(left) > 0 {
		s.share, s.left = float64(len(left))/float64(len(some)), resample.Median(left)
	}
	return s
}

// enough is how many operations a step must hold at the median so that of n points, if operations come as a Poisson process, less
// than a hundredth of one falls below a quarter by chance: P(X ≤ m/4) ≤ exp(−m·(3/4 + ln(1/4)/4)), Chernoff's bound.
func enough(n int) float64 {
	return max(fewestPerStep, math.Log(100*float64(n))/(1-stalledBelow+stalledBelow*math.Log(stalledBelow)))
}

// dense joins as few points as it takes for each to hold enough operations; 0 when there are too few points or operations.
func (c *track) dense(values []float64) (joined int) {
	some, _ := finiteOf(values)
	median := resample.Median(some)
	for k := 1; k <= mostJoined && len(some) >= 20*k; k++ {
		if median*c.step*float64(k) >= enough(len(some)/k) {
			return k
		}
	}
	return 0
}

// join makes one point of so many, for c and for a series on its grid. What is left at the end is dropped.
func (c *track) join(k int, values []float64) (*track, []float64) {
	joined := make([]float64, len(values)/k)
	for i := range joined {
		some, _ := finiteOf(values[i*k : (i+1)*k])
		joined[i] = stat.Mean(some, nil) // NaN of none
	}
	return &track{origin: c.origin, start: c.at(k - 1), step: c.step * float64(k)}, joined
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

// longest is the length of the longest stall in seconds.
func (s stallSet) longest() (longest float64) {
	for _, r := range s.runs {
		longest = max(longest, r.seconds)
	}
	return longest
}

// every is the usual time between stalls; regular when the times are nearly equal.
func (s stallSet) every(step float64) (seconds float64, regular bool) {
	if len(s.runs) < 4 {
		return 0, false
	}
	var apart []float64
	for i := 1; i < len(s.runs); i++ {
		apart = append(apart, float64(s.runs[i].first-s.runs[i-1].first)*step)
	}
	return resample.Median(apart), stat.StdDev(apart, nil) < regularGaps*stat.Mean(apart, nil)
}
