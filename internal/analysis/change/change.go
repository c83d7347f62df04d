// Package change finds where a series changes, and whether it drifts.
//
// Detect returns change points with significance by permutation, the place of each with an interval, and the shift of
// level with one. Trend gives a robust slope. Both serve the history of a benchmark over runs as well as the points of
// one run.
//
// The search is the same for every length. Cumulative sums over seeded intervals (Kovács, Bühlmann, Li and Munk 2023,
// "Seeded binary segmentation", O(n log n)) propose the narrowest intervals that contain a shift (Baranowski, Chen and
// Fryzlewicz 2019); what the largest sum may be without a change is seen from shuffles of the whole series, and when
// changes were found, of what they leave; shuffling tests each proposal between its neighbours. Values that stand alone
// are brought near their neighbourhood first, so that one wild value cannot make or hide a change. Levels are searched
// first, then the spread about them. Series of fewer than 200 values are also split in two as a whole, those of fewer
// than 50 by normal theory, since few values have too few orders.
//
// Neighbouring points of one run depend on each other, which a shuffle does not know. Unless the caller says that
// points are independent, first-order dependence is estimated and filtered out first; and since a shift looks like
// dependence and dependence like shifts, what is found must explain the series better than dependence without any
// change does (wanders). If it does not, no change is returned and Result says that it cannot be told. What that cannot
// repair: long memory and periods still look like changes (see the limits measured in the tests); look for a period
// with package serial first and give Detect the means over whole periods.
//
// Pure: no I/O, no clock, random numbers only from the seed given.
package change

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Options of a search. The zero value searches at level 0.01.
type Options struct {
	Significance float64 // chance of finding any change in a series without one; 0 means 0.01
	MinSegment   int     // fewest points between changes; 0 means 3; at least 2
	Permutations int     // shuffles per test; 0 means as many as the level needs; at least 1/Significance
	// changes that move the mean by no more are left out, the smallest first; 0 keeps all, those of spread too
	MinShift    float64
	Independent bool    // points do not depend on their neighbours: the history of separate runs
	Confidence  float64 // of the intervals; 0 means 0.95
	Seed        uint64  // 0 means resample.DefaultSeed
}

func (o Options) filled() (Options, error) {
	if o.Significance == 0 {
		o.Significance = 0.01
	}
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if o.Seed == 0 {
		o.Seed = resample.DefaultSeed
	}
	if o.MinSegment == 0 {
		o.MinSegment = 3
	}
	var bad []error
	if !(o.Significance > 0 && o.Significance < 1) {
		bad = append(bad, fmt.Errorf("change: significance %v: must lie between 0 and 1, as 0.01", o.Significance))
	} else if o.Permutations == 0 {
		o.Permutations = int(math.Ceil(2/o.Significance)) - 1
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		bad = append(bad, fmt.Errorf("change: confidence %v: must lie between 0 and 1, as 0.95", o.Confidence))
	}
	if o.MinSegment < 2 {
		bad = append(bad, fmt.Errorf("change: segments of %d points: at least 2 are needed", o.MinSegment))
	}
	if float64(o.Permutations+1)*o.Significance < 1 {
		bad = append(
			bad,
			fmt.Errorf("change: %d permutations cannot reach a level of %v: at least %.0f are needed", o.Permutations,
				o.Significance, 1/o.Significance-1),
		)
	}
	if !(o.MinShift >= 0) || math.IsInf(o.MinShift, 0) {
		bad = append(bad, fmt.Errorf("change: least shift %v: must be a number of 0 or more", o.MinShift))
	}
	return o, errors.Join(bad...)
}

// Point is one change.
type Point struct {
	Index     int // first point of the new regime, as an index into the series given
	Low, High int // the change lies between these indices with the confidence asked for; both Index when not known
	// Before and After are the means up to the neighbouring changes.
	Before, After float64
	// Shift is After − Before. Its interval allows for dependence but takes the place as given, which flatters shifts
	// barely detected.
	Shift resample.Interval
	P     float64 // by permutation
}

// Result of a search.
type Result struct {
	Points     []Point // by rising index
	Dependence float64 // first-order coefficient that was filtered out
	// places that look like changes but that dependence makes as well: whether they are cannot be told
	Wanders int
	// Slides tells that a slow movement explains the values better than the steps in Points, which stand for it then.
	Slides   bool
	Method   string
	Warnings []string
}

