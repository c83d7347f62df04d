package analysis_test

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/result"
)

// Saving power is told where few operations are in flight, with what was seen, and of no other host or load.
func TestCPUPower(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		governor string
		depth    int
		want     string
	}{
		{"powersave", 1, "The processors could slow down and sleep (governor powersave, idle driver intel_idle) while W kept " +
			"one operation in flight: the times may hold what waking takes. How much, nothing in this run measured; " +
			"governor performance tells."},
		{"powersave", 32, ""},
		{"performance", 1, ""},
		{"", 1, ""},
	} {
		m := result.Manifest{Environment: []result.Fact{{Group: "cpu", Name: "governor", Value: c.governor},
			{Group: "cpu", Name: "idle driver", Value: "intel_idle"}}}
		w := result.Workload{Name: "W", VM: "v", Group: "G", Engine: "fio", Start: start, End: start.Add(time.Minute),
			Operations: result.BlockOperations(), Ops: []result.OpTotals{{Op: "read", Count: 6000, Seconds: 50}},
			Lanes: []result.Lane{{Name: "a", Device: "/dev/sdb", Depth: c.depth, Reads: true, Direct: true}}}
		all := analysis.Run(m, &result.Data{Start: start, End: w.End, Workloads: []result.Workload{w}})
		got := ""
		if i := slices.IndexFunc(all, func(f result.Finding) bool { return f.Check == "cpu-power" }); i >= 0 {
			got = all[i].Sentence
		}
		if got != c.want {
			t.Errorf("%s, depth %d: got %q, want %q", c.governor, c.depth, got, c.want)
		}
	}
}
