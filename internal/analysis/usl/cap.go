package usl

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
)

// Cap is a line up to a cap, such as a link, a device's rate or a client that can do no more:
//
//	X(N) = γN / (1 + (N/K)^p)^(1/p)
//
// with K the concurrency at which the line comes to the cap γK, and p how sharp the bend is; +Inf is a corner,
// min(γN, γK), and 1 is Amdahl's law. It never bends over, and the Universal Scalability Law, fitted to it, does: what
// that fit then shows as crosstalk and a peak is an artefact.
type Cap struct {
	Gamma, Concurrency, Sharpness float64
	Ratio                         float64 // of what the law leaves of the points over what this leaves
	// Closer: it is so much closer than the law as chance makes one of two in one of twenty. Allowed: the law is not so
	// much closer, one of ten, and the points beyond the cap do not fall.
	Closer, Allowed bool

	shown      bool          // points of two concurrencies or more lie beyond it
	covariance [2][2]float64 // of ln γ and ln K
	freedom    float64
}

// fallsBeyond is the chance below which points beyond a cap fall.
const fallsBeyond = 0.025

// Limit is the throughput of the cap.
func (c Cap) Limit() float64 { return c.Gamma * c.Concurrency }

// At is the throughput at concurrency n.
func (c Cap) At(n float64) float64 { return c.Gamma * bent(n, c.Concurrency, c.Sharpness) }

// bent is the concurrency of a line that gives what the cap gives at n.
func bent(n, knee, sharpness float64) float64 {
	if math.IsInf(sharpness, 1) {
		return min(n, knee)
	}
	return n / math.Pow(1+math.Pow(n/knee, sharpness), 1/sharpness)
}

// sharpnesses are tried in turn: the bend is told badly by few points, and closer steps change nothing.
var sharpnesses = []float64{1, 1.5, 2, 4, math.Inf(1)}

// capOf fits the cap by the error model of a fit of the law. falls is the chance of points beyond the cap that fall as
// they do if they do not.
func capOf(f *Model) (best Cap, loss, falls float64) {
	points := slices.Clone(f.points)
	low, high := f.span()
	rounds := 1
	if f.Errors != Alike {
		rounds = 2 // weights follow the fit, and are first those of the law
	}
	for range rounds {
		loss = math.Inf(1)
		falling := math.Inf(1)
		for _, p := range sharpnesses {
			const steps = 36
			from, to := math.Log(low), math.Log(4*high)
			width := (to - from) / steps
			start, least := from, math.Inf(1)
			for i := range steps + 1 {
				at := from + width*float64(i)
				if _, left := lined(points, math.Exp(at), p); left < least {
					start, least = at, left
				}
				falling = min(falling, fallen(points, math.Exp(at), p))
			}
			knee := math.Exp(smallest(start-width, start+width, func(at float64) float64 {
				_, left := lined(points, math.Exp(at), p)
				return left
			}))
			falling = min(falling, fallen(points, knee, p))
			if gamma, left := lined(points, knee, p); left < loss {
				loss, best = left, Cap{Gamma: gamma, Concurrency: knee, Sharpness: p}
			}
		}
		falls = 1
		if dof := float64(f.DegreesOfFreedom - 1); dof > 0 && falling < loss {
			falls = distuv.F{D1: 1, D2: dof}.Survival((loss-falling)/(falling/dof)) / 2
		}
		if f.Errors == Alike {
			break
		}
		for i, pt := range f.original {
			of := max(best.At(pt.Concurrency), leastOfLargest*best.Limit())
			points[i].Weight = pt.Weight * math.Pow(of, -2*f.Errors.power())
		}
	}
	best.freedom = float64(f.DegreesOfFreedom)
	best.spread(points, loss)
	// By each one's own weights: what is left, as a share of what is allowed there.
	var scale float64
	for i := range points {
		scale += math.Log(f.points[i].Weight / points[i].Weight)
	}
	return best, loss * math.Exp(scale/float64(len(points))), falls
}

