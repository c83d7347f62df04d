package effect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Sequence holds what the order in which repeats were made says of them. Repeats that drift, or whose neighbours are
// alike, are worth fewer than they are.
type Sequence struct {
	Correlation float64 // of neighbours within a side, corrected for the number of repeats
	P           float64 // chance of neighbours as alike if the order meant nothing, 1 untested
	Drift       float64 // common slope within the sides, a share of the mean per repeat
	DriftP      float64 // chance of such a slope without drift; 1 untested
	Worth       float64 // independent repeats that those of the shorter side are worth
	// Hidden is the difference, as a share of the mean, that a drift which does not show could make, when all of one
	// side came first: 0 where the order is known to be mixed; NaN where too few repeats bound no drift.
	Hidden   float64
	Warnings []string
}

const (
	fewestForDrift  = 3 // repeats a side, below which their order says nothing
	fewestForBefore = 4 // repeats a side, below which that of neighbours says nothing
	// repeats a side, below which dependence is told from its absence too badly to refuse for it
	fewestForWorth = 8
	suspicion      = 0.20 // level below which intervals are widened for dependence
	driftSuspicion = 0.10 // and for drift
	// and for drift when one side is known to have come after the other: then a drift is a difference, and few repeats
	// show it badly
	confoundedSuspicion = 0.50
	evidence            = 0.05 // level below which it is said
	refusal             = 0.02 // level below which repeats worth too few get no interval
	leastWorth          = 4    // independent repeats a side, below which dependent ones give no interval
	permutations        = 400
)

// sequence is the order of the repeats of both sides, as far as it is known.
type sequence struct {
	Sequence
	at       [2][]float64 // place in time of each repeat; by row where only the order within the sides is known
	known    bool         // the places are those of all repeats together
	mixed    bool         // they are known, and neither side came before the other, so that what repeats share cancels
	blocked  [][2]int     // pairs of neighbours in time, one of each side, when all repeats are in such pairs
	relative [2][]float64 // values less their mean, over it
}

// sequenceOf tests what the order of repeats says of them. The order of all, baseline first, is nil when only that
// within the sides is known.
func sequenceOf(baseline, candidate []float64, o Options) sequence {
	s := sequence{Sequence: Sequence{P: 1, DriftP: 1, Worth: float64(min(len(baseline), len(candidate)))}}
	sides := [2][]float64{baseline, candidate}
	for i, x := range sides {
		for j := range x {
			place := float64(j)
			if o.Order != nil {
				place = float64(o.Order[i*len(baseline)+j])
			}
			s.at[i] = append(s.at[i], place)
		}
	}
	s.known = o.Order != nil
	s.blocked = s.blocks()
	for i, x := range sides {
		s.relative[i] = inOrder(relativeTo(x), s.at[i])
		slices.Sort(s.at[i])
	}
	s.Hidden = math.NaN()
	n := min(len(baseline), len(candidate))
	if n < fewestForDrift {
		return s
	}
	_, se, dof, apart := s.slope(s.relative)
	s.mixed = s.known && math.Abs(apart) < mixedWithin*s.reach()
	if s.Hidden = 0; !s.mixed {
		s.Hidden = resample.StudentT(o.Confidence, dof) * se * s.reach()
	}
	s.drift()
	if n >= fewestForBefore && !s.mixed {
		s.correlate()
	}
	s.warn()
	return s
}

// mixedWithin is how far apart in time the sides' middles may lie, as a share of half their length.
const mixedWithin = 0.25

// relativeTo are values less their mean, as shares of it; of a mean of zero the differences themselves.
func relativeTo(x []float64) []float64 {
	mean := stat.Mean(x, nil)
	size := cmp.Or(math.Abs(mean), 1)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - mean) / size
	}
	return out
}

// scaled are the values less their mean, over one size.
func (s *sequence) scaled(size float64, means ...float64) (out [2][]float64) {
	for i, x := range s.relative {
		for _, v := range x {
			out[i] = append(out[i], v*cmp.Or(math.Abs(means[i]), 1)/size)
		}
	}
	return out
}

// inOrder are the values by rising place.
func inOrder(x, at []float64) []float64 {
	index := make([]int, len(x))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	out := make([]float64, len(x))
	for i, j := range index {
		out[i] = x[j]
	}
	return out
}