// Detect finds the changes of a series. NaN is a gap: such points are left out, and a warning counts them. Infinite
// values are refused.
func Detect(values []float64, o Options) (Result, error) {
	x, index, err := present(values)
	o, oerr := o.filled()
	if err = errors.Join(oerr, err); err != nil {
		return Result{}, err
	}
	res := Result{Method: "cumulative sums over seeded intervals, tested by shuffling"}
	if gaps := len(values) - len(x); gaps > 0 {
		res.Warnings = append(res.Warnings,
			fmt.Sprintf("%d of %d points are missing and were left out", gaps, len(values)))
	}
	if len(x) < 2*o.MinSegment {
		res.Warnings = append(res.Warnings,
			fmt.Sprintf("%d points: at least %d are needed to see a change", len(x), 2*o.MinSegment))
		return res, nil
	}
	if o.Independent || len(x) < fewestForDependence {
		if !o.Independent {
			res.Warnings = append(res.Warnings, "too few points to estimate dependence: they are taken as independent")
		}
		res.describe(x, x, index, search(x, o), o)
		return res, nil
	}
	if len(x) >= fewestForAR1 {
		res.Dependence = serial.AR1(x)
	}
	still := tamed(x, o.MinSegment)
	white := filtered(x, still, res.Dependence)
	cuts := search(white, o)
	if len(cuts) == 0 {
		return res, nil
	}
	// the coefficient of the null is itself only estimated
	if p, phi := wanders(x, len(cuts), o); p > o.Significance {
		return res.cannotTell(len(cuts), len(x), phi), nil
	}
	// What the cuts leave gives a sharper estimate. If it is higher, some cuts were dependence: search once more.
	if phi := residualDependence(x, cuts); phi > res.Dependence {
		res.Dependence = phi
		white = filtered(x, still, phi)
		places := len(cuts)
		if cuts = search(white, o); len(cuts) == 0 {
			return res.cannotTell(places, len(x), phi), nil
		}
	}
	res.describe(x, white, index, cuts, o)
	return res, nil
}

func (r Result) cannotTell(places, points int, phi float64) Result {
	r.Dependence, r.Wanders = phi, places
	r.Warnings = append(
		r.Warnings,
		fmt.Sprintf("adjacent points are so alike (correlation %.2f) that the series may wander by itself: "+
			"whether it changes is inconclusive from %d points", phi, points),
	)
	return r
}

const (
	fewestForAR1        = 200  // below, medians of differences say too little
	fewestForDependence = 20   // below, dependence cannot be told from a change
	mostDependence      = 0.95 // beyond, a series cannot be told from one that wanders
)

// residualDependence is the lag-1 correlation about the means between cuts, raised by one standard error when it is
// more than two from zero: a coefficient taken too low makes false changes, one too high only hides small ones.
func residualDependence(x []float64, cuts []cut) float64 {
	at := []int{0, len(x)}
	for _, c := range cuts {
		at = append(at, c.at)
	}
	slices.Sort(at)
	residual := make([]float64, 0, len(x))
	for i := range len(at) - 1 {
		part := x[at[i]:at[i+1]]
		mean := stat.Mean(part, nil)
		for _, v := range part {
			residual = append(residual, v-mean)
		}
	}
	phi, n := lagOne(residual), float64(len(x))
	se := math.Sqrt((1 - phi*phi) / n)
	if phi <= 2*se {
		return 0
	}
	return min(phi+se, mostDependence)
}

// present leaves out NaN and keeps the index of what remains.
func present(values []float64) (x []float64, index []int, err error) {
	for i, v := range values {
		switch {
		case math.IsInf(v, 0):
			err = errors.Join(err, fmt.Errorf("change: value %d is %v: remove it", i+1, v))
		case !math.IsNaN(v):
			x, index = append(x, v), append(index, i)
		}
	}
	return x, index, err
}

// filtered is x[i] − φ·x[i−1]: a shift of level stays a shift in it, at the same place. A stray value that the next one
// does not follow would leave an echo there, which with it is no single stray: of such its tamed value is taken.
func filtered(x, tamed []float64, phi float64) []float64 {
	out := slices.Clone(x)
	for i := len(x) - 1; i > 0; i-- {
		followed, alone := x[i]-phi*x[i-1], x[i]-phi*tamed[i-1]
		out[i] = followed
		if still := tamed[i] - phi*tamed[i-1]; math.Abs(alone-still) < math.Abs(followed-still) {
			out[i] = alone
		}
	}
	if len(x) > 1 {
		out[0] = out[0] * (1 - phi)
	}
	return out
}

// cut is a change at the first point of the right side.
type cut struct {
	at int
	p  float64
}

