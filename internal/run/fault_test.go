package run_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/targets/sim"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// loaded is a scenario with one load on four nodes, which faults are declared for.
const loaded = `
name: loaded
display_name: Loaded
summary: s
description: ""
estimated_runtime: 900
vms:
  - A: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}}
workloads:
  - W: {vm_group: A, config_file: w.fio}
results:
  - rate: {vm_group: A, result_type: iops, aggregate: sum}
  - cpu: {metric: CpuUsage.Avg.Percent}
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: A}
  - vm_group.PowerOn: {vm_group_name: A}
run:
  - workload.Start: {workload_name: W, runtime_secs: 600, async: True}
  - test.Wait: {duration_secs: 300}
  - workload.Wait: {workload_name: W}
teardown:
  - cluster.CleanUp: {}
`

// Every kind of fault happens in a run. It enters the journal with its end, does what it says, and whatever it does to
// the run, nothing remains and the folder reads.
func TestDeclaredFaults(t *testing.T) {
	needs.Time(t)
	at := func(f sim.Fault) sim.Fault {
		f.Step, f.At, f.For = "workload.Start", 100*time.Second, 60*time.Second
		return f
	}
	healthy := float64(0)
	var story strings.Builder
	for _, c := range []struct {
		name  string
		fault []sim.Fault
	}{
		{"none", nil},
		{"a node crashes and reboots", []sim.Fault{at(sim.Fault{Kind: sim.NodeCrash, Nodes: []int{1}})}},
		{"a node loses power for good", []sim.Fault{{Kind: sim.PowerLoss, Nodes: []int{2}, Step: "4",
			At: time.Minute}}},
		{"a node loses power with its controller",
			[]sim.Fault{{Kind: sim.PowerLoss, Nodes: []int{2}, NoController: true, At: 5 * time.Minute}}},
		{"a node loses power with its controller for a while",
			[]sim.Fault{at(sim.Fault{Kind: sim.PowerLoss, Nodes: []int{2}, NoController: true})}},
		{"storage hangs", []sim.Fault{at(sim.Fault{Kind: sim.HungIO, Nodes: []int{0}})}},
		{"storage is slow", []sim.Fault{at(sim.Fault{Kind: sim.SlowDisk, Nodes: []int{0, 1}, Factor: 1000})}},
		{"a neighbour is noisy", []sim.Fault{at(sim.Fault{Kind: sim.Neighbour, Nodes: []int{0}, Factor: 0.5})}},
		{"calls fail", []sim.Fault{{Kind: sim.APIError, Methods: []string{"Clone"},
			Step: "vm_group.CloneFromTemplate"}}},
		{"calls fail now and then", []sim.Fault{{Kind: sim.APIError, Probability: 0.5, At: 2 * time.Minute}}},
		{"calls hang", []sim.Fault{{Kind: sim.APITimeout, Methods: []string{"PowerOn"}, Delay: 30 * time.Second}}},
		{"answers are lost", []sim.Fault{{Kind: sim.LostResponse, Methods: []string{"CreateTemplate"}}}},
		{"machines do not answer for a while", []sim.Fault{at(sim.Fault{Kind: sim.AgentLost, Groups: []string{"A"}})}},
		{"machines do not answer when waited for",
			[]sim.Fault{{Kind: sim.AgentLost, Nodes: []int{3}, Step: "workload.Wait"}}},
		{"clocks differ", []sim.Fault{{Kind: sim.ClockSkew, Nodes: []int{1}, Skew: -time.Minute},
			{Kind: sim.ClockSkew, Nodes: []int{2}, Skew: time.Hour}}},
	} {
		files := fstest.MapFS{"test.yml": {Data: []byte(loaded)}, "w.fio": {Data: []byte(jobs)}}
		h := modelled(t, files, sim.Options{Faults: c.fault})
		began := h.clock.Now()
		s, err := h.execute(t.Context())
		if c.fault == nil && s.Measured.State != "yes" {
			t.Errorf("without any fault: %+v", s.Measured)
		}
		if left := h.world.Remains(); len(left) > 0 || s.Cleaned.State != "yes" {
			t.Errorf("%s: left %q, cleaned %+v", c.name, left, s.Cleaned)
		}
		fmt.Fprintf(&story, "%s: %s, code %d, measured %s\n", c.name, s.Status, exit.Code(err), s.Measured.State)
		for _, e := range h.events {
			if e.Kind == result.KindFault {
				var node any
				if e.Data.Node != nil {
					node = *e.Data.Node
				}
				fmt.Fprintf(&story, "%6.0f %s %s %v\n", e.Time.Sub(began).Seconds(), e.Phase, e.Text, node)
			}
			if e.Kind == result.KindWorkload && e.Data.State == result.WorkloadLost {
				fmt.Fprintf(&story, "%6.0f a VM lost\n", e.Time.Sub(began).Seconds())
			}
			if e.Kind == result.KindStepEnd && e.Error != "" {
				text := strings.ReplaceAll(e.Error, "__curie_test_1700000000000_", "")
				fmt.Fprintf(&story, "%6.0f %s\n", e.Time.Sub(began).Seconds(), text)
			}
		}
		done := operations(t, h)
		if c.name == "none" {
			healthy = done
		}
		switch {
		case healthy == 0:
			t.Fatal("nothing was done without any fault")
		case done == 0:
			fmt.Fprint(&story, "       no operations\n")
		case done < 0.995*healthy:
			fmt.Fprint(&story, "       fewer operations than without\n")
		}
	}
	golden.Compare(t, filepath.Join("testdata", "faults.txt"), []byte(story.String()))
}

