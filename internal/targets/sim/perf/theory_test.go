package perf_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time { return start.Add(time.Duration(seconds * 1e9)) }

// plain is a cluster of single servers that take a millisecond, with exponential times and nothing in the way.
func plain() perf.Truth {
	t := perf.DefaultTruth()
	t.Servers, t.Fast = 1, perf.Medium{ReadSeconds: 1e-3, WriteSeconds: 1e-3, Sequential: 1, BytesPerSecond: 1e15}
	t.CacheBytes, t.PageCacheBytes, t.WriteLog = 0, 0, perf.WriteLog{}
	t.Contention, t.Crosstalk, t.Background, t.NoiseCV = 0, 0, 0, 0
	t.Law = perf.Law{Kind: perf.Exponential}
	return t
}

func reads(depth int, rate float64) result.Stream {
	return result.Stream{Name: "reads", Device: "/dev/sdb", Depth: depth, Rate: rate, OpenLoop: rate > 0, Reads: true,
		ReadShare: 1,
		ReadBytes: 4096, Random: 1, Bytes: 1 << 30, Direct: true}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %.8g, want %.8g within %.3g", what, got, want, within)
	}
}

// quantiles holds sampled percentiles against a law: within the histogram's own error plus five standard errors of a
// sample quantile, sqrt(q(1-q)/n)/f.
func quantiles(t *testing.T, what string, h *hist.Histogram, law perf.Mix) {
	t.Helper()
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 0.999} {
		want := law.Quantile(q)
		step := 1e-4 * want
		density := (law.Below(want+step) - law.Below(want-step)) / (2 * step)
		sampling := 5 * math.Sqrt(q*(1-q)/float64(h.Count())) / density
		got, _ := h.Quantile(q)
		near(t, fmt.Sprintf("%s: quantile %v", what, q), float64(got)/1e9, want, 2*hist.RelativeError*want+sampling)
	}
}

// TestPoissonArrivalsAtOneServer: M/M/1. Counts, means, percentiles and Little's law through the reports of a job: W =
// S/(1-rho), exponential; L = rho/(1-rho).
func TestPoissonArrivalsAtOneServer(t *testing.T) {
	for _, rho := range []float64{0.1, 0.5, 0.8, 0.95} {
		w := perf.New(plain(), 1)
		j := w.Start(start, "vm", 0, []result.Stream{reads(1<<20, rho*1000)}, perf.JobOptions{})
		const seconds = 1800
		r := j.Report(after(seconds)).Ops[0]
		n, want := float64(r.Ops), 1e-3/(1-rho)
		near(t, "count", n, rho*1000*seconds, 5*math.Sqrt(rho*1000*seconds))
		near(t, "mean response", r.Seconds/n, want, 5*want/math.Sqrt(n))
		quantiles(t, fmt.Sprintf("rho %v", rho), r.Hist,
			perf.Mix{Law: perf.Law{Kind: perf.Exponential}, Parts: []perf.Part{{Share: 1, Seconds: want}}})
		near(t, "operations in flight", r.Seconds/seconds, rho/(1-rho), 0.02*rho/(1-rho))
	}
}

// TestClosedLoopAtOneServer: X = 1/S and R = N S whatever the depth, and Little's law exactly.
func TestClosedLoopAtOneServer(t *testing.T) {
	for _, depth := range []int{1, 4, 32} {
		w := perf.New(plain(), 1)
		j := w.Start(start, "vm", 0, []result.Stream{reads(depth, 0)}, perf.JobOptions{})
		const seconds = 600
		r := j.Report(after(seconds)).Ops[0]
		near(t, "count", float64(r.Ops), 1000*seconds, 5*math.Sqrt(1000*seconds))
		near(t, "operations in flight", r.Seconds/seconds, float64(depth), 1e-6*float64(depth))
		quantiles(t, fmt.Sprintf("depth %d", depth), r.Hist, perf.Mix{Law: perf.Law{Kind: perf.Exponential},
			Parts: []perf.Part{{Share: 1, Seconds: 1e-3 * float64(depth)}}})
	}
}

// TestRemoteReads: away from where its data were first used a VM's reads take so much longer, its writes do not, and
// back there nothing does.
func TestRemoteReads(t *testing.T) {
	truth := plain()
	truth.RemoteReadSeconds = 250e-6
	w := perf.New(truth, 2)
	stream := reads(1, 0)
	stream.Writes, stream.ReadShare, stream.WriteBytes = true, 0.5, 4096
	for i, want := range []float64{1e-3, 1.25e-3, 1e-3} {
		at := float64(600 * i)
		w.MoveVM("vm", i%2)
		r := w.Start(after(at), "vm", i%2, []result.Stream{stream},
			perf.JobOptions{Runtime: 600 * time.Second}).Report(after(at + 600))
		for op, want := range []float64{want, 1e-3} {
			n := float64(r.Ops[op].Ops)
			near(t, fmt.Sprintf("part %d, operation %d", i, op), r.Ops[op].Seconds/n, want, 5*want/math.Sqrt(n))
		}
	}
}

