package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// What is shown of a run while it goes on is what the workloads did, prefills and results of the scenario included; and
// where both can be had, it is what Collect makes of the whole afterwards.
func TestSoFar(t *testing.T) {
	l := neighbour(t) // whose process has not ended
	sc := &scenario.Scenario{
		Name:   "lab",
		Groups: []scenario.Group{{Name: "OLTP"}, {Name: "DSS"}},
		Results: []scenario.Result{
			resultOf(scenario.GroupResult, "iops", "OLTP", "", "sum"),
			resultOf(scenario.WorkloadResult, "iops", "OLTP", "OLTP", "sum"),
			resultOf(scenario.WorkloadResult, "bandwidth", "DSS", "DSS", ""),
			resultOf(scenario.WorkloadResult, "errors", "OLTP", "OLTP", ""),
			resultOf(scenario.WorkloadResult, "active", "DSS", "DSS", ""),
			resultOf(scenario.WorkloadResult, "iops", "G", "moon", ""),
			resultOf(scenario.WorkloadResult, "iops", "OLTP", "OLTP", "stddev"),
			{
				Name:      "cpu",
				Title:     "cpu",
				Kind:      scenario.ClusterResult,
				Metric:    "CpuUsage.Avg.Percent",
				Aggregate: "mean",
				Step:      10 * time.Second,
			},
		},
	}
	store, err := series.OpenReadOnly(l.Folder.MetricsDir(), series.Options{})
	l.Must(err)
	defer store.Close()
	got, err := soFar(t.Context(), l.Folder, store, sc, "")
	l.Must(err)
	show := func(d *result.Data) (out []string) {
		for _, p := range d.Panels {
			if p.Problem != "" {
				out = append(out, p.Name+" problem: "+p.Problem)
			}
			for _, s := range p.Series {
				out = append(out, p.Unit+" "+recordtest.Line(s))
			}
		}
		return out
	}
	want := []string{
		// From the run's beginning, ten seconds before its run phase; rates begin with the second report.
		"ops/s DSS @20:45:00 +5s: -*9 20*6",
		"ops/s OLTP @20:45:00 +5s: -*3 350*12",
		"ops/s OLTP, filling its disks @20:45:00 +5s: - 8*2 -*12",
	}
	if d := cmp.Diff(want, show(got)[:3]); d != "" {
		t.Errorf("throughput:\n%s", d)
	}
	whole := collected(l, sc)
	byName := func(d *result.Data, name string) string {
		for _, p := range d.Panels {
			if p.Name == name && len(p.Series) > 0 {
				return recordtest.Line(p.Series[0])
			}
		}
		return "none"
	}
	for _, name := range []string{"vm_group_iops_sum", "cpu"} {
		if a, b := byName(got, name), byName(whole, name); a != b || a == "none" {
			t.Errorf("%s: so far %s, in the end %s", name, a, b)
		}
	}
	for name, want := range map[string]string{
		"workload_iops_sum":    "workload_iops_sum @20:45:10 +10s: - 350*6",
		"workload_bandwidth":   "workload_bandwidth @20:45:10 +10s: -*4 20971520*3",
		"workload_errors":      "workload_errors (VM 0) @20:45:10 +10s: - 0*6",
		"workload_active":      "workload_active @20:45:10 +10s: -*4 1*3",
		"workload_iops":        "none",
		"workload_iops_stddev": "none",
	} {
		if got := byName(got, name); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
	if !got.Start.Equal(recordtest.Epoch.Add(10*time.Second)) || len(got.VMs) != 3 || len(got.Events) != 1 {
		t.Errorf("start %v, %d VMs, %d events", got.Start, len(got.VMs), len(got.Events))
	}

	// Without metrics that can be read there is still what the journal says.
	bare, err := soFar(t.Context(), l.Folder, nil, nil, "no scenario")
	if err != nil || len(bare.Phases) != len(got.Phases) || len(bare.Panels) != 0 ||
		!cmp.Equal(bare.Problems, []string{"no scenario"}) {
		t.Errorf("%+v %v", bare, err)
	}
}
