package fake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Kind is the shape of a distribution of service times.
type Kind string

// The laws there are.
const (
	Exponential Kind = "exponential"
	Lognormal   Kind = "lognormal"
	Constant    Kind = "constant"
)

// Law is a distribution of service times with known quantiles.
type Law struct {
	Kind  Kind          `json:"kind"`
	Mean  time.Duration `json:"mean_ns"`
	Sigma float64       `json:"sigma,omitempty"` // of the logarithm; lognormal only
}

func (l Law) validate() error {
	switch {
	case l.Kind != Exponential && l.Kind != Lognormal && l.Kind != Constant:
		return fmt.Errorf("law: kind %q is none of exponential, lognormal, constant", l.Kind)
	case l.Mean <= 0:
		return fmt.Errorf("law: mean %v must be above 0", l.Mean)
	case !(l.Sigma >= 0 && l.Sigma <= 5):
		return fmt.Errorf("law: sigma %v must be within 0 and 5", l.Sigma)
	}
	return nil
}

// Quantile returns the time that a fraction q of the operations do not exceed, q within [0, 1).
func (l Law) Quantile(q float64) time.Duration {
	switch l.Kind {
	case Exponential:
		return time.Duration(-float64(l.Mean) * math.Log1p(-q))
	case Lognormal:
		return time.Duration(math.Exp(l.mu() + l.Sigma*math.Sqrt2*math.Erfinv(2*q-1)))
	}
	return l.Mean
}

// mu is the mean of the logarithm that makes the mean of the values Mean: ln(Mean) - Sigma²/2.
func (l Law) mu() float64 { return math.Log(float64(l.Mean)) - l.Sigma*l.Sigma/2 }

// draw returns a service time of at least 1 ns and at most an hour.
func (l Law) draw(r *rand.Rand) time.Duration {
	var ns float64
	switch l.Kind {
	case Exponential:
		ns = r.ExpFloat64() * float64(l.Mean)
	case Lognormal:
		ns = math.Exp(l.mu() + l.Sigma*r.NormFloat64())
	default:
		ns = float64(l.Mean)
	}
	return time.Duration(min(max(ns, 1), float64(time.Hour)))
}

// Stalls are regular times in which nothing completes: operations caught in one take that much longer.
type Stalls struct {
	Every  time.Duration `json:"every_ns,omitempty"` // from the start of one to the start of the next; 0: none
	Length time.Duration `json:"length_ns,omitempty"`
}

func (s Stalls) validate() error {
	if s.Every < 0 || s.Length < 0 || s.Every > 0 && s.Length >= s.Every {
		return fmt.Errorf("stalls: length %v must be shorter than every %v", s.Length, s.Every)
	}
	return nil
}

// finish returns when work that begins at start and needs so much time outside stalls is done. The k-th stall, from 1,
// begins k·Every after the job.
func (s Stalls) finish(start, need time.Duration) time.Duration {
	if s.Every <= 0 || s.Length <= 0 {
		return start + need
	}
	at := start
	if k := at / s.Every; k > 0 && at < k*s.Every+s.Length {
		at = k*s.Every + s.Length
	}
	for {
		next := (at/s.Every + 1) * s.Every
		if at+need <= next {
			return at + need
		}
		need -= next - at
		at = next + s.Length
	}
}