// material leaves out the cut that moves the mean least, as long as it does so by no more than may be, and looks again:
// what is left together may move it further.
func material(x []float64, cuts []cut, least float64) []cut {
	if least == 0 {
		return cuts
	}
	sums := make([]float64, len(x)+1)
	for i, v := range x {
		sums[i+1] = sums[i] + v
	}
	mean := func(from, to int) float64 { return (sums[to] - sums[from]) / float64(to-from) }
	for len(cuts) > 0 {
		smallest, by := 0, math.Inf(1)
		for i, c := range cuts {
			from, to := beside(cuts, i, len(x))
			if d := math.Abs(mean(c.at, to) - mean(from, c.at)); d < by {
				smallest, by = i, d
			}
		}
		if by > least {
			break
		}
		cuts = slices.Delete(cuts, smallest, smallest+1)
	}
	return cuts
}

// local leaves out the cut that stands least far out of the spread of its own two sides, where that is larger than
// elsewhere, as long as it is hardly out of it, and looks again: there means of few values lie far apart without a
// change.
func local(x []float64, cuts []cut) []cut {
	const (
		larger = 2   // times the variance of all sides
		hardly = 4.5 // standard errors
		few    = 5   // values, of which the spread says too little: that of all sides stands for theirs
	)
	for len(cuts) > 0 {
		var rest float64
		for i := range len(cuts) + 1 {
			from, to := 0, len(x)
			if i > 0 {
				from = cuts[i-1].at
			}
			if i < len(cuts) {
				to = cuts[i].at
			}
			rest += stat.PopVariance(x[from:to], nil) * float64(to-from)
		}
		rest /= float64(len(x))
		unsure := func(part []float64) float64 { // the variance of its mean
			if len(part) < few {
				return rest / float64(len(part))
			}
			return stat.Variance(part, nil) / float64(len(part))
		}
		least, by := 0, math.Inf(1)
		for i, c := range cuts {
			from, to := beside(cuts, i, len(x))
			a, b := x[from:c.at], x[c.at:to]
			if max(unsure(a)*float64(len(a)), unsure(b)*float64(len(b))) < larger*rest {
				continue
			}
			if d := math.Abs(stat.Mean(b, nil)-stat.Mean(a, nil)) / math.Sqrt(unsure(a)+unsure(b)); d < by {
				least, by = i, d
			}
		}
		if by > hardly {
			break
		}
		cuts = slices.Delete(cuts, least, least+1)
	}
	return cuts
}

// nearer moves the first and the last cut by a point where the fewest points of a segment lie between it and the end,
// and two levels fit better so: a step of two points is found with a third one of the other level.
func nearer(x []float64, cuts []cut, least int) []cut {
	if least < 3 {
		return cuts
	}
	left := func(i, at int) float64 {
		from, to := beside(cuts, i, len(x))
		return stat.PopVariance(x[from:at], nil)*float64(at-from) + stat.PopVariance(x[at:to], nil)*float64(to-at)
	}
	for i, c := range cuts {
		switch {
		case i == len(cuts)-1 && c.at == len(x)-least && left(i, c.at+1) < left(i, c.at):
			cuts[i].at++
		case i == 0 && c.at == least && left(i, c.at-1) < left(i, c.at):
			cuts[i].at--
		}
	}
	return cuts
}

func (r *Result) describe(x, white []float64, index []int, cuts []cut, o Options) {
	slices.SortFunc(cuts, byPlace)
	cuts = material(x, nearer(white, local(white, cuts), o.MinSegment), o.MinShift)
	at := places(white, cuts, o)
	for i, c := range cuts {
		from, to := beside(cuts, i, len(x))
		r.Points = append(r.Points, Point{
			Index: index[c.at], Low: index[at[i].low], High: index[at[i].high], P: c.p,
			Before: stat.Mean(x[from:c.at], nil), After: stat.Mean(x[c.at:to], nil),
			Shift: shift(x[from:c.at], x[c.at:to], r.Dependence, o.Confidence),
		})
	}
	if r.Slides = slides(tamed(white, o.MinSegment), cuts); r.Slides {
		r.Warnings = append(r.Warnings, "a slow movement explains the values better than "+
			"steps do: these are its approximation, and their places say little")
	}
}

// beside are the ends of the two segments that a cut parts.
func beside(cuts []cut, i, n int) (from, to int) {
	to = n
	if i > 0 {
		from = cuts[i-1].at
	}
	if i+1 < len(cuts) {
		to = cuts[i+1].at
	}
	return from, to
}