// operations are those that the run's data counts.
func operations(t *testing.T, h *harness) (n float64) {
	t.Helper()
	data, err := h.folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range data.Workloads {
		for _, o := range w.Ops {
			n += float64(o.Count)
		}
	}
	return n
}

// Clocks that are wrong from the start, or jump under way, move nothing: every VM's data lies where the others' lies,
// and the data say whose clock it was.
func TestClocksThatDiffer(t *testing.T) {
	files := fstest.MapFS{"test.yml": {Data: []byte(loaded)}, "w.fio": {Data: []byte(jobs)}}
	h := modelled(t, files, sim.Options{Faults: []sim.Fault{
		{Kind: sim.ClockSkew, Nodes: []int{1}, Skew: 45 * time.Second},
		{Kind: sim.ClockSkew, Nodes: []int{2}, Skew: -30 * time.Second, Step: "workload.Start", At: 100 * time.Second},
		{Kind: sim.ClockSkew, Nodes: []int{3}, Skew: time.Hour, Step: "workload.Start", At: 200 * time.Second,
			For: time.Minute},
	}})
	if _, err := h.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := h.folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]float64{}
	var start, end time.Time
	for _, w := range data.Workloads {
		if w.VM == "" {
			continue
		}
		if start.IsZero() {
			start, end = w.Start, w.End
		}
		got[w.Node] = math.Round(w.ClockSeconds)
		if w.Start.Sub(start).Abs() > time.Second || w.End.Sub(end).Abs() > time.Second {
			t.Errorf("node %d: from %v to %v, others from %v to %v", w.Node, w.Start, w.End, start, end)
		}
	}
	if diff := cmp.Diff(map[int]float64{0: 0, 1: 45, 2: -30, 3: 3600}, got); diff != "" {
		t.Errorf("clocks ahead, seconds (-want +got)\n%s", diff)
	}
	for _, s := range data.Series {
		if s.VM == "" || s.Measure != result.Rate {
			continue
		}
		for i, v := range s.Values {
			at := s.Start.Add(time.Duration(float64(i) * s.Step * float64(time.Second)))
			rate := math.NaN()
			if v != nil {
				rate = *v
			}
			// the job asks for 50
			if at.After(start.Add(30*time.Second)) && at.Before(end.Add(-30*time.Second)) && !(math.Abs(rate-50) <= 5) {
				t.Fatalf("%s of %s is %v, %v into its load", s.Metric(), s.VM, rate, at.Sub(start))
			}
		}
	}
}

// A fault shows in the metrics as sharply as their points lie, however rarely a long job reports.
func TestFaultInAMetric(t *testing.T) {
	long := strings.NewReplacer("estimated_runtime: 900", "estimated_runtime: 43500", "runtime_secs: 600",
		"runtime_secs: 43200").Replace(loaded)
	files := fstest.MapFS{"test.yml": {Data: []byte(long)}, "w.fio": {Data: []byte(jobs)}}
	hang := sim.Fault{Kind: sim.HungIO, Nodes: []int{0, 1, 2, 3}, Step: "workload.Start", At: 2*time.Hour +
		12*time.Second, For: 25 * time.Second}
	h := modelled(t, files, sim.Options{Faults: []sim.Fault{hang}})
	if s, err := h.execute(t.Context()); err != nil || s.Measured.State != "yes" {
		t.Fatalf("%v, %+v", err, s)
	}
	folder, err := result.Open(filepath.Join(h.req.Root, "run"))
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := folder.Events()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(events, func(e result.Event) bool { return e.Kind == result.KindFault })
	if at < 0 {
		t.Fatal("the fault is not in the journal")
	}
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const step = 5 * time.Second
	from := events[at].Time.Truncate(step).Add(-time.Minute)
	found, err := store.Range(t.Context(), `sum(increase(plimsoll_workload_ops_total[5001ms]))`, from,
		from.Add(2*time.Minute), step)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %d series", err, len(found))
	}
	var still []string
	for _, p := range found[0].Points {
		if p.Value == 0 {
			still = append(still, p.Time.Sub(events[at].Time.Truncate(step)).String())
		}
	}
	if diff := cmp.Diff([]string{"10s", "15s", "20s", "25s"}, still); diff != "" {
		t.Error(diff)
	}
}
