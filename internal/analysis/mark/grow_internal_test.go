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
		{Offered: 400, Arrivals: 6400, Held: true},
		{Offered: 800, Arrivals: 3200},
		{Offered: 600, Arrivals: 6000, Unseen: 0.004, Held: true},
		{Offered: 624, Arrivals: 6240, Unseen: 0.008},
		{Offered: 600, Arrivals: 6000, Unseen: 0.004, Held: true},
		{Offered: 624, Arrivals: 6240, Unseen: 0.008},
		{Offered: 620, Arrivals: 6200, Generator: "its thread was busy"}, // no answer of the system
	}
	short := make([]Probe, len(long))
	for i, p := range long {
		p.Arrivals /= 10
		short[i] = p
	}
	both := append(long[:6:6], Probe{Offered: 624, Arrivals: 6240, Unseen: 0.008, Held: true})
	for name, test := range map[string]struct {
		probes    []Probe
		low, high float64
	}{
		"both sides twice":           {long, 583.91, 633.10},
		"a tenth of the operations":  {short, 537.07, 682.20},
		"the higher came out in two": {both, 595.59, 640.44},
	} {
		low, high, share := told(test.probes, edge{rate: 600, low: 600, high: 624, cliff: true})
		if math.Abs(low/test.low-1) > 0.003 || math.Abs(high/test.high-1) > 0.003 || share < leastTold {
			t.Errorf("%s: %.2f to %.2f (%v), want %.2f to %.2f", name, low, high, share, test.low, test.high)
		}
	}
}
