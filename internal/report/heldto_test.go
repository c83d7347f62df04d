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
		also     string
	}{
		"pauses": {[]float64{0}, result.Passed, ", with the pauses its job asks for (thinktime=5ms): what could be had " +
			"without them is not known", "ioengine=libaio, thinktime=5ms, thinktime_blocks=2"},
		"met": {[]float64{1000, 500}, result.Passed,
			", held to the 1,500 IOPS its job asks for: what could be had without that limit is not known", "thinktime=1"},
		"missed":         {[]float64{1000, 500}, result.Warning, "", ""},
		"one without":    {[]float64{1000, 0}, result.Passed, "", ""},
		"without a rate": {[]float64{0}, result.Passed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := &Document{Workloads: []WorkloadSummary{{Name: "A"}, {Name: "A", VM: "x"}},
				Findings: []result.Finding{{Check: "offered-rate", Subject: "A", Severity: c.severity}}}
			for _, r := range c.rates {
				doc.Workloads[1].Streams = append(doc.Workloads[1].Streams, result.Stream{Rate: r, Also: c.also})
			}
			if got := doc.heldTo(l); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestHeldByQuota(t *testing.T) {
	t.Parallel()
	quota := result.Finding{Check: "io-limit", Subject: "run", Severity: result.Warning,
		Evidence: []result.Evidence{{Name: "quota", Value: 1000, Unit: result.OperationsUnit}}}
	l := Latency{Workload: "A", Windows: []WindowTotals{{Rows: []OpRow{{Op: "read", Unit: result.OperationsUnit}}}}}
	for name, c := range map[string]struct {
		severity result.Severity
		others   []WorkloadSummary
		want     string
	}{
		"at it": {result.Warning, nil,
			", held to the 1,000 IOPS that a quota of its group allows: what could be had without that limit is not known"},
		"below it":      {result.Passed, nil, ""},
		"one of two is": {result.Warning, []WorkloadSummary{{Name: "B", VM: "y"}}, ""},
		"after its prefill": {result.Warning, []WorkloadSummary{{Name: "fill", VM: "x", Prefill: true}},
			", held to the 1,000 IOPS that a quota of its group allows: what could be had without that limit is not known"},
	} {
		quota.Severity = c.severity
		doc := &Document{Findings: []result.Finding{quota}, Workloads: append([]WorkloadSummary{{Name: "A"},
			{Name: "A", VM: "x", Streams: []result.Stream{{}}}}, c.others...)}
		if got := doc.heldTo(l); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
