package analysis_test

import (
	"slices"
	"strings"
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
		wake     float64 // the mean time is 8.33 ms
		want     string
	}{
		{"powersave", 1, 0, "The processors could slow down and sleep (governor powersave, idle driver intel_idle) while W kept " +
			"one operation in flight: the times may hold what waking takes. How much, nothing in this run measured; " +
			"governor performance tells."},
		{"powersave", 32, 2e-3, ""},
		{"performance", 1, 0, ""},
		{"performance", 1, 133e-6, ""},
		{"performance", 1, 2e-3, "The processors could sleep (deepest idle state C9) while W kept one operation in flight: the " +
			"times may hold what waking takes, up to 24 % of their mean. How much, nothing in this run measured; a run with " +
			"that state off (cpupower idle-set) tells."},
		{"powersave", 1, 1e-2, "The processors could slow down and sleep (governor powersave, idle driver intel_idle, deepest " +
			"idle state C9) while W kept one operation in flight: the times may hold what waking takes, up to 100 % of their " +
			"mean. How much, nothing in this run measured; governor performance tells."},
		{"", 1, 0, ""},
	} {
		m := result.Manifest{Environment: []result.Fact{{Group: "cpu", Name: "governor", Value: c.governor},
			{Group: "cpu", Name: "idle driver", Value: "intel_idle"}}}
		if c.wake > 0 {
			m.Environment = append(m.Environment, result.Fact{Group: "cpu", Name: "deepest idle state", Value: "C9",
				Kind: result.IdleWake, Number: c.wake})
		}
		w := result.Workload{Name: "W", VM: "v", Group: "G", Engine: "fio", Start: start, End: start.Add(time.Minute),
			Operations: result.BlockOperations(), Ops: []result.OpTotals{{Op: "read", Count: 6000, Seconds: 50}},
			Streams: []result.Stream{{Name: "a", Device: "/dev/sdb", Depth: c.depth, Reads: true, Direct: true}}}
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

// Of several hosts the facts are those of the one that a load ran on.
func TestCPUPowerOfHosts(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := result.Manifest{Environment: []result.Fact{{Group: "cpu", Name: "n1: governor", Value: "performance"},
		{Group: "cpu", Name: "n2: governor", Value: "powersave"},
		{Group: "cpu", Name: "n3: governor", Value: "powersave"},
		{Group: "cpu", Name: "n1: deepest idle state", Value: "C6", Kind: result.IdleWake, Number: 2e-3}}}
	load := func(name, vm string) result.Workload {
		return result.Workload{Name: name, VM: vm, Group: name, Engine: "fio",
			Start: start, End: start.Add(time.Minute),
			Operations: result.BlockOperations(), Ops: []result.OpTotals{{Op: "read", Count: 6000, Seconds: 50}},
			Streams: []result.Stream{{Name: "a", Device: "/dev/sdb", Depth: 1, Reads: true, Direct: true}}}
	}
	for vm, want := range map[string]string{
		"n1": "The processors could sleep (deepest idle state C6 on n1) while W kept",
		"n2": "The processors could slow down and sleep (governor powersave on n2) while W kept",
		"n4": "",
	} {
		all := analysis.Run(m, &result.Data{Start: start, End: start.Add(time.Minute),
			Workloads: []result.Workload{load("W", vm)}})
		got := ""
		if i := slices.IndexFunc(all, func(f result.Finding) bool { return f.Check == "cpu-power" }); i >= 0 {
			got = all[i].Sentence
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("on %s: got %q, want %q", vm, got, want)
		}
	}
}
