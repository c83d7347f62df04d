// Package serial measures the dependence along a series of evenly spaced points: how much neighbours repeat each other,
// how many independent observations a window is worth, what interval its mean therefore has, and whether it has a
// period.
//
// Monitoring series are never independent: the usual s/√n interval of a mean of one-second points is several times too
// narrow. The packages steady and change stand on this one. It refuses values that are not finite; who has gaps must
// decide what they mean first.
//
// Pure: no I/O, no clock, no randomness at all.
package serial

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/stat"

	"plimsoll/internal/analysis/resample"
)

// Finite returns an objection for every value that is not a finite number, naming the first ten.
func Finite(subject string, x []float64) error {
	var bad []error
	for i, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			continue
		}
		if len(bad) == 10 {
			return errors.Join(append(bad, fmt.Errorf("%s: and more", subject))...)
		}
		bad = append(bad, fmt.Errorf("%s: value %d is %v: remove it or fill the gap first", subject, i+1, v))
	}
	return errors.Join(bad...)
}

// Autocorrelation returns the correlation of the series with itself at lags 0 to most, with divisor n (Box and
// Jenkins), by Fourier transform. A constant series has 1 at lag 0 and 0 elsewhere.
func Autocorrelation(x []float64, most int) []float64 {
	n := len(x)
	out := make([]float64, max(0, min(most, n-1))+1)
	out[0] = 1
	if n < 2 {
		return out
	}
	size := 1
	for size < 2*n {
		size *= 2
	}
	padded := make([]float64, size)
	mean := stat.Mean(x, nil)
	var total float64
	for i, v := range x {
		padded[i] = v - mean
		total += padded[i] * padded[i]
	}
	if !(total > 1e-24*float64(n)*mean*mean) { // rounding around a constant
		return out
	}
	fft := fourier.NewFFT(size)
	spectrum := fft.Coefficients(nil, padded)
	for i, c := range spectrum {
		spectrum[i] = complex(real(c)*real(c)+imag(c)*imag(c), 0)
	}
	covariance := fft.Sequence(padded, spectrum)
	if !(covariance[0] > 0) || math.IsInf(covariance[0], 1) {
		return out
	}
	for lag := 1; lag < len(out); lag++ {
		out[lag] = covariance[lag] / covariance[0]
	}
	return out
}

// AR1 estimates the coefficient of first-order dependence from medians of absolute differences at lags 1 and 2,
//
//	φ = (median|x[i+2]−x[i]| / median|x[i+1]−x[i]|)² − 1
//
// which shifts of level and outliers hardly touch (Chakar, Lebarbier, Lévy-Leduc and Robin 2017). Cut to [0, 0.95]; 0
// when more than half of the neighbours are equal.
func AR1(x []float64) float64 {
	if len(x) < 4 {
		return 0
	}
	d1, d2 := make([]float64, len(x)-1), make([]float64, len(x)-2)
	for i := range d1 {
		d1[i] = math.Abs(x[i+1] - x[i])
	}
	for i := range d2 {
		d2[i] = math.Abs(x[i+2] - x[i])
	}
	m1, m2 := resample.Median(d1), resample.Median(d2)
	if m1 == 0 {
		return 0
	}
	ratio := m2 / m1 // divided before it is squared: tiny differences would square to zero
	return min(max(ratio*ratio-1, 0), 0.95)
}

// Time is the integrated autocorrelation time τ = 1 + 2Σρ(k): n values are worth n/τ independent ones. The sum ends at
// the first lag beyond 5τ (the automatic window of Madras and Sokal 1988). At least 1.
func Time(x []float64) float64 {
	rho := Autocorrelation(x, len(x)-1)
	tau := 1.0
	for lag := 1; lag < len(rho); lag++ {
		tau += 2 * rho[lag]
		if float64(lag) >= 5*tau {
			break
		}
	}
	return max(1, tau)
}

// Mean of a dependent series.
type Mean struct {
	Value         float64
	Interval      resample.Interval
	Time          float64 // integrated autocorrelation time, in points
	EffectiveSize float64 // number of points divided by Time
}

const (
	fewestWorth = 10 // independent points that a series must be worth for an interval of its mean
	fewestWaved = 20 // points, below which points without visible dependence are taken as independent
	fewestMean  = 5  // points of which that is done
)

// MeanOf gives the mean with an interval that holds under dependence: Student's t with the variance and the degrees of
// freedom of SumOf, or of a short series in which neighbours do not repeat each other, with those of its points. A
// series too short for its dependence gets no interval, and the reason. The series must be stationary: see
// package steady.
func MeanOf(x []float64, confidence float64) (Mean, error) {
	err := Finite("mean", x)
	if len(x) == 0 {
		err = errors.New("mean: no values")
	}
	if !(confidence > 0 && confidence < 1) {
		err = errors.Join(err, fmt.Errorf("mean: confidence %v: must lie between 0 and 1, as 0.95", confidence))
	}
	if err != nil {
		return Mean{}, err
	}
	m := Mean{Value: stat.Mean(x, nil), Time: Time(x)}
	m.EffectiveSize = float64(len(x)) / m.Time
	sum := SumOf(x, nil)
	switch {
	case len(x) >= fewestMean && len(x) < fewestWaved && m.Time == 1: // too short for waves, and no dependence shows
		sum.Variance, sum.DOF = float64(len(x))*stat.Variance(x, nil), float64(len(x)-1)
	case sum.Worth < fewestWorth:
		m.Interval = resample.None(
			fmt.Sprintf("%d points that repeat each other are worth %.0f, %d are needed", len(x), sum.Worth,
				fewestWorth),
		)
		return m, nil
	}
	half := resample.StudentT(confidence, sum.DOF) * math.Sqrt(sum.Variance) / float64(len(x))
	m.Interval = resample.Interval{
		Low: m.Value - half, High: m.Value + half,
		Confidence: confidence, Method: fmt.Sprintf("%.0f slow waves", sum.DOF),
	}
	return m, nil
}
