// Package recovery measures how a load came back after a fault.
//
// From one series of throughput and the moment of the fault, Measure gives the level before, when load stopped, when
// the first work was done again, when the former level was regained and held, how far it overshot and how much work was
// lost.
// Repeats puts several such times side by side. All times are seconds since the fault, each with the interval that the
// spacing of the points leaves; a time that never came is absent with the reason. It refuses to guess the moment of the
// fault from the dip it caused.
//
// Pure: no I/O, no clock, no randomness.
package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Point is the throughput of the interval that ends at a moment.
type Point struct {
	Seconds float64 // any origin, rising
	Value   float64 // per second; not negative
}

// Options of a measurement. The zero value is what the fields say.
type Options struct {
	Fraction    float64 // of the former level that counts as regained; 0 means 0.9
	HoldSeconds float64 // for which it must stay there, on average, to count; 0 means 10
	Confidence  float64 // of the former level and of repeats; 0 means 0.95
}

// Moment is a time in seconds after the fault.
type Moment struct {
	Reached bool
	Seconds float64 // end of the first interval that shows it
	// Interval holds the moment: it came before the end of the interval that shows it, and after what the one before
	// leaves room for, which may hold a part of the way back.
	Interval resample.Interval
	Reason   string // why not reached
}

// Recovery is one way back.
type Recovery struct {
	Before   serial.Mean // throughput before the fault
	Stopped  Moment      // first interval below 1 % of the level before
	First    Moment      // first work again after that
	Regained Moment      // back at the fraction asked for, and held
	Lowest   float64     // least throughput after the fault, before the level was regained
	// Overshoot is the highest after the fault ÷ the level before, or that of the end of the series where it is higher,
	// − 1; 0 when no point is above all those before.
	Overshoot float64
	// LostWork is the work not done between the fault and the regained level (or the end): the deficit against the
	// level before, in the unit of throughput times seconds.
	LostWork float64
	// Behind is the most that LostWork came to at any moment on the way: a load on a schedule makes up for what it
	// missed.
	Behind   float64
	Warnings []string
}

// stoppedBelow is the share of the former level that counts as none.
const stoppedBelow = 0.01

// Measure measures the recovery from a fault. The points must reach from before the fault to after it, with at least
// three before.
func Measure(points []Point, faultSeconds float64, o Options) (Recovery, error) {
	for _, f := range []struct {
		v    *float64
		zero float64
	}{{&o.Fraction, 0.9}, {&o.HoldSeconds, 10}, {&o.Confidence, 0.95}} {
		if *f.v == 0 {
			*f.v = f.zero
		}
	}
	split, err := validate(points, faultSeconds, o)
	if err != nil {
		return Recovery{}, err
	}
	before := make([]float64, split)
	for i, p := range points[:split] {
		before[i] = p.Value
	}
	var r Recovery
	if r.Before, err = serial.MeanOf(before, o.Confidence); err != nil {
		return Recovery{}, err
	}
	if r.Before.Value == 0 {
		return Recovery{}, errors.New("recovery: throughput before the fault is 0: there is no level to come back to")
	}
	s := course{points: points, split: split, fault: faultSeconds, level: r.Before.Value}
	r.read(s, o)
	return r, nil
}

func validate(points []Point, fault float64, o Options) (split int, err error) {
	var bad []error
	if !(o.Fraction > 0 && o.Fraction <= 1) {
		bad = append(bad, fmt.Errorf("recovery: fraction %v: must be above 0 and at most 1, as 0.9", o.Fraction))
	}
	if !(o.HoldSeconds > 0) {
		bad = append(bad, fmt.Errorf("recovery: hold of %v s: must be above 0", o.HoldSeconds))
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		bad = append(bad, fmt.Errorf("recovery: confidence %v: must lie between 0 and 1, as 0.95", o.Confidence))
	}
	for i, p := range points {
		if !(p.Value >= 0) || math.IsInf(p.Value, 0) {
			bad = append(
				bad,
				fmt.Errorf("recovery: point %d: throughput %v: must be a finite number, not negative; leave gaps out",
					i+1, p.Value),
			)
		}
		if math.IsNaN(p.Seconds) || math.IsInf(p.Seconds, 0) || i > 0 && !(p.Seconds > points[i-1].Seconds) {
			bad = append(bad,
				fmt.Errorf("recovery: point %d: time %v s: must be finite and after the one before", i+1, p.Seconds))
		}
		if p.Seconds <= fault {
			split = i + 1
		}
	}
	if split < 3 || split == len(points) {
		bad = append(
			bad,
			fmt.Errorf("recovery: %d points before the fault at %v s and %d after: at least 3 and 1 are needed", split,
				fault, len(points)-split),
		)
	}
	return split, errors.Join(bad...)
}

// course is a series around its fault.
type course struct {
	points []Point
	split  int // first point after the fault
	fault  float64
	level  float64
}

// moment is the end of interval i.
func (s course) moment(i int) Moment {
	end := s.points[i].Seconds - s.fault
	start := max(0, s.points[i-1].Seconds-s.fault)
	return Moment{
		Reached:  true,
		Seconds:  end,
		Interval: resample.Interval{Low: start, High: end, Confidence: 1, Method: "between two points"},
	}
}