// slides reports whether a line with up to six cosine waves, which make up to three swings, explains values better than
// the steps that cuts make, by Schwarz's criterion and beyond doubt: a movement that is slow is cut into steps, too.
func slides(y []float64, cuts []cut) bool {
	const (
		fewest = 50 // below, an interval of the history is as good a step as a slope
		waves  = 6
		doubt  = 10
	)
	if len(cuts) == 0 || len(y) < fewest {
		return false
	}
	n := float64(len(y))
	cost := func(rest []float64, parameters int) float64 {
		squares := 0.0
		for _, v := range rest {
			squares += v * v
		}
		return n*math.Log(squares/n) + float64(parameters)*math.Log(n)
	}
	steps := cost(residuals(y, y, cuts), 2*len(cuts)+1)
	at, wave := make([]float64, len(y)), make([]float64, len(y))
	for i := range at {
		at[i] = float64(i)
	}
	rest, slow := slices.Clone(y), math.Inf(1)
	for j := range waves + 1 {
		shape := at
		if j > 0 {
			for i := range wave {
				wave[i] = math.Cos(math.Pi * float64(j) / n * (float64(i) + 0.5))
			}
			shape = wave
		}
		level, by := stat.LinearRegression(shape, rest, nil, false)
		for i := range rest {
			rest[i] -= level + by*shape[i]
		}
		slow = min(slow, cost(rest, j+2))
	}
	return slow+doubt < steps
}

// shift is Welch's interval with the variance of each mean multiplied by (1+φ)/(1−φ) for dependence and as many fewer
// degrees of freedom.
func shift(before, after []float64, phi, confidence float64) resample.Interval {
	inflation := (1 + phi) / (1 - phi)
	nb, na := float64(len(before))/inflation, float64(len(after))/inflation
	if nb < 2 || na < 2 {
		return resample.None("too few independent points beside the change")
	}
	vb, va := stat.Variance(before, nil)/nb, stat.Variance(after, nil)/na
	d := stat.Mean(after, nil) - stat.Mean(before, nil)
	dof := nb + na - 2
	if vb+va > 0 {
		dof = (vb + va) * (vb + va) / (vb*vb/(nb-1) + va*va/(na-1))
	}
	half := resample.StudentT(confidence, dof) * math.Sqrt(vb+va)
	return resample.Interval{
		Low:        d - half,
		High:       d + half,
		Confidence: confidence,
		Method:     "Welch's t, the place taken as given",
	}
}

// placeWithin limits how far around a change its place is resampled.
const placeWithin = 1000

// span is where a cut lies, with the confidence asked for; both ends are the cut where that is not known.
type span struct{ low, high int }

func places(x []float64, cuts []cut, o Options) []span {
	out := make([]span, len(cuts))
	for i, c := range cuts {
		out[i] = span{c.at, c.at}
		from, to := beside(cuts, i, len(x))
		if low, high, ok := place(x[from:to], c.at-from, o); ok {
			out[i] = span{from + low, from + high}
		}
	}
	return out
}

// place is the interval of a change's position: residuals about the two means are drawn anew around the change found,
// and the middle of the positions then found is kept (Hušková and Kirch 2008). Not ok when the level does not move.
func place(x []float64, at int, o Options) (low, high int, ok bool) {
	from, to := max(0, at-placeWithin), min(len(x), at+placeWithin)
	x, at = x[from:to], at-from
	if at < 2 || len(x)-at < 2 {
		return 0, 0, false
	}
	left, right := stat.Mean(x[:at], nil), stat.Mean(x[at:], nil)
	if d := shift(x[:at], x[at:], 0, o.Confidence); !d.Valid() || d.Contains(0) {
		return 0, 0, false
	}
	r := resample.Source(o.Seed, uint64(at))
	const rounds = 99
	found, y := make([]float64, rounds), make([]float64, len(x))
	for i := range found {
		for j := range y {
			if j < at {
				y[j] = x[r.IntN(at)]
			} else {
				y[j] = x[at+r.IntN(len(x)-at)]
			}
		}
		found[i] = float64(steepest(y, left, right))
	}
	slices.Sort(found)
	tail := (1 - o.Confidence) / 2
	low, high = int(resample.Quantile(found, tail)), int(math.Ceil(resample.Quantile(found, 1-tail)))
	return from + min(low, at), from + min(max(high, at), len(x)-1), true
}

// steepest is the cut that best separates two known levels.
func steepest(y []float64, left, right float64) int {
	best, at, sum := math.Inf(-1), 1, 0.0
	middle := (left + right) / 2
	for i, v := range y[:len(y)-1] {
		if left < right {
			sum += middle - v
		} else {
			sum += v - middle
		}
		if sum > best {
			best, at = sum, i+1
		}
	}
	return at
}

// lagOne is the correlation of neighbours, corrected for bias by (n·ρ+1)/(n−4), cut to [0, 0.95].
func lagOne(x []float64) float64 {
	n := float64(len(x))
	rho := serial.Autocorrelation(x, 1)[1]
	if rho == 0 {
		return 0
	}
	return min(max((n*rho+1)/(n-4), 0), 0.95)
}
