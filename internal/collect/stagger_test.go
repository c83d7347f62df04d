package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
	"plimsoll/scenario"
)

// A staggered workload is compared with itself only over the time in which all of its VMs worked: the ramp is shown, marked as partial,
// and an annotation during it opens no window of its own strength.
func TestStaggeredWindows(t *testing.T) {
	l := newLab(t)
	l.event(result.KindPhase, "run", "")
	var jobs []*labJob
	seconds := func(n int) {
		for range n {
			l.second(func() {
				for _, j := range jobs {
					j.do(&j.rep.Ops[0], 100, 4096, time.Millisecond)
					j.report()
				}
			})
		}
	}
	jobs = append(jobs, l.start("vm-0", "G", "W", 1))
	seconds(10)
	jobs = append(jobs, l.start("vm-1", "G", "W", 1))
	seconds(10)
	l.event(result.KindAnnotation, "run", "snapshot")
	seconds(10)
	jobs[0].end("finished")
	jobs = jobs[1:]
	seconds(10)
	jobs[0].end("finished")
	l.must(l.rec.Close())
	d := l.collect(&scenario.Scenario{Name: "s"})

	type window struct {
		Name    string
		Ops     uint64
		Partial bool
	}
	var got []window
	for _, w := range d.Workloads {
		if w.VM != "" {
			continue
		}
		for _, win := range w.Windows {
			got = append(got, window{win.Name, win.Ops[0].Count, win.Partial})
		}
		if n := len(w.Comparable()); n != 2 {
			t.Errorf("%d comparable windows, want 2", n)
		}
	}
	want := []window{
		{"while its VMs start", 1000, true}, {"alone", 2000, false}, {`alone, after "snapshot"`, 2000, false}, {"while its VMs end", 1000, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
