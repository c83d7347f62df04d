package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/tally"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// A staggered workload is compared with itself only over the time in which all of its VMs worked: the ramp is shown,
// marked as partial, and an annotation during it opens no window of its own strength.
func TestStaggeredWindows(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	var jobs []*recordtest.Job
	seconds := func(n int) {
		for range n {
			l.Second(func() {
				for _, j := range jobs {
					j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
					j.Report()
				}
			})
		}
	}
	jobs = append(jobs, l.Start("vm-0", "G", "W", 1))
	seconds(10)
	jobs = append(jobs, l.Start("vm-1", "G", "W", 1))
	seconds(10)
	l.Event(result.KindAnnotation, "run", "snapshot")
	seconds(10)
	jobs[0].End("finished")
	jobs = jobs[1:]
	seconds(10)
	jobs[0].End("finished")
	l.Must(l.Recorder.Close())
	d := collected(l, &scenario.Scenario{Name: "s"})

	type window struct {
		Name       string
		Start, End time.Duration // since the first VM began
		Ops        uint64
		Partial    bool
	}
	var got []window
	for _, w := range d.Workloads {
		if w.VM != "" {
			continue
		}
		for _, win := range w.Windows {
			from, to := win.Start.Sub(w.Start), win.End.Sub(w.Start)
			got = append(got, window{win.Name, from, to, win.Ops[0].Count, win.Partial})
		}
		if n := len(w.Comparable()); n != 2 {
			t.Errorf("%d comparable windows, want 2", n)
		}
	}
	want := []window{
		{"while its VMs start", 0, 10 * time.Second, 1000, true},
		{"alone", 10 * time.Second, 20 * time.Second, 2000, false},
		{`alone, after "snapshot"`, 20 * time.Second, 30 * time.Second, 2000, false},
		{"while its VMs end", 30 * time.Second, 40 * time.Second, 1000, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Of several ends the workload tells the one of which a reader must know most, with its words.
func TestWorstEndIsTold(t *testing.T) {
	ends := []result.Ending{result.Finished, result.Stopped, result.Unrecorded, result.Lost, result.Failed}
	for i := range ends {
		for k := range ends {
			tracks := []*track{
				{ended: ends[i], job: result.RawJob{Message: "first"}, meter: &tally.Meter{}},
				{ended: ends[k], job: result.RawJob{Message: "second"}, meter: &tally.Meter{}},
			}
			got := (&loadPlan{}).entry(tracks)
			want := map[bool]string{true: "second", false: "first"}[k > i]
			if got.Ended != ends[max(i, k)] || got.Message != want {
				t.Errorf("%s and %s: %s, %s", ends[i], ends[k], got.Ended, got.Message)
			}
		}
	}
}

// However many machines there are, a chart has enough points to see a shape, and never more than it can show.
func TestCellsOfTheGrid(t *testing.T) {
	for _, c := range []struct {
		vms  int
		span time.Duration
		want int
	}{{1, 100 * time.Second, 100}, {1, 720 * time.Second, 720}, {1, 721 * time.Second, 361}, {1, 10 * time.Hour, 720},
		{5000, time.Minute, 60}, {5000, time.Hour, 60}, {5000, 61 * time.Second, 31}, {1, 0, 1}} {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		p := &planned{found: &found{vms: make([]result.VM, c.vms),
			source: &source{start: start, end: start.Add(c.span)}}}
		p.planGrid(t.Context())
		if p.grid.n != c.want {
			t.Errorf("%d VMs for %v: %d cells of %v, want %d", c.vms, c.span, p.grid.n, p.grid.step, c.want)
		}
	}
}
