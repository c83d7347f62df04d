package collect

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/tally"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// turn is one start of workload W on a VM, in seconds of the run; it does 100 operations a second. silent: it never
// reports.
type turn struct {
	vm, attempt, from, to int
	ended                 result.Ending
	silent                bool
}

// lived is the run in which these starts were made, those of "starts" as a whole being in the journal.
func lived(t *testing.T, turns []turn, starts ...int) *result.Data {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	last := 0
	for _, one := range turns {
		last = max(last, one.to)
	}
	jobs := make([]*recordtest.Job, len(turns))
	for s := range last + 1 {
		if slices.Contains(starts, s) {
			l.Must(l.Folder.AppendEvent(result.Event{Time: l.Now, Kind: result.KindWorkload, Text: "start",
				Data: result.EventData{State: result.WorkloadStart, Workload: "W"}}))
		}
		for i, one := range turns {
			if one.from == s {
				jobs[i] = l.Start(recordtest.VMName(one.vm), "G", "W", one.attempt)
			}
			if one.to == s {
				jobs[i].End(one.ended)
				jobs[i] = nil
			}
		}
		if s == last {
			break
		}
		l.Second(func() {
			for i, j := range jobs {
				if j != nil && !turns[i].silent {
					j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
					j.Report()
				}
			}
		})
	}
	l.Must(l.Recorder.Close())
	return collected(l, &scenario.Scenario{Name: "s"})
}

