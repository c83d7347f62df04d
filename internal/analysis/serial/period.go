package serial

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// Period is a repetition in a series, such as checkpoints or flushes.
type Period struct {
	Found    bool
	Points   float64           // length in points; 0 unless Found
	Interval resample.Interval // what the length of the series can resolve: half a Fourier bin each way
	Strength float64           // correlation of the series with itself one period later
	P        float64           // chance of such a peak in noise with first-order dependence; 1 when not tried
	Reason   string            // why none was found; empty when Found
}

// fewestForPeriod is the shortest series searched; it must hold three periods of at least four points.
const fewestForPeriod = 24

// PeriodOf looks for a period of four points to a third of the series. Trend is removed, the periodogram is divided by
// that of first-order noise with the series' own dependence, and its largest ordinate is tested against their sum
// (Fisher 1929, g test, first term, which errs towards no period). Short bursts put more power into a harmonic than
// into the fundamental, so the period is then the shortest multiple whose autocorrelation is within a fifth of the
// best.
func PeriodOf(x []float64, significance float64) (Period, error) {
	if err := Finite("period", x); err != nil {
		return Period{}, err
	}
	none := func(p float64, format string, args ...any) (Period, error) {
		return Period{P: p, Reason: fmt.Sprintf(format, args...)}, nil
	}
	if len(x) < fewestForPeriod {
		return none(1, "%d points: at least %d are needed to see three periods", len(x), fewestForPeriod)
	}
	x = x[len(x)-smooth(len(x)):]
	n := len(x)
	y := detrended(x)
	if stat.PopVariance(y, nil) <= 1e-20*stat.PopVariance(x, nil) || stat.PopVariance(x, nil) == 0 {
		return none(1, "nothing varies but a trend")
	}
	rho := Autocorrelation(y, n/3+n/10)
	spectrum := whitened(y, min(max(rho[1], 0), 0.95))
	bin, p := fisher(spectrum)
	if p > significance {
		return none(p, "no peak stands out of the noise (p = %.2g)", p)
	}
	if beside := lonely(spectrum, bin); beside > significance/10 { // the bin was chosen as the largest of many
		return none(max(p, beside),
			"there is slow movement of any length, and no peak stands out of what is beside it (p = %.2g)", beside)
	}
	base := float64(n) / float64(bin)
	var best, found float64
	multiple := 0
	at := make([]float64, int(float64(n)/3/base)+1) // correlation at each multiple
	for m := 1; m < len(at); m++ {
		lag := int(math.Round(base * float64(m)))
		reach := max(1, int(base/8))
		for l := max(2, lag-reach); l <= min(lag+reach, len(rho)-1); l++ {
			at[m] = max(at[m], rho[l])
		}
		best = max(best, at[m])
	}
	for m := 1; m < len(at); m++ {
		if at[m] >= 0.8*best && at[m] > 0 {
			multiple, found = m, at[m]
			break
		}
	}
	if least := 2 / math.Sqrt(float64(n)); found < max(least, 0.1) {
		return none(p, "a peak at %.3g points does not recur (correlation %.2g)", base, found)
	}
	m := float64(multiple)
	return Period{
		Found: true, Points: base * m, Strength: found, P: p,
		Interval: resample.Interval{
			Low: m * float64(n) / (float64(bin) + 0.5), High: m * float64(n) / (float64(bin) - 0.5),
			Confidence: 1 - significance, Method: "half a Fourier bin",
		},
	}, nil
}

// smooth is the largest number up to n whose only prime factors are 2, 3 and 5: the transform of any other length takes
// up to n² steps, and leaving out a few of the first points changes nothing.
func smooth(n int) int {
	for ; n > 1; n-- {
		rest := n
		for _, f := range []int{2, 3, 5} {
			for rest%f == 0 {
				rest /= f
			}
		}
		if rest == 1 {
			break
		}
	}
	return n
}

func detrended(x []float64) []float64 {
	at := make([]float64, len(x))
	for i := range at {
		at[i] = float64(i)
	}
	intercept, slope := stat.LinearRegression(at, x, nil, false)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - intercept - slope*float64(i)
	}
	return y
}

// whitened is the periodogram of y divided by that of first-order noise. The last ordinate is left out.
func whitened(y []float64, phi float64) []float64 {
	n := len(y)
	coefficients := fourier.NewFFT(n).Coefficients(nil, y)
	out := make([]float64, len(coefficients)-1)
	for k := range out {
		c := coefficients[k]
		out[k] = (real(c)*real(c) + imag(c)*imag(c)) * (1 + phi*phi - 2*phi*math.Cos(2*math.Pi*float64(k)/float64(n)))
	}
	return out
}

// fisher finds the largest ordinate with at least three periods in the series and four points in a period, and its
// p-value.
func fisher(spectrum []float64) (bin int, p float64) {
	const fewest = 3
	var sum, largest float64
	count := 0
	for k := fewest; k < len(spectrum); k++ {
		sum += spectrum[k]
		count++
		if 2*k <= len(spectrum) && spectrum[k] > largest {
			bin, largest = k, spectrum[k]
		}
	}
	if sum == 0 || bin == 0 {
		return 0, 1
	}
	return bin, min(1, float64(count)*math.Pow(1-min(1, largest/sum), float64(count-1)))
}

// lonely is the chance that an ordinate is so far above those beside it: levels that come and go at random have much
// power at all long periods and no line among them. The ratio of an ordinate to the mean of m others has the law of F
// with 2 and 2m degrees of freedom; the mean is taken from the median, which harmonics of a true period do not move.
func lonely(spectrum []float64, bin int) float64 {
	const (
		leaks  = 1 // a period between two bins shows in both
		fewest = 4 // bins on each side, where there are so many
	)
	reach := max(fewest+leaks, bin/2)
	var beside []float64
	for k := max(1, bin-reach); k <= min(bin+reach, len(spectrum)-1); k++ {
		if k < bin-leaks || k > bin+leaks {
			beside = append(beside, spectrum[k])
		}
	}
	if len(beside) == 0 {
		return 1
	}
	m := float64(len(beside))
	return math.Pow(1+spectrum[bin]/(resample.Median(beside)/math.Ln2)/m, -m)
}
