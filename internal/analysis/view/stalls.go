package view

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// When points are called a stall. The counts bound false alarms: at 20 operations expected, a quarter of them by chance
// alone has a probability below 10⁻⁴ if they come as a Poisson process, and generators that keep a depth vary less.
const (
	StalledBelow  = 0.25 // of the median of the series
	FewestPerStep = 20   // operations in a step at the median; with fewer a low point may be chance
	OnAndOff      = 0.35 // of the points stalled: then it is not stalls but how the workload works
	regularGaps   = 0.25 // coefficient of variation below which stalls are called regular
	mostJoined    = 5    // points made one to hold enough operations
	endsFrom      = 2    // points of a standstill at the end of a series, unless it has shorter ones before
	WentOn        = 0.5  // of the median, from which work is called going on
)

// StallSet is the points of a series at which work all but stopped.
type StallSet struct {
	Runs    []pointRun
	At      []bool // by point
	Seconds float64
	Share   float64
	left    float64 // of the median, what was still done in them
}

// Verb says what happened in them.
func (s StallSet) Verb() string {
	if s.left < 0.05 {
		return "stalled"
	}
	return "fell below a quarter of the usual rate"
}

// pointRun is points first to last, and how long the stall was.
type pointRun struct {
	First, Last int
	seconds     float64
}

// Stalls finds stalls in values on c's grid; none in a series too sparse or too bursty to tell. What comes before it
// first worked is a start; a standstill that reaches the end is one.
func (c *Track) Stalls(values []float64) StallSet {
	s := StallSet{At: make([]bool, len(values))}
	some, _ := FiniteOf(values)
	median := resample.Median(some)
	if len(some) < 20 || !(median*c.Step >= FewestPerStep) {
		return s
	}
	from, to := Worked(values, median/2)
	n, shortest, length := 0, endsFrom, 0
	low := func(i int) bool { return IsFinite(values[i]) && values[i] < StalledBelow*median }
	for i := from + 1; i < to; i++ {
		if !low(i) {
			if length > 0 {
				shortest = min(shortest, length)
			}
			length = 0
			continue
		}
		n, length = n+1, length+1
		s.At[i] = true
	}
	// A standstill may reach the end; but where a series ends, its last point may hold only a part of a step.
	if to >= 0 && len(values)-1-to >= shortest {
		for i := to + 1; i < len(values); i++ {
			if low(i) {
				n++
				s.At[i] = true
			}
		}
	}
	if s.Share = float64(n) / float64(len(some)); s.Share > OnAndOff {
		return StallSet{At: make([]bool, len(values)), Share: s.Share}
	}
	return c.Measured(values, s.At)
}

// Measured makes runs of the points at which a series stood still. A run is as long as the work missing in it and in
// the points beside it would have taken at the median rate: its ends seldom fall on the grid.
func (c *Track) Measured(values []float64, at []bool) StallSet {
	s := StallSet{At: at}
	some, _ := FiniteOf(values)
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
		r := pointRun{First: i, Last: i, seconds: beside(i-1) * c.Step}
		for ; i < len(at) && at[i]; i++ {
			r.Last = i
			r.seconds += (1 - values[i]/median) * c.Step
			left = append(left, values[i]/median)
		}
		r.seconds += beside(r.Last+1) * c.Step
		r.seconds = math.Round(10*r.seconds/c.Step) * c.Step / 10 // to what it can be known
		s.Runs = append(s.Runs, r)
		s.Seconds += r.seconds
	}
	if len(left) > 0 {
		s.Share, s.left = float64(len(left))/float64(len(some)), resample.Median(left)
	}
	return s
}

// enough is how many operations a step must hold at the median so that of n points, if operations come as a Poisson
// process, less than a hundredth of one falls below a quarter by chance: P(X ≤ m/4) ≤ exp(−m·(3/4 + ln(1/4)/4)),
// Chernoff's bound.
func enough(n int) float64 {
	return max(FewestPerStep, math.Log(100*float64(n))/(1-StalledBelow+StalledBelow*math.Log(StalledBelow)))
}

// Dense joins as few points as it takes for each to hold enough operations, of so many series alike that are looked at;
// 0 when there are too few points or operations.
func (c *Track) Dense(values []float64, alike int) (joined int) {
	some, _ := FiniteOf(values)
	median := resample.Median(some)
	for k := 1; k <= mostJoined && len(some) >= 20*k; k++ {
		if median*c.Step*float64(k) >= enough(alike*len(some)/k) {
			return k
		}
	}
	return 0
}

// Join makes one point of so many, for c and for a series on its grid. What is left at the end is dropped.
func (c *Track) Join(k int, values []float64) (*Track, []float64) {
	joined := make([]float64, len(values)/k)
	for i := range joined {
		some, _ := FiniteOf(values[i*k : (i+1)*k])
		joined[i] = stat.Mean(some, nil) // NaN of none
	}
	return &Track{Origin: c.Origin, Start: c.At(k - 1), Step: c.Step * float64(k)}, joined
}

// Worked are the first and the last point at which a level was reached.
func Worked(values []float64, level float64) (first, last int) {
	first, last = len(values), -1
	for i, x := range values {
		if IsFinite(x) && x >= level {
			first, last = min(first, i), i
		}
	}
	return first, last
}

// Longest is the length of the longest stall in seconds.
func (s StallSet) Longest() (longest float64) {
	for _, r := range s.Runs {
		longest = max(longest, r.seconds)
	}
	return longest
}

// Every is the usual time between stalls; regular when the times are nearly equal.
func (s StallSet) Every(step float64) (seconds float64, regular bool) {
	if len(s.Runs) < 4 {
		return 0, false
	}
	var apart []float64
	for i := 1; i < len(s.Runs); i++ {
		apart = append(apart, float64(s.Runs[i].First-s.Runs[i-1].First)*step)
	}
	return resample.Median(apart), stat.StdDev(apart, nil) < regularGaps*stat.Mean(apart, nil)
}