// earliest is how soon after the fault the level that interval i shows may have been regained: the interval before was
// short of it as a whole, and its last part need not have been. How little was done until then is seen of intervals
// that were low from end to end; where there is none, nothing may have been.
func (s course) earliest(i int, target float64) float64 {
	before, low := s.points[i-1], 0.0
	start := before.Seconds - s.fault
	if i-1 < s.split || before.Value >= target {
		return max(0, start)
	}
	first, _ := s.after(s.split, func(v float64) bool { return v < target })
	if first+1 < i-1 {
		low = s.points[first+1].Value
		for _, p := range s.points[first+1 : i-1] {
			low = min(low, p.Value)
		}
	}
	part := max(0, before.Value-low) / (target - low)
	return max(0, start-part*(before.Seconds-s.points[i-2].Seconds))
}

// after is the first point from i on for which yes.
func (s course) after(i int, yes func(float64) bool) (int, bool) {
	for ; i < len(s.points); i++ {
		if yes(s.points[i].Value) {
			return i, true
		}
	}
	return 0, false
}

func never(format string, args ...any) Moment {
	reason := fmt.Sprintf(format, args...)
	return Moment{Reason: reason, Interval: resample.None(reason)}
}

func (r *Recovery) read(s course, o Options) {
	none := stoppedBelow * s.level
	from := s.split // where the way back begins
	if stop, ok := s.after(s.split, func(v float64) bool { return v < none }); ok {
		r.Stopped = s.moment(stop)
		if first, ok := s.after(stop, func(v float64) bool { return v >= none }); ok {
			r.First, from = s.moment(first), first
		} else {
			r.First, from = never("no work was done again before the series ends"), len(s.points)
		}
	} else {
		r.Stopped = never("throughput never fell below %.0f %% of the level before", 100*stoppedBelow)
		r.First = never("work never stopped")
		if dip, ok := s.after(s.split, func(v float64) bool { return v < o.Fraction*s.level }); ok {
			from = dip
		}
	}
	end := s.regained(r, from, o)
	r.Lowest = math.Inf(1)
	previous := s.fault
	for i, p := range s.points[s.split:] {
		if i += s.split; i <= end {
			r.Lowest = min(r.Lowest, p.Value)
			r.LostWork += (s.level - p.Value) * (p.Seconds - previous)
			r.Behind = max(r.Behind, r.LostWork)
		}
		previous = p.Seconds
	}
	top := func(points []Point) float64 {
		return slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.Value, b.Value) }).Value
	}
	if high := top(s.points[s.split:]); high > top(s.points[:s.split]) {
		var then []float64
		for _, p := range s.points[min(end+1, len(s.points)-1):] {
			then = append(then, p.Value)
		}
		then = then[3*len(then)/4:] // a rate that goes on rising does not overshoot
		r.Overshoot = max(0, high/max(s.level, resample.Median(then))-1)
	}
}

// regained looks for the first interval at the fraction whose following hold stays there on average, and returns the
// last point of the way back.
func (s course) regained(r *Recovery, from int, o Options) int {
	target := o.Fraction * s.level
	last := len(s.points) - 1
	for i := from; i <= last; i++ {
		if s.points[i].Value < target {
			continue
		}
		start := s.points[i-1].Seconds
		var work, span float64
		for j := i; j <= last && span < o.HoldSeconds; j++ {
			step := s.points[j].Seconds - s.points[j-1].Seconds
			work, span = work+s.points[j].Value*step, s.points[j].Seconds-start
		}
		if work < target*span {
			continue
		}
		r.Regained = s.moment(i)
		r.Regained.Interval.Low = s.earliest(i, target)
		if span < o.HoldSeconds {
			r.Warnings = append(
				r.Warnings,
				fmt.Sprintf("the series ends %.3g s after the level was regained, a hold of %.3g s was asked for", span,
					o.HoldSeconds),
			)
		}
		return i
	}
	r.Regained = never("%.0f %% of the level before was not regained within %.3g s", 100*o.Fraction,
		s.points[last].Seconds-s.fault)
	return last
}

// Spread is a time over repeats.
type Spread struct {
	N        int
	Mean     float64
	Interval resample.Interval // Student's t, which takes repeats as independent and roughly normal
	Min, Max float64
	Missing  int // repeats in which the moment never came: they are not in the mean
	Warnings []string
}

// Repeats joins one moment of several recoveries.
func Repeats(moments []Moment, confidence float64) (Spread, error) {
	if !(confidence > 0 && confidence < 1) {
		return Spread{}, fmt.Errorf("recovery: confidence %v: must lie between 0 and 1, as 0.95", confidence)
	}
	var seconds []float64
	for _, m := range moments {
		if m.Reached {
			seconds = append(seconds, m.Seconds)
		}
	}
	s := Spread{
		N:        len(seconds),
		Missing:  len(moments) - len(seconds),
		Interval: resample.None("fewer than two repeats show no spread"),
	}
	if s.Missing > 0 {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("in %d of %d repeats it never came: the mean flatters", s.Missing, len(moments)))
	}
	if s.N == 0 {
		return s, nil
	}
	s.Mean, s.Min, s.Max = stat.Mean(seconds, nil), slices.Min(seconds), slices.Max(seconds)
	if s.N > 1 {
		half := resample.StudentT(confidence, float64(s.N-1)) * stat.StdDev(seconds, nil) / math.Sqrt(float64(s.N))
		s.Interval = resample.Interval{
			Low:        s.Mean - half,
			High:       s.Mean + half,
			Confidence: confidence,
			Method:     "Student's t over repeats",
		}.Clamp(0, math.Inf(1))
	}
	return s, nil
}
