package report

import (
	"testing"

	"plimsoll/result"
)

func TestHeldTo(t *testing.T) {
	t.Parallel()
	l := Latency{Workload: "A", Windows: []WindowTotals{{Rows: []OpRow{{Op: "read", Unit: result.OperationsUnit}}}}}
	for name, c := range map[string]struct {
		rates    []float64
		severity result.Severity
		want     string
	}{
		"met": {[]float64{1000, 500}, result.Fine,
			", held to the 1,500 IOPS its job asks for: what could be had without that limit is not known"},
		"missed":         {[]float64{1000, 500}, result.Caution, ""},
		"one without":    {[]float64{1000, 0}, result.Fine, ""},
		"without a rate": {[]float64{0}, result.Fine, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := &Document{Workloads: []WorkloadSummary{{Name: "A"}, {Name: "A", VM: "x"}},
				Findings: []result.Finding{{Check: "offered-rate", Subject: "A", Severity: c.severity}}}
			for _, r := range c.rates {
				doc.Workloads[1].Lanes = append(doc.Workloads[1].Lanes, result.Lane{Rate: r})
			}
			if got := doc.heldTo(l); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}
