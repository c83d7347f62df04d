// Package comparetest makes runs with a known law for tests of comparisons: the effect, the dependence in time and the
// spread between runs are what the test says. It stands beside package compare as its oracle and refuses nothing.
package comparetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// Law is how the runs of a side behave. Means and percentiles of latencies are in proportion to Mean, rates to Rate.
type Law struct {
	Rate       float64 // operations per second, on average where nothing below disturbs
	Mean       float64 // service time in seconds, on average where nothing below disturbs
	Spread     float64 // relative standard deviation between runs
	Noise      float64 // relative standard deviation of a second within a run
	Dependence float64 // correlation of neighbouring seconds, 0 to below 1
	Seconds    int
	Step       int     // seconds between reports; 0 means 1
	Series     int     // further series recorded over time
	Misses     float64 // share of operations that take 20 times as long; it varies with the noise of the latency
	// chance of a second to begin a burst of load, a mean of 4 s of 1.8 times the rate and 1.5 times the latency
	Bursts float64
	// seconds between checkpoints, give or take a tenth; they last 4 s, at 0.6 times the rate and 3 times the latency
	Checkpoint float64
	AtRandom   bool // checkpoints come at any time, with that many seconds between them in the mean
	// at half time rates move by this share of themselves, on the logarithm, and latencies the other way
	Shift float64
	Drift float64 // rates move evenly by this share of themselves from the first second to the last
	Heavy bool    // the noise has the tails of Student's t with three degrees of freedom
}

// Start of every first run.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Manifest of a run: number n from 1.
func Manifest(n int) result.Manifest {
	return result.Manifest{
		Version: result.FormatVersion, RunID: fmt.Sprintf("20260301-12%02d00-made-%04d", n%60, n),
		Created: Start.Add(time.Duration(n) * time.Minute),
		Status:  result.StatusSucceeded, Measured: result.Verdict{State: "yes"}, Target: "made", TimeScale: 1,
		SizeScale: 1, Nodes: []result.Node{{Name: "node-0", Cores: 8}},
		Scenario: result.ScenarioInfo{ID: 1, Name: "made", DisplayName: "Made runs",
			Vars: []result.Var{{Name: "iops", Value: "400"}}},
		Environment: []result.Fact{{Group: "host", Name: "kernel", Value: "6.1.0", Across: result.MustAgree},
			{Group: "host", Name: "firmware", Value: "F7", Across: result.MustAgree},
			{Group: "cpu", Name: "SMT active", Value: "1", Kind: result.ThreadsPerCore, Number: 2},
			{Group: "cpu", Name: "governor", Value: "performance"}},
	}
}

// Data of a run by a law. The same source gives the same data.
func Data(r *rand.Rand, law Law) *result.Data {
	end := Start.Add(time.Duration(law.Seconds) * time.Second)
	vm := "__curie_test_1_DB_0000"
	d := &result.Data{Version: result.FormatVersion, Start: Start, End: end,
		VMs: []result.VM{{Name: vm, Group: "DB", CPUs: 4, MemoryBytes: 4 << 30, Disks: 1, DiskBytes: 16 << 30}}}
	base := law.Rate * math.Exp(law.Spread*r.NormFloat64())
	slow := law.Mean * math.Exp(law.Spread*r.NormFloat64())
	rates, times := noise(r, law), noise(r, law)
	disturb(r, law, rates, times)
	shape := lognormal()
	step := max(law.Step, 1)
	w := result.Workload{Name: "OLTP", Group: "DB", Node: -1, Engine: "fio", Tool: "fio-3.36", Phase: "run",
		Operations: result.BlockOperations(), Start: Start, End: end, Ended: "finished", Latency: "service time",
		Streams: []result.Stream{{Name: "data", Device: "/dev/sdb", Depth: 8, Reads: true, Bytes: 8 << 30,
			Direct: true}}}
	op := result.OpTotals{Op: "read", Hist: &hist.Histogram{}}
	var iops, latency []*float64
	var parts []*hist.Histogram
	for i := 0; i < law.Seconds; i += step {
		part := &hist.Histogram{}
		last := min(i+step, law.Seconds)
		var seconds float64
		for at := i; at < last; at++ {
			middle := slow * math.Exp(times[at]-0.125)
			misses := law.Misses * math.Exp(times[at])
			for range int(math.Round(base * math.Exp(rates[at]))) {
				u := r.Uint64()
				each := middle * shape[u%uint64(len(shape))]
				if float64(u>>32) < misses*(1<<32) {
					each *= 20
				}
				seconds += each
				part.Add(uint64(each*1e9), 1)
			}
		}
		n := float64(part.Count())
		rate, us := n/float64(last-i), seconds/n*1e6
		if n > 0 {
			latency = append(latency, &us)
		} else {
			latency = append(latency, nil)
		}
		iops, parts = append(iops, &rate), append(parts, part)
		op.Count += part.Count()
		op.Seconds += seconds
		op.Hist.Merge(part)
	}
	op.OverTime = overTime(op.Hist, parts, float64(step))
	op.Bytes = op.Count * 8192
	w.Ops = []result.OpTotals{op}
	d.Workloads = []result.Workload{w}
	series := func(measure, unit string, values []*float64) {
		d.Series = append(d.Series, result.Series{Name: vm, Op: op.Op, Measure: measure, VM: vm, Group: "DB",
			Unit: unit, Start: Start.Add(time.Duration(step) * time.Second), Step: float64(step), Values: values})
	}
	series(result.Rate, "ops/s", iops)
	series(result.LatencyMean, "us", latency)
	d.Panels = []result.Panel{{Name: "Rate", Title: "Reads per second", Kind: "vm_group", Type: "iops", Unit: "ops/s",
		Series: []result.Series{d.Series[0]}}}
	for k := range law.Series {
		values := make([]*float64, len(iops))
		for i, v := range noise(r, law)[:len(values)] {
			x := 100 * math.Exp(v)
			values[i] = &x
		}
		series(fmt.Sprintf("extra_%d", k), "count", values)
	}
	return d
}

