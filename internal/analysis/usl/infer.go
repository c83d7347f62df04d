package usl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
)

// describe fills in everything that follows from the points and the estimate by formula.
func (m *Model) describe() {
	var sumW, mean, total, left float64
	for _, p := range m.original {
		sumW += p.Weight
		mean += p.Weight * p.Throughput
	}
	mean /= sumW
	m.Residuals = make([]float64, len(m.original))
	for i, p := range m.original {
		m.Residuals[i] = p.Throughput - m.At(p.Concurrency)
		left += p.Weight * m.Residuals[i] * m.Residuals[i]
		total += p.Weight * (p.Throughput - mean) * (p.Throughput - mean)
	}
	if total > 0 {
		m.RSquared = 1 - left/total
	}
	parameters := [3]*Parameter{&m.GammaParameter, &m.AlphaParameter, &m.BetaParameter}
	v, free := m.vector(), m.free()
	t := resample.StudentT(m.confidence, float64(m.DegreesOfFreedom))
	for i, p := range parameters {
		p.Value, p.AtBound = v[i], !free[i]
		switch {
		case p.AtBound:
			p.T = resample.None("the estimate lies at its bound")
		case math.IsNaN(m.covariance[i][i]):
			p.T = resample.None("these points do not determine the parameters")
		default:
			p.StdError = math.Sqrt(m.covariance[i][i])
			p.T = resample.Interval{Low: v[i] - t*p.StdError, High: v[i] + t*p.StdError, Confidence: m.confidence,
				Method: fmt.Sprintf("Student's t, %d degrees of freedom", m.DegreesOfFreedom)}
			for _, other := range m.others {
				if w, se := other.vector()[i], math.Sqrt(other.covariance[i][i]); other.free()[i] && !math.IsNaN(se) {
					p.T.Low, p.T.High = min(p.T.Low, w-t*se), max(p.T.High, w+t*se)
				}
			}
			p.T = p.T.Clamp(bounded.low[i], bounded.high[i])
		}
	}
	low, high := m.span()
	if n := m.PeakConcurrency(); m.Beta > 0 {
		m.Peak = Peak{Exists: true, InRange: low <= n && n <= high, Concurrency: n, Throughput: m.At(n)}
	}
}

// free says which parameters lie inside their bounds.
func (m *Model) free() (free [3]bool) {
	for i, v := range m.vector() {
		free[i] = v > bounded.low[i] && v < bounded.high[i]
	}
	return free
}

// errorModels are tried in this order; the first of equals is taken.
var errorModels = []Errors{Alike, Root, Proportional}

// fitsOf fits the law by every error model and returns those that the data allow: errors alike first when they are
// among them, since that is what the law is fitted with elsewhere, then the likeliest.
func fitsOf(points []Point, o Options) []*Model {
	var fits []*Model
	likeliest := math.Inf(-1)
	for _, e := range errorModels {
		if o.Errors == "" || o.Errors == e {
			f := fitBy(points, e, o.Confidence)
			fits, likeliest = append(fits, f), max(likeliest, f.likelihood)
		}
	}
	if len(points) >= fewestForErrors {
		fits = slices.DeleteFunc(fits, func(f *Model) bool { return likeliest-f.likelihood > allowedBehind })
	}
	slices.SortStableFunc(fits, func(a, b *Model) int {
		if (a.Errors == Alike) != (b.Errors == Alike) {
			return cmp.Compare(a.Errors.power(), b.Errors.power())
		}
		return cmp.Compare(b.likelihood, a.likelihood)
	})
	return fits
}

const (
	fewestForErrors = 10 // points, below which every error model is allowed: their likelihoods say nothing yet
	// how far the logarithm of its likelihood may be behind the best, for an error model to be allowed
	allowedBehind = 3
)

// leastOfLargest is the least throughput, as a share of the largest fitted, that an error is in proportion to.
const leastOfLargest = 1e-3

