// Package usl fits the Universal Scalability Law to measured throughput.
//
// The law (Gunther 1993; Guerrilla Capacity Planning, 2007) says that N concurrent users, workers or virtual
// machines get
//
//	X(N) = γN / (1 + α(N−1) + βN(N−1))
//
// with γ the throughput of one, α in [0, 1] the contention (share of the work that queues) and β in [0, 1] the
// crosstalk (cost of keeping pairs coherent). β = 0 is Amdahl's law, α = β = 0 a straight line.
//
// Fit gives the bounded least-squares estimate of all three, standard errors, t and bootstrap intervals, bands
// at any N, the peak with an interval or a plain "no peak", tests of the two simpler laws, a point that strays from
// all others by name, and every reason for doubt as a warning. How errors grow with throughput is chosen from the data
// and said. It takes points from any source and refuses what cannot carry three parameters: fewer than four points or
// three different concurrencies, and numbers that are not finite.
//
// Where it differs from the R package usl and why is told in docs/analysis-usl.md. Pure: no I/O, no clock, random
// numbers only from the seed given.
package usl

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
)

// Point is one measurement.
type Point struct {
	Concurrency float64 // N: users, workers, outstanding I/Os; above 0
	Throughput  float64 // X: per second, in any unit; not negative
	// Weight is proportional to 1/variance of the throughput, for instance the number of repeats behind the
	// mean. 0 means 1.
	Weight float64
}

// Coefficients are the three parameters of the law.
type Coefficients struct {
	Gamma float64 // γ: throughput of one, in the unit of the points
	Alpha float64 // α: contention, 0 to 1
	Beta  float64 // β: crosstalk, 0 to 1
}

// At is the throughput the law gives at concurrency n.
func (c Coefficients) At(n float64) float64 {
	return c.Gamma * n / (1 + c.Alpha*(n-1) + c.Beta*n*(n-1))
}

// PeakConcurrency is √((1−α)/β), where throughput is greatest (Gunther 2007, chapter 6),
// +Inf when crosstalk is zero: the law then only approaches Limit.
func (c Coefficients) PeakConcurrency() float64 {
	if c.Beta <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt(max(0, 1-c.Alpha) / c.Beta)
}

// PeakThroughput is the throughput at the peak; with zero crosstalk the limit γ/α, +Inf for a straight line.
func (c Coefficients) PeakThroughput() float64 {
	if n := c.PeakConcurrency(); !math.IsInf(n, 1) {
		return c.At(n)
	}
	return c.Limit()
}

// Limit is γ/α, the ceiling that contention alone would set; +Inf without contention.
func (c Coefficients) Limit() float64 {
	if c.Alpha <= 0 {
		return math.Inf(1)
	}
	return c.Gamma / c.Alpha
}

// Efficiency is the throughput x per unit of concurrency at n over that of one, x/(γn): 1 for perfect scaling.
func (c Coefficients) Efficiency(n, x float64) float64 { return x / (c.Gamma * n) }

// Overhead holds what the processing time of one is made of when it is spread over n: ideal 1/N, contention α(N−1)/N
// and coherency ½β(N−1), as shares of the time of one (Gunther 2008, arXiv:0808.1431, equation 26; the R package usl
// prints the same figures). Coherency is half of what the law's own denominator has.
type Overhead struct{ Ideal, Contention, Coherency float64 }

// OverheadAt is the overhead at concurrency n.
func (c Coefficients) OverheadAt(n float64) Overhead {
	return Overhead{Ideal: 1 / n, Contention: c.Alpha * (n - 1) / n, Coherency: c.Beta * (n - 1) / 2}
}

// Errors says how the errors of throughput grow with it.
type Errors string

// The error models: standard deviations all alike, in proportion to the root of throughput, as of counts, or in
// proportion to throughput.
const (
	Alike        Errors = "alike"
	Root         Errors = "root"
	Proportional Errors = "proportional"
)

// power of throughput that a standard deviation grows with.
func (e Errors) power() float64 {
	switch e {
	case Root:
		return 0.5
	case Proportional:
		return 1
	}
	return 0
}

// Words say the model in a report.
func (e Errors) Words() string {
	switch e {
	case Root:
		return "in proportion to the root of throughput"
	case Proportional:
		return "in proportion to throughput"
	}
	return "alike at all concurrencies"
}

// Scheme says what the bootstrap draws again.
type Scheme string

