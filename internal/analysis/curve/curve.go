// Package curve reads a load sweep: throughput and response time at growing concurrency.
//
// Of the points of a sweep it gives the single-client point, the straight line of perfect scaling through it, the knee,
// the place where the two asymptotes cross, the highest throughput with the concurrency from which more load gains
// nothing, and it holds every point against Little's law, N = X·R. It refuses averages of percentiles by not knowing
// percentiles: response times here are means, the only ones for which Little's law holds.
//
// The knee is the point with the greatest power X/R, throughput over response time (Giessler and others 1978; Kleinrock
// 1979, "Power and deterministic rules of thumb for probabilistic problems in computer communications"). It is always a
// measured point; its neighbours bound it. Kneedle (Satopää and others 2011) was dropped: its answer depends on the
// largest load measured. The crossing of the asymptotes N* = R₁·X_max is from Lazowska and others 1984, chapter 5.
//
// Pure: no I/O, no clock, no randomness.
package curve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Point is one step of a sweep.
type Point struct {
	Concurrency      float64 // N: requests in the system, waiting ones included; above 0
	Throughput       float64 // X: requests per second; above 0
	ResponseSeconds  float64 // R: mean response time; 0 when not measured, then N/X is used
	ThroughputStdErr float64 // standard error of X over repeats; 0 when not known
}

// Reading holds what the law and the sweep say of one step.
type Reading struct {
	Point
	Derived bool    // the response time was not measured and is N/X
	Power   float64 // X/R
	// LittleError is X·R/N − 1: near 0 when the loop was closed and the figures agree; below 0 when clients did not
	// keep N in flight; above 0 when N leaves out requests that waited.
	LittleError float64
	Efficiency  float64 // X ÷ (N·X₁/N₁): 1 on the line of perfect scaling; 0 without a single-client point
}

// Curve is a sweep by rising concurrency.
type Curve struct {
	Points []Reading
	Single *Reading // the step at one client; nil when none was measured
	// Knee is the step of greatest power; KneeLow and KneeHigh are the concurrencies measured next to it, between which
	// the true maximum lies.
	Knee              Reading
	KneeLow, KneeHigh float64
	Saturation        Reading // the highest throughput
	// SaturatedFrom is the least concurrency whose throughput is within 5 % of the highest: from there on more load
	// only waits. 0 when the highest was reached at the last step, so that saturation was not seen.
	SaturatedFrom float64
	Crossing      float64 // N* = R₁·X_max; 0 without a single-client point
	Warnings      []string
}

// gain is the share of the highest throughput that counts as having reached it.
const gain = 0.05

// littleTolerance is the deviation from Little's law that is reported.
const littleTolerance = 0.10

