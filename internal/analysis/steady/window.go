package steady

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/change"
	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Options of a search in a long series. The zero value is what the fields say.
type Options struct {
	Tolerance    float64 // shifts and drifts smaller than this share of the mean do not matter; 0 means 0.05
	Least        float64 // share of the series, after the warm-up, that a steady window must fill; 0 means 0.5
	Significance float64 // of changes and periods; 0 means 0.01
	Confidence   float64 // of the mean's interval; 0 means 0.95
	Seed         uint64  // 0 means resample.DefaultSeed
}

func (o Options) filled() (Options, error) {
	for _, f := range []struct {
		v    *float64
		zero float64
	}{{&o.Tolerance, 0.05}, {&o.Least, 0.5}, {&o.Significance, 0.01}, {&o.Confidence, 0.95}} {
		if *f.v == 0 {
			*f.v = f.zero
		}
	}
	var bad []error
	for _, f := range []struct {
		name string
		v    float64
	}{{"tolerance", o.Tolerance}, {"least share", o.Least}, {"significance", o.Significance}, {"confidence", o.Confidence}} {
		if !(f.v > 0 && f.v < 1) {
			bad = append(bad, fmt.Errorf("steady: %s %v: must lie between 0 and 1", f.name, f.v))
		}
	}
	return o, errors.Join(bad...)
}

// Stretch is the verdict on a long series. Indices are into the series given.
type Stretch struct {
	Reached     bool
	First, Last int         // the longest even stretch, steady or not
	WarmUp      int         // points left out at the start as warm-up
	Mean        serial.Mean // over the stretch, in whole periods when there is a period
	DriftShare  float64     // movement of the robust trend across the stretch ÷ |mean|
	Drift       change.Slope
	Period      serial.Period  // of the series after the warm-up
	Changes     []change.Point // changes of level that matter
	Reason      string         // why not reached; empty when it was
	Warnings    []string
}

// fewestPoints is the shortest series in which the parts of the method can say anything.
const fewestPoints = 50

// Window finds the steady part of a long series of evenly spaced points, such as one per second.
//
// The warm-up is cut by MSER-5 (WarmUp). If the rest has a period it is judged by means over whole periods. Change points split it;
// those that move the level by less than the tolerance are ignored. The longest piece is steady when it fills the share
// asked for, its robust trend moves it by less than twice the tolerance or is not significant, and it holds at least three
// periods. Every condition that fails is in Reason.
func Window(values []float64, o Options) (Stretch, error) {
	o, err := o.filled()
	if err = errors.Join(err, serial.Finite("steady", values)); err != nil {
		return Stretch{}, err
	}
	var s Stretch
	none := func(format string, args ...any) (Stretch, error) {
		s.Last, s.Reason = len(values)-1, fmt.Sprintf(format, args...)
		s.Mean.Interval = resample.None("no steady window")
		return s, nil
	}
	if len(values) < fewestPoints {
		return none("%d points: at least %d are needed, use rounds instead", len(values), fewestPoints)
	}
	settled := false
	if s.WarmUp, settled = WarmUp(values); !settled {
		s.WarmUp = 0 // no cut helps; the changes and the drift of the whole series say why
	}
	rest := values[s.WarmUp:]
	if s.Period, err = serial.PeriodOf(rest, o.Significance); err != nil {
		return Stretch{}, err
	}
	step := 1
	if s.Period.Found {
		step = int(math.Round(s.Period.Points))
	}
	if err := s.longest(rest, step, o); err != nil {
		return Stretch{}, err
	}
	part := values[s.First : s.Last+1]
	if s.Mean, err = mean(part, step, o.Confidence); err != nil {
		return Stretch{}, err
	}
	if err := s.judge(part, len(rest), step, settled, o); err != nil {
		return Stretch{}, err
	}
	return s, nil
}

