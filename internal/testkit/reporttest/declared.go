package reporttest

import (
	"math"

	"plimsoll/result"
)

// Measured is a measure with its law: a Level as it is, a Count per second, a Single as the tool would report it; of
// all VMs together, but a Single of each. NaN is a gap.
type Measured struct {
	result.Measure
	Value func(t int) float64
	Noise float64 // relative standard deviation per second
}

// Declarations of a generator that loads a database.
var (
	NewOrder = result.Operation{Name: "new_order", Noun: "new orders"}
	Payment  = result.Operation{Name: "payment", Noun: "payments"}
	NOPM     = result.Measure{Name: "NOPM", Unit: "NOPM", Better: result.Higher, Kind: result.Level}
	Retries  = result.Measure{Name: "retries", Unit: "retries", Better: result.Lower, Kind: result.Count}
	P95      = result.Measure{Name: "p95_ms", Unit: "ms", Better: result.Lower, Kind: result.Single}
)

// Database makes a load one of a database, of as many transactions as it has operations: 45 new orders for 43
// payments, NOPM as the new orders say, 30 retries per second and a 95th percentile of 12 ms. It moves no blocks and
// says nothing of disks, extents and prefills.
func Database(l Load) Load {
	const newOrders = 45.0 / 88
	rate := l.Rate
	l.Operations, l.Shares = []result.Operation{NewOrder, Payment}, []float64{newOrders, 1 - newOrders}
	l.Measures = []Measured{
		{NOPM, func(t int) float64 { return 60 * newOrders * rate(t) }, max(l.Noise, 0.005)},
		{Retries, func(int) float64 { return 30 }, 0.1},
		{P95, func(int) float64 { return 12 }, 0.05},
	}
	return l
}

// Tool makes a load one of a tool that counts no operations and gives figures only.
func Tool(l Load, measures ...Measured) Load {
	l.Rate, l.Operations, l.Shares, l.Measures = func(int) float64 { return 0 }, []result.Operation{}, nil, measures
	return l
}

// declares reports whether a load is not one of block I/O.
func (l Load) declares() bool { return l.Operations != nil }

// draw makes the noise of the measures once, so that series, windows and totals agree.
func (s *Synthetic) draw(l Load) []Measured {
	out := make([]Measured, len(l.Measures))
	for i, m := range l.Measures {
		values := make([]float64, l.To-l.From)
		for k := range values {
			values[k] = m.Value(l.From+k) * max(0, 1+m.Noise*s.rng.NormFloat64())
		}
		out[i] = Measured{Measure: m.Measure, Value: func(t int) float64 { return values[t-l.From] }}
	}
	return out
}

// declarations are those of a load's measures.
func (l Load) declarations() (out []result.Measure) {
	for _, m := range l.Measures {
		out = append(out, m.Measure)
	}
	return out
}

// values are its measures between two seconds, of one of so many VMs or, with 0, of all.
func (l Load) values(from, to, vms int) []result.Value {
	var out []result.Value
	for _, m := range l.Measures {
		sum, n, last := 0.0, 0.0, math.NaN()
		for t := from; t < to; t++ {
			if v := m.Value(t); !math.IsNaN(v) {
				sum, n, last = sum+v, n+1, v
			}
		}
		v := sum / float64(max(vms, 1))
		switch m.Kind {
		case result.Level:
			v /= n
		case result.Single:
			if v = last; vms == 0 && l.VMs > 1 {
				continue
			}
		}
		if !math.IsNaN(v) {
			out = append(out, result.Value{Measure: m.Name, Value: v})
		}
	}
	return out
}