// correlate measures how alike neighbours are. If the order means nothing, the first autocorrelation of a side of n has
// the mean −1/n and the variance (n−2)²/(n²(n−1)), and is nearly normal (Moran 1948, Biometrika 35).
func (s *sequence) correlate() {
	var products, squares, expected, variance, n float64
	for _, x := range s.relative {
		own, size := 0.0, float64(len(x))
		for i, v := range x {
			own += v * v
			if i > 0 {
				products += v * x[i-1]
			}
		}
		squares, expected, n = squares+own, expected-own/size, n+size
		variance += math.Pow(own*(size-2)/size, 2) / (size - 1)
	}
	if !(squares > 1e-24*n) {
		return
	}
	r := products / squares
	s.Correlation = min(max(r+(1+3*r)*2/n, 0), 0.95) // each side's own mean costs what Marriott and Pope say
	s.P = distuv.UnitNormal.Survival((products - expected) / math.Sqrt(variance))
	for i, x := range s.relative {
		worth := serial.SumOf(x, nil).Worth
		if i == 0 || worth < s.Worth {
			s.Worth = worth
		}
	}
}

// drift fits the common slope within the sides by least squares.
func (s *sequence) drift() {
	slope, se, dof, _ := s.slope(s.relative)
	if dof < 1 || !(se > 0) {
		return
	}
	s.Drift = slope
	s.DriftP = 2 * distuv.StudentsT{Sigma: 1, Nu: dof}.Survival(math.Abs(slope/se))
}

// slope is the common slope within the sides, its standard error and degrees of freedom, and how far apart the sides
// lie in time.
func (s *sequence) slope(sides [2][]float64) (slope, se, dof, apart float64) {
	var product, spread, left float64
	var middle [2]float64
	n := 0
	for i, x := range sides {
		middle[i] = stat.Mean(s.at[i], nil)
		n += len(x)
		for j, v := range x {
			product += (s.at[i][j] - middle[i]) * v
			spread += (s.at[i][j] - middle[i]) * (s.at[i][j] - middle[i])
		}
	}
	if !(spread > 0) {
		return 0, 0, 0, 0
	}
	slope = product / spread
	for i, x := range sides {
		for j, v := range x {
			e := v - slope*(s.at[i][j]-middle[i])
			left += e * e
		}
	}
	dof = float64(n - 3)
	return slope, math.Sqrt(left / dof / spread), dof, middle[1] - middle[0]
}

