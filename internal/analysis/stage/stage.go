// Package stage cuts a run into the stages of its load: stretches in which the same workloads run on the same VMs.
//
// A scale-out run adds workers one after the other; each stage is then one point of a throughput curve, fit for package
// usl and package curve. Stages are found from the times at which workloads start and end, never from the numbers, and
// the beginning of each is left out as it settles. Concurrency is the number of operations that the workloads keep
// outstanding as declared (their depths), not the number observed.
//
// It refuses stages too short to speak of: fewer than five points after settling. Pure: no I/O, no clock.
package stage

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/analysis/serial"
	"plimsoll/result"
)

// Stage is one stretch of constant load.
type Stage struct {
	Start, End  time.Time // what was averaged, without the settling
	Workloads   int       // running, one per VM
	Concurrency float64   // operations outstanding, as declared
	Throughput  serial.Mean
	Points      int
}

// Fewest is of how many points a stage is at least.
const Fewest = 5

const (
	settle = 0.2             // share of a stage left out at its beginning
	joined = 2 * time.Second // starts closer than this are one
)

// Of returns the stages of a run in their order. Throughput is of the series that Series.Metric calls so, as in
// read_iops or NOPM; "" stands for all operations. Workloads that prefill, and those outside the run phase, do not
// count.
func Of(d *result.Data, metric string) []Stage { return of(d, metric, Fewest) }

// Short are all stages, also those that have fewer points than Of asks for, or none. All operations of one without
// points are as its workloads counted them, NaN where one did not.
func Short(d *result.Data, metric string) []Stage { return of(d, metric, 0) }

func of(d *result.Data, metric string, fewest int) []Stage {
	if d == nil {
		return nil
	}
	var loads []result.Workload
	var cuts []time.Time
	for _, w := range d.Workloads {
		if w.Merged() || w.Prefill || w.Phase != "run" {
			continue
		}
		for _, t := range w.Times() { // in a pause between two starts it is no load
			if w.Start, w.End = t.Start, t.End; w.End.After(w.Start) {
				loads = append(loads, w)
				cuts = append(cuts, w.Start, w.End)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	var out []Stage
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		if to.Sub(from) < joined {
			continue
		}
		s := Stage{Start: from.Add(time.Duration(settle * float64(to.Sub(from)))), End: to}
		counted := 0.0
		for _, w := range loads {
			if w.Start.After(from.Add(joined)) || w.End.Before(to.Add(-joined)) {
				continue
			}
			s.Workloads++
			counted += rateIn(w, from, to)
			for _, stream := range w.Streams {
				s.Concurrency += float64(max(stream.Depth, 1))
			}
		}
		values := throughput(d.Series, metric, s.Start, s.End)
		s.Points = len(values)
		if s.Workloads == 0 || s.Concurrency == 0 || s.Points < fewest {
			continue
		}
		if mean, err := serial.MeanOf(values, 0.95); err == nil {
			s.Throughput = mean
		} else if s.Points == 0 && fewest == 0 && metric == "" {
			s.Throughput.Value = counted
		} else if fewest > 0 || s.Points > 0 {
			continue
		}
		out = append(out, s)
	}
	return out
}

// rateIn is the rate of a workload as it counted in the window that lies at a stage, but for the time between two
// reports; NaN where none does.
func rateIn(w result.Workload, from, to time.Time) float64 {
	beside := time.Duration(settle * float64(to.Sub(from))) // by which it may lie beside the stage on either side
	for _, win := range append([]result.Window{{Start: w.Start, End: w.End, Ops: w.Ops}}, w.Windows...) {
		seconds := win.End.Sub(win.Start).Seconds() - win.Pause
		if win.Start.Sub(from).Abs() > beside || win.End.Sub(to).Abs() > beside || seconds <= 0 {
			continue
		}
		count := 0.0
		for _, o := range win.Ops {
			count += float64(o.Count)
		}
		return count / seconds
	}
	return math.NaN()
}

// throughput is the sum over the VMs at each point whose interval lies between two moments. A VM without a value
// at a point does nothing then. The last point is left out: counters are interpolated between scrapes, so it holds
// something of what comes after it.
func throughput(series []result.Series, metric string, from, to time.Time) []float64 {
	at := map[int64]float64{} // by the end of the interval, in milliseconds
	for _, s := range series {
		wanted := s.Op != "" && s.Measure == result.Rate
		if metric != "" {
			wanted = s.Metric() == metric
		}
		if s.VM == "" || s.Step <= 0 || !wanted {
			continue
		}
		step := time.Duration(s.Step * float64(time.Second))
		for i, v := range s.Values {
			end := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
			if v != nil && end.After(from) && !end.Add(step).After(to) {
				at[end.UnixMilli()] += *v
			}
		}
	}
	keys := make([]int64, 0, len(at))
	for k := range at {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	values := make([]float64, len(keys))
	for i, k := range keys {
		values[i] = at[k]
	}
	return values
}