const (
	// Wild keeps the concurrencies and gives every point its own error back, times a standard normal number (Wu 1986,
	// Annals of Statistics 14): right whether errors grow with load or not.
	Wild Scheme = "wild"
	// Residuals keeps the concurrencies and draws the errors: right for a designed sweep whose errors are alike.
	Residuals Scheme = "residual"
	// Cases draws whole points: right when errors grow with load, at the price of wider intervals for few points.
	Cases Scheme = "case"
)

// Options of a fit. The zero value asks for 95 %, 2,000 wild resamples with the fixed seed, and errors by the data.
type Options struct {
	Confidence float64 // above 0 and below 1; 0 means 0.95
	Resamples  int     // of the bootstrap; 0 means 2,000; negative means none
	Scheme     Scheme  // empty means Wild
	Seed       uint64  // 0 means resample.DefaultSeed
	Errors     Errors  // empty means as the data have them
}

func (o Options) filled() (Options, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if o.Resamples == 0 {
		o.Resamples = 2000
	}
	if o.Scheme == "" {
		o.Scheme = Wild
	}
	if o.Seed == 0 {
		o.Seed = resample.DefaultSeed
	}
	var bad []error
	if !(o.Confidence > 0 && o.Confidence < 1) {
		bad = append(bad, fmt.Errorf("usl: confidence %v: must lie between 0 and 1, as 0.95", o.Confidence))
	}
	if o.Scheme != Wild && o.Scheme != Residuals && o.Scheme != Cases {
		bad = append(bad, fmt.Errorf("usl: scheme %q: must be %q, %q or %q", o.Scheme, Wild, Residuals, Cases))
	}
	if o.Errors != "" && !slices.Contains(errorModels, o.Errors) {
		bad = append(bad, fmt.Errorf("usl: errors %q: must be one of %q", o.Errors, errorModels))
	}
	return o, errors.Join(bad...)
}

// Parameter is one estimate.
type Parameter struct {
	Value    float64
	StdError float64 // from the curvature at the estimate; 0 when AtBound or when it cannot be had
	AtBound  bool    // the best fit lies on the edge of what the parameter may be
	// estimate ± t·standard error, the widest of the error models that the data allow, cut at the bounds
	T    resample.Interval
	Boot resample.Interval // from the bootstrap; none where another parameter cannot be told from its bound
}

// Interval is T or, where there is none because the estimate lies at its bound, Boot.
func (p Parameter) Interval() resample.Interval {
	if p.T.Valid() {
		return p.T
	}
	if p.Boot.Valid() {
		return p.Boot
	}
	return p.T
}

// Peak is the greatest throughput of the fitted law.
type Peak struct {
	Exists      bool    // crosstalk is above its bound, so that there is one
	InRange     bool    // it lies within the concurrencies measured
	Concurrency float64 // where; 0 unless Exists
	Throughput  float64 // how much; 0 unless Exists
	// Intervals come from the bootstrap; the upper end is infinite when the data cannot exclude that
	// there is no peak.
	ConcurrencyInterval resample.Interval
	ThroughputInterval  resample.Interval
	NoPeakShare         float64 // share of resamples whose fit had no peak
	// Artefact: the law fitted has one, but a line up to a cap, which has none, fits as well or better. Fallen: but
	// throughput falls at once, and the law's peak lies where nothing was measured. Few: but the concurrencies are too
	// few to tell it from what other curves do. Climbs: but a curve that never falls fits as well.
	Artefact, Fallen, Few, Climbs bool
}

// String says what is known of the peak in words fit for a report.
func (p Peak) String() string {
	switch {
	case p.Artefact:
		return "no peak is told: a line up to a cap fits as well as the law, or better"
	case p.Fallen:
		return "no peak is told: throughput falls at once, which the law does not know"
	case p.Few:
		return fmt.Sprintf("no peak is told: fewer than %d different concurrencies, and throughput does not clearly fall",
			fewestForLaw)
	case p.Climbs:
		return "no peak is told: throughput falls by no more than the points scatter"
	case !p.Exists:
		return "no peak in range: the data show no crosstalk"
	case !p.InRange:
		return fmt.Sprintf("no peak in range: the law puts it at %.4g, outside the data", p.Concurrency)
	}
	return fmt.Sprintf("peak of %.6g at concurrency %.4g", p.Throughput, p.Concurrency)
}