// fitBy fits the law with weights by an error model, its variances from the fit before: least squares iterated (Carroll
// and Ruppert 1988, Transformation and Weighting in Regression, chapter 2). Models are told apart by the likelihood of
// normal errors.
func fitBy(points []Point, e Errors, confidence float64) *Model {
	m := &Model{
		N:                len(points),
		DegreesOfFreedom: len(points) - 3,
		Errors:           e,
		original:         points,
		points:           slices.Clone(points),
		confidence:       confidence,
	}
	m.solution = solveFromMany(m.points, bounded)
	for range 20 {
		if e == Alike {
			break
		}
		before := m.solution.Coefficients
		m.weigh(before)
		m.solution = lowest(m.points, solve(m.points, before, bounded), bounded)
		if near(before, m.solution.Coefficients) {
			break
		}
	}
	m.Coefficients = m.solution.Coefficients
	n := float64(m.N)
	var scale float64
	for i, p := range m.points {
		m.likelihood += math.Log(p.Weight/points[i].Weight) / 2
		scale += p.Weight * p.Throughput * p.Throughput
	}
	// Below a relative error of 1e-9 the loss is rounding, not evidence.
	m.likelihood -= n / 2 * math.Log(max(m.solution.loss, 1e-18*scale)/n)
	m.ResidualStdError = math.Sqrt(m.solution.loss / float64(m.DegreesOfFreedom))
	h, _ := normal(m.points, m.Coefficients)
	inverse, ok := invert3(h, m.free())
	for i := range 3 {
		for j := range 3 {
			m.covariance[i][j] = m.ResidualStdError * m.ResidualStdError * inverse[i][j]
			if !ok {
				m.covariance[i][j] = math.NaN()
			}
		}
	}
	return m
}

// weigh sets the weights of the points by what the law c says of their throughput.
func (m *Model) weigh(c Coefficients) {
	largest := 0.0
	for _, p := range m.original {
		largest = max(largest, c.At(p.Concurrency))
	}
	for i, p := range m.original {
		of := max(c.At(p.Concurrency), leastOfLargest*largest)
		m.points[i].Weight = p.Weight * math.Pow(of, -2*m.Errors.power())
	}
}

// near reports whether two laws are one to six digits.
func near(a, b Coefficients) bool {
	v, w := a.vector(), b.vector()
	for i := range v {
		if math.Abs(v[i]-w[i]) > 1e-6*math.Abs(w[i])+1e-12 {
			return false
		}
	}
	return true
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
		none(
			fmt.Sprintf("%d points are too few for a bootstrap of three parameters, at least %d are needed", m.N,
				3+minDof),
		)
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
	edge := m.atEdge()
	for i, p := range parameters {
		p.Boot = resample.Percentile(values[i], level, o.Confidence, method)
		if edge != "" && !p.AtBound {
			p.Boot = resample.None(edge + ": resamples then say too little of the parameters")
		}
	}
	m.Peak.NoPeakShare = float64(noPeak) / float64(len(peakN))
	m.Peak.ConcurrencyInterval = resample.Percentile(peakN, level, o.Confidence, method)
	m.Peak.ThroughputInterval = resample.Percentile(peakX, level, o.Confidence, method)
	if p, err := m.Predict(m.Peak.Concurrency); err == nil && p.Mean.Valid() && m.Peak.ThroughputInterval.Valid() {
		// few points lie near a peak: the curve's band there, which by the envelope theorem is the peak's too, may be
		// wider
		i := &m.Peak.ThroughputInterval
		i.Low, i.High, i.Method = min(i.Low, p.Mean.Low), max(i.High, p.Mean.High), method+", and the curve's band"
	}
}

// atEdge says which parameter lies at its lower bound, or cannot be told from it; "" when none does. The bootstrap is
// not consistent there (Andrews 2000, Econometrica 68): without crosstalk its intervals of the parameters that are not
// at their bound covered 71 to 97 %, where Student's t covered 91 % and more.
func (m *Model) atEdge() string {
	for _, p := range []struct {
		name string
		Parameter
	}{{"contention", m.AlphaParameter}, {"crosstalk", m.BetaParameter}} {
		if p.AtBound || p.T.Valid() && p.T.Low <= 0 {
			return p.name + " cannot be told from none"
		}
	}
	return ""
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

// modifiedResiduals make up for what leverage h took from the residuals. Those that change places are brought to equal
// variance, r·√w/√(1−h), and centred (Davison and Hinkley 1997, chapter 6); those that stay are r·√w/(1−h), as in HC3.
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
	Capped    Law = "cap"       // a line up to a cap, none of the three
)

// Alternative is one law fitted to the same points, by the same error model.
type Alternative struct {
	Law
	Coefficients
	// P is the chance that the full law is so much closer to the points than this one, if this one holds: the F test of
	// nested laws (Bates and Watts 1988, section 3.10), halved for the last parameter, which may only be positive
	// (Self and Liang 1987). 1 for the full law itself.
	P float64
}

