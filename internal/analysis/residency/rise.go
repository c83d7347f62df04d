package residency

import (
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
	"plimsoll/internal/analysis/view"
)

// How the moment is found at which a rise comes to its level.
const (
	riseRounds = 300
	riseSmooth = 0.05 // of the series, over which the monotone fit is smoothed to draw from
	riseTimes  = 10   // and at least so many autocorrelation times
)

// monotone is the rising sequence nearest to a series by least squares (pool adjacent violators; Ayer and others 1955,
// Annals of Mathematical Statistics 26): noise makes a slow rise cross a level several times, its fit only once.
func monotone(x []float64) []float64 {
	type pool struct {
		sum float64
		n   int
	}
	level := func(p pool) float64 { return p.sum / float64(p.n) }
	var pools []pool
	for _, v := range x {
		last := pool{v, 1}
		for len(pools) > 0 && level(pools[len(pools)-1]) >= level(last) {
			before := pools[len(pools)-1]
			last = pool{before.sum + last.sum, before.n + last.n}
			pools = pools[:len(pools)-1]
		}
		pools = append(pools, last)
	}
	out := make([]float64, 0, len(x))
	for _, p := range pools {
		out = append(out, slices.Repeat([]float64{level(p)}, p.n)...)
	}
	return out
}

// comesTo is the first index at which the monotone fit of a series has come to a share of its mean from an index on;
// its length when it never does.
func comesTo(x []float64, from int, share float64) int {
	level := share * view.Total(x[from:]) / float64(len(x)-from)
	at := slices.IndexFunc(monotone(x), func(v float64) bool { return v >= level })
	if at < 0 {
		return len(x)
	}
	return at
}

// riseInterval is the 95 % interval of comesTo, in points: the spread of the moment in series made of the smoothed fit
// and of blocks of neighbouring relative residuals (Künsch 1989), read at the level that few blocks need.
func riseInterval(x []float64, from int, share float64) resample.Interval {
	n := len(x)
	fit := monotone(x)
	residuals := make([]float64, n)
	for i := range x {
		residuals[i] = x[i] - fit[i]
	}
	time := serial.Time(residuals)
	base := smoothed(fit, int(max(riseSmooth*float64(n), riseTimes*time)))
	for i := range x {
		residuals[i] = 0
		if base[i] > 0 {
			residuals[i] = x[i]/base[i] - 1
		}
	}
	block := int(math.Ceil(max(3*time, math.Cbrt(float64(n)))))
	if n/block < view.FewestBlocks {
		return resample.None("the series is too short for its own dependence")
	}
	random := resample.Source(resample.DefaultSeed, uint64(n))
	moments, drawn := make([]float64, riseRounds), make([]float64, n)
	for k := range moments {
		for i := 0; i < n; i += block {
			at := random.IntN(n)
			for j := i; j < min(n, i+block); j++ {
				drawn[j] = base[j] * (1 + residuals[(at+j-i)%n])
			}
		}
		moments[k] = float64(comesTo(drawn, from, share) - comesTo(base, from, share) + comesTo(x, from, share))
	}
	nominal := resample.Expand(view.Confidence, float64(n/block-1), n/block)
	return resample.Percentile(moments, nominal, view.Confidence, "block bootstrap around a monotone fit")
}

// smoothed is the running mean over so many points, at the ends over fewer.
func smoothed(x []float64, width int) []float64 {
	sums := make([]float64, len(x)+1)
	for i, v := range x {
		sums[i+1] = sums[i] + v
	}
	out := make([]float64, len(x))
	for i := range x {
		half := min(width/2, i, len(x)-1-i)
		out[i] = (sums[i+half+1] - sums[i-half]) / float64(2*half+1)
	}
	return out
}