// Model is a fitted law.
type Model struct {
	Coefficients
	GammaParameter, AlphaParameter, BetaParameter Parameter
	N                                             int    // points
	DegreesOfFreedom                              int    // N − 3
	Errors                                        Errors // which error model the fit is weighted by
	// all that the data do not exclude, Errors first; intervals are the widest of theirs
	ErrorsAllowed []Errors
	// ResidualStdError is √(Σw·r²/(N−3)), in the unit of throughput; of errors in proportion to throughput a share of
	// it, of root errors in its root.
	ResidualStdError float64
	// RSquared is 1 − Σw·r²/Σw·(X−X̄)². For a nonlinear law it is a description only: it can be negative and
	// proves nothing about the model.
	RSquared     float64
	Residuals    []float64     // measured minus fitted, in the order of the points
	Unbounded    *Coefficients // least squares without bounds, when it was found
	Peak         Peak
	Alternatives []Alternative // linear, Amdahl, universal
	Simpler      Law           // the simplest law that describes the points as well; "" when they cannot tell
	Outlier      *Outlier      // the one point that strays from what all others say
	Cap          Cap           // a line up to a cap, set against the law
	Fall         Fall          // a throughput that falls at once, set against both
	Warnings     []string

	points     []Point // weighted by Errors
	confidence float64
	covariance [3][3]float64 // of γ, α, β; rows of parameters at a bound are zero
	others     []*Model      // fits by the other error models that the data allow
	original   []Point       // as given
	solution   solution
	likelihood float64 // logarithm, but for a constant

	lined     *cappedFit
	climbs    bool    // a curve that never falls is as close, so that crosstalk is not told from a soft limit
	negativeP float64 // chance that negative contention is so much closer if there is none
}

// Fit fits the law. All objections to the points are returned together.
func Fit(points []Point, o Options) (*Model, error) {
	o, err := o.filled()
	if err = errors.Join(err, validate(points)); err != nil {
		return nil, err
	}
	pts := slices.Clone(points)
	for i := range pts {
		if pts[i].Weight == 0 {
			pts[i].Weight = 1
		}
	}
	slices.SortStableFunc(pts, func(a, b Point) int { // the order of rows says nothing, resamples neither
		return cmp.Or(cmp.Compare(a.Concurrency, b.Concurrency), cmp.Compare(a.Throughput, b.Throughput),
			cmp.Compare(a.Weight, b.Weight))
	})
	fits := fitsOf(pts, o)
	m := fits[0]
	m.others = fits[1:]
	m.describe()
	for _, f := range fits {
		m.ErrorsAllowed = append(m.ErrorsAllowed, f.Errors)
	}
	m.unbound(fits)
	m.Alternatives = compare(fits)
	m.capped(fits)
	m.fell(fits)
	m.climbs = climbing(fits)
	m.bootstrap(o)
	m.artefacts()
	if (m.Cap.Allowed || m.Fall.Closer) && m.Peak.Exists {
		m.Peak.Exists, m.Peak.InRange, m.Peak.Artefact, m.Peak.Fallen = false, false, m.Cap.Allowed, m.Fall.Closer
	}
	if m.climbs && m.Peak.Exists && m.Peak.InRange {
		m.Peak.Exists, m.Peak.InRange, m.Peak.Climbs = false, false, true
	}
	if m.Few() && m.Peak.Exists && !m.Cap.Allowed {
		m.Peak.Exists, m.Peak.InRange, m.Peak.Few = false, false, true
	}
	if !m.Fall.Closer && !m.Cap.Closer { // the law's own misfit is no stray
		m.Outlier = m.outlier()
	}
	m.warn()
	return m, nil
}

// fewestForLaw is how many different concurrencies tell one law from another: through fewer a curve of three parameters
// goes whatever the truth. That throughput falls beyond a peak can be seen of them all the same.
const fewestForLaw = 6

// Few reports whether the concurrencies are too few to tell laws apart, and throughput does not fall by so much that
// the one which bends over is asked for.
func (m *Model) Few() bool {
	return distinct(m.original) < fewestForLaw && !(m.Alternatives[1].P < level && m.bendsOver())
}

// bendsOver reports whether the throughput of the highest concurrency lies clearly below that of another.
func (m *Model) bendsOver() bool {
	of := map[float64][]Point{}
	_, high := m.span()
	for _, p := range m.original {
		of[p.Concurrency] = append(of[p.Concurrency], p)
	}
	for _, points := range of {
		if meanOf(of[high]) < clearFall*meanOf(points) {
			return true
		}
	}
	return false
}

// clearFall is the share of the highest throughput below which the last one has fallen, of few points.
const clearFall = 0.85

