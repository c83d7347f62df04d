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
	// Comparing after DSS starts with before DSS starts, OLTP went from 4,000 to 3,600 operations per second (-10.0 %) and its 99th-percentile read service time went from 1.38 ms to 5.73 ms (×4.1).
}
