package collect

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/metrics/tally"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

var oltpStreams = []result.Stream{{Name: "data", Reads: true}, {Name: "log", Writes: true}, {Name: "log", Writes: true}}

// starving runs OLTP in three sections on two VMs for 30 s; the second section does nothing from second 10 to 13.
func starving(t *testing.T) *recordtest.Lab {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	for i := range 2 {
		l.Recorder.VM(recordtest.VMName(i), "DB", i, true)
	}
	jobs := []*recordtest.Job{l.Start(recordtest.VMName(0), "DB", "OLTP", 1, oltpStreams...),
		l.Start(recordtest.VMName(1), "DB", "OLTP", 1, oltpStreams...)}
	for s := range 30 {
		l.Second(func() {
			for _, j := range jobs {
				r := &j.Next
				j.Do(&r.Ops[0], 100, 800<<10, time.Millisecond)
				j.Do(&r.Sections[0][0], 100, 800<<10, time.Millisecond)
				if s < 10 || s >= 13 {
					j.Do(&r.Ops[1], 40, 80<<10, time.Millisecond)
					j.Do(&r.Sections[1][1], 40, 80<<10, time.Millisecond)
				}
				j.Do(&r.Ops[1], 5, 40<<10, 8*time.Millisecond)
				j.Do(&r.Sections[2][1], 5, 40<<10, 8*time.Millisecond)
				j.Report()
			}
		})
	}
	for _, j := range jobs {
		j.End("finished")
	}
	l.Event(result.KindPhase, "teardown", "")
	l.Must(l.Recorder.Close())
	return l
}

// What every section did is known by construction; the totals and their series are as they would be without.
func TestSections(t *testing.T) {
	l := starving(t)
	if got, want := l.Read(`sum(irate(plimsoll_section_ops_total{section="log", op="write"}[3s]))`,
		30), "- 80*10 0*3 80*17"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if got, want := l.Read(`sum(histogram_count(plimsoll_section_service_time_seconds{section="log (2)"}))`,
		2), "- 10 20"; got != want {
		t.Errorf("histograms count %s, want %s", got, want)
	}
	// no reads of logs, no writes of data
	if got, want := l.Read(`count({__name__=~"plimsoll_section_.*"})`, 2), "12 18*2"; got != want {
		t.Errorf("%s series, want %s", got, want)
	}
	d := collected(l, nil)
	var lines []string
	for _, s := range d.Series {
		if s.Section != "" && s.Workload == "OLTP" && s.Group == "DB" && s.VM == "" {
			lines = append(lines, s.Section+" "+s.Metric()+", "+recordtest.Line(s))
		}
	}
	const run = " @20:45:01 +1s: "
	want := []string{
		"data read_iops, OLTP: data" + run + "200*30", "data read_bandwidth, OLTP: data" + run + "1638400*30",
		"data read_latency_mean, OLTP: data" + run + "1000*30",
		"log write_iops, OLTP: log" + run + "80*10 0*3 80*17", "log write_bandwidth, OLTP: log" + run +
			"163840*10 0*3 163840*17", "log write_latency_mean, OLTP: log" + run + "1000*10 -*3 1000*17",
		"log (2) write_iops, OLTP: log (2)" + run + "10*30", "log (2) write_bandwidth, OLTP: log (2)" + run +
			"81920*30", "log (2) write_latency_mean, OLTP: log (2)" + run + "8000*30",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	for _, w := range d.Workloads {
		var got []string
		for _, s := range w.Sections {
			for _, o := range s.Ops {
				p99, _ := o.Hist.Quantile(0.99)
				got = append(got, fmt.Sprintf("%s %s %d %d %.3g %d %.1f", s.Name, o.Op, o.Count, o.Bytes, o.Seconds,
					o.Hist.Count(), float64(p99)/1e6))
			}
		}
		want := []string{"data read 6000 49152000 6 6000 1.0", "log write 2160 4423680 2.16 2160 1.0",
			"log (2) write 300 2457600 2.4 300 8.0"}
		if w.VM != "" {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q on %q: %s", w.Name, w.VM, diff)
		}
	}
}

// A report that lacks its sections is said, once.
func TestSectionsMissing(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start(recordtest.VMName(0), "DB", "OLTP", 1, oltpStreams...)
	j.Next.Sections = nil
	for range 5 {
		l.Second(func() { j.Do(&j.Next.Ops[0], 10, 10, time.Millisecond); j.Report() })
	}
	j.End("finished")
	l.Must(l.Recorder.Close())
	w := collected(l, nil).Workloads[1]
	if !strings.Contains(strings.Join(w.Notes, "\n"), "a report that does not tell the sections apart (5 times)") ||
		w.Ops[0].Count != 50 {
		t.Errorf("%+v", w)
	}
}

// What is spread over cells is neither lost nor made, and lies where it was done.
func TestSpreadConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := grid{
			start: recordtest.Epoch,
			step:  time.Duration(rapid.IntRange(1, 5).Draw(t, "step")) * time.Second,
			n:     20,
		}
		from := recordtest.Epoch.Add(time.Duration(rapid.IntRange(0, 10_000).Draw(t, "from")) * time.Millisecond)
		to := from.Add(time.Duration(rapid.IntRange(0, 9_000).Draw(t, "long")) * time.Millisecond)
		cells := make([]tally.Totals, g.n)
		before, after := tally.Totals{1, 2, 3}, tally.Totals{101, 12, 4}
		g.spread(cells, from, to, before, after)
		sum := tally.Totals{0, 0, 0}
		for i, c := range cells {
			if c == nil {
				continue
			}
			sum.Add(c)
			if g.edge(i).After(to) || g.edge(i+1).Before(from) {
				t.Fatalf("cell %d holds %v of %v to %v", i, c, from, to)
			}
		}
		for i := range sum {
			if math.Abs(sum[i]-(after[i]-before[i])) > 1e-9 {
				t.Fatalf("%v became %v", after.Minus(before), sum)
			}
		}
	})
}

// A job of two seconds gives its figures: its first report is not all that others are held against.
func TestShortJob(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	l.Recorder.VM(recordtest.VMName(0), "G", 0, true)
	j := l.Start(recordtest.VMName(0), "G", "W", 1)
	for range 2 {
		l.Second(func() { j.Do(&j.Next.Ops[0], 100, 100<<10, time.Millisecond); j.Report() })
	}
	j.End("finished")
	l.Event(result.KindPhase, "teardown", "")
	l.Must(l.Recorder.Close())
	d := collected(l, &scenario.Scenario{Name: "lab",
		Results:   []scenario.Result{resultOf(scenario.WorkloadResult, "iops", "G", "W", "sum")},
		Workloads: []scenario.Workload{{Name: "W", ReportingInterval: time.Second}}})
	if got, want := recordtest.Line(d.Panels[0].Series[0]), "workload_iops_sum @20:45:00 +1s: - 100*2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
