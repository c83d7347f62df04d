package analysis

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// during makes a workload of one VM that ran from one second to another.
func during(name string, from, to int, cpu float64, stream result.Stream, written uint64) result.Workload {
	t := time.Date(2026, 11, 21, 20, 45, 0, 0, time.UTC)
	return result.Workload{
		Operations: result.BlockOperations(),
		Name:       name, VM: "vm", Group: "G", Phase: "run", Ended: "finished", Latency: "service time",
		Start: t.Add(
			time.Duration(from) * time.Second), End: t.Add(time.Duration(to) * time.Second), GeneratorCPUSeconds: cpu,
		Streams: []result.Stream{stream},
		Ops:     []result.OpTotals{{Op: "read", Count: 100, Bytes: 1}, {Op: "write", Count: 100, Bytes: written}},
	}
}

func findingOf(t *testing.T, check, subject string, workloads ...result.Workload) result.Finding {
	t.Helper()
	m := result.Manifest{Nodes: []result.Node{{Name: "node", Cores: 2, MemoryBytes: 1 << 30}}}
	all := Run(m, &result.Data{Workloads: workloads, VMs: []result.VM{{Name: "vm", Group: "G"}}})
	i := slices.IndexFunc(all, func(f result.Finding) bool { return f.Check == check && f.Subject == subject })
	if i < 0 {
		t.Fatalf("no finding %q about %q in %+v", check, subject, all)
	}
	return all[i]
}

// Two generators that each took one and a half of two cores, one after the other, never took three together.
func TestGeneratorsOneAfterTheOther(t *testing.T) {
	none := result.Stream{Name: "a", Depth: 1, Reads: true}
	after := findingOf(t, "generator-cpu", "A", during("A", 0, 10, 10, none, 0), during("B", 10, 20, 10, none, 0))
	if *after.Value != 50 {
		t.Errorf("one after the other: %v %% of the cores, want 50", *after.Value)
	}
	beside := findingOf(t, "generator-cpu", "A", during("A", 0, 10, 10, none, 0), during("B", 5, 15, 10, none, 0))
	if *beside.Value != 75 {
		t.Errorf("half of the time together: %v %% of the cores, want 75", *beside.Value)
	}
}

// What an earlier workload has written need not be prefilled, and what the last one wrote is what is read.
func TestWorkloadsThatFill(t *testing.T) {
	write := result.Stream{Name: "w", Device: "/dev/sdb", Depth: 1, Writes: true, Bytes: 1000}
	zero := write
	zero.ZeroData = true
	read := result.Stream{Name: "r", Device: "/dev/sdb", Depth: 1, Reads: true, Bytes: 1000}
	check := during("Check", 20, 30, 1, read, 0)
	for name, c := range map[string]struct {
		before []result.Workload
		want   result.Severity
	}{
		"nothing":          {nil, result.Invalid},
		"all of it":        {[]result.Workload{during("Fill", 0, 10, 1, write, 1000)}, result.Passed},
		"a part of it":     {[]result.Workload{during("Fill", 0, 10, 1, write, 500)}, result.Invalid},
		"at the same time": {[]result.Workload{during("Fill", 15, 25, 1, write, 1000)}, result.Invalid},
		"zeros":            {[]result.Workload{during("Zero", 0, 10, 1, zero, 1000)}, result.Warning},
		"zeros, then other data": {[]result.Workload{during("Fill", 10, 20, 1, write, 1000), during("Zero", 0, 10, 1,
			zero, 1000)}, result.Passed},
		"data, and zeros over it": {[]result.Workload{during("Fill", 0, 10, 1, write, 1000), during("Zero", 10, 20, 1,
			zero, 1000)}, result.Warning},
	} {
		if f := findingOf(t, "never-written", "Check", append(c.before, check)...); f.Severity != c.want {
			t.Errorf("%s: %s (%s), want %s", name, f.Severity, f.Sentence, c.want)
		}
	}
}

// TestSectionsAreNotCountedTwice: the series of workloads' sections say the same again, and change no figure of a
// recovery in which one workload ends with the fault and another begins after it.
func TestSectionsAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(6, 900, 4)
	s.Mark(300, result.KindFault, "node-0 power off")
	rate := func(int) float64 { return 8000 }
	for name, span := range map[string][2]int{"before": {0, 300}, "after": {420, 900}} {
		s.Load(
			reporttest.Load{
				Name:    name,
				Group:   "DB",
				From:    span[0],
				To:      span[1],
				VMs:     4,
				Spread:  true,
				Noise:   0.02,
				Rate:    rate,
				Seconds: flatRate(1e-3),
				Writes:  0.5,
			},
		)
	}
	for i := range s.Data.Workloads {
		if s.Data.Workloads[i].Name == "before" {
			s.Data.Workloads[i].Ended = "lost"
		}
	}
	find := func() string {
		for _, f := range Run(s.Manifest, s.Data) {
			if f.Check == "recovery" {
				return f.Sentence
			}
		}
		return ""
	}
	want := find()
	for _, one := range s.Data.Series {
		if one.VM == "" && one.Workload != "" {
			one.Section, one.Name = "all", one.Name+": all"
			s.Data.Series = append(s.Data.Series, one)
		}
	}
	if got := find(); want == "" || got != want {
		t.Errorf("%q with sections, %q without", got, want)
	}
}
