package serial

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
)

// Pulse is a short stretch of a series that stands out of it, such as a checkpoint: the points from From to before To.
type Pulse struct{ From, To int }

const (
	standsOut  = 6    // deviations from the median with which a pulse begins, of the spread that most points have
	stillOut   = 3    // and with which its neighbours belong to it
	joinedOver = 2    // points between two that make them one
	uneven     = 0.5  // share by which gaps vary, beyond which pulses are not taken as even
	mostPulsed = 0.25 // of the points; what lasts longer is no pulse
)

// PulsesOf finds the pulses of a series. It knows no pulses in one of which more than half of the points are alike.
func PulsesOf(x []float64) []Pulse {
	middle := resample.Median(x)
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - middle)
	}
	spread := 1.4826 * resample.Median(away)
	if !(spread > 1e-12*math.Abs(middle)) {
		return nil
	}
	var out []Pulse
	for i := 0; i < len(x); i++ {
		if away[i] <= standsOut*spread {
			continue
		}
		p := Pulse{i, i + 1}
		for p.From > 0 && away[p.From-1] > stillOut*spread {
			p.From--
		}
		for p.To < len(x) && away[p.To] > stillOut*spread {
			p.To++
		}
		if n := len(out); n > 0 && p.From-out[n-1].To <= joinedOver {
			out[n-1].To = p.To
		} else {
			out = append(out, p)
		}
		i = p.To - 1
	}
	if points := 0; len(out) > 0 {
		for _, p := range out {
			points += p.To - p.From
		}
		if float64(points) > mostPulsed*float64(len(x)) {
			return nil
		}
	}
	return out
}

// pulsed is a series taken apart: what is between its pulses, and what each of them adds.
type pulsed struct {
	base  Sum
	area  float64   // of a pulse, in the mean
	areas []float64 // of each, over that mean
	gaps  []float64 // from the beginning of one to that of the next, in points
}

// takenApart fails where there are fewer than two pulses, and where there are so many that the slow waves do not see
// them.
func takenApart(x []float64, pulses []Pulse) (p pulsed, ok bool) {
	if len(pulses) < 2 || len(pulses) > waves(len(x)) {
		return p, false
	}
	between, points := 0.0, len(x)
	for _, v := range x {
		between += v
	}
	for _, q := range pulses {
		for _, v := range x[q.From:q.To] {
			between -= v
		}
		points -= q.To - q.From
	}
	between /= float64(points)
	filled := slices.Clone(x)
	for i, q := range pulses {
		own := 0.0
		for j := q.From; j < q.To; j++ {
			own += x[j] - between
			filled[j] = between
		}
		p.areas = append(p.areas, own)
		p.area += own / float64(len(pulses))
		if i > 0 {
			p.gaps = append(p.gaps, float64(q.From-pulses[i-1].From))
		}
	}
	if p.area == 0 {
		return p, false
	}
	for i := range p.areas {
		p.areas[i] /= p.area
	}
	p.base = SumOf(filled, nil)
	return p, true
}

// edges is the variance of the number of evenly spaced pulses in a window that begins anywhere: f·(1−f), f being what
// is over whole gaps in it. Taken as at least 1/6, its mean over windows of any length, since the gap is known badly.
func edges(points int, gap float64) float64 {
	f := math.Mod(float64(points)/gap, 1)
	return max(1.0/6, f*(1-f))
}

// SumsOf estimates the variances of the sums of two series with a few pulses each, such as the two to five checkpoints
// of a short run. Slow waves take such pulses for noise of the lowest frequencies, and the variance comes out several
// times too large. Here it is that of three things: what is between the pulses (SumOf), how unlike the pulses are, and
// how many of them there are, which is a renewal process: n·c² beside what the edges of the window do, where gaps vary
// by a share c (Cox 1962, Renewal Theory, section 4.5). Both series together tell how unlike pulses and gaps are; each
// gets half of those degrees of freedom. Pulses that come at random therefore have few of them, and pulses that come
// evenly have many.
//
// It is not even where that cannot be told of two gaps, or where gaps vary by more than half: a few pulses that come at
// random bound badly what another stretch of time would hold. False where one of the series does not have a few pulses,
// or where their gaps say nothing.
func SumsOf(x, y []float64, px, py []Pulse) (sx, sy Sum, even, ok bool) {
	a, aok := takenApart(x, px)
	b, bok := takenApart(y, py)
	if !aok || !bok {
		return sx, sy, false, false
	}
	gaps, gapsDOF := spreadOf(a.gaps, b.gaps)
	gapX, gapY := stat.Mean(a.gaps, nil), stat.Mean(b.gaps, nil)
	if gapsDOF < 2 { // too few for a mean gap of each
		all := slices.Concat(a.gaps, b.gaps)
		gaps, gapsDOF = spreadOf(all)
		gapX, gapY = stat.Mean(all, nil), stat.Mean(all, nil)
	}
	if gapsDOF < 1 {
		return sx, sy, false, false
	}
	even = gapsDOF >= 2 && gaps <= uneven*uneven
	areas, areasDOF := spreadOf(a.areas, b.areas)
	sum := func(p pulsed, points int, gap float64) Sum {
		n := float64(len(p.areas))
		square := p.area * p.area
		parts := []struct{ variance, dof float64 }{{p.base.Variance, p.base.DOF}, {n * gaps * square, gapsDOF / 2},
			{n * areas * square, areasDOF / 2}}
		s := Sum{Variance: edges(points, gap) * square, Worth: p.base.Worth}
		uncertain := 0.0
		for _, part := range parts {
			s.Variance += part.variance
			uncertain += part.variance * part.variance / part.dof
		}
		s.DOF = s.Variance * s.Variance / uncertain
		return s
	}
	return sum(a, len(x), gapX), sum(b, len(y), gapY), even, true
}

// spreadOf is the variance of values relative to the mean of their list, and its degrees of freedom.
func spreadOf(lists ...[]float64) (variance, dof float64) {
	for _, x := range lists {
		if len(x) == 0 {
			continue
		}
		mean := stat.Mean(x, nil)
		for _, v := range x {
			variance += (v/mean - 1) * (v/mean - 1)
		}
		dof += float64(len(x) - 1)
	}
	return variance / max(dof, 1), dof
}

// Alike is the chance that the slow waves of two independent series go together as closely as these do: small where
// both have a step, a fill or a repetition at the same time. The series are of one length.
func Alike(x, y []float64) float64 {
	all := []part{{0, len(x)}}
	phi := max(ar1Of(x, all), ar1Of(y, all))
	count := min(waves(len(x)), len(x)-1)
	a, b := wavesOf(x, count, phi), wavesOf(y, count, phi)
	var products, squaresA, squaresB float64
	for i := range a {
		both := math.Sqrt(math.Abs(a[i] * b[i]))
		if (a[i] < 0) != (b[i] < 0) {
			both = -both
		}
		products, squaresA, squaresB = products+both, squaresA+math.Abs(a[i]), squaresB+math.Abs(b[i])
	}
	r := products / math.Sqrt(squaresA*squaresB)
	switch {
	case math.IsNaN(r): // no waves at all
		return 1
	case r >= 1:
		return 0
	}
	dof := float64(count - 1)
	return distuv.StudentsT{Sigma: 1, Nu: dof}.Survival(r * math.Sqrt(dof/(1-r*r)))
}
