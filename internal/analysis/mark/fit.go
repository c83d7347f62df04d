package mark

import (
	"cmp"
	"math"
	"slices"

	"plimsoll/internal/analysis/resample"
)

// Confidence is the nominal confidence of a mark's interval.
const Confidence = 0.95

// nominal is the confidence at which intervals are read: a search that ends when its interval is narrow ends sooner
// where it is too narrow by chance. It is what makes Confidence true in TestRates.
const nominal = 0.975

// firmly is the room that a rate beside a step has, or lacks.
const firmly = 1.1

// fewest is the least number of probes that a line is fitted to.
const fewest = 4

// leastSpread is the least relative spread of margins from probe to probe that is believed.
const leastSpread = 0.005

// edge is where the limit is thought to be.
type edge struct {
	rate, low, high float64
	points          int     // fitted
	spread          float64 // of margins from probe to probe, relative
	drift           float64 // of margins from the first probe to the last, as a share; 0: not seen
	cliff           bool    // no slope: low held and high broke
	twice           bool    // a cliff whose two sides were offered twice
	inside          bool    // between probes that were fitted
	chance          bool    // no slope, and near it a rate holds or breaks by chance
	due             bool    // that is chance of what is due at random
	gap             bool    // no probe shows how the limit is crossed: the interval has both sides of that
	ok              bool
}

// estimate is the mark by the probes so far.
func estimate(probes []Probe) edge {
	b := bracket(probes)
	if !b.held || !b.broke {
		return edge{}
	}
	guess := math.Sqrt(b.low.Offered * b.high.Offered)
	if e, near := around(probes, b); near {
		guess = e.rate
	} else if l, h := b.low.Margin, b.high.Margin; !b.high.Behind && h > 0.2 && l > h {
		guess = interpolate(b.low, b.high)
	}
	e := fit(probes, guess)
	drift := e.drift
	for range 3 {
		if !e.ok || math.Abs(e.rate/guess-1) < 0.005 {
			break
		}
		guess = e.rate
		if next := fit(probes, guess); next.ok {
			e = next
		}
	}
	if ceiling := ceiling(probes); e.ok && e.rate < ceiling && e.rate > 0 {
		e.high = min(e.high, ceiling)
		return e.across(probes, b)
	}
	e = chance(probes, b)
	if !e.ok {
		e = arrivals(probes, b)
	}
	if e.ok {
		e.drift = drift
		return e
	}
	low, high := b.low.Offered, b.high.Offered
	return edge{rate: low, low: low, high: high, cliff: true, ok: true, twice: step(probes, low, high),
		drift: drift}
}

// jump is the ratio of the margins of two neighbours from which on a straight line between them is only a guess, and
// steeper how much steeper it is there than below where there is a cliff.
const (
	jump    = 1.5
	steeper = 3
)

// across takes both sides of the limit into the interval where the limited value jumps over it from one probe to the
// next: a line through both sides of a cliff would be sure of a place in between that nothing has shown.
func (e edge) across(probes []Probe, b span) edge {
	low, high := b.low, b.high
	for _, p := range probes {
		if !p.Held && p.Offered > low.Offered && p.Offered < high.Offered {
			high = p
		}
	}
	if high.Behind || low.Margin < jump*high.Margin {
		return e
	}
	far := low // the lowest that the line goes through
	for _, p := range probes {
		if p.Held && p.Offered >= (1-widest)*e.rate && p.Offered < far.Offered {
			far = p
		}
	}
	if e.gap = (low.Margin-high.Margin)*(low.Offered-far.Offered) >
		steeper*(far.Margin-low.Margin)*(high.Offered-low.Offered); e.gap || far.Offered == low.Offered {
		e.gap, e.low, e.high = true, min(e.low, low.Offered), max(e.high, high.Offered)
	}
	return e
}

// step reports whether the limit breaks from one rate to the other without a slope: both were offered twice, the lower
// always held with room, and the higher never came near while it was met.
func step(probes []Probe, low, high float64) bool {
	for _, p := range probes {
		switch {
		case same(p.Offered, low) && p.Margin < firmly, same(p.Offered, high) && p.Margin > 1/firmly && !p.Behind:
			return false
		}
	}
	return count(probes, low) > 1 && count(probes, high) > 1
}

// ceiling is the lowest rate that could not be kept up.
func ceiling(probes []Probe) float64 {
	c := math.Inf(1)
	for _, p := range probes {
		if p.Behind && !p.Held {
			c = min(c, p.Offered)
		}
	}
	return c
}

// What is believed of a fit before there are data. Spread from probe to probe is taken in as so many probes of a usual
// one, so that four that agree by chance do not make an interval of nothing. The curve's bend over (d)², d the distance
// from the mark as a share of it, is one of a normal distribution about none whose deviation grows with the slope: in
// queues with up to a hundred servers margins bend by up to about that much near their limits.
const (
	usualSpread = 0.03
	usualProbes = 2
	leastBend   = 1
	bendBySlope = 1.2
	misfit      = 0.5 // of the bend: how far off the curve is expected to be, which takes weight from distant probes
	widest      = 0.5 // no probe farther away is looked at
)