// line is capOf, found once.
func (m *Model) line() (best Cap, loss, falls float64) {
	if m.lined == nil {
		m.lined = &cappedFit{}
		m.lined.best, m.lined.loss, m.lined.falls = capOf(m)
	}
	return m.lined.best, m.lined.loss, m.lined.falls
}

type cappedFit struct {
	best        Cap
	loss, falls float64
}

// lined is the line that fits best up to a cap at a concurrency, and what it leaves.
func lined(points []Point, knee, sharpness float64) (gamma, left float64) {
	var xs, ss float64
	for _, p := range points {
		s := bent(p.Concurrency, knee, sharpness)
		xs, ss = xs+p.Weight*p.Throughput*s, ss+p.Weight*s*s
	}
	gamma = xs / ss
	for _, p := range points {
		r := p.Throughput - gamma*bent(p.Concurrency, knee, sharpness)
		left += p.Weight * r * r
	}
	return gamma, left
}

// fallen returns what is left when throughput may also fall beyond the cap, by the logarithm of the concurrency.
func fallen(points []Point, knee, sharpness float64) (left float64) {
	var xs, xz, ss, sz, zz float64
	shape := func(p Point) (s, z float64) {
		s = bent(p.Concurrency, knee, sharpness)
		return s, -s * max(0, math.Log(p.Concurrency/knee))
	}
	for _, p := range points {
		s, z := shape(p)
		xs, xz = xs+p.Weight*p.Throughput*s, xz+p.Weight*p.Throughput*z
		ss, sz, zz = ss+p.Weight*s*s, sz+p.Weight*s*z, zz+p.Weight*z*z
	}
	det := ss*zz - sz*sz
	if !(det > 1e-12*ss*zz) {
		return math.Inf(1)
	}
	gamma, fall := (xs*zz-xz*sz)/det, (xz*ss-xs*sz)/det
	if fall < 0 {
		return math.Inf(1)
	}
	for _, p := range points {
		s, z := shape(p)
		r := p.Throughput - gamma*s - fall*z
		left += p.Weight * r * r
	}
	return left
}

// smallest is where a function of one bend is least between two places (golden section).
func smallest(from, to float64, f func(float64) float64) float64 {
	const ratio = 0.6180339887498949
	a, b := to-ratio*(to-from), from+ratio*(to-from)
	fa, fb := f(a), f(b)
	for range 24 {
		if fa < fb {
			to, b, fb = b, a, fa
			a = to - ratio*(to-from)
			fa = f(a)
		} else {
			from, a, fa = a, b, fb
			b = from + ratio*(to-from)
			fb = f(b)
		}
	}
	return (from + to) / 2
}

// gradient of the throughput at n by ln γ and ln K.
func (c Cap) gradient(n float64) [2]float64 {
	const step = 1e-3
	up, down := c, c
	up.Concurrency, down.Concurrency = c.Concurrency*math.Exp(step), c.Concurrency*math.Exp(-step)
	return [2]float64{c.At(n), (up.At(n) - down.At(n)) / (2 * step)}
}

// spread fills in the covariance of what is fitted.
func (c *Cap) spread(points []Point, loss float64) {
	var h [2][2]float64
	for _, p := range points {
		g := c.gradient(p.Concurrency)
		for i := range 2 {
			for j := range 2 {
				h[i][j] += p.Weight * g[i] * g[j]
			}
		}
	}
	variance, det := loss/max(1, c.freedom), h[0][0]*h[1][1]-h[0][1]*h[1][0]
	if !(det > 0) {
		variance, det = math.NaN(), 1
	}
	c.covariance = [2][2]float64{{variance * h[1][1] / det, -variance * h[0][1] / det},
		{-variance * h[0][1] / det, variance * h[0][0] / det}}
}

// variance of the curve at n.
func (c Cap) variance(n float64) float64 {
	g := c.gradient(n)
	sum := 0.0
	for i := range 2 {
		for j := range 2 {
			sum += g[i] * c.covariance[i][j] * g[j]
		}
	}
	return max(0, sum)
}

