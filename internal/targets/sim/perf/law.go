package perf

import (
	"fmt"
	"math"
)

// Law is the shape of a distribution of response times; its mean comes from the queueing model.
type Law struct {
	Kind  Shape   `yaml:"kind"`
	Sigma float64 `yaml:"sigma"` // of the logarithm; lognormal only
}

// Shape is a family of laws.
type Shape string

// The families there are. Exponential is what an M/M/1 queue really has.
const (
	Exponential Shape = "exponential"
	Lognormal   Shape = "lognormal"
	Constant    Shape = "constant"
)

func (l Law) check() error {
	if l.Kind != Exponential && l.Kind != Lognormal && l.Kind != Constant {
		return fmt.Errorf("performance model: law.kind %q: must be one of exponential, lognormal, constant", l.Kind)
	}
	if !(l.Sigma >= 0 && l.Sigma <= 3) || l.Kind == Lognormal && l.Sigma == 0 {
		return fmt.Errorf("performance model: law.sigma %v: must be above 0 for lognormal, and at most 3", l.Sigma)
	}
	return nil
}

// Below is the share of operations that take at most x times the mean.
func (l Law) Below(x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case l.Kind == Exponential:
		return -math.Expm1(-x)
	case l.Kind == Lognormal:
		return 0.5 * math.Erfc(-(math.Log(x)/l.Sigma+l.Sigma/2)/math.Sqrt2)
	case x < 1:
		return 0
	}
	return 1
}

// Quantile is the multiple of the mean that a share q of the operations do not exceed, q within (0, 1).
func (l Law) Quantile(q float64) float64 {
	switch l.Kind {
	case Exponential:
		return -math.Log1p(-q)
	case Lognormal:
		return math.Exp(l.Sigma*math.Sqrt2*math.Erfinv(2*q-1) - l.Sigma*l.Sigma/2)
	}
	return 1
}

// CV2 is the squared coefficient of variation: 1 for exponential, e^(sigma²)-1 for lognormal, 0 for constant.
func (l Law) CV2() float64 {
	switch l.Kind {
	case Exponential:
		return 1
	case Lognormal:
		return math.Expm1(l.Sigma * l.Sigma)
	}
	return 0
}

// Part is a share of operations with a mean of their own: hits of a cache, reads of the slow tier.
type Part struct {
	Share   float64
	Seconds float64
}

// Mix is a law with several means.
type Mix struct {
	Law   Law
	Parts []Part // shares add up to 1
}

// Mean is the mean response time in seconds.
func (m Mix) Mean() float64 {
	var sum float64
	for _, p := range m.Parts {
		sum += p.Share * p.Seconds
	}
	return sum
}

// Below is the share of operations that take at most the time given.
func (m Mix) Below(seconds float64) float64 {
	var sum float64
	for _, p := range m.Parts {
		sum += p.Share * m.Law.Below(seconds/p.Seconds)
	}
	return sum
}

// Quantile is the time in seconds that a share q of the operations do not exceed, q within (0, 1), to within one part
// in 10⁹.
func (m Mix) Quantile(q float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, p := range m.Parts {
		at := p.Seconds * m.Law.Quantile(q)
		low, high = min(low, at), max(high, at)
	}
	for high-low > 1e-9*high {
		if middle := low + (high-low)/2; m.Below(middle) < q {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// cv2 is the squared coefficient of variation of the mix.
func (m Mix) cv2() float64 {
	mean, square := m.Mean(), 0.0
	if mean == 0 {
		return 0
	}
	for _, p := range m.Parts {
		square += p.Share * p.Seconds * p.Seconds * (1 + m.Law.CV2())
	}
	return square/(mean*mean) - 1
}
