package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// Labels and names are those that published queries filter by.
func TestRecordedSeries(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm-0", "Group 0", 2, true)
	j := l.Start("vm-0", "Group 0", "W", 1)
	l.Second(func() {
		j.Do(&j.Next.Ops[0], 10, 40960, time.Millisecond)
		j.Do(&j.Next.Ops[2], 3, 12288, 0)
		j.Next.Errors = 2
		j.Report()
	})
	got, err := l.Store.Instant(t.Context(), `{job="xray"}`, l.Now)
	l.Must(err)
	var names []string
	for _, s := range got {
		want := []series.Label{{Name: "cluster_name", Value: "c"}, {Name: "instance", Value: "vm-0"},
			{Name: "scenario_display_name", Value: "Lab"},
			{Name: "scenario_id", Value: "42"}, {Name: "scenario_name", Value: "lab"},
			{Name: "vm_group", Value: "Group 0"}}
		for _, w := range want {
			if s.Label(w.Name) != w.Value {
				t.Errorf("%s: label %s is %q, want %q", s.Label("__name__"), w.Name, s.Label(w.Name), w.Value)
			}
		}
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s %g", s.Label("__name__"), s.Label("device"),
			s.Label("op"), s.Points[0].Value)))
	}
	want := []string{
		"node_disk_read_bytes_total data  40960", "node_disk_read_time_seconds_total data  0.01",
		"node_disk_reads_completed_total data  10",
		"node_disk_write_time_seconds_total data  0", "node_disk_writes_completed_total data  0",
		"node_disk_written_bytes_total data  0",
		"plimsoll_vm_node data  2", "plimsoll_workload_active   1", "plimsoll_workload_bytes_total  read 40960",
		"plimsoll_workload_bytes_total  trim 12288",
		"plimsoll_workload_bytes_total  write 0", "plimsoll_workload_errors_total   2",
		"plimsoll_workload_ops_total  read 10", "plimsoll_workload_ops_total  trim 3",
		"plimsoll_workload_ops_total  write 0",
	}
	if d := cmp.Diff(want, names, sorted); d != "" {
		t.Error(d)
	}
	if got := l.Read(`histogram_count(plimsoll_workload_service_time_seconds{op="read", workload="W"})`,
		1); got != "- 10" {
		t.Error(got)
	}
}

var (
	sorted = cmp.Transformer("sorted", func(in []string) []string { return slices.Sorted(slices.Values(in)) })
)