// blocks pairs the repeats with their neighbours in time, when each pair holds one of each side.
func (s *sequence) blocks() (pairs [][2]int) {
	if !s.known || len(s.at[0]) != len(s.at[1]) {
		return nil
	}
	type place struct {
		at          float64
		side, index int
	}
	var all []place
	for side, at := range s.at {
		for i, v := range at {
			all = append(all, place{v, side, i})
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	for i := 0; i+1 < len(all); i += 2 {
		if all[i].side == all[i+1].side {
			return nil
		}
		var pair [2]int
		pair[all[i].side], pair[all[i+1].side] = all[i].index, all[i+1].index
		pairs = append(pairs, pair)
	}
	return pairs
}

func (s *sequence) warn() {
	n := min(len(s.at[0]), len(s.at[1]))
	if s.P < evidence {
		s.Warnings = append(
			s.Warnings,
			fmt.Sprintf(
				"repeats depend on the ones before (adjacent repeats correlate %.2g, p = %.2g): %d of them are worth about %.2g",
				s.Correlation, s.P, n, s.Worth),
		)
	}
	if s.DriftP < evidence {
		text := fmt.Sprintf("the repeats drift by %s %% each (p = %.2g)",
			strings.Replace(fmt.Sprintf("%+.2g", 100*s.Drift), "-", "−", 1), s.DriftP)
		_, _, _, apart := s.slope(s.relative)
		switch {
		case !s.known:
			text += fmt.Sprintf(
				"; had all of one side come first, that alone would make a difference of %.2g %%, which the interval allows for",
				100*math.Abs(s.Drift)*s.reach())
		case math.Abs(apart) > 1:
			text += fmt.Sprintf(
				", and the sides lie %.3g repeats apart: that alone makes a difference of %+.2g %%, which is taken off",
				math.Abs(apart), 100*s.Drift*apart)
		}
		s.Warnings = append(s.Warnings, text)
	}
}

// reach is how far apart the sides lie when all of one came before the other.
func (s *sequence) reach() float64 { return float64(len(s.at[0])+len(s.at[1])) / 2 }

// shows reports whether the order may matter.
func (s *sequence) shows() bool { return s.depends() || s.drifts() }

// drifts reports whether the repeats drift so visibly that intervals allow for it.
func (s *sequence) drifts() bool {
	if s.known && !s.mixed {
		return s.DriftP < confoundedSuspicion
	}
	return s.DriftP < driftSuspicion
}

// depends reports whether neighbours are so alike that intervals allow for it. Few repeats tell that badly, and
// allowing for it costs them most of what they can say, so of them it is asked for more.
func (s *sequence) depends() bool {
	if min(len(s.at[0]), len(s.at[1])) < fewestForWorth {
		return s.P < evidence
	}
	return s.P < suspicion
}

// refuses is why dependent repeats give no interval; "" when they do.
func (s *sequence) refuses() string {
	if n := min(len(s.at[0]), len(s.at[1])); s.P < refusal && n >= fewestForWorth && s.Worth < leastWorth {
		return fmt.Sprintf(
			"repeats depend on the ones before (adjacent repeats correlate %.2g, p = %.2g): %d of them are worth about %.2g, and %d are needed. Make them further apart, or in mixed order with the other side",
			s.Correlation, s.P, n, s.Worth, leastWorth)
	}
	return ""
}

// widen makes an interval of a difference between the sides hold what their order may have done to it. The sides are
// values less their mean, in the scale of the interval and in order. Which of drift and dependence it is cannot be told
// from few repeats, so it is made to hold what each of them would do:
//
//   - dependence: the variance of means from slow waves (serial.SumOf);
//   - drift: the difference at one moment by regression on the order (analysis of covariance); where the order of the
//     sides is not known, both with one side before the other and the other way round.
func (s *sequence) widen(
	i resample.Interval,
	middle float64,
	sides [2][]float64,
	confidence float64,
) resample.Interval {
	if !i.Valid() || !s.shows() {
		return i
	}
	if s.drifts() {
		i.Method += ", drift allowed for"
		if s.known && s.DriftP < evidence {
			i.Low, i.High = math.Inf(1), math.Inf(-1) // it is known what the drift did
		}
		for _, k := range s.atOneMoment(middle, sides, confidence) {
			i.Low, i.High = min(i.Low, k.Low), max(i.High, k.High)
		}
	}
	if s.depends() {
		var sum, squares float64
		for _, x := range sides {
			all := serial.SumOf(x, nil)
			v := all.Variance / float64(len(x)*len(x))
			sum += v
			if all.DOF > 0 {
				squares += v * v / all.DOF
			}
		}
		if sum > 0 && squares > 0 {
			i.Method += ", dependence allowed for"
			half := resample.StudentT(confidence, sum*sum/squares) * math.Sqrt(sum)
			i.Low, i.High = min(i.Low, middle-half), max(i.High, middle+half)
		}
	}
	return i
}

// atOneMoment are the intervals of a difference with the common slope within the sides taken off (analysis of
// covariance): one, or where the order of the sides is not known, one for each that may have come first.
func (s *sequence) atOneMoment(middle float64, sides [2][]float64, confidence float64) (out []resample.Interval) {
	slope, se, dof, apart := s.slope(sides)
	if dof < 1 || !(se > 0) {
		return nil
	}
	var left float64
	n, middles := 0.0, [2]float64{stat.Mean(s.at[0], nil), stat.Mean(s.at[1], nil)}
	for side, x := range sides {
		n += 1 / float64(len(x))
		for j, v := range x {
			e := v - slope*(s.at[side][j]-middles[side])
			left += e * e
		}
	}
	for _, d := range s.places(apart) {
		half := resample.StudentT(confidence, dof) * math.Sqrt(left/dof*n+d*d*se*se)
		out = append(out, resample.Interval{Low: middle - slope*d - half, High: middle - slope*d + half})
	}
	return out
}

// places are how far apart in time the sides may lie: as they do, or where that is not known, with either side first.
func (s *sequence) places(apart float64) []float64 {
	if s.known {
		return []float64{apart}
	}
	return []float64{-s.reach(), s.reach()}
}

// explains says that a drift which these repeats cannot exclude leaves nothing sure of a difference that an interval
// claims; "" where it leaves something.
func (s *sequence) explains(i resample.Interval, middle float64, sides [2][]float64, confidence float64) string {
	if !i.Valid() || i.Contains(0) || s.mixed || min(len(sides[0]), len(sides[1])) < fewestForDrift {
		return ""
	}
	slope, se, dof, apart := s.slope(sides)
	places := s.places(apart)
	when := fmt.Sprintf("the sides were not made in mixed order, they lie %.3g repeats apart:", math.Abs(apart))
	if !s.known {
		when = "had all of one side come first:"
	}
	t := resample.StudentT(confidence, dof) * se
	for j, k := range s.atOneMoment(middle, sides, confidence) {
		if k.Low <= 0 && k.High >= 0 {
			most := math.Abs(slope + math.Copysign(t, (k.Low+k.High)*places[j]))
			return fmt.Sprintf("%s a drift of up to %.2g %% each, which these repeats cannot exclude, leaves nothing sure of "+
				"this difference. Make more, in mixed order", when, 100*most)
		}
	}
	return ""
}