// compare fits the nested laws by every error model that the data allow; of their chances the largest counts.
func compare(fits []*Model) []Alternative {
	var out []Alternative
	for i, f := range fits {
		line, amdahl := solve(f.points, Coefficients{}, linear), solveFromMany(f.points, amdahl)
		tested := []Alternative{
			{Law: Linear, Coefficients: line.Coefficients, P: f.nested(line, 2)},
			{Law: Amdahl, Coefficients: amdahl.Coefficients, P: f.nested(amdahl, 1) / 2},
			{Law: Universal, Coefficients: f.Coefficients, P: 1},
		}
		if i == 0 {
			out = tested
		}
		for j := range out {
			out[j].P = max(out[j].P, tested[j].P)
		}
	}
	return out
}

// nested is the chance of the F test of a law with so many parameters fewer.
func (m *Model) nested(simple solution, fewer float64) float64 {
	left := m.solution.loss / float64(m.DegreesOfFreedom)
	f := max(0, simple.loss-m.solution.loss) / fewer / left
	switch {
	case math.IsNaN(f):
		return 1
	case math.IsInf(f, 1):
		return 0
	}
	return distuv.F{D1: fewer, D2: float64(m.DegreesOfFreedom)}.Survival(f)
}

// unbound fits without bounds, and says how likely negative contention is so much closer than the law and a line up to
// a cap if there is none: the most likely by every error model that the data allow.
func (m *Model) unbound(fits []*Model) {
	if free := solveFromMany(m.points, unbounded); free.ok {
		m.Unbounded = &free.Coefficients
	}
	negative := bounded
	negative.low[1] = unbounded.low[1]
	for _, f := range fits {
		p, dof := 1.0, float64(f.DegreesOfFreedom)
		_, least, _ := f.line() // a line that bends late looks like it, too
		least = min(least, f.solution.loss)
		if free := solveFromMany(f.points, negative); free.ok && free.loss < least {
			p = distuv.F{D1: 1, D2: dof}.Survival((least-free.loss)/(free.loss/dof)) / 2
		}
		m.negativeP = max(m.negativeP, p)
	}
}

// CrosstalkP is the chance of as much crosstalk as is seen if there is none: that of Amdahl's law, 1 where a line up to
// a cap, or another that never falls, does without, throughput falls at once, or the concurrencies are too few to tell.
func (m *Model) CrosstalkP() float64 {
	if m.Cap.Allowed || m.Fall.Closer || m.Few() || m.climbs {
		return 1
	}
	return m.Alternatives[1].P
}

// Outlier is a point that strays from what all others say.
type Outlier struct {
	Index   int // of the point, from 0
	Point   Point
	Without Coefficients // the law without it
	P       float64      // chance of a point straying as far as the furthest of so many
}

const (
	fewestForOutlier = 6 // points; without one there must be two degrees of freedom
	outlierLevel     = 0.01
	mostRefits       = 12 // points with the largest residuals that are tried
)

// outlier finds the point that is furthest from the law fitted to all others, by its deleted residual, which follows
// Student's t, with Bonferroni's correction for having looked at all (Cook and Weisberg 1982, section 2.2).
func (m *Model) outlier() *Outlier {
	if m.N < fewestForOutlier {
		return nil
	}
	order := make([]int, m.N)
	for i := range order {
		order[i] = i
	}
	if m.N > mostRefits {
		size := func(i int) float64 { return math.Abs(m.Residuals[i]) * math.Sqrt(m.points[i].Weight) }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
		order = order[:mostRefits]
	}
	best := Outlier{P: outlierLevel}
	for _, i := range order {
		rest := slices.Delete(slices.Clone(m.original), i, i+1)
		if distinct(rest) < 3 {
			continue
		}
		p, one := m.original[i], Outlier{Index: i, Point: m.original[i]}
		for _, e := range m.ErrorsAllowed { // it strays whatever the errors are like
			f := fitBy(rest, e, m.confidence)
			variance := f.curveVariance(p.Concurrency) + f.measurementVariance(p.Concurrency)/p.Weight
			t := math.Abs(p.Throughput-f.At(p.Concurrency)) / math.Sqrt(variance)
			if e == m.Errors {
				one.Without = f.Coefficients
			}
			chance := 1.0
			if !math.IsNaN(t) {
				chance = 2 * float64(m.N) * distuv.StudentsT{Sigma: 1, Nu: float64(f.DegreesOfFreedom)}.Survival(t)
			}
			one.P = max(one.P, min(1, chance))
		}
		if one.P < best.P {
			best = one
		}
	}
	if best.P >= outlierLevel {
		return nil
	}
	return &best
}
