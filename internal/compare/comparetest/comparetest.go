// Package comparetest makes runs with a known law for tests of comparisons: the effect, the dependence in time and the spread
// between runs are what the test says. It stands beside package compare as its oracle and refuses nothing.
package comparetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plimsoll/hist"
	"plimsoll/result"
)

// Law is how the runs of a side behave.
type Law struct {
	Rate       float64 // operations per second, on average
	Mean       float64 // service time in seconds, on average
	Spread     float64 // relative standard deviation between runs
	Noise      float64 // relative standard deviation of a second within a run
	Dependence float64 // correlation of neighbouring seconds, 0 to below 1
	Seconds    int
	Series     int // further series recorded over time
}

// Start of every first run.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Manifest of a run: number n from 1.
func Manifest(n int) result.Manifest {
	return result.Manifest{
		Version: result.FormatVersion, RunID: fmt.Sprintf("20260301-12%02d00-made-%04d", n%60, n), Created: Start.Add(time.Duration(n) * time.Minute),
		Status: result.StatusSucceeded, Measured: result.Verdict{State: "yes"}, Target: "made", TimeScale: 1, SizeScale: 1, Nodes: []result.Node{{Name: "node-0", Cores: 8}},
		Scenario: result.ScenarioInfo{ID: int64(n), Name: "made", DisplayName: "Made runs", Vars: []result.Var{{Name: "iops", Value: "400"}}},
		Environment: []result.Fact{{Group: "host", Name: "kernel", Value: "6.1.0"}, {Group: "host", Name: "firmware", Value: "F7"},
			{Group: "cpu", Name: "SMT active", Value: "1"}, {Group: "cpu", Name: "governor", Value: "performance"}},
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
	w := result.Workload{Name: "OLTP", Group: "DB", Node: -1, Engine: "fio", Tool: "fio-3.36", Phase: "run", Start: Start, End: end, Ended: "finished", Latency: "service time",
		Lanes: []result.Lane{{Name: "data", Device: "/dev/sdb", Depth: 8, Reads: true, Bytes: 8 << 30, Direct: true}},
		Heat:  &result.HeatMap{Start: Start, Step: 1, EdgesNs: edges()}}
	op := result.OpTotals{Op: "read", Hist: &hist.Histogram{}}
	var iops, latency []*float64
	for i := range law.Seconds {
		n := math.Round(base * math.Exp(law.Noise*rates[i]))
		middle := slow * math.Exp(law.Noise*times[i])
		column := make([]uint64, len(w.Heat.EdgesNs)-1)
		sum := 0.0
		for k := range int(n) {
			// Quantiles of a lognormal in even steps, shifted at random: its percentiles are known.
			q := (float64(k) + r.Float64()) / n
			ns := middle * 1e9 * math.Exp(0.5*quantile(q)-0.125)
			sum += ns / 1e9
			op.Hist.Add(uint64(ns), 1)
			row := int((math.Log10(ns) - 3) * 8)
			column[min(max(row, 0), len(column)-1)]++
		}
		op.Count += uint64(n)
		op.Seconds += sum
		us := sum / n * 1e6
		iops, latency = append(iops, &n), append(latency, &us)
		w.Heat.Counts = append(w.Heat.Counts, column)
	}
	op.Bytes = op.Count * 8192
	w.Ops = []result.OpTotals{op}
	d.Workloads = []result.Workload{w}
	series := func(metric, unit string, values []*float64) {
		d.Series = append(d.Series, result.Series{Name: vm, Metric: metric, VM: vm, Group: "DB", Unit: unit, Start: Start, Step: 1, Values: values})
	}
	series("read_iops", "ops/s", iops)
	series("read_latency_mean", "us", latency)
	d.Panels = []result.Panel{{Name: "Rate", Title: "Reads per second", Kind: "vm_group", Type: "iops", Unit: "ops/s", Series: []result.Series{d.Series[0]}}}
	for k := range law.Series {
		values := make([]*float64, law.Seconds)
		for i, v := range noise(r, law) {
			x := 100 * math.Exp(law.Noise*v)
			values[i] = &x
		}
		series(fmt.Sprintf("extra_%d", k), "count", values)
	}
	return d
}

// noise is a series of unit variance with first-order dependence.
func noise(r *rand.Rand, law Law) []float64 {
	out := make([]float64, law.Seconds)
	x := r.NormFloat64()
	for i := range out {
		out[i] = x
		x = law.Dependence*x + math.Sqrt(1-law.Dependence*law.Dependence)*r.NormFloat64()
	}
	return out
}

func edges() []float64 {
	var out []float64
	for i := range 41 {
		out = append(out, math.Pow(10, 3+float64(i)/8))
	}
	return out
}

// quantile of the standard normal distribution, good to 1e-4, which is enough for made data.
func quantile(p float64) float64 {
	p = min(max(p, 1e-6), 1-1e-6)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}