// longest splits the rest at the changes that matter and sets First and Last to the longest piece.
func (s *Stretch) longest(rest []float64, step int, o Options) error {
	found, err := change.Detect(blocks(rest, step), change.Options{Significance: o.Significance, Seed: o.Seed})
	if err != nil {
		return err
	}
	level := math.Abs(stat.Mean(rest, nil))
	edges := []int{0}
	for _, p := range found.Points {
		if math.Abs(p.After-p.Before) < o.Tolerance*level {
			continue
		}
		p.Index, p.Low, p.High = s.WarmUp+p.Index*step, s.WarmUp+p.Low*step, s.WarmUp+p.High*step
		s.Changes = append(s.Changes, p)
		edges = append(edges, p.Index-s.WarmUp)
	}
	edges = append(edges, len(rest))
	for i := range len(edges) - 1 {
		if edges[i+1]-edges[i] > s.Last-s.First+1 || i == 0 {
			s.First, s.Last = s.WarmUp+edges[i], s.WarmUp+edges[i+1]-1
		}
	}
	return nil
}

// judge sets the verdict on the stretch, and every warning.
func (s *Stretch) judge(part []float64, rest, step int, settled bool, o Options) error {
	var reasons []string
	if !settled {
		reasons = append(reasons, "it has not settled by its middle: the start differs from the rest however much of it is left out")
	}
	if len(part) < int(o.Least*float64(rest)) {
		reasons = append(reasons, fmt.Sprintf("the longest even stretch is %d of %d points, %.0f %% are asked for", len(part), rest, 100*o.Least))
	}
	if s.Period.Found && float64(len(part)) < s.Period.Points {
		reasons = append(reasons, fmt.Sprintf("the stretch of %d points is shorter than one period of %.0f", len(part), s.Period.Points))
	} else if s.Period.Found && float64(len(part)) < 3*s.Period.Points {
		reasons = append(reasons, fmt.Sprintf("the stretch of %d points holds fewer than three periods of %.0f", len(part), s.Period.Points))
	}
	if even := blocks(part, step); len(even) >= 10 {
		slope, err := change.Trend(even, o.Confidence)
		if err != nil {
			return err
		}
		s.Drift = slope
		s.DriftShare = relative(slope.PerPoint*float64(len(even)-1), s.Mean.Value)
		if slope.P < o.Significance && s.DriftShare > 2*o.Tolerance {
			reasons = append(reasons, fmt.Sprintf("it drifts by %.1f %% of its mean, %.1f %% are allowed", 100*s.DriftShare, 200*o.Tolerance))
		}
	} else {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d periods are too few to judge a drift, 10 are needed", len(even)))
	}
	if s.Last < s.WarmUp+rest-1 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the level changed again at point %d", s.Last+1))
	}
	for i, r := range reasons {
		if i > 0 {
			s.Reason += "; "
		}
		s.Reason += r
	}
	s.Reached = len(reasons) == 0
	return nil
}

// blocks are means over whole steps; what is left at the end is left out.
func blocks(x []float64, step int) []float64 {
	if step <= 1 {
		return x
	}
	out := make([]float64, len(x)/step)
	for i := range out {
		out[i] = stat.Mean(x[i*step:(i+1)*step], nil)
	}
	return out
}

// mean over whole periods, whose means are nearly independent of where the window begins.
func mean(part []float64, step int, confidence float64) (serial.Mean, error) {
	even := blocks(part, step)
	if len(even) == 0 {
		return serial.Mean{Value: stat.Mean(part, nil), Interval: resample.None("the stretch is shorter than one period")}, nil
	}
	m, err := serial.MeanOf(even, confidence)
	m.Time *= float64(step)
	return m, err
}

// WarmUp is the number of points to leave out at the start by MSER-5 (White 1997; White, Cobb and Spratt 2000): over means
// of five points it minimises the squared standard error of the mean of what remains, Σ(y−ȳ)²/(m−d)², over the first half
// only, since the rule mistakes a calm end for a settled one. settled is false when the minimum lies at the middle: then
// leaving out still more would help, and there is not enough after the warm-up to tell.
func WarmUp(values []float64) (points int, settled bool) {
	const batch = 5
	y := blocks(values, batch)
	m := len(y)
	if m < 4 {
		return 0, true
	}
	best, cut := math.Inf(1), 0
	var n, mean, squares float64 // of y[d:], grown from the end
	for d := m - 1; d >= 0; d-- {
		n++
		delta := y[d] - mean
		mean += delta / n
		squares += delta * (y[d] - mean)
		if v := squares / (n * n); d <= m/2 && v <= best {
			best, cut = v, d
		}
	}
	return cut * batch, cut < m/2
}
