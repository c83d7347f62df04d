package usl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
)

// describe fills in everything that follows from the points and the estimate by formula.
func (m *Model) describe(best solution) {
	var sumW, mean, total float64
	for _, p := range m.points {
		sumW += p.Weight
		mean += p.Weight * p.Throughput
	}
	mean /= sumW
	m.Residuals = make([]float64, len(m.points))
	for i, p := range m.points {
		m.Residuals[i] = p.Throughput - m.At(p.Concurrency)
		total += p.Weight * (p.Throughput - mean) * (p.Throughput - mean)
	}
	if total > 0 {
		m.RSquared = 1 - best.loss/total
	}
	dof := float64(m.DegreesOfFreedom)
	m.ResidualStdError = math.Sqrt(best.loss / dof)

	v := m.vector()
	parameters := [3]*Parameter{&m.GammaParameter, &m.AlphaParameter, &m.BetaParameter}
	var free [3]bool
	for i := range 3 {
		free[i] = v[i] > bounded.low[i] && v[i] < bounded.high[i]
	}
	h, _ := normal(m.points, m.Coefficients)
	inverse, ok := invert3(h, free)
	t := resample.StudentT(m.confidence, dof)
	robust := m.robust(inverse)
	for i, p := range parameters {
		p.Value, p.AtBound = v[i], !free[i]
		switch {
		case p.AtBound:
			p.T = resample.None("the estimate lies at its bound")
		case !ok:
			p.T = resample.None("the parameters cannot be told apart by these points")
		default:
			p.StdError = m.ResidualStdError * math.Sqrt(inverse[i][i])
			half := t * math.Sqrt(robust[i])
			p.T = resample.Interval{
				Low: v[i] - half, High: v[i] + half,
				Confidence: m.confidence, Method: fmt.Sprintf("Student's t, %d degrees of freedom, unequal errors allowed", m.DegreesOfFreedom),
			}.Clamp(bounded.low[i], bounded.high[i])
		}
	}
	for i := range 3 {
		for j := range 3 {
			m.covariance[i][j] = m.ResidualStdError * m.ResidualStdError * inverse[i][j]
			if !ok {
				m.covariance[i][j] = math.NaN()
			}
		}
	}
	_, high := m.span()
	if n := m.PeakConcurrency(); m.Beta > 0 {
		m.Peak = Peak{Exists: true, InRange: n <= high, Concurrency: n, Throughput: m.At(n)}
	}
}

// robust are the variances of the parameters when errors differ from point to point: the inverse around the squares of the residuals, each over
// (1 − leverage)² (HC3; MacKinnon and White 1985, Journal of Econometrics 29).
func (m *Model) robust(inverse [3][3]float64) (variance [3]float64) {
	for i, p := range m.points {
		g := gradient(m.Coefficients, p.Concurrency)
		leverage := p.Weight * quadratic(g, inverse)
		e := p.Weight * m.Residuals[i] / max(1-leverage, leastRest)
		for a := range 3 {
			own := 0.0
			for b := range 3 {
				own += inverse[a][b] * g[b]
			}
			variance[a] += own * own * e * e
		}
	}
	return variance
}

// leastRest limits what a point that the fit goes through counts for.
const leastRest = 0.05

func quadratic(g [3]float64, m [3][3]float64) (sum float64) {
	for a := range 3 {
		for b := range 3 {
			sum += g[a] * m[a][b] * g[b]
		}
	}
	return sum
}

// minDof is the fewest degrees of freedom for which a bootstrap of so few points means anything.
const minDof = 3

// bootstrap fills in the intervals that need resampling. Percentiles are read at the level Expand gives, so that
// they cover what they claim in samples of this size. An infinite peak counts as what it is: the largest.
func (m *Model) bootstrap(o Options) {
	parameters := [3]*Parameter{&m.GammaParameter, &m.AlphaParameter, &m.BetaParameter}
	none := func(reason string) {
		for _, p := range parameters {
			p.Boot = resample.None(reason)
		}
		m.Peak.ConcurrencyInterval, m.Peak.ThroughputInterval = resample.None(reason), resample.None(reason)
	}
	if o.Resamples < 0 {
		none("no bootstrap was asked for")
		return
	}
	if m.DegreesOfFreedom < minDof {
		none(fmt.Sprintf("%d points are too few for a bootstrap of three parameters, at least %d are needed", m.N, 3+minDof))
		return
	}
	draw := m.drawer(o)
	var values [3][]float64
	var peakN, peakX []float64
	noPeak := 0
	sample := make([]Point, len(m.points))
	for range o.Resamples {
		if !draw(sample) {
			continue
		}
		s := solve(sample, m.Coefficients, bounded)
		for i, v := range s.vector() {
			values[i] = append(values[i], v)
		}
		peakN, peakX = append(peakN, s.PeakConcurrency()), append(peakX, s.PeakThroughput())
		if s.Beta <= 0 {
			noPeak++
		}
	}
	if len(peakN) == 0 {
		none("no resample had three different concurrencies")
		return
	}
	drawn := 0 // residuals are scaled before they are used, points are not
	if o.Scheme == Cases {
		drawn = m.N
	}
	level := resample.Expand(o.Confidence, float64(m.DegreesOfFreedom), drawn)
	method := fmt.Sprintf("%s bootstrap, %d resamples, expanded percentiles", o.Scheme, len(peakN))
	for i, p := range parameters {
		p.Boot = resample.Percentile(values[i], level, o.Confidence, method)
	}
	m.Peak.NoPeakShare = float64(noPeak) / float64(len(peakN))
	m.Peak.ConcurrencyInterval = resample.Percentile(peakN, level, o.Confidence, method)
	m.Peak.ThroughputInterval = resample.Percentile(peakX, level, o.Confidence, method)
}