// A workload is judged by the time in which all its VMs ran, without the pauses between its starts. A lost VM ends
// none.
func TestTimeByWhichAWorkloadIsJudged(t *testing.T) {
	finished := result.Finished
	type span struct{ From, To int }
	type judged struct {
		Spans     []span
		Ops       uint64
		Rate      float64 // a second
		Starts    int
		Staggered bool
		Apart     bool
		Windows   []string
	}
	for name, c := range map[string]struct {
		turns  []turn
		starts []int
		want   judged
	}{
		"together": {[]turn{{0, 1, 0, 20, finished, false}, {1, 1, 0, 20, finished, false}}, nil, judged{Ops: 4000,
			Rate: 200}},
		"staggered": {[]turn{{0, 1, 0, 30, finished, false}, {1, 1, 10, 40, finished, false}}, nil,
			judged{Spans: []span{{10, 30}}, Ops: 4000, Rate: 200, Staggered: true,
				Windows: []string{"while its VMs start", "alone", "while its VMs end"}}},
		"staggered in threes, one lost": {[]turn{{0, 1, 0, 60, finished, false}, {1, 1, 10, 70, finished, false},
			{2, 1, 20, 40, "lost", false}}, nil,
			judged{Spans: []span{{20, 60}}, Ops: 10_000, Rate: 250, Staggered: true,
				Windows: []string{"while its VMs start", "alone", "while its VMs end"}}},
		"all lost": {[]turn{{0, 1, 0, 30, "lost", false}, {1, 1, 10, 30, "lost", false}}, nil,
			judged{Spans: []span{{10, 30}}, Ops: 4000, Rate: 200, Staggered: true,
				Windows: []string{"while its VMs start", "alone"}}},
		"one never begins": {[]turn{{0, 1, 0, 30, finished, false}, {1, 1, 10, 40, finished, false}, {2, 1, 11, 12,
			"failed", true}}, nil,
			judged{Spans: []span{{11, 30}}, Ops: 3800, Rate: 200, Staggered: true,
				Windows: []string{"while its VMs start", "alone", "while its VMs end"}}},
		"never together": {[]turn{{0, 1, 0, 10, finished, false}, {1, 1, 20, 30, finished, false}}, nil,
			judged{Ops: 2000, Rate: 2000.0 / 30, Apart: true}},
		"twice": {[]turn{{0, 1, 0, 10, finished, false}, {0, 2, 30, 50, finished, false}}, nil,
			judged{Spans: []span{{0, 10}, {30, 50}}, Ops: 3000, Rate: 100, Starts: 2,
				Windows: []string{"alone in start 1", "alone in start 2"}}},
		"three times, the last staggered": {[]turn{{0, 1, 0, 10, finished, false}, {1, 1, 0, 10, finished, false},
			{0, 2, 20, 30, "stopped", false}, {1, 2, 20, 30, "stopped", false}, {0, 3, 40, 60, finished, false}, {1, 3,
				45, 65, finished, false}}, nil,
			judged{Spans: []span{{0, 10}, {20, 30}, {45, 60}}, Ops: 7000, Rate: 200, Starts: 3, Staggered: true,
				Windows: []string{"alone in start 1", "alone in start 2", "while its VMs start in start 3",
					"alone in start 3",
					"while its VMs end in start 3"}}},
		"a VM joins the second start": {[]turn{{0, 1, 0, 10, finished, false}, {1, 1, 20, 30, finished, false}, {0, 2,
			20, 30, finished, false}},
			[]int{0, 20}, judged{Spans: []span{{0, 10}, {20, 30}}, Ops: 3000, Rate: 150, Starts: 2,
				Windows: []string{"alone in start 1", "alone in start 2"}}},
	} {
		d := lived(t, c.turns, c.starts...)
		for _, w := range d.Workloads {
			if w.VM != "" {
				continue
			}
			j := w.Judged()
			got := judged{
				Starts:    w.Starts,
				Staggered: w.Staggered,
				Apart:     w.Apart,
				Ops:       j.Ops[0].Count,
				Rate:      float64(j.Ops[0].Count) / j.Seconds(),
			}
			if j.Ops[0].Hist.Count() != j.Ops[0].Count {
				t.Errorf("%s: %d times of %d operations", name, j.Ops[0].Hist.Count(), j.Ops[0].Count)
			}
			for _, s := range w.Spans {
				got.Spans = append(got.Spans,
					span{int(s.Start.Sub(recordtest.Epoch).Seconds()), int(s.End.Sub(recordtest.Epoch).Seconds())})
			}
			for _, win := range w.Windows {
				got.Windows = append(got.Windows, win.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
}

// A VM whose generator waits for a CPU for ten seconds after its start is not at work with the others in that time: of
// 100 operations a second each, 200 are done a second from 10 to 30, as seq and awk have it.
func TestVMsThatBeginToWorkLate(t *testing.T) {
	for _, late := range []int{0, 1, 10} {
		l := recordtest.New(t)
		l.Event(result.KindPhase, "run", "")
		a, b := l.Start(recordtest.VMName(0), "G", "W", 1), l.Start(recordtest.VMName(1), "G", "W", 1)
		for s := 1; s <= 30+late; s++ {
			l.Second(func() {
				for _, j := range []*recordtest.Job{a, b} {
					at := s
					if j == b {
						at -= late
					}
					if at > 0 && at <= 30 {
						j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
						j.ReportAt(time.Duration(at) * time.Second)
					}
				}
			})
			if s == 30 {
				a.End(result.Finished)
			}
		}
		b.End(result.Finished)
		l.Must(l.Recorder.Close())
		d := collected(l, &scenario.Scenario{Name: "s"})
		w := d.Workloads[slices.IndexFunc(d.Workloads, func(w result.Workload) bool { return w.VM == "" })]
		if j := w.Judged(); w.Staggered != (late == 10) ||
			late == 10 && (j.Ops[0].Count != 4000 || j.Seconds() != 20) {
			t.Errorf("%d s late: staggered %v, %d operations in %v s", late, w.Staggered, j.Ops[0].Count, j.Seconds())
		}
		if len(d.Problems) > 0 {
			t.Error(d.Problems)
		}
	}
}

// Of many starts the windows hold pauses, and say so, so that a count divided by the length stays the rate.
func TestPausesInWindows(t *testing.T) {
	var turns []turn
	for i := range 20 {
		turns = append(turns, turn{0, i + 1, 10 * i, 10*i + 4, "finished", false})
	}
	d := lived(t, turns)
	for _, w := range d.Workloads {
		if j := w.Judged(); j.Seconds() != 80 || w.Starts != 20 || j.Ops[0].Count != 8000 {
			t.Errorf("%q: %d operations in %g s of %d starts, want 8000 in 80 of 20", w.VM, j.Ops[0].Count, j.Seconds(),
				w.Starts)
		}
		count := uint64(0)
		for _, win := range w.Windows {
			if rate := float64(win.Ops[0].Count) / win.Seconds(); rate != 100 {
				t.Errorf("%q, %s: %g a second, want 100", w.VM, win.Name, rate)
			}
			count += win.Ops[0].Count
		}
		if count != 8000 {
			t.Errorf("%q: windows add up to %d, want 8000", w.VM, count)
		}
	}
}

// Sections end with their sizes: each is told to have worked as long as it had something to do, to the report, and what
// all did while all VMs ran adds up to what the workload did.
func TestSectionsThatEnd(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	streams := []result.Stream{
		{Name: "small", Depth: 4, Reads: true, Brief: true},
		{Name: "large", Depth: 4, Reads: true, Brief: true},
		{Name: "idle", Depth: 1, Reads: true, Brief: true},
	}
	jobs := []*recordtest.Job{l.Start(recordtest.VMName(0), "G", "W", 1, streams...)}
	until := []int{6, 20}
	for s := range 20 {
		if s == 10 {
			jobs = append(jobs, l.Start(recordtest.VMName(1), "G", "W", 1, streams...))
		}
		l.Second(func() {
			for i, j := range jobs {
				for k, end := range until {
					if at := s - 10*i; at < end {
						j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
						j.Do(&j.Next.Sections[k][0], 100, 4096, time.Millisecond)
					}
				}
				j.Report()
			}
		})
		if s == 19 {
			jobs[0].End("finished")
			jobs = jobs[1:]
		}
	}
	for range 10 {
		l.Second(func() {
			j := jobs[0]
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Do(&j.Next.Sections[1][0], 100, 4096, time.Millisecond)
			j.Report()
		})
	}
	jobs[0].End("finished")
	l.Must(l.Recorder.Close())
	for _, w := range collected(l, &scenario.Scenario{Name: "s"}).Workloads {
		if w.VM != "" {
			var worked []float64
			for _, stream := range w.Streams {
				worked = append(worked, stream.Worked)
			}
			if diff := cmp.Diff([]float64{6, 20, 0}, worked); diff != "" {
				t.Errorf("%s: -want +got\n%s", w.VM, diff)
			}
			continue
		}
		var sum uint64
		for _, s := range w.Judged().Sections {
			for _, o := range s.Ops {
				sum += o.Count
			}
		}
		if j := w.Judged(); sum != j.Ops[0].Count || sum != 100*(10+10+6) {
			t.Errorf("sections did %d while all VMs ran, the workload %d, want 2600", sum, j.Ops[0].Count)
		}
	}
}

// A rate that a tool tells counts for the time in which its VM ran: one that was lost did nothing afterwards. What
// grows is counted, what cannot be added is told of a single VM only.
func TestMeasuresOfLostMachines(t *testing.T) {
	measures := []result.Measure{
		{Name: "tps", Unit: "tps", Kind: result.Level},
		{Name: "n", Unit: "n", Kind: result.Count},
		{Name: "p95", Unit: "ms", Kind: result.Single},
	}
	shares := []result.Measure{{Name: "cpu", Unit: "%", Kind: result.Level}}
	load := func(vm string, seconds int, untold float64, measures []result.Measure) *track {
		k := &track{
			job:      result.RawJob{VM: vm, Measures: measures},
			reported: []bool{true, true, true},
			single:   make([][]figure, 3),
			meter:    tally.NewMeter(tally.Layout{Measures: measures}, nil, measures),
		}
		did := k.meter.Layout.Zero()
		did[1], did[1+len(measures)] = 10*(float64(seconds)-untold), untold
		if len(measures) > 1 {
			did[2] = float64(seconds)
		}
		k.marks = []counted{
			{At: recordtest.Epoch, Totals: k.meter.Layout.Zero()},
			{At: recordtest.Epoch.Add(time.Duration(seconds) * time.Second), Totals: did},
		}
		k.single[2] = []figure{{k.to(), float64(seconds)}}
		return k
	}
	ran := func(vm string, seconds int) *track { return load(vm, seconds, 0, measures) }
	cpu := func(vm string, untold float64) *track { return load(vm, 100, untold, shares) }
	all := func(k *track) (tally.Mark, tally.Mark, time.Duration) {
		return k.marks[0].mark(), k.marks[1].mark(), k.to().Sub(k.from())
	}
	for name, c := range map[string]struct {
		tracks []*track
		want   []result.Value
	}{
		"one": {[]*track{ran("a", 100)}, []result.Value{{Measure: "tps", Value: 10}, {Measure: "n",
			Value: 100}, {Measure: "p95", Value: 100}}},
		"two": {[]*track{ran("a", 100), ran("b", 99)}, []result.Value{{Measure: "tps", Value: 20},
			{Measure: "n", Value: 199}}},
		"one was lost": {[]*track{ran("a", 100), ran("b", 40)}, []result.Value{{Measure: "tps", Value: 14},
			{Measure: "n", Value: 140}}},
		"a level in a part of the time": {[]*track{load("a", 100, 75, measures)}, []result.Value{
			{Measure: "tps", Value: 10}, {Measure: "n", Value: 100}, {Measure: "p95", Value: 100}}},
		"a level of one of two": {[]*track{ran("a", 100), load("b", 100, 100, measures)}, []result.Value{
			{Measure: "n", Value: 200}}},
		"a share of one of two": {[]*track{cpu("a", 30), cpu("b", 100)}, []result.Value{{Measure: "cpu", Value: 10}}},
		"a share never told":    {[]*track{cpu("a", 100)}, nil},
	} {
		if diff := cmp.Diff(c.want, values(c.tracks, 100, all)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
