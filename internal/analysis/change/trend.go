package change

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/serial"
)

// Slope is a robust straight trend.
type Slope struct {
	PerPoint   float64           // Theil and Sen: the median of the slopes between all pairs of points
	Interval   resample.Interval // Sen 1968, with the variance of Kendall's sum inflated for dependence
	Tau        float64           // Kendall's correlation with time, −1 to 1
	P          float64           // two-sided test of Mann and Kendall, so inflated
	Dependence float64           // lag-1 correlation of what the trend leaves
	Warnings   []string
}

// slopePoints is the number of points beyond which means of equal stretches are used, to bound the pairs.
const slopePoints = 500

// Trend fits a straight line through a series by ranks of pairs, deaf to outliers. The variance is multiplied by
// (1+φ)/(1−φ) for dependence, φ being the correlation of neighbouring residuals corrected for its bias in short series
// (Yue and Wang 2004; Marriott and Pope 1954). NaN is a gap. It needs ten points.
func Trend(values []float64, confidence float64) (Slope, error) {
	x, index, err := present(values)
	if !(confidence > 0 && confidence < 1) {
		err = errors.Join(err, fmt.Errorf("change: confidence %v: must lie between 0 and 1, as 0.95", confidence))
	}
	if len(x) < 10 {
		err = errors.Join(err, fmt.Errorf("change: trend of %d points: at least 10 are needed", len(x)))
	}
	if err != nil {
		return Slope{}, err
	}
	at := make([]float64, len(index))
	for i, v := range index {
		at[i] = float64(v)
	}
	var out Slope
	if gaps := len(values) - len(x); gaps > 0 {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("%d of %d points are missing and were left out", gaps, len(values)))
	}
	if len(x) > slopePoints {
		at, x = stretches(at), stretches(x)
	}
	slopes, s := make([]float64, 0, len(x)*(len(x)-1)/2), 0.0
	for j := range x {
		for i := range j {
			slopes = append(slopes, (x[j]-x[i])/(at[j]-at[i]))
			switch {
			case x[j] > x[i]:
				s++
			case x[j] < x[i]:
				s--
			}
		}
	}
	slices.Sort(slopes)
	out.PerPoint = resample.Quantile(slopes, 0.5)
	out.Tau = s / float64(len(slopes))
	residual := make([]float64, len(x))
	for i := range x {
		residual[i] = x[i] - out.PerPoint*at[i]
	}
	out.Dependence = lagOne(residual)
	variance := kendallVariance(x) * (1 + out.Dependence) / (1 - out.Dependence)
	out.P = 1
	if variance == 0 {
		out.Interval = resample.None("all values are equal")
		return out, nil
	}
	out.P = math.Erfc(max(0, math.Abs(s)-1) / math.Sqrt(2*variance))
	half := distuv.UnitNormal.Quantile(0.5+confidence/2) * math.Sqrt(variance)
	low, high := (float64(len(slopes))-half)/2, (float64(len(slopes))+half)/2
	if low < 1 {
		out.Interval = resample.None("the points repeat each other too much for an interval of the slope")
		return out, nil
	}
	out.Interval = resample.Interval{
		Low: slopes[int(low)-1], High: slopes[min(len(slopes)-1, int(math.Ceil(high)))],
		Confidence: confidence, Method: "Sen, with dependence",
	}
	return out, nil
}

// stretches are the means of slopePoints equal parts.
func stretches(x []float64) []float64 {
	out := make([]float64, slopePoints)
	for i := range out {
		out[i] = stat.Mean(x[i*len(x)/slopePoints:(i+1)*len(x)/slopePoints], nil)
	}
	return out
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

// kendallVariance of the sum of signs, with ties (Kendall 1975).
func kendallVariance(x []float64) float64 {
	n := float64(len(x))
	v := n * (n - 1) * (2*n + 5)
	sorted := slices.Sorted(slices.Values(x))
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		v -= t * (t - 1) * (2*t + 5)
		i = j
	}
	return max(0, v/18)
}
