package mark

import (
	"math"
	"testing"
)

// The interval of a step whose operations are due at random is the one of Bayes' rule: the figures are those of another
// program that sums the same model over a grid 60 times as fine.
func TestArrivals(t *testing.T) {
	t.Parallel()
	long := []Probe{
		{Offered: 400, Arrivals: 6400, Held: true, Margin: 2},
		{Offered: 800, Arrivals: 3200, Behind: true},
		{Offered: 600, Arrivals: 6000, Unseen: 0.004, Held: true, Margin: 2},
		{Offered: 624, Arrivals: 6240, Unseen: 0.008, Behind: true},
		{Offered: 600, Arrivals: 6000, Unseen: 0.004, Held: true, Margin: 2},
		{Offered: 624, Arrivals: 6240, Unseen: 0.008, Behind: true},
		{Offered: 620, Arrivals: 6200, Behind: true, Generator: "its thread was busy"}, // no answer of the system
	}
	short := make([]Probe, len(long))
	for i, p := range long {
		p.Arrivals /= 10
		short[i] = p
	}
	both := append(long[:6:6], Probe{Offered: 624, Arrivals: 6240, Unseen: 0.008, Held: true, Margin: 2})
	for name, test := range map[string]struct {
		probes    []Probe
		low, high float64
	}{
		"both sides twice":           {long, 579.73, 637.58},
		"a tenth of the operations":  {short, 525.57, 696.23},
		"the higher came out in two": {both, 592.10, 644.78},
	} {
		e := estimate(test.probes)
		low, high, share := told(test.probes, e)
		if math.Abs(low/test.low-1) > 0.003 || math.Abs(high/test.high-1) > 0.003 || share < leastTold || !e.due {
			t.Errorf("%s: %.2f to %.2f (%v), want %.2f to %.2f", name, low, high, share, test.low, test.high)
		}
	}
}

// A step that short probes do not tell as narrowly as wanted is looked at again while probes are left: about the mark
// where operations are due at random, else between its sides.
func TestStepsUseTheirProbes(t *testing.T) {
	t.Parallel()
	step := func(arrivals, unseen float64) (probes []Probe) {
		for _, rate := range []float64{480, 960, 600, 624, 600, 624} {
			p := Probe{Offered: rate, Achieved: rate, Arrivals: arrivals, Unseen: unseen, Margin: 2, Held: rate < 620}
			if !p.Held {
				p.Margin, p.Behind = 0, true
			}
			probes = append(probes, p)
		}
		return append(probes, probes[0])
	}
	for _, c := range []struct {
		arrivals, unseen, low, high float64 // of the next rate; 0: none
	}{
		{0, 0, 0, 0},
		{0, 0.02, 601, 623},
		{6400, 0, 0, 0},
		{640, 0, 540, 690},
	} {
		probes := step(c.arrivals, c.unseen)
		if next := Next(Settings{Start: 480}, probes); next.Rate < c.low || next.Rate > c.high {
			t.Errorf("%v: %+v", c, next)
		}
		for len(probes) < DefaultProbes-fewestInside+1 {
			probes = append(probes, probes[2+len(probes)%4])
		}
		if next := Next(Settings{Start: 480}, probes); c.arrivals == 0 && next.Rate > 0 {
			t.Errorf("%v: %+v with too few probes left to narrow it", c, next)
		}
	}
}
