package reporttest

import (
	"plimsoll/result"
)

// Sectioned adds a workload with the sections it consists of: it does what they do together, and says of each what it
// did.
func (s *Synthetic) Sectioned(l Load, sections ...Load) {
	type part struct {
		rates []float64
		load  Load
	}
	var parts []part
	var sum, writes []float64
	for t := l.From; t < l.To; t++ {
		sum, writes = append(sum, 0), append(writes, 0)
	}
	for _, p := range sections {
		p = p.filled()
		one := part{load: p}
		for t := l.From; t < l.To; t++ {
			r := max(0, p.Rate(t)*(1+p.Noise*s.rng.NormFloat64()))
			one.rates = append(one.rates, r)
			sum[t-l.From] += r
			writes[t-l.From] += r * p.Writes
		}
		parts = append(parts, one)
	}
	total, written := 0.0, 0.0
	for i := range sum {
		total, written = total+sum[i], written+writes[i]
	}
	l.Rate, l.Writes, l.Noise = func(t int) float64 { return sum[t-l.From] }, written/max(total, 1), 0
	s.Load(l)
	l = l.filled()
	merged := &s.Data.Workloads[len(s.Data.Workloads)-1]
	for _, p := range parts {
		rate := func(t int) float64 { return p.rates[t-l.From] }
		service := func(int) float64 { return 1e-3 }
		if p.load.Seconds != nil {
			service = p.load.Seconds
		}
		merged.Sections = append(merged.Sections,
			result.Section{Name: p.load.Name, Ops: p.load.ops(l.From, l.To, rate, service)})
		for _, o := range p.load.kinds() {
			head := result.Series{Name: l.Name + ": " + p.load.Name, Group: l.Group, Workload: l.Name,
				Section: p.load.Name}
			for _, m := range []struct {
				measure, unit string
				value         func(int) float64
			}{
				{result.Rate, result.OperationsUnit, func(t int) float64 { return o.share * rate(t) }},
				{result.Bandwidth, "bytes/s", func(t int) float64 { return o.share * rate(t) * float64(p.load.Block) }},
				{result.LatencyMean, "us", func(t int) float64 { return 1e6 * service(t) }},
			} {
				head.Op, head.Measure, head.Unit = o.op, m.measure, m.unit
				s.add(head, l.From, l.To, m.value)
			}
		}
	}
}