// TestManyServersWithoutQueue: with a server for every operation the response is the service, its block's transfer
// included.
func TestManyServersWithoutQueue(t *testing.T) {
	truth := perf.DefaultTruth()
	truth.Contention, truth.Crosstalk, truth.Background, truth.NoiseCV, truth.CacheBytes = 0, 0, 0, 0, 0
	w := perf.New(truth, 1)
	stream := result.Stream{Name: "mixed", Device: "/dev/sdb", Depth: 4, Reads: true, Writes: true, ReadShare: 0.7,
		ReadBytes: 16384, WriteBytes: 65536,
		Random: 1, Bytes: 1 << 30, Direct: true}
	r := w.Start(start, "vm", 0, []result.Stream{stream}, perf.JobOptions{}).Report(after(600))
	read := truth.Fast.ReadSeconds + 16384/truth.Fast.BytesPerSecond
	write := truth.Fast.WriteSeconds + 65536/truth.Fast.BytesPerSecond
	x := 4 / (0.7*read + 0.3*write)
	near(t, "operations per second", float64(r.Ops[0].Ops+r.Ops[1].Ops)/600, x, 0.002*x)
	near(t, "share of reads", float64(r.Ops[0].Ops)/float64(r.Ops[0].Ops+r.Ops[1].Ops), 0.7, 0.002)
	near(t, "bytes per write", float64(r.Ops[1].Bytes)/float64(r.Ops[1].Ops), 65536, 1e-6)
	quantiles(t, "reads", r.Ops[0].Hist, perf.Mix{Law: truth.Law, Parts: []perf.Part{{Share: 1, Seconds: read}}})
	quantiles(t, "writes", r.Ops[1].Hist, perf.Mix{Law: truth.Law, Parts: []perf.Part{{Share: 1, Seconds: write}}})
}

// TestScalabilityIsRecovered sweeps the number of nodes and fits the law to what the jobs report: the 95 % intervals
// cover the truth, at depth one the cluster's own coefficients and at depth four those that Truth.Coefficients derives.
func TestScalabilityIsRecovered(t *testing.T) {
	for _, depth := range []int{1, 4} {
		truth := plain()
		truth.Servers, truth.Contention, truth.Crosstalk, truth.NoiseCV = 64, 0.02, 0.0005, 0.05
		var points []usl.Point
		for _, nodes := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48} {
			truth.Seed++
			w := perf.New(truth, nodes)
			var jobs []*perf.Job
			for n := range nodes {
				jobs = append(jobs, w.Start(start, fmt.Sprint("vm-", n), n, []result.Stream{reads(depth, 0)},
					perf.JobOptions{}))
			}
			var ops uint64
			for _, j := range jobs {
				ops += j.Counters(after(60)).Ops[0].Ops
			}
			points = append(points, usl.Point{Concurrency: float64(nodes), Throughput: float64(ops) / 60})
		}
		m, err := usl.Fit(points, usl.Options{Resamples: -1, Confidence: 0.99})
		if err != nil {
			t.Fatal(err)
		}
		alpha, beta := truth.Coefficients(depth)
		one := 1 + truth.Contention*float64(depth-1) + truth.Crosstalk*float64(depth*(depth-1))
		gamma := float64(depth) / (1e-3 * one)
		for _, c := range []struct {
			name string
			p    usl.Parameter
			want float64
		}{{"gamma", m.GammaParameter, gamma}, {"alpha", m.AlphaParameter, alpha}, {"beta", m.BetaParameter, beta}} {
			if !(c.p.T.Low <= c.want && c.want <= c.p.T.High) {
				t.Errorf("depth %d: %s is %.6g, fitted %.6g with the interval %.6g to %.6g", depth, c.name, c.want,
					c.p.Value, c.p.T.Low, c.p.T.High)
			}
			if !(math.Abs(c.p.Value-c.want) < 0.1*c.want) {
				t.Errorf("depth %d: %s is %.6g, fitted %.6g", depth, c.name, c.want, c.p.Value)
			}
		}
	}
}

// TestNoise: counts of a second scatter as their law says: Poisson arrivals with variance of the mean, paced ones not
// at all, closed loops with the renewal process's CV², and NoiseCV on top.
func TestNoise(t *testing.T) {
	paced := reads(1<<20, 500)
	paced.OpenLoop = false
	noisy := plain()
	noisy.NoiseCV = 0.1
	for _, c := range []struct {
		name           string
		truth          perf.Truth
		stream         result.Stream
		mean, variance float64
	}{
		{"poisson", plain(), reads(1<<20, 500), 500, 500},
		{"paced", plain(), paced, 500, 0},
		{"closed", plain(), reads(1, 0), 1000, 1000},
		{"closed, noisy", noisy, reads(1, 0), 1000, 1000 + 100*100},
	} {
		j := perf.New(c.truth, 1).Start(start, "vm", 0, []result.Stream{c.stream}, perf.JobOptions{})
		const n = 4000
		var last uint64
		var sum, square float64
		for i := 1; i <= n; i++ {
			ops := j.Counters(after(float64(i))).Ops[0].Ops
			x := float64(ops-last) - c.mean
			sum, square, last = sum+x, square+x*x, ops
		}
		near(t, c.name+": mean", sum/n, 0, 5*math.Sqrt(c.variance/n)+1.0/n)
		near(t, c.name+": variance", square/n, c.variance, 5*c.variance*math.Sqrt(2.0/n)+0.3)
	}
}
