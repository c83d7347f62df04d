package change

import (
	"plimsoll/internal/analysis/resample"
)

// mostForNormal is the length of a history below which shuffles alone are too few to tell: of the 210 orders of six and
// four values two part them completely, and no distance between the two could make that rarer.
const mostForNormal = 50

// mostForParts is the length from which on intervals alone are searched: shorter series have so many intervals for
// their points that a step near the end drowns in what chance does in one of them.
const mostForParts = 200

// parted cuts a short series where it splits best into two levels, and goes on within both sides, as long as normal
// noise of that length, or from mostForNormal points on its own shuffles, would split as well with at most the chance
// given. The statistic, the sum of squares between the sides over all, knows no scale; in few points tails heavier than
// normal make it smaller, not larger.
func parted(x []float64, level float64, o Options) []cut {
	const rounds = 1999
	r := resample.Source(o.Seed, 8)
	noise := make([]float64, len(x))
	var cuts []cut
	var within func(from, to int)
	within = func(from, to int) {
		at, observed := split(x[from:to], o.MinSegment)
		if !(observed > 0) {
			return
		}
		copy(noise, x[from:to])
		p := resample.Permutation(observed*(1-1e-12), rounds, int(level*(rounds+1))+10, func() float64 {
			noise := noise[:to-from]
			if len(x) < mostForNormal {
				for i := range noise {
					noise[i] = r.NormFloat64()
				}
			} else {
				r.Shuffle(len(noise), func(i, j int) { noise[i], noise[j] = noise[j], noise[i] })
			}
			_, s := split(noise, o.MinSegment)
			return s
		})
		if p > level {
			return
		}
		cuts = append(cuts, cut{from + at, p})
		within(from, from+at)
		within(from+at, to)
	}
	within(0, len(x))
	return cuts
}

// split is the cut of the greatest share of the sum of squares that lies between its sides.
func split(x []float64, least int) (at int, between float64) {
	mean, total := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		total += (v - mean) * (v - mean)
	}
	if !(total > 1e-24*mean*mean) { // rounding around a constant
		return 0, 0
	}
	sum := 0.0
	for i := range x[:max(0, len(x)-least)] {
		sum += x[i] - mean
		k, n := float64(i+1), float64(len(x))
		if i+1 < least {
			continue
		}
		if v := sum * sum * n / (k * (n - k)) / total; v > between {
			at, between = i+1, v
		}
	}
	return at, between
}
