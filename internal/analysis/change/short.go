package change

import (
	"plimsoll/internal/analysis/resample"
)

// mostForNormal is the length of a history below which shuffles alone are too few to tell: of the 210 orders of six and
// four values two part them completely, and no distance between the two could make that rarer.
const mostForNormal = 50

// parted cuts a short series where it splits best into two levels, and goes on within both sides, as long as normal
// noise of that length would split as well with at most the chance given. The statistic, the sum of squares between the
// sides over that within them, knows no scale; tails heavier than normal make it smaller, not larger.
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
		p := resample.Permutation(observed, rounds, int(level*(rounds+1))+10, func() float64 {
			for i := range noise[:to-from] {
				noise[i] = r.NormFloat64()
			}
			_, s := split(noise[:to-from], o.MinSegment)
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
