package serial

import "math"

const (
	fewestWaves = 6
	mostWaves   = 24
	waveSteps   = 100  // further waves are used while they are no shorter than this many points
	mostAR      = 0.95 // beyond, a series of the length of a run cannot be told from a drift
)

// Sum holds what is known of the sum of a dependent series.
type Sum struct {
	Variance float64
	DOF      float64 // degrees of freedom with which the variance is known
	// how many independent points tell as much, by first-order dependence; below ten the variance is on the low side
	Worth float64
}

// SumOf estimates the variance of the sum of a dependent series. Parts that differ on purpose, such as before and with
// a neighbour, are given by the points at which later ones begin; their own levels are no variance.
//
// It is the mean square of the series' slowest cosine waves, six or, of long series, as many as last 100 points: their
// amplitudes are independent and equally spread as long as dependence is shorter than the waves, so that Student's t
// with as many degrees of freedom holds (Müller 2007, Journal of Econometrics 141; Lazarus, Lewis, Stock and Watson
// 2018, Journal of Business & Economic Statistics 36). A repetition that is quicker than these waves, such as
// checkpoints, is rightly no variance of the sum. First-order dependence, which bends the spectrum within the waves of
// a short series, is divided out of each (Andrews and Monahan 1992, Econometrica 60), its coefficient corrected for the
// length (Marriott and Pope 1954, Biometrika 41).
func SumOf(x []float64, starts []int) Sum {
	parts := partsOf(len(x), starts)
	n, phi := 0, ar1Of(x, parts)
	for _, p := range parts {
		n += len(p.of(x))
	}
	if n == 0 {
		return Sum{}
	}
	sum := Sum{Worth: float64(n) * (1 - phi) / (1 + phi)}
	waves := float64(waves(n))
	own, counts := make([]float64, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		y := p.of(x)
		counts[i] = min(max(int(math.Round(waves*float64(len(y))/float64(n))), 1), len(y)-1)
		own[i] = float64(len(y)) * wavePower(y, counts[i], phi)
		sum.Variance += own[i]
	}
	if sum.Variance == 0 {
		sum.DOF = waves
		return sum
	}
	var uncertain float64 // by Satterthwaite
	for i, v := range own {
		share := v / sum.Variance
		uncertain += share * share / float64(counts[i])
	}
	sum.DOF = 1 / uncertain
	sum.Variance *= float64(len(x)) / float64(n)
	return sum
}

// part is a stretch of a series, from and to.
type part struct{ from, to int }

func (p part) of(x []float64) []float64 { return x[p.from:p.to] }

// partsOf are the parts of two points or more.
func partsOf(n int, starts []int) []part {
	var out []part
	from := 0
	for i := range len(starts) + 1 {
		to := n
		if i < len(starts) {
			to = min(starts[i], n)
		}
		if to-from > 1 {
			out = append(out, part{from, to})
		}
		from = max(from, to)
	}
	return out
}

// ar1Of is the correlation of neighbours around the means of their parts, from 0 to 0.95.
func ar1Of(x []float64, parts []part) float64 {
	var products, squares, level float64
	n := 0
	for _, p := range parts {
		y := p.of(x)
		mean := 0.0
		for _, v := range y {
			mean += v / float64(len(y))
		}
		for i, v := range y {
			squares += (v - mean) * (v - mean)
			if i > 0 {
				products += (v - mean) * (y[i-1] - mean)
			}
		}
		n += len(y)
		level += float64(len(y)) * mean * mean
	}
	if !(squares > 1e-24*level) { // rounding around a constant
		return 0
	}
	phi := products / squares
	phi += (1 + 3*phi) / float64(n)
	return min(max(phi, 0), mostAR)
}

// wavePower is the mean square of the first cosine waves of a series, each divided by what first-order dependence
// leaves of the power at frequency zero there.
func wavePower(y []float64, count int, phi float64) float64 {
	sum := 0.0
	for _, power := range wavesOf(y, count, phi) {
		sum += math.Abs(power)
	}
	return sum / float64(count)
}

// waves is how many are used of a series of so many points.
func waves(n int) int { return max(fewestWaves, min(mostWaves, n/waveSteps*2)) }

// wavesOf are the squared amplitudes of those waves, with the sign of each.
func wavesOf(y []float64, count int, phi float64) []float64 {
	n, out := float64(len(y)), make([]float64, count)
	for j := 1; j <= count; j++ {
		angle := math.Pi * float64(j) / n
		// cos(angle·(i+½)) by the recurrence of Chebyshev
		step, before, now := 2*math.Cos(angle), math.Cos(angle/2), math.Cos(angle/2)
		amplitude := 0.0
		for _, v := range y {
			amplitude += v * now
			before, now = now, step*now-before
		}
		power := 2 * amplitude * amplitude / n * (1 + 2*phi*(1-math.Cos(angle))/((1-phi)*(1-phi)))
		out[j-1] = math.Copysign(power, amplitude)
	}
	return out
}