// Reports that come off the grid, late and unevenly give a steady rate where the load was steady.
func TestUnevenReports(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	offsets := []int{700, 1900, 2500, 4100, 4900, 6200, 7000, 8800, 9300, 10600, 12000} // ms; 100 operations per second
	next := 0
	for s := 1; s <= 12; s++ {
		for next < len(offsets) && offsets[next] <= s*1000 {
			made := recordtest.Epoch.Add(time.Duration(offsets[next]) * time.Millisecond)
			l.Now = made.Add(time.Duration(10*(next%4)) * time.Millisecond) // the delay of delivery varies
			j.Next.Ops[0].Ops = uint64(offsets[next] / 10)
			j.Next.Time, j.Next.Elapsed = made, made.Sub(recordtest.Epoch)
			j.Sink.Report(j.Next)
			next++
		}
		l.Now = recordtest.Epoch.Add(time.Duration(s)*time.Second + 50*time.Millisecond)
		l.Must(l.Recorder.Tick())
	}
	j.Sink.End()
	l.Must(l.Recorder.Close())
	if got, want := l.Read(`irate(node_disk_reads_completed_total[30s])`, 12), "- 100*12"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A tool that starts late and whose first report is held back for a second does not look like a burst.
func TestLateFirstReport(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	const startup = 200 * time.Millisecond
	for s := 1; s <= 10; s++ {
		made := recordtest.Epoch.Add(startup + time.Duration(s)*time.Second)
		held := 1100 * time.Millisecond
		if s > 1 {
			held = 5 * time.Millisecond
		}
		l.Now = made.Add(held)
		j.Next.Ops[0].Ops, j.Next.Time, j.Next.Elapsed = uint64(100*s), made, time.Duration(s)*time.Second
		j.Sink.Report(j.Next)
		l.Must(l.Recorder.Tick())
	}
	j.Sink.End()
	l.Must(l.Recorder.Close())
	if got, want := l.Read(`irate(node_disk_reads_completed_total[30s])`, 10), "- 80 100*9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Counters go on over restarts; an idle machine has points; a machine that is off has none.
func TestRestartIdleAndPower(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	run := func(attempt int, seconds int) {
		j := l.Start("vm", "G", "W", attempt)
		for range seconds {
			l.Second(func() {
				j.Do(&j.Next.Ops[1], 10, 4096, time.Millisecond)
				j.Report()
			})
		}
		j.End("finished")
	}
	idle := func(n int) {
		for range n {
			l.Second(func() {})
		}
	}
	idle(2)
	run(1, 3)
	idle(2)
	run(2, 2)
	l.Recorder.VM("vm", "G", 0, false)
	idle(3)
	l.Recorder.VM("vm", "G", 1, true)
	idle(2)
	l.Must(l.Recorder.Close())
	for _, c := range []struct{ query, want string }{
		{`last_over_time(node_disk_writes_completed_total[1s])`, "0*3 10 20 30*3 40 50 -*3 50*2"},
		{`last_over_time(plimsoll_vm_node[1s])`, "0*10 -*3 1*2"},
		{`last_over_time(plimsoll_workload_active[1s])`, "-*3 1*3 0*2 1*2 0 -*2 0*2"},
		{`histogram_count(last_over_time(plimsoll_workload_service_time_seconds{op="write"}[1s]))`,
			"-*3 10 20 30 -*2 40 50 -*5"},
	} {
		if got := l.Read(c.query, 14); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}

// A tool that falls silent does not hold back the points of its machine for ever, and counts from where it was when it
// comes back.
func TestSilentTool(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	work := func(n int) {
		for range n {
			l.Second(func() {
				j.Do(&j.Next.Ops[0], 10, 4096, time.Millisecond)
				j.Report()
			})
		}
	}
	work(3)
	for range 6 {
		l.Second(func() {})
	}
	if live := l.Recorder.Live(); len(live) != 1 || live[0].Silent != 1 || live[0].Rates[0].PerSecond != 0 {
		t.Errorf("%+v", live)
	}
	work(2)
	j.End("finished")
	l.Must(l.Recorder.Close())
	if got, want := l.Read(`last_over_time(node_disk_reads_completed_total[1s])`,
		11), "0 10 20 30*7 40 50"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A tool without a clock that began to count late is heard of all the same.
func TestLateToolIsNotSilent(t *testing.T) {
	l := recordtest.New(t)
	j := l.Start("vm-0", "G", "W", 1)
	j.Clockless = true
	l.Now = l.Now.Add(20 * time.Second)
	for n := range 5 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.ReportAt(time.Duration(n+1) * time.Second)
		})
	}
	if live := l.Recorder.Live(); len(live) != 1 || live[0].Silent != 0 || live[0].Rates[0].PerSecond != 100 {
		t.Errorf("%+v", live)
	}
}

// The points that wait for a silent tool are written as the machine was then, not as it is when they are.
func TestSwitchedOffWhileSilent(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	for range 2 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 10, 4096, time.Millisecond)
			j.Report()
		})
	}
	for range 2 {
		l.Second(func() {})
	}
	l.Recorder.VM("vm", "G", 0, false)
	l.Second(func() {})
	j.End("lost")
	l.Must(l.Recorder.Close())
	if got, want := l.Read(`last_over_time(plimsoll_vm_node[1s])`, 5), "0*4 -*2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLive(t *testing.T) {
	l := recordtest.New(t)
	a, b := l.Start("a", "G", "W", 1), l.Start("b", "G", "W", 1)
	other := l.Start("c", "H", "V", 1)
	for range 3 {
		l.Second(func() {
			for _, j := range []*recordtest.Job{a, b} {
				j.Do(&j.Next.Ops[0], 100, 100*8192, time.Millisecond)
				j.Do(&j.Next.Ops[1], 50, 50*4096, 3*time.Millisecond)
				j.Do(&j.Next.Ops[2], 10, 10*4096, time.Second) // trims, which no latency is told of
				j.Report()
			}
			other.Next.Errors++
			other.Report()
		})
	}
	ops := result.BlockOperations()
	want := []record.LiveRow{
		{Workload: "V", Group: "H", VMs: 1, Since: 3 * time.Second,
			Rates: []record.LiveRate{{Operation: ops[0]}, {Operation: ops[1]}, {Operation: ops[2]}}, Errors: 3},
		{Workload: "W", Group: "G", VMs: 2, Since: 3 * time.Second,
			Rates: []record.LiveRate{{ops[0], 200, 200 * 8192}, {ops[1], 100, 100 * 4096}, {ops[2], 20, 20 * 4096}},
			Mean:  1666666, P50: 1003520, P99: 3 * time.Millisecond, Ops: 960,
			Bytes: 3 * (200*8192 + 100*4096 + 20*4096)},
	}
	near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 50*time.Microsecond })
	if d := cmp.Diff(want, l.Recorder.Live(), near); d != "" {
		t.Error(d)
	}
	for _, j := range []*recordtest.Job{a, b, other} {
		j.End("stopped")
	}
	if live := l.Recorder.Live(); len(live) != 0 {
		t.Errorf("after the end: %+v", live)
	}
}