// Read reads a sweep of at least three steps of different concurrency. Steps may come in any order; repeats of one
// concurrency must be joined first.
func Read(points []Point) (*Curve, error) {
	if err := validate(points); err != nil {
		return nil, err
	}
	sorted := slices.SortedFunc(slices.Values(points),
		func(a, b Point) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	c := &Curve{}
	for _, p := range sorted {
		r := Reading{Point: p}
		if r.ResponseSeconds == 0 {
			r.ResponseSeconds, r.Derived = p.Concurrency/p.Throughput, true
		}
		r.Power = p.Throughput / r.ResponseSeconds
		r.LittleError = p.Throughput*r.ResponseSeconds/p.Concurrency - 1
		c.Points = append(c.Points, r)
	}
	if c.Points[0].Concurrency == 1 {
		c.single()
	} else {
		c.warn("nothing was measured at one client: there is no line of perfect scaling and no crossing")
	}
	c.knee()
	c.saturation()
	c.little()
	return c, nil
}

func (c *Curve) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

func validate(points []Point) error {
	var bad []error
	seen := map[float64]bool{}
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	for i, p := range points {
		if !positive(p.Concurrency) {
			bad = append(bad,
				fmt.Errorf("curve: point %d: concurrency %v: must be a finite number above 0", i+1, p.Concurrency))
		}
		if !positive(p.Throughput) {
			bad = append(bad,
				fmt.Errorf("curve: point %d: throughput %v: must be a finite number above 0", i+1, p.Throughput))
		}
		if p.ResponseSeconds != 0 && !positive(p.ResponseSeconds) {
			bad = append(
				bad,
				fmt.Errorf(
					"curve: point %d: response time %v s: must be a finite number above 0, or 0 when not measured", i+1,
					p.ResponseSeconds),
			)
		}
		if !(p.ThroughputStdErr >= 0) || math.IsInf(p.ThroughputStdErr, 0) {
			bad = append(
				bad,
				fmt.Errorf("curve: point %d: standard error %v: must be a finite number, not negative", i+1,
					p.ThroughputStdErr),
			)
		}
		if seen[p.Concurrency] {
			bad = append(bad,
				fmt.Errorf("curve: point %d: concurrency %v is there twice: join repeats first", i+1, p.Concurrency))
		}
		seen[p.Concurrency] = true
	}
	if len(points) < 3 {
		bad = append(bad, fmt.Errorf("curve: %d points: at least 3 are needed for a curve", len(points)))
	}
	return errors.Join(bad...)
}

func (c *Curve) single() {
	one := &c.Points[0]
	for i := range c.Points {
		c.Points[i].Efficiency = c.Points[i].Throughput / (c.Points[i].Concurrency * one.Throughput)
	}
	single := *one
	c.Single = &single
}

// knee finds the step of greatest power. Repeats make it doubtful when another step comes within their error.
func (c *Curve) knee() {
	at := 0
	for i, p := range c.Points {
		if p.Power > c.Points[at].Power {
			at = i
		}
	}
	c.Knee = c.Points[at]
	c.KneeLow, c.KneeHigh = c.Points[max(0, at-1)].Concurrency, c.Points[min(len(c.Points)-1, at+1)].Concurrency
	switch at {
	case 0:
		c.warn("power falls from the first step on: the knee lies at or below %g", c.Knee.Concurrency)
	case len(c.Points) - 1:
		c.warn("power still rises at the last step: the knee lies at or beyond %g, measure more load",
			c.Knee.Concurrency)
	}
	var rivals []string
	for i, p := range c.Points {
		// With R = N/X power is X²/N: its relative error is twice that of X. Two errors either way.
		doubt := 2 * 2 * math.Hypot(p.ThroughputStdErr/p.Throughput, c.Knee.ThroughputStdErr/c.Knee.Throughput)
		if i != at && doubt > 0 && p.Power > c.Knee.Power*(1-doubt) {
			rivals = append(rivals, fmt.Sprintf("%g", p.Concurrency))
			c.KneeLow, c.KneeHigh = min(c.KneeLow, p.Concurrency), max(c.KneeHigh, p.Concurrency)
		}
	}
	if len(rivals) > 0 {
		c.warn("the knee is in doubt: within the error of the repeats it may lie at %s", join(rivals))
	}
}

func join(s []string) string {
	out := s[0]
	for i, v := range s[1:] {
		if i == len(s)-2 {
			out += " or " + v
		} else {
			out += ", " + v
		}
	}
	return out
}

func (c *Curve) saturation() {
	c.Saturation = slices.MaxFunc(c.Points, func(a, b Reading) int { return cmp.Compare(a.Throughput, b.Throughput) })
	if c.Single != nil {
		c.Crossing = c.Single.ResponseSeconds * c.Saturation.Throughput
	}
	for i, p := range c.Points {
		if p.Throughput < (1-gain)*c.Saturation.Throughput {
			continue
		}
		if i < len(c.Points)-1 {
			c.SaturatedFrom = p.Concurrency
			return
		}
	}
	c.warn("throughput still rises at the last step by more than 5 %%: saturation was not seen")
}

func (c *Curve) little() {
	for _, p := range c.Points {
		if math.Abs(p.LittleError) > littleTolerance {
			c.warn(
				"at concurrency %g throughput times response time is %.4g, %+.0f %% off Little's law: the load was not what it was said to be, or a figure is wrong",
				p.Concurrency, p.Throughput*p.ResponseSeconds, 100*p.LittleError)
		}
	}
}
