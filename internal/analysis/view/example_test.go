package view_test

import (
	"fmt"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// This is the worked example of docs/how-to/add-a-finding.md.

// LoneVM tells of workloads that ran on a single VM, whose figures are those of one machine as much as of the storage.
var LoneVM = view.Check{Name: "lone-vm", Rank: 425, Run: loneVM}

func loneVM(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		if l.Count() == 0 {
			continue // said by too-short
		}
		n := len(l.Parts)
		f := result.Finding{
			Check: "lone-vm", Severity: result.Passed, Subject: l.Name, Metric: "VMs", Unit: "count",
			Value: view.Ptr(float64(n)), N: n, Limit: view.Ptr(2),
			NoInterval: "counted, not sampled", Basis: l.Basis(),
			Sentence: fmt.Sprintf("%s ran on %s.", l.Name, view.Plural(n, "VM")),
		}
		if n < 2 {
			f.Severity = result.Info
			f.Sentence = fmt.Sprintf("%s ran on one VM and did %s: more machines may get more out of the storage.",
				l.Name, l.Rate().Say(float64(l.Completed())/l.Longest()))
		}
		out = append(out, f)
	}
	return out
}

func ExampleCheck() {
	s := reporttest.NewSynthetic(1, 120, 1)
	steady := func(int) float64 { return 4000 }
	s.Load(reporttest.Load{Name: "Alone", To: 120, Rate: steady})
	s.Load(reporttest.Load{Name: "Many", To: 120, Rate: steady, VMs: 4})
	for _, f := range LoneVM.Run(view.New(s.Manifest, s.Data)) {
		fmt.Println(f.Severity, f.Sentence)
	}
	// Output:
	// info Alone ran on one VM and did 4,000 IOPS: more machines may get more out of the storage.
	// passed Many ran on 4 VMs.
}
