package report_test

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/internal/report"
	"plimsoll/internal/testkit/reporttest"
)

func Example() {
	run := reporttest.Neighbour(reporttest.Options{VMs: 2, Length: time.Minute, TimeScale: 0.02})
	doc := report.New(report.Input{
		Manifest: run.Manifest, Data: run.Data, Events: run.Events, Plan: run.Plan,
		Findings: analysis.Run(run.Manifest, run.Data),
	})
	var page, text bytes.Buffer
	for _, err := range []error{report.HTML(&page, doc), report.Markdown(&text, doc)} {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
	first, _, _ := bytes.Cut(text.Bytes(), []byte("\n"))
	fmt.Printf("%s\n", first)
	// Output:
	// **Scaled: time ×0.02, sizes ×1. Rates and depths are as written; a scaled run shows the shape of a result, not its size.**
}