// fit puts a curve through the margins of the probes around a guess: a line with a bend that is held back.
func fit(probes []Probe, guess float64) edge {
	var near []Probe
	var order []float64
	for i, p := range probes {
		if !p.Behind && p.Margin > 0.2 && p.Margin <= 4 && math.Abs(p.Offered/guess-1) <= widest {
			near, order = append(near, p), append(order, float64(i))
		}
	}
	near, order = ofOne(near, order)
	if len(near) < fewest {
		return edge{}
	}
	c := curve{guess: guess}
	weights := make([]float64, len(near))
	for i, p := range near {
		weights[i] = 1 / (p.Margin * p.Margin)
	}
	for range 3 {
		if !c.solve(near, weights) {
			return edge{}
		}
		for i, p := range near {
			d := c.place(p.Offered)
			w, off := max(c.at(d), 0.1), misfit*c.bend()*d*d
			weights[i] = 1 / (w*w + off*off/c.s2)
		}
	}
	e := c.edge(len(near))
	e.drift = c.drift(near, order, weights)
	return e
}

// ofOne leaves out the probes that are nearer to another limit than the one whose margin is nearest to 1: their margins
// lie on another curve. All are left when too few are of one.
func ofOne(near []Probe, order []float64) ([]Probe, []float64) {
	if len(near) < fewest {
		return near, order
	}
	at := slices.MinFunc(near, func(p, q Probe) int {
		return cmp.Compare(math.Abs(math.Log(p.Margin)), math.Abs(math.Log(q.Margin)))
	})
	var one []Probe
	var places []float64
	for i, p := range near {
		if p.Limit == at.Limit {
			one, places = append(one, p), append(places, order[i])
		}
	}
	if len(one) < fewest {
		return near, order
	}
	return one, places
}

// drift is by how much margins changed from the first probe to the last, as a share, beyond what the curve says and
// chance makes (a line through the residuals over the order, by a t test at 1 %); 0 when that is not so.
func (c *curve) drift(near []Probe, order, weights []float64) float64 {
	n := float64(len(near))
	if len(near) < fewest+2 {
		return 0
	}
	var sum, x, y, xx, xy, yy float64
	for i, p := range near {
		z := c.at(c.place(p.Offered))
		w, r := weights[i]*z*z, p.Margin/z-1
		sum, x, y = sum+w, x+w*order[i], y+w*r
		xx, xy, yy = xx+w*order[i]*order[i], xy+w*order[i]*r, yy+w*r*r
	}
	xx, xy, yy = xx-x*x/sum, xy-x*y/sum, yy-y*y/sum
	if !(xx > 0) {
		return 0
	}
	slope := xy / xx
	left := max(yy-slope*xy, 1e-9) / (n - 3)
	if math.Abs(slope) < resample.StudentT(0.99, n-3)*math.Sqrt(left/xx) {
		return 0
	}
	return slope * (order[len(order)-1] - order[0])
}

// curve is z = b0 + b1·d + b2·d² with d = rate/guess − 1.
type curve struct {
	guess  float64
	b      [3]float64
	cov    [3][3]float64 // of b, for a spread of 1
	s2     float64       // of margins, relative
	t      float64
	lo, hi float64 // between which there are probes
}

func (c *curve) place(rate float64) float64 { return rate/c.guess - 1 }

func (c *curve) at(d float64) float64 { return c.b[0] + c.b[1]*d + c.b[2]*d*d }

// sd is the standard error of the curve at d.
func (c *curve) sd(d float64) float64 {
	x, v := [3]float64{1, d, d * d}, 0.0
	for i := range x {
		for j := range x {
			v += x[i] * c.cov[i][j] * x[j]
		}
	}
	return math.Sqrt(max(v, 0) * c.s2)
}

// bend is the standard deviation of the bend that is expected.
func (c *curve) bend() float64 { return leastBend + bendBySlope*math.Abs(c.b[1]) }

// solve is weighted least squares with the bend as one more observation: none, by so much.
func (c *curve) solve(near []Probe, weights []float64) bool {
	if c.s2 == 0 {
		c.s2 = usualSpread * usualSpread
	}
	var m [3][3]float64
	var y [3]float64
	c.lo, c.hi = math.Inf(1), math.Inf(-1)
	for i, p := range near {
		d := c.place(p.Offered)
		c.lo, c.hi = min(c.lo, d), max(c.hi, d)
		x := [3]float64{1, d, d * d}
		for j := range x {
			y[j] += weights[i] * x[j] * p.Margin
			for k := range x {
				m[j][k] += weights[i] * x[j] * x[k]
			}
		}
	}
	m[2][2] += c.s2 / (c.bend() * c.bend())
	inverse, ok := invert(m)
	if !ok || c.hi-c.lo < 0.005 {
		return false
	}
	c.cov = inverse
	for j := range c.b {
		c.b[j] = 0
		for k := range y {
			c.b[j] += inverse[j][k] * y[k]
		}
	}
	rss := 0.0
	for i, p := range near {
		r := p.Margin - c.at(c.place(p.Offered))
		rss += weights[i] * r * r
	}
	free := float64(len(near) - 2)
	c.s2 = max((rss+usualProbes*usualSpread*usualSpread)/(free+usualProbes), leastSpread*leastSpread)
	c.t = resample.StudentT(nominal, free)
	return true
}