// noise returns what a second differs by, on the logarithm, with first-order dependence.
func noise(r *rand.Rand, law Law) []float64 {
	out := make([]float64, law.Seconds)
	x := r.NormFloat64()
	for i := range out {
		out[i] = law.Noise * x
		if law.Heavy {
			chi := 0.0
			for range 3 {
				z := r.NormFloat64()
				chi += z * z / 3
			}
			out[i] /= math.Sqrt(3 * chi)
		}
		x = law.Dependence*x + math.Sqrt(1-law.Dependence*law.Dependence)*r.NormFloat64()
	}
	return out
}

// lognormal are latencies in even steps of their law, with a median of 1 and a deviation of 0.5 on the logarithm; to
// draw from them is quicker than to compute each.
var lognormal = sync.OnceValue(func() []float64 {
	out := make([]float64, 1<<14)
	for i := range out {
		out[i] = math.Exp(0.5 * math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/float64(len(out))-1))
	}
	return out
})

// disturb adds bursts and checkpoints to the noise of rates and latencies.
func disturb(r *rand.Rand, law Law, rates, times []float64) {
	add := func(i int, rate, latency float64) {
		if i >= 0 && i < len(rates) {
			rates[i] += math.Log(rate)
			times[i] += math.Log(latency)
		}
	}
	if law.Bursts > 0 {
		const ends = 0.25
		on := r.Float64() < law.Bursts/(law.Bursts+ends)
		for i := range rates {
			if on {
				add(i, 1.8, 1.5)
			}
			on = on && r.Float64() >= ends || !on && r.Float64() < law.Bursts
		}
	}
	if law.Shift != 0 || law.Drift != 0 {
		for i := range rates {
			by := law.Drift * (float64(i)/float64(len(rates)-1) - 0.5)
			if 2*i >= len(rates) {
				by += law.Shift
			}
			add(i, math.Exp(by), math.Exp(-by))
		}
	}
	if law.Checkpoint > 0 {
		at := -law.Checkpoint * (10 + r.Float64())
		gap := func() float64 {
			if law.AtRandom {
				return law.Checkpoint * r.ExpFloat64()
			}
			return law.Checkpoint * (1 + 0.1*r.NormFloat64())
		}
		for ; at < float64(len(rates)); at += gap() {
			for k := range 4 {
				add(int(math.Floor(at))+k, 0.6, 3)
			}
		}
	}
}

// overTime counts operations over time as package collect does.
func overTime(whole *hist.Histogram, parts []*hist.Histogram, step float64) *result.OverTime {
	c := &result.OverTime{Start: Start, Step: step}
	for _, p := range parts {
		c.Counts = append(c.Counts, p.Count())
	}
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		v, _ := whole.Quantile(q)
		_, above := hist.Bounds(hist.Index(v))
		s := result.Slower{Quantile: q, AboveNs: above}
		for _, p := range parts {
			s.Counts = append(s.Counts, p.CountAbove(above))
		}
		c.Slower = append(c.Slower, s)
	}
	return c
}
