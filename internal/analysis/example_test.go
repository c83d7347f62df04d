package analysis_test

import (
	"fmt"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/internal/report/reporttest"
)

func ExampleRun() {
	run := reporttest.Neighbour(reporttest.Options{VMs: 2, Length: 10 * time.Minute})
	for _, f := range analysis.Run(run.Manifest, run.Data) {
		if f.Check == "windows" {
			fmt.Println(f.Sentence)
		}
	}
	// Output:
	// OLTP did 4,000 operations per second alone and 3,600 with DSS (−10 %); the service time of its reads went from 518 µs to 1.35 ms in the median and from 1.38 ms to 5.73 ms at the 99th percentile. Its offered rate of 4,000 was kept alone and missed (90 %) with DSS.
}