// edge finds where the curve says 1, and the rates around at which it may.
func (c *curve) edge(points int) edge {
	const step = 0.0005
	const from, to = -0.5, 0.5
	root, found := 0.0, false
	// the crossing from above that is nearest to the guess
	for d := max(c.lo-0.1, from); d < min(c.hi+0.1, to); d += step {
		if c.at(d) >= 1 && c.at(d+step) < 1 && (!found || math.Abs(d) < math.Abs(root)) {
			root, found = d+step*(c.at(d)-1)/(c.at(d)-c.at(d+step)), true
		}
	}
	if !found {
		return edge{}
	}
	may := func(d float64) bool { return math.Abs(c.at(d)-1) <= c.t*c.sd(d) }
	low, high := root, root
	for low > from && may(low-step) {
		low -= step
	}
	for high < to && may(high+step) {
		high += step
	}
	return edge{rate: c.guess * (1 + root), low: c.guess * (1 + low - step), high: c.guess * (1 + high + step),
		points: points, inside: c.lo <= root && root <= c.hi, spread: math.Sqrt(c.s2), ok: low > from && high < to}
}

// invert inverts a symmetric matrix by its cofactors.
func invert(m [3][3]float64) (out [3][3]float64, ok bool) {
	minor := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	det := m[0][0]*minor(0, 0) + m[0][1]*minor(0, 1) + m[0][2]*minor(0, 2)
	if !(math.Abs(det) > 1e-300) {
		return out, false
	}
	for i := range 3 {
		for j := range 3 {
			out[j][i] = minor(i, j) / det
		}
	}
	return out, true
}

// narrow is the ratio of the two sides of a step from which on it is looked at as one that chance moves.
const narrow = 1.15

// moved are the spreads of a step from probe to probe that are thought of, as shares of its rate, all as likely.
var moved = []float64{0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16}

// level reports whether the limited value is about at its limit wherever it was looked at near a place: which side it
// comes out on says nothing of the rate then.
func level(probes []Probe, b span) bool {
	close, all := 0, 0
	for _, p := range probes {
		if p.Behind || p.Offered < b.low.Offered*(1-widest) || p.Offered > b.high.Offered*(1+widest) {
			continue
		}
		if all++; p.Margin > clearlyBroken && p.Margin < clearlyHeld {
			close++
		}
	}
	return 3*close >= 2*all
}

// chance is the edge where the limit breaks without a slope while the rate is met, as where errors happen or a
// percentile goes from fast operations to slow ones. Each probe has an edge of its own, lognormal about the mark; that
// it held or broke says on which side of its rate that was. The mark is the median of what is then believed of it, all
// rates on a logarithmic scale as likely before: a threshold as psychophysics has it, found by Bayes' rule (Watson and
// Pelli, Perception & Psychophysics 33, 1983, 113).
func chance(probes []Probe, b span) edge {
	if b.high.Behind || b.high.Margin > clearlyBroken || b.high.Offered > narrow*b.low.Offered || level(probes, b) {
		return edge{}
	}
	e := edge{points: len(probes), chance: true, inside: true}
	e.low, e.rate, e.high = believed(probes, b.low.Offered/1.5, b.high.Offered*1.5, Confidence, 0.002, len(moved),
		func(p Probe, i int) (at, by float64) { return math.Log(p.Offered), moved[i] })
	e.ok = e.low > 0 && e.rate > 0 && e.high > 0
	return e
}

// believed is where the mark is, and between which rates it is with that confidence, by which probes held and which
// broke. of says where each lies on a logarithmic scale and by how much its edge moves, by each of n thoughts; slip is
// the chance that it came out so by anything else.
func believed(probes []Probe, from, to, confidence, slip float64, n int,
	of func(p Probe, i int) (at, by float64)) (low, mid, high float64) {
	const steps = 300
	from, to = math.Log(from), math.Log(to)
	edge := func(i int) float64 { return from + (to-from)*float64(i)/steps }
	likely, sum := make([]float64, steps+1), 0.0
	for i := range likely {
		for j := range n {
			v := 1.0
			for _, p := range probes {
				at, by := of(p, j)
				holds := math.Erfc((at-edge(i))/by/math.Sqrt2) / 2
				if !p.Held {
					holds = 1 - holds
				}
				v *= slip + (1-2*slip)*holds
			}
			likely[i], sum = likely[i]+v, sum+v
		}
	}
	for i, so := 0, 0.0; i <= steps; i++ {
		for _, q := range []struct {
			share float64
			rate  *float64
		}{{(1 - confidence) / 2, &low}, {0.5, &mid}, {(1 + confidence) / 2, &high}} {
			if so < q.share*sum && so+likely[i] >= q.share*sum {
				*q.rate = math.Exp(edge(i))
			}
		}
		so += likely[i]
	}
	return low, mid, high
}
