package analysis_test

import (
	"fmt"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/internal/testkit/reporttest"
)

func ExampleRun() {
	run := reporttest.Neighbour(reporttest.Options{VMs: 2, Length: 10 * time.Minute})
	for _, f := range analysis.Run(run.Manifest, run.Data) {
		if f.Check == "windows" {
			fmt.Println(f.Sentence)
		}
	}
	// Output:
	// OLTP: 4,000 IOPS alone, 3,600 with DSS (−10 %); read p50 518 µs to 1.35 ms, p99 1.38 ms to 5.73 ms (service time). Target rate 4,000: met alone, not met (90 %) with DSS.
}