// largest is the greatest number whose square and sums of squares stay finite with room to spare.
const largest = 1e100

func validate(points []Point) error {
	var bad []error
	distinct := map[float64]bool{}
	positive := false
	for i, p := range points {
		if !(p.Concurrency > 0 && p.Concurrency <= largest) {
			bad = append(
				bad,
				fmt.Errorf("usl: point %d: concurrency %v: must be a finite number above 0, at most %g", i+1,
					p.Concurrency, largest),
			)
		}
		if !(p.Throughput >= 0 && p.Throughput <= largest) {
			bad = append(
				bad,
				fmt.Errorf("usl: point %d: throughput %v: must be a finite number, not negative, at most %g", i+1,
					p.Throughput, largest),
			)
		}
		if !(p.Weight >= 0) || math.IsInf(p.Weight, 0) {
			bad = append(bad,
				fmt.Errorf("usl: point %d: weight %v: must be a finite number above 0, or 0 for 1", i+1, p.Weight))
		}
		distinct[p.Concurrency] = true
		positive = positive || p.Throughput > 0
	}
	if len(points) < 4 {
		bad = append(
			bad,
			fmt.Errorf("usl: %d points: three parameters and an error need at least 4; measure more concurrencies",
				len(points)),
		)
	} else if len(distinct) < 3 {
		bad = append(bad, fmt.Errorf("usl: %d different concurrencies: three parameters need at least 3", len(distinct)))
	}
	if len(points) > 0 && !positive {
		bad = append(bad, errors.New("usl: every throughput is 0: there is nothing to scale"))
	}
	return errors.Join(bad...)
}

// Prediction holds what the law says of one concurrency.
type Prediction struct {
	Concurrency, Throughput float64
	Mean                    resample.Interval // where the law's own curve lies (delta method)
	Measurement             resample.Interval // where one more measurement of weight 1 would lie
	Extrapolated            bool              // outside the concurrencies measured
}

// Predict gives the throughput at n with two bands. The band of the curve is t·√(gᵀCg), with g the gradient of the law
// by its parameters and C their covariance; that of a measurement adds the residual variance (Bates and Watts 1988,
// chapter 2). They hold the bands of all error models that the data allow. Both widen away from the data, unlike a band
// of constant width.
func (m *Model) Predict(n float64) (Prediction, error) {
	if !(n > 0) || math.IsInf(n, 0) {
		return Prediction{}, fmt.Errorf("usl: predict: concurrency %v: must be a finite number above 0", n)
	}
	low, high := m.span()
	p := Prediction{Concurrency: n, Throughput: m.At(n), Extrapolated: n < low || n > high}
	if m.Fall.Closer {
		p.Throughput = m.Fall.At(n)
	}
	if math.IsNaN(m.curveVariance(n)) {
		p.Mean = resample.None("these points do not determine the parameters")
		p.Measurement = p.Mean
		return p, nil
	}
	t := resample.StudentT(m.confidence, float64(m.DegreesOfFreedom))
	p.Mean = resample.Interval{Low: p.Throughput, High: p.Throughput, Confidence: m.confidence, Method: "delta method"}
	p.Measurement = p.Mean
	p.Measurement.Method = "delta method with residual variance"
	for _, f := range append([]*Model{m}, m.others...) {
		curve := f.curveVariance(n)
		if math.IsNaN(curve) {
			continue
		}
		p.Mean = around(p.Mean, f.At(n), t*math.Sqrt(curve))
		p.Measurement = around(p.Measurement, f.At(n), t*math.Sqrt(curve+f.measurementVariance(n)))
	}
	m.capAt(&p)
	m.fallAt(&p)
	return p, nil
}

// around widens an interval of a throughput to hold middle ± half.
func around(i resample.Interval, middle, half float64) resample.Interval {
	i.Low, i.High = max(0, min(i.Low, middle-half)), max(i.High, middle+half)
	return i
}

// curveVariance is that of the law's own curve at n.
func (m *Model) curveVariance(n float64) float64 {
	return max(0, quadratic(gradient(m.Coefficients, n), m.covariance))
}

// measurementVariance is that of one measurement of weight 1 around the curve at n.
func (m *Model) measurementVariance(n float64) float64 {
	return math.Pow(m.ResidualStdError*math.Pow(m.At(n), m.Errors.power()), 2)
}

func (m *Model) span() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, p := range m.points {
		low, high = min(low, p.Concurrency), max(high, p.Concurrency)
	}
	return low, high
}