// drawer returns a function that fills a sample anew, false when it cannot.
func (m *Model) drawer(o Options) func([]Point) bool {
	r := resample.Source(o.Seed, 1)
	if o.Scheme == Cases {
		index := make([]int, len(m.points))
		return func(sample []Point) bool {
			for range 100 {
				resample.Draw(r, len(m.points), index)
				for i, at := range index {
					sample[i] = m.points[at]
				}
				if distinct(sample) >= 3 {
					return true
				}
			}
			return false
		}
	}
	errors := m.modifiedResiduals(o.Scheme)
	draw := func(i int) float64 { return errors[i] * r.NormFloat64() }
	if o.Scheme == Residuals {
		draw = func(int) float64 { return errors[r.IntN(len(errors))] }
	}
	return func(sample []Point) bool {
		for i, p := range m.points {
			p.Throughput = max(0, m.At(p.Concurrency)+draw(i)/math.Sqrt(p.Weight))
			sample[i] = p
		}
		return true
	}
}

// modifiedResiduals make up for what leverage h took from the residuals. Those that change places are brought to equal variance, r·√w/√(1−h), and centred
// (Davison and Hinkley 1997, chapter 6); those that stay are r·√w/(1−h), as in HC3.
func (m *Model) modifiedResiduals(scheme Scheme) []float64 {
	out := make([]float64, len(m.points))
	var mean float64
	s2 := m.ResidualStdError * m.ResidualStdError
	for i, p := range m.points {
		leverage := p.Weight * quadratic(gradient(m.Coefficients, p.Concurrency), m.covariance) / s2
		if !(leverage < 1) {
			leverage = 0 // nothing is left, or there is no covariance
		}
		rest := max(1-leverage, leastRest)
		if scheme == Residuals {
			rest = math.Sqrt(rest)
		}
		out[i] = m.Residuals[i] * math.Sqrt(p.Weight) / rest
		mean += out[i] / float64(len(out))
	}
	if scheme == Residuals {
		for i := range out {
			out[i] -= mean
		}
	}
	return out
}

func distinct(points []Point) int {
	n := make([]float64, len(points))
	for i, p := range points {
		n[i] = p.Concurrency
	}
	slices.Sort(n)
	return len(slices.Compact(n))
}

// Law names one of the three nested models.
type Law string

// The laws compared.
const (
	Linear    Law = "linear"    // α = β = 0
	Amdahl    Law = "amdahl"    // β = 0
	Universal Law = "universal" // all three
)

// Alternative is one law fitted to the same points.
type Alternative struct {
	Law
	Coefficients
	// AICc is n·ln(Σw·r²/n) + 2k + 2k(k+1)/(n−k−1) with k the parameters and the error variance (Hurvich and Tsai
	// 1989); +Inf when n ≤ k+1. Only differences mean something.
	AICc float64
	// Likelihood is the Akaike weight: the support for this law among the three, 0 to 1 (Burnham and Anderson
	// 2002).
	Likelihood float64
}

// compare fits the nested laws and orders them by AICc, the simpler first among equals.
func compare(points []Point, best solution) []Alternative {
	n := float64(len(points))
	var scale float64
	for _, p := range points {
		scale += p.Weight * p.Throughput * p.Throughput
	}
	score := func(law Law, s solution, parameters float64) Alternative {
		k := parameters + 1
		a := Alternative{Law: law, Coefficients: s.Coefficients, AICc: math.Inf(1)}
		if n > k+1 {
			// Below a relative error of 1e-9 the loss is rounding, not evidence.
			a.AICc = n*math.Log(max(s.loss, 1e-18*scale)/n) + 2*k + 2*k*(k+1)/(n-k-1)
		}
		return a
	}
	out := []Alternative{
		score(Linear, solve(points, Coefficients{}, linear), 1),
		score(Amdahl, solveFromMany(points, amdahl), 2),
		score(Universal, best, 3),
	}
	slices.SortStableFunc(out, func(a, b Alternative) int { return cmp.Compare(a.AICc, b.AICc) })
	var sum float64
	for i := range out {
		if !math.IsInf(out[i].AICc, 1) {
			out[i].Likelihood = math.Exp((out[0].AICc - out[i].AICc) / 2)
			sum += out[i].Likelihood
		}
	}
	for i := range out {
		if sum > 0 {
			out[i].Likelihood /= sum
		}
	}
	return out
}