// capped sets the law against a line up to a cap, by the error model that either fits best with.
func (m *Model) capped(fits []*Model) {
	if m.DegreesOfFreedom < 1 {
		return
	}
	least, falls := math.Inf(1), 1.0
	for _, f := range fits {
		c, loss, p := f.line()
		ratio := f.solution.loss / loss
		if f.solution.loss <= 0 && loss <= 0 {
			ratio = 1
		}
		if 1/ratio < least {
			least = 1 / ratio
			c.Ratio, falls = ratio, p
			m.Cap = c
		}
	}
	dof := float64(m.DegreesOfFreedom)
	f := distuv.F{D1: dof, D2: dof}
	m.Cap.shown = m.Cap.seen(m.points)
	m.Cap.Closer = m.Cap.Ratio > f.Quantile(0.95) && m.Cap.shown && m.DegreesOfFreedom >= minDof
	m.Cap.Allowed = m.Cap.Closer || 1/m.Cap.Ratio < f.Quantile(0.9) && falls > fallsBeyond
	if m.Alternatives[1].P >= level && !m.Cap.Closer {
		m.Cap.Allowed = m.Cap.Allowed && m.Cap.Sharpness > 1 // Amdahl's law says the same
	}
}

// seen reports whether points of two concurrencies or more lie beyond the bend: one may be low by chance.
func (c Cap) seen(points []Point) bool {
	beyond := map[float64]bool{}
	for _, p := range points {
		if p.Concurrency > c.Concurrency {
			beyond[p.Concurrency] = true
		}
	}
	return len(beyond) > 1
}

// Words say in a report what is known of the cap; "" when the law rules it out, or the points do not reach it.
func (c Cap) Words() string {
	switch {
	case c.Closer:
		return fmt.Sprintf("a line up to a cap of %.6g, reached at about %.3g, is closer to the points than the law: "+
			"look for what limits it, such as a link, a rate or the client", c.Limit(), c.Concurrency)
	case c.Allowed && c.shown:
		return fmt.Sprintf("a line up to a cap of %.6g, reached at about %.3g, fits about as well", c.Limit(),
			c.Concurrency)
	}
	return ""
}

// artefacts takes back what the law's parameters say where a line up to a cap, or a fall, does without them.
func (m *Model) artefacts() {
	why := resample.None("a line up to a cap is closer to the points: the law's parameters are then an artefact")
	taken := []*Parameter{&m.AlphaParameter, &m.BetaParameter}
	if m.Fall.Closer {
		why = resample.None("throughput falls at once: the law's parameters are then an artefact")
		taken = append(taken, &m.GammaParameter)
	}
	switch {
	case m.Cap.Closer, m.Fall.Closer:
		for _, p := range taken {
			p.T, p.Boot = why, why
		}
		m.Peak.ConcurrencyInterval, m.Peak.ThroughputInterval = why, why
	case m.Cap.Allowed, m.Few():
		for _, i := range []*resample.Interval{&m.BetaParameter.T, &m.BetaParameter.Boot} {
			if i.Valid() {
				i.Low = 0
			}
		}
	}
}

// capAt holds what the cap says of n beside what the law says, or instead of it where it is closer.
func (m *Model) capAt(p *Prediction) {
	c := m.Cap
	v := c.variance(p.Concurrency)
	if !c.Allowed || math.IsNaN(v) {
		return
	}
	at, t := c.At(p.Concurrency), resample.StudentT(m.confidence, c.freedom)
	noise := math.Pow(m.ResidualStdError*math.Pow(at, m.Errors.power()), 2)
	if c.Closer {
		noise /= c.Ratio
		p.Throughput = at
		p.Mean = resample.Interval{Low: at, High: at, Confidence: m.confidence, Method: "delta method, line to a cap"}
		p.Measurement = p.Mean
	}
	p.Mean = around(p.Mean, at, t*math.Sqrt(v))
	p.Measurement = around(p.Measurement, at, t*math.Sqrt(v+noise))
}