// BenchmarkTick is one second of so many machines with one running workload each, reports and points.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := recordtest.New(b)
			var jobs []*record.Job
			for i := range n {
				jobs = append(jobs, l.Start(recordtest.VMName(i), "G", "W", 1).Sink)
			}
			h := &hist.Histogram{}
			for k := range 200 {
				h.Add(uint64(100_000+k*10_000), 5)
			}
			rep := workload.Report{Ops: workload.Counts{{Hist: h}, {Hist: h}, {}}}
			b.ReportAllocs()
			began := recordtest.CPU()
			for b.Loop() {
				l.Now = l.Now.Add(time.Second)
				h = h.Clone()
				h.Add(1_500_000, 10)
				rep.Ops = slices.Clone(rep.Ops)
				rep.Time, rep.Ops[0].Ops, rep.Ops[1].Ops = l.Now, rep.Ops[0].Ops+10, rep.Ops[1].Ops+10
				rep.Ops[0].Hist, rep.Ops[1].Hist = h, h
				for _, j := range jobs {
					j.Report(rep)
				}
				l.Must(l.Recorder.Tick())
			}
			b.ReportMetric(float64((recordtest.CPU()-began).Microseconds())/float64(b.N)/float64(n), "cpu-us/vm")
		})
	}
}

// A tool's last two reports may be a moment apart: no rate is made out of that moment.
func TestLiveIgnoresMoments(t *testing.T) {
	l := recordtest.New(t)
	l.Recorder.VM("vm", "G", 0, true)
	j := l.Start("vm", "G", "W", 1)
	for range 3 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 1<<20, time.Millisecond)
			j.Report()
		})
	}
	j.Do(&j.Next.Ops[0], 50, 1<<20, time.Millisecond)
	l.Now = l.Now.Add(time.Microsecond)
	j.Report()
	if live := l.Recorder.Live(); len(live) != 1 || live[0].Rates[0].PerSecond > 151 ||
		live[0].Rates[0].PerSecond < 100 {
		t.Errorf("two reports a microsecond apart show as %+v", live)
	}
}

// Points between two reports make the course between them known; without them it is taken to be even.
func TestPointsBetweenReports(t *testing.T) {
	for _, known := range []bool{false, true} {
		l := recordtest.New(t)
		l.Recorder.VM("vm", "G", 0, true)
		j := l.Start("vm", "G", "W", 1)
		j.Sink.Cadence(10 * time.Second)
		for i := range 10 {
			l.Second(func() {
				if i != 9 {
					return
				}
				j.Do(&j.Next.Ops[0], 100, 409600, time.Millisecond)
				if known { // nothing for five seconds, then 20 a second
					var list []workload.Point
					for s := 1; s <= 9; s++ {
						n := uint64(max(0, s-5) * 20)
						list = append(list, workload.Point{Time: l.Now.Add(time.Duration(s-10) * time.Second),
							Ops: [3]uint64{n}})
					}
					j.Sink.Points(list)
				}
				j.Report()
			})
		}
		want := "0 10 20 30 40 50 60 70 80 90 100"
		if known {
			want = "0*6 20 40 60 80 100"
		}
		if got := l.Read(record.ReadsCompleted, 10); got != want {
			t.Errorf("points %v: %s, want %s", known, got, want)
		}
	}
}
