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
	for i, p := range parameters {
		p.Value, p.AtBound = v[i], !free[i]
		switch {
		case p.AtBound:
			p.T = resample.None("the estimate lies at its bound")
		case !ok:
			p.T = resample.None("the parameters cannot be told apart by these points")
		default:
			p.StdError = m.ResidualStdError * math.Sqrt(inverse[i][i])
			p.T = resample.Interval{
				Low: v[i] - t*p.StdError, High: v[i] + t*p.StdError,
				Confidence: m.confidence, Method: fmt.Sprintf("Student's t, %d degrees of freedom", m.DegreesOfFreedom),
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
	drawn := 0 // residuals are scaled before they are drawn, points are not
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

// drawer returns a function that fills a sample anew, false when it cannot. Residuals are brought to equal
// variance by their leverage, r·√w/√(1−h), and centred before they are drawn (Davison and Hinkley 1997, chapter 6).
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
	pool := m.modifiedResiduals()
	return func(sample []Point) bool {
		for i, p := range m.points {
			e := pool[r.IntN(len(pool))] / math.Sqrt(p.Weight)
			p.Throughput = max(0, m.At(p.Concurrency)+e)
			sample[i] = p
		}
		return true
	}
}

func (m *Model) modifiedResiduals() []float64 {
	pool := make([]float64, len(m.points))
	var mean float64
	s2 := m.ResidualStdError * m.ResidualStdError
	for i, p := range m.points {
		g := gradient(m.Coefficients, p.Concurrency)
		var leverage float64
		for a := range 3 {
			for b := range 3 {
				leverage += g[a] * m.covariance[a][b] * g[b]
			}
		}
		if leverage *= p.Weight; s2 > 0 && !math.IsNaN(leverage) {
			leverage /= s2
		} else {
			leverage = 0
		}
		pool[i] = m.Residuals[i] * math.Sqrt(p.Weight) / math.Sqrt(max(1-leverage, 0.01))
		mean += pool[i] / float64(len(pool))
	}
	for i := range pool {
		pool[i] -= mean
	}
	return pool
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
