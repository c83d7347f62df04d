package stage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/stage"
	"plimsoll/result"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// scaleOut is a run in which a VM with four operations outstanding joins every 50 s, each good for 100 per second.
func scaleOut(steps int) *result.Data {
	d := &result.Data{Start: start, End: after(50 * steps)}
	for i := range steps {
		vm := fmt.Sprintf("vm-%d", i)
		d.Workloads = append(
			d.Workloads,
			result.Workload{
				Name:    fmt.Sprintf("W%d", i),
				VM:      vm,
				Phase:   "run",
				Start:   after(50*i + i%2),
				End:     after(50 * steps),
				Streams: []result.Stream{{Depth: 3}, {}},
			},
		)
		s := result.Series{VM: vm, Op: "read", Measure: result.Rate, Start: start, Step: 1}
		for t := range 50 * steps {
			v := 100.0
			if t < 50*i {
				s.Values = append(s.Values, nil)
				continue
			}
			if t < 50*i+10 {
				v = 0 // settling
			}
			s.Values = append(s.Values, &v)
		}
		d.Series = append(d.Series, s,
			result.Series{VM: vm, Op: "read", Measure: result.LatencyMean, Start: start, Step: 1, Values: s.Values})
	}
	return d
}

func TestStages(t *testing.T) {
	t.Parallel()
	type point struct{ N, X float64 }
	var got []point
	for _, s := range stage.Of(scaleOut(5), "") {
		got = append(got, point{s.Concurrency, s.Throughput.Value})
	}
	want := []point{{4, 100}, {8, 200}, {12, 300}, {16, 400}, {20, 500}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A stage in which no point lies has the throughput that its workloads counted, if all did.
func TestCountedStages(t *testing.T) {
	t.Parallel()
	d := scaleOut(3)
	d.Series = nil
	for i := range d.Workloads {
		for s := i; s < 3; s++ {
			from, to := after(50*s+2), after(50*s+50) // at the nearest reports
			d.Workloads[i].Windows = append(d.Workloads[i].Windows, result.Window{Start: from, End: to,
				Ops: []result.OpTotals{{Count: 48 * 60}, {Count: 48 * 40}}})
		}
	}
	d.Workloads[1].Windows = d.Workloads[1].Windows[:1]
	var got []string
	for _, s := range stage.Short(d, "") {
		got = append(got, fmt.Sprint(s.Concurrency, s.Points, s.Throughput.Value))
	}
	if diff := cmp.Diff([]string{"4 0 100", "8 0 200", "12 0 NaN"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoStages(t *testing.T) {
	t.Parallel()
	short := scaleOut(2)
	short.Series = nil
	prefill := scaleOut(2)
	for i := range prefill.Workloads {
		prefill.Workloads[i].Prefill = true
	}
	zero := scaleOut(2)
	for i := range zero.Series {
		zero.Series[i].Step = 0
	}
	for name, d := range map[string]*result.Data{"nothing": nil, "empty": {}, "no series": short,
		"prefill only": prefill, "no step": zero} {
		if got := stage.Of(d, ""); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func ExampleOf() {
	for _, s := range stage.Of(scaleOut(3), "") {
		fmt.Printf("%d workloads, %g outstanding, %g per second\n", s.Workloads, s.Concurrency, s.Throughput.Value)
	}
	// Output:
	// 1 workloads, 4 outstanding, 100 per second
	// 2 workloads, 8 outstanding, 200 per second
	// 3 workloads, 12 outstanding, 300 per second
}

// A VM is no load in the pause between two of its starts.
func TestPauseIsNoStage(t *testing.T) {
	t.Parallel()
	d := scaleOut(3)
	d.Workloads[0].Spans = []result.Span{{Start: after(0), End: after(50)}, {Start: after(100), End: after(150)}}
	var got []float64
	for _, s := range stage.Of(d, "") {
		got = append(got, s.Concurrency)
	}
	if diff := cmp.Diff([]float64{4, 4, 12}, got); diff != "" {
		t.Error(diff)
	}
}
