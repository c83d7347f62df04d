package collect

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/result"
	"plimsoll/scenario"
)

// neighbour runs an OLTP load on two VMs for a minute; a DSS load joins on a third for the second half.
func neighbour(t *testing.T) *lab {
	l := newLab(t)
	l.event(result.KindPhase, "setup", "")
	for i, g := range []string{"OLTP", "OLTP", "DSS"} {
		l.rec.VM(vmName(i), g, i, true)
	}
	for range 10 {
		l.second(func() {})
	}
	l.event(result.KindPhase, "run", "")
	a, b := l.start(vmName(0), "OLTP", "OLTP", 1), l.start(vmName(1), "OLTP", "OLTP", 1)
	var dss *labJob
	for s := range 60 {
		if s == 30 {
			l.event(result.KindAnnotation, "run", "DSS starts")
			dss = l.start(vmName(2), "DSS", "DSS", 1)
		}
		l.second(func() {
			service := time.Millisecond
			if dss != nil {
				service = 4 * time.Millisecond
				dss.do(&dss.rep.Read, 20, 20<<20, 10*time.Millisecond)
				dss.report()
			}
			for i, j := range []*labJob{a, b} {
				j.do(&j.rep.Read, 100, 800<<10, service)
				j.do(&j.rep.Write, uint64(50*(i+1)), 400<<10, service/2)
				j.report()
			}
		})
		l.rec.Cluster("CpuUsage.Avg.Percent", 0, "n0", 10)
		l.rec.Cluster("CpuUsage.Avg.Percent", 1, "n1", 30)
	}
	for _, j := range []*labJob{a, b, dss} {
		j.end("finished")
	}
	l.event(result.KindPhase, "teardown", "")
	l.must(l.rec.Close())
	return l
}

func resultOf(kind scenario.ResultKind, typ, group, load, agg string) scenario.Result {
	name := fmt.Sprintf("%s_%s_%s_%s", kind, typ, group+load, agg)
	return scenario.Result{Name: name, Title: name, Kind: kind, Type: typ, Group: group, Workload: load, Aggregate: agg}
}

func values(s result.Series) string {
	out := ""
	for _, v := range s.Values {
		if v == nil {
			out += "- "
			continue
		}
		out += fmt.Sprintf("%g ", *v)
	}
	return out
}

func TestPanels(t *testing.T) {
	l := neighbour(t)
	group := func(typ, agg string) scenario.Result { return resultOf(scenario.GroupResult, typ, "OLTP", "", agg) }
	masked := group("iops", "sum")
	masked.Mask, masked.Name = "DSS", "masked"
	generic := group("generic", "")
	generic.Query = "sum(rate(node_disk_read_bytes_total{__curie_filter_scenario__}[10s]))"
	broken := group("generic", "")
	broken.Query, broken.Name = "sum(", "broken"
	cpu := scenario.Result{Name: "cpu", Title: "CPU", Kind: scenario.ClusterResult, Metric: "CpuUsage.Avg.Percent", Aggregate: "sum"}
	rx := scenario.Result{Name: "rx", Title: "rx", Kind: scenario.ClusterResult, Metric: "NetReceived.Avg.KilobytesPerSecond", Aggregate: "sum"}
	load := func(typ, agg string) scenario.Result {
		return resultOf(scenario.WorkloadResult, typ, "OLTP", "OLTP", agg)
	}
	results := []scenario.Result{
		group("iops", ""), group("iops", "sum"), group("bandwidth", "mean"), group("latency", ""), group("latency", "mean"), group("latency", "max"),
		group("iops", "median"), masked, generic, broken, cpu, rx, load("iops", ""), load("iops", "sum"), load("errors", ""), load("active", "max"),
	}
	for i := range results {
		results[i].Step = 10 * time.Second
	}
	d := l.collect(&scenario.Scenario{Name: "lab", Results: results, Workloads: []scenario.Workload{{Name: "OLTP", ReportingInterval: 20 * time.Second}}})
	got := ""
	for _, p := range d.Panels {
		got += fmt.Sprintf("%s [%s] %s%v\n", p.Name, p.Unit, p.Problem, p.Notes)
		for _, s := range p.Series {
			got += fmt.Sprintf("  %s %s %gs: %s\n", s.Name, s.Start.Format(time.TimeOnly), s.Step, values(s))
		}
	}
	t.Log(got)
	t.Log(d.Problems)
}

func TestWindows(t *testing.T) {
	d := neighbour(t).collect(&scenario.Scenario{Name: "lab"})
	for _, w := range d.Workloads {
		t.Log(w.Name, w.VM, w.Start, w.End, w.Ended, w.Notes)
		for _, o := range w.Ops {
			t.Log("  ", o.Op, o.Count, o.Bytes, o.Seconds, o.Hist.Count())
		}
		for _, win := range w.Windows {
			t.Log("   window", win.Name, win.Start.Format(time.TimeOnly), win.End.Format(time.TimeOnly))
			for _, o := range win.Ops {
				q, _ := o.Hist.Quantile(0.99)
				t.Log("     ", o.Op, o.Count, o.Seconds, q)
			}
		}
		if w.Heat != nil {
			t.Log(w.Heat.Step, len(w.Heat.Counts), w.Heat.EdgesNs)
		}
	}
	for _, s := range d.Series {
		t.Log(s.Name, s.Metric, s.Start.Format(time.TimeOnly), s.Step, values(s))
	}
	_ = cmp.Diff
	_ = hist.RelativeError
}
