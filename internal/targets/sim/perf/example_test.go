package perf_test

import (
	"fmt"
	"time"

	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
)

// The truth says what a right analysis must find; a report is what it gets to see.
func Example() {
	truth := perf.DefaultTruth()
	truth.Servers, truth.Law, truth.CacheBytes = 1, perf.Law{Kind: perf.Exponential}, 0
	truth.Contention, truth.Crosstalk, truth.Background, truth.NoiseCV = 0, 0, 0, 0
	truth.Fast = perf.Medium{ReadSeconds: 1e-3, WriteSeconds: 1e-3, Sequential: 1, BytesPerSecond: 1e12}

	w := perf.New(truth, 1)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job := w.Start(begin, "vm-0", 0, []result.Stream{{
		Name: "reads", Device: "/dev/sdb", Depth: 1000, Rate: 800, OpenLoop: true, Reads: true, Random: 1,
		Bytes: 1 << 30, Direct: true,
	}}, perf.JobOptions{})
	r := job.Report(begin.Add(time.Hour))
	p99, _ := r.Ops[0].Hist.Quantile(0.99)
	fmt.Printf("%d reads, mean %.2f ms, p99 %.0f ms\n", r.Ops[0].Ops, r.Ops[0].Seconds/float64(r.Ops[0].Ops)*1e3,
		float64(p99)/1e6)
	fmt.Printf("expected mean %.0f ms, p99 %.0f ms\n", 1/(1-0.8), 1/(1-0.8)*truth.Law.Quantile(0.99))
	// Output:
	// 2882189 reads, mean 5.00 ms, p99 23 ms
	// expected mean 5 ms, p99 23 ms
}
